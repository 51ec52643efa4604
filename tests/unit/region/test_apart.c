/* SPDX-License-Identifier: Apache-2.0 */
/* Ops whose reads take long, here because the disk does not respond: other writes to the region continue, writes to
 * the op's rows wait, and the op is atomic. */
#include "fixture.h"

#include "filter/filter.h"
#include "filter/language.h"
#include "hfile/writer.h"
#include "region/apart.h"
#include "region/bulk_load.h"
#include "region/engine_priv.h"
#include "region/write_priv.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum {
    COLUMNS = 6000,   /* about 250 blocks */
    FREE_READS = 100, /* more than RUNS_LOST_MAX in write.c: the op reads apart */
    OTHERS_MAX = 4
};

/* A write on a separate thread; with `gone`, on a lane. */
typedef struct other {
    struct apart_world *world;
    pthread_t thread;
    const _Atomic bool *gone;
    rq_write write;
    rq_task task;
    rq_latch latch;
    rq_row_op op;
    rq_mutation mutation;
    rq_cell cell;
    rq_err rc;
    rq_error why;
    _Atomic bool done;
} other;

typedef struct apart_world {
    real_env real;
    fixture f;
    rq_err (*read)(rq_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len, rq_error *why);
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned reads;                 /* protected by lock */
    bool gate;                      /* protected by lock: reads beyond FREE_READS wait */
    bool is_waiting;                /* protected by lock: a read waits */
    uint64_t waits_at, waits_below; /* protected by lock: offsets in the file */
    pthread_t main;                 /* reads of this thread do not wait */
    /* protected by lock: the test's other writes did not end while a read waited */
    bool gave_up;
    other others[OTHERS_MAX];
    other op; /* the op with many reads */
    rq_cell cells[COLUMNS];
    char qualifiers[COLUMNS][8];
} apart_world;

/* global, because file functions have no other argument for the test */
static apart_world *the_world;

static rq_err try_nothing(rq_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len)
{
    (void)f, (void)buf, (void)len, (void)off, (void)ret_len;
    return RQ_E_AGAIN;
}

/* Long enough for a busy machine; only a failing test waits that long. */
static struct timespec far_from_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += 20;
    return t;
}

static rq_err read_at_gate(rq_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len,
                           rq_error *why)
{
    apart_world *w = the_world;
    struct timespec until = far_from_now();
    pthread_mutex_lock(&w->lock);
    if (w->gate && off < w->waits_below && !pthread_equal(pthread_self(), w->main) &&
        ++w->reads > FREE_READS) {
        w->is_waiting = true;
        w->waits_at = off;
        pthread_cond_broadcast(&w->changed);
        while (w->gate && off < w->waits_below && !w->gave_up)
            if (pthread_cond_timedwait(&w->changed, &w->lock, &until) != 0) w->gave_up = true;
    }
    pthread_mutex_unlock(&w->lock);
    return w->read(f, buf, len, off, ret_len, why);
}

static void set_gate(apart_world *w, bool closed)
{
    pthread_mutex_lock(&w->lock);
    w->gate = closed;
    w->reads = 0;
    w->is_waiting = false;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void wait_for_reader(apart_world *w)
{
    struct timespec until = far_from_now();
    bool in_time = true;
    pthread_mutex_lock(&w->lock);
    while (!w->is_waiting && in_time)
        in_time = pthread_cond_timedwait(&w->changed, &w->lock, &until) == 0;
    pthread_mutex_unlock(&w->lock);
    assert_true(in_time);
}

static const uint8_t one_long[8] = {0, 0, 0, 0, 0, 0, 0, 1};

static void list_columns(apart_world *w)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        snprintf(w->qualifiers[i], sizeof w->qualifiers[i], "%05zu", i);
        w->cells[i] = cell_of("a", w->qualifiers[i], RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, "");
        w->cells[i].value = one_long;
        w->cells[i].value_len = sizeof one_long;
    }
}

static rq_mutation increment_all(apart_world *w, const char *row)
{
    return (rq_mutation){.type = RQ_MUTATE_INCREMENT,
                         .row = rq_slice_cstr(row),
                         .cells = w->cells,
                         .cell_count = COLUMNS};
}

/* Writes rows `row` and `other` to a file of small blocks; no cache keeps blocks, and the disk has
 * no page cache. */
