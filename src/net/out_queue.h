/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of a stream that the kernel has not taken yet: a list of buffers. Small responses are
 * appended to the last buffer while it has less than RQ_OUT_FULL_BYTES, so that it does not grow
 * too large for the pool; large ones are moved in without copying. Empty buffers go to a pool (one
 * per loop), so that an idle stream holds none and a busy one allocates none: a fresh buffer costs
 * a page fault every 4 kB, which is most of the cost of a response of 50 kB.
 *
 * The queue does no I/O: the stream takes the front with rq__out_queue_gather, writes it, and
 * reports the bytes taken with rq__out_queue_consume.
 */
#ifndef RQ_NET_OUT_QUEUE_H
#define RQ_NET_OUT_QUEUE_H

#include "base/buf.h"
#include "base/executor.h"
#include "base/macros.h"

#include <sys/uio.h>

struct rq_out_buffer {
    struct rq_out_buffer *next;
    rq_buf buf;
    size_t sent;
    size_t counted; /* bytes already included in `pending` */
    bool sealed;    /* nothing may be appended: it was moved in, or is partly written */
    bool moved;
};

/* Number and total bytes of the large buffers that a loop keeps. */
#define RQ_OUT_SPARES 32
#define RQ_OUT_SPARE_BYTES ((size_t)4 << 20)

typedef struct rq_out_pool {
    rq_executor *executor; /* frees large buffers (base/long_free.h); may be NULL */
    struct rq_out_buffer *free;
    unsigned count;
    /* Written buffers that had been moved in. The last one is in the caches, and is reused
     * first. */
    rq_buf spares[RQ_OUT_SPARES];
    unsigned spare_count;
    size_t spare_bytes;
} rq_out_pool;

/* Keeps b's memory as a spare; frees the oldest spares above the limits. *b is empty afterwards. */
void rq__out_pool_keep(rq_out_pool *p, rq_buf *b);
/* Moves a spare to *b, which must be empty: the most recent one with room for `want` bytes, or
 * the largest. Leaves *b empty if there is none. */
void rq__out_pool_take(rq_out_pool *p, size_t want, rq_buf *b);

typedef struct rq_out_queue {
    struct rq_out_buffer *head;
    struct rq_out_buffer *tail;
    size_t pending;
} rq_out_queue;

void rq__out_pool_clear(rq_out_pool *p);

/* Output is not appended to a buffer with this many bytes or more, so that a response that is
 * copied does not make the buffer too large for the pool. */
#define RQ_OUT_FULL_BYTES ((size_t)40 * 1024)

/* Appends an empty buffer. NULL: memory is exhausted. */
rq_buf *rq__out_queue_extend(rq_out_queue *q, rq_out_pool *p);

/* Returns the buffer to append to, or NULL when memory is exhausted. Call rq__out_queue_count
 * after appending. */
static inline rq_buf *rq__out_queue_tail(rq_out_queue *q, rq_out_pool *p)
{
    struct rq_out_buffer *g = q->tail;
    if (RQ_LIKELY(g != NULL && !g->sealed && g->buf.len < RQ_OUT_FULL_BYTES)) return &g->buf;
    return rq__out_queue_extend(q, p);
}
/* Counts the appended bytes. */
void rq__out_queue_count(rq_out_queue *q);
/* Moves b's memory to the end of the queue; *b is empty afterwards. */
RQ_NODISCARD
rq_err rq__out_queue_move(rq_out_queue *q, rq_buf *b);
/* Fills iov with the first buffers. Returns their number; *ret_len is their total length. */
unsigned rq__out_queue_gather(const rq_out_queue *q, struct iovec *iov, unsigned iov_max,
                              size_t *ret_len);
/* Removes `len` bytes from the front. */
void rq__out_queue_consume(rq_out_queue *q, rq_out_pool *p, size_t len);
/* Memory of all its buffers, including written and unused bytes. */
size_t rq__out_queue_held(const rq_out_queue *q);
void rq__out_queue_drop(rq_out_queue *q, rq_out_pool *p);

#endif
