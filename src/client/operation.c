/* SPDX-License-Identifier: Apache-2.0 */
/* An operation from start to done: its failures, the pause before the next attempt, and the attempt,
 * which the operation's kind sends (single.c, batch.c, scan.c). */
#include "client/op_priv.h"

#include <stdio.h>
#include <stdlib.h>

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

void rq_op_set_until(rq_op *op, int64_t until_ns)
{
    op->until_ns = until_ns;
}

void rq_op_free(rq_op *op)
{
    if (op == NULL) return;
    rq__ahead_free(op);
    rq__hedge_free(op);
    rq_buf_clear(&op->row);
    rq_buf_clear(&op->body);
    rq_buf_clear(&op->cells);
    rq_buf_clear(&op->scratch);
    rq_buf_clear(&op->scratch_cells);
    rq_buf_clear(&op->bounds);
    rq_buf_clear(&op->region_key);
    rq__parts_clear(&op->parts_of_row);
    rq_cellblock_clear(&op->last_given);
    free(op->actions);
    free(op->order);
    free(op->parts);
    free(op);
}

void rq__op_prepare(rq_op *op, rq_client_table *t, rq__op_kind kind)
{
    (void)rq__ahead_leave(op);
    op->table = t;
    op->kind = kind;
    op->attempts = 0;
    op->priority = 0;
    op->replica = 0;
    op->any_replica = false;
    op->awaits_map = false;
    rq_buf_reset(&op->row);
    rq_buf_reset(&op->body);
    rq_buf_reset(&op->cells);
}

uint32_t rq__op_priority(const rq_op *op, uint32_t priority)
{
    return priority > 0 ? priority : op->table->priority;
}

void rq__op_finish(rq_op *op, const rq_op_result *r)
{
    op->kind = RQ__OP_NONE;
    op->done(op, op->ctx, r);
}

/* --- failures --------------------------------------------------------------------------------- */

bool rq__map_is_wrong(rq_err err)
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

/* Errors after which the region map is read again; also if a server does not answer, because its regions may
 * have been moved. HBASE: ClientExceptionsUtil.isMetaClearingException */
static bool doubts_map(rq_err err)
{
    return rq__map_is_wrong(err) || err == RQ_E_CALL_TIMEOUT;
}

void rq__map_doubted(rq_client_table *t, rq_err err)
{
    if (doubts_map(err)) rq__map_refresh(t);
}

/* Errors after which a scan continues with a new scanner. */
static bool scanner_is_gone(rq_err err)
{
    return err == RQ_E_UNKNOWN_SCANNER || err == RQ_E_OUT_OF_ORDER_SCANNER ||
           err == RQ_E_SCANNER_RESET || err == RQ_E_LEASE;
}

static bool is_late(const rq_op *op, int64_t now_ns)
{
    return op->until_ns != 0 && now_ns >= op->until_ns;
}

static void wait_until(rq_op *op, int64_t when_ns)
{
    op->awaits_refresh = false;
    op->wake_ns = is_late(op, when_ns) ? op->until_ns : when_ns;
    op->next_waiting = op->client->waiting;
    op->client->waiting = op;
}

bool rq__op_may_repeat(const rq_op *op, rq_err err, bool retry)
{
    return retry || rq__map_is_wrong(err) || (op->kind == RQ__OP_SCAN && scanner_is_gone(err));
}

bool rq__op_again(rq_op *op, rq_err err, bool retry, rq_slice kind)
{
    rq_client *c = op->client;
    op->awaits_map = false;
    if (c->stopped) return false;
    rq__map_doubted(op->table, err);
    int64_t when = rq_client_now_ns() + rq__client_pause_ns(c, op->attempts);
    if (!rq__op_may_repeat(op, err, retry) || op->attempts >= c->options.retries ||
        is_late(op, when))
        return false;
    if (c->options.on_retry != NULL) c->options.on_retry(c->options.ctx, kind);
    wait_until(op, when);
    op->attempts++;
    return true;
}

void rq__op_failed(rq_op *op, const rq_reply *reply)
{
    if (rq__op_again(op, reply->err, reply->retry, reply->kind)) return;
    rq_op_result r = {.err = reply->err,
                      .kind = reply->kind,
                      .java_class = reply->java_class,
                      .text = reply->text,
                      .retry = reply->retry};
    rq__op_finish(op, &r);
}

void rq__op_failed_here(rq_op *op, rq_err err, bool retry, rq_slice kind)
{
    rq_reply reply = {.err = err, .retry = retry, .kind = kind};
    rq__op_failed(op, &reply);
}

rq_slice rq__simple_name(rq_slice java_class)
{
    for (size_t i = java_class.len; i > 0; i--)
        if (java_class.ptr[i - 1] == '.')
            return rq_slice_of(java_class.ptr + i, java_class.len - i);
    return java_class;
}

/* Waits until its time, or until the map that is being read then is known. */
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
        if (is_late(op, now_ns))
            rq__op_failed_here(op, RQ_E_CALL_TIMEOUT, true, RQ_SLICE_LIT("CallTimeout"));
        else if (op->wake_ns > now_ns || op->table->refreshing)
            keep_waiting(op, now_ns);
        else
            rq__op_attempt(op);
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
        rq__op_finish(op, &closed);
    }
}

/* --- an attempt ------------------------------------------------------------------------------- */

/* True while the regions of a table without a map are being read. Each attempt reads them once. */
static bool waits_for_map(rq_op *op, rq_err *ret)
{
    rq_client_table *t = op->table;
    rq__map_used(t);
    if (RQ_LIKELY(t->region_count > 0)) return false;
    if (!op->awaits_map) {
        op->awaits_map = true;
        rq__map_refresh(t);
        if (t->refreshing) {
            wait_until(op, rq_client_now_ns() + op->client->timeout_ns);
            return true;
        }
    }
    *ret = rq__map_empty_error(t);
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
    rq__op_failed(op, &reply);
}

void rq__op_attempt(rq_op *op)
{
    rq_err rc = RQ_OK;
    if (waits_for_map(op, &rc)) return;
    if (RQ_UNLIKELY(rc != RQ_OK)) {
        rq_reply reply = {.err = rc,
                          .retry = !rq_err_do_not_retry(rc),
                          .kind = RQ_SLICE_LIT("NoRegions"),
                          .text = rq_slice_cstr(rq__refresh_text(op->table))};
        rq__op_failed(op, &reply);
        return;
    }
    switch (op->kind) {
    case RQ__OP_GET:
    case RQ__OP_MUTATE:
        rc = rq__single_send(op);
        break;
    case RQ__OP_ATOMIC:
        rc = rq__atomic_send(op);
        break;
    case RQ__OP_BATCH:
        rc = rq__batch_send(op);
        break;
    case RQ__OP_SCAN:
        rc = rq__scan_send(op);
        break;
    case RQ__OP_NONE:
        RQ_ASSERT(false);
    }
    if (rc == RQ_OK) return;
    if (rc == RQ_E_NOT_SERVING_REGION)
        fail_without_region(op, rc);
    else
        rq__op_failed_here(op, rc, rc == RQ_E_IO, RQ_SLICE_LIT("CannotSend"));
}
