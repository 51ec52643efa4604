/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's writes, collected into lists: each is answered once, whatever happens to the others of
 * its list, on its lane, in its region's order, and never before rq_region_write has returned. Code
 * on the lane asserts with RQ_ASSERT, because cmocka's assertions would jump into the main thread's
 * stack. */
#include "fixture.h"

#include "base/random.h"

#include <pthread.h>
#include <string.h>

#define WRITES 500
#define REGIONS 3

typedef struct world world;

typedef struct one {
    world *world;
    rq_write write;
    rq_row_op op;
    rq_mutation mutation;
    rq_cell cell;
    char row[16];
    char value[16];
    unsigned number;
    unsigned region;
    unsigned answered;
} one;

struct world {
    real_env real;
    fixture f;
    rq_region *regions[REGIONS]; /* of rows a…, b…, c… */
    rq_region_info infos[REGIONS];
    rq_lane *lane;
    rq_writer *writer;
    rq_task start;
    rq_latch done;
    one *all;
    unsigned count; /* writes wished for */
    unsigned begun; /* … of which so many were given away */
    unsigned answered;
    unsigned at_once; /* in flight; then each done() writes the next */
    unsigned last[REGIONS];
    bool in_write;    /* inside rq_region_write */
    pthread_t thread; /* the lane's */
    rq_random random;
};

static const char *const starts[REGIONS + 1] = {"", "b", "c", ""};

static void open_regions(world *w)
{
    for (unsigned i = 0; i < REGIONS; i++) {
        assert_ok(rq_region_info_make(&w->f.arena, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("many"),
                                      rq_slice_cstr(starts[i]), rq_slice_cstr(starts[i + 1]),
                                      1700000000000 + i, 0, &w->infos[i]));
        assert_ok(rq_region_create(w->f.engine, &w->infos[i], w->f.schema, NULL));
        assert_ok(rq_region_open(w->f.engine, &w->infos[i], w->f.schema, &w->regions[i], NULL));
    }
}

static void on_done(rq_write *write);

/* Every seventh has an unknown family, every eleventh a row of another region. */
static rq_err expected(const one *o)
{
    if (o->number % 7 == 3) return RQ_E_NO_SUCH_FAMILY;
    return o->number % 11 == 5 ? RQ_E_SANITY_CHECK : RQ_OK;
}

static void begin_next(world *w)
{
    one *o = &w->all[w->begun];
    o->world = w;
    o->number = w->begun++;
    o->region = (unsigned)rq_random_below(&w->random, REGIONS);
    unsigned named = expected(o) == RQ_E_SANITY_CHECK ? (o->region + 1) % REGIONS : o->region;
    snprintf(o->row, sizeof o->row, "%c%u", 'a' + (int)named, o->number % 40);
    snprintf(o->value, sizeof o->value, "%u", o->number);
    o->cell = cell_of(expected(o) == RQ_E_NO_SUCH_FAMILY ? "x" : "a", "q", 1 + o->number,
                      RQ_TYPE_PUT, o->value);
    o->mutation = (rq_mutation){
        .type = RQ_MUTATE_PUT, .row = rq_slice_cstr(o->row), .cells = &o->cell, .cell_count = 1};
    o->op = (rq_row_op){.mutations = &o->mutation, .mutation_count = 1};
    o->write = (rq_write){.ops = &o->op, .op_count = 1, .writer = w->writer, .done = on_done};
    w->in_write = true;
    rq_region_write(w->regions[o->region], &o->write);
    w->in_write = false;
}

static void on_done(rq_write *write)
{
    one *o = RQ_CONTAINER_OF(write, one, write);
    world *w = o->world;
    RQ_ASSERT(!w->in_write);
    RQ_ASSERT(pthread_equal(pthread_self(), w->thread));
    RQ_ASSERT(o->answered++ == 0);
    RQ_ASSERT(o->op.rc == expected(o));
    rq_row_op_clear(&o->op);
    if (o->op.rc == RQ_OK) { /* the log acknowledges in its order */
        RQ_ASSERT(w->last[o->region] <= o->number);
        w->last[o->region] = o->number;
    }
    if (++w->answered == w->count)
        w->f.env->executor->latch_open(&w->done, RQ_OK);
    else if (w->begun < w->count)
        begin_next(w);
}

static void run_start(rq_task *task)
{
    world *w = RQ_CONTAINER_OF(task, world, start);
    w->thread = pthread_self();
    /* A push in between may answer some, and they begin others. */
    for (unsigned i = 0; i < w->at_once && w->begun < w->count; i++) {
        begin_next(w);
        if (rq_random_below(&w->random, 50) == 0) rq__writer_push(w->writer);
    }
}

