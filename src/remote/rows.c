/* SPDX-License-Identifier: Apache-2.0 */
/* Gets, changes and batches: each an operation of the client, started under the lock. */
#include "remote/remote_priv.h"

/* An operation of one result. */
typedef struct single {
    rq__wait *wait;
    rq_err rc;
    rq_why *why;
    rq_row *row;
    bool processed;
} single;

static void take_single(rq_op *op, void *ctx, const rq_op_result *r)
{
    single *s = ctx;
    (void)op;
    s->rc = rq__remote_failure(r, s->why);
    s->processed = r->processed;
    if (s->rc == RQ_OK) s->rc = rq__row_of_result(r, &s->row);
    rq__wait_done(s->wait);
}

/* Waits for an operation that was started with `rc`. */
static rq_err finish(rq__remote *r, rq__post *p, single *s, rq_err rc)
{
    if (rc != RQ_OK) return rq_fail(&s->why->error, rc, "%s", rq_err_text(rc));
    rq__remote_wait(r, &p->wait);
    return s->rc;
}

static void prepare(rq__post *p, single *s, rq_why *why)
{
    p->wait.done = false;
    *s = (single){.wait = &p->wait, .why = why};
    rq_op_set_ctx(p->op, s);
}

/* --- get -------------------------------------------------------------------------------------- */

static rq_err get_once(rq__remote *r, rq_table *t, rq__post *p, const rq_getting *get, rq_row **ret,
                       rq_why *why)
{
    rq_client_table *table;
    single s;
    RQ_TRY(rq__remote_table(r, t, &table, why));
    prepare(p, &s, why);
    rq_get g = {.row = get->row, .more = rq_buf_slice(&p->more)};
    rq_err rc = finish(r, p, &s, rq_op_get(p->op, table, &g, take_single));
    if (rc == RQ_OK) *ret = s.row;
    return rc;
}

rq_err rq__remote_get(rq_table *t, rq_slot *slot, const rq_getting *get, rq_row **ret, rq_why *why)
{
    rq__remote *r = rq__remote_of(t->db);
    rq__tries tries = rq__tries_begin(r);
    rq__post *p;
    RQ_TRY(rq__post_of(r, slot, &p, why));
    rq_buf_reset(&p->more);
    if (rq__encode_get(&p->more, &get->read) != RQ_OK) return rq_no_memory(&why->error);
    pthread_mutex_lock(&r->lock);
    rq_err rc;
    do
        rc = get_once(r, t, p, get, ret, why);
    while (rc != RQ_OK && rq__try_again(r, t, &tries, &rc, why));
    pthread_mutex_unlock(&r->lock);
    return rc;
}

/* --- changes ---------------------------------------------------------------------------------- */

/* The changes as the client wants them. Their fields are one behind the other in p->more, which does
 * not move any more when the slices are made; behind them the condition. */
static rq_err make_mutations(rq__post *p, const rq_checking *check, const rq_changing *changes,
                             size_t count, uint64_t nonce, rq_arena *arena, rq_mutate **ret,
                             rq_slice *ret_condition)
{
    rq_mutate *list = rq_arena_alloc(arena, count * sizeof *list);
    size_t *ends = rq_arena_alloc(arena, (count + 1) * sizeof *ends);
    if (list == NULL || ends == NULL) return RQ_E_NO_MEMORY;
    rq_buf_reset(&p->more);
    for (size_t i = 0; i < count; i++) {
        RQ_TRY(rq__encode_change(&p->more, &changes[i]));
        ends[i] = p->more.len;
    }
    if (check != NULL) RQ_TRY(rq__encode_check(&p->more, check, changes[0].row));
    for (size_t i = 0; i < count; i++) {
        size_t begin = i == 0 ? 0 : ends[i - 1];
        rq_slice more = rq_slice_of(p->more.ptr + begin, ends[i] - begin);
        list[i] = rq__mutate_of(&changes[i], begin == ends[i] ? (rq_slice){0} : more, nonce);
    }
    *ret = list;
    *ret_condition =
        check == NULL ? (rq_slice){0}
                      : rq_slice_of(p->more.ptr + ends[count - 1], p->more.len - ends[count - 1]);
    return RQ_OK;
}

