/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How late writes are answered while memstores are between the marks of their ceiling.
 *
 * Flushes drain so many bytes a second, and what comes in may not be more for long. So a write pays
 * for its bytes with time, behind those that came before it: its answer is held back until flushes
 * have drained as much, at one and a half of their pace at the low mark and half of it at the high
 * one. Few writers then wait for a fraction of a millisecond, many for as long as their number
 * asks; without a pace yet (nothing was flushed) the share of the way between the marks counts
 * alone. Above the high mark writes are held (write.c).
 */
#ifndef RQ_REGION_DEBT_H
#define RQ_REGION_DEBT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

typedef struct rq__debt {
    _Atomic uint64_t paid_until_ns; /* by the writes so far, of the executor's clock */
    _Atomic uint64_t pace;          /* bytes of cells a second that flushes drain; 0: not known */
    pthread_mutex_t lock;
    /* Guarded by the lock: sums in which what was before a second of flushes counts half. */
    double drained_bytes, drained_ns;
    uint64_t drained_until_ns;
} rq__debt;

void rq__debt_init(rq__debt *d);
void rq__debt_clear(rq__debt *d);

/* A flush that began then has made these bytes of cells durable. Any thread. */
void rq__debt_drained(rq__debt *d, uint64_t bytes, uint64_t begun_ns, uint64_t now_ns);

/* For how long the answer to a write of so many bytes of cells is held back. `depth`: 0 at the low
 * mark, 1 at the high one. Any thread. */
uint64_t rq__debt_delay_ns(rq__debt *d, uint64_t bytes, double depth, uint64_t now_ns);

#endif
