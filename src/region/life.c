/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing a region.
 *
 * Open: read the manifest, compare it with the folder and open the files (open_store.c), find the first free
 * number, take the records that the log's replay has collected (replay.c). Opening writes nothing, except that
 * leftovers of a crash are moved aside, and that in a cluster the owner is swapped into the manifest (owned.h);
 * an empty region opens after a few reads.
 *
 * The first number is above every number ever used: the manifest's, the files' largest sequence ids
 * and memstore timestamps, HBase's .seqid file, the log. */
#include "region/engine_priv.h"
#include "region/filelist.h"
#include "region/opening.h"
#include "region/owned.h"
#include "region/tracking.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- families and numbers --------------------------------------------------------------------- */

/* If a family that the descriptor does not name has a folder, the descriptor is wrong (no checksum
 * covers its names), and opening without the family would treat its records in the log as garbage.
 * Or an alter was interrupted: it removes the family from the manifest before it opens the region,
 * and continues by itself. Without a folder, the family was removed by HBase. */
rq_err rq__check_family(const rq_region *r, rq_slice family, rq_error *why)
{
    rq_stat st;
    rq_arena arena = {0};
    const char *dir = rq__family_dir(&arena, &r->info, family);
    rq_err rc = dir == NULL ? RQ_E_NO_MEMORY : rq_vfs_stat(r->env.vfs, dir, &st, NULL);
    if (rc == RQ_OK)
        rc = rq_fail(why, RQ_E_CORRUPT,
                     "folder %s belongs to a column family that the table's descriptor "
                     "(.tableinfo) does not have",
                     dir);
    else if (rc == RQ_E_NOT_FOUND)
        rc = RQ_OK;
    else
        rc = rq_fail(why, rc, "family %.*s: %s", (int)family.len, (const char *)family.ptr,
                     rq_err_text(rc));
    rq_arena_clear(&arena);
    return rc;
}

/* A region without a manifest: replay_record checks the families in the log. */
static rq_err check_families(const rq_region *r, const rq__manifest *m, rq_error *why)
{
    for (size_t i = 0; i < m->family_count; i++)
        if (rq_table_schema_family(r->schema, m->families[i].name) == NULL)
            RQ_TRY(rq__check_family(r, m->families[i].name, why));
    return RQ_OK;
}

static void raise(uint64_t *value, uint64_t to)
{
    if (to > *value) *value = to;
}

static rq_err find_first_number(rq_region *r, const rq__manifest *m, rq_error *why)
{
    uint64_t used = 0;
    RQ_TRY(rq__seqid_file_read(r->env.vfs, &r->info, &used, why));
    raise(&used, rq_wal_found_sequence_id(r->engine->wal, r->info.encoded));
    if (m->next_seqid > 0) raise(&used, m->next_seqid - 1);
    for (size_t i = 0; i < r->store_count; i++) {
        const rq_store_version *v = rq_store_version_now(r->stores[i].store);
        if (r->stores[i].flushed != RQ__FLUSHED_OF_NEW_FAMILY) raise(&used, r->stores[i].flushed);
        for (size_t j = 0; j < v->file_count; j++) {
            raise(&used, v->files[j].max_seqid);
            raise(&used, rq_hfile_reader_info(v->files[j].reader)->max_memstore_ts);
        }
    }
    if (used >= RQ__SEQID_LIMIT)
        return rq_fail(why, RQ_E_CORRUPT, "a sequence id of %" PRIu64 " leaves no room above it",
                       used);
    r->staged_seqid = used;
    return RQ_OK;
}

/* --- opening ---------------------------------------------------------------------------------- */

static rq_err log_scopes(rq_region *r)
{
    size_t len = 0;
    for (size_t i = 0; i < r->schema->family_count; i++)
        if (r->schema->families[i].scope != 0) len += 1 + r->schema->families[i].name.len + 4;
    if (len == 0) return RQ_OK;
    uint8_t *p = rq_arena_alloc(&r->arena, len);
    if (p == NULL) return RQ_E_NO_MEMORY;
    r->log_scopes = rq_slice_of(p, len);
    for (size_t i = 0; i < r->schema->family_count; i++) {
        const rq_family_schema *f = &r->schema->families[i];
        if (f->scope == 0) continue;
        *p++ = (uint8_t)f->name.len;
        memcpy(p, f->name.ptr, f->name.len);
        p += f->name.len;
        rq_put_be32(p, (uint32_t)f->scope);
        p += 4;
    }
    return RQ_OK;
}

