/* SPDX-License-Identifier: Apache-2.0 */
/* The procedures' records in the procedure store (master:store, family proc, row be64 id): written,
 * read at start, and deleted when the result has expired. proc_record.c defines their format.
 * HBASE: RegionProcedureStore. */
#include "catalog/proc_priv.h"

/* The list of regions is longer than it may be (proc_regions.c), or than a record of the log. */
static rq_err fail_too_long(const rq__proc *p, rq_error *why)
{
    rq_error_clear(why); /* the error of the write names no table */
    return rq_fail(why, RQ_E_REQUEST_TOO_BIG,
                   "%.*s has too many regions for one change, or their keys are too long; merge "
                   "regions first",
                   (int)p->table.len, (const char *)p->table.ptr);
}

rq_err rq__proc_write(rq__proc *p, bool synced, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_region *store = NULL;
    rq_slice bytes;
    uint8_t row[8];
    rq_put_be64(row, p->id);
    rq_err rc = rq__store_ref(p->catalog, &store, why);
    if (rc == RQ_OK) rc = rq__proc_encode(p, &a, &bytes);
    if (rc == RQ_OK) {
        rq__batch b;
        rq__batch_init(&b, &a, rq__catalog_now_ms(p->catalog));
        b.vital = p->ops->vital;
        rc = rq__batch_put(&b, rq_slice_of(row, 8), "proc", RQ_SLICE_LIT("d"), bytes);
        if (rc == RQ_OK) rc = rq__batch_commit(&b, store, synced, why);
    }
    if (store != NULL) rq_region_unref(store);
    rq_arena_clear(&a);
    if (rc == RQ_OK) p->recorded = true;
    return rc == RQ_E_REQUEST_TOO_BIG ? fail_too_long(p, why) : rc;
}

/* Deletes rows of the store; a failure only keeps results longer than necessary. */
static rq_err delete_records(rq_catalog *c, const uint64_t *ids, size_t count, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_region *store = NULL;
    rq__batch b;
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    rq_err rc = rq__store_ref(c, &store, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        uint8_t *row = rq_arena_alloc(&a, 8);
        if (row == NULL) {
            rc = RQ_E_NO_MEMORY;
            break;
        }
        rq_put_be64(row, ids[i]);
        if (ids[i] !=
            c->procedures.marked_id) /* the next clean stop that writes another marker removes it */
            rc = rq__batch_delete_family(&b, rq_slice_of(row, 8), "proc");
        if (rc == RQ_OK) rc = rq__batch_delete_family(&b, rq_slice_of(row, 8), "state");
    }
    if (rc == RQ_OK) rc = rq__batch_commit(&b, store, false, why);
    if (store != NULL) rq_region_unref(store);
    rq_arena_clear(&a);
    return rc;
}

void rq__proc_evict(rq_catalog *c, rq__proc *list)
{
    while (list != NULL) {
        uint64_t ids[64];
        size_t n = 0;
        while (list != NULL && n < RQ_ARRAY_LEN(ids)) {
            rq__proc *next = list->next;
            if (list->recorded) ids[n++] = list->id;
            rq__proc_free(list);
            list = next;
        }
        rq_error why = {0};
        if (n > 0 && delete_records(c, ids, n, &why) != RQ_OK)
            rq_log_warn(c->env->log, "catalog", "cannot remove records of old procedures: %s",
                        why.message);
    }
}

/* A record that cannot be decoded affects its own procedure, not the start. It may be of a later
 * version, which can continue it, so it is not changed. */
static rq_err read_record(rq__proc *p, rq_slice bytes, uint64_t id, rq_error *why)
{
    rq_error bad = {0};
    rq_err rc = rq__proc_decode(bytes, p, &bad);
    if (rc == RQ_OK && p->id != id)
        rc = rq_fail(&bad, RQ_E_CORRUPT, "the record contains procedure number %llu",
                     (unsigned long long)p->id);
    if (rc == RQ_OK) return RQ_OK;
    if (rc == RQ_E_NO_MEMORY) return rq_no_memory(why);
    bool ended = p->finished;
    RQ_TRY(rq__proc_set_unreadable(p, id, &bad));
    p->parked = !ended;
    if (!ended)
        rq_log_error(p->catalog->env->log, "catalog",
                     "procedure %llu (%s of %.*s): its record cannot be read: %s; the procedure "
                     "stays parked until it is aborted",
                     (unsigned long long)id, p->java_class, (int)p->table.len,
                     (const char *)p->table.ptr, bad.message);
    return RQ_OK;
}

/* Loads a result that a clean stop has moved to where HBase does not look for procedures. A result that
 * cannot be read is skipped. */
static rq_err load_result(rq_catalog *c, const rq_cell *cell)
{
    rq_error why = {0};
    rq__proc *p = rq__proc_new(c);
    if (p == NULL) return RQ_E_NO_MEMORY;
    rq_err rc = rq__proc_decode(rq_cell_value(cell), p, &why);
    if (rc == RQ_OK && p->finished && p->id == rq_get_be64(cell->row)) {
        p->put_away = true;
        rq__procs_keep(&c->procedures, p);
        return RQ_OK;
    }
    rq__proc_free(p);
    return rc == RQ_E_NO_MEMORY ? rc : RQ_OK;
}

/* Counts the tables and regions that the procedure will add, as its prepare step did before the restart
 * (ddl_create.c). */
static void count_coming(rq__proc *p)
{
    rq_ddl_kind kind = p->ops->kind;
    p->coming_tables = kind == RQ_DDL_CREATE_TABLE || kind == RQ_DDL_CLONE_SNAPSHOT;
    if (p->region_count > p->old_region_count)
        p->coming_regions = (int64_t)(p->region_count - p->old_region_count);
}

