/* SPDX-License-Identifier: Apache-2.0 */
/* Gets: columns, versions, limits, filters, refused requests. Part of test_api. */
#include "api_rows.h"

static void a_get_picks_cells(void **state)
{
    (void)state;
    rq_table *t = make("picks", "3", NULL, 0);
    put(t, "r", "f", "a", "a1", 1);
    put(t, "r", "f", "a", "a2", 2);
    put(t, "r", "f", "a", "a3", 3);
    put(t, "r", "f", "b", "b2", 2);
    put(t, "r", "f", "", "none", 2);
    put(t, "r", "g", "c", "c9", 9);
    rq_get_request get = {.size = sizeof get, .row = rq_text("r")};
    expect_get(t, &get, "f:@2=none f:a@3=a3 f:b@2=b2 g:c@9=c9");
    get.max_versions = 2;
    expect_get(t, &get, "f:@2=none f:a@3=a3 f:a@2=a2 f:b@2=b2 g:c@9=c9");
    get.max_versions = RQ_ALL_VERSIONS;
    get.max_timestamp = 3;
    expect_get(t, &get, "f:@2=none f:a@2=a2 f:a@1=a1 f:b@2=b2");
    get.min_timestamp = 2;
    expect_get(t, &get, "f:@2=none f:a@2=a2 f:b@2=b2");
    get = (rq_get_request){.size = sizeof get, .row = rq_text("r")};
    /* Columns out of order, one given twice, a family together with one of its columns. */
    rq_column columns[] = {{rq_text("g"), {NULL, 0}},
                           {rq_text("f"), rq_text("b")},
                           {rq_text("f"), rq_text("")},
                           {rq_text("f"), rq_text("b")},
                           {rq_text("g"), rq_text("x")}};
    get.columns = columns;
    get.column_count = 5;
    expect_get(t, &get, "f:@2=none f:b@2=b2 g:c@9=c9");
    get.column_count = 1;
    expect_get(t, &get, "g:c@9=c9");
    get.row = rq_text("absent");
    expect_get(t, &get, "");
    rq_column wrong = {rq_text("h"), {NULL, 0}};
    rq_row *row;
    get.columns = &wrong;
    FAILS(RQ_E_NO_SUCH_FAMILY, rq_table_get(t, &get, &row, &why));
    assert_string_equal(why.hbase_class,
                        "org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException");
    finish(t, "picks");
}

static void a_get_has_limits_and_filters(void **state)
{
    (void)state;
    rq_table *t = make("filters", "3", NULL, 0);
    char qualifier[2] = "a";
    for (int i = 0; i < 6; i++, qualifier[0]++)
        put(t, "r", "f", qualifier, i % 2 == 0 ? "even" : "odd", 1);
    rq_get_request get = {.size = sizeof get, .row = rq_text("r")};
    get.family_limit = 2;
    expect_get(t, &get, "f:a@1=even f:b@1=odd");
    get.family_offset = 3;
    expect_get(t, &get, "f:d@1=odd f:e@1=even");
    get = (rq_get_request){.size = sizeof get, .row = rq_text("r")};
    get.filter_text = "ValueFilter(=, 'binary:odd') AND QualifierFilter(>=, 'binary:d')";
    expect_get(t, &get, "f:d@1=odd f:f@1=odd");
    /* Filter { name 1, serialized 2 }: ColumnCountGetFilter { limit 1 } */
    static const char name[] = "org.apache.hadoop.hbase.filter.ColumnCountGetFilter";
    char bytes[128] = {0x0a, sizeof name - 1};
    memcpy(bytes + 2, name, sizeof name - 1);
    memcpy(bytes + 1 + sizeof name, "\x12\x02\x08\x01", 4);
    get.filter_text = NULL;
    get.filter = rq_bytes_of(bytes, sizeof name + 5);
    expect_get(t, &get, "f:a@1=even");
    rq_row *row;
    get.filter_text = "KeyOnlyFilter()";
    FAILS(RQ_E_INVALID, rq_table_get(t, &get, &row, &why));
    get.filter = (rq_bytes){NULL, 0};
    get.filter_text = "NoSuchFilter()";
    FAILS(RQ_E_ILLEGAL_ARGUMENT, rq_table_get(t, &get, &row, &why));
    get.filter_text = NULL;
    get.existence_only = true;
    OK(rq_table_get(t, &get, &row, &why));
    assert_true(row->exists);
    assert_int_equal(row->count, 0);
    rq_row_free(row);
    get.row = rq_text("absent");
    OK(rq_table_get(t, &get, &row, &why));
    assert_false(row->exists);
    rq_row_free(row);
    finish(t, "filters");
}

