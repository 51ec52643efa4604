/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes checked arguments as fields of HBase's messages (proto/client.proto has their numbers);
 * the client appends these fields to those that it writes itself. Converts results to rows. HBASE:
 * ProtobufUtil, RequestConverter. */
#include "remote/remote_priv.h"

#include "base/pb.h"
#include "cell/cellblock.h"

#define CONSISTENCY_TIMELINE 1
#define BINARY_COMPARATOR "org.apache.hadoop.hbase.filter.BinaryComparator"

/* The numbers of the fields that Get and Scan have in common. */
typedef struct numbers {
    uint32_t column, filter, time_range, max_versions, cache_blocks, limit, offset, ranges,
        on_demand, attribute;
} numbers;

static rq_err put_filter(rq_buf *out, uint32_t field, rq_slice java_class, rq_slice bytes)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, field, &at));
    RQ_TRY(rq_pb_put_bytes(out, 1, java_class));
    RQ_TRY(rq_pb_put_bytes(out, 2, bytes));
    return rq_pb_end(out, at);
}

static rq_err put_times(rq_buf *out, uint32_t field, int64_t min, int64_t max)
{
    size_t at;
    if (min == 0 && max == INT64_MAX) return RQ_OK;
    RQ_TRY(rq_pb_begin(out, field, &at));
    RQ_TRY(rq_pb_put_number(out, 1, (uint64_t)min));
    RQ_TRY(rq_pb_put_number(out, 2, (uint64_t)max));
    return rq_pb_end(out, at);
}

/* ColumnFamilyTimeRange { column_family 1, time_range 2 { from 1, to 2 } } */
static rq_err put_range(rq_buf *out, uint32_t field, const rq_family_range *r)
{
    size_t at, range;
    RQ_TRY(rq_pb_begin(out, field, &at));
    RQ_TRY(rq_pb_put_bytes(out, 1, r->family));
    RQ_TRY(rq_pb_begin(out, 2, &range));
    RQ_TRY(rq_pb_put_number(out, 1, (uint64_t)r->min_timestamp));
    RQ_TRY(rq_pb_put_number(out, 2, (uint64_t)r->max_timestamp));
    RQ_TRY(rq_pb_end(out, range));
    return rq_pb_end(out, at);
}

static rq_err put_attribute(rq_buf *out, uint32_t field, const char *name, const void *value,
                            size_t len)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, field, &at));
    RQ_TRY(rq_pb_put_bytes(out, 1, rq_slice_cstr(name)));
    RQ_TRY(rq_pb_put_bytes(out, 2, rq_slice_of(value, len)));
    return rq_pb_end(out, at);
}

static rq_err put_attributes(rq_buf *out, uint32_t field, const rq_named_list *a)
{
    for (size_t i = 0; i < a->count; i++) {
        size_t at;
        RQ_TRY(rq_pb_begin(out, field, &at));
        RQ_TRY(rq_pb_put_bytes(out, 1, a->items[i].name));
        RQ_TRY(rq_pb_put_bytes(out, 2, a->items[i].value));
        RQ_TRY(rq_pb_end(out, at));
    }
    return RQ_OK;
}

rq_err rq__encode_table(rq_buf *out, uint32_t field, rq_slice ns, rq_slice qualifier)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, field, &at));
    RQ_TRY(rq_pb_put_bytes(out, 1, ns));
    RQ_TRY(rq_pb_put_bytes(out, 2, qualifier));
    return rq_pb_end(out, at);
}

static rq_err put_reading(rq_buf *out, const rq_reading *r, const numbers *n)
{
    for (size_t i = 0; i < r->family_count; i++) {
        const rq_picked *p = &r->families[i];
        size_t at;
        RQ_TRY(rq_pb_begin(out, n->column, &at));
        RQ_TRY(rq_pb_put_bytes(out, 1, p->family));
        for (size_t q = 0; q < p->qualifier_count; q++)
            RQ_TRY(rq_pb_put_bytes(out, 2, p->qualifiers[q]));
        RQ_TRY(rq_pb_end(out, at));
    }
    if (r->filter_class.len > 0) RQ_TRY(put_filter(out, n->filter, r->filter_class, r->filter));
    RQ_TRY(put_times(out, n->time_range, r->min_timestamp, r->max_timestamp));
    for (size_t i = 0; i < r->range_count; i++)
        RQ_TRY(put_range(out, n->ranges, &r->ranges[i]));
    if (r->reads_uncommitted) RQ_TRY(put_attribute(out, n->attribute, "_isolationlevel_", "\1", 1));
    RQ_TRY(put_attributes(out, n->attribute, &r->attributes));
    if (r->no_lazy_families) RQ_TRY(rq_pb_put_number(out, n->on_demand, 0));
    if (r->max_versions != 1)
        RQ_TRY(rq_pb_put_number(out, n->max_versions, (uint64_t)r->max_versions));
    if (r->no_block_cache) RQ_TRY(rq_pb_put_number(out, n->cache_blocks, 0));
    if (r->family_limit >= 0) RQ_TRY(rq_pb_put_number(out, n->limit, (uint64_t)r->family_limit));
    if (r->family_offset > 0) RQ_TRY(rq_pb_put_number(out, n->offset, (uint64_t)r->family_offset));
    return RQ_OK;
}

