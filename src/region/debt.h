/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delays responses to writes while the memstores are between the low and the high mark of their
 * ceiling.
 *
 * Flushes drain a number of bytes per second, and in the long run writes may not add more. So each
 * write is queued, in terms of time, behind the bytes written before it: its response is delayed
 * until flushes have drained as much, assuming 1.5 times their pace at the low mark and half of it
 * at the high mark. A few writers then wait for a fraction of a millisecond, many writers in
 * proportion to their number. While the pace is unknown (nothing was flushed yet) the delay depends
 * only on the position between the marks. Above the high mark writes are held (held.c).
 */
#ifndef RQ_REGION_DEBT_H
#define RQ_REGION_DEBT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

typedef struct rq__debt {
    _Atomic uint64_t paid_until_ns; /* time until which earlier writes use the pace, by the
                                     * executor's clock */
    _Atomic uint64_t pace;          /* bytes of cells per second drained by flushes; 0: unknown */
    pthread_mutex_t lock;
    /* Guarded by the lock: sums with exponential decay; a second of flushing halves older
     * values. */
    double drained_bytes, drained_ns;
    uint64_t drained_until_ns;
} rq__debt;

void rq__debt_init(rq__debt *d);
void rq__debt_clear(rq__debt *d);

/* Records that a flush which began at begun_ns made `bytes` bytes of cells durable. Any thread. */
void rq__debt_drained(rq__debt *d, uint64_t bytes, uint64_t begun_ns, uint64_t now_ns);

/* The delay of the response to a write of `bytes` bytes of cells, at most 50 ms. `depth`: 0 at the
 * low mark, 1 at the high mark. Any thread. */
uint64_t rq__debt_delay_ns(rq__debt *d, uint64_t bytes, double depth, uint64_t now_ns);

#endif
