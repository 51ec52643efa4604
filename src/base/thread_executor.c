/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real executor: pools, lanes and timers on threads. Event loops bring lanes of their own
 * (net room); the lanes made here are serial workers with a thread each (log, procedures).
 *
 *  1. The first worker of each pool and the timer thread start with the executor, so that a process
 *     that may not create threads fails at start and not at its first flush. Further workers are
 *     started when a task finds none idle, up to the pool's limit. A lazy executor starts only the
 *     timers' thread, and a lane's thread with the lane's first task. If a pool's first worker or a
 *     lane's thread cannot be started when a task comes, the timers' thread tries again until it
 *     can: the task waits.
 *  2. A worker that waits on a latch does not count against the limit while it waits: the tasks it
 *     waits for may be behind it in the same queue. Such extra workers are kept; RQ_WORKERS_MAX
 *     limits them. In RQ_POOL_CALL it counts: a peer decides how many tasks there are, and none of
 *     them waits for another one of the pool.
 *  3. RQ_POOL_COMPACT runs under SCHED_BATCH: the scheduler lets waking loops preempt it.
 *  4. Each worker sleeps on a semaphore of its own. With one condition variable for all workers of a pool, a thread
 *     that submits a task, such as an event loop, would wait in pthread_cond_signal (glibc before 2.41) until workers
 *     that were woken earlier have run. The worker that fell asleep last is woken first: its stack and code are still
 *     in the processor's caches.
 *  5. Signals are blocked in all threads made here; they belong to the main thread.
 *
 * Locks: each pool, each lane, the timers and each latch has a mutex of its own. No mutex is held while a task runs.
 * Only the timers' mutex is held while another one is taken, because a due task is posted under it.
 */
#include "base/executor.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "base/task_queue.h"
#include "base/timer_list.h"

#define RQ_WORKERS_MAX 512
/* How often a thread that could not be started is tried again. */
#define FEED_INTERVAL_NS ((uint64_t)10 * 1000 * 1000)

typedef struct worker {
    struct pool *pool;
    struct worker *next; /* in `asleep` */
    sem_t wake;
    pthread_t thread;
} worker;

typedef struct pool {
    struct thread_executor *ex;
    rq_pool kind;
    pthread_mutex_t mutex;
    worker *asleep;       /* idle workers that have not been woken yet */
    rq_task_queue tasks;  /* these by mutex */
    rq_task_queue ranked; /* by rank */
    unsigned limit;       /* workers that may run at the same time */
    bool resized;         /* the limit has changed: it may be lower than `started` */
    unsigned parked;      /* of the started ones, beyond a lowered limit */
    pthread_cond_t unpark;
    unsigned started;
    unsigned idle; /* also workers that were woken and do not run yet */
    unsigned queued;
    unsigned waiting; /* on latches */
    bool stopping;
    _Atomic unsigned wakers; /* threads about to wake a worker */
    worker workers[RQ_WORKERS_MAX];
} pool;

typedef struct lane {
    rq_lane base;
    struct thread_executor *ex;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    rq_task_queue tasks; /* these by mutex */
    bool started;
    bool sleeping;
    bool stopping;
    _Atomic unsigned wakers;  /* threads about to signal `wake` */
    struct lane *next_hungry; /* by timer_mutex, like is_hungry */
    bool is_hungry;
    char name[16];
} lane;

typedef struct thread_executor {
    rq_executor base;
    pool pools[RQ_POOL_COUNT];
    pthread_key_t worker_key; /* a worker's own pool */

    pthread_mutex_t pending_mutex;
    pthread_cond_t pending_zero;
    _Atomic uint64_t pending; /* pool tasks queued or running */
    _Atomic unsigned lanes;

    pthread_t timer_thread;
    pthread_mutex_t timer_mutex;
    pthread_cond_t timer_wake;
    rq_timer_list timers; /* few enough for a list. Guarded by timer_mutex, like
                       * timer_stopping */
    bool timer_stopping;
    bool starving; /* a pool or a lane has tasks and no thread; by timer_mutex, like `hungry` */
    lane *hungry;  /* lanes that have tasks and no thread */
    bool lazy;

    pthread_mutex_t random_mutex;
    rq_random random;
} thread_executor;

