/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that send a request slowly, and hold memory meanwhile; and peers that send many short ones at once, and hold the loop.
 * The loop is in memory, and the test sets its clock. */
#include "../net/memory_loop.h"

#include "../base/unit.h"

#include "proto/client.pb-c.h"
#include "rpc/rpc_priv.h"

#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
#define BUDGET ((size_t)256 << 10)

/* Preamble and connection header. */
static const char hello[] = "HBas\0\x50\0\0\0\x0f\x12\x0d"
                            "ClientService";

typedef struct world {
    rq_loops loops;
    rq_budget *budget;
    rq_rpc_server *server;
    rq_stream slow, other;
    unsigned handled; /* calls */
} world;

#define CALL_NS UINT64_C(50000) /* short, for a call */

/* A call takes CALL_NS by the test's clock. */
static void handle(void *ctx, rq_call *call)
{
    unsigned *handled = ctx;
    ++*handled;
    if (memory_clock_ns != 0) memory_clock_ns += CALL_NS;
    rq_call_drop(call);
}

static const rq_rpc_method methods[] = {{"Get", &pb__get_request__descriptor, handle}};

static void feed(rq_stream *s, const void *bytes, size_t len)
{
    memory_stream_feed(s, bytes, len, 4096);
}

/* The beginning of a frame of `want` bytes. */
static void feed_frame(rq_stream *s, size_t want, size_t len)
{
    uint8_t head[RQ_FRAME_HEAD];
    uint8_t *body = calloc(1, len + 1);
    assert_non_null(body);
    rq_put_be32(head, (uint32_t)want);
    feed(s, head, sizeof head);
    feed(s, body, len);
    free(body);
}

static void open_stream(world *w, rq_stream *s)
{
    *s =
        (rq_stream){.loop = &w->loops.loop, .events = &rq_conn_events, .peer = {"127.0.0.1", 4711}};
    assert_int_equal(s->events->on_open(w->server, s), RQ_OK);
    feed(s, hello, sizeof hello - 1);
    assert_false(s->closing);
}

static void close_stream(rq_stream *s)
{
    s->events->on_close(s, RQ_OK);
    s->loop->run(s->loop);
    rq_buf_clear(&s->out);
}

static int begin(void **state)
{
    world *w = calloc(1, sizeof *w);
    if (w == NULL || rq_budget_new(BUDGET, &w->budget) != RQ_OK) return -1;
    const rq_rpc_service service = {.name = "ClientService",
                                    .methods = methods,
                                    .method_count = RQ_ARRAY_LEN(methods),
                                    .ctx = &w->handled};
    memory_loops_init(&w->loops, NULL, NULL);
    w->loops.loop.now_ns = 1000 * SECOND;
    rq_rpc_server_options o = {.loops = &w->loops,
                               .budget = w->budget,
                               .services = &service,
                               .service_count = 1,
                               .request_bytes_max = (size_t)1 << 20};
    if (rq_rpc_server_open(&o, &w->server, NULL) != RQ_OK) return -1;
    open_stream(w, &w->slow);
    open_stream(w, &w->other);
    *state = w;
    return 0;
}

static int end(void **state)
{
    world *w = *state;
    close_stream(&w->slow);
    close_stream(&w->other);
    rq_rpc_server_close(w->server);
    assert_int_equal(rq_budget_used(w->budget), 0);
    rq_budget_free(w->budget);
    free(w);
    return 0;
}

/* `seconds` pass, and the slow peer sends so many bytes in each. Returns whether it is still connected. */
static bool trickle(world *w, unsigned seconds, size_t bytes)
{
    rq_loop *loop = &w->loops.loop;
    uint8_t *zeros = calloc(1, bytes + 1);
    assert_non_null(zeros);
    for (unsigned i = 0; i < seconds && !w->slow.closing; i++) {
        loop->now_ns += SECOND;
        feed(&w->slow, zeros, bytes);
        memory_stream_look_at_clock(&w->slow);
        memory_stream_look_at_clock(&w->other);
        loop->run(loop);
    }
    free(zeros);
    return !w->slow.closing;
}

/* Another connection wants to send more than the budget has left. */
static void make_another_wait(world *w)
{
    feed_frame(&w->other, 100000, 50000);
    assert_true(w->other.paused);
    assert_true(rq_budget_contended(w->budget));
}

static void a_large_request_that_trickles_in_is_dropped(void **state)
{
    world *w = *state;
    feed_frame(&w->slow, 600000, 300000);
    assert_true(rq_budget_used(w->budget) >= BUDGET);
    make_another_wait(w);
    assert_false(trickle(w, 30, 1));
    w->loops.loop.run(&w->loops.loop);
    assert_false(w->other.paused); /* it has the memory at once, before the slow peer closes */
    assert_false(rq_budget_contended(w->budget));
    assert_false(w->other.closing);
}

/* Many small ones fill the budget, too. */
static void a_small_request_that_trickles_in_is_dropped(void **state)
{
    world *w = *state;
    feed_frame(&w->slow, 15000, 100);
    rq_budget_force(w->budget, 2 * BUDGET);
    assert_true(rq_budget_overdraw(w->budget, w));
    make_another_wait(w);
    bool is_connected = trickle(w, 30, 1);
    rq_budget_end_overdraft(w->budget, w);
    rq_budget_give(w->budget, 2 * BUDGET);
    assert_false(is_connected);
    assert_false(w->other.closing);
}

static void a_request_that_comes_steadily_is_waited_for(void **state)
{
    world *w = *state;
    feed_frame(&w->slow, 600000, 300000);
    make_another_wait(w);
    assert_true(trickle(w, 70, 600000 / 10 / 16)); /* the frame does not end meanwhile */
}

