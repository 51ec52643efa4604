/* SPDX-License-Identifier: Apache-2.0 */
/* How many files a get reads: cells found in the memstore or the newest file may already complete
 * the result. And how many cells: a wide row is not read from its beginning. */
#include "fixture.h"

#include "base/work_limit.h"

#include "hfile/block_cache.h"
#include "region/engine_priv.h"

static uint64_t blocks_looked_at(const fixture *f)
{
    rq_block_cache_stats s;
    rq_block_cache_get_stats(rq_engine_block_cache(f->engine), &s);
    return s.hits[RQ_BLOCK_DATA] + s.misses[RQ_BLOCK_DATA];
}

/* Gets row "r" (scan->families, …), as an event loop does: builds with sanitizers limit the number of cells (base/work_limit.h).
 * Returns whether a scanner is not needed. */
static bool get_row(fixture *f, rq_scan *scan, rq_cellblock *out)
{
    rq_arena arena = {0};
    rq_read_ctx ctx = {.may_block = true};
    bool answered;
    rq_epoch_member pin;
    rq_epoch_pin(f->env->epoch, &pin);
    rq_work_begin();
    assert_ok(rq_region_get(f->region, scan, &arena, &ctx, out, &answered, NULL));
    rq_work_end();
    rq_read_ctx_clear(&ctx);
    rq_epoch_unpin(f->env->epoch, &pin);
    rq_arena_clear(&arena);
    return answered;
}

/* Gets the whole row "r", or checks whether it exists; returns the number of data blocks read. */
static uint64_t look(fixture *f, bool exists, uint32_t *ret_cells)
{
    rq_cellblock out = {0};
    rq_scan scan = rq_scan_of_row(RQ_SLICE_LIT("r"));
    scan.check_existence_only = exists;
    uint64_t before = blocks_looked_at(f);
    assert_true(get_row(f, &scan, &out));
    *ret_cells = out.count;
    rq_cellblock_clear(&out);
    return blocks_looked_at(f) - before;
}

/* Writes, or deletes, columns 0 to WIDE - 1 of row "r", whose qualifiers have four bytes, most significant first. */
#define WIDE (RQ_WORK_STEPS_MAX + 16 * 1024)
#define WIDE_BATCH 4096u
static void write_wide_row(fixture *f, rq_mutation_type type)
{
    static uint8_t qualifiers[WIDE_BATCH][4];
    static rq_cell cells[WIDE_BATCH];
    for (uint32_t first = 0; first < WIDE; first += WIDE_BATCH) {
        for (uint32_t i = 0; i < WIDE_BATCH; i++) {
            rq_put_be32(qualifiers[i], first + i);
            cells[i] = cell_of("a", "", RQ_TIMESTAMP_LATEST,
                               type == RQ_MUTATE_PUT ? RQ_TYPE_PUT : RQ_TYPE_DELETE_COLUMN, "v");
            cells[i].qualifier = qualifiers[i];
            cells[i].qualifier_len = 4;
        }
        rq_mutation m = {
            .type = type, .row = RQ_SLICE_LIT("r"), .cells = cells, .cell_count = WIDE_BATCH};
        rq_row_op op = {.mutations = &m, .mutation_count = 1};
        assert_ok(rq_region_write_sync(f->region, &op, 1, NULL));
        rq_cellblock_clear(&op.result);
    }
}

/* Opens one family; its memstore has the wide row, and is not flushed. */
static void open_with_wide_row(fixture *f, void **state)
{
    static const family_def one = {"a", {NULL}};
    static const char *const settings[] = {"hbase.hregion.memstore.flush.size=1g",
                                           "rorqual.memory=4g", NULL};
    fixture_open_with(f, env_of(state), &one, 1, settings);
    write_wide_row(f, RQ_MUTATE_PUT);
}

/* Gets these columns of row "r". *ret_cells: the number found, if a scanner is not needed. */
static bool get_columns(fixture *f, const uint32_t *numbers, uint32_t count, uint32_t *ret_cells)
{
    uint8_t bytes[16][5];
    rq_slice qualifiers[16];
    assert_in_range(count, 1, 16);
    for (uint32_t i = 0; i < count; i++) {
        rq_put_be32(bytes[i], numbers[i] / 10);
        bytes[i][4] = 'x'; /* does not exist if numbers[i] % 10 != 0 */
        qualifiers[i] = rq_slice_of(bytes[i], numbers[i] % 10 == 0 ? 4 : 5);
    }
    rq_scan_family family = {
        .family = RQ_SLICE_LIT("a"), .qualifiers = qualifiers, .qualifier_count = count};
    rq_scan scan = rq_scan_of_row(RQ_SLICE_LIT("r"));
    scan.families = &family;
    scan.family_count = 1;
    rq_cellblock out = {0};
    bool answered = get_row(f, &scan, &out);
    *ret_cells = out.count;
    rq_cellblock_clear(&out);
    return answered;
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

static void a_column_of_a_wide_row_in_the_memstore_is_searched_for(void **state)
{
    const uint32_t last[] = {(WIDE - 1) * 10},
                   apart[] = {0, 500, 500000, 500001, 500010, 1000000, 2500000};
    uint32_t absent[16], cells;
    for (uint32_t i = 0; i < 16; i++)
        absent[i] = i * 1000 + 1;
    fixture f;
    open_with_wide_row(&f, state);
    assert_true(get_columns(&f, last, 1, &cells));
    assert_int_equal(cells, 1);
    assert_true(get_columns(&f, apart, 7, &cells));
    assert_int_equal(cells, 6);
    assert_false(
        get_columns(&f, absent, 16, &cells)); /* a scanner can yield the loop between them */
    fixture_close(&f);
}

static void a_wide_row_of_deleted_columns_is_left_to_the_scanner(void **state)
{
    fixture f;
    open_with_wide_row(&f, state);
    write_wide_row(&f, RQ_MUTATE_DELETE);
    rq_scan scan = rq_scan_of_row(RQ_SLICE_LIT("r"));
    rq_cellblock out = {0};
    assert_false(get_row(&f, &scan, &out));
    rq_cellblock_clear(&out);
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
        T(a_column_of_a_wide_row_in_the_memstore_is_searched_for),
        T(a_wide_row_of_deleted_columns_is_left_to_the_scanner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
