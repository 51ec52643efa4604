/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: each action has its own outcome; large batches. Part of test_api. */
#include "api_rows.h"

static void a_batch_has_an_outcome_for_each_action(void **state)
{
    (void)state;
    rq_bytes splits[] = {rq_text("h"), rq_text("p")};
    rq_table *t = make("batches", "1", splits, 2);
    put(t, "x", "f", "q", "x", 1);
    rq_get_request get_x = {.size = sizeof get_x, .row = rq_text("x")};
    rq_get_request get_a = {.size = sizeof get_a, .row = rq_text("a")};
    rq_column absent = {rq_text("h"), {NULL, 0}};
    rq_get_request get_wrong = {
        .size = sizeof get_wrong, .row = rq_text("k"), .columns = &absent, .column_count = 1};
    rq_edit set = {
        .family = rq_text("f"), .qualifier = rq_text("q"), .value = rq_text("a"), .timestamp = 1};
    rq_edit add = {.family = rq_text("f"), .qualifier = rq_text("n"), .amount = 3};
    rq_edit unset = {.family = rq_text("f"), .qualifier = rq_text("q")};
    rq_change put_a = {
        .size = sizeof put_a, .kind = RQ_PUT, .row = rq_text("a"), .edits = &set, .edit_count = 1};
    rq_change add_m = {.size = sizeof add_m,
                       .kind = RQ_INCREMENT,
                       .row = rq_text("m"),
                       .edits = &add,
                       .edit_count = 1};
    rq_change del_x = {.size = sizeof del_x,
                       .kind = RQ_DELETE,
                       .row = rq_text("x"),
                       .edits = &unset,
                       .edit_count = 1};
    rq_change both[] = {put_a, put_a};
    rq_edit set2 = {
        .family = rq_text("g"), .qualifier = rq_text("q"), .value = rq_text("b"), .timestamp = 1};
    both[0].row = both[1].row = rq_text("b");
    both[1].edits = &set2;
    rq_action actions[] = {{&get_x, NULL, 0}, {NULL, &del_x, 1}, {&get_x, NULL, 0},
                           {NULL, &add_m, 1}, {NULL, &put_a, 1}, {&get_a, NULL, 0},
                           {NULL, &add_m, 1}, {NULL, both, 2}};
    rq_results *r = NULL;
    OK(rq_table_batch(t, actions, 8, &r, &why));
    assert_int_equal(r->count, 8);
    assert_true(is(r->items[0].row->cells[0].value, "x"));
    assert_null(r->items[1].row);
    /* a get may or may not see the changes of its batch */
    assert_true(r->items[2].row->count <= 1);
    assert_int_equal(((const uint8_t *)r->items[3].row->cells[0].value.data)[7], 3);
    assert_int_equal(((const uint8_t *)r->items[6].row->cells[0].value.data)[7], 6);
    rq_results_free(r);
    expect_row(t, "b", "f:q@1=a g:q@1=b");
    expect_row(t, "x", "");
    rq_action failing[] = {{&get_a, NULL, 0}, {&get_wrong, NULL, 0}, {NULL, &put_a, 1}};
    r = NULL;
    FAILS(RQ_E_NO_SUCH_FAMILY, rq_table_batch(t, failing, 3, &r, &why));
    assert_int_equal(why.action, 1);
    assert_int_equal(r->items[0].code, RQ_OK);
    assert_int_equal(r->items[1].code, RQ_E_NO_SUCH_FAMILY);
    assert_false(r->items[1].retryable);
    assert_string_equal(r->items[1].hbase_class,
                        "org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException");
    assert_int_equal(r->items[2].code, RQ_OK);
    rq_results_free(r);
    OK(rq_table_batch(t, actions, 0, &r, &why));
    assert_int_equal(r->count, 0);
    rq_results_free(r);
    failing[1] = (rq_action){NULL, NULL, 0};
    FAILS(RQ_E_INVALID, rq_table_batch(t, failing, 3, &r, &why));
    assert_int_equal(why.action, 1);
    finish(t, "batches");
}

static void large_batches_and_values_fit(void **state)
{
    (void)state;
    enum { ROWS = 1000, BYTES = 1 << 20 };
    rq_bytes splits[] = {rq_text("r0300"), rq_text("r0700")};
    rq_table *t = make("large", "1", splits, 2);
    static char rows[ROWS][8];
    static rq_edit edits[ROWS];
    static rq_change changes[ROWS];
    static rq_get_request gets[ROWS];
    static rq_action actions[ROWS];
    for (int i = 0; i < ROWS; i++) {
        snprintf(rows[i], sizeof rows[i], "r%04d", i * 7 % ROWS);
        edits[i] =
            (rq_edit){.family = rq_text("f"), .qualifier = rq_text("q"), .value = rq_text(rows[i])};
        changes[i] = (rq_change){.size = sizeof changes[i],
                                 .kind = RQ_PUT,
                                 .row = rq_text(rows[i]),
                                 .edits = &edits[i],
                                 .edit_count = 1};
        actions[i] = (rq_action){NULL, &changes[i], 1};
        gets[i] = (rq_get_request){.size = sizeof gets[i], .row = rq_text(rows[i])};
    }
    OK(rq_table_batch(t, actions, ROWS, NULL, &why));
    for (int i = 0; i < ROWS; i++)
        actions[i] = (rq_action){&gets[i], NULL, 0};
    rq_results *r;
    OK(rq_table_batch(t, actions, ROWS, &r, &why));
    for (int i = 0; i < ROWS; i++)
        assert_true(is(r->items[i].row->cells[0].value, rows[i]));
    rq_results_free(r);
    char *value = malloc(BYTES), *back = malloc(BYTES);
    size_t len;
    for (int i = 0; i < BYTES; i++)
        value[i] = (char)(i * 31 >> 3);
    OK(rq_put_value(t, rq_text("big"), rq_text("g"), rq_text("q"), rq_bytes_of(value, BYTES),
                    &why));
    OK(rq_table_flush(at.db, "large", &why));
    OK(rq_get_value(t, rq_text("big"), rq_text("g"), rq_text("q"), back, BYTES, &len, &why));
    assert_int_equal(len, BYTES);
    assert_memory_equal(value, back, BYTES);
    free(value);
    free(back);
    finish(t, "large");
}

int run_batches(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_has_an_outcome_for_each_action),
        cmocka_unit_test(large_batches_and_values_fit),
    };
    return cmocka_run_group_tests_name("batches", tests, open_db, close_db);
}
