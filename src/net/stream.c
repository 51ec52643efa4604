/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: a connection's output until the kernel has taken it, its input as it arrives, and its
 * closing. libuv reports when a socket is ready. Reads and writes are plain socket calls: they
 * cost less per request than libuv's streams, and the descriptor stays ours when a stream moves
 * to another loop. Contracts in stream.h, invariants in loop_priv.h. */
#include "net/loop_priv.h"

#include "net/answers.h"
#include "net/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define IOV_MAX_OUT 16
/* Output of this size is sent before the iteration ends: a fraction of a core's own cache, and
 * enough to make the cost of a system call negligible. */
#define PUSH_FROM ((size_t)256 * 1024)
/* Most bytes that a stream sends in one step, before other streams have a turn: about 0.2 ms. To a peer on the same
 * machine the kernel accepts any number, as fast as it is read. */
#define SEND_MAX ((size_t)512 * 1024)
#define READS_MAX 32 /* reads of one stream in a row, while they fill their buffers */
#define PAGE 4096    /* in a stream's share of the load, this many bytes count as much as a read */
/* How long finish waits for a peer that takes nothing, in each of two phases, and for any peer in all. */
#define LINGER_NS (3 * 1000000000ull)
#define FINISH_MAX_NS (20 * 1000000000ull)
/* A peer that accepts no byte for this long is disconnected. */
#define WRITE_STALL_NS (120 * 1000000000ull)
#define SWEEP_NS 1000000000ull
#define HELD_NS 5000000ull
#define END_SWEEP_NS 20000000ull /* after the listener's stop */

/* ---- the write side of a stream -------------------------------------------------------------- */

/* Adds the stream to `list`: the loop's list of dirty or of held streams. REQUIRES: it is in neither. */
static void list_out(rq_stream *s, rq_stream **list)
{
    s->prev_out = NULL;
    s->next_out = *list;
    if (s->next_out != NULL) s->next_out->prev_out = s;
    *list = s;
}

static void unlist_out(rq_stream *s)
{
    rq_stream **list = s->is_held ? &s->loop->held_streams : &s->loop->dirty;
    if (!s->is_dirty && !s->is_held) return;
    *(s->prev_out == NULL ? list : &s->prev_out->next_out) = s->next_out;
    if (s->next_out != NULL) s->next_out->prev_out = s->prev_out;
    s->is_dirty = s->is_held = false;
}

void rq__stream_mark_dirty(rq_stream *s)
{
    if (s->is_dirty || s->closing) return;
    unlist_out(s);
    list_out(s, &s->loop->dirty);
    s->is_dirty = true;
}

rq_buf *rq_stream_out(rq_stream *s)
{
    rq_buf *b = s->closing ? NULL : rq__out_queue_tail(&s->out, &s->loop->pool);
    if (b != NULL) return b;
    rq_stream_close(s, RQ_E_NO_MEMORY);
    rq_buf_reset(&s->sink);
    return &s->sink;
}

static void push(rq_stream *s);

/* A complete response was appended. */
static void queued(rq_stream *s)
{
    rq__stream_mark_dirty(s);
    if (RQ_UNLIKELY(s->out.pending >= PUSH_FROM)) push(s);
}

void rq_stream_written(rq_stream *s)
{
    rq__out_queue_count(&s->out);
    queued(s);
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
        rq_stream_keep_spare(s, b);
        return RQ_OK;
    }
    RQ_TRY(rq__out_queue_move(&s->out, b));
    queued(s);
    return RQ_OK;
}

void rq_stream_take_spare(rq_stream *s, size_t want, rq_buf *b)
{
    rq__out_pool_take(&s->loop->pool, want, b);
}

void rq_stream_keep_spare(rq_stream *s, rq_buf *b)
{
    rq__out_pool_keep(&s->loop->pool, b);
}

size_t rq_stream_out_pending(const rq_stream *s)
{
    return s->out.pending + s->wire_plain;
}

bool rq__stream_is_out(const rq_stream *s)
{
    return s->out.pending == 0 && (s->transformed == NULL || rq__transformed_is_out(s));
}

bool rq__stream_stalled(const rq_stream *s)
{
    return s->writing;
}

