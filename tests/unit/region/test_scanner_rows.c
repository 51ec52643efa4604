/* SPDX-License-Identifier: Apache-2.0 */
/* A region scanner that takes many rows at once (rq_region_scanner_take_rows): where it ends, and
 * when it is not tried. */
#include "scan_fixture.h"

static rq_scan_family family_f = {.family = RQ_SLICE_LIT("f")};

static void read_only_family_f(scan_fixture *f)
{
    f->scan.families = &family_f;
    f->scan.family_count = 1;
}

static void add(scan_fixture *f, const char *row, const char *column, uint8_t type,
                int64_t timestamp)
{
    rq_cell c = {.row = (const uint8_t *)row,
                 .row_len = (uint16_t)strlen(row),
                 .family = (const uint8_t *)"f",
                 .family_len = 1,
                 .qualifier = (const uint8_t *)column,
                 .qualifier_len = (uint32_t)strlen(column),
                 .timestamp = timestamp,
                 .type = type,
                 .seqid = ++f->seqid};
    by_hand_add(&f->world, 0, &c);
}

static uint32_t take(scan_fixture *f, uint32_t *cells, uint32_t max)
{
    rq_scan_rows rows = {.cells = cells, .max = max};
    rq_cellblock_reset(&f->out);
    assert_int_equal(rq_region_scanner_take_rows(f->scanner, &f->limits, &f->out, &rows, &f->state),
                     RQ_OK);
    return rows.count;
}

static void rows_are_taken_until_a_limit(void **state)
{
    (void)state;
    uint32_t cells[8];
    scan_fixture *f = scan_fixture_new(9, 2);
    read_only_family_f(f);
    f->scan.stop_row = RQ_SLICE_LIT("r9");
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_int_equal(take(f, cells, 8), 0); /* nothing has been read yet */
    assert_next(f, "r1 f:a f:b", RQ_SCAN_MORE);
    assert_int_equal(take(f, cells, 2), 2);
    assert_int_equal(f->state, RQ_SCAN_MORE);
    assert_int_equal(cells[0], 2);
    assert_next(f, "r4 f:a f:b", RQ_SCAN_MORE);
    f->limits.bytes = 1;
    assert_int_equal(take(f, cells, 8), 1);
    assert_int_equal(f->state, RQ_SCAN_BYTES_REACHED);
    f->limits.bytes = 0;
    assert_next(f, "r6 f:a f:b", RQ_SCAN_MORE);
    assert_int_equal(take(f, cells, 8), 2);
    assert_int_equal(f->state, RQ_SCAN_DONE);
    assert_int_equal(rq_region_scanner_stats(f->scanner)->rows_scanned, 8);
    assert_string_equal(scan_fixture_next(f), "");
    scan_fixture_free(f);
}

static void a_taken_row_above_its_limit_is_refused(void **state)
{
    (void)state;
    uint32_t cells[8];
    scan_fixture *f = scan_fixture_new(3, 2);
    read_only_family_f(f);
    for (int i = 0; i < 50; i++) {
        char column[8];
        (void)snprintf(column, sizeof column, "c%02d", i);
        add(f, "r3", column, RQ_TYPE_PUT, 1);
    }
    f->world.region.read_point = f->seqid;
    f->scan.row_bytes_max = 200;
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_next(f, "r1 f:a f:b", RQ_SCAN_MORE);
    assert_int_equal(take(f, cells, 8), 1);
    assert_int_equal(
        rq_region_scanner_next(f->scanner, &f->limits, &f->ctx, &f->out, &f->state, &f->why),
        RQ_E_ROW_TOO_BIG);
    scan_fixture_free(f);
}

/* Taking 1,024 cells ends inside the row; its rest follows, and a batch still ends where
 * requested. */
static void a_wide_row_is_completed_by_the_next_call(void **state)
{
    (void)state;
    uint32_t cells[8];
    scan_fixture *f = scan_fixture_new(1, 1);
    read_only_family_f(f);
    for (int i = 0; i < 3000; i++) {
        char column[8];
        (void)snprintf(column, sizeof column, "c%04d", i);
        add(f, "r2", column, RQ_TYPE_PUT, 1);
    }
    f->world.region.read_point = f->seqid;
    for (int cut = 0; cut < 2; cut++) {
        f->limits = (rq_scan_limits){.may_stop_inside_row = cut == 1, .bytes = cut == 1 ? 9000 : 0};
        assert_int_equal(scan_fixture_open(f), RQ_OK);
        assert_next(f, "r1 f:a", RQ_SCAN_MORE);
        assert_int_equal(take(f, cells, 8), 0);
        uint32_t taken = f->out.count;
        assert_true(taken > 0 && taken <= 1024);
        assert_int_equal(
            rq_region_scanner_next(f->scanner, &f->limits, &f->ctx, &f->out, &f->state, &f->why),
            RQ_OK);
        assert_int_equal(f->state, cut == 1 ? RQ_SCAN_BYTES_REACHED_MID_ROW : RQ_SCAN_DONE);
        assert_int_equal(f->out.count, cut == 1 ? taken : 3000);
        scan_fixture_close(f);
    }
    scan_fixture_free(f);
}

