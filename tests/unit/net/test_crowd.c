/* SPDX-License-Identifier: Apache-2.0 */
/* Which streams are closed when connections need descriptors: those that are idle, and only those that hold one. The
 * tests set the times at which the streams were last heard, instead of waiting. */
#include "net/loop_priv.h"

#include "peer.h"
#include "../base/unit.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define LARGE ((size_t)32 << 20) /* more than sockets hold */

typedef struct crowd {
    rq_loops *loops;
    rq_listener *listener;
    rq_task task;
    _Atomic unsigned opened, closed;
    rq_stream *streams[2];  /* in the order in which they were opened; the loop's */
    unsigned heard_s[2];    /* seconds ago */
    bool sends;             /* the first one has output that its peer does not read */
    bool is_busy;           /* both have a request */
    _Atomic unsigned asked; /* how often a stream was asked for that */
} crowd;

static rq_err on_open(void *ctx, rq_stream *s)
{
    crowd *c = ctx;
    rq_stream_set_user(s, c);
    rq_stream_named(s);
    c->streams[atomic_fetch_add(&c->opened, 1)] = s;
    return RQ_OK;
}

static size_t on_data(rq_stream *s, rq_slice bytes)
{
    (void)s;
    return bytes.len;
}

static bool is_busy(const rq_stream *s)
{
    crowd *c = rq_stream_user(s);
    atomic_fetch_add(&c->asked, 1);
    return c->is_busy;
}

static void on_close(rq_stream *s, rq_err why)
{
    crowd *c = rq_stream_user(s);
    (void)why;
    for (size_t i = 0; i < RQ_ARRAY_LEN(c->streams); i++)
        if (c->streams[i] == s) c->streams[i] = NULL;
    atomic_fetch_add(&c->closed, 1);
}

static const rq_stream_events events = {
    .on_open = on_open, .on_data = on_data, .is_busy = is_busy, .on_close = on_close};

static void start(crowd *c)
{
    rq_loops_options o = {.count = 1};
    rq_listener_options l = {.events = &events, .ctx = c};
    assert_int_equal(rq_loops_new(&o, &c->loops), RQ_OK);
    assert_int_equal(rq_loops_start(c->loops), RQ_OK);
    assert_int_equal(rq_listener_open(c->loops, &l, &c->listener, NULL), RQ_OK);
}

static void stop(crowd *c)
{
    rq_listener_close(c->listener);
    assert_int_equal(atomic_load(&c->loops->accepted), 0);
    rq_loops_stop(c->loops);
    rq_loops_free(c->loops);
}

static void wait_for(const crowd *c, const _Atomic unsigned *counter, unsigned count)
{
    while (atomic_load(counter) < count)
        rq_loops_sync(c->loops);
}

static void run_age(rq_task *task)
{
    crowd *c = RQ_CONTAINER_OF(task, crowd, task);
    static char large[LARGE];
    uint64_t now = rq_loop_clock_ns();
    for (size_t i = 0; i < RQ_ARRAY_LEN(c->streams); i++)
        c->streams[i]->heard_ns = now - c->heard_s[i] * SECOND;
    if (c->sends) assert_int_equal(rq_stream_write(c->streams[0], large, LARGE), RQ_OK);
}

static void run_on_loop(crowd *c, void (*run)(rq_task *task))
{
    c->task.run = run;
    rq_lane_post(rq_loop_lane(rq_loops_get(c->loops, 0)), &c->task);
    rq_loops_sync(c->loops);
}

/* One of two streams is closed for others: returns whether it is the second one. */
static bool closes_the_second(crowd *c)
{
    wait_for(c, &c->opened, 2);
    run_on_loop(c, run_age);
    rq_loops_sync(c->loops); /* now the output has been offered to the socket */
    rq__crowd_make_room(c->loops);
    wait_for(c, &c->closed, 1);
    return c->streams[0] != NULL && c->streams[1] == NULL;
}

/* Opens two connections; the second one must be closed. */
static void check_two_peers(crowd *c)
{
    start(c);
    int first = peer_connect(rq_listener_port(c->listener));
    wait_for(c, &c->opened, 1);
    int second = peer_connect(rq_listener_port(c->listener));
    assert_true(closes_the_second(c));
    close(first);
    close(second);
    stop(c);
}

static void the_stream_that_was_quiet_for_longest_is_closed(void **state)
{
    (void)state;
    crowd c = {.heard_s = {10, 60}};
    check_two_peers(&c);
}

/* Its peer takes the response slowly, and need not say anything meanwhile. */
static void a_stream_that_is_sending_is_not_idle(void **state)
{
    (void)state;
    crowd c = {.heard_s = {200, 60}, .sends = true};
    check_two_peers(&c);
}

