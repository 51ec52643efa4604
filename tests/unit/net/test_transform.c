/* SPDX-License-Identifier: Apache-2.0 */
/* Streams in memory, plain and with a transform: partial input, more output than input, closes with
 * pending output, errors, and charges to the budget. */
#include "frames.h"

#include "base/random.h"
#include "net/memory.h"
#include "../base/unit.h"

#include <stdatomic.h>
#include <unistd.h>

#define KB ((size_t)1024)

/* Echoes whole lines. "@N\n" answers N bytes, "quit\n" finishes, "close\n" closes. */
struct world {
    rq_loops *loops;
    rq_listener *listener;
    rq_budget *budget;
    size_t pause_at; /* unread output from which on input pauses; 0: never */
    bool speaks_first;
    _Atomic unsigned closed;
    _Atomic int why;
    _Atomic size_t pending, held; /* the stream's values when it last wrote or drained */
};

static void look(struct world *w, rq_stream *s)
{
    atomic_store(&w->pending, rq_stream_out_pending(s));
    atomic_store(&w->held, rq__stream_out_held(s));
}

static rq_err on_open(void *ctx, rq_stream *s)
{
    rq_stream_set_user(s, ctx);
    assert_string_equal(rq_stream_peer(s)->host, "127.0.0.1");
    struct world *w = ctx;
    if (!w->speaks_first) return RQ_OK;
    assert_int_equal(rq_stream_write(s, "welcome\n", 8), RQ_OK);
    look(w, s);
    return RQ_OK;
}

static void answer(rq_stream *s, const char *line, size_t len)
{
    if (line[0] != '@') {
        assert_int_equal(rq_stream_write(s, line, len), RQ_OK);
        return;
    }
    size_t n = strtoul(line + 1, NULL, 10);
    rq_buf b = {0};
    assert_int_equal(rq_buf_reserve(&b, n), RQ_OK);
    for (size_t i = 0; i < n; i++)
        b.ptr[i] = (uint8_t)(i % 251);
    b.len = n;
    assert_int_equal(rq_stream_write_owned(s, &b), RQ_OK);
}

static size_t on_data(rq_stream *s, rq_slice bytes)
{
    struct world *w = rq_stream_user(s);
    size_t used = 0;
    while (!rq_stream_closing(s)) {
        if (w->pause_at > 0 && rq_stream_out_pending(s) >= w->pause_at) {
            rq_stream_pause(s);
            break;
        }
        const char *line = (const char *)bytes.ptr + used;
        const char *end = memchr(line, '\n', bytes.len - used);
        if (end == NULL) break;
        size_t len = (size_t)(end + 1 - line);
        used += len;
        if (len == 5 && memcmp(line, "quit\n", 5) == 0)
            rq_stream_finish(s);
        else if (len == 6 && memcmp(line, "close\n", 6) == 0)
            rq_stream_close(s, RQ_E_STATE);
        else
            answer(s, line, len);
    }
    look(w, s);
    return used;
}

static void on_drain(rq_stream *s)
{
    struct world *w = rq_stream_user(s);
    look(w, s);
    if (rq_stream_paused(s) && rq_stream_out_pending(s) < w->pause_at) rq_stream_resume(s);
}

static void on_close(rq_stream *s, rq_err why)
{
    struct world *w = rq_stream_user(s);
    atomic_store(&w->why, why);
    atomic_fetch_add(&w->closed, 1);
}

static const rq_stream_events events = {
    .on_open = on_open, .on_data = on_data, .on_drain = on_drain, .on_close = on_close};

static void start(struct world *w, bool framed, size_t pause_at)
{
    *w = (struct world){.pause_at = pause_at};
    rq_loops_options o = {.count = 2};
    assert_int_equal(rq_loops_new(&o, &w->loops), RQ_OK);
    assert_int_equal(rq_loops_start(w->loops), RQ_OK);
    assert_int_equal(rq_budget_new(1 << 20, &w->budget), RQ_OK);
    rq_transform_kind kind = {.make = frames_make, .budget = w->budget};
    rq_listener_options l = {.events = &events, .ctx = w, .transform = framed ? &kind : NULL};
    assert_int_equal(rq_listener_open(w->loops, &l, &w->listener, NULL), RQ_OK);
}

