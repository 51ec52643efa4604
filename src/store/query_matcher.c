/* SPDX-License-Identifier: Apache-2.0 */
/* See query_matcher.h. */
#include "store/query_matcher.h"

#include "store/mob.h"

int64_t rq__oldest_unexpired(const rq_family_schema *family, int64_t now_ms)
{
    if (family->ttl_s == RQ_TTL_FOREVER || family->ttl_s < 0) return INT64_MIN + 1;
    return now_ms - (int64_t)family->ttl_s * 1000;
}

bool rq__cell_ttl_expired(const rq_cell *cell, int64_t now_ms)
{
    rq_slice ttl;
    if (RQ_LIKELY(cell->tags_len == 0) || !rq_cell_tag(cell, RQ_TAG_TTL, &ttl) || ttl.len != 8)
        return false;
    int64_t end;
    int64_t ttl_ms = (int64_t)rq_get_be64(ttl.ptr);
    if (__builtin_add_overflow(cell->timestamp, ttl_ms, &end)) return false;
    return end < now_ms;
}

static int32_t min32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

rq_err rq__query_matcher_init(rq__query_matcher *m, rq_arena *arena, const rq_family_schema *schema,
                              const rq_scan *scan, const rq_scan_family *family, int64_t now_ms)
{
    bool has_columns = family != NULL && family->qualifier_count > 0;
    int32_t wanted =
        scan->raw ? scan->max_versions : min32(scan->max_versions, schema->max_versions);
    int32_t checked = wanted;
    bool refs_only = scan->mob_refs_only && schema->is_mob;
    if (scan->filter != NULL || refs_only) checked = scan->raw ? INT32_MAX : schema->max_versions;

    *m = (rq__query_matcher){
        .filter = scan->filter,
        .raw = scan->raw,
        .keep_deleted = schema->keep_deleted != RQ_KEEP_DELETED_FALSE,
        .new_version_behavior = schema->new_version_behavior && !scan->raw,
        .mob_refs_only = refs_only,
        .time_range =
            family != NULL && family->has_time_range ? family->time_range : scan->time_range,
        .now_ms = now_ms,
        .versions_after_filter = wanted,
        .deletes.arena = arena,
        .columns =
            {
                .arena = arena,
                .columns = has_columns ? family->qualifiers : NULL,
                .column_count = has_columns ? (uint32_t)family->qualifier_count : 0,
                .max_versions = checked,
                .min_versions = schema->min_versions,
                .oldest = scan->raw ? 0 : rq__oldest_unexpired(schema, now_ms),
                .last_ts = INT64_MAX,
            },
    };
    m->all_time = m->time_range.min == 0 && m->time_range.max == INT64_MAX;
    m->filter_may_end = m->filter != NULL && rq_filter_may_end(m->filter);
    /* Versions are counted again after the filter only if the tracker's limit is above the wanted
     * number, or if the tracker does not count each cell that passes the filter (markers in raw
     * scans). */
    m->counts_filtered = m->raw || m->new_version_behavior || wanted < checked;
    m->is_simple =
        m->all_time && !has_columns && !m->raw && !m->new_version_behavior && !m->mob_refs_only;
    if (m->new_version_behavior)
        RQ_TRY(rq__new_version_tracker_new(arena, &m->columns, schema->max_versions, wanted,
                                           &m->tracker));
    return RQ_OK;
}

rq__wanted_times rq__query_matcher_times(const rq__query_matcher *m, const rq_family_schema *schema,
                                         uint64_t read_point)
{
    return (rq__wanted_times){
        .read_point = read_point,
        .oldest = schema->min_versions > 0 || m->raw ? INT64_MIN
                                                     : rq__oldest_unexpired(schema, m->now_ms),
        .all_time = m->all_time,
        .range = m->time_range,
    };
}

void rq__query_matcher_reset(rq__query_matcher *m)
{
    m->has_code = m->filter_paused = false;
    rq__delete_tracker_reset(&m->deletes);
    rq__column_tracker_reset(&m->columns);
    if (m->tracker != NULL) rq__new_version_tracker_reset(m->tracker);
    m->has_filtered_column = false;
    m->has_code = false;
}

bool rq__query_matcher_hint(const rq__query_matcher *m, rq_slice *ret)
{
    return rq__column_tracker_hint(&m->columns, ret);
}

