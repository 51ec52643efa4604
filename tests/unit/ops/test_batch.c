/* SPDX-License-Identifier: Apache-2.0 */
/* Batches without RPC: order, runs, atomic groups, errors and counts of single parts. */
#include "ops_world.h"

#include "ops/batch.h"
#include "wal/wal.h"

#define PARTS_MAX 200

/* What a part of the batch does to f:q of its row. */
typedef struct wish {
    char what; /* 'g' get, 'p' put, 'd' delete, 'i' increment by one, '!' refused, 'o' other */
    char row[4];
    const char *value;
} wish;

typedef struct group {
    const char *region; /* a row in the region; NULL: no region */
    bool is_atomic;
    const wish *wishes;
    size_t count;
} group;

typedef struct batch_test {
    rq_op_batch batch;
    ops_world *o;
    const group *groups;
    rq_batch_part parts[PARTS_MAX];
    rq_cell cells[PARTS_MAX];
    rq_mutation mutations[PARTS_MAX];
    size_t base; /* of the group's cells and mutations; earlier groups may be in progress */
    rq_cellblock out;
    rq_buf log; /* the batch's results, in order */
    rq_task task;
    bool is_tight; /* the op's arena refuses memory while it is limited */
    bool limited;
    unsigned refused; /* number of refused allocations */
    bool counts_waits;
    bool gone;
    unsigned waits;
} batch_test;

static batch_test *test_of(rq_op_batch *b)
{
    return RQ_CONTAINER_OF(b, batch_test, batch);
}

static void note(batch_test *t, const char *fmt, ...) RQ_PRINTF(2, 3);

static void note(batch_test *t, const char *fmt, ...)
{
    char text[128];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    assert_int_equal(rq_buf_append(&t->log, text, strlen(text)), RQ_OK);
}

static rq_batch_part_kind kind_of(char what)
{
    switch (what) {
    case 'g':
        return RQ_PART_GET;
    case 'i':
        return RQ_PART_ALONE;
    case 'o':
        return RQ_PART_OTHER;
    default:
        return RQ_PART_COLLECTED;
    }
}

static rq_err enter(rq_op_batch *b)
{
    batch_test *t = test_of(b);
    const group *g = &t->groups[b->group_at];
    for (size_t i = 0; i < g->count; i++)
        t->parts[i] = (rq_batch_part){.kind = kind_of(g->wishes[i].what),
                                      .index = (uint32_t)i,
                                      .row = rq_slice_cstr(g->wishes[i].row),
                                      .request = &g->wishes[i]};
    t->base = b->group_at == 0 ? 0 : t->base + t->groups[b->group_at - 1].count;
    if (t->base + g->count > PARTS_MAX) t->base = 0;
    b->parts = t->parts;
    b->part_count = g->count;
    b->is_atomic = g->is_atomic;
    b->group = (void *)(uintptr_t)(b->group_at + 1);
    if (g->region == NULL)
        note(t, "none ");
    else
        b->region = ops_region(t->o, g->region);
    return RQ_OK;
}

static rq_err decode_get(rq_op_batch *b, const rq_batch_part *p, rq_scan *ret, rq_error *why)
{
    (void)b;
    (void)why;
    *ret = rq_scan_of_row(p->row);
    return RQ_OK;
}

static rq_err decode_write(rq_op_batch *b, const rq_batch_part *p, rq_mutation *ret,
                           uint64_t *ret_nonce, rq_error *why)
{
    static const uint8_t one[8] = {0, 0, 0, 0, 0, 0, 0, 1};
    batch_test *t = test_of(b);
    const wish *w = p->request;
    rq_cell *cell = &t->cells[t->base + p->index];
    (void)ret_nonce;
    if (w->what == '!') return rq_fail(why, RQ_E_DO_NOT_RETRY, "refused");
    rq_slice value = w->value == NULL ? rq_slice_of(one, 8) : rq_slice_cstr(w->value);
    *cell = (rq_cell){.row = p->row.ptr,
                      .row_len = (uint16_t)p->row.len,
                      .family = (const uint8_t *)"f",
                      .family_len = 1,
                      .qualifier = (const uint8_t *)"q",
                      .qualifier_len = 1,
                      .timestamp = RQ_TIMESTAMP_LATEST,
                      .type = w->what == 'd' ? RQ_TYPE_DELETE_COLUMN : RQ_TYPE_PUT,
                      .value = value.ptr,
                      .value_len = (uint32_t)value.len};
    *ret = (rq_mutation){.type = w->what == 'd'   ? RQ_MUTATE_DELETE
                                 : w->what == 'i' ? RQ_MUTATE_INCREMENT
                                                  : RQ_MUTATE_PUT,
                         .row = p->row,
                         .cells = cell,
                         .cell_count = 1,
                         .return_results = true,
                         .time_range = RQ_TIME_RANGE_ALL};
    return RQ_OK;
}

