/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast path of scans without a filter: takes whole rows, many in one call.
 *
 * In the ordinary path every cell goes through the merge and the matcher, and every row through the
 * store's and the region's scanner: about a thousand instructions a row. Here one loop copies the
 * cells of rows that one source alone has (a plain file's block, or a memstore segment), as long as
 * they are live puts and one version of each column is wanted. Where the rows of the sources
 * alternate, it changes the source between two rows.
 *
 *     row ─ has another source cells of it? ── yes ───────────────────────► AT_ROW
 *      │ └─ cells: copied, older versions skipped ── row's end ────────────► the next row
 *      │                 └─ a marker, tags, an expired cell, a second version that is wanted, too
 *      │                    many older or hidden ones, the end of the block, a limit ► IN_ROW
 *      └─ enough rows, bytes or cells ─────────────────────────────────────► AT_ROW
 *
 * IN_ROW continues in the ordinary path at the first cell that was not copied; the matcher is set
 * to the state it would have there. The results are the same as without this file; test_read_random
 * compares them. Only for scans accepted by rq__row_run_is_for. No I/O.
 */
#ifndef RQ_STORE_ROW_RUN_H
#define RQ_STORE_ROW_RUN_H

#include "store/merge.h"
#include "store/query_matcher.h"
#include "store/store_scanner.h"

/* Whether rows may be taken. Constant for a scan; `matcher` is the scan's. */
bool rq__row_run_is_for(const rq_scan *scan, const rq__query_matcher *matcher);

/* Starts at the first cell of a row inside the scan's range, as returned by top, which the matcher
 * has not seen. IN_ROW: the matcher is set, and the row's first cells follow rows->end. After an
 * error (of `out`) the scanner can only be closed. */
RQ_NODISCARD
rq_err rq__row_run(rq__merge *m, rq__query_matcher *matcher, const rq_scan *scan,
                   rq_store_rows *rows, rq_cellblock *out);

#endif
