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
    rq_region *regions[REGIONS]; /* regions of rows a…, b…, c… */
    rq_region_info infos[REGIONS];
    rq_lane *lane;
    rq_writer *writer;
    rq_task start;
    rq_latch done;
    one *all;
    unsigned count; /* number of writes to make */
    unsigned begun; /* number of writes begun */
    unsigned answered;
    unsigned at_once; /* writes in flight; then each done() begins the next */
    unsigned last[REGIONS];
    bool in_write;    /* inside rq_region_write */
    pthread_t thread; /* the lane's thread */
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

/* Every seventh write has an unknown family, every eleventh a row of another region. */
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
    if (o->op.rc == RQ_OK) { /* the log acknowledges writes in its order */
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
    /* A push in between may answer some writes, whose done() begins others. */
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

/* --- writes collected before the region was closed -------------------------------------------- */

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
    rq_lane_post(l->put.world->lane, &l->wait); /* runs before the task that the writer posts */
    rq_region_write(l->put.world->f.region, &l->put.write);
}

/* Runs between the collecting and the passing of the list to the region. */
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

/* --- a batch of many time slices -------------------------------------------------------------- */

#define LONG_OPS 60000

typedef struct long_and_short {
    world *world;
    rq_write written;
    rq_row_op *ops;
    rq_mutation mutation;
    rq_cell cell;
    one small;
    rq_task begin;
    rq_latch done;
    bool long_is_done;
    bool small_was_first;
} long_and_short;

static void end_both(long_and_short *l)
{
    rq_executor *ex = l->world->f.env->executor;
    if (l->long_is_done && l->small.answered) ex->latch_open(&l->done, RQ_OK);
}

static void long_done(rq_write *write)
{
    long_and_short *l = RQ_CONTAINER_OF(write, long_and_short, written);
    l->long_is_done = true;
    end_both(l);
}

static void small_done(rq_write *write)
{
    long_and_short *l = RQ_CONTAINER_OF(write, long_and_short, small.write);
    l->small.answered = 1;
    l->small_was_first = !l->long_is_done;
    end_both(l);
}

static void begin_both(rq_task *task)
{
    long_and_short *l = RQ_CONTAINER_OF(task, long_and_short, begin);
    rq_region_write(l->world->regions[0], &l->written);
    rq__writer_push(l->world->writer); /* runs the first slice */
    rq_region_write(l->world->regions[0], &l->small.write);
}

static void a_long_batch_lets_later_writes_pass(void **state)
{
    (void)state;
    world w;
    world_open(&w);
    rq_executor *ex = w.f.env->executor;
    long_and_short l = {.world = &w, .begin.run = begin_both};
    ex->latch_init(ex, &l.done);
    l.ops = calloc(LONG_OPS, sizeof *l.ops);
    l.cell = cell_of("a", "q", RQ_TIMESTAMP_LATEST, RQ_TYPE_DELETE, "");
    l.mutation = (rq_mutation){
        .type = RQ_MUTATE_DELETE, .row = RQ_SLICE_LIT("a"), .cells = &l.cell, .cell_count = 1};
    for (size_t i = 0; i < LONG_OPS; i++)
        l.ops[i] = (rq_row_op){.mutations = &l.mutation, .mutation_count = 1};
    l.written =
        (rq_write){.ops = l.ops, .op_count = LONG_OPS, .writer = w.writer, .done = long_done};
    l.small.cell = cell_of("a", "q", 1, RQ_TYPE_PUT, "small");
    l.small.mutation = (rq_mutation){
        .type = RQ_MUTATE_PUT, .row = RQ_SLICE_LIT("a1"), .cells = &l.small.cell, .cell_count = 1};
    l.small.op = (rq_row_op){.mutations = &l.small.mutation, .mutation_count = 1};
    l.small.write =
        (rq_write){.ops = &l.small.op, .op_count = 1, .writer = w.writer, .done = small_done};
    rq_lane_post(w.lane, &l.begin);
    assert_ok(ex->latch_wait(&l.done));
    assert_true(l.small_was_first);
    for (size_t i = 0; i < LONG_OPS; i++) {
        assert_ok(l.ops[i].rc);
        rq_row_op_clear(&l.ops[i]);
    }
    assert_ok(l.small.op.rc);
    rq_row_op_clear(&l.small.op);
    free(l.ops);
    ex->latch_destroy(&l.done);
    world_close(&w);
}

/* --- several long batches --------------------------------------------------------------------- */

#define LONG_BATCHES 4
#define BATCH_OPS 20000
#define NOT_BEGUN RQ_E_AGAIN

typedef struct long_batches long_batches;

typedef struct long_batch {
    long_batches *all;
    rq_write write;
    rq_row_op ops[BATCH_OPS];
} long_batch;

struct long_batches {
    world *world;
    long_batch each[LONG_BATCHES];
    rq_mutation mutation;
    rq_cell cell;
    rq_task begin;
    rq_latch done;
    unsigned ended;
    size_t begun; /* ops of the last batch that had begun when the first ended */
};

static void long_batch_done(rq_write *write)
{
    long_batch *b = RQ_CONTAINER_OF(write, long_batch, write);
    long_batches *l = b->all;
    RQ_ASSERT(b == &l->each[l->ended]);
    const long_batch *last = &l->each[LONG_BATCHES - 1];
    for (size_t i = 0; l->ended == 0 && i < BATCH_OPS; i++)
        l->begun += last->ops[i].rc != NOT_BEGUN;
    if (++l->ended == LONG_BATCHES) l->world->f.env->executor->latch_open(&l->done, RQ_OK);
}

