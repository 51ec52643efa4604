/* SPDX-License-Identifier: Apache-2.0 */
/* Hedged reads: a get or scan with `any_replica` asks the region, and if the region has not answered after a while, or
 * fails, all its replicas at once. The first answer wins.
 *
 *   own call ──answer──► done
 *       └──time is over, or failure──► calls of the other replicas ──first answer──► done
 *                                                               └──all have failed──► the attempt has failed
 *
 * "Own" is the call that the operation would make without replicas: to the region, or to the scanner that is open. The
 * other calls of a scan open scanners behind the last row that was passed on.
 *
 * A call that has lost does not refer to the operation any more, which may begin its next request. Its answer is
 * ignored; that of a scan closes the scanner that it names (ahead.c). The connection keeps a few bytes for the call until
 * its answer or its time-out. HBASE: RpcRetryingCallerWithReadReplicas, ScannerCallableWithReplicas; there each replica's
 * call has its own repetitions, here the operation has. */
#include "client/op_priv.h"

#include <stdlib.h>

/* HBASE: hbase.client.primaryCallTimeout.get and .scan */
#define GET_NS 10000000
#define SCAN_NS 1000000000

static int64_t patience_ns(const rq_op *op)
{
    const rq_client_options *o = &op->client->options;
    if (o->hedge_after_ms > 0) return (int64_t)o->hedge_after_ms * 1000000;
    return op->kind == RQ__OP_GET ? GET_NS : SCAN_NS;
}

static rq__hedge *hedge_of(rq_op *op)
{
    if (op->hedge == NULL) op->hedge = calloc(1, sizeof *op->hedge);
    return op->hedge;
}

void rq__hedge_free(rq_op *op)
{
    if (op->hedge != NULL) free(op->hedge->calls);
    free(op->hedge);
    op->hedge = NULL;
}

/* --- calls that have lost --------------------------------------------------------------------- */

static void ignore(void *ctx, const rq_reply *reply)
{
    (void)ctx;
    (void)reply;
}

/* The answer of the call finds no operation. `scanner`: the one that is open; 0: the answer names one. */
static void leave(rq_op *op, const rq__hedge_call *call, uint64_t scanner)
{
    if (op->kind == RQ__OP_SCAN)
        rq__ahead_adopt(op, call->conn, call->id, call->server, scanner);
    else
        rq__conn_redirect(call->conn, call->id, ignore, NULL);
}

static void leave_others(rq_op *op)
{
    rq__hedge *h = op->hedge;
    for (size_t i = 0; i < h->count; i++)
        if (h->calls[i].is_out) leave(op, &h->calls[i], 0);
    h->count = h->out = 0;
}

static void leave_own(rq_op *op)
{
    rq__hedge *h = op->hedge;
    h->own.is_out = false;
    if (h->own.conn == NULL)
        (void)rq__ahead_leave(op);
    else
        leave(op, &h->own, op->kind == RQ__OP_SCAN && op->scanner_open ? op->scanner : 0);
}

/* --- the replicas' answers -------------------------------------------------------------------- */

static void pass_on(rq_op *op, const rq_reply *reply)
{
    if (op->kind == RQ__OP_GET)
        rq__single_take(op, reply);
    else
        rq__scan_take(op, reply);
}

/* The operation continues with this call's replica. */
static void switch_to(rq_op *op, const rq__hedge_call *winner)
{
    rq__hedge_call call = *winner;
    if (op->hedge->own.is_out) leave_own(op);
    leave_others(op);
    if (op->kind == RQ__OP_SCAN) rq__scan_switch(op, call.server, call.replica);
}

static void note_failure(rq_op *op, const rq_reply *reply)
{
    op->hedge->may_repeat |= rq__op_may_repeat(op, reply->err, reply->retry);
    rq__map_doubted(op->table, reply->err);
}

/* The last failure is that of the attempt, which is repeated if one of its calls may be. */
static void fail(rq_op *op, const rq_reply *last)
{
    rq_reply reply = *last;
    reply.retry = op->hedge->may_repeat;
    pass_on(op, &reply);
}

