/* SPDX-License-Identifier: Apache-2.0 */
/* Scans: a stepwise operation of the client. A step's rows are kept until they are asked for; then
 * the next response is requested. After an error that passes the client continues behind the last
 * row. */
#include "remote/remote_priv.h"

#include <stdlib.h>

typedef struct remote_scan {
    rq__wait wait;
    const rq_scanning *args;
    rq_op *op;
    rq_buf more;
    bool has_begun;
    bool has_ended;
    rq_err rc; /* of the step */
    rq_why why;
    rq_row **rows;
    size_t row_count, row_at, row_cap;
} remote_scan;

static rq_err keep_row(remote_scan *s, const rq_op_result *result)
{
    if (s->row_count == s->row_cap) {
        size_t cap = s->row_cap == 0 ? 64 : 2 * s->row_cap;
        rq_row **rows = realloc(s->rows, cap * sizeof *rows);
        if (rows == NULL) return RQ_E_NO_MEMORY;
        s->rows = rows;
        s->row_cap = cap;
    }
    RQ_TRY(rq__row_of_result(result, &s->rows[s->row_count]));
    s->row_count++;
    return RQ_OK;
}

static void take_row(rq_op *op, void *ctx, uint32_t index, rq_op_result *result)
{
    remote_scan *s = ctx;
    (void)op, (void)index;
    rq_err rc = keep_row(s, result);
    if (s->rc == RQ_OK) s->rc = rc;
}

static void take_end(rq_op *op, void *ctx, const rq_op_result *result)
{
    remote_scan *s = ctx;
    (void)op;
    if (s->rc == RQ_OK) s->rc = rq__remote_failure(result, &s->why);
    s->has_ended = s->rc == RQ_OK && !result->goes_on;
    rq__wait_done(&s->wait);
}

/* One response, or the error that the client gives up with. */
static rq_err step(rq__remote *r, rq_table *t, remote_scan *s, rq_why *why)
{
    const rq_scanning *a = s->args;
    s->row_count = s->row_at = 0;
    s->rc = RQ_OK;
    rq_why_clear(&s->why);
    s->wait.done = false;
    if (s->has_begun) {
        rq_op_scan_step(s->op);
    } else {
        rq_client_table *table;
        RQ_TRY(rq__remote_table(r, t, &table, why));
        rq_scan scan = {.start = a->start,
                        .stop = a->stop,
                        .limit = a->limit,
                        .caching = a->caching,
                        .result_bytes = a->fetch_bytes,
                        .excludes_start = !a->include_start,
                        .includes_stop = a->include_stop,
                        .reversed = a->reversed,
                        .more = rq_buf_slice(&s->more),
                        .is_stepwise = true};
        rq_err rc = rq_op_scan(s->op, table, &scan, take_row, take_end);
        if (rc != RQ_OK) return rq_fail(&why->error, rc, "%s", rq_err_text(rc));
        s->has_begun = true;
    }
    rq__remote_wait(r, &s->wait);
    if (s->rc != RQ_OK) *why = s->why;
    return s->rc;
}

rq_err rq__remote_next(rq_table *t, rq_slot *slot, void *scan, rq_row **ret, rq_why *why)
{
    rq__remote *r = rq__remote_of(t->db);
    remote_scan *s = scan;
    (void)slot;
    if (s->row_at == s->row_count && !s->has_ended) {
        rq__tries tries = rq__tries_begin(r);
        pthread_mutex_lock(&r->lock);
        rq_err rc;
        do
            rc = step(r, t, s, why);
        while (rc != RQ_OK && s->row_count == 0 && rq__try_again(r, t, &tries, &rc, why));
        pthread_mutex_unlock(&r->lock);
        if (rc != RQ_OK && s->row_count == 0) return rc;
    }
    if (s->row_at < s->row_count) *ret = s->rows[s->row_at++];
    return RQ_OK;
}

/* --- life ------------------------------------------------------------------------------------- */

static void scan_free(remote_scan *s)
{
    while (s->row_at < s->row_count)
        rq_row_free(s->rows[s->row_at++]);
    rq_op_free(s->op);
    pthread_cond_destroy(&s->wait.wake);
    rq_buf_clear(&s->more);
    free(s->rows);
    free(s);
}

rq_err rq__remote_scan(rq_table *t, rq_slot *slot, const rq_scanning *scan, void **ret, rq_why *why)
{
    rq__remote *r = rq__remote_of(t->db);
    remote_scan *s = calloc(1, sizeof *s);
    (void)slot;
    if (s == NULL) return rq_no_memory(&why->error);
    s->args = scan;
    pthread_cond_init(&s->wait.wake, NULL);
    rq_err rc = rq_op_new(r->client, 0, s, &s->op);
    if (rc == RQ_OK) rc = rq__encode_scan(&s->more, scan);
    if (rc != RQ_OK) {
        scan_free(s);
        return rq_no_memory(&why->error);
    }
    *ret = s;
    return RQ_OK;
}

void rq__remote_scan_close(rq_db *db, rq_slot *slot, void *scan)
{
    rq__remote *r = rq__remote_of(db);
    remote_scan *s = scan;
    if (slot != NULL && s->has_begun && !s->has_ended) {
        pthread_mutex_lock(&r->lock);
        rq_op_scan_end(s->op);
        rq_client_flush(r->client);
        pthread_mutex_unlock(&r->lock);
    }
    scan_free(s);
}
