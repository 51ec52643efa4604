/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiters for the log: one member per lane, with its waiters in log order.
 *
 * A waiter is first appended to its member's list, then the positions are checked. A thread that
 * advances a position checks the lists afterwards. Both use the member's mutex, so one of the two
 * sees the other and no waiter is missed. A lane gets at most one wake-up until it has run its
 * completed waiters.
 *
 * After a stall of the disk a hundred thousand writes may wait, and one waiter may answer a list of them. A lane
 * therefore runs its completed waiters in time slices (base/meter.h), each in a task of its own.
 */
#include <stdlib.h>

#include "base/meter.h"
#include "wal/wal_priv.h"

/* Waiters removed from a list at once, with the member's mutex held. */
#define TAKEN_AT_ONCE 128

/* The log position that acknowledges this list. */
static rq_lsn mark_of(const rq_wal *wal, int synced)
{
    return atomic_load_explicit(synced ? &wal->synced_mark : &wal->written_mark,
                                memory_order_acquire);
}

static rq_err failed_of(const rq_wal *wal)
{
    return (rq_err)atomic_load_explicit(&wal->failed, memory_order_acquire);
}

/* Error to deliver to this waiter, or RQ_OK to keep waiting. The log's failure is checked first:
 * records acknowledged before it stay acknowledged. */
static rq_err verdict_of(const rq_wal *wal, int level, const rq_wal_waiter *w)
{
    rq_err failed = failed_of(wal);
    if (w->upto <= mark_of(wal, level)) return RQ_OK;
    if (failed != RQ_OK) return failed;
    return w->upto > atomic_load_explicit(&wal->full_above, memory_order_acquire) ? RQ_E_NO_SPACE
                                                                                  : RQ_OK;
}

/* 1: acknowledged only once synced. */
static int level_of(const rq_wal *wal, bool synced)
{
    return synced || wal->options.sync == RQ_WAL_SYNC;
}

static void member_task(rq_task *task);

rq_err rq__wal_member_new(rq_wal *wal, rq_lane *lane, rq_wal_member **ret)
{
    rq_wal_member *m = calloc(1, sizeof *m);
    if (m == NULL) return RQ_E_NO_MEMORY;
    m->wal = wal;
    m->lane = lane;
    m->task.run = member_task;
    pthread_mutex_init(&m->mutex, NULL);
    *ret = m;
    return RQ_OK;
}

void rq__wal_member_free(rq_wal_member *m)
{
    if (m == NULL) return;
    pthread_mutex_destroy(&m->mutex);
    free(m);
}

rq_err rq_wal_join(rq_wal *wal, rq_lane *lane, rq_wal_member **ret)
{
    rq_wal_member *m;
    RQ_TRY(rq__wal_member_new(wal, lane, &m));
    pthread_mutex_lock(&wal->members_mutex);
    m->next = wal->members;
    wal->members = m;
    pthread_mutex_unlock(&wal->members_mutex);
    *ret = m;
    return RQ_OK;
}

void rq_wal_leave(rq_wal_member *m)
{
    if (m == NULL) return;
    rq_wal *wal = m->wal;
    pthread_mutex_lock(&wal->members_mutex);
    rq_wal_member **at = &wal->members;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    pthread_mutex_unlock(&wal->members_mutex);
    pthread_mutex_lock(&m->mutex);
    RQ_ASSERT(m->waiting[0].head == NULL && m->waiting[1].head == NULL && m->stopped.first == NULL);
    bool posted = m->posted;
    m->left = true;
    pthread_mutex_unlock(&m->mutex);
    if (!posted) rq__wal_member_free(m); /* else its last task does */
}

/* REQUIRES: m->mutex. */
static bool anything_done(const rq_wal_member *m)
{
    for (int i = 0; i < 2; i++) {
        const rq_wal_waiter *w = m->waiting[i].head;
        if (w == NULL) continue;
        /* The last waiter is the first one that a full disk fails. */
        if (w->upto <= mark_of(m->wal, i) || verdict_of(m->wal, i, m->waiting[i].last) != RQ_OK)
            return true;
    }
    return false;
}

