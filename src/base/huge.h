/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory by the 2 MiB, to become huge pages, and how a stock of it is kept ahead of need: what the
 * kernel does at the first touch takes up to a millisecond, which an event loop must not spend.
 */
#ifndef RQ_BASE_HUGE_H
#define RQ_BASE_HUGE_H

#include "base/executor.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define RQ_HUGE_BYTES ((size_t)2 << 20)

/* So many zero bytes at a multiple of their number, on small pages; NULL when memory is out. */
void *rq_huge_map(void);
void rq_huge_unmap(void *p);
/* Asks for one page instead of many. Advice: without it everything is only slower. */
void rq_huge_advise(void *p);

/*
 * The stock's background. Embedded in its owner, who keeps the pieces themselves; all but
 * `refilling` and `refilled` is set before the first call and stays. The executor outlives it.
 */
typedef struct rq_huge_stock {
    rq_executor *executor; /* NULL: nothing is made ready */
    pthread_mutex_t *lock; /* the owner's */
    /* Under the lock: whether more is wanted, and to take a piece in (false: no room, it goes). */
    bool (*is_short)(const struct rq_huge_stock *s);
    bool (*keep)(struct rq_huge_stock *s, void *piece);
    rq_task task;
    bool refilling RQ_GUARDED_BY(lock);
    rq_latch *refilled RQ_GUARDED_BY(lock); /* who waits for the end */
} rq_huge_stock;

/* REQUIRES: the lock. True: the caller calls refill when he has given it back. */
bool rq_huge_stock_claim(rq_huge_stock *s);
/* Pieces, advised and touched, come until there are enough. On RQ_POOL_FLUSH. */
void rq_huge_stock_refill(rq_huge_stock *s);
/* Ends a refill that runs and waits for it. Nobody claims any more. */
void rq_huge_stock_stop(rq_huge_stock *s);

#endif
