/* SPDX-License-Identifier: Apache-2.0 */
/* Flush: from memstore segments to HFiles. One at a time per region; blocking.
 *
 * 1. Under commit gate and token: choose families; their active segments become snapshots. S is the
 *    last sequence id assigned: every cell of those families up to S is in a snapshot or a file.
 * 2. Wait until everything staged in the log so far is durable; then S is visible. Cells that are
 *    not durable are never flushed (else a record could survive in one family and not in another).
 * 3. Mark the manifest IN_USE, if it is not, before the first new file appears.
 * 4. Write one file per family, and one with the nonces that are in no file yet (nonce_files.h).
 * 5. Commit the manifest: the new files, flushed = S. This is the point of no return. The last flush before a
 *    close clears the mark with the same swap, if nothing else is left to be written.
 * 6. Under the token: publish versions with the file in place of the snapshots.
 * 7. Tell the log which records are no longer needed.
 *
 * A failure before step 5 keeps the snapshots; the next flush includes them. */
#include "region/engine_priv.h"
#include "region/owned.h"
#include "region/tracking.h"

#include <stdlib.h>

/* The flush of one family. */
typedef struct part {
    rq__region_store *store;
    rq_segment **segments; /* referenced */
    size_t count;
    rq_store_file file; /* written; not there when `empty` */
    bool has_file;
    rq_mob_output mob;
    rq_store_version *next;
} part;

typedef struct flush {
    rq_region *region;
    rq__flush_what what;
    rq_slice family;
    bool is_last; /* before the region closes */
    int64_t now_ms;
    uint64_t seqid; /* S */
    rq_lsn lsn;
    part *parts;
    size_t count;
    rq__nonce_id *nonces; /* the first of the region's list */
    size_t nonce_count;
    rq_err rc;
} flush;

/* --- choosing --------------------------------------------------------------------------------- */

static uint64_t store_bytes(const rq__region_store *s)
{
    return rq_store_version_data_bytes(rq_store_version_now(s->store));
}

/* HBASE: FlushAllLargeStoresPolicy: flushes families of at least flush size / number of families
 * (and at least the lower bound), and families with old edits; if there are none, all families. */
static uint64_t large_bytes(const rq_region *r)
{
    uint64_t share = r->flush_bytes / (r->store_count == 0 ? 1 : r->store_count);
    uint64_t min = r->engine->family_flush_bytes_min;
    return share > min ? share : min;
}

static bool is_chosen(const flush *f, const rq__region_store *s, uint64_t at_least)
{
    if (f->what == RQ__FLUSH_BY_POLICY && rq__store_is_old(s, f->now_ms)) return true;
    if (f->what == RQ__FLUSH_FAMILY) return rq_slice_eq(rq_store_schema(s->store)->name, f->family);
    return store_bytes(s) >= at_least;
}

static rq_err take_snapshots(part *p)
{
    RQ_TRY(rq_store_begin_flush(p->store->store));
    const rq_store_version *v = rq_store_version_now(p->store->store);
    p->segments = calloc(v->snapshot_count + 1, sizeof(rq_segment *));
    if (p->segments == NULL) return RQ_E_NO_MEMORY;
    for (; p->count < v->snapshot_count; p->count++)
        p->segments[p->count] = rq_segment_ref(v->snapshots[p->count]);
    return RQ_OK;
}

/* token */
static rq_err take_nonces(const rq_region *r, flush *f)
{
    size_t count = r->nonces.count;
    if (count == 0) return RQ_OK;
    f->nonces = malloc(count * sizeof *f->nonces);
    if (f->nonces == NULL) return RQ_E_NO_MEMORY;
    memcpy(f->nonces, r->nonces.ids, count * sizeof *f->nonces);
    f->nonce_count = count;
    return RQ_OK;
}