static void stop(struct world *w)
{
    rq_listener_close(w->listener);
    rq_loops_stop(w->loops);
    rq_loops_free(w->loops);
    assert_int_equal(rq_budget_used(w->budget), 0);
    rq_budget_free(w->budget);
}

#define EVENTUALLY(condition)                                                                      \
    do {                                                                                           \
        for (int left = 60000; !(condition); left--) {                                             \
            assert_true(left > 0);                                                                 \
            usleep(1000);                                                                          \
        }                                                                                          \
    } while (0)

/* ---- a client */

struct client {
    rq_memory_peer *peer;
    bool framed, greeted;
    frames_reader reader;
    rq_buf plain; /* received bytes that are not yet taken */
    bool ended;   /* the connection has ended; `reader.ended`: in order */
};

static void client_open(struct client *c, struct world *w, bool framed)
{
    *c = (struct client){.framed = framed};
    assert_int_equal(rq_memory_connect(w->listener, &c->peer), RQ_OK);
}

static void send_raw(struct client *c, const void *bytes, size_t len)
{
    assert_int_equal(rq_memory_write(c->peer, bytes, len), RQ_OK);
}

static void client_send(struct client *c, const void *bytes, size_t len, size_t step)
{
    rq_buf wire = {0};
    if (c->framed)
        frames_encode(&wire, bytes, len, step);
    else
        assert_int_equal(rq_buf_append(&wire, bytes, len), RQ_OK);
    send_raw(c, wire.ptr, wire.len);
    rq_buf_clear(&wire);
}

static void receive(struct client *c)
{
    uint8_t bytes[3000];
    size_t len;
    const uint8_t *p = bytes;
    rq_memory_read(c->peer, bytes, sizeof bytes, &len);
    c->ended = len == 0;
    if (c->framed && !c->greeted && len > 0) {
        assert_true(len >= 4); /* the greeting arrives in one piece */
        assert_memory_equal(p, "EHLO", 4);
        c->greeted = true;
        p += 4;
        len -= 4;
    }
    if (c->framed)
        assert_true(frames_decode(&c->reader, p, len, &c->plain));
    else
        assert_int_equal(rq_buf_append(&c->plain, p, len), RQ_OK);
}

static size_t receive_until(struct client *c, size_t len)
{
    while (c->plain.len < len && !c->ended)
        receive(c);
    return c->plain.len;
}

static void expect(struct client *c, const void *bytes, size_t len)
{
    assert_true(receive_until(c, len) >= len);
    assert_memory_equal(c->plain.ptr, bytes, len);
    memmove(c->plain.ptr, c->plain.ptr + len, c->plain.len - len);
    c->plain.len -= len;
}

static void client_close(struct client *c)
{
    rq_memory_close(c->peer);
    rq_buf_clear(&c->plain);
    rq_buf_clear(&c->reader.in);
}

/* ---- the tests */

/* Echoes random lines, sent and received in pieces of any size. */
static void echo(bool framed)
{
    struct world w;
    struct client c;
    rq_random random;
    rq_random_seed(&random, unit_seed());
    start(&w, framed, 0);
    client_open(&c, &w, framed);
    if (framed) send_raw(&c, "HELO", 4);
    static char line[200000];
    for (unsigned i = 0; i < 300; i++) {
        size_t max = i % 10 == 0 ? sizeof line : 200;
        size_t len = 1 + rq_random_below(&random, max);
        for (size_t k = 0; k + 1 < len; k++)
            line[k] = i % 3 == 0 ? 'x' : (char)('a' + rq_random_below(&random, 26));
        line[len - 1] = '\n';
        client_send(&c, line, len, 1 + rq_random_below(&random, 900));
        expect(&c, line, len);
    }
    client_close(&c);
    EVENTUALLY(w.closed == 1);
    stop(&w);
}