/* Whether all cells of this column with the cell's timestamp that come behind it are skipped. Those
 * cells have the same type, or a type that is ordered behind it. */
static bool is_version_over(const rq__query_matcher *m, const rq_cell *cell)
{
    if (rq__delete_tracker_hides_version(&m->deletes, cell)) return true;
    /* A put of a version that was taken already. Tags: its own TTL may be the reason instead. */
    return cell->type == RQ_TYPE_PUT && cell->tags_len == 0 &&
           cell->timestamp == m->columns.last_ts;
}

bool rq__query_matcher_skip_to(const rq__query_matcher *m, const rq_cell *cell, rq_cell *ret)
{
    if (m->raw || m->tracker != NULL || m->filter_paused) return false;
    rq_slice row = rq_cell_row(cell);
    rq_slice family = rq_cell_family(cell);
    rq_slice qualifier = rq_cell_qualifier(cell);
    bool is_column_over = rq__delete_tracker_hides_column(&m->deletes, cell);
    if (!is_column_over && !is_version_over(m, cell)) return false;
    *ret = is_column_over || cell->timestamp <= 0
               ? rq_cell_last_on_column(row, family, qualifier)
               : rq_cell_first_on_column_ts(row, family, qualifier, cell->timestamp - 1);
    return true;
}

static rq__match next_column(rq__query_matcher *m, const rq_cell *cell)
{
    if (m->tracker != NULL) return RQ__MATCH_NEXT_COLUMN;
    return rq__column_tracker_next(&m->columns, cell);
}

static rq_err add_marker(rq__query_matcher *m, const rq_cell *cell)
{
    /* Without KEEP_DELETED_CELLS a marker newer than the time range still hides cells in it, as if
     * the range were applied after all deletes. */
    if (!m->all_time) {
        if (cell->timestamp < m->time_range.min) return RQ_OK;
        if (m->keep_deleted && cell->timestamp >= m->time_range.max) return RQ_OK;
    }
    if (m->tracker != NULL) return rq__new_version_tracker_add(m->tracker, cell);
    return rq__delete_tracker_add(&m->deletes, cell);
}

/* Whether it marks a column that is not wanted. Such a marker hides no wanted cell, so its column, or the rest of the row, is skipped,
 * as it would be at a put: a row may have a million of them. */
static bool is_unwanted_marker(rq__query_matcher *m, const rq_cell *cell, rq__match *ret)
{
    bool of_column = cell->type == RQ_TYPE_DELETE || cell->type == RQ_TYPE_DELETE_COLUMN;
    if (!of_column || cell->qualifier_len == 0 || !rq__column_tracker_is_explicit(&m->columns))
        return false;
    *ret = rq__column_tracker_check_column(&m->columns, cell);
    return *ret != RQ__MATCH_INCLUDE;
}

static rq_err count_filtered(rq__query_matcher *m, const rq_cell *cell)
{
    if (!m->has_filtered_column ||
        !rq_slice_eq(rq_cell_qualifier(cell), rq__kept_bytes_slice(&m->filtered_column))) {
        RQ_TRY(rq__kept_bytes_set(&m->filtered_column, m->columns.arena, cell->qualifier,
                                  cell->qualifier_len));
        m->has_filtered_column = true;
        m->filtered_count = 0;
    }
    m->filtered_count++;
    return RQ_OK;
}

/* HBASE: HMobStore.createScanner adds a MobReferenceOnlyFilter behind the scan's own filter. */
static rq_filter_code without_values(rq_filter_code code, const rq_cell *cell)
{
    if (rq__mob_is_reference(cell)) return code;
    switch (code) {
    case RQ_FILTER_INCLUDE:
        return RQ_FILTER_SKIP;
    case RQ_FILTER_INCLUDE_AND_NEXT_COL:
        return RQ_FILTER_NEXT_COL;
    case RQ_FILTER_INCLUDE_AND_SEEK_NEXT_ROW:
        return RQ_FILTER_NEXT_ROW;
    default:
        return code;
    }
}