/* token */
static void begin(rq_region *r, void *arg)
{
    flush *f = arg;
    f->seqid = r->staged_seqid;
    f->lsn = r->staged_lsn;
    uint64_t at_least = 1;
    if (f->what == RQ__FLUSH_BY_POLICY) {
        at_least = large_bytes(r);
        bool any = false;
        for (size_t i = 0; i < r->store_count; i++)
            any |= is_chosen(f, &r->stores[i], at_least);
        if (!any) at_least = 1;
    }
    for (size_t i = 0; i < r->store_count && f->rc == RQ_OK; i++) {
        rq__region_store *s = &r->stores[i];
        if (!is_chosen(f, s, at_least) || store_bytes(s) == 0) continue;
        part *p = &f->parts[f->count++];
        p->store = s;
        f->rc = take_snapshots(p);
    }
    if (f->rc == RQ_OK && f->count > 0) f->rc = take_nonces(r, f);
}

/* --- writing ---------------------------------------------------------------------------------- */

static rq_err write_part(const flush *f, part *p, rq_error *why)
{
    rq_region *r = f->region;
    rq_rewrite w = {
        .scan =
            {
                .store = p->store->store,
                .segments = p->segments,
                .segment_count = p->count,
                .is_flush = true,
                .smallest_read_point = rq__region_smallest_read_point(r),
                .max_seqid_inclusive = f->seqid,
                .now_ms = r->env.executor->now_ms(r->env.executor),
                .keep_seqid_period_ms = rq__compaction_of(p->store)->keep_seqid_period_ms,
                .time_to_purge_deletes_ms = rq__compaction_of(p->store)->time_to_purge_deletes_ms,
            },
        .max_seqid = f->seqid,
        .mob_output = &p->mob,
    };
    size_t count;
    RQ_TRY(rq_store_rewrite(&w, &p->file, &count, why));
    p->has_file = count > 0;
    return RQ_OK;
}

static rq_err write_parts(flush *f, rq_error *why)
{
    for (size_t i = 0; i < f->count; i++)
        RQ_TRY(write_part(f, &f->parts[i], why));
    return RQ_OK;
}

/* --- nonces ----------------------------------------------------------------------------------- */

rq__nonce_place rq__region_nonce_place(rq_region *r)
{
    return (rq__nonce_place){.vfs = r->env.vfs,
                             .executor = r->env.executor,
                             .log = r->env.log,
                             .encoded = r->info.encoded,
                             .nonces = r->engine->nonces};
}

/* token */
static void drop_nonces(rq_region *r, void *arg)
{
    const flush *f = arg;
    rq__nonce_list_drop(&r->nonces, f->nonce_count);
}

static rq_err write_nonces(flush *f, rq_error *why)
{
    rq_region *r = f->region;
    rq__nonce_place at = rq__region_nonce_place(r);
    if (f->nonce_count == 0) return RQ_OK;
    RQ_TRY(rq__nonce_files_write(&r->nonce_files, &at, f->nonces, f->nonce_count, f->seqid, why));
    rq__region_with_token(r, drop_nonces, f);
    return RQ_OK;
}

/* flush gate */
static void tidy_nonces(rq_region *r, bool committed)
{
    rq__nonce_place at = rq__region_nonce_place(r);
    if (r->nonce_files.count > 0) rq__nonce_files_tidy(&r->nonce_files, &at, committed);
    atomic_store(&r->nonces_due_ns, rq__nonce_files_due_ns(&r->nonce_files));
}

static void run_tidy(rq_task *task)
{
    rq_region *r = RQ_CONTAINER_OF(task, rq_region, nonce_task);
    rq__gate_enter(&r->flush_gate, r->env.executor);
    tidy_nonces(r, false);
    rq__gate_leave(&r->flush_gate, r->env.executor);
    atomic_store(&r->nonces_tidied, false);
    rq__region_leave(r);
    rq_region_unref(r);
}

void rq__region_nonces_look(rq_region *r)
{
    uint64_t due = atomic_load_explicit(&r->nonces_due_ns, memory_order_relaxed);
    if (due == UINT64_MAX || due >= rq__nonces_useless_before_ns(r->engine->nonces)) return;
    if (atomic_exchange(&r->nonces_tidied, true)) return;
    rq_region_ref(r);
    if (!rq__region_enter(r)) {
        rq_region_unref(r);
        return;
    }
    r->nonce_task.run = run_tidy;
    r->env.executor->submit(r->env.executor, RQ_POOL_WORK, &r->nonce_task);
}

