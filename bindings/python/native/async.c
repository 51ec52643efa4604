/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous calls: starting them, and the queue of completed calls that Python reads.
 *
 *   begin (id) ─► librorqual ─► rq_poll or rq_disconnect ─► completed() ─► queue ─► rqpy_take ─► Python
 *
 * One translation unit with pack.c and calls.c, in the order that build.py gives.
 */

/* The queue of a database's completed calls. Python reads it after rq_poll or rq_disconnect, on the
 * thread that called either. Numbers of a completion: id, code, retryable, done, action (-1: none),
 * lengths of class and message, kind of the result (0 none, 1 row, 2 outcomes of a batch, 3 rows of
 * a scan), its count. */
typedef struct rqpy_queue {
    output out;
    size_t count;
} rqpy_queue;

typedef struct pending {
    rqpy_queue *queue;
    int64_t id;
} pending;

static rqpy_queue *rqpy_queue_new(void)
{
    return calloc(1, sizeof(rqpy_queue));
}

static void rqpy_queue_free(rqpy_queue *queue)
{
    free(queue->out.numbers);
    free(queue->out.bytes);
    free(queue);
}

static void put_result(output *out, const rq_completion *end)
{
    size_t count = end->row != NULL       ? 1
                   : end->results != NULL ? end->results->count
                   : end->rows != NULL    ? end->rows->count
                                          : 0;
    put_number(out, end->row != NULL ? 1 : end->results != NULL ? 2 : end->rows != NULL ? 3 : 0);
    put_number(out, (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        if (end->results != NULL)
            put_outcome(out, end->results->items + i);
        else
            put_row(out, end->row != NULL ? end->row : end->rows->items[i]);
    }
}

static void completed(void *context, const rq_completion *end)
{
    pending *p = context;
    output *out = &p->queue->out;
    put_number(out, p->id);
    put_number(out, end->code);
    put_number(out, end->why != NULL && end->why->retryable);
    put_number(out, end->done);
    put_number(
        out, end->why == NULL || end->why->action == RQ_NO_ACTION ? -1 : (int64_t)end->why->action);
    put_sized(out, rq_text(end->why != NULL ? end->why->hbase_class : ""));
    put_sized(out, rq_text(end->why != NULL ? end->why->message : ""));
    put_result(out, end);
    p->queue->count++;
    rq_row_free(end->row);
    rq_results_free(end->results);
    rq_rows_free(end->rows);
    free(p);
}

static pending *pending_new(rqpy_queue *queue, int64_t id)
{
    pending *p = malloc(sizeof *p);
    if (p != NULL) *p = (pending){queue, id};
    return p;
}

/* A call that did not begin has no completion. */
static rq_err begun(rq_err e, pending *p)
{
    if (e != RQ_OK) free(p);
    return e;
}

/* Allocates both, or neither. */
static pending *pending_begin(request *r, rqpy_queue *queue, int64_t id, const char *numbers,
                              const char *bytes)
{
    pending *p = pending_new(queue, id);
    if (p != NULL && request_begin(r, numbers, bytes)) return p;
    free(p);
    return NULL;
}

/* The library has copied the request's data. */
static rq_err request_begun(request *r, rq_err e, pending *p)
{
    request_free(r);
    return begun(e, p);
}

static rq_err rqpy_get_async(rq_table *table, rqpy_queue *queue, int64_t id, const char *numbers,
                             const char *bytes, rq_failure *why)
{
    request r;
    pending *p = pending_begin(&r, queue, id, numbers, bytes);
    if (p == NULL) return no_memory(why);
    take_get(&r.in, r.gets);
    return request_begun(&r, rq_table_get_async(table, r.gets, completed, p, fresh(why)), p);
}

static rq_err rqpy_change_async(rq_table *table, rqpy_queue *queue, int64_t id, const char *numbers,
                                const char *bytes, rq_failure *why)
{
    request r;
    pending *p = pending_begin(&r, queue, id, numbers, bytes);
    if (p == NULL) return no_memory(why);
    take_changes(&r.in, r.changes, r.change_count);
    rq_err e =
        r.change_count == 1
            ? rq_table_change_async(table, r.changes, completed, p, fresh(why))
            : rq_table_change_row_async(table, r.changes, r.change_count, completed, p, fresh(why));
    return request_begun(&r, e, p);
}

static rq_err rqpy_check_async(rq_table *table, rqpy_queue *queue, int64_t id, const char *numbers,
                               const char *bytes, rq_failure *why)
{
    request r;
    pending *p = pending_begin(&r, queue, id, numbers, bytes);
    if (p == NULL) return no_memory(why);
    take_check(&r.in, r.checks);
    take_changes(&r.in, r.changes, r.change_count);
    rq_err e = rq_table_check_and_change_async(table, r.checks, r.changes, r.change_count,
                                               completed, p, fresh(why));
    return request_begun(&r, e, p);
}

static rq_err rqpy_batch_async(rq_table *table, rqpy_queue *queue, int64_t id, const char *numbers,
                               const char *bytes, rq_failure *why)
{
    request r;
    pending *p = pending_begin(&r, queue, id, numbers, bytes);
    if (p == NULL) return no_memory(why);
    take_actions(&r);
    rq_err e =
        rq_table_batch_checked_async(table, r.actions, r.action_count, completed, p, fresh(why));
    return request_begun(&r, e, p);
}

static rq_err rqpy_next_async(rq_scanner *scanner, rqpy_queue *queue, int64_t id, size_t most,
                              rq_failure *why)
{
    pending *p = pending_new(queue, id);
    if (p == NULL) return no_memory(why);
    return begun(rq_scanner_next_async(scanner, most, completed, p, fresh(why)), p);
}

/* Takes the queued completions. *ret_count may be 0, and *ret is then NULL. After RQ_E_NO_MEMORY
 * the completions are lost. */
static rq_err rqpy_take(rqpy_queue *queue, char **ret, size_t *ret_len, size_t *ret_count,
                        rq_failure *why)
{
    output out = queue->out;
    *ret_count = queue->count;
    *queue = (rqpy_queue){0};
    return *ret_count == 0 ? RQ_OK : output_end(&out, ret, ret_len, fresh(why));
}

static rq_err rqpy_poll(rq_db *db, rqpy_queue *queue, char **ret, size_t *ret_len,
                        size_t *ret_count, rq_failure *why)
{
    rq_err e = rq_poll(db, 0, NULL, fresh(why));
    rq_err taken = rqpy_take(queue, ret, ret_len, ret_count, why);
    return e != RQ_OK ? e : taken;
}
