/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multi: batches of gets and mutations over several regions. HBASE: RSRpcServices.multi,
 * doNonAtomicRegionMutation, doAtomicBatchOp.
 *
 * Region actions are worked off one after another, each in one of three ways:
 *   with a condition   one op: all mutations if the condition holds
 *   atomic             one op: all mutations of one row (RowMutations)
 *   otherwise          each action for itself, in the client's order, except that puts and deletes
 *                      are collected: they go to the region as one batch when an append or an
 *                      increment comes (it must see them; so must what follows it see it) and at
 *                      the end
 * Whatever is waited for only by the answer is not waited for in between: the last batch of each
 * region is under way while the next region is worked on. The answer goes out when all are durable.
 *
 * The order of results in a region's answer is the order of execution; `index` says whose it is.
 * Cells in the answer's cell block stand in that order too, so a result with cells is encoded when
 * it is produced and before the next one.
 */
#include "service/client_priv.h"

#include "service/encode.h"
#include "service/endpoint.h"
#include "service/multi_answer.h"

#include <stdio.h>

typedef struct multi_job multi_job;

/* One batch handed to a region. */
typedef struct batch {
    rq_write write;
    multi_job *multi;
    rq_row_op *ops;
    Pb__ResultOrException **results; /* one per op, or per action of an atomic op */
    uint32_t *indexes;
    size_t op_count;
    bool atomic;
    bool awaited; /* the walk goes on when it is done */
    /* A put or delete that cannot be decoded fails all that are collected with it. HBASE:
     * doNonAtomicBatchOp decodes the whole batch in one go. */
    rq_err spoilt;
    rq_error spoilt_why;
    Pb__RegionActionResult *answer;
} batch;

struct multi_job {
    rq__read_job job; /* for gets */
    rq_cursor cells;
    Pb__MultiResponse response;
    Pb__MultiRegionLoadStats stats;
    Pb__Result nothing; /* the result of every put and delete */
    /* The walk. */
    size_t region_at;
    size_t action_at;
    bool in_region;
    rq_region *region; /* a reference while in_region */
    bool stale;        /* it was named as a replica */
    batch *collecting; /* puts and deletes of this region */
    /* The get under way. */
    rq_scan scan;
    rq_region_scanner *scanner;
    rq_cellblock get_cells;
    rq_cellblock_mark get_mark;
    bool get_running;
    size_t batches_running;
    bool walked;
    uint64_t result_bytes;
};

static const Pb__MultiRequest *request_of(const multi_job *m)
{
    return (const Pb__MultiRequest *)m->job.call->param;
}

static const Pb__RegionAction *region_action(const multi_job *m)
{
    return request_of(m)->regionaction[m->region_at];
}

static Pb__RegionActionResult *region_answer(const multi_job *m)
{
    return m->response.regionactionresult[m->region_at];
}

/* --- parts of the answer ---------------------------------------------------------------------- */

/* A slot for one action's outcome; the list was sized for all actions. */
static Pb__ResultOrException *add_outcome(multi_job *m, Pb__RegionActionResult *answer,
                                          uint32_t index)
{
    Pb__ResultOrException *r = rq_arena_alloc(&m->job.call->arena, sizeof *r);
    if (r == NULL) return NULL;
    *r = (Pb__ResultOrException)PB__RESULT_OR_EXCEPTION__INIT;
    r->has_index = 1;
    r->index = index;
    answer->resultorexception[answer->n_resultorexception++] = r;
    return r;
}

static Pb__Result *new_result(multi_job *m)
{
    Pb__Result *r = rq_arena_alloc(&m->job.call->arena, sizeof *r);
    if (r != NULL) *r = (Pb__Result)PB__RESULT__INIT;
    return r;
}

