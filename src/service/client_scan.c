/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scan: opens, goes on, renews and closes scanners. HBASE: RSRpcServices.scan.
 *
 * One request reads rows until one of its limits is reached: rows asked for, limit of rows of the
 * whole scan, bytes, time. It does so in slices: after RQ__SLICE_NS the scanner is suspended and
 * the request posts itself, so that other requests of the loop get their turn. A slice may end
 * inside a row; the row's next cells then still belong to the same result. What the client sees as
 * partial is only what its own limits cut.
 *
 *   take lease ─► check sequence ─► [slice: next, next, …]* ─► answer ─► give lease back, or close
 */
#include "service/client_priv.h"

#include "service/encode.h"

#include <stdio.h>

/* HBASE: hbase.region.server.scan.time.limit… minimumScanTimeLimitDelta */
#define TIME_LIMIT_MIN_MS 10
/* Of an answer, between two looks at the clock: a few microseconds. */
#define CLOCK_ROWS 16
#define CLOCK_BYTES ((size_t)64 << 10)

typedef struct result_end {
    uint32_t cells;
    bool partial;
} result_end;

typedef struct scan_job {
    rq__read_job job;
    rq__scan_holder *holder;
    bool opened; /* by this request */
    bool close;
    bool allow_partials;
    bool allow_heartbeats;
    uint32_t rows_max;     /* results of this answer */
    int32_t limit_of_rows; /* of the scan; <= 0: none */
    uint64_t bytes_max;
    uint64_t time_limit_ns; /* 0: none */
    /* progress */
    rq_cellblock own; /* the cells, when they go into messages */
    rq_cellblock *out;
    result_end *results;
    uint32_t result_count;
    uint32_t result_cap;
    rq_cellblock_mark begun; /* where the result under construction begins */
    rq_cellblock_mark last;  /* where the one before it began; a result is of one row */
    int32_t complete_rows;
    bool row_limit_reached;
    bool heartbeat;
    bool more_in_region;
    uint64_t row_stats_before, filtered_before;
} scan_job;

static const Pb__ScanRequest *request_of(const scan_job *s)
{
    return (const Pb__ScanRequest *)s->job.call->param;
}

/* --- endings ---------------------------------------------------------------------------------- */

static void finish_holder(scan_job *s, bool close, bool well)
{
    rq__leases *leases = s->job.service->leases;
    if (s->holder == NULL) return;
    if (close) {
        rq__lease_close(leases, s->holder, well);
    } else {
        /* What only a call at work needs is the call's. */
        rq_region_scanner_lend(s->holder->scanner, NULL);
        rq__lease_give_back(leases, s->holder);
    }
    s->holder = NULL;
}

/* An error after the sequence number was counted: the scanner is closed, and the client is told to
 * open another one from the row it has seen. HBASE: the catch in RSRpcServices.scan. */
static void fail_scan(scan_job *s, rq_err rc)
{
    rq_call *call = s->job.call;
    finish_holder(s, true, false);
    if (rq_err_do_not_retry(rc) || s->opened) {
        rq_call_fail_why(call, rc, &s->job.why);
    } else if (rq_rpc_client_at_least(call->client, 1, 4)) {
        rq_call_fail(call, RQ_E_SCANNER_RESET, "Scanner is closed on the server-side: %s",
                     s->job.why.code != RQ_OK ? s->job.why.message : rq_err_text(rc));
    } else {
        rq_call_fail(call, RQ_E_UNKNOWN_SCANNER,
                     "Throwing UnknownScannerException to reset the client scanner state for "
                     "clients older than 1.3.");
    }
}

/* --- the answer ------------------------------------------------------------------------------- */

