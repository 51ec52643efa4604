/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A budget of bytes that the connections of one or several servers share. There are three: bytes of
 * requests in flight, of answers while they are made, and of answers that peers have not read.
 *
 * Bytes are taken before they are allocated. A user that cannot take queues as a waiter, stops what
 * it does (reading its socket, making its answer) and is posted when bytes were given back; having
 * gone on it kicks the next one, so one gift wakes as many as there is room for.
 *
 * Above the ceiling there is
 *  - the overdraft: one user at a time may go over, so that half-read frames, or half-made answers,
 *    never wait for each other. A user that holds it must not wait for anything but bytes of its
 *    own request. The bound is bytes_max plus one request, or answer;
 *  - the reserve, a quarter of the ceiling, for users that need little.
 *
 * Answers that are not read are owed: they cannot be refused any more. Their debtors stand in a
 * list. When even the reserve is gone (large answers are let in only below the ceiling; what the last
 * of them goes over it is not counted), those that owe for longest are condemned, as many as it takes.
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
/* Called, on any thread, when nearly all of it is free again after more than half was used; once
 * more, with the next bytes that are given back, while it answers false. Set before the first use. */
void rq_budget_on_relief(rq_budget *b, bool (*relieved)(void *ctx), void *ctx);

typedef enum rq_waiter_state { RQ_WAITER_IDLE, RQ_WAITER_QUEUED, RQ_WAITER_POSTED } rq_waiter_state;

/* Embedded in its owner; all-zero is idle. */
typedef struct rq_budget_waiter {
    rq_task task; /* the owner's; posted to `lane` */
    rq_lane *lane;
    struct rq_budget_waiter *next, *prev;
    size_t bytes;          /* what it will take, if it is known; it may overdraw then; else 0 */
    bool prompt;           /* it needs little: before the others, and from the reserve */
    rq_waiter_state state; /* guarded by the budget's lock */
} rq_budget_waiter;

typedef enum rq_debtor_state {
    RQ_DEBTOR_NONE,
    RQ_DEBTOR_LISTED,
    RQ_DEBTOR_CONDEMNED, /* its task is posted */
} rq_debtor_state;

/* Embedded in its owner; all-zero owes nothing. */
typedef struct rq_debtor {
    rq_task task; /* the owner's; posted to `lane` when it is condemned */
    rq_lane *lane;
    struct rq_debtor *next, *prev;
    size_t owed;   /* written by the owner's thread alone, under the lock */
    size_t doomed; /* what it owed when it was condemned */
    rq_debtor_state state;
} rq_debtor;

/* False: there is no room; nothing was taken. */
bool rq_budget_try(rq_budget *b, size_t bytes);
/* The same up to the reserve's end. */
bool rq_budget_try_reserve(rq_budget *b, size_t bytes);
/* Takes, if the reserve is not gone, what is in use already: it may go over by this once. */
bool rq_budget_force_reserve(rq_budget *b, size_t bytes);
/* Takes in any case, as the one that holds the overdraft: not at the cost of the reserve. */
void rq_budget_force_overdraft(rq_budget *b, size_t bytes);
/* Takes in any case. */
void rq_budget_force(rq_budget *b, size_t bytes);
void rq_budget_give(rq_budget *b, size_t bytes);

size_t rq_budget_max(const rq_budget *b);
/* Nothing is left below the ceiling. */
bool rq_budget_is_full(const rq_budget *b);

/* Queues the waiter, or posts it at once when there is room again. No-op unless idle. */
void rq_budget_wait(rq_budget *b, rq_budget_waiter *w);
/* The waiter's task calls this first: it is idle again. */
void rq_budget_woken(rq_budget *b, rq_budget_waiter *w);
/* Takes it out of the queue; false when its task has been posted and will still run. */
bool rq_budget_forget(rq_budget *b, rq_budget_waiter *w);
/* Posts the next waiter if there is something for it. */
void rq_budget_kick(rq_budget *b);
/* Posts all waiters, room or not: they shall see that something else has changed. */
void rq_budget_wake_all(rq_budget *b);
/* Somebody waits. */
bool rq_budget_contended(const rq_budget *b);

/* `who` may go over the ceiling: true when it holds the overdraft, now or already. */
RQ_COLD bool rq_budget_overdraw(rq_budget *b, const void *who);
bool rq_budget_overdraws(const rq_budget *b, const void *who);
/* Hands the overdraft on; no-op when `who` does not hold it. */
void rq_budget_hand_on(rq_budget *b, const void *who, const void *to);
/* Gives the overdraft back; no-op when `who` does not hold it. */
void rq_budget_settle(rq_budget *b, const void *who);

/* The debtor owes `bytes` from now on; 0: nothing. `renew`: all that it owed when it was listed is
 * paid, so it is listed as the newest. */
void rq_budget_owe(rq_budget *b, rq_debtor *d, size_t bytes, bool renew);
/* It owes, or its task is posted. */
bool rq_budget_is_debtor(rq_budget *b, const rq_debtor *d);
/* A condemned debtor's task calls this first. False: it has paid in the meantime. */
bool rq_budget_sentenced(rq_budget *b, rq_debtor *d);

#endif
