/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: all actions that have no outcome yet are one batch of the client, atomic ones among them. An action with a
 * temporary error gets no outcome, and is part of the next attempt. */
#include "remote/remote_priv.h"

typedef struct batch_job {
    rq__job job;
    rq__post *post;
    rq_acting *actions;
    size_t count;
    uint64_t *nonces;
    rq_outcomes *outcomes;
    uint32_t *sent; /* for each action in the client's batch, its index in the whole batch */
    uint32_t sent_count;
    rq_err passing; /* error of an action that will be repeated */
    rq_why passing_why;
    rq_why why; /* of the current operation */
} batch_job;

static bool returns_row(const rq_acting *a)
{
    const rq_changing *c = a->changes;
    return a->is_get || ((c->kind == RQ_APPEND || c->kind == RQ_INCREMENT) && !c->returns_nothing);
}

static void fail_action(batch_job *j, size_t action, rq_err rc, bool passes, const rq_why *why)
{
    if (passes) {
        j->passing = rc;
        j->passing_why = *why;
    } else {
        rq_outcome_fail(j->outcomes, action, rc, why);
    }
}

static void take_item(rq_op *op, void *ctx, uint32_t index, rq_op_result *result)
{
    batch_job *j = ctx;
    uint32_t action = j->sent[index];
    rq_row *row = NULL;
    (void)op;
    rq_why_clear(&j->why);
    rq_err rc = rq__remote_failure(result, &j->why);
    if (rc == RQ_OK && returns_row(&j->actions[action])) rc = rq__row_of_result(result, NULL, &row);
    if (rc == RQ_OK)
        rq_outcome_row(j->outcomes, action, row,
                       j->actions[action].check == NULL || result->processed);
    else
        fail_action(j, action, rc, result->err != RQ_OK && result->retry, &j->why);
}

static void end_attempt(batch_job *j)
{
    if (j->passing != RQ_OK) *j->job.why = j->passing_why;
    rq__job_ended(&j->job, j->passing);
}

/* Actions that have told nothing failed with the batch. */
static void take_batch(rq_op *op, void *ctx, const rq_op_result *result)
{
    batch_job *j = ctx;
    (void)op;
    for (uint32_t i = 0; result->err != RQ_OK && j->passing == RQ_OK && i < j->sent_count; i++) {
        if (rq_outcome_is_set(j->outcomes, j->sent[i])) continue;
        rq_why_clear(&j->why);
        rq_err rc = rq__remote_failure(result, &j->why);
        fail_action(j, j->sent[i], rc, true, &j->why);
    }
    end_attempt(j);
}

static rq_err add_changes(batch_job *j, size_t index)
{
    const rq_acting *a = &j->actions[index];
    rq_mutate *list;
    rq_slice condition;
    RQ_TRY(rq__make_mutations(&j->post->more, a->check, a->changes, a->change_count,
                              j->nonces[index], j->job.arena, &list, &condition));
    return rq_op_batch_atomic(j->post->op, list, a->change_count, condition);
}

static rq_err add_action(batch_job *j, size_t index)
{
    const rq_acting *a = &j->actions[index];
    rq_buf *more = &j->post->more;
    if (rq_acting_is_atomic(a)) return add_changes(j, index);
    rq_buf_reset(more);
    if (a->is_get) {
        RQ_TRY(rq__encode_get(more, &a->get.read));
        rq_get g = {
            .row = a->get.row, .priority = a->get.read.priority, .more = rq_buf_slice(more)};
        return rq_op_batch_get(j->post->op, &g);
    }
    RQ_TRY(rq__encode_change(more, &a->changes[0]));
    rq_mutate m = rq__mutate_of(&a->changes[0], rq_buf_slice(more), j->nonces[index]);
    return rq_op_batch_mutate(j->post->op, &m);
}

/* --- an attempt ------------------------------------------------------------------------------- */

static rq_err attempt(rq__job *job, rq_client_table *table)
{
    batch_job *j = RQ_CONTAINER_OF(job, batch_job, job);
    rq_op *op = j->post->op;
    j->passing = RQ_OK;
    j->sent_count = 0;
    rq_op_set_until(op, job->until_ns);
    rq_op_set_ctx(op, j);
    rq_op_batch_begin(op, table);
    for (size_t i = 0; i < j->count; i++) {
        if (rq_outcome_is_set(j->outcomes, i)) continue;
        RQ_TRY(add_action(j, i));
        j->sent[j->sent_count++] = (uint32_t)i;
    }
    return rq_op_batch_run(op, take_item, take_batch);
}

/* Makes the job, in the arena. */
static rq_err make_job(rq__remote *r, rq__post *p, rq_table *t, rq_arena *arena, rq_acting *actions,
                       size_t count, batch_job **ret)
{
    batch_job *j = rq_arena_calloc(arena, 1, sizeof *j);
    uint32_t *sent = rq_arena_alloc(arena, count * sizeof *sent);
    uint64_t *nonces = rq_arena_alloc(arena, count * sizeof *nonces);
    if (j == NULL || sent == NULL || nonces == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        nonces[i] = (r->next_nonce += 2);
    j->job = (rq__job){.remote = r, .table = t, .arena = arena, .attempt = attempt};
    j->post = p;
    j->actions = actions;
    j->count = count;
    j->sent = sent;
    j->nonces = nonces;
    *ret = j;
    return RQ_OK;
}

rq_err rq__remote_batch(rq_table *t, rq_slot *slot, rq_acting *actions, size_t count,
                        rq_outcomes *ret, rq_why *why)
{
    rq__remote *r = rq__remote_of(t->db);
    batch_job *j;
    rq__post *p;
    RQ_TRY(rq__post_of(r, slot, &p, why));
    pthread_mutex_lock(&r->lock);
    rq_err rc = make_job(r, p, t, &slot->arena, actions, count, &j);
    pthread_mutex_unlock(&r->lock);
    if (rc != RQ_OK) return rq_no_memory(&why->error);
    j->outcomes = ret;
    j->job.why = why;
    return rq__job_run(&j->job, &p->wait);
}

static void complete(rq__job *job)
{
    batch_job *j = RQ_CONTAINER_OF(job, batch_job, job);
    rq__post_give_back(job->remote, j->post);
    rq__job_complete(job);
}

rq_err rq__batch_start(rq__remote *r, rq_call *call)
{
    batch_job *j;
    rq__post *p;
    RQ_TRY(rq__post_take(r, &p));
    rq_err rc = make_job(r, p, call->table, &call->arena, call->actions, call->action_count, &j);
    if (rc == RQ_OK) {
        j->outcomes = call->outcomes;
        rq__job_start(&j->job, call, complete);
    } else {
        rq__post_give_back(r, p);
    }
    return rc;
}
