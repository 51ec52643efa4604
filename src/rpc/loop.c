/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event loops, listeners and streams on libuv: the only file that knows it. Contracts in loop.h and
 * stream.h.
 *
 * Invariants
 *  (1) Every libuv callback begins with enter(): it opens the epoch's read section and takes the
 *      time once. iteration_end() closes it, from the check handle (after sockets) and from the
 *      prepare handle (after timers and close callbacks). A loop that sleeps is in no section.
 *  (2) While a uv_write is under way (`writing`), what it writes stays in the output queue
 *      untouched and nothing else is written; before that, uv_try_write gives the kernel what it
 *      wants in one call.
 *  (3) A stream's memory is freed in its uv_close callback, right after on_close.
 *  (4) Whoever posts from another thread pushes on a stack and wakes the loop only when nobody has
 *      done so since the loop last looked (`signalled`).
 */
#include "rpc/stream.h"

#include "rpc/out_queue.h"
#include "rpc/socket.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#define SCRATCH_BYTES ((size_t)64 * 1024) /* where on_data users' bytes are read first */
#define IOV_MAX_OUT 16
_Static_assert(sizeof(uv_buf_t) == sizeof(struct iovec) &&
                   offsetof(uv_buf_t, len) == offsetof(struct iovec, iov_len),
               "libuv promises that its buffers are iovecs on Unix");
#define ACCEPT_BATCH 64
#define LINGER_NS (3 * 1000000000ull)        /* how long finish waits for the peer's end-of-file */
#define WRITE_STALL_NS (120 * 1000000000ull) /* a peer that takes nothing this long is cut off */
#define SWEEP_NS 1000000000ull
#define ACCEPT_RETRY_NS 100000000ull /* out of file descriptors: look again then */

struct rq_loop {
    rq_lane lane; /* first: rq_loop_of_lane */
    struct rq_loops *loops;
    unsigned index;
    bool created; /* `joinable` is a thread */
    pthread_t joinable;
    _Atomic bool running;
    pthread_t thread; /* its own idea of itself */
    rq_task stop_task;
    uv_loop_t uv;
    uv_async_t wake;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;
    uv_timer_t clock;
    bool handles_open;
    bool in_section;
    _Atomic bool stopping;
    uint64_t now_ns;
    rq_epoch_member member;

    _Atomic(rq_task *) inbox; /* other threads'; newest first */
    _Atomic bool signalled;
    rq_task *tasks; /* this thread's; oldest first */
    rq_task **tasks_end;
    rq_loop_hook *hooks;
    rq_loop_timer timers; /* ring, soonest first */
    rq_loop_timer sweep;

    rq_stream *streams; /* all, for sweep and stop */
    rq_stream *dirty;   /* with new output */
    _Atomic unsigned connections;
    rq_out_pool pool;
    uint8_t *scratch;
};

struct rq_loops {
    unsigned count;
    bool started;
    bool stopped;
    rq_epoch *epoch;
    const rq_log *log;
    pthread_mutex_t lock;
    rq_listener *listeners RQ_GUARDED_BY(lock);
    unsigned next; /* loop 0's: where the search for the idlest begins */
    rq_loop loop[];
};

struct rq_listener {
    rq_loops *loops;
    rq_listener *next; /* in loops->listeners */
    const rq_stream_events *events;
    void *ctx;
    unsigned connections_max;
    _Atomic unsigned connections;
    int fd;
    uint16_t port;
    uv_poll_t poll;
    rq_task start_task;
    rq_task stop_task;
    rq_loop_timer retry;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool polling RQ_GUARDED_BY(lock); /* uv holds `poll` */
    bool stopped RQ_GUARDED_BY(lock);
    unsigned tasks RQ_GUARDED_BY(lock); /* posted about this listener and not yet run */
};

struct rq_stream {
    uv_tcp_t tcp; /* first */
    rq_loop *loop;
    rq_listener *listener;
    const rq_stream_events *events;
    void *user;
    rq_stream *next, *prev; /* loop->streams */
    rq_stream *next_dirty;
    rq_out_queue out;
    rq_buf sink; /* stands in when no segment can be had */
    rq_buf in;   /* on_data: not consumed yet */
    uint64_t deadline_ns;
    uint64_t progress_ns; /* when output last moved, or began to wait */
    uv_write_t write;
    rq_peer peer;
    rq_err why;
    bool opened; /* on_open succeeded: on_close is due */
    bool reading;
    bool allocating;   /* libuv asks for a buffer: it must not be told to stop or close now */
    bool close_wanted; /* asked for while allocating */
    bool paused;
    bool is_dirty;
    bool writing;
    bool finishing;
    bool shut; /* end-of-file was sent */
    bool closing;
};

/* ---- time and sections ---------------------------------------------------------------------- */

