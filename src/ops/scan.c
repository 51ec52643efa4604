/* SPDX-License-Identifier: Apache-2.0 */
/* Scan; see scan.h. HBASE: RSRpcServices.scan.
 *
 * An op reads rows until one of its limits is reached: requested rows, row limit of the whole scan,
 * bytes, time. It does so in time slices: after RQ_METER_STRETCH_NS the scanner is suspended and
 * the op posts itself, so that other ops of the lane can run. A slice may end inside a row; the
 * row's next cells then still belong to the same result. Only the op's own limits make a result
 * partial. */
#include "ops/scan.h"

#include "ops/leases.h"
#include "ops/ops_priv.h"

/* HBASE: hbase.region.server.scan.time.limit… minimumScanTimeLimitDelta */
#define TIME_LIMIT_MIN_MS 10
/* Rows and bytes appended between clock checks: a few microseconds. */
#define CLOCK_ROWS 16
#define CLOCK_BYTES ((size_t)64 << 10)
/* Rows taken in one call. */
#define TAKEN_MAX 512

static const rq_ops *ops_of(const rq_op_scan *s)
{
    return s->read.op.seat->ops;
}

/* --- endings ---------------------------------------------------------------------------------- */

static void finish_holder(rq_op_scan *s, bool close, bool well)
{
    rq__leases *leases = ops_of(s)->leases;
    if (s->holder == NULL) return;
    if (s->region == NULL) s->region = rq_region_ref(s->holder->region);
    if (close) {
        rq__lease_close(leases, s->holder, well);
    } else {
        /* Memory needed only during a call is charged to the call. */
        rq_region_scanner_lend(s->holder->scanner, NULL);
        rq__lease_give_back(leases, s->holder);
    }
    s->holder = NULL;
}

static void end(rq_op_scan *s, rq_err rc)
{
    rq_op *op = &s->read.op;
    rq_read_ctx_clear(&s->read.ctx);
    op->cost.rows = s->result_count;
    op->cost.cells = s->out->count - s->first.count;
    op->cost.bytes_out = s->out->bytes.len - s->first.len;
    rq_region *region = s->region;
    if (region != NULL) op->region = region;
    if (RQ_UNLIKELY(s->is_gated)) {
        rq_gate_group g = {.region = region,
                           .reads = 1,
                           .bytes_returned = op->cost.bytes_out,
                           .block_bytes = s->read.ctx.block_bytes_used};
        rq__gate_leave_group(op, &g);
    }
    rq_op_end(op, rc);
    rq_region_unref(region);
}

static void fail(rq_op_scan *s, rq_err rc)
{
    finish_holder(s, true, false);
    end(s, rc);
}

static void end_idle(rq_op_scan *s)
{
    s->is_idle = true;
    end(s, RQ_OK);
}

/* --- the answer ------------------------------------------------------------------------------- */

static rq_err first_row_of(const rq_op_scan *s, rq_cellblock_mark mark, rq_slice *ret)
{
    rq_cell cell;
    rq_cursor cursor =
        rq_cursor_of(rq_slice_of(s->out->bytes.ptr + mark.len, s->out->bytes.len - mark.len));
    RQ_TRY(rq_cellblock_next(&cursor, &cell, NULL));
    *ret = rq_cell_row(&cell);
    return RQ_OK;
}

/* If the answer ends with a partial result, remembers its row: the row counts as complete when the
 * next result has another row. An answer without results makes the client take the partial row for
 * complete, unless the answer is a heartbeat or the call reads no rows. */
static rq_err remember_partial_row(rq_op_scan *s, bool more)
{
    rq__scan_holder *h = s->holder;
    if (more && s->result_count == 0 && (s->is_heartbeat || s->rows_max == 0)) return RQ_OK;
    rq_buf_reset(&h->partial_row_bytes);
    h->partial_row = (rq_slice){0};
    if (!more || s->result_count == 0 || !s->results[s->result_count - 1].is_partial) return RQ_OK;
    rq_slice row;
    RQ_TRY(first_row_of(s, s->last, &row));
    RQ_TRY(rq_buf_append(&h->partial_row_bytes, row.ptr, row.len));
    h->partial_row = rq_buf_slice(&h->partial_row_bytes);
    return RQ_OK;
}

