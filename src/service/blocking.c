/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the administrative services that block, on RQ_POOL_CALL; see admin_priv.h. */
#include "service/admin_priv.h"

#include <string.h>

/* Calls of one method that run at the same time. A client can send any number, and each may wait for long: for a flush,
 * for a lock, for a disk. The other methods, and bulk loads, need threads of the same pool. The limit is one more than
 * the number of calls that may wait for procedures (hbck.c) or for a round of quotas (quota/set.c), so that one more
 * call of these methods runs and is refused with the reason. */
#define THREADS_OF_METHOD 5

static void finish_blocking(rq_task *task)
{
    rq__blocking *b = RQ_CONTAINER_OF(task, rq__blocking, task);
    (void)rq_call_take_in_hand(b->call);
    if (b->rc != RQ_OK)
        rq_call_fail_why(b->call, b->rc, &b->why);
    else
        b->answer(b);
    (void)rq_call_take_in_hand(NULL);
}

static void run_blocking(rq_task *task)
{
    rq__blocking *b = RQ_CONTAINER_OF(task, rq__blocking, task);
    (void)rq_call_take_in_hand(b->call);
    b->rc = b->work(b);
    (void)rq_call_take_in_hand(NULL);
    b->task.run = finish_blocking;
    rq_pool_share_end(b->share);
    rq_call_post(b->call, &b->task);
}

/* The method's. A method has one share on both ports; methods beyond the table's size use one together. */
static rq_pool_share *share_of(rq_admin_services *s, const char *method)
{
    rq__blocking_shares *all = &s->blocking;
    size_t i = 0;
    pthread_mutex_lock(&all->lock);
    while (i < all->count && strcmp(all->methods[i], method) != 0)
        i++;
    if (i == RQ__BLOCKING_METHODS) i--;
    if (i == all->count) {
        all->methods[i] = method;
        rq_pool_share_init(&all->list[i], s->env.executor, RQ_POOL_CALL, THREADS_OF_METHOD);
        all->count++;
    }
    pthread_mutex_unlock(&all->lock);
    return &all->list[i];
}

void rq__blocking_start(rq__blocking *b, rq_admin_services *s, rq_call *call,
                        rq_err (*work)(rq__blocking *b), void (*answer)(rq__blocking *b))
{
    b->services = s;
    b->call = call;
    b->rc = RQ_OK;
    b->why.code = RQ_OK;
    b->work = work;
    b->answer = answer;
    b->task.run = run_blocking;
    b->share = share_of(s, call->method->name);
    rq_pool_share_submit(b->share, &b->task);
}

void rq__blocking_shares_init(rq__blocking_shares *all)
{
    pthread_mutex_init(&all->lock, NULL);
}

void rq__blocking_shares_destroy(rq__blocking_shares *all)
{
    for (size_t i = 0; i < all->count; i++)
        rq_pool_share_destroy(&all->list[i]);
    pthread_mutex_destroy(&all->lock);
}
