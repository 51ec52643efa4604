/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the holes of a table: key ranges that no region covers because hbase:meta lost the regions'
 * rows. A region that is on disk but not in hbase:meta gets its row back if it lies in a hole; if
 * several fit, the youngest. The remaining ranges get empty regions. (HBase's MetaFixer only makes
 * empty regions.)
 *
 * The table stays open meanwhile: the procedure adds regions and changes none. */
#include "catalog/ddl_priv.h"
#include "catalog/proc_priv.h"

#include <stdlib.h>

typedef struct holes {
    rq_catalog *catalog;
    rq__proc *proc;
    rq_region_info *orphans; /* youngest first */
    size_t orphan_count;
    size_t cap; /* of proc->regions */
    int64_t id; /* region id of new regions */
} holes;

static int youngest_first(const void *a, const void *b)
{
    const rq_region_info *x = a, *y = b;
    return (x->region_id < y->region_id) - (x->region_id > y->region_id);
}

static int by_start(const void *a, const void *b)
{
    const rq_region_info *x = a, *y = b;
    return rq_slice_compare(x->start_key, y->start_key);
}

/* Whether a range's end is above the key; empty: the table's end. */
static bool is_above(rq_slice end, rq_slice key)
{
    return end.len == 0 || rq_slice_compare(end, key) > 0;
}

static bool ends_above(rq_slice end, rq_slice other_end)
{
    return other_end.len > 0 && is_above(end, other_end);
}

static rq_err add_region(holes *h, const rq_region_info *info)
{
    rq__proc *p = h->proc;
    if (p->region_count == h->cap) {
        size_t cap = h->cap == 0 ? 8 : h->cap * 2;
        rq_region_info *more = rq_arena_calloc(&p->arena, cap, sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        if (p->region_count > 0) memcpy(more, p->regions, p->region_count * sizeof *more);
        p->regions = more;
        h->cap = cap;
    }
    return rq_region_info_copy(&p->arena, info, &p->regions[p->region_count++]);
}

static rq_err add_empty(holes *h, rq_slice start, rq_slice end, rq_error *why)
{
    rq__proc *p = h->proc;
    rq_region_info info;
    RQ_TRY(rq_region_info_make(&p->arena, p->ns, p->qualifier, start, end, h->id, 0, &info));
    RQ_TRY(rq__region_name_check(&info, why));
    return add_region(h, &info);
}

/* Whether the region lies in the hole [start, end) and overlaps none of the regions chosen for this
 * hole so far: those in the list from index `first` on. */
static bool fits(const holes *h, const rq_region_info *r, rq_slice start, rq_slice end,
                 size_t first)
{
    const rq__proc *p = h->proc;
    if (rq_slice_compare(r->start_key, start) < 0 || ends_above(r->end_key, end)) return false;
    if (!is_above(r->end_key, r->start_key)) return false; /* no row can be in it */
    for (size_t i = first; i < p->region_count; i++)
        if (is_above(r->end_key, p->regions[i].start_key) &&
            is_above(p->regions[i].end_key, r->start_key))
            return false;
    return true;
}

static rq_err fill(holes *h, rq_slice start, rq_slice end, rq_error *why)
{
    rq__proc *p = h->proc;
    size_t first = p->region_count;
    for (size_t i = 0; i < h->orphan_count; i++)
        if (fits(h, &h->orphans[i], start, end, first)) RQ_TRY(add_region(h, &h->orphans[i]));
    size_t last = p->region_count;
    if (last > first + 1) qsort(p->regions + first, last - first, sizeof *p->regions, by_start);
    rq_slice at = start;
    for (size_t i = first; i < last; i++) {
        if (!rq_slice_eq(at, p->regions[i].start_key))
            RQ_TRY(add_empty(h, at, p->regions[i].start_key, why));
        at = p->regions[i].end_key;
        if (at.len == 0) return RQ_OK;
    }
    return last > first && rq_slice_eq(at, end) ? RQ_OK : add_empty(h, at, end, why);
}

static rq_err fill_all(holes *h, const rq__table_node *t, rq_error *why)
{
    rq_slice at = {0};
    bool ended = false;
    for (size_t i = 0; i < t->pub.region_count; i++) {
        const rq_region_info *r = &rq__table_region(t, i)->info;
        if (!ended && rq_slice_compare(r->start_key, at) > 0)
            RQ_TRY(fill(h, at, r->start_key, why));
        ended |= r->end_key.len == 0;
        if (!ended && rq_slice_compare(r->end_key, at) > 0) at = r->end_key;
    }
    return ended ? RQ_OK : fill(h, at, (rq_slice){0}, why);
}

rq_err rq__holes_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    holes h = {.catalog = c, .proc = p, .id = rq__catalog_now_ms(c)};
    RQ_TRY(rq__internal_check(p, why));
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq_err rc = RQ_OK;
    if (t->pub.schema->is_meta)
        rc = rq_fail(why, RQ_E_DO_NOT_RETRY, "hbase:meta has one region");
    else if (t->pub.schema->family_count == 0)
        rc = rq_fail(why, RQ_E_DO_NOT_RETRY, "%.*s has no readable descriptor", (int)p->table.len,
                     (const char *)p->table.ptr);
    if (rc == RQ_OK)
        rc = rq__find_orphans(c, p->ns, p->qualifier, &p->arena, &h.orphans, &h.orphan_count, why);
    if (rc == RQ_OK && h.orphan_count > 1)
        qsort(h.orphans, h.orphan_count, sizeof *h.orphans, youngest_first);
    if (rc == RQ_OK) rc = fill_all(&h, t, why);
    if (rc == RQ_OK) {
        p->schema = rq_table_schema_ref(t->pub.schema);
        p->descriptor = rq_arena_copy(&p->arena, rq_table_schema_pb(t->pub.schema));
        if (p->descriptor.ptr == NULL) rc = RQ_E_NO_MEMORY;
    }
    rq__table_node_unref(t);
    return rc;
}

