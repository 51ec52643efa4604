/* SPDX-License-Identifier: Apache-2.0 */
/* A loop's timers in the order of their times: a pairing heap, so that n timers of any delays, which may be
 * chosen by clients, cost O(n log n). Of equal times the order is arbitrary. */
#ifndef RQ_NET_TIMERS_H
#define RQ_NET_TIMERS_H

#include "net/loop.h"

/* `root` is the soonest; NULL: there is none. */
void rq__timers_add(rq_loop_timer **root, rq_loop_timer *t);
void rq__timers_remove(rq_loop_timer **root, rq_loop_timer *t);
/* Makes all of them due, in their order. */
void rq__timers_hasten(rq_loop_timer **root);

#endif
