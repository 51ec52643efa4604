/* SPDX-License-Identifier: Apache-2.0 */
/* Connections in memory; contract in memory.h.
 *
 * The peer's struct is the whole connection: a buffer for each direction, under one lock. The
 * stream's side replaces its socket: receive, send, and a watch that posts a task to the stream's
 * loop when the watched operation is possible. It is level-triggered, like polling a socket: the
 * task checks again after it has run the stream.
 *
 * References: the peer, the stream until it closes, a posted task. */
#include "net/memory.h"

#include "net/loop_priv.h"

#include <errno.h>
#include <stdlib.h>

typedef struct channel {
    rq_buf bytes;
    size_t at;  /* read up to here */
    bool ended; /* its writer sends no more */
} channel;

struct rq_memory_peer {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* what the peer may wait for */
    unsigned refs RQ_GUARDED_BY(lock);
    rq_stream *stream RQ_GUARDED_BY(lock); /* NULL: it was not opened yet, or has closed */
    int watched RQ_GUARDED_BY(lock);       /* UV_READABLE, UV_WRITABLE */
    bool posted RQ_GUARDED_BY(lock);
    bool stream_closed RQ_GUARDED_BY(lock);
    bool peer_closed RQ_GUARDED_BY(lock);
    channel in RQ_GUARDED_BY(lock); /* to the stream */
    channel out RQ_GUARDED_BY(lock);
    rq_task task;
};

/* ---- channels -------------------------------------------------------------------------------- */

static size_t unread(const channel *c)
{
    return c->bytes.len - c->at;
}

static size_t room(const channel *c)
{
    return RQ_MEMORY_BYTES - unread(c);
}

static size_t channel_read(channel *c, void *to, size_t len)
{
    size_t n = len < unread(c) ? len : unread(c);
    if (n > 0) memcpy(to, c->bytes.ptr + c->at, n);
    c->at += n;
    if (c->at == c->bytes.len) {
        rq_buf_clear(&c->bytes); /* an idle connection holds no memory */
        c->at = 0;
    }
    return n;
}

