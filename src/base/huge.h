/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory in pieces of 2 MiB that can become huge pages, and a stock of such pieces that is filled
 * in the background. The first touch of a piece takes the kernel up to a millisecond, which an
 * event loop must not spend.
 */
#ifndef RQ_BASE_HUGE_H
#define RQ_BASE_HUGE_H

#include "base/executor.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define RQ_HUGE_BYTES ((size_t)2 << 20)

/* Maps RQ_HUGE_BYTES zero bytes, aligned to RQ_HUGE_BYTES, on small pages. NULL when memory is
 * exhausted. */
void *rq_huge_map(void);
void rq_huge_unmap(void *p);
/* Asks the kernel to use one huge page. Advice: without it only speed is lost. */
void rq_huge_advise(void *p);

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