static rq_err add_results(scan_job *s, Pb__ScanResponse *response)
{
    rq_arena *arena = &s->job.call->arena;
    uint32_t n = s->result_count;
    if (n == 0) return RQ_OK;
    if (s->job.call->client->has_codec) {
        response->cells_per_result = rq_arena_alloc(arena, n * sizeof(uint32_t));
        response->partial_flag_per_result = rq_arena_alloc(arena, n * sizeof(protobuf_c_boolean));
        if (response->cells_per_result == NULL || response->partial_flag_per_result == NULL)
            return RQ_E_NO_MEMORY;
        for (uint32_t i = 0; i < n; i++) {
            response->cells_per_result[i] = s->results[i].cells;
            response->partial_flag_per_result[i] = s->results[i].partial;
        }
        response->n_cells_per_result = response->n_partial_flag_per_result = n;
        return RQ_OK;
    }
    Pb__Result *results = rq_arena_alloc(arena, n * sizeof *results);
    response->results = rq_arena_alloc(arena, n * sizeof(Pb__Result *));
    if (results == NULL || response->results == NULL) return RQ_E_NO_MEMORY;
    rq_cursor cursor = rq_cursor_of(rq_buf_slice(&s->out->bytes));
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *start = cursor.ptr;
        rq_cell cell;
        for (uint32_t c = 0; c < s->results[i].cells; c++)
            RQ_TRY(rq_cellblock_next(&cursor, &cell, NULL));
        pb__result__init(&results[i]);
        results[i].has_partial = 1;
        results[i].partial = s->results[i].partial;
        results[i].has_stale = 1;
        results[i].stale = s->holder->stale;
        RQ_TRY(rq__encode_cells(rq_slice_of(start, (size_t)(cursor.ptr - start)),
                                s->results[i].cells, arena, &results[i]));
        response->results[i] = &results[i];
    }
    response->n_results = n;
    return RQ_OK;
}

static rq_err add_metrics(scan_job *s, Pb__ScanResponse *response)
{
    rq_arena *arena = &s->job.call->arena;
    const rq_scan_stats *stats = rq_region_scanner_stats(s->holder->scanner);
    uint64_t now = s->job.service->env.executor->now_ns(s->job.service->env.executor);
    const rq_call *call = s->job.call;
    const struct {
        const char *name;
        uint64_t value;
    } list[] = {
        {"ROWS_SCANNED", stats->rows_scanned - s->row_stats_before},
        {"ROWS_FILTERED", stats->rows_filtered - s->filtered_before},
        {"BLOCK_BYTES_SCANNED", s->job.ctx.block_bytes_used},
        {"BYTES_READ_FROM_FS", s->job.ctx.block_bytes_read},
        {"BLOCK_READ_OPS_COUNT", s->job.ctx.blocks_read},
        /* In milliseconds begun: zero says that no file was read. What the page cache gives at once
         * is read on the loop, and not measured. */
        {"FS_READ_TIME", s->job.ctx.blocks_read == 0 ? 0 : s->job.fetch_ns / 1000000 + 1},
        {"RPC_SCAN_PROCESSING_TIME", (now - call->started_ns) / 1000000},
        {"RPC_SCAN_QUEUE_WAIT_TIME", (call->started_ns - call->received_ns) / 1000000},
    };
    size_t n = RQ_ARRAY_LEN(list);
    Pb__ScanMetrics *metrics = rq_arena_alloc(arena, sizeof *metrics);
    Pb__NameInt64Pair *pairs = rq_arena_alloc(arena, n * sizeof *pairs);
    if (metrics == NULL || pairs == NULL) return RQ_E_NO_MEMORY;
    pb__scan_metrics__init(metrics);
    metrics->metrics = rq_arena_alloc(arena, n * sizeof(Pb__NameInt64Pair *));
    if (metrics->metrics == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        pb__name_int64_pair__init(&pairs[i]);
        pairs[i].name = (char *)list[i].name;
        pairs[i].has_value = 1;
        pairs[i].value = (int64_t)list[i].value;
        metrics->metrics[i] = &pairs[i];
    }
    metrics->n_metrics = n;
    response->scan_metrics = metrics;
    return RQ_OK;
}

