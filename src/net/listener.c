/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners on libuv: loop 0 polls a port, and passes accepted connections to the least busy loop.
 * Contracts in stream.h, invariants in loop_priv.h. */
#include "net/loop_priv.h"

#include "net/socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ACCEPT_BATCH 64
#define ACCEPT_RETRY_NS 20000000ull /* no descriptor for a connection: try again after this */
/* The log lines of failed accepts. */
#define ACCEPT_LINES ((rq_log_rate){1, UINT64_C(60000000000)})

/* ---- accepting ------------------------------------------------------------------------------- */

/* The carrier of a connection's bytes: a socket, or memory. */
struct carrier {
    int fd; /* -1 if `memory` is set */
    rq_memory_peer *memory;
};

static void refuse(rq_listener *l, struct carrier c)
{
    if (c.memory != NULL)
        rq__memory_detach(c.memory);
    else
        close(c.fd);
    rq__listener_release(l, c.memory == NULL);
}

static rq_err set_transform(rq_listener *l, rq_stream *s)
{
    rq_transform *t;
    if (l->transform.make == NULL) return RQ_OK;
    RQ_TRY(l->transform.make(l->transform.ctx, &t));
    rq_err rc = rq_stream_set_transform(s, t, l->transform.budget);
    if (rc != RQ_OK) t->calls->free(t);
    return rc;
}

/* Creates the stream of a new connection, on the loop that will own it. The accepting thread has
 * incremented the counter. */
static void stream_open(rq_loop *loop, rq_listener *l, struct carrier c)
{
    rq_stream *s = calloc(1, sizeof *s);
    if (s == NULL) {
        refuse(l, c);
        return;
    }
    s->loop = loop;
    s->heard_ns = loop->now_ns;
    s->nameless = c.memory == NULL;
    if (s->nameless) atomic_fetch_add(&l->loops->nameless, 1);
    s->listener = l;
    s->events = l->events;
    s->fd = c.fd;
    s->memory = c.memory;
    if (c.memory != NULL)
        snprintf(s->peer.host, sizeof s->peer.host, "127.0.0.1");
    else
        rq__socket_set_up(c.fd, &s->peer);
    if (!rq__stream_attach(s)) return;
    rq_err rc = atomic_load(&loop->stopping) ? RQ_E_CANCELLED : set_transform(l, s);
    if (rc == RQ_OK) rc = s->events->on_open(l->ctx, s);
    if (rc != RQ_OK) {
        rq_stream_close(s, rc);
        return;
    }
    s->opened = true;
    if (!s->paused) rq__stream_read_start(s);
}

struct handover {
    rq_task task;
    rq_loop *loop;
    rq_listener *listener;
    struct carrier carrier;
};

static void run_handover(rq_task *task)
{
    struct handover *h = RQ_CONTAINER_OF(task, struct handover, task);
    stream_open(h->loop, h->listener, h->carrier);
    free(h);
}

static void accepted(rq_listener *l, struct carrier c)
{
    if (c.memory == NULL) atomic_fetch_add(&l->loops->accepted, 1);
    unsigned before = atomic_fetch_add(&l->connections, 1);
    if (l->connections_max > 0 && before >= l->connections_max) {
        refuse(l, c);
        return;
    }
    rq_loop *loop = rq__loop_for_stream(l->loops);
    if (rq_loop_is_current(loop)) {
        stream_open(loop, l, c);
        return;
    }
    struct handover *h = malloc(sizeof *h);
    if (h == NULL) {
        refuse(l, c);
        return;
    }
    *h = (struct handover){{NULL, run_handover}, loop, l, c};
    rq_lane_post(&loop->lane, &h->task);
}

static void on_acceptable(uv_poll_t *h, int status, int events);

static void on_accept_retry(rq_loop_timer *t)
{
    rq_listener *l = RQ_CONTAINER_OF(t, rq_listener, retry);
    l->loops->libuv.uv_poll_start(&l->poll, UV_READABLE, on_acceptable);
}

