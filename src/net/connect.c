/* SPDX-License-Identifier: Apache-2.0 */
/* Outgoing streams: from a host to a connected socket. Contract in stream.h.
 *
 *    rq_stream_connect ─► looking up (a name only) ─► connecting ──► connected
 *                               │                      │    ▲
 *                               │           refused, late   └ its handle is closed: next address
 *                               ▼                      ▼
 *                            no such host          no address left: on_close
 *
 * Meanwhile the stream is `writing`: output is queued, and UV_WRITABLE tells that the socket is
 * connected or has failed. */
#include "net/loop_priv.h"
#include "net/socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

const char *rq_stream_failure(const rq_stream *s)
{
    return s->dial == NULL ? "" : s->dial->failure;
}

static void note(rq__dial *d, const char *what, const char *why)
{
    snprintf(d->failure, sizeof d->failure, "%s %s: %s", what, RQ_HOST_PORT(d->host, d->port), why);
}

void rq__dial_note(rq_stream *s, const char *what, int error)
{
    if (s->dial != NULL) note(s->dial, what, strerror(error));
}

bool rq_stream_was_refused(const rq_stream *s)
{
    const rq__dial *d = s->dial;
    return d != NULL && !d->connected && d->refused > 0 && d->failed == 0;
}

bool rq_stream_has_ended(const rq_stream *s)
{
    uint8_t byte;
    if (s->dial == NULL || !s->dial->connected || s->fd < 0) return false;
    ssize_t n = recv(s->fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* An address. */
static void note_failed(rq_stream *s, int error)
{
    rq__dial_note(s, "cannot connect to", error);
    s->dial->refused += error == ECONNREFUSED;
    s->dial->failed += error != ECONNREFUSED;
}

void rq__dial_free(rq__dial *d)
{
    if (d->found != NULL) freeaddrinfo(d->found);
    free(d->host);
    free(d);
}

/* --- an address ------------------------------------------------------------------------------- */

/* The time that is left is shared by the addresses that are. */
static void arm_timer(rq_stream *s)
{
    rq__dial *d = s->dial;
    uint64_t now = rq_loop_clock_ns();
    uint64_t left = d->until_ns > now ? d->until_ns - now : 0;
    unsigned addresses = 1;
    for (const struct addrinfo *a = d->next; a != NULL; a = a->ai_next)
        addresses++;
    rq_loop_timer_arm(s->loop, &d->timer, left / addresses);
}

/* False: it has failed at once. */
static bool begin(rq_stream *s, const struct addrinfo *a)
{
    s->fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->fd < 0) return false;
    bool ok = connect(s->fd, a->ai_addr, a->ai_addrlen) == 0 || errno == EINPROGRESS;
    int rc = ok ? s->loop->loops->libuv.uv_poll_init(&s->loop->uv, &s->poll, s->fd) : 0;
    if (ok && rc == 0) return true;
    if (rc != 0) errno = -rc;
    int error = errno;
    close(s->fd);
    s->fd = -1;
    errno = error;
    return false;
}

static void try_next(rq_stream *s)
{
    rq__dial *d = s->dial;
    while (d->next != NULL) {
        const struct addrinfo *a = d->next;
        d->next = a->ai_next;
        if (begin(s, a)) {
            arm_timer(s);
            s->watched = 0;
            rq__stream_watch(s);
            return;
        }
        note_failed(s, errno);
    }
    rq_stream_close(s, RQ_E_IO);
}

static void on_address_closed(uv_handle_t *h)
{
    rq_stream *s = (rq_stream *)h;
    rq__loop_enter(s->loop);
    s->dial->switching = false;
    if (s->closing)
        rq__stream_closed(s);
    else
        try_next(s);
}

static void leave_address(rq_stream *s, rq_err why)
{
    if (s->dial->next == NULL) {
        rq_stream_close(s, why);
        return;
    }
    s->dial->switching = true;
    rq_loop_timer_cancel(s->loop, &s->dial->timer);
    s->loop->loops->libuv.uv_close((uv_handle_t *)&s->poll, on_address_closed);
    close(s->fd);
    s->fd = -1;
    s->loop->must_poll = true;
}

void rq__dial_ready(rq_stream *s)
{
    rq__dial *d = s->dial;
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) error = errno;
    if (error != 0) {
        note_failed(s, error);
        leave_address(s, RQ_E_IO);
        return;
    }
    d->connected = true;
    rq_loop_timer_cancel(s->loop, &d->timer);
    freeaddrinfo(d->found);
    d->found = d->next = NULL;
    rq__socket_set_up(s->fd, &s->peer);
    rq_err rc = s->events->on_open(s->user, s);
    if (rc != RQ_OK)
        rq_stream_close(s, rc);
    else
        rq__stream_connected(s);
}

