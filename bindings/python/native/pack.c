/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and rows as two flat arrays, so that a call from Python crosses into C once, however many
 * cells it has: int64 numbers in a fixed order, and bytes one after another.
 *
 *   request: numbers (host order) and bytes, made by rorqual/_pack.py, which says the order
 *   rows:    one block: how many numbers follow, the numbers, the bytes; freed by rqpy_free
 *
 * Numbers of a row:     cells, flags (1 exists, 2 partial), length of the row key
 *            a cell:    lengths of family, qualifier, value; timestamp, type
 *            outcome:   code, retryable, lengths of class and message; then its row
 * Bytes are those of each length, in the same order.
 *
 * Lengths are trusted: they come from len() of the bytes that Python concatenated.
 */
#include <stdlib.h>

#define CHANGE_NUMBERS 9
#define EDIT_NUMBERS 6
#define READ_NUMBERS 11
#define COLUMN_NUMBERS 2

/* A request that is taken apart, front to back. */
typedef struct input {
    const int64_t *numbers;
    const char *bytes;
} input;

static int64_t take_number(input *in)
{
    return *in->numbers++;
}

/* A length below zero stands for absent bytes. */
static rq_bytes take_bytes(input *in, int64_t len)
{
    rq_bytes b = {NULL, 0};
    if (len < 0)
        return b;
    b.data = in->bytes;
    b.len = (size_t)len;
    in->bytes += len;
    return b;
}

/* --- requests --------------------------------------------------------------------------------- */

static void take_edit(input *in, rq_edit *edit)
{
    int64_t family = take_number(in), qualifier = take_number(in), value = take_number(in);
    *edit = (rq_edit){.family = take_bytes(in, family), .qualifier = take_bytes(in, qualifier)};
    edit->value = take_bytes(in, value);
    edit->timestamp = take_number(in);
    edit->amount = take_number(in);
    edit->scope = (rq_delete_scope)take_number(in);
}

/* `edits` has room for the edits of all changes that follow; returns what is left of it. */
static rq_edit *take_change(input *in, rq_change *change, rq_edit *edits)
{
    *change = (rq_change){.size = sizeof *change, .edits = edits};
    change->kind = (rq_change_kind)take_number(in);
    change->row = take_bytes(in, take_number(in));
    change->edit_count = (size_t)take_number(in);
    change->timestamp = take_number(in);
    change->durability = (rq_durability_level)take_number(in);
    change->ttl_ms = (uint64_t)take_number(in);
    change->returns_nothing = take_number(in) != 0;
    change->min_timestamp = take_number(in);
    change->max_timestamp = take_number(in);
    for (size_t i = 0; i < change->edit_count; i++)
        take_edit(in, edits + i);
    return edits + change->edit_count;
}

static rq_column *take_columns(input *in, rq_column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t family = take_number(in), qualifier = take_number(in);
        columns[i].family = take_bytes(in, family);
        columns[i].qualifier = take_bytes(in, qualifier);
    }
    return columns + count;
}

/* Both kinds of reads have the same numbers; the text of a filter ends with NUL. */
static rq_column *take_get(input *in, rq_get_request *get, rq_column *columns)
{
    *get = (rq_get_request){.size = sizeof *get, .columns = columns};
    get->row = take_bytes(in, take_number(in));
    get->column_count = (size_t)take_number(in);
    get->max_versions = (int32_t)take_number(in);
    get->min_timestamp = take_number(in);
    get->max_timestamp = take_number(in);
    get->filter_text = take_bytes(in, take_number(in)).data;
    get->filter = take_bytes(in, take_number(in));
    get->family_limit = (int32_t)take_number(in);
    get->family_offset = (int32_t)take_number(in);
    get->existence_only = take_number(in) != 0;
    get->no_block_cache = take_number(in) != 0;
    return take_columns(in, columns, get->column_count);
}

static void take_changes(input *in, rq_change *changes, size_t count, rq_edit *edits)
{
    for (size_t i = 0; i < count; i++)
        edits = take_change(in, changes + i, edits);
}

/* A request's structs, in one allocation: freed by free(). */
typedef struct request {
    rq_action *actions;
    rq_change *changes;
    rq_get_request *gets;
    rq_edit *edits;
    rq_column *columns;
} request;