typedef struct latch_impl {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
} latch_impl;

_Static_assert(sizeof(latch_impl) <= sizeof(((rq_latch *)0)->impl), "rq_latch.impl is too small");
_Static_assert(_Alignof(latch_impl) <= _Alignof(void *), "rq_latch.impl is aligned to pointers");

/* An error of pthread here means a broken invariant (a mutex not held, memory overwritten). */
static void lock(pthread_mutex_t *m)
{
    int rc = pthread_mutex_lock(m);
    RQ_ASSERT(rc == 0);
}

static void unlock(pthread_mutex_t *m)
{
    int rc = pthread_mutex_unlock(m);
    RQ_ASSERT(rc == 0);
}

static bool thread_start(pthread_t *ret, void *(*entry)(void *), void *arg)
{
    sigset_t all, before;
    rq_thread_signals(&all);
    if (pthread_sigmask(SIG_BLOCK, &all, &before) != 0) return false;
    int rc = pthread_create(ret, NULL, entry, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0;
}

/* A thread names itself: that is one system call, and naming another thread is three. */
static void name_self(const char *name)
{
    char cut[16]; /* the kernel's limit */
    (void)snprintf(cut, sizeof cut, "%s", name);
    (void)pthread_setname_np(pthread_self(), cut);
}

/* --- pools -------------------------------------------------------------------------------- */

static void task_finished(thread_executor *ex)
{
    if (atomic_fetch_sub_explicit(&ex->pending, 1, memory_order_acq_rel) != 1) return;
    lock(&ex->pending_mutex);
    pthread_cond_broadcast(&ex->pending_zero);
    unlock(&ex->pending_mutex);
}

static void wake(worker *w)
{
    int rc = sem_post(&w->wake);
    RQ_ASSERT(rc == 0);
}

/* REQUIRES: p->mutex. The worker to be woken; NULL: none is asleep. */
static worker *take_asleep(pool *p)
{
    worker *w = p->asleep;
    if (w != NULL) p->asleep = w->next;
    return w;
}

/* REQUIRES: p->mutex. */
static void wake_all(pool *p)
{
    for (worker *w = take_asleep(p); w != NULL; w = take_asleep(p))
        wake(w);
}

/* REQUIRES: the pool's mutex, which is released meanwhile. */
static void sleep_until_woken(worker *w)
{
    pool *p = w->pool;
    p->idle++;
    w->next = p->asleep;
    p->asleep = w;
    unlock(&p->mutex);
    while (sem_wait(&w->wake) != 0)
        RQ_ASSERT(errno == EINTR);
    lock(&p->mutex);
    p->idle--;
}

/* REQUIRES: p->mutex. Workers that count against the limit, parked ones included. */
static unsigned counted(const pool *p)
{
    return p->kind == RQ_POOL_CALL ? p->started : p->started - p->waiting;
}

/* REQUIRES: p->mutex. A worker beyond a lowered limit stays here. */
static void park(pool *p)
{
    while (!p->stopping && counted(p) - p->parked > p->limit) {
        worker *other = p->queued > 0 ? take_asleep(p) : NULL; /* it was woken for that */
        if (other != NULL) wake(other);
        p->parked++;
        pthread_cond_wait(&p->unpark, &p->mutex);
        p->parked--;
    }
}

static const char *pool_name(rq_pool kind)
{
    switch (kind) {
    case RQ_POOL_READ:
        return "rq-read";
    case RQ_POOL_FLUSH:
        return "rq-flush";
    case RQ_POOL_COMPACT:
        return "rq-compact";
    case RQ_POOL_COMPACT_LARGE:
        return "rq-compact-big";
    case RQ_POOL_CODEC:
        return "rq-codec";
    case RQ_POOL_CALL:
        return "rq-call";
    case RQ_POOL_WORK:
        return "rq-work";
    case RQ_POOL_COUNT:
        break;
    }
    return "rq-pool";
}

static void *worker_main(void *arg)
{
    worker *self = arg;
    pool *p = self->pool;
    name_self(pool_name(p->kind));
    (void)pthread_setspecific(p->ex->worker_key, p);
    if (p->kind == RQ_POOL_COMPACT || p->kind == RQ_POOL_COMPACT_LARGE) {
        struct sched_param none = {0};
        (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &none); /* a wish only */
    }
    lock(&p->mutex);
    for (;;) {
        if (p->resized) park(p);
        rq_task *task = rq__task_queue_pop(&p->tasks);
        if (task == NULL) task = rq__task_queue_pop(&p->ranked);
        if (task == NULL) {
            if (p->stopping) break;
            sleep_until_woken(self);
            continue;
        }
        p->queued--;
        unlock(&p->mutex);
        task->run(task);
        task_finished(p->ex);
        lock(&p->mutex);
    }
    unlock(&p->mutex);
    return NULL;
}

/* REQUIRES: p->mutex. */
static bool pool_start_worker(pool *p)
{
    if (p->started >= RQ_WORKERS_MAX) return false;
    worker *w = &p->workers[p->started];
    w->pool = p;
    if (sem_init(&w->wake, 0, 0) != 0) return false;
    if (!thread_start(&w->thread, worker_main, w)) {
        (void)sem_destroy(&w->wake);
        return false;
    }
    p->started++;
    return true;
}

/* REQUIRES: p->mutex. Starts a worker if all are busy and the limit allows. A failure to start is
 * tolerated as long as there is a worker: the task waits for it. */
static bool pool_grow(pool *p)
{
    if (counted(p) - p->parked >= p->limit) return false;
    if (p->parked > 0) {
        pthread_cond_signal(&p->unpark);
        return true;
    }
    return pool_start_worker(p);
}

/* Called after a task was queued. Unlocks p->mutex, and only then wakes a worker, because the worker
 * takes the mutex first. False: the pool has no worker, and none could be started. */
static bool pool_wake(pool *p)
{
    worker *w = take_asleep(p);
    p->queued++;
    if (p->queued > p->idle) (void)pool_grow(p); /* the idle ones have been woken for other tasks */
    if (w != NULL) atomic_fetch_add_explicit(&p->wakers, 1, memory_order_relaxed);
    bool has_worker = p->started > 0;
    unlock(&p->mutex);
    if (w == NULL) return has_worker;
    wake(w);
    atomic_fetch_sub_explicit(&p->wakers, 1, memory_order_release);
    return true;
}

/* The timers' thread starts the pool's first worker when it can. */
RQ_COLD static void starve(thread_executor *ex)
{
    lock(&ex->timer_mutex);
    ex->starving = true;
    pthread_cond_signal(&ex->timer_wake);
    unlock(&ex->timer_mutex);
}

/* Whether a pool has tasks and still no worker. */
static bool feed_pools(thread_executor *ex)
{
    bool starving = false;
    for (unsigned i = 0; i < RQ_POOL_COUNT; i++) {
        pool *p = &ex->pools[i];
        lock(&p->mutex);
        if (p->queued > 0 && p->started == 0) starving = !pool_start_worker(p) || starving;
        unlock(&p->mutex);
    }
    return starving;
}

static void executor_submit(rq_executor *base, rq_pool kind, rq_task *task)
{
    thread_executor *ex = (thread_executor *)base;
    pool *p = &ex->pools[kind];
    atomic_fetch_add_explicit(&ex->pending, 1, memory_order_relaxed);
    lock(&p->mutex);
    rq_task_queue_push(&p->tasks, task);
    if (RQ_UNLIKELY(!pool_wake(p))) starve(ex);
}

static void executor_submit_ranked(rq_executor *base, rq_pool kind, rq_ranked_task *task,
                                   int32_t rank)
{
    thread_executor *ex = (thread_executor *)base;
    pool *p = &ex->pools[kind];
    atomic_fetch_add_explicit(&ex->pending, 1, memory_order_relaxed);
    lock(&p->mutex);
    rq_task_queue_insert(&p->ranked, task, rank);
    if (RQ_UNLIKELY(!pool_wake(p))) starve(ex);
}

static void executor_raise(rq_executor *base, rq_pool kind, const rq_ranked_task *task,
                           int32_t rank)
{
    pool *p = &((thread_executor *)base)->pools[kind];
    lock(&p->mutex);
    rq_task_queue_raise(&p->ranked, task, rank);
    unlock(&p->mutex);
}

static bool pool_start(pool *p, thread_executor *ex, rq_pool kind, unsigned limit, bool lazy)
{
    p->ex = ex;
    p->kind = kind;
    p->limit = limit == 0 ? 1 : limit;
    rq_task_queue_init(&p->tasks);
    rq_task_queue_init(&p->ranked);
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->unpark, NULL);
    lock(&p->mutex);
    bool ok = lazy || pool_grow(p);
    unlock(&p->mutex);
    return ok;
}

