/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads that no thread waits for. An event loop begins a read and goes on; when the read has ended, a task runs on the
 * loop.
 *
 *     op on a lane ── rq_file_begin_read ──► posix_uring.c: an io_uring for each lane ──► device
 *          ▲                                                        │
 *          └───────────── the read's task, on the same lane ◄───────┘
 *
 * Only reads past the page cache are begun so (posix_direct.c decides): io_uring takes a third of the processor time of
 * a thread that waits for the device. A read through the page cache would make the pages on the event loop.
 *
 * rq_file_begin_read refuses a read if it would not be past the page cache, if the kernel has no io_uring or forbids it
 * (an old kernel, a container, kernel.io_uring_disabled), if the lane cannot wait for a descriptor, or if the reads that
 * have not ended take too much memory. The caller then reads by rq_file_read on a thread. It does so, too, if the read
 * failed or ended early, so that every error is reported by rq_file_read.
 */
#ifndef RQ_VFS_READS_H
#define RQ_VFS_READS_H

#include "base/executor.h"
#include "base/log.h"
#include "vfs/vfs.h"

#include <stdatomic.h>

/* What all lanes of a process share. */
typedef struct rq_reads_shared {
    _Atomic uint64_t bytes; /* of the buffers of all reads */
    uint64_t bytes_max;
    _Atomic uint64_t begun, failed; /* reads since the start; failed: also those that ended early */
    _Atomic bool told;              /* a line in the log has said that there is no io_uring */
    const rq_log *log;              /* may be NULL */
} rq_reads_shared;

/* The reads of one lane. */
typedef struct rq_reads rq_reads;

/* A read; all zero: none. Embedded in its owner, and must not move between begin and its task. */
typedef struct rq_read {
    rq_task *task;
    rq_reads *reads; /* NULL: none */
    void *room;      /* the allocated memory; in it: */
    uint8_t *bytes;  /* aligned for the device */
    uint64_t from;   /* offset of the bytes */
    uint32_t len;    /* bytes asked for: whole blocks of the device */
    int32_t got;     /* bytes read, fewer at the end of the file; negative: an errno */
    size_t charge;
    rq_file *file; /* of a simulated read, like the next one */
    rq_task work;
} rq_read;

/* `lane` and `shared` outlive the result. */
RQ_NODISCARD
rq_err rq_reads_new(rq_lane *lane, rq_reads_shared *shared, rq_reads **ret);
/* REQUIRES: no read is under way, and the lane runs no task of it any more. NULL is allowed. */
void rq_reads_free(rq_reads *q);

/* Begins to read these bytes. False: not begun. Otherwise the file stays open, and `r` in its place, until the task has
 * run on the lane. Never waits. On the lane's thread. */
bool rq_file_begin_read(rq_file *f, rq_reads *q, rq_read *r, uint64_t off, size_t len,
                        rq_task *task);
/* Whether the read, which has ended, brought all of these bytes; *ret: what it brought, from *ret_from on. */
bool rq_read_has(const rq_read *r, uint64_t off, size_t len, rq_slice *ret, uint64_t *ret_from);
/* Frees the bytes of a read that has ended; no-op for a read that was not begun. Any thread. */
void rq_read_end(rq_read *r);

#endif
