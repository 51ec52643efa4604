/* SPDX-License-Identifier: Apache-2.0 */
/* The region scanner by example: rows that are returned in parts and completed, the result at each
 * limit, flushes between results, and HBase's errors. */
#include "scan_fixture.h"

/* --- rows -------------------------------------------------------------------------------------- */
static void rows_come_one_by_one_and_the_last_says_so(void **state)
{
    (void)state;
    scan_fixture *f = scan_fixture_new(3, 2);
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_next(f, "r1 f:a f:b g:a g:b", RQ_SCAN_MORE);
    assert_next(f, "r2 f:a f:b g:a g:b", RQ_SCAN_MORE);
    assert_next(f, "r3 f:a f:b g:a g:b", RQ_SCAN_DONE);
    assert_next(f, "", RQ_SCAN_DONE);
    assert_int_equal(rq_region_scanner_stats(f->scanner)->rows_scanned, 3);
    scan_fixture_free(f);
}

static void bounds_are_inclusive_as_asked_in_both_directions(void **state)
{
    (void)state;
    scan_fixture *f = scan_fixture_new(4, 1);
    for (int round = 0; round < 2; round++) {
        f->scan.reversed = false;
        f->scan.start_row = RQ_SLICE_LIT("r1");
        f->scan.stop_row = RQ_SLICE_LIT("r3");
        f->scan.include_start = false;
        f->scan.include_stop = false;
        assert_int_equal(scan_fixture_open(f), RQ_OK);
        assert_next(f, "r2 f:a g:a", RQ_SCAN_DONE);
        scan_fixture_close(f);
        f->scan.include_start = f->scan.include_stop = true;
        assert_int_equal(scan_fixture_open(f), RQ_OK);
        assert_next(f, "r1 f:a g:a", RQ_SCAN_MORE);
        assert_next(f, "r2 f:a g:a", RQ_SCAN_MORE);
        assert_next(f, "r3 f:a g:a", RQ_SCAN_DONE);
        scan_fixture_close(f);
        f->scan.reversed = true;
        f->scan.start_row = RQ_SLICE_LIT("r4");
        f->scan.stop_row = RQ_SLICE_LIT("r2");
        assert_int_equal(scan_fixture_open(f), RQ_OK);
        assert_next(f, "r4 f:a g:a", RQ_SCAN_MORE);
        assert_next(f, "r3 f:a g:a", RQ_SCAN_MORE);
        assert_next(f, "r2 f:a g:a", RQ_SCAN_DONE);
        scan_fixture_close(f);
        f->scan.include_start = f->scan.include_stop = false;
        assert_int_equal(scan_fixture_open(f), RQ_OK);
        assert_next(f, "r3 f:a g:a", RQ_SCAN_DONE);
        scan_fixture_close(f);
        f->scan.start_row = f->scan.stop_row = (rq_slice){0};
        assert_int_equal(scan_fixture_open(f), RQ_OK);
        assert_next(f, "r4 f:a g:a", RQ_SCAN_MORE);
        scan_fixture_close(f);
        scan_fixture_flush(f);
    }
    scan_fixture_free(f);
}

/* --- limits ------------------------------------------------------------------------------------ */
static void a_batch_cuts_the_row_and_the_next_answer_goes_on(void **state)
{
    (void)state;
    scan_fixture *f = scan_fixture_new(2, 2);
    f->limits.cells = 3;
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_next(f, "r1 f:a f:b g:a", RQ_SCAN_BATCH_REACHED);
    rq_region_scanner_suspend(f->scanner);
    scan_fixture_flush(f);
    assert_next(f, "r1 g:b", RQ_SCAN_MORE);
    assert_next(f, "r2 f:a f:b g:a", RQ_SCAN_BATCH_REACHED);
    assert_next(f, "r2 g:b", RQ_SCAN_DONE);
    scan_fixture_close(f);
    /* A batch that ends at the end of the row leaves no part. */
    f->limits.cells = 4;
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_next(f, "r1 f:a f:b g:a g:b", RQ_SCAN_MORE);
    assert_next(f, "r2 f:a f:b g:a g:b", RQ_SCAN_DONE);
    scan_fixture_free(f);
}

