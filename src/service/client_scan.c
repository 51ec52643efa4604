/* SPDX-License-Identifier: Apache-2.0 */
/* Scan: translates messages to ops and results to messages (ops/scan.h). HBASE:
 * RSRpcServices.scan. */
#include "service/client_priv.h"

#include "ops/scan.h"
#include "rpc/long_reply.h"
#include "service/apart.h"
#include "service/call_op.h"
#include "service/encode.h"
#include "service/scan_answer.h"

typedef struct scan_job {
    rq_op_scan scan;
    rq_cellblock own; /* the cells, when they go into messages */
    Pb__ScanResponse response;
    rq_slice packed; /* the response, if the cells are in the cell block */
    bool is_long;    /* it is packed on a pool */
} scan_job;

static const Pb__ScanRequest *request_of(const rq_call *call)
{
    return (const Pb__ScanRequest *)call->param;
}

/* --- the answer ------------------------------------------------------------------------------- */

/* For a client without a codec: the cells as messages. */
static rq_err add_results(const rq_op_scan *s, Pb__ScanResponse *response)
{
    rq_arena *arena = s->read.op.arena;
    uint32_t n = s->result_count;
    if (n == 0) return RQ_OK;
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
        results[i].partial = s->results[i].is_partial;
        results[i].has_stale = 1;
        results[i].stale = s->stale;
        RQ_TRY(rq__encode_cells(rq_slice_of(start, (size_t)(cursor.ptr - start)),
                                s->results[i].cells, arena, &results[i]));
        response->results[i] = &results[i];
    }
    response->n_results = n;
    return RQ_OK;
}

