/* SPDX-License-Identifier: Apache-2.0 */
/* Compactions of a region's stores: scheduling, one at a time per store, and replacing the inputs
 * by the result. Selecting files and merging are in the store room (compaction.h).
 *
 *     choose ─ write the new file ─ commit the manifest ─ publish ─ archive the inputs
 *
 * Readers of older versions keep reading the inputs through their open files. A crash before the
 * commit leaves the new file behind, a crash after it the inputs; the next open moves either aside.
 *
 * On a full disk flushes have priority: they let writes continue and free the log. While a flush
 * lacks space no compaction begins, and a running one gives its space back and waits. */
#include "region/engine_priv.h"

#include <stdio.h>
#include <stdlib.h>

/* One round: inputs are replaced by files. */
typedef struct compaction {
    rq__region_store *store;
    rq_store_files all; /* of the store; after the selection only the inputs stay open */
    rq_compaction_choice choice;
    const rq_store_file *inputs; /* the choice's, of `all`; or `expired` */
    size_t input_count;
    rq_store_file *expired; /* copies; `all` holds their readers */
    int64_t *boundaries;
    rq_store_file *files; /* new; the version's once published */
    size_t file_count;
    rq_mob_output mob;
    bool asked; /* by a client. HBASE: PRIORITY_USER */
    rq_store_version *next;
} compaction;

static const rq_store_version *referenced_version(rq__region_store *s)
{
    rq_epoch_member pin;
    rq_epoch *epoch = s->region->env.epoch;
    rq_epoch_pin(epoch, &pin);
    const rq_store_version *v = rq_store_version_ref(rq_store_version_now(s->store));
    rq_epoch_unpin(epoch, &pin);
    return v;
}

/* token */
static void publish(rq_region *r, void *arg)
{
    compaction *c = arg;
    (void)r;
    rq_store_publish(c->store->store, c->next, NULL, 0, c->inputs, c->input_count, c->files,
                     c->file_count);
    c->next = NULL;
    c->file_count = 0;
}

static rq_err prepare(compaction *c)
{
    rq_epoch_member pin;
    rq_epoch *epoch = c->store->region->env.epoch;
    rq_epoch_pin(epoch, &pin);
    rq_err rc = rq_store_version_prepare_for(c->store->store, c->file_count, &c->next);
    rq_epoch_unpin(epoch, &pin);
    return rc;
}

static rq_err commit(compaction *c, rq_error *why)
{
    rq_region *r = c->store->region;
    rq__store_change *changes = calloc(c->file_count + 1, sizeof *changes);
    if (changes == NULL) return rq_no_memory(why);
    changes[0] = (rq__store_change){
        .store = c->store, .removed = c->inputs, .removed_count = c->input_count};
    for (size_t i = 0; i < c->file_count; i++)
        changes[i + 1] = (rq__store_change){.store = c->store, .added = &c->files[i]};
    rq__gate_enter(&r->commit_gate, r->env.executor);
    rq_err rc = prepare(c);
    if (rc == RQ_OK) rc = rq__region_commit(r, changes, c->file_count + 1, why);
    if (rc == RQ_OK) rq__region_with_token(r, publish, c);
    if (rc == RQ_OK) rq_mob_output_end(&c->mob, c->store->store, false);
    rq__gate_leave(&r->commit_gate, r->env.executor);
    free(changes);
    return rc;
}

static uint64_t max_seqid_of(const compaction *c)
{
    uint64_t max = 0;
    for (size_t i = 0; i < c->input_count; i++)
        if (c->inputs[i].max_seqid > max) max = c->inputs[i].max_seqid;
    return max;
}

