/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters: sent by the client with a read and run by the server on each cell and row. One instance
 * belongs to one scanner of one region. It keeps state from cell to cell and row to row, does no
 * I/O and is used by one thread at a time.
 *
 * Order of calls (HBASE: Filter, StoreScanner, RegionScannerImpl), per row:
 *
 *   rq_filter_all_remaining   true: the scan is over (asked before each row and each batch)
 *   rq_filter_row_key         true: the row is excluded; the filter sees none of its cells
 *   rq_filter_cell            for each cell that passes versions, deletes and time range
 *     rq_filter_next_cell_hint   after SEEK_NEXT_USING_HINT, with the same cell
 *     rq_filter_transform_cell   after one of the INCLUDE codes, with the same cell
 *   end of the row            if rq_filter_has_filter_row(): rq_filter_row_end on the collected
 *                             cells; else rq_filter_row (RowFilter, PrefixFilter and FuzzyRowFilter
 *                             decide there without having a filter row)
 *   rq_filter_reset           before the next row
 *
 * rq_filter_row_key and rq_filter_cell return an error where HBase throws (a LongComparator on a
 * value that is not a long); the request fails with it.
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
    RQ_FILTER_NEXT_ROW, /* next row of this family; other families of the row may still be read */
    RQ_FILTER_SEEK_NEXT_USING_HINT,
    RQ_FILTER_INCLUDE_AND_SEEK_NEXT_ROW,
} rq_filter_code;

/* HBASE: FilterWrapper.FilterRowRetCode. */
typedef enum rq_filter_row_verdict {
    RQ_FILTER_ROW_NOT_CALLED, /* there was no cell to decide about */
    RQ_FILTER_ROW_INCLUDE,
    RQ_FILTER_ROW_EXCLUDE, /* all keep flags are cleared */
} rq_filter_row_verdict;

typedef struct rq_filter rq_filter;

/*
 * Parses a filter from the wire: the Java class name and the bytes of its message (Filter.proto);
 * both are copied. The filter lives in the arena (growing memory is linked to it): pass the
 * scanner's arena, not the request's. Filters compare rows as plain bytes, in hbase:meta, too
 * (HBASE: CellComparator.getInstance() in FilterListBase and FuzzyRowFilter). Errors carry HBase's
 * exception and text.
 */
RQ_NODISCARD
rq_err rq_filter_parse(rq_slice java_class_name, rq_slice serialized, rq_arena *arena,
                       rq_filter **ret, rq_error *why);

/* Call it for a reversed scan, before the first row. */
void rq_filter_set_reversed(rq_filter *f, bool reversed);
/* Seeds RandomRowFilter from the environment's randomness. Without it each scan selects the same
 * rows. */
void rq_filter_set_seed(rq_filter *f, uint64_t seed);

/* Number of cells between two clock checks of a scan with this filter; `steps` is the number
 * without a filter. It is lower for lists of thousands of filters or keys, which test each of
 * them for each cell. At least 1. `f` NULL: `steps`. */
uint32_t rq_filter_clock(const rq_filter *f, uint32_t steps);

/* The filter's pace (pace.h); NULL: it never takes long. */
rq_pace *rq_filter_pace(const rq_filter *f);

void rq_filter_reset(rq_filter *f);
bool rq_filter_all_remaining(rq_filter *f);
/* Which calls may be omitted. rq_filter_may_end false: rq_filter_all_remaining is never true.
 * rq_filter_may_transform false: rq_filter_transform_cell changes no cell. Constant for a
 * filter. */
bool rq_filter_may_end(const rq_filter *f);
bool rq_filter_may_transform(const rq_filter *f);
/* rq_filter_judges_rows false: rq_filter_row_key passes every row and keeps no state of it.
 * rq_filter_resets false: rq_filter_reset does nothing. */
bool rq_filter_judges_rows(const rq_filter *f);
bool rq_filter_resets(const rq_filter *f);
/* Whether a cell may end more than its row (WhileMatchFilter). Such a filter must also see the
 * cells of rows that its row key excludes. Constant for a filter. */
