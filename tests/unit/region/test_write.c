/* SPDX-License-Identifier: Apache-2.0 */
/* The semantics of writes, as in HBase: conditions, deltas, deletes of the newest version, atomic
 * groups, nonces, durabilities, and refusals with HBase's texts. */
#include "fixture.h"

#define MANY_VERSIONS ((const family_def[]){{"a", {"VERSIONS", "5", NULL}}, {"b", {NULL}}})

typedef struct world {
    real_env real;
    fixture f;
} world;

static int setup(void **state)
{
    world *w = calloc(1, sizeof *w);
    real_env_open(&w->real);
    fixture_open(&w->f, &w->real.env, MANY_VERSIONS, 2);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    world *w = *state;
    fixture_close(&w->f);
    real_env_close(&w->real);
    free(w);
    return 0;
}

static fixture *of(void **state)
{
    return &((world *)*state)->f;
}

static void flush(fixture *f)
{
    assert_ok(rq_region_flush(f->region, (rq_slice){0}, NULL, NULL));
}

/* --- deletes ---------------------------------------------------------------------------------- */

static void delete_of_the_newest_version_uncovers_the_one_before(void **state)
{
    fixture *f = of(state);
    for (int flushed = 0; flushed < 2; flushed++) {
        const char *row = flushed ? "r1" : "r0";
        assert_ok(put(f, row, "a", "q", 1, "one"));
        assert_ok(put(f, row, "a", "q", 2, "two"));
        if (flushed) flush(f);
        assert_ok(delete_cell(f, row, "a", "q", RQ_TIMESTAMP_LATEST, RQ_TYPE_DELETE));
        assert_string_equal(get(f, row, "a", "q"), "one");
        if (!flushed)
            assert_string_equal(read_text(f, row, 0, true),
                                "r0/a:q/2/Delete=\nr0/a:q/2/Put=two\nr0/a:q/1/Put=one\n");
    }
}

static void two_deletes_of_the_newest_version_take_two_versions(void **state)
{
    fixture *f = of(state);
    for (int i = 1; i <= 3; i++)
        assert_ok(put(f, "r", "a", "q", i, i == 1 ? "one" : "more"));
    rq_cell cells[2] = {cell_of("a", "q", RQ_TIMESTAMP_LATEST, RQ_TYPE_DELETE, NULL),
                        cell_of("a", "q", RQ_TIMESTAMP_LATEST, RQ_TYPE_DELETE, NULL)};
    rq_mutation m = {
        .type = RQ_MUTATE_DELETE, .row = RQ_SLICE_LIT("r"), .cells = cells, .cell_count = 2};
    rq_row_op op = {.mutations = &m, .mutation_count = 1};
    assert_ok(rq_region_write_sync(f->region, &op, 1, NULL));
    assert_string_equal(get(f, "r", "a", "q"), "one");
}

static void delete_of_an_absent_newest_version_gets_the_servers_time(void **state)
{
    fixture *f = of(state);
    assert_ok(delete_cell(f, "r", "a", "q", RQ_TIMESTAMP_LATEST, RQ_TYPE_DELETE));
    assert_ok(put(f, "r", "a", "q", RQ_TIMESTAMP_LATEST - 1, "later"));
    assert_string_equal(get(f, "r", "a", "q"), "later");
}

/* --- increments and appends ------------------------------------------------------------------- */

static void increments_add_up_in_memory_and_in_files(void **state)
{
    fixture *f = of(state);
    int64_t v = 0;
    assert_ok(increment(f, "r", "a", "n", 5, 0, &v));
    assert_int_equal(v, 5);
    flush(f);
    assert_ok(increment(f, "r", "a", "n", -7, 0, &v));
    assert_int_equal(v, -2);
    assert_int_equal(get_long(f, "r", "a", "n"), -2);
}

static void an_increment_is_newer_than_a_value_of_the_future(void **state)
{
    fixture *f = of(state);
    int64_t far = 4102444800000; /* 2100 */
    uint8_t one[8] = {0, 0, 0, 0, 0, 0, 0, 1};
    rq_cell c = cell_of("a", "n", far, RQ_TYPE_PUT, NULL);
    c.value = one;
    c.value_len = 8;
    rq_mutation m = {.type = RQ_MUTATE_PUT, .row = RQ_SLICE_LIT("r"), .cells = &c, .cell_count = 1};
    rq_row_op op = {.mutations = &m, .mutation_count = 1};
    assert_ok(rq_region_write_sync(f->region, &op, 1, NULL));
    assert_ok(increment(f, "r", "a", "n", 1, 0, NULL));
    assert_int_equal(get_long(f, "r", "a", "n"), 2);
}

