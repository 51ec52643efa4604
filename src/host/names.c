/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of regions by encoded name; see names.h. */
#include "host/names.h"

#include <stdlib.h>

#define SLOTS_MIN 16

const rq_host_region rq__removed_region;

static rq__name_table *table_new(size_t count)
{
    rq__name_table *t = calloc(1, sizeof *t + count * sizeof t->slots[0]);
    if (t != NULL) t->mask = count - 1;
    return t;
}

static void table_release(rq_epoch_node *node)
{
    free(RQ_CONTAINER_OF(node, rq__name_table, retired));
}

rq_err rq__region_names_init(rq_region_names *n, rq_epoch *epoch)
{
    *n = (rq_region_names){.epoch = epoch};
    rq__name_table *t = table_new(SLOTS_MIN);
    if (t == NULL) return RQ_E_NO_MEMORY;
    atomic_init(&n->now, t);
    return RQ_OK;
}

void rq__region_names_clear(rq_region_names *n)
{
    free(atomic_load(&n->now));
    atomic_store(&n->now, NULL);
}

/* A reused slot gets its hash before its region. In between a reader may see the hash of one region
 * and the pointer of the other one. Then it skips the slot, at the latest because the name differs.
 * The removal of one region and the addition of the other one both overlap with this lookup, so it
 * may miss either. */
static void slot_set(rq__name_slot *slot, uint64_t hash, const rq_host_region *r)
{
    atomic_store_explicit(&slot->hash, hash, memory_order_relaxed);
    atomic_store_explicit(&slot->region, r, memory_order_release);
}

void rq_region_names_forget(rq_region_names *n)
{
    rq__name_table *t = atomic_load_explicit(&n->now, memory_order_relaxed);
    for (size_t i = 0; i <= t->mask; i++)
        slot_set(&t->slots[i], 0, NULL);
    n->used = n->live = 0;
}

static rq__name_slot *slot_find(rq__name_table *t, rq_slice encoded)
{
    uint64_t hash = rq__name_hash((const char *)encoded.ptr, encoded.len);
    for (size_t i = hash & t->mask;; i = (i + 1) & t->mask) {
        const rq_host_region *r = atomic_load_explicit(&t->slots[i].region, memory_order_relaxed);
        if (r == NULL) return NULL;
        if (atomic_load_explicit(&t->slots[i].hash, memory_order_relaxed) != hash) continue;
        if (r != &rq__removed_region && rq__region_is_named(r, encoded)) return &t->slots[i];
    }
}

/* --- room ------------------------------------------------------------------------------------- */

/* A table made for `live` regions is at most half full, and is copied when it is more than 5/8
 * full: so it takes new regions for at least an eighth of its slots before the next copy. */
static bool needs_rehash(size_t used, size_t mask)
{
    return used > (mask + 1) / 8 * 5;
}

/* A copy with room for more, without removed slots. NULL: out of memory. */
static rq__name_table *table_copy(const rq__name_table *from, size_t live)
{
    size_t count = SLOTS_MIN;
    while (count < live * 2)
        count *= 2;
    rq__name_table *t = table_new(count);
    if (t == NULL) return NULL;
    for (size_t k = 0; k <= from->mask; k++) {
        const rq_host_region *r =
            atomic_load_explicit(&from->slots[k].region, memory_order_relaxed);
        if (r == NULL || r == &rq__removed_region) continue;
        uint64_t hash = atomic_load_explicit(&from->slots[k].hash, memory_order_relaxed);
        size_t i = hash & t->mask;
        while (atomic_load_explicit(&t->slots[i].region, memory_order_relaxed) != NULL)
            i = (i + 1) & t->mask;
        slot_set(&t->slots[i], hash, r);
    }
    return t;
}

rq_err rq_region_names_reserve(rq_region_names *n, const rq_host_region *const *list, size_t count)
{
    rq__name_table *t = atomic_load_explicit(&n->now, memory_order_relaxed);
    if (!needs_rehash(n->used + count, t->mask)) return RQ_OK;
    size_t added = 0; /* the others have slots already */
    for (size_t i = 0; i < count; i++)
        added += slot_find(t, rq_slice_cstr(list[i]->info->encoded)) == NULL;
    if (!needs_rehash(n->used + added, t->mask)) return RQ_OK;
    rq__name_table *more = table_copy(t, n->live + added);
    if (more == NULL) return RQ_E_NO_MEMORY;
    n->used = n->live;
    atomic_store_explicit(&n->now, more, memory_order_release);
    rq_epoch_retire(n->epoch, &t->retired, table_release);
    return RQ_OK;
}

/* --- changes ---------------------------------------------------------------------------------- */

void rq_region_names_put(rq_region_names *n, const rq_host_region *r)
{
    rq__name_table *t = atomic_load_explicit(&n->now, memory_order_relaxed);
    rq_slice name = rq_slice_cstr(r->info->encoded);
    rq__name_slot *slot = slot_find(t, name);
    if (slot != NULL) {
        atomic_store_explicit(&slot->region, r, memory_order_release);
        return;
    }
    uint64_t hash = rq__name_hash((const char *)name.ptr, name.len);
    size_t i = hash & t->mask;
    const rq_host_region *there;
    while ((there = atomic_load_explicit(&t->slots[i].region, memory_order_relaxed)) != NULL &&
           there != &rq__removed_region)
        i = (i + 1) & t->mask;
    slot_set(&t->slots[i], hash, r);
    n->used += there == NULL;
    n->live++;
}

void rq_region_names_remove(rq_region_names *n, const rq_host_region *r)
{
    rq__name_slot *slot = slot_find(atomic_load_explicit(&n->now, memory_order_relaxed),
                                    rq_slice_cstr(r->info->encoded));
    if (slot == NULL || atomic_load_explicit(&slot->region, memory_order_relaxed) != r) return;
    atomic_store_explicit(&slot->region, &rq__removed_region, memory_order_release);
    n->live--;
}

/* --- lookups ---------------------------------------------------------------------------------- */

rq_err rq_region_names_each(const rq_region_names *n,
                            rq_err (*visit)(void *ctx, const rq_host_region *r), void *ctx)
{
    const rq__name_table *t = atomic_load_explicit(&n->now, memory_order_acquire);
    for (size_t i = 0; i <= t->mask; i++) {
        const rq_host_region *r = atomic_load_explicit(&t->slots[i].region, memory_order_acquire);
        if (r != NULL && r != &rq__removed_region) RQ_TRY(visit(ctx, r));
    }
    return RQ_OK;
}