static rq_err add_cursor(scan_job *s, Pb__ScanResponse *response)
{
    rq_arena *arena = &s->job.call->arena;
    rq_slice row = rq_region_scanner_current_row(s->holder->scanner);
    if (row.len == 0) return RQ_OK;
    Pb__Cursor *cursor = rq_arena_alloc(arena, sizeof *cursor);
    row = rq_arena_copy(arena, row);
    if (cursor == NULL || row.ptr == NULL) return RQ_E_NO_MEMORY;
    pb__cursor__init(cursor);
    cursor->has_row = 1;
    cursor->row = (ProtobufCBinaryData){row.len, (uint8_t *)row.ptr};
    response->cursor = cursor;
    return RQ_OK;
}

/* The row of a result that the client will see continued: complete rows are counted by the change
 * of row after it. An empty answer ends that row in the client, but not when nothing was read or
 * when it is a heartbeat. */
static rq_err remember_partial_row(scan_job *s, bool more)
{
    rq__scan_holder *h = s->holder;
    if (more && s->result_count == 0 && (s->heartbeat || s->rows_max == 0)) return RQ_OK;
    rq_buf_reset(&h->partial_row_bytes);
    h->partial_row = (rq_slice){0};
    if (!more || s->result_count == 0 || !s->results[s->result_count - 1].partial) return RQ_OK;
    rq_cursor cursor = rq_cursor_of(rq_buf_slice(&s->out->bytes));
    rq_cell cell = {0};
    for (uint32_t i = 0; i < s->out->count; i++)
        RQ_TRY(rq_cellblock_next(&cursor, &cell, NULL));
    RQ_TRY(rq_buf_append(&h->partial_row_bytes, cell.row, cell.row_len));
    h->partial_row = rq_buf_slice(&h->partial_row_bytes);
    return RQ_OK;
}

/* HBASE: ConnectionUtils.noMoreResultsForScan and noMoreResultsForReverseScan: whether the client
 * opens a scanner of the next region when this one ends. */
static bool goes_on_behind(const rq__scan_holder *h)
{
    const rq_region_info *info = rq_region_get_info(h->region);
    rq_slice border = h->scan.reversed ? info->start_key : info->end_key;
    if (border.len == 0) return false;
    if (h->scan.stop_row.len == 0) return true;
    int c = rq_slice_compare(border, h->scan.stop_row);
    return h->scan.reversed ? c > 0 : c < 0 || (c == 0 && h->scan.include_stop);
}

/*
 * The end of a region is told by itself, without results and without completing a partial one, to
 * clients that may suspend a scan when they get results (AsyncTableResultScanner of 2.0 and later).
 * Its resumePrefetch() calls resume() and then forgets the resumer. Where the suspended answer was
 * its region's last, resume() opens the next region's scanner; if the answer is there before its
 * listener is attached, onNext() runs within resume(), and when it suspends again, its resumer is
 * the one that is forgotten: the scan waits for ever. Within a region answers come on another
 * thread, which waits for the scanner's monitor.
 */
static bool keeps_the_border_back(const scan_job *s)
{
    const rq__scan_holder *h = s->holder;
    return !s->more_in_region && !s->close && (s->result_count > 0 || h->partial_row.len > 0) &&
           rq_rpc_client_at_least(s->job.call->client, 2, 0) && goes_on_behind(h);
}

