/* SPDX-License-Identifier: Apache-2.0 */
/* An operation from start to done: the request's bytes without the region, the attempt (which
 * region, server and connection), the interpretation of the response, the pause before the next
 * attempt.
 *
 * A batch stores its actions as adjacent bytes and, for each attempt, the order of the unfinished
 * ones: by server, then region, then as given, so that actions of one row stay in order. The part
 * of each server is one Multi; results identify their action by its index. */
#include "client/client_priv.h"

#include "client/parts.h"

#include <stdio.h>
#include <stdlib.h>

#define ROWS_NO_LIMIT INT32_MAX

typedef enum op_kind { OP_NONE, OP_GET, OP_MUTATE, OP_ATOMIC, OP_BATCH, OP_SCAN } op_kind;

typedef struct span {
    size_t at;
    size_t len;
} span;

typedef struct action {
    span row;                 /* in rows */
    span bytes;               /* in body */
    span cells;               /* in cells */
    const rq__region *region; /* of this attempt, while it is being planned and sent */
    size_t group;             /* the same as a number, valid after the map has changed */
    uint32_t priority;
    bool done;
    bool answered;
} action;

/* One server's part of a batch's attempt. */
typedef struct part {
    rq_op *op;
    size_t begin; /* in order */
    size_t end;
} part;

struct rq_op {
    rq_client *client;
    rq_client_table *table;
    rq_op *next_waiting;
    void *ctx;
    rq_op_done done;
    rq_op_item item;
    unsigned lane;
    op_kind kind;
    unsigned attempts; /* that failed, in a row */
    uint32_t priority; /* of the request; 0: the table's */
    uint16_t replica;  /* of a get or scan */
    int64_t wake_ns;
    bool awaits_map;     /* of a table whose regions were never read */
    bool awaits_refresh; /* its pause is over, and the table's map is being read */
    rq_buf row;          /* of a get or mutation; rows of a batch; the last row of a scan */
    rq_buf body;
    rq_buf cells;
    rq_buf scratch;
    rq_buf scratch_cells;
    /* batch */
    action *actions;
    uint32_t *order;
    size_t action_count;
    size_t action_cap;
    size_t ordered;
    part *parts;
    size_t part_cap;
    size_t parts_out;
    rq_err batch_err; /* of an action that failed for good */
    rq_err retry_err; /* of one that is to be repeated */
    char kind_text[64];
    /* scan */
    rq_scan scan;
    rq_buf bounds;        /* start, stop, family, further fields */
    uint64_t cells_given; /* of the last row, if that was partial */
    uint64_t cells_to_drop;
    rq__parts parts_of_row; /* with joins_parts */
    rq_buf region_key;
    bool region_is_last;
    bool include_start;
    bool scanner_open;
    uint32_t server; /* that has the scanner */
    uint64_t scanner;
    uint64_t sequence;
    uint64_t rows;
    rq_scan_metrics metrics;
};

rq_err rq_op_new(rq_client *c, unsigned lane, void *ctx, rq_op **ret)
{
    rq_op *op = calloc(1, sizeof *op);
    if (op == NULL) return RQ_E_NO_MEMORY;
    op->client = c;
    op->lane = lane;
    op->ctx = ctx;
    *ret = op;
    return RQ_OK;
}

void rq_op_set_ctx(rq_op *op, void *ctx)
{
    op->ctx = ctx;
}

void rq_op_free(rq_op *op)
{
    if (op == NULL) return;
    rq_buf_clear(&op->row);
    rq_buf_clear(&op->body);
    rq_buf_clear(&op->cells);
    rq_buf_clear(&op->scratch);
    rq_buf_clear(&op->scratch_cells);
    rq_buf_clear(&op->bounds);
    rq_buf_clear(&op->region_key);
    rq__parts_clear(&op->parts_of_row);
    free(op->actions);
    free(op->order);
    free(op->parts);
    free(op);
}

static void begin(rq_op *op, rq_client_table *t, op_kind kind)
{
    op->table = t;
    op->kind = kind;
    op->attempts = 0;
    op->priority = 0;
    op->replica = 0;
    op->awaits_map = false;
    rq_buf_reset(&op->row);
    rq_buf_reset(&op->body);
    rq_buf_reset(&op->cells);
}

/* HBASE: ConnectionUtils.calcPriority */
static uint32_t priority_or_tables(const rq_op *op, uint32_t priority)
{
    return priority > 0 ? priority : op->table->priority;
}

static void finish(rq_op *op, const rq_op_result *r)
{
    op->kind = OP_NONE;
    op->done(op, op->ctx, r);
}

/* --- failures --------------------------------------------------------------------------------- */

