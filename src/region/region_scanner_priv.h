/* SPDX-License-Identifier: Apache-2.0 */
/* What region_scanner_open.c begins with and region_scanner.c goes on with. Within these two. */
#ifndef RQ_REGION_REGION_SCANNER_PRIV_H
#define RQ_REGION_REGION_SCANNER_PRIV_H

#include "region/region_scanner.h"

#include "store/store_scanner.h"

/* Store reads and rows between two looks at the clock. */
#define CLOCK_STEPS 16
/* The same of rows and cells that the store passes over (rq_store_scanner_pass_rows). */
#define CLOCK_PASSED 1024
/* Of a row that is read for the filter alone, so much is gathered at a time. */
#define SHOWN_BYTES (64u << 10)

typedef enum phase {
    PHASE_BEGIN,
    PHASE_READ,
    PHASE_READ_CUT, /* a limit is reached: does the row go on? */
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
    rq_pace *pace; /* of the filter; NULL: it never takes long */
    rq_arena *arena;
    rq_cell_order order;
    uint64_t read_point;
    bool holds_read_point;
    bool has_filter_row;
    bool filter_sees_cells; /* of the row as a whole */
    bool may_jump;          /* over rows that the filter does not want (rq_filter_row_hint) */
    bool jumped_to_end;
    bool shows_left_out; /* rows that the filter's row key leaves out, to the filter */
    bool may_pass;       /* the only store may be told to pass over rows */
    uint8_t pass_pause;  /* how many rows to wait when it has passed over none */
    uint8_t pass_wait;   /* how many are left */
    rq_store_pass pass;
    bool filter_judges_rows, filter_resets; /* else the calls need not be made */
    rq_err failed;                          /* a suspension that found no memory */

    rq_store_scanner **stores; /* those the filter needs, then the others; each by family name */
    size_t store_count;
    size_t essential_count;

    phase phase;
    size_t at; /* the store that is being read */
    bool again;
    bool was_cut; /* a part of the row at hand was delivered before */
    rq_cellblock_mark mark;
    rq_store_read read;
    rq_scan_state cut; /* which limit */
    unsigned clock_left;
    unsigned clock_steps; /* CLOCK_STEPS, or fewer with a filter of many parts */
    uint8_t *row;
    size_t row_len;
    size_t row_cap;
    rq_slice ahead; /* the row behind the one at hand as next_row gave it, inside the scan; len 0:
                       not known. Of the only store, until that is called again. */
    rq_scan_stats stats;
    rq_buf scratch;
};

#endif
