/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files a read can skip: those whose cells are all too old, too new or were loaded after the
 * read began, and those whose bloom excludes the row or column. A skipped file certainly has
 * nothing for the read; another file may have nothing, too.
 */
#ifndef RQ_STORE_FILE_CHOICE_H
#define RQ_STORE_FILE_CHOICE_H

#include "hfile/read_ctx.h"
#include "store/scan.h"
#include "store/store.h"

/* The times at which the cells wanted by a read were written. */
typedef struct rq__wanted_times {
    uint64_t read_point;
    int64_t oldest; /* files whose newest cell is older are skipped; INT64_MIN: none */
    bool all_time;
    rq_time_range range; /* unless all_time */
} rq__wanted_times;

/* A file's time range treats DeleteColumn and DeleteFamily as reaching down to 0 (HBASE:
 * TimeRangeTracker), so no marker is missed. */
static inline bool rq__file_has_times(const rq_store_file *f, const rq__wanted_times *t)
{
    if (rq_hfile_reader_info(f->reader)->entry_count == 0 || f->visible_from > t->read_point)
        return false;
    if (f->min_ts > f->max_ts) return true;
    if (f->max_ts < t->oldest) return false;
    return t->all_time || (f->min_ts < t->range.max && f->max_ts >= t->range.min);
}

/* What to look up in blooms. */
typedef struct rq__bloom_question {
    rq_slice row;
    rq_slice column;       /* a column of the row, with has_column */
    const rq_store *store; /* reports damaged blooms; NULL: no reports */
    bool has_column;
    bool is_prefix; /* `row` is the prefix of all rows of the scan */
} rq__bloom_question;

/* *ret: whether the file may contain it. A damaged bloom costs time, not data. RQ_E_AGAIN. */
RQ_NODISCARD
rq_err rq__file_passes_bloom(const rq_store_file *f, const rq__bloom_question *q, rq_read_ctx *ctx,
                             bool *ret, rq_error *why);

#endif
