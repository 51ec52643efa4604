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

/* The first wanted column at or behind the cell's. REQUIRES: the cell is behind the current one. The steps double, then halve:
 * a row with few cells of many wanted columns costs little, and so does the next column. */
static uint32_t first_not_before(const rq__column_tracker *t, const rq_cell *cell)
{
    uint32_t low = t->index + 1; /* all before it are before the cell */
    uint32_t high = low;
    for (uint32_t step = 1; high < t->column_count && compare_qualifier(cell, t->columns[high]) > 0;
         step *= 2) {
        low = high + 1;
        high = t->column_count - high > step ? high + step : t->column_count;
    }
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (compare_qualifier(cell, t->columns[mid]) > 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Leaves the columns before the cell's; returns how the cell's compares to the one that is current then: at most 0. REQUIRES: it is
 * not done. */
static int pass_columns(rq__column_tracker *t, const rq_cell *cell)
{
    int c = compare_qualifier(cell, t->columns[t->index]);
    if (c <= 0) return c;
    forget_last(t);
    t->index = first_not_before(t, cell);
    t->count = 0;
    return t->index == t->column_count ? -1 : compare_qualifier(cell, t->columns[t->index]);
}

rq__match rq__column_tracker_check_column(rq__column_tracker *t, const rq_cell *cell)
{
    if (t->columns == NULL) return RQ__MATCH_INCLUDE;
    if (rq__column_tracker_is_done(t)) return RQ__MATCH_NEXT_ROW;
    if (pass_columns(t, cell) == 0) return RQ__MATCH_INCLUDE;
    if (rq__column_tracker_is_done(t)) return RQ__MATCH_NEXT_ROW;
    forget_last(t);
    return RQ__MATCH_NEXT_COLUMN;
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
    if (t->columns == NULL || rq__column_tracker_is_done(t)) return;
    int c = pass_columns(t, cell);
    forget_last(t);
    if (c == 0) next_column(t);
}

rq__match rq__column_tracker_next(rq__column_tracker *t, const rq_cell *cell)
{
    if (t->columns == NULL) return RQ__MATCH_NEXT_COLUMN;
    rq__column_tracker_done_with(t, cell);
    return t->index >= t->column_count ? RQ__MATCH_NEXT_ROW : RQ__MATCH_NEXT_COLUMN;
}