static bool map_is_wrong(rq_err err)
{
    switch (err) {
    case RQ_E_IO:
    case RQ_E_NOT_SERVING_REGION:
    case RQ_E_WRONG_REGION:
    case RQ_E_REGION_MOVED:
    case RQ_E_REGION_OPENING:
    case RQ_E_SERVER_STOPPED:
    case RQ_E_SERVER_ABORTED:
    case RQ_E_SERVER_NOT_RUNNING:
    case RQ_E_UNKNOWN_REGION:
        return true;
    default:
        return false;
    }
}

/* Errors after which a scan continues with a new scanner. */
static bool scanner_is_gone(rq_err err)
{
    return err == RQ_E_UNKNOWN_SCANNER || err == RQ_E_OUT_OF_ORDER_SCANNER ||
           err == RQ_E_SCANNER_RESET || err == RQ_E_LEASE;
}

/* HBASE: HConstants.RETRY_BACKOFF. */
static int64_t pause_ns(const rq_op *op)
{
    static const int factors[] = {1, 2, 3, 5, 10, 20, 40, 100, 100, 100, 100, 200, 200};
    size_t n = op->attempts < RQ_ARRAY_LEN(factors) ? op->attempts : RQ_ARRAY_LEN(factors) - 1;
    return (int64_t)op->client->options.pause_ms * 1000000 * factors[n];
}

static void wait_until(rq_op *op, int64_t when_ns)
{
    op->awaits_refresh = false;
    op->wake_ns = when_ns;
    op->next_waiting = op->client->waiting;
    op->client->waiting = op;
}

/* Schedules the next attempt; false if there will be none. */
static bool again(rq_op *op, rq_err err, bool retry, rq_slice kind)
{
    rq_client *c = op->client;
    op->awaits_map = false;
    if (c->stopped) return false;
    if (map_is_wrong(err)) {
        retry = true;
        rq__map_refresh(op->table);
    }
    if (op->kind == OP_SCAN && scanner_is_gone(err)) retry = true;
    if (!retry || op->attempts >= c->options.retries) return false;
    if (c->options.on_retry != NULL) c->options.on_retry(c->options.ctx, kind);
    wait_until(op, rq_client_now_ns() + pause_ns(op));
    op->attempts++;
    return true;
}

static void fail_or_again(rq_op *op, const rq_reply *reply)
{
    if (again(op, reply->err, reply->retry, reply->kind)) return;
    rq_op_result r = {.err = reply->err,
                      .kind = reply->kind,
                      .java_class = reply->java_class,
                      .text = reply->text,
                      .retry = reply->retry};
    finish(op, &r);
}

static void fail_here(rq_op *op, rq_err err, bool retry, rq_slice kind)
{
    rq_reply reply = {.err = err, .retry = retry, .kind = kind};
    fail_or_again(op, &reply);
}

static rq_slice simple_name(rq_slice java_class)
{
    for (size_t i = java_class.len; i > 0; i--)
        if (java_class.ptr[i - 1] == '.')
            return rq_slice_of(java_class.ptr + i, java_class.len - i);
    return java_class;
}

static void attempt(rq_op *op);

/* Until its time, or until the map is known that is being read then. */
static void keep_waiting(rq_op *op, int64_t now_ns)
{
    bool awaits = op->awaits_refresh || op->wake_ns <= now_ns;
    wait_until(op, op->wake_ns <= now_ns ? now_ns + op->client->timeout_ns : op->wake_ns);
    op->awaits_refresh = awaits;
}

int64_t rq__ops_wake(rq_client *c, int64_t now_ns)
{
    rq_op *list = c->waiting;
    c->waiting = NULL;
    while (list != NULL) {
        rq_op *op = list;
        list = op->next_waiting;
        if (op->wake_ns > now_ns || op->table->refreshing)
            keep_waiting(op, now_ns);
        else
            attempt(op);
    }
    return rq__ops_due(c);
}

int64_t rq__ops_due(const rq_client *c)
{
    int64_t due = INT64_MAX;
    for (const rq_op *op = c->waiting; op != NULL; op = op->next_waiting)
        if (op->wake_ns < due) due = op->wake_ns;
    return due;
}

void rq__ops_map_known(rq_client_table *t)
{
    for (rq_op *op = t->client->waiting; op != NULL; op = op->next_waiting)
        if (op->table == t && (op->awaits_map || op->awaits_refresh)) op->wake_ns = 0;
}

void rq__ops_stop(rq_client *c)
{
    static const rq_op_result closed = {.err = RQ_E_CLOSED, .kind = {(const uint8_t *)"Closed", 6}};
    rq_op *list = c->waiting;
    c->waiting = NULL;
    while (list != NULL) {
        rq_op *op = list;
        list = op->next_waiting;
        finish(op, &closed);
    }
}

/* --- gets and mutations ----------------------------------------------------------------------- */

