/* SPDX-License-Identifier: Apache-2.0 */
/* Streams on libuv: a connection's output until the kernel has taken it, its input as it comes, and
 * its ends. Contracts in stream.h, invariants in loop_priv.h. */
#include "rpc/loop_priv.h"

#include <stdlib.h>
#include <unistd.h>

#define IOV_MAX_OUT 16
#define PAGE 4096 /* of a stream's work, these many bytes are as much as a read */
_Static_assert(sizeof(uv_buf_t) == sizeof(struct iovec) &&
                   offsetof(uv_buf_t, len) == offsetof(struct iovec, iov_len),
               "libuv promises that its buffers are iovecs on Unix");
#define LINGER_NS (3 * 1000000000ull)        /* how long finish waits for the peer's end-of-file */
#define WRITE_STALL_NS (120 * 1000000000ull) /* a peer that takes nothing this long is cut off */
#define SWEEP_NS 1000000000ull

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
    rq__loop_enter(s->loop);
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
        if (rc > 0) {
            if (rc >= PAGE) rq__stream_worked(s, (unsigned)rc / PAGE);
            rq_out_queue_consume(&s->out, &s->loop->pool, (size_t)rc);
        }
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

void rq__loop_flush(rq_loop *loop)
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
    rq__loop_enter(s->loop);
    if (s->finishing || s->events->on_buffer == NULL) {
        *ret = uv_buf_init((char *)s->loop->scratch, RQ__SCRATCH_BYTES);
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
    rq__loop_enter(s->loop);
    offer_data(s, rq_buf_slice(&s->in));
}

static void on_read(uv_stream_t *h, ssize_t nread, const uv_buf_t *buf)
{
    rq_stream *s = (rq_stream *)h;
    rq__loop_enter(s->loop);
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
    rq__stream_worked(s, 1 + (unsigned)nread / PAGE);
    if (s->events->on_buffer != NULL)
        s->events->on_read(s, (size_t)nread);
    else if (nread > 0)
        deliver_data(s, (const uint8_t *)buf->base, (size_t)nread);
}

void rq__stream_read_start(rq_stream *s)
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
    rq__stream_read_start(s);
}

bool rq_stream_paused(const rq_stream *s)
{
    return s->paused;
}

/* ---- the ends of a stream -------------------------------------------------------------------- */

static void stream_free(rq_stream *s)
{
    rq_out_queue_drop(&s->out, &s->loop->pool);
    rq_buf_clear(&s->in);
    rq_buf_clear(&s->sink);
    rq__listener_release(s->listener);
    free(s);
}

bool rq__stream_attach(rq_stream *s, int fd)
{
    rq_loop *loop = s->loop;
    uv_tcp_init(&loop->uv, &s->tcp);
    s->work = 0;
    s->next = loop->streams;
    if (s->next != NULL) s->next->prev = s;
    loop->streams = s;
    if (uv_tcp_open(&s->tcp, fd) == 0) return true;
    close(fd);
    rq_stream_close(s, RQ_E_IO);
    return false;
}

void rq__stream_unlink(rq_stream *s)
{
    if (s->next != NULL) s->next->prev = s->prev;
    if (s->prev != NULL)
        s->prev->next = s->next;
    else if (s->loop->streams == s)
        s->loop->streams = s->next;
    s->next = s->prev = NULL;
}

static void on_closed(uv_handle_t *h)
{
    rq_stream *s = (rq_stream *)h;
    rq__loop_enter(s->loop);
    rq__stream_unlink(s);
    if (s->opened) s->events->on_close(s, s->why);
    stream_free(s);
}

#if defined(__SANITIZE_THREAD__)
/* libuv closes by a bare system call that ThreadSanitizer does not see: it would take whoever is
 * given the number next for one who meddles with this connection. So it is told, just before, while
 * the number is still ours; what uv_close does with it until then does not count. */
void __sanitizer_syscall_pre_impl_close(long fd);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);

void rq__stream_close_handle(rq_stream *s, uv_close_cb closed)
{
    uv_os_fd_t fd;
    if (uv_fileno((uv_handle_t *)&s->tcp, &fd) == 0) __sanitizer_syscall_pre_impl_close(fd);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    uv_close((uv_handle_t *)&s->tcp, closed);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
#else
void rq__stream_close_handle(rq_stream *s, uv_close_cb closed)
{
    uv_close((uv_handle_t *)&s->tcp, closed);
}
#endif

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
    if (s->to != NULL) rq__stream_stay(s);
    rq__stream_close_handle(s, on_closed);
}

void rq_stream_finish(rq_stream *s)
{
    if (s->closing || s->finishing) return;
    s->finishing = true;
    if (s->to != NULL) rq__stream_stay(s);
    rq__stream_read_start(s); /* to discard, and to see the peer's end-of-file */
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

void rq__loop_sweep(rq_loop_timer *t)
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
