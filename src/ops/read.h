/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An op that reads: how it waits for a block, for memory, and for its next slice. `step` runs again
 * until it no longer calls rq_op_read_wait.
 *
 *   step ─► rq_op_read_slice ─► slice: RQ_E_AGAIN ─► rq_op_read_wait ─► step
 *                                                      │ a value is too long to be copied on the lane:
 *                                                      └► slice, on a thread of RQ_POOL_READ ─► step, which gets its result
 */
#ifndef RQ_OPS_READ_H
#define RQ_OPS_READ_H

#include "base/meter.h"
#include "hfile/read_ctx.h"
#include "ops/gate.h"

typedef struct rq_op_read {
    rq_read_ctx ctx;
    rq_err fetch_rc;   /* of the last wait; the error is in op.why */
    uint64_t fetch_ns; /* spent reading blocks */
    uint64_t asked_ns; /* when the block it waits for was asked for */
    rq_task task;
    struct rq_beside *beside; /* blocks to be read together with it; may be NULL */
    bool goes_on;             /* without a lane: step is to run again */
    rq_cellblock *sink;       /* the cells gathered so far; may be NULL. May move during a wait */
    const rq_cellblock *held; /* others that the op gathers; may be NULL */
    void (*step)(struct rq_op_read *read);
    /* Reads for a time slice, and suspends the op's scanner if rq_op_read_suspends; any thread, inside a read section.
     * Errors are in op.why. */
    rq_err (*slice)(struct rq_op_read *read);
    bool is_read; /* a slice runs, or has run, on another thread; its result: */
    rq_err slice_rc;
    rq_op op;
} rq_op_read;

/* After rq_op_init. The op calls rq_read_ctx_clear before it ends. */
static inline void rq_op_read_init(rq_op_read *read, void (*step)(rq_op_read *read),
                                   rq_err (*slice)(rq_op_read *read))
{
    bool on_lane = read->op.seat->lane != NULL;
    read->ctx = (rq_read_ctx){.may_block = !on_lane, .copy_max = on_lane ? RQ_READ_COPY_MAX : 0};
    read->fetch_rc = RQ_OK;
    read->fetch_ns = 0;
    read->beside = NULL;
    read->goes_on = false;
    read->sink = NULL;
    read->held = NULL;
    read->step = step;
    read->slice = slice;
    read->is_read = false;
}
/* Called by `slice` with the result `rc` of its read: whether `slice` must suspend the scanner. After an error the scanner is only
 * closed. After a read on another thread it is suspended, so that it holds no pins when the op continues on its lane. */
static inline bool rq_op_read_suspends(const rq_op_read *read, rq_err rc)
{
    return rc == RQ_E_AGAIN || (rc == RQ_OK && read->is_read);
}
/* For step: how the last wait has ended; RQ_E_CALLER_DISCONNECTED if nobody waits for the result any more. */
RQ_NODISCARD
rq_err rq__op_read_waited(const rq_op_read *read);
/* For step: the result of the op's next slice, which runs now, or has run on another thread; or the error of
 * rq__op_read_waited. */
RQ_NODISCARD
rq_err rq_op_read_slice(rq_op_read *read);
/* After RQ_E_AGAIN: loads the block that ctx needs, or ends the slice, then runs step again, which
 * must check fetch_rc first. REQUIRES: the caller has suspended its scanner. */
RQ_COLD void rq_op_read_wait(rq_op_read *read);
/* Runs step; without a lane until the op has ended. */
void rq__op_read_run(rq_op_read *read);
/* The time at which a slice that begins now must yield (rq_scan_limits.yield_ns); 0 on a seat
 * without a lane: no limit. */
uint64_t rq_op_read_yield_ns(const rq_op_read *read);

/* Limits the cells that the scan reads from this family to timestamps in `range`. If scan->families
 * is empty (all families), a list of all families is made in the arena; otherwise the caller's list
 * is changed in place. */
RQ_NODISCARD
rq_err rq_op_read_limit_family(rq_scan *scan, const rq_region *region, rq_arena *arena,
                               rq_slice family, rq_time_range range);

#endif
