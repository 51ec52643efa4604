/* SPDX-License-Identifier: Apache-2.0 */
/* See column_tracker.h. HBASE: ExplicitColumnTracker, ScanWildcardColumnTracker. */
#include "store/column_tracker.h"

static void forget_last(rq__column_tracker *t)
{
    t->last_ts = INT64_MAX;
    t->last_type = 0;
}

static void next_column(rq__column_tracker *t)
{
    t->index++;
    t->count = 0;
}

static int compare_qualifier(const rq_cell *cell, rq_slice column)
{
    return rq_short_compare(cell->qualifier, cell->qualifier_len, column.ptr, column.len);
}

rq__match rq__column_tracker_check_column(rq__column_tracker *t, const rq_cell *cell)
{
    if (t->columns == NULL) return RQ__MATCH_INCLUDE;
    while (t->index < t->column_count) {
        int c = compare_qualifier(cell, t->columns[t->index]);
        if (c == 0) return RQ__MATCH_INCLUDE;
        forget_last(t);
        if (c < 0) return RQ__MATCH_NEXT_COLUMN;
        next_column(t);
    }
    return RQ__MATCH_NEXT_ROW;
}

static rq__match check_explicit(rq__column_tracker *t, const rq_cell *cell)
{
    if (cell->timestamp == t->last_ts) return RQ__MATCH_SKIP;
    int32_t count = ++t->count;
    if (count >= t->max_versions || (count >= t->min_versions && cell->timestamp < t->oldest)) {
        next_column(t);
        forget_last(t);
        return t->index >= t->column_count ? RQ__MATCH_INCLUDE_AND_NEXT_ROW
                                           : RQ__MATCH_INCLUDE_AND_NEXT_COLUMN;
    }
    t->last_ts = cell->timestamp;
    return RQ__MATCH_INCLUDE;
}

rq_err rq__column_tracker_check_versions(rq__column_tracker *t, const rq_cell *cell, bool keep_all,
                                         rq__match *ret)
{
    if (t->columns == NULL) return rq__column_tracker_check_any(t, cell, keep_all, ret);
    *ret = keep_all ? RQ__MATCH_INCLUDE : check_explicit(t, cell);
    return RQ_OK;
}

void rq__column_tracker_done_with(rq__column_tracker *t, const rq_cell *cell)
{
    if (t->columns == NULL) return;
    while (t->index < t->column_count) {
        int c = compare_qualifier(cell, t->columns[t->index]);
        forget_last(t);
        if (c < 0) return;
        next_column(t);
        if (c == 0) return;
    }
}

rq__match rq__column_tracker_next(rq__column_tracker *t, const rq_cell *cell)
{
    if (t->columns == NULL) return RQ__MATCH_NEXT_COLUMN;
    rq__column_tracker_done_with(t, cell);
    return t->index >= t->column_count ? RQ__MATCH_NEXT_ROW : RQ__MATCH_NEXT_COLUMN;
}