rq_err rq__query_matcher_merge(rq__query_matcher *m, const rq_cell *cell, rq_filter_code code,
                               rq__match *match)
{
    switch (code) {
    case RQ_FILTER_SKIP:
        *match = *match == RQ__MATCH_INCLUDE                   ? RQ__MATCH_SKIP
                 : *match == RQ__MATCH_INCLUDE_AND_NEXT_COLUMN ? RQ__MATCH_NEXT_COLUMN
                                                               : RQ__MATCH_NEXT_ROW;
        return RQ_OK;
    case RQ_FILTER_NEXT_COL:
        *match =
            *match == RQ__MATCH_INCLUDE_AND_NEXT_ROW ? RQ__MATCH_NEXT_ROW : next_column(m, cell);
        return RQ_OK;
    case RQ_FILTER_NEXT_ROW:
        *match = RQ__MATCH_NEXT_ROW;
        return RQ_OK;
    case RQ_FILTER_SEEK_NEXT_USING_HINT:
        *match = RQ__MATCH_HINT;
        return RQ_OK;
    case RQ_FILTER_INCLUDE:
        break;
    case RQ_FILTER_INCLUDE_AND_NEXT_COL:
        if (*match == RQ__MATCH_INCLUDE) *match = RQ__MATCH_INCLUDE_AND_NEXT_COLUMN;
        break;
    case RQ_FILTER_INCLUDE_AND_SEEK_NEXT_ROW:
        *match = RQ__MATCH_INCLUDE_AND_NEXT_ROW;
        break;
    }
    if (m->counts_filtered) RQ_TRY(count_filtered(m, cell));
    if (m->counts_filtered && m->filtered_count > m->versions_after_filter)
        *match =
            *match == RQ__MATCH_INCLUDE_AND_NEXT_ROW ? RQ__MATCH_NEXT_ROW : RQ__MATCH_NEXT_COLUMN;
    /* The tracker also has the seek target. */
    if ((*match == RQ__MATCH_INCLUDE_AND_NEXT_COLUMN || *match == RQ__MATCH_NEXT_COLUMN) &&
        m->tracker == NULL)
        rq__column_tracker_done_with(&m->columns, cell);
    return RQ_OK;
}

static rq_err merge_filtered(rq__query_matcher *m, const rq_cell *cell, rq_filter_code code,
                             rq__match *ret)
{
    if (m->mob_refs_only) code = without_values(code, cell);
    return rq__query_matcher_merge(m, cell, code, ret);
}

/* HBASE: UserScanQueryMatcher.matchColumn. */
static rq_err match_column(rq__query_matcher *m, const rq_cell *cell, rq__match *ret, rq_error *why)
{
    if (!m->all_time) {
        if (cell->timestamp >= m->time_range.max) {
            *ret = RQ__MATCH_SKIP;
            return RQ_OK;
        }
        if (cell->timestamp < m->time_range.min) {
            *ret = next_column(m, cell);
            return RQ_OK;
        }
    }
    *ret = rq__column_tracker_check_column(&m->columns, cell);
    if (*ret != RQ__MATCH_INCLUDE) return RQ_OK;
    if (m->tracker != NULL)
        *ret = rq__new_version_tracker_check_versions(m->tracker, cell, false);
    else
        RQ_TRY(rq__column_tracker_check_versions(&m->columns, cell, false, ret));
    if (*ret == RQ__MATCH_SKIP || *ret == RQ__MATCH_NEXT_COLUMN ||
        (m->filter == NULL && !m->mob_refs_only))
        return RQ_OK;
    rq_filter_code code = RQ_FILTER_INCLUDE;
    rq_err rc = m->filter == NULL ? RQ_OK : rq_filter_cell(m->filter, cell, &code, why);
    if (rc != RQ_OK) return rq__query_matcher_filter_failed(m, cell, *ret, rc);
    return merge_filtered(m, cell, code, ret);
}

rq_err rq__query_matcher_pause(rq__query_matcher *m, const rq_cell *cell)
{
    RQ_TRY(rq__kept_bytes_set(&m->paused_qualifier, m->columns.arena, cell->qualifier,
                              cell->qualifier_len));
    m->paused_timestamp = cell->timestamp;
    m->paused_type = cell->type;
    m->has_code = m->filter_paused = true;
    m->is_judged = false;
    return RQ_OK;
}