/* Rows that can be taken at once alternate with rows that cannot: a call takes one row. */
static void the_clock_is_read_after_rows_not_after_calls(void **state)
{
    (void)state;
    uint32_t cells[8];
    scan_fixture *f = scan_fixture_new(0, 0);
    read_only_family_f(f);
    for (int i = 0; i < 64; i++) {
        char row[8];
        (void)snprintf(row, sizeof row, "r%02d", i);
        if (i % 2 == 0) add(f, row, "a", RQ_TYPE_DELETE, 2);
        add(f, row, "a", RQ_TYPE_PUT, 1);
    }
    f->world.region.read_point = f->seqid;
    f->limits.deadline_ns = UINT64_MAX;
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    uint64_t looks = f->world.clock_looks;
    unsigned calls = 0;
    for (f->state = RQ_SCAN_MORE; f->state != RQ_SCAN_DONE;) {
        calls += take(f, cells, 8) > 0;
        if (f->state == RQ_SCAN_DONE) break;
        assert_int_equal(
            rq_region_scanner_next(f->scanner, &f->limits, &f->ctx, &f->out, &f->state, &f->why),
            RQ_OK);
    }
    assert_true(calls > 16);
    assert_in_range(f->world.clock_looks - looks, 1, 64 / 8);
    scan_fixture_free(f);
}

/* How many of the rows, each with one column of two versions, take_rows tried to take at once. */
static unsigned rows_begun_by_taking(scan_fixture *f, unsigned rows)
{
    uint32_t cells[8];
    unsigned begun = 0;
    for (unsigned i = 0; i < rows; i++) {
        assert_int_equal(take(f, cells, 8), 0);
        begun += f->out.count > 0;
        assert_int_equal(
            rq_region_scanner_next(f->scanner, &f->limits, &f->ctx, &f->out, &f->state, &f->why),
            RQ_OK);
        assert_int_equal(f->out.count, 2);
    }
    assert_int_equal(f->state, RQ_SCAN_DONE);
    return begun;
}

/* Taking at once returns only one cell of each row, and costs more than it saves. */
static void rows_of_a_kind_that_is_not_taken_are_tried_now_and_then(void **state)
{
    (void)state;
    scan_fixture *f = scan_fixture_new(0, 0);
    read_only_family_f(f);
    f->scan.max_versions = 2;
    for (int i = 0; i < 32; i++) {
        char row[8];
        (void)snprintf(row, sizeof row, "r%02d", i);
        add(f, row, "a", RQ_TYPE_PUT, 2);
        add(f, row, "a", RQ_TYPE_PUT, 1);
    }
    f->world.region.read_point = f->seqid;
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_in_range(rows_begun_by_taking(f, 32), 2, 5);
    scan_fixture_free(f);
}

/* The filter has finished with a column: the column's marker hides nothing, and the versions after
 * the marker do not begin a new column. */
static void a_marker_in_a_column_that_the_filter_has_left_is_skipped(void **state)
{
    (void)state;
    scan_fixture *f = scan_fixture_new(1, 1);
    read_only_family_f(f);
    add(f, "r1", "b", RQ_TYPE_PUT, 9);
    add(f, "r1", "b", RQ_TYPE_DELETE, 5);
    add(f, "r1", "b", RQ_TYPE_PUT, 3);
    add(f, "r1", "c", RQ_TYPE_PUT, 1);
    add(f, "r1", "d", RQ_TYPE_PUT, 1);
    f->world.region.read_point = f->seqid;
    scan_set_language_filter(f, "ColumnPaginationFilter(1, 2)");
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_next(f, "r1 f:c", RQ_SCAN_DONE); /* from the memstore */
    scan_fixture_close(f);
    scan_fixture_flush(f);
    scan_set_language_filter(f, "ColumnPaginationFilter(1, 2)");
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_next(f, "r1 f:c", RQ_SCAN_DONE);
    scan_fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_taken_until_a_limit),
        cmocka_unit_test(a_taken_row_above_its_limit_is_refused),
        cmocka_unit_test(a_wide_row_is_completed_by_the_next_call),
        cmocka_unit_test(the_clock_is_read_after_rows_not_after_calls),
        cmocka_unit_test(rows_of_a_kind_that_is_not_taken_are_tried_now_and_then),
        cmocka_unit_test(a_marker_in_a_column_that_the_filter_has_left_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
