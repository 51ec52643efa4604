/* SPDX-License-Identifier: Apache-2.0 */
/* An op of many cells does not run on a lane, which must serve other requests: a thread of
 * RQ_POOL_READ takes the token. The batch keeps its order, and the op is one log record with one
 * write number. */
#include "fixture.h"

#include "filter/language.h"

#include <stdatomic.h>
#include <string.h>

#define CELLS_MAX 3000
#define OPS_MAX 5
/* An op with many reads takes one task of the pool for its reads, and another one if a lane drains
 * the queue after the reads. */
#define TASKS_MAX 2

typedef struct long_world {
    real_env real;
    fixture f;
    void (*submit)(rq_executor *ex, rq_pool pool, rq_task *task); /* the executor's own function */
    _Atomic unsigned submitted;                                   /* tasks of RQ_POOL_READ */
    rq_lane *lane;
    rq_writer *writer;
    rq_task begin;
    rq_latch done;
    rq_write write;
    rq_row_op ops[OPS_MAX];
    rq_mutation mutations[OPS_MAX];
    rq_cell cells[OPS_MAX][CELLS_MAX];
    char qualifiers[CELLS_MAX][8];
} long_world;

/* global, because the executor's functions have no other argument for the test */
static long_world *the_world;

static void count_submit(rq_executor *ex, rq_pool pool, rq_task *task)
{
    if (pool == RQ_POOL_READ) atomic_fetch_add(&the_world->submitted, 1);
    the_world->submit(ex, pool, task);
}

static int begin(void **state)
{
    long_world *w = the_world = calloc(1, sizeof *w);
    assert_non_null(w);
    real_env_open(&w->real);
    rq_executor *ex = w->real.env.executor;
    w->submit = ex->submit;
    ex->submit = count_submit;
    fixture_open(&w->f, &w->real.env, NULL, 0);
    assert_ok(ex->lane_new(ex, "writer", &w->lane));
    assert_ok(rq_writer_new(w->f.engine, w->lane, &w->writer));
    for (size_t i = 0; i < CELLS_MAX; i++)
        snprintf(w->qualifiers[i], sizeof w->qualifiers[i], "%05zu", i);
    *state = w;
    return 0;
}

static int end(void **state)
{
    long_world *w = *state;
    rq_executor *ex = w->real.env.executor;
    ex->lane_free(ex, w->lane);
    rq_writer_free(w->writer);
    fixture_close(&w->f);
    real_env_close(&w->real);
    free(w);
    return 0;
}

/* Adds an op on the row; increments of 1 read first. */
static void add_op(long_world *w, rq_mutation_type type, const char *row, size_t cells)
{
    static const uint8_t one[8] = {0, 0, 0, 0, 0, 0, 0, 1};
    size_t n = w->write.op_count++;
    for (size_t i = 0; i < cells; i++) {
        rq_cell *c = &w->cells[n][i];
        *c = cell_of("a", w->qualifiers[i], RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, "");
        c->value = one;
        c->value_len = sizeof one;
    }
    w->mutations[n] = (rq_mutation){
        .type = type, .row = rq_slice_cstr(row), .cells = w->cells[n], .cell_count = cells};
    w->ops[n] = (rq_row_op){.mutations = &w->mutations[n], .mutation_count = 1};
}

static void on_done(rq_write *write)
{
    long_world *w = RQ_CONTAINER_OF(write, long_world, write);
    w->real.env.executor->latch_open(&w->done, RQ_OK);
}

static void run_begin(rq_task *task)
{
    long_world *w = RQ_CONTAINER_OF(task, long_world, begin);
    rq_region_write(w->f.region, &w->write);
}

/* Writes all ops; returns the number of pool tasks used. */
static unsigned write_all(long_world *w)
{
    rq_executor *ex = w->real.env.executor;
    unsigned before = atomic_load(&w->submitted);
    ex->latch_init(ex, &w->done);
    w->write.ops = w->ops;
    w->write.writer = w->writer;
    w->write.done = on_done;
    w->begin.run = run_begin;
    rq_lane_post(w->lane, &w->begin);
    assert_ok(ex->latch_wait(&w->done));
    ex->latch_destroy(&w->done);
    for (size_t i = 0; i < w->write.op_count; i++) {
        assert_ok(w->ops[i].rc);
        rq_row_op_clear(&w->ops[i]);
    }
    return atomic_load(&w->submitted) - before;
}

