/* SPDX-License-Identifier: Apache-2.0 */
/* Cases that the replays against HBase do not reach: limits, random filters, odd rows, and failing
 * allocations at every place. */
#include "filter/comparator.h"
#include "filter/filter.h"
#include "filter/language.h"

#include "proto/comparator.pb-c.h"
#include "proto/filter.pb-c.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../base/failing_memory.h"

#define PACKAGE "org.apache.hadoop.hbase.filter."

/* --- Allocations that fail -------------------------------------------------------------------- */
static long allocations_left = -1; /* -1: no limit */
static long allocations;

bool allocation_fails(void)
{
    allocations++;
    if (allocations_left < 0) return false;
    if (allocations_left == 0) return true;
    allocations_left--;
    return false;
}

/* --- Helpers ---------------------------------------------------------------------------------- */
static rq_err compile(rq_arena *arena, const char *text, rq_filter **ret)
{
    rq_slice name;
    rq_slice message;
    RQ_TRY(rq_filter_language_compile(rq_slice_cstr(text), arena, &name, &message, NULL));
    return rq_filter_parse(name, message, arena, ret, NULL);
}

static rq_filter *filter_of(rq_arena *arena, const char *text)
{
    rq_filter *f = NULL;
    assert_int_equal(compile(arena, text, &f), RQ_OK);
    return f;
}

static rq_slice packed(rq_arena *arena, const ProtobufCMessage *m)
{
    uint8_t *bytes = rq_arena_alloc(arena, protobuf_c_message_get_packed_size(m));
    assert_non_null(bytes);
    return rq_slice_of(bytes, protobuf_c_message_pack(m, bytes));
}

static rq_cell cell_of(const char *row, const char *qualifier, int64_t ts, const char *value)
{
    rq_cell c = rq_cell_first_on_column_ts(rq_slice_cstr(row), RQ_SLICE_LIT("f"),
                                           rq_slice_cstr(qualifier), ts);
    c.type = RQ_TYPE_PUT;
    c.value = (const uint8_t *)value;
    c.value_len = (uint32_t)strlen(value);
    return c;
}

static rq_filter_code ask(rq_filter *f, const rq_cell *c)
{
    rq_filter_code code = RQ_FILTER_SKIP;
    assert_int_equal(rq_filter_cell(f, c, &code, NULL), RQ_OK);
    return code;
}

static int compare(rq_comparator *c, const char *text)
{
    int result = 0;
    assert_int_equal(rq_comparator_compare(c, rq_slice_cstr(text), &result, NULL), RQ_OK);
    return result;
}

/* --- Tests ------------------------------------------------------------------------------------ */
/* Parses and runs filters that keep state of every kind. */
static rq_err exercise(void)
{
    static const char text[] =
        "(PrefixFilter('a') OR SingleColumnValueFilter('f','b',=,'substring:Xy',true,false)) AND "
        "(DependentColumnFilter('f','a') OR ValueFilter(=,'regexstringnocase:[a-c&&[^b]]+\xff') OR "
        "ColumnPrefixFilter('b')) AND MultipleColumnPrefixFilter('a','b') OR TimestampsFilter(3)";
    const rq_cell cells[] = {cell_of("ab", "a", 3, "xYz"),
                             cell_of("ab", "b", 2,
                                     "\xff"
                                     "C"),
                             cell_of("b", "a", 3, "v"), cell_of("b", "c", 1, "w")};
    rq_arena arena = {0};
    rq_filter *f;
    rq_err rc = compile(&arena, text, &f);
    for (size_t i = 0; rc == RQ_OK && i < RQ_ARRAY_LEN(cells); i++) {
        bool out;
        if (i % 2 == 0) rc = rq_filter_row_key(f, rq_cell_row(&cells[i]), &out, NULL);
        rq_filter_code code = RQ_FILTER_SKIP;
        if (rc == RQ_OK) rc = rq_filter_cell(f, &cells[i], &code, NULL);
        rq_cell hint;
        bool has;
        if (rc == RQ_OK) rc = rq_filter_next_cell_hint(f, &cells[i], &hint, &has);
        bool keep = true;
        if (rc == RQ_OK && i % 2 == 1) {
            (void)rq_filter_row_done(f, &cells[i], 1, &keep);
            rq_filter_reset(f);
        }
    }
    rq_arena_clear(&arena);
    return rc;
}

static void each_failed_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    assert_int_equal(exercise(), RQ_OK); /* the process's first pattern loads PCRE2 */
    allocations = 0;
    assert_int_equal(exercise(), RQ_OK);
    long needed = allocations;
    assert_true(needed > 10);
    for (long n = 0; n < needed; n++) {
        allocations_left = n;
        rq_err rc = exercise();
        allocations_left = -1;
        assert_int_equal(rc, RQ_E_NO_MEMORY);
    }
    assert_int_equal(exercise(), RQ_OK);
}