static void pool_stop(pool *p)
{
    lock(&p->mutex);
    p->stopping = true;
    wake_all(p);
    pthread_cond_broadcast(&p->unpark);
    unsigned started = p->started;
    unlock(&p->mutex);
    for (unsigned i = 0; i < started; i++)
        pthread_join(p->workers[i].thread, NULL);
    /* A thread whose task has already run may still be about to wake a worker. */
    while (atomic_load_explicit(&p->wakers, memory_order_acquire) > 0)
        sched_yield();
    for (unsigned i = 0; i < started; i++)
        (void)sem_destroy(&p->workers[i].wake);
    pthread_cond_destroy(&p->unpark);
    pthread_mutex_destroy(&p->mutex);
}

void rq_thread_executor_resize(rq_executor *ex, rq_pool kind, unsigned threads)
{
    pool *p = &RQ_CONTAINER_OF(ex, thread_executor, base)->pools[kind];
    lock(&p->mutex);
    if (p->limit != threads && threads > 0) {
        p->limit = threads;
        p->resized = true;
        wake_all(p); /* those beyond the limit park */
        pthread_cond_broadcast(&p->unpark);
        unsigned coming = p->idle + p->parked;
        while (p->queued > coming && counted(p) < p->limit && pool_start_worker(p))
            coming++;
    }
    unlock(&p->mutex);
}

