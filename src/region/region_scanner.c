/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner of one region: reads row by row from its stores, asks the filter about rows, stops at
 * limits (HBASE: RegionScannerImpl, ReversedRegionScannerImpl, ScannerContext).
 *
 * The processing of a row is a state machine. Every state can be entered again after RQ_E_AGAIN,
 * and READ and JOINED can also be left and entered again when a limit cuts the row:
 *
 *      BEGIN ── which row is next? stop row, row key filter ──► DONE
 *        │ ├── filtered ──► SKIP ──► BEGIN
 *        │ └── the only store passes over rows (store/row_pass.h) ──► BEGIN, READ or END
 *      READ ── the families the filter needs, one after another
 *        │
 *      DECIDE ── the filter looks at the row as a whole ── excluded ──► SKIP
 *        │
 *      JOINED ── the other families (load on demand)
 *        │
 *      END ── is there another row? ──► BEGIN or DONE
 *
 * Invariants:
 * 1. A row that was delivered completely is never looked at again. After a cut the stores know
 *    their positions in the row, and the filter is neither reset nor asked for the row key again.
 * 2. `mark` is the offset in the result where the current row, or its part in this answer, begins.
 *    A repeated call after RQ_E_AGAIN gets the same result and continues to append to it.
 * 3. If the filter decides on whole rows, only RQ_E_AGAIN stops inside a row.
 * 4. DECIDE, too, may be left by RQ_E_AGAIN and entered again. The flags of `row_cells` are the filter's answer so far. While
 *    cells are dropped, the result's count is ahead of its bytes; `drop_at`, `drop_from` and `drop_to` say how far.
 * 5. So may JOINED while it sorts families. Then the result has bytes behind the row's: a copy of the row in the right order. */
#include "region/region_scanner_priv.h"

#include <stdlib.h>

/* Largest number of rows that take the ordinary path after passing over rows has repeatedly
 * failed. */
#define PASS_PAUSE_MAX 31

/* --- rows ------------------------------------------------------------------------------------- */
static rq_slice row_of(const rq_region_scanner *s)
{
    return rq_slice_of(s->row, s->row_len);
}

/* The next row of the families that the filter needs; valid until the next call of a store.
 * RQ_E_END. */
static inline rq_err next_row(rq_region_scanner *s, rq_read_ctx *ctx, rq_slice *ret, rq_error *why)
{
    bool found = false;
    if (RQ_LIKELY(s->essential_count == 1))
        return rq_store_scanner_peek_row(s->stores[0], s->read.yield_ns, ctx, ret, why);
    for (size_t i = 0; i < s->essential_count; i++) {
        rq_slice row;
        rq_err rc = rq_store_scanner_peek_row(s->stores[i], s->read.yield_ns, ctx, &row, why);
        if (rc == RQ_E_END) continue;
        if (rc != RQ_OK) return rc;
        int c = found ? rq_row_compare(s->order, row, *ret) : 0;
        if (!found || (s->scan->reversed ? c > 0 : c < 0)) *ret = row;
        found = true;
    }
    return found ? RQ_OK : RQ_E_END;
}

static bool is_behind_stop(const rq_region_scanner *s, rq_slice row)
{
    const rq_scan *scan = s->scan;
    return scan->is_get ? rq_row_compare(s->order, row, scan->start_row) != 0
                        : rq_scan_is_behind_stop(scan, s->order, row);
}