static void *request_allocate(request *r, size_t actions, size_t changes, size_t edits, size_t gets, size_t columns)
{
    size_t size = actions * sizeof *r->actions + changes * sizeof *r->changes + edits * sizeof *r->edits +
                  gets * sizeof *r->gets + columns * sizeof *r->columns;
    char *at = malloc(size + 1);
    if (at == NULL)
        return NULL;
    void *all = at;
    r->actions = (void *)at, at += actions * sizeof *r->actions;
    r->changes = (void *)at, at += changes * sizeof *r->changes;
    r->edits = (void *)at, at += edits * sizeof *r->edits;
    r->gets = (void *)at, at += gets * sizeof *r->gets;
    r->columns = (void *)at;
    return all;
}

static rq_err no_memory(rq_failure *why)
{
    why->code = RQ_E_NO_MEMORY;
    why->retryable = true;
    why->action = RQ_NO_ACTION;
    why->hbase_class[0] = 0;
    strcpy(why->message, "out of memory");
    return RQ_E_NO_MEMORY;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* A block of rows in the making. */
typedef struct output {
    int64_t *numbers;
    size_t number_count, number_cap;
    char *bytes;
    size_t len, cap;
    bool failed;
} output;

static void *grow(void *memory, size_t *cap, size_t needed, size_t item)
{
    size_t wanted = *cap * 2 > needed ? *cap * 2 : needed;
    void *grown = realloc(memory, wanted * item);
    if (grown != NULL)
        *cap = wanted;
    return grown;
}

static void put_number(output *out, int64_t number)
{
    if (out->number_count == out->number_cap) {
        void *grown = grow(out->numbers, &out->number_cap, 32, sizeof number);
        out->failed |= grown == NULL;
        if (grown == NULL)
            return;
        out->numbers = grown;
    }
    out->numbers[out->number_count++] = number;
}

static void put_bytes(output *out, const void *data, size_t len)
{
    if (len > out->cap - out->len) {
        void *grown = grow(out->bytes, &out->cap, out->len + len + 256, 1);
        out->failed |= grown == NULL;
        if (grown == NULL)
            return;
        out->bytes = grown;
    }
    if (len > 0)
        memcpy(out->bytes + out->len, data, len);
    out->len += len;
}

static void put_sized(output *out, rq_bytes b)
{
    put_number(out, (int64_t)b.len);
    put_bytes(out, b.data, b.len);
}

static void put_row(output *out, const rq_row *row)
{
    put_number(out, (int64_t)row->count);
    put_number(out, (row->exists ? 1 : 0) | (row->is_partial ? 2 : 0));
    put_sized(out, row->count > 0 ? row->cells[0].row : rq_text(""));
    for (size_t i = 0; i < row->count && !out->failed; i++) {
        const rq_kv *cell = row->cells + i;
        put_sized(out, cell->family);
        put_sized(out, cell->qualifier);
        put_sized(out, cell->value);
        put_number(out, cell->timestamp);
        put_number(out, cell->type);
    }
}

static void put_outcome(output *out, const rq_outcome *outcome)
{
    static const rq_row empty = {0};
    put_number(out, outcome->code);
    put_number(out, outcome->retryable);
    put_sized(out, rq_text(outcome->hbase_class != NULL ? outcome->hbase_class : ""));
    put_sized(out, rq_text(outcome->message != NULL ? outcome->message : ""));
    put_row(out, outcome->row != NULL ? outcome->row : &empty);
}

/* Makes one block of what was put and frees the rest. */
static rq_err output_end(output *out, char **ret, size_t *ret_len, rq_failure *why)
{
    size_t numbers = out->number_count * sizeof *out->numbers, len = sizeof(int64_t) + numbers + out->len;
    char *block = out->failed ? NULL : malloc(len);
    if (block != NULL) {
        int64_t count = (int64_t)out->number_count;
        memcpy(block, &count, sizeof count);
        if (numbers > 0)
            memcpy(block + sizeof count, out->numbers, numbers);
        if (out->len > 0)
            memcpy(block + sizeof count + numbers, out->bytes, out->len);
        *ret = block;
        *ret_len = len;
    }
    free(out->numbers);
    free(out->bytes);
    return block != NULL ? RQ_OK : no_memory(why);
}

static rq_err one_row(rq_err e, rq_row *row, char **ret, size_t *ret_len, rq_failure *why)
{
    if (e != RQ_OK || row == NULL)
        return e;
    output out = {0};
    put_row(&out, row);
    rq_row_free(row);
    return output_end(&out, ret, ret_len, why);
}

/* --- calls ------------------------------------------------------------------------------------ */

static rq_failure *fresh(rq_failure *why)
{
    why->size = sizeof *why;
    return why;
}

static void rqpy_free(char *block)
{
    free(block);
}

/* A get of all columns of a row. */
static rq_err rqpy_get_row(rq_table *table, const char *row, size_t row_len, char **ret, size_t *ret_len, rq_failure *why)
{
    rq_get_request get = {.size = sizeof get, .row = {row, row_len}};
    rq_row *result = NULL;
    rq_err e = rq_table_get(table, &get, &result, fresh(why));
    return one_row(e, result, ret, ret_len, why);
}

/* The requests are given as numbers and bytes, with the counts of what they contain. */
static rq_err rqpy_get(rq_table *table, const char *numbers, const char *bytes, size_t columns, char **ret, size_t *ret_len,
                       rq_failure *why)
{
    request r;
    input in = {(const void *)numbers, bytes};
    void *all = request_allocate(&r, 0, 0, 0, 1, columns);
    if (all == NULL)
        return no_memory(why);
    take_get(&in, r.gets, r.columns);
    rq_row *row = NULL;
    rq_err e = rq_table_get(table, r.gets, &row, fresh(why));
    free(all);
    return one_row(e, row, ret, ret_len, why);
}

/* One change; or several of a row, all or nothing. */
static rq_err rqpy_change(rq_table *table, const char *numbers, const char *bytes, size_t changes, size_t edits, char **ret,
                          size_t *ret_len, rq_failure *why)
{
    request r;
    input in = {(const void *)numbers, bytes};
    void *all = request_allocate(&r, 0, changes, edits, 0, 0);
    if (all == NULL)
        return no_memory(why);
    take_changes(&in, r.changes, changes, r.edits);
    rq_row *row = NULL;
    rq_err e;
    if (changes != 1)
        e = rq_table_change_row(table, r.changes, changes, fresh(why));
    else
        e = rq_table_change(table, r.changes, r.changes->kind >= RQ_APPEND ? &row : NULL, fresh(why));
    free(all);
    return one_row(e, row, ret, ret_len, why);
}

/* The check's numbers: lengths of family, qualifier, value; comparison; lengths of the filter's text and bytes; time range. */
static void take_check(input *in, rq_check *check)
{
    *check = (rq_check){.size = sizeof *check};
    check->family = take_bytes(in, take_number(in));
    check->qualifier = take_bytes(in, take_number(in));
    check->value = take_bytes(in, take_number(in));
    check->compare = (rq_compare)take_number(in);
    check->filter_text = take_bytes(in, take_number(in)).data;
    check->filter = take_bytes(in, take_number(in));
    check->min_timestamp = take_number(in);
    check->max_timestamp = take_number(in);
}

static rq_err rqpy_check_and_change(rq_table *table, const char *numbers, const char *bytes, size_t changes, size_t edits,
                                    bool *ret_done, char **ret, size_t *ret_len, rq_failure *why)
{
    request r;
    rq_check check;
    input in = {(const void *)numbers, bytes};
    void *all = request_allocate(&r, 0, changes, edits, 0, 0);
    if (all == NULL)
        return no_memory(why);
    take_check(&in, &check);
    take_changes(&in, r.changes, changes, r.edits);
    rq_row *row = NULL;
    rq_err e = rq_table_check_and_change(table, &check, r.changes, changes, ret_done, &row, fresh(why));
    free(all);
    return one_row(e, row, ret, ret_len, why);
}

/* Each action begins with a number: 0 a get, otherwise how many changes of one row. */
static void take_actions(input *in, const request *r, size_t count)
{
    rq_change *change = r->changes;
    rq_edit *edit = r->edits;
    rq_get_request *get = r->gets;
    rq_column *column = r->columns;
    for (size_t i = 0; i < count; i++) {
        size_t changes = (size_t)take_number(in);
        bool is_get = changes == 0;
        r->actions[i] = (rq_action){is_get ? get : NULL, is_get ? NULL : change, changes};
        if (is_get)
            column = take_get(in, get++, column);
        for (; changes > 0; changes--)
            edit = take_change(in, change++, edit);
    }
}

/* *ret is set although actions failed. */
static rq_err rqpy_batch(rq_table *table, const char *numbers, const char *bytes, size_t actions, size_t changes, size_t edits,
                         size_t gets, size_t columns, char **ret, size_t *ret_len, rq_failure *why)
{
    request r;
    input in = {(const void *)numbers, bytes};
    void *all = request_allocate(&r, actions, changes, edits, gets, columns);
    if (all == NULL)
        return no_memory(why);
    take_actions(&in, &r, actions);
    rq_results *results = NULL;
    rq_err e = rq_table_batch(table, r.actions, actions, &results, fresh(why));
    free(all);
    if (results == NULL)
        return e;
    output out = {0};
    for (size_t i = 0; i < results->count && !out.failed; i++)
        put_outcome(&out, results->items + i);
    rq_results_free(results);
    rq_err packed = output_end(&out, ret, ret_len, why);
    return e != RQ_OK ? e : packed;
}

/* The scan's numbers are a get's, with the start as row; then length of the stop, five flags, limit, caching, batch, bytes. */
static rq_err rqpy_scan(rq_table *table, const char *numbers, const char *bytes, size_t columns, rq_scanner **ret, rq_failure *why)
{
    request r;
    input in = {(const void *)numbers, bytes};
    void *all = request_allocate(&r, 0, 0, 0, 1, columns);
    if (all == NULL)
        return no_memory(why);
    take_get(&in, r.gets, r.columns);
    rq_scan_request scan = {.size = sizeof scan, .start = r.gets->row, .columns = r.columns, .column_count = r.gets->column_count};
    scan.max_versions = r.gets->max_versions;
    scan.min_timestamp = r.gets->min_timestamp;
    scan.max_timestamp = r.gets->max_timestamp;
    scan.filter_text = r.gets->filter_text;
    scan.filter = r.gets->filter;
    scan.family_limit = r.gets->family_limit;
    scan.family_offset = r.gets->family_offset;
    scan.no_block_cache = r.gets->no_block_cache;
    scan.stop = take_bytes(&in, take_number(&in));
    scan.excludes_start = take_number(&in) != 0;
    scan.includes_stop = take_number(&in) != 0;
    scan.reversed = take_number(&in) != 0;
    scan.raw = take_number(&in) != 0;
    scan.limit = (uint64_t)take_number(&in);
    scan.caching = (uint32_t)take_number(&in);
    scan.batch = (uint32_t)take_number(&in);
    scan.fetch_bytes = (uint64_t)take_number(&in);
    rq_err e = rq_table_scan(table, &scan, ret, fresh(why));
    free(all);
    return e;
}

/* Up to `most` rows, or about `bytes`; fewer, even none, only at the end (*ret_end). An error that comes after rows is kept by
 * the library's scanner no longer, so these rows are returned with it. */
static rq_err rqpy_scan_next(rq_scanner *scanner, size_t most, size_t bytes, char **ret, size_t *ret_len, size_t *ret_count,
                             bool *ret_end, rq_failure *why)
{
    output out = {0};
    rq_err e = RQ_OK;
    size_t count = 0;
    *ret_end = false;
    while (count < most && out.len < bytes && !out.failed) {
        rq_row *row = NULL;
        e = rq_scanner_next(scanner, &row, fresh(why));
        *ret_end = e != RQ_OK || row == NULL;
        if (*ret_end)
            break;
        put_row(&out, row);
        rq_row_free(row);
        count++;
    }
    rq_err packed = output_end(&out, ret, ret_len, why);
    *ret_count = packed == RQ_OK ? count : 0;
    return e != RQ_OK ? e : packed;
}

/* --- asynchronous calls ----------------------------------------------------------------------- */

/* What the completions of a database leave for Python, which takes it after rq_poll or rq_disconnect, on the thread that
 * called it. Numbers of a completion: id, code, retryable, done, action (-1: none), lengths of class and message, kind of the
 * result (0 none, 1 row, 2 outcomes of a batch, 3 rows of a scan), its count. */
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
    size_t count = end->row != NULL ? 1 : end->results != NULL ? end->results->count : end->rows != NULL ? end->rows->count : 0;
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
    put_number(out, end->why == NULL || end->why->action == RQ_NO_ACTION ? -1 : (int64_t)end->why->action);
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
    if (p != NULL)
        *p = (pending){queue, id};
    return p;
}

