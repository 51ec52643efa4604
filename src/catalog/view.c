/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, views and their edits. Nothing here blocks or does I/O; see view.h. */
#include "catalog/view.h"

#include <sched.h>
#include <stdlib.h>

#include "proto/hbase.pb-c.h"
#include "store/pb_arena.h"

/* --- region nodes ----------------------------------------------------------------------------- */

static rq_slice copy_to(uint8_t **at, rq_slice s)
{
    uint8_t *p = *at;
    if (s.len > 0) memcpy(p, s.ptr, s.len);
    *at += s.len;
    return rq_slice_of(p, s.len);
}

rq__region_node *rq__region_node_new(const rq_region_info *info, rq_region_state state,
                                     rq_region *region, int64_t open_seqnum, int64_t changed_ms,
                                     const char *failure)
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

/* NULL: no memory. */
static rq__region_node *replica_node(const rq_catalog_region *of, int32_t replica_id)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_region_info info;
    const rq_region_info *from = of->info;
    rq__region_node *n = NULL;
    if (rq_region_info_make(&a, from->ns, from->qualifier, from->start_key, from->end_key,
                            from->region_id, replica_id, &info) == RQ_OK)
        n = rq__region_node_new(&info, of->state, of->region, of->open_seqnum, of->changed_ms,
                                of->failure);
    rq_arena_clear(&a);
    return n;
}

/* The nodes of the replicas of `regions`, as a tree. */
static rq_err make_replicas(const rq_table_schema *schema, const rq__region_tree *regions,
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
            list[n] = replica_node(r, (int32_t)id);
            if (list[n++] == NULL) rc = RQ_E_NO_MEMORY;
        }
    }
    if (rc == RQ_OK) rc = rq__region_tree_build(list, n, ret);
    for (size_t i = 0; i < n && list != NULL; i++)
        rq__region_node_unref(list[i]);
    free(list);
    return rc;
}

