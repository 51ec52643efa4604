/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks which columns are wanted and how many versions of each were taken. There are two kinds. An
 * explicit tracker is for the columns that a read names, and also gives the column to seek to
 * (HBASE: ExplicitColumnTracker). A wildcard tracker is for all columns; it is also used for raw
 * scans, flush and compaction, and therefore sees markers, too, but counts only puts (HBASE:
 * ScanWildcardColumnTracker).
 *
 * The two differ as in HBase: with MIN_VERSIONS an explicit tracker also takes the first expired
 * version at or beyond the minimum, a wildcard tracker does not.
 */
#ifndef RQ_STORE_COLUMN_TRACKER_H
#define RQ_STORE_COLUMN_TRACKER_H

#include "store/scan_key.h"

/* What to do with the current cell. HBASE: ScanQueryMatcher.MatchCode. */
typedef enum rq__match {
    RQ__MATCH_INCLUDE,
    RQ__MATCH_INCLUDE_AND_NEXT_COLUMN,
    RQ__MATCH_INCLUDE_AND_NEXT_ROW,
    RQ__MATCH_SKIP,
    RQ__MATCH_NEXT_COLUMN,
    RQ__MATCH_NEXT_ROW,
    RQ__MATCH_HINT,      /* seek to the filter's hint */
    RQ__MATCH_SCAN_DONE, /* the filter wants no more rows */
} rq__match;

typedef struct rq__column_tracker {
    rq_arena *arena;
    const rq_slice *columns; /* NULL: all; else ascending and unique */
    uint32_t column_count;
    int32_t max_versions;
    int32_t min_versions;
    int64_t oldest; /* cells with older timestamps are expired */
    /* state of the current row */
    uint32_t index; /* explicit: index of the next wanted column */
    int32_t count;  /* versions taken of the current column */
    bool has_column;
    uint8_t last_type;
    int64_t last_ts;       /* timestamp of the last version taken; INT64_MAX: none */
    rq__kept_bytes column; /* wildcard: the current column */
} rq__column_tracker;

static inline bool rq__column_tracker_is_explicit(const rq__column_tracker *t)
{
    return t->columns != NULL;
}

/* Called before each row. */
static inline void rq__column_tracker_reset(rq__column_tracker *t)
{
    t->index = 0;
    t->count = 0;
    t->has_column = false;
    t->last_ts = INT64_MAX;
    t->last_type = 0;
}

/* Whether no more columns of this row are wanted. */
static inline bool rq__column_tracker_is_done(const rq__column_tracker *t)
{
    return t->columns != NULL && t->index >= t->column_count;
}

/* Whether all versions from this timestamp down are expired and none is kept for MIN_VERSIONS. */
static inline bool rq__column_tracker_is_expired(const rq__column_tracker *t, int64_t ts)
{
    return t->min_versions <= 0 && ts < t->oldest;
}

/* The column to seek to. False: the next one, whichever it is. */
static inline bool rq__column_tracker_hint(const rq__column_tracker *t, rq_slice *ret)
{
    if (t->columns == NULL || t->index >= t->column_count) return false;
    *ret = t->columns[t->index];
    return true;
}

/* Whether the cell's column is wanted: INCLUDE, NEXT_COLUMN or NEXT_ROW. */
rq__match rq__column_tracker_check_column(rq__column_tracker *t, const rq_cell *cell);
/* Whether this version of the column is wanted. `keep_all`: it is kept regardless of the count,
 * and not counted. */
RQ_NODISCARD
rq_err rq__column_tracker_check_versions(rq__column_tracker *t, const rq_cell *cell, bool keep_all,
                                         rq__match *ret);
/* rq__column_tracker_check_versions for the kind that wants all columns. */
RQ_NODISCARD
static inline rq_err rq__column_tracker_check_any(rq__column_tracker *t, const rq_cell *cell,
                                                  bool keep_all, rq__match *ret)
{
    *ret = RQ__MATCH_INCLUDE;
    if (!t->has_column ||
        !rq_short_eq(cell->qualifier, cell->qualifier_len, t->column.ptr, t->column.len)) {
        t->last_ts = INT64_MAX;
        t->last_type = 0;
        RQ_TRY(rq__kept_bytes_set(&t->column, t->arena, cell->qualifier, cell->qualifier_len));
        t->has_column = true;
        t->count = 0;
    } else if (!keep_all && cell->timestamp == t->last_ts && cell->type == t->last_type) {
        *ret = RQ__MATCH_SKIP; /* an older write of the same version */
        return RQ_OK;
    }
    if (keep_all) return RQ_OK;
    if (!rq_cell_is_delete(cell) && t->count < INT32_MAX) t->count++;
    if (t->count > t->max_versions || (t->count > t->min_versions && cell->timestamp < t->oldest)) {
        *ret = RQ__MATCH_NEXT_COLUMN;
        return RQ_OK;
    }
    t->last_ts = cell->timestamp;
    t->last_type = cell->type;
    return RQ_OK;
}
/* Reports that no more versions of the cell's column are wanted. */
void rq__column_tracker_done_with(rq__column_tracker *t, const rq_cell *cell);
/* Like rq__column_tracker_done_with; returns NEXT_COLUMN or NEXT_ROW. */
rq__match rq__column_tracker_next(rq__column_tracker *t, const rq_cell *cell);

#endif
