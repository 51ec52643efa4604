/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mutations of a Multi, as batches that a region takes whole: all of an atomic action in one
 * op, others collected one op each until an append or an increment comes or the region's actions
 * end. HBASE: RSRpcServices.doAtomicBatchOp, doNonAtomicBatchOp.
 *
 * A batch lies in the call's arena. Its results are encoded when it is done, on the loop's thread.
 */
#include "service/client_multi_priv.h"

#include "service/encode.h"

/* One batch handed to a region. */
typedef struct rq__multi_batch {
    rq_write write;
    rq__multi *multi;
    rq_row_op *ops;
    uint32_t *indexes; /* the client's number of each op's action */
    size_t op_count;
    size_t cap; /* of both arrays */
    bool atomic;
    bool awaited; /* the walk goes on when it is done */
    /* A put or delete that cannot be decoded fails all that are collected with it. HBASE:
     * doNonAtomicBatchOp decodes the whole batch in one go. */
    rq_err spoilt;
    rq_error *spoilt_why; /* in the arena; NULL: no memory */
    Pb__RegionActionResult *answer;
    size_t answered; /* ops */
    rq_task task;    /* goes on with the answers */
} multi_batch;

/* --- batches ---------------------------------------------------------------------------------- */

static void release_ops(void *thing)
{
    multi_batch *b = thing;
    for (size_t i = 0; i < b->op_count; i++)
        rq_row_op_clear(&b->ops[i]);
}

static multi_batch *batch_new(rq__multi *m, size_t cap, bool atomic)
{
    rq_arena *arena = &m->job.call->arena;
    multi_batch *b = rq_arena_alloc(arena, sizeof *b);
    if (b == NULL) return NULL;
    *b = (multi_batch){
        .multi = m, .cap = cap, .atomic = atomic, .answer = rq__multi_region_answer(m)};
    b->ops = rq_arena_alloc(arena, cap * sizeof *b->ops);
    b->indexes = rq_arena_alloc(arena, cap * sizeof *b->indexes);
    if (b->ops == NULL || b->indexes == NULL) return NULL;
    if (rq_arena_link(arena, release_ops, b) != RQ_OK) return NULL;
    return b;
}

static rq_row_op *batch_add(multi_batch *b, rq_mutation *mutations, size_t count, uint32_t index)
{
    const rq_call *call = b->multi->job.call;
    RQ_ASSERT(b->op_count < b->cap);
    rq_row_op *op = &b->ops[b->op_count];
    b->indexes[b->op_count++] = index;
    op->mutations = mutations;
    op->mutation_count = count;
    op->conditions = NULL;
    op->condition_count = 0;
    op->multi_row = false;
    op->nonce_group = 0;
    op->nonce = 0;
    op->rc = RQ_OK;
    op->why = NULL;
    op->processed = false;
    op->result = (rq_cellblock){.with_tags = call->client->codec_with_tags};
    return op;
}

static bool returns_cells(const rq_row_op *op)
{
    for (size_t i = 0; i < op->mutation_count; i++)
        if (op->mutations[i].type == RQ_MUTATE_APPEND ||
            op->mutations[i].type == RQ_MUTATE_INCREMENT)
            return true;
    return false;
}

/* One action's op: an answer of its own. A put or delete answers an empty result. */
static rq_err answer_single(multi_batch *b, size_t i)
{
    rq__multi *m = b->multi;
    rq_row_op *op = &b->ops[i];
    Pb__ResultOrException *r = rq__multi_add_outcome(m, b->answer, b->indexes[i]);
    if (r == NULL) return RQ_E_NO_MEMORY;
    bool spoilt = b->spoilt != RQ_OK;
    if (spoilt || op->rc != RQ_OK) {
        r->exception = rq__exception_pair(&m->job.call->arena, spoilt ? b->spoilt : op->rc,
                                          spoilt ? b->spoilt_why : op->why);
        return r->exception == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    }
    if (!returns_cells(op)) {
        r->result = &m->nothing;
        return RQ_OK;
    }
    r->result = rq__multi_new_result(m);
    if (r->result == NULL) return RQ_E_NO_MEMORY;
    r->result->has_stale = 1;
    m->result_bytes += op->result.bytes.len;
    return rq__encode_result(m->job.call, &op->result, r->result);
}

/* All actions of a region action as one op: HBase puts the merged result into the first slot, in
 * the message (never in the cell block), and empty results into the others. */
