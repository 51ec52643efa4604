/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget of request bytes in flight, shared by the connections of one or several servers.
 *
 * Bytes are taken before they are allocated. Who cannot take queues as a waiter, stops reading its
 * socket and is posted when bytes were given back; having read again it kicks the next one, so one
 * gift wakes as many as there is room for.
 *
 * Frames that are larger than a read buffer grow while their bytes arrive. So that half-read frames
 * can never wait for each other, one connection at a time may go over the ceiling (the overdraft),
 * and its frame until its call has ended: the true bound is bytes_max plus one request.
 */
#ifndef RQ_RPC_BUDGET_H
#define RQ_RPC_BUDGET_H

#include "base/executor.h"
#include "base/macros.h"
#include "rpc/server.h"

typedef enum rq_waiter_state { RQ_WAITER_IDLE, RQ_WAITER_QUEUED, RQ_WAITER_POSTED } rq_waiter_state;

/* Embedded in its owner; all-zero is idle. */
typedef struct rq_budget_waiter {
    rq_task task; /* the owner's; posted to `lane` */
    rq_lane *lane;
    struct rq_budget_waiter *next, *prev;
    rq_waiter_state state; /* guarded by the budget's lock */
} rq_budget_waiter;

/* False: there is no room; nothing was taken. */
bool rq_budget_try(rq_rpc_budget *b, size_t bytes);
/* Takes in any case. */
void rq_budget_force(rq_rpc_budget *b, size_t bytes);
void rq_budget_give(rq_rpc_budget *b, size_t bytes);

/* Somebody who only looks must wait: what was forced in is more than there may be. */
bool rq_budget_is_full(const rq_rpc_budget *b);

/* Queues the waiter, or posts it at once when there is room again. No-op unless idle. */
void rq_budget_wait(rq_rpc_budget *b, rq_budget_waiter *w);
/* The waiter's task calls this first: it is idle again. */
void rq_budget_woken(rq_rpc_budget *b, rq_budget_waiter *w);
/* Takes it out of the queue; false when its task has been posted and will still run. */
bool rq_budget_forget(rq_rpc_budget *b, rq_budget_waiter *w);
/* Posts the next waiter if there is room. */
void rq_budget_kick(rq_rpc_budget *b);
/* Somebody waits. */
bool rq_budget_contended(const rq_rpc_budget *b);

/* `who` may go over the ceiling: true when it holds the overdraft, now or already. */
RQ_COLD bool rq_budget_overdraw(rq_rpc_budget *b, const void *who);
bool rq_budget_overdraws(const rq_rpc_budget *b, const void *who);
/* Hands the overdraft on; no-op when `who` does not hold it. */
void rq_budget_hand_on(rq_rpc_budget *b, const void *who, const void *to);
/* Gives the overdraft back; no-op when `who` does not hold it. */
void rq_budget_settle(rq_rpc_budget *b, const void *who);

#endif
