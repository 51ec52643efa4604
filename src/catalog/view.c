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
    atomic_init(&n->unsplittable_told, false);
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
    const rq_catalog_region *x = *(const rq_catalog_region *const *)a;
    const rq_catalog_region *y = *(const rq_catalog_region *const *)b;
    int c = rq_slice_compare(x->info->start_key, y->info->start_key);
    if (c != 0) return c;
    return (x->info->region_id > y->info->region_id) - (x->info->region_id < y->info->region_id);
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

rq__table_node *rq__table_node_new(rq_table_schema *schema, rq_table_state state,
                                   rq__region_node *const *regions, size_t region_count)
{
    size_t copies = (size_t)rq_catalog_replication(schema);
    rq__table_node *n = malloc(sizeof *n + region_count * copies * sizeof(rq_catalog_region *));
    if (n == NULL) return NULL;
    const rq_catalog_region **list = (const rq_catalog_region **)(n + 1);
    const rq_catalog_region **replicas = list + region_count;
    for (size_t i = 0; i < region_count; i++)
        list[i] = &rq__region_node_ref(regions[i])->pub;
    if (region_count > 1) qsort(list, region_count, sizeof *list, region_order);
    n->pub = (rq_catalog_table){
        .schema = rq_table_schema_ref(schema),
        .state = state,
        .regions = list,
        .region_count = region_count,
        .replicas = replicas,
    };
    atomic_init(&n->refs, 1);
    for (size_t i = 0; i < region_count; i++) {
        for (size_t id = 1; id < copies; id++) {
            rq__region_node *r = replica_node(list[i], (int32_t)id);
            if (r == NULL) {
                rq__table_node_unref(n);
                return NULL;
            }
            replicas[n->pub.replica_count++] = &r->pub;
        }
    }
    return n;
}

rq__table_node *rq__table_node_ref(rq__table_node *n)
{
    atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
    return n;
}

void rq__table_node_unref(rq__table_node *n)
{
    if (n == NULL || atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1) return;
    for (size_t i = 0; i < n->pub.region_count; i++)
        rq__region_node_unref(rq__table_region(n, i));
    for (size_t i = 0; i < n->pub.replica_count; i++)
        rq__region_node_unref(RQ_CONTAINER_OF(n->pub.replicas[i], rq__region_node, pub));
    rq_table_schema_unref(n->pub.schema);
    free(n);
}