/* A call that was not begun has no completion. */
static rq_err begun(rq_err e, pending *p)
{
    if (e != RQ_OK)
        free(p);
    return e;
}

static rq_err rqpy_get_async(rq_table *table, rqpy_queue *queue, int64_t id, const char *numbers, const char *bytes, size_t columns,
                             rq_failure *why)
{
    request r;
    input in = {(const void *)numbers, bytes};
    pending *p = pending_new(queue, id);
    void *all = p == NULL ? NULL : request_allocate(&r, 0, 0, 0, 1, columns);
    if (all == NULL)
        return begun(no_memory(why), p);
    take_get(&in, r.gets, r.columns);
    rq_err e = rq_table_get_async(table, r.gets, completed, p, fresh(why));
    free(all);
    return begun(e, p);
}

static rq_err rqpy_change_async(rq_table *table, rqpy_queue *queue, int64_t id, const char *numbers, const char *bytes,
                                size_t changes, size_t edits, rq_failure *why)
{
    request r;
    input in = {(const void *)numbers, bytes};
    pending *p = pending_new(queue, id);
    void *all = p == NULL ? NULL : request_allocate(&r, 0, changes, edits, 0, 0);
    if (all == NULL)
        return begun(no_memory(why), p);
    take_changes(&in, r.changes, changes, r.edits);
    rq_err e = changes == 1 ? rq_table_change_async(table, r.changes, completed, p, fresh(why))
                            : rq_table_change_row_async(table, r.changes, changes, completed, p, fresh(why));
    free(all);
    return begun(e, p);
}

