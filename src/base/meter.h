/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operation costs, and when its stretch on a thread that others wait for is over.
 *
 * A step is a cell read, written or looked at, a step of a filter, an element of a request's list,
 * 64 bytes made: some 20 to 100 ns. Code that goes through a list of a request's, or of data, tells
 * the meter of each element and stops when the meter says so; the rest is done in another task. The
 * clock is looked at after some steps only; a stretch also ends after a number of steps whatever
 * the clock says, so that with a clock that stands (vfs/sim.h) the same code stops at the same
 * place.
 *
 * All zero bytes are a meter whose stretch begins. One thread at a time.
 */
#ifndef RQ_BASE_METER_H
#define RQ_BASE_METER_H

#include "base/executor.h"
#include "base/macros.h"

#include <stdbool.h>

/* No loop runs one request longer than this at a stretch. */
#define RQ_METER_STRETCH_NS ((uint64_t)200 * 1000)
/* … nor for more steps. */
#define RQ_METER_STRETCH_STEPS 8192
/* Between two looks at the clock. */
#define RQ_METER_LOOK_STEPS 64

typedef struct rq_meter {
    uint64_t steps;    /* of the operation so far */
    uint64_t look_at;  /* its steps when the clock is looked at next */
    uint64_t begun;    /* its steps when the stretch began */
    uint64_t until_ns; /* the stretch ends; 0: the clock was not looked at yet */
    bool over;         /* the stretch was said to be over */
} rq_meter;

/* Another stretch begins. */
static inline void rq_meter_begin(rq_meter *m)
{
    m->begun = m->steps;
    m->look_at = m->steps + RQ_METER_LOOK_STEPS;
    m->until_ns = 0;
    m->over = false;
}

RQ_COLD bool rq__meter_look(rq_meter *m, rq_executor *executor);

/* Counts `steps`. True: the stretch is over; another begins by rq_meter_begin. In a build with
 * sanitizers going on all the same is a broken invariant. */
static inline bool rq_meter_spent(rq_meter *m, rq_executor *executor, uint64_t steps)
{
    m->steps += steps;
    return RQ_UNLIKELY(m->steps >= m->look_at) && rq__meter_look(m, executor);
}

#endif
