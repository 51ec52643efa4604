/* SPDX-License-Identifier: Apache-2.0 */
/* A program of tests/wire/library.py and tests/e2e/library_restarts.py: restarted URL [TEST]. For each line that it prints, the server is killed and started
 * again on the same ports, and then a line is written to the program. No call of any kind may fail, whether the server was killed
 * before it or while it was outstanding. */
#include "api_test.h"

#include <unistd.h>

enum { ROWS = 300, FETCH = 100, CALLS = 500 };

/* A call that is outstanding when the server is killed has as long as the restart takes: on a busy machine HBase takes minutes. */
#define TIMEOUT_MS (60 * 60 * 1000)

static rq_db *db;
static rq_table *table;
static rq_failure why = {.size = sizeof(rq_failure)};
static rq_bytes f = {"f", 1}, q = {"q", 1};

static void restart(void)
{
    char line[8];
    assert_int_equal(write(STDOUT_FILENO, "kill\n", 5), 5);
    assert_non_null(fgets(line, sizeof line, stdin));
}

/* After a kill of the server. */
#define AGAIN(call)                                                                                \
    do {                                                                                           \
        restart();                                                                                 \
        OK(call);                                                                                  \
    } while (0)

static int begin(void **state)
{
    rq_family family = {"f", NULL, 0};
    rq_bytes split = rq_text("150");
    rq_table_spec spec = {.size = sizeof spec,
                          .name = "restarted",
                          .families = &family,
                          .family_count = 1,
                          .split_keys = &split,
                          .split_key_count = 1};
    rq_connect_options o = {.size = sizeof o, .timeout_ms = TIMEOUT_MS};
    OK(rq_connect(*state, &o, &db, &why));
    OK(rq_table_create(db, &spec, &why));
    OK(rq_table_open(db, "restarted", &table, &why));
    return 0;
}

static int end(void **state)
{
    (void)state;
    rq_table_close(table);
    OK(rq_table_disable(db, "restarted", &why));
    OK(rq_table_drop(db, "restarted", &why));
    OK(rq_disconnect(db, &why));
    return 0;
}

static void fill(void)
{
    static char rows[ROWS][4];
    static rq_edit edit;
    static rq_change puts[ROWS];
    static rq_action actions[ROWS];
    edit = (rq_edit){.family = f, .qualifier = q, .value = rq_text("v")};
    for (int i = 0; i < ROWS; i++) {
        snprintf(rows[i], sizeof rows[i], "%03d", i);
        puts[i] = (rq_change){.size = sizeof puts[i],
                              .kind = RQ_PUT,
                              .row = rq_text(rows[i]),
                              .edits = &edit,
                              .edit_count = 1};
        actions[i] = (rq_action){.changes = &puts[i], .change_count = 1};
    }
    AGAIN(rq_table_batch(table, actions, ROWS, NULL, &why));
}

static void data(void **state)
{
    char value[8], expected[4];
    int64_t sum;
    size_t len;
    rq_scan_request scan = {.size = sizeof scan, .caching = FETCH};
    rq_scanner *s;
    rq_row *row;
    (void)state;
    fill();
    OK(rq_table_scan(table, &scan, &s, &why));
    for (int i = 0; i < ROWS; i++) {
        if (i % FETCH == 30) restart();
        OK(rq_scanner_next(s, &row, &why));
        assert_non_null(row);
        snprintf(expected, sizeof expected, "%03d", i);
        assert_true(is(row->cells[0].row, expected));
        rq_row_free(row);
    }
    AGAIN(rq_scanner_next(s, &row, &why));
    assert_null(row);
    rq_scanner_close(s);
    AGAIN(rq_put_value(table, rq_text("a"), f, q, rq_text("w"), &why));
    AGAIN(rq_get_value(table, rq_text("a"), f, q, value, sizeof value, &len, &why));
    assert_true(is(rq_bytes_of(value, len), "w"));
    AGAIN(rq_add_value(table, rq_text("n"), f, q, 3, &sum, &why));
    AGAIN(rq_add_value(table, rq_text("n"), f, q, 4, &sum, &why));
    assert_int_equal(sum, 7);
}

static void definitions(void **state)
{
    rq_region_list *regions;
    rq_names *names;
    (void)state;
    AGAIN(rq_table_list(db, NULL, &names, &why));
    rq_names_free(names);
    AGAIN(rq_table_regions(db, "restarted", &regions, &why));
    assert_int_equal(regions->count, 2);
    rq_region_list_free(regions);
    AGAIN(rq_table_flush(db, "restarted", &why));
    AGAIN(rq_table_compact(db, "restarted", NULL, true, &why));
    AGAIN(rq_snapshot_create(db, "restarted_snapshot", "restarted", false, &why));
    AGAIN(rq_snapshot_drop(db, "restarted_snapshot", &why));
    AGAIN(rq_table_disable(db, "restarted", &why));
    AGAIN(rq_table_enable(db, "restarted", &why));
}

static size_t failed;
static rq_failure first; /* of the failed calls */

static void take(void *context, const rq_completion *c)
{
    (*(size_t *)context)++;
    if (c->code != RQ_OK && failed++ == 0) first = *c->why;
    rq_row_free(c->row);
}

/* Some of the calls have been answered when the server is killed. */
static void outstanding_calls(void **state)
{
    size_t count = 0, ran;
    rq_edit edit = {.family = f, .qualifier = q, .amount = 1};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_INCREMENT,
                        .row = rq_text("outstanding"),
                        .edits = &edit,
                        .edit_count = 1};
    int64_t sum;
    (void)state;
    for (int i = 0; i < CALLS; i++)
        OK(rq_table_change_async(table, &change, take, &count, &why));
    while (count == 0)
        OK(rq_poll(db, -1, &ran, &why));
    restart();
    while (count < CALLS)
        OK(rq_poll(db, -1, &ran, &why));
    if (failed > 0)
        fail_msg("%zu calls failed, first: %s: %s", failed, rq_err_name(first.code), first.message);
    OK(rq_add_value(table, rq_text("outstanding"), f, q, 0, &sum, &why));
    assert_int_equal(sum, CALLS); /* each increment ran once: increments have nonces */
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) return 2;
    if (argc == 3) cmocka_set_test_filter(argv[2]);
#define TEST(name) cmocka_unit_test_prestate_setup_teardown(name, begin, end, argv[1])
    const struct CMUnitTest tests[] = {TEST(data), TEST(definitions), TEST(outstanding_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