static rq_err change_once(rq__remote *r, rq_table *t, rq__post *p, rq_mutate *list, size_t count,
                          rq_slice condition, single *s, rq_why *why)
{
    rq_client_table *table;
    RQ_TRY(rq__remote_table(r, t, &table, why));
    prepare(p, s, why);
    if (count > 1)
        return finish(r, p, s, rq_op_mutate_row(p->op, table, list, count, condition, take_single));
    list[0].condition = condition;
    return finish(r, p, s, rq_op_mutate(p->op, table, &list[0], take_single));
}

rq_err rq__remote_change(rq_table *t, rq_slot *slot, const rq_checking *check, rq_changing *changes,
                         size_t count, bool *ret_done, rq_row **ret, rq_why *why)
{
    rq__remote *r = rq__remote_of(t->db);
    rq__tries tries = rq__tries_begin(r);
    rq_mutate *list;
    rq_slice condition;
    single s;
    rq__post *p;
    RQ_TRY(rq__post_of(r, slot, &p, why));
    pthread_mutex_lock(&r->lock);
    uint64_t nonce = (r->next_nonce += 2);
    rq_err rc = make_mutations(p, check, changes, count, nonce, &slot->arena, &list, &condition);
    if (rc != RQ_OK) {
        pthread_mutex_unlock(&r->lock);
        return rq_no_memory(&why->error);
    }
    do
        rc = change_once(r, t, p, list, count, condition, &s, why);
    while (rc != RQ_OK && rq__try_again(r, t, &tries, &rc, why));
    pthread_mutex_unlock(&r->lock);
    if (rc != RQ_OK) return rc;
    *ret_done = check == NULL || s.processed;
    if (ret != NULL)
        *ret = s.row;
    else
        rq_row_free(s.row);
    return RQ_OK;
}

/* --- batches ---------------------------------------------------------------------------------- */

/* The client's batch has single actions. Atomic ones stand between two batches. */
typedef struct batch_job {
    rq__wait *wait;
    rq__remote *remote;
    rq_table *table;
    rq_acting *actions;
    size_t count;
    uint64_t *nonces;
    rq_outcomes *outcomes;
    uint32_t *sent; /* the action of each of the batch's */
    rq_err rc;      /* of the batch */
    rq_err passing; /* of an action that is to be repeated */
    rq_why passing_why;
    rq_why *why;
} batch_job;

static void take_item(rq_op *op, void *ctx, uint32_t index, rq_op_result *result)
{
    batch_job *j = ctx;
    uint32_t action = j->sent[index];
    const rq_acting *a = &j->actions[action];
    rq_why why;
    rq_row *row = NULL;
    (void)op;
    rq_why_clear(&why);
    rq_err rc = rq__remote_failure(result, &why);
    if (rc == RQ_OK) {
        bool returns =
            a->is_get || ((a->changes[0].kind == RQ_APPEND || a->changes[0].kind == RQ_INCREMENT) &&
                          !a->changes[0].returns_nothing);
        if (returns) rc = rq__row_of_result(result, &row);
        if (rc == RQ_OK) {
            rq_outcome_row(j->outcomes, action, row);
            return;
        }
    }
    if (result->err != RQ_OK && result->retry) {
        j->passing = rc;
        j->passing_why = why;
    } else {
        rq_outcome_fail(j->outcomes, action, rc, &why);
    }
}

static void take_end(rq_op *op, void *ctx, const rq_op_result *result)
{
    batch_job *j = ctx;
    (void)op, (void)result; /* every action has told its own */
    rq__wait_done(j->wait);
}

static rq_err add_action(batch_job *j, rq__post *p, uint32_t index)
{
    const rq_acting *a = &j->actions[index];
    rq_buf_reset(&p->more);
    if (a->is_get) {
        RQ_TRY(rq__encode_get(&p->more, &a->get.read));
        rq_get g = {.row = a->get.row, .more = rq_buf_slice(&p->more)};
        return rq_op_batch_get(p->op, &g);
    }
    RQ_TRY(rq__encode_change(&p->more, &a->changes[0]));
    rq_mutate m = rq__mutate_of(&a->changes[0], rq_buf_slice(&p->more), j->nonces[index]);
    return rq_op_batch_mutate(p->op, &m);
}

