/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that process the parts of a transfer, each one part at a time. The first error stops all:
 * parts in progress end unfinished. */
#ifndef RQ_TRANSFER_CREW_H
#define RQ_TRANSFER_CREW_H

#include "transfer/transfer.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct rq__crew {
    /* Set by the caller. */
    const rq_transfer_options *options;
    size_t count;        /* parts */
    const bool *is_done; /* of each part: an earlier run did it; may be NULL */
    uint64_t units;      /* of work, for the progress */
    void *ctx;
    /* A thread's tools (connections, buffers); `close` follows, even after an error. */
    rq_err (*open)(struct rq__crew *crew, void **ret_tools, rq_error *why);
    void (*close)(void *tools);
    rq_err (*work)(struct rq__crew *crew, void *tools, size_t part, rq_error *why);
    /* The crew's own. */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    size_t next RQ_GUARDED_BY(lock);
    size_t running RQ_GUARDED_BY(lock);
    int64_t free_ns RQ_GUARDED_BY(lock); /* when the next bytes may pass */
    rq_err err RQ_GUARDED_BY(lock);
    rq_error why RQ_GUARDED_BY(lock);
    _Atomic bool stops;
    _Atomic uint64_t done; /* units */
    _Atomic uint64_t parts, rows, cells, bytes, bad_lines, different;
} rq__crew;

/* Returns when every part is done, or the first error. */
RQ_NODISCARD
rq_err rq__crew_run(rq__crew *c, rq_transfer_counts *ret, rq_error *why);

/* --- for `work`; any thread of the crew ------------------------------------------------------- */
/* Waits until that many bytes may pass. RQ_E_CANCELLED: another thread has failed. */
RQ_NODISCARD
rq_err rq__crew_pass(rq__crew *c, uint64_t bytes, rq_error *why);
/* Says a line. */
void rq__crew_print(rq__crew *c, const char *fmt, ...) RQ_PRINTF(2, 3);

#endif