/* HBASE: ConnectionUtils.noMoreResultsForScan and noMoreResultsForReverseScan: whether the client
 * opens a scanner of the next region when this one ends. */
static bool continues_in_next_region(const rq__scan_holder *h)
{
    const rq_region_info *info = rq_region_get_info(h->region);
    rq_slice border = h->scan.reversed ? info->start_key : info->end_key;
    if (border.len == 0) return false;
    if (h->scan.stop_row.len == 0) return true;
    int c = rq_slice_compare(border, h->scan.stop_row);
    return h->scan.reversed ? c > 0 : c < 0 || (c == 0 && h->scan.include_stop);
}

/* Whether the region is at its end, and the end must be reported by a call of its own
 * (tells_border_apart). */
static bool keeps_the_border_back(const rq_op_scan *s)
{
    const rq__scan_holder *h = s->holder;
    return !s->more_in_region && !s->closes && (s->result_count > 0 || h->partial_row.len > 0) &&
           s->tells_border_apart && continues_in_next_region(h);
}

static rq_err find_cursor(rq_op_scan *s)
{
    rq_slice row = rq_region_scanner_current_row(s->holder->scanner);
    if (row.len == 0) return RQ_OK;
    s->cursor_row = rq_arena_copy(s->read.op.arena, row);
    return s->cursor_row.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static void count_stats(rq_op_scan *s)
{
    const rq_scan_stats *now = rq_region_scanner_stats(s->holder->scanner);
    s->stats.rows_scanned = now->rows_scanned - s->stats.rows_scanned;
    s->stats.rows_filtered = now->rows_filtered - s->stats.rows_filtered;
}

static rq_err conclude(rq_op_scan *s)
{
    rq__scan_holder *h = s->holder;
    /* The filter may end the scan only in an answer without results, because clients drop the
     * results of such an answer; and not in the separate report of the region's end (at_border):
     * without tells_border_apart the previous answer would have ended the region, not the scan. */
    bool filter_done = h->scan.filter != NULL && s->result_count == 0 && s->rows_max > 0 &&
                       !h->at_border && rq_filter_all_remaining(h->scan.filter);
    s->stale = h->stale;
    s->more_results = !s->row_limit_reached && !filter_done;
    if (s->more_results && keeps_the_border_back(s)) {
        h->at_border = true;
        s->more_in_region = true;
    }
    if (s->is_heartbeat && h->extra.need_cursor) RQ_TRY(find_cursor(s));
    s->read_point = rq_region_scanner_read_point(h->scanner);
    s->lease_ms = ops_of(s)->lease_ms;
    count_stats(s);
    RQ_TRY(s->take(s));
    return remember_partial_row(s, s->more_results && s->more_in_region);
}

static void answer(rq_op_scan *s)
{
    rq_region_scanner_suspend(s->holder->scanner);
    rq_read_ctx_clear(&s->read.ctx);
    rq_err rc = conclude(s);
    if (rc != RQ_OK) {
        fail(s, rc);
        return;
    }
    finish_holder(s, !s->more_results || !s->more_in_region || s->closes, true);
    end(s, RQ_OK);
}

/* --- reading ---------------------------------------------------------------------------------- */

static void count_row(rq_op_scan *s)
{
    s->complete_rows++;
    if (s->complete_rows >= s->limit_of_rows) s->row_limit_reached = true;
}

/* At the begin of a result: checks whether the partial result before it was the end of its row. */
static rq_err count_ended_partial(rq_op_scan *s)
{
    rq_slice row, before = {0};
    if (s->result_count == 0)
        before = s->holder->partial_row;
    else if (s->results[s->result_count - 1].is_partial)
        RQ_TRY(first_row_of(s, s->last, &before));
    if (before.len == 0) return RQ_OK;
    RQ_TRY(first_row_of(s, s->begun, &row));
    if (!rq_slice_eq(before, row)) count_row(s);
    return RQ_OK;
}

static rq_err reserve_results(rq_op_scan *s, uint32_t count)
{
    if (s->result_cap - s->result_count >= count) return RQ_OK;
    uint32_t cap = s->result_cap == 0 ? 128 : s->result_cap * 2;
    if (cap - s->result_count < count) cap = s->result_count + count;
    rq_scan_result *more = rq_arena_alloc(s->read.op.arena, cap * sizeof *more);
    if (more == NULL) return RQ_E_NO_MEMORY;
    if (s->result_count > 0) memcpy(more, s->results, s->result_count * sizeof *more);
    s->results = more;
    s->result_cap = cap;
    return RQ_OK;
}

static rq_err push_result(rq_op_scan *s, bool partial)
{
    RQ_TRY(reserve_results(s, 1));
    s->results[s->result_count++] = (rq_scan_result){s->out->count - s->begun.count, partial};
    s->last = s->begun;
    s->begun = rq_cellblock_get_mark(s->out);
    return RQ_OK;
}

/* The cells since `begun` are one result. */
static rq_err end_result(rq_op_scan *s, bool partial)
{
    if (s->limit_of_rows > 0) {
        RQ_TRY(count_ended_partial(s));
        if (s->row_limit_reached) {
            /* It belongs to a row behind the limit. */
            rq_cellblock_truncate(s->out, s->begun);
            return RQ_OK;
        }
    }
    RQ_TRY(push_result(s, partial));
    if (!partial && s->limit_of_rows > 0) count_row(s);
    return RQ_OK;
}

static bool is_mid_row(rq_scan_state state)
{
    return state == RQ_SCAN_BATCH_REACHED || state == RQ_SCAN_BYTES_REACHED_MID_ROW ||
           state == RQ_SCAN_TIME_REACHED_MID_ROW;
}

static bool is_time(rq_scan_state state)
{
    return state == RQ_SCAN_TIME_REACHED || state == RQ_SCAN_TIME_REACHED_MID_ROW;
}

static bool is_bytes(rq_scan_state state)
{
    return state == RQ_SCAN_BYTES_REACHED || state == RQ_SCAN_BYTES_REACHED_MID_ROW;
}

/* HBASE-21206: nothing follows, so a last partial result is complete. The client counts its row
 * then, and so does this server; HBase does not, and its clients continue with a limit of 0. */
static void end_last_partial(rq_op_scan *s)
{
    bool ends_row = s->holder->partial_row.len > 0;
    if (s->result_count > 0) {
        rq_scan_result *last = &s->results[s->result_count - 1];
        ends_row = last->is_partial;
        last->is_partial = false;
    }
    if (ends_row && s->limit_of_rows > 0) count_row(s);
}

/* Sets whether the answer is complete. */
static void judge(rq_op_scan *s, rq_scan_state state, bool *ret_done)
{
    s->more_in_region = state != RQ_SCAN_DONE;
    *ret_done = s->row_limit_reached || state == RQ_SCAN_DONE || is_time(state) ||
                is_bytes(state) || s->result_count >= s->rows_max;
    if (s->more_in_region && !s->row_limit_reached &&
        (is_time(state) || (is_bytes(state) && s->result_count == 0)))
        s->is_heartbeat = true;
}

/* Handles the state after one next(). *ret_done: the answer is complete. */
static rq_err take_in(rq_op_scan *s, rq_scan_state state, bool *ret_done)
{
    if (s->out->count > s->begun.count)
        RQ_TRY(end_result(s, is_mid_row(state)));
    else if (state == RQ_SCAN_DONE)
        end_last_partial(s);
    judge(s, state, ret_done);
    return RQ_OK;
}

static uint64_t now_ns(const rq_op_scan *s)
{
    rq_executor *executor = s->read.op.seat->executor;
    return executor->now_ns(executor);
}

/* Number of rows that may be taken at once without exceeding the op's limits. 0 after a partial
 * result, because its row may continue. */
static uint32_t takes_at_most(const rq_op_scan *s)
{
    bool behind_partial = s->result_count > 0 ? s->results[s->result_count - 1].is_partial
                                              : s->holder->partial_row.len > 0;
    if (behind_partial || s->out->count > s->begun.count) return 0;
    uint32_t most = s->rows_max - s->result_count;
    if (s->limit_of_rows > 0 && (uint32_t)(s->limit_of_rows - s->complete_rows) < most)
        most = (uint32_t)(s->limit_of_rows - s->complete_rows);
    return most < TAKEN_MAX ? most : TAKEN_MAX;
}

static rq_err take_in_rows(rq_op_scan *s, const rq_scan_rows *rows)
{
    RQ_TRY(reserve_results(s, rows->count));
    rq_scan_result *to = s->results + s->result_count;
    for (uint32_t i = 0; i < rows->count; i++)
        to[i] = (rq_scan_result){rows->cells[i], false};
    s->result_count += rows->count;
    s->begun = rows->end;
    if (s->limit_of_rows > 0) {
        s->complete_rows += (int32_t)rows->count;
        if (s->complete_rows >= s->limit_of_rows) s->row_limit_reached = true;
    }
    return RQ_OK;
}

/* Takes rows on the fast path. */
static rq_err take_rows(rq_op_scan *s, const rq_scan_limits *limits, uint32_t *ret_taken,
                        bool *ret_done)
{
    uint32_t cells[TAKEN_MAX];
    rq_scan_rows rows = {.cells = cells, .max = takes_at_most(s)};
    rq_scan_state state;
    if (rows.max == 0) return RQ_OK;
    RQ_TRY(rq_region_scanner_take_rows(s->holder->scanner, limits, s->out, &rows, &state));
    if (rows.count == 0) return RQ_OK;
    *ret_taken = rows.count;
    RQ_TRY(take_in_rows(s, &rows));
    judge(s, state, ret_done);
    return RQ_OK;
}

/* RQ_E_AGAIN: the slice is over, or a block is needed; RQ_OK: the answer is complete. */
static rq_err read_rows(rq_op_scan *s)
{
    rq_scan_limits limits = {
        .bytes = s->bytes_max,
        .cells = s->holder->scan.batch > 0 ? (uint32_t)s->holder->scan.batch : 0,
        .deadline_ns = s->time_limit_ns,
        .yield_ns = rq_op_read_yield_ns(&s->read),
        .may_stop_inside_row = s->allows_partials,
    };
    bool may_take = rq_region_scanner_may_take(s->holder->scanner);
    bool done = false;
    uint32_t rows_left = CLOCK_ROWS;
    size_t bytes_to = s->out->bytes.len + CLOCK_BYTES;
    while (!done) {
        rq_scan_state state;
        uint32_t taken = 0;
        if (may_take) RQ_TRY(take_rows(s, &limits, &taken, &done));
        if (done) return RQ_OK;
        rows_left = taken < rows_left ? rows_left - taken : 1;
        RQ_TRY(rq_region_scanner_next(s->holder->scanner, &limits, &s->read.ctx, s->out, &state,
                                      &s->read.op.why));
        RQ_TRY(take_in(s, state, &done));
        /* next() itself yields only when it delivers nothing for a long time. */
        if (done || (--rows_left > 0 && s->out->bytes.len < bytes_to)) continue;
        if (limits.yield_ns != 0 && now_ns(s) >= limits.yield_ns) return RQ_E_AGAIN;
        rows_left = CLOCK_ROWS;
        bytes_to = s->out->bytes.len + CLOCK_BYTES;
    }
    return RQ_OK;
}

static rq_err read_slice(rq_op_read *read)
{
    rq_op_scan *s = RQ_CONTAINER_OF(read, rq_op_scan, read);
    rq_err rc = read_rows(s);
    if (rq_op_read_suspends(read, rc)) rq_region_scanner_suspend(s->holder->scanner);
    return rc;
}

static void step(rq_op_read *read)
{
    rq_op_scan *s = RQ_CONTAINER_OF(read, rq_op_scan, read);
    rq_op *op = &read->op;
    rq_err rc = read->fetch_rc;
    if (rc == RQ_OK && rq_region_is_closing(s->holder->region))
        rc = rq_fail(&op->why, RQ_E_NOT_SERVING_REGION, "region is closing");
    if (rc == RQ_OK && op->caller != NULL && op->caller->has_gone(op))
        rc = RQ_E_CALLER_DISCONNECTED;
    if (rc == RQ_OK) rc = rq_op_read_slice(read);
    if (rc == RQ_E_AGAIN) {
        rq_op_read_wait(read);
    } else if (rc != RQ_OK) {
        fail(s, rc);
    } else {
        answer(s);
    }
}

/* --- beginning -------------------------------------------------------------------------------- */

RQ_COLD static rq_err no_room(rq_error *why)
{
    return rq_fail(why, RQ_E_CALL_QUEUE_TOO_BIG,
                   "open scanners use all memory that rorqual.scanners.memory allows, or this "
                   "connection's share of that memory");
}

/* A repeated request would be refused again. */
RQ_COLD static rq_err too_large(rq_error *why)
{
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "the scanner with its filter and columns needs more memory than one connection "
                   "may use: raise rorqual.scanners.memory");
}