static uint64_t clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void enter(rq_loop *loop)
{
    if (loop->in_section) return;
    loop->in_section = true;
    loop->now_ns = clock_ns();
    if (loop->loops->epoch != NULL) rq_epoch_enter(loop->loops->epoch, &loop->member);
}

static void leave(rq_loop *loop)
{
    loop->in_section = false;
    if (loop->loops->epoch == NULL) return;
    rq_epoch_exit(loop->loops->epoch, &loop->member);
    rq_epoch_collect(loop->loops->epoch);
}

uint64_t rq_loop_now_ns(const rq_loop *loop)
{
    return loop->now_ns;
}

bool rq_loop_is_current(const rq_loop *loop)
{
    return atomic_load_explicit(&loop->running, memory_order_acquire) &&
           pthread_equal(pthread_self(), loop->thread);
}

unsigned rq_loop_index(const rq_loop *loop)
{
    return loop->index;
}

rq_lane *rq_loop_lane(rq_loop *loop)
{
    return &loop->lane;
}

rq_loop *rq_loop_of_lane(rq_lane *lane)
{
    return RQ_CONTAINER_OF(lane, rq_loop, lane);
}

/* ---- tasks and hooks ------------------------------------------------------------------------ */

static void post_local(rq_loop *loop, rq_task *task)
{
    task->next = NULL;
    *loop->tasks_end = task;
    loop->tasks_end = &task->next;
}

static void loop_post(rq_lane *lane, rq_task *task)
{
    rq_loop *loop = rq_loop_of_lane(lane);
    if (rq_loop_is_current(loop)) {
        post_local(loop, task);
        return;
    }
    rq_task *head = atomic_load_explicit(&loop->inbox, memory_order_relaxed);
    do {
        task->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&loop->inbox, &head, task, memory_order_release,
                                                    memory_order_relaxed));
    if (!atomic_exchange(&loop->signalled, true)) uv_async_send(&loop->wake);
}

/* Moves what other threads posted behind our own tasks, oldest first. */
static void take_inbox(rq_loop *loop)
{
    if (!atomic_load_explicit(&loop->signalled, memory_order_relaxed)) return;
    atomic_store(&loop->signalled, false); /* before the exchange: a later post wakes us again */
    rq_task *newest = atomic_exchange_explicit(&loop->inbox, NULL, memory_order_acquire);
    rq_task *oldest = NULL;
    while (newest != NULL) {
        rq_task *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest != NULL) {
        rq_task *next = oldest->next;
        post_local(loop, oldest);
        oldest = next;
    }
}

/* Runs what stands in the queue now; what these tasks post waits for the next round. */
static void run_tasks(rq_loop *loop)
{
    take_inbox(loop);
    rq_task *task = loop->tasks;
    loop->tasks = NULL;
    loop->tasks_end = &loop->tasks;
    while (task != NULL) {
        rq_task *next = task->next; /* run() may free or post the task */
        task->run(task);
        task = next;
    }
}

void rq_loop_add_hook(rq_loop *loop, rq_loop_hook *hook)
{
    rq_loop_hook **end = &loop->hooks;
    while (*end != NULL)
        end = &(*end)->next;
    hook->next = NULL;
    *end = hook;
}

static bool tasks_waiting(rq_loop *loop)
{
    return loop->tasks != NULL || atomic_load(&loop->signalled);
}

static void flush_dirty(rq_loop *loop);
static void stop_step(rq_loop *loop);

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* being active keeps the loop from sleeping; the work is done in iteration_end */
}

static void iteration_end(rq_loop *loop)
{
    if (!loop->in_section) {
        if (!tasks_waiting(loop) && !atomic_load_explicit(&loop->stopping, memory_order_relaxed))
            return;
        enter(loop);
    }
    run_tasks(loop);
    for (rq_loop_hook *h = loop->hooks; h != NULL; h = h->next)
        h->run(h, loop);
    if (loop->tasks != NULL) run_tasks(loop);
    flush_dirty(loop);
    if (atomic_load_explicit(&loop->stopping, memory_order_relaxed)) stop_step(loop);
    leave(loop);
    if (!loop->handles_open) return;
    if (loop->tasks != NULL)
        uv_idle_start(&loop->idle, on_idle);
    else
        uv_idle_stop(&loop->idle);
}

static void on_prepare(uv_prepare_t *h)
{
    iteration_end(RQ_CONTAINER_OF(h, rq_loop, prepare));
}

static void on_check(uv_check_t *h)
{
    iteration_end(RQ_CONTAINER_OF(h, rq_loop, check));
}

static void on_wake(uv_async_t *h)
{
    enter(RQ_CONTAINER_OF(h, rq_loop, wake));
}

/* ---- timers --------------------------------------------------------------------------------- */

