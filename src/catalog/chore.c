/* SPDX-License-Identifier: Apache-2.0 */
/* Periodic work of the catalog; see chore.h. */
#include "catalog/chore.h"

#include "catalog/catalog_priv.h"
#include "catalog/proc_priv.h"

static void arm(rq__chore *chore)
{
    const rq_catalog *c = chore->catalog;
    if (chore->interval_ms > 0)
        c->env->executor->timer_arm(c->env->executor, &chore->timer, c->procedures.lane,
                                    (uint64_t)chore->interval_ms * 1000000);
}

static void run(rq_task *task)
{
    rq__chore *chore = RQ_CONTAINER_OF(task, rq__chore, task);
    rq_catalog *c = chore->catalog;
    chore->work(c);
    pthread_mutex_lock(&c->procedures.lock);
    if (!c->procedures.stopping) arm(chore);
    pthread_mutex_unlock(&c->procedures.lock);
    rq__procs_task_done(c); /* the catalog may be freed from now on */
}

static void due(rq_task *task)
{
    rq_timer *timer = RQ_CONTAINER_OF(task, rq_timer, task);
    rq__chore *chore = RQ_CONTAINER_OF(timer, rq__chore, timer);
    rq_executor *ex = chore->catalog->env->executor;
    if (!rq__procedures_task_begin(chore->catalog)) return;
    chore->task = (rq_task){.run = run};
    ex->submit(ex, RQ_POOL_WORK, &chore->task);
}

void rq__chore_start(rq__chore *chore, rq_catalog *c, void (*work)(rq_catalog *c))
{
    chore->catalog = c;
    chore->work = work;
    chore->timer.task.run = due;
    arm(chore);
}

void rq__chore_cancel(rq__chore *chore)
{
    if (chore->catalog == NULL) return;
    rq_executor *ex = chore->catalog->env->executor;
    (void)ex->timer_cancel(ex, &chore->timer);
}
