/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of one op side by side: blocks that its next steps will need are read while it waits for the
 * one that it needs now. The op goes on when all are there; then they are pinned in its ctx. */
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
    size_t charged;           /* bytes of its blocks, read or not: a part of those of all ops */
    _Atomic unsigned running; /* with the op's own read */
    rq_beside_read reads[RQ_BESIDE_MAX];
} rq_beside;

/* A ctx for a look that may find that a block is needed; NULL: there are enough, or the blocks of all
 * ops take too much memory. */
rq_read_ctx *rq__beside_next(rq_beside *b);
/* Keeps the need of the ctx that rq__beside_next returned, unless it is `own`'s or is kept already. */
void rq__beside_keep(rq_beside *b, const rq_read_ctx *own);
/* Drops the reads that have not begun, and charges nothing any more: the op has released the blocks of
 * the others. */
void rq__beside_clear(rq_beside *b);

/* --- for read.c ------------------------------------------------------------------------------- */
/* Begins the reads. The op's own comes next. */
void rq__beside_begin(rq_beside *b, rq_op_read *op);
/* A read has ended. True: it was the last. Any thread. */
bool rq__beside_ended(rq_beside *b);
/* Pins the blocks in the op's ctx. On its lane. */
void rq__beside_collect(rq_beside *b, rq_read_ctx *own);

#endif
