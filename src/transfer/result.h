/* SPDX-License-Identifier: Apache-2.0 */
/* A row in an exported file: a delimited message Result, as HBASE: ResultSerialization writes it. */
#ifndef RQ_TRANSFER_RESULT_H
#define RQ_TRANSFER_RESULT_H

#include "base/buf.h"
#include "cell/cell.h"

struct rq_op_result;

/* Replaces the buffer's content by the row's result. *ret_row: the row's key, in the answer;
 * *ret_cells: how many cells. REQUIRES: the row has a cell. */
RQ_NODISCARD
rq_err rq__result_put(rq_buf *out, rq_buf *scratch, struct rq_op_result *row, rq_slice *ret_row,
                      uint64_t *ret_cells);

/* The cells of a serialized result: point into it. Untrusted bytes: RQ_E_MALFORMED. */
RQ_NODISCARD
rq_err rq__result_open(rq_slice value, rq_slice *ret_cells);
/* The next cell; RQ_E_END. A cell's type is that of a put or of a delete. */
RQ_NODISCARD
rq_err rq__result_next(rq_slice *cells, rq_cell *ret);

#endif
