/* SPDX-License-Identifier: Apache-2.0 */
/* The gate: a policy refuses and delays ops, and each op is counted once. */
#include "ops_world.h"

typedef struct policy {
    rq_gate_policy table;
    unsigned asked, ended;
    unsigned delays; /* delays still to be made */
    bool refuses;
    rq_task *delayed; /* the delayed task, which the test posts */
    rq_lane *lane;
    rq_op_cost cost; /* cost of the last op */
} policy;

static rq_err before(void *ctx, rq_op *op, rq_task *task)
{
    policy *p = ctx;
    p->asked++;
    if (p->refuses) return rq_fail(&op->why, RQ_E_REGION_TOO_BUSY, "over the quota");
    if (p->delays == 0 || task == NULL) return RQ_OK;
    p->delays--;
    p->delayed = task;
    return RQ_E_AGAIN;
}

static void after(void *ctx, const rq_op *op)
{
    policy *p = ctx;
    p->ended++;
    p->cost = op->cost;
}

static policy *policy_new(void)
{
    policy *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->table = (rq_gate_policy){.ctx = p, .before = before, .after = after};
    return p;
}

static void a_refused_op_gets_the_reason_and_reads_nothing(void **state)
{
    (void)state;
    policy *p = policy_new();
    ops_world *o = ops_world_new(&p->table);
    rq_op_get g;
    rq_cellblock out = {0};
    p->refuses = true;
    rq_ops_seat *seats[] = {o->loop, o->own};
    for (unsigned i = 0; i < 2; i++) {
        ops_get(o, &g, seats[i], "r1", &out);
        assert_int_equal(o->done, i + 1);
        assert_int_equal(g.read.op.rc, RQ_E_REGION_TOO_BUSY);
        assert_string_equal(g.read.op.why.message, "over the quota");
        assert_int_equal(out.count, 0);
    }
    assert_int_equal(ops_stats(o, RQ_OP_GET).failed, 2);
    assert_int_equal(p->ended, 2);
    rq_cellblock_clear(&out);
    ops_world_free(o);
    free(p);
}

/* The region of an op that is delayed at the gate remains valid whatever happens to the table. */
static void a_delayed_op_keeps_its_region(void **state)
{
    (void)state;
    policy *p = policy_new();
    ops_world *o = ops_world_new(&p->table);
    world *w = &o->w;
    rq_op_get g;
    rq_cellblock out = {0};
    p->delays = 2;
    ops_get(o, &g, o->loop, "r1", &out);
    assert_int_equal(o->done, 0);
    rq_epoch_unpin(w->env->epoch, &o->section);
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    rq_epoch_pin(w->env->epoch, &o->section);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(o->done, 0);
        rq_lane_post(o->lane, p->delayed);
        rq_sim_run(w->sim);
    }
    assert_int_equal(o->done, 1);
    assert_int_equal(p->asked, 3);
    assert_int_equal(p->ended, 1);
    assert_int_equal(g.read.op.rc, RQ_E_NOT_SERVING_REGION);
    rq_cellblock_clear(&out);
    ops_world_free(o);
    free(p);
}

static void a_repeated_op_passes_once(void **state)
{
    (void)state;
    policy *p = policy_new();
    ops_world *o = ops_world_new(&p->table);
    rq_op_get g;
    rq_cellblock out = {0};
    ops_get(o, &g, o->own, "r1", &out);
    rq_op *op = &g.read.op;
    ops_init(o, op, RQ_OP_GET, o->own);
    op->region = ops_region(o, "r1");
    op->repeats = true;
    rq_op_get_start(&g);
    assert_int_equal(op->rc, RQ_OK);
    assert_int_equal(p->asked, 1);
    assert_int_equal(ops_stats(o, RQ_OP_GET).ops, 1);
    assert_int_equal(ops_stats(o, RQ_OP_GET).cells, 2);
    rq_cellblock_clear(&out);
    ops_world_free(o);
    free(p);
}

/* Of ops that complete at once a sample is timed and scaled; the first ops are timed more often. */
static void times_stand_for_all_ops(void **state)
{
    (void)state;
    ops_world *o = ops_world_new(NULL);
    rq_op_get g;
    rq_cellblock out = {0};
    enum { FIRST = 1024, LATER = 3 * 64 };
    for (int i = 0; i < FIRST + LATER; i++)
        ops_get(o, &g, o->own, "r1", &out);
    /* The counts remain after the seat is freed. */
    rq_ops_seat_free(o->own);
    o->own = NULL;
    rq_op_stats s = ops_stats(o, RQ_OP_GET);
    uint64_t timed = 0;
    for (size_t i = 0; i < RQ_TIMES_BUCKETS; i++)
        timed += s.times.counts[i];
    assert_int_equal(s.ops, FIRST + LATER);
    assert_int_equal(timed, s.ops);
    rq_cellblock_clear(&out);
    ops_world_free(o);
}

