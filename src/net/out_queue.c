/* SPDX-License-Identifier: Apache-2.0 */
/* A stream's unsent output; contract in out_queue.h. */
#include "net/out_queue.h"

#include "base/long_free.h"

#include <stdlib.h>

#define KEEP_BYTES ((size_t)64 * 1024) /* larger buffers are spares, not pooled */
#define POOL_MAX 32

static struct rq_out_buffer *buffer_new(rq_out_pool *p)
{
    struct rq_out_buffer *g = p->free;
    if (g == NULL) return calloc(1, sizeof *g);
    p->free = g->next;
    p->count--;
    g->next = NULL;
    return g;
}

/* The i'th spare leaves the list. */
static rq_buf remove_spare(rq_out_pool *p, unsigned i)
{
    rq_buf b = p->spares[i];
    p->spare_bytes -= b.cap;
    p->spare_count--;
    memmove(p->spares + i, p->spares + i + 1, (p->spare_count - i) * sizeof p->spares[0]);
    return b;
}

void rq__out_pool_keep(rq_out_pool *p, rq_buf *b)
{
    if (b->cap == 0 || b->cap > RQ_OUT_SPARE_BYTES) {
        rq_long_clear_buf(p->executor, b);
        return;
    }
    while (p->spare_count == RQ_OUT_SPARES || p->spare_bytes + b->cap > RQ_OUT_SPARE_BYTES) {
        rq_buf oldest = remove_spare(p, 0);
        rq_buf_clear(&oldest);
    }
    rq_buf_reset(b);
    p->spares[p->spare_count++] = *b;
    p->spare_bytes += b->cap;
    *b = (rq_buf){0};
}

void rq__out_pool_take(rq_out_pool *p, size_t want, rq_buf *b)
{
    if (p->spare_count == 0) return;
    unsigned best = p->spare_count - 1;
    for (unsigned i = best; p->spares[best].cap < want && i-- > 0;)
        if (p->spares[i].cap > p->spares[best].cap) best = i;
    *b = remove_spare(p, best);
}

static void buffer_free(rq_out_pool *p, struct rq_out_buffer *g)
{
    if (g->moved || g->buf.cap > KEEP_BYTES || p->count >= POOL_MAX) {
        if (g->moved || g->buf.cap > KEEP_BYTES) rq__out_pool_keep(p, &g->buf);
        rq_buf_clear(&g->buf);
        free(g);
        return;
    }
    rq_buf_reset(&g->buf);
    g->sent = g->counted = 0;
    g->sealed = false;
    g->next = p->free;
    p->free = g;
    p->count++;
}

void rq__out_pool_clear(rq_out_pool *p)
{
    while (p->free != NULL) {
        struct rq_out_buffer *g = p->free;
        p->free = g->next;
        rq_buf_clear(&g->buf);
        free(g);
    }
    p->count = 0;
    while (p->spare_count > 0) {
        rq_buf b = remove_spare(p, p->spare_count - 1);
        rq_buf_clear(&b);
    }
}

static void append(rq_out_queue *q, struct rq_out_buffer *g)
{
    g->next = NULL;
    if (q->tail != NULL)
        q->tail->next = g;
    else
        q->head = g;
    q->tail = g;
}

rq_buf *rq__out_queue_extend(rq_out_queue *q, rq_out_pool *p)
{
    struct rq_out_buffer *g = buffer_new(p);
    if (g == NULL) return NULL;
    rq__out_queue_count(q); /* a response may have begun in the previous buffer */
    append(q, g);
    return &g->buf;
}

void rq__out_queue_count(rq_out_queue *q)
{
    struct rq_out_buffer *g = q->tail; /* only the last one can have grown */
    if (g == NULL) return;
    q->pending += g->buf.len - g->counted;
    g->counted = g->buf.len;
}

rq_err rq__out_queue_move(rq_out_queue *q, rq_buf *b)
{
    struct rq_out_buffer *g = calloc(1, sizeof *g);
    if (g == NULL) return RQ_E_NO_MEMORY;
    rq__out_queue_count(q);
    g->buf = *b;
    g->sealed = g->moved = true;
    *b = (rq_buf){0};
    append(q, g);
    rq__out_queue_count(q);
    return RQ_OK;
}

unsigned rq__out_queue_gather(const rq_out_queue *q, struct iovec *iov, unsigned iov_max,
                              size_t *ret_len)
{
    unsigned n = 0;
    *ret_len = 0;
    for (struct rq_out_buffer *g = q->head; g != NULL && n < iov_max; g = g->next) {
        if (g->buf.len == g->sent) continue;
        iov[n] = (struct iovec){g->buf.ptr + g->sent, g->buf.len - g->sent};
        *ret_len += iov[n].iov_len;
        n++;
    }
    return n;
}

void rq__out_queue_consume(rq_out_queue *q, rq_out_pool *p, size_t len)
{
    RQ_ASSERT(len <= q->pending);
    q->pending -= len;
    while (q->head != NULL) {
        struct rq_out_buffer *g = q->head;
        size_t left = g->buf.len - g->sent;
        if (len < left) {
            g->sent += len;
            g->sealed = g->sent > 0; /* otherwise it would grow as long as the peer is slow */
            return;
        }
        len -= left;
        q->head = g->next;
        if (q->head == NULL) q->tail = NULL;
        buffer_free(p, g);
    }
}

size_t rq__out_queue_held(const rq_out_queue *q)
{
    size_t held = 0;
    /* A buffer too large to be kept as a spare was never used before: the memory behind its bytes
     * has not been touched, so it is not resident and does not count. */
    for (const struct rq_out_buffer *g = q->head; g != NULL; g = g->next)
        held += sizeof *g + (g->buf.cap > RQ_OUT_SPARE_BYTES ? g->buf.len : g->buf.cap);
    return held;
}

void rq__out_queue_drop(rq_out_queue *q, rq_out_pool *p)
{
    while (q->head != NULL) {
        struct rq_out_buffer *g = q->head;
        q->head = g->next;
        buffer_free(p, g);
    }
    *q = (rq_out_queue){0};
}
