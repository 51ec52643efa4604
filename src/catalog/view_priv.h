/* SPDX-License-Identifier: Apache-2.0 */
/* What the nodes of a view, its lookups and its edits share. */
#ifndef RQ_CATALOG_VIEW_PRIV_H
#define RQ_CATALOG_VIEW_PRIV_H

#include "catalog/view.h"

#include <stdlib.h>

/* --- nodes (view_nodes.c) --------------------------------------------------------------------- */

static inline const rq__table_node *rq__table_node_of(const rq_catalog_table *t)
{
    return RQ_CONTAINER_OF(t, rq__table_node, pub);
}

/* The node of one replica of a region. NULL: out of memory. */
rq__region_node *rq__replica_node_new(const rq_catalog_region *of, int32_t replica_id);
/* The nodes of all replicas of `regions`, as a tree; NULL if the table has none. */
RQ_NODISCARD
rq_err rq__replica_nodes_new(const rq_table_schema *schema, const rq__region_tree *regions,
                             rq__region_tree **ret);
/* Takes over the references on the trees. NULL: out of memory. */
rq__table_node *rq__table_node_of_trees(rq_table_schema *schema, rq_table_state state,
                                        rq__region_tree *regions, rq__region_tree *replicas);
/* The order of tables. */
int rq__table_names_compare(rq_slice ns_a, rq_slice q_a, rq_slice ns_b, rq_slice q_b);

/* --- lists of pointers ------------------------------------------------------------------------ */

static inline rq_err rq__pointers_push(rq__pointers *l, const void *item)
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

/* Release the references that a list holds, and the list. */
void rq__pointers_unref_tables(rq__pointers *l);
void rq__pointers_unref_namespaces(rq__pointers *l);

/* --- the hash of regions by encoded name ------------------------------------------------------ */

#define RQ__VIEW_SLOTS_MIN 16

/* Replaces a removed region in its slot: lookups continue behind it. */
extern const rq_catalog_region rq__removed_region;

/* Encoded names are hex digits of an MD5, so any eight of them are well distributed; for short ones
 * (meta's decimal number) all are used. */
static inline uint64_t rq__view_hash(const char *encoded, size_t len)
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

static inline bool rq__region_is_named(const rq_catalog_region *r, rq_slice encoded)
{
    const char *name = r->info->encoded;
    return memcmp(name, encoded.ptr, encoded.len) == 0 && name[encoded.len] == '\0';
}

/* The slot of that name; NULL: none. */
static inline rq__view_slot *rq__view_slot_find(rq__view_slot *slots, size_t mask, rq_slice encoded)
{
    uint64_t hash = rq__view_hash((const char *)encoded.ptr, encoded.len);
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        const rq_catalog_region *r = atomic_load_explicit(&slots[i].region, memory_order_acquire);
        if (r == NULL) return NULL;
        if (atomic_load_explicit(&slots[i].hash, memory_order_relaxed) != hash) continue;
        if (RQ_LIKELY(r != &rq__removed_region) && rq__region_is_named(r, encoded))
            return &slots[i];
    }
}

/* A reused slot gets its hash before its region. A reader in between may compare the region it has
 * loaded with the other one's hash: then it skips the region, or compares its name and skips it.
 * Both regions are being added or removed, so both results are correct. */
static inline void rq__view_slot_set(rq__view_slot *slot, uint64_t hash, const rq_catalog_region *r)
{
    atomic_store_explicit(&slot->hash, hash, memory_order_relaxed);
    atomic_store_explicit(&slot->region, r, memory_order_release);
}

/* Frees a view that no reader uses any more. */
void rq__view_release(rq_epoch_node *node);

#endif
