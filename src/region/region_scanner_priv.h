/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by region_scanner_open.c and region_scanner.c only. */
#ifndef RQ_REGION_REGION_SCANNER_PRIV_H
#define RQ_REGION_REGION_SCANNER_PRIV_H

#include "region/region_scanner.h"

#include "store/store_scanner.h"

/* Store reads and rows between clock checks. */
#define CLOCK_STEPS 16
/* Rows and cells skipped by the store (rq_store_scanner_pass_rows) between clock checks. */
#define CLOCK_PASSED 1024
/* Bytes collected at a time of a row that is read only for the filter. */
#define SHOWN_BYTES (64u << 10)

typedef enum phase {
    PHASE_BEGIN,
    PHASE_READ,
    PHASE_READ_CUT, /* a limit was reached: find out whether the row continues */
    PHASE_DECIDE,
    PHASE_JOINED,
    PHASE_JOINED_CUT,
    PHASE_SKIP,
    PHASE_END,
    PHASE_DONE,
} phase;

struct rq_region_scanner {
    rq_region *region;
    const rq_scan *scan;
    rq_filter *filter;
    rq_pace *pace; /* the filter's; NULL: it never takes long */
    rq_arena *arena;
    rq_cell_order order;
    uint64_t read_point;
    bool holds_read_point;
    bool has_filter_row;
    bool filter_sees_cells; /* rq_filter_sees_row_cells */
    bool may_jump;          /* may skip rows by rq_filter_row_hint */
    bool jumped_to_end;
    bool shows_left_out; /* the filter sees cells of rows that its row key excludes */
    bool may_pass;       /* the only store may skip rows (rq_store_scanner_pass_rows) */
    uint8_t pass_pause;  /* rows to wait after a pass that skipped none */
    uint8_t pass_wait;   /* rows left to wait */
    rq_store_pass pass;
    bool filter_judges_rows, filter_resets; /* false: the calls may be omitted */
    rq_err failed;                          /* error of a suspension (out of memory) */

    rq_store_scanner **stores; /* first the stores the filter needs, then the others; each part
                                * by family name */
    size_t store_count;
    size_t essential_count;

    phase phase;
    size_t at; /* index of the store being read */
    bool again;
    bool was_cut; /* part of the current row was delivered before */
    rq_cellblock_mark mark;
    rq_store_read read;
    rq_scan_state cut; /* the limit that was reached */
    unsigned clock_left;
    unsigned clock_steps; /* CLOCK_STEPS, or fewer for a filter with many parts */
    uint8_t *row;
    size_t row_len;
    size_t row_cap;
    rq_slice ahead; /* the row after the current one as returned by next_row, inside the scan;
                     * len 0: unknown. Points into the only store, valid until that is called
                     * again. */
    rq_scan_stats stats;
    uint64_t counted_returned, counted_filtered; /* rows that the region has counted */
    bool is_get;
    rq_buf scratch;
};

#endif
