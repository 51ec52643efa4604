/* SPDX-License-Identifier: Apache-2.0 */
/* Mutate: one put, delete, append or increment, with or without a condition: translates its message
 * to the op and back (ops/mutate.h). HBASE: RSRpcServices.mutate. */
#include "service/client_priv.h"

#include "ops/mutate.h"
#include "rpc/long_reply.h"
#include "service/apart.h"
#include "service/call_op.h"
#include "service/effort.h"
#include "service/encode.h"

typedef struct mutate_job {
    rq_op_mutate mutate;
    rq_mutation mutation;
    rq_condition condition;
} mutate_job;

/* The answer to an append or increment. */
typedef struct cells_response {
    Pb__MutateResponse response;
    Pb__Result result;
} cells_response;

static rq_err fill_response(rq_call *call, rq_row_op *row, cells_response *ret)
{
    *ret = (cells_response){PB__MUTATE_RESPONSE__INIT, PB__RESULT__INIT};
    /* HBASE: the answer to an unconditional append or increment has a result and no `processed`. */
    ret->response.has_processed = row->condition_count > 0;
    ret->response.processed = row->processed;
    if (!row->processed) return RQ_OK;
    ret->result.has_stale = 1;
    ret->response.result = &ret->result;
    return rq__encode_result(call, &row->result, &ret->result);
}

static rq_err reply_cells(rq_call *call, rq_row_op *row)
{
    cells_response r;
    RQ_TRY(fill_response(call, row, &r));
    rq_call_reply(call, &r.response.base);
    return RQ_OK;
}

static void release_result(void *thing)
{
    rq_row_op_clear(thing);
}

static rq_err pack_long(rq_call *call, rq_buf *ret)
{
    mutate_job *job = call->user;
    cells_response r;
    RQ_TRY(fill_response(call, &job->mutate.row, &r));
    return rq__pack_message(call, &r.response.base, ret);
}

/* Cells that go into the message are copied on a pool. */
static bool is_packed_elsewhere(const rq_call *call, const rq_row_op *row)
{
    return !call->client->has_codec && row->result.bytes.len > RQ__PACKED_AT_ONCE;
}

RQ_COLD static void reply_long(rq_call *call, mutate_job *job)
{
    rq_row_op *row = &job->mutate.row;
    call->user = job;
    if (rq_arena_link(&call->arena, release_result, row) == RQ_OK) {
        rq_call_reply_long(call, pack_long);
        return;
    }
    rq_row_op_clear(row);
    rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
}

static bool reads(const rq_row_op *row)
{
    rq_mutation_type type = row->mutations[0].type;
    return type == RQ_MUTATE_APPEND || type == RQ_MUTATE_INCREMENT;
}

/* For results that must be released; they live longer than the call. */
static void reply_and_release(rq_op *op, rq_row_op row)
{
    rq_call *call = rq__call_of_op(op);
    rq_err rc = op->rc; /* of an op that the gate refused, the row's is RQ_OK */
    if (rc != RQ_OK) {
        rq__fail_call_of_op(op);
    } else {
        rc = reply_cells(call, &row);
        if (rc != RQ_OK) rq_call_fail_why(call, rc, row.why);
    }
    rq_row_op_clear(&row);
}

static void mutate_done(rq_op *op)
{
    rq_op_mutate *m = RQ_CONTAINER_OF(op, rq_op_mutate, op);
    if (RQ_UNLIKELY(op->rc == RQ_OK && is_packed_elsewhere(rq__call_of_op(op), &m->row))) {
        reply_long(rq__call_of_op(op), RQ_CONTAINER_OF(m, mutate_job, mutate));
        return;
    }
    if (RQ_UNLIKELY(op->rc != RQ_OK) || reads(&m->row)) {
        reply_and_release(op, m->row);
        return;
    }
    uint8_t message[RQ__PROCESSED_LEN];
    rq_call_reply_packed(rq__call_of_op(op), rq__pack_processed(m->row.processed, message));
}

