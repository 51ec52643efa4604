/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of streams on one loop: work on all of them is divided among iterations, and the end of one costs the same as
 * that of one of a few. The connections are in memory. */
#include "net/loop_priv.h"
#include "net/memory.h"
#include "net/stream.h"

#include "../base/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { STREAMS = 6000, STEP_MAX = 2 * 1024 };

typedef struct world {
    rq_loops *loops;
    rq_listener *listener;
    rq_memory_peer *peers[STREAMS];
    rq_task task;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned opened, finished; /* under the lock; `finished`: tests' tasks and walks */
    /* The loop's: */
    rq_stream *streams[STREAMS];
    unsigned looked; /* callbacks for streams */
    unsigned most;   /* of them in one iteration, at most */
    unsigned here;   /* of them in this iteration */
    uint64_t iteration;
    unsigned visits[STREAMS], passed;
    uint64_t ns;
} world;

static void raise_count(world *w, unsigned *count)
{
    pthread_mutex_lock(&w->lock);
    ++*count;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void wait_for(world *w, const unsigned *count, unsigned wanted)
{
    pthread_mutex_lock(&w->lock);
    while (*count < wanted)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static rq_err on_open(void *ctx, rq_stream *s)
{
    world *w = ctx;
    w->streams[w->opened] = s;
    rq_stream_set_user(s, w);
    raise_count(w, &w->opened);
    return RQ_OK;
}

static size_t on_data(rq_stream *s, rq_slice bytes)
{
    (void)s;
    return bytes.len;
}

static void on_close(rq_stream *s, rq_err why)
{
    (void)s, (void)why;
}

/* Counts a callback for a stream. */
static void look(world *w)
{
    rq_loop_stats stats;
    rq_loop_get_stats(rq_loops_get(w->loops, 0), &stats);
    if (w->looked++ == 0 || stats.iterations != w->iteration) w->here = 0;
    w->iteration = stats.iterations;
    if (++w->here > w->most) w->most = w->here;
}

static void on_deadline(rq_stream *s)
{
    world *w = rq_stream_user(s);
    look(w);
    if (w->looked == STREAMS) raise_count(w, &w->finished);
}

static const rq_stream_events events = {
    .on_open = on_open, .on_data = on_data, .on_deadline = on_deadline, .on_close = on_close};

static int begin(void **state)
{
    world *w = calloc(1, sizeof *w);
    if (w == NULL) return -1;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    rq_loops_options loops = {.count = 1};
    rq_listener_options listen = {.events = &events, .ctx = w};
    if (rq_loops_new(&loops, &w->loops) != RQ_OK || rq_loops_start(w->loops) != RQ_OK ||
        rq_listener_open(w->loops, &listen, &w->listener, NULL) != RQ_OK)
        return -1;
    for (unsigned i = 0; i < STREAMS; i++)
        if (rq_memory_connect(w->listener, &w->peers[i]) != RQ_OK) return -1;
    wait_for(w, &w->opened, STREAMS);
    *state = w;
    return 0;
}

static int end(void **state)
{
    world *w = *state;
    for (unsigned i = 0; i < STREAMS; i++)
        rq_memory_close(w->peers[i]);
    rq_listener_close(w->listener);
    rq_loops_stop(w->loops);
    rq_loops_free(w->loops);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    free(w);
    return 0;
}

static void on_loop(world *w, void (*run)(rq_task *task))
{
    unsigned before = w->finished;
    w->task.run = run;
    rq_lane_post(rq_loop_lane(rq_loops_get(w->loops, 0)), &w->task);
    wait_for(w, &w->finished, before + 1);
}

/* ---- deadlines */

static void run_deadlines(rq_task *task)
{
    world *w = RQ_CONTAINER_OF(task, world, task);
    for (unsigned i = 0; i < STREAMS; i++)
        rq_stream_set_deadline(w->streams[i], 1);
}

static void deadlines_of_many_streams_take_several_iterations(void **state)
{
    world *w = *state;
    on_loop(w, run_deadlines);
    assert_int_equal(w->looked, STREAMS);
    assert_in_range(w->most, 1, STEP_MAX);
}

/* ---- walks */

struct walk {
    rq_stream_walk walk;
    world *world;
};

static unsigned number_of(const world *w, const rq_stream *s)
{
    unsigned i = 0;
    while (w->streams[i] != s)
        i++;
    return i;
}

/* Closes the next stream of the walk, now and then: it leaves the loop before it is visited. */
static bool visit(rq_stream_walk *walk, rq_stream *s)
{
    world *w = RQ_CONTAINER_OF(walk, struct walk, walk)->world;
    look(w);
    w->visits[number_of(w, s)]++;
    if (w->looked % 8 != 0 || walk->at == NULL) return true;
    rq_stream_close(walk->at, RQ_OK);
    w->passed++;
    return true;
}

static void end_walk(rq_stream_walk *walk)
{
    struct walk *k = RQ_CONTAINER_OF(walk, struct walk, walk);
    world *w = k->world;
    free(k);
    raise_count(w, &w->finished);
}

static void run_walk(rq_task *task)
{
    struct walk *k = calloc(1, sizeof *k);
    assert_non_null(k);
    *k = (struct walk){{.events = &events, .visit = visit, .end = end_walk},
                       RQ_CONTAINER_OF(task, world, task)};
    rq_loop_walk_streams(rq_loops_get(k->world->loops, 0), &k->walk);
}

static void a_walk_visits_each_stream_in_several_iterations(void **state)
{
    world *w = *state;
    unsigned once = 0;
    on_loop(w, run_walk);
    assert_int_equal(w->looked + w->passed, STREAMS);
    assert_in_range(w->passed, STREAMS / 10, STREAMS / 8);
    assert_in_range(w->most, 1, STEP_MAX);
    for (unsigned i = 0; i < STREAMS; i++)
        once += w->visits[i] == 1;
    assert_int_equal(once, w->looked);
}

static bool visit_one(rq_stream_walk *walk, rq_stream *s)
{
    (void)s;
    look(RQ_CONTAINER_OF(walk, struct walk, walk)->world);
    return false;
}

static void run_short_walk(rq_task *task)
{
    struct walk *k = calloc(1, sizeof *k);
    assert_non_null(k);
    *k = (struct walk){{.visit = visit_one, .end = end_walk}, RQ_CONTAINER_OF(task, world, task)};
    rq_loop_walk_streams(rq_loops_get(k->world->loops, 0), &k->walk);
}

static void a_walk_ends_when_its_user_has_enough(void **state)
{
    world *w = *state;
    on_loop(w, run_short_walk);
    assert_int_equal(w->looked, 1);
}

static bool visit_more(rq_stream_walk *walk, rq_stream *s)
{
    (void)s;
    look(RQ_CONTAINER_OF(walk, struct walk, walk)->world);
    return true;
}

/* Two walks begin in the iteration in which the loop stops. */
static void run_walks_and_stop(rq_task *task)
{
    world *w = RQ_CONTAINER_OF(task, world, task);
    rq_loop *loop = rq_loops_get(w->loops, 0);
    while (!atomic_load(&loop->stopping))
        sched_yield();
    for (int i = 0; i < 2; i++) {
        struct walk *k = calloc(1, sizeof *k);
        assert_non_null(k);
        *k = (struct walk){{.visit = visit_more, .end = end_walk}, w};
        rq_loop_walk_streams(loop, &k->walk);
    }
    assert_int_equal(w->finished, 0);
}

static void walks_end_once_when_the_loop_stops(void **state)
{
    world *w = *state;
    rq_listener_stop(w->listener, false);
    w->task.run = run_walks_and_stop;
    rq_lane_post(rq_loop_lane(rq_loops_get(w->loops, 0)), &w->task);
    rq_loops_stop(w->loops);
    assert_int_equal(w->finished, 2);
    assert_in_range(w->looked, 2, STREAMS); /* closed streams are not visited */
}

/* ---- ends of streams that have output */

static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void close_all(world *w)
{
    uint64_t begun = cpu_ns();
    for (unsigned i = 0; i < STREAMS; i++)
        rq_stream_close(w->streams[i], RQ_OK);
    w->ns = cpu_ns() - begun;
    raise_count(w, &w->finished);
}

static void run_close(rq_task *task)
{
    close_all(RQ_CONTAINER_OF(task, world, task));
}

static void run_write_and_close(rq_task *task)
{
    world *w = RQ_CONTAINER_OF(task, world, task);
    for (unsigned i = 0; i < STREAMS; i++)
        assert_int_equal(rq_stream_write(w->streams[i], "x", 1), RQ_OK);
    close_all(w);
}

static uint64_t cost_of(void (*run)(rq_task *task))
{
    void *state = NULL;
    assert_int_equal(begin(&state), 0);
    world *w = state;
    on_loop(w, run);
    uint64_t ns = w->ns;
    end(&state);
    return ns;
}

/* Otherwise the time for the ends of many streams in one iteration would grow with the square of their number: here
 * it would be 40 times as long. Other processes may disturb a try. */
static void the_end_of_a_stream_costs_the_same_with_output(void **state)
{
    bool holds = false;
    (void)state;
    for (unsigned tries = 0; tries < 10 && !holds; tries++)
        holds = cost_of(run_write_and_close) < 8 * cost_of(run_close);
    assert_true(holds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
        T(deadlines_of_many_streams_take_several_iterations),
        T(a_walk_visits_each_stream_in_several_iterations),
        T(a_walk_ends_when_its_user_has_enough),
        T(walks_end_once_when_the_loop_stops),
        cmocka_unit_test(the_end_of_a_stream_costs_the_same_with_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
