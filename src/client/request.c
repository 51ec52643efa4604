/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as bytes. */
#include "client/request.h"

#include "base/macros.h"
#include "base/pb.h"

#define FILTER_PREFIX "org.apache.hadoop.hbase.filter."
#define CONDITION_EQUAL 2
#define REGION_NAME 1

rq_err rq__put_region(rq_buf *out, rq_slice region_name)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, 1, &at));
    RQ_TRY(rq_pb_put_number(out, 1, REGION_NAME));
    RQ_TRY(rq_pb_put_bytes(out, 2, region_name));
    return rq_pb_end(out, at);
}

/* Fields that the caller has encoded; of fields that are there twice the last one counts. */
static rq_err put_more(rq_buf *out, rq_slice more)
{
    return more.len == 0 ? RQ_OK : rq_buf_append(out, more.ptr, more.len);
}

/* --- Get -------------------------------------------------------------------------------------- */

/* HBASE: protobuf Filter { name, serialized ColumnCountGetFilter { limit } }. */
static rq_err put_column_limit(rq_buf *out, uint32_t field, uint32_t limit)
{
    size_t filter;
    size_t inner;
    RQ_TRY(rq_pb_begin(out, field, &filter));
    RQ_TRY(rq_pb_put_bytes(out, 1, RQ_SLICE_LIT(FILTER_PREFIX "ColumnCountGetFilter")));
    RQ_TRY(rq_pb_begin(out, 2, &inner));
    RQ_TRY(rq_pb_put_number(out, 1, limit));
    RQ_TRY(rq_pb_end(out, inner));
    return rq_pb_end(out, filter);
}

static rq_err put_column(rq_buf *out, uint32_t field, rq_slice family, const rq_slice *qualifier)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, field, &at));
    RQ_TRY(rq_pb_put_bytes(out, 1, family));
    if (qualifier != NULL) RQ_TRY(rq_pb_put_bytes(out, 2, *qualifier));
    return rq_pb_end(out, at);
}

static rq_err put_get(rq_buf *out, uint32_t field, const rq_get *g)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, field, &at));
    RQ_TRY(rq_pb_put_bytes(out, 1, g->row));
    if (g->family.len > 0)
        RQ_TRY(put_column(out, 2, g->family, g->has_qualifier ? &g->qualifier : NULL));
    if (g->column_limit > 0) RQ_TRY(put_column_limit(out, 4, g->column_limit));
    if (g->max_versions > 1) RQ_TRY(rq_pb_put_number(out, 6, g->max_versions));
    RQ_TRY(put_more(out, g->more));
    return rq_pb_end(out, at);
}

rq_err rq__put_get_body(rq_buf *out, const rq_get *get)
{
    return put_get(out, 2, get);
}

/* --- mutations -------------------------------------------------------------------------------- */

static rq_err append_cell(rq_buf *cells, const rq_cell *c, bool with_tags)
{
    size_t len = rq_cell_serialized_len(c, with_tags);
    RQ_TRY(rq_buf_reserve(cells, 4 + len));
    rq_put_be32(cells->ptr + cells->len, (uint32_t)len);
    rq_cell_serialize(c, with_tags, cells->ptr + cells->len + 4);
    cells->len += 4 + len;
    return RQ_OK;
}

static rq_err append_cells(rq_buf *cells, const rq_mutate *m, const rq_cell *except)
{
    for (size_t i = 0; i < m->cell_count; i++)
        if (&m->cells[i] != except) RQ_TRY(append_cell(cells, &m->cells[i], m->with_tags));
    return RQ_OK;
}

/* HBASE: MutationProto.DeleteType. */
static uint64_t delete_type(uint8_t cell_type)
{
    switch (cell_type) {
    case RQ_TYPE_DELETE:
        return 0;
    case RQ_TYPE_DELETE_COLUMN:
        return 1;
    case RQ_TYPE_DELETE_FAMILY:
        return 2;
    default:
        return 3;
    }
}

/* QualifierValue { qualifier 1, value 2, timestamp 3, delete_type 4, tags 5 } */
static rq_err put_value(rq_buf *out, const rq_mutate *m, const rq_cell *c)
{
    RQ_TRY(rq_pb_put_bytes(out, 1, rq_cell_qualifier(c)));
    if (m->kind != RQ_MUTATE_DELETE) RQ_TRY(rq_pb_put_bytes(out, 2, rq_cell_value(c)));
    RQ_TRY(rq_pb_put_number(out, 3, (uint64_t)c->timestamp));
    if (m->kind == RQ_MUTATE_DELETE) RQ_TRY(rq_pb_put_number(out, 4, delete_type(c->type)));
    if (!m->with_tags || c->tags_len == 0) return RQ_OK;
    return rq_pb_put_bytes(out, 5, rq_slice_of(c->tags, c->tags_len));
}