/* --- lanes -------------------------------------------------------------------------------- */

static void *lane_main(void *arg)
{
    lane *l = arg;
    name_self(l->name);
    lock(&l->mutex);
    for (;;) {
        rq_task *task = rq__task_queue_pop(&l->tasks);
        if (task == NULL) {
            if (l->stopping) break;
            l->sleeping = true;
            pthread_cond_wait(&l->wake, &l->mutex);
            l->sleeping = false;
            continue;
        }
        unlock(&l->mutex);
        task->run(task);
        lock(&l->mutex);
    }
    unlock(&l->mutex);
    return NULL;
}

/* REQUIRES: l->mutex. */
static bool lane_start(lane *l)
{
    if (!l->started) l->started = thread_start(&l->thread, lane_main, l);
    return l->started;
}

/* The timers' thread starts the lane's thread when it can. It posts due tasks under its mutex. */
RQ_COLD static void starve_lane(lane *l)
{
    thread_executor *ex = l->ex;
    bool is_timers = pthread_equal(ex->timer_thread, pthread_self());
    if (!is_timers) lock(&ex->timer_mutex);
    if (!l->is_hungry) {
        l->is_hungry = true;
        l->next_hungry = ex->hungry;
        ex->hungry = l;
    }
    ex->starving = true;
    pthread_cond_signal(&ex->timer_wake);
    if (!is_timers) unlock(&ex->timer_mutex);
}