static rq_err rqpy_check_async(rq_table *table, rqpy_queue *queue, int64_t id, const char *numbers, const char *bytes,
                               size_t changes, size_t edits, rq_failure *why)
{
    request r;
    rq_check check;
    input in = {(const void *)numbers, bytes};
    pending *p = pending_new(queue, id);
    void *all = p == NULL ? NULL : request_allocate(&r, 0, changes, edits, 0, 0);
    if (all == NULL)
        return begun(no_memory(why), p);
    take_check(&in, &check);
    take_changes(&in, r.changes, changes, r.edits);
    rq_err e = rq_table_check_and_change_async(table, &check, r.changes, changes, completed, p, fresh(why));
    free(all);
    return begun(e, p);
}

static rq_err rqpy_batch_async(rq_table *table, rqpy_queue *queue, int64_t id, const char *numbers, const char *bytes,
                               size_t actions, size_t changes, size_t edits, size_t gets, size_t columns, rq_failure *why)
{
    request r;
    input in = {(const void *)numbers, bytes};
    pending *p = pending_new(queue, id);
    void *all = p == NULL ? NULL : request_allocate(&r, actions, changes, edits, gets, columns);
    if (all == NULL)
        return begun(no_memory(why), p);
    take_actions(&in, &r, actions);
    rq_err e = rq_table_batch_async(table, r.actions, actions, completed, p, fresh(why));
    free(all);
    return begun(e, p);
}

static rq_err rqpy_next_async(rq_scanner *scanner, rqpy_queue *queue, int64_t id, size_t most, rq_failure *why)
{
    pending *p = pending_new(queue, id);
    if (p == NULL)
        return no_memory(why);
    return begun(rq_scanner_next_async(scanner, most, completed, p, fresh(why)), p);
}

/* Takes the completions that are there. *ret_count may be 0, and *ret NULL then. After RQ_E_NO_MEMORY they are lost. */
static rq_err rqpy_take(rqpy_queue *queue, char **ret, size_t *ret_len, size_t *ret_count, rq_failure *why)
{
    output out = queue->out;
    *ret_count = queue->count;
    *queue = (rqpy_queue){0};
    return *ret_count == 0 ? RQ_OK : output_end(&out, ret, ret_len, fresh(why));
}

static rq_err rqpy_poll(rq_db *db, rqpy_queue *queue, char **ret, size_t *ret_len, size_t *ret_count, rq_failure *why)
{
    rq_err e = rq_poll(db, 0, NULL, fresh(why));
    rq_err taken = rqpy_take(queue, ret, ret_len, ret_count, why);
    return e != RQ_OK ? e : taken;
}
