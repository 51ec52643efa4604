/* SPDX-License-Identifier: Apache-2.0 */
/* See row_pass.h. */
#include "store/row_pass.h"

#include "hfile/walk.h"

/* Limit of included cells of a row while a row filter has not decided; longer rows take the
 * ordinary path. So do rows whose values are together longer than RQ_READ_COPY_MAX: the cells are copied in one step. */
#define KEPT_MAX 64

/* The previous cell, a put: its column. */
typedef struct row_column {
    const uint8_t *qualifier;
    size_t qualifier_len; /* SIZE_MAX: there is none */
    int64_t timestamp;
    bool kept;    /* it was included */
    bool is_done; /* the filter wants no more of the column */
} row_column;

typedef struct row_pass {
    const rq_scan *scan;
    rq__query_matcher *matcher;
    rq_filter *filter;
    const rq_pace *pace;
    rq_cell_order order;
    int64_t oldest;
    bool judges_rows, resets, may_end;
    bool decides_rows; /* the filter decides on whole rows: included cells are collected */
    bool has_bound;
    rq_slice bound; /* the first row another source has */
    int64_t work_left;

    rq_hfile_walk walk;
    /* the row at hand */
    row_column last;
    rq_filter_code code; /* the filter's answer for the current cell, if it was asked */
    uint32_t kept_count;
    uint64_t value_bytes; /* of the cells shown to the filter */
    bool keep[KEPT_MAX];
    rq_cell kept[KEPT_MAX];
} row_pass;

bool rq__row_pass_is_for(const rq_scan *scan, const rq__query_matcher *q)
{
    if (scan->filter == NULL || scan->is_get || scan->reversed || !q->is_simple ||
        q->columns.max_versions < 1 || q->versions_after_filter < 1 || q->columns.min_versions > 0)
        return false;
    return !rq_filter_has_filter_row(scan->filter) ||
           (scan->store_limit < 0 && scan->store_offset == 0 &&
            !rq_filter_may_transform(scan->filter));
}

static void begin(row_pass *p, const rq__merge *m, rq__query_matcher *matcher, const rq_scan *scan,
                  uint32_t work_max)
{
    p->scan = scan;
    p->matcher = matcher;
    p->filter = scan->filter;
    p->pace = rq_filter_pace(scan->filter);
    p->order = m->order;
    p->oldest = matcher->columns.oldest;
    p->judges_rows = rq_filter_judges_rows(scan->filter);
    p->resets = rq_filter_resets(scan->filter);
    p->may_end = matcher->filter_may_end;
    p->decides_rows = rq_filter_has_filter_row(scan->filter);
    p->work_left = work_max;
    p->kept_count = 0;
    p->has_bound = rq__merge_bound(m, &p->bound);
    rq_hfile_walk_begin(&p->walk, &m->run->file);
}

/* Whether another source has the row too, or the row is behind the scan's end. */
static bool is_out_of_reach(const row_pass *p, rq_slice row)
{
    return (p->has_bound && rq_row_compare(p->order, row, p->bound) >= 0) ||
           rq_scan_is_behind_stop(p->scan, p->order, row);
}

/* --- a row's cells ---------------------------------------------------------------------------- */
typedef enum row_end {
    ROW_OVER, /* the walk is at the next cell */
    UNASKED,  /* at a cell for which the filter was not asked */
    HAS_CODE, /* at a cell for which `code` is the answer */
    DONE,     /* at a cell of a column of which the filter wants no more */
    PAUSED,   /* at a cell on which the filter is still working */
} row_end;

static bool is_of_last_column(const row_pass *p, const rq_cell *c)
{
    return rq_short_eq(c->qualifier, c->qualifier_len, p->last.qualifier, p->last.qualifier_len);
}

static inline rq_hfile_move leave_cell(row_pass *p, bool kept, bool column_is_done)
{
    const rq_cell *c = &p->walk.cell;
    row_column last = {c->qualifier, c->qualifier_len, c->timestamp, kept, column_is_done};
    rq_hfile_move moved = rq_hfile_walk_next(&p->walk);
    if (moved != RQ_HFILE_NOT_MOVED) p->last = last;
    return moved;
}

