/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches. Each attempt takes the actions that have no outcome yet, sorted by region and, within a
 * region, in their order, and runs them as one op of groups:
 *
 *    region 1: [get, put, put] [row mutations, atomic] [put]    region 2: [increment, get] …
 *
 * An action with a temporary error gets no outcome yet, and is part of the next attempt.
 */
#include "embed/embed_priv.h"

#include "ops/batch.h"

#include <stdlib.h>

typedef struct group {
    size_t begin, end; /* in `order` */
    bool is_atomic;
} group;

typedef struct batch_job {
    rq_op_batch batch;
    rq__embed *embed;
    rq__embed_seat *seat;
    rq_table *table;
    rq_arena *arena;
    rq_acting *actions;
    uint64_t *nonces; /* of each action, kept for its repetitions; 0: none */
    rq_outcomes *outcomes;
    size_t count;
    /* Of this attempt. */
    uint32_t *order;    /* pending actions */
    uintptr_t *regions; /* by action: the address of its region, only compared */
    rq_batch_part *parts;
    size_t pending;
    group *groups;
    size_t group_count;
    rq_err passing; /* error of an action that will be repeated */
    rq_error passing_why;
} batch_job;

static batch_job *job_of(rq_op_batch *b)
{
    return RQ_CONTAINER_OF(b, batch_job, batch);
}

static void fail_action(batch_job *j, uint32_t index, rq_err rc, const rq_error *why)
{
    if (rq__may_pass(rc)) {
        j->passing = rc;
        if (why != NULL)
            j->passing_why = *why;
        else
            rq_error_clear(&j->passing_why);
        return;
    }
    rq_why w;
    rq_why_clear(&w);
    if (why != NULL) w.error = *why;
    rq_outcome_fail(j->outcomes, index, rc, &w);
}

/* --- the batch's callbacks -------------------------------------------------------------------- */

static const rq_changing *change_of(const rq_batch_part *p)
{
    return p->request;
}

static rq_err enter(rq_op_batch *b)
{
    batch_job *j = job_of(b);
    const group *g = &j->groups[b->group_at];
    rq_error why;
    rq_error_clear(&why);
    const rq_acting *first = &j->actions[j->order[g->begin]];
    rq_err rc =
        rq__locate(j->embed, j->seat, j->table,
                   first->is_get ? first->get.row : first->changes[0].row, &b->region, &why);
    if (rc != RQ_OK) {
        for (size_t i = g->begin; i < g->end; i++)
            fail_action(j, j->order[i], rc, &why);
        b->region = NULL;
        return RQ_OK;
    }
    b->is_atomic = g->is_atomic;
    b->has_condition = first->check != NULL;
    b->group = (void *)(uintptr_t)g;
    b->parts = j->parts + g->begin;
    b->part_count = g->end - g->begin;
    if (!g->is_atomic) return RQ_OK;
    /* The parts of an atomic group are its changes. */
    rq_batch_part *parts = rq_arena_alloc(j->arena, first->change_count * sizeof *parts);
    if (parts == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < first->change_count; i++)
        parts[i] = (rq_batch_part){.kind = RQ_PART_COLLECTED,
                                   .index = j->order[g->begin],
                                   .row = first->changes[i].row,
                                   .request = &first->changes[i]};
    b->parts = parts;
    b->part_count = first->change_count;
    return RQ_OK;
}

static rq_err decode_get(rq_op_batch *b, const rq_batch_part *p, rq_scan *ret, rq_error *why)
{
    const rq_getting *get = p->request;
    return rq__getting_to_scan(get, b->region, job_of(b)->arena, ret, why);
}

static rq_err decode_write(rq_op_batch *b, const rq_batch_part *p, rq_mutation *ret,
                           uint64_t *ret_nonce, rq_error *why)
{
    batch_job *j = job_of(b);
    if (j->nonces[p->index] != 0) *ret_nonce = j->nonces[p->index];
    return rq__changing_to_mutation(change_of(p), b->region, j->arena, ret, why);
}

static rq_err add_condition(batch_job *j, const rq_acting *a, rq_row_op *ret, rq_error *why)
{
    rq_condition *condition = rq_arena_alloc(j->arena, sizeof *condition);
    if (condition == NULL) return rq_no_memory(why);
    ret->conditions = condition;
    ret->condition_count = 1;
    return rq__checking_to_condition(a->check, a->changes[0].row, j->arena, condition, why);
}

