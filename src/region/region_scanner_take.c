/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a region's scanner that takes many rows in one call (store/row_run.h). It starts
 * between two rows; if it stops inside one, the state machine in region_scanner.c continues as
 * after RQ_E_AGAIN. */
#include "region/region_scanner_priv.h"

/* Largest number of rows that take the ordinary path after taking rows has repeatedly failed. */
#define TAKE_PAUSE_MAX 15

/* Continues the row that rq_store_scanner_take_rows has begun, as after RQ_E_AGAIN inside it. */
static void enter_row(rq_region_scanner *s, const rq_store_rows *taken, const rq_cellblock *out)
{
    s->mark = taken->end;
    s->read.len_max = s->scan->row_bytes_max == 0 ? SIZE_MAX : s->mark.len + s->scan->row_bytes_max;
    s->read.cells = out->count - s->mark.count;
    s->again = true;
    s->phase = PHASE_READ;
}

static rq_scan_state state_behind(rq_region_scanner *s, const rq_scan_limits *limits,
                                  const rq_store_rows *taken, const rq_cellblock *out)
{
    if (taken->stop == RQ_STORE_ROWS_AT_END) {
        s->phase = PHASE_DONE;
        return RQ_SCAN_DONE;
    }
    if (taken->stop == RQ_STORE_ROWS_IN_ROW) return RQ_SCAN_MORE;
    if (limits->bytes > 0 && rq_result_bytes(out) >= limits->bytes) return RQ_SCAN_BYTES_REACHED;
    return rq__region_scanner_timed_out(s, limits->deadline_ns, taken->count) ? RQ_SCAN_TIME_REACHED
                                                                              : RQ_SCAN_MORE;
}

/* `ahead`: the only store is at the beginning of a row inside the scan. */
static bool takes_now(rq_region_scanner *s, const rq_scan_limits *limits)
{
    if (!s->may_take || s->phase != PHASE_BEGIN || s->ahead.len == 0 || s->again ||
        limits->cells > 0)
        return false;
    if (s->take_wait == 0) return true;
    s->take_wait--;
    return false;
}

/* Whether the call took at most one cell, which is not worth its cost. Then the next calls are
 * omitted: rows in several sources, rows with deletes, and columns with several wanted versions
 * cannot be taken, and mostly have neighbours of the same kind. */
static bool was_in_vain(const rq_store_rows *taken, const rq_cellblock *out)
{
    return taken->count == 0 && out->count - taken->end.count <= 1;
}

static void wait_with_taking(rq_region_scanner *s)
{
    s->take_pause =
        s->take_pause < TAKE_PAUSE_MAX ? (uint8_t)(2 * s->take_pause + 1) : TAKE_PAUSE_MAX;
    s->take_wait = s->take_pause;
}

bool rq_region_scanner_may_take(const rq_region_scanner *s)
{
    return s->may_take;
}

rq_err rq_region_scanner_take_rows(rq_region_scanner *s, const rq_scan_limits *limits,
                                   rq_cellblock *out, rq_scan_rows *rows, rq_scan_state *ret_state)
{
    rows->count = 0;
    rows->end = rq_cellblock_get_mark(out);
    *ret_state = RQ_SCAN_MORE;
    if (s->failed != RQ_OK || rows->max == 0 || !takes_now(s, limits)) return s->failed;
    rq_store_rows taken = {.cells = rows->cells,
                           .max = rows->max,
                           .bytes_max = limits->bytes,
                           .may_stop_inside_row = limits->may_stop_inside_row};
    rq_err rc = rq_store_scanner_take_rows(s->stores[0], &taken, out);
    if (rc != RQ_OK) {
        rq_cellblock_truncate(out, rows->end);
        return s->failed = rc;
    }
    if (was_in_vain(&taken, out))
        wait_with_taking(s);
    else
        s->take_pause = 0;
    if (taken.count == 0 && taken.stop != RQ_STORE_ROWS_IN_ROW) return RQ_OK;
    s->ahead.len = 0;
    RQ_TRY(rq__region_scanner_set_row(s, taken.row));
    s->was_cut = false;
    s->at = 0;
    s->stats.rows_scanned += taken.count;
    s->stats.rows_taken += taken.count;
    rows->count = taken.count;
    rows->end = taken.end;
    if (taken.stop == RQ_STORE_ROWS_IN_ROW) enter_row(s, &taken, out);
    *ret_state = taken.count > 0 ? state_behind(s, limits, &taken, out) : RQ_SCAN_MORE;
    return RQ_OK;
}
