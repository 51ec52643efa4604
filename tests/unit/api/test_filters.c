/* SPDX-License-Identifier: Apache-2.0 */
/* Filters built by the C API give the same results on every back end. Usage: test_filters URL … A
 * filter that HBase's filter language can express must select the same rows as its text; every
 * filter must select the rows listed here. */
#include "api_test.h"

#include "rorqual/filters.h"

static const char *url;
static rq_db *db;
static rq_table *table;
static rq_filters *f;
static rq_failure why = {.size = sizeof(rq_failure)};

static void put(const char *row, const char *family, const char *qualifier, rq_bytes value,
                int64_t timestamp)
{
    rq_edit edit = {rq_text(family), rq_text(qualifier), value, timestamp, 0, 0, 0};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_PUT,
                        .row = rq_text(row),
                        .edits = &edit,
                        .edit_count = 1};
    OK(rq_table_change(table, &change, NULL, &why));
}

static int begin(void **state)
{
    static const uint8_t seven[8] = {0, 0, 0, 0, 0, 0, 0, 7}, five[5] = {0, 0, 0, 1, 5};
    rq_family families[] = {{"f", NULL, 0}, {"g", NULL, 0}};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "made_filters", .families = families, .family_count = 2};
    (void)state;
    OK(rq_connect(url, NULL, &db, &why));
    OK(rq_table_create(db, &spec, &why));
    OK(rq_table_open(db, "made_filters", &table, &why));
    f = rq_filters_new();
    assert_non_null(f);
    put("a1", "f", "ca", rq_text("one"), 10);
    put("a1", "f", "cb", rq_text("Two"), 20);
    put("a1", "g", "x", rq_text("ten"), 10);
    put("a2", "f", "ca", rq_text("three"), 10);
    put("a2", "g", "y", rq_text("twenty"), 20);
    put("b1", "f", "cb", rq_text("tail"), 30);
    put("b2", "f", "n", rq_bytes_of(seven, sizeof seven), 40);
    put("b2", "f", "z", rq_bytes_of(five, sizeof five), 40);
    return 0;
}

static int end(void **state)
{
    (void)state;
    rq_filters_free(f);
    rq_table_close(table);
    OK(rq_table_disable(db, "made_filters", &why));
    OK(rq_table_drop(db, "made_filters", &why));
    OK(rq_disconnect(db, &why));
    return 0;
}

/* Writes the rows and columns that a scan finds, "row:column …", to `text`. */
static void find(const rq_scan_request *scan, char *text, size_t cap)
{
    rq_scanner *s;
    rq_rows *rows;
    size_t len = 0, n;
    text[0] = '\0';
    OK(rq_table_scan(table, scan, &s, &why));
    do {
        OK(rq_scanner_next_rows(s, 0, &rows, &why));
        n = rows->count;
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < rows->items[i]->count; k++) {
                const rq_kv *c = &rows->items[i]->cells[k];
                len += (size_t)snprintf(text + len, cap - len, "%s%.*s:%.*s", len > 0 ? " " : "",
                                        (int)c->row.len, (const char *)c->row.data,
                                        (int)c->qualifier.len, (const char *)c->qualifier.data);
            }
        rq_rows_free(rows);
    } while (n > 0);
    rq_scanner_close(s);
}

static void expect(const char *what, rq_bytes filter, const char *language, const char *expected)
{
    char found[1024], by_text[1024];
    const char *message;
    rq_scan_request scan = {.size = sizeof scan, .filter = filter};
    if (rq_filters_error(f, &message) != RQ_OK) fail_msg("%s: %s", what, message);
    find(&scan, found, sizeof found);
    if (strcmp(found, expected) != 0) fail_msg("%s: '%s' instead of '%s'", what, found, expected);
    if (language == NULL) return;
    scan.filter = rq_text("");
    scan.filter_text = language;
    find(&scan, by_text, sizeof by_text);
    if (strcmp(found, by_text) != 0) fail_msg("%s: '%s', its text: '%s'", what, found, by_text);
}
#define EXPECT(filter, language, expected) expect(#filter, filter, language, expected)

#define T(text) rq_text(text)

