/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that move between loops: no byte is lost, and moves depend on the load. */
#include "net/loop_priv.h"

#include "base/random.h"
#include "peer.h"
#include "../base/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LOOPS 4

/* An echo that may move. A '!' costs much CPU time. */
struct echo {
    _Atomic unsigned opened, closed, moves;
    _Atomic unsigned answered[LOOPS]; /* turns in which each loop answered something */
    _Atomic unsigned trial;           /* the trial that streams on the first loop belong to */
};

struct session {
    struct echo *echo;
    rq_loop *loop;
};

static rq_err echo_open(void *ctx, rq_stream *s)
{
    struct session *session = malloc(sizeof *session);
    *session = (struct session){ctx, rq_stream_loop(s)};
    atomic_fetch_add(&session->echo->opened, 1);
    rq_stream_set_user(s, session);
    return RQ_OK;
}

static void burn(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    int64_t end = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec + 500000;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    } while ((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec < end);
}

/* Echoes whole lines only, so that incomplete lines must move with the stream. */
static size_t echo_data(rq_stream *s, rq_slice bytes)
{
    struct session *session = rq_stream_user(s);
    assert_ptr_equal(session->loop, rq_stream_loop(s));
    assert_true(rq_loop_is_current(session->loop));
    size_t used = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        if (bytes.ptr[i] == '!') burn();
        if (bytes.ptr[i] == '\n') used = i + 1;
    }
    assert_int_equal(rq_stream_write(s, bytes.ptr, used), RQ_OK);
    if (rq_loop_index(session->loop) == 0) s->trial = atomic_load(&session->echo->trial);
    if (used > 0) atomic_fetch_add(&session->echo->answered[rq_loop_index(session->loop)], 1);
    return used;
}

static bool echo_leave(rq_stream *s)
{
    rq_stream_pause(s);
    return true;
}

static void echo_settled(rq_stream *s)
{
    struct session *session = rq_stream_user(s);
    if (session->loop != rq_stream_loop(s)) atomic_fetch_add(&session->echo->moves, 1);
    session->loop = rq_stream_loop(s);
    rq_stream_resume(s);
}

static void echo_close(rq_stream *s, rq_err why)
{
    (void)why;
    struct session *session = rq_stream_user(s);
    assert_true(rq_loop_is_current(rq_stream_loop(s)));
    atomic_fetch_add(&session->echo->closed, 1);
    free(session);
}

static const rq_stream_events echo_events = {
    .on_open = echo_open,
    .on_data = echo_data,
    .on_leave = echo_leave,
    .on_move_end = echo_settled,
    .on_close = echo_close,
};

struct server {
    rq_loops *loops;
    rq_listener *listener;
    struct echo echo;
};

static void start(struct server *v, unsigned loops, bool restless)
{
    *v = (struct server){0};
    rq_loops_options o = {.count = loops, .restless = restless};
    assert_int_equal(rq_loops_new(&o, &v->loops), RQ_OK);
    assert_int_equal(rq_loops_start(v->loops), RQ_OK);
    rq_listener_options l = {.events = &echo_events, .ctx = &v->echo};
    assert_int_equal(rq_listener_open(v->loops, &l, &v->listener, NULL), RQ_OK);
}

static void stop(struct server *v)
{
    if (v->listener != NULL) rq_listener_close(v->listener);
    assert_int_equal(v->echo.opened, v->echo.closed);
    rq_loops_stop(v->loops);
    rq_loops_free(v->loops);
}

#define LINES 3000u

struct client {
    pthread_t thread;
    uint16_t port;
    uint64_t seed;
};

/* Lines of random lengths in pieces of random lengths, several in flight; each must be echoed. */
static void *client_main(void *arg)
{
    struct client *c = arg;
    rq_random random;
    rq_random_seed(&random, c->seed);
    int fd = peer_connect(c->port);
    char text[4096], back[sizeof text];
    size_t len = 0;
    for (unsigned line = 0; line < LINES; line++) {
        len += (size_t)snprintf(text + len, 16, "%u\n", line);
        if (len < sizeof text - 16 && rq_random_below(&random, 4) > 0) continue;
        for (size_t sent = 0; sent < len;) {
            size_t n = 1 + rq_random_below(&random, len - sent);
            peer_send(fd, text + sent, n);
            sent += n;
        }
        peer_read(fd, back, len);
        assert_memory_equal(back, text, len);
        len = 0;
    }
    if (len > 0) peer_send(fd, text, len);
    if (len > 0) peer_expect(fd, text, len);
    close(fd);
    return NULL;
}

static void a_connection_that_moves_loses_nothing(void **state)
{
    (void)state;
    struct server v;
    start(&v, LOOPS, true);
    struct client c[6];
    for (unsigned i = 0; i < 6; i++) {
        c[i] = (struct client){.port = rq_listener_port(v.listener), .seed = 17 + i};
        assert_int_equal(pthread_create(&c[i].thread, NULL, client_main, &c[i]), 0);
    }
    for (unsigned i = 0; i < 6; i++)
        pthread_join(c[i].thread, NULL);
    assert_true(v.echo.moves > LINES);
    for (unsigned i = 0; i < LOOPS; i++)
        assert_true(v.echo.answered[i] > 0);
    stop(&v);
}

