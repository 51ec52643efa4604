/* SPDX-License-Identifier: Apache-2.0 */
/* The test's end of a connection; see peer.h. */
#include "peer.h"

#include "../base/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define TIMEOUT_S 120
#define DESCRIPTORS 4096

struct peer_sender {
    peer_sender *next;
    pthread_t thread;
    int fd;
    const void *bytes;
    size_t len;
    unsigned count;
};

static _Atomic bool is_open[DESCRIPTORS];
static peer_sender *senders; /* not joined yet; the test's thread */

int (*peer_connect_by)(uint16_t port) = peer_connect_plain;

int peer_connect(uint16_t port)
{
    int fd = peer_connect_by(port);
    assert_true(fd < DESCRIPTORS);
    atomic_store(&is_open[fd], true);
    return fd;
}

void peer_close(int fd)
{
    atomic_store(&is_open[fd], false); /* before another thread may be given the number */
    close(fd);
}

void peer_end(void)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        if (atomic_load(&is_open[fd])) shutdown(fd, SHUT_RDWR); /* ends its sender */
    while (senders != NULL)
        peer_sender_join(senders);
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        if (atomic_load(&is_open[fd])) peer_close(fd);
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

ssize_t peer_recv(int fd, void *bytes, size_t cap)
{
    ssize_t n;
    do
        n = recv(fd, bytes, cap, 0);
    while (n < 0 && errno == EINTR);
    return n;
}

void peer_read(int fd, void *bytes, size_t len)
{
    uint8_t *p = bytes;
    while (len > 0) {
        ssize_t n = peer_recv(fd, p, len);
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
    ssize_t n = peer_recv(fd, &byte, 1);
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

peer_sender *peer_send_many(int fd, const void *bytes, size_t len, unsigned count)
{
    peer_sender *s = malloc(sizeof *s);
    assert_non_null(s);
    *s = (peer_sender){.next = senders, .fd = fd, .bytes = bytes, .len = len, .count = count};
    assert_int_equal(pthread_create(&s->thread, NULL, send_all, s), 0);
    senders = s;
    return s;
}

void peer_sender_join(peer_sender *s)
{
    peer_sender **at = &senders;
    pthread_join(s->thread, NULL);
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    free(s);
}