rq_err rq__query_matcher_filter_failed(rq__query_matcher *m, const rq_cell *cell, rq__match judged,
                                       rq_err rc)
{
    if (rc != RQ_E_AGAIN) return rc;
    RQ_TRY(rq__query_matcher_pause(m, cell));
    m->is_judged = true;
    m->judged = judged;
    return RQ_E_AGAIN;
}

/* A compaction may have dropped the cell between two calls: then it is treated as not yet seen. */
static bool is_paused_cell(const rq__query_matcher *m, const rq_cell *cell)
{
    return cell->timestamp == m->paused_timestamp && cell->type == m->paused_type &&
           rq_slice_eq(rq_cell_qualifier(cell), rq__kept_bytes_slice(&m->paused_qualifier));
}

/* Matches the cell at which the filter paused; or the one that replaced it. */
static rq_err match_paused(rq__query_matcher *m, const rq_cell *cell, rq__match *ret, rq_error *why)
{
    m->has_code = m->filter_paused = false;
    if (!is_paused_cell(m, cell)) return rq__query_matcher_match(m, cell, ret, why);
    *ret = m->judged;
    if (!m->is_judged) RQ_TRY(rq__column_tracker_check_any(&m->columns, cell, false, ret));
    if (*ret != RQ__MATCH_INCLUDE && !m->is_judged) return RQ_OK;
    rq_filter_code code;
    rq_err rc = rq_filter_resume_cell(m->filter, cell, &code, why);
    if (rc != RQ_OK) return rq__query_matcher_filter_failed(m, cell, *ret, rc);
    return merge_filtered(m, cell, code, ret);
}

rq_err rq__query_matcher_match_any(rq__query_matcher *m, const rq_cell *cell, rq__match *ret,
                                   rq_error *why)
{
    if (rq__column_tracker_is_done(&m->columns)) {
        *ret = RQ__MATCH_NEXT_ROW;
        return RQ_OK;
    }
    if (m->tracker == NULL && rq__column_tracker_is_expired(&m->columns, cell->timestamp)) {
        *ret = next_column(m, cell);
        return RQ_OK;
    }
    if (rq__cell_ttl_expired(cell, m->now_ms)) {
        *ret = RQ__MATCH_SKIP;
        return RQ_OK;
    }
    if (m->raw) return match_column(m, cell, ret, why);
    if (rq_cell_is_delete(cell)) {
        if (is_unwanted_marker(m, cell, ret)) return RQ_OK;
        *ret = RQ__MATCH_SKIP;
        return add_marker(m, cell);
    }
    if (m->tracker != NULL) {
        rq__deleted deleted;
        RQ_TRY(rq__new_version_tracker_check(m->tracker, cell, &deleted));
        if (deleted != RQ__NOT_DELETED) {
            *ret = RQ__MATCH_SKIP;
            return RQ_OK;
        }
    } else if (!rq__delete_tracker_is_empty(&m->deletes)) {
        switch (rq__delete_tracker_check(&m->deletes, cell)) {
        case RQ__COLUMN_DELETED:
            *ret = next_column(m, cell);
            return RQ_OK;
        case RQ__VERSION_DELETED:
            *ret = RQ__MATCH_SKIP;
            return RQ_OK;
        case RQ__NOT_DELETED:
            break;
        }
    }
    return match_column(m, cell, ret, why);
}

/* --- a row that was begun elsewhere ----------------------------------------------------------- */
rq_err rq__query_matcher_enter_behind(rq__query_matcher *m, const rq_cell *last, bool included)
{
    rq__match match;
    rq__query_matcher_reset(m);
    if (last == NULL) return RQ_OK;
    RQ_TRY(rq__column_tracker_check_any(&m->columns, last, false, &match));
    RQ_ASSERT(match == RQ__MATCH_INCLUDE);
    return included && m->counts_filtered ? count_filtered(m, last) : RQ_OK;
}

rq_err rq__query_matcher_match_given(rq__query_matcher *m, const rq_cell *cell, rq__match *ret,
                                     rq_error *why)
{
    if (m->filter_paused) return match_paused(m, cell, ret, why);
    m->has_code = false;
    RQ_TRY(rq__column_tracker_check_any(&m->columns, cell, false, ret));
    return *ret == RQ__MATCH_INCLUDE ? rq__query_matcher_merge(m, cell, m->filter_code, ret)
                                     : RQ_OK;
}
