/* SPDX-License-Identifier: Apache-2.0 */
/* Get: reads one row, by the fast path if the row is in one place, otherwise with a scanner. A get
 * that needs a block waits for it and takes the fast path again. */
#ifndef RQ_OPS_GET_H
#define RQ_OPS_GET_H

#include "ops/read.h"
#include "region/region_scanner.h"

typedef struct rq_op_get {
    /* The caller's; op.region is the row's. */
    rq_scan scan;      /* is_get */
    rq_cellblock *out; /* the row's cells are appended here; not truncated on an error */
    /* The op's. */
    rq_cellblock_mark begun;
    rq_region_scanner *scanner; /* NULL: on the fast path */
    rq_region *held;            /* a reference; NULL: it has not waited */
    unsigned waits;             /* of the fast path */
    rq_op_read read;
} rq_op_get;

/* RQ_E_RESULT_TOO_LARGE: out->bytes_max was reached. */
void rq_op_get_start(rq_op_get *g);

#endif
