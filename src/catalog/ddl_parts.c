/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of all regions of a table. The rows of 100,000 regions do not fit into one record of the log, so the change
 * is written in parts, one record each. A crash may leave only the first parts.
 *
 *   create, clone      the regions' rows ─ the table's state (commit)
 *   drop               the table's state removed (commit) ─ the regions' rows removed
 *   truncate, restore  the new regions' rows, the first region's last (commit) ─ the old regions' rows removed
 *   enable, disable    the regions' rows ─ the table's state; the table is ENABLING or DISABLING until then
 *
 * The procedure's record names the regions, and is durable before the first part or together with it. So a start
 * recognizes rows that were written before the commit, or are to be removed after it, and ignores them. The procedure
 * then runs all its steps again. Without a record the start would take them for a table's, so such a procedure ends only
 * when all rows are written, or none is left. Clients that read hbase:meta may see these rows until the last part is
 * written, as in HBase. A change that fits into one record is atomic. */
#include "catalog/ddl_priv.h"
#include "catalog/proc_priv.h"

#include <stdlib.h>

/* Appends the rows of items from `at` on, until they fill a record; *ret_end: the first item that was not appended. */
static rq_err fill(rq_catalog *c, const rq__proc *p, size_t at, size_t count, rq__item_fn *fn,
                   rq__batch *b, size_t *ret_end)
{
    size_t bytes = 0;
    for (; at < count && bytes < c->part_bytes; at++) {
        size_t before = b->count;
        RQ_TRY(fn(c, p, at, b));
        bytes += rq__batch_bytes(b, before);
    }
    *ret_end = at;
    return RQ_OK;
}

/* Whether to wait and write the same part again, instead of ending the attempt. After the first part: while hbase:meta
 * refuses writes until a flush has made room. In an undo: after each error that may pass, some times in a row. */
static bool is_waited_for(const rq__proc *p, rq_err rc)
{
    if (p->ending == RQ__ENDING_UNDO)
        return !rq_err_do_not_retry(rc) && p->attempts < RQ__REPEATS_MAX;
    return rc == RQ_E_REGION_TOO_BUSY && p->written > 0;
}

static rq_err fail_part(rq__proc *p, rq_err rc, const rq_error *own, rq_error *why)
{
    const char *text = own->code != RQ_OK ? own->message : rq_err_text(rc);
    if (!is_waited_for(p, rc)) return rq_fail(why, rc, "%s", text);
    if (p->ending == RQ__ENDING_UNDO) p->attempts++;
    return rq__wait_a_while(p, rc, text, why);
}

static rq_err write_part(rq_catalog *c, const rq__proc *p, const rq__batch *b, rq_error *why)
{
    const rq__procedures *ps = &c->procedures;
    return ps->write_part != NULL ? ps->write_part(ps->write_part_ctx, p, b, why)
                                  : rq__meta_commit(c, b, why);
}

static rq_err next_part(rq_catalog *c, rq__proc *p, size_t count, size_t commit, rq__item_fn *fn,
                        rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    rq__batch b;
    size_t end = p->written;
    rq_error own = {.code = RQ_OK};
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    b.vital = p->ops->vital || p->ending == RQ__ENDING_UNDO; /* an undo frees space, too */
    rq_err rc = fill(c, p, p->written, count, fn, &b, &end);
    bool filled = rc == RQ_OK;
    bool commits = p->step == p->ops->commit && p->written <= commit && commit < end;
    if (filled) rc = write_part(c, p, &b, &own);
    rq_arena_clear(&a);
    if (rc != RQ_OK) {
        p->unsure |= filled && commits && !rq_err_do_not_retry(rc);
        return fail_part(p, rc, &own, why);
    }
    p->committed |= commits;
    p->written = end;
    if (p->ending == RQ__ENDING_UNDO) p->attempts = 0;
    return RQ_OK;
}

rq_err rq__parts_write(rq_catalog *c, rq__proc *p, size_t count, size_t commit, rq__item_fn *fn,
                       rq_error *why)
{
    while (p->written < count)
        RQ_TRY(next_part(c, p, count, commit, fn, why));
    return RQ_OK;
}

/* --- undo --------------------------------------------------------------------------------------- */

/* The row with the state of a table that was to be made is removed before the rows of its regions: it was the commit, whose
 * write may have taken effect although it returned an error. Of regions that were to replace others, the first one's row was
 * the commit. */
static rq_err remove_row(rq_catalog *c, const rq__proc *p, size_t i, rq__batch *b)
{
    (void)c;
    if (p->ops->rows == RQ__ROWS_REPLACED) return rq__meta_delete_region(b, &p->regions[i]);
    return i == 0 ? rq__meta_delete_table(b, p->table)
                  : rq__meta_delete_region(b, &p->regions[i - 1]);
}

rq_err rq__parts_undo(rq_catalog *c, rq__proc *p, rq_error *why)
{
    size_t count = p->region_count + (p->ops->rows == RQ__ROWS_TABLE);
    if (p->step < p->ops->commit && !p->resumed) return RQ_OK; /* none was written */
    return rq__parts_write(c, p, count, RQ__NO_COMMIT, remove_row, why);
}

/* --- what was written ----------------------------------------------------------------------------- */

