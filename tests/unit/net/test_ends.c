/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of streams: loops and listeners that stop, and peers that do not read, read slowly or never close. Where time
 * matters no loop runs: the test sets its clock, and calls its sweep. */
#include "echo.h"
#include "net/loop_priv.h"
#include "peer.h"
#include "../base/unit.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- loops and listeners that stop */

static void loops_stop_with_connections_open(void **state)
{
    (void)state;
    rq_loops *loops = start_loops(2, NULL);
    struct echo e = {0};
    rq_listener *l = listen_echo(loops, &e, 0);
    int fds[8];
    for (int i = 0; i < 8; i++) {
        fds[i] = peer_connect(rq_listener_port(l));
        peer_send(fds[i], "x\n", 2);
        peer_expect(fds[i], "x\n", 2);
    }
    rq_loops_stop(loops);
    assert_int_equal(e.closed, 8);
    for (int i = 0; i < 8; i++)
        close(fds[i]);
    rq_listener_close(l);
    rq_loops_free(loops);
}

/* Counts turns of the loops instead of time: a stream that waited for its peer's end-of-file would
 * take seconds. */
static bool is_closed_within_turns(rq_loops *loops, const rq_listener *l)
{
    for (int i = 0; i < 1000 && rq_listener_connections(l) > 0; i++)
        rq_loops_sync(loops);
    return rq_listener_connections(l) == 0;
}

static void a_stop_does_not_wait_for_peers_that_have_everything(void **state)
{
    (void)state;
    rq_loops *loops = start_loops(2, NULL);
    struct echo e = {0};
    rq_listener *l = listen_echo(loops, &e, 0);
    int fds[8], on = 1;
    for (int i = 0; i < 8; i++) {
        fds[i] = peer_connect(rq_listener_port(l));
        peer_send(fds[i], "x\n", 2);
        peer_expect(fds[i], "x\n", 2);
        setsockopt(fds[i], IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on); /* acknowledge at once */
    }
    rq_listener_stop(l, true);
    assert_true(is_closed_within_turns(loops, l));
    assert_int_equal(e.closed, 8);
    for (int i = 0; i < 8; i++) {
        peer_expect_end(fds[i]);
        close(fds[i]);
    }
    rq_listener_close(l);
    stop_loops(loops);
}

/* Echoes one line. Scans each received byte once, because a long line arrives in thousands of reads. */
static size_t long_line_data(rq_stream *s, rq_slice bytes)
{
    if (bytes.ptr[bytes.len - 1] != '\n') return 0;
    assert_int_equal(rq_stream_write(s, bytes.ptr, bytes.len), RQ_OK);
    return bytes.len;
}

static rq_listener *listen_long_line(rq_loops *loops, struct echo *e)
{
    static const rq_stream_events events = {
        .on_open = echo_open, .on_data = long_line_data, .on_close = echo_close};
    rq_listener *l;
    rq_listener_options o = {.events = &events, .ctx = e};
    assert_int_equal(rq_listener_open(loops, &o, &l, NULL), RQ_OK);
    return l;
}

/* A peer that has not read everything by then is given up, which may happen if this thread gets no processor. */
static bool is_given_up(uint64_t finished_ns)
{
    return rq_loop_clock_ns() - finished_ns >= UINT64_C(3000000000); /* LINGER_NS */
}

/* The bytes must be the expected ones. Returns how many came. */
static size_t read_to_end(int fd, const char *expected, size_t len)
{
    char bytes[65536];
    size_t got = 0;
    ssize_t n;
    while ((n = peer_recv(fd, bytes, sizeof bytes)) > 0) {
        assert_true((size_t)n <= len - got);
        assert_memory_equal(bytes, expected + got, (size_t)n);
        got += (size_t)n;
    }
    return got;
}

static void a_stop_waits_for_a_peer_that_has_not_read(void **state)
{
    (void)state;
    rq_loops *loops = start_loops(1, NULL);
    struct echo e = {0};
    rq_listener *l = listen_long_line(loops, &e);
    size_t len = 32 << 20; /* more than the kernel's buffers take */
    char *line = malloc(len);
    assert_non_null(line);
    memset(line, 'x', len);
    line[len - 1] = '\n';
    int fd = peer_connect(rq_listener_port(l));
    peer_send(fd, line, len);
    peer_expect(fd, line, 1); /* the answer has begun */
    uint64_t stopped_ns = rq_loop_clock_ns();
    rq_listener_stop(l, true);
    bool waits = !is_closed_within_turns(loops, l);
    assert_true(waits || is_given_up(stopped_ns));
    size_t got = 1 + read_to_end(fd, line + 1, len - 1);
    assert_true(got == len || is_given_up(stopped_ns));
    close(fd);
    free(line);
    rq_listener_close(l);
    stop_loops(loops);
}

static void a_listener_may_be_opened_and_closed_before_the_loops_run(void **state)
{
    (void)state;
    rq_loops *loops;
    rq_loops_options o = {.count = 1};
    struct echo e = {0};
    assert_int_equal(rq_loops_new(&o, &loops), RQ_OK);
    rq_listener *never = listen_echo(loops, &e, 0);
    rq_listener *l = listen_echo(loops, &e, 0);
    rq_listener_close(never);
    assert_int_equal(rq_loops_start(loops), RQ_OK);
    int fd = peer_connect(rq_listener_port(l));
    peer_send(fd, "x\n", 2);
    peer_expect(fd, "x\n", 2);
    close(fd);
    rq_listener_close(l);
    stop_loops(loops);
}

/* ---- rq_stream_finish, by a clock of the test's own */