/* Moves behind the current cell as `code` says. NOT_MOVED: the next cell is not known here. */
static rq_hfile_move move_on(row_pass *p)
{
    const rq_cell *c = &p->walk.cell;
    bool next_column = false;
    bool kept = false;
    switch (p->code) {
    case RQ_FILTER_SKIP:
        return leave_cell(p, false, false);
    case RQ_FILTER_INCLUDE_AND_NEXT_COL:
    case RQ_FILTER_INCLUDE:
        if (!p->decides_rows || p->kept_count == KEPT_MAX) return RQ_HFILE_NOT_MOVED;
        kept = true;
        next_column = p->code == RQ_FILTER_INCLUDE_AND_NEXT_COL;
        break;
    case RQ_FILTER_NEXT_COL:
        next_column = true;
        break;
    case RQ_FILTER_INCLUDE_AND_SEEK_NEXT_ROW:
    case RQ_FILTER_SEEK_NEXT_USING_HINT:
        return RQ_HFILE_NOT_MOVED;
    case RQ_FILTER_NEXT_ROW:
        return rq_hfile_walk_next_row(&p->walk) ? RQ_HFILE_NEW_ROW : RQ_HFILE_NOT_MOVED;
    }
    /* Markers of the family are at the empty qualifier, so nothing is skipped there. */
    if (next_column && c->qualifier_len == 0) return RQ_HFILE_NOT_MOVED;
    if (kept) p->kept[p->kept_count] = *c;
    rq_hfile_move moved = leave_cell(p, kept, next_column);
    if (moved != RQ_HFILE_NOT_MOVED) p->kept_count += kept;
    return moved;
}

static rq_err read_cells(row_pass *p, row_end *ret, rq_error *why)
{
    p->last = (row_column){.qualifier_len = SIZE_MAX};
    p->kept_count = 0;
    p->value_bytes = 0;
    for (;;) {
        const rq_cell *c = &p->walk.cell;
        p->work_left--;
        *ret = DONE; /* for any cell: the ordinary path skips the column's markers too */
        if (RQ_UNLIKELY(p->last.is_done) && is_of_last_column(p, c)) return RQ_OK;
        *ret = UNASKED;
        if (RQ_UNLIKELY(c->type != RQ_TYPE_PUT || c->tags_len != 0 || c->timestamp < p->oldest))
            return RQ_OK;
        if (RQ_UNLIKELY(is_of_last_column(p, c))) return RQ_OK; /* another version */
        if (RQ_UNLIKELY((p->value_bytes += c->value_len) > RQ_READ_COPY_MAX)) return RQ_OK;
        if (p->may_end && rq_filter_all_remaining(p->filter)) return RQ_OK;
        rq_err rc = rq_filter_cell(p->filter, c, &p->code, why);
        if (RQ_UNLIKELY(rc == RQ_E_AGAIN)) {
            *ret = PAUSED;
            return RQ_OK;
        }
        RQ_TRY(rc);
        rq_hfile_move moved =
            RQ_LIKELY(p->code == RQ_FILTER_SKIP) ? leave_cell(p, false, false) : move_on(p);
        if (RQ_LIKELY(moved == RQ_HFILE_SAME_ROW)) continue;
        *ret = moved == RQ_HFILE_NEW_ROW ? ROW_OVER : HAS_CODE;
        return RQ_OK;
    }
}

/* --- a row ------------------------------------------------------------------------------------ */
/* At the end of a row: asks the filter whether it wants the row, as the region scanner does on the
 * ordinary path. */
static bool decide(row_pass *p)
{
    if (!p->decides_rows) return false; /* nothing of it was included */
    uint32_t count = p->kept_count;
    memset(p->keep, true, count);
    if (!rq_filter_sees_row_cells(p->filter)) return count > 0 && !rq_filter_row(p->filter);
    return rq_filter_row_done(p->filter, p->kept, count, p->keep) != RQ_FILTER_ROW_EXCLUDE &&
           memchr(p->keep, true, count) != NULL;
}