/* To close it would not yield a descriptor. */
static void a_stream_in_memory_is_not_closed(void **state)
{
    (void)state;
    crowd c = {.heard_s = {200, 60}};
    rq_memory_peer *first;
    start(&c);
    assert_int_equal(rq_memory_connect(c.listener, &first), RQ_OK);
    wait_for(&c, &c.opened, 1);
    assert_int_equal(atomic_load(&c.loops->accepted), 0);
    int second = peer_connect(rq_listener_port(c.listener));
    wait_for(&c, &c.opened, 2);
    assert_int_equal(atomic_load(&c.loops->accepted), 1);
    assert_true(closes_the_second(&c));
    rq_memory_close(first);
    close(second);
    stop(&c);
}

static void run_prolong(rq_task *task)
{
    crowd *c = RQ_CONTAINER_OF(task, crowd, task);
    rq_loop *loop = rq_loops_get(c->loops, 0);
    assert_true(loop->no_room_until_ns > 0);
    loop->no_room_until_ns = UINT64_MAX;
}

/* Connections that wait ask for room every 20 ms. When all streams are busy, a loop does not look at all of them so often. */
static void a_loop_without_idle_streams_pauses(void **state)
{
    (void)state;
    crowd c = {.heard_s = {10, 60}, .is_busy = true};
    start(&c);
    int first = peer_connect(rq_listener_port(c.listener));
    int second = peer_connect(rq_listener_port(c.listener));
    wait_for(&c, &c.opened, 2);
    run_on_loop(&c, run_age);
    for (int i = 0; i < 3; i++) {
        rq__crowd_make_room(c.loops);
        rq_loops_sync(c.loops);
        assert_int_equal(atomic_load(&c.asked), 2);
        if (i == 0) run_on_loop(&c, run_prolong);
    }
    close(first);
    close(second);
    stop(&c);
}

enum { CROWD = 5000, LOOKED_AT = 2048 };

/* Streams that hold a descriptor, as far as crowd.c can see. */
typedef struct fakes {
    rq_task task;
    rq_loop *loop;
    bool leave;
    rq_listener listener;
    rq_stream streams[CROWD];
} fakes;

static void run_fakes(rq_task *task)
{
    fakes *f = RQ_CONTAINER_OF(task, fakes, task);
    for (size_t i = 0; i < CROWD; i++) {
        if (f->leave)
            rq__stream_unlink(&f->streams[i]);
        else
            rq__stream_link(&f->streams[i]);
    }
}

static void post_fakes(fakes *f, rq_loops *loops)
{
    rq_lane_post(rq_loop_lane(f->loop), &f->task);
    rq_loops_sync(loops);
}

/* Each step looks at a part of the connections, and the next step at the following part. */
static void a_step_is_short_in_a_large_crowd(void **state)
{
    (void)state;
    crowd c = {.is_busy = true};
    fakes *f = calloc(1, sizeof *f);
    assert_non_null(f);
    start(&c);
    f->task.run = run_fakes;
    f->loop = rq_loops_get(c.loops, 0);
    for (size_t i = 0; i < CROWD; i++)
        f->streams[i] =
            (rq_stream){.loop = f->loop, .listener = &f->listener, .events = &events, .user = &c};
    post_fakes(f, c.loops);
    for (unsigned seen = 0; seen < CROWD; seen = atomic_load(&c.asked)) {
        unsigned left = CROWD - seen;
        rq__crowd_make_room(c.loops);
        rq_loops_sync(c.loops);
        assert_int_equal(atomic_load(&c.asked) - seen, left < LOOKED_AT ? left : LOOKED_AT);
    }
    f->leave = true;
    post_fakes(f, c.loops);
    free(f);
    stop(&c);
}

/* The limit of open files that most login shells set leaves room for a usual pool of connections. */
static void most_descriptors_are_for_connections(void **state)
{
    static const struct {
        unsigned files, connections;
    } cases[] = {{64, 32}, {256, 160}, {1024, 768}, {524288, 393216}};
    struct rlimit before;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++) {
        struct rlimit limit = {cases[i].files, before.rlim_max};
        if (limit.rlim_cur > limit.rlim_max) continue;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_int_equal(rq__crowd_max(), cases[i].connections);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_stream_that_was_quiet_for_longest_is_closed),
        cmocka_unit_test(a_stream_that_is_sending_is_not_idle),
        cmocka_unit_test(a_stream_in_memory_is_not_closed),
        cmocka_unit_test(a_loop_without_idle_streams_pauses),
        cmocka_unit_test(a_step_is_short_in_a_large_crowd),
        cmocka_unit_test(most_descriptors_are_for_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
