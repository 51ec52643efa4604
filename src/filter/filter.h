/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters: the part of a read that the client sends along and the server runs on each cell and
 * row. One instance belongs to one scanner of one region; it keeps state from cell to cell and row
 * to row, does no I/O and is used by one thread at a time.
 *
 * The order of calls (HBASE: Filter, StoreScanner, RegionScannerImpl), per row:
 *
 *   rq_filter_all_remaining   true: the scan is over (looked at before each row and each batch)
 *   rq_filter_row_key         true: the row is left out; no cell of it is shown to the filter
 *   rq_filter_cell            for each cell that versions, deletes and time range let through
 *     rq_filter_next_cell_hint   after SEEK_NEXT_USING_HINT, with the same cell
 *     rq_filter_transform_cell   after one of the INCLUDE codes, with the same cell
 *   row's end                 if rq_filter_has_filter_row(): rq_filter_row_done on the collected
 *                             cells; else rq_filter_row (RowFilter, PrefixFilter and FuzzyRowFilter
 *                             answer there without having a filter row)
 *   rq_filter_reset           before the next row
 *
 * What filter_row_key and filter_cell return an error for is what HBase throws there (a
 * LongComparator on a value that is no long): the request fails with it.
 */
#ifndef RQ_FILTER_FILTER_H
#define RQ_FILTER_FILTER_H

#include "base/arena.h"
#include "cell/cell.h"
#include "filter/pace.h"

/* HBASE: Filter.ReturnCode. */
typedef enum rq_filter_code {
    RQ_FILTER_INCLUDE,
    RQ_FILTER_INCLUDE_AND_NEXT_COL,
    RQ_FILTER_SKIP,
    RQ_FILTER_NEXT_COL,
    RQ_FILTER_NEXT_ROW, /* of this family: other families of the row may still be asked about */
    RQ_FILTER_SEEK_NEXT_USING_HINT,
    RQ_FILTER_INCLUDE_AND_SEEK_NEXT_ROW,
} rq_filter_code;

/* HBASE: FilterWrapper.FilterRowRetCode. */
typedef enum rq_filter_row_verdict {
    RQ_FILTER_ROW_NOT_CALLED, /* no cell was left to decide about */
    RQ_FILTER_ROW_INCLUDE,
    RQ_FILTER_ROW_EXCLUDE, /* all keep flags are cleared */
} rq_filter_row_verdict;

typedef struct rq_filter rq_filter;

/*
 * From the wire: the Java class name and the bytes of its message (Filter.proto); both are copied.
 * The filter lives in the arena (what grows is linked to it) and goes with it: give the scanner's
 * arena, not the request's. Filters compare rows as plain bytes, in hbase:meta too (HBASE:
 * CellComparator.getInstance() in FilterListBase and FuzzyRowFilter). Errors carry HBase's
 * exception and text.
 */
RQ_NODISCARD
rq_err rq_filter_parse(rq_slice java_class_name, rq_slice serialized, rq_arena *arena,
                       rq_filter **ret, rq_error *why);

/* HBase does this for a reversed scan before the first row. */
void rq_filter_set_reversed(rq_filter *f, bool reversed);
/* What RandomRowFilter's dice start from: the environment's randomness. Without it each scan draws
 * the same rows. */
void rq_filter_set_seed(rq_filter *f, uint64_t seed);

/* How many cells may be shown to the filter between two looks at the clock where `steps` may
 * without one: a list of thousands, or of thousands of keys, asks each of them about each cell. At
 * least 1. NULL is fine. */
uint32_t rq_filter_clock(const rq_filter *f, uint32_t steps);

/* How long the filter may take (pace.h): the filter's; NULL where it never takes long. */
rq_pace *rq_filter_pace(const rq_filter *f);