/* Largest difference between the clocks of server and clients that write to a system table. */
#define SYSTEM_SLOP_MS ((int64_t)86400 * 1000)

/* HBASE: HRegion reads its limits from the table's values, which override the server's settings. */
static void set_limits(rq_region *r)
{
    int64_t cell_max = (int64_t)r->engine->cell_bytes_max;
    rq__setting_i64(r->schema, NULL, "hbase.server.keyvalue.maxsize", &cell_max);
    r->cell_bytes_max = (uint64_t)cell_max;
    r->timestamp_slop_ms = r->engine->timestamp_slop_ms;
    rq__setting_i64(r->schema, NULL, "hbase.hregion.keyvalue.timestamp.slop.millisecs",
                    &r->timestamp_slop_ms);
    /* A client's cell with a timestamp in the future would hide the cells that the server writes to
     * the table, and a delete marker would delete them. */
    if (r->schema->is_system && r->timestamp_slop_ms > SYSTEM_SLOP_MS)
        r->timestamp_slop_ms = SYSTEM_SLOP_MS;
}

static rq_err region_new(rq_engine *e, const rq_region_info *info, rq_table_schema *schema,
                         rq_region **ret)
{
    rq_region *r = calloc(1, sizeof *r);
    if (r == NULL) return RQ_E_NO_MEMORY;
    r->engine = e;
    atomic_fetch_add(&e->regions_alive, 1);
    r->env = e->env;
    atomic_init(&r->refs, 1);
    pthread_mutex_init(&r->lock, NULL);
    rq__gate_init(&r->flush_gate);
    rq__gate_init(&r->commit_gate);
    r->flush_task.run = rq__region_flush_task;
    atomic_init(&r->nonces_due_ns, UINT64_MAX);
    r->schema = rq_table_schema_ref(schema);
    r->flush_bytes = schema->flush_bytes != 0 ? schema->flush_bytes : e->flush_bytes;
    r->blocking_bytes = r->flush_bytes * e->block_multiplier;
    set_limits(r);
    rq__flush_age_init(r);
    r->stores = rq_arena_calloc(&r->arena, schema->family_count + 1, sizeof *r->stores);
    r->dir = rq__region_dir(&r->arena, info);
    rq_err rc = rq_region_info_make(&r->arena, info->ns, info->qualifier, info->start_key,
                                    info->end_key, info->region_id, info->replica_id, &r->info);
    if (rc == RQ_OK && (r->stores == NULL || r->dir == NULL)) rc = RQ_E_NO_MEMORY;
    if (rc == RQ_OK) rc = log_scopes(r);
    if (rc != RQ_OK) {
        rq__region_free(r);
        return rc;
    }
    *ret = r;
    return RQ_OK;
}

void rq__region_free(rq_region *r)
{
    rq__table_times_leave(r);
    for (size_t i = 0; i < r->store_count; i++) {
        rq_mob_output_forget(&r->stores[i].doubtful);
        rq_store_free(r->stores[i].store);
        free(r->stores[i].unarchived.names);
    }
    for (size_t i = 0; r->stores != NULL && i < r->schema->family_count; i++)
        rq__compaction_clear(&r->stores[i].compaction);
    rq__owned_free(r->owned);
    rq_table_schema_unref(r->schema);
    rq__nonce_list_clear(&r->nonces);
    rq__nonce_files_clear(&r->nonce_files);
    rq_read_ctx_clear(&r->read_ctx);
    rq_cellblock_clear(&r->scratch_cells);
    rq_arena_clear(&r->scratch);
    free(r->read_points);
    for (size_t i = 0; i < r->unwanted_count; i++)
        free(r->unwanted[i]);
    free(r->unwanted);
    rq__gate_destroy(&r->flush_gate);
    rq__gate_destroy(&r->commit_gate);
    pthread_mutex_destroy(&r->lock);
    rq_arena_clear(&r->arena);
    RQ_ASSERT(r->link == NULL); /* it was closed */
    rq_engine *e = r->engine;
    free(r);
    atomic_fetch_sub(&e->regions_alive, 1); /* the engine may be freed from here on */
}

/* Records in the log fit into memory, where they were before, unless the server has less memory
 * now. Then flushes make room; on a full disk they cannot, and the region stays closed for the time
 * being, except regions that all others depend on. */
static rq_err check_room(const rq_region *r, rq_error *why)
{
    const rq_engine *e = r->engine;
    if (rq__region_is_system(r) || !rq__engine_lacks_space(e) ||
        rq__engine_memstore_held(e) <= e->memstore_high)
        return RQ_OK;
    return rq_fail(
        why, RQ_E_NO_SPACE,
        "no space left on the server's disk: memstores hold %" PRIu64
        " MB and cannot be flushed, there is no memory for this region's records in the log",
        rq__engine_memstore_held(e) >> 20);
}

