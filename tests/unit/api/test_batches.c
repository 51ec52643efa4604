/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: each action has its own outcome; large batches. Part of test_api. */
#include "api_rows.h"

#include "rorqual/filters.h"

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

/* --- checks in a batch ------------------------------------------------------------------------ */

static rq_change put_of(const char *row, const rq_edit *edit)
{
    return (rq_change){.size = sizeof(rq_change),
                       .kind = RQ_PUT,
                       .row = rq_text(row),
                       .edits = edit,
                       .edit_count = 1};
}

static rq_check check_of(rq_compare compare, const char *value)
{
    return (rq_check){.size = sizeof(rq_check),
                      .family = rq_text("f"),
                      .qualifier = rq_text("q"),
                      .compare = compare,
                      .value = rq_text(value)};
}

static rq_checked_action action_of(const rq_check *check, const rq_change *changes, size_t count)
{
    return (rq_checked_action){.size = sizeof(rq_checked_action),
                               .check = check,
                               .changes = changes,
                               .change_count = count};
}

static void a_batch_may_have_checks(void **state)
{
    (void)state;
    rq_bytes split = rq_text("m");
    rq_table *t = make("batch_checks", "1", &split, 1);
    put(t, "a", "f", "q", "1", 1);
    put(t, "x", "f", "q", "1", 1);
    rq_edit two = {rq_text("f"), rq_text("q"), rq_text("2"), 2, 0, 0, 0};
    rq_edit three = {rq_text("f"), rq_text("q"), rq_text("3"), 3, 0, 0, 0};
    rq_edit other = {rq_text("g"), rq_text("r"), rq_text("o"), 1, 0, 0, 0};
    rq_edit tail = {rq_text("f"), rq_text("q"), rq_text("+"), 0, 0, 0, 0};
    rq_check is1 = check_of(RQ_COMPARE_EQUAL, "1"), is2 = check_of(RQ_COMPARE_EQUAL, "2");
    rq_check absent = check_of(RQ_COMPARE_ABSENT, "");
    rq_check filtered = {.size = sizeof filtered, .filter_text = "ValueFilter(=, 'binary:3')"};
    rq_check wrong = is1;
    wrong.family = rq_text("nope");
    rq_change a_two = put_of("a", &two), a_three = put_of("a", &three), b_two = put_of("b", &two);
    rq_change x_both[] = {put_of("x", &two), put_of("x", &other)};
    rq_change append = {.size = sizeof append,
                        .kind = RQ_APPEND,
                        .row = rq_text("a"),
                        .edits = &tail,
                        .edit_count = 1};
    rq_get_request get_x = {.size = sizeof get_x, .row = rq_text("x")};
    rq_checked_action actions[] = {
        action_of(&is1, &a_two, 1),       /* 0 holds */
        action_of(&is1, &a_three, 1),     /* 1 does not: it sees 0 */
        action_of(&is2, &a_three, 1),     /* 2 holds */
        action_of(&is2, x_both, 2),       /* 3 does not */
        action_of(&is1, x_both, 2),       /* 4 holds */
        action_of(&absent, &b_two, 1),    /* 5 holds */
        action_of(&filtered, &append, 1), /* 6 holds, and returns a row */
        action_of(&is1, &append, 1),      /* 7 does not */
        action_of(NULL, &b_two, 1),       /* 8 has no check */
        {.size = sizeof actions[0], .get = &get_x},
    };
    enum { COUNT = sizeof actions / sizeof actions[0] };
    const bool done[COUNT] = {1, 0, 1, 0, 1, 1, 1, 0, 1, 1};
    rq_results *r = NULL;
    OK(rq_table_batch_checked(t, actions, COUNT, &r, &why));
    assert_int_equal(r->count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(r->items[i].code, RQ_OK);
        assert_int_equal(r->items[i].done, done[i]);
    }
    assert_true(is(r->items[6].row->cells[0].value, "3+"));
    assert_true(r->items[7].row == NULL || r->items[7].row->count == 0);
    rq_results_free(r);
    expect_row(t, "x", "f:q@2=2 g:r@1=o");
    expect_row(t, "b", "f:q@2=2");
    /* A check that fails does so alone. */
    rq_checked_action failing[] = {action_of(&wrong, &a_two, 1), action_of(&is2, &b_two, 1)};
    r = NULL;
    FAILS(RQ_E_NO_SUCH_FAMILY, rq_table_batch_checked(t, failing, 2, &r, &why));
    assert_int_equal(why.action, 0);
    assert_int_equal(r->items[0].code, RQ_E_NO_SUCH_FAMILY);
    assert_true(r->items[1].code == RQ_OK && r->items[1].done);
    rq_results_free(r);
    /* Arguments. */
    failing[1].get = &get_x;
    failing[1].changes = NULL;
    failing[1].change_count = 0;
    r = NULL;
    FAILS(RQ_E_INVALID, rq_table_batch_checked(t, failing, 2, &r, &why));
    assert_true(why.action == 1 && r == NULL);
    failing[0].size = sizeof(size_t);
    FAILS(RQ_E_INVALID, rq_table_batch_checked(t, failing, 1, &r, &why));
    FAILS(RQ_E_INVALID, rq_table_batch_checked(t, NULL, 1, &r, &why));
    FAILS(RQ_E_INVALID, rq_table_batch_checked_async(t, failing, 1, NULL, NULL, &why));
    OK(rq_table_batch_checked(t, actions, 0, NULL, &why));
    finish(t, "batch_checks");
}