static void on_clock(uv_timer_t *h);

/* Sets libuv's timer to the soonest of ours. */
static void clock_set(rq_loop *loop)
{
    if (!loop->handles_open) return;
    if (loop->timers.next == &loop->timers) {
        uv_timer_stop(&loop->clock);
        return;
    }
    uint64_t due = loop->timers.next->due_ns;
    uint64_t now = clock_ns();
    uint64_t ms = due <= now ? 0 : (due - now + 999999) / 1000000;
    uv_update_time(&loop->uv);
    uv_timer_start(&loop->clock, on_clock, ms, 0);
}

static void timer_unlink(rq_loop_timer *t)
{
    t->prev->next = t->next;
    t->next->prev = t->prev;
    t->next = t->prev = NULL;
    t->armed = false;
}

void rq_loop_timer_arm(rq_loop *loop, rq_loop_timer *timer, uint64_t delay_ns)
{
    if (timer->armed) timer_unlink(timer);
    timer->due_ns = clock_ns() + delay_ns;
    /* From the far end: most timers have about the same delay, so this is where they belong. */
    rq_loop_timer *before = loop->timers.prev;
    while (before != &loop->timers && before->due_ns > timer->due_ns)
        before = before->prev;
    timer->prev = before;
    timer->next = before->next;
    before->next->prev = timer;
    before->next = timer;
    timer->armed = true;
    if (loop->timers.next == timer) clock_set(loop);
}

void rq_loop_timer_cancel(rq_loop *loop, rq_loop_timer *timer)
{
    (void)loop; /* libuv's timer may fire once for nothing */
    if (timer->armed) timer_unlink(timer);
}

static void on_clock(uv_timer_t *h)
{
    rq_loop *loop = RQ_CONTAINER_OF(h, rq_loop, clock);
    enter(loop);
    uint64_t now = clock_ns();
    while (loop->timers.next != &loop->timers && loop->timers.next->due_ns <= now) {
        rq_loop_timer *t = loop->timers.next;
        timer_unlink(t);
        t->run(t);
    }
    clock_set(loop);
}

/* ---- the write side of a stream -------------------------------------------------------------- */

static void mark_dirty(rq_stream *s)
{
    if (s->is_dirty || s->closing) return;
    s->is_dirty = true;
    s->next_dirty = s->loop->dirty;
    s->loop->dirty = s;
}

rq_buf *rq_stream_out(rq_stream *s)
{
    rq_buf *b = s->closing ? NULL : rq_out_queue_tail(&s->out, &s->loop->pool);
    if (b != NULL) return b;
    rq_stream_close(s, RQ_E_NO_MEMORY);
    rq_buf_reset(&s->sink);
    return &s->sink;
}

void rq_stream_written(rq_stream *s)
{
    rq_out_queue_count(&s->out);
    mark_dirty(s);
}

rq_err rq_stream_write(rq_stream *s, const void *bytes, size_t len)
{
    rq_err rc = rq_buf_append(rq_stream_out(s), bytes, len);
    if (rc == RQ_OK) rq_stream_written(s);
    return rc;
}

rq_err rq_stream_write_owned(rq_stream *s, rq_buf *b)
{
    if (s->closing || b->len == 0) {
        rq_buf_clear(b);
        return RQ_OK;
    }
    RQ_TRY(rq_out_queue_move(&s->out, b));
    mark_dirty(s);
    return RQ_OK;
}

void rq_stream_take_spare(rq_stream *s, rq_buf *b)
{
    *b = s->loop->pool.spare;
    s->loop->pool.spare = (rq_buf){0};
}

void rq_stream_keep_spare(rq_stream *s, rq_buf *b)
{
    rq_out_pool_keep(&s->loop->pool, b);
}

size_t rq_stream_out_pending(const rq_stream *s)
{
    return s->out.pending;
}

static void flush(rq_stream *s);
static void deliver_rest(rq_stream *s);
static void sweep_arm(rq_loop *loop);

static void on_written(uv_write_t *req, int status)
{
    rq_stream *s = RQ_CONTAINER_OF(req, rq_stream, write);
    enter(s->loop);
    s->writing = false;
    if (s->closing) return;
    if (status < 0) {
        rq_stream_close(s, RQ_E_IO);
        return;
    }
    rq_out_queue_consume(&s->out, &s->loop->pool, (size_t)(uintptr_t)req->data);
    s->progress_ns = s->loop->now_ns;
    flush(s);
}

/* Lets libuv write the rest when the socket is ready. */
static void flush_later(rq_stream *s)
{
    uv_buf_t iov[IOV_MAX_OUT];
    size_t len;
    unsigned n = rq_out_queue_gather(&s->out, (struct iovec *)iov, IOV_MAX_OUT, &len);
    s->write.data = (void *)(uintptr_t)len;
    rq_out_queue_seal(&s->out);
    s->writing = true;
    s->progress_ns = s->loop->now_ns;
    sweep_arm(s->loop);
    if (uv_write(&s->write, (uv_stream_t *)&s->tcp, iov, n, on_written) != 0) {
        s->writing = false;
        rq_stream_close(s, RQ_E_IO);
    }
}

