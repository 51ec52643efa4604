/* SPDX-License-Identifier: Apache-2.0 */
/* Filters and comparators as HBase's messages (proto/filter.proto, proto/comparator.proto): both are
 * { class name 1, serialized 2 }, where the second field is the message of the class. For a filter that
 * cannot be made, the functions return `refused`, bytes that are no message. */
#include "rorqual/filters.h"

#include "api/api_priv.h"

#include "base/pb.h"

#include <stdlib.h>

#define PACKAGE "org.apache.hadoop.hbase.filter."
#define NO_OP 6 /* CompareType */

static const rq_bytes refused = {"\377", 1};

struct rq_filters {
    rq_arena arena;
    rq_error why;
};

rq_filters *rq_filters_new(void)
{
    return calloc(1, sizeof(rq_filters));
}

void rq_filters_free(rq_filters *f)
{
    if (f == NULL) return;
    rq_arena_clear(&f->arena);
    free(f);
}

rq_err rq_filters_error(const rq_filters *f, const char **ret_message)
{
    rq_err rc = f == NULL ? RQ_E_NO_MEMORY : f->why.code;
    if (ret_message != NULL) *ret_message = f == NULL ? rq_err_text(rc) : f->why.message;
    return rc;
}

/* --- messages --------------------------------------------------------------------------------- */

/* A message that is being written; the first error wins. */
typedef struct writer {
    rq_filters *filters;
    rq_buf buf;
    rq_err rc;
} writer;

static writer begin(rq_filters *f)
{
    return (writer){.filters = f, .rc = f == NULL ? RQ_E_NO_MEMORY : RQ_OK};
}

static void refuse(writer *w, const char *why)
{
    if (w->rc == RQ_OK) w->rc = rq_fail(&w->filters->why, RQ_E_INVALID, "%s", why);
}

static void put_number(writer *w, uint32_t field, uint64_t value)
{
    if (w->rc == RQ_OK) w->rc = rq_pb_put_number(&w->buf, field, value);
}

static void put_bytes(writer *w, uint32_t field, rq_bytes bytes)
{
    if (bytes.len > 0 && bytes.data == NULL) refuse(w, "an argument has a length but no data");
    if (w->rc == RQ_OK) w->rc = rq_pb_put_bytes(&w->buf, field, rq_slice_of_bytes(bytes));
}

/* A filter or a comparator within a message. */
static void put_part(writer *w, uint32_t field, rq_bytes part)
{
    if (part.len == 0 || part.data == refused.data)
        refuse(w, "a nested filter or comparator is invalid");
    put_bytes(w, field, part);
}

static size_t open_message(writer *w, uint32_t field)
{
    size_t at = 0;
    if (w->rc == RQ_OK) w->rc = rq_pb_begin(&w->buf, field, &at);
    return at;
}

static void close_message(writer *w, size_t at)
{
    if (w->rc == RQ_OK) w->rc = rq_pb_end(&w->buf, at);
}

/* { name 1, serialized 2 } of what was written. */
static rq_bytes end(writer *w, const char *name)
{
    rq_buf whole = {0};
    rq_bytes made = refused;
    size_t at;
    rq_err rc = w->rc;
    if (rc == RQ_OK) rc = rq_pb_begin(&whole, 1, &at);
    if (rc == RQ_OK) rc = rq_buf_printf(&whole, PACKAGE "%s", name);
    if (rc == RQ_OK) rc = rq_pb_end(&whole, at);
    if (rc == RQ_OK) rc = rq_pb_put_bytes(&whole, 2, rq_buf_slice(&w->buf));
    if (rc == RQ_OK) {
        rq_slice kept = rq_arena_copy(&w->filters->arena, rq_buf_slice(&whole));
        if (kept.ptr == NULL) rc = RQ_E_NO_MEMORY;
        if (rc == RQ_OK) made = (rq_bytes){kept.ptr, kept.len};
    }
    if (rc != RQ_OK && w->filters != NULL)
        (void)rq_fail(&w->filters->why, rc, "%s", rq_err_text(rc));
    rq_buf_clear(&whole);
    rq_buf_clear(&w->buf);
    return made;
}

