/* SPDX-License-Identifier: Apache-2.0 */
/* How many files a get reads: cells found in the memstore or the newest file may already complete
 * the result. */
#include "fixture.h"

#include "hfile/block_cache.h"
#include "region/engine_priv.h"

static uint64_t blocks_looked_at(const fixture *f)
{
    rq_block_cache_stats s;
    rq_block_cache_get_stats(rq_engine_block_cache(f->engine), &s);
    return s.hits[RQ_BLOCK_DATA] + s.misses[RQ_BLOCK_DATA];
}

/* Gets the whole row "r", or checks whether it exists; returns the number of data blocks read. */
static uint64_t look(fixture *f, bool exists, uint32_t *ret_cells)
{
    rq_arena arena = {0};
    rq_cellblock out = {0};
    rq_read_ctx ctx = {.may_block = true};
    rq_scan scan = {.start_row = RQ_SLICE_LIT("r"),
                    .stop_row = RQ_SLICE_LIT("r"),
                    .include_start = true,
                    .include_stop = true,
                    .is_get = true,
                    .check_existence_only = exists,
                    .cache_blocks = true,
                    .max_versions = 1,
                    .time_range = RQ_TIME_RANGE_ALL,
                    .store_limit = -1};
    uint64_t before = blocks_looked_at(f);
    bool answered;
    rq_epoch_member pin;
    rq_epoch_pin(f->env->epoch, &pin);
    assert_ok(rq_region_get(f->region, &scan, &arena, &ctx, &out, &answered, NULL));
    rq_read_ctx_clear(&ctx);
    rq_epoch_unpin(f->env->epoch, &pin);
    assert_true(answered);
    *ret_cells = out.count;
    rq_cellblock_clear(&out);
    rq_arena_clear(&arena);
    return blocks_looked_at(f) - before;
}

static void write_row(fixture *f, unsigned columns, int64_t ts)
{
    for (unsigned i = 0; i < columns; i++) {
        char name[8];
        snprintf(name, sizeof name, "q%02u", i);
        assert_ok(put(f, "r", "a", name, ts, "v"));
    }
}

static void flush(fixture *f)
{
    assert_ok(rq_region_flush(f->region, (rq_slice){0}, NULL, NULL));
}

/* Opens one family; a file has the row with this many columns. */
static void open_with_file(fixture *f, void **state, unsigned columns)
{
    static const family_def one = {"a", {NULL}};
    fixture_open(f, env_of(state), &one, 1);
    write_row(f, columns, 10);
    flush(f);
}

static void a_whole_row_that_was_found_ends_the_search(void **state)
{
    fixture f;
    uint32_t cells;
    open_with_file(&f, state, 3);
    assert_int_equal(look(&f, false, &cells), 1);
    assert_int_equal(cells, 3);
    write_row(&f, 3, 20); /* all of it is in the memstore */
    assert_int_equal(look(&f, false, &cells), 0);
    assert_int_equal(cells, 3);
    flush(&f); /* all of it is in the newest file */
    assert_int_equal(look(&f, false, &cells), 1);
    write_row(&f, 2, 30); /* part of the row is newer */
    assert_int_equal(look(&f, false, &cells), 2);
    assert_int_equal(cells, 3);
    assert_int_equal(look(&f, true, &cells), 0); /* the row exists, whatever older files contain */
    write_row(&f, 3, 5);                         /* cells later in the row may be older */
    assert_int_equal(look(&f, false, &cells), 2);
    assert_int_equal(cells, 3);
    fixture_close(&f);
}

static void a_marker_may_bring_older_columns_to_light(void **state)
{
    fixture f;
    uint32_t cells;
    open_with_file(&f, state, 3);
    write_row(&f, 3, 20);
    assert_ok(delete_cell(&f, "r", "a", "q01", 20, RQ_TYPE_DELETE)); /* deletes only this version */
    assert_int_equal(look(&f, false, &cells), 1);
    assert_int_equal(cells, 3);
    assert_string_equal(read_text(&f, "r", 0, false),
                        "r/a:q00/20/Put=v\nr/a:q01/10/Put=v\nr/a:q02/20/Put=v\n");
    fixture_close(&f);
}

static void files_of_many_columns_are_looked_into(void **state)
{
    fixture f;
    uint32_t cells;
    open_with_file(&f, state, 33);
    write_row(&f, 33, 20);
    assert_true(look(&f, false, &cells) > 0);
    assert_int_equal(cells, 33);
    fixture_close(&f);
}

static void a_row_written_over_a_hundred_times_is_read_where_it_begins(void **state)
{
    fixture f;
    uint32_t cells;
    open_with_file(&f, state, 3);
    for (int64_t ts = 20; ts < 120; ts++)
        write_row(&f, 3, ts);
    assert_int_equal(look(&f, false, &cells), 0); /* look() expects a result */
    assert_int_equal(cells, 3);
    assert_ok(put(&f, "r", "a", "q03", 130, "new"));
    assert_int_equal(look(&f, false, &cells), 0);
    assert_int_equal(cells, 4);
    /* a column that this row does not have */
    assert_ok(put(&f, "other", "a", "q04", 130, "elsewhere"));
    assert_ok(delete_cell(&f, "r", "a", "q01", 119, RQ_TYPE_DELETE));
    assert_ok(delete_cell(&f, "r", "a", "q02", 200, RQ_TYPE_DELETE_COLUMN));
    assert_string_equal(read_text(&f, "r", 0, false),
                        "r/a:q00/119/Put=v\nr/a:q01/118/Put=v\nr/a:q03/130/Put=new\n");
    fixture_close(&f);
}

#define T(name) cmocka_unit_test_setup_teardown(name, real_env_setup, real_env_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_whole_row_that_was_found_ends_the_search),
        T(a_marker_may_bring_older_columns_to_light),
        T(files_of_many_columns_are_looked_into),
        T(a_row_written_over_a_hundred_times_is_read_where_it_begins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