static rq_err fill(rq_op_scan *s)
{
    rq__scan_holder *h = s->holder;
    return s->fill(s, &h->arena, &h->scan, &h->extra);
}

static rq_err open_filled(const rq_op_scan *s, rq_error *why)
{
    rq__scan_holder *h = s->holder;
    h->scan.row_bytes_max = ops_of(s)->row_bytes_max;
    if (h->scan.filter != NULL && h->scan.batch > 0 && rq_filter_has_filter_row(h->scan.filter))
        return rq_fail(why, RQ_E_IOEXCEPTION,
                       "Cannot set batch on a scan using a filter that returns true for "
                       "filter.hasFilterRow");
    return rq_region_scanner_open(h->region, &h->scan, h->extra.mvcc_read_point, &h->arena,
                                  &h->scanner, why);
}

static rq_err new_holder(rq_op_scan *s, rq_error *why)
{
    rq_err rc = rq__lease_new(ops_of(s)->leases, s->owner, &s->holder);
    if (rc == RQ_E_CALL_QUEUE_TOO_BIG) return no_room(why);
    if (rc != RQ_OK) return rc;
    s->holder->stale = s->stale;
    s->holder->region = rq_region_ref(s->read.op.region);
    return RQ_OK;
}

/* After fill() has returned rc. */
static rq_err open_scanner(rq_op_scan *s, rq_err rc, rq_error *why)
{
    rq__scan_holder *h = s->holder;
    if (rc == RQ_OK) rc = open_filled(s, why);
    if (h->refused) return h->never_fits ? too_large(why) : no_room(why);
    if (rc != RQ_OK) return rc;
    h->opened = s->has_opened = true;
    return RQ_OK;
}