static void fill(apart_world *w)
{
    bool flushed;
    static const char *const rows[] = {"row", "other"};
    list_columns(w);
    for (size_t k = 0; k < 2; k++) {
        rq_mutation all = increment_all(w, rows[k]);
        rq_row_op op = {.mutations = &all, .mutation_count = 1};
        assert_ok(rq_region_write_sync(w->f.region, &op, 1, NULL));
        rq_row_op_clear(&op);
    }
    assert_ok(rq_region_flush(w->f.region, (rq_slice){0}, &flushed, NULL));
    w->read = w->real.env.vfs->read;
    w->real.env.vfs->read = read_at_gate;
    w->real.env.vfs->try_read = try_nothing;
}

static int begin_with(void **state, const char *const *settings)
{
    static const family_def one[] = {{"a", {"BLOCKSIZE", "1024", "BLOCKCACHE", "false", NULL}}};
    apart_world *w = the_world = calloc(1, sizeof *w);
    assert_non_null(w);
    w->main = pthread_self();
    w->waits_below = UINT64_MAX;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    real_env_open(&w->real);
    fixture_open_with(&w->f, &w->real.env, one, 1, settings);
    fill(w);
    *state = w;
    return 0;
}

static int begin(void **state)
{
    static const char *const settings[] = {NULL};
    return begin_with(state, settings);
}

static int begin_impatient(void **state)
{
    static const char *const settings[] = {"hbase.rowlock.wait.duration=0", NULL};
    return begin_with(state, settings);
}

static int end(void **state)
{
    apart_world *w = *state;
    w->real.env.vfs->read = w->read;
    fixture_close(&w->f);
    real_env_close(&w->real);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return 0;
}

/* --- ops on threads ----------------------------------------------------------------------------- */

static void open_latch(rq_write *write)
{
    other *o = RQ_CONTAINER_OF(write, other, write);
    o->world->real.env.executor->latch_open(&o->latch, RQ_OK);
}

static void begin_write(rq_task *task)
{
    other *o = RQ_CONTAINER_OF(task, other, task);
    rq_region_write(o->world->f.region, &o->write);
}

/* Writes as a loop does, for a client that may disconnect. */
static rq_err write_on_lane(other *o)
{
    apart_world *w = o->world;
    rq_executor *ex = w->real.env.executor;
    rq_lane *lane = NULL;
    o->write = (rq_write){.ops = &o->op, .op_count = 1, .gone = o->gone, .done = open_latch};
    o->task.run = begin_write;
    RQ_ASSERT(ex->lane_new(ex, "other", &lane) == RQ_OK);
    RQ_ASSERT(rq_writer_new(w->f.engine, lane, &o->write.writer) == RQ_OK);
    ex->latch_init(ex, &o->latch);
    rq_lane_post(lane, &o->task);
    RQ_ASSERT(ex->latch_wait(&o->latch) == RQ_OK);
    ex->latch_destroy(&o->latch);
    ex->lane_free(ex, lane);
    rq_writer_free(o->write.writer);
    return o->op.rc;
}

static void *run_other(void *arg)
{
    other *o = arg;
    rq_error_clear(&o->why);
    o->rc = o->gone != NULL ? write_on_lane(o)
                            : rq_region_write_sync(o->world->f.region, &o->op, 1, &o->why);
    rq_row_op_clear(&o->op);
    atomic_store(&o->done, true);
    return NULL;
}

static void start(apart_world *w, other *o)
{
    o->world = w;
    o->op.mutations = &o->mutation;
    o->op.mutation_count = 1;
    assert_int_equal(pthread_create(&o->thread, NULL, run_other, o), 0);
}

static void join(other *o)
{
    assert_int_equal(pthread_join(o->thread, NULL), 0);
}

/* An increment of many columns of `row`, which reads many blocks. When this returns the increment
 * waits at the gate. */
static void start_long(apart_world *w)
{
    w->op.mutation = increment_all(w, "row");
    set_gate(w, true);
    start(w, &w->op);
    wait_for_reader(w);
}

static other *start_increment(apart_world *w, size_t n, const char *row, const char *qualifier)
{
    other *o = &w->others[n];
    o->cell = cell_of("a", qualifier, RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, "");
    o->cell.value = one_long;
    o->cell.value_len = sizeof one_long;
    o->mutation = (rq_mutation){
        .type = RQ_MUTATE_INCREMENT, .row = rq_slice_cstr(row), .cells = &o->cell, .cell_count = 1};
    start(w, o);
    return o;
}

/* Ensures that the token's holder has processed everything enqueued before, by a put to another row
 * of the region. */
static void pass_the_token(apart_world *w)
{
    assert_ok(put(&w->f, "third", "a", "q", RQ_TIMESTAMP_LATEST, "value"));
}

