/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The merging scanner of one store: memstore segments and HFiles merged in cell order, with HBase's
 * rules for versions, deletes, TTL and columns (HBASE: StoreScanner, ScanQueryMatcher). Used by
 * reads (through the region scanner) and by flush and compaction.
 *
 * Resumable: RQ_E_AGAIN leaves the scanner unchanged; the caller fulfils ctx's need (or yields) and
 * calls again.
 */
#ifndef RQ_STORE_STORE_SCANNER_H
#define RQ_STORE_STORE_SCANNER_H

#include "hfile/read_ctx.h"
#include "store/scan.h"
#include "store/store.h"

/* --- reads: one family's part of a scan (the region scanner's) -------------------------------- */
/*
 * Between suspend and the next call the scanner holds no segment, file or block: only its position,
 * its counters and what it saw of the current row. Everything is in the arena; close releases
 * references and may be called more than once.
 */
typedef struct rq_store_scanner rq_store_scanner;

/* Output and limits of one call. A limit of 0 is none. */
typedef struct rq_store_read {
    rq_cellblock *out;
    uint32_t cells_max;
    uint32_t cells; /* cells delivered; reset by the caller */
    uint64_t bytes_max;
    size_t len_max;       /* of `out`: beyond it, RQ_E_ROW_TOO_BIG */
    uint64_t deadline_ns; /* checked inside the row; 0: do not cut the row */
    uint64_t yield_ns;
} rq_store_read;

typedef enum rq_store_state {
    RQ_STORE_ROW_DONE, /* the scanner is behind the row */
    RQ_STORE_CELLS_REACHED,
    RQ_STORE_BYTES_REACHED,
    RQ_STORE_TIME_REACHED,
} rq_store_state;

/* `family`: what the scan reads of this family; NULL: everything. The scan, its filter and the
 * store must outlive the scanner. Cells expired at now_ms are skipped. */
RQ_NODISCARD
rq_err rq_store_scanner_new(const rq_store *store, const rq_scan *scan,
                            const rq_scan_family *family, uint64_t read_point, int64_t now_ms,
                            rq_arena *arena, rq_store_scanner **ret, rq_error *why);
/* Returns the row of the next cell at the read point, whether or not it will be returned (it may
 * be deleted, or a marker). HBASE: StoreScanner.peek. RQ_E_END: no more. Valid until the
 * scanner's next call. */
RQ_NODISCARD
rq_err rq_store_scanner_peek_row(rq_store_scanner *s, uint64_t yield_ns, rq_read_ctx *ctx,
                                 rq_slice *ret, rq_error *why);
/* Delivers cells of the row returned by peek_row. */
RQ_NODISCARD
rq_err rq_store_scanner_next(rq_store_scanner *s, rq_store_read *read, rq_read_ctx *ctx,
                             rq_store_state *ret, rq_error *why);
/* Skips rows that the filter excludes, inside the current block (row_pass.h). */
typedef enum rq_store_pass_end {
    RQ_STORE_PASS_AT_ROW,   /* before a row that was not checked yet: call peek_row */
    RQ_STORE_PASS_KEY_OUT,  /* before `row`, which the filter has excluded by its key */
    RQ_STORE_PASS_IN_ROW,   /* in `row`, whose key the filter has accepted: call next */
    RQ_STORE_PASS_ROW_READ, /* behind `row`: the filter wants it, and its cells are appended */
} rq_store_pass_end;

typedef struct rq_store_pass {
    bool stops_at_key;  /* stop at rows that are excluded by their key */
    uint32_t work_left; /* approximate limit of rows and cells to examine */
    /* the result */
    rq_store_pass_end end;
    bool column_is_done; /* IN_ROW: the rest of the cell's column is to be skipped */
    uint64_t left_out;   /* rows skipped; the filter was reset after each */
    rq_slice row;        /* AT_ROW: the last row skipped; valid until the scanner's next call */
} rq_store_pass;

/* Whether pass_rows can skip rows. Constant for a scanner. */
bool rq_store_scanner_may_pass(const rq_store_scanner *s);
/* Skips rows from the one returned by peek_row, about which the filter was not asked yet. No
 * I/O. Makes all filter calls that next and, if this is the scan's only store, the region
 * scanner would make. */
RQ_NODISCARD
rq_err rq_store_scanner_pass_rows(rq_store_scanner *s, rq_store_read *read, rq_store_pass *pass,
                                  rq_error *why);
