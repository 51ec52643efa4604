/* SPDX-License-Identifier: Apache-2.0 */
/* Filters in a region scanner: their decisions about rows, rows that are skipped, families that are
 * read on demand. */
#include "scan_fixture.h"

/* An open scanner on a region of so many rows and columns, with a filter whose only parameter is a number. */
static scan_fixture *scan_with(int rows, int columns, const char *filter, uint64_t n)
{
    scan_fixture *f = scan_fixture_new(rows, columns);
    scan_set_number_filter(f, filter, n);
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    return f;
}

static void a_page_filter_ends_the_scan(void **state)
{
    (void)state;
    scan_fixture *f = scan_with(4, 1, "PageFilter", 2);
    assert_next(f, "r1 f:a g:a", RQ_SCAN_MORE);
    assert_next(f, "r2 f:a g:a", RQ_SCAN_DONE);
    scan_fixture_free(f);
}

/* How often reading a row of 3,000 cells in the shortest slices pauses, with 200 filters of the
 * class around each of its cells. The cells must be those of one slice. */
static unsigned pauses_with_many(scan_fixture *f, const char *one)
{
    enum { FILTERS = 200 };
    rq_buf text = {0};
    unsigned yields;
    for (unsigned i = 0; i < FILTERS; i++)
        assert_int_equal(rq_buf_printf(&text, "%s%s", i > 0 ? " AND " : "", one), RQ_OK);
    assert_int_equal(rq_buf_append_u8(&text, 0), RQ_OK);
    scan_set_language_filter(f, (const char *)text.ptr);
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    f->limits.yield_ns = 0;
    assert_int_equal(
        rq_region_scanner_next(f->scanner, &f->limits, &f->ctx, &f->out, &f->state, &f->why),
        RQ_OK);
    rq_buf whole = f->out.bytes;
    f->out = (rq_cellblock){0};
    scan_fixture_close(f);
    scan_set_language_filter(f, (const char *)text.ptr);
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_int_equal(scan_next_in_slices(f, &yields), RQ_OK);
    assert_int_equal(f->out.bytes.len, whole.len);
    assert_memory_equal(f->out.bytes.ptr, whole.ptr, whole.len);
    scan_fixture_close(f);
    rq_buf_clear(&whole);
    rq_buf_clear(&text);
    return yields;
}

/* The filters that look at all cells at the end of the row are asked in slices, too; others see the same cells before. */
static void the_end_of_a_row_gives_the_thread_back(void **state)
{
    (void)state;
    scan_fixture *f = scan_fixture_new(1, 1);
    scan_widen(f, 3000, (rq_slice){0});
    unsigned plain = pauses_with_many(f, "SingleColumnValueFilter('f', 'a', =, 'binary:a')");
    unsigned more = pauses_with_many(f, "SingleColumnValueExcludeFilter('f', 'a', =, 'binary:a')");
    print_message("%u pauses, %u\n", plain, more);
    assert_true(more >= plain + 200 * 3000 / RQ_PACE_SLICE);
    more = pauses_with_many(f, "DependentColumnFilter('f', 'a', false)");
    assert_true(more >= plain + 200 * 3000 / RQ_PACE_SLICE);
    scan_fixture_free(f);
}

/* How many rows were read to find those that the filter passes. */
static uint64_t rows_looked_at(scan_fixture *f, const char *filter, bool counts_rows,
                               const char *expected)
{
    char found[256] = "";
    scan_set_language_filter(f, filter);
    f->scan.counts_rows = counts_rows;
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    do {
        const char *answer = scan_fixture_next(f);
        strncat(found, answer, strcspn(answer, " "));
    } while (f->state != RQ_SCAN_DONE);
    assert_string_equal(found, expected);
    uint64_t rows = rq_region_scanner_stats(f->scanner)->rows_scanned;
    scan_fixture_close(f);
    return rows;
}

