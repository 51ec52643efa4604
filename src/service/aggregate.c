/* SPDX-License-Identifier: Apache-2.0 */
/* AggregateService: count, sum, min and max, and the parts from which clients compute averages,
 * deviations and medians, over one region; AggregationClient combines the regions. HBASE:
 * AggregateImplementation.
 *
 * It scans like a Scan call, but returns no rows: it collects one row at a time, adds it up and
 * drops it, and yields its loop as a scan does, also within a row. Clients depend on some surprising
 * results of HBase, so they are the same here:
 *  - a row count with columns looks at the family without its first column; with one column, at the
 *    whole family;
 *  - the number of rows for an average includes the last, empty step of a filtered scan;
 *  - a weighted median sums both columns for the values and for the weights. */
#include "ops/read.h"
#include "service/call_op.h"
#include "service/endpoint.h"
#include "service/interpreter.h"

#include "proto/endpoints.pb-c.h"

#define RESPONSE "org.apache.hadoop.hbase.protobuf.generated.AggregateProtos$AggregateResponse"
#define FIRST_KEY_ONLY "org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter"

/* Fields of AggregateResponse. */
enum { TAG_FIRST_PART = 0x0a, TAG_SECOND_PART = 0x12 };

typedef struct aggregate aggregate;

/* How one method handles a row, and the end of the scan. */
typedef struct aggregate_kind {
    rq_err (*add_row)(aggregate *a);
    rq_err (*answer)(aggregate *a, rq_buf *out);
} aggregate_kind;

struct aggregate {
    rq_op_read read; /* for waiting; the gate counts the endpoint's call, not this op */
    rq__endpoint *endpoint;
    const aggregate_kind *kind;
    rq__interpreter interpreter;
    rq_scan scan;
    rq_scan_extra extra;
    rq_region_scanner *scanner;
    rq_cellblock row; /* the row at hand */
    bool has_row;     /* its cells from this one on are still to be added up: */
    uint32_t cell;
    size_t cell_at; /* bytes */
    rq_scan_state state;
    uint64_t yield_ns; /* end of the slice at hand; 0: none */
    uint64_t rows;     /* steps of the scanner */
    uint64_t rows_with_cells;
    bool weighted;
    rq__number result; /* maximum, minimum, sum */
    rq__number other;  /* sum of squares, or of weights */
    rq__number value, of_row, scratch;
};

/* --- rows ------------------------------------------------------------------------------------- */

static uint64_t now_ns(const aggregate *a)
{
    rq_executor *executor = a->read.op.seat->executor;
    return executor->now_ns(executor);
}

static bool slice_is_over(const aggregate *a)
{
    return a->yield_ns != 0 && now_ns(a) >= a->yield_ns;
}

/* The next number of the row. RQ_E_END: there is none. RQ_E_AGAIN: the time slice is over, because a number
 * may have so many digits that a row of them takes seconds. */
static rq_err next_value(aggregate *a)
{
    const rq_buf *bytes = &a->row.bytes;
    rq_cell cell;
    if (a->cell == a->row.count) return RQ_E_END;
    if (a->interpreter == RQ__INTERPRETER_DECIMAL && slice_is_over(a)) return RQ_E_AGAIN;
    rq_cursor cursor = rq_cursor_of(rq_slice_of(bytes->ptr + a->cell_at, bytes->len - a->cell_at));
    RQ_TRY(rq_cellblock_next(&cursor, &cell, &a->read.op.why));
    a->cell++;
    a->cell_at = bytes->len - rq_cursor_left(&cursor);
    return rq__number_read(a->interpreter, &cell, &a->value, &a->read.op.why);
}

