/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histograms of durations in nanoseconds, in buckets whose width is a fraction of their value.
 *
 * `bits` sets the precision: values below 2^(bits+1) have a bucket each, every power of two above
 * has 2^bits buckets, so a bucket is at most 1/2^bits of its value wide. Values above
 * RQ_HISTOGRAM_MAX count as RQ_HISTOGRAM_MAX. Two forms share the buckets:
 *
 *   rq_histogram   10 bits (0.1 %), on the heap, one thread: benchmarks
 *   rq_times       2 bits (a quarter), in place, relaxed counters, read by any thread: a server
 */
#ifndef RQ_BASE_HISTOGRAM_H
#define RQ_BASE_HISTOGRAM_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RQ_HISTOGRAM_POWERS 42
#define RQ_HISTOGRAM_MAX ((UINT64_C(1) << RQ_HISTOGRAM_POWERS) - 1) /* 73 minutes */
#define RQ_HISTOGRAM_BUCKETS(bits) ((size_t)(RQ_HISTOGRAM_POWERS - (bits) + 1) << (bits))

/* The bucket of a value. Below 2^(bits+1) it is the value; above, the value's bits+1 highest bits
 * plus 2^bits for each bit that was shifted out. */
static inline size_t rq__histogram_bucket(unsigned bits, uint64_t value)
{
    if (value < (UINT64_C(2) << bits)) return (size_t)value;
    if (value > RQ_HISTOGRAM_MAX) value = RQ_HISTOGRAM_MAX;
    unsigned shift = 63 - (unsigned)__builtin_clzll(value) - bits;
    return ((size_t)shift << bits) + (size_t)(value >> shift);
}

/* The largest value of the bucket. */
static inline uint64_t rq__histogram_bucket_max(unsigned bits, size_t bucket)
{
    if (bucket < ((size_t)2 << bits)) return bucket;
    size_t shift = (bucket >> bits) - 1;
    return (((uint64_t)(bucket - (shift << bits)) + 1) << shift) - 1;
}

/* --- precise ---------------------------------------------------------------------------------- */
#define RQ_HISTOGRAM_BITS 10

/* Minimum, maximum and mean are exact. */
typedef struct rq_histogram {
    uint64_t *counts;
    uint64_t total;
    uint64_t min;
    uint64_t max;
    double sum;
} rq_histogram;

RQ_NODISCARD
rq_err rq_histogram_init(rq_histogram *h);
void rq_histogram_reset(rq_histogram *h);
void rq_histogram_clear(rq_histogram *h);
void rq_histogram_add(rq_histogram *h, uint64_t value);
void rq_histogram_merge(rq_histogram *to, const rq_histogram *from);
/* The smallest value that `percent` of all values do not exceed, rounded up to the end of its
 * bucket; 0 when there are none. */
uint64_t rq_histogram_percentile(const rq_histogram *h, double percent);
double rq_histogram_mean(const rq_histogram *h);

/* --- samples ---------------------------------------------------------------------------------- */

/* Sampling of frequent short events: one in 16 of the first 1,024 is timed, later one in 64. A timed event has the
 * weight 16 or 64, since it stands for the others. Events are counted from 1. */
#define RQ_SAMPLE_MASK_FIRST ((uint64_t)15) /* a sample's mask at first */

static inline bool rq_sample_has(uint64_t mask, uint64_t count)
{
    return (count & mask) == 0;
}

/* The weight of the sample's event number `count`; sets the mask for the next ones. */
static inline uint64_t rq_sample_take(uint64_t *mask, uint64_t count)
{
    uint64_t weight = *mask + 1;
    if (count >= 1024) *mask = 63;
    return weight;
}

/* --- of a running server ---------------------------------------------------------------------- */
#define RQ_TIMES_BITS 2
#define RQ_TIMES_BUCKETS RQ_HISTOGRAM_BUCKETS(RQ_TIMES_BITS)

/* All zero is empty. */
typedef struct rq_times {
    _Atomic uint64_t sum_ns;
    _Atomic uint64_t counts[RQ_TIMES_BUCKETS];
} rq_times;

/* A copy of one or the sum of several. */
typedef struct rq_times_sum {
    uint64_t sum_ns;
    uint64_t counts[RQ_TIMES_BUCKETS];
} rq_times_sum;

/* Adds `weight` values of `ns`. One thread at a time. */
void rq_times_add(rq_times *t, uint64_t ns, uint64_t weight);
/* rq_times_add for several threads at a time. */
void rq_times_add_shared(rq_times *t, uint64_t ns, uint64_t weight);
/* Adds what was counted to `*to`. Any thread; not a consistent snapshot. */
void rq_times_read(const rq_times *t, rq_times_sum *to);

uint64_t rq_times_count(const rq_times_sum *s);
/* The number of values <= `ns`. Exact if `ns` is 2^n - 1; otherwise the values of the bucket that contains `ns` are
 * taken to be spread evenly. */
uint64_t rq_times_count_up_to(const rq_times_sum *s, uint64_t ns);
/* The largest value of the bucket that holds the value at `percent`; 0: none was counted. */
uint64_t rq_times_percentile_ns(const rq_times_sum *s, double percent);

#endif