static int compare_names(rq_slice ns_a, rq_slice q_a, rq_slice ns_b, rq_slice q_b)
{
    /* As the joined "namespace:qualifier" would compare (HBASE: FSTableDescriptors.getAll). */
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

/* --- views ------------------------------------------------------------------------------------ */

static rq__table_node *table_node_of(const rq_catalog_table *t)
{
    return RQ_CONTAINER_OF(t, rq__table_node, pub);
}

static rq__namespace_node *namespace_node_of(const rq_namespace *n)
{
    return RQ_CONTAINER_OF(n, rq__namespace_node, pub);
}

static void view_free(rq__view *v)
{
    if (v == NULL) return;
    for (size_t i = 0; i < v->table_count; i++)
        rq__table_node_unref(table_node_of(v->tables[i]));
    for (size_t i = 0; i < v->namespace_count; i++)
        rq__namespace_node_unref(namespace_node_of(v->namespaces[i]));
    free(v->tables);
    free(v->namespaces);
    free(v->online);
    free(v->slots);
    free(v);
}

static void view_release(rq_epoch_node *node)
{
    rq__view *v = RQ_CONTAINER_OF(node, rq__view, retired);
    rq__views *owner = v->owner;
    view_free(v);
    atomic_fetch_sub_explicit(&owner->retired, 1, memory_order_release);
}

/* Encoded names are hex digits of an MD5, so any eight of them are well spread; short ones (meta's
 * decimal number) take what there is. */
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

static void slot_put(rq__view *v, const rq_catalog_region *r)
{
    const char *name = r->info->encoded;
    uint64_t hash = name_hash(name, strlen(name));
    size_t i = hash & v->slot_mask;
    while (v->slots[i].region != NULL)
        i = (i + 1) & v->slot_mask;
    v->slots[i] = (rq__view_slot){hash, r};
}

const rq_catalog_region *rq__view_region(const rq__view *v, rq_slice encoded)
{
    if (encoded.len == 0 || encoded.len > RQ_ENCODED_NAME_LEN) return NULL;
    uint64_t hash = name_hash((const char *)encoded.ptr, encoded.len);
    for (size_t i = hash & v->slot_mask; v->slots[i].region != NULL; i = (i + 1) & v->slot_mask) {
        if (v->slots[i].hash != hash) continue;
        const char *name = v->slots[i].region->info->encoded;
        if (memcmp(name, encoded.ptr, encoded.len) == 0 && name[encoded.len] == '\0')
            return v->slots[i].region;
    }
    return NULL;
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
    size_t lo = 0, hi = t->region_count; /* the last region whose start key is not behind the row */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (rq_slice_compare(t->regions[mid]->info->start_key, row) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (size_t i = lo; i-- > 0;) {
        const rq_region_info *info = t->regions[i]->info;
        if (rq_region_info_contains(info, row)) return t->regions[i];
        if (!rq_slice_eq(info->start_key, t->regions[lo - 1]->info->start_key)) break;
    }
    return NULL;
}

static rq_err view_index(rq__view *v)
{
    size_t regions = 0, online = 0;
    for (size_t t = 0; t < v->table_count; t++) {
        regions += v->tables[t]->region_count + v->tables[t]->replica_count;
        for (size_t r = 0; r < v->tables[t]->region_count; r++)
            online += v->tables[t]->regions[r]->region != NULL;
    }
    size_t slots = 16;
    while (slots < regions * 2)
        slots *= 2;
    v->slots = calloc(slots, sizeof *v->slots);
    v->online = calloc(online + 1, sizeof *v->online);
    if (v->slots == NULL || v->online == NULL) return RQ_E_NO_MEMORY;
    v->slot_mask = slots - 1;
    for (int meta = 1; meta >= 0; meta--) { /* meta first, as HBase lists a server's regions */
        for (size_t t = 0; t < v->table_count; t++) {
            const rq_catalog_table *table = v->tables[t];
            if (table->schema->is_meta != (meta == 1)) continue;
            for (size_t r = 0; r < table->region_count; r++) {
                slot_put(v, table->regions[r]);
                if (table->regions[r]->region != NULL)
                    v->online[v->online_count++] = table->regions[r];
            }
            for (size_t r = 0; r < table->replica_count; r++)
                slot_put(v, table->replicas[r]);
        }
    }
    return RQ_OK;
}

rq_err rq__views_init(rq__views *views, rq_epoch *epoch)
{
    *views = (rq__views){.epoch = epoch};
    rq__view *v = calloc(1, sizeof *v);
    if (v == NULL || view_index(v) != RQ_OK) {
        view_free(v);
        return RQ_E_NO_MEMORY;
    }
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
    view_free(now);
    /* Without readers one collection is enough, unless somebody else is at it right now. */
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
    e->tables = calloc(e->table_cap, sizeof *e->tables);
    e->namespaces = calloc(e->namespace_cap, sizeof *e->namespaces);
    if (e->tables == NULL || e->namespaces == NULL) {
        rq__edit_abort(e);
        return RQ_E_NO_MEMORY;
    }
    for (size_t i = 0; i < v->table_count; i++)
        e->tables[e->table_count++] = rq__table_node_ref(table_node_of(v->tables[i]));
    for (size_t i = 0; i < v->namespace_count; i++)
        e->namespaces[e->namespace_count++] =
            rq__namespace_node_ref(namespace_node_of(v->namespaces[i]));
    return RQ_OK;
}

void rq__edit_abort(rq__edit *e)
{
    for (size_t i = 0; i < e->table_count; i++)
        rq__table_node_unref(e->tables[i]);
    for (size_t i = 0; i < e->namespace_count; i++)
        rq__namespace_node_unref(e->namespaces[i]);
    free(e->tables);
    free(e->namespaces);
    pthread_mutex_unlock(&e->views->edit_lock);
}

rq_err rq__edit_commit(rq__edit *e)
{
    rq__views *views = e->views;
    rq__view *old = atomic_load(&views->now);
    rq__view *v = calloc(1, sizeof *v);
    if (v == NULL) goto no_memory;
    v->owner = views;
    v->number = old->number + 1;
    v->tables = calloc(e->table_count + 1, sizeof *v->tables);
    v->namespaces = calloc(e->namespace_count + 1, sizeof *v->namespaces);
    if (v->tables == NULL || v->namespaces == NULL) goto no_memory;
    for (size_t i = 0; i < e->table_count; i++)
        v->tables[v->table_count++] = &rq__table_node_ref(e->tables[i])->pub;
    for (size_t i = 0; i < e->namespace_count; i++)
        v->namespaces[v->namespace_count++] = &rq__namespace_node_ref(e->namespaces[i])->pub;
    if (view_index(v) != RQ_OK) goto no_memory;
    atomic_store_explicit(&views->now, v, memory_order_release);
    atomic_fetch_add_explicit(&views->retired, 1, memory_order_relaxed);
    rq_epoch_retire(views->epoch, &old->retired, view_release);
    if (views->changed != NULL) views->changed(views->changed_ctx);
    rq__edit_abort(e);
    rq__views_collect(views);
    return RQ_OK;
no_memory:
    view_free(v);
    rq__edit_abort(e);
    return RQ_E_NO_MEMORY;
}

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

rq_err rq__edit_put_table(rq__edit *e, rq__table_node *t)
{
    bool found;
    size_t i = edit_table_at(e, t->pub.schema->ns, t->pub.schema->qualifier, &found);
    if (found) {
        rq__table_node_unref(e->tables[i]);
        e->tables[i] = t;
        return RQ_OK;
    }
    if (e->table_count == e->table_cap) {
        rq__table_node **more = realloc(e->tables, e->table_cap * 2 * sizeof *more);
        if (more == NULL) {
            rq__table_node_unref(t);
            return RQ_E_NO_MEMORY;
        }
        e->tables = more;
        e->table_cap *= 2;
    }
    memmove(e->tables + i + 1, e->tables + i, (e->table_count - i) * sizeof *e->tables);
    e->tables[i] = t;
    e->table_count++;
    return RQ_OK;
}

void rq__edit_remove_table(rq__edit *e, rq_slice ns, rq_slice qualifier)
{
    bool found;
    size_t i = edit_table_at(e, ns, qualifier, &found);
    if (!found) return;
    rq__table_node_unref(e->tables[i]);
    e->table_count--;
    memmove(e->tables + i, e->tables + i + 1, (e->table_count - i) * sizeof *e->tables);
}

/* Of the first that is not before the name. */
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
    size_t i = edit_namespace_at(e, n->pub.name);
    if (i < e->namespace_count && rq_slice_eq(e->namespaces[i]->pub.name, n->pub.name)) {
        rq__namespace_node_unref(e->namespaces[i]);
        e->namespaces[i] = n;
        return RQ_OK;
    }
    if (e->namespace_count == e->namespace_cap) {
        rq__namespace_node **more = realloc(e->namespaces, e->namespace_cap * 2 * sizeof *more);
        if (more == NULL) {
            rq__namespace_node_unref(n);
            return RQ_E_NO_MEMORY;
        }
        e->namespaces = more;
        e->namespace_cap *= 2;
    }
    memmove(e->namespaces + i + 1, e->namespaces + i,
            (e->namespace_count - i) * sizeof *e->namespaces);
    e->namespaces[i] = n;
    e->namespace_count++;
    return RQ_OK;
}

void rq__edit_remove_namespace(rq__edit *e, rq_slice name)
{
    for (size_t i = 0; i < e->namespace_count; i++) {
        if (!rq_slice_eq(e->namespaces[i]->pub.name, name)) continue;
        rq__namespace_node_unref(e->namespaces[i]);
        e->namespace_count--;
        memmove(e->namespaces + i, e->namespaces + i + 1,
                (e->namespace_count - i) * sizeof *e->namespaces);
        return;
    }
}
