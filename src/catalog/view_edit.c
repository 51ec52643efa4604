/* SPDX-License-Identifier: Apache-2.0 */
/* Edits make the next view from the current one; the two share all nodes that the edit does not
 * change. Memory only; see view.h. */
#include "catalog/view_priv.h"

#include <stdlib.h>

/* --- edits ------------------------------------------------------------------------------------ */

rq_err rq__edit_begin(rq__views *views, rq__edit *e)
{
    pthread_mutex_lock(&views->edit_lock);
    const rq__view *v = rq__views_now(views);
    *e = (rq__edit){.views = views};
    e->table_cap = v->table_count + 4;
    e->namespace_cap = v->namespace_count + 4;
    e->tables = malloc(e->table_cap * sizeof *e->tables);
    e->namespaces = malloc(e->namespace_cap * sizeof *e->namespaces);
    if (e->tables == NULL || e->namespaces == NULL) {
        rq__edit_abort(e);
        return RQ_E_NO_MEMORY;
    }
    for (size_t i = 0; i < v->table_count; i++)
        e->tables[e->table_count++] = RQ_CONTAINER_OF(v->tables[i], rq__table_node, pub);
    for (size_t i = 0; i < v->namespace_count; i++)
        e->namespaces[e->namespace_count++] =
            RQ_CONTAINER_OF(v->namespaces[i], rq__namespace_node, pub);
    return RQ_OK;
}

/* Frees the edit's own lists, not the nodes in them. */
static void edit_end(rq__edit *e)
{
    void *lists[] = {e->put.items, e->removed.items, e->tables, e->namespaces};
    for (size_t i = 0; i < RQ_ARRAY_LEN(lists); i++)
        free(lists[i]);
    pthread_mutex_unlock(&e->views->edit_lock);
}

void rq__edit_abort(rq__edit *e)
{
    rq__pointers_unref_tables(&e->added_tables);
    rq__pointers_unref_namespaces(&e->added_namespaces);
    free(e->dropped_tables.items);
    free(e->dropped_namespaces.items);
    edit_end(e);
}

/* --- edits: the commit ------------------------------------------------------------------------ */

/* Changes the slots of the hash. All regions of the edit are put before any is removed, so that a
 * name whose node is replaced is found at all times. */
static void change_names(const rq__edit *e)
{
    for (size_t i = 0; i < e->put.count; i++)
        rq_region_names_put(e->views->names, e->put.items[i]);
    for (size_t i = 0; i < e->removed.count; i++)
        rq_region_names_remove(e->views->names, e->removed.items[i]);
}

rq_err rq__edit_commit(rq__edit *e)
{
    rq__views *views = e->views;
    rq__view *old = atomic_load(&views->now);
    rq__view *v = calloc(1, sizeof *v);
    const rq_catalog_table **tables = calloc(e->table_count + 1, sizeof *tables);
    const rq_namespace **namespaces = calloc(e->namespace_count + 1, sizeof *namespaces);
    if (v == NULL || tables == NULL || namespaces == NULL ||
        rq_region_names_reserve(views->names, (const rq_host_region *const *)e->put.items,
                                e->put.count) != RQ_OK) {
        free(v);
        free(tables);
        free(namespaces);
        rq__edit_abort(e);
        return RQ_E_NO_MEMORY;
    }
    v->owner = views;
    v->number = old->number + 1;
    v->tables = tables;
    v->namespaces = namespaces;
    for (size_t i = 0; i < e->table_count; i++)
        tables[v->table_count++] = &e->tables[i]->pub;
    for (size_t i = 0; i < e->namespace_count; i++)
        namespaces[v->namespace_count++] = &e->namespaces[i]->pub;
    change_names(e);
    old->old_tables = e->dropped_tables;
    old->old_namespaces = e->dropped_namespaces;
    free(e->added_tables.items); /* the references are the view's now */
    free(e->added_namespaces.items);
    atomic_store_explicit(&views->now, v, memory_order_release);
    atomic_fetch_add_explicit(&views->retired, 1, memory_order_relaxed);
    rq_epoch_retire(views->epoch, &old->retired, rq__view_release);
    if (views->changed != NULL) views->changed(views->changed_ctx);
    edit_end(e);
    rq__views_collect(views);
    return RQ_OK;
}

