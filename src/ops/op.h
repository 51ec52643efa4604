/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operation (op): one request to the server, free of any wire. The caller fills a struct that
 * embeds an rq_op (rq_op_get, rq_op_mutate, rq_op_scan, rq_op_batch …) and starts it.
 *
 *   caller ─ start ─► gate before ─► work: region, log, blocks ─► gate after ─► done()
 *
 * done() runs exactly once, on the thread that started the op or on the seat's lane, and may run
 * before start returns: an op that needs neither a block nor the log completes at once, and
 * allocates nothing for it. Everything an op points to is pinned by the caller until done(). The op
 * lives in the caller's memory and is the caller's again when done() is entered.
 *
 * An op is started inside a read section of the epoch. With a seat that has a lane (an event loop)
 * it never blocks and may complete later. With a seat without one it runs on the calling thread to
 * its end, and blocks where it must: when start returns, done() has run; the op's memory stays
 * until then.
 */
#ifndef RQ_OPS_OP_H
#define RQ_OPS_OP_H

#include "base/arena.h"
#include "base/executor.h"
#include "cell/cellblock.h"
#include "region/region.h"

typedef struct rq_op rq_op;
typedef struct rq_ops_seat rq_ops_seat; /* ops/gate.h */

typedef enum rq_op_kind {
#define X(name, text) name,
#include "ops/ops.def"
#undef X
    RQ_OP_KINDS
} rq_op_kind;

/* The name of a kind; static. */
const char *rq_op_kind_text(rq_op_kind kind);

/* Callbacks from a running op to its caller, on the lane of the op's seat. One table per kind of
 * caller (for RPC: service/call_op.c). */
typedef struct rq_op_caller {
    /* Charges the memory of a result before it is made: it has `held` bytes and is about to have
     * `wanted`. RQ_E_AGAIN: `task` runs on the lane when the op may ask again; until then the op
     * holds nothing that others wait for. Another error ends the op. */
    rq_err (*may_grow)(rq_op *op, size_t held, size_t wanted, rq_task *task);
    /* Memory for results is short: an op that can stop early with a small result does. */
    bool (*is_scarce)(const rq_op *op);
    /* While on, the op's arena may refuse memory: a request's data may grow many times when it is
     * decoded. While off, the arena's memory is charged and never refused. */
    void (*limit_memory)(rq_op *op, bool on);
    /* The result is no longer needed. */
    bool (*has_gone)(const rq_op *op);
    /* The same for other threads, perhaps a little later. Valid until done(). May be NULL. */
    const _Atomic bool *(*gone)(const rq_op *op);
    /* Runs `work` on a pool's thread, in turn with long work of other callers, and then `done` on the lane. Never before it
     * returns. RQ_E_NO_MEMORY: neither runs. May be NULL: the op takes a thread of RQ_POOL_CODEC itself. */
    rq_err (*work_apart)(rq_op *op, rq_task *work, rq_task *done);
    /* Posts `task`, the next slice of an op that takes long, behind other work of the lane. */
    void (*defer)(rq_op *op, rq_task *task);
    /* The value of a request attribute; .ptr NULL: there is none of that name. May be NULL. */
    rq_slice (*attribute)(const rq_op *op, const char *name);
    /* It has waited `ns` for a block: for a thread that reads, and for the disk. May be NULL. */
    void (*waited_for_block)(rq_op *op, uint64_t ns);
} rq_op_caller;

/* The cost of an op, for the gate. */
typedef struct rq_op_cost {
    uint64_t rows;
    uint64_t cells;
    uint64_t bytes_in;  /* of the request; the caller's */
    uint64_t bytes_out; /* of the result's cells */
} rq_op_cost;

struct rq_op {
    /* Set by rq_op_init. */
    rq_op_kind kind;
    rq_ops_seat *seat;
    rq_arena *arena;            /* of the request; cleared after done() */
    const rq_op_caller *caller; /* NULL: memory is not limited, and the caller stays */
    void *user;                 /* the caller's */
    void (*done)(rq_op *op);
    /* Set by the caller if known; otherwise as rq_op_init leaves them. */
    rq_slice principal; /* name of the user; empty: none was named */
    /* Valid until the read section ends, and again in rq_op_end, which adds the op's duration to
     * the times of the region's table. NULL: not found yet, or no region. */
    rq_region *region;
    uint64_t started_ns;  /* executor's clock; 0: the gate reads it if it times the op */
    uint64_t deadline_ns; /* UINT64_MAX: none */
    uint64_t trace_id;    /* 0: not traced */
    uint32_t priority;    /* 0: normal */
    bool repeats;         /* repetition of a request that the gate has counted */
    /* The op's. */
    bool has_waited; /* at the gate, for a block, for memory or for its next slice */
    bool is_pinned;  /* region is a reference, of an op that the gate delays */
    bool is_refused; /* at the gate: it has not begun */
    rq_err rc;       /* valid from done() on, as are cost and why */
    rq_op_cost cost;
    void (*run)(rq_op *op); /* of an op that the gate delays */
    rq_task task;
    rq_error why;
};

/* Sets the defaults of fields that the caller may set. */
static inline void rq_op_init(rq_op *op, rq_op_kind kind, rq_ops_seat *seat, rq_arena *arena,
                              void (*done)(rq_op *op))
{
    op->kind = kind;
    op->seat = seat;
    op->arena = arena;
    op->caller = NULL;
    op->user = NULL;
    op->done = done;
    op->principal = (rq_slice){0};
    op->region = NULL;
    op->started_ns = 0;
    op->deadline_ns = UINT64_MAX;
    op->trace_id = 0;
    op->priority = 0;
    op->repeats = false;
    op->has_waited = false;
    op->is_pinned = false;
    op->is_refused = false;
    op->rc = RQ_OK;
    op->cost = (rq_op_cost){0};
    rq_error_clear(&op->why);
}

#endif