static void an_increment_of_text_is_refused_with_hbases_words(void **state)
{
    fixture *f = of(state);
    assert_ok(put(f, "r", "a", "n", 1, "text"));
    rq_cell c = cell_of("a", "n", RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, "12345678");
    rq_mutation m = {
        .type = RQ_MUTATE_INCREMENT, .row = RQ_SLICE_LIT("r"), .cells = &c, .cell_count = 1};
    rq_row_op op = {.mutations = &m, .mutation_count = 1};
    rq_error why = {0};
    assert_err(rq_region_write_sync(f->region, &op, 1, &why), RQ_E_DO_NOT_RETRY);
    assert_string_equal(why.message, "Field is not a long, it's 4 bytes wide");
    assert_string_equal(get(f, "r", "a", "n"), "text");
}

static rq_err append(fixture *f, const char *row, const char *qualifier, const char *value,
                     rq_time_range range, rq_cellblock *result)
{
    rq_cell c = cell_of("a", qualifier, RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, value);
    rq_mutation m = {.type = RQ_MUTATE_APPEND,
                     .row = rq_slice_cstr(row),
                     .cells = &c,
                     .cell_count = 1,
                     .time_range = range,
                     .return_results = result != NULL};
    rq_row_op op = {.mutations = &m, .mutation_count = 1};
    rq_err rc = rq_region_write_sync(f->region, &op, 1, NULL);
    if (result != NULL)
        *result = op.result;
    else
        rq_cellblock_clear(&op.result);
    return rc;
}

static void appends_concatenate(void **state)
{
    fixture *f = of(state);
    rq_cellblock result;
    assert_ok(append(f, "r", "q", "ab", RQ_TIME_RANGE_ALL, NULL));
    flush(f);
    assert_ok(append(f, "r", "q", "cd", RQ_TIME_RANGE_ALL, &result));
    assert_string_equal(get(f, "r", "a", "q"), "abcd");
    assert_int_equal(result.count, 1);
    rq_cellblock_clear(&result);
}

static void a_delta_reads_only_its_time_range(void **state)
{
    fixture *f = of(state);
    assert_ok(put(f, "r", "a", "q", 10, "old"));
    assert_ok(append(f, "r", "q", "new", (rq_time_range){20, INT64_MAX}, NULL));
    assert_string_equal(get(f, "r", "a", "q"), "new");
}

static void a_ttl_is_carried_forward(void **state)
{
    fixture *f = of(state);
    static const uint8_t ttl[] = {0, 9, RQ_TAG_TTL, 0, 0, 0, 0, 0x7f, 0, 0, 0};
    rq_cell c = cell_of("a", "q", 1, RQ_TYPE_PUT, "x");
    c.tags = ttl;
    c.tags_len = sizeof ttl;
    rq_mutation m = {.type = RQ_MUTATE_PUT, .row = RQ_SLICE_LIT("r"), .cells = &c, .cell_count = 1};
    rq_row_op op = {.mutations = &m, .mutation_count = 1};
    c.timestamp = rq_engine_env(f->engine)->executor->now_ms(f->env->executor);
    assert_ok(rq_region_write_sync(f->region, &op, 1, NULL));
    rq_cell d = cell_of("a", "q", RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, "y");
    rq_mutation n = {.type = RQ_MUTATE_APPEND,
                     .row = RQ_SLICE_LIT("r"),
                     .cells = &d,
                     .cell_count = 1,
                     .return_results = true};
    rq_row_op append_op = {.mutations = &n, .mutation_count = 1, .result.with_tags = true};
    assert_ok(rq_region_write_sync(f->region, &append_op, 1, NULL));
    rq_cursor at = rq_cursor_of(rq_buf_slice(&append_op.result.bytes));
    rq_cell got;
    rq_slice tag;
    assert_ok(rq_cellblock_next(&at, &got, NULL));
    assert_true(rq_cell_tag(&got, RQ_TAG_TTL, &tag));
    assert_int_equal(rq_get_be64(tag.ptr), 0x7f000000);
    rq_cellblock_clear(&append_op.result);
}

