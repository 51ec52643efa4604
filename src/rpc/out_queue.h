/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of a stream that the kernel has not taken yet: a list of byte buffers. Small answers are
 * appended to the last one, large ones are moved in as they are. Emptied buffers go to a pool (one
 * per loop), so that an idle stream holds none and a busy one allocates none.
 *
 * No input or output here: the stream asks for the front (rq_out_queue_gather), writes, and says
 * how much was taken (rq_out_queue_consume).
 */
#ifndef RQ_RPC_OUT_QUEUE_H
#define RQ_RPC_OUT_QUEUE_H

#include "base/buf.h"

#include <sys/uio.h>

struct rq_out_segment {
    struct rq_out_segment *next;
    rq_buf buf;
    size_t sent;
    size_t counted; /* bytes that are in `pending` already */
    bool sealed;    /* nothing is appended: moved in, or its front is written */
};

typedef struct rq_out_pool {
    struct rq_out_segment *free;
    unsigned count;
    rq_buf spare; /* the largest of the large buffers that were written */
} rq_out_pool;

/* A large buffer is worth keeping: a fresh one costs a page fault every 4 kB. Kept up to this size.
 */
#define RQ_OUT_SPARE_MAX ((size_t)4 << 20)

/* Keeps b's memory as the spare if it is larger than what is kept, else frees it. */
void rq_out_pool_keep(rq_out_pool *p, rq_buf *b);

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
void rq_out_queue_drop(rq_out_queue *q, rq_out_pool *p);

#endif
