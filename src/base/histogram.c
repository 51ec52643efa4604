/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms of durations; buckets and forms are described in histogram.h. */
#include "base/histogram.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS RQ_HISTOGRAM_BUCKETS(RQ_HISTOGRAM_BITS)

/* The place, from 1 on, of the value that `percent` of `total` values do not exceed. */
static uint64_t rank_of(double percent, uint64_t total)
{
    double wanted = percent / 100 * (double)total - 1e-9;
    uint64_t rank = wanted < 0 ? 0 : (uint64_t)wanted;
    if ((double)rank < wanted) rank++;
    return rank < 1 ? 1 : rank;
}

rq_err rq_histogram_init(rq_histogram *h)
{
    *h = (rq_histogram){.min = UINT64_MAX};
    h->counts = calloc(BUCKETS, sizeof *h->counts);
    return h->counts != NULL ? RQ_OK : RQ_E_NO_MEMORY;
}

void rq_histogram_reset(rq_histogram *h)
{
    memset(h->counts, 0, BUCKETS * sizeof *h->counts);
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
    h->counts[rq__histogram_bucket(RQ_HISTOGRAM_BITS, value)]++;
    h->total++;
    h->sum += (double)value;
    if (value < h->min) h->min = value;
    if (value > h->max) h->max = value;
}

void rq_histogram_merge(rq_histogram *to, const rq_histogram *from)
{
    for (size_t i = 0; i < BUCKETS; i++)
        to->counts[i] += from->counts[i];
    to->total += from->total;
    to->sum += from->sum;
    if (from->min < to->min) to->min = from->min;
    if (from->max > to->max) to->max = from->max;
}

uint64_t rq_histogram_percentile(const rq_histogram *h, double percent)
{
    if (h->total == 0) return 0;
    uint64_t rank = rank_of(percent, h->total);
    uint64_t seen = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        seen += h->counts[i];
        if (seen < rank) continue;
        uint64_t top = rq__histogram_bucket_max(RQ_HISTOGRAM_BITS, i);
        if (top < h->min) return h->min;
        return top < h->max ? top : h->max;
    }
    return h->max;
}

double rq_histogram_mean(const rq_histogram *h)
{
    return h->total == 0 ? 0 : h->sum / (double)h->total;
}

/* --- of a running server ---------------------------------------------------------------------- */

static void add_own(_Atomic uint64_t *counter, uint64_t by)
{
    uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, now + by, memory_order_relaxed);
}

void rq_times_add(rq_times *t, uint64_t ns, uint64_t weight)
{
    add_own(&t->sum_ns, ns * weight);
    add_own(&t->counts[rq__histogram_bucket(RQ_TIMES_BITS, ns)], weight);
}

void rq_times_add_shared(rq_times *t, uint64_t ns, uint64_t weight)
{
    atomic_fetch_add_explicit(&t->sum_ns, ns * weight, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->counts[rq__histogram_bucket(RQ_TIMES_BITS, ns)], weight,
                              memory_order_relaxed);
}

void rq_times_read(const rq_times *t, rq_times_sum *to)
{
    to->sum_ns += atomic_load_explicit(&t->sum_ns, memory_order_relaxed);
    for (size_t i = 0; i < RQ_TIMES_BUCKETS; i++)
        to->counts[i] += atomic_load_explicit(&t->counts[i], memory_order_relaxed);
}

uint64_t rq_times_count(const rq_times_sum *s)
{
    uint64_t total = 0;
    for (size_t i = 0; i < RQ_TIMES_BUCKETS; i++)
        total += s->counts[i];
    return total;
}

uint64_t rq_times_count_up_to(const rq_times_sum *s, uint64_t ns)
{
    size_t last = rq__histogram_bucket(RQ_TIMES_BITS, ns);
    uint64_t begin = last == 0 ? 0 : rq__histogram_bucket_max(RQ_TIMES_BITS, last - 1) + 1;
    uint64_t width = rq__histogram_bucket_max(RQ_TIMES_BITS, last) + 1 - begin;
    uint64_t total = 0;
    for (size_t i = 0; i < last; i++)
        total += s->counts[i];
    if (ns >= RQ_HISTOGRAM_MAX) return total + s->counts[last];
    return total + (uint64_t)((double)s->counts[last] * (double)(ns + 1 - begin) / (double)width);
}

uint64_t rq_times_percentile_ns(const rq_times_sum *s, double percent)
{
    uint64_t total = rq_times_count(s);
    if (total == 0) return 0;
    uint64_t rank = rank_of(percent, total), seen = 0;
    size_t i = 0;
    for (; i + 1 < RQ_TIMES_BUCKETS && (seen += s->counts[i]) < rank; i++)
        ;
    return rq__histogram_bucket_max(RQ_TIMES_BITS, i);
}