static void take_single(void *ctx, const rq_reply *reply)
{
    rq_op *op = ctx;
    if (reply->err != RQ_OK) {
        fail_or_again(op, reply);
        return;
    }
    rq_op_result r = {.cells = rq_cursor_of(reply->cells), .attempts = op->attempts};
    if (rq__mutate_response_parse(reply->message, &r.row, &r.processed) != RQ_OK)
        fail_here(op, RQ_E_MALFORMED, false, RQ_SLICE_LIT("MalformedAnswer"));
    else
        finish(op, &r);
}

static rq_err send_single(rq_op *op)
{
    rq__conn *conn = NULL;
    const rq__region *r = rq__map_locate(op->table, rq_buf_slice(&op->row));
    uint32_t server;
    rq_slice specifier;
    if (r == NULL || !rq__map_replica(r, op->replica, &server, &specifier))
        return RQ_E_NOT_SERVING_REGION;
    RQ_TRY(rq__client_lane(op->client, server, op->lane, &conn));
    return rq__conn_call(conn, op->kind == OP_GET ? "Get" : "Mutate",
                         priority_or_tables(op, op->priority), specifier, rq_buf_slice(&op->body),
                         rq_buf_slice(&op->cells), take_single, op);
}

rq_err rq_op_get(rq_op *op, rq_client_table *t, const rq_get *get, rq_op_done done)
{
    begin(op, t, OP_GET);
    op->done = done;
    op->priority = get->priority;
    op->replica = get->replica;
    RQ_TRY(rq_buf_append(&op->row, get->row.ptr, get->row.len));
    RQ_TRY(rq__put_get_body(&op->body, get));
    attempt(op);
    return RQ_OK;
}

rq_err rq_op_mutate(rq_op *op, rq_client_table *t, const rq_mutate *m, rq_op_done done)
{
    begin(op, t, OP_MUTATE);
    op->done = done;
    op->priority = m->priority;
    RQ_TRY(rq_buf_append(&op->row, m->row.ptr, m->row.len));
    RQ_TRY(rq__put_mutate_body(&op->body, &op->cells, m, op->client->nonce_group));
    attempt(op);
    return RQ_OK;
}

/* --- several mutations of a row, atomic ------------------------------------------------------- */

static void take_atomic(void *ctx, const rq_reply *reply)
{
    rq_op *op = ctx;
    if (reply->err != RQ_OK) {
        fail_or_again(op, reply);
        return;
    }
    rq_op_result r = {.cells = rq_cursor_of(reply->cells), .attempts = op->attempts};
    rq_cursor message = rq_cursor_of(reply->message);
    rq_region_result region;
    rq_action_result first = {0};
    rq_err rc = rq__multi_response_next(&message, &region);
    if (rc == RQ_OK) {
        rq_cursor actions = rq_cursor_of(region.actions);
        rc = rq__action_result_next(&actions, &first);
        if (rc == RQ_E_END) rc = RQ_OK;
    }
    const rq_exception_view *e =
        region.exception.java_class.len > 0 ? &region.exception : &first.exception;
    if (rc != RQ_OK) {
        fail_here(op, RQ_E_MALFORMED, false, RQ_SLICE_LIT("MalformedAnswer"));
    } else if (e->java_class.len > 0) {
        rq_reply failed = {.err = rq__err_of_class(e->java_class),
                           .retry = !e->do_not_retry,
                           .kind = simple_name(e->java_class),
                           .java_class = e->java_class,
                           .text = e->text};
        fail_or_again(op, &failed);
    } else {
        r.processed = region.processed;
        r.row = first.result;
        finish(op, &r);
    }
}

/* MultiRequest { regionAction 1 { region 1, atomic 2, action 3, condition 4 }, nonceGroup 2 } */
static rq_err send_atomic(rq_op *op)
{
    rq__conn *conn = NULL;
    size_t at;
    const rq__region *r = rq__map_locate(op->table, rq_buf_slice(&op->row));
    if (r == NULL) return RQ_E_NOT_SERVING_REGION;
    rq_buf_reset(&op->scratch);
    RQ_TRY(rq_pb_begin(&op->scratch, 1, &at));
    RQ_TRY(rq_buf_append(&op->scratch, r->specifier.ptr, r->specifier.len));
    RQ_TRY(rq_pb_put_number(&op->scratch, 2, 1));
    RQ_TRY(rq_buf_append(&op->scratch, op->body.ptr, op->body.len));
    RQ_TRY(rq_pb_end(&op->scratch, at));
    RQ_TRY(rq_pb_put_number(&op->scratch, 2, op->client->nonce_group));
    RQ_TRY(rq__client_lane(op->client, r->server, op->lane, &conn));
    return rq__conn_call(conn, "Multi", priority_or_tables(op, op->priority), (rq_slice){0},
                         rq_buf_slice(&op->scratch), rq_buf_slice(&op->cells), take_atomic, op);
}

