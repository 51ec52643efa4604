/* SPDX-License-Identifier: Apache-2.0 */
/* Outgoing streams on a driven loop: hosts, addresses, deadlines, closes in every state; and the
 * waits and the descriptor of the driven loop. */
#include "net/loop_priv.h"
#include "net/socket.h"

#include "peer.h"
#include "../base/unit.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_NS 1000000000

struct call {
    unsigned opened, closed;
    rq_err why, open_rc;
    char failure[512];
    size_t got, want;
    uint8_t last;
};

static rq_err on_open(void *ctx, rq_stream *s)
{
    struct call *c = ctx;
    assert_ptr_equal(rq_stream_user(s), c);
    c->opened++;
    return c->open_rc;
}

static size_t on_data(rq_stream *s, rq_slice bytes)
{
    struct call *c = rq_stream_user(s);
    c->got += bytes.len;
    c->last = bytes.ptr[bytes.len - 1];
    return bytes.len;
}

static void on_close(rq_stream *s, rq_err why)
{
    struct call *c = rq_stream_user(s);
    c->closed++;
    c->why = why;
    snprintf(c->failure, sizeof c->failure, "%s", rq_stream_failure(s));
}

static const rq_stream_events events = {
    .on_open = on_open, .on_data = on_data, .on_close = on_close};

static rq_loops *driven_loops(void)
{
    rq_loops *loops;
    rq_loops_options o = {.driven = true};
    assert_int_equal(rq_loops_new(&o, &loops), RQ_OK);
    assert_int_equal(rq_loops_count(loops), 1);
    return loops;
}

static rq_stream *begin(rq_loops *loops, const char *host, uint16_t port, struct call *c)
{
    rq_stream *s;
    rq_stream_target to = {
        .host = host, .port = port, .timeout_ns = 10ull * SECOND_NS, .events = &events, .user = c};
    assert_int_equal(rq_stream_connect(rq_loops_get(loops, 0), &to, &s), RQ_OK);
    return s;
}

#define TURN_UNTIL(loops, condition)                                                               \
    do {                                                                                           \
        uint64_t until_ = rq_loop_clock_ns() + 60ull * SECOND_NS;                                  \
        while (!(condition)) {                                                                     \
            assert_true(rq_loop_clock_ns() < until_);                                              \
            rq_loop_turn(rq_loops_get(loops, 0), 100000000);                                       \
        }                                                                                          \
    } while (0)

/* Listens on the address; the kernel completes the connections. */
static int listen_on(const char *address, uint16_t *ret_port)
{
    int fd;
    rq_error why = {0};
    if (rq_socket_listen(address, 0, false, &fd, ret_port, &why) != RQ_OK) return -1;
    return fd;
}

static int accept_one(int fd)
{
    struct pollfd p = {fd, POLLIN, 0};
    assert_int_equal(poll(&p, 1, 60000), 1);
    int got = accept(fd, NULL, NULL);
    assert_true(got >= 0);
    return got;
}

/* A bound port without a listener, so that no other process can use it. */
static int closed_port(const char *address, uint16_t *ret_port)
{
    int fd;
    rq_error why = {0};
    assert_int_equal(rq_socket_bind(address, 0, false, &fd, ret_port, &why), RQ_OK);
    return fd;
}

static void output_waits_for_the_connection(void **state)
{
    (void)state;
    uint16_t port;
    int fd = listen_on("127.0.0.1", &port);
    rq_loops *loops = driven_loops();
    struct call c = {0};
    rq_stream *s = begin(loops, "127.0.0.1", port, &c);
    assert_int_equal(rq_stream_write(s, "hello", 5), RQ_OK);
    assert_int_equal(c.opened, 0);
    TURN_UNTIL(loops, c.opened == 1);
    int peer = accept_one(fd);
    peer_expect(peer, "hello", 5);
    peer_send(peer, "abc", 3);
    TURN_UNTIL(loops, c.got == 3);
    assert_string_equal(rq_stream_peer(s)->host, "127.0.0.1");
    assert_int_equal(rq_stream_peer(s)->port, port);
    close(peer);
    TURN_UNTIL(loops, c.closed == 1);
    assert_int_equal(c.why, RQ_OK);
    assert_string_equal(c.failure, "");
    rq_loops_free(loops);
    assert_int_equal(c.closed, 1);
    close(fd);
}

