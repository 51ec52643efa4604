/* SPDX-License-Identifier: Apache-2.0 */
/* Puts, deletes, counters, appends, checks, changes of one row together. Part of test_api. */
#include "api_rows.h"

static void deletes_remove_what_they_say(void **state)
{
    (void)state;
    rq_table *t = make("deletes", "5", NULL, 0);
    char row[3] = "r0";
    for (int i = 0; i < 6; i++) {
        row[1] = (char)('0' + i);
        for (int ts = 1; ts <= 3; ts++) {
            put(t, row, "f", "a", "v", ts);
            put(t, row, "f", "b", "v", ts);
        }
        put(t, row, "g", "c", "v", 1);
    }
    OK(erase(t, "r0", RQ_DELETE_COLUMN, "a", 2));
    expect_row(t, "r0", "f:a@3=v f:b@3=v f:b@2=v f:b@1=v g:c@1=v");
    OK(erase(t, "r1", RQ_DELETE_VERSION, "a", 2));
    expect_row(t, "r1", "f:a@3=v f:a@1=v f:b@3=v f:b@2=v f:b@1=v g:c@1=v");
    OK(erase(t, "r1", RQ_DELETE_VERSION, "a", 0)); /* deletes the newest version */
    expect_row(t, "r1", "f:a@1=v f:b@3=v f:b@2=v f:b@1=v g:c@1=v");
    OK(erase(t, "r2", RQ_DELETE_FAMILY, "", 2));
    expect_row(t, "r2", "f:a@3=v f:b@3=v g:c@1=v");
    OK(erase(t, "r3", RQ_DELETE_FAMILY_VERSION, "", 2));
    expect_row(t, "r3", "f:a@3=v f:a@1=v f:b@3=v f:b@1=v g:c@1=v");
    OK(erase(t, "r4", RQ_DELETE_COLUMN, "a", 0));
    expect_row(t, "r4", "f:b@3=v f:b@2=v f:b@1=v g:c@1=v");
    rq_change whole = {
        .size = sizeof whole, .kind = RQ_DELETE, .row = rq_text("r5"), .timestamp = 1};
    OK(rq_table_change(t, &whole, NULL, &why));
    expect_row(t, "r5", "f:a@3=v f:a@2=v f:b@3=v f:b@2=v");
    OK(rq_delete_row(t, rq_text("r5"), &why));
    expect_row(t, "r5", "");
    put(t, "zero", "f", "q", "v", RQ_TIMESTAMP_ZERO);
    expect_row(t, "zero", "f:q@0=v");
    finish(t, "deletes");
}

static void counters_and_appends_return_their_cells(void **state)
{
    (void)state;
    rq_table *t = make("counters", "1", NULL, 0);
    int64_t sum = 0;
    rq_row *row = NULL;
    for (int i = 1; i <= 3; i++)
        OK(rq_add_value(t, rq_text("r"), rq_text("f"), rq_text("n"), 5, &sum, &why));
    assert_int_equal(sum, 15);
    OK(rq_add_value(t, rq_text("r"), rq_text("f"), rq_text("n"), -20, &sum, &why));
    assert_int_equal(sum, -5);
    rq_edit edits[] = {{.family = rq_text("f"), .qualifier = rq_text("s"), .value = rq_text("ab")},
                       {.family = rq_text("g"), .qualifier = rq_text("s"), .value = rq_text("x")}};
    rq_change append = {.size = sizeof append,
                        .kind = RQ_APPEND,
                        .row = rq_text("r"),
                        .edits = edits,
                        .edit_count = 2};
    OK(rq_table_change(t, &append, NULL, &why));
    OK(rq_table_change(t, &append, &row, &why));
    assert_int_equal(row->count, 2);
    const rq_kv *cell = rq_row_find(row, rq_text("f"), rq_text("s"));
    assert_non_null(cell);
    assert_true(is(cell->value, "abab"));
    assert_true(is(cell->row, "r"));
    assert_null(rq_row_find(row, rq_text("f"), rq_text("n")));
    rq_row_free(row);
    append.returns_nothing = true;
    OK(rq_table_change(t, &append, &row, &why));
    assert_int_equal(row->count, 0);
    rq_row_free(row);
    char buf[16];
    size_t len = 0;
    OK(rq_get_value(t, rq_text("r"), rq_text("f"), rq_text("s"), buf, sizeof buf, &len, &why));
    assert_true(is(rq_bytes_of(buf, len), "ababab"));
    FAILS(RQ_E_RESULT_TOO_LARGE,
          rq_get_value(t, rq_text("r"), rq_text("f"), rq_text("s"), buf, 3, &len, &why));
    assert_int_equal(len, 6);
    OK(rq_get_value(t, rq_text("r"), rq_text("f"), rq_text("none"), buf, 3, &len, &why));
    assert_true(len == SIZE_MAX);
    FAILS(RQ_E_DO_NOT_RETRY,
          rq_add_value(t, rq_text("r"), rq_text("f"), rq_text("s"), 1, &sum, &why));
    finish(t, "counters");
}

