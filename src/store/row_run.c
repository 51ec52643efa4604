/* SPDX-License-Identifier: Apache-2.0 */
/* See row_run.h. */
#include "store/row_run.h"

#include "base/work_limit.h"
#include "hfile/walk.h"

/* Cells looked at in one call: some tens of microseconds. */
#define CELLS_MAX 1024
/* Older versions of a column that are skipped one by one; behind them the ordinary path seeks. */
#define VERSIONS_PASSED_MAX 8
/* Cells of a segment that the read point hides, skipped in one move. */
#define HIDDEN_PASSED_MAX 64

typedef struct row_run {
    rq__merge *merge;
    const rq_scan *scan;
    rq_store_rows *rows;
    rq_cellblock *out;
    int64_t oldest;
    bool one_version;
    uint32_t work_left;
    size_t bytes_to; /* of `out` */
    /* the source, alone with its rows in front of `bound` */
    rq__source *source;
    const rq_cell *cell; /* its current one */
    bool is_file;
    rq_hfile_walk walk; /* of a file */
    bool has_bound;
    rq_slice bound;
    /* the row at hand */
    uint32_t row_cells; /* taken; the last of them: */
    const uint8_t *qualifier;
    size_t qualifier_len;
    int64_t timestamp;
    uint32_t passed; /* versions of its column that were skipped behind it */
} row_run;

bool rq__row_run_is_for(const rq_scan *scan, const rq__query_matcher *q)
{
    return scan->filter == NULL && !scan->is_get && !scan->reversed && q->is_simple &&
           q->columns.max_versions >= 1 && scan->store_limit < 0 && scan->store_offset == 0;
}

/* --- sources ---------------------------------------------------------------------------------- */

static inline bool reaches_bound(const row_run *r)
{
    return r->has_bound && rq_row_compare(r->merge->order, rq_cell_row(r->cell), r->bound) >= 0;
}

/* Whether the top source is of a kind whose rows can be taken, and has its row alone. */
static bool enter_source(row_run *r)
{
    rq__merge *m = r->merge;
    if (m->current == NULL) return false;
    rq__source *s = m->heap[0];
    RQ_ASSERT(s->state == RQ__SOURCE_READY);
    r->is_file = s->segment == NULL;
    if (r->is_file && (!s->is_plain || s->is_odd)) return false;
    r->cell = s->cell;
    r->has_bound = rq__merge_bound(m, &r->bound);
    if (reaches_bound(r)) return false;
    r->source = s;
    if (r->is_file) {
        rq_hfile_walk_begin(&r->walk, &s->file);
        r->cell = &r->walk.cell;
    }
    return true;
}

/* The merge goes on at the source's current cell. */
static void leave_source(row_run *r)
{
    if (r->is_file) rq_hfile_walk_end(&r->walk, &r->source->file);
    rq__merge_moved_top(r->merge);
}

/* --- cells ------------------------------------------------------------------------------------ */

static rq_hfile_move next_in_segment(row_run *r)
{
    rq__source *s = r->source;
    const rq_segment_node *from = s->cursor.node;
    const uint8_t *row = s->own.row; /* in a node: it does not move */
    size_t row_len = s->own.row_len;
    unsigned hidden = 0;
    do {
        rq__segment_cursor_next(&s->cursor);
        if (RQ_UNLIKELY(!rq__segment_cursor_valid(&s->cursor) || hidden++ > HIDDEN_PASSED_MAX)) {
            rq__segment_cursor_return(&s->cursor, from);
            rq__segment_cursor_cell(&s->cursor, &s->own);
            return RQ_HFILE_NOT_MOVED;
        }
        rq__segment_cursor_cell(&s->cursor, &s->own);
    } while (RQ_UNLIKELY(s->own.seqid > r->merge->read_point));
    r->work_left -= r->work_left > hidden - 1 ? hidden - 1 : r->work_left; /* besides this cell */
    return rq_short_eq(s->own.row, s->own.row_len, row, row_len) ? RQ_HFILE_SAME_ROW
                                                                 : RQ_HFILE_NEW_ROW;
}

static inline rq_hfile_move move_on(row_run *r)
{
    return r->is_file ? rq_hfile_walk_next(&r->walk) : next_in_segment(r);
}

static inline bool is_of_last_column(const row_run *r)
{
    return r->row_cells > 0 &&
           rq_short_eq(r->cell->qualifier, r->cell->qualifier_len, r->qualifier, r->qualifier_len);
}

/* Whether the matcher would take the cell, or skip it (*ret_skipped), whatever else is in the
 * row. */
static inline bool is_plain_case(row_run *r, bool *ret_skipped)
{
    const rq_cell *c = r->cell;
    *ret_skipped = false;
    if (RQ_UNLIKELY(c->type != RQ_TYPE_PUT || c->tags_len != 0 || c->timestamp < r->oldest))
        return false;
    if (RQ_LIKELY(!is_of_last_column(r))) return true;
    *ret_skipped = r->one_version && ++r->passed <= VERSIONS_PASSED_MAX;
    return *ret_skipped;
}

/* Whether a row of this size is refused; the ordinary path reports the error. */
static bool is_too_big(const row_run *r, size_t cell_len)
{
    return r->scan->row_bytes_max > 0 &&
           r->out->bytes.len + cell_len - r->rows->end.len > r->scan->row_bytes_max;
}

/* Whether the cell is left to the ordinary path: a loop does not copy it, or the row is refused. */
static inline bool is_left(const row_run *r, size_t cell_len)
{
    return r->cell->value_len > RQ_READ_COPY_MAX || is_too_big(r, cell_len);
}

/* Moves behind the current cell and appends it, unless it is skipped. NOT_MOVED: nothing was
 * done. */