static void wrong_requests_are_refused(void **state)
{
    (void)state;
    rq_table *t = make("wrong_requests", "1", NULL, 0);
    char *large = calloc(1, 40000);
    rq_row *row;
    rq_get_request get = {.size = sizeof get};
    FAILS(RQ_E_INVALID, rq_table_get(t, NULL, &row, &why));
    FAILS(RQ_E_INVALID, rq_table_get(t, &get, &row, &why));
    get.row = rq_bytes_of(large, 32768);
    FAILS(RQ_E_INVALID, rq_table_get(t, &get, &row, &why));
    get.row = rq_text("r");
    get.max_versions = -1;
    FAILS(RQ_E_INVALID, rq_table_get(t, &get, &row, &why));
    get.max_versions = 0;
    get.min_timestamp = 5;
    get.max_timestamp = 4;
    FAILS(RQ_E_INVALID, rq_table_get(t, &get, &row, &why));
    get.min_timestamp = get.max_timestamp = 0;
    get.size = 3;
    FAILS(RQ_E_INVALID, rq_table_get(t, &get, &row, &why));
    rq_change change = {.size = sizeof change, .kind = RQ_PUT, .row = rq_text("r")};
    FAILS(RQ_E_INVALID, rq_table_change(t, &change, NULL, &why));
    rq_edit edit = {.family = rq_text("f"), .timestamp = -5};
    change.edits = &edit;
    change.edit_count = 1;
    FAILS(RQ_E_INVALID, rq_table_change(t, &change, NULL, &why));
    edit.timestamp = 0;
    edit.family = rq_text("h");
    FAILS(RQ_E_NO_SUCH_FAMILY, rq_table_change(t, &change, NULL, &why));
    change.kind = RQ_INCREMENT;
    edit.family = rq_text("f");
    edit.value = rq_text("seven");
    FAILS(RQ_E_INVALID, rq_table_change(t, &change, NULL, &why));
    /* A row key of the maximum length. */
    OK(rq_put_value(t, rq_bytes_of(large, 32767), rq_text("f"), rq_text("q"), rq_text("v"), &why));
    free(large);
    finish(t, "wrong_requests");
}

/* A program built with an older or a newer header passes structs of another size. */
static void other_versions_structs_work(void **state)
{
    (void)state;
    rq_table *t = make("sizes", "3", NULL, 0);
    rq_row *row;
    put(t, "r", "f", "a", "1", 1);
    put(t, "r", "f", "a", "2", 2);
    rq_get_request older = {
        .size = offsetof(rq_get_request, max_versions), .row = rq_text("r"), .max_versions = 99};
    OK(rq_table_get(t, &older, &row, &why));
    assert_int_equal(row->count, 1);
    rq_row_free(row);
    struct {
        rq_get_request get;
        uint64_t more;
    } newer = {.get = {.size = sizeof newer, .row = rq_text("r")}};
    OK(rq_table_get(t, &newer.get, &row, &why));
    rq_row_free(row);
    newer.more = 1;
    FAILS(RQ_E_UNSUPPORTED, rq_table_get(t, &newer.get, &row, &why));
    rq_failure small = {.size = offsetof(rq_failure, retryable), .message = "untouched"};
    older.row = (rq_bytes){NULL, 0};
    assert_int_equal(rq_table_get(t, &older, &row, &small), RQ_E_INVALID);
    assert_int_equal(small.code, RQ_E_INVALID);
    assert_string_equal(small.message, "untouched");
    assert_int_equal(rq_table_get(t, &older, &row, NULL), RQ_E_INVALID);
    finish(t, "sizes");
}

static void a_missing_or_disabled_table_is_reported(void **state)
{
    (void)state;
    rq_table *t;
    rq_row *row;
    rq_get_request get = {.size = sizeof get, .row = rq_text("r")};
    OK(rq_table_open(at.db, "missing", &t, &why));
    FAILS(RQ_E_TABLE_NOT_FOUND, rq_table_get(t, &get, &row, &why));
    FAILS(RQ_E_TABLE_NOT_FOUND,
          rq_put_value(t, rq_text("r"), rq_text("f"), rq_text("q"), rq_text("v"), &why));
    rq_table_close(t);
    t = make("disabled", "1", NULL, 0);
    put(t, "r", "f", "q", "v", 1);
    OK(rq_table_disable(at.db, "disabled", &why));
    FAILS(RQ_E_TABLE_NOT_ENABLED, rq_table_get(t, &get, &row, &why));
    OK(rq_table_truncate(at.db, "disabled", false, &why));
    expect_row(t, "r", "");
    put(t, "r", "f", "q", "w", 1);
    OK(rq_table_flush(at.db, "disabled", &why));
    expect_row(t, "r", "f:q@1=w");
    finish(t, "disabled");
}