/* The clock is read for the ops of the sample. */
static void an_op_without_a_start_is_timed_from_its_beginning(void **state)
{
    (void)state;
    ops_world *o = ops_world_new(NULL);
    rq_op_get g;
    rq_cellblock out = {0};
    enum { OPS = 64 };
    rq_sim_advance(o->w.sim, (uint64_t)1000 * 1000000000);
    for (int i = 0; i < OPS; i++) {
        ops_get(o, &g, o->own, "r1", &out);
        ops_init(o, &g.read.op, RQ_OP_GET, o->own);
        g.read.op.region = ops_region(o, "r1");
        g.read.op.started_ns = 0;
        rq_op_get_start(&g);
        assert_int_equal(g.read.op.rc, RQ_OK);
        assert_int_equal(g.read.op.started_ns > 0, ops_stats(o, RQ_OP_GET).ops % 16 == 0);
    }
    rq_op_stats s = ops_stats(o, RQ_OP_GET);
    assert_int_equal(rq_times_count(&s.times), 2 * OPS);
    assert_true(s.times.sum_ns < (uint64_t)1000000000 * OPS);
    rq_cellblock_clear(&out);
    ops_world_free(o);
}

/* The table is dropped while a get waits for a block: only the scanner refers to the region. */
static void a_get_of_a_dropped_table_ends(void **state)
{
    (void)state;
    ops_world *o = ops_world_new(NULL);
    world *w = &o->w;
    rq_op_get g;
    rq_cellblock out = {0};
    uint64_t blocks, bytes;
    int tries = 0;
    do { /* until the get's block is not in the page cache */
        o->done = 0;
        rq_region_evict_blocks(ops_region(o, "a1"), &blocks, &bytes);
        ops_get(o, &g, o->loop, "a1", &out);
        if (o->done == 0) break;
    } while (++tries < 100);
    assert_int_equal(o->done, 0);
    rq_op_stats waiting = ops_stats(o, RQ_OP_GET);
    rq_epoch_unpin(w->env->epoch, &o->section);
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    OK(world_table(w, RQ_DDL_DELETE_TABLE, "t"));
    rq_epoch_pin(w->env->epoch, &o->section);
    ops_wait(o, 1);
    rq_op_stats s = ops_stats(o, RQ_OP_GET);
    assert_int_equal(rq_times_count(&s.times), rq_times_count(&waiting.times) + 1);
    /* ending the get does not add the table again */
    assert_int_equal(ops_table_times(o, RQ_OP_GET), 0);
    rq_cellblock_clear(&out);
    ops_world_free(o);
}

static void percentiles_are_within_a_quarter(void **state)
{
    (void)state;
    ops_world *o = ops_world_new(NULL);
    rq_op op;
    uint64_t now = o->w.env->executor->now_ns(o->w.env->executor);
    for (uint64_t ns = 1; ns < now; ns = ns * 3 + 1) {
        rq_ops_seat *seat;
        assert_int_equal(rq_ops_seat_new(o->ops, NULL, &o->section, &seat), RQ_OK);
        rq_op_stats before_it = ops_stats(o, RQ_OP_SCAN);
        ops_init(o, &op, RQ_OP_SCAN, seat);
        op.started_ns = now - ns;
        op.has_waited = true;
        rq_op_end(&op, RQ_OK);
        rq_op_stats s = ops_stats(o, RQ_OP_SCAN);
        for (size_t i = 0; i < RQ_TIMES_BUCKETS; i++)
            s.times.counts[i] -= before_it.times.counts[i];
        uint64_t found = rq_times_percentile_ns(&s.times, 50);
        assert_int_equal(s.times.sum_ns - before_it.times.sum_ns, ns);
        assert_true(found >= ns && found <= ns + ns / 4);
        rq_ops_seat_free(seat);
    }
    ops_world_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_op_gets_the_reason_and_reads_nothing),
        cmocka_unit_test(a_delayed_op_keeps_its_region),
        cmocka_unit_test(a_repeated_op_passes_once),
        cmocka_unit_test(times_stand_for_all_ops),
        cmocka_unit_test(an_op_without_a_start_is_timed_from_its_beginning),
        cmocka_unit_test(a_get_of_a_dropped_table_ends),
        cmocka_unit_test(percentiles_are_within_a_quarter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