static bool check(rq_table *t, rq_compare compare, const char *value, const char *filter,
                  const char *put_value)
{
    bool done = false;
    rq_check c = {.size = sizeof c,
                  .family = rq_text("f"),
                  .qualifier = rq_text("q"),
                  .compare = compare,
                  .value = rq_text(value),
                  .filter_text = filter};
    rq_edit edit = {.family = rq_text("f"), .qualifier = rq_text("q"), .value = rq_text(put_value)};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_PUT,
                        .row = rq_text("r"),
                        .edits = &edit,
                        .edit_count = 1};
    edit.timestamp = 1;
    OK(rq_table_check_and_change(t, &c, &change, 1, &done, NULL, &why));
    return done;
}

static void a_check_decides(void **state)
{
    (void)state;
    rq_table *t = make("checks", "1", NULL, 0);
    assert_false(check(t, RQ_COMPARE_EQUAL, "one", NULL, "two"));
    assert_true(check(t, RQ_COMPARE_ABSENT, "", NULL, "one"));
    assert_false(check(t, RQ_COMPARE_ABSENT, "", NULL, "two"));
    assert_true(check(t, RQ_COMPARE_EQUAL, "one", NULL, "two"));
    assert_false(check(t, RQ_COMPARE_NOT_EQUAL, "two", NULL, "three"));
    assert_true(check(t, RQ_COMPARE_NOT_EQUAL, "one", NULL, "m"));
    assert_true(check(t, RQ_COMPARE_LESS, "a", NULL, "m"));
    assert_false(check(t, RQ_COMPARE_LESS, "m", NULL, "x"));
    assert_true(check(t, RQ_COMPARE_LESS_OR_EQUAL, "m", NULL, "m"));
    assert_true(check(t, RQ_COMPARE_GREATER, "z", NULL, "m"));
    assert_false(check(t, RQ_COMPARE_GREATER, "m", NULL, "x"));
    assert_true(check(t, RQ_COMPARE_GREATER_OR_EQUAL, "m", NULL, "m"));
    assert_false(check(t, 0, "", "ValueFilter(=, 'binary:other')", "x"));
    assert_true(check(t, 0, "", "ValueFilter(=, 'binary:m')", "end"));
    expect_row(t, "r", "f:q@1=end");
    /* Several changes, and one whose result is requested. */
    bool done = false;
    rq_check is_end = {.size = sizeof is_end,
                       .family = rq_text("f"),
                       .qualifier = rq_text("q"),
                       .value = rq_text("end")};
    rq_edit set = {
        .family = rq_text("g"), .qualifier = rq_text("x"), .value = rq_text("1"), .timestamp = 2};
    rq_edit unset = {.family = rq_text("f"), .qualifier = rq_text("q")};
    rq_change changes[] = {{.size = sizeof(rq_change),
                            .kind = RQ_PUT,
                            .row = rq_text("r"),
                            .edits = &set,
                            .edit_count = 1},
                           {.size = sizeof(rq_change),
                            .kind = RQ_DELETE,
                            .row = rq_text("r"),
                            .edits = &unset,
                            .edit_count = 1}};
    OK(rq_table_check_and_change(t, &is_end, changes, 2, &done, NULL, &why));
    assert_true(done);
    expect_row(t, "r", "g:x@2=1");
    rq_check is_one = {.size = sizeof is_one,
                       .family = rq_text("g"),
                       .qualifier = rq_text("x"),
                       .value = rq_text("1")};
    rq_edit more = {.family = rq_text("f"), .qualifier = rq_text("n"), .amount = 7};
    rq_change add = {.size = sizeof add,
                     .kind = RQ_INCREMENT,
                     .row = rq_text("r"),
                     .edits = &more,
                     .edit_count = 1};
    rq_row *row = NULL;
    OK(rq_table_check_and_change(t, &is_one, &add, 1, &done, &row, &why));
    assert_true(done);
    assert_int_equal(row->count, 1);
    rq_row_free(row);
    finish(t, "checks");
}