static rq_err decode_atomic(rq_op_batch *b, rq_row_op *ret, rq_error *why)
{
    batch_test *t = test_of(b);
    uint64_t nonce;
    for (size_t i = 0; i < b->part_count; i++)
        RQ_TRY(decode_write(b, &b->parts[i], &t->mutations[t->base + i], &nonce, why));
    ret->mutations = &t->mutations[t->base];
    ret->mutation_count = b->part_count;
    return RQ_OK;
}

static void pass_over(rq_op_batch *b, const rq_batch_part *p)
{
    note(test_of(b), "skip%u ", p->index);
}

static void go_on(rq_task *task)
{
    batch_test *t = RQ_CONTAINER_OF(task, batch_test, task);
    note(t, "other ");
    rq_op_batch_go_on(&t->batch, RQ_OK);
}

static rq_err other(rq_op_batch *b, const rq_batch_part *p, rq_error *why)
{
    batch_test *t = test_of(b);
    (void)p;
    if (b->read.op.seat->lane == NULL) return rq_fail(why, RQ_E_UNSUPPORTED, "no lane");
    t->task.run = go_on;
    rq_lane_post(b->read.op.seat->lane, &t->task);
    return RQ_OK;
}

static rq_err got(rq_op_batch *b, const rq_batch_part *p, uint32_t cells)
{
    note(test_of(b), "got%u=%u ", p->index, cells);
    return RQ_OK;
}

static rq_err written(rq_op_batch *b, void *g, uint32_t index, rq_row_op *op, rq_err rc,
                      const rq_error *why)
{
    batch_test *t = test_of(b);
    (void)why;
    if (rc != RQ_OK)
        note(t, "%u:%s ", index, rq_err_name(rc));
    else if (op->result.count > 0)
        note(t, "%u=%u ", index, ops_value(&op->result).ptr[7]);
    else
        note(t, "%u/%u ", (unsigned)(uintptr_t)g, index);
    return RQ_OK;
}

static rq_err atomic_written(rq_op_batch *b, void *g, const rq_row_op *op)
{
    (void)g;
    note(test_of(b), "all:%s ", op->rc == RQ_OK ? "ok" : rq_err_name(op->rc));
    return RQ_OK;
}

static rq_err failed(rq_op_batch *b, const rq_batch_part *p, rq_err rc, const rq_error *why)
{
    (void)why;
    note(test_of(b), "%u!%s ", p->index, rq_err_name(rc));
    return RQ_OK;
}

static rq_err group_failed(rq_op_batch *b, rq_err rc, const rq_error *why)
{
    (void)why;
    note(test_of(b), "group!%s ", rq_err_name(rc));
    return RQ_OK;
}

static const rq_batch_caller caller = {.enter = enter,
                                       .get = decode_get,
                                       .write = decode_write,
                                       .atomic = decode_atomic,
                                       .skip = pass_over,
                                       .other = other,
                                       .got = got,
                                       .written = written,
                                       .atomic_written = atomic_written,
                                       .failed = failed,
                                       .group_failed = group_failed};

/* --- a batch whose memory is limited ----------------------------------------------------------- */

static void limit_memory(rq_op *op, bool on)
{
    RQ_CONTAINER_OF(op, batch_test, batch.read.op)->limited = on;
}

static bool arena_may_grow(void *ctx, size_t bytes)
{
    batch_test *t = ctx;
    (void)bytes;
    if (t->limited) t->refused++;
    return !t->limited;
}

static rq_err result_may_grow(rq_op *op, size_t held, size_t wanted, rq_task *task)
{
    (void)op;
    (void)held;
    (void)wanted;
    (void)task;
    return RQ_OK;
}

static bool no(const rq_op *op)
{
    (void)op;
    return false;
}

static void defer(rq_op *op, rq_task *task)
{
    rq_lane_post(op->seat->lane, task);
}