static rq_err ended(rq_err rc)
{
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* Keeps the extreme value so far: `value` replaces it if their comparison has the sign `wanted`. */
static rq_err keep_extreme(aggregate *a, int wanted)
{
    rq_err rc;
    while ((rc = next_value(a)) == RQ_OK) {
        if (!a->value.present) continue;
        if (!a->result.present ||
            rq__number_compare(a->interpreter, &a->value, &a->result) * wanted > 0)
            rq__number_swap(&a->value, &a->result);
    }
    return ended(rc);
}

static rq_err keep_maximum(aggregate *a)
{
    return keep_extreme(a, 1);
}

static rq_err keep_minimum(aggregate *a)
{
    return keep_extreme(a, -1);
}

/* Cell by cell, because the sum of doubles depends on the order. */
static rq_err add_up(aggregate *a, rq__number *sum)
{
    rq_err rc;
    while ((rc = next_value(a)) == RQ_OK)
        RQ_TRY(rq__number_add(a->interpreter, sum, &a->value));
    return ended(rc);
}

/* The sum of the row's values, in of_row. */
static rq_err add_up_row(aggregate *a)
{
    if (a->cell == 0) a->of_row.present = false;
    return add_up(a, &a->of_row);
}

static rq_err add_to_sum(aggregate *a)
{
    return add_up(a, &a->result);
}

static rq_err add_squares(aggregate *a)
{
    RQ_TRY(add_up_row(a));
    RQ_TRY(rq__number_add(a->interpreter, &a->result, &a->of_row));
    return rq__number_add_square(a->interpreter, &a->other, &a->of_row, &a->scratch);
}

static rq_err add_weights(aggregate *a)
{
    RQ_TRY(add_up_row(a));
    RQ_TRY(rq__number_add(a->interpreter, &a->result, &a->of_row));
    return a->weighted ? rq__number_add(a->interpreter, &a->other, &a->of_row) : RQ_OK;
}

static rq_err count_only(aggregate *a)
{
    (void)a;
    return RQ_OK;
}

/* --- answers ---------------------------------------------------------------------------------- */

static rq_err append_part(rq_buf *out, rq_slice bytes)
{
    RQ_TRY(rq_buf_append_u8(out, TAG_FIRST_PART));
    RQ_TRY(rq_buf_append_varint(out, bytes.len));
    return rq_buf_append(out, bytes.ptr, bytes.len);
}

static rq_err append_number(aggregate *a, const rq__number *n, rq_buf *out)
{
    rq_buf message = {0};
    rq_err rc = rq__number_write(a->interpreter, n, &message);
    if (rc == RQ_OK) rc = append_part(out, rq_buf_slice(&message));
    rq_buf_clear(&message);
    return rc;
}

static rq_err append_smallest(aggregate *a, rq_buf *out)
{
    rq_buf message = {0};
    rq_err rc = rq__number_write_min(a->interpreter, &message);
    if (rc == RQ_OK) rc = append_part(out, rq_buf_slice(&message));
    rq_buf_clear(&message);
    return rc;
}

static rq_err append_rows(rq_buf *out, uint64_t rows)
{
    RQ_TRY(rq_buf_append_u8(out, TAG_SECOND_PART));
    RQ_TRY(rq_buf_append_u8(out, 8));
    return rq_buf_append_be64(out, rows);
}

/* Without a value the message is empty. */
static rq_err answer_result(aggregate *a, rq_buf *out)
{
    return a->result.present ? append_number(a, &a->result, out) : RQ_OK;
}

static rq_err answer_row_count(aggregate *a, rq_buf *out)
{
    RQ_TRY(rq_buf_append_u8(out, TAG_FIRST_PART));
    RQ_TRY(rq_buf_append_u8(out, 8));
    return rq_buf_append_be64(out, a->rows_with_cells);
}

static rq_err answer_average(aggregate *a, rq_buf *out)
{
    if (!a->result.present) return RQ_OK;
    RQ_TRY(append_number(a, &a->result, out));
    return append_rows(out, a->rows);
}

static rq_err answer_deviation(aggregate *a, rq_buf *out)
{
    if (!a->result.present) return RQ_OK;
    RQ_TRY(append_number(a, &a->result, out));
    RQ_TRY(append_number(a, &a->other, out));
    return append_rows(out, a->rows);
}

static rq_err answer_median(aggregate *a, rq_buf *out)
{
    /* HBase throws NullPointerException here too: its client cannot handle a region without
     * values. */
    if (!a->result.present)
        return rq_fail(&a->read.op.why, RQ_E_NULL_POINTER,
                       "java.lang.NullPointerException: the region has no values for a median");
    RQ_TRY(append_number(a, &a->result, out));
    return a->other.present ? append_number(a, &a->other, out) : append_smallest(a, out);
}

static void finish(aggregate *a)
{
    rq_buf out = {0};
    rq_err rc = a->kind->answer(a, &out);
    rq_slice copy = {0};
    if (rc == RQ_OK) {
        copy = rq_arena_copy(&a->endpoint->call->arena, rq_buf_slice(&out));
        if (copy.ptr == NULL) rc = RQ_E_NO_MEMORY;
    }
    rq_buf_clear(&out);
    if (rc == RQ_OK) {
        rq__endpoint_end(a->endpoint, copy);
        return;
    }
    a->endpoint->why = a->read.op.why;
    rq__endpoint_fail(a->endpoint, rc);
}

/* --- the scan --------------------------------------------------------------------------------- */

static rq_err read_row(aggregate *a, const rq_scan_limits *limits)
{
    RQ_TRY(rq_region_scanner_next(a->scanner, limits, &a->read.ctx, &a->row, &a->state,
                                  &a->read.op.why));
    a->rows++;
    if (a->row.count > 0) a->rows_with_cells++;
    a->has_row = true;
    a->cell = 0;
    a->cell_at = 0;
    return RQ_OK;
}

/* RQ_E_AGAIN: the time slice is over, or a block is needed. */
static rq_err read_rows(aggregate *a)
{
    a->yield_ns = rq_op_read_yield_ns(&a->read);
    rq_scan_limits limits = {.cells = a->scan.batch > 0 ? (uint32_t)a->scan.batch : 0,
                             .yield_ns = a->yield_ns};
    for (;;) {
        if (!a->has_row) RQ_TRY(read_row(a, &limits));
        RQ_TRY(a->kind->add_row(a));
        rq_cellblock_reset(&a->row);
        a->has_row = false;
        if (a->state == RQ_SCAN_DONE) return RQ_OK;
        if (slice_is_over(a)) return RQ_E_AGAIN;
    }
}

static rq_err read_slice(rq_op_read *read)
{
    aggregate *a = RQ_CONTAINER_OF(read, aggregate, read);
    rq_err rc = read_rows(a);
    if (rq_op_read_suspends(read, rc)) rq_region_scanner_suspend(a->scanner);
    return rc;
}

static void step(rq_op_read *read)
{
    aggregate *a = RQ_CONTAINER_OF(read, aggregate, read);
    rq_op *op = &read->op;
    rq_err rc = read->fetch_rc;
    if (rc == RQ_OK && rq_region_is_closing(a->endpoint->region))
        rc = rq_fail(&op->why, RQ_E_NOT_SERVING_REGION, "region is closing");
    if (rc == RQ_OK) rc = rq_op_read_slice(read);
    if (rc == RQ_E_AGAIN) {
        rq_op_read_wait(read);
    } else if (rc != RQ_OK) {
        a->endpoint->why = op->why;
        rq__endpoint_fail(a->endpoint, rc);
    } else {
        rq_read_ctx_clear(&read->ctx);
        finish(a);
    }
}

static void release(void *thing)
{
    aggregate *a = thing;
    rq_region_scanner_close(a->scanner);
    rq_read_ctx_clear(&a->read.ctx);
    rq_cellblock_clear(&a->row);
    rq__number_clear(&a->result);
    rq__number_clear(&a->other);
    rq__number_clear(&a->value);
    rq__number_clear(&a->of_row);
    rq__number_clear(&a->scratch);
}

/* A row count without filter and columns needs only one cell of each row. */
static rq_err prepare_count(aggregate *a)
{
    rq_scan *s = &a->scan;
    bool has_column = s->family_count > 0 && s->families[0].qualifier_count > 0;
    if (!has_column) {
        if (s->filter != NULL) return RQ_OK;
        return rq_filter_parse(rq_slice_cstr(FIRST_KEY_ONLY), (rq_slice){0},
                               &a->endpoint->call->arena, &s->filter, &a->read.op.why);
    }
    rq_scan_family *families =
        rq_arena_alloc(&a->endpoint->call->arena, s->family_count * sizeof *families);
    if (families == NULL) return RQ_E_NO_MEMORY;
    memcpy(families, s->families, s->family_count * sizeof *families);
    families[0].qualifiers++;
    families[0].qualifier_count--;
    s->families = families;
    return RQ_OK;
}

static rq_err decode(rq__endpoint *e, const ProtobufCMessage *request)
{
    return rq__endpoint_decode_scan(e, ((const Pb__AggregateRequest *)request)->scan);
}

static rq_err prepare(aggregate *a, const Pb__AggregateRequest *r)
{
    rq_arena *arena = &a->endpoint->call->arena;
    bool counts = a->kind->add_row == count_only;
    if (!counts && !rq__interpreter_find(r->interpreter_class_name, &a->interpreter))
        return rq_fail(&a->read.op.why, RQ_E_DO_NOT_RETRY, "java.lang.ClassNotFoundException: %s",
                       r->interpreter_class_name);
    if (counts) {
        RQ_TRY(prepare_count(a));
    } else if (r->scan->n_column == 0) {
        return rq_fail(&a->read.op.why, RQ_E_NULL_POINTER,
                       "java.lang.NullPointerException: the scan names no family");
    } else {
        a->weighted = a->scan.families[0].qualifier_count > 1;
    }
    return rq_region_scanner_open(a->endpoint->region, &a->scan, a->extra.mvcc_read_point, arena,
                                  &a->scanner, &a->read.op.why);
}

static void start(rq__endpoint *e, const ProtobufCMessage *request, const aggregate_kind *kind)
{
    aggregate *a = rq_arena_calloc(&e->call->arena, 1, sizeof *a);
    rq_err rc = a == NULL ? RQ_E_NO_MEMORY : rq_arena_link(&e->call->arena, release, a);
    if (rc != RQ_OK) {
        rq__endpoint_fail(e, rc);
        return;
    }
    rq__op_of_call(&a->read.op, RQ_OP_ENDPOINT, rq__seat(e->service, e->call), e->call, NULL);
    rq_op_read_init(&a->read, step, read_slice);
    a->endpoint = e;
    a->scan = ((const rq__endpoint_scan *)e->decoded)->scan;
    a->extra = ((const rq__endpoint_scan *)e->decoded)->extra;
    a->kind = kind;
    a->read.sink = &e->call->cells;
    a->read.held = &a->row;
    rc = prepare(a, (const Pb__AggregateRequest *)request);
    if (rc != RQ_OK) {
        e->why = a->read.op.why;
        rq__endpoint_fail(e, rc);
        return;
    }
    step(&a->read);
}

/* --- the methods ------------------------------------------------------------------------------ */

#define METHOD(name, add, result)                                                                  \
    static void name(rq__endpoint *e, const ProtobufCMessage *request)                             \
    {                                                                                              \
        static const aggregate_kind kind = {add, result};                                          \
        start(e, request, &kind);                                                                  \
    }
METHOD(get_max, keep_maximum, answer_result)
METHOD(get_min, keep_minimum, answer_result)
METHOD(get_sum, add_to_sum, answer_result)
METHOD(get_row_num, count_only, answer_row_count)
METHOD(get_avg, add_to_sum, answer_average)
METHOD(get_std, add_squares, answer_deviation)
METHOD(get_median, add_weights, answer_median)
#undef METHOD

const rq__endpoint_method rq__aggregate_methods[] = {
    {"GetMax", &pb__aggregate_request__descriptor, RESPONSE, decode, get_max},
    {"GetMin", &pb__aggregate_request__descriptor, RESPONSE, decode, get_min},
    {"GetSum", &pb__aggregate_request__descriptor, RESPONSE, decode, get_sum},
    {"GetRowNum", &pb__aggregate_request__descriptor, RESPONSE, decode, get_row_num},
    {"GetAvg", &pb__aggregate_request__descriptor, RESPONSE, decode, get_avg},
    {"GetStd", &pb__aggregate_request__descriptor, RESPONSE, decode, get_std},
    {"GetMedian", &pb__aggregate_request__descriptor, RESPONSE, decode, get_median},
};
const size_t rq__aggregate_method_count = RQ_ARRAY_LEN(rq__aggregate_methods);