static void begin_long_batches(rq_task *task)
{
    long_batches *l = RQ_CONTAINER_OF(task, long_batches, begin);
    for (size_t i = 0; i < LONG_BATCHES; i++) {
        rq_region_write(l->world->regions[0], &l->each[i].write);
        rq__writer_push(l->world->writer);
    }
}

static void long_batches_end_one_after_another(void **state)
{
    (void)state;
    world w;
    world_open(&w);
    rq_executor *ex = w.f.env->executor;
    long_batches *l = calloc(1, sizeof *l);
    l->world = &w;
    l->begin.run = begin_long_batches;
    ex->latch_init(ex, &l->done);
    l->cell = cell_of("a", "q", RQ_TIMESTAMP_LATEST, RQ_TYPE_DELETE, "");
    l->mutation = (rq_mutation){
        .type = RQ_MUTATE_DELETE, .row = RQ_SLICE_LIT("a"), .cells = &l->cell, .cell_count = 1};
    for (size_t i = 0; i < LONG_BATCHES; i++) {
        long_batch *b = &l->each[i];
        b->all = l;
        for (size_t j = 0; j < BATCH_OPS; j++)
            b->ops[j] =
                (rq_row_op){.mutations = &l->mutation, .mutation_count = 1, .rc = NOT_BEGUN};
        b->write = (rq_write){
            .ops = b->ops, .op_count = BATCH_OPS, .writer = w.writer, .done = long_batch_done};
    }
    rq_lane_post(w.lane, &l->begin);
    assert_ok(ex->latch_wait(&l->done));
    assert_true(l->begun < BATCH_OPS / 2);
    for (size_t i = 0; i < LONG_BATCHES; i++)
        for (size_t j = 0; j < BATCH_OPS; j++) {
            assert_ok(l->each[i].ops[j].rc);
            rq_row_op_clear(&l->each[i].ops[j]);
        }
    ex->latch_destroy(&l->done);
    free(l);
    world_close(&w);
}

/* --- a batch whose ops read what those before it have made ------------------------------------ */

#define VERSIONS 4000

typedef struct ladder {
    world *world;
    rq_write written;
    rq_row_op *ops;
    rq_mutation put, mutation;
    rq_cell *cells, cell;
    rq_task begin;
    rq_latch done;
} ladder;

static void ladder_done(rq_write *write)
{
    ladder *l = RQ_CONTAINER_OF(write, ladder, written);
    l->world->f.env->executor->latch_open(&l->done, RQ_OK);
}

static void ladder_begin(rq_task *task)
{
    ladder *l = RQ_CONTAINER_OF(task, ladder, begin);
    rq_region_write(l->world->regions[0], &l->written);
}

/* Returns the number of ops done; the remaining ops must be sent again. */
static size_t write_ladder(ladder *l, size_t first)
{
    rq_executor *ex = l->world->f.env->executor;
    l->written = (rq_write){.ops = l->ops + first,
                            .op_count = VERSIONS + 1 - first,
                            .writer = l->world->writer,
                            .done = ladder_done};
    ex->latch_init(ex, &l->done);
    rq_lane_post(l->world->lane, &l->begin);
    assert_ok(ex->latch_wait(&l->done));
    ex->latch_destroy(&l->done);
    size_t done = first;
    while (done <= VERSIONS && l->ops[done].rc == RQ_OK)
        done++;
    for (size_t i = done; i <= VERSIONS; i++)
        assert_err(l->ops[i].rc, RQ_E_REGION_TOO_BUSY);
    for (size_t i = first; i <= VERSIONS; i++)
        rq_row_op_clear(&l->ops[i]);
    return done;
}

/* The n-th deletion of a newest version reads past the n - 1 deleted ones. */
static void a_batch_that_reads_too_much_is_done_in_parts(void **state)
{
    (void)state;
    world w;
    world_open(&w);
    ladder l = {.world = &w, .begin.run = ladder_begin};
    l.ops = calloc(VERSIONS + 1, sizeof *l.ops);
    l.cells = calloc(VERSIONS, sizeof *l.cells);
    for (size_t i = 0; i < VERSIONS; i++)
        l.cells[i] = cell_of("a", "q", 1 + (int64_t)i, RQ_TYPE_PUT, "v");
    l.put = (rq_mutation){
        .type = RQ_MUTATE_PUT, .row = RQ_SLICE_LIT("a"), .cells = l.cells, .cell_count = VERSIONS};
    l.cell = cell_of("a", "q", RQ_TIMESTAMP_LATEST, RQ_TYPE_DELETE, "");
    l.mutation = (rq_mutation){
        .type = RQ_MUTATE_DELETE, .row = RQ_SLICE_LIT("a"), .cells = &l.cell, .cell_count = 1};
    l.ops[0] = (rq_row_op){.mutations = &l.put, .mutation_count = 1};
    for (size_t i = 1; i <= VERSIONS; i++)
        l.ops[i] = (rq_row_op){.mutations = &l.mutation, .mutation_count = 1};
    size_t done = write_ladder(&l, 0);
    assert_in_range(done, 1000, VERSIONS - 1);
    while (done <= VERSIONS) {
        size_t more = write_ladder(&l, done);
        assert_true(more > done);
        done = more;
    }
    free(l.ops);
    free(l.cells);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_of_many_is_answered_for_itself),
        cmocka_unit_test(an_answer_may_write_again),
        cmocka_unit_test(a_write_gathered_before_a_close_is_refused),
        cmocka_unit_test(a_long_batch_lets_later_writes_pass),
        cmocka_unit_test(long_batches_end_one_after_another),
        cmocka_unit_test(a_batch_that_reads_too_much_is_done_in_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