struct pusher {
    pthread_t thread;
    uint16_t port;
    const char *line;
    _Atomic bool *ended;
};

/* Sends until the other end has closed. */
static void *pusher_main(void *arg)
{
    struct pusher *p = arg;
    int fd = peer_connect(p->port);
    char back[16];
    size_t len = strlen(p->line);
    while (!atomic_load(p->ended) && peer_try_send(fd, p->line, len))
        if (peer_recv(fd, back, sizeof back) <= 0) break;
    close(fd);
    return NULL;
}

/* Streams that are moving between two loops are closed, too. */
static void everything_ends_while_connections_move(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 30; round++) {
        struct server v;
        start(&v, LOOPS, true);
        _Atomic bool ended = false;
        struct pusher p[4];
        for (unsigned i = 0; i < 4; i++) {
            p[i] = (struct pusher){
                .port = rq_listener_port(v.listener), .line = "a line\n", .ended = &ended};
            assert_int_equal(pthread_create(&p[i].thread, NULL, pusher_main, &p[i]), 0);
        }
        while (atomic_load(&v.echo.opened) < 4 || atomic_load(&v.echo.moves) < 20 + round)
            sched_yield();
        if (round % 3 == 0) rq_listener_stop(v.listener, true);
        if (round % 3 == 1) {
            rq_listener_close(v.listener);
            v.listener = NULL;
        }
        if (round % 3 == 2) rq_loops_stop(v.loops);
        atomic_store(&ended, true);
        for (unsigned i = 0; i < 4; i++)
            pthread_join(p[i].thread, NULL);
        stop(&v);
    }
}

/* Four clients whose lines cost time start on one loop, then spread; when they send rarely, they
 * gather again. The test compares no times: each state must be reached. */
static void much_work_is_spread_and_little_is_gathered(void **state)
{
    (void)state;
    struct server v;
    start(&v, 2, false);
    int fds[4];
    for (unsigned i = 0; i < 4; i++)
        fds[i] = peer_connect(rq_listener_port(v.listener));
    while (atomic_load(&v.echo.answered[0]) == 0 || atomic_load(&v.echo.answered[1]) == 0) {
        for (unsigned i = 0; i < 4; i++)
            peer_send(fds[i], "!\n", 2);
        for (unsigned i = 0; i < 4; i++)
            peer_expect(fds[i], "!\n", 2);
    }
    for (unsigned alone = 0; alone < 40;) {
        unsigned before = atomic_load(&v.echo.answered[1]);
        for (unsigned i = 0; i < 4; i++) {
            peer_send(fds[i], "\n", 1);
            peer_expect(fds[i], "\n", 1);
        }
        alone = atomic_load(&v.echo.answered[1]) == before ? alone + 1 : 0;
        usleep(2000); /* the interval of rare sends; no check depends on it */
    }
    for (unsigned i = 0; i < 4; i++)
        close(fds[i]);
    stop(&v);
}

/* The work of one client cannot be divided; new connections begin on other loops. */
static void a_new_connection_avoids_a_busy_loop(void **state)
{
    (void)state;
    struct server v;
    start(&v, 2, false);
    _Atomic bool ended = false;
    struct pusher p = {.port = rq_listener_port(v.listener), .line = "!\n", .ended = &ended};
    assert_int_equal(pthread_create(&p.thread, NULL, pusher_main, &p), 0);
    while (atomic_load(&v.echo.answered[1]) == 0) {
        int fd = peer_connect(rq_listener_port(v.listener));
        peer_send(fd, "\n", 1);
        peer_expect(fd, "\n", 1);
        close(fd);
    }
    atomic_store(&ended, true);
    pthread_join(p.thread, NULL);
    stop(&v);
}

/* Streams of a trial (net/spread.h) that another loop has ended move back. They would not move
 * because of low load alone. */
static void streams_of_a_trial_go_back(void **state)
{
    (void)state;
    struct server v;
    start(&v, 2, false);
    atomic_store(&v.echo.trial, 7);
    atomic_store(&v.loops->back_to, &v.loops->loop[1]);
    atomic_store(&v.loops->taken_back, 7);
    int fd = peer_connect(rq_listener_port(v.listener));
    while (atomic_load(&v.echo.answered[1]) == 0) {
        peer_send(fd, "\n", 1);
        peer_expect(fd, "\n", 1);
    }
    close(fd);
    stop(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_that_moves_loses_nothing),
        cmocka_unit_test(everything_ends_while_connections_move),
        cmocka_unit_test(a_new_connection_avoids_a_busy_loop),
        cmocka_unit_test(much_work_is_spread_and_little_is_gathered),
        cmocka_unit_test(streams_of_a_trial_go_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
