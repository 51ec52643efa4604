/* SPDX-License-Identifier: Apache-2.0 */
/* Gets and changes of a row: one operation of the client for each attempt. */
#include "remote/remote_priv.h"

static rq__single *single_of(rq__job *j)
{
    return RQ_CONTAINER_OF(j, rq__single, job);
}

static void take_result(rq_op *op, void *ctx, const rq_op_result *result)
{
    rq__single *s = ctx;
    (void)op;
    rq_err rc = rq__remote_failure(result, s->job.why);
    s->processed = result->processed;
    if (rc == RQ_OK) {
        rc = rq__row_of_result(result, NULL, &s->row);
        if (rc != RQ_OK) (void)rq_fail(&s->job.why->error, rc, "%s", rq_err_text(rc));
    }
    rq__job_ended(&s->job, rc);
}

static rq_err attempt(rq__job *j, rq_client_table *table)
{
    rq__single *s = single_of(j);
    rq_op *op = s->post->op;
    rq_op_set_ctx(op, s);
    rq_op_set_until(op, j->until_ns);
    if (s->get != NULL) {
        rq_get g = {.row = s->get->row,
                    .priority = s->get->read.priority,
                    .replica = s->get->read.replica,
                    .any_replica = s->get->read.is_timeline && s->get->read.replica == 0,
                    .more = rq_buf_slice(&s->post->more)};
        return rq_op_get(op, table, &g, take_result);
    }
    if (s->count > 1)
        return rq_op_mutate_row(op, table, s->list, s->count, s->condition, take_result);
    s->list[0].condition = s->condition;
    return rq_op_mutate(op, table, &s->list[0], take_result);
}

static rq__single *prepare(rq__remote *r, rq_table *t, rq__post *p, rq_arena *arena, rq_why *why)
{
    rq__single *s = &p->single;
    *s = (rq__single){
        .post = p,
        .job = {.remote = r, .table = t, .arena = arena, .attempt = attempt, .why = why}};
    return s;
}

static rq_err prepare_get(rq__single *s, const rq_getting *get)
{
    s->get = get;
    rq_buf_reset(&s->post->more);
    return rq__encode_get(&s->post->more, &get->read);
}

rq_err rq__remote_get(rq_table *t, rq_slot *slot, const rq_getting *get, rq_row **ret, rq_why *why)
{
    rq__remote *r = rq__remote_of(t->db);
    rq__post *p;
    RQ_TRY(rq__post_of(r, slot, &p, why));
    rq__single *s = prepare(r, t, p, &slot->arena, why);
    if (prepare_get(s, get) != RQ_OK) return rq_no_memory(&why->error);
    RQ_TRY(rq__job_run(&s->job, &p->wait));
    *ret = s->row;
    return RQ_OK;
}

/* --- changes ---------------------------------------------------------------------------------- */

rq_err rq__make_mutations(rq_buf *more, const rq_checking *check, const rq_changing *changes,
                          size_t count, uint64_t nonce, rq_arena *arena, rq_mutate **ret,
                          rq_slice *ret_condition)
{
    rq_mutate *list = rq_arena_alloc(arena, count * sizeof *list);
    size_t *ends = rq_arena_alloc(arena, (count + 1) * sizeof *ends);
    if (list == NULL || ends == NULL) return RQ_E_NO_MEMORY;
    rq_buf_reset(more);
    for (size_t i = 0; i < count; i++) {
        RQ_TRY(rq__encode_change(more, &changes[i]));
        ends[i] = more->len;
    }
    if (check != NULL) RQ_TRY(rq__encode_check(more, check, changes[0].row));
    for (size_t i = 0; i < count; i++) { /* the buffer does not move any more */
        size_t begin = i == 0 ? 0 : ends[i - 1];
        rq_slice fields = rq_slice_of(more->ptr + begin, ends[i] - begin);
        list[i] = rq__mutate_of(&changes[i], begin == ends[i] ? (rq_slice){0} : fields, nonce);
    }
    *ret = list;
    *ret_condition = check == NULL
                         ? (rq_slice){0}
                         : rq_slice_of(more->ptr + ends[count - 1], more->len - ends[count - 1]);
    return RQ_OK;
}

static rq_err prepare_changes(rq__single *s, const rq_checking *check, const rq_changing *changes,
                              size_t count, uint64_t nonce)
{
    s->count = count;
    return rq__make_mutations(&s->post->more, check, changes, count, nonce, s->job.arena, &s->list,
                              &s->condition);
}

rq_err rq__remote_change(rq_table *t, rq_slot *slot, const rq_checking *check, rq_changing *changes,
                         size_t count, bool *ret_done, rq_row **ret, rq_why *why)
{
    rq__remote *r = rq__remote_of(t->db);
    rq__post *p;
    RQ_TRY(rq__post_of(r, slot, &p, why));
    rq__single *s = prepare(r, t, p, &slot->arena, why);
    pthread_mutex_lock(&r->lock);
    uint64_t nonce = (r->next_nonce += 2);
    pthread_mutex_unlock(&r->lock);
    if (prepare_changes(s, check, changes, count, nonce) != RQ_OK) return rq_no_memory(&why->error);
    RQ_TRY(rq__job_run(&s->job, &p->wait));
    *ret_done = check == NULL || s->processed;
    if (ret != NULL)
        *ret = s->row;
    else
        rq_row_free(s->row);
    return RQ_OK;
}

/* --- asynchronous ----------------------------------------------------------------------------- */

static void complete(rq__job *j)
{
    rq__single *s = single_of(j);
    rq_call *call = j->owner;
    call->done = !call->has_check || s->processed;
    if (call->kind == RQ_CALL_GET || call->returns_row)
        call->row = s->row;
    else
        rq_row_free(s->row);
    rq__post_give_back(j->remote, s->post); /* used again by the next call, under the lock */
    rq__job_complete(j);
}

rq_err rq__single_start(rq__remote *r, rq_call *call)
{
    rq__post *p;
    RQ_TRY(rq__post_take(r, &p));
    rq__single *s = prepare(r, call->table, p, &call->arena, &call->why);
    rq_err rc = call->kind == RQ_CALL_GET
                    ? prepare_get(s, &call->get)
                    : prepare_changes(s, call->has_check ? &call->check : NULL, call->changes,
                                      call->change_count, r->next_nonce += 2);
    if (rc == RQ_OK)
        rq__job_start(&s->job, call, complete);
    else
        rq__post_give_back(r, p);
    return rc;
}