/* --- nonces ----------------------------------------------------------------------------------- */

static void a_retried_increment_counts_once(void **state)
{
    fixture *f = of(state);
    int64_t v = 0;
    assert_ok(increment(f, "r", "a", "n", 5, 77, &v));
    assert_ok(increment(f, "r", "a", "n", 1, 78, &v));
    assert_int_equal(v, 6);
    v = 0;
    assert_ok(increment(f, "r", "a", "n", 5, 77, &v));
    assert_int_equal(v, 5); /* the value that the first attempt left */
    assert_int_equal(get_long(f, "r", "a", "n"), 6);
}

static void a_retried_increment_counts_once_across_a_crash(void **state)
{
    fixture *f = of(state);
    int64_t v = 0;
    assert_ok(increment(f, "r", "a", "n", 5, 77, NULL));
    fixture_stop(f, false);
    fixture_start(f);
    assert_ok(increment(f, "r", "a", "n", 5, 77, &v));
    assert_int_equal(v, 5);
    assert_int_equal(get_long(f, "r", "a", "n"), 5);
}

static void reopen(fixture *f, bool abort)
{
    assert_ok(rq_region_close(f->region, abort, NULL));
    rq_region_unref(f->region);
    assert_ok(rq_region_open(f->engine, &f->info, f->schema, &f->region, NULL));
}

/* HBase keeps one list of nonces for the whole server: a region that moves away and back, or is
 * split, finds them. Found by the simulation (disk_full, RQ_SEED=211591). */
static void a_retried_increment_counts_once_across_a_close(void **state)
{
    fixture *f = of(state);
    int64_t v = 0;
    assert_ok(increment(f, "r", "a", "n", 5, 77, NULL));
    reopen(f, true); /* the nonce comes from the log */
    assert_ok(increment(f, "r", "a", "n", 5, 77, NULL));
    reopen(f, false); /* from a file; the log no longer has it */
    assert_ok(increment(f, "r", "a", "n", 5, 77, &v));
    assert_int_equal(v, 5);
    assert_ok(rq_region_flush(f->region, (rq_slice){0}, NULL, NULL));
    assert_ok(increment(f, "r", "a", "n", 1, 78, NULL));
    assert_ok(rq_region_flush(f->region, (rq_slice){0}, NULL, NULL));
    assert_ok(increment(f, "r", "a", "n", 2, 79, NULL));
    reopen(f, true); /* one nonce from a file, one from the log */
    assert_ok(increment(f, "r", "a", "n", 1, 78, NULL));
    assert_ok(increment(f, "r", "a", "n", 2, 79, NULL));
    assert_int_equal(get_long(f, "r", "a", "n"), 8);
}

/* Log records below the flushed sequence id are not replayed, so the nonces must come from
 * elsewhere. */
static void a_retried_increment_counts_once_across_a_flush_and_a_crash(void **state)
{
    fixture *f = of(state);
    int64_t v = 0;
    assert_ok(increment(f, "r", "a", "n", 5, 77, NULL));
    flush(f);
    assert_ok(increment(f, "r", "a", "n", 1, 78, NULL)); /* only in the log */
    for (int i = 0; i < 3; i++) {
        fixture_stop(f, i == 2);
        fixture_start(f);
        assert_ok(increment(f, "r", "a", "n", 5, 77, &v));
        assert_ok(increment(f, "r", "a", "n", 1, 78, NULL));
        assert_int_equal(get_long(f, "r", "a", "n"), 6);
        flush(f);
    }
}

/* A put, an increment and a condition in one op with one nonce: a retry does not repeat the op, and
 * does not report a failed condition because of the op's own effect. */
