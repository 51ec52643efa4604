/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits the write rate of compactions: by default there is no limit (docs/compatibility.md).
 * HBASE: PressureAwareCompactionThroughputController: the limit moves from a lower to a higher
 * bound as the fullest store approaches its blocking file count, and is lifted beyond that;
 * off-peak hours have a bound of their own. Concurrent compactions share the limit. Flushes are
 * never limited.
 */
#ifndef RQ_REGION_THROUGHPUT_H
#define RQ_REGION_THROUGHPUT_H

#include "region/region_priv.h"

struct rq_config;

typedef struct rq__throughput {
    _Atomic bool is_limited;
    _Atomic uint64_t lower, higher, off_peak; /* bytes per second */
    uint64_t ticks_between_looks;             /* const */
    _Atomic uint64_t limit;                   /* UINT64_MAX: none */
    _Atomic unsigned active;
} rq__throughput;

/* The state of one compaction. */
typedef struct rq__pacing {
    rq_region *region;
    uint64_t bytes, since_ns;
    uint64_t slept_ns;
} rq__pacing;

void rq__throughput_init(rq__throughput *t, const struct rq_config *c);
void rq__throughput_set(rq__throughput *t, const struct rq_config *c);
/* Adjusts the limit to the stores' file counts. On a lane or a pool's thread. */
void rq__throughput_tune(rq_engine *e);
void rq__pacing_begin(rq__pacing *p, rq_region *r);
/* rq_rewrite.pace: sleeps for a bounded time if the `bytes` since the last call were written too
 * fast; not after the compaction was told to stop. It sleeps on the compaction's pool thread and
 * keeps the thread occupied: otherwise every sleeping compaction would let another one begin. */
void rq__pacing_look(void *pacing, uint64_t bytes);
void rq__pacing_end(rq__pacing *p);

#endif
