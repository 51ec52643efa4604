/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions by their encoded names, as requests look them up: a hash that is read without a lock.
 *
 * One writer at a time changes slots in place while readers look. A region replaces another one of the same
 * name by a single atomic store, so a name that exists before and after a change is found at all times. The
 * writer owns the regions: it frees one only after every reader that could have found it has left its read
 * section. In a standalone server the writer is the catalog, whose views have these regions.
 */
#ifndef RQ_HOST_NAMES_H
#define RQ_HOST_NAMES_H

#include "base/epoch.h"
#include "host/server_name.h"
#include "region/region.h"

#include <stdatomic.h>
#include <string.h>

/* HBASE: RegionState.State; as meta's info:state names them. */
typedef enum rq_region_state {
    RQ_REGION_OFFLINE,
    RQ_REGION_OPENING,
    RQ_REGION_OPEN,
    RQ_REGION_CLOSING,
    RQ_REGION_CLOSED,
    RQ_REGION_FAILED_OPEN, /* closed until an operator acts; `failure` has the reason */
    RQ_REGION_SPLITTING,
    RQ_REGION_SPLIT, /* never in a view: its daughters replace it there */
    RQ_REGION_MERGING,
} rq_region_state;
#define RQ_REGION_STATES (RQ_REGION_MERGING + 1)

/* A region under one of its names: its own, or a replica's. Immutable. */
typedef struct rq_host_region {
    const rq_region_info *info;
    rq_region *region;            /* open here, else NULL */
    const rq_server_name *server; /* where it is open, here or elsewhere; else NULL */
    rq_region_state state;
    const char *failure;
    int64_t open_seqnum; /* meta's info:seqnumDuringOpen */
    int64_t changed_ms;  /* when the state was entered */
} rq_host_region;

/* The hash is next to the pointer, so that a lookup can skip slots of other regions without a cache
 * miss for each region. */
typedef struct rq__name_slot {
    _Atomic uint64_t hash;
    _Atomic(const rq_host_region *) region; /* NULL: empty */
} rq__name_slot;

typedef struct rq__name_table {
    rq_epoch_node retired;
    size_t mask;
    rq__name_slot slots[]; /* open addressing */
} rq__name_table;

typedef struct rq_region_names {
    rq_epoch *epoch;
    _Atomic(rq__name_table *) now;
    size_t used; /* the writer's: non-empty slots, including removed ones */
    size_t live; /* the writer's: slots with a region */
} rq_region_names;

RQ_NODISCARD
rq_err rq__region_names_init(rq_region_names *n, rq_epoch *epoch);
/* REQUIRES: no reader. */
void rq__region_names_clear(rq_region_names *n);

/* Forgets all regions. REQUIRES: no reader. */
void rq_region_names_forget(rq_region_names *n);
/* Makes room in the hash, so that rq_region_names_put cannot fail for these regions. */
RQ_NODISCARD
rq_err rq_region_names_reserve(rq_region_names *n, const rq_host_region *const *list, size_t count);
/* Enters a region, or replaces the one of the same name. REQUIRES: room. */
void rq_region_names_put(rq_region_names *n, const rq_host_region *r);
/* Removes the region, unless its name now belongs to another region. */
void rq_region_names_remove(rq_region_names *n, const rq_host_region *r);

/* --- lookups: read section -------------------------------------------------------------------- */

/* Calls `visit` for each region under each of its names, in no order, until it returns an error, which is returned. A region
 * that is entered, replaced or removed meanwhile may be left out. */
RQ_NODISCARD
rq_err rq_region_names_each(const rq_region_names *n,
                            rq_err (*visit)(void *ctx, const rq_host_region *r), void *ctx);

/* Replaces a removed region in its slot: lookups continue behind it. */
extern const rq_host_region rq__removed_region;

/* Encoded names are hex digits of an MD5, so any eight of them are well distributed; for short ones
 * (meta's decimal number) all are used. */
static inline uint64_t rq__name_hash(const char *encoded, size_t len)
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

static inline bool rq__region_is_named(const rq_host_region *r, rq_slice encoded)
{
    const char *name = r->info->encoded;
    return memcmp(name, encoded.ptr, encoded.len) == 0 && name[encoded.len] == '\0';
}

/* NULL: there is none of that name. */
static inline const rq_host_region *rq_region_names_find(const rq_region_names *n, rq_slice encoded)
{
    if (encoded.len == 0 || encoded.len > RQ_ENCODED_NAME_LEN) return NULL;
    const rq__name_table *t = atomic_load_explicit(&n->now, memory_order_acquire);
    uint64_t hash = rq__name_hash((const char *)encoded.ptr, encoded.len);
    for (size_t i = hash & t->mask;; i = (i + 1) & t->mask) {
        const rq_host_region *r = atomic_load_explicit(&t->slots[i].region, memory_order_acquire);
        if (r == NULL) return NULL;
        if (atomic_load_explicit(&t->slots[i].hash, memory_order_relaxed) != hash) continue;
        if (RQ_LIKELY(r != &rq__removed_region) && rq__region_is_named(r, encoded)) return r;
    }
}

#endif