static void note_results(void *context, const rq_completion *c)
{
    assert_int_equal(c->code, RQ_OK);
    *(bool *)context = !c->results->items[0].done && c->results->items[1].done;
    rq_results_free(c->results);
}

static void checks_of_asynchronous_batches_are_copied(void **state)
{
    (void)state;
    char value[] = "1";
    bool right = false;
    size_t ran = 0;
    rq_table *t = make("checks_async", "1", NULL, 0);
    put(t, "a", "f", "q", "2", 1);
    rq_edit edit = {rq_text("f"), rq_text("q"), rq_text("3"), 3, 0, 0, 0};
    rq_change change = put_of("a", &edit);
    rq_check is1 = check_of(RQ_COMPARE_EQUAL, value), not1 = check_of(RQ_COMPARE_NOT_EQUAL, value);
    rq_checked_action actions[] = {action_of(&is1, &change, 1), action_of(&not1, &change, 1)};
    OK(rq_table_batch_checked_async(t, actions, 2, note_results, &right, &why));
    value[0] = '2';
    memset(actions, 0, sizeof actions);
    memset(&is1, 0, sizeof is1);
    while (ran == 0)
        OK(rq_poll(at.db, -1, &ran, &why));
    assert_true(right);
    expect_row(t, "a", "f:q@3=3");
    finish(t, "checks_async");
}

/* Ends with an error for its first action only: its filter, a regular expression with an open group, cannot be read. */
static void refuse_check(rq_table *t, const rq_change *refused, size_t count, const rq_change *next)
{
    rq_filters *f = rq_filters_new();
    rq_check unread = {
        .size = sizeof unread,
        .filter = rq_value_filter(f, RQ_COMPARE_EQUAL, rq_regex_comparator(f, rq_text("("), 0))};
    rq_checked_action actions[] = {action_of(&unread, refused, count), action_of(NULL, next, 1)};
    rq_results *r = NULL;
    assert_int_not_equal(rq_table_batch_checked(t, actions, 2, &r, &why), RQ_OK);
    assert_non_null(r);
    assert_int_not_equal(r->items[0].code, RQ_OK);
    assert_int_equal(r->items[1].code, RQ_OK);
    rq_results_free(r);
    rq_filters_free(f);
}

