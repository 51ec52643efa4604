/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the message that a client would send from the arguments of a simple expression. HBASE:
 * createFilterFromArguments of each filter, ParseFilter's conversions, and toByteArray.
 *
 * A failed conversion has no text of its own: HBase reports the expression, and so does the
 * caller. */
#include "filter/language_make.h"

#include "filter/filter_priv.h"
#include "filter/java_regex.h"
#include "filter/java_text.h"
#include "filter/language.h"

#include "proto/comparator.pb-c.h"
#include "proto/filter.pb-c.h"

#include <stdlib.h>
#include <strings.h>

#define PACKAGE "org.apache.hadoop.hbase.filter."
#define BAD_ARGUMENT RQ_E_ILLEGAL_ARGUMENT

typedef rq__arguments arguments;

rq_err rq__language_pack(rq_arena *arena, const ProtobufCMessage *m, rq_slice *ret)
{
    size_t len = protobuf_c_message_get_packed_size(m);
    uint8_t *bytes = rq_arena_alloc(arena, len);
    if (bytes == NULL) return RQ_E_NO_MEMORY;
    *ret = rq_slice_of(bytes, protobuf_c_message_pack(m, bytes));
    return RQ_OK;
}

static ProtobufCBinaryData binary(rq_slice s)
{
    return (ProtobufCBinaryData){s.len, (uint8_t *)(uintptr_t)s.ptr};
}

/* --- Arguments -------------------------------------------------------------------------------- */
/* HBASE: ParseFilter.removeQuotesFromByteArray. */
static rq_err take_quoted(const arguments *a, size_t i, rq_slice *ret)
{
    rq_slice s = a->arg[i];
    if (s.len < 2 || s.ptr[0] != '\'' || s.ptr[s.len - 1] != '\'') return BAD_ARGUMENT;
    *ret = rq_slice_of(s.ptr + 1, s.len - 2);
    return RQ_OK;
}

static rq_err take_bytes(const arguments *a, size_t i, ProtobufCBinaryData *ret)
{
    rq_slice s;
    RQ_TRY(take_quoted(a, i, &s));
    *ret = binary(s);
    return RQ_OK;
}

/* HBASE: ParseFilter.convertByteArrayToLong; the sum wraps as in Java. */
static rq_err take_long(const arguments *a, size_t i, int64_t *ret)
{
    rq_slice s = a->arg[i];
    bool negative = s.len > 0 && s.ptr[0] == '-';
    uint64_t v = 0;
    for (size_t n = negative; n < s.len; n++) {
        if (s.ptr[n] < '0' || s.ptr[n] > '9') return BAD_ARGUMENT;
        v = v * 10 + (uint64_t)(s.ptr[n] - '0');
        if ((int64_t)v < 0) return BAD_ARGUMENT;
    }
    *ret = negative ? -(int64_t)v : (int64_t)v;
    return RQ_OK;
}

static rq_err take_int(const arguments *a, size_t i, int32_t *ret)
{
    int64_t v;
    RQ_TRY(take_long(a, i, &v));
    if (v < INT32_MIN || v > INT32_MAX) return BAD_ARGUMENT;
    *ret = (int32_t)v;
    return RQ_OK;
}

static rq_err take_bool(const arguments *a, size_t i, protobuf_c_boolean *ret)
{
    rq_slice s = a->arg[i];
    const char *text = (const char *)s.ptr;
    if (s.len == 4 && strncasecmp(text, "true", 4) == 0)
        *ret = true;
    else if (s.len == 5 && strncasecmp(text, "false", 5) == 0)
        *ret = false;
    else
        return BAD_ARGUMENT;
    return RQ_OK;
}

static rq_err take_op(const arguments *a, size_t i, Pb__CompareType *ret)
{
    static const struct {
        const char *text;
        Pb__CompareType op;
    } ops[] = {
        {"<", PB__COMPARE_TYPE__LESS},
        {"<=", PB__COMPARE_TYPE__LESS_OR_EQUAL},
        {"=", PB__COMPARE_TYPE__EQUAL},
        {"!=", PB__COMPARE_TYPE__NOT_EQUAL},
        {">=", PB__COMPARE_TYPE__GREATER_OR_EQUAL},
        {">", PB__COMPARE_TYPE__GREATER},
    };
    for (size_t n = 0; n < RQ_ARRAY_LEN(ops); n++)
        if (rq_slice_eq(a->arg[i], rq_slice_cstr(ops[n].text))) {
            *ret = ops[n].op;
            return RQ_OK;
        }
    return BAD_ARGUMENT;
}

