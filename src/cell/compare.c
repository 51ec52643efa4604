/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of cells. Every seek, every merge step and every memstore insert ends here: a point
 * read makes about twenty of these comparisons, so the usual case (two short keys that differ
 * within their row) is one inlined word-wise loop without a call.
 *
 * Invariants:
 * 1. The order is total: row, family, qualifier ascending; timestamp, type, sequence id descending.
 * 2. A cell of type MINIMUM without family and qualifier is behind everything of its row, whatever
 *    its timestamp: no qualifier can be the last one. HBASE: CellComparatorImpl.compareKeyValues.
 * 3. Only rows are special in hbase:meta; everything behind the row compares alike.
 */
#include "cell/cell.h"

/* The parts of a row of hbase:meta: "table,start key,id.encoded." */
typedef struct meta_row {
    rq_slice table;
    rq_slice start;
    rq_slice id;
    bool has_start;
} meta_row;

/* Only the start key may contain commas, so the first and the last comma separate the three parts.
 * HBASE: MetaCellComparator.compareRows. As in HBase, the id of a row with a single comma (the
 * prefix of a scan, never a region) is the whole row: this determines the results of such a scan.
 * The order stays total. */
static meta_row split_meta_row(rq_slice row)
{
    meta_row m = {.table = row};
    const uint8_t *first = row.len == 0 ? NULL : memchr(row.ptr, ',', row.len);
    if (first == NULL) return m;
    m.has_start = true;
    m.table.len = (size_t)(first - row.ptr);
    m.start = rq_slice_of(first + 1, row.len - m.table.len - 1);
    m.id = row;
    const uint8_t *last = memrchr(m.start.ptr, ',', m.start.len);
    if (last != NULL) {
        m.id = rq_slice_of(last + 1, (size_t)(row.ptr + row.len - (last + 1)));
        m.start.len = (size_t)(last - m.start.ptr);
    }
    return m;
}

static int meta_row_compare(rq_slice a, rq_slice b)
{
    meta_row x = split_meta_row(a);
    meta_row y = split_meta_row(b);
    int c = rq_slice_compare(x.table, y.table);
    if (c != 0) return c;
    if (!x.has_start || !y.has_start) return x.has_start - y.has_start;
    c = rq_slice_compare(x.start, y.start);
    return c != 0 ? c : rq_slice_compare(x.id, y.id);
}

static inline int row_compare(rq_cell_order order, const uint8_t *a, size_t a_len, const uint8_t *b,
                              size_t b_len)
{
    if (RQ_UNLIKELY(order == RQ_ORDER_META))
        return meta_row_compare(rq_slice_of(a, a_len), rq_slice_of(b, b_len));
    return rq_short_compare(a, a_len, b, b_len);
}

static inline bool is_last_on_row(const rq_cell *c)
{
    return c->type == RQ_TYPE_MINIMUM && c->family_len == 0 && c->qualifier_len == 0;
}

static inline int column_compare(const rq_cell *a, const rq_cell *b)
{
    /* Within a store the family is always the same, often even the same bytes. */
    if (a->family != b->family || a->family_len != b->family_len) {
        int c = rq_short_compare(a->family, a->family_len, b->family, b->family_len);
        if (c != 0) return c;
    }
    return rq_short_compare(a->qualifier, a->qualifier_len, b->qualifier, b->qualifier_len);
}

static inline int key_compare(rq_cell_order order, const rq_cell *a, const rq_cell *b)
{
    int c = row_compare(order, a->row, a->row_len, b->row, b->row_len);
    if (c != 0) return c;
    if (RQ_UNLIKELY(a->type == RQ_TYPE_MINIMUM || b->type == RQ_TYPE_MINIMUM)) {
        int a_last = is_last_on_row(a);
        int b_last = is_last_on_row(b);
        if (a_last != b_last) return a_last - b_last;
    }
    c = column_compare(a, b);
    if (c != 0) return c;
    if (a->timestamp != b->timestamp) return a->timestamp > b->timestamp ? -1 : 1;
    return (int)b->type - (int)a->type;
}

int rq_row_compare(rq_cell_order order, rq_slice a, rq_slice b)
{
    return row_compare(order, a.ptr, a.len, b.ptr, b.len);
}

int rq_cell_compare(rq_cell_order order, const rq_cell *a, const rq_cell *b)
{
    int c = key_compare(order, a, b);
    if (c != 0) return c;
    return (a->seqid < b->seqid) - (a->seqid > b->seqid);
}

int rq_cell_compare_key(rq_cell_order order, const rq_cell *a, const rq_cell *b)
{
    return key_compare(order, a, b);
}

int rq_cell_compare_column(const rq_cell *a, const rq_cell *b)
{
    return column_compare(a, b);
}

bool rq_cell_same_row(const rq_cell *a, const rq_cell *b)
{
    return a->row_len == b->row_len &&
           (a->row == b->row || rq_short_compare(a->row, a->row_len, b->row, b->row_len) == 0);
}

bool rq_cell_same_column(const rq_cell *a, const rq_cell *b)
{
    return a->qualifier_len == b->qualifier_len && a->family_len == b->family_len &&
           column_compare(a, b) == 0;
}

static rq_cell bound(rq_slice row, rq_slice family, rq_slice qualifier, int64_t timestamp,
                     rq_cell_type type)
{
    RQ_ASSERT(row.len <= UINT16_MAX && family.len <= UINT8_MAX && qualifier.len <= UINT32_MAX);
    return (rq_cell){
        .row = row.ptr,
        .row_len = (uint16_t)row.len,
        .family = family.ptr,
        .family_len = (uint8_t)family.len,
        .qualifier = qualifier.ptr,
        .qualifier_len = (uint32_t)qualifier.len,
        .timestamp = timestamp,
        .type = (uint8_t)type,
    };
}

rq_cell rq_cell_first_on_row(rq_slice row)
{
    return bound(row, (rq_slice){0}, (rq_slice){0}, RQ_TIMESTAMP_LATEST, RQ_TYPE_MAXIMUM);
}

rq_cell rq_cell_last_on_row(rq_slice row)
{
    return bound(row, (rq_slice){0}, (rq_slice){0}, RQ_TIMESTAMP_OLDEST, RQ_TYPE_MINIMUM);
}

rq_cell rq_cell_first_on_column(rq_slice row, rq_slice family, rq_slice qualifier)
{
    return bound(row, family, qualifier, RQ_TIMESTAMP_LATEST, RQ_TYPE_MAXIMUM);
}

rq_cell rq_cell_first_on_column_ts(rq_slice row, rq_slice family, rq_slice qualifier, int64_t ts)
{
    return bound(row, family, qualifier, ts, RQ_TYPE_MAXIMUM);
}

rq_cell rq_cell_last_on_column(rq_slice row, rq_slice family, rq_slice qualifier)
{
    return bound(row, family, qualifier, RQ_TIMESTAMP_OLDEST, RQ_TYPE_MINIMUM);
}
