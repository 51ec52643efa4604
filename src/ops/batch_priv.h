/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the batch: batch.c iterates over groups and parts, batch_write.c executes
 * writes, batch_get.c gets. Everything runs on the op's thread, except slices
 * of a get that copy long values (ops/read.h). */
#ifndef RQ_OPS_BATCH_PRIV_H
#define RQ_OPS_BATCH_PRIV_H

#include "ops/batch.h"
#include "ops/ops_priv.h"

/* --- batch.c ---------------------------------------------------------------------------------- */
/* Continues with the next part. */
void rq__batch_walk(rq_op_batch *b);
/* The batch will end with this error, unless an earlier one is set. */
void rq__batch_fail(rq_op_batch *b, rq_err rc);
/* Ends the op when the iteration is finished and no run is in progress. */
void rq__batch_end_if_done(rq_op_batch *b);
/* Begins to decode a long part, or group (NULL), on another thread, when no run is in progress any more; then the
 * iteration continues with it. */
RQ_NODISCARD
rq_err rq__batch_translate(rq_op_batch *b, const rq_batch_part *p);

static inline bool rq__batch_must_translate(const rq_op_batch *b, const rq_batch_part *p)
{
    return RQ_UNLIKELY(p->is_long) && !b->is_translated;
}

/* --- batch_write.c ---------------------------------------------------------------------------- */
/* All parts of the group at hand as one op, added to the run of the atomic groups before it if they are of its region.
 * *ret_wait: these have been submitted instead, and must end before the op's run is. */
RQ_NODISCARD
rq_err rq__batch_collect_atomic(rq_op_batch *b, bool *ret_wait);
/* Whether the group at hand, which has not begun, may be added to the run of atomic groups. */
bool rq__batch_joins(const rq_op_batch *b);
/* Submits the run of atomic groups, if there is one. */
void rq__batch_submit_atomics(rq_op_batch *b);
/* Adds a write to the collected ones of its group. *ret_wait: they must be submitted and finished
 * before the next part. RQ_E_AGAIN: it is decoded on another thread first. */
RQ_NODISCARD
rq_err rq__batch_collect(rq_op_batch *b, const rq_batch_part *p, bool *ret_wait, rq_error *why);
/* Submits the collected writes to the region. `awaited`: the iteration continues when they are
 * done. True: they are in progress. */
bool rq__batch_submit(rq_op_batch *b, bool awaited);
/* At the end of a group: submits the writes collected last. True: the iteration waits for them. */
RQ_NODISCARD
bool rq__batch_submit_rest(rq_op_batch *b);

/* --- batch_get.c ------------------------------------------------------------------------------ */
/* Begins a get. It completes at once, or get_running is set: rq__batch_go_on_get continues it, by a scanner.
 * RQ_E_AGAIN: a block must be loaded first; if get_waits is set, this function is then called again. */
RQ_NODISCARD
rq_err rq__batch_begin_get(rq_op_batch *b, const rq_batch_part *p, rq_error *why);
/* Reports a get that completed at once to the caller. */
RQ_NODISCARD
rq_err rq__batch_answer_get(rq_op_batch *b, const rq_batch_part *p);
/* RQ_E_AGAIN: a block must be loaded first. */
RQ_NODISCARD
rq_err rq__batch_go_on_get(rq_op_batch *b, const rq_batch_part *p);
/* A slice of the get that has a scanner (ops/read.h). */
RQ_NODISCARD
rq_err rq__batch_read_slice(rq_op_read *read);

/* --- batch_look.c ----------------------------------------------------------------------------- */
/* Finds the blocks that the next gets of the group need, to be read together with the one for which
 * the batch is about to wait. */
void rq__batch_look(rq_op_batch *b);
/* Whether the current part was decoded by a look; if so, *ret receives it. */
bool rq__batch_looked_at(rq_op_batch *b, rq_scan *ret);
/* Another group begins. */
void rq__batch_forget_looks(rq_op_batch *b);
void rq__batch_drop_looks(rq_op_batch *b);

#endif
