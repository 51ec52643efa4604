/* SPDX-License-Identifier: Apache-2.0 */
/* Writes without RPC: from a lane, and from a thread that waits for the log. */
#include "ops_world.h"

#include "base/bytes.h"
#include "ops/mutate.h"

enum { SAMPLE = RQ_SAMPLE_MASK_FIRST + 1 }; /* one of this many operations is timed */

typedef struct write_test {
    rq_op_mutate mutate;
    rq_mutation mutation;
    rq_cell cell;
    uint8_t number[8];
} write_test;

/* Mutates f:q of the row, and waits for the end. */
static rq_row_op *write_cell(ops_world *o, write_test *t, rq_ops_seat *seat, rq_mutation_type type,
                             const char *row, rq_slice value, const rq_condition *condition)
{
    unsigned done = o->done + 1;
    t->cell = (rq_cell){.row = (const uint8_t *)row,
                        .row_len = (uint16_t)strlen(row),
                        .family = (const uint8_t *)"f",
                        .family_len = 1,
                        .qualifier = (const uint8_t *)"q",
                        .qualifier_len = 1,
                        .timestamp = RQ_TIMESTAMP_LATEST,
                        .type = type == RQ_MUTATE_DELETE ? RQ_TYPE_DELETE_COLUMN : RQ_TYPE_PUT,
                        .value = value.ptr,
                        .value_len = (uint32_t)value.len};
    t->mutation = (rq_mutation){.type = type,
                                .row = rq_slice_cstr(row),
                                .cells = &t->cell,
                                .cell_count = 1,
                                .return_results = true,
                                .time_range = RQ_TIME_RANGE_ALL};
    t->mutate.row = (rq_row_op){.mutations = &t->mutation,
                                .mutation_count = 1,
                                .conditions = condition,
                                .condition_count = condition != NULL};
    ops_init(o, &t->mutate.op, RQ_OP_PUT, seat);
    t->mutate.op.region = ops_region(o, row);
    rq_op_mutate_start(&t->mutate);
    if (seat->lane == NULL)
        assert_int_equal(o->done, done);
    else
        assert_int_equal(o->done, done - 1);
    ops_wait(o, done);
    return &t->mutate.row;
}

static void check_value(ops_world *o, const char *row, rq_slice value)
{
    rq_op_get g;
    rq_cellblock out = {0};
    ops_get(o, &g, o->own, row, &out);
    assert_int_equal(g.read.op.rc, RQ_OK);
    assert_true(rq_slice_eq(ops_value(&out), value));
    rq_cellblock_clear(&out);
}

static void a_write_is_there_when_it_is_done(void **state)
{
    (void)state;
    ops_world *o = ops_world_new(NULL);
    write_test t;
    rq_ops_seat *seats[] = {o->loop, o->own};
    for (int i = 0; i < 2; i++) {
        rq_slice value = i == 0 ? RQ_SLICE_LIT("one") : RQ_SLICE_LIT("two");
        /* Separate rows, because a put in the same millisecond as a delete is hidden by it. */
        const char *name = i == 0 ? "a5" : "a6";
        rq_row_op *row = write_cell(o, &t, seats[i], RQ_MUTATE_PUT, name, value, NULL);
        assert_int_equal(t.mutate.op.rc, RQ_OK);
        assert_true(row->processed);
        check_value(o, name, value);
        write_cell(o, &t, seats[i], RQ_MUTATE_DELETE, name, (rq_slice){0}, NULL);
        check_value(o, name, (rq_slice){0});
    }
    assert_int_equal(ops_stats(o, RQ_OP_PUT).ops, 2);
    assert_int_equal(ops_stats(o, RQ_OP_PUT).cells, 2);
    assert_int_equal(ops_stats(o, RQ_OP_DELETE).ops, 2);
    ops_world_free(o);
}

static void an_increment_returns_its_cell(void **state)
{
    (void)state;
    ops_world *o = ops_world_new(NULL);
    write_test t;
    uint8_t one[8] = {0, 0, 0, 0, 0, 0, 0, 1};
    rq_ops_seat *seats[] = {o->loop, o->own};
    for (uint8_t i = 0; i < 4; i++) {
        rq_row_op *row = write_cell(o, &t, seats[i % 2], RQ_MUTATE_INCREMENT, "x",
                                    rq_slice_of(one, sizeof one), NULL);
        uint8_t sum[8] = {0, 0, 0, 0, 0, 0, 0, (uint8_t)(i + 1)};
        assert_int_equal(t.mutate.op.rc, RQ_OK);
        assert_true(rq_slice_eq(ops_value(&row->result), rq_slice_of(sum, sizeof sum)));
        assert_int_equal(t.mutate.op.cost.bytes_out, row->result.bytes.len);
        rq_row_op_clear(row);
    }
    assert_int_equal(ops_stats(o, RQ_OP_INCREMENT).ops, 4);
    ops_world_free(o);
}

