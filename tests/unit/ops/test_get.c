/* SPDX-License-Identifier: Apache-2.0 */
/* Gets without any rpc, from a lane and from a thread of its own. */
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
        assert_int_equal(o->done, i + 1); /* no task ran */
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

/* Half of all reads find nothing in the page cache (again_percent). */
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
    assert_int_equal(ops_stats(o, RQ_OP_GET).ops, 40);
    assert_int_equal(ops_stats(o, RQ_OP_GET).rows, 40);
    rq_op_stats s = ops_stats(o, RQ_OP_GET);
    assert_true(rq_times_count(&s.times) >= waited);
    assert_int_equal(ops_table_times(o, RQ_OP_GET), rq_times_count(&s.times));
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
    out.bytes_max = 8; /* until reset, which ops_get does */
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
        cmocka_unit_test(an_error_is_the_ops_and_is_counted),
        cmocka_unit_test(a_sink_that_is_full_ends_the_get),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
