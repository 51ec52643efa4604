/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory in pieces of 2 MiB that can become huge pages, and what allocators on top of them share: a
 * stock of such pieces that is filled in the background, an index of pieces by address, and the
 * number of pieces that a trim may return. The first touch of a piece takes the kernel up to a
 * millisecond, which an event loop must not spend.
 *
 * The allocators: hfile/slab.h (the block cache: blocks of any size live for hours, so first fit in
 * the lowest chunk), store/slab_pool.h (memstores: whole pieces, freed together), and
 * store/slab_pieces.h (small memstores: powers of two, merged when freed).
 */
#ifndef RQ_BASE_HUGE_H
#define RQ_BASE_HUGE_H

#include "base/executor.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RQ_HUGE_BYTES ((size_t)2 << 20)

/* Maps RQ_HUGE_BYTES zero bytes, aligned to RQ_HUGE_BYTES, on small pages. NULL when memory is
 * exhausted. */
void *rq_huge_map(void);
void rq_huge_unmap(void *p);
/* Asks the kernel to use one huge page. Advice: without it only speed is lost. */
void rq_huge_advise(void *p);

/* What an allocator knows of one piece; embedded in its own record of the piece. */
typedef struct rq_huge_part {
    uint8_t *base;
} rq_huge_part;

/* An allocator's pieces, ascending by address. Empty: {0}. The caller serialises the calls. */
typedef struct rq_huge_index {
    rq_huge_part **parts;
    size_t count, cap;
} rq_huge_index;

/* The place of the piece with this base, or where it would be inserted. */
size_t rq_huge_index_find(const rq_huge_index *x, const uint8_t *base);
/* The part that `p`, an address inside a piece of the index, belongs to; *ret_at is its place. */
rq_huge_part *rq_huge_index_of(const rq_huge_index *x, const void *p, size_t *ret_at);
/* Makes room for one more. False: out of memory. */
bool rq_huge_index_reserve(rq_huge_index *x);
/* Inserts and returns the place. REQUIRES: room. */
size_t rq_huge_index_insert(rq_huge_index *x, rq_huge_part *part);
void rq_huge_index_remove(rq_huge_index *x, size_t at);
void rq_huge_index_clear(rq_huge_index *x); /* frees the array, not the parts */

/* The number of unused pieces, and its minimum since the last trim: that many were not needed
 * meanwhile. The caller serialises the calls. */
typedef struct rq_huge_unused {
    size_t count, lowest;
} rq_huge_unused;

static inline void rq_huge_unused_take(rq_huge_unused *u)
{
    if (--u->count < u->lowest) u->lowest = u->count;
}

/* How many pieces a trim of 1/share returns. */
static inline size_t rq_huge_unused_excess(const rq_huge_unused *u, unsigned share)
{
    return (u->lowest + share - 1) / share;
}

/* After a trim. */
static inline void rq_huge_unused_restart(rq_huge_unused *u)
{
    u->lowest = u->count;
}

/*
 * Fills a stock in the background. Embedded in its owner, which keeps the pieces. All fields except
 * `refilling` and `refilled` are set before the first call and do not change. The executor must
 * outlive it.
 */
typedef struct rq_huge_stock {
    rq_executor *executor; /* NULL: the stock is never filled */
    pthread_mutex_t *lock; /* the owner's */
    /* Called under the lock. is_short: whether the stock needs more pieces. keep: adds a piece;
     * false: there is no room, and the piece is unmapped. */
    bool (*is_short)(const struct rq_huge_stock *s);
    bool (*keep)(struct rq_huge_stock *s, void *piece);
    rq_task task;
    bool refilling RQ_GUARDED_BY(lock);
    rq_latch *refilled RQ_GUARDED_BY(lock); /* rq_huge_stock_stop waits on it */
} rq_huge_stock;

/* REQUIRES: the lock. True: the caller must call rq_huge_stock_refill after releasing the lock. */
bool rq_huge_stock_claim(rq_huge_stock *s);
/* Submits a task to RQ_POOL_FLUSH that maps, advises and touches pieces until the stock is full. */
void rq_huge_stock_refill(rq_huge_stock *s);
/* Stops a running refill and waits for its end. REQUIRES: rq_huge_stock_claim is not called any
 * more. */
void rq_huge_stock_stop(rq_huge_stock *s);

#endif