/* REQUIRES: timer_mutex. Whether a lane still has no thread. */
static bool feed_lanes(thread_executor *ex)
{
    for (lane **at = &ex->hungry; *at != NULL;) {
        lane *l = *at;
        lock(&l->mutex);
        bool fed = lane_start(l);
        unlock(&l->mutex);
        if (fed) {
            *at = l->next_hungry;
            l->is_hungry = false;
        } else {
            at = &l->next_hungry;
        }
    }
    return ex->hungry != NULL;
}

static void lane_post(rq_lane *base, rq_task *task)
{
    lane *l = (lane *)base;
    lock(&l->mutex);
    RQ_ASSERT(!l->stopping || (l->started && pthread_equal(l->thread, pthread_self())));
    rq_task_queue_push(&l->tasks, task);
    bool starves = !lane_start(l);
    bool wake = l->sleeping || starves;
    if (wake) atomic_fetch_add_explicit(&l->wakers, 1, memory_order_relaxed);
    unlock(&l->mutex);
    if (!wake) return;
    if (RQ_UNLIKELY(starves)) starve_lane(l);
    /* Signals after unlocking: the woken thread takes the mutex first, and would otherwise have to
     * wait for it. */
    pthread_cond_signal(&l->wake);
    atomic_fetch_sub_explicit(&l->wakers, 1, memory_order_release);
}

static rq_err executor_lane_new(rq_executor *base, const char *name, rq_lane **ret)
{
    thread_executor *ex = (thread_executor *)base;
    lane *l = calloc(1, sizeof *l);
    if (l == NULL) return RQ_E_NO_MEMORY;
    l->base.post = lane_post;
    l->ex = ex;
    (void)snprintf(l->name, sizeof l->name, "%s", name);
    rq_task_queue_init(&l->tasks);
    pthread_mutex_init(&l->mutex, NULL);
    pthread_cond_init(&l->wake, NULL);
    lock(&l->mutex);
    bool ok = ex->lazy || lane_start(l);
    unlock(&l->mutex);
    if (!ok) {
        pthread_cond_destroy(&l->wake);
        pthread_mutex_destroy(&l->mutex);
        free(l);
        return RQ_E_NO_MEMORY;
    }
    atomic_fetch_add(&ex->lanes, 1);
    *ret = &l->base;
    return RQ_OK;
}

/* Gives a lane with tasks and no thread its thread. Whether it is done. */
static bool lane_feed(lane *l)
{
    lock(&l->mutex);
    bool done = l->tasks.head == NULL || lane_start(l);
    unlock(&l->mutex);
    return done;
}

static void lane_forget(lane *l)
{
    thread_executor *ex = l->ex;
    lock(&ex->timer_mutex);
    lane **at = &ex->hungry;
    while (l->is_hungry && *at != l)
        at = &(*at)->next_hungry;
    if (l->is_hungry) *at = l->next_hungry;
    unlock(&ex->timer_mutex);
}

static void executor_lane_free(rq_executor *base, rq_lane *lane_base)
{
    if (lane_base == NULL) return;
    thread_executor *ex = (thread_executor *)base;
    lane *l = (lane *)lane_base;
    while (!lane_feed(l))
        rq_clock_sleep_ns(FEED_INTERVAL_NS);
    lock(&l->mutex);
    RQ_ASSERT(!l->started || !pthread_equal(l->thread, pthread_self()));
    l->stopping = true;
    pthread_cond_signal(&l->wake);
    bool started = l->started;
    unlock(&l->mutex);
    if (started) pthread_join(l->thread, NULL);
    /* A thread whose task has already run may still be about to wake it. */
    while (atomic_load_explicit(&l->wakers, memory_order_acquire) > 0)
        sched_yield();
    lane_forget(l);
    pthread_cond_destroy(&l->wake);
    pthread_mutex_destroy(&l->mutex);
    free(l);
    atomic_fetch_sub(&ex->lanes, 1);
}