static void uncounted_rows_are_skipped(void **state)
{
    (void)state;
    static const struct {
        const char *filter, *found;
        uint64_t looked_at, all;
    } examples[] = {
        {"PrefixFilter('r7')", "r7", 2, 7},
        {"RowFilter(>, 'binary:r7')", "r8r9", 4, 9},
        {"RowFilter(=, 'binary:r7')", "r7", 3, 9},
        {"RowFilter(<, 'binary:r3')", "r1r2", 3, 9},
        {"RowFilter(<=, 'binary:r3')", "r1r2r3", 4, 9},
        {"RowFilter(!=, 'binary:r3')", "r1r2r4r5r6r7r8r9", 9, 9},
        {"RowFilter(<, 'binary:r2') OR RowFilter(=, 'binary:r7')", "r1r7", 4, 9},
        {"RowFilter(<, 'binary:r3') AND RowFilter(>, 'binary:r6')", "", 2, 9},
        {"PrefixFilter('r3') OR PrefixFilter('r7')", "r3r7", 4, 7},
        {"PrefixFilter('r3') AND RowFilter(>, 'binary:r7')", "", 1, 3},
        {"PrefixFilter('r7') AND QualifierFilter(=, 'binary:a')", "r7", 2, 7},
        {"PrefixFilter('r7') OR QualifierFilter(=, 'binary:z')", "r7", 9, 9},
        {"PrefixFilter('r7') AND InclusiveStopFilter('r8')", "r7", 7, 7},
    };
    for (int flushed = 0; flushed < 2; flushed++) {
        scan_fixture *f = scan_fixture_new(9, 1);
        if (flushed) scan_fixture_flush(f);
        for (size_t i = 0; i < RQ_ARRAY_LEN(examples); i++) {
            assert_int_equal(rows_looked_at(f, examples[i].filter, false, examples[i].found),
                             examples[i].looked_at);
            assert_int_equal(rows_looked_at(f, examples[i].filter, true, examples[i].found),
                             examples[i].all);
        }
        scan_fixture_free(f);
    }
}

static void put_value(scan_fixture *f, const char *row, const char *value)
{
    rq_cell c = {.row = (const uint8_t *)row,
                 .row_len = (uint16_t)strlen(row),
                 .family = (const uint8_t *)"f",
                 .family_len = 1,
                 .qualifier = (const uint8_t *)"a",
                 .qualifier_len = 1,
                 .timestamp = 5,
                 .type = RQ_TYPE_PUT,
                 .seqid = ++f->seqid,
                 .value = (const uint8_t *)value,
                 .value_len = (uint32_t)strlen(value)};
    by_hand_add(&f->world, 0, &c);
}

/* HBASE: RegionScannerImpl.nextRow; as in 2.6.1, except for reversed scans. */
static void a_cell_may_end_the_scan_in_a_row_that_is_left_out_by_its_key(void **state)
{
    (void)state;
    static const struct {
        const char *filter, *found, *backwards;
    } examples[] = {
        {"WHILE (ValueFilter(=, 'binary:a')) AND RowFilter(!=, 'binary:r3')", "r1r2", "r5r4r2r1"},
        {"RowFilter(!=, 'binary:r3') AND WHILE (ValueFilter(=, 'binary:a'))", "r1r2r4r5",
         "r5r4r2r1"},
        {"(WHILE (ValueFilter(=, 'binary:a')) OR PrefixFilter('z')) AND RowFilter(!=, 'binary:r3')",
         "r1r2", "r5r4r2r1"},
        {"WHILE (ValueFilter(=, 'binary:a')) AND PrefixFilter('r4')", "", "r4"},
        {"WHILE (ValueFilter(=, 'binary:a')) AND RowFilter(!=, 'binary:r2')", "r1", "r5r4"},
    };
    const rq_scan_family one = {.family = RQ_SLICE_LIT("f")};
    for (int round = 0; round < 16; round++) {
        scan_fixture *f = scan_fixture_new(5, 1);
        put_value(f, "r3", "x");
        if ((round & 1) != 0) scan_fixture_flush(f);
        if ((round & 2) != 0) f->limits.bytes = 1;
        f->scan.reversed = (round & 4) != 0;
        f->scan.families = &one;
        f->scan.family_count = (round & 8) != 0;
        for (size_t i = 0; i < RQ_ARRAY_LEN(examples); i++) {
            const char *expected = f->scan.reversed ? examples[i].backwards : examples[i].found;
            (void)rows_looked_at(f, examples[i].filter, false, expected);
        }
        scan_fixture_free(f);
    }
}

