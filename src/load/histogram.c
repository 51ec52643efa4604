/* SPDX-License-Identifier: Apache-2.0 */
/* Bucket of a value: the value itself below 2^11; above, its eleven highest bits, 1,024 buckets for
 * each shift that leaves eleven. */
#include "load/histogram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HALF_BITS 10
#define HALF (1U << HALF_BITS)

static size_t bucket_of(uint64_t v)
{
    if (v < 2 * HALF) return (size_t)v;
    unsigned shift = 63 - (unsigned)__builtin_clzll(v) - HALF_BITS;
    return (size_t)shift * HALF + (size_t)(v >> shift);
}

/* The largest value of the bucket. */
static uint64_t bucket_top(size_t bucket)
{
    if (bucket < 2 * HALF) return bucket;
    size_t shift = bucket / HALF - 1;
    return (((uint64_t)(bucket - shift * HALF) + 1) << shift) - 1;
}

rq_err rq_histogram_init(rq_histogram *h)
{
    *h = (rq_histogram){.min = UINT64_MAX};
    h->counts = calloc(RQ_HISTOGRAM_BUCKETS, sizeof *h->counts);
    return h->counts != NULL ? RQ_OK : RQ_E_NO_MEMORY;
}

void rq_histogram_reset(rq_histogram *h)
{
    memset(h->counts, 0, RQ_HISTOGRAM_BUCKETS * sizeof *h->counts);
    *h = (rq_histogram){.counts = h->counts, .min = UINT64_MAX};
}

void rq_histogram_clear(rq_histogram *h)
{
    free(h->counts);
    *h = (rq_histogram){0};
}

void rq_histogram_add(rq_histogram *h, uint64_t value)
{
    if (value > RQ_HISTOGRAM_MAX) value = RQ_HISTOGRAM_MAX;
    h->counts[bucket_of(value)]++;
    h->total++;
    h->sum += (double)value;
    if (value < h->min) h->min = value;
    if (value > h->max) h->max = value;
}

void rq_histogram_merge(rq_histogram *to, const rq_histogram *from)
{
    for (size_t i = 0; i < RQ_HISTOGRAM_BUCKETS; i++)
        to->counts[i] += from->counts[i];
    to->total += from->total;
    to->sum += from->sum;
    if (from->min < to->min) to->min = from->min;
    if (from->max > to->max) to->max = from->max;
}

uint64_t rq_histogram_percentile(const rq_histogram *h, double percent)
{
    if (h->total == 0) return 0;
    double wanted = ceil(percent / 100 * (double)h->total - 1e-9);
    uint64_t rank = wanted < 1 ? 1 : (uint64_t)wanted;
    uint64_t seen = 0;
    for (size_t i = 0; i < RQ_HISTOGRAM_BUCKETS; i++) {
        seen += h->counts[i];
        if (seen < rank) continue;
        uint64_t top = bucket_top(i);
        if (top < h->min) return h->min;
        return top < h->max ? top : h->max;
    }
    return h->max;
}

double rq_histogram_mean(const rq_histogram *h)
{
    return h->total == 0 ? 0 : h->sum / (double)h->total;
}
