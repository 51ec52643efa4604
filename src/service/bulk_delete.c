/* SPDX-License-Identifier: Apache-2.0 */
/* BulkDeleteService: deletes what a scan of one region selects: whole rows, their families, columns
 * or versions. HBASE: BulkDeleteEndpoint.
 *
 *   step: read rows ─► a delete each ─► batch full, or its memory ─► write ─► written ─► step
 *
 * It scans like a Scan call, at one read point, and yields its loop as a scan does. A batch is
 * rowBatchSize rows, or fewer if their deletes reach BATCH_BYTES; rows are deleted one by one, as in
 * HBase, so the size of a batch does not show. */
#include "filter/filter.h"
#include "ops/read.h"
#include "service/call_op.h"
#include "service/endpoint.h"

#include "proto/endpoints.pb-c.h"

#define RESPONSE                                                                                   \
    "org.apache.hadoop.hbase.coprocessor.example.generated.BulkDeleteProtos$BulkDeleteResponse"
#define FIRST_KEY_ONLY "org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter"
#define BATCH_BYTES ((size_t)256 << 10)
#define BATCH_OPS_MAX 1024

typedef struct bulk_delete {
    rq_op_read read; /* for waiting; the gate counts the endpoint's call, not this op */
    rq__endpoint *endpoint;
    const Pb__BulkDeleteRequest *request;
    rq_table_schema *schema; /* a reference */
    rq_scan scan;
    rq_scan_extra extra;
    rq_region_scanner *scanner;
    rq_scan_state state;
    rq_cellblock row; /* the row at hand */
    /* The batch: its deletes and their bytes. */
    rq_arena batch;
    rq_row_op *ops;
    size_t op_count, op_max, batch_bytes;
    rq_write write;
    uint64_t versions; /* that the batch deletes */
    Pb__BulkDeleteResponse response;
} bulk_delete;

/* --- a row's delete --------------------------------------------------------------------------- */

static bool is_of(const bulk_delete *d, Pb__BulkDeleteRequest__DeleteType type)
{
    return d->request->deletetype == type;
}

static int64_t timestamp_of(const bulk_delete *d)
{
    return d->request->has_timestamp ? (int64_t)d->request->timestamp : RQ_TIMESTAMP_LATEST;
}

/* Of every family of the table. HBASE: HRegion.prepareDelete. */
static rq_err delete_row(bulk_delete *d, rq_mutation *m)
{
    m->cells = rq_arena_calloc(&d->batch, d->schema->family_count, sizeof *m->cells);
    if (m->cells == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < d->schema->family_count; i++) {
        rq_slice family = d->schema->families[i].name;
        m->cells[m->cell_count++] = (rq_cell){.row = m->row.ptr,
                                              .row_len = (uint16_t)m->row.len,
                                              .family = family.ptr,
                                              .family_len = (uint8_t)family.len,
                                              .timestamp = timestamp_of(d),
                                              .type = RQ_TYPE_DELETE_FAMILY};
    }
    return RQ_OK;
}

static bool is_same_family(const rq_cell *a, const rq_cell *b)
{
    return rq_slice_eq(rq_cell_family(a), rq_cell_family(b));
}

static bool is_same_column(const rq_cell *a, const rq_cell *b)
{
    return is_same_family(a, b) && rq_slice_eq(rq_cell_qualifier(a), rq_cell_qualifier(b));
}

/* The part of the row's delete for this cell; false: none, because an earlier cell of the same
 * family or column already added it. */
static bool marker_of(const bulk_delete *d, const rq_cell *cell, const rq_cell *before,
                      rq_cell *ret)
{
    *ret = (rq_cell){.row = cell->row,
                     .row_len = cell->row_len,
                     .family = cell->family,
                     .family_len = cell->family_len,
                     .timestamp = timestamp_of(d),
                     .type = RQ_TYPE_DELETE_FAMILY};
    if (is_of(d, PB__BULK_DELETE_REQUEST__DELETE_TYPE__FAMILY))
        return before == NULL || !is_same_family(cell, before);
    ret->qualifier = cell->qualifier;
    ret->qualifier_len = cell->qualifier_len;
    bool by_column =
        is_of(d, PB__BULK_DELETE_REQUEST__DELETE_TYPE__COLUMN) || d->request->has_timestamp;
    ret->type = is_of(d, PB__BULK_DELETE_REQUEST__DELETE_TYPE__COLUMN) ? RQ_TYPE_DELETE_COLUMN
                                                                       : RQ_TYPE_DELETE;
    if (!by_column) ret->timestamp = cell->timestamp;
    return !by_column || before == NULL || !is_same_column(cell, before);
}