/* --- clocks and timers -------------------------------------------------------------------- */

static uint64_t executor_now_ns(rq_executor *ex)
{
    (void)ex;
    return rq_clock_ns(CLOCK_MONOTONIC);
}

static void executor_sleep(rq_executor *ex, uint64_t ns)
{
    (void)ex;
    rq_clock_sleep_ns(ns);
}

static void executor_yield(rq_executor *ex)
{
    (void)ex;
    (void)sched_yield(); /* does not fail */
}

static int64_t executor_now_ms(rq_executor *ex)
{
    (void)ex;
    return (int64_t)(rq_clock_ns(CLOCK_REALTIME) / 1000000);
}

/* REQUIRES: timer_mutex, which it gives up meanwhile. */
static void timers_feed(thread_executor *ex)
{
    unlock(&ex->timer_mutex);
    bool starving = feed_pools(ex);
    lock(&ex->timer_mutex);
    ex->starving = feed_lanes(ex) || starving || ex->starving;
}

/* REQUIRES: timer_mutex. */
static void timers_wait_until(thread_executor *ex, uint64_t ns)
{
    struct timespec until = {.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
    pthread_cond_timedwait(&ex->timer_wake, &ex->timer_mutex, &until);
}

static void *timer_main(void *arg)
{
    thread_executor *ex = arg;
    name_self("rq-timer");
    lock(&ex->timer_mutex);
    while (!ex->timer_stopping) {
        rq_timer *first = ex->timers.first;
        uint64_t now = first == NULL && !ex->starving ? 0 : executor_now_ns(&ex->base);
        bool due = first != NULL && first->due_ns <= now;
        if (first == NULL && !ex->starving) {
            pthread_cond_wait(&ex->timer_wake, &ex->timer_mutex);
        } else if (!due && ex->starving) {
            timers_wait_until(ex, now + FEED_INTERVAL_NS);
            ex->starving = false;
            timers_feed(ex);
        } else if (!due) {
            timers_wait_until(ex, first->due_ns);
        } else {
            first = rq_timer_list_take_due(&ex->timers, now);
            /* Posted under the lock, so that a cancel that returns false finds the task posted. */
            rq_lane_post(first->lane, &first->task);
        }
    }
    unlock(&ex->timer_mutex);
    return NULL;
}

static void executor_timer_arm(rq_executor *base, rq_timer *timer, rq_lane *on, uint64_t delay_ns)
{
    thread_executor *ex = (thread_executor *)base;
    uint64_t now = executor_now_ns(base);
    lock(&ex->timer_mutex);
    rq_timer_list_arm(&ex->timers, timer, on, now, delay_ns);
    if (ex->timers.first == timer) pthread_cond_signal(&ex->timer_wake);
    unlock(&ex->timer_mutex);
}

static bool executor_timer_cancel(rq_executor *base, rq_timer *timer)
{
    thread_executor *ex = (thread_executor *)base;
    lock(&ex->timer_mutex);
    bool was_armed = rq_timer_list_cancel(&ex->timers, timer);
    unlock(&ex->timer_mutex);
    return was_armed;
}

static bool timers_start(thread_executor *ex)
{
    pthread_mutex_init(&ex->timer_mutex, NULL);
    rq_clock_cond_init(&ex->timer_wake);
    if (thread_start(&ex->timer_thread, timer_main, ex)) return true;
    pthread_cond_destroy(&ex->timer_wake);
    pthread_mutex_destroy(&ex->timer_mutex);
    return false;
}

static void timers_stop(thread_executor *ex)
{
    lock(&ex->timer_mutex);
    ex->timer_stopping = true;
    pthread_cond_signal(&ex->timer_wake);
    unlock(&ex->timer_mutex);
    pthread_join(ex->timer_thread, NULL);
    for (rq_timer *t = ex->timers.first; t != NULL; t = t->next)
        t->armed = false;
    pthread_cond_destroy(&ex->timer_wake);
    pthread_mutex_destroy(&ex->timer_mutex);
}

/* --- latches ------------------------------------------------------------------------------ */

static void executor_latch_init(rq_executor *ex, rq_latch *latch)
{
    latch_impl *impl = (latch_impl *)(void *)latch->impl;
    latch->executor = ex;
    latch->rc = RQ_OK;
    latch->open = false;
    pthread_mutex_init(&impl->mutex, NULL);
    pthread_cond_init(&impl->opened, NULL);
}

static void executor_latch_open(rq_latch *latch, rq_err rc)
{
    latch_impl *impl = (latch_impl *)(void *)latch->impl;
    lock(&impl->mutex);
    RQ_ASSERT(!latch->open);
    latch->rc = rc;
    latch->open = true;
    /* Signalled under the mutex: the waiter may destroy the latch as soon as it gets the mutex. */
    pthread_cond_broadcast(&impl->opened);
    unlock(&impl->mutex);
}

/* A worker that is about to wait hands its place to another one. */
static void worker_begin_wait(pool *p)
{
    lock(&p->mutex);
    p->waiting++;
    if (p->queued > p->idle) (void)pool_grow(p);
    unlock(&p->mutex);
}

static void worker_end_wait(pool *p)
{
    lock(&p->mutex);
    p->waiting--;
    unlock(&p->mutex);
}

static rq_err executor_latch_wait(rq_latch *latch)
{
    latch_impl *impl = (latch_impl *)(void *)latch->impl;
    thread_executor *ex = (thread_executor *)latch->executor;
    lock(&impl->mutex);
    bool open = latch->open;
    rq_err rc = latch->rc;
    unlock(&impl->mutex);
    if (open) return rc;

    pool *own = pthread_getspecific(ex->worker_key);
    if (own != NULL) worker_begin_wait(own);
    lock(&impl->mutex);
    while (!latch->open)
        pthread_cond_wait(&impl->opened, &impl->mutex);
    rc = latch->rc;
    unlock(&impl->mutex);
    if (own != NULL) worker_end_wait(own);
    return rc;
}

static void executor_latch_destroy(rq_latch *latch)
{
    latch_impl *impl = (latch_impl *)(void *)latch->impl;
    pthread_cond_destroy(&impl->opened);
    pthread_mutex_destroy(&impl->mutex);
}

/* --- the executor ------------------------------------------------------------------------- */

static uint64_t executor_random(rq_executor *base)
{
    thread_executor *ex = (thread_executor *)base;
    lock(&ex->random_mutex);
    uint64_t v = rq_random_next(&ex->random);
    unlock(&ex->random_mutex);
    return v;
}

static uint64_t random_seed(rq_executor *ex)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed) return seed;
    return executor_now_ns(ex) ^ ((uint64_t)getpid() << 40); /* early in a machine's boot */
}

