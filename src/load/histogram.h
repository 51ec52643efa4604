/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts of values in buckets whose width is at most 1/1024 of their value, as HdrHistogram has
 * them: values below 2048 stand alone, every power of two above has 1,024 buckets. Values are
 * nanoseconds; those above RQ_HISTOGRAM_MAX count as that. Adding costs a shift and an increment;
 * what is asked later is exact to 0.1 %, minimum, maximum and mean exactly.
 */
#ifndef RQ_LOAD_HISTOGRAM_H
#define RQ_LOAD_HISTOGRAM_H

#include "base/err.h"

#include <stdint.h>

#define RQ_HISTOGRAM_MAX ((UINT64_C(1) << 42) - 1) /* 73 minutes */
#define RQ_HISTOGRAM_BUCKETS (32 * 1024 + 1024)

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
/* The smallest value that `percent` of all values do not exceed; 0 when there are none. */
uint64_t rq_histogram_percentile(const rq_histogram *h, double percent);
double rq_histogram_mean(const rq_histogram *h);

#endif
