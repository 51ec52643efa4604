/* SPDX-License-Identifier: Apache-2.0 */
/* After a burst of requests or responses their memory is free in the allocator but still resident:
 * free blocks below its mmap threshold are interleaved with used ones. A pool thread then calls the
 * process's `trim`, at most once a second, because trimming walks all free blocks. */
#include "server/relief.h"

#include "base/macros.h"

#define PAUSE_NS 1000000000ull

static void run_trim(rq_task *task)
{
    rq_relief *r = RQ_CONTAINER_OF(task, rq_relief, task);
    r->trim();
    atomic_store(&r->next_ns, r->executor->now_ns(r->executor) + PAUSE_NS);
    atomic_store(&r->posted, false);
}

void rq__relief_init(rq_relief *r, rq_executor *executor, void (*trim)(void))
{
    r->executor = executor;
    r->trim = trim;
    r->task.run = run_trim;
}

bool rq__relief_begin(void *ctx)
{
    rq_relief *r = ctx;
    if (r->executor->now_ns(r->executor) < atomic_load(&r->next_ns)) return false;
    if (atomic_exchange(&r->posted, true)) return false;
    r->executor->submit(r->executor, RQ_POOL_WORK, &r->task);
    return true;
}
