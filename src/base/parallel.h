/* SPDX-License-Identifier: Apache-2.0 */
/* A list worked through by several threads. */
#ifndef RQ_BASE_PARALLEL_H
#define RQ_BASE_PARALLEL_H

#include "base/executor.h"

/* Calls fn(ctx, 0) … fn(ctx, count - 1), each once, in any order, and returns when all have returned. The
 * calling thread works through the list itself; tasks on RQ_POOL_WORK help while the pool has idle threads.
 * It never waits for a helper that has not begun, so there is no deadlock even if the pool has one thread and
 * is full of waiting callers. Not on a loop. */
void rq_parallel(rq_executor *ex, size_t count, void (*fn)(void *ctx, size_t i), void *ctx);

#endif