static rq_err unknown_scanner(uint64_t id, rq_error *why)
{
    return rq_fail(
        why, RQ_E_UNKNOWN_SCANNER,
        "Unknown scanner '%lld'. This can happen due to any of the following reasons: a) Scanner "
        "id "
        "given is wrong, b) Scanner lease expired because of long wait between consecutive client "
        "checkins, c) Server may be closing down, d) RegionServer restart during upgrade.\nIf the "
        "issue is due to reason (b), a possible fix would be increasing the value of"
        "'hbase.client.scanner.timeout.period' configuration.",
        (long long)id);
}

static rq_err closed_scanner(const rq_op_scan *s, uint64_t last_seq, rq_error *why)
{
    if (!s->has_call_seq || s->call_seq == last_seq + 1) return RQ_E_END;
    return rq_fail(why, RQ_E_OUT_OF_ORDER_SCANNER,
                   "Expected nextCallSeq for closed request: %llu But the nextCallSeq got from "
                   "client: %llu; request=scanner_id: %llu",
                   (unsigned long long)last_seq + 1, (unsigned long long)s->call_seq,
                   (unsigned long long)s->scanner_id);
}

/* RQ_E_END: the scanner has ended while the client may believe it open: the answer is empty. */
static rq_err take_scanner(rq_op_scan *s, rq_error *why)
{
    uint64_t last_seq = 0;
    rq_err rc = rq__lease_take(ops_of(s)->leases, s->scanner_id, s->owner, &s->holder, &last_seq);
    if (rc == RQ_E_UNKNOWN_SCANNER) return unknown_scanner(s->scanner_id, why);
    if (rc == RQ_E_LEASE)
        return rq_fail(why, rc, "lease '%llu' does not exist", (unsigned long long)s->scanner_id);
    if (rc == RQ_E_END) return closed_scanner(s, last_seq, why);
    if (rc != RQ_OK) return rc;
    if (!rq_region_is_closing(s->holder->region)) return RQ_OK;
    char name[512];
    rq_bytes_to_string(rq_region_get_info(s->holder->region)->name, name, sizeof name);
    finish_holder(s, true, false);
    return rq_fail(why, RQ_E_NOT_SERVING_REGION,
                   "Region has changed on the scanner %llu: regionName=%s, scannerRegionName=%s",
                   (unsigned long long)s->scanner_id, name, name);
}