static int by_encoded(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* The sorted encoded names of the regions, malloc'ed. NULL: out of memory. */
static const char **names_of(const rq_region_info *list, size_t count)
{
    const char **names = calloc(count + 1, sizeof *names);
    for (size_t i = 0; names != NULL && i < count; i++)
        names[i] = list[i].encoded;
    if (names != NULL && count > 1) qsort(names, count, sizeof *names, by_encoded);
    return names;
}

static bool has_name(const char **names, size_t count, const char *encoded)
{
    return count > 0 && bsearch(&encoded, names, count, sizeof *names, by_encoded) != NULL;
}

typedef struct look {
    const rq__proc *proc;
    const char **old; /* names of its old regions */
    bool has_state, has_first, has_old;
} look;

static rq_err look_at_row(void *ctx, const rq__meta_row *row, rq_error *why)
{
    look *l = ctx;
    const rq__proc *p = l->proc;
    (void)why;
    if (row->malformed != NULL || row->is_table) return RQ_OK;
    l->has_first |= p->region_count > 0 && strcmp(row->info.encoded, p->regions[0].encoded) == 0;
    l->has_old |= has_name(l->old, p->old_region_count, row->info.encoded);
    return RQ_OK;
}

static rq_err look_at_state(void *ctx, const rq_cell *cells, size_t count, rq_error *why)
{
    look *l = ctx;
    (void)why;
    for (size_t i = 0; i < count; i++)
        l->has_state |= rq_slice_eq(rq_cell_family(&cells[i]), RQ_SLICE_LIT("table"));
    return RQ_OK;
}

static rq_err look_into_meta(rq_catalog *c, look *l, rq_error *why)
{
    rq_region *meta;
    RQ_TRY(rq__meta_ref(c, &meta, why));
    rq_err rc = rq__meta_scan_table(meta, l->proc->table, look_at_row, l, why);
    if (rc == RQ_OK) rc = rq__region_row(meta, l->proc->table, look_at_state, l, why);
    rq_region_unref(meta);
    return rc;
}

/* A drop's commit removes the table's state, and a create's commit adds it. */
static bool is_committed(const look *l)
{
    const rq__proc *p = l->proc;
    if (p->ops->rows == RQ__ROWS_REPLACED) return l->has_first;
    return p->region_count > 0 ? l->has_state : !l->has_state;
}

rq__parts_state rq__parts_look(rq_catalog *c, const rq__proc *p)
{
    rq_error why = {.code = RQ_OK};
    look l = {.proc = p, .old = names_of(p->old_regions, p->old_region_count)};
    rq_err rc = l.old == NULL ? RQ_E_NO_MEMORY : look_into_meta(c, &l, &why);
    free(l.old);
    if (rc == RQ_OK)
        return !is_committed(&l) ? RQ__PARTS_NONE : l.has_old ? RQ__PARTS_SOME : RQ__PARTS_ALL;
    rq__proc_log(p, RQ_LOG_WARN, rc, &why,
                 "hbase:meta cannot be read, so it is unknown which rows were written");
    return RQ__PARTS_UNKNOWN;
}

/* --- at a start ------------------------------------------------------------------------------- */

static int by_table(const void *a, const void *b)
{
    const rq__proc *const *x = a, *const *y = b;
    return rq_slice_compare((*x)->table, (*y)->table);
}

rq_err rq__parts_unfinished(rq_catalog *c, rq_arena *a, const rq__proc *const **ret,
                            size_t *ret_count)
{
    size_t count = 0;
    for (const rq__proc *p = c->procedures.active; p != NULL; p = p->next)
        count += p->prepared && p->ops->rows != RQ__ROWS_WHOLE;
    const rq__proc **list = rq_arena_calloc(a, count + 1, sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    *ret_count = 0;
    for (const rq__proc *p = c->procedures.active; p != NULL; p = p->next)
        if (p->prepared && p->ops->rows != RQ__ROWS_WHOLE) list[(*ret_count)++] = p;
    if (*ret_count > 1) qsort(list, *ret_count, sizeof *list, by_table);
    *ret = list;
    return RQ_OK;
}

const rq__proc *rq__parts_of_table(const rq__proc *const *list, size_t count, rq_slice table)
{
    rq__proc named = {.table = table};
    const rq__proc *key = &named;
    const rq__proc *const *at =
        count == 0 ? NULL : bsearch(&key, list, count, sizeof *list, by_table);
    return at == NULL ? NULL : *at;
}

/* Removes the regions `gone` from the list, in O(n log n). */
static rq_err leave_out(rq__opened *list, size_t *count, const rq_region_info *gone,
                        size_t gone_count)
{
    const char **names = names_of(gone, gone_count);
    size_t kept = 0;
    if (names == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < *count; i++)
        if (!has_name(names, gone_count, list[i].info->encoded)) list[kept++] = list[i];
    *count = kept;
    free(names);
    return RQ_OK;
}

static bool contains(const rq__opened *list, size_t count, const rq_region_info *info)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].info->encoded, info->encoded) == 0) return true;
    return false;
}

rq_err rq__parts_leave_out(const rq__proc *p, bool has_state, rq__opened *list, size_t *count,
                           bool *ret_none)
{
    *ret_none = p->ops->rows == RQ__ROWS_TABLE && !has_state;
    if (p->ops->rows != RQ__ROWS_REPLACED || p->region_count == 0) return RQ_OK;
    return contains(list, *count, &p->regions[0])
               ? leave_out(list, count, p->old_regions, p->old_region_count)
               : leave_out(list, count, p->regions, p->region_count);
}