static bool has_gone(const rq_op *op)
{
    return RQ_CONTAINER_OF(op, batch_test, batch.read.op)->gone;
}

static const rq_op_caller tight = {.may_grow = result_may_grow,
                                   .is_scarce = no,
                                   .limit_memory = limit_memory,
                                   .has_gone = no,
                                   .defer = defer};

static void waited(rq_op *op, uint64_t ns)
{
    (void)ns;
    RQ_CONTAINER_OF(op, batch_test, batch.read.op)->waits++;
}

static const rq_op_caller counting = {.may_grow = result_may_grow,
                                      .is_scarce = no,
                                      .limit_memory = limit_memory,
                                      .has_gone = has_gone,
                                      .defer = defer,
                                      .waited_for_block = waited};

/* Runs a batch of the groups, and returns its results as text. */
static const char *run(batch_test *t, ops_world *o, rq_ops_seat *seat, const group *groups,
                       size_t count)
{
    unsigned done = o->done + 1;
    rq_cellblock_reset(&t->out);
    rq_buf_reset(&t->log);
    t->batch = (rq_op_batch){.table = &caller, .group_count = count, .out = &t->out};
    t->o = o;
    t->groups = groups;
    ops_init(o, &t->batch.read.op, RQ_OP_BATCH, seat);
    if (t->is_tight) {
        rq_arena_clear(&o->arena); /* no chunk is left, so each needs memory */
        t->batch.read.op.caller = &tight;
        rq_arena_meter(&o->arena, arena_may_grow, t);
    }
    if (t->counts_waits) t->batch.read.op.caller = &counting;
    rq_op_batch_start(&t->batch);
    if (seat->lane == NULL) assert_int_equal(o->done, done);
    ops_wait(o, done);
    assert_int_equal(t->batch.read.op.rc, t->gone ? RQ_E_CALLER_DISCONNECTED : RQ_OK);
    assert_int_equal(rq_buf_append(&t->log, "", 1), RQ_OK);
    return (const char *)t->log.ptr;
}

static void clear(batch_test *t)
{
    rq_cellblock_clear(&t->out);
    rq_buf_clear(&t->log);
}

/* On a lane, runs end after the iteration; on a separate thread, during it. */
static void parts_are_worked_off_in_order(void **state)
{
    (void)state;
    static const wish first[] = {{'g', "a1", NULL}, {'p', "a2", "x"}, {'i', "b", NULL},
                                 {'i', "b", NULL},  {'g', "b", NULL}, {'d', "a2", ""}};
    static const wish second[] = {{'g', "r1", NULL}, {'p', "r2", "y"}};
    const group groups[] = {
        {"a", false, first, 6}, {NULL, false, first, 6}, {"r", false, second, 2}};
    ops_world *o = ops_world_new(NULL);
    batch_test t = {0};
    assert_string_equal(run(&t, o, o->loop, groups, 3),
                        "got0=2 1/1 2=1 3=2 got4=1 none got0=2 1/5 3/1 ");
    assert_string_equal(run(&t, o, o->own, groups, 3),
                        "got0=2 1/1 2=3 3=4 got4=1 1/5 none got0=2 3/1 ");
    assert_int_equal(ops_stats(o, RQ_OP_BATCH).ops, 2);
    assert_int_equal(ops_stats(o, RQ_OP_BATCH).rows, 16);
    assert_int_equal(ops_stats(o, RQ_OP_GET).ops, 0);
    assert_int_equal(ops_stats(o, RQ_OP_GET).parts, 6);
    assert_int_equal(ops_stats(o, RQ_OP_PUT).parts, 4);
    assert_int_equal(ops_stats(o, RQ_OP_DELETE).parts, 2);
    assert_int_equal(ops_stats(o, RQ_OP_INCREMENT).parts, 4);
    clear(&t);
    ops_world_free(o);
}

static void an_atomic_group_is_one_write(void **state)
{
    (void)state;
    static const wish both[] = {{'p', "r1", "x"}, {'p', "r1", "y"}};
    static const wish refused[] = {{'p', "r2", "x"}, {'!', "r2", NULL}};
    static const wish look[] = {{'g', "r2", NULL}};
    const group groups[] = {
        {"r", true, both, 2}, {"r", true, both, 0}, {"r", true, refused, 2}, {"r", false, look, 1}};
    ops_world *o = ops_world_new(NULL);
    batch_test t = {0};
    rq_ops_seat *seats[] = {o->loop, o->own};
    for (int i = 0; i < 2; i++) /* on a lane, too, the next group of the region waits for its end */
        assert_string_equal(run(&t, o, seats[i], groups, 4),
                            "group!RQ_E_DO_NOT_RETRY all:ok got0=2 ");
    assert_int_equal(ops_stats(o, RQ_OP_MUTATE_ROW).parts, 2);
    clear(&t);
    ops_world_free(o);
}