/* token */
static void publish(rq_region *r, void *arg)
{
    flush *f = arg;
    for (size_t i = 0; i < f->count; i++) {
        part *p = &f->parts[i];
        rq_store_publish(p->store->store, p->next, p->segments, p->count, NULL, 0, &p->file,
                         p->has_file ? 1 : 0);
        p->next = NULL;
        p->has_file = false; /* the version's now */
    }
    /* The log must keep records from the lowest number that is only in memory. */
    uint64_t needed_from = UINT64_MAX;
    for (size_t i = 0; i < r->store_count; i++) {
        const rq_store_version *v = rq_store_version_now(r->stores[i].store);
        for (size_t j = 0; j <= v->snapshot_count; j++) {
            uint64_t min;
            uint64_t max;
            rq_segment_seqid_range(j == 0 ? v->active : v->snapshots[j - 1], &min, &max);
            if (min < needed_from) needed_from = min;
        }
    }
    f->seqid = needed_from == UINT64_MAX ? r->staged_seqid : needed_from - 1;
    rq__region_account(r);
    rq__region_retry_held(r);
}

/* Whether this commit may clear the IN_USE mark and so close the region: only if the close has no file for HBase left
 * to write before that (a file list, filelist.h; the seqid file). */
static bool closes_region(const flush *f)
{
    const rq_region *r = f->region;
    if (!f->is_last || r->owned != NULL || f->seqid != r->staged_seqid) return false;
    bool has_last_number = false;
    for (size_t i = 0; i < r->store_count; i++)
        if (rq__tracking_keeps_list(r->schema, rq_store_schema(r->stores[i].store))) return false;
    for (size_t i = 0; i < f->count; i++)
        has_last_number |= f->parts[i].has_file && f->parts[i].file.max_seqid >= f->seqid;
    return has_last_number;
}

/* commit gate */
static rq_err commit_files(const flush *f, const rq__store_change *changes, rq_error *why)
{
    rq_region *r = f->region;
    if (!closes_region(f)) return rq__region_commit(r, changes, f->count, why);
    r->manifest.in_use = false;
    rq_err rc = rq__region_commit(r, changes, f->count, why);
    r->manifest.in_use = rc != RQ_OK;
    if (rc == RQ_OK) rq__region_note_closed(r);
    return rc;
}

static rq_err commit(flush *f, rq_error *why)
{
    rq_region *r = f->region;
    rq_err rc = RQ_OK;
    rq__store_change *changes = calloc(f->count + 1, sizeof *changes);
    if (changes == NULL) return rq_no_memory(why);
    rq__gate_enter(&r->commit_gate, r->env.executor);
    for (size_t i = 0; i < f->count && rc == RQ_OK; i++) {
        part *p = &f->parts[i];
        changes[i] = (rq__store_change){
            .store = p->store, .added = p->has_file ? &p->file : NULL, .flushed = f->seqid};
        rq_epoch_member pin;
        rq_epoch_pin(r->env.epoch, &pin);
        rc = rq_store_version_prepare(p->store->store, &p->next);
        rq_epoch_unpin(r->env.epoch, &pin);
    }
    if (rc == RQ_OK) rc = commit_files(f, changes, why);
    if (rc == RQ_OK) rq__region_with_token(r, publish, f);
    for (size_t i = 0; i < f->count && rc == RQ_OK; i++)
        rq_mob_output_end(&f->parts[i].mob, f->parts[i].store->store, false);
    rq__gate_leave(&r->commit_gate, r->env.executor);
    free(changes);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}

/* --- the whole -------------------------------------------------------------------------------- */

/* Step 2. */
static rq_err make_durable(flush *f, rq_error *why)
{
    rq_region *r = f->region;
    if (f->lsn != 0) {
        rq_err rc = rq_wal_wait_blocking(r->engine->wal, f->lsn, true);
        if (rc != RQ_OK) return rq_fail(why, rc, "the write-ahead log: %s", rq_err_text(rc));
    }
    rq__region_raise_read_point(r, f->seqid);
    return RQ_OK;
}

static void remove_written(flush *f)
{
    rq__region_removes_names(f->region); /* also for unfinished files */
    for (size_t i = 0; i < f->count; i++) {
        part *p = &f->parts[i];
        rq_store_version_discard(p->next);
        if (p->has_file) rq__region_give_up(p->store, &p->file);
    }
}

