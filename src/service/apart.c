/* SPDX-License-Identifier: Apache-2.0 */
/* Long requests are translated on a pool; see apart.h. */
#include "service/apart.h"

static void run_done(rq_task *task)
{
    rq__apart *a = RQ_CONTAINER_OF(task, rq__apart, task);
    a->done(a);
}

static void run_work(rq_task *task)
{
    rq__apart *a = RQ_CONTAINER_OF(task, rq__apart, task);
    const rq_call *before = rq_call_take_in_hand(a->call);
    rq_call_decoding(a->call, true);
    a->work(a);
    rq_call_decoding(a->call, false);
    (void)rq_call_take_in_hand(before);
    a->task.run = run_done;
    rq_call_post(a->call, &a->task);
}

void rq__apart_start(rq__apart *a, rq_executor *executor, rq_call *call, void (*work)(rq__apart *a),
                     void (*done)(rq__apart *a))
{
    *a = (rq__apart){.call = call, .work = work, .done = done, .task.run = run_work};
    executor->submit(executor, RQ_POOL_CODEC, &a->task);
}
