/* SPDX-License-Identifier: Apache-2.0 */
/* The sort: random rows are sorted in little memory, and the last of equal cells is kept; also with
 * more runs than are merged at once. */
#include "unit.h"

#include "base/random.h"
#include "transfer/runs.h"
#include "vfs/memory.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 3000, COLUMNS = 3 };

typedef struct check {
    uint8_t last_row[32], last_qualifier;
    rq_cell last;
    size_t cells;
    int newest[ROWS]; /* the number added last for each row; -1: none */
} check;

static rq_err take_cell(void *ctx, const rq_cell *c, rq_error *why)
{
    check *k = ctx;
    char text[16] = {0};
    (void)why;
    if (k->cells++ > 0) {
        rq_cell last = k->last;
        last.row = k->last_row;
        last.qualifier = &k->last_qualifier;
        last.family = (const uint8_t *)"f";
        assert_true(rq_cell_compare_key(RQ_ORDER_DEFAULT, &last, c) < 0);
    }
    k->last_qualifier = c->qualifier[0];
    memcpy(k->last_row, c->row, c->row_len);
    k->last = *c;
    memcpy(text, c->row, c->row_len);
    int row = atoi(text);
    memset(text, 0, sizeof text);
    memcpy(text, c->value, c->value_len);
    assert_int_equal(atoi(text), k->newest[row]);
    return RQ_OK;
}

static void add(rq__row_sorter *s, int row, int n)
{
    char key[16], value[16];
    rq_cell cells[COLUMNS];
    int key_len = snprintf(key, sizeof key, "%04d", row);
    int value_len = snprintf(value, sizeof value, "%d", n);
    for (int i = 0; i < COLUMNS; i++)
        cells[i] = (rq_cell){.row = (const uint8_t *)key,
                             .row_len = (uint16_t)key_len,
                             .family = (const uint8_t *)"f",
                             .family_len = 1,
                             .qualifier = (const uint8_t *)"cab" + i,
                             .qualifier_len = 1,
                             .timestamp = 7,
                             .type = RQ_TYPE_PUT,
                             .value = (const uint8_t *)value,
                             .value_len = (uint32_t)value_len};
    assert_int_equal(
        rq__sort_add(s, (uint64_t)n, rq_slice_of(key, (size_t)key_len), cells, COLUMNS, NULL),
        RQ_OK);
}

static void the_last_of_equal_cells_remains(void **state)
{
    rq_vfs *v;
    rq_random r;
    check *k = calloc(1, sizeof *k);
    size_t rows = 0;
    (void)state;
    assert_non_null(k);
    rq_random_seed(&r, unit_seed());
    assert_int_equal(rq_vfs_memory_new(&v), RQ_OK);
    assert_int_equal(rq_vfs_mkdirs(v, "runs", NULL), RQ_OK);
    rq__runs runs = {.vfs = v, .folder = "runs"};
    rq__row_sorter sorter = {.vfs = v, .folder = "runs", .memory = 4000, .part = 3};
    memset(k->newest, 0xff, sizeof k->newest);
    for (int n = 0; n < 4 * ROWS; n++) {
        int row = (int)rq_random_below(&r, ROWS);
        rows += k->newest[row] < 0;
        k->newest[row] = n;
        add(&sorter, row, n);
    }
    assert_int_equal(rq__sort_flush(&sorter, NULL), RQ_OK);
    assert_true(sorter.runs > 300);           /* needs several steps of merging */
    for (int again = 0; again < 2; again++) { /* the second time as after a kill */
        k->cells = 0;
        assert_int_equal(rq__runs_add(&runs, 3, sorter.runs, NULL), RQ_OK);
        assert_int_equal(rq__runs_merge(&runs, take_cell, k, NULL), RQ_OK);
        assert_int_equal(k->cells, rows * COLUMNS);
        runs.count = 0;
    }
    rq__runs_clear(&runs);
    rq__row_sorter_clear(&sorter);
    rq_vfs_free(v);
    free(k);
}

