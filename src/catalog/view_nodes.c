/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a view: regions, tables with their replicas, namespaces. Immutable and counted; see
 * view.h. */
#include "catalog/view_priv.h"

#include <stdlib.h>

#include "base/pb_arena.h"
#include "proto/hbase.pb-c.h"

/* --- region nodes ----------------------------------------------------------------------------- */

static rq_slice copy_to(uint8_t **at, rq_slice s)
{
    uint8_t *p = *at;
    if (s.len > 0) memcpy(p, s.ptr, s.len);
    *at += s.len;
    return rq_slice_of(p, s.len);
}

rq__region_node *rq__region_node_new(const rq_region_info *info, rq_region_state state,
                                     rq_region *region, const rq_server_name *server,
                                     int64_t open_seqnum, int64_t changed_ms, const char *failure)
{
    size_t failure_len = failure == NULL ? 0 : strlen(failure) + 1;
    size_t bytes = info->ns.len + info->qualifier.len + info->table.len + info->start_key.len +
                   info->end_key.len + info->name.len + failure_len;
    rq__region_node *n = malloc(sizeof *n + bytes);
    if (n == NULL) return NULL;
    uint8_t *at = (uint8_t *)(n + 1);
    n->info = *info;
    n->info.ns = copy_to(&at, info->ns);
    n->info.qualifier = copy_to(&at, info->qualifier);
    n->info.table = copy_to(&at, info->table);
    n->info.start_key = copy_to(&at, info->start_key);
    n->info.end_key = copy_to(&at, info->end_key);
    n->info.name = copy_to(&at, info->name);
    rq_slice f = copy_to(&at, rq_slice_of(failure, failure_len));
    n->pub = (rq_catalog_region){
        .info = &n->info,
        .region = region == NULL ? NULL : rq_region_ref(region),
        .server = rq_server_name_ref(server),
        .state = state,
        .failure = failure == NULL ? NULL : (const char *)f.ptr,
        .open_seqnum = open_seqnum,
        .changed_ms = changed_ms,
    };
    atomic_init(&n->refs, 1);
    atomic_init(&n->unsplittable_logged, false);
    return n;
}

rq__region_node *rq__region_node_ref(rq__region_node *n)
{
    atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
    return n;
}

void rq__region_node_unref(rq__region_node *n)
{
    if (n == NULL || atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1) return;
    if (n->pub.region != NULL) rq_region_unref(n->pub.region);
    rq_server_name_unref(n->pub.server);
    free(n);
}

/* --- table nodes ------------------------------------------------------------------------------ */

static int region_order(const void *a, const void *b)
{
    const rq_region_info *x = &(*(rq__region_node *const *)a)->info;
    const rq_region_info *y = &(*(rq__region_node *const *)b)->info;
    int c = rq_slice_compare(x->start_key, y->start_key);
    if (c != 0) return c;
    return (x->region_id > y->region_id) - (x->region_id < y->region_id);
}

int rq_catalog_replication(const rq_table_schema *s)
{
    return s->region_replication < 1                    ? 1
           : s->region_replication > RQ_REPLICATION_MAX ? RQ_REPLICATION_MAX
                                                        : s->region_replication;
}

rq__region_node *rq__replica_node_new(const rq_catalog_region *of, int32_t replica_id)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_region_info info;
    const rq_region_info *from = of->info;
    rq__region_node *n = NULL;
    if (rq_region_info_make(&a, from->ns, from->qualifier, from->start_key, from->end_key,
                            from->region_id, replica_id, &info) == RQ_OK)
        n = rq__region_node_new(&info, of->state, of->region, of->server, of->open_seqnum,
                                of->changed_ms, of->failure);
    rq_arena_clear(&a);
    return n;
}

rq_err rq__replica_nodes_new(const rq_table_schema *schema, const rq__region_tree *regions,
                             rq__region_tree **ret)
{
    size_t count = rq__region_tree_count(regions), n = 0;
    size_t others = (size_t)rq_catalog_replication(schema) - 1;
    *ret = NULL;
    if (others == 0 || count == 0) return RQ_OK;
    rq__region_node **list = calloc(count * others, sizeof(rq__region_node *));
    rq_err rc = list == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        const rq_catalog_region *r = &rq__region_tree_at(regions, i)->pub;
        for (size_t id = 1; id <= others && rc == RQ_OK; id++) {
            list[n] = rq__replica_node_new(r, (int32_t)id);
            if (list[n++] == NULL) rc = RQ_E_NO_MEMORY;
        }
    }
    if (rc == RQ_OK) rc = rq__region_tree_build(list, n, ret);
    for (size_t i = 0; i < n && list != NULL; i++)
        rq__region_node_unref(list[i]);
    free(list);
    return rc;
}

rq__table_node *rq__table_node_of_trees(rq_table_schema *schema, rq_table_state state,
                                        rq__region_tree *regions, rq__region_tree *replicas)
{
    rq__table_node *n = malloc(sizeof *n);
    if (n == NULL) {
        rq__region_tree_unref(regions);
        rq__region_tree_unref(replicas);
        return NULL;
    }
    n->pub = (rq_catalog_table){
        .schema = rq_table_schema_ref(schema),
        .state = state,
        .region_count = rq__region_tree_count(regions),
        .replica_count = rq__region_tree_count(replicas),
    };
    n->regions = regions;
    n->replicas = replicas;
    atomic_init(&n->refs, 1);
    return n;
}

