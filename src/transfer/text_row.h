/* SPDX-License-Identifier: Apache-2.0 */
/* A row as a line of TSV or CSV: the newest version of each listed column. */
#ifndef RQ_TRANSFER_TEXT_ROW_H
#define RQ_TRANSFER_TEXT_ROW_H

#include "transfer/columns.h"

struct rq_op_result;

/* Appends the row's line. `l`, from rq__line_init, is working memory. HBASE_TS_KEY is the newest timestamp of the cells;
 * HBASE_CELL_TTL and HBASE_ATTRIBUTES_KEY are empty. RQ_E_INVALID: the format cannot hold the row's bytes. */
RQ_NODISCARD
rq_err rq__text_put_row(const rq__columns *c, rq__line *l, struct rq_op_result *row, rq_buf *out,
                        uint64_t *ret_cells, rq_error *why);

#endif