static rq_err delete_cells(bulk_delete *d, rq_slice bytes, rq_mutation *m)
{
    rq_cursor cursor = rq_cursor_of(bytes);
    rq_cell cell, before, marker;
    m->cells = rq_arena_alloc(&d->batch, d->row.count * sizeof *m->cells);
    if (m->cells == NULL) return RQ_E_NO_MEMORY;
    for (uint32_t i = 0; i < d->row.count; i++) {
        RQ_TRY(rq_cellblock_next(&cursor, &cell, &d->read.op.why));
        if (marker_of(d, &cell, i == 0 ? NULL : &before, &marker))
            m->cells[m->cell_count++] = marker;
        before = cell;
    }
    if (is_of(d, PB__BULK_DELETE_REQUEST__DELETE_TYPE__VERSION)) d->versions += m->cell_count;
    return RQ_OK;
}

static rq_err add_row(bulk_delete *d)
{
    rq_cell first;
    rq_mutation *m = rq_arena_calloc(&d->batch, 1, sizeof *m);
    rq_slice bytes = rq_arena_copy(&d->batch, rq_buf_slice(&d->row.bytes));
    if (m == NULL || bytes.ptr == NULL) return RQ_E_NO_MEMORY;
    rq_cursor cursor = rq_cursor_of(bytes);
    RQ_TRY(rq_cellblock_next(&cursor, &first, &d->read.op.why));
    m->type = RQ_MUTATE_DELETE;
    m->row = rq_cell_row(&first);
    m->time_range = RQ_TIME_RANGE_ALL;
    RQ_TRY(is_of(d, PB__BULK_DELETE_REQUEST__DELETE_TYPE__ROW) ? delete_row(d, m)
                                                               : delete_cells(d, bytes, m));
    d->batch_bytes += bytes.len + sizeof *m + m->cell_count * sizeof *m->cells;
    d->ops[d->op_count++] = (rq_row_op){.mutations = m, .mutation_count = 1};
    return RQ_OK;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void fail(bulk_delete *d, rq_err rc)
{
    d->endpoint->why = d->read.op.why;
    rq__endpoint_fail(d->endpoint, rc);
}

static void finish(bulk_delete *d)
{
    d->response.has_versionsdeleted = is_of(d, PB__BULK_DELETE_REQUEST__DELETE_TYPE__VERSION);
    size_t len = pb__bulk_delete_response__get_packed_size(&d->response);
    uint8_t *bytes = rq_arena_alloc(&d->endpoint->call->arena, len);
    if (bytes == NULL) {
        fail(d, RQ_E_NO_MEMORY);
        return;
    }
    (void)pb__bulk_delete_response__pack(&d->response, bytes);
    rq__endpoint_end(d->endpoint, rq_slice_of(bytes, len));
}

/* --- batches ---------------------------------------------------------------------------------- */

static void step(rq_op_read *read);

/* The first error of the batch. HBase counts the rows before it and goes on. */
static rq_err take_results(bulk_delete *d)
{
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < d->op_count; i++) {
        if (rc == RQ_OK && d->ops[i].rc != RQ_OK) {
            rc = d->ops[i].rc;
            if (d->ops[i].why != NULL) d->read.op.why = *d->ops[i].why;
        }
        rq_row_op_clear(&d->ops[i]);
    }
    return rc;
}

static void written(rq_write *w)
{
    bulk_delete *d = RQ_CONTAINER_OF(w, bulk_delete, write);
    rq_err rc = take_results(d);
    d->response.rowsdeleted += d->op_count;
    d->response.versionsdeleted += d->versions;
    d->op_count = 0;
    d->versions = 0;
    d->batch_bytes = 0;
    rq_arena_reset(&d->batch);
    if (rc != RQ_OK)
        fail(d, rc);
    else if (d->state == RQ_SCAN_DONE)
        finish(d);
    else
        step(&d->read);
}

static void write_batch(bulk_delete *d)
{
    d->write = (rq_write){.ops = d->ops,
                          .op_count = d->op_count,
                          .writer = rq__writer(d->endpoint->service, d->endpoint->call),
                          .gone = rq_call_gone(d->endpoint->call),
                          .done = written};
    d->read.op.has_waited = true;
    rq_region_write(d->endpoint->region, &d->write);
}

static bool is_full(const bulk_delete *d)
{
    return d->op_count == d->op_max || d->batch_bytes >= BATCH_BYTES;
}

/* RQ_E_AGAIN: the time slice is over, or a block is needed. RQ_OK: the batch is full, or the last. */
static rq_err read_batch(bulk_delete *d)
{
    rq_executor *executor = d->read.op.seat->executor;
    rq_scan_limits limits = {.cells = d->scan.batch > 0 ? (uint32_t)d->scan.batch : 0,
                             .yield_ns = rq_op_read_yield_ns(&d->read)};
    while (d->state != RQ_SCAN_DONE && !is_full(d)) {
        RQ_TRY(rq_region_scanner_next(d->scanner, &limits, &d->read.ctx, &d->row, &d->state,
                                      &d->read.op.why));
        if (d->row.count > 0) RQ_TRY(add_row(d));
        rq_cellblock_reset(&d->row);
        if (d->state != RQ_SCAN_DONE && executor->now_ns(executor) >= limits.yield_ns)
            return is_full(d) ? RQ_OK : RQ_E_AGAIN;
    }
    return RQ_OK;
}