/* Takes whole rows, many at once (row_run.h). */
#define RQ_STORE_ROWS_BYTES ((size_t)64 << 10) /* a call ends when it has appended as many */

typedef enum rq_store_rows_stop {
    RQ_STORE_ROWS_AT_ROW, /* before a row inside the scan's range: peek_row returns it */
    RQ_STORE_ROWS_IN_ROW, /* in `row`: its cells after `end` are appended, next continues with it */
    RQ_STORE_ROWS_AT_END, /* no row in the scan's range follows */
} rq_store_rows_stop;

typedef struct rq_store_rows {
    uint32_t *cells; /* array of `max` entries; entry i gets the number of cells of row i */
    uint32_t max;
    uint64_t bytes_max;       /* limit of the rows' rq_result_bytes; 0: none */
    bool may_stop_inside_row; /* bytes_max may end the call inside a row (IN_ROW) */
    /* the result */
    uint32_t count;        /* complete rows */
    rq_cellblock_mark end; /* the end of their cells in `out` */
    rq_slice row; /* IN_ROW: the row; else the last of the complete ones. Valid until the scanner's
                   * next call */
    rq_store_rows_stop stop;
} rq_store_rows;

/* Whether take_rows can take rows. Constant for a scanner. */
bool rq_store_scanner_may_take(const rq_store_scanner *s);
/* Takes rows from the one returned by peek_row on, if it was not begun. Possibly none. No I/O.
 * After an error the scanner can only be closed. */
RQ_NODISCARD
rq_err rq_store_scanner_take_rows(rq_store_scanner *s, rq_store_rows *rows, rq_cellblock *out);
/* Skips the rest of the row returned by peek_row. No I/O: the next peek_row moves on. REQUIRES: not
 * suspended since that call. */
RQ_NODISCARD
rq_err rq_store_scanner_skip_row(rq_store_scanner *s);
/* Moves forward to the row if the scanner is before it; `row` is copied. No I/O. REQUIRES: a
 * forward scan, not suspended since the last peek_row. */
RQ_NODISCARD
rq_err rq_store_scanner_seek_row(rq_store_scanner *s, rq_slice row);
RQ_NODISCARD
rq_err rq_store_scanner_suspend(rq_store_scanner *s);
/* See rq_region_scanner_lend. */
void rq_store_scanner_lend(rq_store_scanner *s, rq_arena *lent);
void rq_store_scanner_close(rq_store_scanner *s); /* NULL is allowed */

/* --- flush and compaction: what survives ------------------------------------------------------ */
typedef struct rq_rewrite_scanner rq_rewrite_scanner;

typedef struct rq_rewrite_options {
    const rq_store *store;
    rq_segment *const *segments; /* inputs; must outlive the scanner */
    size_t segment_count;
    const rq_store_file *files;
    size_t file_count;
    bool is_flush;                /* drops surplus versions, keeps all delete markers */
    bool major;                   /* all files of the store are inputs: markers may be dropped */
    uint64_t smallest_read_point; /* nothing visible at or above it may be dropped */
    uint64_t unflushed_from;      /* compaction: smallest sequence id in the store's memstore when
                                   * the files were chosen; 0: it was empty */
    uint64_t max_seqid_inclusive; /* flush: all cells are at or below it (asserted) */
    bool drop_behind;             /* drop read bytes of the files from the page cache */
    int64_t now_ms;
    int64_t keep_seqid_period_ms;     /* HBASE: hbase.hstore.compaction.keep.seqId.period */
    int64_t time_to_purge_deletes_ms; /* HBASE: hbase.hstore.time.to.purge.deletes */
    /* Called after every few hundred cells or every megabyte read, since most cells may be
     * dropped. An error ends the reading and is returned. May be NULL. */
    rq_err (*look)(void *context, rq_error *why);
    void *look_context;
} rq_rewrite_options;

/* May block on files; runs on a pool. Cells come in order, with seqid zeroed where HBase zeroes
 * it. */
RQ_NODISCARD rq_err rq__rewrite_scanner_open(const rq_rewrite_options *o, rq_rewrite_scanner **ret,
                                             rq_error *why);
/* Returns the next cell, valid until the next call. RQ_E_END at the end. */
RQ_NODISCARD rq_err rq__rewrite_scanner_next(rq_rewrite_scanner *s, rq_cell *ret, rq_error *why);
void rq__rewrite_scanner_close(rq_rewrite_scanner *s);

#endif