/* The log's syncs during a batch of `count` groups, all of which succeed. */
static uint64_t syncs_of(batch_test *t, ops_world *o, rq_ops_seat *seat, const group *groups,
                         size_t count)
{
    rq_wal_stats before, after;
    size_t ok = 0;
    rq_wal_get_stats(rq_engine_wal(o->w.engine), &before);
    for (const char *at = run(t, o, seat, groups, count); (at = strstr(at, "all:ok")) != NULL; at++)
        ok++;
    assert_int_equal(ok, count);
    rq_wal_get_stats(rq_engine_wal(o->w.engine), &after);
    return after.syncs - before.syncs;
}

static void atomic_groups_of_a_region_are_synced_together(void **state)
{
    (void)state;
    enum { GROUPS = 40 };
    static wish wishes[GROUPS];
    static const wish again[] = {{'p', "r1", "x"}, {'d', "r1", ""}};
    group groups[GROUPS];
    const group same[] = {{"r", true, again, 1}, {"r", true, again + 1, 1}, {"r", true, again, 2}};
    static const wish elsewhere[] = {{'p', "a1", "x"}};
    const group two[] = {{"r", true, again, 1}, {"a", true, elsewhere, 1}};
    ops_world *o = ops_world_new(NULL);
    batch_test t = {0};
    rq_ops_seat *seats[] = {o->loop, o->own};
    for (size_t i = 0; i < GROUPS; i++) {
        wishes[i] =
            (wish){i % 2 == 0 ? 'p' : 'i', {'s', (char)('0' + i / 10), (char)('0' + i % 10)}, NULL};
        groups[i] = (group){"r", true, &wishes[i], 1};
    }
    assert_int_equal(syncs_of(&t, o, o->loop, two, 2), 1); /* regions do not wait for each other */
    for (int i = 0; i < 2; i++) {
        assert_in_range(syncs_of(&t, o, seats[i], groups, GROUPS), 1, 3);
        assert_int_equal(syncs_of(&t, o, seats[i], same, 3), 3); /* one after another */
        uint64_t blocks, bytes;                                  /* increments wait for blocks */
        ops_flush(o);
        rq_region_evict_blocks(ops_region(o, "r"), &blocks, &bytes);
        assert_in_range(syncs_of(&t, o, seats[i], groups, GROUPS), 1, GROUPS / 2);
    }
    clear(&t);
    ops_world_free(o);
}

/* They are executed in their order, each for itself, also between those of other regions. */
static void a_failed_atomic_group_stops_no_other(void **state)
{
    (void)state;
    static const wish good[] = {{'p', "r1", "x"}}, wrong[] = {{'p', "a1", "x"}},
                      refused[] = {{'!', "r2", NULL}}, last[] = {{'i', "r3x", NULL}};
    static const wish other[] = {{'p', "a2", "y"}};
    const group groups[] = {{"r", true, good, 1},  {"r", true, wrong, 1}, {"r", true, refused, 1},
                            {NULL, true, good, 1}, {"r", true, last, 1},  {"a", true, other, 1},
                            {"r", true, wrong, 1}, {"r", true, last, 1}};
    ops_world *o = ops_world_new(NULL);
    batch_test t = {0};
    rq_ops_seat *seats[] = {o->loop, o->own};
    for (int i = 0; i < 2; i++)
        assert_string_equal(run(&t, o, seats[i], groups, RQ_ARRAY_LEN(groups)),
                            "group!RQ_E_DO_NOT_RETRY none all:ok all:RQ_E_SANITY_CHECK all:ok "
                            "all:ok all:RQ_E_SANITY_CHECK all:ok ");
    clear(&t);
    ops_world_free(o);
}

