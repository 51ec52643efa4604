/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the batch share: batch.c walks through groups and parts, batch_write.c does the
 * writes, batch_get.c the gets. All of it runs on the op's thread. */
#ifndef RQ_OPS_BATCH_PRIV_H
#define RQ_OPS_BATCH_PRIV_H

#include "ops/batch.h"
#include "ops/ops_priv.h"

/* --- batch.c ---------------------------------------------------------------------------------- */
/* Goes on with the next part. */
void rq__batch_walk(rq_op_batch *b);
/* The batch will end with this error, if not with one before. */
void rq__batch_fail(rq_op_batch *b, rq_err rc);
/* Ends the op when all is walked through and no run is under way. */
void rq__batch_end_if_done(rq_op_batch *b);

/* --- batch_write.c ---------------------------------------------------------------------------- */
/* All parts of the group as one write. */
RQ_NODISCARD
rq_err rq__batch_begin_atomic(rq_op_batch *b);
/* Puts one write to those of its group that are collected. *ret_wait: they must go, and be waited
 * for, before the next part. */
RQ_NODISCARD
rq_err rq__batch_collect(rq_op_batch *b, const rq_batch_part *p, bool *ret_wait, rq_error *why);
/* Hands what is collected to the region. `awaited`: the walk goes on when it is done. True: it is
 * under way. */
bool rq__batch_submit(rq_op_batch *b, bool awaited);

/* --- batch_get.c ------------------------------------------------------------------------------ */
/* Answered at once, or get_running; RQ_E_AGAIN: running, and it waits for a block. */
RQ_NODISCARD
rq_err rq__batch_begin_get(rq_op_batch *b, const rq_batch_part *p, rq_error *why);
/* Tells the caller of a get that was answered at once. */
RQ_NODISCARD
rq_err rq__batch_answer_get(rq_op_batch *b, const rq_batch_part *p);
/* RQ_E_AGAIN: a block must be brought first. */
RQ_NODISCARD
rq_err rq__batch_go_on_get(rq_op_batch *b, const rq_batch_part *p);

#endif