/* --- Comparators: 'type:value' ---------------------------------------------------------------- */
static rq_err pack_plain(const arguments *a, bool prefix, rq_slice value, rq_slice *ret)
{
    Pb__ByteArrayComparable comparable = PB__BYTE_ARRAY_COMPARABLE__INIT;
    comparable.has_value = true;
    comparable.value = binary(value);
    if (prefix) {
        Pb__BinaryPrefixComparator m = PB__BINARY_PREFIX_COMPARATOR__INIT;
        m.comparable = &comparable;
        return rq__language_pack(a->arena, &m.base, ret);
    }
    Pb__BinaryComparator m = PB__BINARY_COMPARATOR__INIT;
    m.comparable = &comparable;
    return rq__language_pack(a->arena, &m.base, ret);
}

/* Decodes bytes as Java does, optionally to lower case, in the arena. */
static rq_err java_text(const arguments *a, rq_slice bytes, bool lower, rq_slice *ret)
{
    rq_buf decoded = {0};
    rq_buf lowered = {0};
    rq_err rc = rq__java_decode(RQ__UTF_8, bytes, &decoded, ret);
    if (rc == RQ_OK && lower) {
        rc = rq__java_append_lower(*ret, &lowered);
        *ret = rq_buf_slice(&lowered);
    }
    if (rc == RQ_OK) {
        *ret = rq_arena_copy(a->arena, *ret);
        if (ret->ptr == NULL) rc = RQ_E_NO_MEMORY;
    }
    rq_buf_clear(&decoded);
    rq_buf_clear(&lowered);
    return rc;
}

static rq_err pack_regex(const arguments *a, int32_t flags, rq_slice value, rq_slice *ret)
{
    Pb__RegexStringComparator m = PB__REGEX_STRING_COMPARATOR__INIT;
    rq_slice pattern;
    RQ_TRY(java_text(a, value, false, &pattern));
    m.pattern = binary(pattern);
    m.pattern_flags = flags;
    m.charset = (char *)(uintptr_t) "UTF-8";
    m.engine = (char *)(uintptr_t) "JAVA";
    return rq__language_pack(a->arena, &m.base, ret);
}

static rq_err pack_substring(const arguments *a, rq_slice value, rq_slice *ret)
{
    Pb__SubstringComparator m = PB__SUBSTRING_COMPARATOR__INIT;
    rq_slice lower;
    RQ_TRY(java_text(a, value, true, &lower));
    m.substr = binary(lower);
    return rq__language_pack(a->arena, &m.base, ret);
}

/* An invalid pattern is refused here, as by HBase's parser, and not later by the server. */
static rq_err check_comparator(const Pb__Comparator *m)
{
    rq_arena scratch = {0};
    rq_comparator *c;
    rq_err rc = rq_comparator_parse(rq_slice_cstr(m->name),
                                    rq__slice_of_pb(m->serialized_comparator), &scratch, &c, NULL);
    rq_arena_clear(&scratch);
    return rc == RQ_OK || rc == RQ_E_NO_MEMORY ? rc : BAD_ARGUMENT;
}

/* *is_text: its result is only equal or not, so it requires one of those two operators. */
static rq_err take_comparator(const arguments *a, size_t i, Pb__Comparator **ret, bool *is_text)
{
    static const char binary_class[] = PACKAGE "BinaryComparator";
    static const char prefix_class[] = PACKAGE "BinaryPrefixComparator";
    static const char regex_class[] = PACKAGE "RegexStringComparator";
    static const char substring_class[] = PACKAGE "SubstringComparator";
    rq_slice s;
    RQ_TRY(take_quoted(a, i, &s));
    const uint8_t *colon = s.len == 0 ? NULL : memchr(s.ptr, ':', s.len);
    if (colon == NULL) return BAD_ARGUMENT;
    rq_slice type = rq_slice_of(s.ptr, (size_t)(colon - s.ptr));
    rq_slice value = rq_slice_of(colon + 1, s.len - type.len - 1);
    Pb__Comparator *m = rq_arena_alloc(a->arena, sizeof *m);
    if (m == NULL) return RQ_E_NO_MEMORY;
    *m = (Pb__Comparator)PB__COMPARATOR__INIT;
    m->has_serialized_comparator = true;
    rq_slice message;
    if (rq_slice_eq(type, RQ_SLICE_LIT("binary"))) {
        m->name = (char *)(uintptr_t)binary_class;
        RQ_TRY(pack_plain(a, false, value, &message));
    } else if (rq_slice_eq(type, RQ_SLICE_LIT("binaryprefix"))) {
        m->name = (char *)(uintptr_t)prefix_class;
        RQ_TRY(pack_plain(a, true, value, &message));
    } else if (rq_slice_eq(type, RQ_SLICE_LIT("regexstring"))) {
        m->name = (char *)(uintptr_t)regex_class;
        RQ_TRY(pack_regex(a, RQ__REGEX_DOTALL, value, &message));
    } else if (rq_slice_eq(type, RQ_SLICE_LIT("regexstringnocase"))) {
        m->name = (char *)(uintptr_t)regex_class;
        RQ_TRY(pack_regex(a, RQ__REGEX_DOTALL | RQ__REGEX_CASE_INSENSITIVE, value, &message));
    } else if (rq_slice_eq(type, RQ_SLICE_LIT("substring"))) {
        m->name = (char *)(uintptr_t)substring_class;
        RQ_TRY(pack_substring(a, value, &message));
    } else {
        return BAD_ARGUMENT;
    }
    *is_text = m->name == regex_class || m->name == substring_class;
    m->serialized_comparator = binary(message);
    *ret = m;
    return m->name == regex_class ? check_comparator(m) : RQ_OK;
}