/* A region that is on disk keeps its files. If it has no manifest that is in use, all files found
 * in its folder become the region's files. */
rq_err rq__holes_layout(rq_catalog *c, rq__proc *p, rq_error *why)
{
    return rq__holes_seen(c, p) == RQ__COMMIT_YES ? RQ_OK : rq__adopt_regions(c, p, why);
}

rq_err rq__holes_commit(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    if (p->region_count == 0 || rq__holes_seen(c, p) == RQ__COMMIT_YES) return RQ_OK;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq_table_state state = t->pub.state;
    rq__table_node_unref(t);
    rq_arena a;
    rq_arena_init(&a);
    rq__batch b;
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < p->region_count && rc == RQ_OK; i++)
        rc = rq__meta_put_region(&b, &p->regions[i], RQ_REGION_CLOSED, NULL, -1);
    if (rc == RQ_OK) rc = rq__proc_commit(c, p, &b, why);
    rq_arena_clear(&a);
    if (rc != RQ_OK) return rc;
    return rq__publish_replaced(
        c, p, state == RQ_TABLE_ENABLED ? RQ_REGION_OPENING : RQ_REGION_CLOSED, why);
}

/* Submits a REOPEN_REGION procedure for each region; they run once this procedure has ended. */
rq_err rq__holes_open(rq_catalog *c, rq__proc *p, rq_error *why)
{
    (void)why;
    for (size_t i = 0; i < p->region_count; i++) {
        char name[600];
        rq_bytes_to_string(p->regions[i].name, name, sizeof name);
        rq_log_warn(c->env->log, "catalog", "filling a gap in hbase:meta with empty region %s",
                    name);
        rq__procedures_reopen(c, &p->regions[i], NULL);
    }
    return RQ_OK;
}

rq__commit_state rq__holes_seen(rq_catalog *c, const rq__proc *p)
{
    rq__table_node *t;
    if (p->region_count == 0 || rq__catalog_table_ref(c, p->ns, p->qualifier, &t, NULL) != RQ_OK)
        return RQ__COMMIT_UNKNOWN;
    bool done = rq__table_index(t, &p->regions[0]) < t->pub.region_count;
    rq__table_node_unref(t);
    return done ? RQ__COMMIT_YES : RQ__COMMIT_NO;
}
