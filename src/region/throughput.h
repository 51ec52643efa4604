/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast compactions may write: as fast as they can, unless a limit is set
 * (docs/compatibility.md). HBASE: PressureAwareCompactionThroughputController: between a lower and
 * a higher bound by how near the fullest store is to its blocking count, without a limit above it;
 * in off-peak hours a bound of their own. What runs at the same time shares it. Flushes are never
 * limited.
 */
#ifndef RQ_REGION_THROUGHPUT_H
#define RQ_REGION_THROUGHPUT_H

#include "region/region_priv.h"

struct rq_config;

typedef struct rq__throughput {
    _Atomic bool is_limited;
    _Atomic uint64_t lower, higher, off_peak; /* bytes a second */
    uint64_t ticks_between_looks;             /* const */
    _Atomic uint64_t limit;                   /* UINT64_MAX: none */
    _Atomic unsigned active;
} rq__throughput;

/* One compaction's account. */
typedef struct rq__pacing {
    rq_region *region;
    uint64_t bytes, since_ns;
    uint64_t slept_ns;
} rq__pacing;

void rq__throughput_init(rq__throughput *t, const struct rq_config *c);
void rq__throughput_set(rq__throughput *t, const struct rq_config *c);
/* Looks at the stores' pressure. A lane or pool's thread. */
void rq__throughput_tune(rq_engine *e);
void rq__pacing_begin(rq__pacing *p, rq_region *r);
/* rq_rewrite.pace: sleeps when what was written since the last look came too fast; not for long,
 * and no longer once the compaction is to end. A pool's thread, which keeps its place meanwhile:
 * else every compaction that waits would let one more begin. */
void rq__pacing_look(void *pacing, uint64_t bytes);
void rq__pacing_end(rq__pacing *p);

#endif
