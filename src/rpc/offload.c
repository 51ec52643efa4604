/* SPDX-License-Identifier: Apache-2.0 */
/* Work of a call that would block its event loop for long: decoding a large message, unpacking a
 * cell block, compressing a large response. It runs on a pool of its own, RQ_POOL_CODEC, so that
 * clients with slow compression only wait for each other. */
#include "rpc/rpc_priv.h"

static void run_done(rq_task *task)
{
    rq_offload *o = RQ_CONTAINER_OF(task, rq_offload, task);
    o->done(o);
}

static void run_work(rq_task *task)
{
    rq_offload *o = RQ_CONTAINER_OF(task, rq_offload, task);
    o->work(o);
    o->task.run = run_done;
    rq_lane_post(rq_loop_lane(o->call->call.loop), &o->task);
}

bool rq__call_may_offload(const rq_call_private *p)
{
    return p->conn->worker->server->options.executor != NULL;
}

void rq__call_offload(rq_call_private *p, rq_offload *o, void (*work)(rq_offload *o),
                      void (*done)(rq_offload *o))
{
    rq_executor *executor = p->conn->worker->server->options.executor;
    *o = (rq_offload){.task.run = run_work, .call = p, .work = work, .done = done};
    executor->submit(executor, RQ_POOL_CODEC, &o->task);
}