static bool gave_up(apart_world *w)
{
    pthread_mutex_lock(&w->lock);
    bool gave_up = w->gave_up;
    pthread_mutex_unlock(&w->lock);
    return gave_up;
}

static void other_rows_are_written_while_an_op_reads(void **state)
{
    apart_world *w = *state;
    start_long(w);
    for (int i = 0; i < 3; i++)
        pass_the_token(w);
    assert_ok(increment(&w->f, "fourth", "a", "q", 1, 0, NULL));
    assert_false(atomic_load(&w->op.done));
    assert_false(gave_up(w));
    set_gate(w, false);
    join(&w->op);
    assert_ok(w->op.rc);
    assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[0]), 2);
    assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[COLUMNS - 1]), 2);
}

/* Each of these ops sees the effect of the ops before it. */
static void writes_to_the_same_row_wait(void **state)
{
    apart_world *w = *state;
    start_long(w);
    for (size_t i = 0; i < OTHERS_MAX; i++)
        (void)start_increment(w, i, "row", w->qualifiers[i % 2]);
    pass_the_token(w);
    for (size_t i = 0; i < OTHERS_MAX; i++)
        assert_false(atomic_load(&w->others[i].done));
    assert_false(gave_up(w));
    set_gate(w, false);
    join(&w->op);
    for (size_t i = 0; i < OTHERS_MAX; i++) {
        join(&w->others[i]);
        assert_ok(w->others[i].rc);
    }
    assert_ok(w->op.rc);
    assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[0]), 4);
    assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[1]), 4);
    assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[2]), 2);
}

/* The op ends at its next check, without any effect; writes that wait for its row continue. */
static void an_op_without_a_waiter_ends(void **state)
{
    apart_world *w = *state;
    _Atomic bool gone = false;
    w->op.gone = &gone;
    start_long(w);
    other *o = start_increment(w, 0, "row", w->qualifiers[0]);
    pass_the_token(w);
    atomic_store(&gone, true);
    set_gate(w, false);
    join(&w->op);
    join(o);
    assert_err(w->op.rc, RQ_E_CALLER_DISCONNECTED);
    assert_ok(o->rc);
    assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[0]), 2);
    assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[1]), 1);
}

/* An op that waits for a locked row is ended by the engine's tick, without any effect, while the
 * row is still locked. */
static void a_wait_for_a_row_ends_with_its_client(void **state)
{
    apart_world *w = *state;
    _Atomic bool gone = false, stays = false;
    start_long(w);
    w->others[0].gone = &gone;
    w->others[1].gone = &stays;
    for (size_t i = 0; i < 2; i++)
        (void)start_increment(w, i, "row", w->qualifiers[0]);
    while (atomic_load(&w->f.engine->row_waits) < 2)
        sched_yield();
    atomic_store(&gone, true);
    join(&w->others[0]);
    assert_err(w->others[0].rc, RQ_E_CALLER_DISCONNECTED);
    assert_false(gave_up(w));
    assert_false(atomic_load(&w->op.done));
    assert_false(atomic_load(&w->others[1].done));
    set_gate(w, false);
    join(&w->op);
    join(&w->others[1]);
    assert_ok(w->op.rc);
    assert_ok(w->others[1].rc);
    assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[0]), 3);
}

static void a_write_does_not_wait_for_a_row_for_ever(void **state)
{
    apart_world *w = *state;
    start_long(w);
    other *o = start_increment(w, 0, "row", w->qualifiers[0]);
    join(o); /* the engine's tick ends it */
    assert_err(o->rc, RQ_E_IOEXCEPTION);
    assert_non_null(strstr(o->why.message, "Timed out waiting for lock for row: row in region "));
    assert_false(gave_up(w));
    set_gate(w, false);
    join(&w->op);
    assert_ok(w->op.rc);
    assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[0]), 2);
}

/* An op of a batch that has waited too long fails alone. */
static void the_ops_behind_a_wait_are_done(void **state)
{
    apart_world *w = *state;
    static const char *const rows[] = {"third", "row", "fourth"};
    enum { OPS = RQ_ARRAY_LEN(rows) };
    rq_cell cell = cell_of("a", "q", RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, "x");
    rq_mutation mutations[OPS];
    rq_row_op ops[OPS] = {0};
    rq_error why;
    for (size_t i = 0; i < OPS; i++) {
        mutations[i] = (rq_mutation){
            .type = RQ_MUTATE_PUT, .row = rq_slice_cstr(rows[i]), .cells = &cell, .cell_count = 1};
        ops[i].mutations = &mutations[i];
        ops[i].mutation_count = 1;
    }
    rq_error_clear(&why);
    start_long(w);
    assert_err(rq_region_write_sync(w->f.region, ops, OPS, &why), RQ_E_IOEXCEPTION);
    for (size_t i = 0; i < OPS; i++)
        assert_err(ops[i].rc, i == 1 ? RQ_E_IOEXCEPTION : RQ_OK);
    assert_false(gave_up(w));
    set_gate(w, false);
    join(&w->op);
    assert_ok(w->op.rc);
}