static rq_bytes empty(rq_filters *f, const char *name)
{
    writer w = begin(f);
    return end(&w, name);
}

/* The message has one field of bytes. */
static rq_bytes of_bytes(rq_filters *f, const char *name, uint32_t field, rq_bytes bytes)
{
    writer w = begin(f);
    put_bytes(&w, field, bytes);
    return end(&w, name);
}

static rq_bytes of_list(rq_filters *f, const char *name, const rq_bytes *list, size_t count)
{
    writer w = begin(f);
    if (list == NULL && count > 0) refuse(&w, "the list is NULL");
    for (size_t i = 0; w.rc == RQ_OK && i < count; i++)
        put_bytes(&w, 1, list[i]);
    return end(&w, name);
}

/* --- comparators ------------------------------------------------------------------------------ */

/* ByteArrayComparable { value 1 } as field 1. */
static void put_comparable(writer *w, rq_bytes value)
{
    size_t at = open_message(w, 1);
    put_bytes(w, 1, value);
    close_message(w, at);
}

static rq_bytes comparable(rq_filters *f, const char *name, rq_bytes value)
{
    writer w = begin(f);
    put_comparable(&w, value);
    return end(&w, name);
}

rq_bytes rq_binary_comparator(rq_filters *f, rq_bytes value)
{
    return comparable(f, "BinaryComparator", value);
}

rq_bytes rq_binary_prefix_comparator(rq_filters *f, rq_bytes prefix)
{
    return comparable(f, "BinaryPrefixComparator", prefix);
}

rq_bytes rq_binary_component_comparator(rq_filters *f, rq_bytes value, uint32_t offset)
{
    writer w = begin(f);
    put_bytes(&w, 1, value);
    put_number(&w, 2, offset);
    return end(&w, "BinaryComponentComparator");
}

rq_bytes rq_bit_comparator(rq_filters *f, rq_bytes value, rq_bit_op op)
{
    writer w = begin(f);
    if (op < RQ_BIT_AND || op > RQ_BIT_XOR) refuse(&w, "unknown bit operation");
    put_comparable(&w, value);
    put_number(&w, 2, op);
    return end(&w, "BitComparator");
}

rq_bytes rq_long_comparator(rq_filters *f, int64_t value)
{
    uint8_t bytes[8];
    rq_put_be64(bytes, (uint64_t)value);
    return comparable(f, "LongComparator", rq_bytes_of(bytes, sizeof bytes));
}

/* The value is be32 scale and the unscaled number. */
rq_bytes rq_big_decimal_comparator(rq_filters *f, rq_bytes unscaled, int32_t scale)
{
    writer w = begin(f);
    uint8_t bytes[4];
    rq_put_be32(bytes, (uint32_t)scale);
    if (unscaled.len == 0 || unscaled.data == NULL) refuse(&w, "the unscaled value is empty");
    size_t at = open_message(&w, 1);
    size_t value = open_message(&w, 1);
    if (w.rc == RQ_OK) w.rc = rq_buf_append(&w.buf, bytes, sizeof bytes);
    if (w.rc == RQ_OK) w.rc = rq_buf_append(&w.buf, unscaled.data, unscaled.len);
    close_message(&w, value);
    close_message(&w, at);
    return end(&w, "BigDecimalComparator");
}

rq_bytes rq_null_comparator(rq_filters *f)
{
    return empty(f, "NullComparator");
}

rq_bytes rq_regex_comparator(rq_filters *f, rq_bytes pattern, int32_t flags)
{
    writer w = begin(f);
    put_bytes(&w, 1, pattern);
    put_number(&w, 2, (uint64_t)(int64_t)flags);
    put_bytes(&w, 3, rq_text("UTF-8"));
    put_bytes(&w, 4, rq_text("JAVA"));
    return end(&w, "RegexStringComparator");
}