static rq_err read_slice(rq_op_read *read)
{
    bulk_delete *d = RQ_CONTAINER_OF(read, bulk_delete, read);
    rq_err rc = read_batch(d);
    if (rq_op_read_suspends(read, rc)) rq_region_scanner_suspend(d->scanner);
    return rc;
}

static void step(rq_op_read *read)
{
    bulk_delete *d = RQ_CONTAINER_OF(read, bulk_delete, read);
    rq_op *op = &read->op;
    rq_err rc = read->fetch_rc;
    if (rc == RQ_OK && rq_region_is_closing(d->endpoint->region))
        rc = rq_fail(&op->why, RQ_E_NOT_SERVING_REGION, "region is closing");
    if (rc == RQ_OK) rc = rq_op_read_slice(read);
    if (rc == RQ_E_AGAIN) {
        rq_op_read_wait(read);
        return;
    }
    if (rc == RQ_OK) rq_read_ctx_clear(&read->ctx);
    if (rc != RQ_OK)
        fail(d, rc);
    else if (d->op_count > 0)
        write_batch(d);
    else
        finish(d);
}

/* --- the beginning ---------------------------------------------------------------------------- */

static void release(void *thing)
{
    bulk_delete *d = thing;
    rq_region_scanner_close(d->scanner);
    rq_read_ctx_clear(&d->read.ctx);
    rq_cellblock_clear(&d->row);
    rq_arena_clear(&d->batch);
    rq_table_schema_unref(d->schema);
}

static rq_err decode(rq__endpoint *e, const ProtobufCMessage *request)
{
    return rq__endpoint_decode_scan(e, ((const Pb__BulkDeleteRequest *)request)->scan);
}

static rq_err prepare(bulk_delete *d)
{
    rq_arena *arena = &d->endpoint->call->arena;
    const Pb__BulkDeleteRequest *r = d->request;
    rq_error *why = &d->read.op.why;
    if (r->rowbatchsize == 0) /* HBase reads no row, forever */
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "rowBatchSize is 0");
    d->op_max = r->rowbatchsize < BATCH_OPS_MAX ? r->rowbatchsize : BATCH_OPS_MAX;
    d->ops = rq_arena_alloc(arena, d->op_max * sizeof *d->ops);
    if (d->ops == NULL) return RQ_E_NO_MEMORY;
    if (d->scan.filter == NULL && is_of(d, PB__BULK_DELETE_REQUEST__DELETE_TYPE__ROW))
        RQ_TRY(rq_filter_parse(rq_slice_cstr(FIRST_KEY_ONLY), (rq_slice){0}, arena, &d->scan.filter,
                               why));
    return rq_region_scanner_open(d->endpoint->region, &d->scan, d->extra.mvcc_read_point, arena,
                                  &d->scanner, why);
}

static void start(rq__endpoint *e, const ProtobufCMessage *request)
{
    bulk_delete *d = rq_arena_calloc(&e->call->arena, 1, sizeof *d);
    if (d == NULL) {
        rq__endpoint_fail(e, RQ_E_NO_MEMORY);
        return;
    }
    rq_arena_init(&d->batch);
    d->schema = rq_region_schema(e->region);
    rq_err rc = rq_arena_link(&e->call->arena, release, d);
    if (rc != RQ_OK) {
        rq_table_schema_unref(d->schema);
        rq__endpoint_fail(e, rc);
        return;
    }
    rq__op_of_call(&d->read.op, RQ_OP_ENDPOINT, rq__seat(e->service, e->call), e->call, NULL);
    rq_op_read_init(&d->read, step, read_slice);
    d->endpoint = e;
    d->scan = ((const rq__endpoint_scan *)e->decoded)->scan;
    d->extra = ((const rq__endpoint_scan *)e->decoded)->extra;
    d->request = (const Pb__BulkDeleteRequest *)request;
    d->state = RQ_SCAN_MORE;
    d->read.held = &d->row;
    pb__bulk_delete_response__init(&d->response);
    rc = prepare(d);
    if (rc != RQ_OK)
        fail(d, rc);
    else
        step(&d->read);
}

const rq__endpoint_method rq__bulk_delete_methods[] = {
    {"delete", &pb__bulk_delete_request__descriptor, RESPONSE, decode, start},
};
const size_t rq__bulk_delete_method_count = RQ_ARRAY_LEN(rq__bulk_delete_methods);