size_t rq__stream_out_held(const rq_stream *s)
{
    size_t wire = s->transformed != NULL ? rq__transformed_held(s) : 0;
    return rq__out_queue_held(&s->out) + wire;
}

uint64_t rq_stream_out_taken(const rq_stream *s)
{
    return s->taken;
}

static void deliver_rest_in_turn(rq_stream *s);
static void sweep_arm(rq_loop *loop);

static void set_deadline(rq_stream *s, uint64_t due_ns)
{
    s->deadline_ns = due_ns;
    if (due_ns != 0) sweep_arm(s->loop);
}

static void on_ready(uv_poll_t *h, int status, int events);

/* 0, or an error of libuv. */
static int watch_carrier(rq_stream *s, int events)
{
    if (s->memory != NULL) {
        rq__memory_watch(s->memory, events);
        return 0;
    }
    s->loop->must_poll = true;
    return events == 0 ? s->loop->loops->libuv.uv_poll_stop(&s->poll)
                       : s->loop->loops->libuv.uv_poll_start(&s->poll, events, on_ready);
}

void rq__stream_watch(rq_stream *s)
{
    int events = (s->reading ? UV_READABLE : 0) | (s->writing ? UV_WRITABLE : 0);
    if (s->closing || events == s->watched) return;
    int rc = watch_carrier(s, events);
    s->watched = events;
    if (rc != 0) rq_stream_close(s, RQ_E_IO);
}

static void linger(rq_stream *s)
{
    uint64_t due = s->loop->now_ns + LINGER_NS;
    set_deadline(s, due < s->finish_by_ns ? due : s->finish_by_ns);
}

/* Shuts the stream down if everything is written and finish was requested. */
static void shut_if_finished(rq_stream *s)
{
    if (!s->finishing || s->shut || s->closing || !rq__stream_is_out(s)) return;
    s->shut = true;
    if (s->memory != NULL) {
        rq__memory_shut(s->memory);
    } else if (shutdown(s->fd, SHUT_WR) != 0) {
        rq_stream_close(s, s->why);
        return;
    }
    linger(s);
}

