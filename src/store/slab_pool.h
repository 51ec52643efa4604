/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool of slabs for memstore segments: 2 MiB each, aligned so that a slab can be one huge page,
 * and reused. Without the pool every flush would return its memory to the kernel, and every slab
 * after it would be zeroed again, 0.2 ms at a time, on an event loop. For the same reason the pool
 * keeps two prepared slabs, touched in the background, once any is in use.
 *
 * It also counts the memory of all live segments, including flushed ones that a reader still uses:
 * that is the memory really in use, not only what the stores' versions contain.
 *
 * Any thread. A freed slab is kept only while used and kept slabs together are at most `slabs_max`;
 * trim frees kept slabs.
 */
#ifndef RQ_STORE_SLAB_POOL_H
#define RQ_STORE_SLAB_POOL_H

#include "base/huge.h"

#define RQ_SLAB_BYTES RQ_HUGE_BYTES

typedef struct rq_slab_pool rq_slab_pool;

RQ_NODISCARD
rq_err rq_slab_pool_new(rq_executor *executor, size_t slabs_max, rq_slab_pool **ret);
/* Waits for the background task. REQUIRES: all slabs were given back. NULL is allowed. */
void rq_slab_pool_free(rq_slab_pool *p);
/* Takes a slab; not zeroed. NULL when memory is exhausted. `p` NULL: maps memory from the
 * kernel. */
void *rq__slab_pool_take(rq_slab_pool *p);
void rq__slab_pool_give(rq_slab_pool *p, void *slab);
/* Counts that a segment has grown or shrunk by `bytes`, from slabs or other memory. NULL is
 * allowed. */
void rq__slab_pool_count(rq_slab_pool *p, int64_t bytes);
/* The allocator of pieces smaller than a slab (store/slab_pieces.h). */
struct rq_slab_pieces *rq__slab_pool_pieces(const rq_slab_pool *p);
/* The sum of the counted bytes. */
uint64_t rq_slab_pool_bytes(const rq_slab_pool *p);
/* Returns to the system 1/share of the slabs that were not used since the last call. */
void rq_slab_pool_trim(rq_slab_pool *p, unsigned share);

#endif
