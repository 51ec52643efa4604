/* SPDX-License-Identifier: Apache-2.0 */
/* The test's end of a connection; see peer.h. */
#include "peer.h"

#include "../base/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define TIMEOUT_S 120

int (*peer_connect_by)(uint16_t port) = peer_connect_plain;

int peer_connect(uint16_t port)
{
    return peer_connect_by(port);
}

int peer_connect_plain(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    struct timeval t = {.tv_sec = TIMEOUT_S};
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

bool peer_try_send(int fd, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        if (n < 0) return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

void peer_send(int fd, const void *bytes, size_t len)
{
    assert_true(peer_try_send(fd, bytes, len));
}

void peer_read(int fd, void *bytes, size_t len)
{
    uint8_t *p = bytes;
    while (len > 0) {
        ssize_t n = recv(fd, p, len, 0);
        if (n <= 0) fail_msg("expected %zu more bytes, got %zd (%s)", len, n, strerror(errno));
        p += n;
        len -= (size_t)n;
    }
}

void peer_expect(int fd, const void *bytes, size_t len)
{
    uint8_t *got = malloc(len);
    peer_read(fd, got, len);
    assert_memory_equal(got, bytes, len);
    free(got);
}

void peer_expect_end(int fd)
{
    uint8_t byte;
    ssize_t n = recv(fd, &byte, 1, 0);
    if (n > 0) fail_msg("expected the end, got byte 0x%02x", byte);
    if (n < 0) assert_int_equal(errno, ECONNRESET);
}

static void *send_all(void *arg)
{
    peer_sender *s = arg;
    for (unsigned i = 0; i < s->count; i++)
        if (!peer_try_send(s->fd, s->bytes, s->len)) break;
    return NULL;
}

void peer_send_many(peer_sender *s, int fd, const void *bytes, size_t len, unsigned count)
{
    *s = (peer_sender){.fd = fd, .bytes = bytes, .len = len, .count = count};
    assert_int_equal(pthread_create(&s->thread, NULL, send_all, s), 0);
}

void peer_sender_join(peer_sender *s)
{
    pthread_join(s->thread, NULL);
}