/* Everything is written: what finish asked for. */
static void shut_if_finished(rq_stream *s)
{
    if (!s->finishing || s->shut || s->out.pending > 0) return;
    s->shut = true;
    uv_os_fd_t fd;
    if (uv_fileno((uv_handle_t *)&s->tcp, &fd) != 0 || shutdown(fd, SHUT_WR) != 0) {
        rq_stream_close(s, s->why);
        return;
    }
    rq_stream_set_deadline(s, s->loop->now_ns + LINGER_NS);
}

static void flush(rq_stream *s)
{
    if (s->closing || s->writing) return;
    while (s->out.pending > 0) {
        uv_buf_t iov[IOV_MAX_OUT];
        size_t asked;
        unsigned n = rq_out_queue_gather(&s->out, (struct iovec *)iov, IOV_MAX_OUT, &asked);
        int rc = uv_try_write((uv_stream_t *)&s->tcp, iov, n);
        if (rc < 0 && rc != UV_EAGAIN) {
            rq_stream_close(s, RQ_E_IO);
            return;
        }
        if (rc > 0) rq_out_queue_consume(&s->out, &s->loop->pool, (size_t)rc);
        if (rc < 0 || (size_t)rc < asked) {
            flush_later(s);
            break;
        }
    }
    if (s->out.pending == 0) rq_out_queue_drop(&s->out, &s->loop->pool); /* an empty segment */
    shut_if_finished(s);
    if (s->closing || s->events->on_drain == NULL) return;
    bool was_paused = s->paused;
    s->events->on_drain(s);
    if (was_paused && !s->paused && s->in.len > 0) deliver_rest(s);
}

static void flush_dirty(rq_loop *loop)
{
    while (loop->dirty != NULL) {
        rq_stream *s = loop->dirty;
        loop->dirty = s->next_dirty;
        s->next_dirty = NULL;
        s->is_dirty = false;
        flush(s);
    }
}

/* ---- the read side --------------------------------------------------------------------------- */

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *ret)
{
    (void)suggested;
    rq_stream *s = (rq_stream *)h;
    enter(s->loop);
    if (s->finishing || s->events->on_buffer == NULL) {
        *ret = uv_buf_init((char *)s->loop->scratch, SCRATCH_BYTES);
        return;
    }
    size_t len = 0;
    s->allocating = true;
    void *p = s->events->on_buffer(s, &len);
    s->allocating = false;
    if (p == NULL) s->paused = true; /* on_read stops */
    if (len > UINT32_MAX) len = UINT32_MAX;
    *ret = uv_buf_init(p, p == NULL ? 0 : (unsigned)len);
}

/* Everything that is there, in `data`, which may be s->in; what is not consumed is kept there. */
static void offer_data(rq_stream *s, rq_slice data)
{
    size_t used = s->events->on_data(s, data);
    RQ_ASSERT(used <= data.len);
    size_t left = data.len - used;
    if (left == 0) {
        if (s->in.cap > 0) rq_buf_clear(&s->in);
    } else if (data.ptr == s->in.ptr) {
        memmove(s->in.ptr, s->in.ptr + used, left);
        s->in.len = left;
    } else if (rq_buf_append(&s->in, data.ptr + used, left) != RQ_OK) {
        rq_stream_close(s, RQ_E_NO_MEMORY);
    }
}

static void deliver_data(rq_stream *s, const uint8_t *bytes, size_t len)
{
    rq_slice data = {bytes, len};
    if (s->in.len > 0) {
        if (rq_buf_append(&s->in, bytes, len) != RQ_OK) {
            rq_stream_close(s, RQ_E_NO_MEMORY);
            return;
        }
        data = rq_buf_slice(&s->in);
    }
    offer_data(s, data);
}

/* Of a stream that goes on after a pause: no further byte may come before these are answered. */
static void deliver_rest(rq_stream *s)
{
    if (s->closing || s->finishing || s->close_wanted) return;
    enter(s->loop);
    offer_data(s, rq_buf_slice(&s->in));
}