/* An operator and a comparator that go together. */
static rq_err take_comparison(const arguments *a, size_t i, Pb__CompareType *ret_op,
                              Pb__Comparator **ret)
{
    bool is_text;
    RQ_TRY(take_op(a, i, ret_op));
    RQ_TRY(take_comparator(a, i + 1, ret, &is_text));
    bool equality = *ret_op == PB__COMPARE_TYPE__EQUAL || *ret_op == PB__COMPARE_TYPE__NOT_EQUAL;
    return is_text && !equality ? BAD_ARGUMENT : RQ_OK;
}

/* --- Makers: HBASE: createFilterFromArguments of each class ----------------------------------- */
static rq_err make_column_count_get(const arguments *a, rq_slice *ret)
{
    Pb__ColumnCountGetFilter m = PB__COLUMN_COUNT_GET_FILTER__INIT;
    if (a->count != 1) return BAD_ARGUMENT;
    RQ_TRY(take_int(a, 0, &m.limit));
    return m.limit < 0 ? BAD_ARGUMENT : rq__language_pack(a->arena, &m.base, ret);
}

static rq_err make_column_pagination(const arguments *a, rq_slice *ret)
{
    Pb__ColumnPaginationFilter m = PB__COLUMN_PAGINATION_FILTER__INIT;
    if (a->count != 2) return BAD_ARGUMENT;
    RQ_TRY(take_int(a, 0, &m.limit));
    RQ_TRY(take_int(a, 1, &m.offset));
    m.has_offset = true;
    return m.limit < 0 || m.offset < 0 ? BAD_ARGUMENT : rq__language_pack(a->arena, &m.base, ret);
}

static rq_err make_column_prefix(const arguments *a, rq_slice *ret)
{
    Pb__ColumnPrefixFilter m = PB__COLUMN_PREFIX_FILTER__INIT;
    if (a->count != 1) return BAD_ARGUMENT;
    RQ_TRY(take_bytes(a, 0, &m.prefix));
    return rq__language_pack(a->arena, &m.base, ret);
}

static rq_err make_column_range(const arguments *a, rq_slice *ret)
{
    Pb__ColumnRangeFilter m = PB__COLUMN_RANGE_FILTER__INIT;
    if (a->count != 4) return BAD_ARGUMENT;
    RQ_TRY(take_bytes(a, 0, &m.min_column));
    RQ_TRY(take_bool(a, 1, &m.min_column_inclusive));
    RQ_TRY(take_bytes(a, 2, &m.max_column));
    RQ_TRY(take_bool(a, 3, &m.max_column_inclusive));
    m.has_min_column = m.min_column.len > 0;
    m.has_max_column = m.max_column.len > 0;
    m.has_min_column_inclusive = m.has_max_column_inclusive = true;
    return rq__language_pack(a->arena, &m.base, ret);
}

static rq_err make_column_value(const arguments *a, rq_slice *ret)
{
    Pb__ColumnValueFilter m = PB__COLUMN_VALUE_FILTER__INIT;
    if (a->count != 4) return BAD_ARGUMENT;
    RQ_TRY(take_bytes(a, 0, &m.family));
    RQ_TRY(take_bytes(a, 1, &m.qualifier));
    RQ_TRY(take_comparison(a, 2, &m.compare_op, &m.comparator));
    return rq__language_pack(a->arena, &m.base, ret);
}

