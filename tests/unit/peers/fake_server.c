/* SPDX-License-Identifier: Apache-2.0 */
/* See fake_server.h. */
#include "fake_server.h"

#include "base/buf.h"
#include "proto/cluster.pb-c.h"
#include "proto/rpc.pb-c.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS 64

typedef struct connection {
    fake_server *f;
    int fd;
    rq_called called;
    bool mute;
} connection;

/* --- bytes ------------------------------------------------------------------------------------ */

static bool wait_for(const fake_server *f, int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (!atomic_load(&f->stopping))
        if (poll(&p, 1, 10) > 0) return true;
    return false;
}

static bool read_all(const connection *c, void *to, size_t len)
{
    uint8_t *at = to;
    while (len > 0) {
        if (!wait_for(c->f, c->fd)) return false;
        ssize_t n = recv(c->fd, at, len, 0);
        if (n <= 0) return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static void send_all(const connection *c, const void *bytes, size_t len)
{
    (void)!send(c->fd, bytes, len, MSG_NOSIGNAL);
}

static void answer(const connection *c, uint32_t id, rq_slice message)
{
    Pb__ResponseHeader h = PB__RESPONSE_HEADER__INIT;
    uint8_t head[64];
    rq_buf out = {0};
    h.has_call_id = true;
    h.call_id = id;
    size_t len = pb__response_header__pack(&h, head);
    assert_int_equal(rq_buf_append_be32(&out, 0), RQ_OK);
    assert_int_equal(rq_buf_append_varint(&out, len), RQ_OK);
    assert_int_equal(rq_buf_append(&out, head, len), RQ_OK);
    assert_int_equal(rq_buf_append_varint(&out, message.len), RQ_OK);
    assert_int_equal(rq_buf_append(&out, message.ptr, message.len), RQ_OK);
    rq_put_be32(out.ptr, (uint32_t)(out.len - 4));
    send_all(c, out.ptr, out.len);
    rq_buf_clear(&out);
}

/* --- the greeting ----------------------------------------------------------------------------- */

static void take_hello(connection *c, uint32_t id, rq_slice hello, rq_arena *a)
{
    const rq_server_name *const self[] = {&c->f->name};
    uint8_t nonce[RQ_NONCE_LEN];
    rq_slice ret;
    assert_int_equal(rq_unguessable(nonce, sizeof nonce), RQ_OK);
    if (rq_called_hello(&c->called, self, 1, nonce, hello, a, &ret, NULL) != RQ_OK) return;
    answer(c, id, c->f->way == FAKE_OTHER_HELLO ? RQ_SLICE_LIT("\x0a\x02hi") : ret);
}

static void take_proof(connection *c, uint32_t id, rq_slice proof, rq_arena *a)
{
    Pb__PeerProveResponse m = PB__PEER_PROVE_RESPONSE__INIT;
    uint8_t own[RQ_HMAC_LEN] = {1, 2, 3}, bytes[64];
    rq_slice ret;
    if (c->f->way == FAKE_REFLECTS) {
        answer(c, id, proof); /* both messages have the same fields */
        return;
    }
    if (c->f->way == FAKE_IGNORANT) {
        m.proof.data = own;
        m.proof.len = sizeof own;
        answer(c, id, rq_slice_of(bytes, pb__peer_prove_response__pack(&m, bytes)));
        return;
    }
    if (rq_called_prove(&c->called, &c->f->secret, proof, a, &ret, NULL) != RQ_OK) return;
    answer(c, id, ret);
    c->mute = true;
}

/* --- a connection ----------------------------------------------------------------------------- */

static bool take_frame(connection *c, uint8_t *frame, size_t len, rq_arena *a)
{
    rq_cursor at = rq_cursor_of(rq_slice_of(frame, len));
    uint64_t n;
    rq_slice head, message;
    if (!rq_cursor_varint(&at, &n) || !rq_cursor_bytes(&at, n, &head)) return false;
    Pb__RequestHeader *h = pb__request_header__unpack(NULL, head.len, head.ptr);
    if (h == NULL) return false;
    bool good = rq_cursor_varint(&at, &n) && rq_cursor_bytes(&at, n, &message);
    if (good && strcmp(h->method_name, "Hello") == 0)
        take_hello(c, h->call_id, message, a);
    else if (good && strcmp(h->method_name, "Prove") == 0)
        take_proof(c, h->call_id, message, a);
    else
        atomic_fetch_add(&c->f->calls, 1);
    pb__request_header__free_unpacked(h, NULL);
    return good;
}

static bool take_one(connection *c)
{
    uint8_t length[4];
    rq_arena a = {0};
    if (!read_all(c, length, 4)) return false;
    size_t len = rq_get_be32(length);
    uint8_t *frame = malloc(len + 1);
    assert_non_null(frame);
    bool good = read_all(c, frame, len) && take_frame(c, frame, len, &a);
    free(frame);
    rq_arena_clear(&a);
    return good;
}

/* Preamble and header are read but not checked. */
static bool take_header(connection *c)
{
    uint8_t preamble[10], header[4096];
    if (!read_all(c, preamble, sizeof preamble)) return false;
    size_t len = rq_get_be32(preamble + 6);
    assert_true(len < sizeof header);
    return read_all(c, header, len);
}

static void serve(connection *c)
{
    static const uint8_t long_one[] = {0x40, 0, 0, 0, 1}, garbage[] = {0, 0, 0, 4, 9, 9, 9, 9};
    fake_way way = c->f->way;
    if (way == FAKE_CLOSES || !take_header(c)) return;
    if (way == FAKE_LONG) send_all(c, long_one, sizeof long_one);
    if (way == FAKE_GARBAGE) send_all(c, garbage, sizeof garbage);
    bool reads = way != FAKE_SILENT && way != FAKE_LONG && way != FAKE_GARBAGE;
    while (reads && take_one(c))
        reads = !(c->mute && way == FAKE_DEAF);
    while (!reads && !atomic_load(&c->f->stopping)) {
        struct pollfd p = {.fd = c->fd, .events = 0};
        if (poll(&p, 1, 10) > 0) return; /* the caller has closed the connection */
    }
}

static void *serve_main(void *arg)
{
    connection *c = arg;
    serve(c);
    close(c->fd);
    rq_called_clear(&c->called);
    free(c);
    return NULL;
}

static void *accept_main(void *arg)
{
    fake_server *f = arg;
    pthread_t threads[CONNECTIONS];
    unsigned count = 0;
    while (wait_for(f, f->fd)) {
        connection *c = calloc(1, sizeof *c);
        assert_non_null(c);
        *c = (connection){.f = f, .fd = accept(f->fd, NULL, NULL)};
        assert_true(c->fd >= 0 && count < CONNECTIONS);
        atomic_fetch_add(&f->connections, 1);
        assert_int_equal(pthread_create(&threads[count++], NULL, serve_main, c), 0);
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return NULL;
}

void fake_start(fake_server *f, fake_way way, const rq_secret *secret)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    *f = (fake_server){.way = way, .secret = *secret};
    f->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(f->fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(f->fd, 16), 0);
    assert_int_equal(getsockname(f->fd, (struct sockaddr *)&at, &len), 0);
    f->name = (rq_server_name){
        .host = "127.0.0.1", .port = ntohs(at.sin_port), .start_code = 9, .text = f->text};
    snprintf(f->text, sizeof f->text, "127.0.0.1,%u,9", f->name.port);
    assert_int_equal(pthread_create(&f->thread, NULL, accept_main, f), 0);
}

void fake_stop(fake_server *f)
{
    atomic_store(&f->stopping, true);
    pthread_join(f->thread, NULL);
    close(f->fd);
}