static rq_err answer_atomic(multi_batch *b)
{
    rq__multi *m = b->multi;
    rq_row_op *op = &b->ops[0];
    rq_arena *arena = &m->job.call->arena;
    if (op->rc != RQ_OK) {
        b->answer->exception = rq__exception_pair(arena, op->rc, op->why);
        return b->answer->exception == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    }
    b->answer->has_processed = 1;
    b->answer->processed = op->processed;
    m->response.has_processed = 1; /* what clients before 2.4 read */
    m->response.processed = op->processed;
    bool cells = returns_cells(op) && op->processed;
    for (size_t i = 0; i < op->mutation_count; i++) {
        Pb__ResultOrException *r = rq__multi_add_outcome(m, b->answer, (uint32_t)i);
        if (r == NULL) return RQ_E_NO_MEMORY;
        if (op->condition_count > 0 && !(i == 0 && cells)) continue;
        r->result = &m->nothing;
        if (i > 0 || !cells) continue;
        r->result = rq__multi_new_result(m);
        if (r->result == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(
            rq__encode_cells(rq_buf_slice(&op->result.bytes), op->result.count, arena, r->result));
    }
    return RQ_OK;
}

static void go_on_answering(rq_task *task);

/* RQ_E_AGAIN: the stretch is over, a task goes on. */
static rq_err answer_singles(multi_batch *b)
{
    rq_executor *executor = b->multi->job.service->env.executor;
    rq_meter meter = {0};
    rq_meter_begin(&meter);
    while (b->answered < b->op_count) {
        RQ_TRY(answer_single(b, b->answered++));
        if (!rq_meter_spent(&meter, executor, 1) || b->answered == b->op_count) continue;
        b->task.run = go_on_answering;
        rq_call_post(b->multi->job.call, &b->task);
        return RQ_E_AGAIN;
    }
    return RQ_OK;
}

static void answer_batch(multi_batch *b)
{
    rq__multi *m = b->multi;
    rq_err rc = b->atomic ? answer_atomic(b) : answer_singles(b);
    if (rc == RQ_E_AGAIN) return;
    if (rc != RQ_OK) rq__multi_fail(m, rc);
    m->batches_running--;
    if (b->awaited)
        rq__multi_walk(m);
    else
        rq__multi_finish_if_done(m);
}

static void go_on_answering(rq_task *task)
{
    answer_batch(RQ_CONTAINER_OF(task, multi_batch, task));
}

static void batch_done(rq_write *w)
{
    answer_batch(RQ_CONTAINER_OF(w, multi_batch, write));
}

static void batch_submit(rq__multi *m, multi_batch *b, bool awaited)
{
    rq_call *call = m->job.call;
    b->awaited = awaited;
    if (b->spoilt != RQ_OK) {
        m->batches_running++;
        batch_done(&b->write);
        return;
    }
    b->write = (rq_write){.ops = b->ops,
                          .op_count = b->op_count,
                          .writer = rq__writer(m->job.service, call),
                          .done = batch_done};
    m->batches_running++;
    rq_region_write(m->region, &b->write);
}

/* --- all of a region's actions as one op ------------------------------------------------------ */

static rq_err decode_atomic(rq__multi *m, rq_mutation *mutations, uint64_t *ret_nonce,
                            rq_error *why)
{
    rq_cursor cells = m->cells;
    if (m->stale) return rq__fail_read_only(why);
    for (size_t i = 0; i < m->action_count; i++) {
        const rq__action *a = &m->actions[i];
        uint64_t nonce;
        if (a->kind == RQ__ACTION_GET)
            return rq_fail(why, RQ_E_DO_NOT_RETRY, "Atomic put and/or delete only, not a Get");
        if (!rq__action_is_mutation(a))
            return rq_fail(why, RQ_E_DO_NOT_RETRY, "Atomic put and/or delete only");
        RQ_TRY(rq__decode_mutation(a->mutation, m->region, &cells,
                                   rq_region_cell_bytes_max(m->region), &m->job.call->arena,
                                   &mutations[i], &nonce, why));
        if (nonce != 0) *ret_nonce = nonce;
    }
    return RQ_OK;
}

rq_err rq__multi_begin_atomic(rq__multi *m, const Pb__Condition *condition, rq_error *why)
{
    rq_arena *arena = &m->job.call->arena;
    size_t count = m->action_count;
    rq_mutation *mutations = rq_arena_alloc(arena, count * sizeof *mutations);
    multi_batch *b = batch_new(m, 1, true);
    uint64_t nonce = 0;
    rq_err rc =
        mutations == NULL || b == NULL ? RQ_E_NO_MEMORY : decode_atomic(m, mutations, &nonce, why);
    /* Whatever went wrong, the next region action finds its cells. */
    for (size_t i = 0; i < count; i++)
        rq__multi_skip_cells(m, &m->actions[i]);
    if (rc != RQ_OK) return rc;
    rq_row_op *op = batch_add(b, mutations, count, 0);
    const Pb__MultiRequest *request = rq__multi_request(m);
    op->nonce_group = request->has_noncegroup ? request->noncegroup : 0;
    op->nonce = nonce;
    if (condition != NULL) {
        rq_condition *c = rq_arena_alloc(arena, sizeof *c);
        if (c == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(rq__decode_condition(condition, arena, c, why));
        RQ_TRY(rq__check_condition_row(c, mutations[0].row, why));
        op->conditions = c;
        op->condition_count = 1;
    }
    batch_submit(m, b, false);
    return RQ_OK;
}

/* --- each for itself -------------------------------------------------------------------------- */

/* How many mutations a batch that begins with the present action takes: those up to the next append
 * or increment, after which it is handed over. */
static size_t run_length(const rq__multi *m)
{
    size_t count = 0;
    for (size_t i = m->action_at; i < m->action_count; i++) {
        count += rq__action_is_mutation(&m->actions[i]);
        if (m->actions[i].kind == RQ__ACTION_ALONE) break;
    }
    return count;
}

static multi_batch *collecting_batch(rq__multi *m)
{
    if (m->collecting == NULL) m->collecting = batch_new(m, run_length(m), false);
    return m->collecting;
}

void rq__multi_submit_collected(rq__multi *m, bool awaited)
{
    multi_batch *b = m->collecting;
    m->collecting = NULL;
    batch_submit(m, b, awaited);
}

static rq_err decode_one(rq__multi *m, const rq__action *action, rq_mutation *ret,
                         uint64_t *ret_nonce, rq_error *why)
{
    rq_cursor before = m->cells;
    rq_err rc = RQ_E_NO_MEMORY;
    if (ret != NULL && m->stale)
        rc = rq__fail_read_only(why);
    else if (ret != NULL)
        rc = rq__decode_mutation(action->mutation, m->region, &m->cells,
                                 rq_region_cell_bytes_max(m->region), &m->job.call->arena, ret,
                                 ret_nonce, why);
    if (rc == RQ_OK) return rc;
    m->cells = before; /* whatever it took, the next action finds its cells */
    rq__multi_skip_cells(m, action);
    return rc;
}

rq_err rq__multi_collect(rq__multi *m, const rq__action *action, bool *ret_flush, rq_error *why)
{
    rq_mutation *mutation = rq_arena_alloc(&m->job.call->arena, sizeof *mutation);
    uint64_t nonce = 0;
    bool reads = action->kind == RQ__ACTION_ALONE;
    rq_err rc = decode_one(m, action, mutation, &nonce, why);
    if (mutation == NULL) return rc;
    m->meter.steps += mutation->cell_count;
    /* What spoils puts and deletes leaves the next append or increment alone; one of those that is
     * spoilt itself goes nowhere, but what was collected before it does. */
    if (reads && m->collecting != NULL && (rc != RQ_OK || m->collecting->spoilt != RQ_OK))
        rq__multi_submit_collected(m, false);
    if (rc != RQ_OK && reads) return rc;
    multi_batch *b = collecting_batch(m);
    if (b == NULL) return RQ_E_NO_MEMORY;
    if (rc != RQ_OK && b->spoilt == RQ_OK) {
        b->spoilt = rc;
        b->spoilt_why = rq_arena_alloc(&m->job.call->arena, sizeof *why);
        if (b->spoilt_why != NULL) *b->spoilt_why = *why;
    }
    if (rc != RQ_OK) mutation->type = RQ_MUTATE_PUT;
    rq_row_op *op = batch_add(b, mutation, 1, action->index);
    const Pb__MultiRequest *request = rq__multi_request(m);
    *ret_flush = reads;
    if (reads) {
        op->nonce_group = request->has_noncegroup ? request->noncegroup : 0;
        op->nonce = nonce;
    }
    return RQ_OK;
}
