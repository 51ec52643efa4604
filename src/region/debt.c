/* SPDX-License-Identifier: Apache-2.0 */
/* Back-pressure by delayed responses; contract in debt.h. */
#include "region/debt.h"

#define SECOND_NS ((uint64_t)1000 * 1000 * 1000)
#define DELAY_MAX_NS ((uint64_t)50 * 1000 * 1000)
#define DELAY_MIN_NS ((uint64_t)50 * 1000) /* shorter delays are added to that of the next write */
#define DRAIN_MIN_NS 1000.0

void rq__debt_init(rq__debt *d)
{
    pthread_mutex_init(&d->lock, NULL);
}

void rq__debt_clear(rq__debt *d)
{
    pthread_mutex_destroy(&d->lock);
}

void rq__debt_drained(rq__debt *d, uint64_t bytes, uint64_t begun_ns, uint64_t now_ns)
{
    pthread_mutex_lock(&d->lock);
    /* Flushes in parallel take the same time to drain: count from the end of the last one. */
    uint64_t from = begun_ns > d->drained_until_ns ? begun_ns : d->drained_until_ns;
    double took = now_ns > from ? (double)(now_ns - from) : 0;
    double kept = (double)SECOND_NS / ((double)SECOND_NS + took);
    d->drained_ns = d->drained_ns * kept + took + DRAIN_MIN_NS;
    d->drained_bytes = d->drained_bytes * kept + (double)bytes;
    d->drained_until_ns = now_ns;
    double pace = d->drained_bytes / d->drained_ns * (double)SECOND_NS;
    atomic_store_explicit(&d->pace, (uint64_t)pace, memory_order_relaxed);
    pthread_mutex_unlock(&d->lock);
}

uint64_t rq__debt_delay_ns(rq__debt *d, uint64_t bytes, double depth, uint64_t now_ns)
{
    uint64_t pace = atomic_load_explicit(&d->pace, memory_order_relaxed);
    if (pace == 0) return (uint64_t)(depth * (double)DELAY_MAX_NS);
    double ns = (double)bytes / ((double)pace * (1.5 - depth)) * (double)SECOND_NS;
    uint64_t cost = ns < (double)DELAY_MAX_NS ? (uint64_t)ns : DELAY_MAX_NS;
    uint64_t before = atomic_load_explicit(&d->paid_until_ns, memory_order_relaxed);
    uint64_t until;
    do {
        until = (before > now_ns ? before : now_ns) + cost;
        if (until > now_ns + DELAY_MAX_NS) until = now_ns + DELAY_MAX_NS;
    } while (!atomic_compare_exchange_weak_explicit(&d->paid_until_ns, &before, until,
                                                    memory_order_relaxed, memory_order_relaxed));
    return until - now_ns < DELAY_MIN_NS ? 0 : until - now_ns;
}
