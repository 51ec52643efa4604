/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks delete markers of the current row and tells which puts they hide. Cells come in order, so
 * every marker that can hide a put comes before it: family markers first (they have the empty
 * qualifier), column markers before the puts of their column and timestamp. HBASE:
 * ScanDeleteTracker.
 *
 * It keeps the newest DeleteFamily, all DeleteFamilyVersions of the row, and one marker of the
 * current column: the newest DeleteColumn, else the last Delete. Everything is copied, so it stays
 * valid while a scanner is suspended.
 */
#ifndef RQ_STORE_DELETE_TRACKER_H
#define RQ_STORE_DELETE_TRACKER_H

#include "store/scan_key.h"

typedef enum rq__deleted {
    RQ__NOT_DELETED,
    RQ__VERSION_DELETED, /* this cell is deleted; older ones of the column may not be */
    RQ__COLUMN_DELETED,  /* this cell and all older ones of the column are deleted */
} rq__deleted;

typedef struct rq__delete_tracker {
    rq_arena *arena;
    bool has_family;
    bool has_column;
    uint8_t column_type;
    int64_t family_ts;
    int64_t column_ts;
    rq__kept_bytes column; /* the qualifier of the column marker */
    int64_t *versions;     /* DeleteFamilyVersion, descending */
    uint32_t version_count;
    uint32_t version_cap;
} rq__delete_tracker;

static inline void rq__delete_tracker_reset(rq__delete_tracker *t)
{
    t->has_family = false;
    t->has_column = false;
    t->version_count = 0;
}

static inline bool rq__delete_tracker_is_empty(const rq__delete_tracker *t)
{
    return (t->version_count | (unsigned)t->has_family | (unsigned)t->has_column) == 0;
}

/* Adds a delete marker. */
RQ_NODISCARD
rq_err rq__delete_tracker_add(rq__delete_tracker *t, const rq_cell *cell);
/* Checks a put. */
rq__deleted rq__delete_tracker_check(rq__delete_tracker *t, const rq_cell *cell);
/* Whether the markers added so far hide all puts of the cell's column that are not newer than the
 * cell, and make all such markers redundant. The cell is a put that was checked, or a marker that
 * was added. */
bool rq__delete_tracker_hides_column(const rq__delete_tracker *t, const rq_cell *cell);
/* Likewise for puts and markers of the column with the cell's timestamp. */
bool rq__delete_tracker_hides_version(const rq__delete_tracker *t, const rq_cell *cell);

#endif