static void expect_cells(const rq_row *row, const char *expected)
{
    char *text = text_of(row);
    assert_string_equal(text, expected);
    free(text);
}

/* Copies outlive the row, batch result and scanner rows from which they were made. */
static void rows_are_copied(void **state)
{
    (void)state;
    rq_table *t = make("copies", "3", NULL, 0);
    rq_get_request get = {.size = sizeof get, .row = rq_text("r"), .max_versions = 3};
    rq_action action = {.get = &get};
    rq_scan_request scan = {.size = sizeof scan, .max_versions = 3};
    rq_scanner *scanner;
    rq_row *row, *of_get, *of_results, *of_scan, *again, *empty;
    rq_rows *rows;
    rq_results *results = NULL;
    static const char all[] = "f:@2= f:a@2=new f:a@1=old g:b@3=other";
    put(t, "r", "f", "a", "old", 1);
    put(t, "r", "f", "a", "new", 2);
    put(t, "r", "f", "", "", 2);
    put(t, "r", "g", "b", "other", 3);
    OK(rq_table_get(t, &get, &row, &why));
    OK(rq_row_copy(row, &of_get, &why));
    rq_row_free(row);
    OK(rq_table_batch(t, &action, 1, &results, &why));
    OK(rq_row_copy(results->items[0].row, &of_results, &why));
    rq_results_free(results);
    OK(rq_table_scan(t, &scan, &scanner, &why));
    OK(rq_scanner_next_rows(scanner, 0, &rows, &why));
    assert_int_equal(rows->count, 1);
    OK(rq_row_copy(rows->items[0], &of_scan, &why));
    rq_rows_free(rows);
    rq_scanner_close(scanner);
    OK(rq_row_copy(of_scan, &again, &why));
    rq_row_free(of_scan);
    get.row = rq_text("none");
    OK(rq_table_get(t, &get, &row, &why));
    OK(rq_row_copy(row, &empty, &why));
    rq_row_free(row);
    expect_cells(of_get, all);
    expect_cells(of_results, all);
    expect_cells(again, all);
    expect_cells(empty, "");
    for (size_t i = 0; i < again->count; i++)
        assert_true(is(again->cells[i].row, "r") && again->cells[i].type == RQ_KV_PUT);
    assert_true(again->exists && !again->is_partial && again->cursor.len == 0);
    assert_false(empty->exists);
    rq_row_free(of_get);
    rq_row_free(of_results);
    rq_row_free(again);
    rq_row_free(empty);
    finish(t, "copies");
}

static void cells_are_copied(void **state)
{
    (void)state;
    rq_kv none = {.timestamp = 7, .type = RQ_KV_DELETE_FAMILY}, *cell;
    rq_table *t = make("cells", "3", NULL, 0);
    rq_get_request get = {.size = sizeof get, .row = rq_text("r")};
    rq_row *row;
    put(t, "r", "f", "a", "value", 5);
    OK(rq_table_get(t, &get, &row, &why));
    OK(rq_kv_copy(rq_row_find(row, rq_text("f"), rq_text("a")), &cell, &why));
    rq_row_free(row);
    assert_true(is(cell->row, "r") && is(cell->family, "f") && is(cell->qualifier, "a"));
    assert_true(is(cell->value, "value") && cell->timestamp == 5 && cell->type == RQ_KV_PUT);
    rq_kv_free(cell);
    OK(rq_kv_copy(&none, &cell, &why));
    assert_true(is(cell->row, "") && is(cell->value, "") && cell->timestamp == 7);
    assert_true(cell->type == RQ_KV_DELETE_FAMILY);
    rq_kv_free(cell);
    finish(t, "cells");
}

/* A row that is only a scan position (a cursor): its copy has the key. */
static void a_cursor_is_copied(void **state)
{
    (void)state;
    char key[] = "position";
    rq_row made = {.cursor = rq_text(key)}, *copy;
    OK(rq_row_copy(&made, &copy, &why));
    memset(key, 'x', sizeof key - 1);
    assert_true(copy->count == 0 && is(copy->cursor, "position"));
    rq_row_free(copy);
}

int run_gets(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_get_picks_cells),
        cmocka_unit_test(a_get_has_limits_and_filters),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(other_versions_structs_work),
        cmocka_unit_test(a_missing_or_disabled_table_is_reported),
        cmocka_unit_test(rows_are_copied),
        cmocka_unit_test(cells_are_copied),
        cmocka_unit_test(a_cursor_is_copied),
    };
    return cmocka_run_group_tests_name("gets", tests, open_db, close_db);
}