static rq_err load_row(void *ctx, const rq_cell *cells, size_t count, rq_error *why)
{
    rq_catalog *c = ctx;
    rq__procedures *ps = &c->procedures;
    for (size_t i = 0; i < count; i++) {
        const rq_cell *cell = &cells[i];
        rq__catalog_saw_ms(c, cell->timestamp);
        if (rq_slice_eq(rq_cell_family(cell), RQ_SLICE_LIT("state")) && cell->row_len == 8)
            RQ_TRY(load_result(c, cell));
        if (!rq_slice_eq(rq_cell_family(cell), RQ_SLICE_LIT("proc")) || cell->row_len != 8)
            continue;
        uint64_t id = rq_get_be64(cell->row);
        if (id >= ps->next_id) ps->next_id = id + 1;
        if (cell->value_len == 0) { /* only remembers the highest id */
            if (id > ps->marked_id) ps->marked_id = id;
            continue;
        }
        rq__proc *p = rq__proc_new(c);
        if (p == NULL) return RQ_E_NO_MEMORY;
        rq_err rc = read_record(p, rq_cell_value(cell), id, why);
        if (rc != RQ_OK) {
            rq__proc_free(p);
            return rc;
        }
        if (p->finished) {
            rq__procs_keep(ps, p);
        } else {
            p->resumed = p->prepared;
            if (p->resumed && !p->unreadable) count_coming(p);
            p->parked = p->running = p->was_parked = p->parked && p->prepared;
            if (p->parked && !p->unreadable)
                rq__proc_log(p, RQ_LOG_ERROR, p->rc, &p->why, "parked, as before");
            rc = rq__claims_new(p);
            if (rc != RQ_OK) {
                rq__proc_free(p);
                return rc;
            }
            rq__procs_append(ps, p);
            if (p->parked) rq__proc_sort_names(p);
            if (p->parked)
                rq__queue_add_parked(ps, p);
            else
                rq__queue_enter(ps, p);
        }
    }
    return RQ_OK;
}

rq_err rq__procedures_load(rq_catalog *c, rq_error *why)
{
    return rq__store_each_row(c, load_row, why);
}

/* Moves the results to the family `state`, where HBase keeps its switches by name. */
static rq_err keep_results(rq_catalog *c, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_region *store = NULL;
    rq__batch b;
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    rq_err rc = rq__store_ref(c, &store, why);
    for (const rq__proc *p = c->procedures.finished; p != NULL && rc == RQ_OK; p = p->next) {
        if (p->put_away) continue;
        uint8_t *row = rq_arena_alloc(&a, 8);
        rq_slice bytes;
        if (row == NULL) rc = RQ_E_NO_MEMORY;
        if (rc == RQ_OK) rc = rq__proc_encode(p, &a, &bytes);
        if (rc != RQ_OK) break;
        rq_put_be64(row, p->id);
        rc = rq__batch_put(&b, rq_slice_of(row, 8), "state", RQ_SLICE_LIT("d"), bytes);
    }
    if (rc == RQ_OK) rc = rq__batch_commit(&b, store, false, why);
    if (store != NULL) rq_region_unref(store);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq__procedures_sweep(rq_catalog *c, rq_error *why)
{
    rq__procedures *ps = &c->procedures;
    if (ps->next_id == 1) return RQ_OK;
    rq_arena a;
    rq_arena_init(&a);
    size_t cap = ps->finished_count + 1;
    for (const rq__proc *p = ps->active; p != NULL; p = p->next)
        cap++;
    uint64_t *ids = rq_arena_alloc(&a, cap * sizeof *ids);
    size_t n = 0;
    rq_err rc = ids == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    uint64_t newest = ps->next_id - 1;
    for (const rq__proc *p = ps->finished; p != NULL && ids != NULL; p = p->next)
        if (p->recorded && !p->put_away && p->id != newest) ids[n++] = p->id;
    for (const rq__proc *p = ps->active; p != NULL && ids != NULL; p = p->next)
        if (p->recorded && p->ops->holds && p->id != newest) ids[n++] = p->id;
    bool newest_is_active = false;
    for (const rq__proc *p = ps->active; p != NULL; p = p->next)
        newest_is_active |= p->id == newest && p->recorded && !p->ops->holds;
    if (rc == RQ_OK && n > 0) rc = delete_records(c, ids, n, why);
    if (rc == RQ_OK) rc = keep_results(c, why);
    if (rc == RQ_OK && !newest_is_active && ps->marked_id != newest) {
        /* HBASE: RegionProcedureStore keeps the row of the highest id, with an empty value. */
        rq_region *store = NULL;
        rq__batch b;
        uint8_t row[8], old[8];
        rq_put_be64(row, newest);
        rq_put_be64(old, ps->marked_id);
        rq__batch_init(&b, &a, rq__catalog_now_ms(c));
        rc = rq__store_ref(c, &store, why);
        if (rc == RQ_OK)
            rc = rq__batch_put(&b, rq_slice_of(row, 8), "proc", RQ_SLICE_LIT("d"),
                               (rq_slice){row, 0});
        if (rc == RQ_OK && ps->marked_id != 0)
            rc = rq__batch_delete_family(&b, rq_slice_of(old, 8), "proc");
        if (rc == RQ_OK) rc = rq__batch_commit(&b, store, false, why);
        if (store != NULL) rq_region_unref(store);
    }
    rq_arena_clear(&a);
    return rc;
}