void rq_filter_reset(rq_filter *f);
bool rq_filter_all_remaining(rq_filter *f);
/* What need not be asked: false, where rq_filter_all_remaining is never true, and where
 * rq_filter_transform_cell leaves every cell as it is. Constant for a filter. */
bool rq_filter_may_end(const rq_filter *f);
bool rq_filter_may_transform(const rq_filter *f);
/* The same of two calls before and behind each row: false, where rq_filter_row_key lets every row
 * pass and keeps nothing of it in mind, and where rq_filter_reset has nothing to forget. */
bool rq_filter_judges_rows(const rq_filter *f);
bool rq_filter_resets(const rq_filter *f);
/* May a cell end more than its row (WhileMatchFilter)? Such a filter is shown the cells of rows
 * that its row key leaves out, too. Constant for a filter. */
bool rq_filter_ends_at_cells(const rq_filter *f);
/* *ret true: leave the row out. Also true when all_remaining is (HBASE: FilterWrapper). */
RQ_NODISCARD
rq_err rq_filter_row_key(rq_filter *f, rq_slice row, bool *ret, rq_error *why);
/*
 * HBase has nothing like it: of a forward scan over rows in byte order, may rows be passed over
 * unseen? True: the filter leaves out by its row key each row from `row` on that is before *ret,
 * and whether it is shown these rows makes no difference to it afterwards. *ret is behind `row`, or
 * empty for the end of all rows; the filter's, valid until its next call.
 */
bool rq_filter_row_hint(rq_filter *f, rq_slice row, rq_slice *ret);
/* False: never. Constant for a filter. */
bool rq_filter_has_row_hints(const rq_filter *f);
/* RQ_E_AGAIN, where the pace allows it: the filter has not decided. The same cell is next, by
 * rq_filter_resume_cell; or another, and the first one is as good as not seen. */
RQ_NODISCARD
rq_err rq_filter_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why);
RQ_NODISCARD
rq_err rq_filter_resume_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why);
/* What goes out instead of `in` (mostly itself). Bytes that are not in's are the filter's, valid
 * until its next call. `ret` may be `in`. */
void rq_filter_transform_cell(rq_filter *f, const rq_cell *in, rq_cell *ret);
/* *has false: the filter knows no place (HBase: null), go on as after SKIP. The hint's bytes are
 * the cell's or the filter's, valid until the filter's next call. A hint that is not ahead in scan
 * direction counts as SKIP as well; the caller checks. */
RQ_NODISCARD
rq_err rq_filter_next_cell_hint(rq_filter *f, const rq_cell *cell, rq_cell *ret, bool *has);

/* The filter decides on whole rows: rq_filter_row_done must be asked, and a scan with a batch is
 * refused (HBASE: IncompatibleFilterException "Cannot set batch on a scan using a filter that
 * returns true for filter.hasFilterRow"; also partial results are off). Constant for a filter. */
bool rq_filter_has_filter_row(const rq_filter *f);
/*
 * The row's collected cells, in order, with keep[i] true for each; the filter clears the flags of
 * those it drops. HBASE: FilterWrapper.filterRowCellsWithRet: filterRowCells, then, when cells are
 * left, filterRow. After it HBase does not ask rq_filter_row again, not even for NOT_CALLED (so a
 * PageFilter does not count empty rows).
 */
rq_filter_row_verdict rq_filter_row_done(rq_filter *f, const rq_cell *cells, size_t count,
                                         bool *keep);
/* Whether rq_filter_row_done looks at the cells. If not, it is rq_filter_row where there are cells,
 * and nobody needs to collect views of them. Constant for a filter. */
bool rq_filter_sees_row_cells(const rq_filter *f);
/* Filter.filterRow, for filters without a filter row. true: leave the row out. */
bool rq_filter_row(rq_filter *f);

/* Must cells of this family be read to decide on a row? If not, they may be loaded after the
 * decision (load_column_families_on_demand). */
bool rq_filter_is_family_essential(rq_filter *f, rq_slice family);

#endif