/* ColumnValue { family 1, qualifier_value 2 }, one for each cell */
static rq_err put_values(rq_buf *out, const rq_mutate *m)
{
    for (size_t i = 0; i < m->cell_count; i++) {
        size_t column, value;
        RQ_TRY(rq_pb_begin(out, 3, &column));
        RQ_TRY(rq_pb_put_bytes(out, 1, rq_cell_family(&m->cells[i])));
        RQ_TRY(rq_pb_begin(out, 2, &value));
        RQ_TRY(put_value(out, m, &m->cells[i]));
        RQ_TRY(rq_pb_end(out, value));
        RQ_TRY(rq_pb_end(out, column));
    }
    return RQ_OK;
}

/* `in_block`: the number of its cells that are in the cell block; 0: they are in the message. */
static rq_err put_message(rq_buf *out, uint32_t field, const rq_mutate *m, size_t in_block)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, field, &at));
    RQ_TRY(rq_pb_put_bytes(out, 1, m->row));
    RQ_TRY(rq_pb_put_number(out, 2, m->kind));
    if (in_block == 0) RQ_TRY(put_values(out, m));
    RQ_TRY(rq_pb_put_number(out, 4, (uint64_t)RQ_TIMESTAMP_LATEST));
    RQ_TRY(rq_pb_put_number(out, 8, in_block));
    if (m->nonce != 0) RQ_TRY(rq_pb_put_number(out, 9, m->nonce));
    RQ_TRY(put_more(out, m->more));
    return rq_pb_end(out, at);
}

static rq_err put_condition(rq_buf *out, uint32_t field, const rq_mutate *m)
{
    size_t condition;
    size_t comparator;
    size_t binary;
    size_t comparable;
    RQ_TRY(rq_pb_begin(out, field, &condition));
    RQ_TRY(rq_pb_put_bytes(out, 1, m->row));
    RQ_TRY(rq_pb_put_bytes(out, 2, m->condition_family));
    RQ_TRY(rq_pb_put_bytes(out, 3, m->condition_qualifier));
    RQ_TRY(rq_pb_put_number(out, 4, CONDITION_EQUAL));
    RQ_TRY(rq_pb_begin(out, 5, &comparator));
    RQ_TRY(rq_pb_put_bytes(out, 1, RQ_SLICE_LIT(FILTER_PREFIX "BinaryComparator")));
    RQ_TRY(rq_pb_begin(out, 2, &binary));
    RQ_TRY(rq_pb_begin(out, 1, &comparable));
    RQ_TRY(rq_pb_put_bytes(out, 1, m->condition_value));
    RQ_TRY(rq_pb_end(out, comparable));
    RQ_TRY(rq_pb_end(out, binary));
    RQ_TRY(rq_pb_end(out, comparator));
    return rq_pb_end(out, condition);
}

rq_err rq__put_mutate_body(rq_buf *out, rq_buf *cells, const rq_mutate *m, uint64_t nonce_group)
{
    RQ_TRY(append_cells(cells, m, NULL));
    RQ_TRY(put_message(out, 2, m, m->cell_count));
    if (m->has_condition) RQ_TRY(put_condition(out, 3, m));
    if (m->condition.len > 0) RQ_TRY(rq_pb_put_bytes(out, 3, m->condition));
    return m->nonce == 0 ? RQ_OK : rq_pb_put_number(out, 4, nonce_group);
}

/* --- actions ---------------------------------------------------------------------------------- */

rq_err rq__put_get_action(rq_buf *out, uint32_t index, const rq_get *get)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, 3, &at));
    RQ_TRY(rq_pb_put_number(out, 1, index));
    RQ_TRY(put_get(out, 3, get));
    return rq_pb_end(out, at);
}

static rq_err put_action(rq_buf *out, uint32_t index, const rq_mutate *m, size_t in_block)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, 3, &at));
    RQ_TRY(rq_pb_put_number(out, 1, index));
    RQ_TRY(put_message(out, 2, m, in_block));
    return rq_pb_end(out, at);
}

rq_err rq__put_mutate_action(rq_buf *out, rq_buf *cells, uint32_t index, const rq_mutate *m)
{
    RQ_TRY(append_cells(cells, m, NULL));
    return put_action(out, index, m, m->cell_count);
}

static const rq_cell *family_marker(const rq_mutate *m)
{
    for (size_t i = 0; m->kind == RQ_MUTATE_DELETE && i < m->cell_count; i++)
        if (m->cells[i].type == RQ_TYPE_DELETE_FAMILY) return &m->cells[i];
    return NULL;
}

/* A delete as two: of this marker, and of the other cells. */
static rq_err put_two_deletes(rq_buf *out, rq_buf *cells, const rq_mutate *m, const rq_cell *marker)
{
    RQ_TRY(append_cell(cells, marker, m->with_tags));
    RQ_TRY(put_action(out, 0, m, 1));
    RQ_TRY(append_cells(cells, m, marker));
    return put_action(out, 1, m, m->cell_count - 1);
}