static void on_read(uv_stream_t *h, ssize_t nread, const uv_buf_t *buf)
{
    rq_stream *s = (rq_stream *)h;
    enter(s->loop);
    if (s->closing) return;
    if (s->close_wanted) {
        rq_stream_close(s, s->why);
        return;
    }
    if (nread == UV_ENOBUFS) {
        if (s->paused) rq_stream_pause(s);
        return;
    }
    if (nread < 0) {
        rq_err why = nread == UV_EOF ? s->why : RQ_E_IO;
        if (!s->finishing) flush(s); /* answers that are ready still go out */
        rq_stream_close(s, why);
        return;
    }
    if (s->finishing) return; /* discarded */
    if (s->events->on_buffer != NULL)
        s->events->on_read(s, (size_t)nread);
    else if (nread > 0)
        deliver_data(s, (const uint8_t *)buf->base, (size_t)nread);
}

static void read_start(rq_stream *s)
{
    if (s->reading || s->closing) return;
    s->reading = uv_read_start((uv_stream_t *)&s->tcp, on_alloc, on_read) == 0;
    if (!s->reading) rq_stream_close(s, RQ_E_IO);
}

void rq_stream_pause(rq_stream *s)
{
    s->paused = true;
    if (s->finishing || !s->reading || s->closing || s->allocating) return;
    uv_read_stop((uv_stream_t *)&s->tcp);
    s->reading = false;
}

void rq_stream_resume(rq_stream *s)
{
    s->paused = false;
    read_start(s);
}

bool rq_stream_paused(const rq_stream *s)
{
    return s->paused;
}

/* ---- the ends of a stream -------------------------------------------------------------------- */