rq_err rq_op_mutate_row(rq_op *op, rq_client_table *t, const rq_mutate *list, size_t count,
                        rq_slice condition, rq_op_done done)
{
    begin(op, t, OP_ATOMIC);
    op->done = done;
    RQ_ASSERT(count > 0);
    RQ_TRY(rq_buf_append(&op->row, list[0].row.ptr, list[0].row.len));
    for (size_t i = 0; i < count; i++) {
        RQ_TRY(rq__put_mutate_action(&op->body, &op->cells, (uint32_t)i, &list[i]));
        if (list[i].priority > op->priority) op->priority = list[i].priority;
    }
    if (condition.len > 0) RQ_TRY(rq_pb_put_bytes(&op->body, 4, condition));
    attempt(op);
    return RQ_OK;
}

/* --- batches ---------------------------------------------------------------------------------- */

void rq_op_batch_begin(rq_op *op, rq_client_table *t)
{
    begin(op, t, OP_BATCH);
    op->action_count = 0;
    op->batch_err = RQ_OK;
}

static rq_err add_action(rq_op *op, rq_slice row, action **ret)
{
    if (op->action_count == op->action_cap) {
        size_t cap = op->action_cap == 0 ? 16 : op->action_cap * 2;
        action *actions = realloc(op->actions, cap * sizeof *actions);
        if (actions == NULL) return RQ_E_NO_MEMORY;
        op->actions = actions;
        uint32_t *order = realloc(op->order, cap * sizeof *order);
        if (order == NULL) return RQ_E_NO_MEMORY;
        op->order = order;
        op->action_cap = cap;
    }
    action *a = &op->actions[op->action_count];
    *a = (action){
        .row = {op->row.len, row.len}, .bytes = {op->body.len, 0}, .cells = {op->cells.len, 0}};
    *ret = a;
    return rq_buf_append(&op->row, row.ptr, row.len);
}

static void added_action(rq_op *op, action *a)
{
    a->bytes.len = op->body.len - a->bytes.at;
    a->cells.len = op->cells.len - a->cells.at;
    op->action_count++;
}

rq_err rq_op_batch_get(rq_op *op, const rq_get *get)
{
    action *a;
    RQ_TRY(add_action(op, get->row, &a));
    a->priority = get->priority;
    RQ_TRY(rq__put_get_action(&op->body, (uint32_t)op->action_count, get));
    added_action(op, a);
    return RQ_OK;
}

rq_err rq_op_batch_mutate(rq_op *op, const rq_mutate *m)
{
    action *a;
    RQ_TRY(add_action(op, m->row, &a));
    a->priority = m->priority;
    RQ_TRY(rq__put_mutate_action(&op->body, &op->cells, (uint32_t)op->action_count, m));
    added_action(op, a);
    return RQ_OK;
}

rq_err rq_op_batch_run(rq_op *op, rq_op_item item, rq_op_done done)
{
    op->item = item;
    op->done = done;
    attempt(op);
    return RQ_OK;
}

static int by_place(const void *a, const void *b, void *ctx)
{
    const action *actions = ctx;
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    const rq__region *rx = actions[x].region;
    const rq__region *ry = actions[y].region;
    if (rx != ry) {
        if (rx->server != ry->server) return rx->server < ry->server ? -1 : 1;
        return rx < ry ? -1 : 1;
    }
    return x < y ? -1 : 1;
}

static void note_failure(rq_op *op, rq_err *slot, rq_err err, rq_slice kind)
{
    size_t len = kind.len < sizeof op->kind_text ? kind.len : sizeof op->kind_text - 1;
    *slot = err;
    if (len > 0) memcpy(op->kind_text, kind.ptr, len);
    op->kind_text[len] = 0;
}

/* An action's failure: kept for the next attempt, or reported. */
static void fail_action(rq_op *op, uint32_t index, rq_err err, bool retry, rq_slice kind,
                        rq_slice java_class, rq_slice text)
{
    action *a = &op->actions[index];
    a->answered = true;
    if ((retry || map_is_wrong(err)) && op->attempts < op->client->options.retries) {
        note_failure(op, &op->retry_err, err, kind);
        return;
    }
    rq_op_result r = {
        .err = err, .kind = kind, .java_class = java_class, .text = text, .retry = retry};
    a->done = true;
    note_failure(op, &op->batch_err, err, kind);
    op->item(op, op->ctx, index, &r);
}

static void end_attempt(rq_op *op)
{
    bool left = false;
    for (size_t i = 0; i < op->action_count && !left; i++)
        left = !op->actions[i].done;
    rq_slice kind = rq_slice_cstr(op->kind_text);
    if (left && again(op, op->retry_err, true, kind)) return;
    rq_op_result r = {.err = op->batch_err, .kind = kind};
    if (left) r.err = op->retry_err;
    finish(op, &r);
}

static void end_part(rq_op *op)
{
    if (--op->parts_out == 0) end_attempt(op);
}

static void fail_exception(rq_op *op, uint32_t index, const rq_exception_view *e)
{
    fail_action(op, index, rq__err_of_class(e->java_class), !e->do_not_retry,
                simple_name(e->java_class), e->java_class, e->text);
}

