/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executor without threads (base/executor.h): tasks run only while a thread is in a function of this
 * header, or waits for a latch, sleeps or frees a lane. With several threads, one of them runs the tasks at a
 * time.
 */
#ifndef RQ_BASE_DRIVEN_EXECUTOR_H
#define RQ_BASE_DRIVEN_EXECUTOR_H

#include "base/executor.h"

#include <stdbool.h>

/* limits[pool]: tasks of a pool that run at the same time, each a part of the time. */
RQ_NODISCARD
rq_err rq_driven_executor_new(const unsigned limits[RQ_POOL_COUNT], rq_executor **ret);
/* Runs all tasks to their end. Armed timers are dropped. NULL is allowed. REQUIRES: every lane was
 * freed. */
void rq_driven_executor_free(rq_executor *ex);

/* Runs tasks until nothing can run now, or the slice is over; a task is interrupted only where it waits or
 * yields. Returns at once if another thread runs tasks. Never sleeps. */
void rq_driven_help(rq_executor *ex, uint64_t slice_ns);
/* Runs tasks, and sleeps while nothing can run, until `done` returns true or the time has come (now_ns;
 * UINT64_MAX: no limit). `done` must not block or call the executor; NULL: until all tasks have ended.
 * Returns whether that was reached. */
bool rq_driven_run(rq_executor *ex, bool (*done)(void *arg), void *arg, uint64_t until_ns);
/* Runs tasks until the pool has none. */
void rq_driven_finish_pool(rq_executor *ex, rq_pool pool);
/* Lets those who sleep in rq_driven_run ask `done` again. Any thread. */
void rq_driven_wake(rq_executor *ex);

/* A descriptor that is readable while something may run; made at the first call, the executor's. After a run
 * or a help that found nothing to run it is not readable. -1: none could be made; errno says why. */
int rq_driven_descriptor(rq_executor *ex);
/* The time at which something can run that cannot run now; UINT64_MAX: none. */
uint64_t rq_driven_due(rq_executor *ex);

#endif