#define SECOND UINT64_C(1000000000)
#define LINGER (3 * SECOND) /* for a peer that takes nothing */
#define FINISH_MAX_S 20u

/* Like a protocol that sets deadlines only while a request is incomplete: none is, so the deadline is removed. */
static void forget_deadline(rq_stream *s)
{
    rq_stream_set_deadline(s, 0);
}

static const rq_stream_events by_hand = {.on_open = echo_open,
                                         .on_data = echo_data,
                                         .on_drain = forget_deadline,
                                         .on_close = echo_close};

/* A stream on a loop without a thread. */
typedef struct world {
    rq_loops *loops;
    rq_loop *loop;
    rq_listener *listener;
    rq_stream *s;
    int peer;
    struct echo echo;
} world;

static int begin(void **state)
{
    int fds[2];
    world *w = calloc(1, sizeof *w);
    rq_loops_options loops = {.count = 1};
    rq_listener_options listen = {.events = &by_hand, .ctx = w};
    if (w == NULL || rq_loops_new(&loops, &w->loops) != RQ_OK ||
        rq_listener_open(w->loops, &listen, &w->listener, NULL) != RQ_OK ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0)
        return -1;
    w->loop = rq_loops_get(w->loops, 0);
    w->loop->now_ns = rq_loop_clock_ns(); /* from now on the test's */
    w->peer = fds[1];
    w->s = calloc(1, sizeof *w->s);
    if (w->s == NULL) return -1;
    *w->s = (rq_stream){.fd = fds[0],
                        .loop = w->loop,
                        .listener = w->listener,
                        .events = &by_hand,
                        .user = &w->echo,
                        .opened = true};
    atomic_fetch_add(&w->listener->connections, 1);
    atomic_fetch_add(&w->loops->accepted, 1);
    if (!rq__stream_attach(w->s)) return -1;
    rq__stream_read_start(w->s);
    *state = w;
    return 0;
}

static int end(void **state)
{
    world *w = *state;
    rq_stream_close(w->s, RQ_OK);
    while (w->echo.closed == 0)
        w->loops->libuv.uv_run(&w->loop->uv, UV_RUN_NOWAIT);
    close(w->peer);
    rq_listener_close(w->listener);
    rq_loops_free(w->loops);
    free(w);
    return 0;
}

/* Writes `len` bytes and finishes the stream. */
static void finish_with(world *w, size_t len)
{
    char *bytes = calloc(1, len);
    assert_non_null(bytes);
    assert_int_equal(rq_stream_write(w->s, bytes, len), RQ_OK);
    free(bytes);
    rq_stream_finish(w->s);
    rq__loop_flush(w->loop);
}

/* Time passes. Returns whether the stream is still open. */
static bool pass(world *w, uint64_t ns)
{
    w->loop->now_ns += ns;
    rq__loop_sweep(&w->loop->sweep);
    return !w->s->closing;
}

/* The peer reads at most `most` bytes, and the loop learns that there is room. Returns what it has read; *ret_end: the stream
 * sends no more. */
static size_t take(world *w, size_t most, bool *ret_end)
{
    char bytes[16384];
    size_t got = 0;
    ssize_t n = 1;
    while (got < most && n > 0) {
        size_t want = most - got < sizeof bytes ? most - got : sizeof bytes;
        n = recv(w->peer, bytes, want, 0);
        got += n > 0 ? (size_t)n : 0;
    }
    *ret_end = n == 0;
    if (w->s->writing) rq__stream_ready(w->s, UV_WRITABLE);
    return got;
}

static void a_peer_that_reads_slowly_is_waited_for(void **state)
{
    world *w = *state;
    bool ended;
    finish_with(w, 8 << 20);
    for (unsigned s = 3; s < FINISH_MAX_S; s += 3) {
        assert_true(take(w, 100000, &ended) > 0);
        assert_true(pass(w, LINGER));
    }
    assert_true(take(w, 100000, &ended) > 0);
    assert_false(pass(w, LINGER)); /* but not for ever */
}

static void a_peer_that_reads_everything_at_last_gets_everything(void **state)
{
    enum { BYTES = 4 << 20 };
    world *w = *state;
    bool ended = false;
    size_t got = 0;
    finish_with(w, BYTES);
    for (unsigned s = 3; s < 10; s += 3) {
        got += take(w, 100000, &ended);
        assert_true(pass(w, LINGER));
    }
    while (!ended)
        got += take(w, BYTES, &ended);
    assert_int_equal(got, BYTES);
}

static void a_peer_that_reads_nothing_is_left(void **state)
{
    world *w = *state;
    finish_with(w, 8 << 20);
    assert_true(pass(w, LINGER - 1));
    assert_false(pass(w, 1));
}

/* Whatever deadline the user sets. */
static void a_peer_that_never_closes_is_left(void **state)
{
    world *w = *state;
    bool ended;
    finish_with(w, 4);
    assert_int_equal(take(w, 5, &ended), 4);
    assert_true(ended);
    assert_true(pass(w, LINGER - 1));
    unsigned rounds = 0;
    while (pass(w, LINGER))
        rounds++;
    assert_in_range(rounds, 0, 1); /* it had read since the first look */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_stop_with_connections_open),
        cmocka_unit_test(a_stop_does_not_wait_for_peers_that_have_everything),
        cmocka_unit_test(a_stop_waits_for_a_peer_that_has_not_read),
        cmocka_unit_test(a_listener_may_be_opened_and_closed_before_the_loops_run),
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
        T(a_peer_that_reads_slowly_is_waited_for),
        T(a_peer_that_reads_everything_at_last_gets_everything),
        T(a_peer_that_reads_nothing_is_left),
        T(a_peer_that_never_closes_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