static void rows_are_filtered(void **state)
{
    (void)state;
    rq_bytes keys[] = {T("a?"), T("?2")};
    rq_bytes masks[] = {rq_bytes_of("\0\1", 2), rq_bytes_of("\1\0", 2)};
    rq_row_range ranges[] = {{T("b2"), T(""), false, false}, {T("a1"), T("a2"), true, true}};
    EXPECT(rq_prefix_filter(f, T("a")), "PrefixFilter('a')", "a1:ca a1:cb a1:x a2:ca a2:y");
    EXPECT(rq_inclusive_stop_filter(f, T("a2")), "InclusiveStopFilter('a2')",
           "a1:ca a1:cb a1:x a2:ca a2:y");
    EXPECT(rq_page_filter(f, 1), "PageFilter(1)", "a1:ca a1:cb a1:x");
    EXPECT(rq_row_key_filter(f, RQ_COMPARE_GREATER_OR_EQUAL, rq_binary_comparator(f, T("b2"))),
           "RowFilter(>=, 'binary:b2')", "b2:n b2:z");
    EXPECT(rq_row_key_filter(f, RQ_COMPARE_LESS, rq_binary_prefix_comparator(f, T("b"))),
           "RowFilter(<, 'binaryprefix:b')", "a1:ca a1:cb a1:x a2:ca a2:y");
    EXPECT(rq_row_key_filter(f, RQ_COMPARE_EQUAL, rq_binary_component_comparator(f, T("2"), 1)),
           NULL, "a2:ca a2:y b2:n b2:z");
    EXPECT(rq_fuzzy_row_filter(f, keys, masks, 2), NULL, "a1:ca a1:cb a1:x a2:ca a2:y b2:n b2:z");
    EXPECT(rq_multi_row_range_filter(f, ranges, 2), NULL, "a2:ca a2:y b2:n b2:z");
    EXPECT(rq_random_row_filter(f, 2), NULL, "a1:ca a1:cb a1:x a2:ca a2:y b1:cb b2:n b2:z");
    EXPECT(rq_random_row_filter(f, -1), NULL, "");
}

static void columns_are_filtered(void **state)
{
    (void)state;
    rq_bytes prefixes[] = {T("x"), T("cb")}, qualifiers[] = {T("ca"), T("z")};
    EXPECT(rq_family_filter(f, RQ_COMPARE_NOT_EQUAL, rq_binary_comparator(f, T("f"))),
           "FamilyFilter(!=, 'binary:f')", "a1:x a2:y");
    EXPECT(rq_qualifier_filter(f, RQ_COMPARE_LESS_OR_EQUAL, rq_binary_comparator(f, T("cb"))),
           "QualifierFilter(<=, 'binary:cb')", "a1:ca a1:cb a2:ca b1:cb");
    EXPECT(rq_column_prefix_filter(f, T("c")), "ColumnPrefixFilter('c')",
           "a1:ca a1:cb a2:ca b1:cb");
    EXPECT(rq_multiple_column_prefix_filter(f, prefixes, 2), "MultipleColumnPrefixFilter('x','cb')",
           "a1:cb a1:x b1:cb");
    EXPECT(rq_column_range_filter(f, T("cb"), false, T("x"), true),
           "ColumnRangeFilter('cb',false,'x',true)", "a1:x b2:n");
    EXPECT(rq_column_range_filter(f, T(""), false, T("cb"), false), NULL, "a1:ca a2:ca");
    EXPECT(rq_column_count_get_filter(f, 1), "ColumnCountGetFilter(1)", "a1:ca");
    EXPECT(rq_column_pagination_filter(f, 1, 1), "ColumnPaginationFilter(1,1)", "a1:cb a2:y b2:z");
    EXPECT(rq_column_pagination_from_filter(f, 1, T("cb")), NULL, "a1:cb a2:y b1:cb b2:n");
    EXPECT(rq_first_key_only_filter(f), "FirstKeyOnlyFilter()", "a1:ca a2:ca b1:cb b2:n");
    EXPECT(rq_first_key_value_matching_qualifiers_filter(f, qualifiers, 2), NULL,
           "a1:ca a2:ca b1:cb b2:n b2:z");
    EXPECT(rq_dependent_column_filter(f, T("f"), T("ca"), false, RQ_COMPARE_EQUAL, T("")),
           "DependentColumnFilter('f','ca')", "a1:ca a1:x a2:ca");
    EXPECT(rq_dependent_column_filter(f, T("f"), T("ca"), true, RQ_COMPARE_EQUAL,
                                      rq_binary_comparator(f, T("one"))),
           "DependentColumnFilter('f','ca',true,=,'binary:one')", "a1:x");
}