static rq_err decode_atomic(rq_op_batch *b, rq_row_op *ret, rq_error *why)
{
    batch_job *j = job_of(b);
    rq_mutation *list = rq_arena_alloc(j->arena, b->part_count * sizeof *list);
    if (list == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < b->part_count; i++)
        RQ_TRY(
            rq__changing_to_mutation(change_of(&b->parts[i]), b->region, j->arena, &list[i], why));
    const rq_acting *a = &j->actions[b->parts[0].index];
    ret->mutations = list;
    ret->mutation_count = b->part_count;
    ret->nonce = j->nonces[b->parts[0].index];
    ret->nonce_group = ret->nonce == 0 ? 0 : b->nonce_group;
    return a->check == NULL ? RQ_OK : add_condition(j, a, ret, why);
}

static void skip(rq_op_batch *b, const rq_batch_part *p)
{
    (void)b, (void)p; /* nothing is decoded ahead */
}

static rq_err other(rq_op_batch *b, const rq_batch_part *p, rq_error *why)
{
    (void)b, (void)p;
    return rq_fail(why, RQ_E_UNSUPPORTED, "unknown kind of action");
}

static rq_err got(rq_op_batch *b, const rq_batch_part *p, uint32_t cells)
{
    batch_job *j = job_of(b);
    const rq_getting *get = p->request;
    rq_slice block =
        rq_slice_of(b->out->bytes.ptr + b->get_mark.len, b->out->bytes.len - b->get_mark.len);
    rq_row *row;
    bool exists = get->read.existence_only;
    RQ_TRY(rq_row_of_block(exists ? (rq_slice){0} : block, exists ? 0 : cells, NULL, &row));
    row->exists = cells > 0;
    rq_outcome_row(j->outcomes, p->index, row, true);
    rq_cellblock_truncate(b->out, b->get_mark);
    return RQ_OK;
}

static rq_err end_write(rq_op_batch *b, uint32_t index, const rq_row_op *op, rq_err rc,
                        const rq_error *why)
{
    batch_job *j = job_of(b);
    const rq_changing *c = j->actions[index].changes;
    rq_row *row = NULL;
    if (rc != RQ_OK) {
        fail_action(j, index, rc, why);
        return RQ_OK;
    }
    bool returns = (c->kind == RQ_APPEND || c->kind == RQ_INCREMENT) && !c->returns_nothing;
    if (returns)
        RQ_TRY(rq_row_of_block(rq_buf_slice(&op->result.bytes), op->result.count, NULL, &row));
    rq_outcome_row(j->outcomes, index, row, op->processed);
    return RQ_OK;
}

static rq_err written(rq_op_batch *b, void *g, uint32_t index, rq_row_op *op, rq_err rc,
                      const rq_error *why)
{
    (void)g;
    return end_write(b, index, op, rc, why);
}

static rq_err atomic_written(rq_op_batch *b, void *g, const rq_row_op *op)
{
    batch_job *j = job_of(b);
    return end_write(b, j->order[((group *)g)->begin], op, op->rc, op->why);
}

static rq_err failed(rq_op_batch *b, const rq_batch_part *p, rq_err rc, const rq_error *why)
{
    fail_action(job_of(b), p->index, rc, why);
    return RQ_OK;
}

static rq_err group_failed(rq_op_batch *b, rq_err rc, const rq_error *why)
{
    batch_job *j = job_of(b);
    const group *g = &j->groups[b->group_at];
    for (size_t i = g->begin; i < g->end; i++)
        fail_action(j, j->order[i], rc, why);
    return RQ_OK;
}

static const rq_batch_caller callbacks = {
    .enter = enter,
    .get = decode_get,
    .write = decode_write,
    .atomic = decode_atomic,
    .skip = skip,
    .other = other,
    .got = got,
    .written = written,
    .atomic_written = atomic_written,
    .failed = failed,
    .group_failed = group_failed,
};

/* --- an attempt ------------------------------------------------------------------------------- */

static rq_slice row_of(const rq_acting *a)
{
    return a->is_get ? a->get.row : a->changes[0].row;
}