static rq_err executor_new(const unsigned threads[RQ_POOL_COUNT], bool lazy, rq_executor **ret)
{
    thread_executor *ex = calloc(1, sizeof *ex);
    if (ex == NULL) return RQ_E_NO_MEMORY;
    ex->base = (rq_executor){
        .submit = executor_submit,
        .submit_ranked = executor_submit_ranked,
        .raise = executor_raise,
        .lane_new = executor_lane_new,
        .lane_free = executor_lane_free,
        .timer_arm = executor_timer_arm,
        .timer_cancel = executor_timer_cancel,
        .latch_init = executor_latch_init,
        .latch_open = executor_latch_open,
        .latch_wait = executor_latch_wait,
        .latch_destroy = executor_latch_destroy,
        .sleep = executor_sleep,
        .yield = executor_yield,
        .now_ns = executor_now_ns,
        .now_ms = executor_now_ms,
        .random = executor_random,
    };
    if (pthread_key_create(&ex->worker_key, NULL) != 0) {
        free(ex);
        return RQ_E_NO_MEMORY;
    }
    pthread_mutex_init(&ex->pending_mutex, NULL);
    pthread_cond_init(&ex->pending_zero, NULL);
    pthread_mutex_init(&ex->random_mutex, NULL);
    rq_random_seed(&ex->random, random_seed(&ex->base));
    ex->lazy = lazy;

    rq_err rc = RQ_E_NO_MEMORY;
    unsigned started = 0;
    bool timers = timers_start(ex);
    if (!timers) goto out;
    for (; started < RQ_POOL_COUNT; started++) {
        if (!pool_start(&ex->pools[started], ex, (rq_pool)started, threads[started], lazy)) {
            pool_stop(&ex->pools[started]);
            goto out;
        }
    }
    rc = RQ_OK;
    *ret = &ex->base;
out:
    if (rc != RQ_OK) {
        while (started > 0)
            pool_stop(&ex->pools[--started]);
        if (timers) timers_stop(ex);
        pthread_mutex_destroy(&ex->random_mutex);
        pthread_cond_destroy(&ex->pending_zero);
        pthread_mutex_destroy(&ex->pending_mutex);
        pthread_key_delete(ex->worker_key);
        free(ex);
    }
    return rc;
}