static void clear(flush *f)
{
    for (size_t i = 0; i < f->count; i++) {
        for (size_t j = 0; j < f->parts[i].count; j++)
            rq_segment_unref(f->parts[i].segments[j]);
        free(f->parts[i].segments);
        rq__region_give_up_mob(f->parts[i].store, &f->parts[i].mob);
    }
    free(f->parts);
    free(f->nonces);
}

/* Before the commit, which hands the files on. */
static size_t files_of(const flush *f)
{
    size_t files = 0;
    for (size_t i = 0; i < f->count; i++)
        files += f->parts[i].has_file;
    return files;
}

static void log_flush(const flush *f, size_t files, uint64_t drained, uint64_t bytes,
                      uint64_t begun_ns)
{
    const rq_region *r = f->region;
    rq_log_event(r->env.log, rq__region_log_level(r), "flush", "flushed",
                 rq_log_bytes("table", r->info.table), rq_log_text("region", r->info.encoded),
                 rq_log_number("memstore_bytes", drained), rq_log_number("files", files),
                 rq_log_number("file_bytes", bytes), rq_log_number("seqid", f->seqid),
                 rq_log_ms("ms", r->env.executor->now_ns(r->env.executor) - begun_ns));
}

static rq_err run(flush *f, rq_error *why)
{
    rq_region *r = f->region;
    rq_engine *e = r->engine;
    uint64_t bytes = 0, drained = 0, cells = 0;
    uint64_t begun_ns = r->env.executor->now_ns(r->env.executor);
    /* Under the gate, because a version prepared by a commit only has room for the present
     * snapshots. */
    rq__gate_enter(&r->commit_gate, r->env.executor);
    rq__region_with_token(r, begin, f);
    rq__gate_leave(&r->commit_gate, r->env.executor);
    if (f->rc != RQ_OK) return rq_fail(why, f->rc, "%s", rq_err_text(f->rc));
    if (f->count == 0) {
        /* Nothing is only in memory, so the log need not keep anything either. */
        if (f->what == RQ__FLUSH_ALL) rq_wal_region_flushed(r->log, f->seqid);
        if (f->what == RQ__FLUSH_ALL && r->owned != NULL) rq__owned_flushed(r, f->seqid);
        return RQ_OK;
    }
    RQ_TRY(make_durable(f, why));
    RQ_TRY(rq__region_mark_in_use(r, why));
    RQ_TRY(write_parts(f, why));
    for (size_t i = 0; i < f->count; i++) {
        if (f->parts[i].has_file) bytes += f->parts[i].file.size_bytes;
        for (size_t j = 0; j < f->parts[i].count; j++) {
            drained += rq_segment_data_bytes(f->parts[i].segments[j]);
            cells += rq_segment_cell_count(f->parts[i].segments[j]);
        }
    }
    RQ_TRY(write_nonces(f, why));
    size_t files = files_of(f);
    RQ_TRY(commit(f, why));
    tidy_nonces(r, true);
    rq__debt_drained(&e->debt, drained, begun_ns, r->env.executor->now_ns(r->env.executor));
    rq_wal_region_flushed(r->log, f->seqid);
    if (r->owned != NULL) rq__owned_flushed(r, f->seqid);
    atomic_store_explicit(&r->max_flushed_seqid, f->seqid, memory_order_relaxed);
    rq_times_add_shared(&e->flush_times, r->env.executor->now_ns(r->env.executor) - begun_ns, 1);
    atomic_fetch_add_explicit(&e->flushes, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->flushed_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->flushed_cells, cells, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->flushed_memstore_bytes, drained, memory_order_relaxed);
    log_flush(f, files, drained, bytes, begun_ns);
    return RQ_OK;
}

rq_err rq__region_note_flush(rq_region *r, rq_err rc)
{
    rq_err before = (rq_err)atomic_exchange(&r->flush_rc, (int)rc);
    bool lacked = before == RQ_E_NO_SPACE;
    bool lacks = rc == RQ_E_NO_SPACE;
    if (lacks && !lacked) atomic_fetch_add(&r->engine->lacking_space, 1);
    if (lacked && !lacks) atomic_fetch_sub(&r->engine->lacking_space, 1);
    return before;
}