static void values_are_filtered(void **state)
{
    (void)state;
    const int64_t times[] = {30, 20};
    EXPECT(rq_value_filter(f, RQ_COMPARE_EQUAL, rq_substring_comparator(f, T("TW"))),
           "ValueFilter(=, 'substring:TW')", "a1:cb a2:y");
    EXPECT(rq_value_filter(f, RQ_COMPARE_EQUAL,
                           rq_regex_comparator(f, T("^t.*[ln]"), RQ_REGEX_DOTALL)),
           "ValueFilter(=, 'regexstring:^t.*[ln]')", "a1:x a2:y b1:cb");
    EXPECT(rq_value_filter(f, RQ_COMPARE_EQUAL,
                           rq_regex_comparator(f, T("^T"), RQ_REGEX_CASE_INSENSITIVE)),
           NULL, "a1:cb a1:x a2:ca a2:y b1:cb");
    EXPECT(rq_single_column_value_filter(f, T("f"), T("ca"), RQ_COMPARE_EQUAL,
                                         rq_binary_comparator(f, T("one")), true, true),
           "SingleColumnValueFilter('f','ca',=,'binary:one',true,true)", "a1:ca a1:cb a1:x");
    EXPECT(rq_single_column_value_exclude_filter(f, T("f"), T("ca"), RQ_COMPARE_EQUAL,
                                                 rq_binary_comparator(f, T("one")), true, true),
           "SingleColumnValueExcludeFilter('f','ca',=,'binary:one',true,true)", "a1:cb a1:x");
    EXPECT(rq_column_value_filter(f, T("f"), T("cb"), RQ_COMPARE_NOT_EQUAL,
                                  rq_binary_comparator(f, T("Two"))),
           "ColumnValueFilter('f','cb',!=,'binary:Two')", "b1:cb");
    EXPECT(rq_column_value_filter(f, T("f"), T("n"), RQ_COMPARE_GREATER, rq_long_comparator(f, 6)),
           NULL, "b2:n");
    EXPECT(rq_column_value_filter(f, T("f"), T("n"), RQ_COMPARE_GREATER, rq_long_comparator(f, 7)),
           NULL, "");
    EXPECT(rq_column_value_filter(f, T("f"), T("z"), RQ_COMPARE_EQUAL,
                                  rq_big_decimal_comparator(f, rq_bytes_of("\5", 1), 1)),
           NULL, "b2:z"); /* the decimal 0.5 */
    EXPECT(rq_column_value_filter(f, T("f"), T("z"), RQ_COMPARE_LESS,
                                  rq_big_decimal_comparator(f, rq_bytes_of("\5", 1), 2)),
           NULL, ""); /* the decimal 0.05 */
    EXPECT(rq_column_value_filter(f, T("f"), T("z"), RQ_COMPARE_EQUAL,
                                  rq_bit_comparator(f, rq_bytes_of("\0\0\0\0\4", 5), RQ_BIT_AND)),
           NULL, "b2:z");
    EXPECT(rq_column_value_filter(f, T("f"), T("z"), RQ_COMPARE_EQUAL,
                                  rq_bit_comparator(f, rq_bytes_of("\0\0\0\1\5", 5), RQ_BIT_XOR)),
           NULL, "");
    EXPECT(rq_single_column_value_filter(f, T("f"), T("ca"), RQ_COMPARE_EQUAL,
                                         rq_null_comparator(f), false, true),
           NULL, "b1:cb b2:n b2:z");
    EXPECT(rq_timestamps_filter(f, times, 2), "TimestampsFilter(30, 20)", "a1:cb a2:y b1:cb");
}

