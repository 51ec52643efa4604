/* SPDX-License-Identifier: Apache-2.0 */
/* The filter of a segment's rows: added rows are never denied, others mostly are, for rows of any
 * form. A segment denies no row that it contains, at any number of cells. */
#include "base/random.h"
#include "store/row_filter.h"
#include "store/segment.h"

#include "../../seeds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* Shapes of keys that differ in few places. */
static const char *const shapes[] = {"%026u", "user%u", "%u", "row-%08x-suffix-of-a-row", "%08x"};
#define SHAPES (sizeof shapes / sizeof shapes[0])

static rq_slice row_of(char bytes[64], size_t shape, unsigned number)
{
    int len = snprintf(bytes, 64, shapes[shape], number);
    return rq_slice_of(bytes, (size_t)len);
}

static uint64_t hash_of(size_t shape, unsigned number)
{
    char bytes[64];
    rq_slice row = row_of(bytes, shape, number);
    return rq__row_hash(row.ptr, row.len);
}

static void added_rows_are_never_denied_and_few_others_are_not(void **state)
{
    (void)state;
    for (size_t shape = 0; shape < SHAPES; shape++) {
        enum { ROWS = 50000 };
        rq_row_filter *f = rq__row_filter_new(NULL);
        assert_non_null(f);
        for (unsigned i = 0; i < ROWS; i++) {
            if (rq__row_filter_is_full(f)) f = rq__row_filter_new(f);
            assert_non_null(f);
            rq__row_filter_add(f, hash_of(shape, i));
        }
        assert_non_null(f->older); /* the filter has more than one layer */
        unsigned wrong = 0;
        for (unsigned i = 0; i < ROWS; i++) {
            assert_true(rq__row_filter_may_have(f, hash_of(shape, i)));
            wrong += rq__row_filter_may_have(f, hash_of(shape, ROWS + i));
        }
        /* Two full layers and one filled to a quarter: about one in twelve is not denied. */
        if (wrong > ROWS / 8) fail_msg("shape %zu: %u of %u absent rows", shape, wrong, ROWS);
        rq__row_filter_free(f);
    }
}

static void rows_of_any_length_differ_by_each_byte(void **state)
{
    (void)state;
    uint8_t row[70] = {0};
    for (size_t len = 0; len < sizeof row; len++) {
        uint64_t plain = rq__row_hash(row, len);
        assert_int_not_equal(plain, rq__row_hash(row, len + 1 < sizeof row ? len + 1 : 0));
        for (size_t i = 0; i < len; i++) {
            row[i] = 1;
            assert_int_not_equal(plain, rq__row_hash(row, len));
            row[i] = 0;
        }
    }
}

static void a_segment_denies_no_row_it_has(void **state)
{
    (void)state;
    enum { CELLS = 40000 };
    uint64_t seed = seeds_number("RQ_SEED", 20261122);
    rq_random random;
    rq_random_seed(&random, seed);
    print_message("RQ_SEED=%llu\n", (unsigned long long)seed);
    rq_segment *s;
    assert_int_equal(rq_segment_new(RQ_ORDER_DEFAULT, &s), RQ_OK);
    static unsigned rows[CELLS];
    size_t shape = rq_random_below(&random, SHAPES);
    size_t heap_small = 0;
    for (unsigned i = 0; i < CELLS; i++) {
        char bytes[64];
        rows[i] = (unsigned)rq_random_below(&random, 2 * CELLS);
        rq_cell c = rq_cell_first_on_column(row_of(bytes, shape, rows[i]), RQ_SLICE_LIT("f"),
                                            RQ_SLICE_LIT("q"));
        c.timestamp = (int64_t)i;
        c.type = RQ_TYPE_PUT;
        c.seqid = i + 1;
        assert_int_equal(rq_segment_add(s, &c), RQ_OK);
        /* Checks the row just added and an early one, at each size. */
        assert_true(rq__segment_may_have_row(s, hash_of(shape, rows[i])));
        unsigned early = rows[rq_random_below(&random, i + 1)];
        assert_true(rq__segment_may_have_row(s, hash_of(shape, early)));
        if (i == 100) heap_small = rq_segment_heap_bytes(s);
    }
    unsigned denied = 0;
    for (unsigned i = 0; i < CELLS; i++)
        denied += !rq__segment_may_have_row(s, hash_of(shape, 2 * CELLS + i));
    assert_true(denied > CELLS * 3 / 4);
    assert_true(rq_segment_heap_bytes(s) > heap_small);
    rq_segment_unref(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(added_rows_are_never_denied_and_few_others_are_not),
        cmocka_unit_test(rows_of_any_length_differ_by_each_byte),
        cmocka_unit_test(a_segment_denies_no_row_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