static rq_err write_files(compaction *c, int64_t now_ms, rq_error *why)
{
    rq_region *r = c->store->region;
    size_t n;
    RQ_TRY(rq_compaction_boundaries(rq__compaction_of(c->store), &c->choice, c->all.list, now_ms,
                                    &c->boundaries, &n));
    c->files = calloc(n, sizeof *c->files);
    if (c->files == NULL) return rq_no_memory(why);
    rq__pacing pacing;
    rq_rewrite w = {
        .scan =
            {
                .store = c->store->store,
                .files = c->inputs,
                .file_count = c->input_count,
                .major = c->choice.all_files,
                .unflushed_from = c->all.unflushed_from,
                .drop_behind = rq__compaction_of(c->store)->drop_behind,
                .smallest_read_point = rq__region_smallest_read_point(r),
                .now_ms = now_ms,
                .keep_seqid_period_ms = rq__compaction_of(c->store)->keep_seqid_period_ms,
                .time_to_purge_deletes_ms = rq__compaction_of(c->store)->time_to_purge_deletes_ms,
            },
        .max_seqid = max_seqid_of(c),
        .boundaries = n > 1 ? c->boundaries : NULL,
        .boundary_count = n > 1 ? n : 0,
        .stop = &r->stop,
        .lacking = &r->engine->lacking_space,
        .cells_done = &r->compacted_cells,
        .mob_output = &c->mob,
        .rewrites_mob = c->asked && c->choice.all_files,
        .pace = rq__pacing_look,
        .pace_context = &pacing,
    };
    rq__pacing_begin(&pacing, r);
    rq_err rc = rq_store_rewrite(&w, c->files, &c->file_count, why);
    rq__pacing_end(&pacing);
    return rc;
}

/* --- the inputs leave ------------------------------------------------------------------------- */

static void note_unarchived(rq__region_store *s, const char *name)
{
    rq__name_list *l = &s->unarchived;
    void *more = realloc(l->names, (l->count + 1) * sizeof *l->names);
    if (more == NULL) return; /* it stays until the region opens again */
    l->names = more;
    snprintf(l->names[l->count++], sizeof l->names[0], "%s", name);
    atomic_store(&s->has_unarchived, true);
}

static void archive_inputs(const compaction *c)
{
    rq_region *r = c->store->region;
    rq_slice family = rq_store_schema(c->store->store)->name;
    for (size_t i = 0; i < c->input_count; i++) {
        rq_error why = {0};
        const char *name = c->inputs[i].name;
        if (rq__archive_file(r->env.vfs, &r->info, family, name, &why) == RQ_OK) continue;
        rq_log_warn(r->env.log, "region",
                    "region %s: cannot archive %s: %s; archiving is tried again later",
                    r->info.encoded, name, why.message);
        note_unarchived(c->store, name);
    }
}

static void archive_again(rq__region_store *s)
{
    rq_region *r = s->region;
    rq__name_list old = s->unarchived;
    if (old.count == 0) return;
    s->unarchived = (rq__name_list){0};
    atomic_store(&s->has_unarchived, false);
    rq_slice family = rq_store_schema(s->store)->name;
    for (size_t i = 0; i < old.count; i++) {
        rq_err rc = rq__archive_file(r->env.vfs, &r->info, family, old.names[i], NULL);
        if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) note_unarchived(s, old.names[i]);
    }
    free(old.names);
}

static uint64_t bytes_of(const compaction *c)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->input_count; i++)
        bytes += c->inputs[i].size_bytes;
    return bytes;
}

static void log_compaction(const compaction *c, size_t files, uint64_t bytes, uint64_t begun_ns)
{
    const rq_region *r = c->store->region;
    rq_log_event(r->env.log, rq__region_log_level(r), "compaction",
                 c->choice.all_files ? "compacted all files" : "compacted",
                 rq_log_bytes("table", r->info.table), rq_log_text("region", r->info.encoded),
                 rq_log_bytes("family", rq_store_schema(c->store->store)->name),
                 rq_log_number("files", c->input_count), rq_log_number("bytes", bytes_of(c)),
                 rq_log_number("to_files", files), rq_log_number("to_bytes", bytes),
                 rq_log_ms("ms", r->env.executor->now_ns(r->env.executor) - begun_ns));
}

