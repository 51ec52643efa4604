/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutate: one put, delete, append or increment, with or without a condition. Decoded on the loop,
 * handed to the region as a batch of one, answered on the same loop once it is durable.
 * HBASE: RSRpcServices.mutate.
 */
#include "service/client_priv.h"

#include "service/encode.h"

typedef struct mutate_job {
    rq_call *call;
    rq_write write;
    rq_row_op op;
    rq_mutation mutation;
    rq_condition condition;
} mutate_job;

static void release_result(void *thing)
{
    rq_row_op_clear(thing);
}

static rq_err reply_mutate(mutate_job *m)
{
    bool reads = m->mutation.type == RQ_MUTATE_APPEND || m->mutation.type == RQ_MUTATE_INCREMENT;
    if (!reads) {
        uint8_t message[RQ__PROCESSED_LEN];
        rq_call_reply_packed(m->call, rq__pack_processed(m->op.processed, message));
        return RQ_OK;
    }
    Pb__MutateResponse response = PB__MUTATE_RESPONSE__INIT;
    Pb__Result result = PB__RESULT__INIT;
    /* HBASE: a plain append or increment answers its result and no `processed`. */
    response.has_processed = m->op.condition_count > 0;
    response.processed = m->op.processed;
    if (m->op.processed) {
        result.has_stale = 1;
        response.result = &result;
        RQ_TRY(rq__encode_result(m->call, &m->op.result, &result));
    }
    rq_call_reply(m->call, &response.base);
    return RQ_OK;
}

static void mutate_done(rq_write *w)
{
    mutate_job *m = RQ_CONTAINER_OF(w, mutate_job, write);
    rq_err rc = m->op.rc;
    if (rc == RQ_OK) rc = reply_mutate(m);
    if (rc != RQ_OK) rq_call_fail_why(m->call, rc, m->op.why);
}

static rq_err begin_mutate(rq_client_service *s, rq_call *call, mutate_job *m, rq_error *why)
{
    const Pb__MutateRequest *request = (const Pb__MutateRequest *)call->param;
    rq_cursor cells = rq_cursor_of(call->cell_block);
    rq_region *region;
    uint64_t nonce;
    RQ_TRY(rq__find_region(s, request->region, &region, why));
    RQ_TRY(rq__decode_mutation(request->mutation, region, &cells, rq_region_cell_bytes_max(region),
                               &call->arena, &m->mutation, &nonce, why));
    m->call = call;
    m->op.mutations = &m->mutation;
    m->op.mutation_count = 1;
    m->op.multi_row = false;
    m->op.conditions = NULL;
    m->op.condition_count = 0;
    if (request->condition != NULL) {
        RQ_TRY(rq__decode_condition(request->condition, &call->arena, &m->condition, why));
        RQ_TRY(rq__check_condition_row(&m->condition, m->mutation.row, why));
        m->op.conditions = &m->condition;
        m->op.condition_count = 1;
    }
    m->op.nonce_group = request->has_nonce_group ? request->nonce_group : 0;
    m->op.nonce = nonce;
    m->op.rc = RQ_OK;
    m->op.why = NULL;
    m->op.processed = false;
    m->op.result = (rq_cellblock){.with_tags = call->client->codec_with_tags};
    RQ_TRY(rq_arena_link(&call->arena, release_result, &m->op));
    m->write = (rq_write){
        .ops = &m->op, .op_count = 1, .writer = rq__writer(s, call), .done = mutate_done};
    rq_region_write(region, &m->write);
    return RQ_OK;
}

void rq__handle_mutate(void *ctx, rq_call *call)
{
    rq_error why;
    rq_error_clear(&why);
    mutate_job *m = rq_arena_alloc(&call->arena, sizeof *m);
    rq_call_decoding(call, true);
    rq_err rc = m == NULL ? RQ_E_NO_MEMORY : begin_mutate(ctx, call, m, &why);
    rq_call_decoding(call, false);
    if (rc != RQ_OK) rq_call_fail_why(call, rc, &why);
}
