/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a log that is being written: delivers its records from a position on, as far as they are
 * durable. A replication peer reads the log in this way (src/replication).
 *
 * In a cluster the records are read back from the ledgers on shared storage, as far as they were acknowledged (striped_tail.c).
 *
 * The WAL files behind the position must be held (vfs/retention.h); what is not held may have been
 * recycled. Used by one thread at a time, not by a loop: it reads files.
 */
#ifndef RQ_WAL_TAIL_H
#define RQ_WAL_TAIL_H

#include "wal/wal.h"

typedef struct rq_wal_tail rq_wal_tail;

/* `from`: the end of the last record that the caller has; 0: begins with the oldest record. */
RQ_NODISCARD
rq_err rq_wal_tail_new(rq_wal *wal, rq_lsn from, rq_wal_tail **ret);
void rq_wal_tail_free(rq_wal_tail *t);
/* The next record; its slices are valid until the next call, and r->lsn is its end. RQ_E_END: no
 * further record is durable now. RQ_E_NOT_FOUND: the log has been recycled beyond the position; the
 * tail then stands at the log's beginning. */
RQ_NODISCARD
rq_err rq_wal_tail_next(rq_wal_tail *t, rq_wal_record *ret, rq_error *why);
/* The end of what was read: of the last record, or of the marks behind it. */
rq_lsn rq_wal_tail_lsn(const rq_wal_tail *t);

/* The end of the durable part of the log. */
rq_lsn rq_wal_durable(const rq_wal *wal);
/* The log's epoch: increases with each opening. */
uint64_t rq_wal_epoch(const rq_wal *wal);
/* Keeps the log from this position on, also over a clean close; RQ_RETENTION_NO_LOG: no longer. For
 * the times when there is no holder (vfs/retention.h): at start until the holders of replication
 * peers are taken again, and at stop after they have been released. */
void rq_wal_keep_from(rq_wal *wal, uint64_t from);

#endif
