/* SPDX-License-Identifier: Apache-2.0 */
/* What reads.c and the implementations of begin_read share. */
#ifndef RQ_VFS_READS_PRIV_H
#define RQ_VFS_READS_PRIV_H

#include "vfs/reads.h"

struct io_uring_sqe;
struct io_uring_cqe;

/* The io_uring of a lane (posix_uring.c). Used by the lane's thread alone. */
typedef struct rq__uring {
    int fd;          /* -1: not made yet */
    bool impossible; /* it could not be made */
    uint32_t entries;
    uint32_t flying; /* reads that have not ended */
    uint32_t queued; /* of them, not submitted yet: the last ones of the submission queue */
    rq_task submit;  /* submits them at the end of the loop's iteration */
    rq_task ended;   /* runs when reads have ended */
    void *rings;     /* memory shared with the kernel */
    size_t rings_len;
    struct io_uring_sqe *sqes;
    size_t sqes_len;
    _Atomic uint32_t *sq_tail, *cq_head, *cq_tail;
    uint32_t sq_mask, cq_mask;
    struct io_uring_cqe *cqes;
} rq__uring;

struct rq_reads {
    rq_lane *lane;
    rq_reads_shared *shared;
    rq__uring uring;
};

/* Takes memory for a read of whole blocks around these bytes. False: there is none. */
bool rq__read_take(rq_reads *q, rq_read *r, uint64_t off, size_t len);
/* The read has ended: posts its task. On the lane's thread, or a simulated one. */
void rq__read_ended(rq_read *r, int32_t got);

void rq__uring_init(rq__uring *u);
void rq__uring_clear(rq__uring *u);
/* False: no read can be begun now. */
static inline bool rq__uring_has_room(const rq__uring *u)
{
    return !u->impossible && (u->fd < 0 || u->flying < u->entries);
}
/* The first call makes the io_uring. False: it cannot be made. */
bool rq__uring_open(rq_reads *q);
/* Queues the read. REQUIRES: rq__uring_has_room, rq__uring_open. */
void rq__uring_read(rq_reads *q, int fd, rq_read *r);

#endif