/* A write that waits for a block lets later writes pass, but not those of its own batch. */
static void changes_of_a_row_keep_their_order(void **state)
{
    (void)state;
    static const uint8_t five[8] = {0, 0, 0, 0, 0, 0, 0, 5};
    static const wish first[] = {{'i', "b50", NULL}};
    static const wish second[] = {{'p', "b50", "x"}};
    const group groups[] = {{"b", true, first, 1}, {"b", false, second, 1}};
    ops_world *o = ops_world_new(NULL);
    batch_test t = {0};
    uint64_t blocks, bytes;
    world *w = &o->w;
    OK(world_put_cell(w, "t", "b50", "f", "q", rq_slice_of(five, sizeof five)));
    OK(world_table(w, RQ_DDL_FLUSH_TABLE, "t"));
    rq_region_evict_blocks(ops_region(o, "b"), &blocks, &bytes);
    assert_string_equal(run(&t, o, o->loop, groups, 2), "all:ok 2/0 ");
    /* With a group of another region between them. The simulation lets only some of the reads wait. Time passes, because an
     * increment's cell is newer than the one that it has read. */
    static const wish between[] = {{'p', "r1", "y"}}, look[] = {{'g', "b50", NULL}};
    const group apart[] = {
        {"b", true, first, 1}, {"r", false, between, 1}, {"b", false, second, 1}};
    const group then = {"b", false, look, 1};
    for (int i = 0; i < 10; i++) {
        rq_sim_advance(w->sim, 1000000000);
        OK(world_put_cell(w, "t", "b50", "f", "q", rq_slice_of(five, sizeof five)));
        rq_sim_advance(w->sim, 1000000000);
        OK(world_table(w, RQ_DDL_FLUSH_TABLE, "t"));
        rq_region_evict_blocks(ops_region(o, "b"), &blocks, &bytes);
        assert_non_null(strstr(run(&t, o, o->loop, apart, 3), "all:ok"));
        run(&t, o, o->loop, &then, 1);
        assert_true(rq_slice_eq(ops_value(&t.out), RQ_SLICE_LIT("x")));
    }
    clear(&t);
    ops_world_free(o);
}

/* A put that cannot be decoded fails the writes collected with it, and no others. */
static void a_refused_put_fails_its_run(void **state)
{
    (void)state;
    static const wish wishes[] = {
        {'p', "a1", "x"}, {'!', "a2", NULL}, {'i', "b", NULL}, {'p', "a3", "z"}, {'g', "a3", NULL}};
    const group groups[] = {{"a", false, wishes, 5}};
    ops_world *o = ops_world_new(NULL);
    batch_test t = {0};
    rq_ops_seat *seats[] = {o->loop, o->own};
    for (int i = 0; i < 2; i++) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, "0:RQ_E_DO_NOT_RETRY 1:RQ_E_DO_NOT_RETRY 2=%d got4=2 1/3 ",
                 i + 1);
        assert_string_equal(run(&t, o, seats[i], groups, 1), wanted);
    }
    assert_int_equal(ops_stats(o, RQ_OP_PUT).parts, 2);
    clear(&t);
    ops_world_free(o);
}

static void other_parts_are_the_callers(void **state)
{
    (void)state;
    static const wish wishes[] = {{'o', "", NULL}, {'g', "a1", NULL}};
    const group groups[] = {{"a", false, wishes, 2}};
    ops_world *o = ops_world_new(NULL);
    batch_test t = {0};
    assert_string_equal(run(&t, o, o->loop, groups, 1), "other got1=2 ");
    assert_string_equal(run(&t, o, o->own, groups, 1), "skip0 0!RQ_E_UNSUPPORTED got1=2 ");
    clear(&t);
    ops_world_free(o);
}

/* Blocks that are not in memory are read while the batch waits. */
static void gets_wait_for_blocks(void **state)
{
    (void)state;
    wish wishes[10];
    const group groups[] = {{"a", false, wishes, 10}};
    ops_world *o = ops_world_new(NULL);
    batch_test t = {0};
    rq_ops_seat *seats[] = {o->loop, o->own};
    for (int i = 0; i < 10; i++)
        wishes[i] = (wish){'g', {'a', (char)('0' + i)}, NULL};
    for (int i = 0; i < 20; i++) {
        uint64_t blocks, bytes;
        rq_region_evict_blocks(ops_region(o, "a"), &blocks, &bytes);
        assert_string_equal(
            run(&t, o, seats[i % 2], groups, 1),
            "got0=2 got1=2 got2=2 got3=2 got4=2 got5=2 got6=2 got7=2 got8=2 got9=2 ");
        assert_int_equal(t.out.count, 20);
    }
    rq_op_stats counted = ops_stats(o, RQ_OP_BATCH);
    assert_true(rq_times_count(&counted.times) > 0);
    assert_int_equal(ops_table_times(o, RQ_OP_BATCH), rq_times_count(&counted.times));
    clear(&t);
    ops_world_free(o);
}

