/* SPDX-License-Identifier: Apache-2.0 */
/* HbckService's FixMeta: fills the holes of each table (ddl_holes.c) and merges regions that overlap,
 * by procedures. A chain of overlapping regions is merged at most MERGE_MAX at a time, so that a
 * repetition may be needed. HBASE: MetaFixer. */
#include "catalog/ddl_priv.h"

#include <stdlib.h>

#define MERGE_MAX 64 /* HBASE: hbase.master.metafixer.max.merge.count */

typedef struct fixing {
    rq_catalog *catalog;
    rq_arena *arena;
    rq_slice user;
    rq_err rc; /* error of the first table that was not repaired */
    rq_error *why;
} fixing;

/* A table at the beginning, its names copied. */
typedef struct faulty {
    rq_slice ns, qualifier;
    bool has_holes, has_overlaps;
} faulty;

static bool is_last(const rq_region_info *r)
{
    return r->end_key.len == 0;
}

static void look(const rq_catalog_table *t, faulty *ret)
{
    rq_slice at = {0};
    bool ended = false;
    for (size_t i = 0; i < t->region_count; i++) {
        const rq_region_info *r = rq_catalog_table_region(t, i)->info;
        int order = rq_slice_compare(r->start_key, at);
        ret->has_holes |= !ended && order > 0;
        ret->has_overlaps |= i > 0 && (ended || order < 0);
        ended |= is_last(r);
        if (!ended && rq_slice_compare(r->end_key, at) > 0) at = r->end_key;
    }
    ret->has_holes |= !ended;
}

static rq_err list_faulty(fixing *f, faulty **ret, size_t *ret_count)
{
    rq_epoch_member m = {0};
    const rq_catalog_table *const *tables;
    size_t count;
    rq_err rc = RQ_OK;
    rq_epoch_pin(f->catalog->env->epoch, &m);
    rq_catalog_tables(f->catalog, &tables, &count);
    *ret_count = 0;
    *ret = rq_arena_calloc(f->arena, count + 1, sizeof **ret);
    if (*ret == NULL) rc = RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        faulty *t = &(*ret)[*ret_count];
        *t = (faulty){0};
        if (!tables[i]->schema->is_meta) look(tables[i], t);
        if (!t->has_holes && !t->has_overlaps) continue;
        t->ns = rq_arena_copy(f->arena, tables[i]->schema->ns);
        t->qualifier = rq_arena_copy(f->arena, tables[i]->schema->qualifier);
        if (t->ns.ptr == NULL || t->qualifier.ptr == NULL) rc = RQ_E_NO_MEMORY;
        ++*ret_count;
    }
    rq_epoch_unpin(f->catalog->env->epoch, &m);
    return rc;
}

static void submit(fixing *f, const faulty *t, rq_ddl *d)
{
    rq_error why = {0};
    d->ns = t->ns;
    d->qualifier = t->qualifier;
    d->user = f->user;
    rq_err rc = rq__catalog_ddl_sync(f->catalog, d, &why);
    if (rc == RQ_OK || f->rc != RQ_OK) return;
    f->rc =
        rq_fail(f->why, RQ_E_DO_NOT_RETRY, "table %.*s:%.*s was not repaired: %s", (int)t->ns.len,
                (const char *)t->ns.ptr, (int)t->qualifier.len, (const char *)t->qualifier.ptr,
                why.code != RQ_OK ? why.message : rq_err_text(rc));
}

static void merge(fixing *f, const faulty *t, const rq_slice *names, size_t count)
{
    rq_ddl d = {.kind = RQ_DDL_MERGE_REGIONS,
                .of.merge = {.regions = names, .region_count = count, .forcible = true}};
    if (count > 1) submit(f, t, &d);
}

/* Merges chains of regions each of which begins before the end of those before it. */
static rq_err merge_overlaps(fixing *f, const faulty *t)
{
    rq__table_node *n;
    rq_slice names[MERGE_MAX], end = {0};
    size_t count = 0;
    bool ended = false;
    if (rq__catalog_table_ref(f->catalog, t->ns, t->qualifier, &n, NULL) != RQ_OK) return RQ_OK;
    for (size_t i = 0; i < n->pub.region_count; i++) {
        const rq_region_info *r = &rq__table_region(n, i)->info;
        bool overlaps = count > 0 && (ended || rq_slice_compare(r->start_key, end) < 0);
        if (!overlaps || count == MERGE_MAX) {
            merge(f, t, names, count);
            count = 0;
            ended = false;
            end = (rq_slice){0};
        }
        names[count++] = rq_slice_cstr(r->encoded);
        ended |= is_last(r);
        if (rq_slice_compare(r->end_key, end) > 0) end = r->end_key;
    }
    merge(f, t, names, count);
    rq__table_node_unref(n);
    return RQ_OK;
}

rq_err rq_catalog_fix(rq_catalog *c, rq_slice user, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    fixing f = {.catalog = c, .arena = &a, .user = user, .why = why};
    faulty *list;
    size_t count;
    rq_err rc = list_faulty(&f, &list, &count);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        rq_ddl fill = {.kind = RQ_DDL_FILL_HOLES};
        if (list[i].has_holes) submit(&f, &list[i], &fill);
        if (list[i].has_overlaps) rc = merge_overlaps(&f, &list[i]);
    }
    rq_arena_clear(&a);
    return rc != RQ_OK ? rq_no_memory(why) : f.rc;
}