static rq_err check_sequence(rq_op_scan *s, rq_error *why)
{
    rq__scan_holder *h = s->holder;
    if (!s->has_call_seq) return RQ_OK;
    if (s->call_seq == h->next_call_seq) {
        h->next_call_seq++;
        return RQ_OK;
    }
    char name[512];
    rq_bytes_to_string(rq_region_get_info(h->region)->name, name, sizeof name);
    return rq_fail(why, RQ_E_OUT_OF_ORDER_SCANNER,
                   "Expected nextCallSeq: %llu But the nextCallSeq got from client: %llu; "
                   "request=scanner_id: %llu; region=%s",
                   (unsigned long long)h->next_call_seq, (unsigned long long)s->call_seq,
                   (unsigned long long)h->id, name);
}

/* HBASE: RSRpcServices.getTimeLimit: half of the smaller of lease and call timeout. */
static void set_time_limit(rq_op_scan *s)
{
    const rq_ops *ops = ops_of(s);
    uint64_t timeout = s->timeout_ms > 0 ? s->timeout_ms : ops->rpc_timeout_ms;
    uint64_t limit = ops->lease_ms;
    if (timeout > 0 && (limit == 0 || timeout < limit)) limit = timeout;
    if (limit == 0) return;
    limit /= 2;
    if (limit < TIME_LIMIT_MIN_MS) limit = TIME_LIMIT_MIN_MS;
    s->time_limit_ns = now_ns(s) + limit * 1000000;
}