static void a_condition_decides(void **state)
{
    (void)state;
    ops_world *o = ops_world_new(NULL);
    write_test t;
    rq_arena a = {0};
    rq_condition is_one = {.row = RQ_SLICE_LIT("y"),
                           .family = RQ_SLICE_LIT("f"),
                           .qualifier = RQ_SLICE_LIT("q"),
                           .op = RQ_EQUAL,
                           .time_range = RQ_TIME_RANGE_ALL};
    rq_ops_seat *seats[] = {o->own, o->loop};
    assert_int_equal(rq_comparator_new_binary(RQ_SLICE_LIT("one"), &a, &is_one.comparator), RQ_OK);
    write_cell(o, &t, o->own, RQ_MUTATE_PUT, "y", RQ_SLICE_LIT("one"), NULL);
    for (int i = 0; i < 2; i++) {
        rq_row_op *row =
            write_cell(o, &t, seats[i], RQ_MUTATE_PUT, "y", RQ_SLICE_LIT("two"), &is_one);
        assert_int_equal(t.mutate.op.rc, RQ_OK);
        assert_int_equal(row->processed, i == 0);
        rq_row_op_clear(row);
        check_value(o, "y", RQ_SLICE_LIT("two"));
    }
    assert_int_equal(ops_stats(o, RQ_OP_CHECK_AND_MUTATE).ops, 2);
    rq_arena_clear(&a);
    ops_world_free(o);
}

/* Checks that server and table t have as many durations as ops. */
static void check_times(ops_world *o, rq_op_kind kind, uint64_t ops)
{
    rq_op_stats s = ops_stats(o, kind);
    assert_int_equal(s.ops, ops);
    assert_int_equal(rq_times_count(&s.times), ops);
    assert_int_equal(ops_table_times(o, kind), ops);
}

/* Runs enough ops of each kind on a seat for one of them to be timed. */
static void write_each_kind(ops_world *o, rq_ops_seat *seat, const rq_condition *condition)
{
    write_test t;
    uint8_t one[8] = {0, 0, 0, 0, 0, 0, 0, 1};
    rq_slice number = rq_slice_of(one, sizeof one);
    for (int i = 0; i < SAMPLE; i++) {
        write_cell(o, &t, seat, RQ_MUTATE_PUT, "k1", number, NULL);
        write_cell(o, &t, seat, RQ_MUTATE_DELETE, "k2", (rq_slice){0}, NULL);
        rq_row_op_clear(write_cell(o, &t, seat, RQ_MUTATE_APPEND, "k3", number, NULL));
        rq_row_op_clear(write_cell(o, &t, seat, RQ_MUTATE_INCREMENT, "k4", number, NULL));
        rq_row_op_clear(write_cell(o, &t, seat, RQ_MUTATE_PUT, "k5", number, condition));
    }
}

static void every_kind_has_durations_of_its_table(void **state)
{
    (void)state;
    ops_world *o = ops_world_new(NULL);
    rq_arena a = {0};
    rq_condition is_one = {.row = RQ_SLICE_LIT("k5"),
                           .family = RQ_SLICE_LIT("f"),
                           .qualifier = RQ_SLICE_LIT("q"),
                           .op = RQ_EQUAL,
                           .time_range = RQ_TIME_RANGE_ALL};
    assert_int_equal(rq_comparator_new_binary(RQ_SLICE_LIT("one"), &a, &is_one.comparator), RQ_OK);
    rq_ops_seat *seats[] = {o->loop, o->own};
    for (uint64_t i = 0; i < 4; i++) {
        write_each_kind(o, seats[i % 2], &is_one);
        for (int kind = RQ_OP_PUT; kind <= RQ_OP_CHECK_AND_MUTATE; kind++)
            check_times(o, (rq_op_kind)kind, (i + 1) * SAMPLE);
    }
    rq_arena_clear(&a);
    ops_world_free(o);
}

static void a_refused_write_says_why(void **state)
{
    (void)state;
    ops_world *o = ops_world_new(NULL);
    write_test t;
    rq_slice value = RQ_SLICE_LIT("no number");
    rq_ops_seat *seats[] = {o->own, o->loop};
    for (int i = 0; i < 2; i++) {
        rq_row_op *row = write_cell(o, &t, seats[i], RQ_MUTATE_INCREMENT, "r1", value, NULL);
        assert_int_not_equal(t.mutate.op.rc, RQ_OK);
        assert_true(t.mutate.op.why.message[0] != '\0');
        rq_row_op_clear(row);
    }
    assert_int_equal(ops_stats(o, RQ_OP_INCREMENT).failed, 2);
    ops_world_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_is_there_when_it_is_done),
        cmocka_unit_test(an_increment_returns_its_cell),
        cmocka_unit_test(a_condition_decides),
        cmocka_unit_test(every_kind_has_durations_of_its_table),
        cmocka_unit_test(a_refused_write_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