typedef struct late_increment {
    apart_world *world;
    rq_cell put, n;
    rq_mutation mutations[2];
    rq_mutation behind[2];
    rq_cell big;
    rq_row_op ops[2];
    pthread_t thread;
    rq_err rc;
} late_increment;

static void *run_late(void *arg)
{
    late_increment *l = arg;
    rq_error why;
    rq_error_clear(&why);
    l->rc = rq_region_write_sync(l->world->f.region, l->ops, 2, &why);
    return NULL;
}

/* A put that waits, and an increment of another row behind it. */
static void start_late(apart_world *w, late_increment *l)
{
    l->world = w;
    l->put = cell_of("a", "q", RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, "x");
    l->n = cell_of("a", "n", RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, "");
    l->n.value = one_long;
    l->n.value_len = sizeof one_long;
    l->mutations[0] = (rq_mutation){
        .type = RQ_MUTATE_PUT, .row = RQ_SLICE_LIT("row"), .cells = &l->put, .cell_count = 1};
    l->mutations[1] = (rq_mutation){.type = RQ_MUTATE_INCREMENT,
                                    .row = RQ_SLICE_LIT("fourth"),
                                    .cells = &l->n,
                                    .cell_count = 1};
    for (size_t i = 0; i < 2; i++) {
        l->ops[i].mutations = &l->mutations[i];
        l->ops[i].mutation_count = 1;
    }
    if (l->behind[0].cell_count > 0) {
        l->ops[1] = (rq_row_op){.mutations = l->behind, .mutation_count = 2, .multi_row = true};
    }
    assert_int_equal(pthread_create(&l->thread, NULL, run_late, l), 0);
    while (atomic_load(&w->f.engine->row_waits) < 1)
        sched_yield();
}

/* Otherwise what was deleted meanwhile would hide its cell. */
static void an_op_behind_a_wait_has_the_time_of_its_execution(void **state)
{
    apart_world *w = *state;
    late_increment l = {0};
    rq_cell marker = cell_of("a", "n", RQ_TIMESTAMP_LATEST, RQ_TYPE_DELETE_COLUMN, "");
    rq_mutation m = {
        .type = RQ_MUTATE_DELETE, .row = RQ_SLICE_LIT("fourth"), .cells = &marker, .cell_count = 1};
    rq_row_op op = {.mutations = &m, .mutation_count = 1};
    rq_executor *ex = w->real.env.executor;
    rq_error why;
    rq_error_clear(&why);
    start_long(w);
    start_late(w, &l);
    rq_region_raise_clock(w->f.region, ex->now_ms(ex) + 1000000);
    assert_ok(rq_region_write_sync(w->f.region, &op, 1, &why));
    rq_region_raise_clock(w->f.region, ex->now_ms(ex) + 2000000);
    assert_false(gave_up(w));
    set_gate(w, false);
    join(&w->op);
    assert_int_equal(pthread_join(l.thread, NULL), 0);
    assert_ok(w->op.rc);
    assert_ok(l.rc);
    assert_int_equal(get_long(&w->f, "fourth", "a", "n"), 1);
    for (size_t i = 0; i < 2; i++)
        rq_row_op_clear(&l.ops[i]);
}