/* The results of one region, for the actions order[begin … end). Cells are in the order of the
 * results. */
static rq_err take_region(rq_op *op, const rq_region_result *region, size_t begin, size_t end,
                          rq_cursor *cells)
{
    rq_cursor c = rq_cursor_of(region->actions);
    rq_action_result a;
    rq_err rc;
    if (region->exception.java_class.len > 0) {
        for (size_t i = begin; i < end; i++)
            fail_exception(op, op->order[i], &region->exception);
        return RQ_OK;
    }
    while ((rc = rq__action_result_next(&c, &a)) == RQ_OK) {
        if (a.index >= op->action_count || op->actions[a.index].done) return RQ_E_MALFORMED;
        if (a.exception.java_class.len > 0) {
            fail_exception(op, a.index, &a.exception);
            continue;
        }
        rq_op_result r = {.row = a.result, .cells = *cells};
        rq_result_view skip = a.result;
        rq_cell cell;
        while (skip.count > 0)
            RQ_TRY(rq_result_next(&skip, cells, &cell));
        op->actions[a.index].done = op->actions[a.index].answered = true;
        op->item(op, op->ctx, a.index, &r);
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}

static size_t region_end(const rq_op *op, size_t begin, size_t end)
{
    size_t i = begin;
    while (i < end && op->actions[op->order[i]].group == op->actions[op->order[begin]].group)
        i++;
    return i;
}

static void take_part(void *ctx, const rq_reply *reply)
{
    part *p = ctx;
    rq_op *op = p->op;
    rq_err rc = reply->err;
    if (rc == RQ_OK) {
        rq_cursor message = rq_cursor_of(reply->message);
        rq_cursor cells = rq_cursor_of(reply->cells);
        rq_region_result region;
        size_t next;
        for (size_t i = p->begin; rc == RQ_OK && i < p->end; i = next) {
            next = region_end(op, i, p->end);
            rc = rq__multi_response_next(&message, &region);
            if (rc == RQ_OK) rc = take_region(op, &region, i, next, &cells);
        }
    }
    for (size_t i = p->begin; i < p->end; i++) {
        const action *a = &op->actions[op->order[i]];
        if (a->answered) continue;
        if (reply->err != RQ_OK)
            fail_action(op, op->order[i], reply->err, reply->retry, reply->kind, reply->java_class,
                        reply->text);
        else
            fail_action(op, op->order[i], RQ_E_MALFORMED, false, RQ_SLICE_LIT("MalformedAnswer"),
                        (rq_slice){0}, RQ_SLICE_LIT(""));
    }
    end_part(op);
}

/* MultiRequest { regionAction 1 { region 1, action 3 }, nonceGroup 2 } */
static rq_err send_part(rq_op *op, part *p)
{
    rq__conn *conn = NULL;
    uint32_t priority = 0; /* the highest of the part's actions */
    size_t next;
    rq_buf_reset(&op->scratch);
    rq_buf_reset(&op->scratch_cells);
    for (size_t i = p->begin; i < p->end; i = next) {
        size_t at;
        const rq__region *r = op->actions[op->order[i]].region;
        next = region_end(op, i, p->end);
        RQ_TRY(rq_pb_begin(&op->scratch, 1, &at));
        RQ_TRY(rq_buf_append(&op->scratch, r->specifier.ptr, r->specifier.len));
        for (size_t k = i; k < next; k++) {
            const action *a = &op->actions[op->order[k]];
            if (a->priority > priority) priority = a->priority;
            RQ_TRY(rq_buf_append(&op->scratch, op->body.ptr + a->bytes.at, a->bytes.len));
            if (a->cells.len > 0)
                RQ_TRY(
                    rq_buf_append(&op->scratch_cells, op->cells.ptr + a->cells.at, a->cells.len));
        }
        RQ_TRY(rq_pb_end(&op->scratch, at));
    }
    RQ_TRY(rq_pb_put_number(&op->scratch, 2, op->client->nonce_group));
    uint32_t server = op->actions[op->order[p->begin]].region->server;
    RQ_TRY(rq__client_lane(op->client, server, op->lane, &conn));
    return rq__conn_call(conn, "Multi", priority_or_tables(op, priority), (rq_slice){0},
                         rq_buf_slice(&op->scratch), rq_buf_slice(&op->scratch_cells), take_part,
                         p);
}

/* Computes the order of actions for this attempt, and its parts. */
static rq_err plan_batch(rq_op *op, size_t *ret_parts)
{
    size_t parts = 0;
    op->ordered = 0;
    for (size_t i = 0; i < op->action_count; i++) {
        action *a = &op->actions[i];
        a->answered = false;
        if (a->done) continue;
        a->region = rq__map_locate(op->table, rq_slice_of(op->row.ptr + a->row.at, a->row.len));
        if (a->region == NULL) return RQ_E_NOT_SERVING_REGION;
        a->group = (size_t)(a->region - op->table->regions);
        op->order[op->ordered++] = (uint32_t)i;
    }
    qsort_r(op->order, op->ordered, sizeof *op->order, by_place, op->actions);
    for (size_t i = 0; i < op->ordered; i++) {
        uint32_t server = op->actions[op->order[i]].region->server;
        if (parts == 0 ||
            op->actions[op->order[op->parts[parts - 1].begin]].region->server != server) {
            if (parts == op->part_cap) {
                part *bigger = realloc(op->parts, (op->part_cap + 4) * sizeof *bigger);
                if (bigger == NULL) return RQ_E_NO_MEMORY;
                op->parts = bigger;
                op->part_cap += 4;
            }
            op->parts[parts++] = (part){.op = op, .begin = i};
        }
        op->parts[parts - 1].end = i + 1;
    }
    *ret_parts = parts;
    return RQ_OK;
}

static rq_err send_batch(rq_op *op)
{
    size_t parts = 0;
    op->retry_err = RQ_OK;
    RQ_TRY(plan_batch(op, &parts));
    op->parts_out = parts + 1; /* one counts for this function itself, so that the end is reported
                                * once */
    for (size_t i = 0; i < parts; i++) {
        part *p = &op->parts[i];
        rq_err rc = send_part(op, p);
        if (rc == RQ_OK) continue;
        for (size_t k = p->begin; k < p->end; k++)
            fail_action(op, op->order[k], rc, rc == RQ_E_IO, RQ_SLICE_LIT("CannotSend"),
                        (rq_slice){0}, RQ_SLICE_LIT(""));
        op->parts_out--;
    }
    end_part(op);
    return RQ_OK;
}

/* --- scans ------------------------------------------------------------------------------------ */

static rq_slice bound(const rq_op *op, const rq_slice *s, size_t at)
{
    return rq_slice_of(op->bounds.ptr + at, s->len);
}

rq_err rq_op_scan(rq_op *op, rq_client_table *t, const rq_scan *scan, rq_op_item row,
                  rq_op_done done)
{
    begin(op, t, OP_SCAN);
    op->scan = *scan;
    op->item = row;
    op->done = done;
    op->priority = scan->priority;
    op->replica = scan->replica;
    op->metrics = (rq_scan_metrics){0};
    op->include_start = !scan->excludes_start;
    op->scanner_open = false;
    rq__parts_drop(&op->parts_of_row);
    op->cells_given = op->cells_to_drop = 0;
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
    attempt(op);
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

static void ignore_answer(void *ctx, const rq_reply *reply)
{
    (void)ctx;
    (void)reply;
}

/* The region to continue in; for a reversed scan that has returned rows, the one before its row. */
static const rq__region *scan_region(const rq_op *op)
{
    rq_slice start = rq_buf_slice(&op->row);
    bool before = op->scan.reversed && (!op->include_start || start.len == 0);
    return before ? rq__map_locate_before(op->table, start) : rq__map_locate(op->table, start);
}

static void take_scan(void *ctx, const rq_reply *reply);

/* Of a region's edge, compared with the stop row: whether no row behind it is asked for. */
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

const rq_scan_metrics *rq_op_scan_metrics(const rq_op *op)
{
    return &op->metrics;
}

static rq_err open_scanner(rq_op *op)
{
    rq__conn *conn = NULL;
    const rq__region *r = scan_region(op);
    rq_slice specifier;
    if (r == NULL || !rq__map_replica(r, op->replica, &op->server, &specifier))
        return RQ_E_NOT_SERVING_REGION;
    RQ_TRY(rq__client_lane(op->client, op->server, op->lane, &conn));
    rq_slice edge = op->scan.reversed ? r->start : r->end;
    rq_buf_reset(&op->region_key);
    RQ_TRY(rq_buf_append(&op->region_key, edge.ptr, edge.len));
    op->region_is_last =
        edge.len == 0 ||
        (op->scan.stop.len > 0 && is_behind_stop(op, rq_slice_compare(edge, op->scan.stop)));
    op->sequence = 0;
    rq_buf_reset(&op->body);
    RQ_TRY(rq__put_scan_open(&op->body, &op->scan, rq_buf_slice(&op->row), op->include_start,
                             rows_wanted(op), rows_left(op)));
    if (op->scan.counts_metrics && op->attempts == 0)
        rq__scan_metrics_region(&op->metrics, op->client->servers[op->server].at.host);
    count_call(op, true);
    return rq__conn_call(conn, "Scan", priority_or_tables(op, op->priority), specifier,
                         rq_buf_slice(&op->body), (rq_slice){0}, take_scan, op);
}

/* Requests the next response of the open scanner. */
static rq_err go_on(rq_op *op)
{
    rq__conn *conn = NULL;
    RQ_TRY(rq__client_lane(op->client, op->server, op->lane, &conn));
    rq_buf_reset(&op->body);
    RQ_TRY(rq__put_scan_next(&op->body, op->scanner, op->sequence++, rows_wanted(op), rows_left(op),
                             &op->scan));
    count_call(op, true);
    return rq__conn_call(conn, "Scan", priority_or_tables(op, op->priority), (rq_slice){0},
                         rq_buf_slice(&op->body), (rq_slice){0}, take_scan, op);
}

/* Ends the open scanner without waiting for the response. */
static rq_err close_scanner(rq_op *op)
{
    rq__conn *conn = NULL;
    RQ_TRY(rq__client_lane(op->client, op->server, op->lane, &conn));
    rq_buf_reset(&op->body);
    RQ_TRY(rq__put_scan_close(&op->body, op->scanner));
    count_call(op, false);
    return rq__conn_call(conn, "Scan", RQ__PRIORITY_CLOSE, (rq_slice){0}, rq_buf_slice(&op->body),
                         (rq_slice){0}, ignore_answer, op);
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

/* Of a row that is read again, after a part of it was passed on. */
static bool drops(rq_op *op, rq_result_view row, rq_cursor cells)
{
    rq_cell cell;
    uint32_t count = row.count;
    if (op->cells_to_drop == 0) return false;
    bool is_again = count <= op->cells_to_drop && rq_result_next(&row, &cells, &cell) == RQ_OK &&
                    rq_slice_eq(rq_cell_row(&cell), rq_buf_slice(&op->row));
    op->cells_to_drop = is_again ? op->cells_to_drop - count : 0;
    return is_again;
}

/* Where the scan continues with a new scanner: behind the row, or at a partial row again. */
static rq_err note_row(rq_op *op, rq_result_view row, rq_cursor cells)
{
    rq_cell cell;
    uint32_t count = row.count;
    rq_err rc = rq_result_next(&row, &cells, &cell);
    if (rc == RQ_E_END) return RQ_OK;
    RQ_TRY(rc);
    bool goes_on = op->cells_given > 0 && rq_slice_eq(rq_cell_row(&cell), rq_buf_slice(&op->row));
    if (op->cells_given > 0 && !goes_on) {
        op->rows++; /* the row before had ended with its last part */
        op->cells_given = 0;
    }
    if (row.partial)
        op->cells_given += count;
    else
        op->cells_given = 0;
    op->rows += !row.partial;
    op->include_start = row.partial;
    rq_buf_reset(&op->row);
    return rq_buf_append(&op->row, cell.row, cell.row_len);
}

static rq_err give_row(rq_op *op, rq_result_view row, rq_cursor cells, size_t *given)
{
    rq_op_result r = {.row = row, .cells = cells};
    op->item(op, op->ctx, (uint32_t)op->rows, &r);
    ++*given;
    return note_row(op, row, cells);
}

/* The row whose parts were kept, if there is one. */
static rq_err give_joined(rq_op *op, size_t *given)
{
    rq_result_view row;
    rq_cursor cells;
    if (!rq__parts_row(&op->parts_of_row, &row, &cells)) return RQ_OK;
    rq_err rc = give_row(op, row, cells, given);
    rq__parts_drop(&op->parts_of_row);
    return rc;
}

/* The last part of a row does not always say that it is the last; the next row does. */
static rq_err join_row(rq_op *op, rq_result_view row, rq_cursor cells, size_t *given)
{
    bool goes_on;
    RQ_TRY(rq__parts_continue(&op->parts_of_row, row, cells, &goes_on));
    if (!goes_on) RQ_TRY(give_joined(op, given));
    if (!goes_on && !row.partial) return give_row(op, row, cells, given);
    RQ_TRY(rq__parts_add(&op->parts_of_row, row, cells));
    return row.partial ? RQ_OK : give_joined(op, given);
}

/* Passes the rows on. */
static rq_err take_rows(rq_op *op, const rq_scan_view *v, rq_slice block, size_t *ret_given)
{
    rq_cursor cells = rq_cursor_of(block);
    rq_scan_rows rows;
    rq_result_view row;
    rq_err rc;
    *ret_given = 0;
    rq__scan_rows_begin(v, &rows);
    while ((rc = rq__scan_rows_next(&rows, &row)) == RQ_OK) {
        if (op->scan.counts_metrics) RQ_TRY(count_cells(op, row, cells));
        if (op->scan.joins_parts)
            RQ_TRY(join_row(op, row, cells, ret_given));
        else if (!drops(op, row, cells))
            RQ_TRY(give_row(op, row, cells, ret_given));
        RQ_TRY(skip_cells(row, &cells));
    }
    if (rc != RQ_E_END) return rc;
    bool is_empty = op->scan.joins_parts && v->is_empty && !v->heartbeat;
    bool ends = !v->more_results || !v->more_results_in_region;
    return is_empty || ends ? give_joined(op, ret_given) : RQ_OK;
}

/* Of a response without a whole row. HBASE: ClientScanner.loadCache: the server's row, or that of the
 * part that has come last. */
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
    op->cells_given = 0;
    op->scanner_open = false;
    rq_buf_reset(&op->row);
    return rq_buf_append(&op->row, op->region_key.ptr, op->region_key.len);
}

static const rq_op_result step_done = {.goes_on = true};

static void take_scan(void *ctx, const rq_reply *reply)
{
    static const rq_op_result well = {0};
    rq_op *op = ctx;
    rq_scan_view v;
    size_t given = 0;
    if (reply->err != RQ_OK) {
        op->scanner_open = false;
        op->cells_to_drop = op->cells_given;
        rq__scan_metrics_failure(&op->metrics, reply->err);
        rq__parts_drop(&op->parts_of_row);
        fail_or_again(op, reply);
        return;
    }
    rq_err rc = rq__scan_response_parse(reply->message, &v);
    if (rc == RQ_OK && v.has_scanner) op->scanner = v.scanner;
    if (rc == RQ_OK && op->scan.counts_metrics) rc = rq__scan_metrics_add(&op->metrics, v.metrics);
    if (rc == RQ_OK) rc = take_rows(op, &v, reply->cells, &given);
    if (rc != RQ_OK) {
        fail_here(op, rc, false, RQ_SLICE_LIT("MalformedAnswer"));
        return;
    }
    op->attempts = 0;
    op->scanner_open = v.more_results && v.more_results_in_region;
    bool enough = op->scan.limit > 0 && op->rows >= op->scan.limit;
    if (enough) rq_op_scan_end(op);
    if (op->scan.wants_cursors && op->scanner_open && given == 0) give_cursor(op, &v, &given);
    if (enough || !v.more_results || (!v.more_results_in_region && op->region_is_last)) {
        finish(op, &well);
        return;
    }
    if (!v.more_results_in_region) rc = enter_next_region(op);
    if (rc != RQ_OK)
        fail_here(op, rc, false, RQ_SLICE_LIT("NoMemory"));
    else if (op->scan.is_stepwise && given > 0)
        op->done(op, op->ctx, &step_done);
    else
        attempt(op);
}

void rq_op_scan_step(rq_op *op)
{
    op->kind = OP_SCAN;
    op->attempts = 0;
    attempt(op);
}

void rq_op_scan_end(rq_op *op)
{
    if (op->scanner_open) (void)close_scanner(op); /* else its lease ends it */
    op->scanner_open = false;
}

/* --- an attempt ------------------------------------------------------------------------------- */

/* Of a table without regions: true while they are being read. Each attempt reads them once. */
static bool waits_for_map(rq_op *op, rq_err *ret)
{
    rq_client_table *t = op->table;
    if (RQ_LIKELY(t->region_count > 0)) return false;
    if (!op->awaits_map) {
        op->awaits_map = true;
        rq__map_refresh(t);
        if (t->refreshing) {
            wait_until(op, rq_client_now_ns() + op->client->timeout_ns);
            return true;
        }
    }
    *ret = t->refresh_err != RQ_OK ? t->refresh_err : RQ_E_TABLE_NOT_FOUND;
    return false;
}

/* HBASE: ScannerCallable.getLocationForReplica */
static void fail_without_region(rq_op *op, rq_err rc)
{
    char text[64] = "";
    if (op->replica > 0)
        snprintf(text, sizeof text, "There is no location for replica id #%u", op->replica);
    rq_reply reply = {
        .err = rc, .retry = true, .kind = RQ_SLICE_LIT("NoRegion"), .text = rq_slice_cstr(text)};
    fail_or_again(op, &reply);
}

static void attempt(rq_op *op)
{
    rq_err rc = RQ_OK;
    if (waits_for_map(op, &rc)) return;
    if (RQ_UNLIKELY(rc != RQ_OK)) {
        rq_reply reply = {.err = rc,
                          .retry = !rq_err_do_not_retry(rc),
                          .kind = RQ_SLICE_LIT("NoRegions"),
                          .text = rq_slice_cstr(op->table->refresh_text)};
        fail_or_again(op, &reply);
        return;
    }
    switch (op->kind) {
    case OP_GET:
    case OP_MUTATE:
        rc = send_single(op);
        break;
    case OP_ATOMIC:
        rc = send_atomic(op);
        break;
    case OP_BATCH:
        rc = send_batch(op);
        break;
    case OP_SCAN:
        rc = op->scanner_open ? go_on(op) : open_scanner(op);
        break;
    case OP_NONE:
        RQ_ASSERT(false);
    }
    if (rc == RQ_OK) return;
    if (rc == RQ_E_NOT_SERVING_REGION)
        fail_without_region(op, rc);
    else
        fail_here(op, rc, rc == RQ_E_IO, RQ_SLICE_LIT("CannotSend"));
}