static rq_err load_nonces(rq_region *r, const rq__manifest *m, rq_error *why)
{
    if (!r->engine->nonces_enabled || m->next_seqid == 0) return RQ_OK;
    rq__nonce_place at = rq__region_nonce_place(r);
    RQ_TRY(rq__nonce_files_load(&r->nonce_files, &at, m->next_seqid - 1, why));
    atomic_store(&r->nonces_due_ns, rq__nonce_files_due_ns(&r->nonce_files));
    return RQ_OK;
}

/* Opening creates folders of families, but never a region's folder. */
static rq_err check_folder(const rq_region *r, rq_error *why)
{
    rq_stat st;
    rq_err rc = rq_vfs_stat(r->env.vfs, r->dir, &st, NULL);
    if (rc == RQ_E_NOT_FOUND)
        return rq_fail(why, RQ_E_CORRUPT, "%s: the region has neither a folder nor a manifest",
                       r->dir);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s: %s", r->dir, rq_err_text(rc));
}

static rq_err load_from(rq_region *r, const rq__manifest *m, bool has_manifest, rq_arena *arena,
                        rq_error *why)
{
    RQ_TRY(check_families(r, m, why));
    for (size_t i = 0; i < r->schema->family_count; i++)
        RQ_TRY(rq__open_store(r, i, m, has_manifest, arena, why));
    RQ_TRY(find_first_number(r, m, why));
    RQ_TRY(load_nonces(r, m, why));
    RQ_TRY(check_room(r, why));
    return rq__take_replay(r, has_manifest, why);
}

static rq_err load(rq_region *r, rq_arena *arena, rq_error *why)
{
    rq__manifest m = {0};
    if (r->engine->cluster != NULL) {
        RQ_TRY(rq__owned_take(r, arena, &m, why));
        return load_from(r, &m, true, arena, why);
    }
    rq_err rc =
        rq__manifest_read(r->env.vfs, r->info.encoded, arena, &m, &r->manifest.generation, why);
    bool has_manifest = rc == RQ_OK;
    if (rc == RQ_E_NOT_FOUND) {
        r->manifest.generation = 0;
        if (why != NULL) why->code = RQ_OK;
    } else if (rc != RQ_OK) {
        return rc;
    }
    r->manifest.in_use = has_manifest && m.in_use;
    if (!has_manifest || m.in_use) {
        rq__region_removes_names(r); /* HBase, or the process that crashed, may have removed some */
    } else {
        r->closed_generation = r->manifest.generation;
        r->closed_next_seqid = m.next_seqid;
    }
    if (!has_manifest) RQ_TRY(check_folder(r, why));
    return load_from(r, &m, has_manifest, arena, why);
}

static void lower_below(const rq_segment *s, uint64_t *lowest)
{
    uint64_t min;
    uint64_t max;
    rq_segment_seqid_range(s, &min, &max);
    if (min <= max && min - 1 < *lowest) *lowest = min - 1;
}

/* All cells up to this number are in files. REQUIRES: no thread writes or flushes. */
static uint64_t flushed_of_all(const rq_region *r)
{
    uint64_t lowest = r->staged_seqid;
    for (size_t i = 0; i < r->store_count; i++) {
        const rq_store_version *v = rq_store_version_now(r->stores[i].store);
        lower_below(v->active, &lowest);
        for (size_t j = 0; j < v->snapshot_count; j++)
            lower_below(v->snapshots[j], &lowest);
    }
    return lowest;
}

/* New families are added to the manifest before anything is written to them, so that later replays
 * start behind the numbers used so far. */
static rq_err enter_new_families(rq_region *r, rq_error *why)
{
    bool any = false;
    for (size_t i = 0; i < r->store_count; i++) {
        if (r->stores[i].flushed != RQ__FLUSHED_OF_NEW_FAMILY) continue;
        r->stores[i].flushed = r->staged_seqid;
        any = true;
    }
    /* No other thread has the region yet: no need to enter the commit gate. */
    return any ? rq__region_commit(r, NULL, 0, why) : RQ_OK;
}

