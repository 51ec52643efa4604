/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the log on shared storage (striped.c): its state, and the ledger that is
 * appended to (striped_append.c). REQUIRES, unless said otherwise: the log's mutex, on its lane. */
#ifndef RQ_WAL_STRIPED_PRIV_H
#define RQ_WAL_STRIPED_PRIV_H

#include "base/log.h"
#include "wal/extent.h"
#include "wal/head.h"
#include "wal/striped.h"

typedef struct rq__ledger rq__ledger;

typedef struct rq__extent_write {
    rq_slog_write write;
    rq__ledger *ledger;
    struct rq__extent_write *next; /* in the order of LSNs */
    rq_lsn from, to;
    uint64_t sent_ns;
    bool busy, acknowledged;
    rq_buf bytes;
} rq__extent_write;

/* A ledger on the storage, and the appends to it. Belongs to the log's lane. */
struct rq__ledger {
    rq__ledger *next; /* in the list of abandoned ledgers */
    rq_wal *wal;
    rq_slog *log;
    unsigned in_flight, next_stripe;
    bool abandoned;
    wal_file *gone; /* dropped from the storage when this struct is freed; NULL: nothing is */
    uint64_t lengths[RQ_SLOG_STRIPES];
    rq__extent_write writes[RQ_SLOG_STRIPES];
};

struct rq__striped {
    rq_wal *wal;
    rq_shared *shared;
    rq_tenure *tenure;
    char server_name[RQ_SHARED_NAME_MAX + 1];
    rq__ledger *current, *abandoned;
    rq__extent_write *first, *last; /* in LSN order: in flight, or acknowledged out of order */
    wal_file *freed;

    /* The task that edits the head. Its fields are the lane's while it does not run, and its own
     * while it does. */
    rq_lane *lane; /* the task's own: all pool tasks may be waiting for the log */
    rq_task task;
    bool running, ready; /* guarded by the log's mutex */
    bool opens;          /* a ledger is to be made, of `next` */
    wal_file *next;
    wal_file *dropped; /* taken from `freed`: to be removed once the head no longer names them */
    rq__ledger *opened;
    rq__head head;
    size_t head_cap;
    uint64_t generation;
    rq_err rc;
    rq_error why;

    rq_log_limit late[RQ_WAL_LATE_KINDS]; /* of each kind */
    uint64_t stalled_ns;                  /* since when the log stands still; 0: it goes on */

    bool aborted; /* guarded by the log's mutex, as `draining` */
    bool draining;
    rq_latch drained;
};

static inline uint64_t rq__striped_now_ns(const rq_wal *wal)
{
    return wal->env.executor->now_ns(wal->env.executor);
}

/* Nothing was acknowledged in the current ledger. */
static inline bool rq__striped_lacks_progress(const rq_wal *wal)
{
    return wal->current->first_lsn == wal->synced;
}

/* Makes the ledger on the storage. Blocks; without the mutex. */
RQ_NODISCARD
rq_err rq__ledger_open(rq__striped *st, uint64_t number, rq__ledger **ret, rq_error *why);
/* REQUIRES: none of its appends is in flight. Needs no mutex while the log is being freed. NULL is
 * allowed. */
void rq__ledger_free(rq__ledger *s);
/* Frees it once its appends have ended. NULL is allowed. */
void rq__ledger_abandon(rq__striped *st, rq__ledger *s);
/* Sends the next extent; releases the mutex meanwhile. False: the next stripe is busy, or
 * everything was sent. */
bool rq__ledger_send(rq__striped *st);

/* --- striped_late.c -------------------------------------------------------------------------------- */
/* The append was acknowledged. */
void rq__late_answered(rq__striped *st, const rq__extent_write *w);
/* It failed, or was not answered in time. */
void rq__late_lost(rq__striped *st, const rq__extent_write *w, rq_err rc);
/* The head or the ledger that replaces one was not taken. */
void rq__late_stalled(rq__striped *st, const rq_error *why);
/* Tells that the log stands still, if it does: without an answer the change of the head does not end. */
void rq__late_check(rq__striped *st);
/* A ledger has replaced one whose append was lost. */
void rq__late_resumed(rq__striped *st);

#endif
