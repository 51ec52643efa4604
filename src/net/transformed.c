/* SPDX-License-Identifier: Apache-2.0 */
/* Output and input of a stream with a transform (transform.h).
 *
 * Output stays in the stream's queue until the queue of wire bytes is empty; then the next
 * WRAP_BYTES are wrapped. So a response is in memory once and not twice, and the wire's queue is
 * bounded. `wire_plain` is the number of protocol bytes in the part of the wire's queue that the
 * kernel has not taken; pending and taken output are counted in protocol bytes.
 *
 * Input is read to the stack, fed to the transform, and read from it into the protocol's own
 * buffer. The transform may hold bytes that no event of the socket announces, so reading continues
 * until it has none, in a deferred task if that takes long. */
#include "net/loop_priv.h"

#include <errno.h>
#include <stdlib.h>

#define WIRE_BYTES ((size_t)16 * 1024) /* of one read */
#define WRAP_BYTES ((size_t)64 * 1024) /* wrapped ahead of the kernel */
#define FEEDS_MAX 8                    /* reads in a row that yield no protocol byte */
/* Limit of a transform's own output (a handshake) that the peer has not read: a peer that provokes
 * more is disconnected. */
#define OWN_MAX ((size_t)64 * 1024)

struct rq__transformed {
    rq_transform *transform;
    rq_budget *budget; /* may be NULL */
    size_t charged;
    rq_out_queue wire;
    size_t own;      /* bytes of the transform's own in `wire` */
    bool said_end;   /* `end` was called */
    bool failed;     /* nothing is wrapped or read any more */
    rq_err input_rc; /* the error that ended the input; RQ_OK: none */
};

/* Charges the transform's current memory. */
static void charge(rq_stream *s)
{
    rq__transformed *w = s->transformed;
    if (w->budget == NULL) return;
    size_t held = sizeof *w + w->transform->calls->held(w->transform);
    if (held > w->charged) rq_budget_force(w->budget, held - w->charged);
    if (held < w->charged) rq_budget_give(w->budget, w->charged - held);
    w->charged = held;
}

rq_err rq_stream_set_transform(rq_stream *s, rq_transform *t, rq_budget *budget)
{
    RQ_ASSERT(s->transformed == NULL);
    rq__transformed *w = calloc(1, sizeof *w);
    if (w == NULL) return RQ_E_NO_MEMORY;
    w->transform = t;
    w->budget = budget;
    w->wire = s->out; /* output written before is not wrapped */
    s->wire_plain = s->out.pending;
    s->out = (rq_out_queue){0};
    s->transformed = w;
    charge(s);
    return RQ_OK;
}