static void a_cut_row_without_more_to_show_is_followed_by_the_next(void **state)
{
    (void)state;
    scan_fixture *f = scan_fixture_new(2, 1);
    for (int64_t ts = 2; ts <= 3; ts++) {
        rq_cell c = {.row = (const uint8_t *)"r1",
                     .row_len = 2,
                     .family = (const uint8_t *)"g",
                     .family_len = 1,
                     .qualifier = (const uint8_t *)"a",
                     .qualifier_len = 1,
                     .timestamp = ts,
                     .type = RQ_TYPE_PUT,
                     .seqid = ++f->seqid};
        by_hand_add(&f->world, 1, &c);
    }
    f->limits.cells = 2; /* older versions follow, which are not returned */
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_next(f, "r1 f:a g:a", RQ_SCAN_BATCH_REACHED);
    assert_next(f, "r2 f:a g:a", RQ_SCAN_DONE);
    scan_fixture_free(f);
}

static void bytes_stop_between_rows_or_inside_where_allowed(void **state)
{
    (void)state;
    scan_fixture *f = scan_fixture_new(3, 2);
    f->limits.bytes = 1;
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_next(f, "r1 f:a f:b g:a g:b", RQ_SCAN_BYTES_REACHED);
    f->limits.may_stop_inside_row = true;
    assert_next(f, "r2 f:a", RQ_SCAN_BYTES_REACHED_MID_ROW);
    f->limits.bytes = rq_result_bytes(&f->out) * 2;
    assert_next(f, "r2 f:b g:a", RQ_SCAN_BYTES_REACHED_MID_ROW);
    assert_next(f, "r2 g:b", RQ_SCAN_MORE);
    f->limits.bytes = 0;
    assert_next(f, "r3 f:a f:b g:a g:b", RQ_SCAN_DONE);
    scan_fixture_free(f);
}

static void a_long_filtered_stretch_ends_at_the_deadline_with_nothing(void **state)
{
    (void)state;
    scan_fixture *f = scan_fixture_new(90, 1);
    f->limits.deadline_ns = f->world.now_ns + 1;
    scan_set_value_filter(f, "f", "x");
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    int beats = 0;
    do {
        assert_string_equal(scan_fixture_next(f), "");
        beats += f->state == RQ_SCAN_TIME_REACHED;
        assert_true(rq_region_scanner_current_row(f->scanner).len > 0);
    } while (f->state != RQ_SCAN_DONE);
    assert_true(beats >= 3);
    assert_int_equal(rq_region_scanner_stats(f->scanner)->rows_filtered, 90);
    scan_fixture_free(f);
}

static void a_spent_slice_gives_the_thread_back_inside_a_row(void **state)
{
    (void)state;
    scan_fixture *f = scan_fixture_new(1, 1);
    unsigned yields;
    scan_widen(f, 2000, (rq_slice){0});
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_int_equal(scan_next_in_slices(f, &yields), RQ_OK);
    assert_int_equal(f->state, RQ_SCAN_DONE);
    assert_int_equal(f->out.count, 2002);
    assert_true(yields >= 10);
    scan_fixture_free(f);
}

static void long_values_end_a_slice_too(void **state)
{
    (void)state;
    enum { CELLS = 5, BYTES = 3 << 20 };
    scan_fixture *f = scan_fixture_new(1, 1);
    unsigned yields;
    uint8_t *value = calloc(1, BYTES);
    scan_widen(f, CELLS, rq_slice_of(value, BYTES));
    free(value);
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_int_equal(scan_next_in_slices(f, &yields), RQ_OK);
    assert_int_equal(f->out.count, CELLS + 2);
    assert_true(yields >= CELLS - 1);
    scan_fixture_free(f);
}

