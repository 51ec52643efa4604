/* SPDX-License-Identifier: Apache-2.0 */
/* Scans without RPC: calls of one scanner, their limits, and the ends of a scanner. */
#include "ops_world.h"

#include "hfile/block_cache.h"
#include "ops/scan.h"

#define MS 1000000ull

typedef struct scan_test {
    ops_world *o;
    rq_op_scan scan;
    rq_cellblock out;
    void *connection;
    unsigned taken;
    bool take_fails;
    bool gone;
    bool fills_long;
    unsigned turns;       /* turns on the pool that the caller granted */
    bool has_no_turn;     /* the caller has no memory for a turn */
    rq_task turn;         /* task on the pool */
    rq_task *work, *then; /* run in the turn, and after it */
    int32_t batch;        /* the scan's batch; 0: none, otherwise both families are read */
    int32_t limit_of_rows;
    char rows[64]; /* rows of the last call, each followed by a blank */
} scan_test;

static scan_test *of_scan(rq_op_scan *s)
{
    return RQ_CONTAINER_OF(s, scan_test, scan);
}

static rq_err fill(rq_op_scan *s, rq_arena *arena, rq_scan *ret, rq_scan_extra *ret_extra)
{
    static const rq_scan_family family = {.family = {(const uint8_t *)"f", 1}};
    int32_t batch = of_scan(s)->batch;
    (void)arena;
    *ret = (rq_scan){.include_start = true,
                     .cache_blocks = true,
                     .families = &family,
                     .family_count = batch == 0,
                     .batch = batch,
                     .max_versions = 1,
                     .time_range = RQ_TIME_RANGE_ALL,
                     .store_limit = -1};
    *ret_extra = (rq_scan_extra){0};
    return RQ_OK;
}

static rq_err take(rq_op_scan *s)
{
    scan_test *t = of_scan(s);
    rq_cursor c = rq_cursor_of(rq_buf_slice(&t->out.bytes));
    rq_cell cell;
    t->taken++;
    t->rows[0] = '\0';
    for (uint32_t i = 0; i < s->result_count; i++) {
        assert_int_equal(s->results[i].cells, 1);
        assert_int_equal(rq_cellblock_next(&c, &cell, NULL), RQ_OK);
        strncat(t->rows, (const char *)cell.row, cell.row_len);
        strcat(t->rows, " ");
    }
    return t->take_fails ? RQ_E_NO_MEMORY : RQ_OK;
}

static bool has_gone(const rq_op *op)
{
    const rq_op_scan *s = RQ_CONTAINER_OF(op, rq_op_scan, read.op);
    return RQ_CONTAINER_OF(s, scan_test, scan)->gone;
}

static rq_err may_grow(rq_op *op, size_t held, size_t wanted, rq_task *task)
{
    (void)op;
    (void)held;
    (void)wanted;
    (void)task;
    return RQ_OK;
}

static void defer(rq_op *op, rq_task *task)
{
    rq_lane_post(op->seat->lane, task);
}

static void run_turn(rq_task *task)
{
    scan_test *t = RQ_CONTAINER_OF(task, scan_test, turn);
    t->work->run(t->work);
    rq_lane_post(t->scan.read.op.seat->lane, t->then);
}

static rq_err work_apart(rq_op *op, rq_task *work, rq_task *done)
{
    scan_test *t = of_scan(RQ_CONTAINER_OF(op, rq_op_scan, read.op));
    if (t->has_no_turn) return RQ_E_NO_MEMORY;
    t->turns++;
    t->work = work;
    t->then = done;
    t->turn.run = run_turn;
    op->seat->executor->submit(op->seat->executor, RQ_POOL_CODEC, &t->turn);
    return RQ_OK;
}

static const rq_op_caller caller = {
    .may_grow = may_grow, .has_gone = has_gone, .work_apart = work_apart, .defer = defer};

static int begin(void **state)
{
    scan_test *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->o = ops_world_new(NULL);
    *state = t;
    return 0;
}

static int end(void **state)
{
    scan_test *t = *state;
    if (t->connection != NULL) rq_scan_owner_gone(t->o->ops, t->connection);
    rq_cellblock_clear(&t->out);
    ops_world_free(t->o);
    free(t);
    return 0;
}

/* Calls scanner `id`, or opens one (0) on the region of `row`; waits for the end. */
static rq_op_scan *call(scan_test *t, rq_ops_seat *seat, uint64_t id, const char *row,
                        uint32_t rows_max)
{
    rq_op_scan *s = &t->scan;
    unsigned done = t->o->done + 1;
    rq_cellblock_reset(&t->out);
    *s = (rq_op_scan){.owner = rq_scan_owner_get(&t->connection),
                      .opens = id == 0,
                      .scanner_id = id,
                      .fill = fill,
                      .fills_long = t->fills_long,
                      .rows_max = rows_max,
                      .limit_of_rows = t->limit_of_rows,
                      .out = &t->out,
                      .take = take};
    ops_init(t->o, &s->read.op, RQ_OP_SCAN, seat);
    s->read.op.caller = seat->lane == NULL ? NULL : &caller;
    if (id == 0) s->read.op.region = ops_region(t->o, row);
    rq_op_scan_start(s);
    if (seat->lane == NULL) assert_int_equal(t->o->done, done);
    ops_wait(t->o, done);
    return s;
}