static void set_limits(rq_op_scan *s)
{
    const rq_ops *ops = ops_of(s);
    uint64_t asked = s->holder->extra.max_result_bytes;
    s->bytes_max = asked > 0 && asked < ops->result_bytes_max ? asked : ops->result_bytes_max;
    if (s->allows_heartbeats) set_time_limit(s);
}

/* A refused call can be repeated: the scanner stays as it is. */
RQ_COLD static rq_err ask_gate(rq_op_scan *s, rq_error *why)
{
    rq_gate_group g = {.region = s->holder->region, .reads = 1};
    rq_err rc = rq__gate_enter_group(&s->read.op, &g, why);
    s->is_gated = rc == RQ_OK;
    if (rc != RQ_OK) finish_holder(s, false, false);
    return rc;
}

/* With the scanner. */
static rq_err begin(rq_op_scan *s, rq_error *why)
{
    if (RQ_UNLIKELY(rq__gate_policy(s->read.op.seat) != NULL) && !s->opens && !s->closes &&
        !s->renews)
        RQ_TRY(ask_gate(s, why));
    rq_err rc = check_sequence(s, why);
    if (rc != RQ_OK) {
        finish_holder(s, false, false);
        return rc;
    }
    rq__scan_holder *h = s->holder;
    rq_region_scanner_lend(h->scanner, s->read.op.arena);
    set_limits(s);
    s->scanner_id = h->id;
    s->was_counted = true;
    h->scan.counts_rows = s->counts_rows;
    s->stats = *rq_region_scanner_stats(h->scanner);
    return RQ_OK;
}