static void changes_of_a_row_are_atomic(void **state)
{
    (void)state;
    rq_table *t = make("atomic", "1", NULL, 0);
    put(t, "r", "f", "old", "v", 1);
    rq_edit set = {
        .family = rq_text("f"), .qualifier = rq_text("new"), .value = rq_text("w"), .timestamp = 5};
    rq_edit unset = {.family = rq_text("f"), .qualifier = rq_text("old")};
    rq_edit wrong = {.family = rq_text("h"), .qualifier = rq_text("x"), .value = rq_text("w")};
    rq_change changes[3] = {{.size = sizeof(rq_change),
                             .kind = RQ_PUT,
                             .row = rq_text("r"),
                             .edits = &set,
                             .edit_count = 1},
                            {.size = sizeof(rq_change),
                             .kind = RQ_DELETE,
                             .row = rq_text("r"),
                             .edits = &unset,
                             .edit_count = 1},
                            {.size = sizeof(rq_change),
                             .kind = RQ_PUT,
                             .row = rq_text("r"),
                             .edits = &wrong,
                             .edit_count = 1}};
    FAILS(RQ_E_NO_SUCH_FAMILY, rq_table_change_row(t, changes, 3, &why));
    expect_row(t, "r", "f:old@1=v");
    OK(rq_table_change_row(t, changes, 2, &why));
    expect_row(t, "r", "f:new@5=w");
    changes[1].row = rq_text("s");
    FAILS(RQ_E_INVALID, rq_table_change_row(t, changes, 2, &why));
    finish(t, "atomic");
}

/* The texts are those of HBase's client. */
static void changes_without_edits_are_refused(void **state)
{
    (void)state;
    static const struct {
        rq_change_kind kind;
        const char *text;
    } wrong[] = {{RQ_PUT, "No columns to insert"},
                 {RQ_APPEND, "Invalid arguments to an append, zero columns specified"},
                 {RQ_INCREMENT, "Invalid arguments to an increment, zero columns specified"}};
    rq_table *t = make("empty", "1", NULL, 0);
    put(t, "r", "f", "q", "v", 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        rq_change c = {.size = sizeof c, .kind = wrong[i].kind, .row = rq_text("r")};
        FAILS(RQ_E_INVALID, rq_table_change_row(t, &c, 1, &why));
        assert_non_null(strstr(why.message, wrong[i].text));
    }
    expect_row(t, "r", "f:q@1=v");
    rq_change row = {.size = sizeof row, .kind = RQ_DELETE, .row = rq_text("r")};
    OK(rq_table_change_row(t, &row, 1, &why));
    expect_row(t, "r", "");
    finish(t, "empty");
}

/* The cell's timestamp makes it expired, so the test does not wait. */
static void a_cell_expires(void **state)
{
    (void)state;
    rq_table *t = make("ttl", "1", NULL, 0);
    rq_edit edit = {.family = rq_text("f"), .qualifier = rq_text("q"), .value = rq_text("v")};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_PUT,
                        .row = rq_text("lives"),
                        .edits = &edit,
                        .edit_count = 1,
                        .ttl_ms = 3600000};
    OK(rq_table_change(t, &change, NULL, &why));
    edit.timestamp = 1;
    change.row = rq_text("expired");
    OK(rq_table_change(t, &change, NULL, &why));
    rq_get_request get = {.size = sizeof get, .row = rq_text("lives")};
    rq_row *row;
    OK(rq_table_get(t, &get, &row, &why));
    assert_int_equal(row->count, 1);
    rq_row_free(row);
    get.row = rq_text("expired");
    OK(rq_table_get(t, &get, &row, &why));
    assert_int_equal(row->count, 0);
    rq_row_free(row);
    finish(t, "ttl");
}

int run_changes(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deletes_remove_what_they_say),
        cmocka_unit_test(counters_and_appends_return_their_cells),
        cmocka_unit_test(a_check_decides),
        cmocka_unit_test(changes_of_a_row_are_atomic),
        cmocka_unit_test(changes_without_edits_are_refused),
        cmocka_unit_test(a_cell_expires),
    };
    return cmocka_run_group_tests_name("changes", tests, open_db, close_db);
}