static void memory_echoes_what_is_sent(void **state)
{
    (void)state;
    echo(false);
}

static void a_transform_is_not_noticed(void **state)
{
    (void)state;
    echo(true);
}

static void a_record_may_come_byte_by_byte(void **state)
{
    (void)state;
    struct world w;
    struct client c;
    start(&w, true, 0);
    client_open(&c, &w, true);
    rq_buf wire = {0};
    assert_int_equal(rq_buf_append(&wire, "HELO", 4), RQ_OK);
    frames_encode(&wire, "hello world\nmore\n", 17, 17);
    for (size_t i = 0; i < wire.len; i++)
        send_raw(&c, wire.ptr + i, 1);
    expect(&c, "hello world\nmore\n", 17);
    rq_buf_clear(&wire);
    client_close(&c);
    stop(&w);
}

/* The protocol sends before the handshake is complete: its output waits. */
static void output_waits_for_the_handshake(void **state)
{
    (void)state;
    struct world w;
    struct client c;
    start(&w, true, 0);
    w.speaks_first = true;
    client_open(&c, &w, true);
    send_raw(&c, "HEL", 3);
    EVENTUALLY(w.pending == 8);
    rq_loops_sync(w.loops);
    assert_int_equal(rq_memory_readable(c.peer), 0);
    send_raw(&c, "O", 1);
    expect(&c, "welcome\n", 8);
    client_send(&c, "a\n", 2, 2);
    expect(&c, "a\n", 2);
    client_close(&c);
    stop(&w);
}

/* A few bytes on the wire expand to many; the protocol pauses in the middle of them, and no further
 * socket event follows. */
static void more_output_than_input_reaches_a_reader_that_pauses(void **state)
{
    (void)state;
    enum { LINES = 12000 };
    struct world w;
    struct client c;
    start(&w, true, 1000);
    client_open(&c, &w, true);
    rq_buf wire = {0};
    char line[64];
    assert_int_equal(rq_buf_append(&wire, "HELO", 4), RQ_OK);
    memset(line, '\n', sizeof line);
    for (unsigned i = 0; i < LINES / 60; i++)
        frames_encode(&wire, line, 60, 60);
    send_raw(&c, wire.ptr, wire.len);
    for (unsigned i = 0; i < LINES / 60; i++)
        expect(&c, line, 60);
    rq_buf_clear(&wire);
    client_close(&c);
    stop(&w);
}

static void fill_pattern(uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)(i % 251);
}

/* A peer that has not read everything by then is given up, which may happen if this thread gets no processor. */
static bool is_given_up(uint64_t finished_ns)
{
    return rq_loop_clock_ns() - finished_ns >= UINT64_C(3000000000); /* LINGER_NS */
}

/* The stream finishes while most of its output is still queued. */
static void an_end_with_output_pending(bool framed)
{
    enum { N = 3000000 };
    struct world w;
    struct client c;
    start(&w, framed, 0);
    client_open(&c, &w, framed);
    if (framed) send_raw(&c, "HELO", 4);
    uint64_t sent_ns = rq_loop_clock_ns();
    client_send(&c, "@3000000\nquit\n", 14, 14);
    EVENTUALLY(rq_memory_readable(c.peer) == RQ_MEMORY_BYTES);
    /* The loop's thread stores `pending` and `held` one after the other. */
    EVENTUALLY(w.pending >= N - RQ_MEMORY_BYTES && w.pending <= N && w.held >= w.pending);
    uint8_t *expected = malloc(N);
    fill_pattern(expected, N);
    size_t got = receive_until(&c, N);
    assert_true(got == N || is_given_up(sent_ns));
    expect(&c, expected, got);
    free(expected);
    if (got == N) {
        while (!c.ended)
            receive(&c);
        assert_int_equal(c.plain.len, 0);
        assert_true(!framed || c.reader.ended || is_given_up(sent_ns));
        assert_true(w.closed == 0 || is_given_up(sent_ns)); /* it waits for the peer's end */
    }
    rq_memory_finish(c.peer);
    EVENTUALLY(w.closed == 1);
    assert_int_equal(w.why, RQ_OK);
    client_close(&c);
    stop(&w);
}