static void a_retried_conditional_op_is_answered_as_done(void **state)
{
    fixture *f = of(state);
    rq_arena arena = {0};
    rq_comparator *comparator;
    static const uint8_t by[8] = {0, 0, 0, 0, 0, 0, 0, 5};
    rq_cell put_cell = cell_of("a", "q", RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, "mine");
    rq_cell delta = cell_of("a", "n", RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, NULL);
    rq_slice row = RQ_SLICE_LIT("r");
    delta.value = by;
    delta.value_len = 8;
    assert_ok(rq_comparator_new_binary((rq_slice){0}, &arena, &comparator));
    rq_condition condition = {.row = row,
                              .family = RQ_SLICE_LIT("a"),
                              .qualifier = RQ_SLICE_LIT("q"),
                              .op = RQ_EQUAL,
                              .comparator = comparator};
    rq_mutation m[] = {
        {.type = RQ_MUTATE_PUT, .row = row, .cells = &put_cell, .cell_count = 1},
        {.type = RQ_MUTATE_INCREMENT, .row = row, .cells = &delta, .cell_count = 1},
    };
    for (int i = 0; i < 2; i++) {
        rq_row_op op = {.conditions = &condition,
                        .condition_count = 1,
                        .mutations = m,
                        .mutation_count = 2,
                        .nonce_group = 7,
                        .nonce = 99};
        assert_ok(rq_region_write_sync(f->region, &op, 1, NULL));
        assert_true(op.processed);
        rq_cellblock_clear(&op.result);
        assert_int_equal(get_long(f, "r", "a", "n"), 5);
        if (i == 0) assert_ok(put(f, "r", "a", "q", RQ_TIMESTAMP_LATEST, "another's"));
    }
    assert_string_equal(get(f, "r", "a", "q"), "another's");
    rq_arena_clear(&arena);
}

/* --- conditions ------------------------------------------------------------------------------- */

/* checkAndPut of a:q: if its comparison with `value` (NULL: absent or empty) holds, puts a:q =
 * "new". */
static bool check_and_put(fixture *f, const char *row, rq_compare_op cmp, const char *value,
                          rq_time_range range)
{
    rq_arena arena = {0};
    rq_comparator *comparator;
    rq_slice given = value == NULL ? (rq_slice){0} : rq_slice_cstr(value);
    assert_ok(rq_comparator_new_binary(given, &arena, &comparator));
    rq_condition condition = {.row = rq_slice_cstr(row),
                              .family = RQ_SLICE_LIT("a"),
                              .qualifier = RQ_SLICE_LIT("q"),
                              .op = cmp,
                              .comparator = comparator,
                              .time_range = range};
    rq_cell c = cell_of("a", "q", RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, "new");
    rq_mutation m = {
        .type = RQ_MUTATE_PUT, .row = rq_slice_cstr(row), .cells = &c, .cell_count = 1};
    rq_row_op op = {
        .mutations = &m, .mutation_count = 1, .conditions = &condition, .condition_count = 1};
    assert_ok(rq_region_write_sync(f->region, &op, 1, NULL));
    rq_arena_clear(&arena);
    return op.processed;
}

static void a_condition_on_an_absent_cell_takes_null_for_absent(void **state)
{
    fixture *f = of(state);
    assert_false(check_and_put(f, "r", RQ_NOT_EQUAL, NULL, RQ_TIME_RANGE_ALL));
    assert_false(check_and_put(f, "r", RQ_EQUAL, "x", RQ_TIME_RANGE_ALL));
    assert_true(check_and_put(f, "r", RQ_EQUAL, NULL, RQ_TIME_RANGE_ALL));
    assert_string_equal(get(f, "r", "a", "q"), "new");
    assert_false(check_and_put(f, "r", RQ_EQUAL, NULL, RQ_TIME_RANGE_ALL));
    assert_true(check_and_put(f, "r", RQ_NOT_EQUAL, NULL, RQ_TIME_RANGE_ALL));
}

static void an_empty_value_counts_as_null(void **state)
{
    fixture *f = of(state);
    assert_ok(put(f, "r", "a", "q", 1, ""));
    assert_true(check_and_put(f, "r", RQ_EQUAL, NULL, RQ_TIME_RANGE_ALL));
}

static void a_condition_compares_the_given_value_with_the_stored(void **state)
{
    fixture *f = of(state);
    static const struct {
        rq_compare_op op;
        const char *given;
        bool holds;
    } cases[] = {
        /* HBASE: LESS holds when the given value is less than the stored one. */
        {RQ_LESS, "a", true},
        {RQ_LESS, "m", false},
        {RQ_LESS_OR_EQUAL, "m", true},
        {RQ_LESS_OR_EQUAL, "z", false},
        {RQ_EQUAL, "m", true},
        {RQ_EQUAL, "a", false},
        {RQ_NOT_EQUAL, "a", true},
        {RQ_NOT_EQUAL, "m", false},
        {RQ_GREATER_OR_EQUAL, "m", true},
        {RQ_GREATER_OR_EQUAL, "a", false},
        {RQ_GREATER, "z", true},
        {RQ_GREATER, "m", false},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++) {
        char row[8];
        snprintf(row, sizeof row, "r%zu", i);
        assert_ok(put(f, row, "a", "q", 1, "m"));
        if (i % 2 == 0) flush(f);
        assert_int_equal(check_and_put(f, row, cases[i].op, cases[i].given, RQ_TIME_RANGE_ALL),
                         cases[i].holds);
    }
}