static size_t cells_of_row(long_world *w, const char *row)
{
    size_t lines = 0;
    for (const char *p = read_text(&w->f, row, 1, false); *p != '\0'; p++)
        lines += *p == '\n';
    return lines;
}

static void a_short_op_stays_on_its_lane(void **state)
{
    long_world *w = *state;
    for (size_t i = 0; i < OPS_MAX; i++)
        add_op(w, RQ_MUTATE_PUT, "row", 200);
    assert_int_equal(write_all(w), 0);
    assert_int_equal(cells_of_row(w, "row"), 200);
}

static void a_put_of_many_cells_leaves_its_lane(void **state)
{
    long_world *w = *state;
    add_op(w, RQ_MUTATE_PUT, "row", CELLS_MAX);
    assert_int_equal(write_all(w), 1);
    assert_int_equal(cells_of_row(w, "row"), CELLS_MAX);
}

/* Later ops read the results of earlier ones, on whatever thread. */
static void a_batch_with_long_ops_keeps_its_order(void **state)
{
    long_world *w = *state;
    add_op(w, RQ_MUTATE_PUT, "row", 2);
    add_op(w, RQ_MUTATE_INCREMENT, "row", CELLS_MAX);
    add_op(w, RQ_MUTATE_INCREMENT, "row", 1);
    add_op(w, RQ_MUTATE_INCREMENT, "row", CELLS_MAX);
    add_op(w, RQ_MUTATE_INCREMENT, "row", 2);
    assert_in_range(write_all(w), 1, 2 * TASKS_MAX);
    assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[0]), 5);
    assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[1]), 4);
    assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[2]), 2);
    assert_int_equal(cells_of_row(w, "row"), CELLS_MAX);
}

/* The value's bytes are copied twice. */
static void a_put_of_a_long_value_leaves_its_lane(void **state)
{
    enum { LEN = 1 << 20 };
    long_world *w = *state;
    uint8_t *value = calloc(1, LEN);
    assert_non_null(value);
    add_op(w, RQ_MUTATE_PUT, "row", 1);
    add_op(w, RQ_MUTATE_PUT, "row", 2);
    w->cells[1][1].value = value;
    w->cells[1][1].value_len = LEN;
    add_op(w, RQ_MUTATE_PUT, "row", 3);
    assert_int_equal(write_all(w), 1);
    assert_int_equal(cells_of_row(w, "row"), 3);
    w->write.op_count = 0;
    add_op(w, RQ_MUTATE_PUT, "row", 1);
    w->cells[0][0].value = value;
    w->cells[0][0].value_len = LEN / 16;
    assert_int_equal(write_all(w), 0);
    free(value);
}

/* Checks that an op of `count` mutations with one cell each runs on a pool, in at most `tasks`
 * tasks. */
static void check_op_of_mutations(long_world *w, rq_mutation_type type, size_t count,
                                  unsigned tasks)
{
    rq_mutation *list = calloc(count, sizeof *list);
    assert_non_null(list);
    add_op(w, type, "row", count);
    for (size_t i = 0; i < count; i++)
        list[i] = (rq_mutation){
            .type = type, .row = RQ_SLICE_LIT("row"), .cells = &w->cells[0][i], .cell_count = 1};
    w->ops[0].mutations = list;
    w->ops[0].mutation_count = count;
    assert_in_range(write_all(w), 1, tasks);
    assert_int_equal(cells_of_row(w, "row"), count);
    free(list);
}

static void an_op_of_many_mutations_leaves_its_lane(void **state)
{
    check_op_of_mutations(*state, RQ_MUTATE_PUT, 2000, 1);
}

/* A row of 100,000 cells, which takes milliseconds to read. */
static void fill_wide(long_world *w)
{
    enum { PUTS = 100, CELLS = 1000 };
    for (int i = 0; i < PUTS; i++) {
        for (int k = 0; k < CELLS; k++)
            snprintf(w->qualifiers[k], sizeof w->qualifiers[k], "%06d", i * CELLS + k);
        w->write.op_count = 0;
        add_op(w, RQ_MUTATE_PUT, "wide", CELLS);
        assert_ok(rq_region_write_sync(w->f.region, w->ops, 1, NULL));
    }
    w->write.op_count = 0;
}

static bool was_processed(long_world *w, const char *row, rq_condition c)
{
    c.row = rq_slice_cstr(row);
    w->write.op_count = 0;
    add_op(w, RQ_MUTATE_PUT, row, 1);
    w->ops[0].conditions = &c;
    w->ops[0].condition_count = 1;
    (void)write_all(w);
    return w->ops[0].processed;
}