static void regex_without_end_is_stopped(void **state)
{
    (void)state;
    rq_arena arena = {0};
    rq_filter *f = filter_of(&arena, "ValueFilter(=,'regexstring:^(a|aa)+(b|c)\\1$')");
    rq_cell c =
        cell_of("r", "q", 1, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    rq_filter_code code;
    rq_error why = {0};
    assert_int_equal(rq_filter_cell(f, &c, &code, &why), RQ_E_DO_NOT_RETRY);
    assert_non_null(strstr(why.message, "limit"));
    rq_cell fine = cell_of("r", "q", 1, "aaaba");
    assert_int_equal(ask(f, &fine), RQ_FILTER_INCLUDE);
    rq_arena_clear(&arena);
}

static void random_rows_come_as_often_as_asked(void **state)
{
    (void)state;
    rq_arena arena = {0};
    Pb__RandomRowFilter m = PB__RANDOM_ROW_FILTER__INIT;
    m.chance = 0.3f;
    rq_filter *f;
    assert_int_equal(rq_filter_parse(RQ_SLICE_LIT(PACKAGE "RandomRowFilter"),
                                     packed(&arena, &m.base), &arena, &f, NULL),
                     RQ_OK);
    char drawn[2][1001] = {"", ""};
    for (size_t round = 0; round < 2; round++) {
        rq_filter_set_seed(f, 42 + round);
        size_t in = 0;
        for (size_t i = 0; i < 1000; i++) {
            bool out;
            assert_int_equal(rq_filter_row_key(f, RQ_SLICE_LIT("r"), &out, NULL), RQ_OK);
            drawn[round][i] = out ? '0' : '1';
            in += !out;
            assert_int_equal(rq_filter_row(f), out);
            rq_filter_reset(f);
        }
        assert_in_range(in, 220, 380);
    }
    assert_string_not_equal(drawn[0], drawn[1]);
    rq_arena_clear(&arena);
}

static void component_ends_where_the_bytes_do(void **state)
{
    (void)state;
    rq_arena arena = {0};
    Pb__BinaryComponentComparator m = PB__BINARY_COMPONENT_COMPARATOR__INIT;
    uint8_t value[] = "bc";
    m.value.data = value;
    m.value.len = 2;
    m.offset = 1;
    rq_comparator *c;
    assert_int_equal(rq_comparator_parse(RQ_SLICE_LIT(PACKAGE "BinaryComponentComparator"),
                                         packed(&arena, &m.base), &arena, &c, NULL),
                     RQ_OK);
    assert_int_equal(compare(c, "abcd"), 0);
    assert_true(compare(c, "ab") > 0);
    assert_true(compare(c, "a") > 0);
    assert_true(compare(c, "") > 0);
    assert_true(compare(c, "ac") < 0);
    rq_arena_clear(&arena);
}

static void binary_comparator_without_message_compares_bytes(void **state)
{
    (void)state;
    rq_arena arena = {0};
    rq_comparator *c;
    assert_int_equal(rq_comparator_new_binary(RQ_SLICE_LIT("b"), &arena, &c), RQ_OK);
    assert_true(compare(c, "a") > 0);
    assert_int_equal(compare(c, "b"), 0);
    assert_true(compare(c, "c") < 0);
    assert_false(rq_comparator_is_null(c));
    assert_true(rq_slice_eq(rq_comparator_value(c), RQ_SLICE_LIT("b")));
    /* Both functions interpret the same result of a comparison. */
    assert_false(rq__compare_op_excludes(RQ_LESS, compare(c, "a")));
    assert_true(rq_compare_op_check(RQ_LESS, compare(c, "c")));
    rq_arena_clear(&arena);
}

static void border_longer_than_any_row_is_sought_in_front_of(void **state)
{
    (void)state;
    rq_arena arena = {0};
    size_t len = 100000;
    uint8_t *border = rq_arena_alloc(&arena, len);
    assert_non_null(border);
    memset(border, 'x', len);
    Pb__RowRange range = PB__ROW_RANGE__INIT;
    Pb__RowRange *ranges[] = {&range};
    Pb__MultiRowRangeFilter m = PB__MULTI_ROW_RANGE_FILTER__INIT;
    range.has_start_row = true;
    range.start_row.data = border;
    range.start_row.len = len;
    m.n_row_range_list = 1;
    m.row_range_list = ranges;
    rq_filter *f;
    assert_int_equal(rq_filter_parse(RQ_SLICE_LIT(PACKAGE "MultiRowRangeFilter"),
                                     packed(&arena, &m.base), &arena, &f, NULL),
                     RQ_OK);
    rq_cell c = cell_of("a", "q", 1, "");
    bool out;
    assert_int_equal(rq_filter_row_key(f, rq_cell_row(&c), &out, NULL), RQ_OK);
    assert_int_equal(ask(f, &c), RQ_FILTER_SEEK_NEXT_USING_HINT);
    rq_cell hint;
    bool has;
    assert_int_equal(rq_filter_next_cell_hint(f, &c, &hint, &has), RQ_OK);
    assert_true(has);
    assert_int_equal(hint.row_len, RQ_ROW_LEN_MAX);
    rq_arena_clear(&arena);
}

static void too_many_bytes_are_refused(void **state)
{
    (void)state;
    rq_arena arena = {0};
    size_t pairs = 2000000; /* four bytes each on the wire, about sixty when decoded */
    rq_buf message = {0};
    for (size_t i = 0; i < pairs; i++)
        assert_int_equal(rq_buf_append(&message, "\x0a\x02\x10\x00", 4), RQ_OK);
    rq_filter *f;
    rq_error why = {0};
    assert_int_equal(rq_filter_parse(RQ_SLICE_LIT(PACKAGE "MultiRowRangeFilter"),
                                     rq_buf_slice(&message), &arena, &f, &why),
                     RQ_E_DO_NOT_RETRY);
    assert_non_null(strstr(why.message, "filter of more than"));
    rq_buf_clear(&message);
    rq_arena_clear(&arena);
}

static rq_err parse_repeated(const char *java_class, const char *field, size_t len, size_t count,
                             rq_error *why)
{
    rq_arena arena = {0};
    rq_buf message = {0};
    rq_filter *f;
    for (size_t i = 0; i < count; i++)
        assert_int_equal(rq_buf_append(&message, field, len), RQ_OK);
    rq_err rc = rq_filter_parse(rq_slice_cstr(java_class), rq_buf_slice(&message), &arena, &f, why);
    rq_buf_clear(&message);
    rq_arena_clear(&arena);
    return rc;
}

/* Messages within the limit whose decoded filters exceed it. */
static void the_memory_of_a_decoded_filter_counts(void **state)
{
    (void)state;
    static const char range[] = "\x0a\x00";               /* a RowRange without borders */
    static const char key[] = "\x0a\x04\x0a\x00\x12\x00"; /* an empty key and mask */
    rq_error why = {0};
    assert_int_equal(parse_repeated(PACKAGE "MultiRowRangeFilter", range, 2, 1000, &why), RQ_OK);
    assert_int_equal(parse_repeated(PACKAGE "MultiRowRangeFilter", range, 2, 250000, &why),
                     RQ_E_DO_NOT_RETRY);
    assert_non_null(strstr(why.message, "filter of more than"));
    why = (rq_error){0};
    assert_int_equal(parse_repeated(PACKAGE "FuzzyRowFilter", key, 6, 1000, &why), RQ_OK);
    assert_int_equal(parse_repeated(PACKAGE "FuzzyRowFilter", key, 6, 500000, &why),
                     RQ_E_DO_NOT_RETRY);
    assert_non_null(strstr(why.message, "filter of more than"));
}

static void page_filter_counts_rows_with_cells_only(void **state)
{
    (void)state;
    rq_arena arena = {0};
    rq_filter *f = filter_of(&arena, "PageFilter(1)");
    rq_cell c = cell_of("a", "q", 1, "");
    bool keep = true;
    assert_int_equal(rq_filter_row_done(f, &c, 0, &keep), RQ_FILTER_ROW_NOT_CALLED);
    assert_false(rq_filter_all_remaining(f));
    assert_int_equal(rq_filter_row_done(f, &c, 1, &keep), RQ_FILTER_ROW_INCLUDE);
    assert_true(rq_filter_all_remaining(f));
    rq_arena_clear(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_failed_allocation_is_an_error_and_leaks_nothing),
        cmocka_unit_test(regex_without_end_is_stopped),
        cmocka_unit_test(random_rows_come_as_often_as_asked),
        cmocka_unit_test(component_ends_where_the_bytes_do),
        cmocka_unit_test(binary_comparator_without_message_compares_bytes),
        cmocka_unit_test(border_longer_than_any_row_is_sought_in_front_of),
        cmocka_unit_test(too_many_bytes_are_refused),
        cmocka_unit_test(the_memory_of_a_decoded_filter_counts),
        cmocka_unit_test(page_filter_counts_rows_with_cells_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
