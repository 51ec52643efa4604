/* SPDX-License-Identifier: Apache-2.0 */
/* Scans: stepwise operations of the client; a step requests one response. The rows of a step are kept until
 * the caller has taken them. Then, or earlier, the next step begins. After a temporary error the client
 * continues after the last row.
 *
 * From the second step on, the next step begins as soon as the rows of the current step have arrived, so
 * that server and network work while the caller reads. At most one step is begun ahead, so memory is
 * bounded by two responses. Closing a scan does not wait for such a step: the step makes no further request,
 * and the scan is freed at its end.
 *
 * The thread that drives the client receives the rows of a step begun ahead and puts them into
 * `coming`, under the lock; the scan's thread moves them to `rows`. */
#include "remote/remote_priv.h"

#include <stdlib.h>

#define STEPS_BEFORE 2 /* fetches before one is begun ahead: short scans waste none */

typedef struct row_array {
    rq_row **items;
    size_t count, at, cap;
} row_array;

typedef struct remote_scan {
    rq__wait wait;
    const rq_scanning *args;
    rq_op *op;
    rq_buf more;
    rq__job job;    /* of the current step */
    unsigned steps; /* number of steps whose rows were taken, at most STEPS_BEFORE */
    bool has_begun;
    bool has_ended;
    rq_err rc; /* of the step */
    rq_err
        lost; /* a row could not be kept: the scan ends with the rows before it, and this error */
    bool is_ahead; /* a step was begun ahead, and no call has waited for it yet */
    rq_why ahead_why;
    rq_row_memory memory; /* of rows */
    row_array rows, coming;
} remote_scan;

static rq_err keep_row(remote_scan *s, rq_op_result *result)
{
    row_array *a = &s->coming;
    if (a->count == a->cap) {
        size_t cap = a->cap == 0 ? 64 : 2 * a->cap;
        rq_row **items = realloc(a->items, cap * sizeof *items);
        if (items == NULL) return RQ_E_NO_MEMORY;
        a->items = items;
        a->cap = cap;
    }
    RQ_TRY(rq__row_of_item(result, &s->memory, &a->items[a->count]));
    a->count++;
    return RQ_OK;
}

/* A step has ended: its rows are next. REQUIRES: none is left of the last one. */
static void take_coming(remote_scan *s)
{
    row_array empty = s->rows;
    s->rows = s->coming;
    empty.count = empty.at = 0;
    s->coming = empty;
    if (s->steps < STEPS_BEFORE) s->steps++;
}

static bool has_row(const remote_scan *s)
{
    return s->rows.at < s->rows.count;
}

static void take_row(rq_op *op, void *ctx, uint32_t index, rq_op_result *result)
{
    remote_scan *s = ctx;
    (void)op, (void)index;
    if (s->lost == RQ_OK) s->lost = keep_row(s, result);
}

/* Errors after which the client does not know where to continue the scan. */
static bool is_lost(const rq_op_result *result)
{
    bool is_own = result->java_class.len == 0;
    return is_own && (result->err == RQ_E_NO_MEMORY || result->err == RQ_E_MALFORMED);
}

static void take_end(rq_op *op, void *ctx, const rq_op_result *result)
{
    remote_scan *s = ctx;
    (void)op;
    if (s->lost != RQ_OK) {
        s->rc = rq_fail(&s->job.why->error, s->lost, "%s", rq_err_text(s->lost));
        rq__job_abandon(&s->job); /* another attempt would go on behind the row */
    } else {
        s->rc = rq__remote_failure(result, s->job.why);
        if (is_lost(result)) s->lost = s->rc;
    }
    s->has_ended = s->rc == RQ_OK && !result->goes_on;
    if (s->coming.count > 0)
        s->rc = RQ_OK; /* they come first; the next step meets the error again */
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
    if (s->lost != RQ_OK) {
        rq__job_abandon(j);
        return s->lost;
    }
    rq_op_set_until(s->op, j->until_ns);
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
                    .replica = a->read.replica,
                    .any_replica = a->read.is_timeline && a->read.replica == 0,
                    .is_stepwise = true};
    s->has_begun = true;
    rq_err rc = rq_op_scan(s->op, table, &scan, take_row, take_end);
    if (rc != RQ_OK) s->has_begun = false;
    return rc;
}

/* The next step. */
static void prepare(remote_scan *s, rq__remote *r, rq_table *t, rq_why *why)
{
    s->job = (rq__job){.remote = r, .table = t, .attempt = attempt, .why = why};
}

bool rq__remote_has_row(const void *scan)
{
    return has_row(scan);
}

void rq__remote_ahead(rq_table *t, rq_slot *slot, void *scan)
{
    remote_scan *s = scan;
    (void)slot;
    if (s->is_ahead || s->has_ended) return;
    s->is_ahead = true;
    prepare(s, rq__remote_of(t->db), t, &s->ahead_why);
    rq__job_begin(&s->job, &s->wait);
}

