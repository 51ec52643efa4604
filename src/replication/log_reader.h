/* SPDX-License-Identifier: Apache-2.0 */
/* The log that a source ships: this server's own log, which is being written, or in a cluster the ended log of another
 * server. Blocks; one thread at a time. */
#ifndef RQ_REPLICATION_LOG_READER_H
#define RQ_REPLICATION_LOG_READER_H

#include "wal/wal.h"

typedef struct rq__log {
    rq_wal *wal; /* this server's; NULL: */
    rq_shared *shared;
    const char *server; /* whose log has ended; borrowed */
} rq__log;

typedef struct rq__log_reader rq__log_reader;

/* `from`: the end of the last record that the caller has; 0: begins with the oldest record. An error that is not
 * RQ_E_NO_MEMORY may be temporary. */
RQ_NODISCARD
rq_err rq__log_reader_new(const rq__log *log, rq_lsn from, rq__log_reader **ret, rq_error *why);
/* NULL is fine. */
void rq__log_reader_free(rq__log_reader *r);
/* The next record; its slices are valid until the next call. RQ_E_END: there is none now; in an ended log, none will follow.
 * RQ_E_NOT_FOUND: the log begins after the position. */
RQ_NODISCARD
rq_err rq__log_reader_next(rq__log_reader *r, rq_wal_record *ret, rq_error *why);
/* The end of what was read. */
rq_lsn rq__log_reader_lsn(const rq__log_reader *r);
/* Bytes of the log behind `position`; 0 for an ended log. */
uint64_t rq__log_bytes_behind(const rq__log *log, rq_lsn position);

#endif