/* The loop did not run for a minute: what came meanwhile waits in the socket. */
static void a_pause_of_the_loop_drops_nobody(void **state)
{
    world *w = *state;
    feed_frame(&w->slow, 900000, 300000);
    make_another_wait(w);
    assert_true(trickle(w, 11, 20000));
    w->loops.loop.now_ns += 60 * SECOND;
    memory_stream_look_at_clock(&w->slow);
    memory_stream_look_at_clock(&w->other);
    w->loops.loop.run(&w->loops.loop);
    assert_true(trickle(w, 5, 40000));
    assert_false(trickle(w, 30, 1)); /* only once */
}

static void nobody_is_dropped_while_there_is_memory(void **state)
{
    world *w = *state;
    feed_frame(&w->slow, 600000, 300000);
    assert_true(trickle(w, 1000, 1));
    assert_false(w->other.closing);
}

/* ---- many short calls */

/* A frame with a Get of the row "r" in the region "r". */
static const uint8_t get[] = {0,  0,    0, 23,   9, 0x08, 1, 0x1a, 3,    'G', 'e',  't', 0x20, 1,
                              12, 0x0a, 5, 0x08, 1, 0x12, 1, 'r',  0x12, 3,   0x0a, 1,   'r'};

static int begin_clock(void **state)
{
    int rc = begin(state);
    world *w = *state;
    memory_clock_ns = w->loops.loop.now_ns;
    return rc;
}

static int end_clock(void **state)
{
    memory_clock_ns = 0;
    return end(state);
}

/* One read brings `count` calls. */
static void read_calls(rq_stream *s, size_t count)
{
    size_t room = 0;
    uint8_t *p = s->events->on_buffer(s, &room);
    assert_non_null(p);
    assert_true(room >= count * sizeof get);
    for (size_t i = 0; i < count; i++)
        memcpy(p + i * sizeof get, get, sizeof get);
    s->events->on_read(s, count * sizeof get);
}

/* Runs one task in the next iteration. False: there is none. */
static bool run_next(rq_loop *loop)
{
    rq_task *task = loop->tasks;
    if (task == NULL) return false;
    loop->tasks = task->next;
    if (loop->tasks == NULL) loop->end = &loop->tasks;
    loop->now_ns = memory_clock_ns;
    task->run(task);
    return true;
}

#define MANY 1000u
/* At most so many calls begin until an iteration is long and a slice over: the time of the last begin is what counts. */
#define CALLS_OF(ns) ((unsigned)((ns) / CALL_NS) + 3)
#define SLICE_MAX_NS 500000

static void many_short_calls_of_a_connection_take_several_iterations(void **state)
{
    world *w = *state;
    rq_loop *loop = &w->loops.loop;
    read_calls(&w->slow, MANY);
    assert_in_range(w->handled, RQ_TURN_NS / CALL_NS, CALLS_OF(RQ_TURN_NS + SLICE_MAX_NS));
    assert_true(w->slow.events->is_busy(&w->slow)); /* it is not closed as idle meanwhile */
    unsigned turns = 0;
    for (unsigned before = w->handled; run_next(loop); before = w->handled, turns++)
        assert_in_range(w->handled - before, 0, CALLS_OF(RQ_TURN_NS + SLICE_MAX_NS));
    assert_int_equal(w->handled, MANY);
    assert_true(turns > MANY * CALL_NS / (2 * RQ_TURN_NS));
    assert_false(w->slow.events->is_busy(&w->slow));
    assert_false(w->slow.closing);
}

/* It has few calls. */
static void another_connection_is_served_at_once_in_a_long_iteration(void **state)
{
    world *w = *state;
    read_calls(&w->other, 1); /* from now on it is known */
    read_calls(&w->slow, MANY);
    unsigned before = w->handled;
    read_calls(&w->other, 5);
    assert_int_equal(w->handled, before + 5);
    read_calls(&w->other, 1); /* and soon after */
    assert_int_equal(w->handled, before + 6);
    while (run_next(&w->loops.loop))
        ;
    assert_int_equal(w->handled, 1 + MANY + 6);
}

/* Each connection has few calls. */
static void many_connections_take_several_iterations(void **state)
{
    enum { CONNECTIONS = 200, CALLS = 5 };
    world *w = *state;
    rq_stream *all = calloc(CONNECTIONS, sizeof *all);
    assert_non_null(all);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        open_stream(w, &all[i]);
        read_calls(&all[i], 1);
        while (run_next(&w->loops.loop))
            ;
    }
    w->handled = 0;
    w->loops.loop.now_ns = memory_clock_ns;
    for (unsigned i = 0; i < CONNECTIONS; i++)
        read_calls(&all[i], CALLS);
    unsigned at_once = w->handled;
    while (run_next(&w->loops.loop))
        ;
    assert_int_equal(w->handled, CONNECTIONS * CALLS);
    assert_in_range(at_once, RQ_TURN_NS / CALL_NS, 5 * RQ_TURN_NS / CALL_NS);
    for (unsigned i = 0; i < CONNECTIONS; i++)
        close_stream(&all[i]);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
        T(a_large_request_that_trickles_in_is_dropped),
        T(a_small_request_that_trickles_in_is_dropped),
        T(a_request_that_comes_steadily_is_waited_for),
        T(a_pause_of_the_loop_drops_nobody),
        T(nobody_is_dropped_while_there_is_memory),
#undef T
#define T(name) cmocka_unit_test_setup_teardown(name, begin_clock, end_clock)
        T(many_short_calls_of_a_connection_take_several_iterations),
        T(another_connection_is_served_at_once_in_a_long_iteration),
        T(many_connections_take_several_iterations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
