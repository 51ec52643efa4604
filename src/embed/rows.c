/* SPDX-License-Identifier: Apache-2.0 */
/* Gets and changes of a row, as ops of the calling thread. */
#include "embed/embed_priv.h"

#include "ops/get.h"
#include "ops/mutate.h"

/* --- get -------------------------------------------------------------------------------------- */

static rq_err get_once(rq_table *t, rq_slot *slot, rq__embed_seat *s, const rq_getting *get,
                       rq_error *why)
{
    rq__embed *e = rq__embed_of(t->db);
    rq_op_get g;
    rq_op *op = &g.read.op;
    rq_region *region;
    rq_cellblock_reset(&s->out);
    rq__seat_enter(e, s);
    rq_err rc = rq__locate(e, s, t, get->row, &region, why);
    if (RQ_LIKELY(rc == RQ_OK)) rc = rq__getting_to_scan(get, region, &slot->arena, &g.scan, why);
    if (RQ_LIKELY(rc == RQ_OK)) {
        rq__op_begin(s, slot, op, RQ_OP_GET);
        op->region = region;
        g.out = &s->out;
        rq_op_get_start(&g);
        rc = op->rc;
        if (RQ_UNLIKELY(rc != RQ_OK)) *why = op->why;
    }
    rq__seat_exit(e, s);
    return rc;
}

rq_err rq__embed_get(rq_table *t, rq_slot *slot, const rq_getting *get, rq_row **ret, rq_why *why)
{
    rq__embed *e = rq__embed_of(t->db);
    rq__attempts attempts = {0};
    rq__embed_seat *s;
    rq_err rc;
    RQ_TRY(rq__seat_of(e, slot, &s, why));
    do
        rc = get_once(t, slot, s, get, &why->error);
    while (RQ_UNLIKELY(rc != RQ_OK) && rq__attempt_again(e, &attempts, rc, &why->error));
    if (RQ_UNLIKELY(rc != RQ_OK)) return rc;
    bool exists_only = get->read.existence_only;
    RQ_TRY(rq_row_of_block(exists_only ? (rq_slice){0} : rq_buf_slice(&s->out.bytes),
                           exists_only ? 0 : s->out.count, NULL, ret));
    (*ret)->exists = s->out.count > 0;
    (*ret)->is_stale = get->read.replica > 0;
    return RQ_OK;
}

/* --- changes ---------------------------------------------------------------------------------- */

typedef struct change_job {
    rq_op_mutate mutate;
    rq_condition condition;
    rq_changing *changes;
    size_t count;
    const rq_checking *check; /* NULL: none */
    uint64_t nonce;           /* of an append or increment; else 0 */
} change_job;

static rq_err fill(const rq__embed *e, change_job *j, const rq_region *region, rq_arena *arena,
                   rq_error *why)
{
    rq_mutation *list = rq_arena_alloc(arena, j->count * sizeof *list);
    if (list == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < j->count; i++)
        RQ_TRY(rq__changing_to_mutation(&j->changes[i], region, arena, &list[i], why));
    j->mutate.row = (rq_row_op){.mutations = list,
                                .mutation_count = j->count,
                                .nonce_group = j->nonce == 0 ? 0 : e->nonce_group,
                                .nonce = j->nonce};
    if (j->check == NULL) return RQ_OK;
    RQ_TRY(rq__checking_to_condition(j->check, j->changes[0].row, arena, &j->condition, why));
    j->mutate.row.conditions = &j->condition;
    j->mutate.row.condition_count = 1;
    return RQ_OK;
}

/* The results of a success are the caller's to clear. */
static rq_err change_once(rq_table *t, rq_slot *slot, rq__embed_seat *s, change_job *j,
                          rq_error *why)
{
    rq__embed *e = rq__embed_of(t->db);
    rq_op *op = &j->mutate.op;
    rq_region *region;
    rq__seat_enter(e, s);
    rq_err rc = rq__locate(e, s, t, j->changes[0].row, &region, why);
    if (RQ_LIKELY(rc == RQ_OK)) rc = fill(e, j, region, &slot->arena, why);
    if (RQ_LIKELY(rc == RQ_OK)) {
        rq__op_begin(s, slot, op, RQ_OP_PUT);
        op->region = region;
        rq_op_mutate_start(&j->mutate);
        rc = op->rc;
        if (RQ_UNLIKELY(rc != RQ_OK)) {
            *why = op->why;
            rq_row_op_clear(&j->mutate.row);
        }
    }
    rq__seat_exit(e, s);
    return rc;
}

/* A repeated append or increment is applied once: the log remembers its nonce. */
static uint64_t nonce_of(rq__embed *e, const rq_changing *c, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (c[i].kind == RQ_APPEND || c[i].kind == RQ_INCREMENT)
            return e->executor->random(e->executor) | 1;
    return 0;
}

rq_err rq__embed_change(rq_table *t, rq_slot *slot, const rq_checking *check, rq_changing *changes,
                        size_t count, bool *ret_done, rq_row **ret, rq_why *why)
{
    rq__embed *e = rq__embed_of(t->db);
    rq__attempts attempts = {0};
    rq__embed_seat *s;
    rq_err rc;
    change_job j;
    RQ_TRY(rq__seat_of(e, slot, &s, why));
    j.changes = changes;
    j.count = count;
    j.check = check;
    j.nonce = nonce_of(e, changes, count);
    do
        rc = change_once(t, slot, s, &j, &why->error);
    while (RQ_UNLIKELY(rc != RQ_OK) && rq__attempt_again(e, &attempts, rc, &why->error));
    if (RQ_UNLIKELY(rc != RQ_OK)) return rc;
    *ret_done = j.mutate.row.processed;
    const rq_cellblock *result = &j.mutate.row.result;
    if (ret != NULL) rc = rq_row_of_block(rq_buf_slice(&result->bytes), result->count, NULL, ret);
    rq_row_op_clear(&j.mutate.row);
    rq__help(e);
    return rc;
}
