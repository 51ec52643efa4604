/* SPDX-License-Identifier: Apache-2.0 */
/* Random filters as the client serializes them (proto/filter.proto, comparator.proto). */
#include "read_run.h"

#include <stdio.h>

static void put_field(rq_buf *b, unsigned field, rq_slice bytes)
{
    RQ_ASSERT(rq_buf_append_varint(b, field << 3 | 2) == RQ_OK);
    RQ_ASSERT(rq_buf_append_varint(b, bytes.len) == RQ_OK);
    RQ_ASSERT(rq_buf_append(b, bytes.ptr, bytes.len) == RQ_OK);
}

static void put_number(rq_buf *b, unsigned field, uint64_t n)
{
    RQ_ASSERT(rq_buf_append_varint(b, field << 3) == RQ_OK);
    RQ_ASSERT(rq_buf_append_varint(b, n) == RQ_OK);
}

#define FILTER(x) "org.apache.hadoop.hbase.filter." x

/* Adds an EQUAL, LESS … comparison with a BinaryComparator, as in CompareFilter. */
static void put_comparator(rq_buf *b, unsigned field, rq_slice value)
{
    rq_buf byte_array = {0}; /* ByteArrayComparable */
    rq_buf binary = {0};     /* BinaryComparator */
    rq_buf comparator = {0};
    put_field(&byte_array, 1, value);
    put_field(&binary, 1, rq_buf_slice(&byte_array));
    put_field(&comparator, 1, rq_slice_cstr(FILTER("BinaryComparator")));
    put_field(&comparator, 2, rq_buf_slice(&binary));
    put_field(b, field, rq_buf_slice(&comparator));
    rq_buf_clear(&byte_array);
    rq_buf_clear(&binary);
    rq_buf_clear(&comparator);
}

/* A CompareType; in runs of many rows mostly EQUAL, so that most rows are excluded. */
static uint64_t make_op(run *r)
{
    return r->many_rows && chance(r, 60) ? 2 : below(r, 6);
}

static void put_compare_filter(run *r, rq_buf *b, rq_slice value)
{
    rq_buf compare = {0};
    put_number(&compare, 1, make_op(r));
    put_comparator(&compare, 2, value);
    put_field(b, 1, rq_buf_slice(&compare));
    rq_buf_clear(&compare);
}

static void put_filter(run *r, rq_buf *b, unsigned field, unsigned depth)
{
    filter_bytes inner = {0};
    rq_buf message = {0};
    run_make_filter(r, &inner, depth + 1);
    put_field(&message, 1, rq_slice_cstr(inner.name));
    put_field(&message, 2, rq_buf_slice(&inner.pb));
    put_field(b, field, rq_buf_slice(&message));
    rq_buf_clear(&inner.pb);
    rq_buf_clear(&message);
}

