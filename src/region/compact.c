/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compactions of a region's stores: when, one at a time per store, and how the result takes the
 * inputs' place. The choice of files and the merge itself are the store room's (compaction.h).
 *
 *   choose ─ write the new file ─ commit the manifest ─ publish ─ archive the inputs
 *
 * Readers of older versions go on reading the inputs through their open files. A crash before the
 * commit leaves the new file over, one after it the inputs; either is put aside at the next open.
 */
#include "region/engine_priv.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct compaction {
    rq__region_store *store;
    const rq_store_version *version; /* referenced: keeps the inputs open */
    rq_compaction_choice choice;
    rq_store_file file;
    bool has_file;
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
    rq_store_publish(c->store->store, c->next, NULL, 0, c->version->files + c->choice.first,
                     c->choice.count, c->has_file ? &c->file : NULL);
    c->next = NULL;
    c->has_file = false; /* the version's now */
}

static rq_err commit(compaction *c, rq_error *why)
{
    rq_region *r = c->store->region;
    rq__store_change change = {.store = c->store,
                               .removed = c->version->files + c->choice.first,
                               .removed_count = c->choice.count,
                               .added = c->has_file ? &c->file : NULL};
    rq__gate_enter(&r->commit_gate, r->env.executor);
    rq_epoch_member pin;
    rq_epoch_pin(r->env.epoch, &pin);
    rq_err rc = rq_store_version_prepare(c->store->store, &c->next);
    rq_epoch_unpin(r->env.epoch, &pin);
    if (rc == RQ_OK) rc = rq__region_commit(r, &change, 1, why);
    if (rc == RQ_OK) rq__region_with_token(r, publish, c);
    rq__gate_leave(&r->commit_gate, r->env.executor);
    return rc;
}

static uint64_t max_seqid_of(const compaction *c)
{
    uint64_t max = 0;
    const rq_store_file *files = c->version->files + c->choice.first;
    for (size_t i = 0; i < c->choice.count; i++)
        if (files[i].max_seqid > max) max = files[i].max_seqid;
    return max;
}

