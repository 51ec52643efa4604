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

static rq__match check_wildcard(rq__column_tracker *t, const rq_cell *cell)
{
    if (!rq_cell_is_delete(cell) && t->count < INT32_MAX) t->count++;
    if (t->count > t->max_versions) return RQ__MATCH_NEXT_COLUMN;
    if (t->count > t->min_versions && cell->timestamp < t->oldest) return RQ__MATCH_NEXT_COLUMN;
    t->last_ts = cell->timestamp;
    t->last_type = cell->type;
    return RQ__MATCH_INCLUDE;
}

rq_err rq__column_tracker_check_versions(rq__column_tracker *t, const rq_cell *cell, bool keep_all,
                                         rq__match *ret)
{
    if (t->columns != NULL) {
        *ret = keep_all ? RQ__MATCH_INCLUDE : check_explicit(t, cell);
        return RQ_OK;
    }
    if (!t->has_column ||
        !rq_short_eq(cell->qualifier, cell->qualifier_len, t->column.ptr, t->column.len)) {
        forget_last(t);
        RQ_TRY(rq__kept_bytes_set(&t->column, t->arena, cell->qualifier, cell->qualifier_len));
        t->has_column = true;
        t->count = 0;
    } else if (!keep_all && cell->timestamp == t->last_ts && cell->type == t->last_type) {
        *ret = RQ__MATCH_SKIP; /* an older write of the same version */
        return RQ_OK;
    }
    *ret = keep_all ? RQ__MATCH_INCLUDE : check_wildcard(t, cell);
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
