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
 * then runs all its steps again. Clients that read hbase:meta may see these rows until the last part is written, as in
 * HBase. A change that fits into one record is atomic. */
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

/* Whether to wait and write the same part again, instead of ending the step, whose repetition would write all parts
 * again. After the first part: while hbase:meta refuses writes until a flush has made room. In an undo: after each
 * error that may pass, because if the undo ended with rows left, the next start would take them for a table. */
static bool is_waited_for(const rq__proc *p, rq_err rc)
{
    if (p->ending == RQ__ENDING_UNDO) return !rq_err_do_not_retry(rc);
    return rc == RQ_E_REGION_TOO_BUSY && p->at > 0;
}

static rq_err next_part(rq_catalog *c, rq__proc *p, size_t count, size_t commit, rq__item_fn *fn,
                        rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    rq__batch b;
    size_t end;
    rq_error own = {.code = RQ_OK};
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    b.vital = p->ops->vital || p->ending == RQ__ENDING_UNDO; /* an undo frees space, too */
    rq_err rc = fill(c, p, p->at, count, fn, &b, &end);
    if (rc == RQ_OK) rc = rq__meta_commit(c, &b, &own);
    rq_arena_clear(&a);
    if (rc != RQ_OK) {
        const char *text = own.code != RQ_OK ? own.message : rq_err_text(rc);
        return is_waited_for(p, rc) ? rq__wait_a_while(p, rc, text, why)
                                    : rq_fail(why, rc, "%s", text);
    }
    p->committed |= p->step == p->ops->commit && p->at <= commit && commit < end;
    p->at = end;
    return RQ_OK;
}

rq_err rq__parts_write(rq_catalog *c, rq__proc *p, size_t count, size_t commit, rq__item_fn *fn,
                       rq_error *why)
{
    while (p->at < count)
        RQ_TRY(next_part(c, p, count, commit, fn, why));
    p->at = 0;
    return RQ_OK;
}

static rq_err remove_row(rq_catalog *c, const rq__proc *p, size_t i, rq__batch *b)
{
    (void)c;
    return rq__meta_delete_region(b, &p->regions[i]);
}

rq_err rq__parts_undo(rq_catalog *c, rq__proc *p, rq_error *why)
{
    if (p->step < p->ops->commit && !p->resumed) return RQ_OK; /* none was written */
    return rq__parts_write(c, p, p->region_count, RQ__NO_COMMIT, remove_row, why);
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

static int by_encoded(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* Removes the regions `gone` from the list, in O(n log n). */
static rq_err leave_out(rq__opened *list, size_t *count, const rq_region_info *gone,
                        size_t gone_count)
{
    const char **names = calloc(gone_count + 1, sizeof *names);
    size_t kept = 0;
    if (names == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < gone_count; i++)
        names[i] = gone[i].encoded;
    if (gone_count > 1) qsort(names, gone_count, sizeof *names, by_encoded);
    for (size_t i = 0; i < *count; i++) {
        const char *name = list[i].info->encoded;
        bool is_gone =
            gone_count > 0 && bsearch(&name, names, gone_count, sizeof *names, by_encoded) != NULL;
        if (!is_gone) list[kept++] = list[i];
    }
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
