/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that connections share; contract in budget.h. */
#include "net/budget.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct rq_budget {
    size_t max;
    size_t reserve; /* above max */
    bool (*relieved)(void *ctx);
    void *relieved_ctx;
    rq_executor *executor; /* may be NULL */
    _Atomic bool pressed;  /* more than half was in use */
    _Atomic size_t used;
    _Atomic unsigned waiting;
    _Atomic(const void *) overdrawer;
    _Atomic size_t overdrawn; /* bytes taken by its holder */
    pthread_mutex_t lock;
    rq_budget_waiter queue RQ_GUARDED_BY(lock);  /* ring, oldest first */
    rq_budget_waiter prompt RQ_GUARDED_BY(lock); /* like `queue`, for waiters that may use the
                                                  * reserve */
    rq_budget_waiter last RQ_GUARDED_BY(lock);   /* like `queue`, for waiters that never overdraw */
    rq_debtor debtors RQ_GUARDED_BY(lock);       /* ring; the oldest debt is first */
    size_t evicted_bytes RQ_GUARDED_BY(lock);    /* bytes of evicted debtors */
    size_t overshoot RQ_GUARDED_BY(lock);        /* bytes by which one large debt exceeded max */
};

rq_err rq_budget_new(size_t bytes_max, rq_budget **ret)
{
    rq_budget *b = calloc(1, sizeof *b);
    if (b == NULL) return RQ_E_NO_MEMORY;
    b->max = bytes_max;
    b->reserve = bytes_max / 4;
    b->queue.next = b->queue.prev = &b->queue;
    b->prompt.next = b->prompt.prev = &b->prompt;
    b->last.next = b->last.prev = &b->last;
    b->debtors.next = b->debtors.prev = &b->debtors;
    pthread_mutex_init(&b->lock, NULL);
    *ret = b;
    return RQ_OK;
}

