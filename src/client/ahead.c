/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a scan's next request ahead: before the rows of the last answer are passed on, so that the server works
 * while the caller reads them. At most one request is sent ahead.
 *
 *   NONE ──sent──► SENT ──answer──► KEPT ──needed──► NONE      if the scan waits already, the answer is taken at once
 *                    └──failure, or too long──► LOST ──needed──► NONE     and a new scanner continues
 *
 * A kept answer is a copy, of at most four times the bytes that the scan requests; a longer answer is dropped and
 * its rows are read again. A failure before the answer is needed does not fail the scan: the new scanner succeeds,
 * or fails in the same way.
 *
 * If a scan ends while a request is under way, the rq__ahead moves to the client's list, and the scanner is closed
 * when the answer arrives. A server refuses to close a scanner while it executes a request of it (HBASE:
 * RSRpcServices.scan takes the lease out). */
#include "client/op_priv.h"

#include <stdlib.h>

#define KEPT_ANSWERS 4

bool rq__ahead_prepare(rq_op *op)
{
    if (op->ahead == NULL) op->ahead = calloc(1, sizeof *op->ahead);
    if (op->ahead == NULL) return false;
    op->ahead->op = op;
    op->ahead->client = op->client;
    return true;
}

void rq__ahead_sent(rq_op *op)
{
    rq__ahead *a = op->ahead;
    a->state = RQ__AHEAD_SENT;
    a->is_wanted = false;
    a->failed = RQ_OK;
    a->lane = op->lane;
    a->server = op->server;
    a->scanner = op->scanner;
}

bool rq__ahead_is_sent(const rq_op *op)
{
    return op->ahead != NULL && op->ahead->state == RQ__AHEAD_SENT;
}

static void ahead_free(rq__ahead *a)
{
    rq_buf_clear(&a->message);
    rq_buf_clear(&a->cells);
    free(a);
}

/* --- without its scan ------------------------------------------------------------------------- */

/* Replaces *scanner by the one that the answer names. */
static bool leaves_scanner(rq_slice message, uint64_t *scanner)
{
    rq_scan_view v;
    if (rq__scan_response_parse(message, &v) != RQ_OK) return false;
    if (v.has_scanner) *scanner = v.scanner;
    return v.more_results && v.more_results_in_region;
}

static void ignore_answer(void *ctx, const rq_reply *reply)
{
    (void)ctx;
    (void)reply;
}

void rq__scanner_close(rq_client *c, uint32_t server, unsigned lane, uint64_t scanner)
{
    rq__conn *conn = NULL;
    rq_buf body = {0};
    rq_err rc = rq__client_lane(c, server, lane, &conn);
    if (rc == RQ_OK) rc = rq__put_scan_close(&body, scanner);
    if (rc == RQ_OK)
        rc = rq__conn_call(conn, "Scan", RQ__PRIORITY_CLOSE, (rq_slice){0}, rq_buf_slice(&body),
                           (rq_slice){0}, ignore_answer, NULL);
    rq_buf_clear(&body);
    (void)rc;
}

static void close_left(const rq__ahead *a, rq_slice message)
{
    uint64_t scanner = a->scanner;
    if (leaves_scanner(message, &scanner))
        rq__scanner_close(a->client, a->server, a->lane, scanner);
}

static void list_add(rq__ahead *a)
{
    rq_client *c = a->client;
    a->op = NULL;
    a->prev = NULL;
    a->next = c->aheads;
    if (a->next != NULL) a->next->prev = a;
    c->aheads = a;
}

static void list_remove(rq__ahead *a)
{
    if (a->next != NULL) a->next->prev = a->prev;
    if (a->prev != NULL)
        a->prev->next = a->next;
    else
        a->client->aheads = a->next;
}

static void answer_alone(rq__ahead *a, const rq_reply *reply)
{
    list_remove(a);
    if (reply->err == RQ_OK) close_left(a, reply->message);
    ahead_free(a);
}

void rq__aheads_free(rq_client *c)
{
    while (c->aheads != NULL) {
        rq__ahead *a = c->aheads;
        c->aheads = a->next;
        ahead_free(a);
    }
}

void rq_client_end_scans(rq_client *c, int64_t timeout_ns)
{
    int64_t until = rq_client_now_ns() + timeout_ns;
    for (int64_t left = timeout_ns; c->aheads != NULL && left > 0 && !c->stopped;
         left = until - rq_client_now_ns())
        rq_client_poll(c, left);
    rq_client_flush(c);
}