static void a_scanner_goes_on_from_call_to_call(void **state)
{
    scan_test *t = *state;
    rq_ops_seat *seats[] = {t->o->loop, t->o->own};
    enum { ROUNDS = 8 }; /* each seat runs 16 calls, of which the 16th is timed */
    /* Shifts the calls of one seat by one, because a call of an ended scanner has no region and
     * must not be the timed 16th. */
    (void)call(t, t->o->own, 0, "r", 100);
    for (int round = 0; round < ROUNDS; round++) {
        int i = round % 2;
        uint64_t blocks, bytes;
        rq_region_evict_blocks(ops_region(t->o, "a"), &blocks, &bytes);
        rq_op_scan *s = call(t, seats[i], 0, "a", 4);
        assert_int_equal(s->read.op.rc, RQ_OK);
        assert_true(s->has_opened && s->more_in_region && s->more_results);
        assert_string_equal(t->rows, "a0 a1 a2 a3 ");
        uint64_t id = s->scanner_id;
        s = call(t, seats[1 - i], id, NULL, 4); /* the next call is from the other seat */
        assert_string_equal(t->rows, "a4 a5 a6 a7 ");
        assert_false(s->has_opened);
        s = call(t, seats[i], id, NULL, 4);
        assert_string_equal(t->rows, "a8 a9 ");
        assert_false(s->more_in_region);
        /* one more call of a scanner that has ended by itself is no error */
        s = call(t, seats[i], id, NULL, 4);
        assert_int_equal(s->read.op.rc, RQ_OK);
        assert_true(s->is_idle);
    }
    assert_int_equal(t->taken, 3 * ROUNDS + 1);
    rq_op_stats counted = ops_stats(t->o, RQ_OP_SCAN);
    assert_true(rq_times_count(&counted.times) > 0);
    assert_int_equal(ops_table_times(t->o, RQ_OP_SCAN), rq_times_count(&counted.times));
    assert_int_equal(ops_stats(t->o, RQ_OP_SCAN).ops, 4 * ROUNDS + 1);
    assert_int_equal(ops_stats(t->o, RQ_OP_SCAN).rows, 10 * ROUNDS + 10);
    assert_int_equal(ops_stats(t->o, RQ_OP_SCAN).failed, 0);
}

static void calls_come_in_sequence(void **state)
{
    scan_test *t = *state;
    rq_op_scan *s = call(t, t->o->own, 0, "r", 1);
    uint64_t id = s->scanner_id;
    for (int twice = 0; twice < 2; twice++) {
        *s = (rq_op_scan){.owner = s->owner,
                          .scanner_id = id,
                          .has_call_seq = true,
                          .call_seq = 0,
                          .rows_max = 1,
                          .out = &t->out,
                          .take = take};
        ops_init(t->o, &s->read.op, RQ_OP_SCAN, t->o->own);
        rq_op_scan_start(s);
        assert_int_equal(s->read.op.rc, twice == 0 ? RQ_OK : RQ_E_OUT_OF_ORDER_SCANNER);
        assert_int_equal(s->was_counted, twice == 0);
    }
    s = call(t, t->o->own, id, NULL, 1); /* the scanner is still open */
    assert_string_equal(t->rows, "r2 ");
}

static void an_error_of_the_caller_ends_the_scanner(void **state)
{
    scan_test *t = *state;
    uint64_t id = call(t, t->o->own, 0, "r", 1)->scanner_id;
    t->take_fails = true;
    rq_op_scan *s = call(t, t->o->own, id, NULL, 1);
    assert_int_equal(s->read.op.rc, RQ_E_NO_MEMORY);
    assert_true(s->was_counted);
    s = call(t, t->o->own, id, NULL, 1);
    assert_int_equal(s->read.op.rc, RQ_E_UNKNOWN_SCANNER);
    assert_false(s->was_counted);
}

static void a_caller_that_has_gone_ends_the_scanner(void **state)
{
    scan_test *t = *state;
    uint64_t id = call(t, t->o->loop, 0, "r", 1)->scanner_id;
    t->gone = true;
    rq_op_scan *s = call(t, t->o->loop, id, NULL, 1);
    assert_int_equal(s->read.op.rc, RQ_E_CALLER_DISCONNECTED);
    t->gone = false;
    s = call(t, t->o->loop, id, NULL, 1);
    assert_int_equal(s->read.op.rc, RQ_E_UNKNOWN_SCANNER);
}

