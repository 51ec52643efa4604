/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durations of requests by table and kind. An op knows its region, so the region points to its table's
 * histograms: it looks them up when its first duration is added.
 *
 *   region ─► table: kind 0 ─► histogram        made when its first duration is added
 *                    kind 1 ─► histogram
 *          ─► others, shared by tables beyond RQ_TABLE_TIMES_MAX histograms
 *
 * A dropped table's histograms are freed with its last region; then another table can have histograms
 * of its own. A region that found no room uses the shared ones ("the others") until it is opened again.
 */
#ifndef RQ_REGION_TABLE_TIMES_H
#define RQ_REGION_TABLE_TIMES_H

#include "base/histogram.h"
#include "region/engine.h"

#define RQ_TABLE_TIMES_KINDS 16
/* Histograms of a server, without those of the others: 0.7 MB. */
#define RQ_TABLE_TIMES_MAX 512

/* Adds `weight` durations of `ns` nanoseconds to the histogram of the region's table; `kind` is the
 * caller's number, below RQ_TABLE_TIMES_KINDS. Without memory they are not counted. Any thread. */
void rq_region_add_time(rq_region *r, unsigned kind, uint64_t ns, uint64_t weight);

typedef struct rq_table_times {
    rq_slice ns, qualifier;                       /* empty: the others */
    const rq_times_sum *of[RQ_TABLE_TIMES_KINDS]; /* NULL: none was added */
} rq_table_times;

/* Copies all histograms into the arena, the others' first. *ret_bytes: the memory that the
 * originals use. Any thread. */
RQ_NODISCARD
rq_err rq_engine_table_times(rq_engine *e, rq_arena *arena, rq_table_times **ret, size_t *ret_count,
                             size_t *ret_bytes);

#endif
