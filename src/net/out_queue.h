/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of a stream that the kernel has not taken yet: a list of byte buffers. Small answers are
 * appended to the last one, until it is so long that another would make it grow beyond what is
 * kept; large ones are moved in as they are. Emptied buffers go to a pool (one per loop), so that
 * an idle stream holds none and a busy one allocates none: a fresh buffer costs a page fault every
 * 4 kB, most of what an answer of 50 kB takes else.
 *
 * No input or output here: the stream asks for the front (rq_out_queue_gather), writes, and says
 * how much was taken (rq_out_queue_consume).
 */
#ifndef RQ_NET_OUT_QUEUE_H
#define RQ_NET_OUT_QUEUE_H

#include "base/buf.h"

#include <sys/uio.h>

struct rq_out_segment {
    struct rq_out_segment *next;
    rq_buf buf;
    size_t sent;
    size_t counted; /* bytes that are in `pending` already */
    bool sealed;    /* nothing is appended: moved in, or its front is written */
    bool moved;
};

/* How many large buffers a loop keeps, and how many bytes of them. */
#define RQ_OUT_SPARES 32
#define RQ_OUT_SPARE_BYTES ((size_t)4 << 20)

typedef struct rq_out_pool {
    struct rq_out_segment *free;
    unsigned count;
    /* Buffers that were moved in and are written, the last one on top: what the caches have. */
    rq_buf spares[RQ_OUT_SPARES];
    unsigned spare_count;
    size_t spare_bytes;
} rq_out_pool;

/* Keeps b's memory as a spare; what was kept longest goes when it is too much. *b is empty
 * afterwards. */
void rq_out_pool_keep(rq_out_pool *p, rq_buf *b);
/* Moves a spare to *b, which is empty: the last kept of those that have room for `want` bytes, else
 * the largest. Leaves *b empty when there is none. */
void rq_out_pool_take(rq_out_pool *p, size_t want, rq_buf *b);

typedef struct rq_out_queue {
    struct rq_out_segment *head;
    struct rq_out_segment *tail;
    size_t pending;
} rq_out_queue;

void rq_out_pool_clear(rq_out_pool *p);

/* The buffer to append to, or NULL when memory is out; rq_out_queue_count must follow. */
rq_buf *rq_out_queue_tail(rq_out_queue *q, rq_out_pool *p);
/* Takes notice of what was appended. */
void rq_out_queue_count(rq_out_queue *q);
/* Moves b's memory to the end; *b is empty afterwards. */
RQ_NODISCARD
rq_err rq_out_queue_move(rq_out_queue *q, rq_buf *b);
/* Fills iov with the first pieces; returns their number, and how many bytes they are. */
unsigned rq_out_queue_gather(const rq_out_queue *q, struct iovec *iov, unsigned iov_max,
                             size_t *ret_len);
/* `len` bytes of the front were taken. */
void rq_out_queue_consume(rq_out_queue *q, rq_out_pool *p, size_t len);
/* The memory of all its buffers: also of what is written of them, and of what is not used. */
size_t rq_out_queue_held(const rq_out_queue *q);
void rq_out_queue_drop(rq_out_queue *q, rq_out_pool *p);

#endif
