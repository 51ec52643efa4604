/* SPDX-License-Identifier: Apache-2.0 */
/* Request bytes in flight; contract in budget.h. */
#include "rpc/budget.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct rq_rpc_budget {
    size_t max;
    _Atomic size_t used;
    _Atomic unsigned waiting;
    _Atomic(const void *) overdrawer;
    pthread_mutex_t lock;
    rq_budget_waiter queue RQ_GUARDED_BY(lock); /* ring, oldest first */
};

rq_err rq_rpc_budget_new(size_t bytes_max, rq_rpc_budget **ret)
{
    rq_rpc_budget *b = calloc(1, sizeof *b);
    if (b == NULL) return RQ_E_NO_MEMORY;
    b->max = bytes_max;
    b->queue.next = b->queue.prev = &b->queue;
    pthread_mutex_init(&b->lock, NULL);
    *ret = b;
    return RQ_OK;
}

void rq_rpc_budget_free(rq_rpc_budget *b)
{
    if (b == NULL) return;
    RQ_ASSERT(atomic_load(&b->used) == 0 && atomic_load(&b->waiting) == 0);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

size_t rq_rpc_budget_used(const rq_rpc_budget *b)
{
    return atomic_load_explicit(&b->used, memory_order_relaxed);
}

bool rq_budget_try(rq_rpc_budget *b, size_t bytes)
{
    size_t used = atomic_load_explicit(&b->used, memory_order_relaxed);
    do {
        if (bytes > b->max || used > b->max - bytes) return false;
    } while (!atomic_compare_exchange_weak(&b->used, &used, used + bytes));
    return true;
}

bool rq_budget_is_full(const rq_rpc_budget *b)
{
    return atomic_load_explicit(&b->used, memory_order_relaxed) > b->max;
}

void rq_budget_force(rq_rpc_budget *b, size_t bytes)
{
    atomic_fetch_add(&b->used, bytes);
}

void rq_budget_give(rq_rpc_budget *b, size_t bytes)
{
    if (bytes == 0) return;
    size_t before = atomic_fetch_sub(&b->used, bytes);
    RQ_ASSERT(before >= bytes);
    if (atomic_load(&b->waiting) > 0) rq_budget_kick(b);
}

/* REQUIRES: lock held, w queued. */
static void unlink_waiter(rq_rpc_budget *b, rq_budget_waiter *w)
{
    w->prev->next = w->next;
    w->next->prev = w->prev;
    atomic_fetch_sub(&b->waiting, 1);
}

void rq_budget_wait(rq_rpc_budget *b, rq_budget_waiter *w)
{
    pthread_mutex_lock(&b->lock);
    if (w->state == RQ_WAITER_IDLE) {
        w->state = RQ_WAITER_QUEUED;
        w->prev = b->queue.prev;
        w->next = &b->queue;
        w->prev->next = w;
        b->queue.prev = w;
        atomic_fetch_add(&b->waiting, 1);
    }
    pthread_mutex_unlock(&b->lock);
    rq_budget_kick(b); /* bytes may have been given back before we stood in the queue */
}

void rq_budget_woken(rq_rpc_budget *b, rq_budget_waiter *w)
{
    pthread_mutex_lock(&b->lock);
    w->state = RQ_WAITER_IDLE;
    pthread_mutex_unlock(&b->lock);
}

bool rq_budget_forget(rq_rpc_budget *b, rq_budget_waiter *w)
{
    pthread_mutex_lock(&b->lock);
    if (w->state == RQ_WAITER_QUEUED) {
        unlink_waiter(b, w);
        w->state = RQ_WAITER_IDLE;
    }
    bool idle = w->state == RQ_WAITER_IDLE;
    pthread_mutex_unlock(&b->lock);
    return idle;
}

RQ_COLD static void wake_one(rq_rpc_budget *b)
{
    pthread_mutex_lock(&b->lock);
    rq_budget_waiter *w = b->queue.next;
    if (w != &b->queue) {
        unlink_waiter(b, w);
        w->state = RQ_WAITER_POSTED;
        rq_lane_post(w->lane, &w->task); /* under the lock: forget must not free it in between */
    }
    pthread_mutex_unlock(&b->lock);
}

void rq_budget_kick(rq_rpc_budget *b)
{
    /* An eighth of air, so that a waiter does not wake for a few bytes and queue again. */
    if (atomic_load(&b->used) > b->max - b->max / 8) return;
    if (atomic_load(&b->waiting) > 0) wake_one(b);
}

bool rq_budget_contended(const rq_rpc_budget *b)
{
    return atomic_load(&b->waiting) > 0;
}

bool rq_budget_overdraw(rq_rpc_budget *b, const void *who)
{
    const void *nobody = NULL;
    return atomic_compare_exchange_strong(&b->overdrawer, &nobody, who) || nobody == who;
}

bool rq_budget_overdraws(const rq_rpc_budget *b, const void *who)
{
    return atomic_load_explicit(&b->overdrawer, memory_order_relaxed) == who;
}

void rq_budget_hand_on(rq_rpc_budget *b, const void *who, const void *to)
{
    const void *me = who;
    (void)atomic_compare_exchange_strong(&b->overdrawer, &me, to);
}

void rq_budget_settle(rq_rpc_budget *b, const void *who)
{
    const void *me = who;
    if (atomic_load_explicit(&b->overdrawer, memory_order_relaxed) != who) return;
    atomic_compare_exchange_strong(&b->overdrawer, &me, NULL);
    if (atomic_load(&b->waiting) > 0) wake_one(b); /* it may overdraw now, room or not */
}
