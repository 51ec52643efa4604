/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of an operation; see meter.h. */
#include "base/meter.h"

#if RQ_ASAN || RQ_TSAN
#define CHECKED true
#else
#define CHECKED false
#endif

bool rq__meter_look(rq_meter *m, rq_executor *executor)
{
    uint64_t now = executor->now_ns(executor);
    /* Code that was told to stop but keeps counting has a loop that cannot be interrupted. */
    RQ_ASSERT(!CHECKED || !m->over);
    if (m->until_ns == 0) m->until_ns = now + RQ_METER_STRETCH_NS;
    m->look_at = m->steps + RQ_METER_LOOK_STEPS;
    m->over = now >= m->until_ns || m->steps - m->begun >= RQ_METER_STRETCH_STEPS;
    return m->over;
}