static rq_condition condition_of(rq_arena *arena, const char *text)
{
    rq_condition c = {0};
    rq_error why;
    rq_error_clear(&why);
    assert_ok(rq_filter_language_compile(rq_slice_cstr(text), arena, &c.filter_class,
                                         &c.filter_message, &why));
    assert_ok(rq_filter_parse(c.filter_class, c.filter_message, arena, &c.filter, &why));
    return c;
}

/* The amount that a condition reads is not known in advance. */
static void a_condition_that_reads_much_leaves_its_lane(void **state)
{
    long_world *w = *state;
    rq_arena arena = {0};
    rq_condition none = condition_of(&arena, "ValueFilter(=, 'binary:x')");
    rq_condition last = condition_of(&arena, "QualifierFilter(=, 'binary:099999')");
    add_op(w, RQ_MUTATE_PUT, "row", 3);
    (void)write_all(w);
    fill_wide(w);
    unsigned before = atomic_load(&w->submitted);
    assert_false(was_processed(w, "row", none));
    assert_int_equal(atomic_load(&w->submitted), before);
    assert_false(was_processed(w, "wide", none));
    assert_int_equal(atomic_load(&w->submitted), before + 1);
    assert_true(was_processed(w, "wide", last));
    assert_int_equal(atomic_load(&w->submitted), before + 2);
    rq_arena_clear(&arena);
}

/* A row may have any size, and a filter may pass all of it. */
static void a_condition_does_not_read_any_number_of_bytes(void **state)
{
    enum { LEN = 8 << 20, COUNT = 9 };
    long_world *w = *state;
    rq_arena arena = {0};
    rq_condition c = condition_of(&arena, "PrefixFilter('row')");
    c.row = RQ_SLICE_LIT("row");
    uint8_t *value = calloc(1, LEN);
    assert_non_null(value);
    for (size_t i = 0; i < COUNT; i++) {
        w->write.op_count = 0;
        add_op(w, RQ_MUTATE_PUT, "row", 1);
        w->cells[0][0] = cell_of("a", w->qualifiers[i], RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, "");
        w->cells[0][0].value = value;
        w->cells[0][0].value_len = LEN;
        assert_ok(rq_region_write_sync(w->f.region, w->ops, 1, NULL));
    }
    w->write.op_count = 0;
    add_op(w, RQ_MUTATE_PUT, "row", 1);
    w->ops[0].conditions = &c;
    w->ops[0].condition_count = 1;
    assert_int_equal(rq_region_write_sync(w->f.region, w->ops, 1, NULL), RQ_E_ROW_TOO_BIG);
    assert_int_equal(w->ops[0].rc, RQ_E_ROW_TOO_BIG);
    rq_row_op_clear(&w->ops[0]);
    free(value);
    rq_arena_clear(&arena);
}

/* The op reads and writes long values, although its request is short. */
static void an_append_to_a_long_value_leaves_its_lane(void **state)
{
    enum { LEN = 1 << 20 };
    long_world *w = *state;
    uint8_t *value = calloc(1, LEN);
    assert_non_null(value);
    add_op(w, RQ_MUTATE_PUT, "row", 1);
    w->cells[0][0].value = value;
    w->cells[0][0].value_len = LEN;
    assert_ok(rq_region_write_sync(w->f.region, w->ops, 1, NULL));
    w->write.op_count = 0;
    add_op(w, RQ_MUTATE_APPEND, "row", 1);
    assert_int_equal(write_all(w), 1);
    rq_condition c = {.row = RQ_SLICE_LIT("row"),
                      .family = RQ_SLICE_LIT("a"),
                      .qualifier = rq_slice_cstr(w->qualifiers[0]),
                      .op = RQ_EQUAL};
    value = realloc(value, LEN + 8);
    assert_non_null(value);
    memset(value + LEN, 0, 7);
    value[LEN + 7] = 1;
    rq_arena arena = {0};
    assert_ok(rq_comparator_new_binary(rq_slice_of(value, LEN + 8), &arena, &c.comparator));
    w->write.op_count = 0;
    add_op(w, RQ_MUTATE_PUT, "row", 1);
    w->ops[0].conditions = &c;
    w->ops[0].condition_count = 1;
    assert_int_equal(write_all(w), 1);
    assert_true(w->ops[0].processed);
    rq_arena_clear(&arena);
    free(value);
}

/* Each single read is short. */
static void an_op_of_many_increments_leaves_its_lane(void **state)
{
    check_op_of_mutations(*state, RQ_MUTATE_INCREMENT, 200, TASKS_MAX);
}