static void note_done(const compaction *c, uint64_t begun_ns, uint64_t bytes)
{
    rq_engine *e = c->store->region->engine;
    rq_executor *executor = c->store->region->env.executor;
    rq_times_add_shared(&e->compaction_times, executor->now_ns(executor) - begun_ns, 1);
    atomic_fetch_add_explicit(&e->compactions, 1, memory_order_relaxed);
    if (c->choice.all_files)
        atomic_fetch_add_explicit(&e->major_compactions, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->compacted_bytes, bytes, memory_order_relaxed);
}

/* With `drop` the inputs are removed without being read. */
static rq_err run(compaction *c, bool drop, int64_t now_ms, rq_error *why)
{
    rq_region *r = c->store->region;
    uint64_t cells = 0;
    uint64_t begun_ns = r->env.executor->now_ns(r->env.executor);
    for (size_t i = 0; i < c->input_count && !drop; i++)
        cells += c->inputs[i].entry_count;
    atomic_fetch_add_explicit(&r->compacting_cells, cells, memory_order_relaxed);
    rq__region_removes_names(r);
    rq_err rc = rq__region_mark_in_use(r, why);
    if (rc == RQ_OK && !drop) rc = write_files(c, now_ms, why);
    uint64_t bytes = 0;
    for (size_t i = 0; rc == RQ_OK && i < c->file_count; i++)
        bytes += c->files[i].size_bytes;
    size_t files = c->file_count; /* the commit hands them on */
    if (rc == RQ_OK) rc = commit(c, why);
    if (rc == RQ_OK) {
        archive_inputs(c);
        if (!drop) note_done(c, begun_ns, bytes);
        log_compaction(c, files, bytes, begun_ns);
        return RQ_OK;
    }
    rq_store_version_discard(c->next);
    for (size_t i = 0; i < c->file_count; i++)
        rq__region_give_up(c->store, &c->files[i]);
    return rc;
}

static void clear(compaction *c)
{
    rq__region_give_up_mob(c->store, &c->mob);
    rq_store_files_release(&c->all);
    free(c->expired);
    free(c->boundaries);
    free(c->files);
}

/* Whether every open read may see all inputs. A bulk-loaded file that some older reads must not see
 * (rq_store_file.visible_from) is not merged with others until those reads have ended. */
static bool all_see(const compaction *c)
{
    uint64_t oldest = rq__region_smallest_read_point(c->store->region);
    for (size_t i = 0; i < c->input_count; i++)
        if (c->inputs[i].visible_from > oldest) return false;
    return true;
}

static void warn(const rq__region_store *s, rq_err rc, const rq_error *why)
{
    if (rc == RQ_OK || rc == RQ_E_CANCELLED) return;
    atomic_fetch_add(&s->region->engine->failed_compactions, 1);
    rq_log_warn(s->region->env.log, "region", "region %s: compaction of %s failed: %s",
                s->region->info.encoded, rq_store_dir(s->store), why->message);
}

/* Runs before files are selected. HBASE: HStore.removeUnneededFiles. */
static void drop_expired(rq__region_store *s)
{
    compaction c = {.store = s};
    const rq_family_schema *family = rq_store_schema(s->store);
    int64_t now_ms = s->region->env.executor->now_ms(s->region->env.executor);
    if (rq_store_files_take(s->store, &c.all) != RQ_OK) return; /* another look comes */
    c.expired = calloc(c.all.count + 1, sizeof *c.expired);
    for (size_t i = 0; i < c.all.count && c.expired != NULL; i++)
        if (rq_compaction_is_expired(rq__compaction_of(s), family, c.all.list, c.all.count, i,
                                     now_ms))
            c.expired[c.input_count++] = c.all.list[i];
    c.inputs = c.expired;
    if (c.input_count > 0) {
        rq_error why = {0};
        warn(s, run(&c, true, now_ms, &why), &why);
    }
    clear(&c);
}

typedef enum round_end {
    ROUND_IDLE, /* nothing to do, or it failed */
    ROUND_DONE, /* there may be more to do */
    ROUND_LARGE /* it is for the other pool */
} round_end;

/* HBASE: OffPeakHours, HStore.requestCompaction: in off-peak hours one compaction of a server at a
 * time may be larger. */