static void finish_writes_what_is_pending(void **state)
{
    (void)state;
    an_end_with_output_pending(false);
    an_end_with_output_pending(true);
}

/* A close discards pending output. */
static void close_drops_what_is_pending(void **state)
{
    (void)state;
    struct world w;
    struct client c;
    start(&w, true, 0);
    client_open(&c, &w, true);
    send_raw(&c, "HELO", 4);
    client_send(&c, "@3000000\nclose\n", 15, 15);
    EVENTUALLY(w.closed == 1);
    assert_int_equal(w.why, RQ_E_STATE);
    while (!c.ended) {
        rq_buf_reset(&c.plain);
        receive(&c);
    }
    assert_false(c.reader.ended);
    client_close(&c);
    stop(&w);
}

static void expect_error(const void *raw, size_t len, bool then_end, rq_err why)
{
    struct world w;
    struct client c;
    start(&w, true, 0);
    client_open(&c, &w, true);
    send_raw(&c, "HELO", 4);
    client_send(&c, "fine\n", 5, 5);
    expect(&c, "fine\n", 5);
    send_raw(&c, raw, len);
    if (then_end) rq_memory_finish(c.peer);
    EVENTUALLY(w.closed == 1);
    assert_int_equal(w.why, why);
    client_close(&c);
    stop(&w);
}

static void wrong_bytes_close_the_stream(void **state)
{
    (void)state;
    expect_error("\0\1\0x", 4, false, RQ_E_MALFORMED); /* wrong checksum */
    expect_error("\0\5\0x", 4, true, RQ_E_MALFORMED);  /* end-of-file inside a record */
    expect_error("\0\0\7", 3, false, RQ_OK);           /* a regular end */
    expect_error("", 0, true, RQ_OK);
}

static void memory_of_a_transform_is_charged(void **state)
{
    (void)state;
    struct world w;
    struct client c;
    start(&w, true, 0);
    client_open(&c, &w, true);
    EVENTUALLY(rq_budget_used(w.budget) > 0);
    size_t idle = rq_budget_used(w.budget);
    rq_buf wire = {0};
    uint8_t bytes[10000];
    fill_pattern(bytes, sizeof bytes);
    frames_encode(&wire, bytes, sizeof bytes, sizeof bytes);
    send_raw(&c, "HELO", 4);
    send_raw(&c, wire.ptr, wire.len - 1); /* incomplete: the bytes must be kept */
    EVENTUALLY(rq_budget_used(w.budget) > idle + sizeof bytes);
    rq_buf_clear(&wire);
    client_close(&c);
    EVENTUALLY(rq_budget_used(w.budget) == 0);
    stop(&w);
}

static void a_listener_that_has_stopped_refuses(void **state)
{
    (void)state;
    struct world w;
    rq_memory_peer *p;
    size_t n;
    char byte;
    start(&w, false, 0);
    assert_int_equal(rq_memory_connect(w.listener, &p), RQ_OK);
    assert_int_equal(rq_memory_write(p, "a\n", 2), RQ_OK);
    rq_listener_stop(w.listener, true); /* also asks the stream to finish */
    do
        rq_memory_read(p, &byte, 1, &n);
    while (n > 0);
    rq_memory_close(p);
    assert_int_equal(rq_memory_connect(w.listener, &p), RQ_E_CANCELLED);
    stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_echoes_what_is_sent),
        cmocka_unit_test(a_transform_is_not_noticed),
        cmocka_unit_test(a_record_may_come_byte_by_byte),
        cmocka_unit_test(output_waits_for_the_handshake),
        cmocka_unit_test(more_output_than_input_reaches_a_reader_that_pauses),
        cmocka_unit_test(finish_writes_what_is_pending),
        cmocka_unit_test(close_drops_what_is_pending),
        cmocka_unit_test(wrong_bytes_close_the_stream),
        cmocka_unit_test(memory_of_a_transform_is_charged),
        cmocka_unit_test(a_listener_that_has_stopped_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