static rq_err open_region(rq_region *r, rq_error *why)
{
    rq_arena arena = {0};
    rq_err rc = load(r, &arena, why);
    rq_arena_clear(&arena);
    if (rc != RQ_OK) {
        rq__owned_give_back(r);
        return rc;
    }
    if (r->owned != NULL) r->owned->replayed_seqid = r->staged_seqid;
    atomic_store(&r->read_point, r->staged_seqid);
    rc = enter_new_families(r, why);
    if (rc == RQ_OK)
        rc = rq_wal_region_open(r->engine->wal, r->info.encoded, r->info.table, r, &r->log);
    if (rc != RQ_OK && r->owned != NULL) {
        rq__owned_give_back(r);
        return rc;
    }
    if (rc != RQ_OK) {
        /* Records taken from the log must be available to the next attempt. */
        rq__recovery_reread(r->engine, r->info.encoded);
        return rc;
    }
    rq_wal_region_flushed(r->log, flushed_of_all(r));
    atomic_store(&r->max_flushed_seqid, flushed_of_all(r));
    r->open_seqid = r->staged_seqid + 1;
    if (r->owned != NULL) rq__owned_wait_for_lease(r);
    r->quiet_point = rq__region_read_point(r);
    rq__engine_add(r->engine, r);
    rq__region_account(r);
    return RQ_OK;
}

rq_err rq_region_open(rq_engine *e, const rq_region_info *info, rq_table_schema *schema,
                      rq_region **ret, rq_error *why)
{
    rq_region *r;
    rq_err rc = region_new(e, info, schema, &r);
    if (rc == RQ_OK) {
        rc = open_region(r, why);
        if (rc != RQ_OK) rq_region_unref(r);
    }
    if (rc != RQ_OK) return rq_fail(why, rc, "%s: %s", info->encoded, rq_err_text(rc));
    /* Replay may have filled the memory: make room before the next region. */
    if (r->memstore_heap > r->flush_bytes || atomic_load(&e->memstore_bytes) > e->memstore_low) {
        rq_err later = rq__region_flush(r, RQ__FLUSH_ALL, (rq_slice){0}, NULL, NULL);
        (void)later; /* a failure is logged and retried */
    }
    for (size_t i = 0; i < r->store_count; i++)
        rq__store_request_compaction(&r->stores[i], RQ__WANT_MINOR);
    *ret = r;
    return RQ_OK;
}

/* --- closing ---------------------------------------------------------------------------------- */

/* token */
static void fail_held(rq_region *r, void *arg)
{
    (void)arg;
    rq__region_retry_held(r); /* the region is not open: they fail */
}

/* REQUIRES: the region is not open any more. */
static void wait_until_idle(rq_region *r)
{
    rq_executor *ex = r->env.executor;
    rq_latch latch;
    ex->latch_init(ex, &latch);
    /* Held during the check: leave opens the latch when the count falls to 0. */
    atomic_fetch_add(&r->inflight, 1);
    atomic_store(&r->idle, &latch);
    rq__region_with_token(r, fail_held, NULL);
    rq__region_resume_flush(r);
    rq__region_leave(r);
    (void)ex->latch_wait(&latch);
    ex->latch_destroy(&latch);
}

static rq_err sweep(rq_region *r, rq_error *why)
{
    rq_arena arena = {0};
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < r->store_count && rc == RQ_OK; i++)
        rc = rq__sweep_store(r, &r->stores[i], &arena, why);
    rq_arena_clear(&arena);
    return rc;
}

/* HBase's lists of files (filelist.h). While there is a manifest that is not IN_USE, those in the folder are of a clean
 * close; without one a killed process may have left them. */
static rq_err write_filelists(rq_region *r, rq_error *why)
{
    rq_err rc = RQ_OK;
    bool are_durable = r->manifest.generation > 0 && !r->manifest.in_use;
    rq_arena arena = {0};
    for (size_t i = 0; i < r->store_count && rc == RQ_OK; i++) {
        rq_store *s = r->stores[i].store;
        if (!rq__tracking_keeps_list(r->schema, rq_store_schema(s))) {
            rc = rq__filelist_remove(r->env.vfs, rq_store_dir(s), why);
            continue;
        }
        const rq_store_version *v = rq_store_version_now(s); /* no thread publishes any more */
        const char **live = rq_arena_calloc(&arena, v->file_count + 1, sizeof *live);
        if (live == NULL) rc = rq_no_memory(why);
        for (size_t k = 0; k < v->file_count && rc == RQ_OK; k++)
            live[k] = v->files[k].name;
        if (rc == RQ_OK)
            rc = rq__filelist_write(r->env.vfs, rq_store_dir(s), live, v->file_count, are_durable,
                                    r->env.executor->now_ms(r->env.executor), why);
    }
    rq_arena_clear(&arena);
    return rc;
}

