/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scanner of one region: merges its stores' scanners by row and applies row-level filters and
 * limits. HBASE: RegionScannerImpl. It appends the cells of rows to a cell block.
 *
 * A scanner is bound to a lane. Inside one section (a loop's iteration) next() may be called any
 * number of times. Before the section ends the owner calls suspend(), which releases every segment,
 * file and block and keeps read point, position, counters and filter state. The following next()
 * uses the then current versions and continues exactly where it stopped, also inside a row. The
 * read point stays registered with the region until close, so flush and compaction keep the cells
 * this scanner may still see.
 */
#ifndef RQ_REGION_REGION_SCANNER_H
#define RQ_REGION_REGION_SCANNER_H

#include "hfile/read_ctx.h"
#include "region/region.h"

typedef struct rq_region_scanner rq_region_scanner;

/* Opens a scanner. `scan` and its filter belong to the caller and must live until close.
 * read_point 0: the newest visible. Takes a reference on the region. Memory comes from the arena
 * (the request's for a Get, the lease's for a scan). Errors: NoSuchColumnFamilyException
 * ("Column family x does not exist in region …"), WrongRegionException if a Get's row is
 * outside, DoNotRetryIOException "Cannot specify any column for a raw scan",
 * NotServingRegionException while closing. */
RQ_NODISCARD
rq_err rq_region_scanner_open(rq_region *r, const rq_scan *scan, uint64_t read_point,
                              rq_arena *arena, rq_region_scanner **ret, rq_error *why);
/*
 * Appends the next row, or the part that the limits allow, to `out`. RQ_E_AGAIN: fulfil ctx's need
 * first; no cell of the current row was appended that a repeated call would append again.
 * *ret_state says how it ended; RQ_SCAN_DONE may come with or without cells. Counters for scan
 * metrics are in the scanner's stats. After any other error each call returns this error again.
 */
RQ_NODISCARD
rq_err rq_region_scanner_next(rq_region_scanner *s, const rq_scan_limits *limits, rq_read_ctx *ctx,
                              rq_cellblock *out, rq_scan_state *ret_state, rq_error *why);
/* Whole rows, many at once. */
typedef struct rq_scan_rows {
    uint32_t *cells; /* array of `max` entries; entry i gets the number of cells of row i */
    uint32_t max;
    /* the result */
    uint32_t count;        /* complete rows */
    rq_cellblock_mark end; /* end of their cells; a part of the next row may follow */
} rq_scan_rows;
/* Whether take_rows can take rows. Constant for a scanner. */
bool rq_region_scanner_may_take(const rq_region_scanner *s);
/*
 * Appends complete rows that only need copying; possibly none. It reads no block, and so never
 * ends with RQ_E_AGAIN. *ret_state as for the last of these rows: MORE, DONE, BYTES_REACHED or
 * TIME_REACHED; MORE if there is none. The next call of rq_region_scanner_next must have the same
 * `limits`. A call takes some tens of microseconds.
 */
RQ_NODISCARD
rq_err rq_region_scanner_take_rows(rq_region_scanner *s, const rq_scan_limits *limits,
                                   rq_cellblock *out, rq_scan_rows *rows, rq_scan_state *ret_state);
void rq_region_scanner_suspend(rq_region_scanner *s);
/* From now on the scanner allocates the memory that it does not keep over suspensions in `lent`,
 * which must live until the next call of this function; NULL: in its own arena. REQUIRES:
 * suspended. */
void rq_region_scanner_lend(rq_region_scanner *s, rq_arena *lent);
void rq_region_scanner_close(rq_region_scanner *s); /* NULL is fine */

uint64_t rq_region_scanner_read_point(const rq_region_scanner *s);
typedef struct rq_scan_stats {
    uint64_t rows_scanned, rows_filtered, block_bytes;
    uint64_t rows_passed; /* of the filtered ones: skipped by store/row_pass.h */
    uint64_t rows_taken;  /* taken by store/row_run.h */
} rq_scan_stats;
const rq_scan_stats *rq_region_scanner_stats(const rq_region_scanner *s);
/* The row last examined: the cursor of a heartbeat. */
rq_slice rq_region_scanner_current_row(const rq_region_scanner *s);

/*
 * A get without a scanner (region_get.c), possible for most gets of rows that are in one place.
 * `scan` has is_get. *ret_answered false: nothing was appended; use a scanner, which also returns
 * the error, if any. RQ_E_AGAIN: likewise, but ctx has a need that can be fulfilled at once. Other
 * errors are the get's. REQUIRES: a read section; it may end after the return, since `out` has
 * copies.
 */
RQ_NODISCARD
rq_err rq_region_get(rq_region *r, const rq_scan *scan, rq_arena *arena, rq_read_ctx *ctx,
                     rq_cellblock *out, bool *ret_answered, rq_error *why);

/* Runs a get that will be repeated, to learn whether it needs a block: appends and counts nothing.
 * RQ_E_AGAIN: ctx has the need. Any other result means nothing: the get itself will find out. */
RQ_NODISCARD
rq_err rq_region_look(rq_region *r, const rq_scan *scan, rq_arena *arena, rq_read_ctx *ctx,
                      rq_cellblock *out);

/* --- what the region gives its scanners (region.c) -------------------------------------------- */
/* Registers a read point (0: the newest visible one), so that nothing visible at it is dropped, and
 * counts a read request. Any thread; cheap. */
uint64_t rq__region_read_point_acquire(rq_region *r, uint64_t read_point);
/* Rows of scans: returned ones are read requests, as HBase counts them. Any thread. */
void rq__region_count_rows(rq_region *r, uint64_t returned, uint64_t filtered);
void rq__region_read_point_release(rq_region *r, uint64_t read_point);
size_t rq_region_store_count(const rq_region *r);
struct rq_store *rq_region_store_at(const rq_region *r, size_t i); /* ascending by family name */

#endif