static bool is_atomic(const rq_acting *a)
{
    return !a->is_get && a->change_count > 1;
}

/* The pending single actions from `at` up to the next atomic one; *ret_end is that one. */
static rq_err run_singles(batch_job *j, rq__post *p, rq_client_table *table, size_t at,
                          size_t *ret_end)
{
    uint32_t n = 0;
    rq_op_batch_begin(p->op, table);
    for (; at < j->count && !is_atomic(&j->actions[at]); at++) {
        if (rq_outcome_is_set(j->outcomes, at)) continue;
        RQ_TRY(add_action(j, p, (uint32_t)at));
        j->sent[n++] = (uint32_t)at;
    }
    *ret_end = at;
    if (n == 0) return RQ_OK;
    p->wait.done = false;
    j->wait = &p->wait;
    rq_op_set_ctx(p->op, j);
    RQ_TRY(rq_op_batch_run(p->op, take_item, take_end));
    rq__remote_wait(j->remote, &p->wait);
    return RQ_OK;
}

static void run_atomic(batch_job *j, rq__post *p, rq_arena *arena, size_t at)
{
    const rq_acting *a = &j->actions[at];
    rq_mutate *list;
    rq_slice condition;
    single s = {0};
    rq_why why;
    rq_why_clear(&why);
    rq_err rc = make_mutations(p, NULL, a->changes, a->change_count, j->nonces[at], arena, &list,
                               &condition);
    if (rc == RQ_OK)
        rc = change_once(j->remote, j->table, p, list, a->change_count, condition, &s, &why);
    if (rc == RQ_OK) {
        rq_row_free(s.row);
        rq_outcome_row(j->outcomes, at, NULL);
    } else if (why.is_remote && why.retryable) {
        j->passing = rc;
        j->passing_why = why;
    } else {
        rq_outcome_fail(j->outcomes, at, rc, &why);
    }
}

static rq_err batch_once(batch_job *j, rq__post *p, rq_arena *arena, rq_why *why)
{
    rq_client_table *table;
    j->passing = RQ_OK;
    RQ_TRY(rq__remote_table(j->remote, j->table, &table, why));
    for (size_t at = 0; at < j->count; at++) {
        rq_err rc = run_singles(j, p, table, at, &at);
        if (rc != RQ_OK) return rq_fail(&why->error, rc, "%s", rq_err_text(rc));
        if (at < j->count && !rq_outcome_is_set(j->outcomes, at)) run_atomic(j, p, arena, at);
    }
    if (j->passing != RQ_OK) *why = j->passing_why;
    return j->passing;
}

rq_err rq__remote_batch(rq_table *t, rq_slot *slot, rq_acting *actions, size_t count,
                        rq_outcomes *ret, rq_why *why)
{
    rq__remote *r = rq__remote_of(t->db);
    rq__tries tries = rq__tries_begin(r);
    batch_job *j = rq_arena_calloc(&slot->arena, 1, sizeof *j);
    rq__post *p;
    RQ_TRY(rq__post_of(r, slot, &p, why));
    if (j == NULL) return rq_no_memory(&why->error);
    *j = (batch_job){.remote = r, .table = t, .actions = actions, .count = count, .outcomes = ret};
    j->sent = rq_arena_alloc(&slot->arena, count * sizeof *j->sent);
    j->nonces = rq_arena_alloc(&slot->arena, count * sizeof *j->nonces);
    if (j->sent == NULL || j->nonces == NULL) return rq_no_memory(&why->error);
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < count; i++)
        j->nonces[i] = (r->next_nonce += 2);
    rq_err rc;
    do
        rc = batch_once(j, p, &slot->arena, why);
    while (rc != RQ_OK && rq__try_again(r, t, &tries, &rc, why));
    pthread_mutex_unlock(&r->lock);
    return rc;
}