/* Reads of the row `row` go on; those of `other`, which the file has first, wait. */
static void move_gate_to_first_row(apart_world *w)
{
    pthread_mutex_lock(&w->lock);
    w->waits_below = w->waits_at / 3 * 2;
    w->reads = 0;
    w->is_waiting = false;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* A put that has waited for its row, and behind it in the batch an increment of another row with many reads: the increment
 * locks its own row, and another increment of that row is not lost. */
static void an_op_behind_a_wait_locks_its_own_row(void **state)
{
    apart_world *w = *state;
    enum { BIG = 300 * 1024 }; /* the read of it does not end under the token */
    late_increment l = {0};
    uint8_t *value = calloc(1, BIG);
    assert_non_null(value);
    l.big = cell_of("a", "big", RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, "");
    l.big.value = value;
    l.big.value_len = BIG;
    rq_mutation put_big = {
        .type = RQ_MUTATE_PUT, .row = RQ_SLICE_LIT("third"), .cells = &l.big, .cell_count = 1};
    rq_row_op op = {.mutations = &put_big, .mutation_count = 1};
    assert_ok(rq_region_write_sync(w->f.region, &op, 1, NULL));
    l.big.value_len = 1;
    l.behind[0] = put_big;
    l.behind[0].type = RQ_MUTATE_APPEND;
    l.behind[1] = increment_all(w, "other");
    start_long(w);
    start_late(w, &l);
    move_gate_to_first_row(w);
    join(&w->op);
    wait_for_reader(w);
    other *o = start_increment(w, 0, "other", w->qualifiers[0]);
    while (atomic_load(&w->f.engine->row_waits) < 1 && !atomic_load(&o->done))
        sched_yield();
    assert_false(gave_up(w));
    set_gate(w, false);
    join(o);
    assert_int_equal(pthread_join(l.thread, NULL), 0);
    assert_ok(w->op.rc);
    assert_ok(l.rc);
    assert_ok(o->rc);
    assert_int_equal(get_long(&w->f, "other", "a", w->qualifiers[0]), 3);
    for (size_t i = 0; i < 2; i++)
        rq_row_op_clear(&l.ops[i]);
    rq_row_op_clear(&op);
    free(value);
}

/* --- expired waits among young ones ------------------------------------------------------------- */

enum { WAITS = 20000, OLD_NS = 5, YOUNG_NS = 10 };

typedef struct wait_list {
    rq__work work;
    rq_latch latch;
    rq_executor *executor;
    rq_row_op op;
    rq_mutation mutation;
    rq_write *writes;
    size_t expired, young;
    uint64_t steps;
    bool in_order;
} wait_list;

static size_t count_taken(wait_list *l, rq_write *first)
{
    size_t n = 0;
    for (rq_write *w = first; w != NULL; w = w->next, n++)
        l->in_order &= w->next == NULL || w->next > w;
    return n;
}

/* REQUIRES: the token. Every second wait has expired, as after several ops that locked the row one after another. */
static void take_expired_waits(rq_region *r, rq__work *work)
{
    wait_list *l = RQ_CONTAINER_OF(work, wait_list, work);
    for (size_t i = 0; i < WAITS; i++) {
        l->writes[i].ops = &l->op;
        rq__batch_of(&l->writes[i])->waits_since_ns = i % 2 == 0 ? OLD_NS : YOUNG_NS;
        RQ_ASSERT(rq__row_locks_wait(r, &l->op, &l->writes[i]) == RQ_OK);
    }
    l->in_order = true;
    uint64_t before = r->meter.steps;
    l->expired = count_taken(l, rq__apart_take_expired(r, OLD_NS));
    l->steps = r->meter.steps - before;
    l->young = count_taken(l, rq__apart_take_expired(r, YOUNG_NS));
    l->executor->latch_open(&l->latch, RQ_OK);
}

static void expired_waits_are_found_in_one_pass(void **state)
{
    apart_world *w = *state;
    wait_list l = {.work.run = take_expired_waits, .executor = w->real.env.executor};
    l.writes = calloc(WAITS, sizeof *l.writes);
    assert_non_null(l.writes);
    l.mutation = (rq_mutation){.type = RQ_MUTATE_PUT, .row = rq_slice_cstr("row")};
    l.op = (rq_row_op){.mutations = &l.mutation, .mutation_count = 1};
    start_long(w);
    l.executor->latch_init(l.executor, &l.latch);
    rq__region_enqueue_here(w->f.region, &l.work);
    assert_ok(l.executor->latch_wait(&l.latch));
    l.executor->latch_destroy(&l.latch);
    assert_int_equal(l.expired, WAITS / 2);
    assert_int_equal(l.young, WAITS / 2);
    assert_true(l.in_order);
    assert_true(l.steps <= 2 * WAITS);
    assert_int_equal(atomic_load(&w->f.engine->row_waits), 0);
    set_gate(w, false);
    join(&w->op);
    free(l.writes);
}

/* --- turns -------------------------------------------------------------------------------------- */

/* Each op that waits is woken once, whatever the number of the others: all of them lock the row in turn. */
static void an_unlocked_row_wakes_one_op(void **state)
{
    enum { WAITING = 24 };
    apart_world *w = *state;
    other *waiting = calloc(WAITING, sizeof *waiting);
    assert_non_null(waiting);
    start_long(w);
    for (size_t i = 0; i < WAITING; i++) {
        waiting[i].mutation = increment_all(w, "row");
        start(w, &waiting[i]);
    }
    while (atomic_load(&w->f.engine->row_waits) < WAITING)
        sched_yield();
    assert_false(gave_up(w));
    set_gate(w, false);
    join(&w->op);
    assert_ok(w->op.rc);
    for (size_t i = 0; i < WAITING; i++) {
        join(&waiting[i]);
        assert_ok(waiting[i].rc);
    }
    assert_int_equal(w->f.region->row_locks.wakes, WAITING);
    assert_int_equal(w->f.region->row_locks.count, 0);
    assert_null(w->f.region->row_locks.buckets);
    assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[COLUMNS - 1]), WAITING + 2);
    free(waiting);
}