static void a_refused_connection_reports_its_reason(void **state)
{
    (void)state;
    uint16_t port;
    char expected[100];
    int fd = closed_port("127.0.0.1", &port);
    rq_loops *loops = driven_loops();
    struct call c = {0};
    begin(loops, "127.0.0.1", port, &c);
    assert_int_equal(c.closed, 0); /* on_close is never called within rq_stream_connect */
    TURN_UNTIL(loops, c.closed == 1);
    snprintf(expected, sizeof expected, "cannot connect to 127.0.0.1:%u: Connection refused", port);
    assert_string_equal(c.failure, expected);
    assert_int_equal(c.why, RQ_E_IO);
    assert_int_equal(c.opened, 0);
    rq_loops_free(loops);
    close(fd);
}

/* ::1 is tried first if the host has IPv6, and refuses. */
static void the_next_address_is_tried(void **state)
{
    (void)state;
    uint16_t port;
    int fd = listen_on("127.0.0.1", &port);
    rq_loops *loops = driven_loops();
    struct call c = {0};
    rq_stream *s = begin(loops, "localhost", port, &c);
    assert_int_equal(rq_stream_write(s, "kept", 4), RQ_OK);
    TURN_UNTIL(loops, c.opened == 1);
    int peer = accept_one(fd);
    peer_expect(peer, "kept", 4);
    rq_loops_free(loops);
    assert_int_equal(c.closed, 1);
    assert_int_equal(c.why, RQ_E_CANCELLED);
    close(peer);
    close(fd);
}

static void ipv6_addresses_are_hosts(void **state)
{
    (void)state;
    uint16_t port;
    int fd = listen_on("::1", &port);
    if (fd < 0) skip(); /* the host has no IPv6 */
    rq_loops *loops = driven_loops();
    struct call c = {0};
    begin(loops, "::1", port, &c);
    TURN_UNTIL(loops, c.opened == 1);
    rq_loops_free(loops);
    close(fd);
}

/* A label has at most 63 characters, so no name server is asked. */
static void a_name_without_addresses_is_reported(void **state)
{
    (void)state;
    char host[80] = {0};
    memset(host, 'x', 70);
    rq_loops *loops = driven_loops();
    struct call c = {0};
    begin(loops, host, 1, &c);
    TURN_UNTIL(loops, c.closed == 1);
    assert_memory_equal(c.failure, "cannot find xxx", 15);
    assert_int_equal(c.why, RQ_E_IO);
    rq_loops_free(loops);
}