/* Takes the references on the trees. NULL: out of memory. */
static rq__table_node *table_of(rq_table_schema *schema, rq_table_state state,
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
    if (make_replicas(schema, tree, &replicas) == RQ_OK)
        return table_of(schema, state, tree, replicas);
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

static const rq__table_node *table_node_of(const rq_catalog_table *t)
{
    return RQ_CONTAINER_OF(t, rq__table_node, pub);
}

const rq_catalog_region *rq_catalog_table_region(const rq_catalog_table *t, size_t i)
{
    return &rq__region_tree_at(table_node_of(t)->regions, i)->pub;
}

const rq_catalog_region *rq_catalog_table_replica(const rq_catalog_table *t, size_t i)
{
    return &rq__region_tree_at(table_node_of(t)->replicas, i)->pub;
}

static int compare_names(rq_slice ns_a, rq_slice q_a, rq_slice ns_b, rq_slice q_b)
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

/* --- lists of pointers ------------------------------------------------------------------------ */

static rq_err push(rq__pointers *l, const void *item)
{
    if (l->count == l->cap) {
        size_t cap = l->cap == 0 ? 8 : l->cap * 2;
        void **more = realloc(l->items, cap * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        l->items = more;
        l->cap = cap;
    }
    l->items[l->count++] = (void *)(uintptr_t)item;
    return RQ_OK;
}

static void unref_tables(rq__pointers *l)
{
    for (size_t i = 0; i < l->count; i++)
        rq__table_node_unref(l->items[i]);
    free(l->items);
}

static void unref_namespaces(rq__pointers *l)
{
    for (size_t i = 0; i < l->count; i++)
        rq__namespace_node_unref(l->items[i]);
    free(l->items);
}

/* --- views ------------------------------------------------------------------------------------ */

/* Replaces a removed region in its slot: lookups continue behind it. */
static const rq_catalog_region removed_region;

static void view_free(rq__view *v)
{
    if (v == NULL) return;
    unref_tables(&v->old_tables);
    unref_namespaces(&v->old_namespaces);
    free(v->old_slots);
    free(v->tables);
    free(v->namespaces);
    free(v);
}

static void view_release(rq_epoch_node *node)
{
    rq__view *v = RQ_CONTAINER_OF(node, rq__view, retired);
    rq__views *owner = v->owner;
    view_free(v);
    atomic_fetch_sub_explicit(&owner->retired, 1, memory_order_release);
}

/* Encoded names are hex digits of an MD5, so any eight of them are well distributed; for short ones
 * (meta's decimal number) all are used. */
static uint64_t name_hash(const char *encoded, size_t len)
{
    uint64_t h = 0;
    memcpy(&h, encoded, len < 8 ? len : 8);
    if (len >= 16) {
        uint64_t more;
        memcpy(&more, encoded + 8, 8);
        h ^= more << 1;
    }
    h *= UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 32;
}

static bool is_named(const rq_catalog_region *r, rq_slice encoded)
{
    const char *name = r->info->encoded;
    return memcmp(name, encoded.ptr, encoded.len) == 0 && name[encoded.len] == '\0';
}

/* The slot of that name; NULL: none. */
static rq__view_slot *slot_find(rq__view_slot *slots, size_t mask, rq_slice encoded)
{
    uint64_t hash = name_hash((const char *)encoded.ptr, encoded.len);
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        const rq_catalog_region *r = atomic_load_explicit(&slots[i].region, memory_order_acquire);
        if (r == NULL) return NULL;
        if (atomic_load_explicit(&slots[i].hash, memory_order_relaxed) != hash) continue;
        if (RQ_LIKELY(r != &removed_region) && is_named(r, encoded)) return &slots[i];
    }
}

/* A reused slot gets its hash before its region. A reader in between may compare the region it has
 * loaded with the other one's hash: then it skips the region, or compares its name and skips it.
 * Both regions are being added or removed, so both results are correct. */
static void slot_set(rq__view_slot *slot, uint64_t hash, const rq_catalog_region *r)
{
    atomic_store_explicit(&slot->hash, hash, memory_order_relaxed);
    atomic_store_explicit(&slot->region, r, memory_order_release);
}

const rq_catalog_region *rq__view_region(const rq__view *v, rq_slice encoded)
{
    if (encoded.len == 0 || encoded.len > RQ_ENCODED_NAME_LEN) return NULL;
    uint64_t hash = name_hash((const char *)encoded.ptr, encoded.len);
    for (size_t i = hash & v->slot_mask;; i = (i + 1) & v->slot_mask) {
        const rq_catalog_region *r =
            atomic_load_explicit(&v->slots[i].region, memory_order_acquire);
        if (r == NULL) return NULL;
        if (atomic_load_explicit(&v->slots[i].hash, memory_order_relaxed) != hash) continue;
        if (RQ_LIKELY(r != &removed_region) && is_named(r, encoded)) return r;
    }
}

static size_t table_lower_bound(const rq_catalog_table *const *tables, size_t count, rq_slice ns,
                                rq_slice qualifier)
{
    size_t lo = 0, hi = count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const rq_table_schema *s = tables[mid]->schema;
        if (compare_names(s->ns, s->qualifier, ns, qualifier) < 0)
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
    return compare_names(s->ns, s->qualifier, ns, qualifier) == 0 ? v->tables[i] : NULL;
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
    const rq__region_tree *tree = table_node_of(t)->regions;
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

#define SLOTS_MIN 16

rq_err rq__views_init(rq__views *views, rq_epoch *epoch)
{
    *views = (rq__views){.epoch = epoch};
    rq__view *v = calloc(1, sizeof *v);
    rq__view_slot *slots = calloc(SLOTS_MIN, sizeof *slots);
    if (v == NULL || slots == NULL) {
        free(slots);
        free(v);
        return RQ_E_NO_MEMORY;
    }
    v->slots = slots;
    v->slot_mask = SLOTS_MIN - 1;
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
    for (size_t i = 0; i < now->table_count; i++)
        rq__table_node_unref(RQ_CONTAINER_OF(now->tables[i], rq__table_node, pub));
    for (size_t i = 0; i < now->namespace_count; i++)
        rq__namespace_node_unref(RQ_CONTAINER_OF(now->namespaces[i], rq__namespace_node, pub));
    free(now->slots);
    view_free(now);
    /* Without readers one collection is enough, unless another thread is collecting right now. */
    while (atomic_load_explicit(&v->retired, memory_order_acquire) > 0) {
        rq_epoch_collect(v->epoch);
        sched_yield();
    }
    pthread_mutex_destroy(&v->edit_lock);
}

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
    unref_tables(&e->added_tables);
    unref_namespaces(&e->added_namespaces);
    free(e->dropped_tables.items);
    free(e->dropped_namespaces.items);
    edit_end(e);
}

/* --- edits: the hash -------------------------------------------------------------------------- */

/* For `live` regions the table is at most half full; from 5/8 on it is copied. So it is copied once
 * for at least as many new regions as an eighth of its slots. */
static bool needs_rehash(size_t used, size_t mask)
{
    return used > (mask + 1) / 8 * 5;
}

/* A copy of the current slots with room for more, without removed ones. NULL: out of memory. */
static rq__view_slot *slots_copy(const rq__view *v, size_t live, size_t *ret_mask)
{
    size_t count = SLOTS_MIN;
    while (count < live * 2)
        count *= 2;
    rq__view_slot *slots = calloc(count, sizeof *slots);
    if (slots == NULL) return NULL;
    for (size_t from = 0; from <= v->slot_mask; from++) {
        const rq_catalog_region *r =
            atomic_load_explicit(&v->slots[from].region, memory_order_relaxed);
        if (r == NULL || r == &removed_region) continue;
        uint64_t hash = atomic_load_explicit(&v->slots[from].hash, memory_order_relaxed);
        size_t i = hash & (count - 1);
        while (atomic_load_explicit(&slots[i].region, memory_order_relaxed) != NULL)
            i = (i + 1) & (count - 1);
        slot_set(&slots[i], hash, r);
    }
    *ret_mask = count - 1;
    return slots;
}

static void slot_put(rq__views *views, const rq__view *v, const rq_catalog_region *r)
{
    rq_slice name = rq_slice_cstr(r->info->encoded);
    rq__view_slot *slot = slot_find(v->slots, v->slot_mask, name);
    if (slot != NULL) {
        atomic_store_explicit(&slot->region, r, memory_order_release);
        return;
    }
    uint64_t hash = name_hash((const char *)name.ptr, name.len);
    size_t i = hash & v->slot_mask;
    const rq_catalog_region *there;
    while ((there = atomic_load_explicit(&v->slots[i].region, memory_order_relaxed)) != NULL &&
           there != &removed_region)
        i = (i + 1) & v->slot_mask;
    slot_set(&v->slots[i], hash, r);
    views->slots_used += there == NULL;
    views->slots_live++;
}

/* Unless the name now belongs to another node. */
static void slot_remove(rq__views *views, const rq__view *v, const rq_catalog_region *r)
{
    rq__view_slot *slot = slot_find(v->slots, v->slot_mask, rq_slice_cstr(r->info->encoded));
    if (slot == NULL || atomic_load_explicit(&slot->region, memory_order_relaxed) != r) return;
    atomic_store_explicit(&slot->region, &removed_region, memory_order_release);
    views->slots_live--;
}

/* The slots of the next view: those of the old one, or a copy with room for the edit's regions. */
static rq_err take_slots(rq__edit *e, const rq__view *old, rq__view *v)
{
    rq__views *views = e->views;
    v->slots = old->slots;
    v->slot_mask = old->slot_mask;
    if (!needs_rehash(views->slots_used + e->put.count, old->slot_mask)) return RQ_OK;
    /* Replaced regions count in both numbers; they have slots already. */
    size_t added = 0;
    for (size_t i = 0; i < e->put.count; i++) {
        const rq_catalog_region *r = e->put.items[i];
        added += slot_find(old->slots, old->slot_mask, rq_slice_cstr(r->info->encoded)) == NULL;
    }
    if (!needs_rehash(views->slots_used + added, old->slot_mask)) return RQ_OK;
    v->slots = slots_copy(old, views->slots_live + added, &v->slot_mask);
    if (v->slots == NULL) return RQ_E_NO_MEMORY;
    views->slots_used = views->slots_live;
    return RQ_OK;
}

/* --- edits: the commit ------------------------------------------------------------------------ */

/* All regions of the edit are put before any is removed: a name that moves from one node to another
 * is found at all times. */
static void change_slots(const rq__edit *e, const rq__view *v)
{
    for (size_t i = 0; i < e->put.count; i++)
        slot_put(e->views, v, e->put.items[i]);
    for (size_t i = 0; i < e->removed.count; i++)
        slot_remove(e->views, v, e->removed.items[i]);
}

rq_err rq__edit_commit(rq__edit *e)
{
    rq__views *views = e->views;
    rq__view *old = atomic_load(&views->now);
    rq__view *v = calloc(1, sizeof *v);
    const rq_catalog_table **tables = calloc(e->table_count + 1, sizeof *tables);
    const rq_namespace **namespaces = calloc(e->namespace_count + 1, sizeof *namespaces);
    if (v == NULL || tables == NULL || namespaces == NULL || take_slots(e, old, v) != RQ_OK) {
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
    change_slots(e, v);
    old->old_tables = e->dropped_tables;
    old->old_namespaces = e->dropped_namespaces;
    if (v->slots != old->slots) old->old_slots = old->slots;
    free(e->added_tables.items); /* the references are the view's now */
    free(e->added_namespaces.items);
    atomic_store_explicit(&views->now, v, memory_order_release);
    atomic_fetch_add_explicit(&views->retired, 1, memory_order_relaxed);
    rq_epoch_retire(views->epoch, &old->retired, view_release);
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
        int c = compare_names(s->ns, s->qualifier, ns, qualifier);
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
    if (push(&e->added_tables, t) != RQ_OK) {
        rq__table_node_unref(t);
        return RQ_E_NO_MEMORY;
    }
    if (found) {
        RQ_TRY(push(&e->dropped_tables, e->tables[i]));
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
        RQ_TRY(push(l, &rq__region_tree_at(t, i)->pub));
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
            RQ_TRY(push(&e->removed, &n->pub));
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
        RQ_TRY(make_replicas(schema, t->regions, &replicas));
    rq__table_node *n = table_of(schema, state, rq__region_tree_ref(t->regions), replicas);
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
        /* Each removal makes the next replica the first; otherwise they are added one behind
         * another. */
        size_t at = i * t->others + (change == tree_remove ? 0 : k);
        rq__region_node *replica = n == NULL ? NULL : replica_node(&n->pub, (int32_t)k + 1);
        if (n != NULL && replica == NULL) return RQ_E_NO_MEMORY;
        rq_err rc = change_tree(&t->replicas, change, at, replica);
        if (rc == RQ_OK && replica != NULL) rc = push(&t->edit->put, &replica->pub);
        rq__region_node_unref(replica);
        RQ_TRY(rc);
    }
    return n == NULL ? RQ_OK : push(&t->edit->put, &n->pub);
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
    rq__table_node *n = table_of(from->pub.schema, state, t->regions, t->replicas);
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
    RQ_TRY(push(&t->edit->removed, &rq__region_tree_at(t->regions, i)->pub));
    for (size_t k = 0; k < t->others; k++)
        RQ_TRY(push(&t->edit->removed, &rq__region_tree_at(t->replicas, i * t->others + k)->pub));
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
    RQ_TRY(push(&e->dropped_tables, e->tables[i]));
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
    if (push(&e->added_namespaces, n) != RQ_OK) {
        rq__namespace_node_unref(n);
        return RQ_E_NO_MEMORY;
    }
    size_t i = edit_namespace_at(e, n->pub.name);
    if (i < e->namespace_count && rq_slice_eq(e->namespaces[i]->pub.name, n->pub.name)) {
        RQ_TRY(push(&e->dropped_namespaces, e->namespaces[i]));
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
    RQ_TRY(push(&e->dropped_namespaces, e->namespaces[i]));
    e->namespace_count--;
    memmove(e->namespaces + i, e->namespaces + i + 1,
            (e->namespace_count - i) * sizeof *e->namespaces);
    return RQ_OK;
}
