/* SPDX-License-Identifier: Apache-2.0 */
/* A scan that skips many cells without returning one ends its slice, and the next slice continues
 * there. The cells are hidden by the read point, or have the same key. */
#include "by_example.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* --- rows that the read point hides ------------------------------------------------------------ */

#define HIDDEN_ROWS 5000

static void put_hidden_rows(fixture *f)
{
    for (int i = 0; i < HIDDEN_ROWS; i++) {
        char row[16];
        (void)snprintf(row, sizeof row, "m%05d", i);
        put(f, row, "q", 1, "v");
    }
}

/* Reads two rows around many that were written after the scanner was opened, in slices; returns the
 * number of slices. */
static unsigned read_around_hidden_rows(bool reversed, bool in_file)
{
    rq_family_schema schema = family("f");
    fixture *f = make(&schema, 1);
    put(f, "a", "q", 1, "v");
    put(f, "z", "q", 1, "v");
    flush(f);
    f->world.region.read_point = f->seqid;
    rq_scan s = everything();
    s.reversed = reversed;
    rq_region_scanner *scanner;
    rq_arena arena = {0};
    assert_int_equal(rq_region_scanner_open(&f->world.region, &s, 0, &arena, &scanner, NULL),
                     RQ_OK);
    put_hidden_rows(f);
    if (in_file) flush(f);
    rq_cellblock out = {0};
    rq_scan_limits limits = {.yield_ns = 1};
    rq_scan_state state = RQ_SCAN_MORE;
    unsigned slices = 1;
    while (state != RQ_SCAN_DONE) {
        rq_err rc = rq_region_scanner_next(scanner, &limits, &f->ctx, &out, &state, NULL);
        slices += rc == RQ_E_AGAIN;
        assert_true(slices < HIDDEN_ROWS);
        if (rc == RQ_E_AGAIN)
            rq_region_scanner_suspend(scanner);
        else
            assert_int_equal(rc, RQ_OK);
    }
    assert_string_equal(describe(f, &out),
                        reversed ? "z/f:q@1=v a/f:q@1=v" : "a/f:q@1=v z/f:q@1=v");
    rq_region_scanner_close(scanner);
    rq_cellblock_clear(&out);
    rq_arena_clear(&arena);
    drop(f);
    return slices;
}

static void rows_written_since_the_scan_began_end_its_slices(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_in_range(read_around_hidden_rows(i % 2 == 1, i >= 2), 3, HIDDEN_ROWS / 128);
}

/* A call that skips only hidden cells returns in time, and the next call continues. */
static void rows_written_since_the_scan_began_end_its_calls(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    for (int i = 0; i < 4; i++) {
        fixture *f = make(&schema, 1);
        rq_scan s = everything();
        rq_region_scanner *scanner;
        rq_arena arena = {0};
        rq_cellblock out = {0};
        /* Both times are over at the first clock check. */
        rq_scan_limits limits = {.yield_ns = 1, .deadline_ns = 1, .may_stop_inside_row = true};
        rq_scan_state got = RQ_SCAN_MORE;
        unsigned calls = 0, empty = 0;
        put(f, "a", "q", 1, "v");
        put(f, "z", "q", 1, "v");
        flush(f);
        f->world.region.read_point = f->seqid;
        s.reversed = i % 2 == 1;
        assert_int_equal(rq_region_scanner_open(&f->world.region, &s, 0, &arena, &scanner, NULL),
                         RQ_OK);
        put_hidden_rows(f);
        if (i >= 2) flush(f);
        while (got != RQ_SCAN_DONE) {
            uint32_t before = out.count;
            rq_err rc = rq_region_scanner_next(scanner, &limits, &f->ctx, &out, &got, NULL);
            assert_true(++calls < HIDDEN_ROWS);
            if (rc == RQ_E_AGAIN) {
                rq_region_scanner_suspend(scanner);
                continue;
            }
            assert_int_equal(rc, RQ_OK);
            empty += got != RQ_SCAN_DONE && out.count == before;
        }
        assert_in_range(empty, 3, HIDDEN_ROWS / 128);
        assert_string_equal(describe(f, &out),
                            s.reversed ? "z/f:q@1=v a/f:q@1=v" : "a/f:q@1=v z/f:q@1=v");
        rq_region_scanner_close(scanner);
        rq_cellblock_clear(&out);
        rq_arena_clear(&arena);
        drop(f);
    }
}

/* --- many cells inside one row ----------------------------------------------------------------- */