static rq_err add_exception(multi_job *m, uint32_t index, rq_err code, const rq_error *why)
{
    Pb__ResultOrException *r = add_outcome(m, region_answer(m), index);
    if (r == NULL) return RQ_E_NO_MEMORY;
    rq_call_alarm(m->job.call, code, why);
    r->exception = rq__exception_pair(&m->job.call->arena, code, why);
    return r->exception == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* --- coprocessor endpoints -------------------------------------------------------------------- */

static void walk(multi_job *m);
static void fail_call(multi_job *m, rq_err rc);

static rq_err answer_service(multi_job *m, const rq__endpoint *e)
{
    rq_arena *arena = &m->job.call->arena;
    uint32_t index = region_action(m)->action[m->action_at]->index;
    if (e->rc != RQ_OK) return add_exception(m, index, e->rc, &e->why);
    Pb__ResultOrException *r = add_outcome(m, region_answer(m), index);
    Pb__CoprocessorServiceResult *result = rq_arena_alloc(arena, sizeof *result);
    Pb__NameBytesPair *value = rq_arena_alloc(arena, sizeof *value);
    if (r == NULL || result == NULL || value == NULL) return RQ_E_NO_MEMORY;
    pb__coprocessor_service_result__init(result);
    pb__name_bytes_pair__init(value);
    value->name = (char *)e->response_class;
    value->has_value = 1;
    value->value = (ProtobufCBinaryData){e->response.len, (uint8_t *)e->response.ptr};
    result->value = value;
    r->service_result = result;
    return RQ_OK;
}

/* The walk waited for it. */
static void service_done(rq__endpoint *e)
{
    multi_job *m = e->user;
    rq_err rc = answer_service(m, e);
    if (rc != RQ_OK) {
        fail_call(m, rc);
        return;
    }
    m->action_at++;
    walk(m);
}

static rq_err begin_service(multi_job *m, const Pb__Action *action)
{
    rq__endpoint *e = rq_arena_alloc(&m->job.call->arena, sizeof *e);
    if (e == NULL) return RQ_E_NO_MEMORY;
    e->service = m->job.service;
    e->call = m->job.call;
    e->region = m->region;
    e->done = service_done;
    e->user = m;
    rq__endpoint_start(e, action->service_call);
    return RQ_OK;
}

/* --- batches ---------------------------------------------------------------------------------- */

static void finish_if_done(multi_job *m);
static void batch_done(rq_write *w);

static void release_ops(void *thing)
{
    batch *b = thing;
    for (size_t i = 0; i < b->op_count; i++)
        rq_cellblock_clear(&b->ops[i].result);
}

static batch *batch_new(multi_job *m, size_t cap, bool atomic)
{
    rq_arena *arena = &m->job.call->arena;
    batch *b = rq_arena_alloc(arena, sizeof *b);
    if (b == NULL) return NULL;
    *b = (batch){.multi = m, .atomic = atomic, .answer = region_answer(m), .spoilt = RQ_OK};
    /* Not zeroed: an op is over a kilobyte, most of it room for an error's text. */
    b->ops = rq_arena_alloc(arena, cap * sizeof *b->ops);
    b->results = rq_arena_alloc(arena, cap * sizeof(Pb__ResultOrException *));
    b->indexes = rq_arena_alloc(arena, cap * sizeof *b->indexes);
    if (b->ops == NULL || b->results == NULL || b->indexes == NULL) return NULL;
    if (rq_arena_link(arena, release_ops, b) != RQ_OK) return NULL;
    return b;
}

static rq_row_op *batch_add(batch *b, rq_mutation *mutations, size_t count, uint32_t index)
{
    const rq_call *call = b->multi->job.call;
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
    rq_error_clear(&op->why);
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
static rq_err answer_single(batch *b, size_t i)
{
    multi_job *m = b->multi;
    rq_row_op *op = &b->ops[i];
    Pb__ResultOrException *r = add_outcome(m, b->answer, b->indexes[i]);
    if (r == NULL) return RQ_E_NO_MEMORY;
    if (op->rc != RQ_OK) {
        r->exception = rq__exception_pair(&m->job.call->arena, op->rc, &op->why);
        return r->exception == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    }
    if (!returns_cells(op)) {
        r->result = &m->nothing;
        return RQ_OK;
    }
    r->result = new_result(m);
    if (r->result == NULL) return RQ_E_NO_MEMORY;
    r->result->has_stale = 1;
    m->result_bytes += op->result.bytes.len;
    return rq__encode_result(m->job.call, &op->result, r->result);
}

/* All actions of a region action as one op: HBase puts the merged result into the first slot, in
 * the message (never in the cell block), and empty results into the others. */
static rq_err answer_atomic(batch *b)
{
    multi_job *m = b->multi;
    rq_row_op *op = &b->ops[0];
    rq_arena *arena = &m->job.call->arena;
    if (op->rc != RQ_OK) {
        b->answer->exception = rq__exception_pair(arena, op->rc, &op->why);
        return b->answer->exception == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    }
    b->answer->has_processed = 1;
    b->answer->processed = op->processed;
    m->response.has_processed = 1; /* what clients before 2.4 read */
    m->response.processed = op->processed;
    bool cells = returns_cells(op) && op->processed;
    for (size_t i = 0; i < op->mutation_count; i++) {
        Pb__ResultOrException *r = add_outcome(m, b->answer, (uint32_t)i);
        if (r == NULL) return RQ_E_NO_MEMORY;
        if (op->condition_count > 0 && !(i == 0 && cells)) continue;
        r->result = &m->nothing;
        if (i > 0 || !cells) continue;
        r->result = new_result(m);
        if (r->result == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(
            rq__encode_cells(rq_buf_slice(&op->result.bytes), op->result.count, arena, r->result));
    }
    return RQ_OK;
}

static void batch_done(rq_write *w)
{
    batch *b = RQ_CONTAINER_OF(w, batch, write);
    multi_job *m = b->multi;
    rq_err rc = RQ_OK;
    if (b->atomic) {
        rc = answer_atomic(b);
    } else {
        for (size_t i = 0; rc == RQ_OK && i < b->op_count; i++)
            rc = answer_single(b, i);
    }
    if (rc != RQ_OK && m->job.fetch_rc == RQ_OK) m->job.fetch_rc = rc;
    m->batches_running--;
    if (b->awaited)
        walk(m);
    else
        finish_if_done(m);
}

static void batch_submit(multi_job *m, batch *b, bool awaited)
{
    rq_call *call = m->job.call;
    b->awaited = awaited;
    if (b->spoilt != RQ_OK) {
        for (size_t i = 0; i < b->op_count; i++) {
            b->ops[i].rc = b->spoilt;
            b->ops[i].why = b->spoilt_why;
        }
        m->batches_running++;
        batch_done(&b->write);
        return;
    }
    b->write = (rq_write){.ops = b->ops,
                          .op_count = b->op_count,
                          .lane = rq_loop_lane(call->loop),
                          .member = rq__member(m->job.service, call),
                          .done = batch_done};
    m->batches_running++;
    rq_region_write(m->region, &b->write);
}

/* --- region actions as a whole ---------------------------------------------------------------- */

static rq_err decode_atomic(multi_job *m, const Pb__RegionAction *ra, rq_mutation *mutations,
                            uint64_t *ret_nonce, rq_error *why)
{
    for (size_t i = 0; i < ra->n_action; i++) {
        uint64_t nonce;
        if (ra->action[i]->get != NULL)
            return rq_fail(why, RQ_E_DO_NOT_RETRY, "Atomic put and/or delete only, not a Get");
        if (ra->action[i]->mutation == NULL)
            return rq_fail(why, RQ_E_DO_NOT_RETRY, "Atomic put and/or delete only");
        RQ_TRY(rq__decode_mutation(ra->action[i]->mutation, m->region, &m->cells,
                                   rq_region_cell_bytes_max(m->region), &m->job.call->arena,
                                   &mutations[i], &nonce, why));
        if (nonce != 0) *ret_nonce = nonce;
    }
    return RQ_OK;
}

static rq_err begin_atomic(multi_job *m, const Pb__RegionAction *ra, const Pb__Condition *condition,
                           rq_error *why)
{
    rq_arena *arena = &m->job.call->arena;
    rq_mutation *mutations = rq_arena_alloc(arena, ra->n_action * sizeof *mutations);
    batch *b = batch_new(m, 1, true);
    rq_cursor before = m->cells;
    uint64_t nonce = 0;
    if (mutations == NULL || b == NULL) return RQ_E_NO_MEMORY;
    rq_err rc = m->stale ? rq__fail_read_only(why) : decode_atomic(m, ra, mutations, &nonce, why);
    /* Whatever went wrong, the next region action finds its cells. */
    m->cells = before;
    for (size_t i = 0; i < ra->n_action; i++)
        if (ra->action[i]->mutation != NULL) rq__skip_cells(ra->action[i]->mutation, &m->cells);
    if (rc != RQ_OK) return rc;
    rq_row_op *op = batch_add(b, mutations, ra->n_action, 0);
    const Pb__MultiRequest *request = request_of(m);
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

static rq_err fail_region(multi_job *m, rq_err code, const rq_error *why)
{
    Pb__RegionActionResult *answer = region_answer(m);
    answer->exception = rq__exception_pair(&m->job.call->arena, code, why);
    return answer->exception == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static void skip_region_cells(multi_job *m, const Pb__RegionAction *ra)
{
    for (size_t i = 0; i < ra->n_action; i++)
        if (ra->action[i]->mutation != NULL) rq__skip_cells(ra->action[i]->mutation, &m->cells);
}

static rq_err region_answer_new(multi_job *m, const Pb__RegionAction *ra)
{
    rq_arena *arena = &m->job.call->arena;
    Pb__RegionActionResult *answer = rq_arena_alloc(arena, sizeof *answer);
    if (answer == NULL) return RQ_E_NO_MEMORY;
    pb__region_action_result__init(answer);
    answer->resultorexception =
        rq_arena_alloc(arena, (ra->n_action + 1) * sizeof(Pb__ResultOrException *));
    if (answer->resultorexception == NULL) return RQ_E_NO_MEMORY;
    m->response.regionactionresult[m->region_at] = answer;
    m->response.n_regionactionresult = m->region_at + 1;
    return RQ_OK;
}

static void leave_region(multi_job *m)
{
    if (m->region != NULL) rq_region_unref(m->region);
    m->region = NULL;
    m->in_region = false;
    m->collecting = NULL;
    m->region_at++;
}

/* Enters the next region action. A failure is the region's answer, not the call's. */
static rq_err enter_region(multi_job *m)
{
    const Pb__RegionAction *ra = region_action(m);
    const Pb__MultiRequest *request = request_of(m);
    rq_error why;
    rq_error_clear(&why);
    rq_region *region;
    RQ_TRY(region_answer_new(m, ra));
    rq_err rc = rq__find_region_to_read(m->job.service, ra->region, &region, &m->stale, &why);
    if (rc != RQ_OK) {
        skip_region_cells(m, ra);
        RQ_TRY(fail_region(m, rc, &why));
        leave_region(m);
        return RQ_OK;
    }
    if (ra->n_action > 0 && ra->action[0]->mutation != NULL) rq_region_expect_write(region);
    m->region = rq_region_ref(region);
    m->in_region = true;
    m->action_at = 0;
    /* Before 2.4 the request had one condition, for its only region action. */
    const Pb__Condition *condition = ra->condition != NULL ? ra->condition : request->condition;
    if (condition == NULL && !(ra->has_atomic && ra->atomic)) return RQ_OK;
    if (ra->n_action == 0) {
        region_answer(m)->has_processed = 1;
        region_answer(m)->processed = 1;
        m->response.has_processed = 1;
        m->response.processed = 1;
    } else {
        rc = begin_atomic(m, ra, condition, &why);
        if (rc != RQ_OK) RQ_TRY(fail_region(m, rc, &why));
    }
    leave_region(m);
    return RQ_OK;
}

/* --- single actions --------------------------------------------------------------------------- */

static bool is_read_modify_write(const Pb__MutationProto *m)
{
    return m->mutate_type == PB__MUTATION_PROTO__MUTATION_TYPE__APPEND ||
           m->mutate_type == PB__MUTATION_PROTO__MUTATION_TYPE__INCREMENT;
}

/* How many mutations a batch that begins with the present action takes: those up to the next append
 * or increment, after which it is handed over. */
static size_t run_length(const multi_job *m)
{
    const Pb__RegionAction *ra = region_action(m);
    size_t count = 0;
    for (size_t i = m->action_at; i < ra->n_action; i++) {
        if (ra->action[i]->mutation == NULL) continue;
        count++;
        if (is_read_modify_write(ra->action[i]->mutation)) break;
    }
    return count;
}

static batch *collecting_batch(multi_job *m)
{
    if (m->collecting == NULL) m->collecting = batch_new(m, run_length(m), false);
    return m->collecting;
}

static rq_err collect(multi_job *m, const Pb__Action *action, bool *ret_flush, rq_error *why)
{
    rq_arena *arena = &m->job.call->arena;
    const Pb__MutationProto *proto = action->mutation;
    rq_mutation *mutation = rq_arena_alloc(arena, sizeof *mutation);
    rq_cursor before = m->cells;
    uint64_t nonce = 0;
    bool reads = is_read_modify_write(proto);
    if (mutation == NULL) return RQ_E_NO_MEMORY;
    rq_err rc = m->stale ? rq__fail_read_only(why)
                         : rq__decode_mutation(proto, m->region, &m->cells,
                                               rq_region_cell_bytes_max(m->region), arena, mutation,
                                               &nonce, why);
    if (rc != RQ_OK) { /* whatever it took, the next action finds its cells */
        m->cells = before;
        rq__skip_cells(proto, &m->cells);
    }
    /* What spoils puts and deletes leaves the next append or increment alone; one of those that is
     * spoilt itself goes nowhere, but what was collected before it does. */
    if (reads && m->collecting != NULL && (rc != RQ_OK || m->collecting->spoilt != RQ_OK)) {
        batch *before_it = m->collecting;
        m->collecting = NULL;
        batch_submit(m, before_it, false);
    }
    if (rc != RQ_OK && reads) return rc;
    batch *b = collecting_batch(m);
    if (b == NULL) return RQ_E_NO_MEMORY;
    if (rc != RQ_OK && b->spoilt == RQ_OK) {
        b->spoilt = rc;
        b->spoilt_why = *why;
    }
    if (rc != RQ_OK) mutation->type = RQ_MUTATE_PUT;
    rq_row_op *op = batch_add(b, mutation, 1, action->index);
    const Pb__MultiRequest *request = request_of(m);
    *ret_flush = reads;
    if (reads) {
        op->nonce_group = request->has_noncegroup ? request->noncegroup : 0;
        op->nonce = nonce;
    }
    return RQ_OK;
}

static void drop_scanner(multi_job *m)
{
    rq_region_scanner_close(m->scanner);
    m->scanner = NULL;
    m->get_running = false;
}

static rq_cellblock *cells_of_get(multi_job *m)
{
    return m->job.call->client->has_codec ? &m->job.call->cells : &m->get_cells;
}

/* Answered at once (rq_region_get), or get_running; RQ_E_AGAIN: running, and it waits for a block.
 */
static rq_err begin_get(multi_job *m, const Pb__Action *action, rq_error *why)
{
    if (action->get->has_closest_row_before && action->get->closest_row_before)
        return rq_fail(why, RQ_E_UNKNOWN_PROTOCOL,
                       "Is this a pre-hbase-1.0.0 or asynchbase client? Client is invoking "
                       "getClosestRowBefore removed in hbase-2.0.0 replaced by reverse Scan.");
    rq_arena *arena = &m->job.call->arena;
    rq_cellblock *out = cells_of_get(m);
    bool answered;
    RQ_TRY(rq__decode_get(action->get, m->region, arena, &m->scan, why));
    m->get_mark = rq_cellblock_get_mark(out);
    rq_err rc = rq_region_get(m->region, &m->scan, arena, &m->job.ctx, out, &answered, why);
    if (answered || (rc != RQ_OK && rc != RQ_E_AGAIN)) return rc;
    RQ_TRY(rq_region_scanner_open(m->region, &m->scan, 0, arena, &m->scanner, why));
    m->get_running = true;
    return rc;
}

static rq_err answer_get(multi_job *m, const Pb__Action *action, rq_cellblock *out)
{
    Pb__ResultOrException *r = add_outcome(m, region_answer(m), action->index);
    if (r == NULL) return RQ_E_NO_MEMORY;
    r->result = new_result(m);
    if (r->result == NULL) return RQ_E_NO_MEMORY;
    r->result->has_stale = 1;
    r->result->stale = m->stale;
    uint32_t count = out->count - m->get_mark.count;
    rq_slice bytes =
        rq_slice_of(out->bytes.ptr + m->get_mark.len, out->bytes.len - m->get_mark.len);
    m->result_bytes += bytes.len;
    if (m->scan.check_existence_only) {
        r->result->has_exists = 1;
        r->result->exists = count > 0;
        rq_cellblock_truncate(out, m->get_mark);
        return RQ_OK;
    }
    if (m->job.call->client->has_codec) {
        r->result->has_associated_cell_count = 1;
        r->result->associated_cell_count = (int32_t)count;
        return RQ_OK;
    }
    /* The message's byte fields must not point into a buffer that grows with the next get. */
    rq_slice copy = rq_arena_copy(&m->job.call->arena, bytes);
    if (copy.ptr == NULL) return RQ_E_NO_MEMORY;
    rq_cellblock_truncate(out, m->get_mark);
    return rq__encode_cells(copy, count, &m->job.call->arena, r->result);
}

/* RQ_E_AGAIN: a block must be brought first. */
static rq_err go_on_get(multi_job *m, const Pb__Action *action)
{
    rq_cellblock *out = cells_of_get(m);
    rq_scan_limits limits = {0};
    rq_scan_state state;
    rq_error why;
    rq_error_clear(&why);
    rq_err rc = m->job.fetch_rc;
    if (rc == RQ_OK)
        rc = rq_region_scanner_next(m->scanner, &limits, &m->job.ctx, out, &state, &why);
    else
        why = m->job.why;
    if (rc == RQ_E_AGAIN) {
        rq_region_scanner_suspend(m->scanner);
        return rc;
    }
    m->job.fetch_rc = RQ_OK;
    rq_error_clear(&m->job.why);
    drop_scanner(m);
    if (rc == RQ_OK) return answer_get(m, action, out);
    rq_cellblock_truncate(out, m->get_mark);
    return add_exception(m, action->index, rc, &why);
}

static bool too_much(const multi_job *m)
{
    const rq_rpc_client *client = m->job.call->client;
    const rq_client_service *s = m->job.service;
    return client->retry_immediately && (m->result_bytes > s->result_bytes_max ||
                                         m->job.ctx.block_bytes_used > s->block_bytes_max);
}

static rq_err refuse_more(multi_job *m, const Pb__Action *action)
{
    rq_error why;
    rq_error_clear(&why);
    rq_err rc = rq_fail(
        &why, RQ_E_RESULT_TOO_LARGE, "Max size exceeded CellSize: %llu BlockSize: %llu",
        (unsigned long long)m->result_bytes, (unsigned long long)m->job.ctx.block_bytes_used);
    if (action->mutation != NULL) rq__skip_cells(action->mutation, &m->cells);
    return add_exception(m, action->index, rc, &why);
}

/* Works off one action. *ret_wait: a batch or a service call was handed over that must be done
 * before the next. */
static rq_err work_action(multi_job *m, const Pb__Action *action, bool *ret_wait)
{
    rq_error why;
    rq_error_clear(&why);
    bool flush = false;
    rq_err rc;
    *ret_wait = false;
    if (too_much(m)) return refuse_more(m, action);
    if (action->get != NULL)
        rc = begin_get(m, action, &why);
    else if (action->mutation != NULL)
        rc = collect(m, action, &flush, &why);
    else if (action->service_call != NULL)
        rc = begin_service(m, action);
    else
        rc = rq_fail(&why, RQ_E_IOEXCEPTION, "Unexpected Action type");
    if (rc == RQ_E_AGAIN && m->get_running) return rc;
    if (rc != RQ_OK) return add_exception(m, action->index, rc, &why);
    if (action->get != NULL)
        return m->get_running ? go_on_get(m, action) : answer_get(m, action, cells_of_get(m));
    if (action->mutation == NULL) {
        *ret_wait = true;
        return RQ_OK;
    }
    if (flush) {
        batch *b = m->collecting;
        m->collecting = NULL;
        *ret_wait = true;
        m->action_at++; /* batch_done may walk on before this returns */
        batch_submit(m, b, true);
    }
    return RQ_OK;
}

/* --- the walk --------------------------------------------------------------------------------- */

static void fail_call(multi_job *m, rq_err rc)
{
    /* Batches under way still answer into the arena: the call ends with the last of them. */
    if (m->job.fetch_rc == RQ_OK) m->job.fetch_rc = rc;
    m->walked = true;
    finish_if_done(m);
}

static void finish_if_done(multi_job *m)
{
    if (!m->walked || m->batches_running > 0) return;
    if (m->region != NULL) rq_region_unref(m->region);
    m->region = NULL;
    rq_cellblock_clear(&m->get_cells);
    rq_call *call = m->job.call;
    rq_err rc = m->job.fetch_rc;
    rq_slice packed;
    /* Without a codec the cells are in the message, which may be large: not twice then. */
    bool small = call->client->has_codec;
    if (rc == RQ_OK && small) rc = rq__pack_multi(&m->response, &call->arena, &packed);
    if (rc != RQ_OK)
        rq_call_fail_why(call, rc, &m->job.why);
    else if (small)
        rq_call_reply_packed(call, packed);
    else
        rq_call_reply(call, &m->response.base);
}

/* True: goes on at once. */
static bool walk_region(multi_job *m, rq_err *ret)
{
    const Pb__RegionAction *ra = region_action(m);
    if (m->action_at == ra->n_action) {
        if (m->collecting != NULL) batch_submit(m, m->collecting, false);
        leave_region(m);
        return true;
    }
    const Pb__Action *action = ra->action[m->action_at];
    bool wait = false;
    *ret = m->get_running ? go_on_get(m, action) : work_action(m, action, &wait);
    if (wait) return false;
    if (*ret == RQ_OK) m->action_at++;
    return *ret == RQ_OK;
}

static void walk(multi_job *m)
{
    rq_err rc = RQ_OK;
    while (m->region_at < request_of(m)->n_regionaction) {
        if (!m->in_region) {
            rc = enter_region(m);
            if (rc != RQ_OK) break;
            continue;
        }
        if (walk_region(m, &rc)) continue;
        if (rc == RQ_OK) return; /* an awaited batch or service call walks on */
        break;
    }
    if (rc == RQ_E_AGAIN) {
        rq__read_job_wait(&m->job);
        return;
    }
    if (rc != RQ_OK) {
        fail_call(m, rc);
        return;
    }
    m->walked = true;
    finish_if_done(m);
}

static void step_multi(rq__read_job *job)
{
    walk(RQ_CONTAINER_OF(job, multi_job, job));
}

static size_t count_actions(const Pb__MultiRequest *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_regionaction; i++)
        n += r->regionaction[i]->n_action;
    return n;
}

static rq_err begin_multi(rq_client_service *s, rq_call *call, multi_job *m, rq_error *why)
{
    const Pb__MultiRequest *request = (const Pb__MultiRequest *)call->param;
    *m = (multi_job){.cells = rq_cursor_of(call->cell_block)};
    RQ_TRY(rq__read_job_init(&m->job, s, call, step_multi));
    size_t actions = count_actions(request);
    if (actions > s->rows_warning) {
        char name[256] = "";
        rq_bytes_to_string(rq__pb_slice(request->regionaction[0]->region->value), name,
                           sizeof name);
        rq_log_warn(s->env.log, "service",
                    "Large batch operation detected (greater than %llu) (HBASE-18023). Requested "
                    "Number of Rows: %zu Client: %s/%s first region in multi=%s",
                    (unsigned long long)s->rows_warning, actions, call->client->user,
                    call->client->host, name);
        if (s->rows_reject)
            return rq_fail(why, RQ_E_IOEXCEPTION,
                           "Rejecting large batch operation for current batch with "
                           "firstRegionName: %s , Requested Number of Rows: %zu , Size Threshold: "
                           "%llu",
                           name, actions, (unsigned long long)s->rows_warning);
    }
    pb__multi_response__init(&m->response);
    pb__multi_region_load_stats__init(&m->stats);
    pb__result__init(&m->nothing);
    m->response.regionstatistics = &m->stats;
    m->response.regionactionresult = rq_arena_alloc(
        &call->arena, (request->n_regionaction + 1) * sizeof(Pb__RegionActionResult *));
    if (m->response.regionactionresult == NULL) return RQ_E_NO_MEMORY;
    if (request->condition != NULL && request->n_regionaction == 0) {
        m->response.has_processed = 1;
        m->response.processed = 1;
    }
    return RQ_OK;
}

void rq__handle_multi(void *ctx, rq_call *call)
{
    rq_error why;
    rq_error_clear(&why);
    multi_job *m = rq_arena_alloc(&call->arena, sizeof *m);
    rq_err rc = m == NULL ? RQ_E_NO_MEMORY : begin_multi(ctx, call, m, &why);
    if (rc != RQ_OK) {
        rq_call_fail_why(call, rc, &why);
        return;
    }
    walk(m);
}