void rq_budget_free(rq_budget *b)
{
    if (b == NULL) return;
    RQ_ASSERT(atomic_load(&b->used) == 0 && atomic_load(&b->waiting) == 0);
    RQ_ASSERT(b->debtors.next == &b->debtors && b->evicted_bytes == 0);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

size_t rq_budget_used(const rq_budget *b)
{
    return atomic_load_explicit(&b->used, memory_order_relaxed);
}

size_t rq_budget_max(const rq_budget *b)
{
    return b->max;
}

void rq_budget_on_relief(rq_budget *b, bool (*relieved)(void *ctx), void *ctx)
{
    b->relieved = relieved;
    b->relieved_ctx = ctx;
}

void rq_budget_frees_on(rq_budget *b, rq_executor *executor)
{
    b->executor = executor;
}

rq_executor *rq__budget_executor(const rq_budget *b)
{
    return b->executor;
}

static void note_pressure(rq_budget *b, size_t used)
{
    if (used > b->max / 2 && !atomic_load_explicit(&b->pressed, memory_order_relaxed))
        atomic_store_explicit(&b->pressed, true, memory_order_relaxed);
}

static void note_relief(rq_budget *b, size_t used)
{
    if (used > b->max / 8 || !atomic_load_explicit(&b->pressed, memory_order_relaxed)) return;
    if (b->relieved == NULL || b->relieved(b->relieved_ctx))
        atomic_store_explicit(&b->pressed, false, memory_order_relaxed);
}

static bool take(rq_budget *b, size_t bytes, size_t max)
{
    size_t used = atomic_load_explicit(&b->used, memory_order_relaxed);
    do {
        if (bytes > max || used > max - bytes) return false;
    } while (!atomic_compare_exchange_weak(&b->used, &used, used + bytes));
    note_pressure(b, used + bytes);
    return true;
}

bool rq_budget_try(rq_budget *b, size_t bytes)
{
    return take(b, bytes, b->max);
}

bool rq_budget_try_reserve(rq_budget *b, size_t bytes)
{
    return take(b, bytes, b->max + b->reserve);
}

bool rq_budget_force_reserve(rq_budget *b, size_t bytes)
{
    size_t limit = b->max + b->reserve + atomic_load_explicit(&b->overdrawn, memory_order_relaxed);
    if (atomic_load_explicit(&b->used, memory_order_relaxed) > limit) return false;
    rq_budget_force(b, bytes);
    return true;
}

void rq_budget_force_overdraft(rq_budget *b, size_t bytes)
{
    atomic_fetch_add(&b->overdrawn, bytes);
    rq_budget_force(b, bytes);
}

bool rq_budget_is_full(const rq_budget *b)
{
    return atomic_load_explicit(&b->used, memory_order_relaxed) >= b->max;
}

void rq_budget_force(rq_budget *b, size_t bytes)
{
    note_pressure(b, atomic_fetch_add(&b->used, bytes) + bytes);
}

void rq_budget_give(rq_budget *b, size_t bytes)
{
    if (bytes == 0) return;
    size_t before = atomic_fetch_sub(&b->used, bytes);
    RQ_ASSERT(before >= bytes);
    note_relief(b, before - bytes);
    if (atomic_load(&b->waiting) > 0) rq_budget_kick(b);
}

/* REQUIRES: lock held, w queued. */
static void unlink_waiter(rq_budget *b, rq_budget_waiter *w)
{
    w->prev->next = w->next;
    w->next->prev = w->prev;
    atomic_fetch_sub(&b->waiting, 1);
}

void rq_budget_wait(rq_budget *b, rq_budget_waiter *w)
{
    pthread_mutex_lock(&b->lock);
    if (w->state == RQ_WAITER_IDLE) {
        rq_budget_waiter *queue = w->prompt ? &b->prompt : w->bytes > 0 ? &b->queue : &b->last;
        w->state = RQ_WAITER_QUEUED;
        w->prev = queue->prev;
        w->next = queue;
        w->prev->next = w;
        queue->prev = w;
        atomic_fetch_add(&b->waiting, 1);
    }
    pthread_mutex_unlock(&b->lock);
    rq_budget_kick(b); /* bytes may have been given back before the waiter was queued */
}

void rq_budget_woken(rq_budget *b, rq_budget_waiter *w)
{
    pthread_mutex_lock(&b->lock);
    w->state = RQ_WAITER_IDLE;
    pthread_mutex_unlock(&b->lock);
}

bool rq_budget_forget(rq_budget *b, rq_budget_waiter *w)
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

/* REQUIRES: lock held. */
static void wake(rq_budget *b, rq_budget_waiter *w)
{
    unlink_waiter(b, w);
    w->state = RQ_WAITER_POSTED;
    rq_lane_post(w->lane, &w->task); /* under the lock: rq_budget_forget must not free it in
                                      * between */
}

/* REQUIRES: lock held. Whether the waiter could go on: there is room (with an eighth of the
 * ceiling as margin, so that no thread wakes for a few bytes), or it may take the overdraft. */
static bool may_wake(rq_budget *b, const rq_budget_waiter *w)
{
    size_t used = atomic_load(&b->used);
    if (w->bytes > 0 && atomic_load(&b->overdrawer) == NULL) return true;
    if (w->prompt) return used <= b->max + b->reserve / 2;
    if (used > b->max - b->max / 8) return false;
    return w->bytes <= b->max - used;
}

RQ_COLD static void wake_next(rq_budget *b)
{
    pthread_mutex_lock(&b->lock);
    if (b->prompt.next != &b->prompt && may_wake(b, b->prompt.next))
        wake(b, b->prompt.next);
    else if (b->queue.next != &b->queue && may_wake(b, b->queue.next))
        wake(b, b->queue.next);
    else if (b->last.next != &b->last && may_wake(b, b->last.next))
        wake(b, b->last.next);
    pthread_mutex_unlock(&b->lock);
}

/* Wakes the first waiter that may take the overdraft, whether or not there is room. A waiter that
 * never overdraws is woken only if there is no other and there is room: without room it would queue
 * again, and the overdraft would stay unused. */
RQ_COLD static void wake_overdrawer(rq_budget *b)
{
    pthread_mutex_lock(&b->lock);
    rq_budget_waiter *w = b->prompt.next != &b->prompt ? b->prompt.next : b->queue.next;
    if (w != &b->queue)
        wake(b, w);
    else if (b->last.next != &b->last && may_wake(b, b->last.next))
        wake(b, b->last.next);
    pthread_mutex_unlock(&b->lock);
}

void rq_budget_kick(rq_budget *b)
{
    if (atomic_load(&b->waiting) > 0) wake_next(b);
}

void rq_budget_wake_all(rq_budget *b)
{
    pthread_mutex_lock(&b->lock);
    while (b->prompt.next != &b->prompt)
        wake(b, b->prompt.next);
    while (b->queue.next != &b->queue)
        wake(b, b->queue.next);
    while (b->last.next != &b->last)
        wake(b, b->last.next);
    pthread_mutex_unlock(&b->lock);
}

bool rq_budget_contended(const rq_budget *b)
{
    return atomic_load(&b->waiting) > 0;
}

bool rq_budget_overdraw(rq_budget *b, const void *holder)
{
    const void *none = NULL;
    return atomic_compare_exchange_strong(&b->overdrawer, &none, holder) || none == holder;
}

bool rq_budget_overdraws(const rq_budget *b, const void *holder)
{
    return atomic_load_explicit(&b->overdrawer, memory_order_relaxed) == holder;
}

void rq__budget_pass_overdraft(rq_budget *b, const void *holder, const void *to)
{
    const void *me = holder;
    (void)atomic_compare_exchange_strong(&b->overdrawer, &me, to);
}

void rq_budget_end_overdraft(rq_budget *b, const void *holder)
{
    const void *me = holder;
    if (atomic_load_explicit(&b->overdrawer, memory_order_relaxed) != holder) return;
    atomic_store(&b->overdrawn, 0);
    atomic_compare_exchange_strong(&b->overdrawer, &me, NULL);
    if (atomic_load(&b->waiting) > 0) wake_overdrawer(b);
}

/* --- debtors ---------------------------------------------------------------------------------- */

/* REQUIRES: lock held. */
static void list_last(rq_budget *b, rq_debtor *d)
{
    d->prev = b->debtors.prev;
    d->next = &b->debtors;
    d->prev->next = d;
    b->debtors.prev = d;
}

static void unlist(rq_debtor *d)
{
    d->prev->next = d->next;
    d->next->prev = d->prev;
}

/* REQUIRES: lock held. Called when a debt has grown by `more`. */
static void note_overshoot(rq_budget *b, size_t more)
{
    size_t used = atomic_load(&b->used);
    if (used <= b->max)
        b->overshoot = 0;
    else if (more > b->reserve / 4 && used - b->max > b->overshoot)
        b->overshoot = used - b->max;
}

/* Evicts debtors, oldest first, until without their bytes the budget is within its reserve.
 * REQUIRES: lock held. */
static void evict_debtors(rq_budget *b)
{
    while (b->debtors.next != &b->debtors &&
           atomic_load(&b->used) > b->max + b->overshoot + b->reserve + b->evicted_bytes) {
        rq_debtor *d = b->debtors.next;
        unlist(d);
        d->state = RQ_DEBTOR_EVICTED;
        d->evicted_bytes = d->owed;
        b->evicted_bytes += d->evicted_bytes;
        rq_lane_post(d->lane, &d->task); /* under the lock, as for a waiter */
    }
}

void rq__budget_owe(rq_budget *b, rq_debtor *d, size_t bytes, bool renew)
{
    pthread_mutex_lock(&b->lock);
    size_t before = d->owed;
    d->owed = bytes;
    if (d->state == RQ_DEBTOR_LISTED && (bytes == 0 || renew)) {
        unlist(d);
        d->state = RQ_DEBTOR_NONE;
    }
    if (d->state == RQ_DEBTOR_NONE && bytes > 0) {
        list_last(b, d);
        d->state = RQ_DEBTOR_LISTED;
    }
    if (bytes > before) {
        rq_budget_force(b, bytes - before);
        note_overshoot(b, bytes - before);
        evict_debtors(b);
    }
    pthread_mutex_unlock(&b->lock);
    if (bytes < before) rq_budget_give(b, before - bytes);
}

bool rq__budget_is_debtor(rq_budget *b, const rq_debtor *d)
{
    pthread_mutex_lock(&b->lock);
    bool is = d->state != RQ_DEBTOR_NONE;
    pthread_mutex_unlock(&b->lock);
    return is;
}

bool rq__budget_confirm_eviction(rq_budget *b, rq_debtor *d)
{
    pthread_mutex_lock(&b->lock);
    b->evicted_bytes -= d->evicted_bytes;
    d->evicted_bytes = 0;
    d->state = RQ_DEBTOR_NONE;
    bool owes = d->owed > 0;
    if (owes) {
        list_last(b, d);
        d->state = RQ_DEBTOR_LISTED;
    }
    pthread_mutex_unlock(&b->lock);
    return owes;
}