/* The appends of several clients, each sent when the one before it waits, are applied in this order. */
static void ops_have_their_turns_in_order(void **state)
{
    enum { WAITING = 16 };
    apart_world *w = *state;
    other *waiting = calloc(WAITING, sizeof *waiting);
    static const char letters[WAITING + 1] = "abcdefghijklmnop";
    assert_non_null(waiting);
    start_long(w);
    for (size_t i = 0; i < WAITING; i++) {
        other *o = &waiting[i];
        o->cell = cell_of("a", "text", RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, "");
        o->cell.value = (const uint8_t *)&letters[i];
        o->cell.value_len = 1;
        o->mutation = (rq_mutation){.type = RQ_MUTATE_APPEND,
                                    .row = RQ_SLICE_LIT("row"),
                                    .cells = &o->cell,
                                    .cell_count = 1};
        start(w, o);
        while (atomic_load(&w->f.engine->row_waits) < i + 1)
            sched_yield();
    }
    set_gate(w, false);
    join(&w->op);
    for (size_t i = 0; i < WAITING; i++) {
        join(&waiting[i]);
        assert_ok(waiting[i].rc);
    }
    assert_int_equal(w->f.region->row_locks.wakes, WAITING);
    assert_string_equal(get(&w->f, "row", "a", "text"), letters);
    free(waiting);
}

/* --- writes of several rows ---------------------------------------------------------------------- */

enum { TURNS = 5 };

/* Writes that do nothing; what they need is in `rows`. */
typedef struct turns {
    rq__work work;
    rq_latch latch;
    rq_executor *executor;
    rq_mutation mutations[TURNS][2];
    rq_row_op ops[TURNS];
    rq_write writes[TURNS];
    char ran[TURNS + 1]; /* digits of the writes, in the order in which they were woken */
    bool kept_out, kept_in;
} turns;

/* global, because a piece of work has no other argument for the test; token */
static turns *the_turns;

static void run_woken(rq_region *r, rq__work *work)
{
    rq_write *w = rq__write_of(RQ_CONTAINER_OF(work, rq__batch, list.work));
    the_turns->ran[strlen(the_turns->ran)] = (char)('0' + (w - the_turns->writes));
    rq__row_locks_free(r, rq__batch_of(w)->rows);
}

static bool are_free(rq_region *r, turns *t, size_t i)
{
    return rq__row_locks_are_free(r, &t->ops[i], &t->writes[i]);
}

static void wait_for_rows(rq_region *r, turns *t, size_t i)
{
    RQ_ASSERT(rq__row_locks_wait(r, &t->ops[i], &t->writes[i]) == RQ_OK);
}

static void run_turns(apart_world *w, turns *t, const char *const rows[TURNS],
                      void (*run)(rq_region *, rq__work *))
{
    *t = (turns){.work.run = run, .executor = w->real.env.executor};
    the_turns = t;
    for (size_t i = 0; i < TURNS; i++) {
        for (size_t k = 0; k < 2; k++)
            t->mutations[i][k] =
                (rq_mutation){.type = RQ_MUTATE_PUT, .row = rq_slice_of(rows[i] + k, 1)};
        t->ops[i] = (rq_row_op){
            .mutations = t->mutations[i], .mutation_count = strlen(rows[i]), .multi_row = true};
        t->writes[i] = (rq_write){.ops = &t->ops[i], .op_count = 1};
        *rq__batch_of(&t->writes[i]) =
            (rq__batch){.region = w->f.region, .list.work.run = run_woken};
    }
    t->executor->latch_init(t->executor, &t->latch);
    rq__region_enqueue_here(w->f.region, &t->work);
    assert_ok(t->executor->latch_wait(&t->latch));
    t->executor->latch_destroy(&t->latch);
    pass_the_token(w);
    assert_int_equal(w->f.region->row_locks.count, 0);
    assert_null(w->f.region->row_locks.buckets);
    assert_int_equal(atomic_load(&w->f.engine->row_waits), 0);
}