/* --- blocks that are not in memory ------------------------------------------------------------- */

enum { COLD_CELLS = 2000, RUNS_MAX = 200 };

static rq_err (*own_try_read)(rq_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len);

/* Simulates a disk without a page cache. Fails a test that would run endlessly. */
static rq_err try_read_nothing(rq_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len)
{
    if (atomic_load(&the_world->submitted) > 2 * RUNS_MAX)
        return own_try_read(f, buf, len, off, ret_len);
    return RQ_E_AGAIN;
}

/* Writes a row to a file, in many blocks, which no cache keeps. */
static void begin_cold(long_world *w)
{
    const family_def two[] = {{"a", {"BLOCKSIZE", "1024", "BLOCKCACHE", "false", NULL}},
                              {"b", {NULL}}};
    bool flushed;
    rq_writer_free(w->writer);
    fixture_close(&w->f);
    fixture_open(&w->f, &w->real.env, two, 2);
    assert_ok(rq_writer_new(w->f.engine, w->lane, &w->writer));
    add_op(w, RQ_MUTATE_INCREMENT, "row", COLD_CELLS);
    assert_ok(rq_region_write_sync(w->f.region, w->ops, 1, NULL));
    assert_ok(rq_region_flush(w->f.region, (rq_slice){0}, &flushed, NULL));
    w->write.op_count = 0;
    own_try_read = w->real.env.vfs->try_read;
    w->real.env.vfs->try_read = try_read_nothing;
    atomic_store(&w->submitted, 0);
}

static void an_increment_of_a_row_beyond_the_cache_ends(void **state)
{
    long_world *w = *state;
    begin_cold(w);
    for (size_t i = 0; i < 500; i++)
        snprintf(w->qualifiers[i], sizeof w->qualifiers[i], "%05zu", 4 * i);
    add_op(w, RQ_MUTATE_INCREMENT, "row", 500);
    assert_in_range(write_all(w), 1, RUNS_MAX);
    assert_int_equal(get_long(&w->f, "row", "a", "01996"), 2);
    assert_int_equal(get_long(&w->f, "row", "a", "01997"), 1);
}

static void a_condition_on_a_row_beyond_the_cache_ends(void **state)
{
    long_world *w = *state;
    rq_arena arena = {0};
    begin_cold(w);
    rq_condition last = condition_of(&arena, "QualifierFilter(=, 'binary:01999')");
    assert_true(was_processed(w, "row", last));
    assert_in_range(atomic_load(&w->submitted), 1, RUNS_MAX);
    rq_arena_clear(&arena);
}

/* A thread that waits for its own op does not start over endlessly, either. */
static void an_op_without_a_lane_ends(void **state)
{
    long_world *w = *state;
    begin_cold(w);
    add_op(w, RQ_MUTATE_INCREMENT, "row", COLD_CELLS);
    assert_ok(rq_region_write_sync(w->f.region, w->ops, 1, NULL));
    rq_row_op_clear(&w->ops[0]);
    assert_in_range(atomic_load(&w->submitted), 1, RUNS_MAX);
    assert_int_equal(get_long(&w->f, "row", "a", "01999"), 2);
}

/* A thread without a lane runs its own op, whatever its length. */
static void a_thread_that_waits_runs_it_itself(void **state)
{
    long_world *w = *state;
    add_op(w, RQ_MUTATE_PUT, "row", CELLS_MAX);
    assert_ok(rq_region_write_sync(w->f.region, w->ops, 1, NULL));
    assert_int_equal(atomic_load(&w->submitted), 0);
    assert_int_equal(cells_of_row(w, "row"), CELLS_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_short_op_stays_on_its_lane),
        TEST(a_put_of_many_cells_leaves_its_lane),
        TEST(a_batch_with_long_ops_keeps_its_order),
        TEST(an_op_of_many_mutations_leaves_its_lane),
        TEST(a_put_of_a_long_value_leaves_its_lane),
        TEST(a_condition_that_reads_much_leaves_its_lane),
        TEST(an_append_to_a_long_value_leaves_its_lane),
        TEST(an_op_of_many_increments_leaves_its_lane),
        TEST(a_condition_does_not_read_any_number_of_bytes),
        TEST(an_increment_of_a_row_beyond_the_cache_ends),
        TEST(a_condition_on_a_row_beyond_the_cache_ends),
        TEST(an_op_without_a_lane_ends),
        TEST(a_thread_that_waits_runs_it_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