static rq_err add_metrics(rq_op_scan *s, Pb__ScanResponse *response)
{
    rq_arena *arena = s->read.op.arena;
    rq_executor *executor = s->read.op.seat->executor;
    uint64_t now = executor->now_ns(executor);
    const rq_call *call = rq__call_of_op(&s->read.op);
    const rq_read_ctx *ctx = &s->read.ctx;
    const struct {
        const char *name;
        uint64_t value;
    } list[] = {
        {"ROWS_SCANNED", s->stats.rows_scanned},
        {"ROWS_FILTERED", s->stats.rows_filtered},
        {"BLOCK_BYTES_SCANNED", ctx->block_bytes_used},
        {"BYTES_READ_FROM_FS", ctx->block_bytes_read},
        {"BLOCK_READ_OPS_COUNT", ctx->blocks_read},
        /* In milliseconds, rounded up: zero means that no file was read. Reads from the page cache
         * happen on the loop and are not measured. */
        {"FS_READ_TIME", ctx->blocks_read == 0 ? 0 : s->read.fetch_ns / 1000000 + 1},
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

static rq_err add_cursor(rq_op_scan *s, Pb__ScanResponse *response)
{
    if (s->cursor_row.len == 0) return RQ_OK;
    Pb__Cursor *cursor = rq_arena_alloc(s->read.op.arena, sizeof *cursor);
    if (cursor == NULL) return RQ_E_NO_MEMORY;
    pb__cursor__init(cursor);
    cursor->has_row = 1;
    cursor->row = rq__pb_binary(s->cursor_row);
    response->cursor = cursor;
    return RQ_OK;
}

static rq_err add_results_or_pack(const rq_op_scan *s, scan_job *job)
{
    job->is_long = s->out == &job->own && s->out->bytes.len > RQ__PACKED_AT_ONCE;
    if (job->is_long) return RQ_OK; /* pack_long adds them */
    if (s->out == &job->own) return add_results(s, &job->response);
    return rq__pack_scan(&job->response, s->results, s->result_count, s->read.op.arena,
                         &job->packed);
}

static rq_err take(rq_op_scan *s)
{
    scan_job *job = RQ_CONTAINER_OF(s, scan_job, scan);
    const Pb__ScanRequest *request = request_of(rq__call_of_op(&s->read.op));
    Pb__ScanResponse *response = &job->response;
    response->has_stale = 1;
    response->stale = s->stale;
    response->has_more_results = 1;
    response->more_results = s->more_results;
    response->has_more_results_in_region = 1;
    response->more_results_in_region = s->more_in_region;
    if (s->is_heartbeat) {
        response->has_heartbeat_message = 1;
        response->heartbeat_message = 1;
        RQ_TRY(add_cursor(s, response));
    }
    /* HBASE-18000: in every answer, for asynchbase. */
    response->has_scanner_id = 1;
    response->scanner_id = s->scanner_id;
    if (s->has_opened) {
        response->has_mvcc_read_point = 1;
        response->mvcc_read_point = s->read_point;
        response->has_ttl = 1;
        response->ttl = (uint32_t)s->lease_ms;
    }
    if (request->has_track_scan_metrics && request->track_scan_metrics)
        RQ_TRY(add_metrics(s, response));
    return add_results_or_pack(s, job);
}

/* The scanner's state is lost once the sequence number was counted: closes the scanner and makes
 * the client open another one behind the last row it has. HBASE: the catch in
 * RSRpcServices.scan. */
static void fail_scan(const rq_op_scan *s, rq_call *call)
{
    const rq_op *op = &s->read.op;
    if (!s->was_counted || rq_err_do_not_retry(op->rc) || s->has_opened) {
        rq__fail_call_of_op(op);
    } else if (rq_rpc_client_at_least(call->client, 1, 4)) {
        rq_call_fail(call, RQ_E_SCANNER_RESET, "Scanner is closed on the server-side: %s",
                     op->why.code != RQ_OK ? op->why.message : rq_err_text(op->rc));
    } else {
        rq_call_fail(call, RQ_E_UNKNOWN_SCANNER,
                     "Throwing UnknownScannerException to reset the client scanner state for "
                     "clients older than 1.3.");
    }
}

static rq_err pack_long(rq_call *call, rq_buf *ret)
{
    scan_job *job = call->user;
    RQ_TRY(add_results(&job->scan, &job->response));
    return rq__pack_message(call, &job->response.base, ret);
}

static void scan_done(rq_op *op)
{
    scan_job *job = RQ_CONTAINER_OF(op, scan_job, scan.read.op);
    rq_call *call = rq__call_of_op(op);
    if (op->rc == RQ_E_CALLER_DISCONNECTED) {
        rq_call_drop(call);
    } else if (op->rc != RQ_OK) {
        fail_scan(&job->scan, call);
    } else if (job->packed.ptr != NULL) {
        rq_call_reply_packed(call, job->packed);
    } else if (job->is_long) {
        call->user = job;
        rq_call_reply_long(call, pack_long);
    } else {
        if (job->scan.is_idle) {
            job->response.has_scanner_id = request_of(call)->has_scanner_id;
            job->response.scanner_id = request_of(call)->scanner_id;
        }
        rq_call_reply(call, &job->response.base);
    }
}

/* --- the request ------------------------------------------------------------------------------ */

static rq_err fill(rq_op_scan *s, rq_arena *arena, rq_scan *ret, rq_scan_extra *ret_extra)
{
    rq_op *op = &s->read.op;
    rq_call *call = rq__call_of_op(op);
    const rq_call *before = rq_call_take_in_hand(call);
    rq_err rc =
        rq__decode_scan(request_of(call)->scan, op->region, arena, ret, ret_extra, &op->why);
    (void)rq_call_take_in_hand(before);
    return rc;
}

static void set_wishes(rq_op_scan *s, const Pb__ScanRequest *r, const rq_call *call)
{
    s->has_call_seq = r->has_next_call_seq;
    s->call_seq = r->next_call_seq;
    s->renews = r->has_renew && r->renew;
    s->closes = r->has_close_scanner && r->close_scanner;
    s->rows_max = r->has_number_of_rows ? r->number_of_rows : (s->closes ? 0 : 1);
    s->limit_of_rows = r->has_limit_of_rows ? (int32_t)r->limit_of_rows : -1;
    s->timeout_ms = call->timeout_ms;
    s->allows_partials = r->has_client_handles_partials && r->client_handles_partials;
    s->allows_heartbeats =
        s->allows_partials && r->has_client_handles_heartbeats && r->client_handles_heartbeats;
    s->counts_rows = r->has_track_scan_metrics && r->track_scan_metrics;
}

/* Whether the end of a region must be reported in an answer of its own, without results and without
 * completing a partial one. It must for clients that may suspend a scan when they receive results
 * (AsyncTableResultScanner of 2.0 and later), because of a race in that client:
 *  1. a scan is suspended with the last results of a region, and resumePrefetch() calls resume();
 *  2. resume() opens the next region's scanner. If its answer arrives before a listener is
 *     attached, onNext() runs inside resume(), suspends the scan again and stores a new resumer;
 *  3. resumePrefetch() then sets the resumer to null, which loses the new one: the scan waits
 *     forever.
 * Within a region answers arrive on another thread, which waits for the scanner's monitor, so step
 * 2 cannot happen. */
static bool may_suspend(const rq_call *call)
{
    return rq_rpc_client_at_least(call->client, 2, 0);
}

static void release_own(void *thing)
{
    rq_cellblock_clear(thing);
}

static rq_err begin_scan(const rq_client_service *service, rq_call *call, rq_op_scan *s,
                         rq_cellblock *own)
{
    const Pb__ScanRequest *request = request_of(call);
    rq_op *op = &s->read.op;
    if (!request->has_scanner_id && request->scan == NULL)
        return rq_fail(&op->why, RQ_E_DO_NOT_RETRY, "Missing required input: scannerId or scan");
    s->owner = rq_scan_owner_get(rq_call_connection_state(call));
    if (s->owner == NULL) return RQ_E_NO_MEMORY;
    s->opens = !request->has_scanner_id;
    s->scanner_id = request->scanner_id;
    if (s->opens && request->region == NULL)
        return rq_fail(&op->why, RQ_E_DO_NOT_RETRY, "Missing required input: region");
    if (s->opens)
        RQ_TRY(rq__find_region_to_read(service, request->region, &op->region, &s->stale, &op->why));
    set_wishes(s, request, call);
    s->tells_border_apart = may_suspend(call);
    s->fill = fill;
    s->fills_long = call->request_bytes > RQ__TRANSLATED_AT_ONCE;
    s->take = take;
    s->out = call->client->has_codec ? &call->cells : own;
    return rq_arena_link(&call->arena, release_own, own);
}

void rq__handle_scan(void *ctx, rq_call *call)
{
    if (rq_call_disconnected(call)) {
        rq_call_drop(call);
        return;
    }
    scan_job *job = rq_arena_calloc(&call->arena, 1, sizeof *job);
    if (job == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    pb__scan_response__init(&job->response);
    rq_op *op = &job->scan.read.op;
    rq__op_of_call(op, RQ_OP_SCAN, rq__seat(ctx, call), call, scan_done);
    op->rc = begin_scan(ctx, call, &job->scan, &job->own);
    if (op->rc == RQ_OK)
        rq_op_scan_start(&job->scan);
    else
        rq__fail_call_of_op(op);
}