rq_err rq__encode_get(rq_buf *out, const rq_reading *r)
{
    static const numbers fields = {2, 4, 5, 6, 7, 8, 9, 13, 14, 3};
    RQ_TRY(put_reading(out, r, &fields));
    if (r->is_timeline) RQ_TRY(rq_pb_put_number(out, 12, CONSISTENCY_TIMELINE));
    return r->existence_only ? rq_pb_put_number(out, 10, 1) : RQ_OK;
}

rq_err rq__encode_scan(rq_buf *out, const rq_scanning *s)
{
    static const numbers fields = {1, 5, 6, 7, 8, 11, 12, 19, 13, 2};
    RQ_TRY(put_reading(out, &s->read, &fields));
    if (s->raw) RQ_TRY(put_attribute(out, 2, "_raw_", "\xff", 1));
    if (s->read.is_timeline) RQ_TRY(rq_pb_put_number(out, 16, CONSISTENCY_TIMELINE));
    if (s->read_type != RQ_READ_DEFAULT) RQ_TRY(rq_pb_put_number(out, 23, s->read_type));
    return rq_pb_put_number(out, 22, s->include_stop);
}

rq_err rq__encode_change(rq_buf *out, const rq_changing *c)
{
    /* The message's numbers. */
    static const uint8_t levels[] = {[RQ_DURABILITY_DEFAULT] = 0,
                                     [RQ_DURABILITY_SKIP_LOG] = 1,
                                     [RQ_DURABILITY_ASYNC] = 2,
                                     [RQ_DURABILITY_SYNC] = 3,
                                     [RQ_DURABILITY_FSYNC] = 4};
    if (c->cell_count == 0) RQ_TRY(rq_pb_put_number(out, 4, (uint64_t)c->timestamp));
    if (c->ttl_ms > 0 && c->kind != RQ_DELETE) {
        uint8_t ttl[8];
        rq_put_be64(ttl, c->ttl_ms);
        RQ_TRY(put_attribute(out, 5, "_ttl", ttl, sizeof ttl));
    }
    if (c->returns_nothing) RQ_TRY(put_attribute(out, 5, "_rr_", "\0", 1));
    RQ_TRY(put_attributes(out, 5, &c->attributes));
    if (c->durability != RQ_DURABILITY_DEFAULT)
        RQ_TRY(rq_pb_put_number(out, 6, levels[c->durability]));
    return put_times(out, 7, c->min_timestamp, c->max_timestamp);
}

static rq_err put_comparator(rq_buf *out, uint32_t field, rq_slice value)
{
    size_t comparator, binary, comparable;
    RQ_TRY(rq_pb_begin(out, field, &comparator));
    RQ_TRY(rq_pb_put_bytes(out, 1, RQ_SLICE_LIT(BINARY_COMPARATOR)));
    RQ_TRY(rq_pb_begin(out, 2, &binary));
    RQ_TRY(rq_pb_begin(out, 1, &comparable));
    RQ_TRY(rq_pb_put_bytes(out, 1, value));
    RQ_TRY(rq_pb_end(out, comparable));
    RQ_TRY(rq_pb_end(out, binary));
    return rq_pb_end(out, comparator);
}

rq_err rq__encode_check(rq_buf *out, const rq_checking *k, rq_slice row)
{
    RQ_TRY(rq_pb_put_bytes(out, 1, row));
    if (k->filter_class.len > 0) {
        RQ_TRY(put_filter(out, 7, k->filter_class, k->filter));
    } else {
        RQ_TRY(rq_pb_put_bytes(out, 2, k->family));
        RQ_TRY(rq_pb_put_bytes(out, 3, k->qualifier));
        RQ_TRY(rq_pb_put_number(out, 4, k->op));
        RQ_TRY(put_comparator(out, 5, k->value));
    }
    return put_times(out, 6, k->min_timestamp, k->max_timestamp);
}

rq_mutate rq__mutate_of(const rq_changing *c, rq_slice more, uint64_t nonce)
{
    static const rq_mutate_kind kinds[] = {[RQ_PUT] = RQ_MUTATE_PUT,
                                           [RQ_DELETE] = RQ_MUTATE_DELETE,
                                           [RQ_APPEND] = RQ_MUTATE_APPEND,
                                           [RQ_INCREMENT] = RQ_MUTATE_INCREMENT};
    bool reads = c->kind == RQ_APPEND || c->kind == RQ_INCREMENT;
    return (rq_mutate){.kind = kinds[c->kind],
                       .row = c->row,
                       .cells = c->cells,
                       .cell_count = c->cell_count,
                       .nonce = reads ? nonce : 0,
                       .priority = c->priority,
                       .more = more};
}