static rq_err take_nothing(void *ctx, const rq_cell *c, rq_error *why)
{
    (void)ctx;
    (void)c;
    (void)why;
    fail_msg("a cell");
    return RQ_OK;
}

/* --- one row ---------------------------------------------------------------------------------- */

typedef struct one_row {
    size_t cells;
    char newest[16];
} one_row;

static rq_err take_of_row(void *ctx, const rq_cell *c, rq_error *why)
{
    one_row *r = ctx;
    (void)why;
    r->cells++;
    snprintf(r->newest, sizeof r->newest, "%.*s", (int)c->value_len, (const char *)c->value);
    return RQ_OK;
}

/* Lines of the same row, with one value of 1,000 bytes each, in `columns` columns. */
static rq_err merge_one_row(int lines, int columns, size_t memory, one_row *ret, rq_error *why)
{
    rq_vfs *v;
    char value[1000], qualifier[16];
    *ret = (one_row){.cells = 0};
    assert_int_equal(rq_vfs_memory_new(&v), RQ_OK);
    assert_int_equal(rq_vfs_mkdirs(v, "runs", NULL), RQ_OK);
    rq__runs runs = {.vfs = v, .folder = "runs", .memory = memory};
    rq__row_sorter sorter = {.vfs = v, .folder = "runs", .memory = 1 << 20};
    for (int i = 0; i < lines; i++) {
        memset(value, ' ', sizeof value);
        snprintf(value, sizeof value, "%d", i);
        snprintf(qualifier, sizeof qualifier, "%d", i % columns);
        const rq_cell c = {.row = (const uint8_t *)"r",
                           .row_len = 1,
                           .family = (const uint8_t *)"f",
                           .family_len = 1,
                           .qualifier = (const uint8_t *)qualifier,
                           .qualifier_len = (uint32_t)strlen(qualifier),
                           .timestamp = 7,
                           .type = RQ_TYPE_PUT,
                           .value = (const uint8_t *)value,
                           .value_len = sizeof value};
        assert_int_equal(rq__sort_add(&sorter, (uint64_t)i, RQ_SLICE_LIT("r"), &c, 1, NULL), RQ_OK);
    }
    assert_int_equal(rq__sort_flush(&sorter, NULL), RQ_OK);
    assert_int_equal(rq__runs_add(&runs, 0, sorter.runs, NULL), RQ_OK);
    rq_err rc = rq__runs_merge(&runs, take_of_row, ret, why);
    rq__runs_clear(&runs);
    rq__row_sorter_clear(&sorter);
    rq_vfs_free(v);
    return rc;
}

static void a_row_of_any_length_takes_bounded_memory(void **state)
{
    one_row r;
    rq_error why = {.code = RQ_OK};
    (void)state;
    assert_int_equal(merge_one_row(12000, 3, 4 << 20, &r, &why), RQ_OK); /* 12 MB of input */
    assert_int_equal(r.cells, 3);
    assert_string_equal(r.newest, "11999");
    assert_int_equal(merge_one_row(12000, 12000, 4 << 20, &r, &why), RQ_E_ROW_TOO_BIG);
    assert_non_null(strstr(why.message, "different cells"));
    assert_int_equal(merge_one_row(12000, 12000, 64 << 20, &r, &why), RQ_OK);
    assert_int_equal(r.cells, 12000);
}

static void nothing_is_merged_to_nothing(void **state)
{
    rq_vfs *v;
    (void)state;
    assert_int_equal(rq_vfs_memory_new(&v), RQ_OK);
    rq__runs runs = {.vfs = v, .folder = "runs"};
    assert_int_equal(rq__runs_merge(&runs, take_nothing, NULL, NULL), RQ_OK);
    rq_vfs_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_of_equal_cells_remains),
        cmocka_unit_test(a_row_of_any_length_takes_bounded_memory),
        cmocka_unit_test(nothing_is_merged_to_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
