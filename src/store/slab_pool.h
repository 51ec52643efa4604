/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs of memstore segments: 2 MiB of memory, aligned so that each can be one huge page, given
 * back and taken again. Without the pool every flush would return its memory to the kernel and
 * every slab after it would be zeroed again, 0.2 ms at a time, on an event loop. For the same
 * reason the pool keeps two slabs ready that the background has fetched and touched, once any is in
 * use.
 *
 * It also knows what all living segments hold, those too that were flushed and wait for a reader to
 * end: that, and not what the stores' versions name, is memory in use.
 *
 * Any thread. What is taken counts as the segment's; a slab is kept only while taken and kept ones
 * are no more than `slabs_max` together, and given up by trim.
 */
#ifndef RQ_STORE_SLAB_POOL_H
#define RQ_STORE_SLAB_POOL_H

#include "base/huge.h"

#define RQ_SLAB_BYTES RQ_HUGE_BYTES

typedef struct rq_slab_pool rq_slab_pool;

RQ_NODISCARD
rq_err rq_slab_pool_new(rq_executor *executor, size_t slabs_max, rq_slab_pool **ret);
/* Waits for the background. REQUIRES: everything taken was given back. NULL is fine. */
void rq_slab_pool_free(rq_slab_pool *p);
/* NULL when memory is out. The bytes are not zeroed. `p` may be NULL: straight from the kernel. */
void *rq_slab_take(rq_slab_pool *p);
void rq_slab_give(rq_slab_pool *p, void *slab);
/* A segment of the pool grew or shrank by so much, whatever it is made of. NULL is fine. */
void rq_slab_pool_count(rq_slab_pool *p, int64_t bytes);
/* What is cut from slabs for those who need less (store/slab_pieces.h). */
struct rq_slab_pieces *rq_slab_pool_pieces(const rq_slab_pool *p);
/* The sum of what was counted. */
uint64_t rq_slab_pool_bytes(const rq_slab_pool *p);
/* Gives the share'th part of what was not used since the last call back to the system. */
void rq_slab_pool_trim(rq_slab_pool *p, unsigned share);

#endif