static void filters_are_combined(void **state)
{
    (void)state;
    rq_bytes a = rq_prefix_filter(f, T("a")), c = rq_column_prefix_filter(f, T("c"));
    rq_bytes both[] = {a, c};
    rq_bytes nested[] = {rq_filter_list(f, RQ_PASS_ALL, both, 2), rq_prefix_filter(f, T("b2"))};
    EXPECT(rq_filter_list(f, RQ_PASS_ALL, both, 2), "PrefixFilter('a') AND ColumnPrefixFilter('c')",
           "a1:ca a1:cb a2:ca");
    EXPECT(rq_filter_list(f, RQ_PASS_ONE, both, 2), "PrefixFilter('a') OR ColumnPrefixFilter('c')",
           "a1:ca a1:cb a1:x a2:ca a2:y b1:cb");
    EXPECT(rq_filter_list(f, RQ_PASS_ONE, nested, 2), NULL, "a1:ca a1:cb a2:ca b2:n b2:z");
    rq_bytes small = rq_value_filter(f, RQ_COMPARE_LESS, rq_binary_comparator(f, T("three")));
    EXPECT(rq_skip_filter(f, small), "SKIP ValueFilter(<, 'binary:three')",
           "a1:ca a1:cb a1:x b1:cb b2:n b2:z");
    EXPECT(rq_while_match_filter(f, small), "WHILE ValueFilter(<, 'binary:three')",
           "a1:ca a1:cb a1:x");
    rq_get_request get = {
        .size = sizeof get, .row = T("b2"), .filter = rq_key_only_filter(f, true)};
    rq_row *row;
    OK(rq_table_get(table, &get, &row, &why));
    assert_int_equal(row->count, 2);
    assert_int_equal(row->cells[0].value.len, 4);
    assert_memory_equal(row->cells[0].value.data, "\0\0\0\10", 4);
    rq_row_free(row);
}

static void what_cannot_be_made_is_refused(void **state)
{
    (void)state;
    const char *message;
    rq_row *row;
    assert_int_equal(rq_filters_error(f, NULL), RQ_OK);
    rq_bytes bad = rq_page_filter(f, -1);
    assert_int_equal(rq_filters_error(f, &message), RQ_E_INVALID);
    assert_non_null(strstr(message, "page"));
    rq_bytes parts[] = {rq_prefix_filter(f, T("a")), bad};
    rq_get_request get = {.size = sizeof get, .row = T("a1"), .filter = bad};
    FAILS(RQ_E_INVALID, rq_table_get(table, &get, &row, &why));
    get.filter = rq_filter_list(f, RQ_PASS_ALL, parts, 2);
    FAILS(RQ_E_INVALID, rq_table_get(table, &get, &row, &why));
    get.filter = rq_skip_filter(NULL, parts[0]);
    FAILS(RQ_E_INVALID, rq_table_get(table, &get, &row, &why));
    get.filter = rq_value_filter(f, RQ_COMPARE_ABSENT, rq_null_comparator(f));
    FAILS(RQ_E_INVALID, rq_table_get(table, &get, &row, &why));
    get.filter = rq_fuzzy_row_filter(f, parts, (rq_bytes[]){T("x")}, 1);
    FAILS(RQ_E_INVALID, rq_table_get(table, &get, &row, &why));
    get.filter = parts[0];
    OK(rq_table_get(table, &get, &row, &why));
    assert_int_equal(row->count, 3);
    rq_row_free(row);
}

static void families_have_times_of_their_own(void **state)
{
    (void)state;
    char found[1024];
    rq_family_times times[] = {{T("f"), 15, 35}, {T("none"), 0, 1}};
    rq_column whole_f[] = {{T("f"), {NULL, 0}}};
    rq_scan_request scan = {.size = sizeof scan, .family_times = times, .family_times_count = 2};
    find(&scan, found, sizeof found);
    assert_string_equal(found, "a1:cb a1:x a2:y b1:cb");
    scan.min_timestamp = 15; /* the time range of the other family */
    scan.max_timestamp = 100;
    find(&scan, found, sizeof found);
    assert_string_equal(found, "a1:cb a2:y b1:cb");
    scan.columns = whole_f;
    scan.column_count = 1;
    scan.no_lazy_families = true;
    find(&scan, found, sizeof found);
    assert_string_equal(found, "a1:cb b1:cb");
    rq_get_request get = {.size = sizeof get,
                          .row = T("a1"),
                          .family_times = times,
                          .family_times_count = 1,
                          .no_lazy_families = true};
    rq_row *row;
    OK(rq_table_get(table, &get, &row, &why));
    assert_int_equal(row->count, 2);
    rq_row_free(row);
    times[0].max_timestamp = 1;
    FAILS(RQ_E_INVALID, rq_table_get(table, &get, &row, &why));
    get.family_times = NULL;
    FAILS(RQ_E_INVALID, rq_table_get(table, &get, &row, &why));
}

static int run(const char *on)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(rows_are_filtered),
        TEST(columns_are_filtered),
        TEST(values_are_filtered),
        TEST(filters_are_combined),
        TEST(what_cannot_be_made_is_refused),
        TEST(families_have_times_of_their_own),
    };
    url = on;
    return cmocka_run_group_tests_name(on, tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed += run(argv[i]);
    return argc > 1 ? failed != 0 : run("memory:") != 0;
}