/* --- regions ---------------------------------------------------------------------------------- */

/* The id in "table,start,id.encoded.". */
static bool region_id(rq_slice name, uint64_t *ret)
{
    size_t comma = name.len;
    while (comma > 0 && name.ptr[comma - 1] != ',')
        comma--;
    *ret = 0;
    size_t at = comma;
    for (; at < name.len && name.ptr[at] >= '0' && name.ptr[at] <= '9'; at++)
        *ret = *ret * 10 + (uint64_t)(name.ptr[at] - '0');
    return comma > 0 && at > comma && at < name.len && name.ptr[at] == '.';
}

/* RegionInfo { region_id 1, table_name 2, start_key 3, end_key 4, offline 5, split 6 } */
rq_err rq__encode_region(rq_buf *out, const rq_defining *d)
{
    uint64_t id;
    size_t at;
    if (!region_id(rq_slice_of_bytes(d->region->name), &id)) return RQ_E_MALFORMED;
    RQ_TRY(rq_pb_begin(out, 1, &at));
    RQ_TRY(rq_pb_put_number(out, 1, id));
    RQ_TRY(rq__encode_table(out, 2, d->ns, d->qualifier));
    RQ_TRY(rq_pb_put_bytes(out, 3, rq_slice_of_bytes(d->region->start)));
    RQ_TRY(rq_pb_put_bytes(out, 4, rq_slice_of_bytes(d->region->stop)));
    RQ_TRY(rq_pb_put_number(out, 5, 0));
    RQ_TRY(rq_pb_put_number(out, 6, 0));
    return rq_pb_end(out, at);
}

/* RegionSpecifier { type 1: ENCODED_REGION_NAME, value 2 } */
rq_err rq__encode_specifier(rq_buf *out, rq_slice encoded)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, 1, &at));
    RQ_TRY(rq_pb_put_number(out, 1, 2));
    RQ_TRY(rq_pb_put_bytes(out, 2, encoded));
    return rq_pb_end(out, at);
}

/* --- results ---------------------------------------------------------------------------------- */

/* A row of cells that are in the message itself and not in the cell block. Servers send cells so to
 * clients without a codec, and may send them so to others. */
static rq_err row_of_message(rq_result_view view, rq_cursor cells, rq_row_memory *memory,
                             rq_row **ret)
{
    rq_cellblock block = {0};
    rq_cell cell;
    rq_err rc;
    while ((rc = rq_result_next(&view, &cells, &cell)) == RQ_OK)
        if ((rc = rq_cellblock_append(&block, &cell)) != RQ_OK) break;
    if (rc == RQ_E_END) rc = rq_row_of_block(rq_buf_slice(&block.bytes), block.count, memory, ret);
    rq_cellblock_clear(&block);
    return rc;
}

/* The bytes of the first `count` cells of the block. Reads only the lengths of the cells;
 * rq_row_of_block checks the rest. */
static rq_err cells_of_block(rq_cursor c, uint32_t count, rq_slice *ret)
{
    const uint8_t *begin = c.ptr;
    for (uint32_t i = 0; i < count; i++) {
        size_t left = rq_cursor_left(&c);
        if (left < 4 || left - 4 < rq_get_be32(c.ptr)) return RQ_E_MALFORMED;
        c.ptr += 4 + (size_t)rq_get_be32(c.ptr);
    }
    *ret = rq_slice_of(begin, (size_t)(c.ptr - begin));
    return RQ_OK;
}

/* `behind`: where the cells of the block end. */
static rq_err row_of(const rq_op_result *result, rq_row_memory *memory, rq_cursor *behind,
                     rq_row **ret)
{
    rq_err rc;
    rq_slice block;
    *behind = result->cells;
    if (result->cursor.len > 0) return rq_row_of_cursor(result->cursor, ret);
    if (result->row.count == 0) {
        rc = row_of_message(result->row, result->cells, memory, ret);
    } else {
        RQ_TRY(cells_of_block(result->cells, result->row.count, &block));
        rc = rq_row_of_block(block, result->row.count, memory, ret);
        behind->ptr += block.len;
    }
    if (rc == RQ_OK) {
        (*ret)->exists = (*ret)->exists || result->row.exists;
        (*ret)->is_partial = result->row.partial;
        (*ret)->is_stale = result->row.stale;
    }
    return rc;
}

rq_err rq__row_of_result(const rq_op_result *result, rq_row_memory *memory, rq_row **ret)
{
    rq_cursor behind;
    return row_of(result, memory, &behind, ret);
}

rq_err rq__row_of_item(rq_op_result *item, rq_row_memory *memory, rq_row **ret)
{
    rq_cursor behind;
    RQ_TRY(row_of(item, memory, &behind, ret));
    item->row.count = 0;
    item->cells = behind;
    return RQ_OK;
}