static void a_condition_looks_at_its_time_range(void **state)
{
    fixture *f = of(state);
    assert_ok(put(f, "r", "a", "q", 5, "old"));
    assert_ok(put(f, "r", "a", "q", 9, "young"));
    assert_false(check_and_put(f, "r", RQ_EQUAL, "old", RQ_TIME_RANGE_ALL));
    assert_true(check_and_put(f, "r", RQ_EQUAL, "old", (rq_time_range){0, 9}));
}

/* An op that puts `family`:q if the comparison of a:q of row r with "m" holds. */
static rq_err put_if(fixture *f, rq_compare_op cmp, const char *family, bool *ret_processed,
                     rq_error *why)
{
    rq_arena arena = {0};
    rq_comparator *comparator;
    assert_ok(rq_comparator_new_binary(RQ_SLICE_LIT("m"), &arena, &comparator));
    rq_condition condition = {.row = RQ_SLICE_LIT("r"),
                              .family = RQ_SLICE_LIT("a"),
                              .qualifier = RQ_SLICE_LIT("q"),
                              .op = cmp,
                              .comparator = comparator,
                              .time_range = RQ_TIME_RANGE_ALL};
    rq_cell c = cell_of(family, "q", 1, RQ_TYPE_PUT, "v");
    rq_mutation m = {.type = RQ_MUTATE_PUT, .row = RQ_SLICE_LIT("r"), .cells = &c, .cell_count = 1};
    rq_row_op op = {
        .mutations = &m, .mutation_count = 1, .conditions = &condition, .condition_count = 1};
    rq_err rc = rq_region_write_sync(f->region, &op, 1, why);
    *ret_processed = op.processed;
    rq_arena_clear(&arena);
    return rc;
}

static void guarded_mutations_are_validated_only_when_the_condition_holds(void **state)
{
    fixture *f = of(state);
    bool processed = true;
    assert_ok(put(f, "r", "a", "q", 1, "x"));
    assert_ok(put_if(f, RQ_EQUAL, "none", &processed, NULL));
    assert_false(processed);
    assert_err(put_if(f, RQ_NOT_EQUAL, "none", &processed, NULL), RQ_E_NO_SUCH_FAMILY);
}

static void no_op_is_no_condition_where_there_is_a_value(void **state)
{
    fixture *f = of(state);
    bool processed = true;
    rq_error why = {0};
    assert_ok(put_if(f, RQ_NO_OP, "a", &processed, &why));
    assert_false(processed);
    assert_ok(put(f, "r", "a", "q", 1, "x"));
    assert_err(put_if(f, RQ_NO_OP, "a", &processed, &why), RQ_E_IOEXCEPTION);
    assert_string_equal(why.message, "Unknown Compare op NO_OP");
}

static void a_condition_and_its_mutation_must_name_the_same_row(void **state)
{
    fixture *f = of(state);
    rq_arena arena = {0};
    rq_comparator *comparator;
    assert_ok(rq_comparator_new_binary((rq_slice){0}, &arena, &comparator));
    rq_condition condition = {.row = RQ_SLICE_LIT("one"),
                              .family = RQ_SLICE_LIT("a"),
                              .qualifier = RQ_SLICE_LIT("q"),
                              .op = RQ_EQUAL,
                              .comparator = comparator,
                              .time_range = RQ_TIME_RANGE_ALL};
    rq_cell c = cell_of("a", "q", 1, RQ_TYPE_PUT, "v");
    rq_mutation m = {
        .type = RQ_MUTATE_PUT, .row = RQ_SLICE_LIT("two"), .cells = &c, .cell_count = 1};
    rq_row_op op = {
        .mutations = &m, .mutation_count = 1, .conditions = &condition, .condition_count = 1};
    rq_error why = {0};
    assert_err(rq_region_write_sync(f->region, &op, 1, &why), RQ_E_DO_NOT_RETRY);
    assert_string_equal(why.message, "Action's getRow must match");
    rq_arena_clear(&arena);
}