static void take_turns(rq_region *r, rq__work *work)
{
    turns *t = RQ_CONTAINER_OF(work, turns, work);
    rq__row_set *set = rq__row_locks_take(r, &t->ops[0], &t->writes[0]);
    RQ_ASSERT(set != NULL);
    for (size_t i = 1; i < TURNS - 1; i++)
        wait_for_rows(r, t, i);
    rq__row_locks_free(r, set);
    /* The second write has the row, although it has not run yet: the last one must not overtake it. */
    t->kept_out = !are_free(r, t, TURNS - 1);
    t->kept_in = are_free(r, t, 1);
    wait_for_rows(r, t, TURNS - 1);
    t->executor->latch_open(&t->latch, RQ_OK);
}

static void a_write_that_arrives_overtakes_nobody(void **state)
{
    static const char *const rows[TURNS] = {"x", "x", "x", "x", "x"};
    turns t;
    run_turns(*state, &t, rows, take_turns);
    assert_true(t.kept_out);
    assert_true(t.kept_in);
    assert_string_equal(t.ran, "1234");
}

/* Each has rows that others need in another order; a write of a single row waits for those that came before it. */
static void writes_of_several_rows_have_their_turns(void **state)
{
    static const char *const rows[TURNS] = {"xy", "yx", "xy", "yz", "z"};
    turns t;
    run_turns(*state, &t, rows, take_turns);
    assert_string_equal(t.ran, "3142");
}

static void *close_region(void *arg)
{
    apart_world *w = arg;
    assert_ok(rq_region_close(w->f.region, false, NULL));
    return NULL;
}

/* The op ends at its next check, without any effect; writes that wait for its row end, too. */
static void a_region_closes_while_an_op_reads(void **state)
{
    apart_world *w = *state;
    pthread_t closer;
    start_long(w);
    other *o = start_increment(w, 0, "row", w->qualifiers[0]);
    assert_int_equal(pthread_create(&closer, NULL, close_region, w), 0);
    while (!rq_region_is_closing(w->f.region))
        sched_yield();
    set_gate(w, false);
    join(&w->op);
    join(o);
    assert_int_equal(pthread_join(closer, NULL), 0);
    assert_err(w->op.rc, RQ_E_NOT_SERVING_REGION);
    assert_err(o->rc, RQ_E_NOT_SERVING_REGION);
    fixture_stop(&w->f, true);
    fixture_start(&w->f);
    assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[0]), 1);
}

/* A retry of the op with its nonce, sent before the first attempt has ended, is not applied
 * again. */
static void a_repetition_waits_for_the_first_one(void **state)
{
    apart_world *w = *state;
    w->op.op.nonce = 7;
    start_long(w);
    other *o = &w->others[0];
    o->mutation = w->op.mutation;
    o->op.nonce = 7;
    start(w, o);
    pass_the_token(w);
    set_gate(w, false);
    join(&w->op);
    join(o);
    assert_ok(w->op.rc);
    assert_ok(o->rc);
    assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[0]), 2);
}

/* Bulk loads the last column of `row` with value 256. */
static void load_last_column(apart_world *w)
{
    static const uint8_t value[8] = {0, 0, 0, 0, 0, 0, 1, 0};
    static const char path[] = "loaded";
    enum { IN_YEAR_2100 = 410244480 };
    bool loaded;
    rq_hfile_options o = rq_hfile_options_default();
    rq_hfile_writer *writer;
    o.include_mvcc = false;
    rq_cell c =
        cell_of("a", w->qualifiers[COLUMNS - 1], (int64_t)IN_YEAR_2100 * 10000, RQ_TYPE_PUT, "");
    c.row = (const uint8_t *)"row";
    c.row_len = 3;
    c.value = value;
    c.value_len = sizeof value;
    assert_ok(rq_hfile_writer_open(w->real.env.vfs, path, &o, &writer, NULL));
    assert_ok(rq_hfile_writer_append(writer, &c, NULL));
    assert_ok(rq_hfile_writer_finish(writer, NULL, NULL));
    rq_hfile_writer_close(writer);
    rq_bulk_file file = {RQ_SLICE_LIT("a"), w->real.env.vfs, path, path};
    rq_bulk_load what = {.files = &file, .file_count = 1, .assign_seqid = true};
    assert_ok(rq_region_bulk_load(w->f.region, &what, &loaded, NULL));
    assert_true(loaded);
}