/* Number of bytes written: as many as there is room for, none when out of memory. */
static size_t channel_write(channel *c, const void *bytes, size_t len)
{
    size_t n = len < room(c) ? len : room(c);
    if (c->at >= RQ_MEMORY_BYTES) {
        memmove(c->bytes.ptr, c->bytes.ptr + c->at, unread(c));
        c->bytes.len -= c->at;
        c->at = 0;
    }
    return rq_buf_append(&c->bytes, bytes, n) == RQ_OK ? n : 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void unlock_unref(rq_memory_peer *p)
{
    unsigned left = --p->refs;
    pthread_mutex_unlock(&p->lock);
    if (left > 0) return;
    rq_buf_clear(&p->in.bytes);
    rq_buf_clear(&p->out.bytes);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
    free(p);
}

static int ready_events(const rq_memory_peer *p)
{
    int events = 0;
    if (unread(&p->in) > 0 || p->in.ended) events |= UV_READABLE;
    if (room(&p->out) > 0 || p->peer_closed) events |= UV_WRITABLE;
    return events & p->watched;
}

/* Posts the task if the operation that the stream watches is possible. REQUIRES: the lock. */
static void post_if_ready(rq_memory_peer *p)
{
    if (p->posted || p->stream == NULL || ready_events(p) == 0) return;
    p->posted = true;
    p->refs++;
    rq_lane_post(&p->stream->loop->lane, &p->task);
}

static void run_ready(rq_task *task)
{
    rq_memory_peer *p = RQ_CONTAINER_OF(task, rq_memory_peer, task);
    pthread_mutex_lock(&p->lock);
    p->posted = false;
    rq_stream *s = p->stream;
    int events = s == NULL ? 0 : ready_events(p);
    pthread_mutex_unlock(&p->lock);
    if (events != 0) rq__stream_ready(s, events);
    pthread_mutex_lock(&p->lock);
    post_if_ready(p);
    unlock_unref(p);
}

rq_err rq_memory_connect(rq_listener *l, rq_memory_peer **ret)
{
    rq_memory_peer *p = calloc(1, sizeof *p);
    if (p == NULL) return RQ_E_NO_MEMORY;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    p->task.run = run_ready;
    p->refs = 2;
    rq_err rc = rq__listener_connect(l, p);
    if (rc != RQ_OK) {
        p->refs = 1;
        rq_memory_close(p);
        return rc;
    }
    *ret = p;
    return RQ_OK;
}

/* ---- the stream's side ----------------------------------------------------------------------- */

void rq__memory_attach(rq_memory_peer *p, rq_stream *s)
{
    pthread_mutex_lock(&p->lock);
    p->stream = s;
    pthread_mutex_unlock(&p->lock);
}

void rq__memory_detach(rq_memory_peer *p)
{
    pthread_mutex_lock(&p->lock);
    p->stream = NULL;
    p->stream_closed = p->out.ended = true;
    pthread_cond_broadcast(&p->changed);
    unlock_unref(p);
}

void rq__memory_watch(rq_memory_peer *p, int events)
{
    pthread_mutex_lock(&p->lock);
    p->watched = events;
    post_if_ready(p);
    pthread_mutex_unlock(&p->lock);
}

ssize_t rq__memory_receive(rq_memory_peer *p, void *bytes, size_t len)
{
    pthread_mutex_lock(&p->lock);
    size_t n = channel_read(&p->in, bytes, len);
    bool ended = p->in.ended;
    if (n > 0) pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (n > 0 || ended) return (ssize_t)n;
    errno = EAGAIN;
    return -1;
}

ssize_t rq__memory_send(rq_memory_peer *p, const struct iovec *iov, unsigned n)
{
    size_t sent = 0;
    pthread_mutex_lock(&p->lock);
    bool closed = p->peer_closed;
    for (unsigned i = 0; i < n && !closed; i++)
        sent += channel_write(&p->out, iov[i].iov_base, iov[i].iov_len);
    if (sent > 0) pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (!closed) return (ssize_t)sent;
    errno = EPIPE;
    return -1;
}

void rq__memory_shut(rq_memory_peer *p)
{
    pthread_mutex_lock(&p->lock);
    p->out.ended = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

/* ---- the peer's side ------------------------------------------------------------------------- */

rq_err rq_memory_write(rq_memory_peer *p, const void *bytes, size_t len)
{
    const uint8_t *from = bytes;
    pthread_mutex_lock(&p->lock);
    while (len > 0 && !p->stream_closed) {
        size_t n = channel_write(&p->in, from, len);
        from += n;
        len -= n;
        post_if_ready(p);
        if (len > 0) pthread_cond_wait(&p->changed, &p->lock);
    }
    bool closed = p->stream_closed;
    pthread_mutex_unlock(&p->lock);
    return closed ? RQ_E_IO : RQ_OK;
}

void rq_memory_read(rq_memory_peer *p, void *bytes, size_t len, size_t *ret_len)
{
    pthread_mutex_lock(&p->lock);
    while (unread(&p->out) == 0 && !p->out.ended)
        pthread_cond_wait(&p->changed, &p->lock);
    *ret_len = channel_read(&p->out, bytes, len);
    post_if_ready(p);
    pthread_mutex_unlock(&p->lock);
}

size_t rq_memory_readable(rq_memory_peer *p)
{
    pthread_mutex_lock(&p->lock);
    size_t n = unread(&p->out);
    pthread_mutex_unlock(&p->lock);
    return n;
}

void rq_memory_finish(rq_memory_peer *p)
{
    pthread_mutex_lock(&p->lock);
    p->in.ended = true;
    post_if_ready(p);
    pthread_mutex_unlock(&p->lock);
}

void rq_memory_close(rq_memory_peer *p)
{
    if (p == NULL) return;
    pthread_mutex_lock(&p->lock);
    p->in.ended = p->peer_closed = true;
    post_if_ready(p);
    unlock_unref(p);
}
