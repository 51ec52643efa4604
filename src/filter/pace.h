/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits the time of one filter or comparator: text searches (regular expressions, substrings),
 * keys of a FuzzyRowFilter, long lists of filters. In HBase they run on a thread of their own; here
 * they hold an event loop.
 *
 * A search counts units of about 5 to 10 ns. A scan gives its filter a slice of units at a time.
 * When the slice is used up, the search stops where it is and the filter returns RQ_E_AGAIN; the
 * scan yields the loop and asks again (rq_filter_resume_cell). Callers that cannot be interrupted
 * (row keys, conditions of a mutation) have one allowance and fail beyond it.
 */
#ifndef RQ_FILTER_PACE_H
#define RQ_FILTER_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RQ_PACE_SLICE 16384    /* about 0.1 to 0.2 ms */
#define RQ_PACE_WHOLE 1000000  /* about 5 to 10 ms */
#define RQ_PACE_PER_SEARCH 256 /* added to the allowance by each search that cannot pause */

typedef struct rq_pace {
    int64_t slice_left; /* units left; <= 0: the loop must be yielded */
    int64_t whole_left; /* units left of the allowance */
    bool may_pause;
    bool resuming; /* the cell is the one for which the filter returned RQ_E_AGAIN */
} rq_pace;

/* Whether the filter must return RQ_E_AGAIN now. */
static inline bool rq__pace_is_due(const rq_pace *p)
{
    return p->slice_left <= 0 && p->may_pause;
}

/* Begins a slice: call it before a read that runs until RQ_E_AGAIN or to its end. */
static inline void rq_pace_begin(rq_pace *p, bool may_pause)
{
    *p =
        (rq_pace){.slice_left = RQ_PACE_SLICE, .whole_left = RQ_PACE_WHOLE, .may_pause = may_pause};
}

#endif
