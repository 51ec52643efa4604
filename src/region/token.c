/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer token: everything that changes a region's numbering, memstore or store versions runs
 * under it, one piece of work after another, in the order enqueued.
 *
 * `queue` is the whole mechanism:
 *
 *      NULL          the token is free
 *      TAKEN         a thread drains the queue and has seen everything enqueued so far
 *      a work …      newest first, ending in NULL or TAKEN
 *
 * A thread that pushes onto NULL has the token and drains the queue until it can swap TAKEN back to
 * NULL. No thread waits for the token, and nothing blocks under it. When its time slice is over, a drainer leaves the
 * rest, and the token with it, to the lane of the next piece of work. An op is never interrupted, so a lane does not run
 * an op of many steps: it leaves the token to a thread of RQ_POOL_READ. Long reads are made without the token (apart.h).
 */
#include "region/engine_priv.h"

static const rq__work taken; /* only its address is used */
#define TAKEN ((rq__work *)(uintptr_t)&taken)

static rq__work *reversed(rq__work *w)
{
    rq__work *oldest = NULL;
    while (w != NULL && w != TAKEN) {
        rq__work *next = w->next;
        w->next = oldest;
        oldest = w;
        w = next;
    }
    return oldest;
}

static void drain(rq_region *r, bool on_pool);

static void go_on(rq_region *r, bool on_pool)
{
    drain(r, on_pool);
    rq_wal_push(r->engine->wal, NULL); /* a thread that is not a loop does not push by itself */
    rq_region_unref(r);
}

static void go_on_lane(rq_task *task)
{
    go_on(RQ_CONTAINER_OF(task, rq_region, drain_task), false);
}

static void go_on_pool(rq_task *task)
{
    go_on(RQ_CONTAINER_OF(task, rq_region, drain_task), true);
}

/* Gives the token, and the next list, to the lane of the list's first work, or to a pool. */
static void hand_over(rq_region *r, rq__work *w)
{
    rq_executor *ex = r->env.executor;
    r->backlog = w;
    rq_region_ref(r);
    if (RQ_UNLIKELY(r->wants_pool)) {
        r->wants_pool = false;
        r->drain_task.run = go_on_pool;
        ex->submit(ex, RQ_POOL_READ, &r->drain_task);
        return;
    }
    r->drain_task.run = go_on_lane;
    rq_lane_post(w->lane, &r->drain_task);
}

/* Runs the list in order; true: the rest was handed over. Work may enqueue its own rest instead,
 * which then runs after all work enqueued so far (rq__batch_put_behind). */
static bool run_list(rq_region *r, rq__work *w)
{
    while (w != NULL) {
        if (r->meter.over && w->lane != NULL) {
            hand_over(r, w);
            return true;
        }
        if (r->meter.over) rq_meter_begin(&r->meter); /* no other thread continues it */
        rq__work *next = w->next;                     /* run gives the work back to its owner */
        w->run(r, w);
        rq__work *rest = r->interrupted;
        r->interrupted = NULL;
        if (rest != NULL) {
            rest->next = next;
            hand_over(r, rest);
            return true;
        }
        w = next;
        if (!r->meter.over) (void)rq_meter_spent(&r->meter, r->env.executor, 1);
    }
    return false;
}

static void drain(rq_region *r, bool on_pool)
{
    r->on_pool = on_pool;
    rq_meter_begin(&r->meter);
    for (;;) {
        rq__work *w = r->backlog;
        r->backlog = NULL;
        if (w == NULL)
            w = reversed(atomic_exchange_explicit(&r->queue, TAKEN, memory_order_acq_rel));
        if (run_list(r, w)) return;
        rq__region_account(r);
        rq__work *expected = TAKEN;
        if (atomic_compare_exchange_strong_explicit(&r->queue, &expected, NULL,
                                                    memory_order_acq_rel, memory_order_acquire))
            return;
    }
}

static void enqueue(rq_region *r, rq__work *work, bool on_pool)
{
    /* The work may release the last reference on the region, which must outlive the drain. */
    rq_region_ref(r);
    rq__work *old = atomic_load_explicit(&r->queue, memory_order_relaxed);
    do {
        work->next = old;
    } while (!atomic_compare_exchange_weak_explicit(&r->queue, &old, work, memory_order_acq_rel,
                                                    memory_order_relaxed));
    if (old == NULL) drain(r, on_pool);
    rq_region_unref(r);
}

void rq__region_enqueue(rq_region *r, rq__work *work)
{
    enqueue(r, work, false);
}

void rq__region_enqueue_here(rq_region *r, rq__work *work)
{
    enqueue(r, work, true);
}

typedef struct call {
    rq__work work;
    void (*run)(rq_region *r, void *arg);
    void *arg;
    rq_latch latch;
    rq_executor *executor;
} call;

static void run_call(rq_region *r, rq__work *work)
{
    call *c = RQ_CONTAINER_OF(work, call, work);
    c->run(r, c->arg);
    c->executor->latch_open(&c->latch, RQ_OK); /* the caller's stack may be freed after this */
}

void rq__region_with_token(rq_region *r, void (*run)(rq_region *r, void *arg), void *arg)
{
    rq_executor *ex = r->env.executor;
    call c = {.work.run = run_call, .run = run, .arg = arg, .executor = ex};
    ex->latch_init(ex, &c.latch);
    rq__region_enqueue(r, &c.work);
    rq_wal_push(r->engine->wal, NULL); /* this thread may have drained others' batches */
    (void)ex->latch_wait(&c.latch);    /* opened with RQ_OK only */
    ex->latch_destroy(&c.latch);
}

/* --- gates ------------------------------------------------------------------------------------ */

void rq__gate_init(rq__gate *g)
{
    pthread_mutex_init(&g->lock, NULL);
    g->busy = false;
    g->first = g->last = NULL;
}

void rq__gate_destroy(rq__gate *g)
{
    RQ_ASSERT(!g->busy);
    pthread_mutex_destroy(&g->lock);
}

void rq__gate_enter(rq__gate *g, rq_executor *ex)
{
    rq__gate_waiter w = {0};
    pthread_mutex_lock(&g->lock);
    if (!g->busy) {
        g->busy = true;
        pthread_mutex_unlock(&g->lock);
        return;
    }
    ex->latch_init(ex, &w.latch);
    if (g->last != NULL)
        g->last->next = &w;
    else
        g->first = &w;
    g->last = &w;
    pthread_mutex_unlock(&g->lock);
    (void)ex->latch_wait(&w.latch); /* always opened with RQ_OK; then this thread holds the gate */
    ex->latch_destroy(&w.latch);
}

void rq__gate_leave(rq__gate *g, rq_executor *ex)
{
    pthread_mutex_lock(&g->lock);
    rq__gate_waiter *next = g->first;
    if (next == NULL) {
        g->busy = false;
    } else {
        g->first = next->next;
        if (g->first == NULL) g->last = NULL;
    }
    pthread_mutex_unlock(&g->lock);
    if (next != NULL) ex->latch_open(&next->latch, RQ_OK);
}