static rq_err make_dependent_column(const arguments *a, rq_slice *ret)
{
    Pb__DependentColumnFilter m = PB__DEPENDENT_COLUMN_FILTER__INIT;
    Pb__CompareFilter compare = PB__COMPARE_FILTER__INIT;
    if (a->count != 2 && a->count != 3 && a->count != 5) return BAD_ARGUMENT;
    RQ_TRY(take_bytes(a, 0, &m.column_family));
    RQ_TRY(take_bytes(a, 1, &m.column_qualifier));
    if (a->count > 2) RQ_TRY(take_bool(a, 2, &m.drop_dependent_column));
    compare.compare_op = PB__COMPARE_TYPE__NO_OP;
    if (a->count == 5) {
        bool is_text;
        RQ_TRY(take_op(a, 3, &compare.compare_op));
        RQ_TRY(take_comparator(a, 4, &compare.comparator, &is_text));
    }
    m.compare_filter = &compare;
    m.has_column_family = m.has_column_qualifier = m.has_drop_dependent_column = true;
    return rq__language_pack(a->arena, &m.base, ret);
}

static rq_err take_compare_filter(const arguments *a, Pb__CompareFilter *ret)
{
    *ret = (Pb__CompareFilter)PB__COMPARE_FILTER__INIT;
    if (a->count != 2) return BAD_ARGUMENT;
    return take_comparison(a, 0, &ret->compare_op, &ret->comparator);
}

/* RowFilter, FamilyFilter, QualifierFilter and ValueFilter are one message on the wire. */
static rq_err make_compare(const arguments *a, rq_slice *ret)
{
    Pb__RowFilter m = PB__ROW_FILTER__INIT;
    Pb__CompareFilter compare;
    RQ_TRY(take_compare_filter(a, &compare));
    m.compare_filter = &compare;
    return rq__language_pack(a->arena, &m.base, ret);
}

static rq_err make_first_key_only(const arguments *a, rq_slice *ret)
{
    Pb__FirstKeyOnlyFilter m = PB__FIRST_KEY_ONLY_FILTER__INIT;
    return a->count != 0 ? BAD_ARGUMENT : rq__language_pack(a->arena, &m.base, ret);
}

static rq_err make_inclusive_stop(const arguments *a, rq_slice *ret)
{
    Pb__InclusiveStopFilter m = PB__INCLUSIVE_STOP_FILTER__INIT;
    if (a->count != 1) return BAD_ARGUMENT;
    m.has_stop_row_key = true;
    RQ_TRY(take_bytes(a, 0, &m.stop_row_key));
    return rq__language_pack(a->arena, &m.base, ret);
}

static rq_err make_key_only(const arguments *a, rq_slice *ret)
{
    Pb__KeyOnlyFilter m = PB__KEY_ONLY_FILTER__INIT;
    if (a->count > 1) return BAD_ARGUMENT;
    if (a->count == 1) RQ_TRY(take_bool(a, 0, &m.len_as_val));
    return rq__language_pack(a->arena, &m.base, ret);
}

static int by_bytes(const void *x, const void *y)
{
    const ProtobufCBinaryData *a = x;
    const ProtobufCBinaryData *b = y;
    return rq_bytes_compare(a->data, a->len, b->data, b->len);
}

static rq_err make_multiple_column_prefix(const arguments *a, rq_slice *ret)
{
    Pb__MultipleColumnPrefixFilter m = PB__MULTIPLE_COLUMN_PREFIX_FILTER__INIT;
    m.sorted_prefixes = rq_arena_calloc(a->arena, a->count, sizeof *m.sorted_prefixes);
    if (m.sorted_prefixes == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < a->count; i++)
        RQ_TRY(take_bytes(a, i, &m.sorted_prefixes[i]));
    if (a->count > 1) qsort(m.sorted_prefixes, a->count, sizeof *m.sorted_prefixes, by_bytes);
    for (size_t i = 1; i < a->count; i++)
        if (by_bytes(&m.sorted_prefixes[i - 1], &m.sorted_prefixes[i]) == 0) return BAD_ARGUMENT;
    m.n_sorted_prefixes = a->count;
    return rq__language_pack(a->arena, &m.base, ret);
}

static rq_err make_page(const arguments *a, rq_slice *ret)
{
    Pb__PageFilter m = PB__PAGE_FILTER__INIT;
    if (a->count != 1) return BAD_ARGUMENT;
    RQ_TRY(take_long(a, 0, &m.page_size));
    return m.page_size < 0 ? BAD_ARGUMENT : rq__language_pack(a->arena, &m.base, ret);
}

