/* SPDX-License-Identifier: Apache-2.0 */
/* Scans: a scanner in one region after the other, the rows of its responses, and where the scan
 * continues after a failure. */
#include "client/op_priv.h"

#define ROWS_NO_LIMIT INT32_MAX

static rq_slice bound(const rq_op *op, const rq_slice *s, size_t at)
{
    return rq_slice_of(op->bounds.ptr + at, s->len);
}

/* While a scanner is open, its server keeps its index. */
static void set_open(rq_op *op, bool open)
{
    if (op->scanner_open == open) return;
    op->scanner_open = open;
    size_t *scanners = &op->client->servers[op->server].scanners;
    *scanners = open ? *scanners + 1 : *scanners - 1;
}

rq_err rq_op_scan(rq_op *op, rq_client_table *t, const rq_scan *scan, rq_op_item row,
                  rq_op_done done)
{
    rq__op_prepare(op, t, RQ__OP_SCAN);
    op->scan = *scan;
    op->item = row;
    op->done = done;
    op->priority = scan->priority;
    op->replica = scan->replica;
    op->any_replica = scan->any_replica;
    op->metrics = (rq_scan_metrics){0};
    op->include_start = !scan->excludes_start;
    set_open(op, false);
    op->is_abandoned = false;
    rq__parts_drop(&op->parts_of_row);
    op->gave_part = op->reads_again = false;
    op->rows = 0;
    rq_buf_reset(&op->bounds);
    RQ_TRY(rq_buf_append(&op->bounds, scan->start.ptr, scan->start.len));
    RQ_TRY(rq_buf_append(&op->bounds, scan->stop.ptr, scan->stop.len));
    RQ_TRY(rq_buf_append(&op->bounds, scan->family.ptr, scan->family.len));
    RQ_TRY(rq_buf_append(&op->bounds, scan->more.ptr, scan->more.len));
    op->scan.stop = bound(op, &scan->stop, scan->start.len);
    op->scan.family = bound(op, &scan->family, scan->start.len + scan->stop.len);
    op->scan.more = bound(op, &scan->more, scan->start.len + scan->stop.len + scan->family.len);
    RQ_TRY(rq_buf_append(&op->row, scan->start.ptr, scan->start.len));
    rq__op_attempt(op);
    return RQ_OK;
}

static uint32_t rows_wanted(const rq_op *op)
{
    return op->scan.caching > 0 ? op->scan.caching : ROWS_NO_LIMIT;
}

static uint32_t rows_left(const rq_op *op)
{
    if (op->scan.limit == 0) return 0;
    uint64_t left = op->scan.limit - op->rows;
    return left > ROWS_NO_LIMIT ? ROWS_NO_LIMIT : (uint32_t)left;
}

/* The region to continue in; for a reversed scan that has returned rows, the one before its row. */
static const rq__region *scan_region(const rq_op *op)
{
    rq_slice start = rq_buf_slice(&op->row);
    bool before = op->scan.reversed && (!op->include_start || start.len == 0);
    return before ? rq__map_locate_before(op->table, start) : rq__map_locate(op->table, start);
}

/* `c`: a region's edge compared with the stop row. Whether the scan needs no row after the edge. */
static bool is_behind_stop(const rq_op *op, int c)
{
    if (op->scan.reversed) return c <= 0;
    return c > 0 || (c == 0 && !op->scan.includes_stop);
}

static void count_call(rq_op *op, bool between)
{
    if (!op->scan.counts_metrics) return;
    rq__scan_metrics_call(&op->metrics, between, rq_client_now_ns());
    if (between && op->attempts > 0) rq__scan_metrics_retry(&op->metrics);
}

void rq__scan_count_call(rq_op *op)
{
    count_call(op, true);
}

const rq_scan_metrics *rq_op_scan_metrics(const rq_op *op)
{
    return &op->metrics;
}

static rq_err put_open(rq_op *op)
{
    rq_buf_reset(&op->body);
    return rq__put_scan_open(&op->body, &op->scan, rq_buf_slice(&op->row), op->include_start,
                             rows_wanted(op), rows_left(op), true);
}

static rq_slice edge_of(const rq_op *op, const rq__region *r)
{
    return op->scan.reversed ? r->start : r->end;
}