static void choose(compaction *c, unsigned wants, int64_t now_ms)
{
    bool wants_major = (wants & RQ__WANT_MAJOR) != 0;
    rq__region_store *s = c->store;
    rq_engine *e = s->region->engine;
    bool offpeak = rq__engine_is_offpeak(e) && !atomic_exchange(&e->offpeak_runs, true);
    c->choice = rq_compaction_choose(rq__compaction_of(s), rq_store_schema(s->store), c->all.list,
                                     c->all.count, wants_major, offpeak, now_ms);
    if (offpeak && !c->choice.offpeak) atomic_store(&e->offpeak_runs, false);
    if (c->choice.count == 0 && (wants & RQ__WANT_QUIET) != 0)
        c->choice = rq_compaction_choose_quiet(rq__compaction_of(s), c->all.list, c->all.count);
    c->inputs = c->all.list + c->choice.first;
    c->input_count = c->choice.count;
}

/* Changes bits of `compactions`; only the store's task changes the bits of running compactions. */
static void change(rq__region_store *s, unsigned clear, unsigned set)
{
    unsigned old = atomic_load(&s->compactions);
    while (!atomic_compare_exchange_weak(&s->compactions, &old, (old & ~clear) | set))
        ;
}

/* Takes the requests; from now on, also while files are being selected, they count as running. */
static unsigned take(rq__region_store *s)
{
    unsigned old = atomic_load(&s->compactions);
    unsigned runs;
    do {
        runs = (old & RQ__WANT_MAJOR) != 0   ? RQ__RUNS_MAJOR
               : (old & RQ__WANT_ASKED) != 0 ? RQ__RUNS_MINOR
                                             : 0;
    } while (!atomic_compare_exchange_weak(&s->compactions, &old, runs));
    return old & RQ__WANTS;
}

static bool is_wanted(const rq__region_store *s)
{
    return (atomic_load(&s->compactions) & RQ__WANTS) != 0;
}

/* HBASE: HStore.forceMajor, SortedCompactionPolicy: a requested major compaction that found nothing
 * to do is carried over to the store's next one. */
static bool is_owed(const compaction *c)
{
    const rq__region_store *s = c->store;
    return atomic_load(&s->owes_major) &&
           (c->asked || c->all.count < rq__compaction_of(s)->max_files);
}

/* Waits until a flush that lacked disk space has succeeded. */
static void wait_for_space(rq__region_store *s, unsigned wants)
{
    rq_engine *e = s->region->engine;
    atomic_fetch_or(&s->postponed, wants); /* before the tick may look */
    if (!atomic_exchange(&e->compactions_wait, true))
        rq_log_info(s->region->env.log, "region",
                    "the disk is full: compactions pause until memstores can be flushed");
}

/* *wants: at return, the requests that were handled. */
static round_end compact_once(rq__region_store *s, unsigned *wants)
{
    rq_region *r = s->region;
    compaction c = {.store = s, .asked = (*wants & RQ__WANT_ASKED) != 0};
    rq_error why = {0};
    int64_t now_ms = r->env.executor->now_ms(r->env.executor);
    round_end end = ROUND_IDLE;
    if (rq_store_files_take(s->store, &c.all) != RQ_OK) {
        warn(s, rq_no_memory(&why), &why);
        return ROUND_IDLE;
    }
    if (is_owed(&c)) *wants |= RQ__WANT_MAJOR;
    bool major = (*wants & RQ__WANT_MAJOR) != 0;
    choose(&c, *wants, now_ms);
    if (major) atomic_store(&s->owes_major, c.input_count == 0);
    if (!all_see(&c)) {
        atomic_fetch_or(&s->postponed, *wants);
    } else if (c.input_count > 0 && bytes_of(&c) > rq__compaction_of(s)->throttle_bytes &&
               !atomic_load(&s->is_large)) {
        end = ROUND_LARGE;
    } else if (c.input_count > 0 && rq__engine_lacks_space(r->engine)) {
        wait_for_space(s, *wants);
    } else if (c.input_count > 0) {
        rq_store_files_keep(&c.all, c.choice.first, c.choice.count);
        change(s, RQ__RUNS, c.choice.major ? RQ__RUNS_MAJOR : RQ__RUNS_MINOR);
        rq_err rc = run(&c, false, now_ms, &why);
        warn(s, rc, &why);
        if (rc == RQ_E_CANCELLED && !atomic_load(&r->stop)) wait_for_space(s, *wants);
        end = rc == RQ_OK ? ROUND_DONE : ROUND_IDLE;
    }
    if (c.choice.offpeak) atomic_store(&r->engine->offpeak_runs, false);
    clear(&c);
    return end;
}

