/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limiter: the throttles of one owner (a user, a table, a namespace, the region server), each a
 * budget of requests, bytes, capacity units or milliseconds that time refills. An op is checked
 * against all budgets with estimates, takes them, and corrects them when its true cost is known.
 * The formulas are HBase's, so that clients see the same waits. HBASE: TimeBasedLimiter,
 * RateLimiter, AverageIntervalRateLimiter, FixedIntervalRateLimiter.
 */
#ifndef RQ_QUOTA_LIMITER_H
#define RQ_QUOTA_LIMITER_H

#include "base/err.h"

#include "proto/quota.pb-c.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The order of the fields of Throttle. */
typedef enum rq__budget {
    RQ__BUDGET_REQUESTS,
    RQ__BUDGET_REQUEST_BYTES,
    RQ__BUDGET_WRITES,
    RQ__BUDGET_WRITE_BYTES,
    RQ__BUDGET_READS,
    RQ__BUDGET_READ_BYTES,
    RQ__BUDGET_UNITS,
    RQ__BUDGET_WRITE_UNITS,
    RQ__BUDGET_READ_UNITS,
    RQ__BUDGET_ATOMIC_READ_BYTES,
    RQ__BUDGET_ATOMIC_REQUESTS,
    RQ__BUDGET_ATOMIC_WRITE_BYTES,
    RQ__BUDGET_HANDLER_MS,
    RQ__BUDGETS
} rq__budget;

/* The throttle's field for the budget; NULL: it is not set. */
const Pb__TimedQuota *rq__throttle_field(const Pb__Throttle *t, rq__budget b);
/* The address of this field. */
Pb__TimedQuota **rq__throttle_place(Pb__Throttle *t, rq__budget b);

/* How budgets are refilled. */
typedef struct rq__refill {
    bool fixed;          /* at the end of each interval; false: continuously */
    int64_t interval_ms; /* used if `fixed` */
} rq__refill;

/* The budget of one throttle. */
typedef struct rq__rate {
    int64_t limit;   /* amount per unit_ms; INT64_MAX: no limit */
    int64_t left;    /* amount that may still be taken; below 0 after costs above the estimates */
    int64_t unit_ms; /* time unit of the limit */
    int64_t refilled_ms; /* time of the last refill, with `fixed` of the next one; -1: never */
} rq__rate;

typedef struct rq__limiter {
    pthread_mutex_t lock;
    rq__refill refill;
    rq__rate rates[RQ__BUDGETS];
    _Atomic unsigned refs;
} rq__limiter;

/* What an op takes, estimated or known. */
typedef struct rq__demand {
    int64_t writes, reads;
    int64_t write_bytes, read_bytes;
    int64_t write_units, read_units;
    int64_t handler_ms;
    bool is_atomic;
} rq__demand;

/* NULL: out of memory. */
rq__limiter *rq__limiter_new(const Pb__Throttle *t, const rq__refill *refill);
rq__limiter *rq__limiter_ref(rq__limiter *l);
void rq__limiter_unref(rq__limiter *l); /* NULL is fine */
/* Takes over the limits of `from`; amounts that were already used stay used. */
void rq__limiter_update(rq__limiter *l, const rq__limiter *from);

/* RQ_E_THROTTLED with HBase's text if a budget does not suffice. Takes nothing from the budgets. */
RQ_NODISCARD
rq_err rq__limiter_check(rq__limiter *l, const rq__demand *d, int64_t now_ms, rq_error *why);
void rq__limiter_take(rq__limiter *l, const rq__demand *d);
/* Takes the difference between the true cost and the estimates; negative amounts are given back.
 * The numbers of reads and writes in `d` are ignored. */
void rq__limiter_correct(rq__limiter *l, const rq__demand *d);

#endif