/* Long values are copied on a pool, but not while writes of another group may end. */
static void long_values_come_in_order(void **state)
{
    (void)state;
    static const wish first[] = {{'p', "a2", "x"}, {'g', "a1", NULL}, {'p', "a3", "x"}};
    static const wish second[] = {
        {'g', "r1", NULL}, {'g', "r2", NULL}, {'g', "r3", NULL}, {'p', "r4", "x"}};
    const group groups[] = {{"a", false, first, 3}, {"r", false, second, 4}};
    ops_world *o = ops_world_new(NULL);
    batch_test t = {0};
    ops_put_long(o, "a1", OPS_LONG);
    ops_put_long(o, "r1", OPS_LONG);
    ops_put_long(o, "r3", OPS_LONG);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(run(&t, o, i % 2 == 0 ? o->loop : o->own, groups, 2),
                            "got1=2 1/0 1/2 got0=2 got1=2 got2=2 2/3 ");
        assert_true(t.out.bytes.len > 3 * OPS_LONG);
        if (i % 2 == 0) assert_true(t.batch.read.op.has_waited);
        ops_flush(o);
    }
    clear(&t);
    ops_world_free(o);
}

/* The connection is closed when the batch has waited: the batch skips its further gets, but
 * completes its writes. */
static void gets_of_a_caller_that_has_gone_are_left_out(void **state)
{
    (void)state;
    static const wish wishes[] = {{'g', "r2", NULL}, {'g', "r1", NULL}, {'p', "r2", "x"},
                                  {'g', "r3", NULL}, {'i', "s", NULL},  {'g', "r4", NULL}};
    const group groups[] = {{"r", false, wishes, 6}};
    ops_world *o = ops_world_new(NULL);
    batch_test t = {.counts_waits = true, .gone = true};
    ops_put_long(o, "r1", OPS_LONG);
    assert_string_equal(run(&t, o, o->loop, groups, 1),
                        "got0=2 1!RQ_E_CALLER_DISCONNECTED skip3 1/2 4=1 skip5 ");
    assert_int_equal(ops_stats(o, RQ_OP_GET).parts, 1);
    clear(&t);
    ops_world_free(o);
}

/* Rows in separate blocks: while the batch waits for the first block, most others are read, too. A
 * refused part and an absent row between them make no difference. */
static void gets_wait_together(void **state)
{
    (void)state;
    enum { ROWS = 40, VALUE = 40000, ROUNDS = 20 };
    static uint8_t value[VALUE];
    wish wishes[ROWS];
    char row[4], wanted[1024] = "";
    const group groups[] = {{"b", false, wishes, ROWS}};
    ops_world *o = ops_world_new(NULL);
    world *w = &o->w;
    batch_test t = {.counts_waits = true};
    for (int i = 0; i < ROWS; i++) {
        size_t len = strlen(wanted);
        snprintf(row, sizeof row, "b%02d", i);
        if (i != 7) OK(world_put_cell(w, "t", row, "f", "q", rq_slice_of(value, sizeof value)));
        wishes[i] = (wish){'g', "", NULL};
        memcpy(wishes[i].row, row, sizeof row);
        snprintf(wanted + len, sizeof wanted - len, "got%d=%d ", i, i == 7 ? 0 : 1);
    }
    OK(world_table(w, RQ_DDL_FLUSH_TABLE, "t"));
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t blocks, bytes;
        rq_region_evict_blocks(ops_region(o, "b"), &blocks, &bytes);
        assert_string_equal(run(&t, o, o->loop, groups, 1), wanted);
        assert_int_equal(t.out.count, ROWS - 1);
        rq_cell cell;
        rq_cursor c = rq_cursor_of(rq_buf_slice(&t.out.bytes));
        for (int at = 0; at < ROWS; at++) {
            if (at == 7) continue;
            snprintf(row, sizeof row, "b%02d", at);
            assert_int_equal(rq_cellblock_next(&c, &cell, NULL), RQ_OK);
            assert_true(rq_slice_eq(rq_cell_row(&cell), rq_slice_cstr(row)));
        }
    }
    /* Half of the attempts to read a block fail: one block after the other would take 20 waits per
     * round. */
    assert_in_range(t.waits, ROUNDS / 2, ROUNDS * 8);
    clear(&t);
    ops_world_free(o);
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The words of a text in ascending order. The caller frees the result. */
static char *sorted_words(const char *text)
{
    char *copy = strdup(text), *ret = calloc(1, strlen(text) + 2), *next = NULL, *at = ret;
    char *words[2 * PARTS_MAX];
    size_t count = 0;
    for (char *w = strtok_r(copy, " ", &next); w != NULL; w = strtok_r(NULL, " ", &next)) {
        assert_true(count < RQ_ARRAY_LEN(words));
        words[count++] = w;
    }
    qsort(words, count, sizeof *words, compare_words);
    for (size_t i = 0; i < count; i++)
        at += sprintf(at, "%s ", words[i]);
    free(copy);
    return ret;
}

