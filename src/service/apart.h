/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translation of a long request on RQ_POOL_CODEC (rq_call_work). A request's columns are sorted, and its filters
 * parsed, in one step, which would hold the loop for tens of milliseconds if there are 100,000 columns.
 *
 *   handler ─► rq__apart_start ─► work: pool ─► done: the call's loop
 */
#ifndef RQ_SERVICE_APART_H
#define RQ_SERVICE_APART_H

#include "base/executor.h"
#include "rpc/call.h"

/* A request of at most this many bytes is translated on the loop, in less than a millisecond whatever is in it. */
#define RQ__TRANSLATED_AT_ONCE ((size_t)16 * 1024)

/* In the call's arena. */
typedef struct rq__apart {
    rq_call *call;
    void (*work)(struct rq__apart *a); /* on the pool: uses nothing that belongs to the loop */
    void (*done)(struct rq__apart *a);
    rq_call_work own;
} rq__apart;

/* REQUIRES: no other code uses the call until done() runs. done() runs once, never before this returns. */
void rq__apart_start(rq__apart *a, rq_executor *executor, rq_call *call, void (*work)(rq__apart *a),
                     void (*done)(rq__apart *a));

#endif