/* --- edits: tables ---------------------------------------------------------------------------- */

static size_t edit_table_at(const rq__edit *e, rq_slice ns, rq_slice qualifier, bool *ret_found)
{
    size_t lo = 0, hi = e->table_count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const rq_table_schema *s = e->tables[mid]->pub.schema;
        int c = rq__table_names_compare(s->ns, s->qualifier, ns, qualifier);
        if (c == 0) {
            *ret_found = true;
            return mid;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *ret_found = false;
    return lo;
}

rq__table_node *rq__edit_table(const rq__edit *e, rq_slice ns, rq_slice qualifier)
{
    bool found;
    size_t i = edit_table_at(e, ns, qualifier, &found);
    return found ? e->tables[i] : NULL;
}

/* Enters the table at its place, and takes the reference, also on failure. */
static rq_err enter_table(rq__edit *e, rq__table_node *t)
{
    bool found;
    size_t i = edit_table_at(e, t->pub.schema->ns, t->pub.schema->qualifier, &found);
    if (rq__pointers_push(&e->added_tables, t) != RQ_OK) {
        rq__table_node_unref(t);
        return RQ_E_NO_MEMORY;
    }
    if (found) {
        RQ_TRY(rq__pointers_push(&e->dropped_tables, e->tables[i]));
        e->tables[i] = t;
        return RQ_OK;
    }
    if (e->table_count == e->table_cap) {
        rq__table_node **more = realloc(e->tables, e->table_cap * 2 * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        e->tables = more;
        e->table_cap *= 2;
    }
    memmove(e->tables + i + 1, e->tables + i, (e->table_count - i) * sizeof *e->tables);
    e->tables[i] = t;
    e->table_count++;
    return RQ_OK;
}

static rq_err note_tree(rq__pointers *l, const rq__region_tree *t)
{
    for (size_t i = 0, n = rq__region_tree_count(t); i < n; i++)
        RQ_TRY(rq__pointers_push(l, &rq__region_tree_at(t, i)->pub));
    return RQ_OK;
}

/* All names of the table. */
static rq_err note_table(rq__pointers *l, const rq__table_node *t)
{
    RQ_TRY(note_tree(l, t->regions));
    return note_tree(l, t->replicas);
}

/* Regions whose nodes are in the new table too keep their slots; replicas have new nodes. */
static rq_err note_replaced(rq__edit *e, const rq__table_node *old, const rq__table_node *t)
{
    for (size_t i = 0; i < old->pub.region_count; i++) {
        rq__region_node *n = rq__table_region(old, i);
        size_t at = rq__table_index(t, &n->info);
        if (at == t->pub.region_count || rq__table_region(t, at) != n)
            RQ_TRY(rq__pointers_push(&e->removed, &n->pub));
    }
    return note_tree(&e->removed, old->replicas);
}

rq_err rq__edit_put_table(rq__edit *e, rq__table_node *t)
{
    const rq__table_node *old = rq__edit_table(e, t->pub.schema->ns, t->pub.schema->qualifier);
    RQ_TRY(enter_table(e, t));
    RQ_TRY(note_table(&e->put, t));
    return old == NULL ? RQ_OK : note_replaced(e, old, t);
}

rq_err rq__edit_set_table(rq__edit *e, const rq__table_node *t, rq_table_schema *schema,
                          rq_table_state state)
{
    rq__region_tree *replicas;
    if (schema == NULL) schema = t->pub.schema;
    bool same = rq_catalog_replication(schema) == rq_catalog_replication(t->pub.schema);
    if (same)
        replicas = rq__region_tree_ref(t->replicas);
    else
        RQ_TRY(rq__replica_nodes_new(schema, t->regions, &replicas));
    rq__table_node *n =
        rq__table_node_of_trees(schema, state, rq__region_tree_ref(t->regions), replicas);
    if (n == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(enter_table(e, n));
    if (same) return RQ_OK;
    RQ_TRY(note_tree(&e->put, n->replicas));
    return note_tree(&e->removed, t->replicas);
}

/* The two trees of a table while an edit changes them. */
typedef struct trees {
    rq__edit *edit;
    const rq_table_schema *schema;
    size_t others; /* replicas of each region */
    rq__region_tree *regions, *replicas;
} trees;

typedef rq_err tree_change(const rq__region_tree *t, size_t i, rq__region_node *n,
                           rq__region_tree **ret);

static rq_err tree_remove(const rq__region_tree *t, size_t i, rq__region_node *n,
                          rq__region_tree **ret)
{
    (void)n;
    return rq__region_tree_remove(t, i, ret);
}

static rq_err change_tree(rq__region_tree **at, tree_change *change, size_t i, rq__region_node *n)
{
    rq__region_tree *changed;
    RQ_TRY(change(*at, i, n, &changed));
    rq__region_tree_unref(*at);
    *at = changed;
    return RQ_OK;
}

/* Changes the i-th region and its replicas in the same way. */
static rq_err change_region(trees *t, tree_change *change, size_t i, rq__region_node *n)
{
    RQ_TRY(change_tree(&t->regions, change, i, n));
    for (size_t k = 0; k < t->others; k++) {
        /* The replicas of a region are adjacent in the tree. A removal moves the next one to the
         * first place; insertions and replacements go from place to place. */
        size_t at = i * t->others + (change == tree_remove ? 0 : k);
        rq__region_node *replica = n == NULL ? NULL : rq__replica_node_new(&n->pub, (int32_t)k + 1);
        if (n != NULL && replica == NULL) return RQ_E_NO_MEMORY;
        rq_err rc = change_tree(&t->replicas, change, at, replica);
        if (rc == RQ_OK && replica != NULL) rc = rq__pointers_push(&t->edit->put, &replica->pub);
        rq__region_node_unref(replica);
        RQ_TRY(rc);
    }
    return n == NULL ? RQ_OK : rq__pointers_push(&t->edit->put, &n->pub);
}

static trees trees_of(rq__edit *e, const rq__table_node *t)
{
    return (trees){
        .edit = e,
        .schema = t->pub.schema,
        .others = (size_t)rq_catalog_replication(t->pub.schema) - 1,
        .regions = rq__region_tree_ref(t->regions),
        .replicas = rq__region_tree_ref(t->replicas),
    };
}

static rq_err enter_trees(trees *t, const rq__table_node *from, rq_table_state state, rq_err rc)
{
    if (rc != RQ_OK) {
        rq__region_tree_unref(t->regions);
        rq__region_tree_unref(t->replicas);
        return rc;
    }
    rq__table_node *n = rq__table_node_of_trees(from->pub.schema, state, t->regions, t->replicas);
    return n == NULL ? RQ_E_NO_MEMORY : enter_table(t->edit, n);
}

/* From this fraction of a table's regions on, rebuilding the trees takes less time than changing
 * them. */
#define MANY_REGIONS_PART 8

static rq_err replace_many(rq__edit *e, const rq__table_node *t, rq_table_state state,
                           rq__region_node *const *nodes, size_t count)
{
    rq__region_node **list = calloc(t->pub.region_count + 1, sizeof(rq__region_node *));
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < t->pub.region_count; i++)
        list[i] = rq__table_region(t, i);
    for (size_t i = 0; i < count; i++) {
        size_t at = rq__table_index(t, &nodes[i]->info);
        if (at < t->pub.region_count) list[at] = nodes[i];
    }
    rq__table_node *n = rq__table_node_new(t->pub.schema, state, list, t->pub.region_count);
    free(list);
    return n == NULL ? RQ_E_NO_MEMORY : rq__edit_put_table(e, n);
}

rq_err rq__edit_replace_regions(rq__edit *e, const rq__table_node *t, rq_table_state state,
                                rq__region_node *const *nodes, size_t count)
{
    if (count > 1 && count * MANY_REGIONS_PART > t->pub.region_count)
        return replace_many(e, t, state, nodes, count);
    trees changed = trees_of(e, t);
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        size_t at = rq__table_index(t, &nodes[i]->info);
        if (at == t->pub.region_count) continue;
        rc = change_region(&changed, rq__region_tree_replace, at, nodes[i]);
    }
    return enter_trees(&changed, t, state, rc);
}

static rq_err remove_region(trees *t, size_t i)
{
    RQ_TRY(rq__pointers_push(&t->edit->removed, &rq__region_tree_at(t->regions, i)->pub));
    for (size_t k = 0; k < t->others; k++)
        RQ_TRY(rq__pointers_push(&t->edit->removed,
                                 &rq__region_tree_at(t->replicas, i * t->others + k)->pub));
    return change_region(t, tree_remove, i, NULL);
}

rq_err rq__edit_swap_regions(rq__edit *e, const rq__table_node *t, const rq_region_info *old,
                             size_t old_count, rq__region_node *const *nodes, size_t count)
{
    trees changed = trees_of(e, t);
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < old_count && rc == RQ_OK; i++) {
        if (rq__table_index(t, &old[i]) == t->pub.region_count) continue;
        rc = remove_region(&changed, rq__region_tree_rank(changed.regions, old[i].start_key,
                                                          old[i].region_id, false));
    }
    for (size_t i = 0; i < count && rc == RQ_OK; i++)
        rc = change_region(&changed, rq__region_tree_insert,
                           rq__region_tree_rank(changed.regions, nodes[i]->info.start_key,
                                                nodes[i]->info.region_id, false),
                           nodes[i]);
    return enter_trees(&changed, t, t->pub.state, rc);
}