/* The kernel drops the first packets of a connection to a listener with a full queue. */
static void an_address_that_does_not_answer_is_given_up(void **state)
{
    (void)state;
    enum { N = 8 };
    uint16_t port;
    rq_error why = {0};
    int fd, full[N];
    assert_int_equal(rq_socket_bind("127.0.0.1", 0, false, &fd, &port, &why), RQ_OK);
    assert_int_equal(listen(fd, 0), 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < N; i++) {
        full[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(full[i], (struct sockaddr *)&to, sizeof to);
    }
    rq_loops *loops = driven_loops();
    struct call c = {0};
    rq_stream *s;
    rq_stream_target target = {
        .host = "127.0.0.1", .port = port, .timeout_ns = 50000000, .events = &events, .user = &c};
    assert_int_equal(rq_stream_connect(rq_loops_get(loops, 0), &target, &s), RQ_OK);
    TURN_UNTIL(loops, c.closed == 1);
    assert_int_equal(c.why, RQ_E_TIMEOUT);
    assert_non_null(strstr(c.failure, "no response in time"));
    rq_loops_free(loops);
    for (int i = 0; i < N; i++)
        close(full[i]);
    close(fd);
}

static void a_stream_may_be_closed_in_every_state(void **state)
{
    (void)state;
    static const char *const hosts[] = {"127.0.0.1", "localhost"};
    uint16_t port, refusing;
    int fd = listen_on("127.0.0.1", &port), none = closed_port("127.0.0.1", &refusing);
    for (unsigned turns = 0; turns < 5; turns++)
        for (unsigned how = 0; how < 12; how++) {
            rq_loops *loops = driven_loops();
            struct call c = {0};
            rq_stream *s = begin(loops, hosts[how % 2], how / 2 % 2 == 0 ? port : refusing, &c);
            assert_int_equal(rq_stream_write(s, "x", 1), RQ_OK);
            for (unsigned i = 0; i < turns && c.closed == 0; i++)
                rq_loop_turn(rq_loops_get(loops, 0), 0);
            if (c.closed == 0 && how / 4 == 0) rq_stream_close(s, RQ_E_CLOSED);
            if (c.closed == 0 && how / 4 == 1) rq_stream_finish(s);
            rq_loops_free(loops);
            assert_int_equal(c.closed, 1);
        }
    close(fd);
    close(none);
}

static void on_open_may_refuse(void **state)
{
    (void)state;
    uint16_t port;
    int fd = listen_on("127.0.0.1", &port);
    rq_loops *loops = driven_loops();
    struct call c = {.open_rc = RQ_E_PERMISSION};
    begin(loops, "127.0.0.1", port, &c);
    TURN_UNTIL(loops, c.closed == 1);
    assert_int_equal(c.why, RQ_E_PERMISSION);
    assert_int_equal(c.opened, 1);
    rq_loops_free(loops);
    close(fd);
}

static void a_reset_connection_reports_its_reason(void **state)
{
    (void)state;
    uint16_t port;
    int fd = listen_on("127.0.0.1", &port);
    rq_loops *loops = driven_loops();
    struct call c = {0};
    begin(loops, "127.0.0.1", port, &c);
    TURN_UNTIL(loops, c.opened == 1);
    int peer = accept_one(fd);
    struct linger at_once = {1, 0};
    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    close(peer);
    TURN_UNTIL(loops, c.closed == 1);
    assert_int_equal(c.why, RQ_E_IO);
    assert_non_null(strstr(c.failure, "Connection reset by peer"));
    rq_loops_free(loops);
    close(fd);
}

/* ---- the driven loop */

struct reader {
    int fd;
    size_t got;
};

static void *read_all(void *arg)
{
    struct reader *r = arg;
    static uint8_t bytes[65536];
    ssize_t n;
    while ((n = read(r->fd, bytes, sizeof bytes)) > 0)
        r->got += (size_t)n;
    return NULL;
}

/* A caller's event loop runs a turn only when the descriptor is readable or the time-out is
 * over. */
static void the_descriptor_announces_all_work(void **state)
{
    (void)state;
    enum { BYTES = 16 << 20 };
    uint16_t port;
    int fd = listen_on("127.0.0.1", &port);
    rq_loops *loops = driven_loops();
    rq_loop *loop = rq_loops_get(loops, 0);
    struct call c = {0};
    rq_stream *s = begin(loops, "localhost", port, &c);
    rq_loop_flush(loop);
    struct reader r = {.fd = -1};
    pthread_t thread;
    uint8_t *bytes = calloc(1, BYTES);
    uint64_t until = rq_loop_clock_ns() + 60ull * SECOND_NS;
    while (c.closed == 0 && rq_loop_clock_ns() < until) {
        int64_t due = rq_loop_due(loop), now = (int64_t)rq_loop_clock_ns();
        struct pollfd p = {rq_loop_descriptor(loop), POLLIN, 0};
        int ms = due == INT64_MAX ? 20000 : due > now ? (int)((due - now) / 1000000 + 1) : 0;
        int n = poll(&p, 1, ms);
        assert_true(n == 1 || due != INT64_MAX);
        rq_loop_turn(loop, 0);
        if (c.opened == 1 && r.fd < 0) {
            r.fd = accept_one(fd);
            assert_int_equal(rq_stream_write(s, bytes, BYTES),
                             RQ_OK); /* more than the socket's buffers take */
            rq_loop_flush(loop);
            assert_true(rq_stream_out_pending(s) > 0);
            pthread_create(&thread, NULL, read_all, &r);
        }
        if (r.fd >= 0 && c.closed == 0 && rq_stream_out_pending(s) == 0) {
            rq_stream_close(s, RQ_E_CLOSED);
            rq_loop_flush(loop);
        }
    }
    assert_int_equal(c.closed, 1);
    rq_loops_free(loops);
    pthread_join(thread, NULL);
    assert_int_equal(r.got, BYTES);
    free(bytes);
    close(r.fd);
    close(fd);
}

/* Runs in a child process in which libuv has not been used yet. */
static void loops_without_descriptors(rq_loops_options o)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool failed = false;
        struct rlimit all;
        int first = dup(0), wrong = getrlimit(RLIMIT_NOFILE, &all) != 0;
        for (rlim_t limit = (rlim_t)first; limit < (rlim_t)first + 30; limit++) {
            rq_loops *loops = NULL;
            struct rlimit few = {limit, all.rlim_max};
            wrong += setrlimit(RLIMIT_NOFILE, &few) != 0;
            rq_err rc = rq_loops_new(&o, &loops);
            failed |= rc == RQ_E_IO;
            wrong += rc != RQ_OK && rc != RQ_E_IO;
            wrong += limit == (rlim_t)first + 29 && rc != RQ_OK;
            if (rc == RQ_OK) rq_loops_free(loops);
        }
        _exit(failed && wrong == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_loop_without_descriptors_is_an_error(void **state)
{
    (void)state;
    loops_without_descriptors((rq_loops_options){.driven = true});
    loops_without_descriptors((rq_loops_options){.count = 1});
}

/* The stall time of a stream that is written to after an idle time begins with that write, not with
 * the last turn. */
static void an_idle_time_is_no_stall(void **state)
{
    (void)state;
    enum { BYTES = 16 << 20 };
    uint16_t port;
    int fd = listen_on("127.0.0.1", &port);
    rq_loops *loops = driven_loops();
    struct call c = {0};
    rq_stream *s = begin(loops, "127.0.0.1", port, &c);
    uint8_t *bytes = calloc(1, BYTES);
    TURN_UNTIL(loops, c.opened == 1);
    uint64_t turned = rq_loop_now_ns(rq_loops_get(loops, 0));
    while (rq_loop_clock_ns() == turned)
        ;
    uint64_t begun = rq_loop_clock_ns();
    assert_int_equal(rq_stream_write(s, bytes, BYTES), RQ_OK);
    rq_loop_flush(rq_loops_get(loops, 0));
    assert_true(rq__stream_stalled(s));
    assert_true(s->progress_ns >= begun);
    rq_loops_free(loops);
    free(bytes);
    close(fd);
}

struct waiting {
    rq_loops *loops;
    pthread_mutex_t lock;
    pthread_cond_t waits;
    unsigned before, after;
};

static void before_wait(void *ctx)
{
    struct waiting *w = ctx;
    w->before++;
    pthread_cond_signal(&w->waits);
    pthread_mutex_unlock(&w->lock);
}

static void after_wait(void *ctx)
{
    struct waiting *w = ctx;
    pthread_mutex_lock(&w->lock);
    w->after++;
}

static void *turn_once(void *arg)
{
    struct waiting *w = arg;
    pthread_mutex_lock(&w->lock);
    rq_loop_turn(rq_loops_get(w->loops, 0), 60ll * SECOND_NS);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* In three ways: by a wake-up, a posted task, and a stream that another thread begins. */
static void another_thread_ends_a_wait(void **state)
{
    (void)state;
    uint16_t port;
    int fd = listen_on("127.0.0.1", &port);
    for (int way = 0; way < 3; way++) {
        struct waiting w = {.lock = PTHREAD_MUTEX_INITIALIZER, .waits = PTHREAD_COND_INITIALIZER};
        rq_loops_options o = {
            .driven = true, .before_wait = before_wait, .after_wait = after_wait, .ctx = &w};
        struct call c = {0};
        assert_int_equal(rq_loops_new(&o, &w.loops), RQ_OK);
        uint64_t begun = rq_loop_clock_ns();
        pthread_t thread;
        pthread_mutex_lock(&w.lock);
        pthread_create(&thread, NULL, turn_once, &w);
        while (w.before == 0)
            pthread_cond_wait(&w.waits, &w.lock);
        if (way == 0) rq_loop_wake(rq_loops_get(w.loops, 0));
        if (way > 0) begin(w.loops, way == 1 ? "localhost" : "127.0.0.1", port, &c);
        if (way == 2) rq_loop_flush(rq_loops_get(w.loops, 0));
        pthread_mutex_unlock(&w.lock);
        pthread_join(thread, NULL);
        assert_int_equal(w.before, 1);
        assert_int_equal(w.after, 1);
        assert_true(rq_loop_clock_ns() - begun < 30ull * SECOND_NS);
        pthread_mutex_lock(&w.lock);
        rq_loops_free(w.loops);
        pthread_mutex_unlock(&w.lock);
        assert_int_equal(c.closed, way > 0);
    }
    close(fd);
}

struct tick {
    rq_loop_timer timer;
    unsigned fired;
};

static void tick(rq_loop_timer *t)
{
    RQ_CONTAINER_OF(t, struct tick, timer)->fired++;
}

static void a_timer_ends_a_wait(void **state)
{
    (void)state;
    rq_loops *loops = driven_loops();
    rq_loop *loop = rq_loops_get(loops, 0);
    struct tick soon = {.timer.run = tick}, late = {.timer.run = tick};
    uint64_t begun = rq_loop_clock_ns();
    rq_loop_timer_arm(loop, &late.timer, 3600ull * SECOND_NS);
    rq_loop_timer_arm(loop, &soon.timer, 300000);
    rq_loop_turn(loop, 60ll * SECOND_NS);
    assert_int_equal(soon.fired, 1);
    assert_true(rq_loop_clock_ns() - begun >= 300000);
    assert_true(rq_loop_clock_ns() - begun < 30ull * SECOND_NS);
    assert_int_equal(late.fired, 0);
    rq_loop_hasten_timers(loop);
    assert_true(rq_loop_due(loop) <= (int64_t)begun);
    rq_loop_turn(loop, 60ll * SECOND_NS);
    assert_int_equal(late.fired, 1);
    rq_loops_free(loops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* must be first, because it needs a process that has not used libuv yet */
        cmocka_unit_test(a_loop_without_descriptors_is_an_error),
        cmocka_unit_test(output_waits_for_the_connection),
        cmocka_unit_test(a_refused_connection_reports_its_reason),
        cmocka_unit_test(the_next_address_is_tried),
        cmocka_unit_test(ipv6_addresses_are_hosts),
        cmocka_unit_test(a_name_without_addresses_is_reported),
        cmocka_unit_test(an_address_that_does_not_answer_is_given_up),
        cmocka_unit_test(a_stream_may_be_closed_in_every_state),
        cmocka_unit_test(on_open_may_refuse),
        cmocka_unit_test(a_reset_connection_reports_its_reason),
        cmocka_unit_test(the_descriptor_announces_all_work),
        cmocka_unit_test(an_idle_time_is_no_stall),
        cmocka_unit_test(another_thread_ends_a_wait),
        cmocka_unit_test(a_timer_ends_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