/* The cells of a failed flush stay in memory and in the log. So the flush is repeated every second,
 * without waiting for more writes; the error is logged once. */
static void note_outcome(rq_region *r, rq_err rc, const rq_error *why)
{
    rq_err before = rq__region_note_flush(r, rc);
    atomic_store(&r->flush_again, rc != RQ_OK);
    if (rc != RQ_OK) atomic_fetch_add(&r->engine->failed_flushes, 1);
    if (rc != RQ_OK && rc != before)
        rq_log_warn(r->env.log, "region", "region %s: flush failed and is tried again: %s",
                    r->info.encoded, why->message);
    if (rc == RQ_OK && before != RQ_OK)
        rq_log_info(r->env.log, "region", "region %s: flush succeeded after earlier failures",
                    r->info.encoded);
}

/* `then`, which may be NULL, runs under the flush gate after a successful flush. Its error is returned,
 * but the flush still counts as successful. */
typedef rq_err (*flush_then)(rq_region *r, void *ctx, rq_error *why);

static rq_err flush_region(flush *f, flush_then then, void *ctx, rq_error *why)
{
    rq_region *r = f->region;
    f->parts = calloc(r->store_count + 1, sizeof *f->parts);
    if (f->parts == NULL) return rq_no_memory(why);
    rq__gate_enter(&r->flush_gate, r->env.executor);
    rq_error own = {0};
    rq_err after = RQ_OK;
    rq_err rc = rq__region_state_now(r) == RQ__REGION_FAILED ? rq__region_not_serving(r, &own)
                                                             : run(f, &own);
    if (rc != RQ_OK) remove_written(f);
    if (rc == RQ_OK && then != NULL) after = then(r, ctx, why);
    rq__gate_leave(&r->flush_gate, r->env.executor);
    clear(f);
    note_outcome(r, rc, &own);
    rq_epoch_collect(r->env.epoch); /* loops whose writers are held may be idle, and do not collect
                                     * the flushed memstores */
    if (rc == RQ_OK) rq__engine_poke_held(r->engine);
    return rc == RQ_OK ? after : rq_fail(why, rc, "%s", own.message);
}

rq_err rq__region_flush(rq_region *r, rq__flush_what what, rq_slice family, bool *ret_flushed,
                        rq_error *why)
{
    flush f = {.region = r,
               .what = what,
               .family = family,
               .now_ms = r->env.executor->now_ms(r->env.executor)};
    RQ_TRY(flush_region(&f, NULL, NULL, why));
    if (ret_flushed != NULL) *ret_flushed = f.count > 0;
    return RQ_OK;
}

rq_err rq__region_flush_last(rq_region *r, rq_error *why)
{
    flush f = {.region = r,
               .what = RQ__FLUSH_ALL,
               .is_last = true,
               .now_ms = r->env.executor->now_ms(r->env.executor)};
    return flush_region(&f, NULL, NULL, why);
}

rq_err rq__region_flush_then(rq_region *r, rq_err (*then)(rq_region *r, void *ctx, rq_error *why),
                             void *ctx, rq_error *why)
{
    flush f = {
        .region = r, .what = RQ__FLUSH_ALL, .now_ms = r->env.executor->now_ms(r->env.executor)};
    return flush_region(&f, then, ctx, why);
}

/* HBASE: HRegion.flushcache. */
static rq_err no_family_to_flush(const rq_region *r, rq_slice family, rq_error *why)
{
    char asked[160];
    rq_bytes_to_string(family, asked, sizeof asked);
    return rq_fail(why, RQ_E_NO_SUCH_FAMILY, "Column families [%s] don't exist in table %.*s",
                   asked, (int)r->info.table.len, (const char *)r->info.table.ptr);
}

rq_err rq_region_flush(rq_region *r, rq_slice family, bool *ret_flushed, rq_error *why)
{
    size_t hint = 0;
    if (family.len > 0 && rq__region_store_of(r, family, &hint) == NULL)
        return no_family_to_flush(r, family, why);
    if (!rq__region_enter(r)) return rq__region_not_serving(r, why);
    rq_err rc = rq__region_flush(r, family.len > 0 ? RQ__FLUSH_FAMILY : RQ__FLUSH_ALL, family,
                                 ret_flushed, why);
    rq__region_leave(r);
    return rc;
}

