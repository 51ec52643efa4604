/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A write: a put, delete, append or increment of a row, several of them on one row or on rows of one
 * region, each with conditions (check-and-mutate) or without. All or nothing, and durable as asked
 * for when done() runs.
 */
#ifndef RQ_OPS_MUTATE_H
#define RQ_OPS_MUTATE_H

#include "ops/gate.h"

typedef struct rq_op_mutate {
    rq_row_op row; /* the caller's; its results are valid from done() on: rq_row_op_clear */
    rq_op op;      /* op.region is the row's; op.kind is set by start */
    rq_write write;
} rq_op_mutate;

/* What a batch counts it as. */
rq_op_kind rq_op_kind_of_row(const rq_row_op *row);
/* rc, processed and result.bytes are set; a result takes its with_tags from the caller. */
void rq_op_mutate_start(rq_op_mutate *m);

#endif
