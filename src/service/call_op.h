/* SPDX-License-Identifier: Apache-2.0 */
/* A call as the caller of an op: the callbacks of ops/op.h, implemented by the call's loop and
 * connection. */
#ifndef RQ_SERVICE_CALL_OP_H
#define RQ_SERVICE_CALL_OP_H

#include "ops/gate.h"
#include "rpc/call.h"

/* rq_op_init with the parameters of the call. The op's `user` is the call. */
void rq__op_of_call(rq_op *op, rq_op_kind kind, rq_ops_seat *seat, rq_call *call,
                    void (*done)(rq_op *op));

static inline rq_call *rq__call_of_op(const rq_op *op)
{
    return op->user;
}

/* Whether an op is a call's: others have another caller. */
bool rq__op_is_of_call(const rq_op *op);

/* Ends the op's call with the op's error. */
RQ_COLD void rq__fail_call_of_op(const rq_op *op);

#endif