/* The op's earlier reads are outdated after the load. */
static void a_bulk_load_while_an_op_reads_is_not_lost(void **state)
{
    apart_world *w = *state;
    start_long(w);
    load_last_column(w);
    assert_false(gave_up(w));
    set_gate(w, false);
    join(&w->op);
    assert_ok(w->op.rc);
    assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[0]), 2);
    assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[COLUMNS - 1]), 257);
}

/* --- conditions --------------------------------------------------------------------------------- */

static rq_condition condition_of(rq_arena *arena, const char *row, const char *text)
{
    rq_condition c = {.row = rq_slice_cstr(row)};
    rq_error why;
    rq_error_clear(&why);
    assert_ok(rq_filter_language_compile(rq_slice_cstr(text), arena, &c.filter_class,
                                         &c.filter_message, &why));
    assert_ok(rq_filter_parse(c.filter_class, c.filter_message, arena, &c.filter, &why));
    return c;
}

/* The condition is met at once; then the increment needs a block, and the op begins again. What the filter has seen the
 * first time, and keeps from row to row, must not count: here the end of a page, and a cell that ends the scan. */
static void a_repeated_op_asks_a_fresh_filter(void **state)
{
    static const char *const filters[] = {"PageFilter(1)", "WHILE QualifierFilter(=, 'binary:1')",
                                          "WHILE QualifierFilter(=, 'binary:1') AND PageFilter(1)"};
    apart_world *w = *state;
    set_gate(w, false);
    assert_ok(put(&w->f, "third", "a", "1", RQ_TIMESTAMP_LATEST, "value"));
    assert_ok(put(&w->f, "third", "a", "2", RQ_TIMESTAMP_LATEST, "value"));
    for (size_t i = 0; i < RQ_ARRAY_LEN(filters); i++) {
        rq_arena arena = {0};
        rq_condition c = condition_of(&arena, "third", filters[i]);
        rq_mutation m = increment_all(w, "row");
        m.cells += 100 * i;
        m.cell_count = 1;
        rq_row_op op = {.mutations = &m,
                        .mutation_count = 1,
                        .conditions = &c,
                        .condition_count = 1,
                        .multi_row = true};
        assert_ok(rq_region_write_sync(w->f.region, &op, 1, NULL));
        assert_ok(op.rc);
        assert_true(op.processed);
        assert_int_equal(get_long(&w->f, "row", "a", w->qualifiers[100 * i]), 2);
        rq_row_op_clear(&op);
        rq_arena_clear(&arena);
    }
}

/* Many concurrent ops on several rows, all with many reads: none is lost, none is applied twice. */
static void ops_of_several_rows_end(void **state)
{
    enum { THREADS = OTHERS_MAX };
    apart_world *w = *state;
    static const char *const rows[] = {"row", "other"};
    set_gate(w, false);
    rq_mutation both[THREADS][2];
    for (size_t i = 0; i < THREADS; i++) {
        other *o = &w->others[i];
        for (size_t k = 0; k < 2; k++)
            both[i][k] = increment_all(w, rows[(i + k) % 2]);
        o->world = w;
        o->op.mutations = both[i];
        o->op.mutation_count = 2;
        o->op.multi_row = true;
        assert_int_equal(pthread_create(&o->thread, NULL, run_other, o), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        join(&w->others[i]);
        assert_ok(w->others[i].rc);
    }
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < COLUMNS; i += 7)
            assert_int_equal(get_long(&w->f, rows[k], "a", w->qualifiers[i]), 1 + THREADS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(other_rows_are_written_while_an_op_reads),
        TEST(writes_to_the_same_row_wait),
        TEST(an_op_without_a_waiter_ends),
        TEST(a_wait_for_a_row_ends_with_its_client),
        TEST(an_op_behind_a_wait_has_the_time_of_its_execution),
        TEST(an_op_behind_a_wait_locks_its_own_row),
        cmocka_unit_test_setup_teardown(the_ops_behind_a_wait_are_done, begin_impatient, end),
        cmocka_unit_test_setup_teardown(a_write_does_not_wait_for_a_row_for_ever, begin_impatient,
                                        end),
        TEST(expired_waits_are_found_in_one_pass),
        TEST(an_unlocked_row_wakes_one_op),
        TEST(ops_have_their_turns_in_order),
        TEST(a_write_that_arrives_overtakes_nobody),
        TEST(writes_of_several_rows_have_their_turns),
        TEST(a_region_closes_while_an_op_reads),
        TEST(a_repetition_waits_for_the_first_one),
        TEST(a_bulk_load_while_an_op_reads_is_not_lost),
        TEST(a_repeated_op_asks_a_fresh_filter),
        TEST(ops_of_several_rows_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
