/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that take turns on some of a pool's threads; see pool_share.h. */
#include "base/pool_share.h"

#include "base/macros.h"

void rq_pool_share_init(rq_pool_share *s, rq_executor *executor, rq_pool pool, unsigned max)
{
    *s = (rq_pool_share){.executor = executor, .pool = pool, .max = max};
    pthread_mutex_init(&s->lock, NULL);
}

void rq_pool_share_destroy(rq_pool_share *s)
{
    RQ_ASSERT(s->running == 0);
    pthread_mutex_destroy(&s->lock);
}

static void append(rq_pool_share *s, rq_task *task)
{
    task->next = NULL;
    *(s->first == NULL ? &s->first : &s->last->next) = task;
    s->last = task;
}

void rq_pool_share_submit(rq_pool_share *s, rq_task *task)
{
    pthread_mutex_lock(&s->lock);
    bool runs = s->running < s->max;
    if (runs)
        s->running++;
    else
        append(s, task);
    pthread_mutex_unlock(&s->lock);
    if (runs) s->executor->submit(s->executor, s->pool, task);
}

void rq_pool_share_end(rq_pool_share *s)
{
    pthread_mutex_lock(&s->lock);
    rq_task *next = s->first;
    if (next == NULL)
        s->running--;
    else
        s->first = next->next;
    pthread_mutex_unlock(&s->lock);
    if (next != NULL) s->executor->submit(s->executor, s->pool, next);
}

bool rq_pool_share_give_way(rq_pool_share *s, rq_task *task)
{
    pthread_mutex_lock(&s->lock);
    rq_task *next = s->first;
    if (next != NULL) {
        append(s, task);
        s->first = next->next;
    }
    pthread_mutex_unlock(&s->lock);
    if (next != NULL) s->executor->submit(s->executor, s->pool, next);
    return next != NULL;
}
