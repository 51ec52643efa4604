/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: every op passes it once, a batch as one op with counts of its parts. `before` asks the
 * policy, which may refuse the op or delay it; `after` counts and times what the op did.
 *
 * Counting costs a get some twenty instructions: relaxed counters of the seat, written by one
 * thread. An op that waited (at the gate, for a block, for memory or for its next slice) is always
 * timed. Of the other ops a sample is timed (base/histogram.h) and counts for the rest, so that the
 * histograms estimate all ops.
 */
#ifndef RQ_OPS_GATE_H
#define RQ_OPS_GATE_H

#include "base/epoch.h"
#include "base/histogram.h"
#include "ops/op.h"

/* What a batch does in one region, or a scanner's next call: its region is only known while the op
 * runs. */
typedef struct rq_gate_group {
    rq_region *region;
    uint32_t writes, reads;
    bool is_atomic; /* it writes what depends on what it reads */
    /* Known at the op's end: cells written, cells returned, blocks read. */
    uint64_t bytes_written, bytes_returned, block_bytes;
} rq_gate_group;

/* Decides on ops; borrowed by rq_ops. Functions may be NULL, and run on the op's thread. */
typedef struct rq_gate_policy {
    void *ctx;
    /* RQ_OK: the op runs. RQ_E_AGAIN: the op is delayed, and the policy posts `task` to the op's
     * lane when the gate may ask again. If `task` is NULL the op cannot be delayed, because its
     * thread cannot wait. Another error, with op->why: the op is refused. */
    rq_err (*before)(void *ctx, rq_op *op, rq_task *task);
    /* The op has ended with op->rc and op->cost. */
    void (*after)(void *ctx, const rq_op *op);
    /* The same for a group of an op that has begun. It may be refused, not delayed. */
    rq_err (*enter)(void *ctx, const rq_op *op, const rq_gate_group *group, rq_error *why);
    void (*leave)(void *ctx, const rq_op *op, const rq_gate_group *group);
    /* A mutation of the region; an error fails it alone. */
    rq_err (*write)(void *ctx, const rq_op *op, const rq_region *region, const rq_mutation *m,
                    rq_error *why);
} rq_gate_policy;

/* Of one kind and seat. */
typedef struct rq_gate_counters {
    _Atomic uint64_t ops;
    _Atomic uint64_t failed; /* of them; RQ_E_RESULT_TOO_LARGE is no failure */
    _Atomic uint64_t rows;
    _Atomic uint64_t cells;
    _Atomic uint64_t bytes_in;
    _Atomic uint64_t bytes_out;
    _Atomic uint64_t parts; /* of batches; not among `ops` */
    uint64_t sample;        /* mask of the ops that are timed; the seat's thread */
    rq_times times;         /* of all ops, estimated as described above */
} rq_gate_counters;

/* The place of one thread among those that start ops: its lane, its writer, its counters. */
struct rq_ops_seat {
    rq_ops_seat *next;
    struct rq_ops *ops;
    rq_lane *lane;            /* NULL: ops run on the calling thread to their end */
    rq_epoch_member *section; /* the thread's, without a lane: left while an op waits for the log */
    rq_writer *writer;        /* NULL without a lane */
    /* Reads blocks without a thread; NULL without a lane, or if the settings forbid it. */
    struct rq_reads *reads;
    rq_executor *executor;
    _Atomic(const rq_gate_policy *) policy; /* NULL: every op passes */
    rq_gate_counters counters[RQ_OP_KINDS];
};

/* One thread writes. */
static inline uint64_t rq__gate_add(_Atomic uint64_t *counter, uint64_t by)
{
    uint64_t v = atomic_load_explicit(counter, memory_order_relaxed) + by;
    atomic_store_explicit(counter, v, memory_order_relaxed);
    return v;
}

static inline const rq_gate_policy *rq__gate_policy(const rq_ops_seat *seat)
{
    return atomic_load_explicit(&((rq_ops_seat *)(uintptr_t)seat)->policy, memory_order_acquire);
}

/* Sets the start of an op whose caller has not read the clock. */
static inline void rq__gate_start(rq_op *op)
{
    if (op->started_ns == 0) op->started_ns = op->seat->executor->now_ns(op->seat->executor);
}

/* Whether the seat's next op of the kind is in the sample. */
static inline bool rq__gate_samples_next(const rq_ops_seat *seat, rq_op_kind kind)
{
    const rq_gate_counters *c = &seat->counters[kind];
    return rq_sample_has(c->sample, atomic_load_explicit(&c->ops, memory_order_relaxed) + 1);
}

RQ_COLD void rq__gate_ask(rq_op *op, void (*run)(rq_op *op));
RQ_COLD void rq__gate_after(rq_op *op, uint64_t count);

/* Runs `run` if the policy lets the op pass; otherwise refuses the op, or delays it and runs it
 * later. The op's region is pinned while it is delayed. */
static inline void rq_op_begin(rq_op *op, void (*run)(rq_op *op))
{
    if (RQ_UNLIKELY(rq__gate_samples_next(op->seat, op->kind))) rq__gate_start(op);
    if (RQ_LIKELY(rq__gate_policy(op->seat) == NULL))
        run(op);
    else
        rq__gate_ask(op, run);
}

/* Counts the op and hands it back to its caller. Once. */
static inline void rq_op_end(rq_op *op, rq_err rc)
{
    const rq_ops_seat *seat = op->seat;
    rq_gate_counters *c = &op->seat->counters[op->kind];
    uint64_t count = rq__gate_add(&c->ops, 1);
    rq__gate_add(&c->rows, op->cost.rows);
    rq__gate_add(&c->cells, op->cost.cells);
    rq__gate_add(&c->bytes_in, op->cost.bytes_in);
    rq__gate_add(&c->bytes_out, op->cost.bytes_out);
    op->rc = rc;
    if (RQ_UNLIKELY(rc != RQ_OK || op->has_waited || op->repeats || rq__gate_policy(seat) != NULL ||
                    rq_sample_has(c->sample, count)))
        rq__gate_after(op, count);
    op->done(op);
}

/* For groups, if there is a policy. */
RQ_NODISCARD
RQ_COLD rq_err rq__gate_enter_group(const rq_op *op, const rq_gate_group *group, rq_error *why);
RQ_COLD void rq__gate_leave_group(const rq_op *op, const rq_gate_group *group);
RQ_NODISCARD
RQ_COLD rq_err rq__gate_ask_write(const rq_op *op, const rq_region *region, const rq_mutation *m,
                                  rq_error *why);
/* The bytes of the mutation's cells, each as a KeyValue. */
uint64_t rq_mutation_bytes(const rq_mutation *m);

/* Parts of a batch. */
static inline void rq__gate_count_parts(const rq_op *batch, rq_op_kind kind, uint64_t count)
{
    rq__gate_add(&batch->seat->counters[kind].parts, count);
}

#endif