rq_err rq_thread_executor_new(const unsigned threads[RQ_POOL_COUNT], rq_executor **ret)
{
    return executor_new(threads, false, ret);
}

rq_err rq_thread_executor_new_lazy(const unsigned threads[RQ_POOL_COUNT], rq_executor **ret)
{
    return executor_new(threads, true, ret);
}

void rq_thread_executor_free(rq_executor *base)
{
    if (base == NULL) return;
    thread_executor *ex = (thread_executor *)base;
    timers_stop(ex);
    while (feed_pools(ex))
        rq_clock_sleep_ns(FEED_INTERVAL_NS);
    /* Tasks may submit to other pools, so all must be empty before the first one stops. */
    lock(&ex->pending_mutex);
    while (atomic_load_explicit(&ex->pending, memory_order_acquire) != 0)
        pthread_cond_wait(&ex->pending_zero, &ex->pending_mutex);
    unlock(&ex->pending_mutex);
    RQ_ASSERT(atomic_load(&ex->lanes) == 0);
    for (unsigned i = 0; i < RQ_POOL_COUNT; i++)
        pool_stop(&ex->pools[i]);
    pthread_mutex_destroy(&ex->random_mutex);
    pthread_cond_destroy(&ex->pending_zero);
    pthread_mutex_destroy(&ex->pending_mutex);
    pthread_key_delete(ex->worker_key);
    free(ex);
}

void rq_thread_executor_report(rq_executor *ex, const rq_log *log)
{
    static const char *const names[RQ_POOL_COUNT] = {
        [RQ_POOL_READ] = "read",       [RQ_POOL_FLUSH] = "flush",
        [RQ_POOL_COMPACT] = "compact", [RQ_POOL_COMPACT_LARGE] = "compact-large",
        [RQ_POOL_CODEC] = "codec",     [RQ_POOL_CALL] = "call",
        [RQ_POOL_WORK] = "work"};
    thread_executor *e = RQ_CONTAINER_OF(ex, thread_executor, base);
    for (int i = 0; i < RQ_POOL_COUNT; i++) {
        pool *p = &e->pools[i];
        lock(&p->mutex);
        unsigned started = p->started, idle = p->idle, queued = p->queued, waiting = p->waiting;
        unlock(&p->mutex);
        rq_log_info(
            log, "report",
            "pool %s: %u of %u threads busy, %u of them waiting for other tasks; %u tasks queued",
            names[i], started - idle, started, waiting, queued);
    }
}
