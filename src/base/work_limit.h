/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds with sanitizers assert that a loop does not work on one request for too long without a
 * break: an operation that forgets to end its time slice aborts here, with its stack.
 *
 * The count begins when a loop calls a task or a timer, and at each request. Code that reads or
 * produces cells counts each of them. The limit is far above what fits into a slice
 * (base/meter.h), because a slice is bounded by time. Threads of pools may work for long: nothing
 * is counted there.
 */
#ifndef RQ_BASE_WORK_LIMIT_H
#define RQ_BASE_WORK_LIMIT_H

#include "base/macros.h"

#include <stddef.h>

/* Most steps without a break. A cell counts as one step, and one more for each RQ_WORK_STEP_BYTES.
 * A cell counts as at most RQ_WORK_ITEM_BYTES, because code cannot take a break inside a cell. */
#define RQ_WORK_STEPS_MAX (256 * 1024)
#define RQ_WORK_STEP_BYTES 64
#define RQ_WORK_ITEM_BYTES ((size_t)1024 * 1024)

#if RQ_ASAN || RQ_TSAN
/* The thread is a loop's, and begins to work for one request. */
void rq_work_begin(void);
/* The thread does not work for a loop until the next rq_work_begin. */
void rq_work_end(void);
/* Counts a cell, or nothing outside of a loop's work. */
void rq_work_count(size_t bytes);
#else
static inline void rq_work_begin(void) {}
static inline void rq_work_end(void) {}
static inline void rq_work_count(size_t bytes)
{
    (void)bytes;
}
#endif

#endif
