/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the log of a server whose tenure has ended (head.h, rule 4), in log order. Every byte is
 * checked before it is used.
 *
 * The log ends at the first LSN at which no extent begins: acknowledged bytes have no gap. If
 * something proves that more was acknowledged (a later ledger with bytes, or an extent that says
 * so), the gap is damage: RQ_E_CORRUPT names log, ledger and LSN.
 *
 * Blocks; one thread at a time. Any number of readers may read one log.
 */
#ifndef RQ_WAL_SEALED_H
#define RQ_WAL_SEALED_H

#include "vfs/shared.h"
#include "wal/record.h"

typedef struct rq_wal_sealed rq_wal_sealed;

/* `from`: a record's end, or 0; ledgers that end there or before are not read. RQ_E_NOT_FOUND: the
 * head is absent, so the log is not needed. RQ_E_STATE: it has not ended. */
RQ_NODISCARD rq_err rq_wal_sealed_open(rq_shared *s, const char *server_name, uint64_t from,
                                       rq_wal_sealed **ret, rq_error *why);
/* The next record that begins at `from` or later; its slices are valid until the next call.
 * RQ_E_END. */
RQ_NODISCARD rq_err rq_wal_sealed_next(rq_wal_sealed *l, rq_wal_record *ret, rq_error *why);
/* The end of what was read: of the last record, or of the marks behind it. */
uint64_t rq_wal_sealed_lsn(const rq_wal_sealed *l);
/* NULL is allowed. */
void rq_wal_sealed_close(rq_wal_sealed *l);

#endif