rq_bytes rq_substring_comparator(rq_filters *f, rq_bytes text)
{
    return of_bytes(f, "SubstringComparator", 1, text);
}

/* --- combinations ----------------------------------------------------------------------------- */

rq_bytes rq_filter_list(rq_filters *f, rq_pass pass, const rq_bytes *filters, size_t count)
{
    writer w = begin(f);
    if (pass != RQ_PASS_ALL && pass != RQ_PASS_ONE) refuse(&w, "unknown list operator");
    if (filters == NULL && count > 0) refuse(&w, "the list is NULL");
    put_number(&w, 1, pass);
    for (size_t i = 0; w.rc == RQ_OK && i < count; i++)
        put_part(&w, 2, filters[i]);
    return end(&w, "FilterList");
}

static rq_bytes around(rq_filters *f, const char *name, rq_bytes filter)
{
    writer w = begin(f);
    put_part(&w, 1, filter);
    return end(&w, name);
}

rq_bytes rq_skip_filter(rq_filters *f, rq_bytes filter)
{
    return around(f, "SkipFilter", filter);
}

rq_bytes rq_while_match_filter(rq_filters *f, rq_bytes filter)
{
    return around(f, "WhileMatchFilter", filter);
}

/* --- comparing filters ------------------------------------------------------------------------ */

static void put_op(writer *w, uint32_t field, rq_compare op)
{
    static const uint8_t numbers[] = {
        [RQ_COMPARE_LESS] = 0,      [RQ_COMPARE_LESS_OR_EQUAL] = 1,    [RQ_COMPARE_EQUAL] = 2,
        [RQ_COMPARE_NOT_EQUAL] = 3, [RQ_COMPARE_GREATER_OR_EQUAL] = 4, [RQ_COMPARE_GREATER] = 5};
    if ((unsigned)op >= RQ_ARRAY_LEN(numbers)) {
        refuse(w, "unknown comparison operator");
        return;
    }
    put_number(w, field, numbers[op]);
}

/* CompareFilter { compare_op 1, comparator 2 } as field 1. */
static void put_compare_filter(writer *w, rq_compare op, rq_bytes comparator)
{
    size_t at = open_message(w, 1);
    put_op(w, 1, op);
    put_part(w, 2, comparator);
    close_message(w, at);
}

static rq_bytes comparing(rq_filters *f, const char *name, rq_compare op, rq_bytes comparator)
{
    writer w = begin(f);
    put_compare_filter(&w, op, comparator);
    return end(&w, name);
}

rq_bytes rq_row_key_filter(rq_filters *f, rq_compare op, rq_bytes comparator)
{
    return comparing(f, "RowFilter", op, comparator);
}

rq_bytes rq_family_filter(rq_filters *f, rq_compare op, rq_bytes comparator)
{
    return comparing(f, "FamilyFilter", op, comparator);
}

rq_bytes rq_qualifier_filter(rq_filters *f, rq_compare op, rq_bytes comparator)
{
    return comparing(f, "QualifierFilter", op, comparator);
}

rq_bytes rq_value_filter(rq_filters *f, rq_compare op, rq_bytes comparator)
{
    return comparing(f, "ValueFilter", op, comparator);
}

rq_bytes rq_dependent_column_filter(rq_filters *f, rq_bytes family, rq_bytes qualifier,
                                    bool drops_column, rq_compare op, rq_bytes comparator)
{
    writer w = begin(f);
    if (comparator.len > 0) {
        put_compare_filter(&w, op, comparator);
    } else {
        size_t at = open_message(&w, 1);
        put_number(&w, 1, NO_OP);
        close_message(&w, at);
    }
    put_bytes(&w, 2, family);
    put_bytes(&w, 3, qualifier);
    put_number(&w, 4, drops_column);
    return end(&w, "DependentColumnFilter");
}