/* The limit counts all slices and both families, and each part of a row separately. */
static void a_row_above_its_limit_is_refused(void **state)
{
    (void)state;
    scan_fixture *f = scan_fixture_new(2, 1);
    unsigned yields;
    scan_widen(f, 2000, (rq_slice){0});
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_int_equal(scan_next_in_slices(f, &yields), RQ_OK);
    uint64_t all = f->out.bytes.len;
    scan_fixture_close(f);

    f->scan.row_bytes_max = all;
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_int_equal(scan_next_in_slices(f, &yields), RQ_OK);
    scan_fixture_close(f);

    f->scan.row_bytes_max = all - 1;
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_int_equal(scan_next_in_slices(f, &yields), RQ_E_ROW_TOO_BIG);
    assert_true(yields >= 10);
    assert_int_equal(f->out.count, 0);
    assert_int_equal(scan_next_in_slices(f, &yields),
                     RQ_E_ROW_TOO_BIG); /* no part of the row follows */
    assert_int_equal(f->out.count, 0);
    scan_fixture_close(f);

    f->limits = (rq_scan_limits){.bytes = all / 2, .may_stop_inside_row = true};
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_int_equal(scan_next_in_slices(f, &yields), RQ_OK);
    assert_int_equal(f->state, RQ_SCAN_BYTES_REACHED_MID_ROW);
    scan_fixture_close(f);
    scan_fixture_free(f);
}

/* --- suspension -------------------------------------------------------------------------------- */
static void a_scanner_reads_at_its_point_through_flush_and_compaction(void **state)
{
    (void)state;
    scan_fixture *f = scan_fixture_new(3, 1);
    scan_fixture_flush(f);
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_next(f, "r1 f:a g:a", RQ_SCAN_MORE);
    rq_region_scanner_suspend(f->scanner);
    for (int i = 2; i <= 3; i++) {
        char row[3] = {'r', (char)('0' + i), 0};
        rq_cell c = {.row = (const uint8_t *)row,
                     .row_len = 2,
                     .family = (const uint8_t *)"f",
                     .family_len = 1,
                     .timestamp = 9,
                     .type = RQ_TYPE_DELETE_FAMILY,
                     .seqid = ++f->seqid};
        by_hand_add(&f->world, 0, &c);
    }
    scan_fixture_flush(f);
    by_hand_compact(&f->world, 0, 0, f->world.stores[0].version.file_count,
                    by_hand_smallest_read_point(&f->world), NULL);
    assert_next(f, "r2 f:a g:a", RQ_SCAN_MORE);
    assert_next(f, "r3 f:a g:a", RQ_SCAN_DONE);
    scan_fixture_close(f);
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_next(f, "r1 f:a g:a", RQ_SCAN_MORE);
    assert_next(f, "r2 g:a", RQ_SCAN_MORE);
    assert_next(f, "r3 g:a", RQ_SCAN_DONE);
    scan_fixture_free(f);
}

static void a_staged_read_sees_what_is_not_visible_yet(void **state)
{
    (void)state;
    scan_fixture *f = scan_fixture_new(2, 1);
    uint64_t visible = f->world.region.read_point;
    rq_cell c = {.row = (const uint8_t *)"r1",
                 .row_len = 2,
                 .family = (const uint8_t *)"f",
                 .family_len = 1,
                 .qualifier = (const uint8_t *)"z",
                 .qualifier_len = 1,
                 .timestamp = 2,
                 .type = RQ_TYPE_PUT,
                 .seqid = ++f->seqid};
    by_hand_add(&f->world, 0, &c);
    f->world.region.read_point = visible;
    f->scan.is_get = true;
    f->scan.include_stop = true;
    f->scan.start_row = f->scan.stop_row = RQ_SLICE_LIT("r1");
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_next(f, "r1 f:a g:a", RQ_SCAN_DONE);
    scan_fixture_close(f);
    rq__token_slice slice = {.until_ns = UINT64_MAX};
    assert_int_equal(rq__staged_read_row(&f->world.region, &f->scan, &f->arena, &f->ctx, &slice,
                                         &f->out, &f->why),
                     RQ_OK);
    assert_int_equal(f->out.count, 3);
    assert_int_equal(f->world.region.open_count, 0);
    scan_fixture_free(f);
}

static void an_existence_check_stops_at_the_first_cell(void **state)
{
    (void)state;
    scan_fixture *f = scan_fixture_new(1, 3);
    f->scan.is_get = true;
    f->scan.check_existence_only = true;
    f->scan.start_row = f->scan.stop_row = RQ_SLICE_LIT("r1");
    rq_scan_family wanted = {.family = RQ_SLICE_LIT("g")};
    f->scan.families = &wanted;
    f->scan.family_count = 1;
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_next(f, "r1 g:a", RQ_SCAN_DONE);
    scan_fixture_free(f);
}

