/* SPDX-License-Identifier: Apache-2.0 */
/* Searches of an index with marks and of one without have the same result: for rows that differ
 * anywhere, one row with many columns, keys shortened between two cells, and searches for keys in,
 * between, before and after those of the index. */
#include "base/random.h"
#include "hfile/index.h"

#include "../../seeds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define ENTRIES_MAX 600

typedef struct column {
    uint8_t row[24], qualifier[12];
    size_t row_len, qualifier_len;
    int64_t timestamp;
} column;

/* Few different bytes, so that keys have common prefixes and are sometimes equal. */
static size_t fill(rq_random *random, uint8_t *to, size_t shared, size_t more)
{
    memset(to, 'k', shared);
    size_t len = shared + rq_random_below(random, more + 1);
    for (size_t i = shared; i < len; i++)
        to[i] = (uint8_t) "\0\1azz\x7f\x80\xff"[rq_random_below(random, 8)];
    return len;
}

static void make(rq_random *random, bool one_row, column *ret)
{
    ret->row_len =
        one_row ? 5 : fill(random, ret->row, rq_random_below(random, 20) == 0 ? 3 : 9, 8);
    if (one_row) memset(ret->row, 'r', 5);
    ret->qualifier_len = fill(random, ret->qualifier, one_row ? 2 : 0, 8);
    ret->timestamp = (int64_t)rq_random_below(random, 4);
}

static rq_cell cell_of(const column *c)
{
    rq_cell cell = rq_cell_first_on_column(rq_slice_of(c->row, c->row_len), RQ_SLICE_LIT("f"),
                                           rq_slice_of(c->qualifier, c->qualifier_len));
    cell.timestamp = c->timestamp;
    cell.type = RQ_TYPE_PUT;
    return cell;
}

static int compare(const void *a, const void *b)
{
    rq_cell x = cell_of((const column *)a);
    rq_cell y = cell_of((const column *)b);
    return rq_cell_compare_key(RQ_ORDER_DEFAULT, &x, &y);
}

/* Builds the non-root form over these cells, with every key between two of them as short as in a
 * file. */
static void build(const column *columns, size_t count, rq_buf *out)
{
    rq__index_chunk chunk = {0};
    rq_buf key = {0};
    for (size_t i = 0; i < count; i++) {
        rq_cell right = cell_of(&columns[i]);
        rq_cell left;
        if (i > 0) left = cell_of(&columns[i - 1]);
        assert_int_equal(
            rq__index_key_between(RQ_ORDER_DEFAULT, i == 0 ? NULL : &left, &right, &key), RQ_OK);
        assert_int_equal(rq__index_chunk_add(&chunk, rq_buf_slice(&key), 100 * i, 100, i), RQ_OK);
    }
    assert_int_equal(rq__index_chunk_write(&chunk, out), RQ_OK);
    rq__index_chunk_clear(&chunk);
    rq_buf_clear(&key);
}

static void marks_change_no_answer(void **state)
{
    (void)state;
    uint64_t seed = seeds_number("RQ_SEED", 20261122);
    rq_random random;
    rq_random_seed(&random, seed);
    print_message("RQ_SEED=%llu\n", (unsigned long long)seed);
    static column columns[ENTRIES_MAX];
    unsigned with_marks = 0;
    for (int round = 0; round < 60; round++) {
        bool one_row = round % 3 == 0;
        size_t count = 1 + rq_random_below(&random, ENTRIES_MAX);
        for (size_t i = 0; i < count; i++)
            make(&random, one_row, &columns[i]);
        qsort(columns, count, sizeof columns[0], compare);
        rq_buf bytes = {0};
        build(columns, count, &bytes);
        rq__index_view v;
        size_t len;
        assert_true(rq__index_check(rq_buf_slice(&bytes), UINT64_MAX, true, &v, &len));
        rq__sidecar *marks = rq__index_marks(NULL, v, RQ_ORDER_DEFAULT);
        with_marks += marks != NULL;
        for (int i = 0; i < 500; i++) {
            column other;
            make(&random, one_row && i % 10 != 0, &other);
            rq_cell key = cell_of(i % 2 == 0 ? &other : &columns[rq_random_below(&random, count)]);
            if (i % 5 == 0) key = rq_cell_first_on_row(rq_cell_row(&key));
            assert_int_equal(rq__index_floor(v, marks, RQ_ORDER_DEFAULT, &key),
                             rq__index_floor(v, NULL, RQ_ORDER_DEFAULT, &key));
            assert_int_equal(rq__index_floor_before(v, marks, RQ_ORDER_DEFAULT, &key),
                             rq__index_floor_before(v, NULL, RQ_ORDER_DEFAULT, &key));
        }
        rq__sidecar_free(NULL, marks);
        rq_buf_clear(&bytes);
    }
    assert_true(with_marks > 50); /* short indexes have no marks */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(marks_change_no_answer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
