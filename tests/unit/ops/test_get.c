/* SPDX-License-Identifier: Apache-2.0 */
/* Gets without RPC, from a lane and from a separate thread. */
#include "ops_world.h"

static void check_value(const rq_cellblock *cells, const char *value)
{
    rq_slice s = ops_value(cells);
    assert_true(rq_slice_eq(s, rq_slice_cstr(value)));
}

static void a_row_in_memory_is_answered_at_once(void **state)
{
    (void)state;
    ops_world *o = ops_world_new(NULL);
    rq_op_get g;
    rq_cellblock out = {0};
    rq_ops_seat *seats[] = {o->loop, o->own};
    for (unsigned i = 0; i < 2; i++) {
        ops_get(o, &g, seats[i], "r3", &out);
        assert_int_equal(o->done, i + 1); /* completed without a task */
        assert_int_equal(g.read.op.rc, RQ_OK);
        assert_false(g.read.op.has_waited);
        check_value(&out, "r3");
        assert_int_equal(g.read.op.cost.rows, 1);
        assert_int_equal(g.read.op.cost.cells, 1);
        assert_int_equal(g.read.op.cost.bytes_out, out.bytes.len);
    }
    rq_cellblock_clear(&out);
    ops_world_free(o);
}

/* Half of all reads are page-cache misses (again_percent). */
static void a_lane_waits_for_blocks_and_a_thread_reads_them(void **state)
{
    (void)state;
    ops_world *o = ops_world_new(NULL);
    rq_op_get g;
    rq_cellblock out = {0};
    unsigned waited = 0;
    char row[3] = "a0";
    for (unsigned i = 0; i < 40; i++) {
        rq_ops_seat *seat = i % 2 == 0 ? o->loop : o->own;
        uint64_t blocks, bytes;
        row[1] = (char)('0' + i % 10);
        rq_region_evict_blocks(ops_region(o, row), &blocks, &bytes);
        ops_get(o, &g, seat, row, &out);
        if (seat == o->own) assert_int_equal(o->done, i + 1);
        waited += o->done == i;
        ops_wait(o, i + 1);
        assert_int_equal(g.read.op.rc, RQ_OK);
        check_value(&out, row);
    }
    assert_in_range(waited, 1, 20);
    /* About half of the blocks were read without a thread; some of these reads fail. */
    uint64_t begun, failed;
    rq_ops_begun_reads(o->ops, &begun, &failed);
    assert_in_range(begun, 1, 30);
    assert_true(failed < begun);
    assert_int_equal(ops_stats(o, RQ_OP_GET).ops, 40);
    assert_int_equal(ops_stats(o, RQ_OP_GET).rows, 40);
    rq_op_stats s = ops_stats(o, RQ_OP_GET);
    assert_true(rq_times_count(&s.times) >= waited);
    assert_int_equal(ops_table_times(o, RQ_OP_GET), rq_times_count(&s.times));
    rq_cellblock_clear(&out);
    ops_world_free(o);
}

/* A value in the memstore or in a file. A lane leaves the copying to a thread of the pool. */
static void a_long_value_is_copied_on_a_pool(void **state)
{
    (void)state;
    ops_world *o = ops_world_new(NULL);
    rq_op_get g;
    rq_cellblock out = {0};
    unsigned done = 0;
    ops_put_long(o, "r3", OPS_LONG);
    for (int flushed = 0; flushed < 2; flushed++) {
        ops_get(o, &g, o->loop, "r3", &out);
        assert_int_equal(o->done, done);
        assert_true(out.bytes.cap < OPS_LONG);
        ops_wait(o, ++done);
        assert_int_equal(g.read.op.rc, RQ_OK);
        assert_int_equal(ops_value(&out).len, OPS_LONG);
        assert_int_equal(g.read.op.cost.bytes_out, out.bytes.len);
        rq_cellblock_clear(&out);
        ops_get(o, &g, o->own, "r3", &out); /* a thread copies the value itself */
        assert_int_equal(o->done, ++done);
        assert_int_equal(ops_value(&out).len, OPS_LONG);
        rq_cellblock_clear(&out);
        ops_flush(o);
    }
    ops_world_free(o);
}

static rq_err grow(rq_op *op, size_t held, size_t wanted, rq_task *task)
{
    (void)op, (void)held, (void)wanted, (void)task;
    return RQ_OK;
}

static bool has_gone(const rq_op *op)
{
    (void)op;
    return true;
}

static void defer(rq_op *op, rq_task *task)
{
    rq_lane_post(op->seat->lane, task);
}

