/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster that is a thread of the test (fake.h). */
#include "fake.h"

#include "base/macros.h"
#include "base/pb.h"
#include "net/socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static void *fake_main(void *arg)
{
    fake *f = arg;
    int fd;
    while ((fd = accept(f->fd, NULL, NULL)) >= 0) {
        atomic_fetch_add(&f->accepted, 1);
        f->serve(f, fd);
        atomic_fetch_add(&f->served, 1);
        close(fd);
    }
    return NULL;
}

void fake_start(fake *f, void (*serve)(fake *f, int fd))
{
    rq_error why = {0};
    f->serve = serve;
    assert_int_equal(rq_socket_listen("127.0.0.1", 0, false, &f->fd, &f->port, &why), RQ_OK);
    assert_int_equal(fcntl(f->fd, F_SETFL, 0), 0); /* makes accept() block */
    snprintf(f->at, sizeof f->at, "127.0.0.1:%u", f->port);
}

void fake_run(fake *f)
{
    assert_int_equal(pthread_create(&f->thread, NULL, fake_main, f), 0);
}

void fake_stop(fake *f)
{
    shutdown(f->fd, SHUT_RDWR);
    pthread_join(f->thread, NULL);
    close(f->fd);
    for (size_t i = 0; i < RQ_ARRAY_LEN(f->answers); i++)
        rq_buf_clear(&f->answers[i]);
}

bool fake_read(int fd, void *bytes, size_t len)
{
    uint8_t *p = bytes;
    while (len > 0) {
        ssize_t n = recv(fd, p, len, 0);
        if (n <= 0) return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

bool fake_send(fake *f, int fd, const rq_buf *b)
{
    size_t len = b->len < f->limit ? b->len : f->limit;
    f->limit -= len;
    return send(fd, b->ptr, len, MSG_NOSIGNAL) == (ssize_t)len && len == b->len;
}

void wait_for_end(int fd)
{
    uint8_t byte;
    while (fake_read(fd, &byte, 1))
        ;
}

bool skip_frame(int fd)
{
    uint8_t head[4], byte;
    if (!fake_read(fd, head, sizeof head)) return false;
    for (uint32_t left = rq_get_be32(head); left > 0; left--)
        if (!fake_read(fd, &byte, 1)) return false;
    return true;
}

void put_server(rq_buf *b, uint32_t field, const char *host, uint16_t port)
{
    size_t at;
    assert_int_equal(rq_pb_begin(b, field, &at), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(b, 1, rq_slice_cstr(host)), RQ_OK);
    assert_int_equal(rq_pb_put_number(b, 2, port), RQ_OK);
    assert_int_equal(rq_pb_put_number(b, 3, 1), RQ_OK);
    assert_int_equal(rq_pb_end(b, at), RQ_OK);
}

void put_frame(rq_buf *out, const rq_buf *frame)
{
    assert_int_equal(rq_buf_append_be32(out, (uint32_t)frame->len), RQ_OK);
    assert_int_equal(rq_buf_append(out, frame->ptr, frame->len), RQ_OK);
}

/* ReplyHeader, data with its magic bytes, and the beginning of the Stat. */
static void put_znode(rq_buf *out, uint32_t xid, const rq_buf *message)
{
    rq_buf b = {0};
    assert_int_equal(rq_buf_append_be32(&b, xid), RQ_OK);
    assert_int_equal(rq_buf_append_be64(&b, 7), RQ_OK);
    assert_int_equal(rq_buf_append_be32(&b, 0), RQ_OK);
    assert_int_equal(rq_buf_append_be32(&b, (uint32_t)(1 + 4 + 2 + 4 + message->len)), RQ_OK);
    assert_int_equal(rq_buf_append_u8(&b, 0xff), RQ_OK);
    assert_int_equal(rq_buf_append_be32(&b, 2), RQ_OK);
    assert_int_equal(rq_buf_append(&b, "idPBUF", 6), RQ_OK);
    assert_int_equal(rq_buf_append(&b, message->ptr, message->len), RQ_OK);
    assert_int_equal(rq_buf_append_be64(&b, 0), RQ_OK);
    put_frame(out, &b);
    rq_buf_clear(&b);
}

void put_zookeeper(rq_buf *out, uint16_t meta_port, uint16_t master_port)
{
    rq_buf b = {0};
    assert_int_equal(rq_buf_append(&b, "a session", 9), RQ_OK);
    put_frame(out, &b);
    rq_buf_reset(&b);
    assert_int_equal(rq_pb_put_bytes(&b, 1, RQ_SLICE_LIT("the-cluster")), RQ_OK);
    put_znode(out, 1, &b);
    rq_buf_reset(&b);
    put_server(&b, 1, "127.0.0.1", meta_port);
    put_znode(out, 2, &b);
    rq_buf_reset(&b);
    put_server(&b, 1, "127.0.0.1", master_port);
    put_znode(out, 3, &b);
    rq_buf_clear(&b);
}

void put_response(rq_buf *out, uint32_t id, const rq_buf *message)
{
    rq_buf head = {0}, b = {0};
    assert_int_equal(rq_pb_put_number(&head, 1, id), RQ_OK);
    assert_int_equal(rq_buf_append_varint(&b, head.len), RQ_OK);
    assert_int_equal(rq_buf_append(&b, head.ptr, head.len), RQ_OK);
    assert_int_equal(rq_buf_append_varint(&b, message->len), RQ_OK);
    assert_int_equal(rq_buf_append(&b, message->ptr, message->len), RQ_OK);
    put_frame(out, &b);
    rq_buf_clear(&head);
    rq_buf_clear(&b);
}

void serve_zookeeper(fake *f, int fd)
{
    if (atomic_load(&f->is_silent) || fake_send(f, fd, &f->answers[0])) wait_for_end(fd);
}

rq_err read_header(int fd, uint32_t number, uint32_t *ret)
{
    uint8_t head[4], frame[4096];
    rq_slice header;
    rq_pb_field f;
    if (!fake_read(fd, head, sizeof head)) return RQ_E_IO;
    uint32_t len = rq_get_be32(head);
    if (len > sizeof frame || !fake_read(fd, frame, len)) return RQ_E_IO;
    rq_cursor c = rq_cursor_of(rq_slice_of(frame, len));
    if (!rq_pb_delimited(&c, &header)) return RQ_E_MALFORMED;
    rq_err rc;
    *ret = 0;
    rq_cursor h = rq_cursor_of(header);
    while ((rc = rq_pb_next(&h, &f)) == RQ_OK)
        if (f.number == number) *ret = (uint32_t)f.value;
    return rc == RQ_E_END ? RQ_OK : rc;
}

void serve_empty_answers(fake *f, int fd)
{
    char preamble[6];
    uint32_t id;
    rq_buf none = {0};
    bool more = fake_read(fd, preamble, sizeof preamble) && skip_frame(fd);
    while (more && read_header(fd, 1, &id) == RQ_OK) {
        rq_buf answer = {0};
        put_response(&answer, id, &none);
        more = fake_send(f, fd, &answer);
        rq_buf_clear(&answer);
        f->calls++;
    }
}

rq_err open_by(const fake *f, bool by_zookeeper, rq_client **ret, rq_error *why)
{
    rq_client_options o = {.rpc_timeout_ms = 20000, .retries = 1, .pause_ms = 1};
    *(by_zookeeper ? &o.zookeeper : &o.bootstrap) = f->at;
    *ret = NULL;
    *why = (rq_error){0};
    return rq_client_open(&o, ret, why);
}
