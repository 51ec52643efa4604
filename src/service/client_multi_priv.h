/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of Multi: client_multi.c turns the request's region actions and actions into
 * groups and parts of a batch (ops/batch.h), client_multi_answer.c encodes their results. */
#ifndef RQ_SERVICE_CLIENT_MULTI_PRIV_H
#define RQ_SERVICE_CLIENT_MULTI_PRIV_H

#include "ops/batch.h"
#include "service/apart.h"
#include "service/call_op.h"
#include "service/client_priv.h"

typedef struct rq__multi {
    rq_op_batch batch;
    struct rq__multi_long
        *last_long; /* of the results that are not encoded yet (client_multi_answer.c) */
    rq_client_service *service;
    rq_batch_part *entered; /* parts of the group that is being entered; NULL: none is */
    size_t entered_count;   /* the first of these parts, whose kinds are known */
    uint64_t announced;     /* cells of the group in the request's cell block */
    rq__apart apart;        /* of a request with many region actions */
    size_t action_count;
    size_t rare_count; /* messages in the answer that take long to pack, and cells in them */
    struct rq__translation *translation; /* of the last long part; NULL: there was none */
    rq_cursor cells;                     /* of the request's cell block */
    rq_cellblock get_cells;              /* of a get, when they go into the message */
    const Pb__Condition *condition;      /* of the group at hand; may be NULL */
    bool stale;                          /* its region was named as a replica */
    Pb__MultiResponse response;
    Pb__MultiRegionLoadStats stats;
    Pb__Result nothing; /* the result of every put and delete */
} rq__multi;

static inline rq__multi *rq__multi_of(rq_op_batch *b)
{
    return RQ_CONTAINER_OF(b, rq__multi, batch);
}

static inline rq_call *rq__multi_call(const rq__multi *m)
{
    return rq__call_of_op(&m->batch.read.op);
}

/* --- client_multi_answer.c: rq_batch_caller --------------------------------------------------- */
/* Begins the answer of the current group, with space for all its parts. */
RQ_NODISCARD
rq_err rq__multi_new_group(rq__multi *m, size_t part_count);
rq_err rq__multi_group_failed(rq_op_batch *b, rq_err rc, const rq_error *why);
rq_err rq__multi_failed(rq_op_batch *b, const rq_batch_part *p, rq_err rc, const rq_error *why);
rq_err rq__multi_got(rq_op_batch *b, const rq_batch_part *p, uint32_t cells);
rq_err rq__multi_written(rq_op_batch *b, void *group, uint32_t index, rq_row_op *op, rq_err rc,
                         const rq_error *why);
rq_err rq__multi_atomic_written(rq_op_batch *b, void *group, const rq_row_op *op);
/* Of an endpoint call. */
RQ_NODISCARD
rq_err rq__multi_add_service_result(rq__multi *m, uint32_t index, const char *response_class,
                                    rq_slice response);
/* Ends the call. */
void rq__multi_reply(rq__multi *m);

#endif