static rq_err decode_condition(const Pb__MutateRequest *request, mutate_job *job, rq_arena *arena,
                               rq_error *why)
{
    RQ_TRY(rq__decode_condition(request->condition, arena, &job->condition, why));
    RQ_TRY(rq__check_condition_row(&job->condition, job->mutation.row, why));
    job->mutate.row.conditions = &job->condition;
    job->mutate.row.condition_count = 1;
    return RQ_OK;
}

/* REQUIRES: the op has its region. */
static rq_err decode_mutate(rq_call *call, mutate_job *job)
{
    const Pb__MutateRequest *request = (const Pb__MutateRequest *)call->param;
    rq_cursor cells = rq_cursor_of(call->cell_block);
    rq_op *op = &job->mutate.op;
    uint64_t nonce;
    RQ_TRY(rq__decode_mutation(request->mutation, op->region, &cells,
                               rq_region_cell_bytes_max(op->region), &call->arena, &job->mutation,
                               &nonce, &op->why));
    job->mutate.row =
        (rq_row_op){.mutations = &job->mutation,
                    .mutation_count = 1,
                    .nonce_group = request->has_nonce_group ? request->nonce_group : 0,
                    .nonce = nonce,
                    .result = {.with_tags = call->client->codec_with_tags}};
    return request->condition == NULL ? RQ_OK
                                      : decode_condition(request, job, &call->arena, &op->why);
}

static void start_mutate(mutate_job *job)
{
    rq_op *op = &job->mutate.op;
    if (RQ_LIKELY(op->rc == RQ_OK))
        rq_op_mutate_start(&job->mutate);
    else
        rq__fail_call_of_op(op);
}

/* --- a mutation of many cells ----------------------------------------------------------------- */

typedef struct long_mutate {
    rq__apart apart;
    mutate_job *job;
} long_mutate;

static bool is_long(const Pb__MutateRequest *r)
{
    size_t elements = rq__elements_of_mutation(r->mutation);
    if (r->condition != NULL) elements += rq__elements_of_condition(r->condition);
    return elements > RQ__ELEMENTS_AT_ONCE;
}

static void decode_apart(rq__apart *a)
{
    mutate_job *job = RQ_CONTAINER_OF(a, long_mutate, apart)->job;
    job->mutate.op.rc = decode_mutate(a->call, job);
}

static void decoded_apart(rq__apart *a)
{
    mutate_job *job = RQ_CONTAINER_OF(a, long_mutate, apart)->job;
    rq_region *region = job->mutate.op.region;
    start_mutate(job); /* may free the call's arena, and the job with it */
    rq_region_unref(region);
}

RQ_COLD static void handle_long_mutate(const rq_client_service *s, mutate_job *job, rq_call *call)
{
    long_mutate *l = rq_arena_alloc(&call->arena, sizeof *l);
    if (l == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    l->job = job;
    rq_region_ref(job->mutate.op.region);
    rq__apart_start(&l->apart, s->env.executor, call, decode_apart, decoded_apart);
}

/* --- the call --------------------------------------------------------------------------------- */

/* A compressed cell block may have many cells in few bytes; other long lists are in the request as it came. */
static bool may_be_long(const rq_call *call, const Pb__MutateRequest *r)
{
    return call->request_bytes > RQ__TRANSLATED_AT_ONCE ||
           r->mutation->associated_cell_count > (int32_t)RQ__ELEMENTS_AT_ONCE;
}

void rq__handle_mutate(void *ctx, rq_call *call)
{
    rq_client_service *s = ctx;
    const Pb__MutateRequest *request = (const Pb__MutateRequest *)call->param;
    mutate_job *job = rq_arena_alloc(&call->arena, sizeof *job);
    if (job == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    rq_op *op = &job->mutate.op;
    rq__op_of_call(op, RQ_OP_PUT, rq__seat(s, call), call, mutate_done);
    op->rc = rq__find_region(s, request->region, &op->region, &op->why);
    if (RQ_UNLIKELY(may_be_long(call, request)) && op->rc == RQ_OK && is_long(request)) {
        handle_long_mutate(s, job, call);
        return;
    }
    rq_call_decoding(call, true);
    if (RQ_LIKELY(op->rc == RQ_OK)) op->rc = decode_mutate(call, job);
    rq_call_decoding(call, false);
    start_mutate(job);
}