/* REQUIRES: m->mutex. Removes acknowledged waiters from the heads of both lists, so that neither list delays the other.
 * NULL: there are none. */
static rq_wal_waiter *take_acknowledged(rq_wal_member *m)
{
    rq_wal_waiter *first = NULL, **tail = &first;
    uint32_t taken = 0;
    for (int level = 0; level < 2; level++) {
        struct waiter_list *list = &m->waiting[level];
        rq_lsn mark = mark_of(m->wal, level);
        uint32_t most = taken + TAKEN_AT_ONCE;
        while (list->head != NULL && list->head->upto <= mark && taken < most) {
            rq_wal_waiter *w = list->head;
            list->head = w->next;
            w->next = NULL;
            *tail = w;
            tail = &w->next;
            taken++;
        }
        if (list->head == NULL) list->last = NULL;
    }
    atomic_fetch_sub_explicit(&m->count, taken, memory_order_relaxed);
    return first;
}

/* REQUIRES: m->mutex. Removes failed waiters from one list, from the first failed one on. NULL: there are none. */
static rq_wal_waiter *take_given_up_of(rq_wal_member *m, int level, rq_err *ret_rc)
{
    struct waiter_list *list = &m->waiting[level];
    if (list->last == NULL) return NULL;
    *ret_rc = verdict_of(m->wal, level, list->last);
    if (*ret_rc == RQ_OK) return NULL;
    /* If a waiter has failed, so have all behind it. Verdicts may change during the search, for example because the
     * disk has space again; the last waiter is failed in any case. */
    rq_wal_waiter *before = NULL;
    rq_wal_waiter **at = &list->head;
    while (*at != list->last && verdict_of(m->wal, level, *at) == RQ_OK) {
        before = *at;
        at = &before->next;
    }
    rq_wal_waiter *first = *at, **end = at;
    uint32_t taken = 0;
    for (; *end != NULL && taken < TAKEN_AT_ONCE; taken++)
        end = &(*end)->next;
    rq_wal_waiter *rest = *end;
    *end = NULL;
    *at = rest;
    if (rest == NULL) list->last = before;
    atomic_fetch_sub_explicit(&m->count, taken, memory_order_relaxed);
    return first;
}

/* Removes completed waiters that get the same result. */
static rq__wal_completed take(rq_wal_member *m)
{
    rq__wal_completed c = {0};
    if (atomic_load_explicit(&m->count, memory_order_relaxed) == 0) return c;
    pthread_mutex_lock(&m->mutex);
    c.first = take_acknowledged(m);
    for (int level = 0; c.first == NULL && level < 2; level++)
        c.first = take_given_up_of(m, level, &c.rc);
    pthread_mutex_unlock(&m->mutex);
    return c;
}

static void run_first(rq__wal_completed *c)
{
    rq_wal_waiter *w = c->first;
    c->first = w->next;
    w->next = NULL;
    w->run(w, c->rc);
}

/* Runs completed waiters. True: the time slice is over; false: there are no more. The clock is read between two
 * waiters, so a single one costs no reading. */
static bool run_slice(rq_wal_member *m)
{
    rq_meter meter = {0};
    rq_meter_begin(&meter);
    for (bool first = true;; first = false) {
        if (m->stopped.first == NULL) m->stopped = take(m);
        if (m->stopped.first == NULL) return false;
        if (!first && rq_meter_spent(&meter, m->wal->env.executor, RQ_METER_LOOK_STEPS))
            return true;
        run_first(&m->stopped);
    }
}

static void run_all(rq_wal_member *m)
{
    for (rq__wal_completed c = take(m); c.first != NULL; c = take(m))
        while (c.first != NULL)
            run_first(&c);
}

/* Runs the remaining completed waiters in another task of the lane. */
static void continue_later(rq_wal_member *m)
{
    pthread_mutex_lock(&m->mutex);
    bool post = !m->posted;
    m->posted = true;
    pthread_mutex_unlock(&m->mutex);
    m->continues = true;
    if (post) rq_lane_post(m->lane, &m->task);
}