static rq_err fill_response(scan_job *s, Pb__ScanResponse *response)
{
    rq__scan_holder *h = s->holder;
    response->has_stale = 1;
    response->stale = h->stale;
    RQ_TRY(add_results(s, response));
    /* Only without results, for clients that drop the results of such an answer. Not at a border
     * that was kept back: there the answer before would have ended the region, and no more. */
    bool filter_done = h->scan.filter != NULL && s->result_count == 0 && s->rows_max > 0 &&
                       !h->at_border && rq_filter_all_remaining(h->scan.filter);
    response->has_more_results = 1;
    response->more_results = !s->row_limit_reached && !filter_done;
    if (response->more_results && keeps_the_border_back(s)) {
        h->at_border = true;
        s->more_in_region = true;
    }
    response->has_more_results_in_region = 1;
    response->more_results_in_region = s->more_in_region;
    if (s->heartbeat) {
        response->has_heartbeat_message = 1;
        response->heartbeat_message = 1;
        if (h->extra.need_cursor) RQ_TRY(add_cursor(s, response));
    }
    /* HBASE-18000: in every answer, for asynchbase. */
    response->has_scanner_id = 1;
    response->scanner_id = h->id;
    if (s->opened) {
        response->has_mvcc_read_point = 1;
        response->mvcc_read_point = rq_region_scanner_read_point(h->scanner);
        response->has_ttl = 1;
        response->ttl = (uint32_t)s->job.service->lease_ms;
    }
    if (request_of(s)->has_track_scan_metrics && request_of(s)->track_scan_metrics)
        RQ_TRY(add_metrics(s, response));
    return remember_partial_row(s, response->more_results && s->more_in_region);
}

static void answer_scan(scan_job *s)
{
    Pb__ScanResponse response = PB__SCAN_RESPONSE__INIT;
    rq_region_scanner_suspend(s->holder->scanner);
    rq_read_ctx_clear(&s->job.ctx);
    rq_err rc = fill_response(s, &response);
    if (rc != RQ_OK) {
        fail_scan(s, rc);
        return;
    }
    finish_holder(s, !response.more_results || !response.more_results_in_region || s->close, true);
    rq_call_reply(s->job.call, &response.base);
}

/* --- reading ---------------------------------------------------------------------------------- */

static rq_err first_row_of(const scan_job *s, rq_cellblock_mark mark, rq_slice *ret)
{
    rq_cell cell;
    rq_cursor cursor =
        rq_cursor_of(rq_slice_of(s->out->bytes.ptr + mark.len, s->out->bytes.len - mark.len));
    RQ_TRY(rq_cellblock_next(&cursor, &cell, NULL));
    *ret = rq_cell_row(&cell);
    return RQ_OK;
}

static void count_row(scan_job *s)
{
    s->complete_rows++;
    if (s->complete_rows >= s->limit_of_rows) s->row_limit_reached = true;
}

/* A result begins: did the partial one before it end its row after all? */
static rq_err count_ended_partial(scan_job *s)
{
    rq_slice row, before = {0};
    RQ_TRY(first_row_of(s, s->begun, &row));
    if (s->result_count == 0)
        before = s->holder->partial_row;
    else if (s->results[s->result_count - 1].partial)
        RQ_TRY(first_row_of(s, s->last, &before));
    if (before.len > 0 && !rq_slice_eq(before, row)) count_row(s);
    return RQ_OK;
}