/* Whether the store is at a cell of the current row. */
static rq_err has_row(rq_region_scanner *s, size_t i, rq_read_ctx *ctx, bool *ret, rq_error *why)
{
    rq_slice row;
    rq_err rc = rq_store_scanner_peek_row(s->stores[i], s->read.yield_ns, ctx, &row, why);
    *ret = rc == RQ_OK && rq_short_eq(row.ptr, row.len, s->row, s->row_len);
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* --- limits ----------------------------------------------------------------------------------- */
/* Whether the call's time or its slice is over. */
static rq_err check_clock_now(rq_region_scanner *s, uint64_t deadline_ns, bool *ret_timed_out)
{
    *ret_timed_out = false;
    if (deadline_ns == 0 && s->read.yield_ns == 0) return RQ_OK;
    uint64_t now = rq__region_scanner_now(s);
    *ret_timed_out = deadline_ns != 0 && now >= deadline_ns;
    return !*ret_timed_out && s->read.yield_ns != 0 && now >= s->read.yield_ns ? RQ_E_AGAIN : RQ_OK;
}

/* Checks now and then whether the call's time is over. */
static bool has_timed_out(rq_region_scanner *s, uint64_t deadline_ns)
{
    return rq__region_scanner_timed_out(s, deadline_ns, 1);
}

/* The same, and has the slice? */
static rq_err check_clock(rq_region_scanner *s, uint64_t deadline_ns, bool *ret_timed_out)
{
    *ret_timed_out = false;
    if (--s->clock_left > 0) return RQ_OK;
    s->clock_left = s->clock_steps;
    return check_clock_now(s, deadline_ns, ret_timed_out);
}

/* Whether a limit that may cut the row is reached. Sets `cut`. */
static bool reached_limit(rq_region_scanner *s)
{
    const rq_store_read *r = &s->read;
    if (r->cells_max > 0 && r->cells >= r->cells_max)
        s->cut = RQ_SCAN_BATCH_REACHED;
    else if (r->bytes_max > 0 && rq_result_bytes(r->out) >= r->bytes_max)
        s->cut = RQ_SCAN_BYTES_REACHED_MID_ROW;
    else
        return false;
    return true;
}

/* --- the row as a whole ----------------------------------------------------------------------- */
static uint32_t cells_of_row(const rq_region_scanner *s)
{
    return s->read.out->count - s->mark.count;
}

/* Whether the slice is over. */
static rq_err check_slice(const rq_region_scanner *s)
{
    uint64_t yield_ns = s->decides_at_once ? 0 : s->read.yield_ns;
    return yield_ns != 0 && rq__region_scanner_now(s) >= yield_ns ? RQ_E_AGAIN : RQ_OK;
}

/* Cells in the window that the filter looks through, and cells between two looks at the clock while
 * they are kept or dropped. */
#define WINDOW_CELLS 256
#define DROP_CELLS 1024

static size_t cell_len_at(const uint8_t *p)
{
    return 4 + (size_t)rq_get_be32(p);
}

static rq_err move_window(rq_filter_cells *c, size_t at)
{
    rq_region_scanner *s = RQ_CONTAINER_OF(c, rq_region_scanner, row_cells);
    rq_cell *cells = (rq_cell *)(void *)s->scratch.ptr;
    const rq_buf *bytes = &s->read.out->bytes;
    if (at < c->begin) { /* another filter begins with the row's first cell */
        c->begin = 0;
        s->window_from = s->mark.len;
    }
    for (; c->begin < at; c->begin++)
        s->window_from += cell_len_at(bytes->ptr + s->window_from);
    rq_cursor from =
        rq_cursor_of(rq_slice_of(bytes->ptr + s->window_from, bytes->len - s->window_from));
    for (c->end = at; c->end < c->count && c->end - at < WINDOW_CELLS; c->end++)
        RQ_TRY(rq_cellblock_next(&from, &cells[c->end - at], NULL));
    return RQ_OK;
}

static rq_err begin_decision(rq_region_scanner *s)
{
    size_t count = cells_of_row(s);
    size_t window = count < WINDOW_CELLS ? count : WINDOW_CELLS;
    rq_buf_reset(&s->scratch);
    RQ_TRY(rq_buf_reserve(&s->scratch, window * sizeof(rq_cell) + count + 1));
    rq_cell *cells = (rq_cell *)(void *)s->scratch.ptr;
    s->row_cells = (rq_filter_cells){
        .count = count, .keep = (bool *)(cells + window), .cells = cells, .move = move_window};
    s->window_from = s->drop_from = s->drop_to = s->mark.len;
    s->drop_at = s->drop_run = 0;
    memset(s->row_cells.keep, true, count);
    s->decision = DECISION_ASKS;
    return RQ_OK;
}

/* Asks the filter about the cells, one of its slices after another, as long as there is time. */
static rq_err ask_about_cells(rq_region_scanner *s, rq_filter_row_verdict *ret)
{
    rq_err rc;
    s->row_cells.end = s->row_cells.begin; /* the result may have moved since the last slice */
    while ((rc = rq_filter_row_end(s->filter, &s->row_cells, ret)) == RQ_E_AGAIN) {
        s->pace->slice_left = RQ_PACE_SLICE;
        RQ_TRY(check_slice(s));
    }
    return rc;
}

/* Moves the beginning of each family that begins at the next cell. */
static void move_runs(rq_region_scanner *s)
{
    for (; s->drop_run < s->run_count && s->runs[s->drop_run].from == s->drop_from; s->drop_run++)
        s->runs[s->drop_run].from = s->drop_to;
}

static void drop_some_cells(rq_region_scanner *s)
{
    uint8_t *bytes = s->read.out->bytes.ptr;
    const rq_filter_cells *c = &s->row_cells;
    for (unsigned n = 0; n < DROP_CELLS && s->drop_at < c->count; n++, s->drop_at++) {
        size_t len = cell_len_at(bytes + s->drop_from);
        move_runs(s);
        if (c->keep[s->drop_at]) {
            if (s->drop_to != s->drop_from) memmove(bytes + s->drop_to, bytes + s->drop_from, len);
            s->drop_to += len;
        } else {
            s->read.out->count--;
        }
        s->drop_from += len;
    }
}

/* Drops the cells whose flag the filter has cleared. */
static rq_err drop_cells(rq_region_scanner *s)
{
    for (;;) {
        drop_some_cells(s);
        if (s->drop_at == s->row_cells.count) break;
        RQ_TRY(check_slice(s));
    }
    move_runs(s); /* families without cells at the row's end */
    s->read.out->bytes.len = s->drop_to;
    return RQ_OK;
}

/* *ret_keep is not changed if the row stays. */
static rq_err decide_by_cells(rq_region_scanner *s, bool *ret_keep)
{
    if (s->decision == DECISION_NONE) RQ_TRY(begin_decision(s));
    if (s->decision == DECISION_ASKS) {
        rq_filter_row_verdict verdict;
        RQ_TRY(ask_about_cells(s, &verdict));
        s->decision = DECISION_DROPS;
        if (verdict == RQ_FILTER_ROW_EXCLUDE) *ret_keep = false;
    }
    if (*ret_keep) RQ_TRY(drop_cells(s));
    s->decision = DECISION_NONE;
    return RQ_OK;
}

/* HBASE: the middle of RegionScannerImpl.nextInternal. *ret_keep: the row stays. */
static rq_err decide(rq_region_scanner *s, bool *ret_keep)
{
    uint32_t count = cells_of_row(s);
    bool is_empty = count == 0 && !s->was_cut;
    *ret_keep = !is_empty || s->decision == DECISION_DROPS;
    if (s->filter == NULL) return RQ_OK;
    if (s->has_filter_row && !s->filter_sees_cells) {
        if (count > 0 && rq_filter_row(s->filter)) *ret_keep = false;
    } else if (s->has_filter_row) {
        return decide_by_cells(s, ret_keep);
    } else if (!is_empty && rq_filter_row(s->filter)) {
        *ret_keep = false;
    }
    return RQ_OK;
}

/* --- families that are read on demand ---------------------------------------------------------- */

/* Bytes copied between two looks at the clock. A slice appends less than twice as many, which are charged ahead
 * (SLICE_BYTES in ops/read.c). */
#define SORT_BYTES ((size_t)128 << 10)

/* The store at `at` is about to append cells of the row. */
static void note_run(rq_region_scanner *s)
{
    size_t rank;
    if (RQ_LIKELY(s->runs == NULL)) return;
    rank = s->ranks[s->at];
    if (s->run_count > 0 && s->runs[s->run_count - 1].rank == rank) return; /* it goes on */
    RQ_ASSERT(s->run_count < s->store_count);
    s->runs[s->run_count++] = (family_run){.rank = rank, .from = s->read.out->bytes.len};
}

static int compare_runs(const void *a, const void *b)
{
    const family_run *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Sorts the list. False: the cells are in order. */
static bool begin_sorting(rq_region_scanner *s)
{
    size_t end = s->read.out->bytes.len;
    bool sorted = true;
    for (size_t i = 0; i < s->run_count; i++) {
        family_run *run = &s->runs[i];
        run->len = (i + 1 < s->run_count ? run[1].from : end) - run->from;
        sorted = sorted && (i == 0 || run[-1].rank < run->rank);
    }
    if (sorted) return false;
    qsort(s->runs, s->run_count, sizeof *s->runs, compare_runs);
    s->sorting = true;
    s->sort_run = s->sort_moved = 0;
    s->sort_from = s->runs[0].from;
    s->sort_end = end;
    return true;
}

/* Appends a piece of a family to the copy of the row. */
static rq_err copy_piece(rq_region_scanner *s)
{
    rq_buf *bytes = &s->read.out->bytes;
    const family_run *run = &s->runs[s->sort_run];
    size_t left = run->from + run->len - s->sort_from;
    size_t len = left < SORT_BYTES ? left : SORT_BYTES;
    RQ_TRY(rq_buf_reserve(bytes, len));
    memcpy(bytes->ptr + bytes->len, bytes->ptr + s->sort_from, len);
    bytes->len += len;
    s->sort_from += len;
    if (len == left && ++s->sort_run < s->run_count) s->sort_from = s->runs[s->sort_run].from;
    return RQ_OK;
}

static rq_err copy_runs(rq_region_scanner *s)
{
    bool pauses = s->read.yield_ns != 0 && !s->decides_at_once;
    size_t begun = s->read.out->bytes.len;
    while (s->sort_run < s->run_count) {
        RQ_TRY(copy_piece(s));
        if (s->sort_run == s->run_count) break;
        if (pauses && s->read.out->bytes.len - begun >= SORT_BYTES) return RQ_E_AGAIN;
        RQ_TRY(check_slice(s));
    }
    return RQ_OK;
}

/* Moves the copy to the row's place. */
static rq_err move_copy(rq_region_scanner *s)
{
    uint8_t *to = s->read.out->bytes.ptr + s->mark.len;
    const uint8_t *from = s->read.out->bytes.ptr + s->sort_end;
    size_t all = s->sort_end - s->mark.len;
    while (s->sort_moved < all) {
        size_t left = all - s->sort_moved;
        size_t len = left < SORT_BYTES ? left : SORT_BYTES;
        memcpy(to + s->sort_moved, from + s->sort_moved, len);
        s->sort_moved += len;
        if (s->sort_moved < all) RQ_TRY(check_slice(s));
    }
    s->read.out->bytes.len = s->sort_end;
    return RQ_OK;
}

/* Sorts families that were read on demand into place. Each family's cells are adjacent. */
static rq_err sort_families(rq_region_scanner *s)
{
    if (!s->sorting && !begin_sorting(s)) return RQ_OK;
    RQ_TRY(copy_runs(s));
    RQ_TRY(move_copy(s));
    s->sorting = false;
    s->run_count = 0; /* the list says nothing any more */
    return RQ_OK;
}

/* --- the machine ------------------------------------------------------------------------------ */
static void reset_filter(rq_region_scanner *s)
{
    if (s->filter_resets) rq_filter_reset(s->filter);
}

static bool filter_is_done(rq_region_scanner *s)
{
    return s->filter != NULL && rq_filter_all_remaining(s->filter);
}

/* The filter has excluded the current row by its key. */
static void row_is_out_by_key(rq_region_scanner *s)
{
    s->stats.rows_filtered++;
    if (filter_is_done(s)) {
        s->phase = PHASE_DONE;
    } else {
        s->stats.rows_scanned++;
        s->phase = PHASE_SKIP;
    }
}

/* Whether passing over rows is worth trying at the row from next_row. */
static bool passes_now(rq_region_scanner *s)
{
    if (!s->may_pass) return false;
    if (s->pass_wait == 0) return true;
    s->pass_wait--;
    return false;
}

/* Passes over rows that the filter excludes, beginning with the row that next_row returned.
 * *ret_passed false: that row cannot be passed over, and the filter was not asked about it. */
static rq_err pass_rows(rq_region_scanner *s, bool *ret_passed, rq_error *why)
{
    rq_store_pass *p = &s->pass;
    RQ_TRY(rq_store_scanner_pass_rows(s->stores[0], &s->read, p, why));
    s->stats.rows_scanned += p->left_out;
    s->stats.rows_filtered += p->left_out;
    s->stats.rows_passed += p->left_out;
    *ret_passed = p->left_out > 0 || p->end != RQ_STORE_PASS_AT_ROW;
    if (p->left_out > 0) {
        s->pass_pause = 0;
    } else if (!*ret_passed || p->end == RQ_STORE_PASS_IN_ROW) {
        s->pass_pause =
            s->pass_pause < PASS_PAUSE_MAX ? (uint8_t)(2 * s->pass_pause + 1) : PASS_PAUSE_MAX;
        s->pass_wait = s->pass_pause;
    }
    if (!*ret_passed) return RQ_OK;
    RQ_TRY(rq__region_scanner_set_row(s, p->row));
    s->was_cut = false;
    s->at = 0;
    switch (p->end) {
    case RQ_STORE_PASS_AT_ROW:
        s->phase = PHASE_BEGIN;
        break;
    case RQ_STORE_PASS_KEY_OUT:
        row_is_out_by_key(s);
        break;
    case RQ_STORE_PASS_IN_ROW:
        s->phase = PHASE_READ;
        break;
    case RQ_STORE_PASS_ROW_READ:
        s->stats.rows_scanned++;
        s->at = 1;
        s->phase = PHASE_END;
        break;
    }
    return RQ_OK;
}

static rq_err do_begin(rq_region_scanner *s, rq_read_ctx *ctx, rq_error *why)
{
    rq_slice row = s->ahead;
    rq_err rc = s->jumped_to_end ? RQ_E_END : RQ_OK;
    if (row.len == 0 && rc == RQ_OK) {
        rc = next_row(s, ctx, &row, why);
        if (rc == RQ_OK && is_behind_stop(s, row)) rc = RQ_E_END;
    }
    s->ahead.len = 0;
    if (rc != RQ_OK && rc != RQ_E_END) return rc;
    if (rc == RQ_E_END) {
        /* HBase passes an empty row to the filter at the end. */
        if (s->has_filter_row) (void)rq_filter_row_done(s->filter, NULL, 0, NULL);
        s->phase = PHASE_DONE;
        return RQ_OK;
    }
    if (passes_now(s)) {
        bool passed;
        RQ_TRY(pass_rows(s, &passed, why));
        if (passed) return RQ_OK;
    }
    RQ_TRY(rq__region_scanner_set_row(s, row));
    s->at = 0;
    s->was_cut = false;
    s->phase = PHASE_READ;
    if (!s->filter_judges_rows) return RQ_OK;
    bool filtered;
    RQ_TRY(rq_filter_row_key(s->filter, row_of(s), &filtered, why));
    if (filtered) row_is_out_by_key(s);
    return RQ_OK;
}

/* After reading a part of the row, or the store's whole part: whether this answer ends here. */
static bool is_cut(rq_region_scanner *s, rq_store_state state)
{
    bool timed_out = state == RQ_STORE_TIME_REACHED || has_timed_out(s, s->read.deadline_ns);
    if (timed_out) s->cut = RQ_SCAN_TIME_REACHED_MID_ROW;
    return reached_limit(s) || timed_out;
}

/* Reads the stores from `at` up to `end`. *ret_cut: a limit stopped it, s->cut tells which. */
static rq_err read_stores(rq_region_scanner *s, size_t end, rq_read_ctx *ctx, bool *ret_cut,
                          rq_error *why)
{
    *ret_cut = false;
    while (s->at < end) {
        bool has;
        RQ_TRY(has_row(s, s->at, ctx, &has, why));
        if (!has) {
            s->at++;
            continue;
        }
        if (cells_of_row(s) > 0 && reached_limit(s)) {
            *ret_cut = true;
            return RQ_OK;
        }
        rq_store_state state;
        note_run(s);
        RQ_TRY(rq_store_scanner_next(s->stores[s->at], &s->read, ctx, &state, why));
        if (state == RQ_STORE_ROW_DONE) s->at++;
        if (is_cut(s, state)) {
            *ret_cut = true;
            return RQ_OK;
        }
    }
    return RQ_OK;
}

/* Like read_stores, for a single store that is known to be at the row. A limit that is reached with
 * the row's last cell does not cut the row. */
static rq_err read_only_store(rq_region_scanner *s, rq_read_ctx *ctx, bool *ret_cut, rq_error *why)
{
    rq_store_state state;
    RQ_TRY(rq_store_scanner_next(s->stores[0], &s->read, ctx, &state, why));
    *ret_cut = state != RQ_STORE_ROW_DONE && is_cut(s, state);
    if (*ret_cut) return RQ_OK;
    if (state != RQ_STORE_ROW_DONE) return read_stores(s, s->essential_count, ctx, ret_cut, why);
    s->at = 1;
    return RQ_OK;
}

/* After a limit: whether any store up to `end` has more cells of the row. */
static rq_err row_goes_on(rq_region_scanner *s, size_t end, rq_read_ctx *ctx, bool *ret,
                          rq_error *why)
{
    *ret = false;
    for (; s->at < end && !*ret; s->at += !*ret)
        RQ_TRY(has_row(s, s->at, ctx, ret, why));
    return RQ_OK;
}

/* Moves the stores that are read on demand to the current row. */
static rq_err seek_joined(rq_region_scanner *s, rq_read_ctx *ctx, rq_error *why)
{
    for (size_t i = s->at; i < s->store_count; i++) {
        rq_slice row;
        rq_err rc = rq_store_scanner_peek_row(s->stores[i], s->read.yield_ns, ctx, &row, why);
        if (rc == RQ_E_END) continue;
        if (rc != RQ_OK) return rc;
        RQ_TRY(rq_store_scanner_seek_row(s->stores[i], row_of(s)));
    }
    return RQ_OK;
}

/* Whether the filter knows, after an excluded row, which row is the next that it may include: *ret.
 * HBase visits each row in between, which is visible in its row counts only. */
static bool find_jump(rq_region_scanner *s, rq_slice *ret)
{
    if (s->scan->counts_rows || !rq_filter_row_hint(s->filter, row_of(s), ret)) return false;
    s->jumped_to_end = ret->len == 0;
    return true;
}

/* Leaves the row in the store, which is at the row (has_row) or behind it. */
static rq_err leave_row(const rq_region_scanner *s, size_t i, bool has_row, bool jump, rq_slice to)
{
    if (jump) return s->jumped_to_end ? RQ_OK : rq_store_scanner_seek_row(s->stores[i], to);
    return has_row ? rq_store_scanner_skip_row(s->stores[i]) : RQ_OK;
}

/* Leaves the row in the only store, which is at it. */
static rq_err leave_row_or_jump(rq_region_scanner *s)
{
    rq_slice to = {0};
    bool jump = find_jump(s, &to);
    return leave_row(s, 0, true, jump, to);
}

/* Reads one store's part of a row just to show it to the filter. */
static rq_err show_store(rq_region_scanner *s, rq_read_ctx *ctx, rq_error *why)
{
    for (;;) {
        bool has;
        RQ_TRY(has_row(s, s->at, ctx, &has, why));
        if (!has) return RQ_OK;
        rq_store_state state;
        RQ_TRY(rq_store_scanner_next(s->stores[s->at], &s->read, ctx, &state, why));
        rq_cellblock_truncate(s->read.out, s->mark);
        s->read.cells = 0;
        if (state == RQ_STORE_ROW_DONE) return RQ_OK;
    }
}

/* Passes the cells of a row that is excluded by its key to the filter, because one of them may end the
 * scan. They count towards no limit. A reversed scan seeks the previous row instead, as in HBase.
 * HBASE: RegionScannerImpl.nextRow. */
static rq_err show_row(rq_region_scanner *s, rq_read_ctx *ctx, rq_error *why)
{
    rq_store_read limited = s->read;
    rq_err rc = RQ_OK;
    s->read.cells_max = 0;
    s->read.bytes_max = SHOWN_BYTES;
    s->read.deadline_ns = 0;
    for (; s->at < s->essential_count && rc == RQ_OK; s->at += rc == RQ_OK)
        rc = show_store(s, ctx, why);
    s->read.cells_max = limited.cells_max;
    s->read.bytes_max = limited.bytes_max;
    s->read.deadline_ns = limited.deadline_ns;
    return rc;
}

/* Leaves the row. If the row was read (`at` is behind the stores), the stores have left it
 * already. */
static rq_err do_skip(rq_region_scanner *s, rq_read_ctx *ctx, rq_error *why)
{
    if (s->shows_left_out) RQ_TRY(show_row(s, ctx, why));
    rq_slice to = {0};
    bool jump = s->may_jump && s->at < s->essential_count && find_jump(s, &to);
    for (; s->at < s->essential_count && !s->scan->is_get; s->at++) {
        bool has;
        RQ_TRY(has_row(s, s->at, ctx, &has, why));
        RQ_TRY(leave_row(s, s->at, has, jump, to));
    }
    rq_cellblock_truncate(s->read.out, s->mark);
    s->read.cells = 0;
    s->run_count = 0;
    reset_filter(s);
    s->phase = s->scan->is_get ? PHASE_DONE : PHASE_BEGIN;
    return RQ_OK;
}

/* The row is complete and delivered: checks whether it is the last one. */
static rq_err do_end(rq_region_scanner *s, const rq_scan_limits *limits, rq_read_ctx *ctx,
                     rq_scan_state *ret, rq_error *why)
{
    bool last = s->scan->is_get;
    if (!last) {
        rq_slice row;
        rq_err rc = next_row(s, ctx, &row, why);
        if (rc != RQ_OK && rc != RQ_E_END) return rc;
        last = rc == RQ_E_END || is_behind_stop(s, row);
        if (!last && s->store_count == 1) s->ahead = row;
    }
    reset_filter(s);
    if (last || filter_is_done(s)) {
        s->phase = PHASE_DONE;
        *ret = RQ_SCAN_DONE;
        return RQ_OK;
    }
    s->phase = PHASE_BEGIN;
    if (limits->bytes > 0 && rq_result_bytes(s->read.out) >= limits->bytes)
        *ret = RQ_SCAN_BYTES_REACHED;
    else if (has_timed_out(s, limits->deadline_ns))
        *ret = RQ_SCAN_TIME_REACHED;
    else
        *ret = RQ_SCAN_MORE;
    return RQ_OK;
}

static rq_err skip(rq_region_scanner *s, const rq_scan_limits *limits, rq_read_ctx *ctx,
                   rq_scan_state *ret, bool *ret_has_result, rq_error *why)
{
    RQ_TRY(do_skip(s, ctx, why));
    if (s->phase == PHASE_BEGIN) {
        RQ_TRY(check_clock(s, limits->deadline_ns, ret_has_result));
        *ret = RQ_SCAN_TIME_REACHED;
    }
    return RQ_OK;
}

/* Like skip, for a row that the filter excludes by its key and at which the only store is known to
 * be: no cell of the row was read. */
static rq_err pass_row(rq_region_scanner *s, const rq_scan_limits *limits, rq_scan_state *ret,
                       bool *ret_has_result)
{
    RQ_TRY(RQ_UNLIKELY(s->may_jump) ? leave_row_or_jump(s)
                                    : rq_store_scanner_skip_row(s->stores[0]));
    reset_filter(s);
    s->phase = PHASE_BEGIN;
    *ret = RQ_SCAN_TIME_REACHED;
    return check_clock(s, limits->deadline_ns, ret_has_result);
}

/* The families that are read on demand. */
static rq_err do_joined(rq_region_scanner *s, rq_read_ctx *ctx, rq_error *why)
{
    bool cut;
    RQ_TRY(seek_joined(s, ctx, why));
    RQ_TRY(read_stores(s, s->store_count, ctx, &cut, why));
    if (cut) {
        s->phase = PHASE_JOINED_CUT;
        return RQ_OK;
    }
    return sort_families(s);
}

static rq_err do_joined_cut(rq_region_scanner *s, rq_read_ctx *ctx, rq_scan_state *ret,
                            bool *ret_has_result, rq_error *why)
{
    RQ_TRY(row_goes_on(s, s->store_count, ctx, ret_has_result, why));
    if (*ret_has_result) {
        RQ_TRY(sort_families(s));
        s->was_cut = true;
        *ret = s->cut;
    }
    s->phase = PHASE_JOINED;
    return RQ_OK;
}

static rq_err do_read_cut(rq_region_scanner *s, rq_read_ctx *ctx, rq_scan_state *ret,
                          bool *ret_has_result, rq_error *why)
{
    RQ_TRY(row_goes_on(s, s->essential_count, ctx, ret_has_result, why));
    s->phase = *ret_has_result ? PHASE_READ : PHASE_DECIDE;
    s->was_cut = s->was_cut || *ret_has_result;
    *ret = s->cut;
    return RQ_OK;
}

/* Whether the call's time is over before the next row was found: any number of invisible cells may be passed. */
static bool searches_too_long(rq_region_scanner *s, rq_err rc, uint64_t deadline_ns)
{
    return rc == RQ_E_AGAIN && deadline_ns != 0 && rq__region_scanner_now(s) >= deadline_ns;
}

/* The answer ends with the cells of the row that were found. */
static rq_err read_in_time(rq_region_scanner *s, bool only, rq_read_ctx *ctx, rq_scan_state *ret,
                           bool *ret_has_result, rq_error *why)
{
    bool cut = false;
    rq_err rc = only ? read_only_store(s, ctx, &cut, why)
                     : read_stores(s, s->essential_count, ctx, &cut, why);
    if (rc == RQ_OK) s->phase = cut ? PHASE_READ_CUT : PHASE_DECIDE;
    if (!searches_too_long(s, rc, s->read.deadline_ns)) return rc;
    s->was_cut = true;
    *ret = RQ_SCAN_TIME_REACHED_MID_ROW;
    *ret_has_result = true;
    return RQ_OK;
}

/* The answer ends before the next row is known. */
static rq_err begin_in_time(rq_region_scanner *s, const rq_scan_limits *limits, rq_read_ctx *ctx,
                            rq_scan_state *ret, bool *ret_has_result, rq_error *why)
{
    rq_err rc = do_begin(s, ctx, why);
    if (!searches_too_long(s, rc, limits->deadline_ns) || cells_of_row(s) > 0) return rc;
    *ret = RQ_SCAN_TIME_REACHED;
    *ret_has_result = true;
    return RQ_OK;
}

/* The next call finds out whether the row was the last one. */
static rq_err end_in_time(rq_region_scanner *s, const rq_scan_limits *limits, rq_read_ctx *ctx,
                          rq_scan_state *ret, rq_error *why)
{
    rq_err rc = do_end(s, limits, ctx, ret, why);
    if (!searches_too_long(s, rc, limits->deadline_ns)) return rc;
    reset_filter(s);
    s->phase = filter_is_done(s) ? PHASE_DONE : PHASE_BEGIN;
    *ret = s->phase == PHASE_DONE ? RQ_SCAN_DONE : RQ_SCAN_TIME_REACHED;
    return RQ_OK;
}

/* Whether the filter's searches in row keys and values have used up the slice. */
static bool slice_is_spent(const rq_region_scanner *s)
{
    return s->pace != NULL && s->pace->slice_left <= 0;
}

/* Runs until there is a result: then sets *ret and *ret_has_result. Most rows take all steps in one
 * call. */
static rq_err step(rq_region_scanner *s, const rq_scan_limits *limits, rq_read_ctx *ctx,
                   rq_scan_state *ret, bool *ret_has_result, rq_error *why)
{
    bool flag = false;
    bool stands_there = false;
    switch (s->phase) {
    case PHASE_BEGIN:
        if (s->pass.work_left == 0 || RQ_UNLIKELY(slice_is_spent(s))) {
            s->pass.work_left = rq_filter_clock(s->filter, CLOCK_PASSED);
            if (s->pace != NULL) s->pace->slice_left = RQ_PACE_SLICE;
            *ret = RQ_SCAN_TIME_REACHED;
            RQ_TRY(check_clock_now(s, limits->deadline_ns, ret_has_result));
            if (*ret_has_result) return RQ_OK;
        }
        RQ_TRY(begin_in_time(s, limits, ctx, ret, ret_has_result, why));
        if (*ret_has_result) return RQ_OK;
        stands_there = s->store_count == 1;
        if (s->phase == PHASE_SKIP && stands_there && !s->scan->is_get && !s->shows_left_out)
            return pass_row(s, limits, ret, ret_has_result);
        if (s->phase != PHASE_READ) return RQ_OK;
        RQ_FALLTHROUGH;
    case PHASE_READ:
        RQ_TRY(read_in_time(s, stands_there, ctx, ret, ret_has_result, why));
        if (s->phase != PHASE_DECIDE) return RQ_OK;
        RQ_FALLTHROUGH;
    case PHASE_DECIDE:
        RQ_TRY(decide(s, &flag));
        s->stats.rows_scanned++;
        s->at = s->essential_count;
        s->phase = flag ? PHASE_JOINED : PHASE_SKIP;
        if (!flag) {
            s->stats.rows_filtered++;
            return skip(s, limits, ctx, ret, ret_has_result, why);
        }
        RQ_FALLTHROUGH;
    case PHASE_JOINED:
        if (s->essential_count < s->store_count) {
            RQ_TRY(do_joined(s, ctx, why));
            if (s->phase != PHASE_JOINED) return RQ_OK;
        }
        /* The filter may have dropped all cells, or a limit cut just before the end. */
        if (cells_of_row(s) == 0) {
            s->phase = PHASE_SKIP;
            if (!s->was_cut) s->stats.rows_filtered++;
            return RQ_OK;
        }
        s->phase = PHASE_END;
        RQ_FALLTHROUGH;
    case PHASE_END:
        RQ_TRY(end_in_time(s, limits, ctx, ret, why));
        *ret_has_result = true;
        return RQ_OK;
    case PHASE_READ_CUT:
        return do_read_cut(s, ctx, ret, ret_has_result, why);
    case PHASE_JOINED_CUT:
        return do_joined_cut(s, ctx, ret, ret_has_result, why);
    case PHASE_SKIP:
        return skip(s, limits, ctx, ret, ret_has_result, why);
    case PHASE_DONE:
        *ret_has_result = true;
        *ret = RQ_SCAN_DONE;
        return RQ_OK;
    }
    return RQ_E_STATE;
}

static void set_limits(rq_region_scanner *s, const rq_scan_limits *limits, rq_cellblock *out)
{
    bool inside = limits->may_stop_inside_row && !s->has_filter_row;
    if (!s->again) {
        s->mark = rq_cellblock_get_mark(out);
        s->read.len_max =
            s->scan->row_bytes_max == 0 ? SIZE_MAX : s->mark.len + s->scan->row_bytes_max;
        s->read.cells = 0;
        s->run_count = 0;
    }
    s->again = false;
    s->read.out = out;
    s->read.cells_max = s->has_filter_row ? 0 : limits->cells;
    s->read.bytes_max = inside ? limits->bytes : 0;
    s->read.deadline_ns = inside ? limits->deadline_ns : 0;
    s->read.yield_ns = limits->yield_ns;
    if (s->pace != NULL && limits->yield_ns != 0 && !s->keeps_allowance)
        rq_pace_begin(s->pace, true);
}

rq_err rq_region_scanner_next(rq_region_scanner *s, const rq_scan_limits *limits, rq_read_ctx *ctx,
                              rq_cellblock *out, rq_scan_state *ret_state, rq_error *why)
{
    if (s->failed != RQ_OK) return s->failed;
    set_limits(s, limits, out);
    uint64_t block_bytes = ctx->block_bytes_used;
    rq_err rc = RQ_OK;
    bool has_result = false;
    rq_scan_state state = RQ_SCAN_DONE;
    while (rc == RQ_OK && !has_result)
        rc = step(s, limits, ctx, &state, &has_result, why);
    s->stats.block_bytes += ctx->block_bytes_used - block_bytes;
    if (rc == RQ_OK) {
        *ret_state = state;
        return RQ_OK;
    }
    if (rc == RQ_E_AGAIN) {
        s->again = true;
    } else {
        s->failed = rc; /* states and offsets belong to a row that is gone */
        rq_cellblock_truncate(out, s->mark);
    }
    return rc;
}