static void listener_release(rq_listener *l)
{
    /* Under the lock, so that rq_listener_close cannot free it between the two steps. */
    pthread_mutex_lock(&l->lock);
    atomic_fetch_sub(&l->connections, 1);
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static void stream_free(rq_stream *s)
{
    rq_out_queue_drop(&s->out, &s->loop->pool);
    rq_buf_clear(&s->in);
    rq_buf_clear(&s->sink);
    atomic_fetch_sub(&s->loop->connections, 1);
    listener_release(s->listener);
    free(s);
}

static void on_closed(uv_handle_t *h)
{
    rq_stream *s = (rq_stream *)h;
    rq_loop *loop = s->loop;
    enter(loop);
    if (s->next != NULL) s->next->prev = s->prev;
    if (s->prev != NULL)
        s->prev->next = s->next;
    else if (loop->streams == s)
        loop->streams = s->next;
    if (s->opened) s->events->on_close(s, s->why);
    stream_free(s);
}

void rq_stream_close(rq_stream *s, rq_err why)
{
    if (s->closing) return;
    if (s->why == RQ_OK) s->why = why;
    s->close_wanted = s->allocating;
    if (s->allocating) return;
    s->closing = true;
    s->reading = false;
    if (s->is_dirty) { /* flush_dirty must not meet it after it was freed */
        rq_stream **p = &s->loop->dirty;
        while (*p != s)
            p = &(*p)->next_dirty;
        *p = s->next_dirty;
        s->is_dirty = false;
    }
    uv_close((uv_handle_t *)&s->tcp, on_closed);
}

void rq_stream_finish(rq_stream *s)
{
    if (s->closing || s->finishing) return;
    s->finishing = true;
    read_start(s); /* to discard, and to see the peer's end-of-file */
    mark_dirty(s);
}

bool rq_stream_closing(const rq_stream *s)
{
    return s->closing || s->finishing || s->close_wanted;
}

void rq_stream_set_deadline(rq_stream *s, uint64_t due_ns)
{
    s->deadline_ns = due_ns;
    if (due_ns != 0) sweep_arm(s->loop);
}

static void sweep_stream(rq_stream *s, uint64_t now)
{
    if (s->writing && now > s->progress_ns + WRITE_STALL_NS) {
        rq_stream_close(s, RQ_E_TIMEOUT);
    } else if (s->deadline_ns != 0 && now >= s->deadline_ns) {
        s->deadline_ns = 0;
        if (s->finishing)
            rq_stream_close(s, s->why);
        else if (s->events->on_deadline != NULL)
            s->events->on_deadline(s);
    }
}

static void on_sweep(rq_loop_timer *t)
{
    rq_loop *loop = RQ_CONTAINER_OF(t, rq_loop, sweep);
    bool again = false;
    for (rq_stream *s = loop->streams; s != NULL; s = s->next) {
        if (s->closing) continue;
        sweep_stream(s, loop->now_ns);
        again |= s->writing || s->deadline_ns != 0;
    }
    if (again) rq_loop_timer_arm(loop, t, SWEEP_NS);
}

static void sweep_arm(rq_loop *loop)
{
    if (!loop->sweep.armed) rq_loop_timer_arm(loop, &loop->sweep, SWEEP_NS);
}

void rq_stream_set_user(rq_stream *s, void *user)
{
    s->user = user;
}

void *rq_stream_user(const rq_stream *s)
{
    return s->user;
}

rq_loop *rq_stream_loop(const rq_stream *s)
{
    return s->loop;
}

const rq_peer *rq_stream_peer(const rq_stream *s)
{
    return &s->peer;
}

/* ---- accepting ------------------------------------------------------------------------------- */

static void stream_link(rq_stream *s)
{
    rq_loop *loop = s->loop;
    s->next = loop->streams;
    if (s->next != NULL) s->next->prev = s;
    loop->streams = s;
}

/* A new connection, on the loop that is to own it. The counters were raised by whoever accepted. */
static void stream_open(rq_loop *loop, rq_listener *l, int fd)
{
    rq_stream *s = calloc(1, sizeof *s);
    if (s == NULL) {
        close(fd);
        atomic_fetch_sub(&loop->connections, 1);
        listener_release(l);
        return;
    }
    s->loop = loop;
    s->listener = l;
    s->events = l->events;
    rq_socket_accepted(fd, &s->peer);
    uv_tcp_init(&loop->uv, &s->tcp);
    stream_link(s);
    if (uv_tcp_open(&s->tcp, fd) != 0) {
        close(fd);
        rq_stream_close(s, RQ_E_IO);
        return;
    }
    rq_err rc = atomic_load(&loop->stopping) ? RQ_E_CANCELLED : s->events->on_open(l->ctx, s);
    if (rc != RQ_OK) {
        rq_stream_close(s, rc);
        return;
    }
    s->opened = true;
    if (!s->paused) read_start(s);
}

struct handover {
    rq_task task;
    rq_loop *loop;
    rq_listener *listener;
    int fd;
};

static void run_handover(rq_task *task)
{
    struct handover *h = RQ_CONTAINER_OF(task, struct handover, task);
    stream_open(h->loop, h->listener, h->fd);
    free(h);
}

static rq_loop *idlest_loop(rq_loops *loops)
{
    rq_loop *best = NULL;
    unsigned least = UINT32_MAX;
    for (unsigned i = 0; i < loops->count; i++) {
        rq_loop *loop = &loops->loop[(loops->next + i) % loops->count];
        unsigned n = atomic_load(&loop->connections);
        if (n < least) {
            least = n;
            best = loop;
        }
    }
    loops->next = (loops->next + 1) % loops->count;
    return best;
}

static void accepted(rq_listener *l, int fd)
{
    if (l->connections_max > 0 && atomic_load(&l->connections) >= l->connections_max) {
        close(fd);
        return;
    }
    rq_loop *loop = idlest_loop(l->loops);
    atomic_fetch_add(&l->connections, 1);
    atomic_fetch_add(&loop->connections, 1);
    if (rq_loop_is_current(loop)) {
        stream_open(loop, l, fd);
        return;
    }
    struct handover *h = malloc(sizeof *h);
    if (h == NULL) {
        close(fd);
        atomic_fetch_sub(&loop->connections, 1);
        listener_release(l);
        return;
    }
    *h = (struct handover){{NULL, run_handover}, loop, l, fd};
    rq_lane_post(&loop->lane, &h->task);
}

static void on_acceptable(uv_poll_t *h, int status, int events);

static void on_accept_retry(rq_loop_timer *t)
{
    rq_listener *l = RQ_CONTAINER_OF(t, rq_listener, retry);
    uv_poll_start(&l->poll, UV_READABLE, on_acceptable);
}

static void on_acceptable(uv_poll_t *h, int status, int events)
{
    (void)events;
    rq_listener *l = RQ_CONTAINER_OF(h, rq_listener, poll);
    rq_loop *loop = &l->loops->loop[0];
    enter(loop);
    if (status < 0) return;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            accepted(l, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* The connection stays in the backlog and the socket readable: do not spin on it. */
            if (l->loops->log != NULL)
                rq_log_warn(l->loops->log, "rpc", "cannot accept on port %u: %s", l->port,
                            strerror(errno));
            uv_poll_stop(&l->poll);
            rq_loop_timer_arm(loop, &l->retry, ACCEPT_RETRY_NS);
            return;
        } else if (errno != ECONNABORTED && errno != EINTR) {
            return;
        }
    }
}

/* ---- listeners ------------------------------------------------------------------------------- */