/* --- groups ----------------------------------------------------------------------------------- */

static void row_mutations_with_an_increment_read_the_state_before_them(void **state)
{
    fixture *f = of(state);
    assert_ok(increment(f, "r", "a", "n", 10, 0, NULL));
    uint8_t five[8] = {0, 0, 0, 0, 0, 0, 0, 5};
    rq_cell p = cell_of("a", "p", RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, "put");
    rq_cell i = cell_of("a", "n", RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, NULL);
    rq_cell d = cell_of("b", "gone", RQ_TIMESTAMP_LATEST, RQ_TYPE_DELETE_COLUMN, NULL);
    assert_ok(put(f, "r", "b", "gone", 3, "x"));
    i.value = five;
    i.value_len = 8;
    rq_slice row = RQ_SLICE_LIT("r");
    rq_mutation m[3] = {
        {.type = RQ_MUTATE_PUT, .row = row, .cells = &p, .cell_count = 1},
        {.type = RQ_MUTATE_INCREMENT, .row = row, .cells = &i, .cell_count = 1},
        {.type = RQ_MUTATE_DELETE, .row = row, .cells = &d, .cell_count = 1},
    };
    rq_row_op op = {.mutations = m, .mutation_count = 3};
    assert_ok(rq_region_write_sync(f->region, &op, 1, NULL));
    rq_cellblock_clear(&op.result);
    assert_string_equal(get(f, "r", "a", "p"), "put");
    assert_int_equal(get_long(f, "r", "a", "n"), 15);
    assert_null(get(f, "r", "b", "gone"));
}

/* Puts of the rows r0, r1, r2; the second one has two cells. */
static void make_puts(rq_row_op ops[3], rq_mutation m[3], rq_cell *one, rq_cell two[2])
{
    static const char *const rows[] = {"r0", "r1", "r2"};
    for (int i = 0; i < 3; i++) {
        m[i] = (rq_mutation){.type = RQ_MUTATE_PUT,
                             .row = rq_slice_cstr(rows[i]),
                             .cells = i == 1 ? two : one,
                             .cell_count = i == 1 ? 2 : 1};
        ops[i] = (rq_row_op){.mutations = &m[i], .mutation_count = 1};
    }
}

/* The second put of make_puts was refused with `rc`, the others are there. */
static void expect_second_refused(fixture *f, const rq_row_op ops[3], rq_err rc)
{
    assert_ok(ops[0].rc);
    assert_err(ops[1].rc, rc);
    assert_ok(ops[2].rc);
    assert_string_equal(get(f, "r0", "a", "q"), "v");
    assert_null(get(f, "r1", "a", "q"));
    assert_string_equal(get(f, "r2", "a", "q"), "v");
}

static void an_op_of_a_batch_fails_alone(void **state)
{
    fixture *f = of(state);
    rq_cell good = cell_of("a", "q", 1, RQ_TYPE_PUT, "v");
    rq_cell bad[2] = {good, cell_of("nope", "q", 1, RQ_TYPE_PUT, "v")}; /* the first cell is rolled
                                                                   * back */
    rq_mutation m[3];
    rq_row_op ops[3];
    make_puts(ops, m, &good, bad);
    uint64_t before = rq__region_read_point(f->region);
    assert_err(rq_region_write_sync(f->region, ops, 3, NULL), RQ_E_NO_SUCH_FAMILY);
    expect_second_refused(f, ops, RQ_E_NO_SUCH_FAMILY);
    assert_int_equal(rq__region_read_point(f->region), before + 1); /* one log record for both */
}

/* The log's records have a limit. */
static void an_op_too_large_for_the_log_fails_alone(void **state)
{
    fixture *f = of(state);
    enum { HALF = 9 << 20 }; /* a row of two: more than half of the log's buffer */
    fixture_stop(f, true);
    assert_ok(rq_config_set_pair(f->config, "rorqual.memory=268435456", NULL));
    fixture_start(f);
    char *half = malloc(HALF + 1);
    assert_non_null(half);
    memset(half, 'x', HALF);
    half[HALF] = '\0';
    rq_cell small = cell_of("a", "q", 1, RQ_TYPE_PUT, "v");
    rq_cell large[2] = {cell_of("a", "q", 1, RQ_TYPE_PUT, half),
                        cell_of("a", "r", 1, RQ_TYPE_PUT, half)};
    rq_mutation m[3];
    rq_row_op ops[3];
    make_puts(ops, m, &small, large);
    assert_err(rq_region_write_sync(f->region, ops, 3, NULL), RQ_E_REQUEST_TOO_BIG);
    expect_second_refused(f, ops, RQ_E_REQUEST_TOO_BIG);
    free(half);
}