/* --- whose turn it is ------------------------------------------------------------------------- */

/* Lower ranks run first: the number of files left until flushes are blocked. Requests of clients
 * run before all stores that are not blocked yet. Leftovers of a split or merge run first of all,
 * because they keep parents from being archived and regions from splitting again. HBASE:
 * HStore.getCompactPriority, PRIORITY_USER, SPLIT_REGION_COMPACTION_PRIORITY; CompactSplit's
 * comparator. */
#define RANK_ASKED 1
#define RANK_AFTER_SPLIT (INT32_MIN + 1000)

static int32_t rank_of(rq__region_store *s)
{
    const rq_store_version *v = referenced_version(s);
    int64_t left = (int64_t)rq__compaction_of(s)->blocking_files - (int64_t)v->file_count;
    bool after_split = false;
    for (size_t i = 0; i < v->file_count && !after_split; i++)
        after_split = v->files[i].is_reference;
    rq_store_version_unref(v);
    if (after_split) return RANK_AFTER_SPLIT;
    if (left == RANK_ASKED) left++;
    if ((atomic_load(&s->compactions) & RQ__WANT_ASKED) != 0 && left > RANK_ASKED)
        return RANK_ASKED;
    return left > INT32_MAX ? INT32_MAX : (int32_t)left;
}

static rq_pool pool_of(const rq__region_store *s)
{
    return atomic_load(&s->is_large) ? RQ_POOL_COMPACT_LARGE : RQ_POOL_COMPACT;
}

static void submit(rq__region_store *s, bool large)
{
    rq_executor *ex = s->region->env.executor;
    int32_t rank = rank_of(s);
    atomic_store(&s->is_large, large);
    atomic_store(&s->rank, rank);
    ex->submit_ranked(ex, pool_of(s), &s->task, rank);
}

/* The task is queued already, and is now more urgent: one more file, or a client's request. */
static void raise_rank(rq__region_store *s)
{
    rq_executor *ex = s->region->env.executor;
    int32_t rank = rank_of(s);
    if (rank >= atomic_load(&s->rank)) return;
    atomic_store(&s->rank, rank);
    ex->raise(ex, pool_of(s), &s->task, rank);
}

/* At its turn the task is less urgent than when it was queued (another compaction took files away):
 * others may run first. HBASE: CompactionRunner.doCompaction. */
static bool is_overtaken(rq__region_store *s)
{
    return is_wanted(s) && !atomic_load(&s->region->stop) && rank_of(s) > atomic_load(&s->rank);
}

/* True: the task is queued again, at the rank it has now (a store under constant writes never runs
 * out of work). Large compactions have a pool of their own, so that small ones, which help reads
 * most, do not wait behind them; work left after a large one is checked from the small pool. HBASE:
 * CompactSplit, SortedCompactionPolicy.throttleCompaction. */
static bool run_round(rq__region_store *s)
{
    rq_region *r = s->region;
    if (is_overtaken(s)) {
        submit(s, atomic_load(&s->is_large));
        return true;
    }
    unsigned wants = take(s);
    if (wants == 0) return false;
    if (atomic_load(&r->stop)) {
        change(s, RQ__RUNS, 0);
        return false;
    }
    archive_again(s);
    drop_expired(s);
    round_end end = compact_once(s, &wants);
    unsigned again = RQ__WANT_MINOR | (wants & RQ__WANT_QUIET);
    change(s, RQ__RUNS, end == ROUND_LARGE ? wants : end == ROUND_DONE ? again : 0);
    if (end == ROUND_DONE) rq__engine_grown(r->engine, r);
    rq__region_resume_flush(r);
    if (!is_wanted(s)) return false;
    submit(s, end == ROUND_LARGE);
    return true;
}