static void a_column_count_get_filter_in_a_scan_ends_it_after_the_first_row(void **state)
{
    (void)state;
    scan_fixture *f = scan_with(3, 3, "ColumnCountGetFilter", 2);
    assert_next(f, "r1 f:a f:b", RQ_SCAN_DONE);
    scan_fixture_free(f);
}

static void families_on_demand_are_read_for_kept_rows_and_sorted_in(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        scan_fixture *f = scan_fixture_new(2, 2);
        rq_cell other = {.row = (const uint8_t *)"r1",
                         .row_len = 2,
                         .family = (const uint8_t *)"g",
                         .family_len = 1,
                         .qualifier = (const uint8_t *)"a",
                         .qualifier_len = 1,
                         .timestamp = 5,
                         .type = RQ_TYPE_PUT,
                         .seqid = ++f->seqid,
                         .value = (const uint8_t *)"x",
                         .value_len = 1};
        by_hand_add(&f->world, 1, &other);
        if (round == 1) scan_fixture_flush(f);
        scan_set_value_filter(f, "g", "a"); /* r1 has another value by now */
        f->scan.load_families_on_demand = true;
        assert_int_equal(scan_fixture_open(f), RQ_OK);
        assert_next(f, "r2 f:a f:b g:a g:b", RQ_SCAN_DONE);
        scan_fixture_free(f);
    }
}

/* The row in the order of its families, whether they are read on demand or not; sorting 2 MB takes several slices. */
static void families_on_demand_are_sorted_in_slices(void **state)
{
    (void)state;
    enum { CELLS = 2000, BYTES = 1000 };
    static const uint8_t value[BYTES];
    scan_fixture *f = scan_fixture_new(2, 2);
    rq_cellblock expected = {0};
    unsigned yields[2];
    scan_widen(f, CELLS, rq_slice_of(value, BYTES));
    for (int on_demand = 0; on_demand < 2; on_demand++) {
        scan_set_value_filter(f, "g", "a");
        f->scan.load_families_on_demand = on_demand == 1;
        assert_int_equal(scan_fixture_open(f), RQ_OK);
        assert_int_equal(scan_next_in_slices(f, &yields[on_demand]), RQ_OK);
        assert_int_equal(f->out.count, CELLS + 4);
        if (on_demand == 1) {
            assert_int_equal(f->out.bytes.len, expected.bytes.len);
            assert_memory_equal(f->out.bytes.ptr, expected.bytes.ptr, expected.bytes.len);
        } else {
            expected = f->out;
            f->out = (rq_cellblock){0};
        }
        scan_fixture_close(f);
    }
    assert_true(yields[1] >= yields[0] + CELLS * BYTES / (128 << 10));
    rq_cellblock_clear(&expected);
    scan_fixture_free(f);
}

static void a_row_filter_keeps_rows_whole_whatever_the_limits(void **state)
{
    (void)state;
    scan_fixture *f = scan_fixture_new(2, 2);
    scan_set_value_filter(f, "f", "a");
    f->limits.bytes = 1;
    f->limits.may_stop_inside_row = true;
    assert_int_equal(scan_fixture_open(f), RQ_OK);
    assert_next(f, "r1 f:a f:b g:a g:b", RQ_SCAN_BYTES_REACHED);
    assert_next(f, "r2 f:a f:b g:a g:b", RQ_SCAN_DONE);
    scan_fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_filter_ends_the_scan),
        cmocka_unit_test(the_end_of_a_row_gives_the_thread_back),
        cmocka_unit_test(uncounted_rows_are_skipped),
        cmocka_unit_test(a_cell_may_end_the_scan_in_a_row_that_is_left_out_by_its_key),
        cmocka_unit_test(a_column_count_get_filter_in_a_scan_ends_it_after_the_first_row),
        cmocka_unit_test(families_on_demand_are_read_for_kept_rows_and_sorted_in),
        cmocka_unit_test(families_on_demand_are_sorted_in_slices),
        cmocka_unit_test(a_row_filter_keeps_rows_whole_whatever_the_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