#define HIDDEN_VERSIONS 20000
/* The number of cells that a slice may skip. */
#define SLICE_MAX 2048

/* Reads all cells in slices that end at each clock check; returns the number of cells, and of
 * slices. */
static unsigned read_in_slices(fixture *f, const rq_scan *scan, rq_scan_limits limits,
                               unsigned slices_max, unsigned *ret_slices)
{
    rq_region_scanner *scanner;
    rq_arena arena = {0};
    rq_cellblock out = {0};
    rq_scan_state state = RQ_SCAN_MORE;
    *ret_slices = 1;
    assert_int_equal(rq_region_scanner_open(&f->world.region, scan, 0, &arena, &scanner, NULL),
                     RQ_OK);
    limits.yield_ns = 1;
    while (state != RQ_SCAN_DONE) {
        rq_err rc = rq_region_scanner_next(scanner, &limits, &f->ctx, &out, &state, NULL);
        *ret_slices += rc == RQ_E_AGAIN;
        assert_true(rc == RQ_OK || rc == RQ_E_AGAIN);
        assert_true(*ret_slices <= slices_max);
        rq_region_scanner_suspend(scanner);
    }
    unsigned count = (unsigned)out.count;
    rq_region_scanner_close(scanner);
    rq_cellblock_clear(&out);
    rq_arena_clear(&arena);
    return count;
}

/* Versions of one cell that were written after the scan began; `alike`: all have the same
 * timestamp. */
static unsigned slices_over_hidden_versions(bool reversed, bool in_file, bool alike)
{
    rq_family_schema schema = family("f");
    schema.max_versions = INT32_MAX;
    fixture *f = make(&schema, 1);
    put(f, "a", "q", 1, "v");
    put(f, "m", "q", 1, "v");
    put(f, "z", "q", 1, "v");
    uint64_t read_point = f->seqid;
    for (int i = 0; i < HIDDEN_VERSIONS; i++)
        put(f, "m", "q", alike ? 1 : 2 + i, "v");
    if (in_file) {
        by_hand_rotate(&f->world, 0);
        by_hand_flush(&f->world, 0, read_point, NULL);
    }
    f->world.region.read_point = read_point;
    rq_scan s = everything();
    s.reversed = reversed;
    unsigned slices;
    assert_int_equal(read_in_slices(f, &s, (rq_scan_limits){0}, HIDDEN_VERSIONS, &slices), 3);
    drop(f);
    return slices;
}

static void versions_written_since_the_scan_began_end_its_slices(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++)
        assert_true(slices_over_hidden_versions((i & 1) != 0, (i & 2) != 0, (i & 4) != 0) >
                    HIDDEN_VERSIONS / SLICE_MAX);
}

#define MARKERS 20000

/* Identical markers are passed by a raw scan, which returns one of them (as HBase does), however the
 * scan is cut into slices. */
static void read_identical_markers(bool reversed, bool in_file, rq_block_encoding encoding)
{
    rq_family_schema schema = family("f");
    schema.encoding = encoding;
    schema.block_bytes = 4096;
    fixture *f = make(&schema, 1);
    put(f, "a", "q", 1, "v");
    for (int i = 0; i < MARKERS; i++)
        del(f, "m", "q", 1, RQ_TYPE_DELETE_COLUMN);
    put(f, "z", "q", 1, "v");
    if (in_file) flush(f);
    rq_scan s = everything();
    s.raw = true;
    s.reversed = reversed;
    unsigned slices;
    rq_scan_limits limits = {.cells = 64, .may_stop_inside_row = true};
    assert_int_equal(read_in_slices(f, &s, limits, MARKERS / 8, &slices), 3);
    drop(f);
}

static void identical_cells_are_passed_once_whatever_the_slices(void **state)
{
    (void)state;
    for (int reversed = 0; reversed < 2; reversed++) {
        read_identical_markers(reversed != 0, false, RQ_ENCODING_NONE);
        read_identical_markers(reversed != 0, true, RQ_ENCODING_NONE);
        read_identical_markers(reversed != 0, true, RQ_ENCODING_FAST_DIFF);
        read_identical_markers(reversed != 0, true, RQ_ENCODING_ROW_INDEX_V1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_written_since_the_scan_began_end_its_slices),
        cmocka_unit_test(rows_written_since_the_scan_began_end_its_calls),
        cmocka_unit_test(versions_written_since_the_scan_began_end_its_slices),
        cmocka_unit_test(identical_cells_are_passed_once_whatever_the_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