static rq_err push_result(scan_job *s, bool partial)
{
    if (s->result_count == s->result_cap) {
        uint32_t cap = s->result_cap == 0 ? 128 : s->result_cap * 2;
        result_end *more = rq_arena_alloc(&s->job.call->arena, cap * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        if (s->result_count > 0) memcpy(more, s->results, s->result_count * sizeof *more);
        s->results = more;
        s->result_cap = cap;
    }
    s->results[s->result_count++] = (result_end){s->out->count - s->begun.count, partial};
    s->last = s->begun;
    s->begun = rq_cellblock_get_mark(s->out);
    return RQ_OK;
}

/* The cells since `begun` are one result. */
static rq_err end_result(scan_job *s, bool partial)
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

/* HBASE-21206: nothing follows, so a last result that was partial is whole after all. The client
 * counts its row then, and so do we: HBase does not, and its clients go on with a limit of 0. */
static void end_last_partial(scan_job *s)
{
    bool ends_row = s->holder->partial_row.len > 0;
    if (s->result_count > 0) {
        result_end *last = &s->results[s->result_count - 1];
        ends_row = last->partial;
        last->partial = false;
    }
    if (ends_row && s->limit_of_rows > 0) count_row(s);
}

/* What one next() brought. *ret_done: the answer is complete. */
static rq_err take_in(scan_job *s, rq_scan_state state, bool *ret_done)
{
    if (s->out->count > s->begun.count)
        RQ_TRY(end_result(s, is_mid_row(state)));
    else if (state == RQ_SCAN_DONE)
        end_last_partial(s);
    s->more_in_region = state != RQ_SCAN_DONE;
    *ret_done = s->row_limit_reached || state == RQ_SCAN_DONE || is_time(state) ||
                is_bytes(state) || s->result_count >= s->rows_max;
    if (s->more_in_region && !s->row_limit_reached &&
        (is_time(state) || (is_bytes(state) && s->result_count == 0)))
        s->heartbeat = true;
    return RQ_OK;
}

static uint64_t now_ns(const scan_job *s)
{
    rq_executor *executor = s->job.service->env.executor;
    return executor->now_ns(executor);
}

/* RQ_E_AGAIN: the slice is over, or a block is needed; RQ_OK: the answer is complete. */
static rq_err read_slice(scan_job *s)
{
    rq_scan_limits limits = {
        .bytes = s->bytes_max,
        .cells = s->holder->scan.batch > 0 ? (uint32_t)s->holder->scan.batch : 0,
        .deadline_ns = s->time_limit_ns,
        .yield_ns = now_ns(s) + RQ__SLICE_NS,
        .may_stop_inside_row = s->allow_partials,
    };
    bool done = false;
    unsigned rows_left = CLOCK_ROWS;
    size_t bytes_to = s->out->bytes.len + CLOCK_BYTES;
    while (!done) {
        rq_scan_state state;
        RQ_TRY(rq_region_scanner_next(s->holder->scanner, &limits, &s->job.ctx, s->out, &state,
                                      &s->job.why));
        RQ_TRY(take_in(s, state, &done));
        /* next() itself yields only where it delivers nothing for long. */
        if (done || (--rows_left > 0 && s->out->bytes.len < bytes_to)) continue;
        if (now_ns(s) >= limits.yield_ns) return RQ_E_AGAIN;
        rows_left = CLOCK_ROWS;
        bytes_to = s->out->bytes.len + CLOCK_BYTES;
    }
    return RQ_OK;
}

static void step_scan(rq__read_job *job)
{
    scan_job *s = RQ_CONTAINER_OF(job, scan_job, job);
    rq_err rc = job->fetch_rc;
    if (rc == RQ_OK && rq_region_is_closing(s->holder->region))
        rc = rq_fail(&job->why, RQ_E_NOT_SERVING_REGION, "region is closing");
    if (rc == RQ_OK && rq_call_disconnected(job->call)) {
        finish_holder(s, true, false);
        rq_call_drop(job->call);
        return;
    }
    if (rc == RQ_OK) rc = read_slice(s);
    if (rc == RQ_E_AGAIN) {
        rq_region_scanner_suspend(s->holder->scanner);
        rq__read_job_wait(job);
    } else if (rc != RQ_OK) {
        fail_scan(s, rc);
    } else {
        answer_scan(s);
    }
}

/* --- beginning -------------------------------------------------------------------------------- */

RQ_COLD static rq_err no_room(rq_error *why)
{
    return rq_fail(why, RQ_E_CALL_QUEUE_TOO_BIG,
                   "open scanners with their filters fill the memory that rorqual.scanners.memory "
                   "allows them, or this connection's share of it");
}

static rq_err fill_holder(scan_job *s, const Pb__ScanRequest *request, rq_region *region,
                          rq_error *why)
{
    rq__scan_holder *h = s->holder;
    RQ_TRY(rq__decode_scan(request->scan, region, &h->arena, &h->scan, &h->extra, why));
    if (h->scan.filter != NULL && h->scan.batch > 0 && rq_filter_has_filter_row(h->scan.filter))
        return rq_fail(why, RQ_E_IOEXCEPTION,
                       "Cannot set batch on a scan using a filter that returns true for "
                       "filter.hasFilterRow");
    return rq_region_scanner_open(region, &h->scan, h->extra.mvcc_read_point, &h->arena,
                                  &h->scanner, why);
}

static rq_err open_scanner(scan_job *s, const Pb__ScanRequest *request, rq__scan_owner *owner,
                           rq_error *why)
{
    rq_client_service *service = s->job.service;
    rq_region *region;
    if (request->region == NULL)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Missing required input: region");
    bool stale;
    RQ_TRY(rq__find_region_to_read(service, request->region, &region, &stale, why));
    rq_err rc = rq__lease_new(service->leases, owner, &s->holder);
    if (rc == RQ_E_CALL_QUEUE_TOO_BIG) return no_room(why);
    if (rc != RQ_OK) return rc;
    rq__scan_holder *h = s->holder;
    h->stale = stale;
    h->region = rq_region_ref(region);
    rc = fill_holder(s, request, region, why);
    if (h->refused) return no_room(why);
    if (rc != RQ_OK) return rc;
    h->opened = s->opened = true;
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

/* RQ_E_END: it was closed by itself and the client may believe it open: an empty answer. */
static rq_err take_scanner(scan_job *s, const Pb__ScanRequest *request, rq__scan_owner *owner,
                           rq_error *why)
{
    uint64_t last_seq = 0;
    rq_err rc =
        rq__lease_take(s->job.service->leases, request->scanner_id, owner, &s->holder, &last_seq);
    if (rc == RQ_E_UNKNOWN_SCANNER) return unknown_scanner(request->scanner_id, why);
    if (rc == RQ_E_LEASE)
        return rq_fail(why, rc, "lease '%llu' does not exist",
                       (unsigned long long)request->scanner_id);
    if (rc == RQ_E_END && request->has_next_call_seq && request->next_call_seq != last_seq + 1)
        return rq_fail(why, RQ_E_OUT_OF_ORDER_SCANNER,
                       "Expected nextCallSeq for closed request: %llu But the nextCallSeq got from "
                       "client: %llu; request=scanner_id: %llu",
                       (unsigned long long)last_seq + 1, (unsigned long long)request->next_call_seq,
                       (unsigned long long)request->scanner_id);
    if (rc != RQ_OK) return rc;
    if (!rq_region_is_closing(s->holder->region)) return RQ_OK;
    char name[512];
    rq_bytes_to_string(rq_region_get_info(s->holder->region)->name, name, sizeof name);
    finish_holder(s, true, false);
    return rq_fail(why, RQ_E_NOT_SERVING_REGION,
                   "Region has changed on the scanner %llu: regionName=%s, scannerRegionName=%s",
                   (unsigned long long)request->scanner_id, name, name);
}

static rq_err check_sequence(scan_job *s, const Pb__ScanRequest *request, rq_error *why)
{
    rq__scan_holder *h = s->holder;
    if (!request->has_next_call_seq) return RQ_OK;
    if (request->next_call_seq == h->next_call_seq) {
        h->next_call_seq++;
        return RQ_OK;
    }
    char name[512];
    rq_bytes_to_string(rq_region_get_info(h->region)->name, name, sizeof name);
    return rq_fail(why, RQ_E_OUT_OF_ORDER_SCANNER,
                   "Expected nextCallSeq: %llu But the nextCallSeq got from client: %llu; "
                   "request=scanner_id: %llu; region=%s",
                   (unsigned long long)h->next_call_seq, (unsigned long long)request->next_call_seq,
                   (unsigned long long)h->id, name);
}

/* HBASE: RSRpcServices.getTimeLimit: half of the tighter of lease and call timeout. */
static void set_time_limit(scan_job *s)
{
    const rq_client_service *service = s->job.service;
    const rq_call *call = s->job.call;
    if (!s->allow_heartbeats) return;
    uint64_t timeout = call->timeout_ms > 0 ? call->timeout_ms : service->rpc_timeout_ms;
    uint64_t limit = service->lease_ms;
    if (timeout > 0 && (limit == 0 || timeout < limit)) limit = timeout;
    if (limit == 0) return;
    limit /= 2;
    if (limit < TIME_LIMIT_MIN_MS) limit = TIME_LIMIT_MIN_MS;
    s->time_limit_ns = now_ns(s) + limit * 1000000;
}

static void set_limits(scan_job *s, const Pb__ScanRequest *request)
{
    const rq_client_service *service = s->job.service;
    uint64_t asked = s->holder->extra.max_result_bytes;
    s->close = request->has_close_scanner && request->close_scanner;
    s->rows_max = request->has_number_of_rows ? request->number_of_rows : (s->close ? 0 : 1);
    s->limit_of_rows = request->has_limit_of_rows ? (int32_t)request->limit_of_rows : -1;
    s->bytes_max =
        asked > 0 && asked < service->result_bytes_max ? asked : service->result_bytes_max;
    s->allow_partials = request->has_client_handles_partials && request->client_handles_partials;
    s->allow_heartbeats = s->allow_partials && request->has_client_handles_heartbeats &&
                          request->client_handles_heartbeats;
    set_time_limit(s);
}

static void release_own(void *thing)
{
    rq_cellblock_clear(thing);
}

static rq_err begin_scan(scan_job *s, rq_error *why)
{
    const Pb__ScanRequest *request = request_of(s);
    if (!request->has_scanner_id && request->scan == NULL)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Missing required input: scannerId or scan");
    rq__scan_owner *owner = rq__lease_owner(rq_call_connection_state(s->job.call));
    if (owner == NULL) return RQ_E_NO_MEMORY;
    if (request->has_scanner_id)
        RQ_TRY(take_scanner(s, request, owner, why));
    else
        RQ_TRY(open_scanner(s, request, owner, why));
    rq_err rc = check_sequence(s, request, why);
    if (rc != RQ_OK) {
        finish_holder(s, false, false);
        return rc;
    }
    rq_region_scanner_lend(s->holder->scanner, &s->job.call->arena);
    s->out = s->job.call->client->has_codec ? &s->job.call->cells : &s->own;
    s->job.own = &s->own;
    set_limits(s, request);
    s->holder->scan.counts_rows = request->has_track_scan_metrics && request->track_scan_metrics;
    const rq_scan_stats *stats = rq_region_scanner_stats(s->holder->scanner);
    s->row_stats_before = stats->rows_scanned;
    s->filtered_before = stats->rows_filtered;
    return rq_arena_link(&s->job.call->arena, release_own, &s->own);
}

static void reply_empty(rq_call *call)
{
    const Pb__ScanRequest *request = (const Pb__ScanRequest *)call->param;
    Pb__ScanResponse response = PB__SCAN_RESPONSE__INIT;
    response.has_scanner_id = request->has_scanner_id;
    response.scanner_id = request->scanner_id;
    rq_call_reply(call, &response.base);
}

void rq__handle_scan(void *ctx, rq_call *call)
{
    if (rq_call_disconnected(call)) {
        rq_call_drop(call);
        return;
    }
    scan_job *s = rq_arena_alloc(&call->arena, sizeof *s);
    if (s == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    *s = (scan_job){.more_in_region = true};
    rq_err rc = rq__read_job_init(&s->job, ctx, call, step_scan);
    if (rc == RQ_OK) rc = begin_scan(s, &s->job.why);
    if (rc == RQ_E_END) {
        reply_empty(call);
    } else if (rc != RQ_OK) {
        finish_holder(s, true, false);
        rq_call_fail_why(call, rc, &s->job.why);
    } else if (request_of(s)->has_renew && request_of(s)->renew) {
        finish_holder(s, false, false);
        reply_empty(call);
    } else if (s->rows_max == 0) {
        answer_scan(s);
    } else if (s->holder->at_border) {
        s->more_in_region = false;
        answer_scan(s);
    } else {
        step_scan(&s->job);
    }
}
