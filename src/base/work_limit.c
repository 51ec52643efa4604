/* SPDX-License-Identifier: Apache-2.0 */
/* The work of this thread since the last break; see work_limit.h. */
#include "base/work_limit.h"

#if RQ_ASAN || RQ_TSAN

#include <stdbool.h>
#include <stdint.h>

static _Thread_local struct {
    bool counts;
    uint64_t steps;
} work;

void rq_work_begin(void)
{
    work.counts = true;
    work.steps = 0;
}

void rq_work_end(void)
{
    work.counts = false;
}

void rq_work_count(size_t bytes)
{
    if (!work.counts) return;
    if (bytes > RQ_WORK_ITEM_BYTES) bytes = RQ_WORK_ITEM_BYTES;
    work.steps += 1 + bytes / RQ_WORK_STEP_BYTES;
    RQ_ASSERT(work.steps <= RQ_WORK_STEPS_MAX);
}

#endif
