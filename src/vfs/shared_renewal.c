/* SPDX-License-Identifier: Apache-2.0 */
/* The timer that renews the lease of a tenure on real time, four times in each lease. */
#include "vfs/shared_priv.h"

#define RENEWAL_NS (RQ_SHARED_LEASE_NS / 4)

static void arm(rq__renewals *r)
{
    r->executor->timer_arm(r->executor, &r->timer, r->lane, RENEWAL_NS);
}

static void renew_now(rq_task *task)
{
    rq__renewals *r = RQ_CONTAINER_OF(RQ_CONTAINER_OF(task, rq_timer, task), rq__renewals, timer);
    if (r->stopping) return;
    /* After an error the lease runs out, unless a later renewal succeeds. */
    rq_err rc = r->renew(r);
    if (rc != RQ_E_SERVER_ABORTED) arm(r);
}

static void stop_renewals(rq_task *task)
{
    rq__renewals *r = RQ_CONTAINER_OF(task, rq__renewals, stop);
    r->stopping = true;
    bool cancelled = r->executor->timer_cancel(r->executor, &r->timer);
    (void)cancelled; /* else it is behind this task, and sees `stopping` */
    r->executor->latch_open(&r->stopped, RQ_OK);
}

rq_err rq__renewals_open(rq__renewals *r, rq_executor *executor,
                         rq_err (*renew)(rq__renewals *renewals))
{
    *r = (rq__renewals){.executor = executor, .renew = renew};
    r->timer.task.run = renew_now;
    r->stop.run = stop_renewals;
    return executor->lane_new(executor, "rq-tenure", &r->lane);
}

void rq__renewals_begin(rq__renewals *r)
{
    arm(r);
}

void rq__renewals_close(rq__renewals *r)
{
    rq_executor *ex = r->executor;
    if (r->lane == NULL) return;
    /* The lane is about to be freed: not even the timer may post to it any more. */
    ex->latch_init(ex, &r->stopped);
    rq_lane_post(r->lane, &r->stop);
    (void)ex->latch_wait(&r->stopped);
    ex->latch_destroy(&r->stopped);
    ex->lane_free(ex, r->lane);
    r->lane = NULL;
}