/* If memory does not suffice for all writes of a group, they are done in parts with the same
 * results. The caller keeps results until the batch ends. */
static void a_batch_without_memory_is_done_in_parts(void **state)
{
    (void)state;
    static wish wishes[PARTS_MAX];
    static const wish few[] = {{'p', "r1", "x"}, {'p', "r2", "y"}};
    const group groups[] = {
        {"r", false, wishes, PARTS_MAX}, {"r", false, few, 2}, {"a", false, few, 0}};
    ops_world *o = ops_world_new(NULL);
    rq_ops_seat *seats[] = {o->loop, o->own};
    for (int i = 0; i < PARTS_MAX; i++)
        wishes[i] = (wish){'p', {'r', (char)('a' + i % 7)}, "v"};
    wishes[198].what = 'g';
    for (int i = 0; i < 2; i++) {
        batch_test roomy = {0}, t = {.is_tight = true};
        wishes[49] = wishes[99] = (wish){'i', {'r', (char)('w' + 2 * i)}, NULL};
        char *wanted = strdup(run(&roomy, o, seats[i], groups, 3));
        wishes[49] = wishes[99] = (wish){'i', {'r', (char)('x' + 2 * i)}, NULL};
        const char *got = run(&t, o, seats[i], groups, 3);
        assert_true(t.refused > 0);
        if (strstr(got, "RQ_E") != NULL) fail_msg("%s", got);
        /* When runs are smaller, results of gets come at other places among those of writes. */
        char *sorted = sorted_words(got), *sorted_wanted = sorted_words(wanted);
        assert_string_equal(sorted, sorted_wanted);
        free(sorted);
        free(sorted_wanted);
        free(wanted);
        clear(&roomy);
        clear(&t);
    }
    ops_world_free(o);
}

/* Many groups whose writes cannot be decoded end one after another, without recursion. */
static void refused_writes_without_memory_end_too(void **state)
{
    (void)state;
    enum { GROUPS = 20000 };
    static const wish refused[] = {{'!', "r1", NULL}};
    static group groups[GROUPS];
    ops_world *o = ops_world_new(NULL);
    rq_ops_seat *seats[] = {o->loop, o->own};
    for (size_t i = 0; i < GROUPS; i++)
        groups[i] = (group){"r", false, refused, 1};
    for (int i = 0; i < 2; i++) {
        batch_test t = {.is_tight = true};
        size_t count = 0;
        for (const char *at = run(&t, o, seats[i], groups, GROUPS);
             (at = strstr(at, "RQ_E_DO_NOT_RETRY")) != NULL; at++)
            count++;
        assert_int_equal(count, GROUPS);
        clear(&t);
    }
    ops_world_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_worked_off_in_order),
        cmocka_unit_test(an_atomic_group_is_one_write),
        cmocka_unit_test(atomic_groups_of_a_region_are_synced_together),
        cmocka_unit_test(a_failed_atomic_group_stops_no_other),
        cmocka_unit_test(changes_of_a_row_keep_their_order),
        cmocka_unit_test(a_refused_put_fails_its_run),
        cmocka_unit_test(other_parts_are_the_callers),
        cmocka_unit_test(gets_wait_for_blocks),
        cmocka_unit_test(long_values_come_in_order),
        cmocka_unit_test(gets_of_a_caller_that_has_gone_are_left_out),
        cmocka_unit_test(gets_wait_together),
        cmocka_unit_test(a_batch_without_memory_is_done_in_parts),
        cmocka_unit_test(refused_writes_without_memory_end_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