/* --- in the background ------------------------------------------------------------------------ */

void rq__region_request_flush(rq_region *r)
{
    if (atomic_load_explicit(&r->flush_again, memory_order_relaxed)) return; /* the tick asks */
    if (atomic_exchange_explicit(&r->flush_requested, true, memory_order_acq_rel)) return;
    rq_region_ref(r);
    if (!rq__region_enter(r)) {
        atomic_store(&r->flush_requested, false);
        rq_region_unref(r);
        return;
    }
    atomic_fetch_add_explicit(&r->engine->flush_queue, 1, memory_order_relaxed);
    r->env.executor->submit(r->env.executor, RQ_POOL_FLUSH, &r->flush_task);
}

void rq__region_retry_flush(rq_region *r)
{
    if (atomic_exchange(&r->flush_again, false)) rq__region_request_full_flush(r);
}

void rq__region_request_full_flush(rq_region *r)
{
    atomic_store(&r->flush_everything, true);
    rq__region_request_flush(r);
}

static bool has_too_many_files(rq_region *r)
{
    bool too_many = false;
    rq_epoch_member pin;
    rq_epoch_pin(r->env.epoch, &pin);
    for (size_t i = 0; i < r->store_count; i++) {
        rq__region_store *s = &r->stores[i];
        if (rq_store_version_now(s->store)->file_count < rq__compaction_of(s)->blocking_files)
            continue;
        too_many = true;
        rq__store_request_compaction(s, RQ__WANT_MINOR);
    }
    rq_epoch_unpin(r->env.epoch, &pin);
    return too_many;
}

/* HBASE: MemStoreFlusher.flushRegion: with too many store files, a flush waits for a compaction for
 * a limited time, so that writes are throttled before reads have to merge hundreds of files. It
 * does not wait if the log needs space, or if memory is short overall. */
static bool must_wait_for_compaction(rq_region *r)
{
    rq_engine *e = r->engine;
    uint64_t now = e->env.executor->now_ns(e->env.executor);
    if (rq__region_state_now(r) != RQ__REGION_OPEN || atomic_load(&r->flush_everything) ||
        rq__engine_memstore_held(e) > e->memstore_low || !has_too_many_files(r))
        return false;
    if (r->flush_waits_since_ns == 0) r->flush_waits_since_ns = now;
    return now - r->flush_waits_since_ns < e->blocking_files_wait_ms * 1000000;
}

void rq__region_resume_flush(rq_region *r)
{
    if (atomic_exchange(&r->flush_waits, false))
        r->env.executor->submit(r->env.executor, RQ_POOL_FLUSH, &r->flush_task);
}

static void flush_in_background(rq_region *r)
{
    bool everything = atomic_exchange(&r->flush_everything, false);
    rq__flush_what what = everything ? RQ__FLUSH_ALL : RQ__FLUSH_BY_POLICY;
    if (rq__region_flush(r, what, (rq_slice){0}, NULL, NULL) != RQ_OK)
        return; /* the failure was logged */
    rq_region_compact_if_due(r);
    rq__engine_grown(r->engine, r);
}

void rq__region_flush_task(rq_task *task)
{
    rq_region *r = RQ_CONTAINER_OF(task, rq_region, flush_task);
    if (must_wait_for_compaction(r)) {
        /* The end of a compaction, the engine's tick or closing submits the task again. */
        atomic_store(&r->flush_waits, true);
        if (rq__region_state_now(r) != RQ__REGION_OPEN) rq__region_resume_flush(r);
        return;
    }
    r->flush_waits_since_ns = 0;
    if (rq__region_state_now(r) == RQ__REGION_OPEN) flush_in_background(r);
    atomic_fetch_sub_explicit(&r->engine->flush_queue, 1, memory_order_relaxed);
    atomic_store(&r->flush_requested, false);
    /* A flush requested meanwhile did not submit the task a second time. */
    if (atomic_load(&r->flush_everything) || atomic_load(&r->active_bytes) > r->flush_bytes)
        rq__region_request_flush(r);
    rq__region_leave(r);
    rq_region_unref(r);
}
