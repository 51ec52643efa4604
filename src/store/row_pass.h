/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The short way over rows that a filter leaves out: most rows of most scans with a filter.
 *
 * The scanner's ordinary way takes a cell from the merge, shows it to the matcher, asks the filter,
 * steps, and tells the region at each row's end, which asks the filter about the row and begins
 * again: some 300 instructions a row and 250 a cell beside what the filter itself costs. Here the
 * same questions are put in one loop over the block at hand, as long as nothing is in their way:
 * one file alone has the rows (a run, merge.h), and each cell is a living put, the only one of its
 * column.
 *
 *     row ─ key? ── out ──────────────────────────────────────────► left out, next row
 *             └─ cells: filter ── none included ──────────────────► left out, next row
 *                         │ └─ a filter of whole rows: included ones are collected
 *                         │                └─ row's end: filter ──► left out, next row
 *                         │                            └──────────► ROW_READ: appended
 *                         └─ included, a hint, or any cell not as above: IN_ROW
 *
 * IN_ROW hands the row over to the ordinary way, inside it: the matcher is brought to where it
 * would be, and what the filter has said of the cell at hand is told to it, so the filter is asked
 * about no cell twice. Whatever comes out is what would have come out without this file;
 * tests/model's test_read_random compares.
 *
 * Only for what rq__row_pass_is_for says. No I/O: the end of the block ends the pass.
 */
#ifndef RQ_STORE_ROW_PASS_H
#define RQ_STORE_ROW_PASS_H

#include "store/merge.h"
#include "store/query_matcher.h"
#include "store/store_scanner.h"

/* Constant for a scan. The matcher is the scan's. */
bool rq__row_pass_is_for(const rq_scan *scan, const rq__query_matcher *matcher);

/* From the first cell top gave of a row nobody was asked about, inside the scan. *ret_ended: the
 * filter wants nothing more. IN_ROW: the merge stands on the cell to go on with, and the matcher
 * has been told; `*ret->shown` cells of the row were appended. */
RQ_NODISCARD
rq_err rq__row_pass(rq__merge *m, rq__query_matcher *matcher, const rq_scan *scan,
                    rq_store_pass *pass, rq_cellblock *out, uint32_t *ret_shown, bool *ret_ended,
                    rq_error *why);

#endif