static void put_single_column_value(writer *w, rq_bytes family, rq_bytes qualifier, rq_compare op,
                                    rq_bytes comparator, bool filter_if_missing, bool latest_only)
{
    put_bytes(w, 1, family);
    put_bytes(w, 2, qualifier);
    put_op(w, 3, op);
    put_part(w, 4, comparator);
    put_number(w, 5, filter_if_missing);
    put_number(w, 6, latest_only);
}

rq_bytes rq_single_column_value_filter(rq_filters *f, rq_bytes family, rq_bytes qualifier,
                                       rq_compare op, rq_bytes comparator, bool filter_if_missing,
                                       bool latest_only)
{
    writer w = begin(f);
    put_single_column_value(&w, family, qualifier, op, comparator, filter_if_missing, latest_only);
    return end(&w, "SingleColumnValueFilter");
}

rq_bytes rq_single_column_value_exclude_filter(rq_filters *f, rq_bytes family, rq_bytes qualifier,
                                               rq_compare op, rq_bytes comparator,
                                               bool filter_if_missing, bool latest_only)
{
    writer w = begin(f);
    size_t at = open_message(&w, 1);
    put_single_column_value(&w, family, qualifier, op, comparator, filter_if_missing, latest_only);
    close_message(&w, at);
    return end(&w, "SingleColumnValueExcludeFilter");
}

rq_bytes rq_column_value_filter(rq_filters *f, rq_bytes family, rq_bytes qualifier, rq_compare op,
                                rq_bytes comparator)
{
    writer w = begin(f);
    put_bytes(&w, 1, family);
    put_bytes(&w, 2, qualifier);
    put_op(&w, 3, op);
    put_part(&w, 4, comparator);
    return end(&w, "ColumnValueFilter");
}

/* --- rows ------------------------------------------------------------------------------------- */

rq_bytes rq_prefix_filter(rq_filters *f, rq_bytes prefix)
{
    return of_bytes(f, "PrefixFilter", 1, prefix);
}

rq_bytes rq_inclusive_stop_filter(rq_filters *f, rq_bytes stop)
{
    return of_bytes(f, "InclusiveStopFilter", 1, stop);
}

rq_bytes rq_page_filter(rq_filters *f, int64_t rows)
{
    writer w = begin(f);
    if (rows < 0) refuse(&w, "the page size is negative");
    put_number(&w, 1, (uint64_t)rows);
    return end(&w, "PageFilter");
}

