/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long one filter or comparator may take: searches in texts (regular expressions, substrings), keys
 * of a FuzzyRowFilter, long lists of filters. HBase's run on a thread of their own; ours hold an event loop.
 *
 * A search counts units of about 5 to 10 ns. A scan gives its filter a slice of units at a time.
 * When these are spent the search stops where it is, the filter answers RQ_E_AGAIN, and the scan
 * gives the loop to others and asks again (rq_filter_resume_cell). What cannot stop, because its
 * caller cannot (row keys, conditions of a mutation), has one allowance and fails behind it.
 */
#ifndef RQ_FILTER_PACE_H
#define RQ_FILTER_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RQ_PACE_SLICE 16384    /* about 0.1 to 0.2 ms */
#define RQ_PACE_WHOLE 1000000  /* about 5 to 10 ms */
#define RQ_PACE_PER_SEARCH 256 /* what each search adds to an allowance */

typedef struct rq_pace {
    int64_t slice_left; /* <= 0: the loop is due for others */
    int64_t whole_left; /* of what cannot stop */
    bool may_pause;
    bool resuming; /* the cell is the one at which the filter answered RQ_E_AGAIN */
} rq_pace;

/* It is time to answer RQ_E_AGAIN. */
static inline bool rq_pace_is_due(const rq_pace *p)
{
    return p->slice_left <= 0 && p->may_pause;
}

/* Before a read that goes on until RQ_E_AGAIN, or to its end. */
static inline void rq_pace_begin(rq_pace *p, bool may_pause)
{
    *p =
        (rq_pace){.slice_left = RQ_PACE_SLICE, .whole_left = RQ_PACE_WHOLE, .may_pause = may_pause};
}

#endif
