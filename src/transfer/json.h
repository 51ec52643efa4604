/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row as a line of JSON:
 *
 *    {"row":"r1","cells":[{"family":"cf","qualifier":"q","timestamp":7,"value":"v"}, …]}
 *
 * and for a delete marker "type":"Delete" (HBase's names of types). Texts are UTF-8; bytes that are
 * no text, control characters and the backslash are \xNN, in JSON "\\xNN". A timestamp missing in
 * the input is the transfer's.
 */
#ifndef RQ_TRANSFER_JSON_H
#define RQ_TRANSFER_JSON_H

#include "base/buf.h"
#include "cell/cell.h"

struct rq_op_result;

/* Appends the row's line. */
RQ_NODISCARD
rq_err rq__json_put_row(rq_buf *out, struct rq_op_result *row, uint64_t *ret_cells);

/* A line's row; the cells point into `bytes`. All reused; zeroed is empty. */
typedef struct rq__json_row {
    rq_cell *cells;
    size_t count, cap;
    rq_buf bytes;
} rq__json_row;

/* NULL: the line is valid; otherwise the reason why it is not. `*rc` is another error: no
 * memory. */
const char *rq__json_parse(rq_slice line, int64_t now_ms, rq__json_row *r, rq_err *rc);
void rq__json_row_clear(rq__json_row *r);

#endif