/* A float is 4 bytes, little-endian. */
rq_bytes rq_random_row_filter(rq_filters *f, float chance)
{
    writer w = begin(f);
    uint32_t bits;
    memcpy(&bits, &chance, sizeof bits);
    const uint8_t field[] = {1 << 3 | 5, (uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
                             (uint8_t)(bits >> 24)};
    if (w.rc == RQ_OK) w.rc = rq_buf_append(&w.buf, field, sizeof field);
    return end(&w, "RandomRowFilter");
}

/* BytesBytesPair { key 1, mask 2 } as field 1. */
rq_bytes rq_fuzzy_row_filter(rq_filters *f, const rq_bytes *keys, const rq_bytes *masks,
                             size_t count)
{
    writer w = begin(f);
    if (count == 0 || keys == NULL || masks == NULL)
        refuse(&w, "there are no keys, or the list of keys or masks is NULL");
    for (size_t i = 0; w.rc == RQ_OK && i < count; i++) {
        if (keys[i].len != masks[i].len) refuse(&w, "a key and its mask differ in length");
        size_t at = open_message(&w, 1);
        put_bytes(&w, 1, keys[i]);
        put_bytes(&w, 2, masks[i]);
        close_message(&w, at);
    }
    return end(&w, "FuzzyRowFilter");
}

/* RowRange { start 1, inclusive 2, stop 3, inclusive 4 } as field 1. */
rq_bytes rq_multi_row_range_filter(rq_filters *f, const rq_row_range *ranges, size_t count)
{
    writer w = begin(f);
    if (count == 0 || ranges == NULL) refuse(&w, "there are no ranges, or the list is NULL");
    for (size_t i = 0; w.rc == RQ_OK && i < count; i++) {
        size_t at = open_message(&w, 1);
        put_bytes(&w, 1, ranges[i].start);
        put_number(&w, 2, !ranges[i].excludes_start);
        put_bytes(&w, 3, ranges[i].stop);
        put_number(&w, 4, ranges[i].includes_stop);
        close_message(&w, at);
    }
    return end(&w, "MultiRowRangeFilter");
}

/* --- columns and cells ------------------------------------------------------------------------ */

rq_bytes rq_column_count_get_filter(rq_filters *f, int32_t limit)
{
    writer w = begin(f);
    if (limit < 0) refuse(&w, "the limit is negative");
    put_number(&w, 1, (uint64_t)limit);
    return end(&w, "ColumnCountGetFilter");
}

rq_bytes rq_column_pagination_filter(rq_filters *f, int32_t limit, int32_t offset)
{
    writer w = begin(f);
    if (limit < 0 || offset < 0) refuse(&w, "the limit or the offset is negative");
    put_number(&w, 1, (uint64_t)limit);
    put_number(&w, 2, (uint64_t)offset);
    return end(&w, "ColumnPaginationFilter");
}

rq_bytes rq_column_pagination_from_filter(rq_filters *f, int32_t limit, rq_bytes column)
{
    writer w = begin(f);
    if (limit < 0) refuse(&w, "the limit is negative");
    put_number(&w, 1, (uint64_t)limit);
    put_bytes(&w, 3, column);
    return end(&w, "ColumnPaginationFilter");
}

rq_bytes rq_column_prefix_filter(rq_filters *f, rq_bytes prefix)
{
    return of_bytes(f, "ColumnPrefixFilter", 1, prefix);
}

rq_bytes rq_multiple_column_prefix_filter(rq_filters *f, const rq_bytes *prefixes, size_t count)
{
    return of_list(f, "MultipleColumnPrefixFilter", prefixes, count);
}

rq_bytes rq_column_range_filter(rq_filters *f, rq_bytes min, bool includes_min, rq_bytes max,
                                bool includes_max)
{
    writer w = begin(f);
    if (min.len > 0) put_bytes(&w, 1, min);
    put_number(&w, 2, includes_min);
    if (max.len > 0) put_bytes(&w, 3, max);
    put_number(&w, 4, includes_max);
    return end(&w, "ColumnRangeFilter");
}

rq_bytes rq_first_key_only_filter(rq_filters *f)
{
    return empty(f, "FirstKeyOnlyFilter");
}

rq_bytes rq_first_key_value_matching_qualifiers_filter(rq_filters *f, const rq_bytes *qualifiers,
                                                       size_t count)
{
    return of_list(f, "FirstKeyValueMatchingQualifiersFilter", qualifiers, count);
}

rq_bytes rq_key_only_filter(rq_filters *f, bool length_as_value)
{
    writer w = begin(f);
    put_number(&w, 1, length_as_value);
    return end(&w, "KeyOnlyFilter");
}

rq_bytes rq_timestamps_filter(rq_filters *f, const int64_t *timestamps, size_t count)
{
    writer w = begin(f);
    if (timestamps == NULL && count > 0) refuse(&w, "the list of timestamps is NULL");
    for (size_t i = 0; w.rc == RQ_OK && i < count; i++) {
        if (timestamps[i] < 0) refuse(&w, "a timestamp is negative");
        put_number(&w, 1, (uint64_t)timestamps[i]);
    }
    return end(&w, "TimestampsFilter");
}