static rq_err write_file(compaction *c, rq_error *why)
{
    rq_region *r = c->store->region;
    rq_rewrite w = {
        .scan =
            {
                .store = c->store->store,
                .files = c->version->files + c->choice.first,
                .file_count = c->choice.count,
                .major = c->choice.all_files,
                .smallest_read_point = rq__region_smallest_read_point(r),
                .now_ms = r->env.executor->now_ms(r->env.executor),
                .keep_seqid_period_ms = c->store->compaction.keep_seqid_period_ms,
                .time_to_purge_deletes_ms = c->store->compaction.time_to_purge_deletes_ms,
            },
        .max_seqid = max_seqid_of(c),
        .stop = &r->stop,
        .cells_done = &r->compacted_cells,
        .mob_output = &c->mob,
        .rewrites_mob = c->asked && c->choice.all_files,
    };
    bool empty = false;
    RQ_TRY(rq_store_rewrite(&w, &c->file, &empty, why));
    c->has_file = !empty;
    return RQ_OK;
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
    const rq_store_file *files = c->version->files + c->choice.first;
    rq_slice family = rq_store_schema(c->store->store)->name;
    for (size_t i = 0; i < c->choice.count; i++) {
        rq_error why = {0};
        if (rq__archive_file(r->env.vfs, &r->info, family, files[i].name, &why) == RQ_OK) continue;
        rq_log_warn(r->env.log, "region", "%s: %s is archived later: %s", r->info.encoded,
                    files[i].name, why.message);
        note_unarchived(c->store, files[i].name);
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

static void note_done(const compaction *c, uint64_t bytes)
{
    rq_engine *e = c->store->region->engine;
    atomic_fetch_add_explicit(&e->compactions, 1, memory_order_relaxed);
    if (c->choice.all_files)
        atomic_fetch_add_explicit(&e->major_compactions, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->compacted_bytes, bytes, memory_order_relaxed);
}

static rq_err run(compaction *c, rq_error *why)
{
    rq_region *r = c->store->region;
    uint64_t cells = 0;
    for (size_t i = 0; i < c->choice.count; i++)
        cells += c->version->files[c->choice.first + i].entry_count;
    atomic_fetch_add_explicit(&r->compacting_cells, cells, memory_order_relaxed);
    rq_err rc = rq__region_mark_in_use(r, why);
    if (rc == RQ_OK) rc = write_file(c, why);
    uint64_t bytes = rc == RQ_OK && c->has_file ? c->file.size_bytes : 0;
    if (rc == RQ_OK) rc = commit(c, why);
    if (rc == RQ_OK) {
        archive_inputs(c);
        note_done(c, bytes);
        return RQ_OK;
    }
    rq_store_version_discard(c->next);
    if (c->has_file) rq_store_file_discard(c->store->store, &c->file);
    return rc;
}

/* What a read that began before a bulk load may not see must stay in its own file, where that is
 * known (rq_store_file.visible_from). A later look finds those reads gone. */
static bool all_see(const compaction *c)
{
    uint64_t oldest = rq__region_smallest_read_point(c->store->region);
    for (size_t i = 0; i < c->choice.count; i++)
        if (c->version->files[c->choice.first + i].visible_from > oldest) return false;
    return true;
}

/* One round. True: there may be more to do. */
static bool compact_once(rq__region_store *s, bool wants_major, bool asked)
{
    rq_region *r = s->region;
    compaction c = {.store = s, .version = referenced_version(s), .asked = asked};
    c.choice = rq_compaction_choose(&s->compaction, rq_store_schema(s->store), c.version->files,
                                    c.version->file_count, wants_major,
                                    r->env.executor->now_ms(r->env.executor));
    rq_err rc = RQ_OK;
    rq_error why = {0};
    if (!all_see(&c)) {
        atomic_store(&s->postponed, wants_major ? 2 : 1);
        if (asked) atomic_store(&s->asked, true);
        c.choice.count = 0;
    }
    if (c.choice.count > 0) {
        atomic_store(&s->running, c.choice.major ? 2 : 1);
        rc = run(&c, &why);
        atomic_store(&s->running, 0);
        if (rc != RQ_OK && rc != RQ_E_CANCELLED)
            rq_log_warn(r->env.log, "region", "%s: compaction of %s failed: %s", r->info.encoded,
                        rq_store_dir(s->store), why.message);
    }
    rq_mob_output_end(&c.mob, s->store, false);
    rq_store_version_unref(c.version);
    return c.choice.count > 0 && rc == RQ_OK;
}

void rq__region_compact_task(rq_task *task)
{
    rq__region_store *s = RQ_CONTAINER_OF(task, rq__region_store, task);
    rq_region *r = s->region;
    rq_engine *e = r->engine;
    int wanted;
    while ((wanted = atomic_exchange(&s->wanted, 0)) != 0 && !atomic_load(&r->stop)) {
        archive_again(s);
        if (compact_once(s, wanted == 2, atomic_exchange(&s->asked, false))) {
            rq__store_want(s, 1);
            rq__engine_grown(e, r);
        }
        rq__region_resume_flush(r);
    }
    atomic_fetch_sub_explicit(&e->compaction_queue, 1, memory_order_relaxed);
    atomic_store(&s->compacting, false);
    /* Wanted between the last look and the line above. */
    if (atomic_load(&s->wanted) != 0) rq__store_request_compaction(s, 0);
    rq__region_leave(r);
    rq_region_unref(r);
}

void rq__store_want(rq__region_store *s, int wanted)
{
    int old = atomic_load(&s->wanted);
    while (old < wanted && !atomic_compare_exchange_weak(&s->wanted, &old, wanted))
        ;
}

static bool is_worth_a_look(rq__region_store *s)
{
    if (atomic_load(&s->has_unarchived)) return true;
    const rq_store_version *v = referenced_version(s);
    bool worth = rq_compaction_is_worth_a_look(
        &s->compaction, v->files, v->file_count, rq_store_schema(s->store),
        s->region->env.executor->now_ms(s->region->env.executor));
    rq_store_version_unref(v);
    return worth;
}

void rq_engine_compactions_enable(rq_engine *e, bool on)
{
    atomic_store(&e->compactions_off, !on);
}

static void request(rq__region_store *s, int wanted, bool asked)
{
    rq_region *r = s->region;
    if (atomic_load(&r->engine->compactions_off)) return;
    if (wanted == 1 && (!r->schema->compaction_enabled || !is_worth_a_look(s))) return;
    if (asked) atomic_store(&s->asked, true);
    rq__store_want(s, wanted);
    if (atomic_load(&s->wanted) == 0 || atomic_exchange(&s->compacting, true)) return;
    rq_region_ref(r);
    if (!rq__region_enter(r)) {
        atomic_store(&s->compacting, false);
        rq_region_unref(r);
        return;
    }
    atomic_fetch_add_explicit(&r->engine->compaction_queue, 1, memory_order_relaxed);
    r->env.executor->submit(r->env.executor, RQ_POOL_COMPACT, &s->task);
}

void rq__store_request_compaction(rq__region_store *s, int wanted)
{
    request(s, wanted, false);
}

void rq_region_compact_if_due(rq_region *r)
{
    for (size_t i = 0; i < r->store_count; i++)
        rq__store_request_compaction(&r->stores[i], 1);
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
        request(s, major ? 2 : 1, true);
    }
    return RQ_OK;
}