/* The connection stays in the backlog and the socket readable: do not spin on it. */
RQ_COLD static void cannot_accept(rq_listener *l, int code)
{
    uint64_t suppressed;
    l->loops->libuv.uv_poll_stop(&l->poll);
    rq_loop_timer_arm(&l->loops->loop[0], &l->retry, ACCEPT_RETRY_NS);
    rq__crowd_make_room(l->loops);
    if (!rq_log_limit_passes(&l->failed_accepts, ACCEPT_LINES, rq_loop_clock_ns(), &suppressed))
        return;
    rq_log_event(l->loops->log, RQ_LOG_WARN, "rpc", "cannot accept connections",
                 rq_log_number("port", l->port), rq_log_text("why", strerror(code)),
                 rq_log_number("open", atomic_load(&l->loops->accepted)),
                 rq_log_number("closed_idle", atomic_load(&l->loops->crowded_out)),
                 rq_log_number("suppressed", suppressed));
}

static void on_acceptable(uv_poll_t *h, int status, int events)
{
    (void)events;
    rq_listener *l = RQ_CONTAINER_OF(h, rq_listener, poll);
    rq_loop *loop = &l->loops->loop[0];
    rq__loop_enter(loop);
    if (status < 0) return;
    unsigned max = rq__crowd_max();
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        if (RQ_UNLIKELY(atomic_load(&l->loops->accepted) >= max)) {
            cannot_accept(l, EMFILE);
            return;
        }
        int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            accepted(l, (struct carrier){.fd = fd});
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            cannot_accept(l, errno);
            return;
        } else if (errno != ECONNABORTED && errno != EINTR) {
            return;
        }
    }
}

/* ---- listeners ------------------------------------------------------------------------------- */

