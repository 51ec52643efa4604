/* SPDX-License-Identifier: Apache-2.0 */
/* A scan that passes many cells without returning one of them ends its slice, and the next slice goes
 * on where it was: cells that the read point hides, and cells of one key. */
#include "by_example.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* --- rows that the read point hides ------------------------------------------------------------ */

#define HIDDEN_ROWS 5000

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
    for (int i = 0; i < HIDDEN_ROWS; i++) {
        char row[16];
        (void)snprintf(row, sizeof row, "m%05d", i);
        put(f, row, "q", 1, "v");
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_written_since_the_scan_began_end_its_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
