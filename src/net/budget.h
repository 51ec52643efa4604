/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A budget of bytes shared by the connections of one or several servers. There are three budgets:
 * for requests in flight, for responses being made, and for responses that peers have not read.
 *
 * Bytes are taken before they are allocated. A user that cannot take bytes queues as a waiter and
 * stops its work (reading its socket, making its response). When bytes are given back the first
 * waiter is posted; when it continues it kicks the next one, so as many wake up as there is room
 * for.
 *
 * Above the ceiling there are
 *
 *   - the overdraft: one user at a time may exceed the ceiling, so that half-read frames, or
 *     half-made responses, never wait for each other. Its holder must not wait for anything but
 *     bytes of its own request. The bound is bytes_max plus one request or response;
 *   - the reserve, a quarter of the ceiling, for users that need little.
 *
 * Unread responses cannot be refused any more, so they are recorded as debts, in a list of debtors
 * ordered by age. When even the reserve is used up, the oldest debtors are evicted, as many as
 * necessary. (Large responses are admitted only below the ceiling; the bytes by which the last one
 * exceeds it are not counted.)
 */
#ifndef RQ_NET_BUDGET_H
#define RQ_NET_BUDGET_H

#include "base/executor.h"
#include "base/macros.h"

typedef struct rq_budget rq_budget;

RQ_NODISCARD
rq_err rq_budget_new(size_t bytes_max, rq_budget **ret);
void rq_budget_free(rq_budget *b);
size_t rq_budget_used(const rq_budget *b); /* any thread */
/* Sets a function that is called, on any thread, when the use has fallen below an eighth of the ceiling after it was
 * above half of it. If `relieved` returns false it is called again when bytes are next given back. REQUIRES: the budget
 * was not used yet. */
void rq_budget_on_relief(rq_budget *b, bool (*relieved)(void *ctx), void *ctx);

/* Sets the executor whose pool frees large pieces of the memory that the budget counts (base/long_free.h). NULL, as at
 * first: the thread that gives a piece up frees it. REQUIRES: the budget was not used yet. */
void rq_budget_frees_on(rq_budget *b, rq_executor *executor);
rq_executor *rq__budget_executor(const rq_budget *b);

typedef enum rq_waiter_state { RQ_WAITER_IDLE, RQ_WAITER_QUEUED, RQ_WAITER_POSTED } rq_waiter_state;

/* A waiter, embedded in its owner. All zero is idle. */
typedef struct rq_budget_waiter {
    rq_task task; /* the owner's; posted to `lane` */
    rq_lane *lane;
    struct rq_budget_waiter *next, *prev;
    size_t bytes;          /* bytes it will take, if known, and then it may overdraw; else 0 */
    bool prompt;           /* it needs little: served first, and from the reserve */
    rq_waiter_state state; /* guarded by the budget's lock */
} rq_budget_waiter;

typedef enum rq_debtor_state {
    RQ_DEBTOR_NONE,
    RQ_DEBTOR_LISTED,
    RQ_DEBTOR_EVICTED, /* its task is posted */
} rq_debtor_state;

/* A debtor, embedded in its owner. All zero owes nothing. */
typedef struct rq_debtor {
    rq_task task; /* the owner's; posted to `lane` when it is evicted */
    rq_lane *lane;
    struct rq_debtor *next, *prev;
    size_t owed;          /* written only by the owner's thread, under the lock */
    size_t evicted_bytes; /* its debt when it was evicted */
    rq_debtor_state state;
} rq_debtor;

/* Takes bytes below the ceiling. False: there is no room; nothing was taken. */
bool rq_budget_try(rq_budget *b, size_t bytes);
/* Takes bytes up to the end of the reserve. False: nothing was taken. */
bool rq_budget_try_reserve(rq_budget *b, size_t bytes);
/* Takes bytes that are already in use. The last call to succeed may exceed the reserve. False: the reserve is used up;
 * nothing was taken. */
bool rq_budget_force_reserve(rq_budget *b, size_t bytes);
/* Takes bytes for the holder of the overdraft, unconditionally and without using the reserve. */
void rq_budget_force_overdraft(rq_budget *b, size_t bytes);
/* Takes bytes unconditionally. */
void rq_budget_force(rq_budget *b, size_t bytes);
void rq_budget_give(rq_budget *b, size_t bytes);

size_t rq_budget_max(const rq_budget *b);
/* Whether the use has reached the ceiling. */
bool rq_budget_is_full(const rq_budget *b);

/* Queues the waiter, or posts it at once if there is room. No-op unless it is idle. */
void rq_budget_wait(rq_budget *b, rq_budget_waiter *w);
/* The waiter's task calls this first: makes the waiter idle again. */
void rq_budget_woken(rq_budget *b, rq_budget_waiter *w);
/* Removes the waiter from the queue. False: its task is posted and will run. */
bool rq_budget_forget(rq_budget *b, rq_budget_waiter *w);
/* Posts the next waiter if there is room for it. */
void rq_budget_kick(rq_budget *b);
/* Posts all waiters regardless of room, so that they notice another change (a closed connection,
 * a stop). */
void rq_budget_wake_all(rq_budget *b);
/* Whether there are waiters. */
bool rq_budget_contended(const rq_budget *b);

/* Gives the overdraft to `holder`. True: it has the overdraft, now or from before. */
RQ_COLD bool rq_budget_overdraw(rq_budget *b, const void *holder);
bool rq_budget_overdraws(const rq_budget *b, const void *holder);
/* Passes the overdraft on to `to`. No-op unless `holder` has it. */
void rq__budget_pass_overdraft(rq_budget *b, const void *holder, const void *to);
/* Releases the overdraft. No-op unless `holder` has it. */
void rq_budget_end_overdraft(rq_budget *b, const void *holder);

/* Sets the debtor's debt to `bytes`; 0: none. `renew`: the debtor has paid all that it owed when it was listed, so it
 * moves to the end of the list, as the newest debtor. */
void rq__budget_owe(rq_budget *b, rq_debtor *d, size_t bytes, bool renew);
/* Whether it has a debt, or its task is posted. */
bool rq__budget_is_debtor(rq_budget *b, const rq_debtor *d);
/* An evicted debtor's task calls this first. False: the debt was paid in the meantime. */
bool rq__budget_confirm_eviction(rq_budget *b, rq_debtor *d);

#endif
