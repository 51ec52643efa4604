/* SPDX-License-Identifier: Apache-2.0 */
/* Views and their lookups. Nothing here blocks or does I/O; see view.h. */
#include "catalog/view_priv.h"

#include <sched.h>
#include <stdlib.h>

/* --- lists of pointers ------------------------------------------------------------------------ */

void rq__pointers_unref_tables(rq__pointers *l)
{
    for (size_t i = 0; i < l->count; i++)
        rq__table_node_unref(l->items[i]);
    free(l->items);
}

void rq__pointers_unref_namespaces(rq__pointers *l)
{
    for (size_t i = 0; i < l->count; i++)
        rq__namespace_node_unref(l->items[i]);
    free(l->items);
}

/* --- views ------------------------------------------------------------------------------------ */

static void view_free(rq__view *v)
{
    if (v == NULL) return;
    rq__pointers_unref_tables(&v->old_tables);
    rq__pointers_unref_namespaces(&v->old_namespaces);
    free(v->tables);
    free(v->namespaces);
    free(v);
}

void rq__view_release(rq_epoch_node *node)
{
    rq__view *v = RQ_CONTAINER_OF(node, rq__view, retired);
    rq__views *owner = v->owner;
    view_free(v);
    atomic_fetch_sub_explicit(&owner->retired, 1, memory_order_release);
}

static size_t table_lower_bound(const rq_catalog_table *const *tables, size_t count, rq_slice ns,
                                rq_slice qualifier)
{
    size_t lo = 0, hi = count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const rq_table_schema *s = tables[mid]->schema;
        if (rq__table_names_compare(s->ns, s->qualifier, ns, qualifier) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const rq_catalog_table *rq__view_table(const rq__view *v, rq_slice ns, rq_slice qualifier)
{
    size_t i = table_lower_bound(v->tables, v->table_count, ns, qualifier);
    if (i == v->table_count) return NULL;
    const rq_table_schema *s = v->tables[i]->schema;
    return rq__table_names_compare(s->ns, s->qualifier, ns, qualifier) == 0 ? v->tables[i] : NULL;
}

const rq_namespace *rq__view_namespace(const rq__view *v, rq_slice name)
{
    size_t lo = 0, hi = v->namespace_count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = rq_slice_compare(v->namespaces[mid]->name, name);
        if (c == 0) return v->namespaces[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

const rq_catalog_region *rq__table_locate(const rq_catalog_table *t, rq_slice row)
{
    const rq__region_tree *tree = rq__table_node_of(t)->regions;
    size_t behind = rq__region_tree_rank(tree, row, INT64_MAX, true);
    rq_slice start = {NULL, 0};
    /* Usually the first candidate matches; later ones only where regions overlap. */
    for (size_t i = behind; i-- > 0;) {
        const rq__region_node *n = rq__region_tree_at(tree, i);
        if (i + 1 == behind) start = n->info.start_key;
        if (rq_region_info_contains(&n->info, row)) return &n->pub;
        if (!rq_slice_eq(n->info.start_key, start)) break;
    }
    return NULL;
}

rq_err rq__views_init(rq__views *views, rq_epoch *epoch, rq_region_names *names)
{
    *views = (rq__views){.epoch = epoch, .names = names};
    rq__view *v = calloc(1, sizeof *v);
    if (v == NULL) return RQ_E_NO_MEMORY;
    v->owner = views;
    pthread_mutex_init(&views->edit_lock, NULL);
    atomic_init(&views->now, v);
    return RQ_OK;
}

void rq__views_collect(rq__views *v)
{
    if (atomic_load_explicit(&v->retired, memory_order_acquire) > 0) rq_epoch_collect(v->epoch);
}

void rq__views_clear(rq__views *v)
{
    rq__view *now = atomic_load(&v->now);
    if (now == NULL) return;
    atomic_store(&v->now, NULL);
    rq_region_names_forget(v->names);
    for (size_t i = 0; i < now->table_count; i++)
        rq__table_node_unref(RQ_CONTAINER_OF(now->tables[i], rq__table_node, pub));
    for (size_t i = 0; i < now->namespace_count; i++)
        rq__namespace_node_unref(RQ_CONTAINER_OF(now->namespaces[i], rq__namespace_node, pub));
    view_free(now);
    /* Without readers one collection is enough, unless another thread is collecting right now. */
    while (atomic_load_explicit(&v->retired, memory_order_acquire) > 0) {
        rq_epoch_collect(v->epoch);
        sched_yield();
    }
    pthread_mutex_destroy(&v->edit_lock);
}