static void other_answered(void *ctx, const rq_reply *reply)
{
    rq__hedge_call *call = ctx;
    rq_op *op = call->op;
    rq__hedge *h = op->hedge;
    call->is_out = false;
    h->out--;
    if (reply->err == RQ_OK) {
        switch_to(op, call);
        pass_on(op, reply);
    } else {
        note_failure(op, reply);
        if (h->out == 0 && !h->own.is_out) fail(op, reply);
    }
}

/* --- their calls ------------------------------------------------------------------------------ */

static rq_err send_to(rq_op *op, const rq__region *r, uint16_t replica)
{
    rq__hedge *h = op->hedge;
    rq__hedge_call *call = &h->calls[h->count];
    rq_slice specifier;
    *call = (rq__hedge_call){.op = op, .replica = replica, .is_out = true};
    if (!rq__map_replica(r, replica, &call->server, &specifier)) return RQ_E_NOT_SERVING_REGION;
    RQ_TRY(rq__client_lane(op->client, call->server, op->lane, &call->conn));
    RQ_TRY(rq__conn_call_until(call->conn, op->until_ns, op->kind == RQ__OP_GET ? "Get" : "Scan",
                               rq__op_priority(op, op->priority), specifier,
                               rq_buf_slice(&op->body), (rq_slice){0}, other_answered, call));
    if (op->kind == RQ__OP_SCAN) rq__scan_count_call(op);
    call->id = rq__conn_last_call(call->conn);
    h->count++;
    h->out++;
    return RQ_OK;
}

static bool make_room(rq__hedge *h, size_t calls)
{
    if (calls <= h->cap) return true;
    rq__hedge_call *bigger = realloc(h->calls, calls * sizeof *bigger);
    if (bigger == NULL) return false;
    h->calls = bigger;
    h->cap = calls;
    return true;
}

/* Asks all replicas but the one of the own call. A replica that cannot be asked is left out. */
static void ask_others(rq_op *op)
{
    rq__hedge *h = op->hedge;
    h->has_asked = true;
    if (op->client->stopped) return;
    const rq__region *r = op->kind == RQ__OP_GET ? rq__map_locate(op->table, rq_buf_slice(&op->row))
                                                 : rq__scan_other(op);
    if (r == NULL || !make_room(h, r->replica_count + (size_t)1)) return;
    for (size_t i = 0; i <= r->replica_count; i++) {
        uint16_t replica = i == 0 ? 0 : r->replicas[i - 1].id;
        if (replica != op->read_replica) (void)send_to(op, r, replica);
    }
}

static void time_is_over(rq_client_timer *timer)
{
    rq__hedge *h = RQ_CONTAINER_OF(timer, rq__hedge, timer);
    ask_others(h->op);
}

void rq__hedge_begin(rq_op *op, rq__conn *conn)
{
    if (RQ_LIKELY(!op->any_replica) || hedge_of(op) == NULL) return;
    rq__hedge *h = op->hedge;
    h->op = op;
    h->own = (rq__hedge_call){.conn = conn, .server = op->server, .is_out = true};
    h->count = 0;
    if (conn != NULL) h->own.id = rq__conn_last_call(conn);
    h->has_asked = h->may_repeat = false;
    h->timer.run = time_is_over;
    rq_client_timer_arm(op->client, &h->timer, patience_ns(op));
}

bool rq__hedge_instead(rq_op *op)
{
    if (RQ_LIKELY(!op->any_replica) || hedge_of(op) == NULL) return false;
    rq__hedge *h = op->hedge;
    h->op = op;
    h->own.is_out = false;
    h->count = 0;
    h->may_repeat = true;
    ask_others(op);
    if (h->out > 0) rq__map_lacks_server(op->table);
    return h->out > 0;
}

bool rq__hedge_takes(rq_op *op, const rq_reply *reply)
{
    rq__hedge *h = op->hedge;
    if (RQ_LIKELY(!op->any_replica) || h == NULL || !h->own.is_out) return false;
    h->own.is_out = false;
    rq_client_timer_cancel(op->client, &h->timer);
    if (reply->err == RQ_OK) {
        leave_others(op);
        return false;
    }
    if (!h->has_asked) ask_others(op);
    if (h->out > 0) {
        note_failure(op, reply);
        return true;
    }
    if (reply->retry || !h->may_repeat) return false;
    fail(op, reply);
    return true;
}