/* The scanner was opened or taken, or could not be. */
static void go_on(rq_op_scan *s, rq_err rc)
{
    if (rc == RQ_OK) rc = begin(s, &s->read.op.why);
    if (rc == RQ_E_END) {
        end_idle(s);
    } else if (rc != RQ_OK) {
        fail(s, rc);
    } else if (s->renews) {
        finish_holder(s, false, false);
        end_idle(s);
    } else if (s->rows_max == 0) {
        answer(s);
    } else if (s->holder->at_border) {
        s->more_in_region = false;
        answer(s);
    } else {
        rq__op_read_run(&s->read);
    }
}

static void run_filled(rq_task *task)
{
    rq_op_scan *s = RQ_CONTAINER_OF(task, rq_op_scan, filled);
    rq_err rc = s->read.fetch_rc;
    s->read.fetch_rc = RQ_OK;
    go_on(s, open_scanner(s, rc, &s->read.op.why));
}

static void run_fill(rq_task *task)
{
    rq_op_scan *s = RQ_CONTAINER_OF(task, rq_op_scan, read.task);
    s->read.fetch_rc = fill(s);
}

static void run_fill_alone(rq_task *task)
{
    rq_op_scan *s = RQ_CONTAINER_OF(task, rq_op_scan, read.task);
    run_fill(task);
    rq_lane_post(s->read.op.seat->lane, &s->filled);
}

RQ_COLD static void fill_elsewhere(rq_op_scan *s)
{
    rq_op *op = &s->read.op;
    rq_executor *executor = op->seat->executor;
    bool has_turns = op->caller != NULL && op->caller->work_apart != NULL;
    op->has_waited = true;
    s->filled.run = run_filled;
    s->read.task.run = has_turns ? run_fill : run_fill_alone;
    if (!has_turns)
        executor->submit(executor, RQ_POOL_CODEC, &s->read.task);
    else if (op->caller->work_apart(op, &s->read.task, &s->filled) != RQ_OK)
        go_on(s, open_scanner(s, RQ_E_NO_MEMORY, &op->why));
}

/* It was delayed at the gate, and its owner has gone with the connection meanwhile. */
static bool has_lost_owner(const rq_op *op)
{
    return op->has_waited && op->caller != NULL && op->caller->has_gone(op);
}

static void run(rq_op *op)
{
    rq_op_scan *s = RQ_CONTAINER_OF(op, rq_op_scan, read.op);
    s->first = s->begun = rq_cellblock_get_mark(s->out);
    s->more_in_region = true;
    rq_op_read_init(&s->read, step, read_slice);
    s->read.sink = s->out;
    rq_err rc = RQ_OK;
    if (RQ_UNLIKELY(has_lost_owner(op)))
        rc = RQ_E_CALLER_DISCONNECTED;
    else
        rc = s->opens ? new_holder(s, &op->why) : take_scanner(s, &op->why);
    if (RQ_UNLIKELY(s->fills_long) && rc == RQ_OK && s->opens && op->seat->lane != NULL) {
        fill_elsewhere(s);
        return;
    }
    if (rc == RQ_OK && s->opens) rc = open_scanner(s, fill(s), &op->why);
    go_on(s, rc);
}

void rq_op_scan_start(rq_op_scan *s)
{
    rq_op_begin(&s->read.op, run);
}

void rq_scan_owner_gone(rq_ops *ops, rq_scan_owner *owner)
{
    rq__lease_owner_gone(ops->leases, owner);
}