bool rq__ahead_leave(rq_op *op)
{
    rq__ahead *a = op->ahead;
    if (a == NULL || a->state == RQ__AHEAD_NONE) return false;
    rq__ahead_state was = a->state;
    a->state = RQ__AHEAD_NONE;
    if (was == RQ__AHEAD_KEPT) close_left(a, rq_buf_slice(&a->message));
    if (was != RQ__AHEAD_SENT) return true;
    list_add(a);
    op->ahead = NULL;
    return true;
}

void rq__ahead_adopt(rq_op *op, rq__conn *conn, uint32_t call, uint32_t server, uint64_t scanner)
{
    rq__ahead *a = calloc(1, sizeof *a);
    if (a == NULL) { /* the scanner's lease ends it */
        rq__conn_redirect(conn, call, ignore_answer, NULL);
        return;
    }
    *a = (rq__ahead){.client = op->client, .lane = op->lane, .server = server, .scanner = scanner};
    list_add(a);
    rq__conn_redirect(conn, call, rq__ahead_answer, a);
}

void rq__ahead_free(rq_op *op)
{
    (void)rq__ahead_leave(op);
    if (op->ahead != NULL) ahead_free(op->ahead);
    op->ahead = NULL;
}

/* --- its answer ------------------------------------------------------------------------------- */

static rq_err copy(rq_buf *to, rq_slice from)
{
    rq_buf_reset(to);
    return rq_buf_append(to, from.ptr, from.len);
}

static bool is_short(const rq_op *op, const rq_reply *reply)
{
    uint64_t asked = op->scan.result_bytes > 0 ? op->scan.result_bytes : RQ_SCAN_RESULT_BYTES;
    return (reply->message.len + reply->cells.len) / KEPT_ANSWERS <= asked;
}

static bool keep(rq__ahead *a, const rq_reply *reply)
{
    return is_short(a->op, reply) && copy(&a->message, reply->message) == RQ_OK &&
           copy(&a->cells, reply->cells) == RQ_OK;
}

/* Takes an answer that arrives before the scan waits for it. */
static void answer_early(rq__ahead *a, const rq_reply *reply)
{
    bool is_kept = reply->err == RQ_OK && keep(a, reply);
    a->state = is_kept ? RQ__AHEAD_KEPT : RQ__AHEAD_LOST;
    if (reply->err == RQ_OK && !is_kept) close_left(a, reply->message);
}

/* The time of the call was over before that of the step that waits for it. */
static bool was_late_already(const rq__ahead *a, const rq_reply *reply)
{
    return reply->err == RQ_E_CALL_TIMEOUT && a->op->scan.is_stepwise &&
           rq_client_now_ns() - a->wanted_ns < a->client->timeout_ns;
}

/* Takes an answer that the scan waits for. */
static void answer_wanted(rq__ahead *a, const rq_reply *reply)
{
    rq_op *op = a->op;
    a->state = RQ__AHEAD_NONE;
    if (a->failed != RQ_OK) {
        rq__op_failed_here(op, a->failed, false, RQ_SLICE_LIT("MalformedAnswer"));
    } else if (!rq__hedge_takes(op, reply)) {
        if (was_late_already(a, reply)) {
            rq__scan_lose(op);
            rq__op_attempt(op);
        } else {
            rq__scan_take(op, reply);
        }
    }
}

void rq__ahead_answer(void *ctx, const rq_reply *reply)
{
    rq__ahead *a = ctx;
    if (a->op == NULL)
        answer_alone(a, reply);
    else if (!a->is_wanted)
        answer_early(a, reply);
    else
        answer_wanted(a, reply);
}

void rq__ahead_wait(rq_op *op, rq_err failed)
{
    rq__ahead *a = op->ahead;
    a->is_wanted = true;
    a->wanted_ns = rq_client_now_ns();
    a->failed = failed;
    if (failed == RQ_OK) rq__hedge_begin(a->op, NULL);
}

void rq__ahead_ask(rq_op *op)
{
    rq__ahead *a = op->ahead;
    rq__ahead_state was = a == NULL ? RQ__AHEAD_NONE : a->state;
    if (was == RQ__AHEAD_SENT) {
        rq__ahead_wait(op, RQ_OK);
        return;
    }
    if (a != NULL) a->state = RQ__AHEAD_NONE;
    if (was == RQ__AHEAD_KEPT) {
        const rq_reply reply = {.message = rq_buf_slice(&a->message),
                                .cells = rq_buf_slice(&a->cells)};
        rq__scan_take(op, &reply);
    } else {
        if (was == RQ__AHEAD_LOST) rq__scan_lose(op);
        rq__op_attempt(op);
    }
}
