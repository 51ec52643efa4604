/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the gate that few ops pass: delays, refusals, times; see gate.h. */
#include "ops/gate.h"

#include "region/table_times.h"

_Static_assert(RQ_OP_KINDS <= RQ_TABLE_TIMES_KINDS, "every kind has a histogram");

static void retry(rq_task *task)
{
    rq_op *op = RQ_CONTAINER_OF(task, rq_op, task);
    rq__gate_ask(op, op->run);
}

static void unpin_region(void *thing)
{
    rq_op *op = thing;
    if (op->is_pinned) rq_region_unref(op->region);
}

/* Before the policy is asked: a delayed op can no longer be ended here. */
static rq_err prepare_delay(rq_op *op)
{
    bool lasts = op->seat->lane == NULL || op->region == NULL || op->has_waited;
    return lasts ? RQ_OK : rq_arena_link(op->arena, unpin_region, op);
}

/* The read section ends before the op runs. */
static void pin_region(rq_op *op)
{
    op->has_waited = true;
    if (op->region == NULL || op->is_pinned) return;
    rq_region_ref(op->region);
    op->is_pinned = true;
}

void rq__gate_ask(rq_op *op, void (*run)(rq_op *op))
{
    const rq_gate_policy *p = op->seat->policy;
    if (op->repeats) {
        run(op);
        return;
    }
    rq_err rc = prepare_delay(op);
    op->run = run;
    op->task.run = retry;
    if (rc == RQ_OK && p->before != NULL)
        rc = p->before(p->ctx, op, op->seat->lane == NULL ? NULL : &op->task);
    if (rc == RQ_E_AGAIN)
        pin_region(op);
    else if (rc != RQ_OK)
        rq_op_end(op, rc);
    else
        run(op);
}

static void take_time(rq_op *op, rq_gate_counters *c, uint64_t weight)
{
    uint64_t now = op->seat->executor->now_ns(op->seat->executor);
    uint64_t ns = now > op->started_ns ? now - op->started_ns : 0;
    rq_times_add(&c->times, ns, weight);
    if (op->region != NULL) rq_region_add_time(op->region, (unsigned)op->kind, ns, weight);
}

void rq__gate_settle(rq_op *op, uint64_t count)
{
    rq_gate_counters *c = &op->seat->counters[op->kind];
    const rq_gate_policy *p = op->seat->policy;
    if (op->repeats)
        rq__gate_add(&c->ops, (uint64_t)-1);
    else if (op->has_waited)
        take_time(op, c, 1);
    else if (rq_sample_has(c->sample, count))
        take_time(op, c, rq_sample_take(&c->sample, count));
    /* RQ_E_RESULT_TOO_LARGE is no failure: the client repeats the actions that are left. */
    if (op->rc != RQ_OK && op->rc != RQ_E_RESULT_TOO_LARGE) rq__gate_add(&c->failed, 1);
    if (p != NULL && p->after != NULL) p->after(p->ctx, op);
}
