/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a crowd of requests or answers has used is free in the allocator afterwards, but resident:
 * pieces below its mmap threshold lie between pieces that are in use. Once the crowd has gone a pool
 * trims them, at most once a second, for that walks all that is free.
 */
#include "cli/relief.h"

#include "base/macros.h"

#include <malloc.h>

#define PAUSE_NS 1000000000ull

static void run_trim(rq_task *task)
{
    rq_relief *r = RQ_CONTAINER_OF(task, rq_relief, task);
    malloc_trim(0);
    atomic_store(&r->next_ns, r->executor->now_ns(r->executor) + PAUSE_NS);
    atomic_store(&r->posted, false);
}

void rq_relief_init(rq_relief *r, rq_executor *executor)
{
    r->executor = executor;
    r->task.run = run_trim;
}

bool rq_relief_begin(void *ctx)
{
    rq_relief *r = ctx;
    if (r->executor->now_ns(r->executor) < atomic_load(&r->next_ns)) return false;
    if (atomic_exchange(&r->posted, true)) return false;
    r->executor->submit(r->executor, RQ_POOL_WORK, &r->task);
    return true;
}