rq_err rq__edit_remove_table(rq__edit *e, rq_slice ns, rq_slice qualifier)
{
    bool found;
    size_t i = edit_table_at(e, ns, qualifier, &found);
    if (!found) return RQ_OK;
    RQ_TRY(note_table(&e->removed, e->tables[i]));
    RQ_TRY(rq__pointers_push(&e->dropped_tables, e->tables[i]));
    e->table_count--;
    memmove(e->tables + i, e->tables + i + 1, (e->table_count - i) * sizeof *e->tables);
    return RQ_OK;
}

/* --- edits: namespaces ------------------------------------------------------------------------ */

/* The index of the first namespace that is not before the name. */
static size_t edit_namespace_at(const rq__edit *e, rq_slice name)
{
    size_t lo = 0, hi = e->namespace_count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (rq_slice_compare(e->namespaces[mid]->pub.name, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

rq_err rq__edit_put_namespace(rq__edit *e, rq__namespace_node *n)
{
    if (rq__pointers_push(&e->added_namespaces, n) != RQ_OK) {
        rq__namespace_node_unref(n);
        return RQ_E_NO_MEMORY;
    }
    size_t i = edit_namespace_at(e, n->pub.name);
    if (i < e->namespace_count && rq_slice_eq(e->namespaces[i]->pub.name, n->pub.name)) {
        RQ_TRY(rq__pointers_push(&e->dropped_namespaces, e->namespaces[i]));
        e->namespaces[i] = n;
        return RQ_OK;
    }
    if (e->namespace_count == e->namespace_cap) {
        rq__namespace_node **more = realloc(e->namespaces, e->namespace_cap * 2 * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        e->namespaces = more;
        e->namespace_cap *= 2;
    }
    memmove(e->namespaces + i + 1, e->namespaces + i,
            (e->namespace_count - i) * sizeof *e->namespaces);
    e->namespaces[i] = n;
    e->namespace_count++;
    return RQ_OK;
}

rq_err rq__edit_remove_namespace(rq__edit *e, rq_slice name)
{
    size_t i = edit_namespace_at(e, name);
    if (i == e->namespace_count || !rq_slice_eq(e->namespaces[i]->pub.name, name)) return RQ_OK;
    RQ_TRY(rq__pointers_push(&e->dropped_namespaces, e->namespaces[i]));
    e->namespace_count--;
    memmove(e->namespaces + i, e->namespaces + i + 1,
            (e->namespace_count - i) * sizeof *e->namespaces);
    return RQ_OK;
}
