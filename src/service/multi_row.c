/* SPDX-License-Identifier: Apache-2.0 */
/* MultiRowMutationService: puts and deletes of several rows of one region, all or nothing, with
 * conditions on any of its rows. It is one op of the region (`multi_row`), so no other write comes
 * between conditions and mutations. HBASE: MultiRowMutationEndpoint.mutateRows. */
#include "service/endpoint.h"

#include "proto/endpoints.pb-c.h"

#define RESPONSE                                                                                   \
    "org.apache.hadoop.hbase.protobuf.generated.MultiRowMutationProtos$MutateRowsResponse"

typedef struct mutate_rows {
    rq__endpoint *endpoint;
    rq_write write;
    rq_row_op op;
} mutate_rows;

static void reply(rq__endpoint *e, bool processed)
{
    /* MutateRowsResponse{processed}: field 1, a varint. */
    uint8_t *p = rq_arena_alloc(&e->call->arena, 2);
    if (p == NULL) {
        rq__endpoint_fail(e, RQ_E_NO_MEMORY);
        return;
    }
    p[0] = 0x08;
    p[1] = processed;
    rq__endpoint_end(e, rq_slice_of(p, 2));
}

static void written(rq_write *w)
{
    mutate_rows *m = RQ_CONTAINER_OF(w, mutate_rows, write);
    rq__endpoint *e = m->endpoint;
    if (m->op.rc == RQ_OK) {
        reply(e, m->op.processed);
        return;
    }
    if (m->op.why != NULL) e->why = *m->op.why;
    rq__endpoint_fail(e, m->op.rc);
}

static void release_result(void *thing)
{
    rq_row_op_clear(thing);
}

/* If the first row is outside the region, the region may have changed: the client looks it up
 * again. If a later row is outside, the rows are not in one region, and a retry would not help. */
static rq_err check_rows(rq__endpoint *e, const rq_mutation *mutations, size_t count)
{
    const rq_region_info *info = rq_region_get_info(e->region);
    for (size_t i = 0; i < count; i++) {
        if (rq_region_info_contains(info, mutations[i].row)) continue;
        char row[256];
        rq_bytes_to_string(mutations[i].row, row, sizeof row);
        return rq_fail(&e->why, i == 0 ? RQ_E_WRONG_REGION : RQ_E_DO_NOT_RETRY,
                       "Requested row out of range '%s'", row);
    }
    return RQ_OK;
}

static rq_err decode_mutations(rq__endpoint *e, const Pb__MutateRowsRequest *r, rq_row_op *op)
{
    rq_arena *arena = &e->call->arena;
    rq_cursor no_cells = rq_cursor_of((rq_slice){0}); /* they are in the message */
    op->mutations = rq_arena_alloc(arena, (r->n_mutation_request + 1) * sizeof *op->mutations);
    if (op->mutations == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < r->n_mutation_request; i++) {
        uint64_t nonce;
        RQ_TRY(rq__decode_mutation(r->mutation_request[i], e->region, &no_cells,
                                   rq_region_cell_bytes_max(e->region), arena, &op->mutations[i],
                                   &nonce, &e->why));
    }
    op->mutation_count = r->n_mutation_request;
    return check_rows(e, op->mutations, op->mutation_count);
}

/* HBASE: HRegion.checkRow, called by getRowLock. */
static rq_err check_condition_row(rq__endpoint *e, rq_slice condition_row)
{
    const rq_region_info *info = rq_region_get_info(e->region);
    if (rq_region_info_contains(info, condition_row)) return RQ_OK;
    char name[512];
    char start[256];
    char end[256];
    char row[256];
    rq_region_info_text(info, name, sizeof name);
    rq_bytes_to_string(info->start_key, start, sizeof start);
    rq_bytes_to_string(info->end_key, end, sizeof end);
    rq_bytes_to_string(condition_row, row, sizeof row);
    return rq_fail(&e->why, RQ_E_WRONG_REGION,
                   "Requested row out of range for row lock on HRegion %s, startKey='%s', "
                   "getEndKey()='%s', row='%s'",
                   name, start, end, row);
}

static rq_err decode_conditions(rq__endpoint *e, const Pb__MutateRowsRequest *r, rq_row_op *op)
{
    rq_condition *list = rq_arena_alloc(&e->call->arena, (r->n_condition + 1) * sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < r->n_condition; i++) {
        RQ_TRY(rq__decode_condition(r->condition[i], &e->call->arena, &list[i], &e->why));
        RQ_TRY(check_condition_row(e, list[i].row));
        list[i].null_ignores_op = true;
    }
    op->conditions = list;
    op->condition_count = r->n_condition;
    return RQ_OK;
}

static rq_err decode(rq__endpoint *e, const ProtobufCMessage *request)
{
    const Pb__MutateRowsRequest *r = (const Pb__MutateRowsRequest *)request;
    mutate_rows *m = rq_arena_alloc(&e->call->arena, sizeof *m);
    if (m == NULL) return RQ_E_NO_MEMORY;
    rq_row_op *op = &m->op;
    e->decoded = m;
    m->endpoint = e;
    *op = (rq_row_op){.multi_row = true,
                      .nonce_group = r->has_nonce_group ? r->nonce_group : 0,
                      .nonce = r->has_nonce ? r->nonce : 0};
    RQ_TRY(decode_mutations(e, r, op));
    RQ_TRY(decode_conditions(e, r, op));
    return rq_arena_link(&e->call->arena, release_result, op);
}

static void mutate(rq__endpoint *e, const ProtobufCMessage *request)
{
    mutate_rows *m = e->decoded;
    (void)request;
    m->write = (rq_write){.ops = &m->op,
                          .op_count = 1,
                          .writer = rq__writer(e->service, e->call),
                          .gone = rq_call_gone(e->call),
                          .done = written};
    rq_region_write(e->region, &m->write);
}

const rq__endpoint_method rq__multi_row_methods[] = {
    {"MutateRows", &pb__mutate_rows_request__descriptor, RESPONSE, decode, mutate},
};
const size_t rq__multi_row_method_count = RQ_ARRAY_LEN(rq__multi_row_methods);