static void task_done(rq_listener *l)
{
    pthread_mutex_lock(&l->lock);
    l->tasks--;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static void run_listener_start(rq_task *task)
{
    rq_listener *l = RQ_CONTAINER_OF(task, rq_listener, start_task);
    pthread_mutex_lock(&l->lock);
    bool start = !l->stopped && !atomic_load(&l->loops->loop[0].stopping);
    l->polling = start;
    pthread_mutex_unlock(&l->lock);
    if (start) {
        uv_poll_init(&l->loops->loop[0].uv, &l->poll, l->fd);
        uv_poll_start(&l->poll, UV_READABLE, on_acceptable);
    }
    task_done(l);
}

static void on_poll_closed(uv_handle_t *h)
{
    rq_listener *l = RQ_CONTAINER_OF(h, rq_listener, poll);
    enter(&l->loops->loop[0]);
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
    if (l->polling && !uv_is_closing((uv_handle_t *)&l->poll)) {
        rq_loop_timer_cancel(&l->loops->loop[0], &l->retry);
        uv_close((uv_handle_t *)&l->poll, on_poll_closed);
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
    rq_err rc = rq_socket_listen(address, options->port, &l->fd, &l->port, why);
    if (rc != RQ_OK) {
        free(l);
        return rc;
    }
    l->loops = loops;
    l->events = options->events;
    l->ctx = options->ctx;
    l->connections_max = options->connections_max;
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
            rq_stream_finish(s);
    }
    task_done(e->listener);
    free(e);
}

static bool loops_live(rq_loops *loops)
{
    pthread_mutex_lock(&loops->lock);
    bool live = loops->started && !loops->stopped;
    pthread_mutex_unlock(&loops->lock);
    return live;
}

static void end_streams(rq_listener *l, bool at_once)
{
    for (unsigned i = 0; i < l->loops->count; i++) {
        struct end_streams *e = malloc(sizeof *e);
        RQ_ASSERT(e != NULL); /* 40 bytes at shutdown: nothing sensible is left to do without */
        *e = (struct end_streams){{NULL, run_end_streams}, &l->loops->loop[i], l, at_once};
        pthread_mutex_lock(&l->lock);
        l->tasks++;
        pthread_mutex_unlock(&l->lock);
        rq_lane_post(&l->loops->loop[i].lane, &e->task);
    }
}

/* Waits until nothing of the loops' refers to the listener but its streams. */
static void listener_wait_stopped(rq_listener *l)
{
    pthread_mutex_lock(&l->lock);
    while (l->polling || l->tasks > 0)
        pthread_cond_wait(&l->changed, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

void rq_listener_stop(rq_listener *l, bool streams)
{
    bool live = loops_live(l->loops);
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
    if (loops_live(loops)) end_streams(l, true);
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

/* ---- the loops ------------------------------------------------------------------------------- */

static rq_err loop_init(rq_loops *loops, unsigned index)
{
    rq_loop *loop = &loops->loop[index];
    loop->lane.post = loop_post;
    loop->loops = loops;
    loop->index = index;
    loop->tasks_end = &loop->tasks;
    loop->timers.next = loop->timers.prev = &loop->timers;
    loop->sweep.run = on_sweep;
    loop->scratch = malloc(SCRATCH_BYTES);
    if (loop->scratch == NULL) return RQ_E_NO_MEMORY;
    if (uv_loop_init(&loop->uv) != 0) return RQ_E_IO;
    loop->handles_open = true;
    if (uv_async_init(&loop->uv, &loop->wake, on_wake) != 0) return RQ_E_IO;
    uv_prepare_init(&loop->uv, &loop->prepare);
    uv_prepare_start(&loop->prepare, on_prepare);
    uv_check_init(&loop->uv, &loop->check);
    uv_check_start(&loop->check, on_check);
    uv_idle_init(&loop->uv, &loop->idle);
    uv_timer_init(&loop->uv, &loop->clock);
    return RQ_OK;
}

rq_err rq_loops_new(const rq_loops_options *options, rq_loops **ret)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned count = options->count > 0 ? options->count : cpus > 0 ? (unsigned)cpus : 1;
    rq_loops *loops = calloc(1, sizeof *loops + count * sizeof loops->loop[0]);
    if (loops == NULL) return RQ_E_NO_MEMORY;
    loops->epoch = options->epoch;
    loops->log = options->log;
    pthread_mutex_init(&loops->lock, NULL);
    for (; loops->count < count; loops->count++) {
        rq_err rc = loop_init(loops, loops->count);
        if (rc != RQ_OK) {
            loops->count++; /* free what this one has */
            rq_loops_free(loops);
            return rc;
        }
    }
    *ret = loops;
    return RQ_OK;
}

static void *loop_main(void *arg)
{
    rq_loop *loop = arg;
    char name[16];
    snprintf(name, sizeof name, "rq-loop-%u", loop->index);
    pthread_setname_np(pthread_self(), name);
    loop->thread = pthread_self();
    atomic_store_explicit(&loop->running, true, memory_order_release);
    if (loop->loops->epoch != NULL) rq_epoch_join(loop->loops->epoch, &loop->member);
    loop->now_ns = clock_ns();
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    if (loop->in_section) leave(loop);
    if (loop->loops->epoch != NULL) rq_epoch_leave(loop->loops->epoch, &loop->member);
    return NULL;
}

rq_err rq_loops_start(rq_loops *loops)
{
    /* The loops take no signals: the main thread does, and SIGPIPE nobody (writes return EPIPE). */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rq_err rc = RQ_OK;
    for (unsigned i = 0; i < loops->count && rc == RQ_OK; i++) {
        rq_loop *loop = &loops->loop[i];
        loop->created = pthread_create(&loop->joinable, NULL, loop_main, loop) == 0;
        if (!loop->created) rc = RQ_E_NO_MEMORY;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != RQ_OK) {
        rq_loops_stop(loops);
        return rc;
    }
    pthread_mutex_lock(&loops->lock);
    loops->started = true;
    for (rq_listener *l = loops->listeners; l != NULL; l = l->next) {
        if (l->stopped) continue;
        l->tasks++;
        rq_lane_post(&loops->loop[0].lane, &l->start_task);
    }
    pthread_mutex_unlock(&loops->lock);
    return RQ_OK;
}

/* One step of the way out, at the end of an iteration: close what is open; once nothing is left and
 * nothing is posted, the loop's own handles, and uv_run returns. */
static void stop_step(rq_loop *loop)
{
    if (!loop->handles_open) return;
    for (rq_stream *s = loop->streams; s != NULL; s = s->next)
        rq_stream_close(s, RQ_E_CANCELLED);
    if (loop->streams != NULL || tasks_waiting(loop)) return;
    loop->handles_open = false;
    uv_close((uv_handle_t *)&loop->wake, NULL);
    uv_close((uv_handle_t *)&loop->prepare, NULL);
    uv_close((uv_handle_t *)&loop->check, NULL);
    uv_close((uv_handle_t *)&loop->idle, NULL);
    uv_close((uv_handle_t *)&loop->clock, NULL);
}

static void run_nothing(rq_task *task)
{
    (void)task;
}

void rq_loops_stop(rq_loops *loops)
{
    if (loops->stopped) return;
    /* Listeners first: afterwards no loop hands a connection to another that has ended. */
    for (rq_listener *l = loops->listeners; l != NULL; l = l->next)
        rq_listener_stop(l, false);
    pthread_mutex_lock(&loops->lock);
    loops->stopped = true;
    pthread_mutex_unlock(&loops->lock);
    for (unsigned i = 0; i < loops->count; i++) {
        rq_loop *loop = &loops->loop[i];
        if (!loop->created) continue;
        atomic_store(&loop->stopping, true);
        loop->stop_task.run = run_nothing;
        rq_lane_post(&loop->lane, &loop->stop_task);
    }
    for (unsigned i = 0; i < loops->count; i++)
        if (loops->loop[i].created) pthread_join(loops->loop[i].joinable, NULL);
}

struct sync {
    rq_task task;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
};

static void run_sync(rq_task *task)
{
    struct sync *y = RQ_CONTAINER_OF(task, struct sync, task);
    pthread_mutex_lock(&y->lock);
    y->done = true;
    pthread_cond_signal(&y->changed);
    pthread_mutex_unlock(&y->lock);
}

static void sync_one(rq_loop *loop)
{
    struct sync y = {.task = {NULL, run_sync}};
    pthread_mutex_init(&y.lock, NULL);
    pthread_cond_init(&y.changed, NULL);
    rq_lane_post(&loop->lane, &y.task);
    pthread_mutex_lock(&y.lock);
    while (!y.done)
        pthread_cond_wait(&y.changed, &y.lock);
    pthread_mutex_unlock(&y.lock);
    pthread_mutex_destroy(&y.lock);
    pthread_cond_destroy(&y.changed);
}

void rq_loops_sync(rq_loops *loops)
{
    if (!loops_live(loops)) return;
    for (unsigned i = 0; i < loops->count; i++)
        sync_one(&loops->loop[i]);
}

static void close_handle(uv_handle_t *h, void *arg)
{
    (void)arg;
    uv_close(h, NULL);
}

static void loop_clear(rq_loop *loop)
{
    if (loop->handles_open) { /* never ran: let libuv close its handles */
        loop->handles_open = false;
        uv_walk(&loop->uv, close_handle, NULL);
        uv_run(&loop->uv, UV_RUN_DEFAULT);
    }
    uv_loop_close(&loop->uv);
    rq_out_pool_clear(&loop->pool);
    free(loop->scratch);
}

void rq_loops_free(rq_loops *loops)
{
    if (loops == NULL) return;
    rq_loops_stop(loops);
    for (unsigned i = 0; i < loops->count; i++)
        loop_clear(&loops->loop[i]);
    pthread_mutex_destroy(&loops->lock);
    free(loops);
}

unsigned rq_loops_count(const rq_loops *loops)
{
    return loops->count;
}

rq_loop *rq_loops_get(rq_loops *loops, unsigned index)
{
    RQ_ASSERT(index < loops->count);
    return &loops->loop[index];
}
