/* SPDX-License-Identifier: Apache-2.0 */
/* Returns the allocator's free memory to the operating system after a burst of requests. */
#ifndef RQ_SERVER_RELIEF_H
#define RQ_SERVER_RELIEF_H

#include "base/executor.h"

#include <stdatomic.h>

/* Embedded in the server; must live until the executor has run its task. */
typedef struct rq_relief {
    rq_executor *executor;
    void (*trim)(void);
    rq_task task;
    _Atomic bool posted;
    _Atomic uint64_t next_ns; /* no trim before this time */
} rq_relief;

void rq__relief_init(rq_relief *r, rq_executor *executor, void (*trim)(void));
/* For rq_budget_on_relief; ctx: the rq_relief. Submits a trim to RQ_POOL_WORK. False: not now, as
 * one is running or has ended less than a second ago. */
bool rq__relief_begin(void *ctx);

#endif
