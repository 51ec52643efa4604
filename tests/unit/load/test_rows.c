/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and values: written values are recognised, others are not; the check of a row detects each
 * kind of error. */
#include "unit.h"

#include "cell/cellblock.h"
#include "load/rows.h"

enum { KEY = 7 };

static rq_rows make_rows(bool hashed)
{
    rq_rows r = {.hashed = hashed, .families = 2, .columns = 3, .base = 1000000};
    rq_sizes_parse("20-40", &r.key_len);
    rq_sizes_parse("8-300", &r.value_len);
    rq__rows_name(&r);
    return r;
}

static void a_key_says_its_number_and_keeps_the_order(void **state)
{
    (void)state;
    rq_random random;
    rq_random_seed(&random, unit_seed());
    for (int hashed = 0; hashed < 2; hashed++) {
        rq_rows rows = make_rows(hashed != 0);
        for (int i = 0; i < 5000; i++) {
            rq_buf a = {0};
            rq_buf b = {0};
            uint64_t x = rq_random_next(&random) >> rq_random_below(&random, 60);
            uint64_t y = rq_random_next(&random) >> rq_random_below(&random, 60);
            uint64_t got;
            assert_int_equal(rq__rows_key(&rows, x, &a), RQ_OK);
            assert_int_equal(rq__rows_key(&rows, y, &b), RQ_OK);
            assert_in_range(a.len, 20, 40);
            assert_true(rq__rows_number(&rows, rq_buf_slice(&a), &got));
            assert_int_equal(got, x);
            if (hashed == 0 && x != y)
                assert_int_equal(x < y, rq_slice_compare(rq_buf_slice(&a), rq_buf_slice(&b)) < 0);
            rq_buf_clear(&a);
            rq_buf_clear(&b);
        }
    }
}

static void a_value_is_recognised_and_no_other_is(void **state)
{
    (void)state;
    rq_random random;
    rq_rows rows = make_rows(true);
    rq_random_seed(&random, unit_seed());
    for (int i = 0; i < 3000; i++) {
        rq_buf v = {0};
        uint64_t version = rq_random_below(&random, 1000);
        uint64_t got;
        assert_int_equal(rq__rows_value(&rows, KEY, 1, version, &v), RQ_OK);
        assert_true(rq__rows_value_check(&rows, KEY, 1, rq_buf_slice(&v), &got));
        assert_int_equal(got, version);
        if (v.len > 40) {
            assert_false(rq__rows_value_check(&rows, KEY + 1, 1, rq_buf_slice(&v), &got));
            assert_false(rq__rows_value_check(&rows, KEY, 2, rq_buf_slice(&v), &got));
            assert_false(rq__rows_value_check(&rows, KEY, 1, rq_slice_of(v.ptr, v.len - 1), &got));
            v.ptr[8 + rq_random_below(&random, v.len - 8)] ^=
                (uint8_t)(1 + rq_random_below(&random, 255));
            assert_false(rq__rows_value_check(&rows, KEY, 1, rq_buf_slice(&v), &got));
        }
        rq_buf_clear(&v);
    }
}

/* Checks a row of `columns` columns, where column c has version versions[c]. */
static const char *check_row(const rq_rows *rows, const uint32_t *versions, unsigned columns,
                             rq_row_bounds bounds, int64_t skew)
{
    rq_cellblock block = {0};
    rq_buf key = {0};
    uint64_t cells = 0;
    uint64_t bytes = 0;
    assert_int_equal(rq__rows_key(rows, KEY, &key), RQ_OK);
    for (unsigned c = 0; c < columns; c++) {
        rq_buf v = {0};
        const char *family = rows->family_names[c % rows->families];
        assert_int_equal(rq__rows_value(rows, KEY, c, rows->base + versions[c], &v), RQ_OK);
        rq_cell cell = {.row = key.ptr,
                        .row_len = (uint16_t)key.len,
                        .family = (const uint8_t *)family,
                        .family_len = (uint8_t)strlen(family),
                        .qualifier = (const uint8_t *)rows->qualifier_names[c],
                        .qualifier_len = 5,
                        .value = v.ptr,
                        .value_len = (uint32_t)v.len,
                        .timestamp = (int64_t)(rows->base + versions[c]) + skew,
                        .type = RQ_TYPE_PUT};
        assert_int_equal(rq_cellblock_append(&block, &cell), RQ_OK);
        rq_buf_clear(&v);
    }
    rq_op_result r = {.row = {.present = true, .count = block.count},
                      .cells = rq_cursor_of(rq_buf_slice(&block.bytes))};
    const char *wrong = rq__rows_check(rows, KEY, bounds, &r, &cells, &bytes);
    rq_cellblock_clear(&block);
    rq_buf_clear(&key);
    return wrong;
}

static void a_read_is_checked_against_acknowledged_and_sent_writes(void **state)
{
    (void)state;
    rq_rows rows = make_rows(true);
    const rq_row_bounds five = {.put_acked = 5};
    assert_int_equal(rq__rows_history(&rows, 10), RQ_OK);
    rows.history[KEY] = (rq_row_history){.put_sent = 9, .put_acked = 5};
    assert_null(check_row(&rows, (uint32_t[]){5, 5, 5}, 3, five, 0));
    assert_null(check_row(&rows, (uint32_t[]){9, 9, 9}, 3, five, 0));
    assert_string_equal(check_row(&rows, (uint32_t[]){4, 4, 4}, 3, five, 0),
                        "a version older than the newest acknowledged one");
    assert_string_equal(check_row(&rows, (uint32_t[]){10, 10, 10}, 3, five, 0),
                        "a version that was never written");
    assert_string_equal(check_row(&rows, (uint32_t[]){5, 6, 5}, 3, five, 0),
                        "a row with cells of two versions");
    assert_string_equal(check_row(&rows, (uint32_t[]){5, 5}, 2, five, 0),
                        "a row without all its columns");
    assert_string_equal(check_row(&rows, (uint32_t[]){5, 5, 5}, 3, five, 1),
                        "a cell's timestamp differs from the one in its value");
    assert_string_equal(check_row(&rows, NULL, 0, five, 0), "an acknowledged row is missing");
    rq__rows_clear(&rows);
}

static void a_delete_hides_what_is_older_and_excuses_what_is_missing(void **state)
{
    (void)state;
    rq_rows rows = make_rows(true);
    assert_int_equal(rq__rows_history(&rows, 10), RQ_OK);
    rows.history[KEY] = (rq_row_history){7, 5, 6, 0};
    assert_null(check_row(&rows, NULL, 0, (rq_row_bounds){.put_acked = 5}, 0));
    rows.history[KEY].delete_acked = 6;
    assert_string_equal(check_row(&rows, (uint32_t[]){5, 5, 5}, 3, (rq_row_bounds){5, 6}, 0),
                        "a version that was deleted");
    assert_null(check_row(&rows, (uint32_t[]){7, 7, 7}, 3, (rq_row_bounds){5, 6}, 0));
    rq__rows_clear(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_says_its_number_and_keeps_the_order),
        cmocka_unit_test(a_value_is_recognised_and_no_other_is),
        cmocka_unit_test(a_read_is_checked_against_acknowledged_and_sent_writes),
        cmocka_unit_test(a_delete_hides_what_is_older_and_excuses_what_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
