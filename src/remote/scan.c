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
    rq__job job; /* of the call at hand */
    bool has_begun;
    bool has_ended;
    rq_err rc;            /* of the step */
    rq_row_memory memory; /* of rows */
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
    RQ_TRY(rq__row_of_result(result, &s->memory, &s->rows[s->row_count]));
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
    if (s->rc != RQ_OK)
        (void)rq_fail(&s->job.why->error, s->rc, "%s", rq_err_text(s->rc));
    else
        s->rc = rq__remote_failure(result, s->job.why);
    s->has_ended = s->rc == RQ_OK && !result->goes_on;
    if (s->row_count > 0) s->rc = RQ_OK; /* they come first; the next step meets the error again */
    rq__job_ended(&s->job, s->rc);
}

static remote_scan *scan_of(rq__job *j)
{
    return RQ_CONTAINER_OF(j, remote_scan, job);
}

/* The client continues behind the last row. */
static rq_err attempt(rq__job *j, rq_client_table *table)
{
    remote_scan *s = scan_of(j);
    const rq_scanning *a = s->args;
    s->rc = RQ_OK;
    if (s->has_begun) {
        rq_op_scan_step(s->op);
        return RQ_OK;
    }
    rq_scan scan = {.start = a->start,
                    .stop = a->stop,
                    .limit = a->limit,
                    .caching = a->caching,
                    .result_bytes = a->fetch_bytes,
                    .excludes_start = !a->include_start,
                    .includes_stop = a->include_stop,
                    .reversed = a->reversed,
                    .more = rq_buf_slice(&s->more),
                    .batch = a->batch,
                    .wants_cursors = a->wants_cursors,
                    .priority = a->read.priority,
                    .is_stepwise = true};
    s->has_begun = true;
    rq_err rc = rq_op_scan(s->op, table, &scan, take_row, take_end);
    if (rc != RQ_OK) s->has_begun = false;
    return rc;
}

/* The next step, for a call that returns rows. */
static void prepare(remote_scan *s, rq__remote *r, rq_table *t, rq_why *why)
{
    s->row_count = s->row_at = 0;
    s->job = (rq__job){.remote = r, .table = t, .attempt = attempt, .why = why};
}

bool rq__remote_has_row(const void *scan)
{
    const remote_scan *s = scan;
    return s->row_at < s->row_count;
}

rq_err rq__remote_next(rq_table *t, rq_slot *slot, void *scan, rq_row_memory *memory, size_t max,
                       rq_row **rows, size_t *ret_count, rq_why *why)
{
    remote_scan *s = scan;
    (void)slot;
    (void)memory; /* rows are made when the response comes */
    if (s->row_at == s->row_count && !s->has_ended) {
        prepare(s, rq__remote_of(t->db), t, why);
        RQ_TRY(rq__job_run(&s->job, &s->wait));
    }
    while (*ret_count < max && s->row_at < s->row_count)
        rows[(*ret_count)++] = s->rows[s->row_at++];
    return RQ_OK;
}

/* Rows that were fetched, as many as the call takes. */
static rq_err give_rows(remote_scan *s, rq_call *call)
{
    while (s->row_at < s->row_count && rq_call_row_count(call) < call->rows_max)
        RQ_TRY(rq_call_add_row(call, s->rows[s->row_at++]));
    return RQ_OK;
}

static void complete(rq__job *j)
{
    if (j->rc == RQ_OK) j->rc = give_rows(scan_of(j), j->owner);
    rq__job_complete(j);
}

void rq__next_start(rq__remote *r, rq_call *call)
{
    remote_scan *s = call->scan;
    if (s->row_at < s->row_count || s->has_ended) {
        s->job = (rq__job){.remote = r, .table = call->table, .owner = call};
        complete(&s->job);
    } else {
        prepare(s, r, call->table, &call->why);
        rq__job_start(&s->job, call, complete);
    }
}

/* --- life ------------------------------------------------------------------------------------- */

static void scan_free(remote_scan *s)
{
    while (s->row_at < s->row_count)
        rq_row_free(s->rows[s->row_at++]);
    rq_row_memory_clear(&s->memory);
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
    s->memory.counts = true;
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