void rq__region_compact_task(rq_task *task)
{
    rq__region_store *s = RQ_CONTAINER_OF(task, rq__region_store, task.task);
    rq_region *r = s->region;
    if (run_round(s)) return;
    atomic_fetch_sub_explicit(&r->engine->compaction_queue, 1, memory_order_relaxed);
    atomic_store(&s->compacting, false);
    /* requested between the last check and the line above */
    if (is_wanted(s)) rq__store_request_compaction(s, 0);
    rq__region_leave(r);
    rq_region_unref(r);
}

static bool is_worth_a_look(rq__region_store *s, bool quiet)
{
    if (atomic_load(&s->has_unarchived)) return true;
    const rq_compaction_settings *settings = rq__compaction_of(s);
    const rq_store_version *v = referenced_version(s);
    bool worth =
        rq_compaction_is_worth_a_look(settings, v->files, v->file_count, rq_store_schema(s->store),
                                      s->region->env.executor->now_ms(s->region->env.executor));
    if (quiet) worth |= rq_compaction_choose_quiet(settings, v->files, v->file_count).count > 0;
    rq_store_version_unref(v);
    return worth;
}

bool rq_engine_compactions_enable(rq_engine *e, bool on)
{
    return !atomic_exchange(&e->compactions_off, !on);
}

/* The tasks stay in their queues and find nothing to do. */
void rq_engine_clear_compactions(rq_engine *e, bool large)
{
    pthread_mutex_lock(&e->lock);
    for (rq_region *r = e->regions; r != NULL; r = r->next)
        for (size_t i = 0; i < r->store_count; i++) {
            rq__region_store *s = &r->stores[i];
            unsigned now = atomic_load(&s->compactions);
            if ((now & RQ__RUNS) == 0 && atomic_load(&s->is_large) == large)
                (void)atomic_compare_exchange_strong(&s->compactions, &now, 0);
        }
    pthread_mutex_unlock(&e->lock);
}

void rq__store_request_compaction(rq__region_store *s, unsigned wants)
{
    rq_region *r = s->region;
    if (atomic_load(&r->engine->compactions_off)) return;
    bool minor = wants != 0 && (wants & RQ__WANT_MAJOR) == 0;
    bool quiet = (wants & RQ__WANT_QUIET) != 0;
    bool owed = (wants & RQ__WANT_ASKED) != 0 && atomic_load(&s->owes_major);
    if (minor && (!r->schema->compaction_enabled || !(owed || is_worth_a_look(s, quiet)))) return;
    change(s, 0, wants);
    if (!is_wanted(s)) return;
    if (atomic_exchange(&s->compacting, true)) {
        raise_rank(s);
        return;
    }
    rq_region_ref(r);
    if (!rq__region_enter(r)) {
        atomic_store(&s->compacting, false);
        rq_region_unref(r);
        return;
    }
    atomic_fetch_add_explicit(&r->engine->compaction_queue, 1, memory_order_relaxed);
    submit(s, false);
}

void rq_region_compact_if_due(rq_region *r)
{
    for (size_t i = 0; i < r->store_count; i++)
        rq__store_request_compaction(&r->stores[i], RQ__WANT_MINOR);
}

rq_err rq_region_compact(rq_region *r, rq_slice family, bool major, rq_error *why)
{
    size_t hint = 0;
    if (rq_region_is_closing(r)) return rq__region_not_serving(r, why);
    if (family.len > 0 && rq__region_store_of(r, family, &hint) == NULL)
        return rq__region_no_family(r, family, why);
    for (size_t i = 0; i < r->store_count; i++) {
        rq__region_store *s = &r->stores[i];
        if (family.len > 0 && !rq_slice_eq(rq_store_schema(s->store)->name, family)) continue;
        rq__store_request_compaction(s, RQ__WANT_ASKED | (major ? RQ__WANT_MAJOR : RQ__WANT_MINOR));
    }
    return RQ_OK;
}