static rq_err make_prefix(const arguments *a, rq_slice *ret)
{
    Pb__PrefixFilter m = PB__PREFIX_FILTER__INIT;
    if (a->count != 1) return BAD_ARGUMENT;
    m.has_prefix = true;
    RQ_TRY(take_bytes(a, 0, &m.prefix));
    return rq__language_pack(a->arena, &m.base, ret);
}

static rq_err take_single_column_value(const arguments *a, Pb__SingleColumnValueFilter *ret)
{
    *ret = (Pb__SingleColumnValueFilter)PB__SINGLE_COLUMN_VALUE_FILTER__INIT;
    if (a->count != 4 && a->count != 6) return BAD_ARGUMENT;
    RQ_TRY(take_bytes(a, 0, &ret->column_family));
    RQ_TRY(take_bytes(a, 1, &ret->column_qualifier));
    RQ_TRY(take_comparison(a, 2, &ret->compare_op, &ret->comparator));
    ret->latest_version_only = true;
    if (a->count == 6) {
        RQ_TRY(take_bool(a, 4, &ret->filter_if_missing));
        RQ_TRY(take_bool(a, 5, &ret->latest_version_only));
    }
    ret->has_column_family = ret->has_column_qualifier = true;
    ret->has_filter_if_missing = ret->has_latest_version_only = true;
    return RQ_OK;
}

static rq_err make_single_column_value(const arguments *a, rq_slice *ret)
{
    Pb__SingleColumnValueFilter m;
    RQ_TRY(take_single_column_value(a, &m));
    return rq__language_pack(a->arena, &m.base, ret);
}

static rq_err make_single_column_value_exclude(const arguments *a, rq_slice *ret)
{
    Pb__SingleColumnValueExcludeFilter m = PB__SINGLE_COLUMN_VALUE_EXCLUDE_FILTER__INIT;
    Pb__SingleColumnValueFilter inner;
    RQ_TRY(take_single_column_value(a, &inner));
    m.single_column_value_filter = &inner;
    return rq__language_pack(a->arena, &m.base, ret);
}

static int by_number(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x;
    int64_t b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

static rq_err make_timestamps(const arguments *a, rq_slice *ret)
{
    Pb__TimestampsFilter m = PB__TIMESTAMPS_FILTER__INIT;
    m.timestamps = rq_arena_calloc(a->arena, a->count, sizeof *m.timestamps);
    if (m.timestamps == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < a->count; i++) {
        RQ_TRY(take_long(a, i, &m.timestamps[i]));
        if (m.timestamps[i] < 0) return BAD_ARGUMENT;
    }
    if (a->count > 1) qsort(m.timestamps, a->count, sizeof *m.timestamps, by_number);
    for (size_t i = 0; i < a->count; i++)
        if (m.n_timestamps == 0 || m.timestamps[m.n_timestamps - 1] != m.timestamps[i])
            m.timestamps[m.n_timestamps++] = m.timestamps[i];
    m.has_can_hint = true;
    return rq__language_pack(a->arena, &m.base, ret);
}

static const struct {
    const char *name;
    rq_err (*make)(const arguments *a, rq_slice *ret);
} makers[] = {
    {"ColumnCountGetFilter", make_column_count_get},
    {"ColumnPaginationFilter", make_column_pagination},
    {"ColumnPrefixFilter", make_column_prefix},
    {"ColumnRangeFilter", make_column_range},
    {"ColumnValueFilter", make_column_value},
    {"DependentColumnFilter", make_dependent_column},
    {"FamilyFilter", make_compare},
    {"FirstKeyOnlyFilter", make_first_key_only},
    {"InclusiveStopFilter", make_inclusive_stop},
    {"KeyOnlyFilter", make_key_only},
    {"MultipleColumnPrefixFilter", make_multiple_column_prefix},
    {"PageFilter", make_page},
    {"PrefixFilter", make_prefix},
    {"QualifierFilter", make_compare},
    {"RowFilter", make_compare},
    {"SingleColumnValueExcludeFilter", make_single_column_value_exclude},
    {"SingleColumnValueFilter", make_single_column_value},
    {"TimestampsFilter", make_timestamps},
    {"ValueFilter", make_compare},
};

rq_err rq__language_make(rq_slice name, const rq__arguments *a, const char **ret_java_class,
                         rq_slice *ret_message)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(makers); i++) {
        if (!rq_slice_eq(name, rq_slice_cstr(makers[i].name))) continue;
        *ret_java_class = rq_arena_printf(a->arena, PACKAGE "%s", makers[i].name);
        return *ret_java_class == NULL ? RQ_E_NO_MEMORY : makers[i].make(a, ret_message);
    }
    return RQ_E_NOT_FOUND;
}
