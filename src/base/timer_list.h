/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The armed timers of an executor, ordered by due time; timers with equal times in the order in which they were armed.
 * Shared by the real, the driven and the simulated executor. Not thread-safe: the caller serializes access.
 */
#ifndef RQ_BASE_TIMER_LIST_H
#define RQ_BASE_TIMER_LIST_H

#include "base/executor.h"

typedef struct rq_timer_list {
    rq_timer *first;
} rq_timer_list;

/* Arms the timer for delay_ns after now_ns; a time that would overflow becomes a very distant one.
 * REQUIRES: the timer is not armed. */
static inline void rq_timer_list_arm(rq_timer_list *l, rq_timer *timer, rq_lane *on,
                                     uint64_t now_ns, uint64_t delay_ns)
{
    rq_timer **at = &l->first;
    RQ_ASSERT(!timer->armed);
    timer->lane = on;
    timer->due_ns =
        delay_ns > (uint64_t)INT64_MAX - now_ns ? (uint64_t)INT64_MAX : now_ns + delay_ns;
    timer->armed = true;
    while (*at != NULL && (*at)->due_ns <= timer->due_ns)
        at = &(*at)->next;
    timer->next = *at;
    *at = timer;
}

/* False: the timer is not armed. */
static inline bool rq_timer_list_cancel(rq_timer_list *l, rq_timer *timer)
{
    rq_timer **at = &l->first;
    if (!timer->armed) return false;
    while (*at != timer)
        at = &(*at)->next;
    *at = timer->next;
    timer->next = NULL;
    timer->armed = false;
    return true;
}

/* Disarms and returns the first timer. NULL: none is due. */
static inline rq_timer *rq_timer_list_take_due(rq_timer_list *l, uint64_t now_ns)
{
    rq_timer *t = l->first;
    if (t == NULL || t->due_ns > now_ns) return NULL;
    l->first = t->next;
    t->next = NULL;
    t->armed = false;
    return t;
}

#endif