/* Whether the region is unchanged since its last clean close or its creation: then this close has nothing to
 * write. */
static bool is_as_closed(const rq_region *r)
{
    return r->closed_generation != 0 && r->closed_generation == r->manifest.generation &&
           !r->manifest.in_doubt && r->closed_next_seqid == rq__region_read_point(r) + 1 &&
           r->closed_next_seqid == r->staged_seqid + 1;
}

void rq__region_note_closed(rq_region *r)
{
    r->closed_generation = r->manifest.generation;
    r->closed_next_seqid = rq__region_read_point(r) + 1;
}

/* Whether a store file has the region's last sequence id, which HBase reads from the files it opens. */
static bool file_has_last_number(const rq_region *r)
{
    for (size_t i = 0; i < r->store_count; i++) {
        const rq_store_version *v = rq_store_version_now(r->stores[i].store);
        for (size_t j = 0; j < v->file_count; j++) {
            const rq_store_file *f = &v->files[j];
            if (!f->bulk_loaded && !f->is_reference && f->max_seqid >= r->staged_seqid) return true;
        }
    }
    return false;
}

/* Prepares the last flush, whose commit may be that of a clean close: before it the folders must contain no file that
 * the manifest does not name. A manifest in doubt, for example that of an earlier close, may name a file that the
 * region does not have. So it is replaced before the folders are swept; the new one is marked IN_USE before the flush's
 * file appears. */
static rq_err prepare_last_flush(rq_region *r, rq_error *why)
{
    rq__gate_enter(&r->commit_gate, r->env.executor);
    rq_err rc = r->manifest.in_doubt ? rq__region_commit(r, NULL, 0, why) : RQ_OK;
    if (rc == RQ_OK && r->manifest.in_use) rc = sweep(r, why);
    rq__gate_leave(&r->commit_gate, r->env.executor);
    return rc;
}

static rq_err save(rq_region *r, rq_error *why)
{
    rq__gate_enter(&r->commit_gate, r->env.executor);
    if (r->owned != NULL) {
        rq_err released = rq__owned_release(r, why);
        rq__gate_leave(&r->commit_gate, r->env.executor);
        return released;
    }
    rq_err rc = r->manifest.in_doubt ? rq__region_commit(r, NULL, 0, why) : RQ_OK;
    if (rc == RQ_OK && r->manifest.in_use) rc = sweep(r, why);
    if (rc == RQ_OK) rc = write_filelists(r, why);
    bool is_saved = rc == RQ_OK && is_as_closed(r);
    if (rc == RQ_OK && !is_saved && !file_has_last_number(r))
        rc = rq__seqid_file_write(r->env.vfs, &r->info, r->staged_seqid, why);
    if (rc == RQ_OK && !is_saved) {
        bool was = r->manifest.in_use;
        r->manifest.in_use = false;
        rc = rq__region_commit(r, NULL, 0, why);
        if (rc != RQ_OK) r->manifest.in_use = was;
    }
    rq__gate_leave(&r->commit_gate, r->env.executor);
    return rc;
}

/* Forgets the nonces of unflushed ops: ops without a record in the log count as not done, and the
 * next opening's replay of the log restores the nonces of the other ops. */
static void forget_nonces(rq_region *r)
{
    for (size_t i = 0; i < r->nonces.count; i++)
        rq__nonces_forget(r->engine->nonces, r->nonces.ids[i]);
    rq__nonce_list_clear(&r->nonces);
}

rq_err rq_region_close(rq_region *r, bool abort, rq_error *why)
{
    int state = RQ__REGION_OPEN;
    if (!atomic_compare_exchange_strong(&r->state, &state, RQ__REGION_CLOSING) &&
        state == RQ__REGION_CLOSED)
        return RQ_OK;
    if (state == RQ__REGION_FAILED && !abort) return rq__region_not_serving(r, why);
    atomic_store(&r->stop, true);
    wait_until_idle(r);
    if (!abort) {
        if (r->owned == NULL) RQ_TRY(prepare_last_flush(r, why));
        RQ_TRY(rq__region_flush_last(r, why));
        RQ_TRY(save(r, why));
    } else {
        forget_nonces(r);
        if (r->owned == NULL)
            rq__recovery_reread(r->engine, r->info.encoded);
        else
            rq__owned_abandon(r);
    }
    atomic_store(&r->state, RQ__REGION_CLOSED);
    rq__engine_remove(r->engine, r);
    rq_wal_region_close(r->log);
    r->log = NULL;
    return RQ_OK;
}