rq__table_node *rq__table_node_new(rq_table_schema *schema, rq_table_state state,
                                   rq__region_node *const *regions, size_t region_count)
{
    rq__region_node **list = calloc(region_count + 1, sizeof(rq__region_node *));
    if (list == NULL) return NULL;
    if (region_count > 0) memcpy(list, regions, region_count * sizeof *list);
    if (region_count > 1) qsort(list, region_count, sizeof *list, region_order);
    rq__region_tree *tree, *replicas = NULL;
    rq_err rc = rq__region_tree_build(list, region_count, &tree);
    free(list);
    if (rc != RQ_OK) return NULL;
    if (rq__replica_nodes_new(schema, tree, &replicas) == RQ_OK)
        return rq__table_node_of_trees(schema, state, tree, replicas);
    rq__region_tree_unref(tree);
    return NULL;
}

rq__table_node *rq__table_node_ref(rq__table_node *n)
{
    atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
    return n;
}

void rq__table_node_unref(rq__table_node *n)
{
    if (n == NULL || atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1) return;
    rq__region_tree_unref(n->regions);
    rq__region_tree_unref(n->replicas);
    rq_table_schema_unref(n->pub.schema);
    free(n);
}

size_t rq__table_index(const rq__table_node *t, const rq_region_info *info)
{
    size_t i = rq__region_tree_rank(t->regions, info->start_key, info->region_id, false);
    if (i < t->pub.region_count && strcmp(rq__table_region(t, i)->info.encoded, info->encoded) == 0)
        return i;
    return t->pub.region_count;
}

const rq_catalog_region *rq_catalog_table_region(const rq_catalog_table *t, size_t i)
{
    return &rq__region_tree_at(rq__table_node_of(t)->regions, i)->pub;
}

const rq_catalog_region *rq_catalog_table_replica(const rq_catalog_table *t, size_t i)
{
    return &rq__region_tree_at(rq__table_node_of(t)->replicas, i)->pub;
}

int rq__table_names_compare(rq_slice ns_a, rq_slice q_a, rq_slice ns_b, rq_slice q_b)
{
    /* Compares like the joined "namespace:qualifier" (HBASE: FSTableDescriptors.getAll). */
    size_t n = ns_a.len < ns_b.len ? ns_a.len : ns_b.len;
    int c = n == 0 ? 0 : memcmp(ns_a.ptr, ns_b.ptr, n);
    if (c != 0) return c;
    if (ns_a.len != ns_b.len) {
        int next_a = ns_a.len == n ? ':' : ns_a.ptr[n];
        int next_b = ns_b.len == n ? ':' : ns_b.ptr[n];
        return next_a < next_b ? -1 : 1; /* ':' cannot be part of a namespace's name */
    }
    return rq_slice_compare(q_a, q_b);
}

/* --- namespace nodes -------------------------------------------------------------------------- */

static rq_err namespace_fill(rq__namespace_node *n, const Pb__NamespaceDescriptor *m)
{
    n->pub.name = rq_arena_copy(&n->arena, rq_slice_of(m->name.data, m->name.len));
    rq_attribute *items = rq_arena_calloc(&n->arena, m->n_configuration, sizeof *items);
    if (n->pub.name.ptr == NULL || items == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < m->n_configuration; i++) {
        items[i].key = rq_arena_copy(&n->arena, rq_slice_cstr(m->configuration[i]->name));
        items[i].value = rq_arena_copy(&n->arena, rq_slice_cstr(m->configuration[i]->value));
        if (items[i].key.ptr == NULL || items[i].value.ptr == NULL) return RQ_E_NO_MEMORY;
    }
    n->pub.configuration = (rq_attributes){items, m->n_configuration};
    return RQ_OK;
}

rq_err rq__namespace_node_new(rq_slice pb, rq__namespace_node **ret, rq_error *why)
{
    rq__namespace_node *n = calloc(1, sizeof *n);
    if (n == NULL) return RQ_E_NO_MEMORY;
    rq_arena_init(&n->arena);
    atomic_init(&n->refs, 1);
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, &n->arena);
    Pb__NamespaceDescriptor *m =
        pb__namespace_descriptor__unpack(&memory.allocator, pb.len, pb.ptr);
    n->pb = rq_arena_copy(&n->arena, pb);
    rq_err rc = RQ_OK;
    if (n->pb.ptr == NULL || (m == NULL && memory.exhausted))
        rc = RQ_E_NO_MEMORY;
    else if (m == NULL)
        rc = rq_fail(why, RQ_E_CORRUPT, "malformed NamespaceDescriptor");
    else
        rc = namespace_fill(n, m);
    if (rc != RQ_OK) {
        rq__namespace_node_unref(n);
        return rc;
    }
    *ret = n;
    return RQ_OK;
}

rq__namespace_node *rq__namespace_node_ref(rq__namespace_node *n)
{
    atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
    return n;
}

void rq__namespace_node_unref(rq__namespace_node *n)
{
    if (n == NULL || atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1) return;
    rq_arena_clear(&n->arena);
    free(n);
}