/* The connection is closed: the get ends after its wait without reading further. */
static void a_get_ends_when_its_caller_has_gone(void **state)
{
    (void)state;
    static const rq_op_caller caller = {.may_grow = grow, .has_gone = has_gone, .defer = defer};
    ops_world *o = ops_world_new(NULL);
    rq_op_get g;
    rq_cellblock out = {0};
    ops_put_long(o, "r3", OPS_LONG);
    ops_get(o, &g, o->loop, "r3", &out);
    g.read.op.caller = &caller;
    ops_wait(o, 1);
    assert_int_equal(g.read.op.rc, RQ_E_CALLER_DISCONNECTED);
    rq_cellblock_clear(&out);
    ops_world_free(o);
}

/* A row whose cells are long in total is read by the scanner, in slices. */
static void a_long_row_is_not_read_in_one_step(void **state)
{
    (void)state;
    ops_world *o = ops_world_new(NULL);
    world *w = &o->w;
    rq_op_get g;
    rq_cellblock out = {0};
    uint8_t value[60000] = {0};
    for (int i = 0; i < 20; i++) {
        char qualifier[4];
        snprintf(qualifier, sizeof qualifier, "q%02d", i);
        OK(world_put_cell(w, "t", "r3", "f", qualifier, rq_slice_of(value, sizeof value)));
    }
    ops_get(o, &g, o->loop, "r3", &out);
    ops_wait(o, 1);
    assert_int_equal(g.read.op.rc, RQ_OK);
    assert_int_equal(out.count, 21);
    for (int on_lane = 0; on_lane < 2; on_lane++) {
        bool answered;
        rq_read_ctx ctx = {.copy_max = on_lane ? RQ_READ_COPY_MAX : 0};
        rq_cellblock_reset(&out);
        OK(rq_region_get(ops_region(o, "r3"), &g.scan, &o->arena, &ctx, &out, &answered, &w->why));
        assert_int_equal(answered, !on_lane);
        rq_read_ctx_clear(&ctx);
    }
    rq_cellblock_clear(&out);
    ops_world_free(o);
}

static void an_error_is_the_ops_and_is_counted(void **state)
{
    (void)state;
    ops_world *o = ops_world_new(NULL);
    rq_op_get g;
    rq_cellblock out = {0};
    rq_scan_family unknown = {.family = RQ_SLICE_LIT("x")};
    ops_get(o, &g, o->own, "r1", &out);
    g.scan.families = &unknown;
    ops_init(o, &g.read.op, RQ_OP_GET, o->own);
    g.read.op.region = ops_region(o, "r1");
    rq_cellblock_reset(&out);
    rq_op_get_start(&g);
    assert_int_equal(o->done, 2);
    assert_int_equal(g.read.op.rc, RQ_E_NO_SUCH_FAMILY);
    assert_non_null(strstr(g.read.op.why.message, "Column family x does not exist"));
    assert_int_equal(ops_stats(o, RQ_OP_GET).ops, 2);
    assert_int_equal(ops_stats(o, RQ_OP_GET).failed, 1);
    rq_cellblock_clear(&out);
    ops_world_free(o);
}

static void a_sink_that_is_full_ends_the_get(void **state)
{
    (void)state;
    ops_world *o = ops_world_new(NULL);
    rq_op_get g;
    rq_cellblock out = {.bytes_max = 8};
    ops_get(o, &g, o->own, "r1", &out);
    out.bytes_max = 8; /* applies until ops_get resets it */
    ops_init(o, &g.read.op, RQ_OP_GET, o->own);
    g.read.op.region = ops_region(o, "r1");
    rq_cellblock_clear(&out);
    out.bytes_max = 8;
    rq_op_get_start(&g);
    assert_int_equal(g.read.op.rc, RQ_E_RESULT_TOO_LARGE);
    assert_int_equal(ops_stats(o, RQ_OP_GET).failed, 0);
    rq_cellblock_clear(&out);
    ops_world_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_in_memory_is_answered_at_once),
        cmocka_unit_test(a_lane_waits_for_blocks_and_a_thread_reads_them),
        cmocka_unit_test(a_long_value_is_copied_on_a_pool),
        cmocka_unit_test(a_get_ends_when_its_caller_has_gone),
        cmocka_unit_test(a_long_row_is_not_read_in_one_step),
        cmocka_unit_test(an_error_is_the_ops_and_is_counted),
        cmocka_unit_test(a_sink_that_is_full_ends_the_get),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