static void scan_answer(void *ctx, const rq_reply *reply);

/* Opens a scanner in the region. */
static rq_err open_in(rq_op *op, const rq__region *r)
{
    rq__conn *conn = NULL;
    rq_slice edge = edge_of(op, r), specifier;
    rq_buf_reset(&op->region_key);
    RQ_TRY(rq_buf_append(&op->region_key, edge.ptr, edge.len));
    op->region_is_last =
        edge.len == 0 ||
        (op->scan.stop.len > 0 && is_behind_stop(op, rq_slice_compare(edge, op->scan.stop)));
    op->sequence = 0;
    op->read_replica = op->replica;
    RQ_TRY(put_open(op));
    if (!rq__map_replica(r, op->replica, &op->server, &specifier)) return RQ_E_NOT_SERVING_REGION;
    RQ_TRY(rq__client_lane(op->client, op->server, op->lane, &conn));
    if (op->scan.counts_metrics && op->attempts == 0)
        rq__scan_metrics_region(&op->metrics, op->client->servers[op->server].at.host);
    count_call(op, true);
    RQ_TRY(rq__conn_call_until(conn, op->until_ns, "Scan", rq__op_priority(op, op->priority),
                               specifier, rq_buf_slice(&op->body), (rq_slice){0}, scan_answer, op));
    rq__hedge_begin(op, conn);
    return RQ_OK;
}

static rq_err open_scanner(rq_op *op)
{
    const rq__region *r = scan_region(op);
    if (r == NULL) return RQ_E_NOT_SERVING_REGION;
    rq_err rc = open_in(op, r);
    return rc != RQ_OK && rq__hedge_instead(op) ? RQ_OK : rc;
}

const rq__region *rq__scan_other(rq_op *op)
{
    const rq__region *r = op->is_abandoned ? NULL : scan_region(op);
    bool is_same = r != NULL && rq_slice_eq(edge_of(op, r), rq_buf_slice(&op->region_key));
    return is_same && put_open(op) == RQ_OK ? r : NULL;
}

void rq__scan_switch(rq_op *op, uint32_t server, uint16_t replica)
{
    rq__scan_lose(op);
    op->server = server;
    op->read_replica = replica;
    op->sequence = 0;
}

/* Requests the next response of the open scanner, for `done`. */
static rq_err go_on(rq_op *op, rq_reply_fn done, void *ctx, rq__conn **ret_conn)
{
    rq__conn *conn = NULL;
    RQ_TRY(rq__client_lane(op->client, op->server, op->lane, &conn));
    rq_buf_reset(&op->body);
    RQ_TRY(rq__put_scan_next(&op->body, &op->scan, op->scanner, op->sequence, rows_wanted(op),
                             rows_left(op), true));
    RQ_TRY(rq__conn_call_until(conn, op->until_ns, "Scan", rq__op_priority(op, op->priority),
                               (rq_slice){0}, rq_buf_slice(&op->body), (rq_slice){0}, done, ctx));
    count_call(op, true);
    op->sequence++;
    *ret_conn = conn;
    return RQ_OK;
}

/* Sends the next request before the rows of an answer are passed on, so that the server works meanwhile. If this
 * fails, the request is sent when it is needed. The scan's first two requests are never sent ahead, so that short
 * scans request no more than they need. */
static void go_ahead(rq_op *op, const rq_scan_view *v)
{
    bool may = op->scan.fetches_ahead && op->scan.limit == 0 && op->sequence > 0;
    bool has_more = v->more_results && v->more_results_in_region && !op->is_abandoned;
    if (!may || !has_more || !rq__ahead_prepare(op)) return;
    rq__conn *conn;
    if (go_on(op, rq__ahead_answer, op->ahead, &conn) != RQ_OK) return;
    rq__ahead_sent(op);
    rq_client_flush(op->client);
}

rq_err rq__scan_send(rq_op *op)
{
    if (op->is_abandoned) {
        rq_op_scan_end(op);
        return RQ_E_CANCELLED;
    }
    if (!op->scanner_open) return open_scanner(op);
    rq__conn *conn;
    RQ_TRY(go_on(op, scan_answer, op, &conn));
    rq__hedge_begin(op, conn);
    return RQ_OK;
}