/* The number of bytes the kernel accepted, 0 if it accepts none now, or -1. */
static ssize_t send_some(rq_stream *s, struct iovec *iov, unsigned n)
{
    int fd = s->fd;
    ssize_t sent;
    if (RQ_UNLIKELY(s->memory != NULL)) return rq__memory_send(s->memory, iov, n);
    do {
        struct msghdr message = {.msg_iov = iov, .msg_iovlen = n};
        sent = n == 1 ? send(fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL)
                      : sendmsg(fd, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : sent;
}

static rq_out_queue *outgoing(rq_stream *s)
{
    return RQ_LIKELY(s->transformed == NULL) ? &s->out : rq__transformed_output(s);
}

static void count_taken(rq_stream *s, size_t sent)
{
    s->taken += RQ_LIKELY(s->transformed == NULL) ? sent : rq__transformed_sent(s, sent);
    rq__stream_carried(s, sent);
    if (sent >= PAGE) rq__stream_worked(s, (unsigned)(sent / PAGE));
}

static bool answers_may_go(const rq_loop *loop)
{
    return loop->loops->may_answer(loop->loops->answers_ctx);
}

/* Enters a stream with output into the list of held streams. A dirty stream is flushed in this iteration, and enters then. */
static void hold(rq_stream *s)
{
    rq_loop *loop = s->loop;
    if (s->is_dirty || s->is_held || rq__stream_is_out(s)) return;
    list_out(s, &loop->held_streams);
    s->is_held = true;
    if (!loop->held.armed) rq_loop_timer_arm(loop, &loop->held, HELD_NS);
}

/* Whether the stream's output is held back (answers.h). Only accepted streams are: what this process sends on streams
 * that it opened is a request. */
RQ_COLD static bool is_held_back(rq_stream *s)
{
    if (s->listener == NULL || s->answers_always) return false;
    if (answers_may_go(s->loop)) {
        if (s->is_held) unlist_out(s);
        return false;
    }
    hold(s);
    rq__stream_watch(s); /* not for a writable socket, which would wake the loop all the time */
    return true;
}

/* Asks once each time, however many streams are held. */
void rq__loop_try_held(rq_loop_timer *t)
{
    rq_loop *loop = RQ_CONTAINER_OF(t, rq_loop, held);
    if (loop->held_streams == NULL) return;
    if (!answers_may_go(loop)) {
        rq_loop_timer_arm(loop, t, HELD_NS);
        return;
    }
    while (loop->held_streams != NULL)
        rq__stream_mark_dirty(loop->held_streams);
}

void rq_stream_answers_always(rq_stream *s, bool always)
{
    s->answers_always = always;
}

void rq_loops_hold_answers(rq_loops *loops, bool (*may_answer)(void *ctx), void *ctx)
{
    RQ_ASSERT(!loops->started);
    loops->may_answer = may_answer;
    loops->answers_ctx = ctx;
}

/* Shortens the list to `most` bytes, and returns their number. */
static size_t trim(struct iovec *iov, unsigned *n, size_t most)
{
    size_t sum = 0;
    for (unsigned i = 0; i < *n; i++) {
        if (iov[i].iov_len >= most - sum) {
            iov[i].iov_len = most - sum;
            *n = i + 1;
        }
        sum += iov[i].iov_len;
    }
    return sum;
}

/* The rest is sent when the socket is ready: in the next iteration at the earliest. */
static void wait_to_send(rq_stream *s, bool progress)
{
    s->writing = true;
    /* Not now_ns: between the turns of a driven loop that may be long ago. */
    if (progress || (s->watched & UV_WRITABLE) == 0) s->progress_ns = rq_loop_clock_ns();
    sweep_arm(s->loop);
}

/* Sends as much as the kernel accepts, SEND_MAX at most. The stream stays dirty, so that the rest (events to watch,
 * shutdown) is handled at the end of the iteration and not inside a call of the stream's user. */
static void push(rq_stream *s)
{
    if (s->closing || s->writing) return;
    if (RQ_UNLIKELY(s->loop->loops->may_answer != NULL) && is_held_back(s)) return;
    for (size_t left = SEND_MAX;;) {
        rq_out_queue *out = outgoing(s);
        struct iovec iov[IOV_MAX_OUT];
        size_t asked;
        if (out == NULL || out->pending == 0) break;
        unsigned n = rq__out_queue_gather(out, iov, IOV_MAX_OUT, &asked);
        if (RQ_UNLIKELY(asked > left)) asked = trim(iov, &n, left);
        ssize_t sent = send_some(s, iov, n);
        if (sent < 0) {
            rq__dial_note(s, "cannot write to", errno);
            rq_stream_close(s, RQ_E_IO);
            return;
        }
        count_taken(s, (size_t)sent);
        if (sent > 0) rq__out_queue_consume(out, &s->loop->pool, (size_t)sent);
        left -= (size_t)sent;
        if ((size_t)sent < asked || left == 0) {
            wait_to_send(s, sent > 0);
            break;
        }
    }
    rq__stream_watch(s);
}

static void flush(rq_stream *s)
{
    if (s->closing || s->writing) return;
    push(s);
    if (s->out.pending == 0) rq__out_queue_drop(&s->out, &s->loop->pool); /* an empty buffer */
    shut_if_finished(s);
    if (s->closing || s->events->on_drain == NULL) return;
    bool was_paused = s->paused;
    s->events->on_drain(s);
    if (was_paused && !s->paused && s->in.len > 0) deliver_rest_in_turn(s);
}

void rq__stream_connected(rq_stream *s)
{
    s->writing = false;
    s->reading = !s->paused;
    flush(s);
}

void rq__loop_flush(rq_loop *loop)
{
    while (loop->dirty != NULL) {
        rq_stream *s = loop->dirty;
        unlist_out(s);
        flush(s);
    }
}

/* ---- the read side --------------------------------------------------------------------------- */

#define KEEP_MIN ((size_t)4 * 1024) /* a smaller buffer stays as it is */

/* The first `used` bytes of s->in go. What is left of a large request does not keep its memory. */
static void keep_rest(rq_stream *s, size_t used)
{
    size_t left = s->in.len - used;
    rq_buf small = {0};
    if (used == 0) return; /* else a long request is moved with each of its reads */
    if (left < s->in.cap / 4 && s->in.cap > KEEP_MIN &&
        rq_buf_append(&small, s->in.ptr + used, left) == RQ_OK) {
        rq_buf_clear(&s->in);
        s->in = small;
        return;
    }
    memmove(s->in.ptr, s->in.ptr + used, left);
    s->in.len = left;
}

/* Offers all received bytes in `data`, which may be s->in; unconsumed ones are kept there. */
static void offer_data(rq_stream *s, rq_slice data)
{
    size_t used = s->events->on_data(s, data);
    RQ_ASSERT(used <= data.len);
    size_t left = data.len - used;
    if (left == 0) {
        if (s->in.cap > 0) rq_buf_clear(&s->in);
    } else if (data.ptr == s->in.ptr) {
        keep_rest(s, used);
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

/* For a stream that resumes after a pause: these bytes must be handled before any further ones. */
static void deliver_rest(rq_stream *s)
{
    if (s->closing || s->finishing) return;
    rq__loop_enter(s->loop);
    offer_data(s, rq_buf_slice(&s->in));
}

/* A peer may have sent many requests with one read, and each response may pause and resume the stream. */
static void deliver_rest_in_turn(rq_stream *s)
{
    s->rest_waits = rq_loop_turn_is_over(s->loop, rq_loop_clock_ns());
    if (s->rest_waits)
        rq__stream_read_later(s);
    else
        deliver_rest(s);
}

/* Where the next bytes go; 0: nowhere, because the stream does not read. */
static size_t room_for_input(rq_stream *s, void **ret)
{
    *ret = s->loop->scratch;
    if (s->finishing || s->events->on_buffer == NULL) return RQ__SCRATCH_BYTES;
    size_t len = 0;
    *ret = s->events->on_buffer(s, &len);
    if (s->closing) return 0;
    if (*ret != NULL) return len;
    rq_stream_pause(s);
    return 0;
}

ssize_t rq__stream_receive(rq_stream *s, void *bytes, size_t len)
{
    ssize_t got;
    if (RQ_UNLIKELY(s->memory != NULL)) return rq__memory_receive(s->memory, bytes, len);
    do
        got = recv(s->fd, bytes, len, 0);
    while (got < 0 && errno == EINTR);
    return got;
}

/* Bytes that arrive while the stream finishes are discarded and need no transform. */
static ssize_t receive_some(rq_stream *s, void *bytes, size_t len)
{
    return RQ_LIKELY(s->transformed == NULL) || s->finishing
               ? rq__stream_receive(s, bytes, len)
               : rq__transformed_receive(s, bytes, len);
}

/* The peer has closed its side, or the connection is broken. */
static void input_ends(rq_stream *s, rq_err why)
{
    if (!s->finishing) flush(s); /* answers that are ready still go out */
    rq_stream_close(s, why);
}

/* Whether another read may yield something now. */
static bool has_more(const rq_stream *s, size_t len, size_t room)
{
    return RQ_LIKELY(s->transformed == NULL) ? len == room : len > 0;
}

/* False: there was nothing to read, or no room. */
static bool read_ready(rq_stream *s)
{
    size_t room, len;
    bool any = false;
    unsigned reads = 0, reads_max = s->events->on_data != NULL ? 1 : READS_MAX;
    do {
        void *bytes;
        room = room_for_input(s, &bytes);
        if (room == 0) return any;
        ssize_t got = receive_some(s, bytes, room);
        bool none = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        if (got == 0 || (got < 0 && !none)) {
            if (got < 0) rq__dial_note(s, "cannot read from", errno);
            input_ends(s, got == 0 ? s->why : RQ_E_IO);
            return true;
        }
        any |= !none;
        len = none ? 0 : (size_t)got;
        s->spoke |= s->finishing; /* and what it said is discarded */
        if (!s->finishing) {
            rq__stream_carried(s, len);
            rq__stream_worked(s, 1 + (unsigned)(len / PAGE));
            if (!s->nameless) s->heard_ns = s->loop->now_ns;
            if (s->events->on_buffer != NULL)
                s->events->on_read(s, len);
            else if (len > 0)
                deliver_data(s, bytes, len);
        }
    } while (has_more(s, len, room) && ++reads < reads_max && s->reading && !s->closing);
    /* The transform may hold more bytes, which no event of the socket announces. */
    if (RQ_UNLIKELY(s->transformed != NULL) && len > 0) rq__stream_read_later(s);
    return any;
}

bool rq__stream_try_read(rq_stream *s)
{
    if (!s->reading || s->closing || s->deferred) return false;
    rq__loop_enter(s->loop);
    return read_ready(s);
}

static void stream_end(rq_stream *s);

static void run_turn(rq_task *task)
{
    rq_stream *s = RQ_CONTAINER_OF(task, rq_stream, turn);
    bool has_rest = s->rest_waits;
    s->deferred = s->rest_waits = false;
    if (s->ended) {
        stream_end(s);
        return;
    }
    if (has_rest && s->reading && s->in.len > 0) deliver_rest(s);
    if (s->reading && !s->closing) (void)read_ready(s);
}

void rq__stream_read_later(rq_stream *s)
{
    if (s->deferred || !s->reading || s->closing) return;
    s->deferred = true;
    s->turn.run = run_turn;
    rq_loop_defer(s->loop, &s->turn);
}

/* A user of on_data handles requests while they are read, so the iteration's length is checked
 * here. (A user of on_buffer checks it itself.) */
static void read_in_turn(rq_stream *s)
{
    if (s->deferred) return;
    if (!rq_loop_turn_is_over(s->loop, rq_loop_clock_ns()))
        (void)read_ready(s);
    else
        rq__stream_read_later(s);
}

static void on_ready(uv_poll_t *h, int status, int events)
{
    rq_stream *s = (rq_stream *)h;
    rq__loop_enter(s->loop);
    s->loop->ready++;
    s->loop->likely = s;
    if (RQ_UNLIKELY(rq__stream_connects(s))) {
        rq__dial_ready(s);
        return;
    }
    if (status <
        0) { /* an error waits in the socket, perhaps behind input; libuv stops polling it */
        s->watched = 0;
        if (s->reading) (void)read_ready(s);
        input_ends(s, RQ_E_IO);
        return;
    }
    rq__stream_ready(s, events);
}

void rq__stream_ready(rq_stream *s, int events)
{
    if ((events & UV_WRITABLE) != 0 && s->writing) {
        s->writing = false;
        flush(s);
    }
    if ((events & UV_READABLE) == 0 || !s->reading || s->closing) return;
    if (s->events->on_data != NULL)
        read_in_turn(s);
    else
        (void)read_ready(s);
}

void rq__stream_read_start(rq_stream *s)
{
    if (s->reading || s->closing) return;
    s->reading = true;
    rq__stream_watch(s);
    if (RQ_UNLIKELY(s->transformed != NULL)) rq__stream_read_later(s);
}

void rq_stream_pause(rq_stream *s)
{
    s->paused = true;
    if (s->finishing || !s->reading || s->closing) return;
    s->reading = false;
    rq__stream_watch(s);
}

void rq_stream_resume(rq_stream *s)
{
    s->paused = false;
    if (!rq__stream_connects(s)) rq__stream_read_start(s);
}

bool rq_stream_paused(const rq_stream *s)
{
    return s->paused;
}

/* ---- the ends of a stream -------------------------------------------------------------------- */

static void stream_free(rq_stream *s)
{
    rq__out_queue_drop(&s->out, &s->loop->pool);
    if (s->transformed != NULL) rq__transformed_free(s);
    rq_buf_clear(&s->in);
    rq_buf_clear(&s->sink);
    if (s->dial != NULL) {
        rq__dial_free(s->dial);
    } else {
        rq__crowd_forget(s);
        rq__listener_release(s->listener, s->memory == NULL);
    }
    free(s);
}

/* Ends the stream for its user, and for the loop. */
static void stream_end(rq_stream *s)
{
    if (s->opened) s->events->on_close(s, s->why);
    stream_free(s);
}

bool rq__stream_attach(rq_stream *s)
{
    rq_loop *loop = s->loop;
    s->work = 0;
    s->watched = 0;
    if (s->memory != NULL) {
        rq__memory_attach(s->memory, s);
    } else if (s->loop->loops->libuv.uv_poll_init(&loop->uv, &s->poll, s->fd) != 0) {
        close(s->fd);
        s->why = RQ_E_IO;
        stream_end(s);
        return false;
    }
    rq__stream_link(s);
    return true;
}

void rq__stream_link(rq_stream *s)
{
    s->next = s->loop->streams;
    if (s->next != NULL) s->next->prev = s;
    s->loop->streams = s;
}

void rq__stream_unlink(rq_stream *s)
{
    rq__stream_unlist_worked(s);
    if (s->loop->likely == s) s->loop->likely = NULL;
    if (s->loop->crowd_at == s) s->loop->crowd_at = s->next;
    for (rq_stream_walk *w = s->loop->walks; w != NULL; w = w->next)
        if (w->at == s) w->at = s->next;
    if (s->next != NULL) s->next->prev = s->prev;
    if (s->prev != NULL)
        s->prev->next = s->next;
    else if (s->loop->streams == s)
        s->loop->streams = s->next;
    s->next = s->prev = NULL;
}

void rq__stream_closed(rq_stream *s)
{
    rq__stream_unlink(s);
    if (s->deferred)
        s->ended = true;
    else
        stream_end(s);
}

static void on_closed(uv_handle_t *h)
{
    rq_stream *s = (rq_stream *)h;
    rq__loop_enter(s->loop);
    rq__stream_closed(s);
}

static void run_closed(rq_task *task)
{
    rq__stream_closed(RQ_CONTAINER_OF(task, rq_stream, arrive));
}

/* It watches no more from now on. */
static void close_carrier(rq_stream *s)
{
    s->loop->must_poll = true;
    if (s->dial != NULL && rq__dial_close(s)) return;
    if (s->fd < 0) {
        if (s->memory != NULL) rq__memory_detach(s->memory);
        s->arrive.run = run_closed;
        rq_lane_post(&s->loop->lane, &s->arrive);
    } else {
        s->loop->loops->libuv.uv_close((uv_handle_t *)&s->poll, on_closed);
        close(s->fd);
    }
}

void rq_stream_close(rq_stream *s, rq_err why)
{
    if (s->closing) return;
    if (s->why == RQ_OK) s->why = why;
    s->closing = true;
    s->reading = false;
    unlist_out(s); /* rq__loop_flush must not find it after it was freed */
    if (s->to != NULL) rq__stream_stay(s);
    close_carrier(s);
}

/* Bytes of output that the peer's system has not acknowledged. */
static size_t undelivered(const rq_stream *s)
{
    return rq_stream_out_pending(s) + (s->memory == NULL ? rq__socket_undelivered(s->fd) : 0);
}

/* A peer that takes its output slowly gets more time. */
static bool makes_progress(rq_stream *s)
{
    size_t before = s->undelivered;
    s->undelivered = undelivered(s);
    return s->undelivered < before && s->loop->now_ns < s->finish_by_ns;
}

void rq_stream_finish(rq_stream *s)
{
    if (s->closing || s->finishing) return;
    if (rq__stream_connects(s)) {
        rq_stream_close(s, RQ_OK);
        return;
    }
    s->finishing = true;
    if (s->to != NULL) rq__stream_stay(s);
    rq__stream_read_start(s); /* to discard, and to see the peer's end-of-file */
    s->finish_by_ns = s->loop->now_ns + FINISH_MAX_NS;
    s->undelivered = undelivered(s);
    linger(s); /* for a peer that does not read */
    rq__stream_mark_dirty(s);
}

/* A peer that speaks may be told by a reset, before it has read its answers, that nobody listens. */
static bool is_delivered(const rq_stream *s)
{
    return rq__stream_is_out(s) && !s->spoke &&
           (s->memory != NULL || rq__socket_is_delivered(s->fd));
}

void rq__stream_end(rq_stream *s)
{
    if (s->transformed == NULL && is_delivered(s)) {
        rq_stream_close(s, s->why);
        return;
    }
    rq_stream_finish(s);
    rq_loop_timer_arm(s->loop, &s->loop->sweep, END_SWEEP_NS);
}

bool rq_stream_closing(const rq_stream *s)
{
    return s->closing || s->finishing;
}

void rq_stream_set_deadline(rq_stream *s, uint64_t due_ns)
{
    if (!s->finishing) set_deadline(s, due_ns); /* else the deadline is that of the peer's end */
}

/* Its listener ends it and the others. */
static bool is_ended(const rq_stream *s)
{
    return s->listener != NULL && atomic_load(&s->listener->finish_all);
}

static void sweep_stream(rq_stream *s, uint64_t now)
{
    if (s->shut && is_ended(s) && is_delivered(s)) {
        rq_stream_close(s, s->why);
    } else if (s->writing && now > s->progress_ns + WRITE_STALL_NS) {
        rq__dial_note(s, "cannot write to", ETIMEDOUT);
        rq_stream_close(s, RQ_E_TIMEOUT);
    } else if (s->deadline_ns != 0 && now >= s->deadline_ns) {
        s->deadline_ns = 0;
        if (s->finishing && makes_progress(s))
            linger(s);
        else if (s->finishing)
            rq_stream_close(s, s->why);
        else if (s->events->on_deadline != NULL)
            s->events->on_deadline(s);
    }
}

static void sweep_arm(rq_loop *loop)
{
    if (!loop->sweep.armed) rq_loop_timer_arm(loop, &loop->sweep, SWEEP_NS);
}

static bool sweep_visit(rq_stream_walk *w, rq_stream *s)
{
    rq_loop *loop = w->loop;
    sweep_stream(s, loop->now_ns);
    loop->sweeps_again |= s->writing || s->deadline_ns != 0;
    loop->sweeps_soon |= s->finishing && is_ended(s);
    return true;
}

static void sweep_end(rq_stream_walk *w)
{
    rq_loop *loop = w->loop;
    loop->sweeps = false;
    if (loop->sweeps_soon)
        rq_loop_timer_arm(loop, &loop->sweep, END_SWEEP_NS);
    else if (loop->sweeps_again)
        sweep_arm(loop);
}

void rq__loop_sweep(rq_loop_timer *t)
{
    rq_loop *loop = RQ_CONTAINER_OF(t, rq_loop, sweep);
    if (loop->sweeps) { /* the last sweep has not ended */
        rq_loop_timer_arm(loop, t, END_SWEEP_NS);
        return;
    }
    loop->sweeps = true;
    loop->sweeps_again = loop->sweeps_soon = false;
    loop->sweep_walk = (rq_stream_walk){.visit = sweep_visit, .end = sweep_end};
    rq_loop_walk_streams(loop, &loop->sweep_walk);
}

/* ---- walks ----------------------------------------------------------------------------------- */

#define WALK_STEP 1024 /* streams per iteration: at most a third of a millisecond */

static bool is_visited(const rq_stream_walk *w, const rq_stream *s)
{
    return !s->closing && (w->events == NULL || (s->events == w->events && s->opened));
}

/* False: the walk has ended. */
static bool walk_some(rq_stream_walk *w)
{
    for (unsigned n = 0; n < WALK_STEP && w->at != NULL; n++) {
        rq_stream *s = w->at;
        w->at = s->next;
        if (is_visited(w, s) && !w->visit(w, s)) return false;
    }
    return w->at != NULL;
}

static void run_walk(rq_task *task)
{
    rq_stream_walk *w = RQ_CONTAINER_OF(task, rq_stream_walk, task);
    if (walk_some(w)) {
        rq_loop_defer(w->loop, &w->task);
        return;
    }
    *(w->prev == NULL ? &w->loop->walks : &w->prev->next) = w->next;
    if (w->next != NULL) w->next->prev = w->prev;
    w->end(w);
}

void rq_loop_walk_streams(rq_loop *loop, rq_stream_walk *w)
{
    w->loop = loop;
    w->at = loop->streams;
    w->task.run = run_walk;
    w->prev = NULL;
    w->next = loop->walks;
    if (w->next != NULL) w->next->prev = w;
    loop->walks = w;
    run_walk(&w->task);
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