static void a_check_that_cannot_be_read_leaves_the_cells_of_others(void **state)
{
    (void)state;
    static const char *rows[] = {"a", "b", "c", "d", "e", "f", "g"};
    rq_table *t = make("checks_refused", "3", NULL, 0);
    rq_edit sets[] = {{rq_text("f"), rq_text("q"), rq_text("bad-long"), 7, 0, 0, 0},
                      {rq_text("f"), rq_text("s"), rq_text("bad"), 7, 0, 0, 0}};
    rq_edit erases[] = {{rq_text("f"), rq_text("p"), {0}, 7, 0, RQ_DELETE_COLUMN, 0},
                        {rq_text("f"), {0}, {0}, 7, 0, RQ_DELETE_FAMILY, 0},
                        {rq_text("f"), {0}, {0}, 1, 0, RQ_DELETE_FAMILY_VERSION, 0}};
    rq_edit good = {rq_text("f"), rq_text("r"), rq_text("good"), 5, 0, 0, 0};
    const struct {
        rq_change_kind kind;
        const rq_edit *edits;
        size_t edit_count, change_count;
    } cases[] = {{RQ_PUT, sets, 1, 1},      {RQ_PUT, sets, 2, 1},      {RQ_PUT, sets, 1, 2},
                 {RQ_APPEND, sets, 2, 1},   {RQ_DELETE, erases, 1, 1}, {RQ_DELETE, erases, 3, 1},
                 {RQ_INCREMENT, sets, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rq_change change = put_of(rows[i], cases[i].edits);
        change.kind = cases[i].kind;
        change.edit_count = cases[i].edit_count;
        rq_change refused[] = {change, change}, next = put_of(rows[i], &good);
        put(t, rows[i], "f", "p", "kept", 1);
        refuse_check(t, refused, cases[i].change_count, &next);
        expect_row(t, rows[i], "f:p@1=kept f:r@5=good");
    }
    finish(t, "checks_refused");
}

enum { EDITS = 3 };
static const char *const VALUES[] = {"0", "1", "2"};

/* A put or delete of up to three cells. */
static rq_change random_change(unsigned *seed, const char *row, int64_t timestamp, rq_edit *edits)
{
    rq_change change = put_of(row, edits);
    change.kind = rand_r(seed) % 2 == 0 ? RQ_PUT : RQ_DELETE;
    change.edit_count = 1 + (size_t)(rand_r(seed) % EDITS);
    for (size_t i = 0; i < change.edit_count; i++)
        edits[i] = (rq_edit){.family = rq_text(rand_r(seed) % 2 == 0 ? "f" : "g"),
                             .qualifier = rq_text(rand_r(seed) % 2 == 0 ? "q" : "r"),
                             .value = rq_text(VALUES[rand_r(seed) % 3]),
                             .timestamp = timestamp - rand_r(seed) % 4,
                             .scope = (rq_delete_scope)(rand_r(seed) % 4)};
    return change;
}

/* Random actions in batches of one table, and one by one in another: outcomes and rows are the same. */
static void batches_of_checks_are_as_single_calls(void **unused)
{
    (void)unused;
    enum { BATCHES = 40, ACTIONS = 24, ROWS = 3 };
    static const char *rows[ROWS] = {"b", "k", "s"};
    const char *given = getenv("SEED");
    unsigned seed = given != NULL ? (unsigned)strtoul(given, NULL, 10) : 4711;
    rq_bytes splits[] = {rq_text("h"), rq_text("p")};
    rq_table *t = make("checks_batch", "9", splits, 2), *one = make("checks_single", "9", NULL, 0);
    for (int batch = 0; batch < BATCHES; batch++) {
        rq_edit edits[ACTIONS][2][EDITS];
        rq_change changes[ACTIONS][2];
        rq_check checks[ACTIONS];
        rq_checked_action actions[ACTIONS];
        rq_results *r;
        for (int i = 0; i < ACTIONS; i++) {
            const char *row = rows[rand_r(&seed) % ROWS];
            size_t count = 1 + (size_t)(rand_r(&seed) % 2);
            for (size_t c = 0; c < count; c++)
                changes[i][c] = random_change(&seed, row, 10 + batch * ACTIONS + i, edits[i][c]);
            checks[i] = check_of((rq_compare)(rand_r(&seed) % 7), VALUES[rand_r(&seed) % 3]);
            actions[i] = action_of(rand_r(&seed) % 4 == 0 ? NULL : &checks[i], changes[i], count);
        }
        OK(rq_table_batch_checked(t, actions, ACTIONS, &r, &why));
        for (int i = 0; i < ACTIONS; i++) {
            bool held = true;
            if (actions[i].check == NULL)
                OK(rq_table_change_row(one, changes[i], actions[i].change_count, &why));
            else
                OK(rq_table_check_and_change(one, &checks[i], changes[i], actions[i].change_count,
                                             &held, NULL, &why));
            if (r->items[i].done != held) fail_msg("batch %d, action %d: %d", batch, i, held);
        }
        rq_results_free(r);
    }
    for (int i = 0; i < ROWS; i++) {
        rq_get_request get = {
            .size = sizeof get, .row = rq_text(rows[i]), .max_versions = INT32_MAX};
        rq_row *row;
        OK(rq_table_get(one, &get, &row, &why));
        char *expected = text_of(row);
        expect_get(t, &get, expected);
        free(expected);
        rq_row_free(row);
    }
    finish(t, "checks_batch");
    finish(one, "checks_single");
}

int run_batches(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_has_an_outcome_for_each_action),
        cmocka_unit_test(a_batch_may_have_checks),
        cmocka_unit_test(checks_of_asynchronous_batches_are_copied),
        cmocka_unit_test(a_check_that_cannot_be_read_leaves_the_cells_of_others),
        cmocka_unit_test(batches_of_checks_are_as_single_calls),
        cmocka_unit_test(large_batches_and_values_fit),
    };
    return cmocka_run_group_tests_name("batches", tests, open_db, close_db);
}