static void row_mutations_fail_as_a_whole(void **state)
{
    fixture *f = of(state);
    rq_cell good = cell_of("a", "q", 1, RQ_TYPE_PUT, "v");
    rq_cell bad = cell_of("nope", "q", 1, RQ_TYPE_PUT, "v");
    rq_slice row = RQ_SLICE_LIT("r");
    rq_mutation m[2] = {{.type = RQ_MUTATE_PUT, .row = row, .cells = &good, .cell_count = 1},
                        {.type = RQ_MUTATE_PUT, .row = row, .cells = &bad, .cell_count = 1}};
    rq_row_op op = {.mutations = m, .mutation_count = 2};
    assert_err(rq_region_write_sync(f->region, &op, 1, NULL), RQ_E_NO_SUCH_FAMILY);
    assert_null(get(f, "r", "a", "q"));
}

static void the_later_put_of_a_batch_wins(void **state)
{
    fixture *f = of(state);
    rq_cell c[2] = {cell_of("a", "q", 1, RQ_TYPE_PUT, "first"),
                    cell_of("a", "q", 1, RQ_TYPE_PUT, "second")};
    rq_mutation m[2];
    rq_row_op ops[2];
    for (int i = 0; i < 2; i++) {
        m[i] = (rq_mutation){
            .type = RQ_MUTATE_PUT, .row = RQ_SLICE_LIT("r"), .cells = &c[i], .cell_count = 1};
        ops[i] = (rq_row_op){.mutations = &m[i], .mutation_count = 1};
    }
    assert_ok(rq_region_write_sync(f->region, ops, 2, NULL));
    assert_string_equal(get(f, "r", "a", "q"), "second");
    fixture_stop(f, false);
    fixture_start(f);
    assert_string_equal(get(f, "r", "a", "q"), "second");
}

/* --- refusals --------------------------------------------------------------------------------- */

static void the_cell_size_limit_counts_as_hbase_counts(void **state)
{
    fixture *f = of(state);
    const size_t limit = 10485760;
    char *big = malloc(limit + 1);
    memset(big, 'x', limit);
    big[limit] = '\0';
    /* 4 bytes of cell length, 8 of two lengths, 12 of fixed key fields, row r, family a, qualifier
     * q
     */
    size_t overhead = 4 + 8 + 12 + 3;
    for (int i = -1; i <= 1; i++) {
        rq_cell c = cell_of("a", "q", 1, RQ_TYPE_PUT, big);
        c.value_len = (uint32_t)((int64_t)(limit - overhead) + i);
        rq_mutation m = {
            .type = RQ_MUTATE_PUT, .row = RQ_SLICE_LIT("r"), .cells = &c, .cell_count = 1};
        rq_row_op op = {.mutations = &m, .mutation_count = 1};
        rq_error why = {0};
        rq_err rc = rq_region_write_sync(f->region, &op, 1, &why);
        if (i <= 0) {
            assert_ok(rc);
        } else {
            assert_err(rc, RQ_E_DO_NOT_RETRY);
            assert_string_equal(why.message,
                                "Cell with size 10485761 exceeds limit of 10485760 bytes");
        }
    }
    free(big);
}

static void a_table_may_have_a_cell_limit_of_its_own(void **state)
{
    fixture *f = of(state);
    char kilobyte[1001] = {0}, text[2500] = {0};
    memset(kilobyte, 'x', 1000);
    memset(text, 'x', 2499);
    const char *const limits[] = {"1100", "0", "5000000000"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(limits); i++) {
        bool limited = i == 0;
        fixture_stop(f, true);
        f->schema = schema_with(f->schema, "hbase.server.keyvalue.maxsize", limits[i]);
        fixture_start(f);
        assert_ok(put(f, "r", "a", "q", 1 + (int64_t)i, kilobyte));
        assert_err(put(f, "r", "a", "q", 1 + (int64_t)i, text),
                   limited ? RQ_E_DO_NOT_RETRY : RQ_OK);
        rq_cell more = cell_of("a", "q", RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, kilobyte);
        rq_mutation m = {
            .type = RQ_MUTATE_APPEND, .row = RQ_SLICE_LIT("r"), .cells = &more, .cell_count = 1};
        rq_row_op op = {.mutations = &m, .mutation_count = 1};
        rq_error why = {0};
        assert_err(rq_region_write_sync(f->region, &op, 1, &why),
                   limited ? RQ_E_DO_NOT_RETRY : RQ_OK);
    }
}

