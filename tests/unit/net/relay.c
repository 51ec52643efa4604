/* SPDX-License-Identifier: Apache-2.0 */
/* Forwards between a test's socket and a server; see relay.h. */
#include "relay.h"

#include "frames.h"
#include "peer.h"

#include "net/memory.h"
#include "../base/unit.h"

#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define PIECE 5000

typedef struct relay {
    int near; /* other end of the test's socket */
    int far;
    rq_memory_peer *memory; /* used instead of `far` */
    bool frames;
    _Atomic unsigned threads;
} relay;

static relay_options options;
static _Atomic unsigned relays;

static void relay_unref(relay *r)
{
    if (atomic_fetch_sub(&r->threads, 1) > 1) return;
    close(r->near);
    if (r->memory != NULL)
        rq_memory_close(r->memory);
    else
        close(r->far);
    free(r);
    atomic_fetch_sub(&relays, 1);
}

static bool send_far(relay *r, const void *bytes, size_t len)
{
    if (r->memory != NULL) return rq_memory_write(r->memory, bytes, len) == RQ_OK;
    return peer_try_send(r->far, bytes, len);
}

static size_t read_far(relay *r, void *bytes, size_t len)
{
    size_t n;
    if (r->memory == NULL) {
        ssize_t got = peer_recv(r->far, bytes, len);
        return got < 0 ? 0 : (size_t)got;
    }
    rq_memory_read(r->memory, bytes, len, &n);
    return n;
}

static void end_far(relay *r)
{
    if (r->memory != NULL)
        rq_memory_finish(r->memory);
    else
        shutdown(r->far, SHUT_WR);
}

/* Forwards to the server. Records have odd lengths, and are sent in two parts. */
static void *up_main(void *arg)
{
    relay *r = arg;
    uint8_t bytes[PIECE];
    rq_buf wire = {0};
    bool open = !r->frames || send_far(r, "HELO", 4);
    for (size_t round = 0; open; round++) {
        ssize_t got = peer_recv(r->near, bytes, sizeof bytes);
        if (got <= 0) break;
        rq_buf_reset(&wire);
        if (r->frames)
            frames_encode(&wire, bytes, (size_t)got, 1 + round * 97 % 700);
        else
            assert_int_equal(rq_buf_append(&wire, bytes, (size_t)got), RQ_OK);
        open = send_far(r, wire.ptr, wire.len / 2) &&
               send_far(r, wire.ptr + wire.len / 2, wire.len - wire.len / 2);
    }
    rq_buf_reset(&wire);
    if (r->frames) frames_encode_end(&wire);
    if (open) (void)send_far(r, wire.ptr, wire.len);
    end_far(r);
    rq_buf_clear(&wire);
    relay_unref(r);
    return NULL;
}

/* Forwards to the test. */
static void *down_main(void *arg)
{
    relay *r = arg;
    uint8_t bytes[PIECE];
    frames_reader reader = {0};
    rq_buf plain = {0};
    size_t greeting = r->frames ? 4 : 0; /* bytes still to be received */
    for (;;) {
        size_t n = read_far(r, bytes, sizeof bytes);
        if (n == 0) break;
        size_t skip = greeting < n ? greeting : n;
        assert_memory_equal(bytes, &"EHLO"[4 - greeting], skip);
        greeting -= skip;
        rq_buf_reset(&plain);
        if (r->frames)
            assert_true(frames_decode(&reader, bytes + skip, n - skip, &plain));
        else
            assert_int_equal(rq_buf_append(&plain, bytes, n), RQ_OK);
        if (plain.len > 0 && !peer_try_send(r->near, plain.ptr, plain.len)) break;
    }
    shutdown(r->near, SHUT_RDWR);
    rq_buf_clear(&plain);
    rq_buf_clear(&reader.in);
    relay_unref(r);
    return NULL;
}

static int relay_connect(uint16_t port)
{
    int pair[2];
    pthread_t up, down;
    relay *r = calloc(1, sizeof *r);
    struct timeval t = {.tv_sec = 120};
    assert_non_null(r);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    *r = (relay){.near = pair[1], .far = -1, .frames = options.frames};
    atomic_init(&r->threads, 2);
    if (options.listener != NULL)
        assert_int_equal(rq_memory_connect(options.listener, &r->memory), RQ_OK);
    else
        r->far = peer_connect_plain(port);
    atomic_fetch_add(&relays, 1);
    assert_int_equal(pthread_create(&up, NULL, up_main, r), 0);
    assert_int_equal(pthread_create(&down, NULL, down_main, r), 0);
    pthread_detach(up);
    pthread_detach(down);
    return pair[0];
}

void relay_begin(const relay_options *o)
{
    options = *o;
    peer_connect_by = relay_connect;
}

void relay_end(void)
{
    peer_connect_by = peer_connect_plain;
    while (atomic_load(&relays) > 0)
        usleep(1000);
}
