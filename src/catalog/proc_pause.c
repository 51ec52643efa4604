/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pauses all procedures between two steps, so that procedures do not change files meanwhile, and
 * the files are as after a crash between two steps. Running steps are finished first; steps that
 * begin during a pause block their threads of the pool.
 */
#include "catalog/proc_priv.h"

typedef struct rq__pause_waiter {
    struct rq__pause_waiter *next;
    rq_latch latch;
} rq__pause_waiter;

void rq__step_begin(rq__procedures *ps, rq_executor *ex)
{
    pthread_mutex_lock(&ps->lock);
    while (ps->paused) {
        rq__pause_waiter w = {.next = ps->pause_waiters};
        ex->latch_init(ex, &w.latch);
        ps->pause_waiters = &w;
        pthread_mutex_unlock(&ps->lock);
        (void)ex->latch_wait(&w.latch); /* nobody opens it with an error */
        ex->latch_destroy(&w.latch);
        pthread_mutex_lock(&ps->lock);
    }
    ps->stepping++;
    pthread_mutex_unlock(&ps->lock);
}

void rq__step_end(rq__procedures *ps)
{
    pthread_mutex_lock(&ps->lock);
    RQ_ASSERT(ps->stepping > 0);
    rq_latch *quiet = --ps->stepping == 0 ? ps->quiet : NULL;
    if (quiet != NULL) ps->quiet = NULL;
    pthread_mutex_unlock(&ps->lock);
    if (quiet != NULL) quiet->executor->latch_open(quiet, RQ_OK);
}

void rq__step_pause_point(rq__procedures *ps, rq_executor *ex)
{
    pthread_mutex_lock(&ps->lock);
    bool paused = ps->paused;
    pthread_mutex_unlock(&ps->lock);
    if (!paused) return;
    rq__step_end(ps);
    rq__step_begin(ps, ex);
}

void rq__procedures_pause(rq_catalog *c)
{
    rq__procedures *ps = &c->procedures;
    rq_executor *ex = c->env->executor;
    rq_latch quiet;
    ex->latch_init(ex, &quiet);
    pthread_mutex_lock(&ps->lock);
    RQ_ASSERT(!ps->paused);
    ps->paused = true;
    bool wait = ps->stepping > 0;
    if (wait) ps->quiet = &quiet;
    pthread_mutex_unlock(&ps->lock);
    if (wait) (void)ex->latch_wait(&quiet);
    ex->latch_destroy(&quiet);
}

void rq__procedures_go_on(rq_catalog *c)
{
    rq__procedures *ps = &c->procedures;
    pthread_mutex_lock(&ps->lock);
    ps->paused = false;
    rq__pause_waiter *list = ps->pause_waiters;
    ps->pause_waiters = NULL;
    pthread_mutex_unlock(&ps->lock);
    while (list != NULL) {
        rq__pause_waiter *next = list->next; /* on the stack of the thread that goes on */
        list->latch.executor->latch_open(&list->latch, RQ_OK);
        list = next;
    }
}
