/* SPDX-License-Identifier: Apache-2.0 */
/* Scans that fetch the next rows while the caller reads: each row is returned once, in order, under any concurrent
 * change. Embedded databases do not fetch ahead and must return the same rows. Part of test_api. */
#include "api_rows.h"

enum { ROWS = 120, PAGE = 7 };

static rq_table *make_rows(const char *name)
{
    rq_bytes splits[] = {rq_text("r030"), rq_text("r060"), rq_text("r090")};
    rq_table *t = make(name, "1", splits, 3);
    for (int i = 0; i < ROWS; i++) {
        char row[16];
        snprintf(row, sizeof row, "r%03d", i);
        put(t, row, "f", "q", row, 1);
    }
    return t;
}

static rq_scanner *open_scan(rq_table *t, bool reversed, bool off)
{
    rq_scanner *s = NULL;
    rq_scan_request scan = {
        .size = sizeof scan, .caching = PAGE, .reversed = reversed, .no_fetch_ahead = off};
    OK(rq_table_scan(t, &scan, &s, &why));
    return s;
}

static void expect_next(rq_scanner *s, int number)
{
    char row[16];
    rq_row *r;
    OK(rq_scanner_next(s, &r, &why));
    snprintf(row, sizeof row, "r%03d", number);
    assert_non_null(r);
    assert_true(is(r->cells[0].row, row));
    rq_row_free(r);
}

static void expect_end(rq_scanner *s)
{
    rq_row *r;
    OK(rq_scanner_next(s, &r, &why));
    assert_null(r);
    rq_scanner_close(s);
}

static void all_rows_come_in_order(void **state)
{
    (void)state;
    rq_table *t = make_rows("ahead");
    for (int way = 0; way < 4; way++) {
        rq_scanner *s = open_scan(t, way & 1, way & 2);
        for (int i = 0; i < ROWS; i++)
            expect_next(s, way & 1 ? ROWS - 1 - i : i);
        expect_end(s);
    }
    finish(t, "ahead");
}

/* Closes the scan at each position: before, inside and after the response fetched ahead; the
 * database remains usable. */
static void a_scan_is_closed_midway(void **state)
{
    (void)state;
    rq_table *t = make_rows("midway");
    for (int rows = 0; rows < 5 * PAGE; rows++) {
        rq_scanner *s = open_scan(t, false, false);
        for (int i = 0; i < rows; i++)
            expect_next(s, i);
        rq_scanner_close(s);
    }
    rq_scanner *s = open_scan(t, false, false);
    for (int i = 0; i < ROWS; i++)
        expect_next(s, i);
    expect_end(s);
    finish(t, "midway");
}

static void regions_change_meanwhile(void **state)
{
    (void)state;
    rq_table *t = make_rows("changing");
    rq_scanner *s = open_scan(t, false, false);
    for (int i = 0; i < ROWS; i++) {
        if (i == 2 * PAGE + 1) OK(rq_table_split(at.db, "changing", rq_text("r020"), &why));
        if (i == 6 * PAGE + 1) OK(rq_table_split(at.db, "changing", rq_text("r070"), &why));
        expect_next(s, i);
    }
    expect_end(s);
    finish(t, "changing");
}

/* Rows that have been fetched are returned; then the error is returned, once. */
static void a_table_is_dropped_meanwhile(void **state)
{
    (void)state;
    rq_table *t = make_rows("dropped");
    rq_scanner *s = open_scan(t, false, false);
    rq_row *r = NULL;
    rq_err rc = RQ_OK;
    int rows = 2 * PAGE + 1;
    for (int i = 0; i < rows; i++)
        expect_next(s, i);
    OK(rq_table_disable(at.db, "dropped", &why));
    while (rows < ROWS && (rc = rq_scanner_next(s, &r, &why)) == RQ_OK && r != NULL) {
        rq_row_free(r);
        rows++;
    }
    if (rc != RQ_OK) assert_int_equal(rc, RQ_E_TABLE_NOT_ENABLED);
    if (strncmp(at.url, "hbase", 5) == 0) {
        assert_int_equal(rc, RQ_E_TABLE_NOT_ENABLED);
        assert_true(rows <= 4 * PAGE);
    }
    rq_scanner_close(s);
    OK(rq_table_enable(at.db, "dropped", &why));
    finish(t, "dropped");
}

static void take(void *context, const rq_completion *c)
{
    rq_rows **rows = context;
    assert_int_equal(c->code, RQ_OK);
    *rows = c->rows;
}

/* An asynchronous call gets the rows of the request that a synchronous call sent ahead. */
static void calls_of_both_kinds_take_turns(void **state)
{
    (void)state;
    rq_table *t = make_rows("turns");
    for (int first = 0; first < 5 * PAGE; first++) {
        rq_scanner *s = open_scan(t, false, false);
        int i = 0;
        while (i < ROWS) {
            for (int k = 0; k < first && i < ROWS; k++)
                expect_next(s, i++);
            rq_rows *rows = NULL;
            OK(rq_scanner_next_async(s, 2 * PAGE, take, (void *)&rows, &why));
            while (rows == NULL)
                OK(rq_poll(at.db, 1000, NULL, &why));
            for (size_t k = 0; k < rows->count; k++) {
                char row[16];
                snprintf(row, sizeof row, "r%03d", i++);
                assert_true(is(rows->items[k]->cells[0].row, row));
            }
            rq_rows_free(rows);
        }
        expect_end(s);
    }
    finish(t, "turns");
}

/* The database is closed before or after its scanner; the request sent ahead ends. */
static void a_database_is_closed_meanwhile(void **state)
{
    (void)state;
    /* an embedded database cannot be opened a second time */
    if (strncmp(at.url, "hbase", 5) != 0) return;
    rq_table *t = make_rows("closing");
    for (int way = 0; way < 3; way++) {
        rq_db *db;
        rq_table *mine;
        rq_row *r;
        OK(rq_connect(at.url, NULL, &db, &why));
        OK(rq_table_open(db, "closing", &mine, &why));
        rq_scanner *s = open_scan(mine, false, false);
        for (int i = 0; i < 2 * PAGE; i++)
            expect_next(s, i);
        if (way == 0) rq_scanner_close(s);
        if (way < 2) rq_table_close(mine);
        OK(rq_disconnect(db, &why));
        if (way == 0) continue;
        FAILS(RQ_E_CLOSED, rq_scanner_next(s, &r, &why));
        rq_scanner_close(s);
        if (way == 2) rq_table_close(mine);
    }
    finish(t, "closing");
}

int run_fetch_ahead(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_rows_come_in_order),
        cmocka_unit_test(a_scan_is_closed_midway),
        cmocka_unit_test(regions_change_meanwhile),
        cmocka_unit_test(a_table_is_dropped_meanwhile),
        cmocka_unit_test(calls_of_both_kinds_take_turns),
        cmocka_unit_test(a_database_is_closed_meanwhile),
    };
    return cmocka_run_group_tests_name("fetch_ahead", tests, open_db, close_db);
}