/* Appends the kept cells. */
static rq_err append(const row_pass *p, rq_cellblock *out, uint32_t *ret_shown)
{
    for (uint32_t i = 0; i < p->kept_count; i++) {
        if (!p->keep[i]) continue;
        RQ_TRY(rq_cellblock_append_keyvalue(out, rq__plain_keyvalue(&p->kept[i])));
        ++*ret_shown;
    }
    return RQ_OK;
}

static rq_err hand_over(row_pass *p, row_end end, rq_cellblock *out, uint32_t *ret_shown)
{
    const row_column *last = &p->last;
    rq_cell cell = {.qualifier = last->qualifier,
                    .qualifier_len = (uint32_t)last->qualifier_len,
                    .timestamp = last->timestamp,
                    .type = RQ_TYPE_PUT};
    RQ_TRY(rq__query_matcher_enter_behind(
        p->matcher, last->qualifier_len == SIZE_MAX ? NULL : &cell, last->kept));
    if (end == HAS_CODE) rq__query_matcher_set_code(p->matcher, p->code);
    if (end == PAUSED) RQ_TRY(rq__query_matcher_pause(p->matcher, &p->walk.cell));
    memset(p->keep, true, p->kept_count);
    return append(p, out, ret_shown);
}

static rq_err pass_rows(row_pass *p, rq_store_pass *pass, rq_cellblock *out, uint32_t *ret_shown,
                        bool *ret_ended, rq_error *why)
{
    pass->end = RQ_STORE_PASS_AT_ROW;
    while (p->work_left > 0 && !*ret_ended) {
        rq_slice row = rq_cell_row(&p->walk.cell);
        if (is_out_of_reach(p, row)) return RQ_OK;
        if (p->judges_rows) {
            bool out_by_key;
            p->work_left--;
            RQ_TRY(rq_filter_row_key(p->filter, row, &out_by_key, why));
            if (RQ_UNLIKELY(p->pace != NULL && p->pace->slice_left <= 0)) p->work_left = 0;
            if (out_by_key) {
                pass->row = row;
                if (pass->stops_at_key || !rq_hfile_walk_next_row(&p->walk)) {
                    pass->end = RQ_STORE_PASS_KEY_OUT;
                    return RQ_OK;
                }
                pass->left_out++;
                if (p->resets) rq_filter_reset(p->filter);
                continue;
            }
        }
        row_end end;
        RQ_TRY(read_cells(p, &end, why));
        pass->row = row;
        if (end != ROW_OVER) {
            pass->end = RQ_STORE_PASS_IN_ROW;
            pass->column_is_done = end == DONE;
            return hand_over(p, end, out, ret_shown);
        }
        *ret_ended = p->may_end && rq_filter_all_remaining(p->filter);
        if (decide(p)) {
            pass->end = RQ_STORE_PASS_ROW_READ;
            return append(p, out, ret_shown);
        }
        pass->left_out++;
        if (p->resets) rq_filter_reset(p->filter);
    }
    return RQ_OK;
}

rq_err rq__row_pass(rq__merge *m, rq__query_matcher *matcher, const rq_scan *scan,
                    rq_store_pass *pass, rq_cellblock *out, uint32_t *ret_shown, bool *ret_ended,
                    rq_error *why)
{
    pass->end = RQ_STORE_PASS_AT_ROW;
    pass->left_out = 0;
    *ret_shown = 0;
    *ret_ended = false;
    rq__merge_find_run(m);
    rq__source *s = m->run;
    if (s == NULL || s->is_odd) return RQ_OK;
    row_pass p;
    begin(&p, m, matcher, scan, pass->work_left);
    rq_err rc = pass_rows(&p, pass, out, ret_shown, ret_ended, why);
    pass->work_left = p.work_left > 0 ? (uint32_t)p.work_left : 0;
    rq_hfile_walk_end(&p.walk, &s->file);
    rq__merge_walked(m, pass->end == RQ_STORE_PASS_IN_ROW || pass->end == RQ_STORE_PASS_KEY_OUT);
    return rc;
}
