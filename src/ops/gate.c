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

/* Checked before the policy is asked, because a delayed op can no longer be ended here. */
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
    const rq_gate_policy *p = rq__gate_policy(op->seat);
    rq__gate_start(op);
    if (op->repeats || p == NULL) { /* it may have been removed meanwhile */
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
    else if (rc != RQ_OK) {
        op->is_refused = true;
        rq_op_end(op, rc);
    } else
        run(op);
}

static void take_time(rq_op *op, rq_gate_counters *c, uint64_t weight)
{
    uint64_t now = op->seat->executor->now_ns(op->seat->executor);
    uint64_t ns = now > op->started_ns ? now - op->started_ns : 0;
    rq_times_add(&c->times, ns, weight);
    if (op->region != NULL) rq_region_add_time(op->region, (unsigned)op->kind, ns, weight);
}

void rq__gate_after(rq_op *op, uint64_t count)
{
    rq_gate_counters *c = &op->seat->counters[op->kind];
    const rq_gate_policy *p = rq__gate_policy(op->seat);
    if (op->repeats)
        rq__gate_add(&c->ops, (uint64_t)-1);
    else if (op->has_waited)
        take_time(op, c, 1);
    else if (rq_sample_has(c->sample, count))
        take_time(op, c, rq_sample_take(&c->sample, count));
    /* RQ_E_RESULT_TOO_LARGE is not counted as a failure: the client sends the remaining actions
     * again. */
    if (op->rc != RQ_OK && op->rc != RQ_E_RESULT_TOO_LARGE) rq__gate_add(&c->failed, 1);
    if (p != NULL && p->after != NULL) p->after(p->ctx, op);
}

/* --- groups and mutations --------------------------------------------------------------------- */

rq_err rq__gate_enter_group(const rq_op *op, const rq_gate_group *group, rq_error *why)
{
    const rq_gate_policy *p = rq__gate_policy(op->seat);
    return p == NULL || p->enter == NULL || op->repeats ? RQ_OK : p->enter(p->ctx, op, group, why);
}

void rq__gate_leave_group(const rq_op *op, const rq_gate_group *group)
{
    const rq_gate_policy *p = rq__gate_policy(op->seat);
    if (p != NULL && p->leave != NULL && !op->repeats) p->leave(p->ctx, op, group);
}

rq_err rq__gate_ask_write(const rq_op *op, const rq_region *region, const rq_mutation *m,
                          rq_error *why)
{
    const rq_gate_policy *p = rq__gate_policy(op->seat);
    return p == NULL || p->write == NULL ? RQ_OK : p->write(p->ctx, op, region, m, why);
}

/* Lengths of key and value, row and family, timestamp, type, tags. */
#define CELL_BYTES (4 + 4 + 2 + 1 + 8 + 1)

uint64_t rq_mutation_bytes(const rq_mutation *m)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->cell_count; i++) {
        const rq_cell *c = &m->cells[i];
        bytes += CELL_BYTES + m->row.len + c->family_len + c->qualifier_len + c->value_len;
        if (c->tags_len > 0) bytes += 2 + c->tags_len;
    }
    return bytes;
}
