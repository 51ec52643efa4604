/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on one row: a get, a mutation, or several mutations applied all or nothing. The
 * request is kept without its region, so that each attempt can send it to the row's current
 * region. */
#include "client/op_priv.h"

/* --- gets and mutations ----------------------------------------------------------------------- */

void rq__single_take(rq_op *op, const rq_reply *reply)
{
    if (reply->err != RQ_OK) {
        rq__op_failed(op, reply);
        return;
    }
    rq_op_result r = {.cells = rq_cursor_of(reply->cells), .attempts = op->attempts};
    if (rq__mutate_response_parse(reply->message, &r.row, &r.processed) != RQ_OK)
        rq__op_failed_here(op, RQ_E_MALFORMED, false, RQ_SLICE_LIT("MalformedAnswer"));
    else
        rq__op_finish(op, &r);
}

static void take_single(void *ctx, const rq_reply *reply)
{
    rq_op *op = ctx;
    if (!rq__hedge_takes(op, reply)) rq__single_take(op, reply);
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
    RQ_TRY(rq__conn_call_until(conn, op->until_ns, op->kind == RQ__OP_GET ? "Get" : "Mutate",
                               rq__op_priority(op, op->priority), specifier,
                               rq_buf_slice(&op->body), rq_buf_slice(&op->cells), take_single, op));
    rq__hedge_begin(op, conn);
    return RQ_OK;
}

rq_err rq__single_send(rq_op *op)
{
    op->read_replica = op->replica;
    rq_err rc = send_single(op);
    return rc != RQ_OK && rq__hedge_instead(op) ? RQ_OK : rc;
}

rq_err rq_op_get(rq_op *op, rq_client_table *t, const rq_get *get, rq_op_done done)
{
    rq__op_prepare(op, t, RQ__OP_GET);
    op->done = done;
    op->priority = get->priority;
    op->replica = get->replica;
    op->any_replica = get->any_replica;
    RQ_TRY(rq_buf_append(&op->row, get->row.ptr, get->row.len));
    RQ_TRY(rq__put_get_body(&op->body, get));
    rq__op_attempt(op);
    return RQ_OK;
}

rq_err rq_op_mutate(rq_op *op, rq_client_table *t, const rq_mutate *m, rq_op_done done)
{
    rq__op_prepare(op, t, RQ__OP_MUTATE);
    op->done = done;
    op->priority = m->priority;
    RQ_TRY(rq_buf_append(&op->row, m->row.ptr, m->row.len));
    RQ_TRY(rq__put_mutate_body(&op->body, &op->cells, m, op->client->nonce_group));
    rq__op_attempt(op);
    return RQ_OK;
}

/* --- several mutations of a row, atomic ------------------------------------------------------- */

static void take_atomic(void *ctx, const rq_reply *reply)
{
    rq_op *op = ctx;
    if (reply->err != RQ_OK) {
        rq__op_failed(op, reply);
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
        rq__op_failed_here(op, RQ_E_MALFORMED, false, RQ_SLICE_LIT("MalformedAnswer"));
    } else if (e->java_class.len > 0) {
        rq_reply failed = {.err = rq__err_of_class(e->java_class),
                           .retry = !e->do_not_retry,
                           .kind = rq__simple_name(e->java_class),
                           .java_class = e->java_class,
                           .text = e->text};
        rq__op_failed(op, &failed);
    } else {
        r.processed = region.processed;
        r.row = first.result;
        rq__op_finish(op, &r);
    }
}

/* MultiRequest { regionAction 1, nonceGroup 2 } */
rq_err rq__atomic_send(rq_op *op)
{
    rq__conn *conn = NULL;
    size_t at;
    const rq__region *r = rq__map_locate(op->table, rq_buf_slice(&op->row));
    if (r == NULL) return RQ_E_NOT_SERVING_REGION;
    rq_buf_reset(&op->scratch);
    RQ_TRY(rq_pb_begin(&op->scratch, 1, &at));
    RQ_TRY(rq_buf_append(&op->scratch, r->specifier.ptr, r->specifier.len));
    RQ_TRY(rq_buf_append(&op->scratch, op->body.ptr, op->body.len));
    RQ_TRY(rq_pb_end(&op->scratch, at));
    RQ_TRY(rq_pb_put_number(&op->scratch, 2, op->client->nonce_group));
    RQ_TRY(rq__client_lane(op->client, r->server, op->lane, &conn));
    return rq__conn_call_until(conn, op->until_ns, "Multi", rq__op_priority(op, op->priority),
                               (rq_slice){0}, rq_buf_slice(&op->scratch), rq_buf_slice(&op->cells),
                               take_atomic, op);
}

rq_err rq_op_mutate_row(rq_op *op, rq_client_table *t, const rq_mutate *list, size_t count,
                        rq_slice condition, rq_op_done done)
{
    rq__op_prepare(op, t, RQ__OP_ATOMIC);
    op->done = done;
    RQ_ASSERT(count > 0);
    RQ_TRY(rq_buf_append(&op->row, list[0].row.ptr, list[0].row.len));
    op->priority = rq__mutations_priority(list, count);
    RQ_TRY(rq__put_atomic_body(&op->body, &op->cells, list, count, condition));
    rq__op_attempt(op);
    return RQ_OK;
}