static int by_region(const void *a, const void *b, void *ctx)
{
    const uintptr_t *regions = ctx;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (regions[x] != regions[y]) return regions[x] < regions[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

static rq_batch_part_kind part_kind(const rq_acting *a)
{
    if (a->is_get) return RQ_PART_GET;
    rq_change_kind kind = a->changes[0].kind;
    return kind == RQ_PUT || kind == RQ_DELETE ? RQ_PART_COLLECTED : RQ_PART_ALONE;
}

/* REQUIRES: a read section. */
static void plan(batch_job *j)
{
    j->pending = j->group_count = 0;
    for (uint32_t i = 0; i < j->count; i++) {
        rq_error why;
        rq_region *region;
        if (rq_outcome_is_set(j->outcomes, i)) continue;
        rq_error_clear(&why);
        rq_err rc = rq__locate(j->embed, j->seat, j->table, row_of(&j->actions[i]), &region, &why);
        if (rc != RQ_OK) {
            fail_action(j, i, rc, &why);
            continue;
        }
        j->regions[i] = (uintptr_t)region;
        j->order[j->pending++] = i;
    }
    qsort_r(j->order, j->pending, sizeof *j->order, by_region, j->regions);
    for (size_t i = 0; i < j->pending; i++) {
        uint32_t at = j->order[i];
        const rq_acting *a = &j->actions[at];
        bool is_atomic = rq_acting_is_atomic(a);
        group *last = j->group_count == 0 ? NULL : &j->groups[j->group_count - 1];
        j->parts[i] = (rq_batch_part){.kind = part_kind(a),
                                      .index = at,
                                      .row = row_of(a),
                                      .request = a->is_get ? (const void *)&a->get : a->changes};
        if (last != NULL && !is_atomic && !last->is_atomic &&
            j->regions[j->order[last->begin]] == j->regions[at])
            last->end = i + 1;
        else
            j->groups[j->group_count++] = (group){i, i + 1, is_atomic};
    }
}

static rq_err batch_once(batch_job *j, rq_slot *slot, rq__embed_seat *s, rq_error *why)
{
    rq_op_batch *b = &j->batch;
    rq_err rc = RQ_OK;
    memset(b, 0, sizeof *b);
    rq_cellblock_reset(&s->out);
    j->passing = RQ_OK;
    rq__seat_enter(j->embed, s);
    plan(j);
    if (j->group_count > 0) {
        b->table = &callbacks;
        b->group_count = j->group_count;
        b->nonce_group = j->embed->nonce_group;
        b->out = &s->out;
        rq__op_begin(s, slot, &b->read.op, RQ_OP_BATCH);
        rq_op_batch_start(b);
        rc = b->read.op.rc;
        if (rc != RQ_OK) *why = b->read.op.why;
    }
    rq__seat_exit(j->embed, s);
    return rc;
}

static rq_err make_job(batch_job *j, rq_arena *arena)
{
    size_t n = j->count;
    j->arena = arena;
    j->order = rq_arena_alloc(arena, n * sizeof *j->order);
    j->regions = rq_arena_alloc(arena, n * sizeof *j->regions);
    j->parts = rq_arena_alloc(arena, n * sizeof *j->parts);
    j->groups = rq_arena_alloc(arena, n * sizeof *j->groups);
    j->nonces = rq_arena_calloc(arena, n, sizeof *j->nonces);
    if (j->order == NULL || j->regions == NULL || j->parts == NULL || j->groups == NULL ||
        j->nonces == NULL)
        return RQ_E_NO_MEMORY;
    rq_executor *ex = j->embed->executor;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; !j->actions[i].is_get && c < j->actions[i].change_count; c++) {
            rq_change_kind kind = j->actions[i].changes[c].kind;
            if (kind == RQ_APPEND || kind == RQ_INCREMENT) j->nonces[i] = ex->random(ex) | 1;
        }
    return RQ_OK;
}

static bool has_changes(const batch_job *j)
{
    for (size_t i = 0; i < j->count; i++)
        if (!j->actions[i].is_get) return true;
    return false;
}

rq_err rq__embed_batch(rq_table *t, rq_slot *slot, rq_acting *actions, size_t count,
                       rq_outcomes *ret, rq_why *why)
{
    batch_job *j = rq_arena_alloc(&slot->arena, sizeof *j);
    rq__attempts attempts = {0};
    rq__embed_seat *s;
    if (j == NULL) return rq_no_memory(&why->error);
    j->embed = rq__embed_of(t->db);
    j->table = t;
    j->actions = actions;
    j->count = count;
    j->outcomes = ret;
    RQ_TRY(rq__seat_of(j->embed, slot, &s, why));
    j->seat = s;
    if (make_job(j, &slot->arena) != RQ_OK) return rq_no_memory(&why->error);
    do
        RQ_TRY(batch_once(j, slot, s, &why->error));
    while (j->passing != RQ_OK && rq__attempt_again(j->embed, &attempts, j->passing, &why->error));
    if (has_changes(j)) rq__help(j->embed);
    if (j->passing == RQ_OK) return RQ_OK;
    why->error = j->passing_why; /* of the actions without an outcome */
    return j->passing;
}
