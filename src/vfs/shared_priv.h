/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the implementations of shared.h: the lease, and the checks of every write. */
#ifndef RQ_VFS_SHARED_PRIV_H
#define RQ_VFS_SHARED_PRIV_H

#include <pthread.h>

#include "vfs/shared.h"

/* Extends the lease, unless the tenure has ended. Called after a guarded operation succeeded that
 * was sent at `sent_ns`. */
void rq__tenure_renewed(rq_tenure *t, uint64_t sent_ns);
/* Ends the lease for ever: the tenure has ended. */
void rq__tenure_ended(rq_tenure *t);
RQ_NODISCARD rq_err rq__tenure_over(const rq_tenure *t, rq_error *why);

/* Ends a write, on its lane. */
void rq__slog_write_end(rq_slog_write *w, rq_err rc);

/* Time from a fence to the end of the lease of a server whose clock is slower by 1 %. */
#define RQ_LEASE_WAIT_NS (RQ_SHARED_LEASE_NS + RQ_SHARED_LEASE_NS / 100)
#define RQ_LEASE_USED_NS (RQ_SHARED_LEASE_NS / 100 * 95)

/* --- leases of revoked tenures ---------------------------------------------------------------- */
/* When they have run out, by this server's clock: a later revoke of the same tenure does not wait for the lease again.
 * Bounded: a name that is forgotten waits once more. */
#define RQ__QUIET_MAX 64
typedef struct rq__quiet_times {
    pthread_mutex_t lock;
    struct {
        char name[RQ_SHARED_NAME_MAX + 1];
        uint64_t ns;
    } list[RQ__QUIET_MAX] RQ_GUARDED_BY(lock);
    size_t count RQ_GUARDED_BY(lock); /* of all names so far: the next one replaces the oldest */
} rq__quiet_times;

void rq__quiet_times_init(rq__quiet_times *q);
void rq__quiet_times_clear(rq__quiet_times *q);
/* What a revoke returns that has just fenced the tenure, or found it fenced. */
uint64_t rq__quiet_time(rq__quiet_times *q, const char *name, uint64_t now_ns);
/* Notes that the lease of a tenure that another server has revoked has run out by `quiet_ns`; keeps an earlier time. */
void rq__quiet_note(rq__quiet_times *q, const char *name, uint64_t quiet_ns);

/* --- the renewal of a lease (shared_renewal.c) ------------------------------------------------ */
/* Part of a tenure. */
typedef struct rq__renewals {
    rq_executor *executor; /* borrowed */
    /* Renews the lease; called on `lane`. RQ_E_SERVER_ABORTED: the tenure has ended; it is not
     * called again. */
    rq_err (*renew)(struct rq__renewals *r);
    rq_lane *lane;
    rq_timer timer;
    rq_task stop;
    rq_latch stopped;
    bool stopping; /* on the lane only */
} rq__renewals;

RQ_NODISCARD rq_err rq__renewals_open(rq__renewals *r, rq_executor *executor,
                                      rq_err (*renew)(rq__renewals *renewals));
/* Starts the timer. Called once, after the caller has made the first renewal. */
void rq__renewals_begin(rq__renewals *r);
/* Stops the timer and waits for a running renewal. Allowed without rq__renewals_begin, and after
 * rq__renewals_open has failed. */
void rq__renewals_close(rq__renewals *r);

/* --- records of the shared folder (shared_format.c) ------------------------------------------- */
/* An object's file. It has the tokens of the writers of the last RQ__HISTORY_MAX generations, so
 * that a writer whose file was replaced meanwhile can tell whether one of them was its own. */
#define RQ__HISTORY_MAX 32
typedef struct rq__object_record {
    uint64_t generation;
    bool removed; /* the object is absent since this generation */
    unsigned history_count;
    uint64_t history[RQ__HISTORY_MAX]; /* tokens, of this generation first */
    rq_slice bytes;
} rq__object_record;

RQ_NODISCARD rq_err rq__object_encode(rq_arena *arena, const rq__object_record *r, rq_slice *ret);
RQ_NODISCARD rq_err rq__object_decode(rq_slice file, rq__object_record *ret, rq_error *why);
RQ_NODISCARD rq_err rq__seal_encode(rq_arena *arena, const rq_slog_ledger *ledgers, size_t count,
                                    rq_slice *ret);
RQ_NODISCARD rq_err rq__seal_decode(rq_slice file, rq_arena *arena, rq_slog_ledger **ret,
                                    size_t *ret_count, rq_error *why);

#endif