/* Gets the rows of the next step. If a step begun ahead has failed, another attempt is made: its time limit
 * may have passed while no thread drove the client. */
static rq_err fetch(remote_scan *s, rq_table *t, rq_why *why)
{
    bool is_there = s->is_ahead && rq__job_wait(&s->job, &s->wait) == RQ_OK;
    s->is_ahead = false;
    if (!is_there) {
        prepare(s, rq__remote_of(t->db), t, why);
        RQ_TRY(rq__job_run(&s->job, &s->wait));
    }
    take_coming(s);
    return RQ_OK;
}

rq_err rq__remote_next(rq_table *t, rq_slot *slot, void *scan, rq_row_memory *memory, size_t max,
                       rq_row **rows, size_t *ret_count, rq_why *why)
{
    remote_scan *s = scan;
    (void)memory; /* rows are made when the response comes */
    if (!has_row(s) && (s->is_ahead || !s->has_ended)) {
        RQ_TRY(fetch(s, t, why));
        if (s->steps == STEPS_BEFORE && !s->args->no_fetch_ahead) rq__remote_ahead(t, slot, s);
    }
    while (*ret_count < max && has_row(s))
        rows[(*ret_count)++] = s->rows.items[s->rows.at++];
    return RQ_OK;
}

/* Rows that were fetched, as many as the call takes. */
static rq_err give_rows(remote_scan *s, rq_call *call)
{
    while (has_row(s) && rq_call_row_count(call) < call->rows_max)
        RQ_TRY(rq_call_add_row(call, s->rows.items[s->rows.at++]));
    return RQ_OK;
}

static void complete_with_rows(rq__job *j)
{
    if (j->rc == RQ_OK) j->rc = give_rows(scan_of(j), j->owner);
    rq__job_complete(j);
}

static void complete(rq__job *j)
{
    if (j->rc == RQ_OK) take_coming(scan_of(j));
    complete_with_rows(j);
}

/* Rows that are there; the job may be under way. */
static void complete_now(remote_scan *s, rq__remote *r, rq_call *call)
{
    rq__job done = {.remote = r, .owner = call};
    done.rc = give_rows(s, call);
    rq__job_complete(&done);
}

static void start_step(remote_scan *s, rq__remote *r, rq_call *call)
{
    prepare(s, r, call->table, &call->why);
    rq__job_start(&s->job, call, complete);
}

/* The end of a step that was begun ahead; see fetch. */
static void complete_or_repeat(rq__job *j)
{
    if (j->rc == RQ_OK)
        complete(j);
    else
        start_step(scan_of(j), j->remote, j->owner);
}

/* The call gets the rows of the step that was begun ahead. */
static void take_over(remote_scan *s, rq_call *call)
{
    s->is_ahead = false;
    s->job.owner = call;
    s->job.end = complete_or_repeat;
    if (s->wait.done) complete_or_repeat(&s->job);
}

void rq__next_start(rq__remote *r, rq_call *call)
{
    remote_scan *s = call->scan;
    if (!has_row(s) && s->is_ahead) {
        take_over(s, call);
    } else if (has_row(s) || s->has_ended) {
        complete_now(s, r, call);
    } else {
        start_step(s, r, call);
    }
}

/* --- life ------------------------------------------------------------------------------------- */

static void free_rows(row_array *a)
{
    while (a->at < a->count)
        rq_row_free(a->items[a->at++]);
    free(a->items);
}

static void scan_free(remote_scan *s)
{
    free_rows(&s->rows);
    free_rows(&s->coming);
    rq_row_memory_clear(&s->memory);
    rq_op_free(s->op);
    pthread_cond_destroy(&s->wait.wake);
    rq_buf_clear(&s->more);
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

/* The step that was in progress when the scan was closed has ended; on the driver's thread. */
static void free_abandoned(rq__job *j)
{
    remote_scan *s = scan_of(j);
    if (!s->has_ended) rq_op_scan_end(s->op);
    scan_free(s);
}

/* REQUIRES: the lock. */
static void close_locked(rq__remote *r, remote_scan *s)
{
    if (s->is_ahead && !s->wait.done) {
        s->job.end = free_abandoned;
        rq__job_abandon(&s->job);
        rq_op_scan_abandon(s->op);
        return;
    }
    if (s->has_begun && !s->has_ended) {
        rq_op_scan_end(s->op);
        rq_client_flush(r->client);
    }
    scan_free(s);
}

void rq__remote_scan_close(rq_db *db, rq_slot *slot, void *scan)
{
    rq__remote *r = rq__remote_of(db);
    remote_scan *s = scan;
    if (slot == NULL) { /* every job has ended, and the client may be gone */
        scan_free(s);
        return;
    }
    pthread_mutex_lock(&r->lock);
    close_locked(r, s);
    pthread_mutex_unlock(&r->lock);
}