void run_make_filter(run *r, filter_bytes *f, unsigned depth)
{
    rq_buf *b = &f->pb;
    uint64_t kind = below(r, depth < 2 ? 24 : 20);
    if (r->many_rows && chance(r, 60)) kind = 11 + below(r, 6);
    /* Hints of these filters are not rows in hbase:meta's order. */
    if (r->order == RQ_ORDER_META && (kind == 17 || kind == 18)) kind = 0;
    switch (kind) {
    case 0:
        f->name = FILTER("FirstKeyOnlyFilter");
        break;
    case 1:
        f->name = FILTER("KeyOnlyFilter");
        put_number(b, 1, below(r, 2));
        break;
    case 2:
        f->name = FILTER("PrefixFilter");
        if (chance(r, 50))
            put_field(b, 1, rq_slice_of("ab", 1));
        else
            put_field(b, 1, run_row(r));
        break;
    case 3:
        f->name = FILTER("ColumnPrefixFilter");
        put_field(b, 1, rq_slice_of("bb", 1 + below(r, 2)));
        break;
    case 4:
        f->name = FILTER("PageFilter");
        put_number(b, 1, 1 + below(r, 4));
        break;
    case 5:
        f->name = FILTER("ColumnCountGetFilter");
        put_number(b, 1, 1 + below(r, 4));
        break;
    case 6:
        f->name = FILTER("ColumnPaginationFilter");
        put_number(b, 1, 1 + below(r, 3));
        if (chance(r, 50))
            put_number(b, 2, below(r, 3));
        else
            put_field(b, 3, run_qualifier(r));
        break;
    case 7:
        f->name = FILTER("TimestampsFilter");
        for (uint64_t n = 1 + below(r, 4); n > 0; n--)
            put_number(b, 1, (uint64_t)run_ts(r));
        break;
    case 8:
        f->name = FILTER("InclusiveStopFilter");
        put_field(b, 1, run_row(r));
        break;
    case 9:
        f->name = FILTER("MultipleColumnPrefixFilter");
        put_field(b, 1, RQ_SLICE_LIT("a"));
        put_field(b, 1, RQ_SLICE_LIT("bb"));
        break;
    case 10:
        f->name = FILTER("ColumnRangeFilter");
        put_field(b, 1, RQ_SLICE_LIT("a"));
        put_number(b, 2, below(r, 2));
        put_field(b, 3, run_qualifier(r));
        put_number(b, 4, below(r, 2));
        break;
    case 11:
        f->name = FILTER("QualifierFilter");
        put_compare_filter(r, b, run_qualifier(r));
        break;
    case 12:
        f->name = FILTER("RowFilter");
        put_compare_filter(r, b, run_row(r));
        break;
    case 13: {
        char value[24];
        f->name = FILTER("ValueFilter");
        snprintf(value, sizeof(value), "%llu", (unsigned long long)below(r, r->seqid + 1));
        put_compare_filter(r, b, rq_slice_cstr(value));
        break;
    }
    case 14:
    case 15: {
        char value[24];
        f->name = FILTER("SingleColumnValueFilter");
        snprintf(value, sizeof(value), "%llu", (unsigned long long)below(r, r->seqid + 1));
        put_field(b, 1, r->families[below(r, r->family_count)].name);
        put_field(b, 2, run_qualifier(r));
        put_number(b, 3, make_op(r));
        put_comparator(b, 4, rq_slice_cstr(value));
        put_number(b, 5, below(r, 2));
        put_number(b, 6, below(r, 2));
        break;
    }
    case 16: {
        rq_buf inner = {0};
        char value[24];
        f->name = FILTER("SingleColumnValueExcludeFilter");
        snprintf(value, sizeof(value), "%llu", (unsigned long long)below(r, r->seqid + 1));
        put_field(&inner, 1, r->families[below(r, r->family_count)].name);
        put_field(&inner, 2, run_qualifier(r));
        put_number(&inner, 3, make_op(r));
        put_comparator(&inner, 4, rq_slice_cstr(value));
        put_number(&inner, 5, below(r, 2));
        put_field(b, 1, rq_buf_slice(&inner));
        rq_buf_clear(&inner);
        break;
    }
    case 17: {
        rq_buf pair = {0};
        f->name = FILTER("FuzzyRowFilter");
        put_field(&pair, 1, rq_slice_of("d1", 2));
        put_field(&pair, 2, chance(r, 50) ? rq_slice_of("\0\1", 2) : rq_slice_of("\1\0", 2));
        put_field(b, 1, rq_buf_slice(&pair));
        rq_buf_clear(&pair);
        break;
    }
    case 18: {
        rq_buf range = {0};
        f->name = FILTER("MultiRowRangeFilter");
        put_field(&range, 1, RQ_SLICE_LIT("aa"));
        put_number(&range, 2, below(r, 2));
        put_field(&range, 3, RQ_SLICE_LIT("b"));
        put_number(&range, 4, below(r, 2));
        put_field(b, 1, rq_buf_slice(&range));
        rq_buf_reset(&range);
        put_field(&range, 1, RQ_SLICE_LIT("d0"));
        put_number(&range, 2, 1);
        put_field(&range, 3, RQ_SLICE_LIT("d1"));
        put_number(&range, 4, below(r, 2));
        put_field(b, 1, rq_buf_slice(&range));
        rq_buf_clear(&range);
        break;
    }
    case 19: {
        rq_buf compare = {0};
        char value[24];
        f->name = FILTER("DependentColumnFilter");
        snprintf(value, sizeof(value), "%llu", (unsigned long long)below(r, r->seqid + 1));
        put_number(&compare, 1, make_op(r));
        put_comparator(&compare, 2, rq_slice_cstr(value));
        put_field(b, 1, rq_buf_slice(&compare));
        put_field(b, 2, r->families[below(r, r->family_count)].name);
        put_field(b, 3, run_qualifier(r));
        put_number(b, 4, below(r, 2));
        rq_buf_clear(&compare);
        break;
    }
    case 20:
        f->name = FILTER("SkipFilter");
        put_filter(r, b, 1, depth);
        break;
    case 21:
        f->name = FILTER("WhileMatchFilter");
        put_filter(r, b, 1, depth);
        break;
    default:
        f->name = FILTER("FilterList");
        put_number(b, 1, 1 + below(r, 2));
        for (uint64_t n = 1 + below(r, 3); n > 0; n--)
            put_filter(r, b, 2, depth);
        break;
    }
}