/* A connection reads on the pool only in its turn, however many scans it opens. */
static void a_long_request_is_read_in_its_connections_turn(void **state)
{
    scan_test *t = *state;
    t->fills_long = true;
    rq_op_scan *s = call(t, t->o->loop, 0, "r", 2);
    assert_int_equal(s->read.op.rc, RQ_OK);
    assert_string_equal(t->rows, "r0 r1 ");
    assert_int_equal(t->turns, 1);
    (void)call(t, t->o->loop, s->scanner_id, NULL, 1);
    assert_string_equal(t->rows, "r2 ");
    assert_int_equal(t->turns, 1);
    t->has_no_turn = true;
    assert_int_equal(call(t, t->o->loop, 0, "r", 2)->read.op.rc, RQ_E_NO_MEMORY);
}

/* A call that ends inside a row remembers the row: the limit of the next call counts the row
 * once. */
static void a_row_that_goes_on_in_the_next_call_is_counted_once(void **state)
{
    scan_test *t = *state;
    t->batch = 1;
    rq_op_scan *s = call(t, t->o->own, 0, "a", 3);
    uint64_t id = s->scanner_id;
    assert_string_equal(t->rows, "a0 a0 a1 ");
    assert_true(s->results[2].is_partial);
    t->limit_of_rows = 1;
    s = call(t, t->o->own, id, NULL, 5);
    assert_string_equal(t->rows, "a1 ");
    assert_false(s->more_results);
}

static void long_values_are_copied_on_a_pool(void **state)
{
    scan_test *t = *state;
    rq_ops_seat *seats[] = {t->o->loop, t->o->own};
    ops_put_long(t->o, "a1", OPS_LONG);
    ops_put_long(t->o, "a3", RQ_READ_COPY_MAX + 1);
    for (int round = 0; round < 4; round++) {
        rq_op_scan *s = call(t, seats[round % 2], 0, "a", 100);
        assert_int_equal(s->read.op.rc, RQ_OK);
        assert_string_equal(t->rows, "a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 ");
        if (round % 2 == 0) assert_true(s->read.op.has_waited);
        ops_flush(t->o);
    }
}

/* Its ops wait for blocks that are read in advance (hfile/window.h). */
static void a_long_scan_reads_in_advance(void **state)
{
    enum { ROWS = 100, A_CALL = 5 };
    scan_test *t = *state;
    rq_block_cache *cache = rq_engine_block_cache(t->o->w.engine);
    rq_block_cache_stats before, after;
    char row[4] = "b";
    for (int i = 0; i < ROWS; i++) {
        snprintf(row + 1, sizeof row - 1, "%02d", i);
        ops_put_long(t->o, row, RQ_READ_COPY_MAX / 8);
    }
    ops_flush(t->o);
    rq_block_cache_get_stats(cache, &before);
    uint64_t id = call(t, t->o->loop, 0, "a", 10)->scanner_id;
    for (int i = 0; i < ROWS; i += A_CALL) {
        char rows[sizeof t->rows] = "";
        for (int k = i; k < i + A_CALL; k++)
            snprintf(rows + strlen(rows), sizeof rows - strlen(rows), "b%02d ", k);
        assert_int_equal(call(t, t->o->loop, id, NULL, A_CALL)->read.op.rc, RQ_OK);
        assert_string_equal(t->rows, rows);
    }
    rq_block_cache_get_stats(cache, &after);
    assert_true(after.ahead_bytes > before.ahead_bytes);
}

static void a_scanner_without_client_ends(void **state)
{
    scan_test *t = *state;
    uint64_t id = call(t, t->o->own, 0, "r", 1)->scanner_id;
    rq_scan_owner_gone(t->o->ops, t->connection);
    t->connection = NULL;
    rq_sim_advance(t->o->w.sim, 9000 * MS);
    assert_int_equal(call(t, t->o->own, id, NULL, 1)->read.op.rc, RQ_OK);
    rq_scan_owner_gone(t->o->ops, t->connection);
    t->connection = NULL;
    rq_sim_advance(t->o->w.sim, 13000 * MS);
    assert_int_equal(call(t, t->o->own, id, NULL, 1)->read.op.rc, RQ_E_UNKNOWN_SCANNER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_scanner_goes_on_from_call_to_call, begin, end),
        cmocka_unit_test_setup_teardown(calls_come_in_sequence, begin, end),
        cmocka_unit_test_setup_teardown(an_error_of_the_caller_ends_the_scanner, begin, end),
        cmocka_unit_test_setup_teardown(a_caller_that_has_gone_ends_the_scanner, begin, end),
        cmocka_unit_test_setup_teardown(a_long_request_is_read_in_its_connections_turn, begin, end),
        cmocka_unit_test_setup_teardown(a_row_that_goes_on_in_the_next_call_is_counted_once, begin,
                                        end),
        cmocka_unit_test_setup_teardown(long_values_are_copied_on_a_pool, begin, end),
        cmocka_unit_test_setup_teardown(a_long_scan_reads_in_advance, begin, end),
        cmocka_unit_test_setup_teardown(a_scanner_without_client_ends, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
