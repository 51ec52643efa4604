/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files a read leaves untouched: those whose cells are all too old, too new or loaded after
 * it began, and those whose bloom says that they have nothing. Who is left out surely has nothing
 * for the read; who is not may still have nothing.
 */
#ifndef RQ_STORE_FILE_CHOICE_H
#define RQ_STORE_FILE_CHOICE_H

#include "hfile/read_ctx.h"
#include "store/scan.h"
#include "store/store.h"

/* When what a read wants was written. */
typedef struct rq__wanted_times {
    uint64_t read_point;
    int64_t oldest; /* files whose newest cell is older are left out; INT64_MIN: none */
    bool all_time;
    rq_time_range range; /* unless all_time */
} rq__wanted_times;

/* A file's time range counts a DeleteColumn and a DeleteFamily as reaching down to 0 (HBASE:
 * TimeRangeTracker), so no marker is missed. */
static inline bool rq__file_has_times(const rq_store_file *f, const rq__wanted_times *t)
{
    if (rq_hfile_reader_info(f->reader)->entry_count == 0 || f->visible_from > t->read_point)
        return false;
    if (f->min_ts > f->max_ts) return true;
    if (f->max_ts < t->oldest) return false;
    return t->all_time || (f->min_ts < t->range.max && f->max_ts >= t->range.min);
}

/* What blooms are asked for. */
typedef struct rq__bloom_question {
    rq_slice row;
    rq_slice column;          /* of the row, with has_column */
    const struct rq_log *log; /* hears of damaged blooms; may be NULL */
    bool has_column;
    bool is_prefix; /* `row` is what all rows of the scan begin with */
} rq__bloom_question;

/* *ret: the file may have it. A damaged bloom costs time, not data. RQ_E_AGAIN. */
RQ_NODISCARD
rq_err rq__file_passes_bloom(const rq_store_file *f, const rq__bloom_question *q, rq_read_ctx *ctx,
                             bool *ret, rq_error *why);

#endif
