/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel reads of one op: while it waits for the block that it needs now, the blocks that its
 * next steps will need are read too. The op continues when all have been read; they are then pinned
 * in its ctx. */
#ifndef RQ_OPS_BESIDE_H
#define RQ_OPS_BESIDE_H

#include "ops/ops.h"
#include "ops/read.h"

/* With the op's own read: its ctx has pins for a few more. */
#define RQ_BESIDE_MAX 15
_Static_assert(RQ_BESIDE_MAX + 1 < RQ_READ_PINS_MAX, "the blocks are pinned in one ctx");
typedef struct rq_beside_read {
    rq_task task;
    rq_read_ctx ctx;
    struct rq_beside *all;
} rq_beside_read;

typedef struct rq_beside {
    rq_ops *ops;
    struct rq_op_read *op;
    unsigned count;
    size_t charged;           /* bytes of its blocks, read or not; counted in the sum of all ops */
    _Atomic unsigned running; /* with the op's own read */
    rq_beside_read reads[RQ_BESIDE_MAX];
} rq_beside;

/* A ctx for finding the block that a next step of the op needs. NULL: no more reads for this op, or
 * the blocks that all ops read ahead take too much memory. */
rq_read_ctx *rq__beside_next(rq_beside *b);
/* Keeps the read that the ctx from rq__beside_next needs, unless it is the same as `own`'s or is
 * kept already. */
void rq__beside_keep(rq_beside *b, const rq_read_ctx *own);
/* Drops the reads that have not begun, and ends the charge of all blocks. REQUIRES: the op has
 * unpinned the blocks that were read. */
void rq__beside_clear(rq_beside *b);

/* --- for read.c ------------------------------------------------------------------------------- */
/* Begins the reads. The op's own comes next. */
void rq__beside_begin(rq_beside *b, rq_op_read *op);
/* A read has ended. True: it was the last. Any thread. */
bool rq__beside_ended(rq_beside *b);
/* Pins the blocks in the op's ctx. On its lane. */
void rq__beside_collect(rq_beside *b, rq_read_ctx *own);

#endif