bool rq_filter_ends_at_cells(const rq_filter *f);
/* *ret true: exclude the row. Also true when all_remaining is (HBASE: FilterWrapper). */
RQ_NODISCARD
rq_err rq_filter_row_key(rq_filter *f, rq_slice row, bool *ret, rq_error *why);
/*
 * Which rows of a forward scan in byte order may be skipped unread; HBase has no such call. True:
 * the filter's row key excludes each row at or behind `row` and before *ret, and seeing those rows
 * would not change its state. *ret is behind `row`, or empty for the end of all rows. It belongs to
 * the filter and is valid until its next call.
 */
bool rq_filter_row_hint(rq_filter *f, rq_slice row, rq_slice *ret);
/* False: rq_filter_row_hint always returns false. Constant for a filter. */
bool rq_filter_has_row_hints(const rq_filter *f);
/* Decides on a cell. RQ_E_AGAIN, if the pace allows it: not decided yet. Then pass the same cell to
 * rq_filter_resume_cell; or pass another cell to rq_filter_cell: then the first counts as not
 * seen. */
RQ_NODISCARD
rq_err rq_filter_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why);
RQ_NODISCARD
rq_err rq_filter_resume_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why);
/* Returns the cell to send instead of `in` (usually `in` itself). Bytes that are not in's belong
 * to the filter and are valid until its next call. `ret` may be `in`. */
void rq_filter_transform_cell(rq_filter *f, const rq_cell *in, rq_cell *ret);
/* Returns where to seek. *has false: no hint (HBase: null); continue as after SKIP. The hint's
 * bytes belong to the cell or the filter and are valid until the filter's next call. A hint that
 * is not ahead in scan direction counts as SKIP, too; the caller checks that. */
RQ_NODISCARD
rq_err rq_filter_next_cell_hint(rq_filter *f, const rq_cell *cell, rq_cell *ret, bool *has);

/* Whether the filter decides on whole rows: rq_filter_row_done must be called, and a scan with a
 * batch is refused (HBASE: IncompatibleFilterException "Cannot set batch on a scan using a
 * filter that returns true for filter.hasFilterRow"; partial results are off, too). Constant for
 * a filter. */
bool rq_filter_has_filter_row(const rq_filter *f);
/*
 * The collected cells of a row, in order, through a window: a row may have millions of cells, and
 * their views would take several times the memory of the cells.
 */
typedef struct rq_filter_cells {
    size_t count;
    bool *keep; /* `count` flags, true at first; the filter clears those of the cells it drops */
    /* The window: the cells from `begin` up to `end`. */
    const rq_cell *cells;
    size_t begin, end;
    /* Makes the window begin at cell `at`, which is outside it. NULL: the window has all cells. */
    rq_err (*move)(struct rq_filter_cells *c, size_t at);
} rq_filter_cells;

/*
 * Passes the row's cells. HBASE: FilterWrapper.filterRowCellsWithRet: filterRowCells, then, if
 * cells are left, filterRow. HBase does not call rq_filter_row afterwards, not even after
 * NOT_CALLED (so a PageFilter does not count empty rows).
 *
 * RQ_E_AGAIN: the time slice of the pace (pace.h) is used up. The caller then sets a new slice and
 * repeats the call with the same cells and flags, or abandons the row with rq_filter_reset. This
 * happens also if the pace allows no pauses. Other errors are those of `move`.
 */
RQ_NODISCARD
rq_err rq_filter_row_end(rq_filter *f, rq_filter_cells *cells, rq_filter_row_verdict *ret);
/* The same in one step, for a few cells. It takes a few units for each cell and part (rq_filter_parts). */
rq_filter_row_verdict rq_filter_row_done(rq_filter *f, const rq_cell *cells, size_t count,
                                         bool *keep);
/* The filters, and keys of filters, of which it consists. Constant for a filter. */
uint32_t rq_filter_parts(const rq_filter *f);
/* Whether rq_filter_row_end examines the cells. If not, it equals rq_filter_row when there are
 * cells, and the caller need not collect them. Constant for a filter. */
bool rq_filter_sees_row_cells(const rq_filter *f);
/* Filter.filterRow, for filters without a filter row. True: exclude the row. */
bool rq_filter_row(rq_filter *f);

/* Whether cells of this family must be read to decide on a row. If not, they may be loaded after
 * the decision (load_column_families_on_demand). */
bool rq_filter_is_family_essential(rq_filter *f, rq_slice family);

#endif