/* The only mutation of a RegionAction with a condition. HBase's server reads the condition first; if it cannot, it
 * leaves the mutation's cells in the cell block, and the next mutation of the Multi takes them. It does not if there are
 * several mutations. So the cells are in the message. But in a message a marker of a whole family removes the family's
 * markers before it; a delete with such a marker and other cells is sent as two deletes instead. HBASE:
 * RSRpcServices.multi and checkAndMutate, Delete.addFamily. */
static rq_err put_checked_mutation(rq_buf *out, rq_buf *cells, const rq_mutate *m)
{
    const rq_cell *marker = m->cell_count > 1 ? family_marker(m) : NULL;
    return marker != NULL ? put_two_deletes(out, cells, m, marker) : put_action(out, 0, m, 0);
}

/* RegionAction { region 1, atomic 2, action 3, condition 4 } */
rq_err rq__put_atomic_body(rq_buf *out, rq_buf *cells, const rq_mutate *list, size_t count,
                           rq_slice condition)
{
    RQ_TRY(rq_pb_put_number(out, 2, 1));
    if (condition.len > 0 && count == 1) {
        RQ_TRY(put_checked_mutation(out, cells, &list[0]));
    } else {
        for (size_t i = 0; i < count; i++)
            RQ_TRY(rq__put_mutate_action(out, cells, (uint32_t)i, &list[i]));
    }
    return condition.len == 0 ? RQ_OK : rq_pb_put_bytes(out, 4, condition);
}

uint32_t rq__mutations_priority(const rq_mutate *list, size_t count)
{
    uint32_t priority = 0;
    for (size_t i = 0; i < count; i++)
        if (list[i].priority > priority) priority = list[i].priority;
    return priority;
}

/* --- Scan ------------------------------------------------------------------------------------- */

/* Servers send heartbeats only to clients that take parts of rows. */
static rq_err put_abilities(rq_buf *out, const rq_scan *scan, bool takes_parts)
{
    if (takes_parts) RQ_TRY(rq_pb_put_number(out, 7, 1));
    RQ_TRY(rq_pb_put_number(out, 8, 1));
    return scan->counts_metrics ? rq_pb_put_number(out, 9, 1) : RQ_OK;
}

rq_err rq__put_scan_open(rq_buf *out, const rq_scan *scan, rq_slice start, bool include_start,
                         uint32_t rows, uint32_t limit, bool takes_parts)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, 2, &at));
    if (scan->family.len > 0) RQ_TRY(put_column(out, 1, scan->family, NULL));
    if (start.len > 0) RQ_TRY(rq_pb_put_bytes(out, 3, start));
    if (scan->stop.len > 0) RQ_TRY(rq_pb_put_bytes(out, 4, scan->stop));
    if (scan->no_cache_blocks) RQ_TRY(rq_pb_put_number(out, 8, 0));
    if (scan->batch > 0) RQ_TRY(rq_pb_put_number(out, 9, scan->batch));
    RQ_TRY(rq_pb_put_number(out, 10,
                            scan->result_bytes > 0 ? scan->result_bytes : RQ_SCAN_RESULT_BYTES));
    if (scan->reversed) {
        /* HBASE: with some filters 2.x refuses a reversed scan that loads families on demand. */
        RQ_TRY(rq_pb_put_number(out, 13, 0));
        RQ_TRY(rq_pb_put_number(out, 15, 1));
    }
    RQ_TRY(rq_pb_put_number(out, 17, rows));
    if (!include_start) RQ_TRY(rq_pb_put_number(out, 21, 0));
    if (scan->wants_cursors) RQ_TRY(rq_pb_put_number(out, 24, 1));
    RQ_TRY(put_more(out, scan->more));
    RQ_TRY(rq_pb_end(out, at));
    RQ_TRY(rq_pb_put_number(out, 4, rows));
    RQ_TRY(rq_pb_put_number(out, 5, 0));
    RQ_TRY(put_abilities(out, scan, takes_parts));
    return limit == 0 ? RQ_OK : rq_pb_put_number(out, 11, limit);
}

rq_err rq__put_scan_next(rq_buf *out, const rq_scan *scan, uint64_t scanner, uint64_t sequence,
                         uint32_t rows, uint32_t limit, bool takes_parts)
{
    RQ_TRY(rq_pb_put_number(out, 3, scanner));
    RQ_TRY(rq_pb_put_number(out, 4, rows));
    RQ_TRY(rq_pb_put_number(out, 5, 0));
    RQ_TRY(rq_pb_put_number(out, 6, sequence));
    RQ_TRY(put_abilities(out, scan, takes_parts));
    return limit == 0 ? RQ_OK : rq_pb_put_number(out, 11, limit);
}

rq_err rq__put_scan_close(rq_buf *out, uint64_t scanner)
{
    RQ_TRY(rq_pb_put_number(out, 3, scanner));
    RQ_TRY(rq_pb_put_number(out, 4, 0));
    return rq_pb_put_number(out, 5, 1);
}
