/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast path over rows that a filter excludes, which are most rows of most scans with a filter.
 *
 * The ordinary path takes a cell from the merge, passes it to the matcher, asks the filter, steps,
 * and at each row's end returns to the region scanner, which asks the filter about the row: about
 * 300 instructions per row and 250 per cell besides the filter itself. Here one loop over the
 * current block asks the same questions, as long as one file alone has the rows (a run, merge.h)
 * and each cell is a live put, the only one of its column.
 *
 *     row ─ key? ── excluded ─────────────────────────────────────► skipped, next row
 *             └─ cells: filter ── none included ──────────────────► skipped, next row
 *                         │ └─ a filter of whole rows: included ones are collected
 *                         │                └─ row's end: filter ──► skipped, next row
 *                         │                            └──────────► ROW_READ: appended
 *                         └─ included, a hint, or any other kind of cell: IN_ROW
 *
 * IN_ROW continues the row in the ordinary path: the matcher is set to the state it would have
 * there and is given the filter's code for the current cell, so that the filter sees no cell twice.
 * The results are the same as without this file; tests/model's test_read_random compares them.
 *
 * Only for scans accepted by rq__row_pass_is_for. No I/O: the pass ends at the end of the block.
 */
#ifndef RQ_STORE_ROW_PASS_H
#define RQ_STORE_ROW_PASS_H

#include "store/merge.h"
#include "store/query_matcher.h"
#include "store/store_scanner.h"

/* Whether row passes may be used. Constant for a scan; `matcher` is the scan's. */
bool rq__row_pass_is_for(const rq_scan *scan, const rq__query_matcher *matcher);

/* Starts at the first cell of a row, as returned by top, about which the filter was not asked,
 * inside the scan's range. *ret_ended: the filter wants no more rows. IN_ROW: the merge is at
 * the cell to continue with, the matcher is set, and *ret_shown cells of the row were appended. */
RQ_NODISCARD
rq_err rq__row_pass(rq__merge *m, rq__query_matcher *matcher, const rq_scan *scan,
                    rq_store_pass *pass, rq_cellblock *out, uint32_t *ret_shown, bool *ret_ended,
                    rq_error *why);

#endif