void rq__wal_member_run_done(rq_wal_member *m)
{
    if (m->lane == NULL)
        run_all(m);
    else if (!m->continues && run_slice(m))
        continue_later(m);
}

static void member_task(rq_task *task)
{
    rq_wal_member *m = RQ_CONTAINER_OF(task, rq_wal_member, task);
    pthread_mutex_lock(&m->mutex);
    m->posted = false;
    bool left = m->left;
    pthread_mutex_unlock(&m->mutex);
    if (left) {
        rq__wal_member_free(m);
        return;
    }
    m->continues = false;
    rq__wal_member_run_done(m);
}

/* Wakes the member's lane if there is something to run. */
static void member_wake(rq_wal_member *m)
{
    if (m->lane == NULL) {
        rq__wal_member_run_done(m);
        return;
    }
    if (atomic_load_explicit(&m->count, memory_order_acquire) == 0) return;
    pthread_mutex_lock(&m->mutex);
    bool post = !m->posted && anything_done(m);
    if (post) m->posted = true;
    pthread_mutex_unlock(&m->mutex);
    if (post) rq_lane_post(m->lane, &m->task);
}

void rq__wal_complete(rq_wal *wal, rq_wal_member *self)
{
    pthread_mutex_lock(&wal->members_mutex);
    for (rq_wal_member *m = wal->members; m != NULL; m = m->next)
        if (m != self) member_wake(m);
    pthread_mutex_unlock(&wal->members_mutex);
    member_wake(wal->direct);
}

/* In log order; nearly always at the end. */
static void list_insert(struct waiter_list *list, rq_wal_waiter *w)
{
    if (list->last == NULL || list->last->upto <= w->upto) {
        w->next = NULL;
        *(list->last == NULL ? &list->head : &list->last->next) = w;
        list->last = w;
        return;
    }
    rq_wal_waiter **at = &list->head;
    while ((*at)->upto <= w->upto)
        at = &(*at)->next;
    w->next = *at;
    *at = w;
}

void rq_wal_wait(rq_wal_member *m, rq_wal_waiter *w, rq_lsn upto, bool synced)
{
    rq_wal *wal = m->wal;
    int level = level_of(wal, synced);
    w->upto = upto;
    pthread_mutex_lock(&m->mutex);
    list_insert(&m->waiting[level], w);
    atomic_fetch_add_explicit(&m->count, 1, memory_order_release);
    pthread_mutex_unlock(&m->mutex);
    /* From here on w may run. */
    if (upto <= mark_of(wal, level) || failed_of(wal) != RQ_OK) {
        member_wake(m);
        return;
    }
    if (level == 0) return; /* the next write completes it */
    pthread_mutex_lock(&wal->mutex);
    if (upto > wal->sync_wanted) wal->sync_wanted = upto;
    if (wal->written > wal->synced) rq__wal_lane_wake(wal);
    pthread_mutex_unlock(&wal->mutex);
}

typedef struct blocked {
    rq_wal_waiter waiter;
    rq_latch latch;
} blocked;

static void blocked_run(rq_wal_waiter *w, rq_err rc)
{
    blocked *b = RQ_CONTAINER_OF(w, blocked, waiter);
    b->latch.executor->latch_open(&b->latch, rc);
}

rq_err rq_wal_wait_blocking(rq_wal *wal, rq_lsn upto, bool synced)
{
    if (upto <= mark_of(wal, level_of(wal, synced))) return RQ_OK;
    rq_executor *ex = wal->env.executor;
    blocked b = {.waiter = {.run = blocked_run}};
    ex->latch_init(ex, &b.latch);
    rq_wal_wait(wal->direct, &b.waiter, upto, synced);
    rq_wal_push(wal, NULL);
    rq_err rc = ex->latch_wait(&b.latch);
    ex->latch_destroy(&b.latch);
    return rc;
}