/* --- errors ------------------------------------------------------------------------------------ */
static void wrong_questions_get_hbases_errors(void **state)
{
    (void)state;
    scan_fixture *f = scan_fixture_new(1, 1);
    rq_scan_family wanted = {.family = RQ_SLICE_LIT("nope")};
    f->scan.families = &wanted;
    f->scan.family_count = 1;
    assert_int_equal(scan_fixture_open(f), RQ_E_NO_SUCH_FAMILY);
    assert_non_null(strstr(f->why.message, "Column family nope does not exist in region t,,1."));
    f->why = (rq_error){0};
    /* Checked before any other error. */
    rq_slice column = RQ_SLICE_LIT("a");
    rq_scan_family both[] = {
        {.family = RQ_SLICE_LIT("g"), .qualifiers = &column, .qualifier_count = 1}, wanted};
    f->scan.families = both;
    f->scan.family_count = 2;
    f->scan.raw = true;
    assert_int_equal(scan_fixture_open(f), RQ_E_NO_SUCH_FAMILY);
    f->scan.raw = false;
    f->scan.family_count = 0;
    f->why = (rq_error){0};

    f->world.region.info.end_key = RQ_SLICE_LIT("m");
    f->scan.is_get = true;
    f->scan.start_row = f->scan.stop_row = RQ_SLICE_LIT("r1");
    assert_int_equal(scan_fixture_open(f), RQ_E_WRONG_REGION);
    assert_non_null(strstr(f->why.message, "Requested row out of range for Get on HRegion t,,1."));
    assert_non_null(strstr(f->why.message, "startKey='', getEndKey()='m', row='r1'"));
    f->world.region.info.end_key = (rq_slice){0};
    f->scan.is_get = false;
    f->scan.start_row = f->scan.stop_row = (rq_slice){0};
    f->why = (rq_error){0};

    scan_set_value_filter(f, "g", "a");
    f->scan.batch = 2;
    assert_int_equal(scan_fixture_open(f), RQ_E_INCOMPATIBLE_FILTER);
    assert_string_equal(f->why.message, "Cannot set batch on a scan using a filter that returns "
                                        "true for filter.hasFilterRow");
    f->scan.batch = 0;
    f->why = (rq_error){0};

    f->scan.reversed = true;
    f->scan.load_families_on_demand = true;
    assert_int_equal(scan_fixture_open(f), RQ_E_DO_NOT_RETRY);
    assert_string_equal(f->why.message, "Reverse scan with loading CFs on demand is not supported");
    f->scan.reversed = false;
    f->why = (rq_error){0};

    f->world.region.closing = true;
    assert_int_equal(scan_fixture_open(f), RQ_E_NOT_SERVING_REGION);
    assert_non_null(strstr(f->why.message, " is closing"));
    assert_int_equal(f->world.region.open_count, 0);
    assert_int_equal(f->world.region.refs, 1);
    scan_fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_one_by_one_and_the_last_says_so),
        cmocka_unit_test(bounds_are_inclusive_as_asked_in_both_directions),
        cmocka_unit_test(a_batch_cuts_the_row_and_the_next_answer_goes_on),
        cmocka_unit_test(a_cut_row_without_more_to_show_is_followed_by_the_next),
        cmocka_unit_test(bytes_stop_between_rows_or_inside_where_allowed),
        cmocka_unit_test(a_long_filtered_stretch_ends_at_the_deadline_with_nothing),
        cmocka_unit_test(a_spent_slice_gives_the_thread_back_inside_a_row),
        cmocka_unit_test(long_values_end_a_slice_too),
        cmocka_unit_test(a_row_above_its_limit_is_refused),
        cmocka_unit_test(a_scanner_reads_at_its_point_through_flush_and_compaction),
        cmocka_unit_test(a_staged_read_sees_what_is_not_visible_yet),
        cmocka_unit_test(an_existence_check_stops_at_the_first_cell),
        cmocka_unit_test(wrong_questions_get_hbases_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
