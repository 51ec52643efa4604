/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides what a read does with each cell of a row: returns it, skips it, or skips its column or
 * row. HBASE: UserScanQueryMatcher with NormalUserScanQueryMatcher and RawScanQueryMatcher.
 *
 * The checks in order; the first that applies decides:
 *   1. the filter wants no more rows
 *   2. all wanted columns are done; the rest of the column is expired; the cell's own TTL is over
 *   3. a delete marker: recorded, not returned; of a    } not in raw scans
 *      column that is not wanted: skipped               }
 *   4. a put hidden by a marker                         }
 *   5. the time range
 *   6. is the column wanted, is this version of it wanted
 *   7. the filter; then the versions that passed the filter are counted again
 *
 * Its state concerns one row, consists of copies, and is kept while a scanner is suspended.
 */
#ifndef RQ_STORE_QUERY_MATCHER_H
#define RQ_STORE_QUERY_MATCHER_H

#include "store/column_tracker.h"
#include "store/delete_tracker.h"
#include "store/file_choice.h"
#include "store/new_version_tracker.h"
#include "store/scan.h"
#include "descriptor/schema.h"

typedef struct rq__query_matcher {
    rq_filter *filter;
    bool raw;
    bool keep_deleted; /* KEEP_DELETED_CELLS is TRUE or TTL: a time range may include deleted
                        * cells */
    bool all_time;
    bool new_version_behavior;
    bool is_simple;       /* only deletes, expiry and versions are checked before the filter */
    bool filter_may_end;  /* false: all_remaining need not be called */
    bool counts_filtered; /* versions_after_filter may reject what the tracker accepted */
    bool mob_refs_only;   /* only MOB references are returned */
    bool has_code; /* the filter's code for the next cell is known (`filter_code`), or the filter
                           * paused at it */
    bool filter_paused; /* the filter has not decided on the next cell, which `paused_…`
                           * identifies */
    bool is_judged;     /* the checks before the filter have decided on that cell: `judged` */
    rq__match judged;
    rq_filter_code filter_code;
    rq_time_range time_range;
    int64_t now_ms;
    int32_t versions_after_filter;
    rq__delete_tracker deletes;
    rq__column_tracker columns;
    rq__new_version_tracker *tracker; /* replaces `deletes` and `columns` with
                                       * NEW_VERSION_BEHAVIOR */
    rq__kept_bytes paused_qualifier;
    int64_t paused_timestamp;
    uint8_t paused_type;
    /* the current column, for versions_after_filter */
    rq__kept_bytes filtered_column;
    bool has_filtered_column;
    int32_t filtered_count;
} rq__query_matcher;

/* The oldest timestamp not expired under the family's TTL. */
int64_t rq__oldest_unexpired(const rq_family_schema *family, int64_t now_ms);
/* HBASE: ScanQueryMatcher.isCellTTLExpired: the cell's own TTL tag. */
bool rq__cell_ttl_expired(const rq_cell *cell, int64_t now_ms);

RQ_NODISCARD
rq_err rq__query_matcher_init(rq__query_matcher *m, rq_arena *arena, const rq_family_schema *schema,
                              const rq_scan *scan, const rq_scan_family *family, int64_t now_ms);
/* The times at which cells it may return were written. */
rq__wanted_times rq__query_matcher_times(const rq__query_matcher *m, const rq_family_schema *schema,
                                         uint64_t read_point);
/* Called before each row. */
void rq__query_matcher_reset(rq__query_matcher *m);
/* The checks from step 2 on. */
RQ_NODISCARD
rq_err rq__query_matcher_match_any(rq__query_matcher *m, const rq_cell *cell, rq__match *ret,
                                   rq_error *why);
/* Called when the filter failed after the other checks had decided `judged`: returns the
 * filter's error. After RQ_E_AGAIN the next match of the same cell continues there. */
RQ_COLD RQ_NODISCARD rq_err rq__query_matcher_filter_failed(rq__query_matcher *m,
                                                            const rq_cell *cell, rq__match judged,
                                                            rq_err rc);
/* Combines an INCLUDE code with the filter's code. HBASE:
 * UserScanQueryMatcher.mergeFilterResponse. */
RQ_NODISCARD
rq_err rq__query_matcher_merge(rq__query_matcher *m, const rq_cell *cell, rq_filter_code code,
                               rq__match *match);

/* --- a row that was begun elsewhere (row_pass.h) ---------------------------------------------- */
/* Replaces rq__query_matcher_reset for a row whose cells up to `last` (NULL: none) were live puts,
 * one per column, and were passed to the filter already. `included`: the filter included the last
 * one. */
RQ_NODISCARD
rq_err rq__query_matcher_enter_behind(rq__query_matcher *m, const rq_cell *last, bool included);
/* Sets the filter's code for the next cell, which is also such a put. */
static inline void rq__query_matcher_set_code(rq__query_matcher *m, rq_filter_code code)
{
    m->has_code = true;
    m->filter_code = code;
}
/* Records that the filter returned RQ_E_AGAIN for this cell, which is the next one passed to a
 * match function: the filter is then resumed. */
RQ_COLD RQ_NODISCARD rq_err rq__query_matcher_pause(rq__query_matcher *m, const rq_cell *cell);
RQ_NODISCARD
rq_err rq__query_matcher_match_given(rq__query_matcher *m, const rq_cell *cell, rq__match *ret,
                                     rq_error *why);

/* Decides on a cell. Inline: the common case, a put without tags in a row without markers. */
RQ_NODISCARD
static inline rq_err rq__query_matcher_match(rq__query_matcher *m, const rq_cell *cell,
                                             rq__match *ret, rq_error *why)
{
    if (RQ_UNLIKELY(m->has_code)) return rq__query_matcher_match_given(m, cell, ret, why);
    if (m->filter_may_end && rq_filter_all_remaining(m->filter)) {
        *ret = RQ__MATCH_SCAN_DONE;
        return RQ_OK;
    }
    if (RQ_UNLIKELY(!m->is_simple || cell->type != RQ_TYPE_PUT || cell->tags_len != 0 ||
                    !rq__delete_tracker_is_empty(&m->deletes)))
        return rq__query_matcher_match_any(m, cell, ret, why);
    if (RQ_UNLIKELY(rq__column_tracker_is_expired(&m->columns, cell->timestamp))) {
        *ret = RQ__MATCH_NEXT_COLUMN;
        return RQ_OK;
    }
    RQ_TRY(rq__column_tracker_check_any(&m->columns, cell, false, ret));
    if (m->filter == NULL || *ret != RQ__MATCH_INCLUDE) return RQ_OK;
    rq_filter_code code;
    rq_err rc = rq_filter_cell(m->filter, cell, &code, why);
    if (RQ_UNLIKELY(rc != RQ_OK)) return rq__query_matcher_filter_failed(m, cell, *ret, rc);
    if (code == RQ_FILTER_SKIP) {
        *ret = RQ__MATCH_SKIP;
        return RQ_OK;
    }
    if (code == RQ_FILTER_INCLUDE && !m->counts_filtered) return RQ_OK;
    return rq__query_matcher_merge(m, cell, code, ret);
}
/* After SKIP, for columns with many cells to skip: whether the cells behind this one, up to the key
 * *ret, are skipped too and change nothing, so that the read may seek there. The key points into
 * the cell. */
bool rq__query_matcher_skip_to(const rq__query_matcher *m, const rq_cell *cell, rq_cell *ret);
/* After NEXT_COLUMN codes: the column to seek to. False: the column that follows the cell's. */
bool rq__query_matcher_hint(const rq__query_matcher *m, rq_slice *ret);

#endif