void rq__listener_release(rq_listener *l, bool has_descriptor)
{
    if (has_descriptor) atomic_fetch_sub(&l->loops->accepted, 1);
    /* Under the lock, so that rq_listener_close cannot free it between the two steps. */
    pthread_mutex_lock(&l->lock);
    atomic_fetch_sub(&l->connections, 1);
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static void task_done(rq_listener *l)
{
    pthread_mutex_lock(&l->lock);
    l->tasks--;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

struct arrival {
    rq_task task;
    rq_listener *listener;
    rq_memory_peer *peer;
};

/* On loop 0, which chooses the loop. */
static void run_arrival(rq_task *task)
{
    struct arrival *a = RQ_CONTAINER_OF(task, struct arrival, task);
    accepted(a->listener, (struct carrier){.fd = -1, .memory = a->peer});
    task_done(a->listener);
    free(a);
}

rq_err rq__listener_connect(rq_listener *l, rq_memory_peer *peer)
{
    struct arrival *a = malloc(sizeof *a);
    if (a == NULL) return RQ_E_NO_MEMORY;
    *a = (struct arrival){{NULL, run_arrival}, l, peer};
    bool live = rq__loops_live(l->loops);
    pthread_mutex_lock(&l->lock);
    live = live && !l->stopped;
    if (live) l->tasks++; /* a stop waits for it */
    pthread_mutex_unlock(&l->lock);
    if (live)
        rq_lane_post(&l->loops->loop[0].lane, &a->task);
    else
        free(a);
    return live ? RQ_OK : RQ_E_CANCELLED;
}

static void run_listener_start(rq_task *task)
{
    rq_listener *l = RQ_CONTAINER_OF(task, rq_listener, start_task);
    pthread_mutex_lock(&l->lock);
    bool start = !l->stopped && !atomic_load(&l->loops->loop[0].stopping);
    l->polling = start;
    pthread_mutex_unlock(&l->lock);
    if (start) {
        l->loops->libuv.uv_poll_init(&l->loops->loop[0].uv, &l->poll, l->fd);
        l->loops->libuv.uv_poll_start(&l->poll, UV_READABLE, on_acceptable);
    }
    task_done(l);
}

static void on_poll_closed(uv_handle_t *h)
{
    rq_listener *l = RQ_CONTAINER_OF(h, rq_listener, poll);
    rq__loop_enter(&l->loops->loop[0]);
    close(l->fd);
    pthread_mutex_lock(&l->lock);
    l->fd = -1;
    l->polling = false;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

/* On loop 0. */
static void listener_stop_here(rq_listener *l)
{
    if (l->polling && !l->loops->libuv.uv_is_closing((uv_handle_t *)&l->poll)) {
        rq_loop_timer_cancel(&l->loops->loop[0], &l->retry);
        l->loops->libuv.uv_close((uv_handle_t *)&l->poll, on_poll_closed);
    }
}

static void run_listener_stop(rq_task *task)
{
    rq_listener *l = RQ_CONTAINER_OF(task, rq_listener, stop_task);
    listener_stop_here(l);
    task_done(l);
}

rq_err rq_listener_open(rq_loops *loops, const rq_listener_options *options, rq_listener **ret,
                        rq_error *why)
{
    rq_listener *l = calloc(1, sizeof *l);
    if (l == NULL) return RQ_E_NO_MEMORY;
    const char *address = options->address != NULL ? options->address : "127.0.0.1";
    rq_err rc = rq_socket_listen(address, options->port, options->only_v6, &l->fd, &l->port, why);
    if (rc != RQ_OK) {
        free(l);
        return rc;
    }
    l->loops = loops;
    l->events = options->events;
    l->ctx = options->ctx;
    l->connections_max = options->connections_max;
    if (options->transform != NULL) l->transform = *options->transform;
    l->start_task.run = run_listener_start;
    l->stop_task.run = run_listener_stop;
    l->retry.run = on_accept_retry;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    pthread_mutex_lock(&loops->lock);
    l->next = loops->listeners;
    loops->listeners = l;
    if (loops->started) {
        l->tasks = 1;
        rq_lane_post(&loops->loop[0].lane, &l->start_task);
    }
    pthread_mutex_unlock(&loops->lock);
    *ret = l;
    return RQ_OK;
}

uint16_t rq_listener_port(const rq_listener *l)
{
    return l->port;
}

unsigned rq_listener_connections(const rq_listener *l)
{
    return atomic_load(&l->connections);
}

struct end_streams {
    rq_task task;
    rq_loop *loop;
    rq_listener *listener;
    bool at_once;
};

static void run_end_streams(rq_task *task)
{
    struct end_streams *e = RQ_CONTAINER_OF(task, struct end_streams, task);
    for (rq_stream *s = e->loop->streams; s != NULL; s = s->next) {
        if (s->listener != e->listener) continue;
        if (e->at_once)
            rq_stream_close(s, RQ_E_CANCELLED);
        else
            rq__stream_end(s);
    }
    task_done(e->listener);
    free(e);
}

bool rq__loops_live(rq_loops *loops)
{
    pthread_mutex_lock(&loops->lock);
    bool live = loops->started && !loops->stopped;
    pthread_mutex_unlock(&loops->lock);
    return live;
}

static void end_streams(rq_listener *l, bool at_once)
{
    atomic_store(at_once ? &l->close_all : &l->finish_all, true);
    for (unsigned i = 0; i < l->loops->count; i++) {
        struct end_streams *e = malloc(sizeof *e);
        RQ_ASSERT(e != NULL); /* 40 bytes at shutdown: there is no sensible way to continue
                               * without */
        *e = (struct end_streams){{NULL, run_end_streams}, &l->loops->loop[i], l, at_once};
        pthread_mutex_lock(&l->lock);
        l->tasks++;
        pthread_mutex_unlock(&l->lock);
        rq_lane_post(&l->loops->loop[i].lane, &e->task);
    }
}

/* Waits until only streams refer to the listener. */
static void listener_wait_stopped(rq_listener *l)
{
    pthread_mutex_lock(&l->lock);
    while (l->polling || l->tasks > 0)
        pthread_cond_wait(&l->changed, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

void rq_listener_stop(rq_listener *l, bool streams)
{
    bool live = rq__loops_live(l->loops);
    pthread_mutex_lock(&l->lock);
    bool first = !l->stopped;
    l->stopped = true;
    if (first && live) l->tasks++;
    pthread_mutex_unlock(&l->lock);
    if (live) {
        if (first) rq_lane_post(&l->loops->loop[0].lane, &l->stop_task);
        if (streams) end_streams(l, false);
        listener_wait_stopped(l);
    }
    if (l->fd >= 0) close(l->fd); /* it was never polled */
    l->fd = -1;
}

void rq_listener_close(rq_listener *l)
{
    if (l == NULL) return;
    rq_listener_stop(l, false);
    rq_loops *loops = l->loops;
    if (rq__loops_live(loops)) end_streams(l, true);
    pthread_mutex_lock(&l->lock);
    while (l->tasks > 0 || atomic_load(&l->connections) > 0)
        pthread_cond_wait(&l->changed, &l->lock);
    pthread_mutex_unlock(&l->lock);
    pthread_mutex_lock(&loops->lock);
    rq_listener **p = &loops->listeners;
    while (*p != l)
        p = &(*p)->next;
    *p = l->next;
    pthread_mutex_unlock(&loops->lock);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    free(l);
}