static void on_late(rq_loop_timer *t)
{
    rq__dial *d = RQ_CONTAINER_OF(t, rq__dial, timer);
    rq_stream *s = d->stream;
    note(d, d->lookup != NULL ? "cannot find" : "cannot connect to", "no response in time");
    d->failed++;
    if (d->lookup != NULL)
        rq_stream_close(s, RQ_E_TIMEOUT);
    else
        leave_address(s, RQ_E_TIMEOUT);
}

/* --- the host --------------------------------------------------------------------------------- */

static void looked_up(void *ctx, struct addrinfo *found, int error)
{
    rq_stream *s = ctx;
    rq__dial *d = s->dial;
    d->lookup = NULL;
    d->found = d->next = found;
    if (error == 0) {
        try_next(s);
        return;
    }
    snprintf(d->failure, sizeof d->failure, "cannot find %s: %s", d->host,
             error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
    rq_stream_close(s, RQ_E_IO);
}

bool rq__dial_close(rq_stream *s)
{
    rq__dial *d = s->dial;
    if (d->connected) return false;
    rq_loop_timer_cancel(s->loop, &d->timer);
    if (d->lookup != NULL) rq__lookup_cancel(d->lookup);
    d->lookup = NULL;
    return d->switching; /* then on_address_closed ends it */
}

static rq_err look_up(rq_stream *s)
{
    rq__dial *d = s->dial;
    d->found = d->next = rq__lookup_numeric(d->host, d->port);
    if (d->found != NULL) {
        try_next(s);
        return RQ_OK;
    }
    RQ_TRY(rq__lookup_start(s->loop, d->host, d->port, looked_up, s, &d->lookup));
    arm_timer(s);
    return RQ_OK;
}

static rq_err stream_new(rq_loop *loop, const rq_stream_target *to, rq_stream **ret)
{
    rq_stream *s = calloc(1, sizeof *s);
    rq__dial *d = calloc(1, sizeof *d);
    char *host = strdup(to->host);
    if (s == NULL || d == NULL || host == NULL) {
        free(host);
        free(d);
        free(s);
        return RQ_E_NO_MEMORY;
    }
    uint64_t now = rq_loop_clock_ns();
    *d = (rq__dial){.stream = s, .host = host, .port = to->port, .timer = {.run = on_late}};
    d->until_ns = now + to->timeout_ns;
    s->dial = d;
    s->loop = loop;
    s->fd = -1;
    s->events = to->events;
    s->user = to->user;
    s->writing = true;
    s->progress_ns = d->until_ns;
    *ret = s;
    return RQ_OK;
}

rq_err rq_stream_connect(rq_loop *loop, const rq_stream_target *to, rq_stream **ret)
{
    rq_stream *s;
    RQ_TRY(stream_new(loop, to, &s));
    rq__stream_link(s);
    rq_err rc = look_up(s);
    if (rc != RQ_OK) {
        rq__stream_unlink(s);
        rq__dial_free(s->dial);
        free(s);
        return rc;
    }
    s->opened = true;
    *ret = s;
    return RQ_OK;
}