static inline rq_err pass_cell(row_run *r, bool skipped, rq_hfile_move *ret)
{
    const rq_cell *c = r->cell;
    rq_slice keyvalue = rq__plain_keyvalue(c); /* a node has the same layout */
    const uint8_t *qualifier = c->qualifier;
    size_t qualifier_len = c->qualifier_len;
    int64_t timestamp = c->timestamp;
    if (RQ_UNLIKELY(is_left(r, 4 + keyvalue.len))) {
        *ret = RQ_HFILE_NOT_MOVED;
        return RQ_OK;
    }
    *ret = move_on(r);
    if (RQ_UNLIKELY(*ret == RQ_HFILE_NOT_MOVED || skipped)) return RQ_OK;
    rq_work_count(keyvalue.len);
    r->qualifier = qualifier;
    r->qualifier_len = qualifier_len;
    r->timestamp = timestamp;
    r->passed = 0;
    r->row_cells++;
    return rq_cellblock_append_keyvalue(r->out, keyvalue);
}

static bool cuts_row(const row_run *r)
{
    const rq_store_rows *rows = r->rows;
    return r->work_left == 0 || r->out->bytes.len >= r->bytes_to ||
           (rows->may_stop_inside_row && rows->bytes_max > 0 &&
            rq_result_bytes(r->out) >= rows->bytes_max);
}

/* Takes the row's cells. NEW_ROW: all, and the source is at the next row. Otherwise it is at a cell
 * that was not taken. */
static rq_err take_row(row_run *r, rq_hfile_move *ret)
{
    r->row_cells = 0;
    for (;;) {
        bool skipped;
        r->work_left -= r->work_left > 0;
        *ret = RQ_HFILE_NOT_MOVED;
        if (RQ_UNLIKELY(!is_plain_case(r, &skipped))) return RQ_OK;
        RQ_TRY(pass_cell(r, skipped, ret));
        if (RQ_LIKELY(*ret != RQ_HFILE_SAME_ROW)) return RQ_OK;
        if (RQ_UNLIKELY(cuts_row(r))) return RQ_OK;
    }
}

/* --- rows ------------------------------------------------------------------------------------- */

static void begin(row_run *r, rq__merge *m, const rq__query_matcher *matcher, const rq_scan *scan,
                  rq_store_rows *rows, rq_cellblock *out)
{
    r->merge = m;
    r->scan = scan;
    r->rows = rows;
    r->out = out;
    r->oldest = matcher->columns.oldest;
    r->one_version = matcher->columns.max_versions == 1;
    r->work_left = CELLS_MAX;
    r->bytes_to = out->bytes.len + RQ_STORE_ROWS_BYTES;
    rows->count = 0;
    rows->end = rq_cellblock_get_mark(out);
    rows->stop = RQ_STORE_ROWS_AT_ROW;
}

static bool is_behind_stop(const row_run *r, rq_slice row)
{
    return rq_scan_is_behind_stop(r->scan, r->merge->order, row);
}

/* Whether the next row, which may be another source's, is behind the scan's end. */
static bool is_at_end(const row_run *r)
{
    return is_behind_stop(r, rq_cell_row(r->cell)) &&
           (!reaches_bound(r) || is_behind_stop(r, r->bound));
}

/* The row is complete, and another one follows. True: it is the last one of this call. */
static bool end_row(row_run *r, rq_slice row)
{
    rq_store_rows *rows = r->rows;
    rows->cells[rows->count++] = r->row_cells;
    rows->end = rq_cellblock_get_mark(r->out);
    rows->row = row;
    if (is_at_end(r)) {
        rows->stop = RQ_STORE_ROWS_AT_END;
        return true;
    }
    if (rows->bytes_max > 0 && rq_result_bytes(r->out) >= rows->bytes_max) return true;
    return rows->count == rows->max || r->work_left == 0 || r->out->bytes.len >= r->bytes_to;
}

/* In the ordinary path the matcher has seen the taken cells. */
static rq_err hand_over(row_run *r, rq_slice row, rq__query_matcher *matcher)
{
    if (r->row_cells == 0) return RQ_OK;
    r->rows->stop = RQ_STORE_ROWS_IN_ROW;
    r->rows->row = row;
    rq_cell last = {.qualifier = r->qualifier,
                    .qualifier_len = (uint32_t)r->qualifier_len,
                    .timestamp = r->timestamp,
                    .type = RQ_TYPE_PUT};
    return rq__query_matcher_enter_behind(matcher, &last, true);
}

/* Takes rows of the source. *ret_stops: the call ends here. */
static rq_err take_rows(row_run *r, rq__query_matcher *matcher, bool *ret_stops)
{
    for (;;) {
        rq_hfile_move moved;
        rq_slice row = rq_cell_row(r->cell);
        RQ_TRY(take_row(r, &moved));
        *ret_stops = true;
        if (RQ_UNLIKELY(moved != RQ_HFILE_NEW_ROW)) return hand_over(r, row, matcher);
        if (RQ_UNLIKELY(end_row(r, row))) return RQ_OK;
        *ret_stops = false;
        if (RQ_UNLIKELY(reaches_bound(r))) return RQ_OK;
    }
}

rq_err rq__row_run(rq__merge *m, rq__query_matcher *matcher, const rq_scan *scan,
                   rq_store_rows *rows, rq_cellblock *out)
{
    row_run r;
    begin(&r, m, matcher, scan, rows, out);
    for (bool stops = false; !stops && enter_source(&r);) {
        rq_err rc = take_rows(&r, matcher, &stops);
        leave_source(&r);
        if (rc != RQ_OK) return rc;
    }
    return RQ_OK;
}
