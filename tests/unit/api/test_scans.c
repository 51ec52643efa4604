/* SPDX-License-Identifier: Apache-2.0 */
/* Scans: ranges, directions, limits, parts of rows, delete markers. Part of test_api. */
#include "api_rows.h"

/* The scan's rows as "a b c", parts of a row as "a a|"; checks that values belong to rows. */
static void expect_scan(rq_table *t, const rq_scan_request *scan, const char *expected)
{
    char text[4096];
    size_t len = 0;
    rq_scanner *s = NULL;
    rq_row *row;
    text[0] = '\0';
    OK(rq_table_scan(t, scan, &s, &why));
    for (;;) {
        OK(rq_scanner_next(s, &row, &why));
        if (row == NULL) break;
        assert_true(row->count > 0);
        assert_true(len + 50 < sizeof text);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s", len > 0 ? " " : "",
                                (int)row->cells[0].row.len, (const char *)row->cells[0].row.data);
        rq_row_free(row);
    }
    OK(rq_scanner_next(s, &row, &why)); /* the end is reported again */
    assert_null(row);
    rq_scanner_close(s);
    assert_string_equal(text, expected);
}

static rq_scan_request scan_of(const char *start, const char *stop)
{
    return (rq_scan_request){
        .size = sizeof(rq_scan_request), .start = rq_text(start), .stop = rq_text(stop)};
}

static void scans_return_ranges(void **state)
{
    (void)state;
    rq_bytes splits[] = {rq_text("c"), rq_text("e"), rq_text("g")};
    rq_table *t = make("scans", "3", splits, 3);
    char row[2] = "a";
    for (; row[0] <= 'i'; row[0]++) {
        put(t, row, "f", "q", row, 1);
        put(t, row, "f", "r", row, 1);
        put(t, row, "g", "q", row, 1);
    }
    rq_scan_request all = scan_of("", "");
    expect_scan(t, &all, "a b c d e f g h i");
    for (uint32_t caching = 1; caching <= 3; caching++) {
        rq_scan_request s = scan_of("b", "g");
        s.caching = caching;
        expect_scan(t, &s, "b c d e f");
        s.includes_stop = true;
        expect_scan(t, &s, "b c d e f g");
        s.excludes_start = true;
        expect_scan(t, &s, "c d e f g");
        s.limit = 4;
        expect_scan(t, &s, "c d e f");
        s = scan_of("g", "b");
        s.reversed = true;
        s.caching = caching;
        expect_scan(t, &s, "g f e d c");
        s.includes_stop = true;
        expect_scan(t, &s, "g f e d c b");
        s.excludes_start = true;
        expect_scan(t, &s, "f e d c b");
        s.limit = 2;
        expect_scan(t, &s, "f e");
        s = scan_of("", "");
        s.reversed = true;
        s.caching = caching;
        expect_scan(t, &s, "i h g f e d c b a");
        s = scan_of("zz", "");
        s.reversed = true;
        expect_scan(t, &s, "i h g f e d c b a");
    }
    rq_scan_request s = scan_of("x", "");
    expect_scan(t, &s, "");
    s = scan_of("", "");
    s.fetch_bytes = 1;
    expect_scan(t, &s, "a b c d e f g h i");
    s = scan_of("", "");
    s.filter_text = "RowFilter(>=, 'binary:d') AND PageFilter(10)";
    expect_scan(t, &s, "d e f g h i");
    rq_column column = {rq_text("g"), {NULL, 0}};
    s = scan_of("a", "c");
    s.columns = &column;
    s.column_count = 1;
    expect_scan(t, &s, "a b");
    s = scan_of("b", "b");
    s.includes_stop = true;
    expect_scan(t, &s, "b");
    s = scan_of("a", "c");
    s.batch = 2; /* three cells: returned in two parts */
    expect_scan(t, &s, "a a b b");
    s.batch = 3;
    expect_scan(t, &s, "a b");
    s.batch = 1;
    s.limit = 1;
    expect_scan(t, &s, "a a a");
    s.caching = 1;
    expect_scan(t, &s, "a a a");
    /* An open scanner is closed early; so is a scanner that was never used. */
    rq_scanner *open;
    rq_row *first;
    s = scan_of("", "");
    s.caching = 1;
    OK(rq_table_scan(t, &s, &open, &why));
    OK(rq_scanner_next(open, &first, &why));
    assert_true(is(first->cells[0].row, "a"));
    assert_false(first->is_partial);
    rq_row_free(first);
    rq_scanner_close(open);
    OK(rq_table_scan(t, &s, &open, &why));
    rq_scanner_close(open);
    finish(t, "scans");
}

