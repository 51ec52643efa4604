/* SPDX-License-Identifier: Apache-2.0 */
/* The log's form on shared storage: declarations for the other files of this room. Rules:
 * striped.c. */
#ifndef RQ_WAL_STRIPED_H
#define RQ_WAL_STRIPED_H

#include "wal/wal_priv.h"

/* Makes the log's head. RQ_E_EXISTS: the incarnation has a log already. Blocks. */
RQ_NODISCARD rq_err rq__striped_open(rq_wal *wal, rq_error *why);
/* Names and makes the first ledger. Blocks; before the lane starts. */
RQ_NODISCARD rq_err rq__striped_begin(rq_wal *wal, rq_error *why);
/* The ledger with the bytes behind a position, as far as they are acknowledged. */
typedef struct rq__striped_place_info {
    rq_slog_ledger ledger; /* lengths: what was acknowledged, in each stripe */
    rq_lsn first_lsn;
    rq_lsn end; /* everything before it is within these lengths */
} rq__striped_place_info;
/* RQ_E_END: nothing behind `at` is acknowledged. RQ_E_NOT_FOUND: the log begins after `at`. REQUIRES: mutex. */
RQ_NODISCARD rq_err rq__striped_place(rq_wal *wal, rq_lsn at, rq__striped_place_info *ret,
                                      rq_error *why);
/* Does the most urgent piece of work; false if there is none. On the lane. REQUIRES: mutex. */
bool rq__striped_step(rq_wal *wal);
/* Takes over a ledger that no region needs. REQUIRES: mutex; it is not in the chain. */
void rq__striped_freed(rq_wal *wal, wal_file *s);
/* At close: waits until nothing is in flight. No lock held. */
void rq__striped_drain(rq_wal *wal);
/* At close, drained: swaps the head to CLOSED. */
RQ_NODISCARD rq_err rq__striped_close_head(rq_wal *wal, rq_error *why);
/* NULL is allowed. */
void rq__striped_free(rq__striped *st);

/* --- striped_tail.c ---------------------------------------------------------------------------- */
/* Follows the log; the contract is that of tail.h, on whose behalf it works. */
typedef struct rq__striped_tail rq__striped_tail;
RQ_NODISCARD rq_err rq__striped_tail_new(rq_wal *wal, rq_lsn from, rq__striped_tail **ret);
/* NULL is allowed. */
void rq__striped_tail_free(rq__striped_tail *t);
RQ_NODISCARD rq_err rq__striped_tail_next(rq__striped_tail *t, rq_wal_record *ret, rq_error *why);
rq_lsn rq__striped_tail_lsn(const rq__striped_tail *t);

#endif
