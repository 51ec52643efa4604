/* SPDX-License-Identifier: Apache-2.0 */
/* A write: a put, delete, append or increment of a row, or several of them on one row or on rows of
 * one region, with or without conditions (check-and-mutate). All or nothing, and durable as
 * requested when done() runs. */
#ifndef RQ_OPS_MUTATE_H
#define RQ_OPS_MUTATE_H

#include "ops/gate.h"

typedef struct rq_op_mutate {
    rq_row_op row; /* filled by the caller; its results are valid from done() on; free with
                    * rq_row_op_clear */
    rq_op op;      /* op.region is the row's; op.kind is set by start */
    rq_write write;
} rq_op_mutate;

_Static_assert(RQ_OP_DELETE - RQ_OP_PUT == (int)RQ_MUTATE_DELETE &&
                   RQ_OP_APPEND - RQ_OP_PUT == (int)RQ_MUTATE_APPEND &&
                   RQ_OP_INCREMENT - RQ_OP_PUT == (int)RQ_MUTATE_INCREMENT,
               "kinds of single mutations stand in their order");

/* The kind under which a batch counts it. */
static inline rq_op_kind rq__op_kind_of_row(const rq_row_op *row)
{
    if (row->condition_count > 0) return RQ_OP_CHECK_AND_MUTATE;
    if (row->mutation_count != 1) return RQ_OP_MUTATE_ROW;
    return RQ_OP_PUT + row->mutations[0].type;
}

/* Set on done(): rc, processed and result.bytes; the caller sets the result's with_tags. */
void rq_op_mutate_start(rq_op_mutate *m);

#endif