static void raw_scans_show_delete_markers(void **state)
{
    (void)state;
    rq_table *t = make("raw", "3", NULL, 0);
    put(t, "r", "f", "q", "v", 1);
    OK(erase(t, "r", RQ_DELETE_COLUMN, "q", 2));
    rq_scan_request s = scan_of("", "");
    expect_scan(t, &s, "");
    s.raw = true;
    s.max_versions = RQ_ALL_VERSIONS;
    rq_scanner *scanner;
    rq_row *row;
    OK(rq_table_scan(t, &s, &scanner, &why));
    OK(rq_scanner_next(scanner, &row, &why));
    assert_int_equal(row->count, 2);
    assert_int_equal(row->cells[0].type, RQ_KV_DELETE_COLUMN);
    assert_int_equal(row->cells[1].type, RQ_KV_PUT);
    rq_row_free(row);
    rq_scanner_close(scanner);
    /* An error is returned by the first call, and again in every later call: a failed scan is not a
     * complete one. */
    rq_column column = {rq_text("h"), {NULL, 0}};
    s = scan_of("", "");
    s.columns = &column;
    s.column_count = 1;
    OK(rq_table_scan(t, &s, &scanner, &why));
    FAILS(RQ_E_NO_SUCH_FAMILY, rq_scanner_next(scanner, &row, &why));
    char message[sizeof why.message];
    memcpy(message, why.message, sizeof message);
    FAILS(RQ_E_NO_SUCH_FAMILY, rq_scanner_next(scanner, &row, &why));
    assert_string_equal(why.message, message);
    rq_rows *rows;
    FAILS(RQ_E_NO_SUCH_FAMILY, rq_scanner_next_rows(scanner, 0, &rows, &why));
    assert_string_equal(why.message, message);
    rq_scanner_close(scanner);
    finish(t, "raw");
}

/* Compares the scan's rows and their numbers of cells, "a3 b3"; *ret_cursors: the number of cursor
 * results. */
static void expect_rows(rq_table *t, const rq_scan_request *scan, const char *expected,
                        size_t *ret_cursors)
{
    char text[256] = "", cursor[8] = "";
    rq_scanner *s = NULL;
    rq_row *row;
    *ret_cursors = 0;
    OK(rq_table_scan(t, scan, &s, &why));
    for (;;) {
        OK(rq_scanner_next(s, &row, &why));
        if (row == NULL) break;
        size_t len = strlen(text);
        if (row->cursor.len > 0) {
            assert_int_equal(row->count, 0);
            assert_false(row->exists || row->is_partial);
            assert_true(row->cursor.len < sizeof cursor);
            snprintf(cursor, sizeof cursor, "%.*s", (int)row->cursor.len,
                     (const char *)row->cursor.data);
            ++*ret_cursors;
        } else {
            assert_false(row->is_partial);
            snprintf(text + len, sizeof text - len, "%s%.*s%zu", len > 0 ? " " : "",
                     (int)row->cells[0].row.len, (const char *)row->cells[0].row.data, row->count);
            if (cursor[0] != '\0') assert_true(is(row->cells[0].row, cursor));
            cursor[0] = '\0';
        }
        rq_row_free(row);
    }
    rq_scanner_close(s);
    assert_string_equal(text, expected);
}

/* A server that may send one byte sends a row's cells one by one: the library joins them, and
 * returns the server's position as cursors if requested. */
static void parts_of_a_row_become_a_row(void **state)
{
    (void)state;
    rq_bytes split = rq_text("b");
    rq_table *t = make("parts", "3", &split, 1);
    size_t cursors;
    char row[2] = "a";
    for (; row[0] <= 'c'; row[0]++) {
        put(t, row, "f", "q", row, 1);
        put(t, row, "f", "r", row, 1);
        put(t, row, "g", "q", row, 1);
    }
    rq_scan_request s = scan_of("", "");
    s.fetch_bytes = 1;
    expect_rows(t, &s, "a3 b3 c3", &cursors);
    assert_int_equal(cursors, 0);
    s.wants_cursors = true;
    expect_rows(t, &s, "a3 b3 c3", &cursors);
    if (strncmp(at.url, "hbase", 5) == 0) assert_true(cursors >= 3);
    s.limit = 2;
    expect_rows(t, &s, "a3 b3", &cursors);
    s.limit = 0;
    s.reversed = true;
    expect_rows(t, &s, "c3 b3 a3", &cursors);
    s.caching = 1;
    expect_rows(t, &s, "c3 b3 a3", &cursors);
    rq_scanner *refused = NULL;
    s.batch = 1;
    FAILS(RQ_E_INVALID, rq_table_scan(t, &s, &refused, &why));
    s.batch = 0;
    s.priority = -1;
    FAILS(RQ_E_INVALID, rq_table_scan(t, &s, &refused, &why));
    s.priority = 100;
    expect_rows(t, &s, "c3 b3 a3", &cursors);
    /* A program built before the library had cursors. */
    s.size = offsetof(rq_scan_request, priority);
    expect_rows(t, &s, "c3 b3 a3", &cursors);
    assert_int_equal(cursors, 0);
    finish(t, "parts");
}

int run_scans(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scans_return_ranges),
        cmocka_unit_test(raw_scans_show_delete_markers),
        cmocka_unit_test(parts_of_a_row_become_a_row),
    };
    return cmocka_run_group_tests_name("scans", tests, open_db, close_db);
}
