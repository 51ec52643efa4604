/* SPDX-License-Identifier: Apache-2.0 */
/* Gets: columns, versions, limits, filters; what is refused. Part of test_api. */
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
    /* Out of order, one twice, a family beside its own column. */
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
    /* The longest row. */
    OK(rq_put_value(t, rq_bytes_of(large, 32767), rq_text("f"), rq_text("q"), rq_text("v"), &why));
    free(large);
    finish(t, "wrong_requests");
}

/* A program built with an older or a newer header. */
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

static void a_missing_or_disabled_table_is_told(void **state)
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

int run_gets(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_get_picks_cells),
        cmocka_unit_test(a_get_has_limits_and_filters),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(other_versions_structs_work),
        cmocka_unit_test(a_missing_or_disabled_table_is_told),
    };
    return cmocka_run_group_tests_name("gets", tests, open_db, close_db);
}