static void a_negative_timestamp_is_refused(void **state)
{
    assert_err(put(of(state), "r", "a", "q", -1, "v"), RQ_E_ILLEGAL_ARGUMENT);
}

static void every_durability_is_readable_at_once(void **state)
{
    fixture *f = of(state);
    for (int d = RQ_USE_DEFAULT; d <= RQ_FSYNC_WAL; d++) {
        char row[8];
        snprintf(row, sizeof row, "r%d", d);
        rq_cell c = cell_of("a", "q", 1, RQ_TYPE_PUT, "v");
        rq_mutation m = {.type = RQ_MUTATE_PUT,
                         .row = rq_slice_cstr(row),
                         .cells = &c,
                         .cell_count = 1,
                         .durability = (rq_durability)d};
        rq_row_op op = {.mutations = &m, .mutation_count = 1};
        assert_ok(rq_region_write_sync(f->region, &op, 1, NULL));
        assert_string_equal(get(f, row, "a", "q"), "v");
    }
    fixture_stop(f, false);
    fixture_start(f);
    for (int d = RQ_USE_DEFAULT; d <= RQ_FSYNC_WAL; d++) {
        char row[8];
        snprintf(row, sizeof row, "r%d", d);
        if (d == RQ_SKIP_WAL)
            assert_null(get(f, row, "a", "q"));
        else
            assert_string_equal(get(f, row, "a", "q"), "v");
    }
}

static void a_closed_region_refuses_writes(void **state)
{
    fixture *f = of(state);
    assert_ok(rq_region_close(f->region, false, NULL));
    assert_err(put(f, "r", "a", "q", 1, "v"), RQ_E_NOT_SERVING_REGION);
    rq_region_unref(f->region);
    assert_ok(rq_region_open(f->engine, &f->info, f->schema, &f->region, NULL));
    assert_ok(put(f, "r", "a", "q", 1, "v"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        T(delete_of_the_newest_version_uncovers_the_one_before),
        T(two_deletes_of_the_newest_version_take_two_versions),
        T(delete_of_an_absent_newest_version_gets_the_servers_time),
        T(increments_add_up_in_memory_and_in_files),
        T(an_increment_is_newer_than_a_value_of_the_future),
        T(an_increment_of_text_is_refused_with_hbases_words),
        T(appends_concatenate),
        T(a_delta_reads_only_its_time_range),
        T(a_ttl_is_carried_forward),
        T(a_retried_increment_counts_once),
        T(a_retried_increment_counts_once_across_a_crash),
        T(a_retried_increment_counts_once_across_a_close),
        T(a_retried_increment_counts_once_across_a_flush_and_a_crash),
        T(a_retried_conditional_op_is_answered_as_done),
        T(a_condition_on_an_absent_cell_takes_null_for_absent),
        T(an_empty_value_counts_as_null),
        T(a_condition_compares_the_given_value_with_the_stored),
        T(a_condition_looks_at_its_time_range),
        T(guarded_mutations_are_validated_only_when_the_condition_holds),
        T(no_op_is_no_condition_where_there_is_a_value),
        T(a_condition_and_its_mutation_must_name_the_same_row),
        T(row_mutations_with_an_increment_read_the_state_before_them),
        T(an_op_of_a_batch_fails_alone),
        T(an_op_too_large_for_the_log_fails_alone),
        T(row_mutations_fail_as_a_whole),
        T(the_later_put_of_a_batch_wins),
        T(the_cell_size_limit_counts_as_hbase_counts),
        T(a_table_may_have_a_cell_limit_of_its_own),
        T(a_negative_timestamp_is_refused),
        T(every_durability_is_readable_at_once),
        T(a_closed_region_refuses_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
