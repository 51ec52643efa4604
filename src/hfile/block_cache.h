/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block cache: one per server, shared by all its readers. Blocks are kept decompressed and
 * checked, keyed by (file number, offset).
 *
 * S3-FIFO per shard (a small probation queue, a main queue, a ghost list of what left probation):
 * a scan passes through probation without touching what is used. Index and bloom blocks and those
 * of IN_MEMORY families enter the main queue at once and survive more rounds.
 *
 * Memory: every block is charged for what it occupies, its sidecar included; the sum never exceeds
 * the capacity. A block somebody still holds when it is evicted is counted as pinned until its last
 * reference goes. Any thread; a shard's lock is held for a hash lookup or an eviction step.
 */
#ifndef RQ_HFILE_BLOCK_CACHE_H
#define RQ_HFILE_BLOCK_CACHE_H

#include "base/err.h"
#include "hfile/format.h"

typedef struct rq_block_cache rq_block_cache;

typedef struct rq_block_cache_stats {
    uint64_t hits[RQ_BLOCK_KIND_COUNT];
    uint64_t misses[RQ_BLOCK_KIND_COUNT];
    uint64_t inserted[RQ_BLOCK_KIND_COUNT];
    uint64_t evicted;
    uint64_t evicted_by_file;
    uint64_t blocks;
    uint64_t used_bytes;   /* ≤ capacity */
    uint64_t pinned_bytes; /* evicted, but still referenced */
    uint64_t mapped_bytes; /* of the cache's own pages: used, pinned and free in between */
    uint64_t capacity_bytes;
} rq_block_cache_stats;

RQ_NODISCARD
rq_err rq_block_cache_new(uint64_t capacity_bytes, rq_block_cache **ret);
/* No reader may use it any more. */
void rq_block_cache_free(rq_block_cache *c);
/* Shrinking evicts at once. */
void rq_block_cache_resize(rq_block_cache *c, uint64_t capacity_bytes);
void rq_block_cache_get_stats(rq_block_cache *c, rq_block_cache_stats *ret);

#endif