static rq_err skip_cells(rq_result_view row, rq_cursor *cells)
{
    rq_cell cell;
    while (row.count > 0)
        RQ_TRY(rq_result_next(&row, cells, &cell));
    return RQ_OK;
}

static rq_err count_cells(rq_op *op, rq_result_view row, rq_cursor cells)
{
    rq_cell cell;
    rq_err rc;
    while ((rc = rq_result_next(&row, &cells, &cell)) == RQ_OK)
        rq__scan_metrics_cell(&op->metrics, &cell);
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* Called while a row is read again from its start, after some of its cells were passed on: skips the cells up to
 * the last one that was passed on, which may be in the middle of a result. HBASE: ConnectionUtils.filterCells. */
static rq_err skip_given(rq_op *op, rq_result_view *row, rq_cursor *cells)
{
    rq_cursor c = rq_cursor_of(rq_buf_slice(&op->last_given.bytes));
    rq_cell given, cell;
    rq_err rc;
    RQ_TRY(rq_cellblock_next(&c, &given, NULL));
    rq_result_view rest = *row;
    rq_cursor behind = *cells;
    while ((rc = rq_result_next(&rest, &behind, &cell)) == RQ_OK) {
        if (!rq_slice_eq(rq_cell_row(&cell), rq_cell_row(&given)) ||
            rq_cell_compare_key(RQ_ORDER_DEFAULT, &cell, &given) > 0) {
            op->reads_again = false;
            return RQ_OK;
        }
        *row = rest;
        *cells = behind;
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* A new scanner begins at the row of the last item, and this cell was the last one of it. */
static rq_err note_part(rq_op *op, const rq_cell *last)
{
    rq_cell key = *last;
    key.value_len = 0;
    rq_cellblock_reset(&op->last_given);
    op->gave_part = true;
    return rq_cellblock_append(&op->last_given, &key);
}

/* The row whose part was the last item has no more cells. */
static void end_row(rq_op *op)
{
    op->rows++;
    op->gave_part = op->include_start = false;
}

/* Where the scan continues with a new scanner: behind the row, or at a partial row again. */
static rq_err note_item(rq_op *op, rq_result_view row, rq_cursor cells)
{
    rq_cell cell;
    rq_err rc = rq_result_next(&row, &cells, &cell);
    if (rc == RQ_E_END) return RQ_OK;
    RQ_TRY(rc);
    if (op->gave_part && !rq_slice_eq(rq_cell_row(&cell), rq_buf_slice(&op->row))) end_row(op);
    rq_buf_reset(&op->row);
    RQ_TRY(rq_buf_append(&op->row, cell.row, cell.row_len));
    op->include_start = true;
    if (!row.partial) {
        end_row(op);
        return RQ_OK;
    }
    while (row.count > 0) /* of a block: is_item() */
        RQ_TRY(rq_result_next(&row, &cells, &cell));
    return note_part(op, &cell);
}

/* A result, and where its next cell is. */
typedef struct result_at {
    rq_result_view row;
    rq_cursor cells;
} result_at;

/* What has been passed on of a response. */
typedef struct giving {
    size_t count;
    result_at last; /* `present`: the last row, which is not noted yet */
} giving;

static bool has_cells(rq_result_view row)
{
    return row.count > 0 || row.inline_cells.len > 0;
}

/* Passes the item on; `at` moves behind the cells that its receiver has read. A receiver that has moved a copy of row and
 * cursor has read none. */
static void pass_on(rq_op *op, result_at *at, giving *g)
{
    rq_op_result r = {.row = at->row, .cells = at->cells};
    op->item(op, op->ctx, (uint32_t)op->rows, &r);
    g->count++;
    if (r.row.count < at->row.count) *at = (result_at){r.row, r.cells};
}

/* A scan does not continue elsewhere before all of a response is read: only the last of its whole rows is noted. */
static rq_err note_last(rq_op *op, giving *g)
{
    rq_cell first;
    if (!g->last.row.present) return RQ_OK;
    g->last.row.present = false;
    RQ_TRY(rq_result_next(&g->last.row, &g->last.cells, &first));
    rq_buf_reset(&op->row);
    return rq_buf_append(&op->row, first.row, first.row_len);
}

/* An item of the response itself. */
static rq_err give(rq_op *op, result_at *at, giving *g)
{
    result_at item = *at;
    bool is_whole = !item.row.partial && !op->gave_part;
    pass_on(op, at, g);
    if (!has_cells(item.row)) return RQ_OK;
    g->last.row.present = false;
    if (!is_whole) return note_item(op, item.row, item.cells);
    g->last = item;
    end_row(op);
    return RQ_OK;
}

/* The cells that were kept, if there are some. */
static rq_err give_kept(rq_op *op, bool partial, giving *g)
{
    result_at kept;
    if (!rq__parts_row(&op->parts_of_row, &kept.row, &kept.cells)) return RQ_OK;
    kept.row.partial = partial;
    result_at item = kept;
    pass_on(op, &kept, g);
    g->last.row.present = false;
    rq_err rc = note_item(op, item.row, item.cells);
    rq__parts_drop(&op->parts_of_row);
    return rc;
}

/* Keeps the cells of a result; with a batch passes on each full batch. */
static rq_err keep(rq_op *op, result_at *at, giving *g)
{
    rq_cell cell;
    rq_err rc;
    while ((rc = rq_result_next(&at->row, &at->cells, &cell)) == RQ_OK) {
        if (op->scan.batch > 0 && op->parts_of_row.cells.count == op->scan.batch)
            RQ_TRY(give_kept(op, true, g));
        RQ_TRY(rq__parts_add(&op->parts_of_row, &cell, at->row.stale));
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* Whether the result is an item as it is. */
static bool is_item(const rq_op *op, rq_result_view row)
{
    if (op->scan.batch == 0) return !row.partial;
    if (row.inline_cells.len > 0) return false; /* rare, and not counted */
    return row.partial ? row.count == op->scan.batch : row.count <= op->scan.batch;
}

/* Joins the parts of rows. The last part of a row is not always marked as the last one; then the kept parts are
 * passed on when the next row begins. HBASE: CompleteScanResultCache, BatchScanResultCache. */
static rq_err join(rq_op *op, result_at *at, giving *g)
{
    bool goes_on, is_partial = at->row.partial;
    RQ_TRY(rq__parts_continue(&op->parts_of_row, at->row, at->cells, &goes_on));
    if (!goes_on) RQ_TRY(give_kept(op, false, g));
    if (!goes_on && is_item(op, at->row)) return give(op, at, g);
    RQ_TRY(keep(op, at, g));
    bool is_full = op->scan.batch > 0 && op->parts_of_row.cells.count == op->scan.batch;
    return is_partial && !is_full ? RQ_OK : give_kept(op, is_partial, g);
}

/* `at` moves behind the cells that were read. */
static rq_err take_row(rq_op *op, result_at *at, giving *g)
{
    bool had_cells = has_cells(at->row);
    if (op->reads_again) RQ_TRY(skip_given(op, &at->row, &at->cells));
    return has_cells(at->row) || !had_cells ? join(op, at, g) : RQ_OK;
}

/* Passes on the results of the response. */
static rq_err take_results(rq_op *op, const rq_scan_view *v, rq_slice block, giving *g)
{
    rq_scan_rows rows;
    result_at at = {.cells = rq_cursor_of(block)};
    rq_err rc;
    rq__scan_rows_begin(v, &rows);
    while ((rc = rq__scan_rows_next(&rows, &at.row)) == RQ_OK) {
        if (op->scan.counts_metrics) RQ_TRY(count_cells(op, at.row, at.cells));
        RQ_TRY(take_row(op, &at, g));
        RQ_TRY(skip_cells(at.row, &at.cells));
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* Passes on the results, and the row that is complete because the response says so. */
static rq_err take_rows(rq_op *op, const rq_scan_view *v, rq_slice block, size_t *ret_given)
{
    giving g = {0};
    bool row_ends = v->is_empty && !v->heartbeat;
    bool ends = !v->more_results || !v->more_results_in_region;
    rq_err rc = take_results(op, v, block, &g);
    rq_err noted = note_last(op, &g); /* a caller may continue behind it after an error */
    if (rc == RQ_OK) rc = noted;
    if (rc == RQ_OK && (row_ends || ends)) {
        rc = give_kept(op, false, &g);
        if (rc == RQ_OK && op->gave_part) end_row(op);
    }
    *ret_given = g.count;
    return rc;
}

/* Passes on a cursor for a response without a complete row: the row named by the server, or the row of the last
 * part. HBASE: ClientScanner.loadCache. */
static void give_cursor(rq_op *op, const rq_scan_view *v, size_t *given)
{
    rq_op_result r = {
        .cursor = v->heartbeat && v->cursor.len > 0 ? v->cursor : rq__parts_key(&op->parts_of_row)};
    if (r.cursor.len == 0) return;
    op->item(op, op->ctx, (uint32_t)op->rows, &r);
    ++*given;
}

static rq_err enter_next_region(rq_op *op)
{
    op->include_start = !op->scan.reversed;
    set_open(op, false);
    op->reads_again = false;
    rq_buf_reset(&op->row);
    return rq_buf_append(&op->row, op->region_key.ptr, op->region_key.len);
}

void rq__scan_lose(rq_op *op)
{
    set_open(op, false);
    op->reads_again = op->gave_part;
    rq__parts_drop(&op->parts_of_row);
}

static const rq_op_result step_done = {.goes_on = true};

/* Fails the scan after a malformed answer: at once, or, if the next request has been sent already, when that
 * request is answered, because its answer refers to the scan. */
static void fail_malformed(rq_op *op, rq_err rc)
{
    rq__scan_lose(op);
    if (rq__ahead_is_sent(op))
        rq__ahead_wait(op, rc);
    else
        rq__op_failed_here(op, rc, false, RQ_SLICE_LIT("MalformedAnswer"));
}

static void scan_answer(void *ctx, const rq_reply *reply)
{
    rq_op *op = ctx;
    if (!rq__hedge_takes(op, reply)) rq__scan_take(op, reply);
}

void rq__scan_take(rq_op *op, const rq_reply *reply)
{
    static const rq_op_result well = {0};
    rq_scan_view v;
    size_t given = 0;
    if (reply->err != RQ_OK) {
        rq__scan_metrics_failure(&op->metrics, reply->err);
        rq__scan_lose(op);
        rq__op_failed(op, reply);
        return;
    }
    rq_err rc = rq__scan_response_parse(reply->message, &v);
    if (rc == RQ_OK && v.has_scanner) op->scanner = v.scanner;
    if (rc == RQ_OK && op->scan.counts_metrics) rc = rq__scan_metrics_add(&op->metrics, v.metrics);
    if (rc == RQ_OK) {
        if (op->until_ns != 0) op->until_ns = rq_client_now_ns() + op->client->timeout_ns;
        go_ahead(op, &v);
        rc = take_rows(op, &v, reply->cells, &given);
    }
    if (rc != RQ_OK) {
        fail_malformed(op, rc);
        return;
    }
    op->attempts = 0;
    set_open(op, v.more_results && v.more_results_in_region);
    bool enough = op->scan.limit > 0 && op->rows >= op->scan.limit;
    if (enough) rq_op_scan_end(op);
    if (op->scan.wants_cursors && op->scanner_open && given == 0) give_cursor(op, &v, &given);
    if (enough || !v.more_results || (!v.more_results_in_region && op->region_is_last)) {
        rq__op_finish(op, &well);
        return;
    }
    if (!v.more_results_in_region) rc = enter_next_region(op);
    if (rc != RQ_OK)
        rq__op_failed_here(op, rc, false, RQ_SLICE_LIT("NoMemory"));
    else if (op->scan.is_stepwise && given > 0)
        op->done(op, op->ctx, &step_done);
    else
        rq__ahead_ask(op);
}

void rq_op_scan_step(rq_op *op)
{
    op->kind = RQ__OP_SCAN;
    op->attempts = 0;
    rq__ahead_ask(op);
}

void rq_op_scan_abandon(rq_op *op)
{
    op->is_abandoned = true;
}

void rq_op_scan_end(rq_op *op)
{
    if (!rq__ahead_leave(op) && op->scanner_open) {
        count_call(op, false);
        rq__scanner_close(op->client, op->server, op->lane, op->scanner);
    }
    set_open(op, false);
}
