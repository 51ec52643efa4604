/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the work of an operation, and tells when its time slice on a shared thread is over.
 *
 * A step is a cell read, written or examined, a step of a filter, an element of a request's list,
 * or 64 bytes produced: about 20 to 100 ns. Code that walks a request's list, or data, counts each
 * element and stops when the meter says that the slice is over; the rest of the work runs in
 * another task. The clock is read once in RQ_METER_LOOK_STEPS steps. A slice also ends after
 * RQ_METER_STRETCH_STEPS steps, so that under a clock that does not advance (vfs/sim.h) the same
 * code stops at the same place.
 *
 * A zeroed meter is at the beginning of a slice. One thread at a time.
 */
#ifndef RQ_BASE_METER_H
#define RQ_BASE_METER_H

#include "base/executor.h"
#include "base/macros.h"

#include <stdbool.h>

/* Longest time that a loop runs one request without a break. */
#define RQ_METER_STRETCH_NS ((uint64_t)200 * 1000)
/* Most steps in that time. */
#define RQ_METER_STRETCH_STEPS 8192
/* Steps between clock reads. */
#define RQ_METER_LOOK_STEPS 64

typedef struct rq_meter {
    uint64_t steps;    /* counted since the operation began */
    uint64_t look_at;  /* value of `steps` at which the clock is read next */
    uint64_t begun;    /* value of `steps` when the slice began */
    uint64_t until_ns; /* end of the slice; 0: the clock was not read yet */
    bool over;         /* rq_meter_spent has returned true */
} rq_meter;

/* Begins a slice. */
static inline void rq_meter_begin(rq_meter *m)
{
    m->begun = m->steps;
    m->look_at = m->steps + RQ_METER_LOOK_STEPS;
    m->until_ns = 0;
    m->over = false;
}

RQ_COLD bool rq__meter_look(rq_meter *m, rq_executor *executor);

/* Counts `steps`. True: the slice is over; rq_meter_begin begins the next one. Builds with
 * sanitizers assert that the caller stops then. */
static inline bool rq_meter_spent(rq_meter *m, rq_executor *executor, uint64_t steps)
{
    m->steps += steps;
    return RQ_UNLIKELY(m->steps >= m->look_at) && rq__meter_look(m, executor);
}

#endif