static void world_open(world *w)
{
    *w = (world){0};
    real_env_open(&w->real);
    fixture_open(&w->f, &w->real.env, NULL, 0);
    open_regions(w);
    rq_executor *ex = w->f.env->executor;
    ex->latch_init(ex, &w->done);
    assert_ok(ex->lane_new(ex, "writer", &w->lane));
    assert_ok(rq_writer_new(w->f.engine, w->lane, &w->writer));
    w->start.run = run_start;
    rq_random_seed(&w->random, 1);
}

static void world_close(world *w)
{
    rq_executor *ex = w->f.env->executor;
    ex->lane_free(ex, w->lane);
    rq_writer_free(w->writer);
    ex->latch_destroy(&w->done);
    for (unsigned i = 0; i < REGIONS; i++) {
        assert_ok(rq_region_close(w->regions[i], false, NULL));
        rq_region_unref(w->regions[i]);
    }
    fixture_close(&w->f);
    real_env_close(&w->real);
    free(w->all);
}

static void write_all(world *w, unsigned count, unsigned at_once)
{
    w->count = count;
    w->at_once = at_once;
    w->all = calloc(count, sizeof *w->all);
    rq_lane_post(w->lane, &w->start);
    assert_ok(w->f.env->executor->latch_wait(&w->done));
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(w->all[i].answered, 1);
}

static void each_of_many_is_answered_for_itself(void **state)
{
    (void)state;
    world w;
    world_open(&w);
    write_all(&w, WRITES, WRITES);
    world_close(&w);
}

static void an_answer_may_write_again(void **state)
{
    (void)state;
    static const unsigned at_once[] = {1, 3, 200};
    for (size_t i = 0; i < RQ_ARRAY_LEN(at_once); i++) {
        world w;
        world_open(&w);
        write_all(&w, WRITES, at_once[i]);
        world_close(&w);
    }
}

/* --- what was gathered when the region was closed --------------------------------------------- */

typedef struct late {
    one put;
    rq_task gather, wait;
    rq_latch gathered, closed, done;
} late;

static void late_done(rq_write *write)
{
    late *l = RQ_CONTAINER_OF(write, late, put.write);
    rq_executor *ex = l->put.world->f.env->executor;
    ex->latch_open(&l->done, RQ_OK);
}

static void late_gather(rq_task *task)
{
    late *l = RQ_CONTAINER_OF(task, late, gather);
    rq_lane_post(l->put.world->lane, &l->wait); /* before the writer posts its own task */
    rq_region_write(l->put.world->f.region, &l->put.write);
}

/* Stands between the gathering and the handing over. */
static void late_wait(rq_task *task)
{
    late *l = RQ_CONTAINER_OF(task, late, wait);
    rq_executor *ex = l->put.world->f.env->executor;
    ex->latch_open(&l->gathered, RQ_OK);
    RQ_ASSERT(ex->latch_wait(&l->closed) == RQ_OK);
}

static void a_write_gathered_before_a_close_is_refused(void **state)
{
    (void)state;
    world w;
    world_open(&w);
    rq_executor *ex = w.f.env->executor;
    late l = {.gather.run = late_gather, .wait.run = late_wait};
    ex->latch_init(ex, &l.gathered);
    ex->latch_init(ex, &l.closed);
    ex->latch_init(ex, &l.done);
    l.put.world = &w;
    l.put.cell = cell_of("a", "q", 1, RQ_TYPE_PUT, "late");
    l.put.mutation = (rq_mutation){
        .type = RQ_MUTATE_PUT, .row = RQ_SLICE_LIT("r"), .cells = &l.put.cell, .cell_count = 1};
    l.put.op = (rq_row_op){.mutations = &l.put.mutation, .mutation_count = 1};
    l.put.write =
        (rq_write){.ops = &l.put.op, .op_count = 1, .writer = w.writer, .done = late_done};
    rq_lane_post(w.lane, &l.gather);
    assert_ok(ex->latch_wait(&l.gathered));
    assert_ok(rq_region_close(w.f.region, false, NULL));
    ex->latch_open(&l.closed, RQ_OK);
    assert_ok(ex->latch_wait(&l.done));
    assert_err(l.put.op.rc, RQ_E_NOT_SERVING_REGION);
    rq_row_op_clear(&l.put.op);
    ex->latch_destroy(&l.gathered);
    ex->latch_destroy(&l.closed);
    ex->latch_destroy(&l.done);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_of_many_is_answered_for_itself),
        cmocka_unit_test(an_answer_may_write_again),
        cmocka_unit_test(a_write_gathered_before_a_close_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