void rq__transformed_free(rq_stream *s)
{
    rq__transformed *w = s->transformed;
    if (w->budget != NULL) rq_budget_give(w->budget, w->charged);
    rq__out_queue_drop(&w->wire, &s->loop->pool);
    w->transform->calls->free(w->transform);
    free(w);
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Wraps `plain` and appends it to the wire's queue. */
static rq_err wrap(rq_stream *s, rq_slice plain)
{
    rq__transformed *w = s->transformed;
    rq_buf *to = rq__out_queue_tail(&w->wire, &s->loop->pool);
    if (to == NULL) return RQ_E_NO_MEMORY;
    rq_err rc = w->transform->calls->wrap(w->transform, plain, to);
    rq__out_queue_count(&w->wire);
    return rc;
}

/* Sends the transform's own output. */
static rq_err write_own_output(rq_stream *s)
{
    rq__transformed *w = s->transformed;
    size_t before = w->wire.pending;
    rq_err rc = wrap(s, (rq_slice){0});
    if (before == 0) w->own = 0;
    w->own += w->wire.pending - before;
    if (rc == RQ_E_AGAIN) rc = RQ_OK;
    return w->own > OWN_MAX ? RQ_E_MALFORMED : rc;
}

/* Wraps the next bytes of the stream's queue. RQ_E_AGAIN: they must wait. */
static rq_err wrap_next(rq_stream *s)
{
    struct iovec iov;
    size_t len;
    if (rq__out_queue_gather(&s->out, &iov, 1, &len) == 0) return RQ_OK;
    if (len > WRAP_BYTES) len = WRAP_BYTES;
    RQ_TRY(wrap(s, rq_slice_of(iov.iov_base, len)));
    rq__out_queue_consume(&s->out, &s->loop->pool, len);
    s->wire_plain += len;
    return RQ_OK;
}

static rq_err send_end(rq_stream *s)
{
    rq__transformed *w = s->transformed;
    rq_buf *to = rq__out_queue_tail(&w->wire, &s->loop->pool);
    if (to == NULL) return RQ_E_NO_MEMORY;
    w->said_end = true;
    rq_err rc = w->transform->calls->end(w->transform, to);
    rq__out_queue_count(&w->wire);
    return rc;
}

static rq_err refill(rq_stream *s)
{
    RQ_TRY(write_own_output(s));
    while (s->out.pending > 0 && s->wire_plain < WRAP_BYTES)
        RQ_TRY(wrap_next(s));
    if (s->finishing && s->out.pending == 0 && !s->transformed->said_end) return send_end(s);
    return RQ_OK;
}

rq_out_queue *rq__transformed_output(rq_stream *s)
{
    rq__transformed *w = s->transformed;
    if (w->wire.pending > 0 || w->failed) return &w->wire;
    rq_err rc = refill(s);
    if (rc == RQ_E_AGAIN) rc = RQ_OK;
    charge(s);
    if (w->wire.pending == 0) rq__out_queue_drop(&w->wire, &s->loop->pool); /* an empty buffer */
    if (rc == RQ_OK) return &w->wire;
    w->failed = true;
    rq_stream_close(s, rc);
    return NULL;
}

size_t rq__transformed_sent(rq_stream *s, size_t sent)
{
    size_t wire = s->transformed->wire.pending;
    size_t plain = sent == wire ? s->wire_plain : s->wire_plain * sent / wire;
    s->wire_plain -= plain;
    return plain;
}

bool rq__transformed_is_out(const rq_stream *s)
{
    const rq__transformed *w = s->transformed;
    return w->wire.pending == 0 && (!s->finishing || w->said_end || w->failed);
}

size_t rq__transformed_held(const rq_stream *s)
{
    return rq__out_queue_held(&s->transformed->wire);
}

/* ---- input ----------------------------------------------------------------------------------- */

/* No more input is used; offers the transform's last output to the socket. */
static ssize_t fail(rq_stream *s, rq_err rc)
{
    (void)write_own_output(s); /* the first error wins */
    s->transformed->failed = true;
    s->transformed->input_rc = rc;
    if (s->why == RQ_OK) s->why = rc;
    errno = EPROTO;
    return -1;
}

/* Reads from the socket once more. 1: the transform was fed; otherwise the result of the read. */
static ssize_t feed(rq_stream *s)
{
    rq_transform *t = s->transformed->transform;
    uint8_t wire[WIRE_BYTES];
    ssize_t got = rq__stream_receive(s, wire, sizeof wire);
    rq_err rc = RQ_OK;
    if (got == 0) rc = t->calls->input_end(t);
    if (got > 0) rc = t->calls->feed(t, rq_slice_of(wire, (size_t)got));
    if (rc == RQ_OK && got > 0) rc = write_own_output(s);
    if (rc != RQ_OK) return fail(s, rc);
    return got > 0 ? 1 : got;
}

ssize_t rq__transformed_receive(rq_stream *s, void *bytes, size_t len)
{
    rq_transform *t = s->transformed->transform;
    ssize_t got = 1;
    size_t n = 0;
    for (unsigned i = 0; i <= FEEDS_MAX && got == 1 && n == 0; i++) {
        rq_err rc = s->transformed->input_rc;
        if (rc == RQ_OK) rc = t->calls->read(t, bytes, len, &n);
        if (rc == RQ_E_END)
            got = 0;
        else if (rc != RQ_OK)
            got = fail(s, rc);
        else if (n == 0)
            got = feed(s);
    }
    charge(s);
    rq__stream_mark_dirty(s); /* the transform may have to say something */
    if (n > 0) return (ssize_t)n;
    if (got == 1) { /* nothing for the protocol yet, and perhaps no event announces the rest */
        rq__stream_read_later(s);
        errno = EAGAIN;
        got = -1;
    }
    return got;
}
