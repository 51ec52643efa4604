/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a pool's threads, for tasks of one kind: at most `max` of them are with the executor at the same time. The
 * others wait here, first in, first out, without a thread. So requests of one kind, however many a peer sends, leave
 * threads for requests of other kinds.
 *
 * Any thread.
 */
#ifndef RQ_BASE_POOL_SHARE_H
#define RQ_BASE_POOL_SHARE_H

#include "base/executor.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct rq_pool_share {
    rq_executor *executor;
    rq_pool pool;
    unsigned max; /* tasks */
    pthread_mutex_t lock;
    unsigned running;      /* with the executor; by lock */
    rq_task *first, *last; /* that wait; by lock */
} rq_pool_share;

void rq_pool_share_init(rq_pool_share *s, rq_executor *executor, rq_pool pool, unsigned max);
/* REQUIRES: every task has ended. */
void rq_pool_share_destroy(rq_pool_share *s);
/* The task calls rq_pool_share_end when it has done its work. */
void rq_pool_share_submit(rq_pool_share *s, rq_task *task);
void rq_pool_share_end(rq_pool_share *s);
/* The task has more to do. True: others wait, one of them runs now, and the task runs again after them. False: it goes
 * on. */
bool rq_pool_share_give_way(rq_pool_share *s, rq_task *task);

#endif
