/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by region_scanner_open.c, region_scanner.c and region_scanner_take.c only. */
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

/* The filter's decision about a row whose cells it examines (rq_filter_row_end), and what follows. It can
 * be left and entered again. */
typedef enum decision {
    DECISION_NONE,
    DECISION_ASKS,
    DECISION_DROPS, /* the cells that the filter has dropped are removed from the result */
} decision;

/* The cells of one family in the result's current row. */
typedef struct family_run {
    size_t rank;      /* of the family by its name */
    size_t from, len; /* in the result; `len` is known while the runs are sorted */
} family_run;

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
    bool may_take;       /* the only store may take many rows (rq_store_scanner_take_rows) */
    uint8_t take_pause;  /* rows to wait after a call that took none */
    uint8_t take_wait;   /* rows left to wait */
    uint8_t pass_pause;  /* rows to wait after a pass that skipped none */
    uint8_t pass_wait;   /* rows left to wait */
    rq_store_pass pass;
    bool filter_judges_rows, filter_resets; /* false: the calls may be omitted */
    rq_err failed; /* the first error, also of a suspension; no call reads any more */

    rq_store_scanner **stores; /* first the stores the filter needs, then the others; each part
                                * by family name */
    size_t store_count;
    size_t essential_count;
    /* If some stores are read on demand, the row's families are sorted. NULL: they come in order. */
    size_t *ranks; /* of the stores' families, by name */
    family_run *runs;
    size_t run_count;
    bool sorting;               /* the runs are sorted, and their bytes are being moved: */
    size_t sort_run, sort_from; /* the next byte to be copied behind the row … */
    size_t sort_end,
        sort_moved; /* … where the row ends; and the bytes of the copy that were moved back */

    phase phase;
    size_t at; /* index of the store being read */
    decision decision;
    /* What follows a row's last cell (the filter's decision, the sorting) does not pause (reads of an op under the
     * writer token): after RQ_E_AGAIN the op would read the whole row again. The time is limited: the cells were read
     * and filtered within one slice, and the rest takes about as long. */
    bool decides_at_once;
    rq_filter_cells row_cells; /* its memory is in `scratch` */
    size_t window_from;        /* offset in the result of the window's first cell */
    size_t drop_at; /* the next cell to be kept or dropped; the offsets of this cell … */
    size_t drop_from, drop_to; /* … and of the place of the next cell to be kept */
    size_t drop_run;           /* the first of `runs` that begins at this cell or behind it */
    bool again;
    bool
        keeps_allowance; /* next() does not begin the filter's allowance (filter/pace.h): the caller has begun it */
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

/* Sets the row that is being examined (a copy). */
static inline rq_err rq__region_scanner_set_row(rq_region_scanner *s, rq_slice row)
{
    if (row.len > s->row_cap) {
        size_t cap = row.len < 32 ? 64 : 2 * row.len;
        s->row = rq_arena_alloc(s->arena, cap);
        if (s->row == NULL) {
            s->row_cap = s->row_len = 0;
            return RQ_E_NO_MEMORY;
        }
        s->row_cap = cap;
    }
    rq_short_copy(s->row, row.ptr, row.len);
    s->row_len = row.len;
    return RQ_OK;
}

static inline uint64_t rq__region_scanner_now(const rq_region_scanner *s)
{
    rq_executor *ex = rq_store_env(rq_region_store_at(s->region, 0))->executor;
    return ex->now_ns(ex);
}

/* Whether the deadline has passed; reads the clock once per clock_steps rows. `rows`: number of rows
 * read since the last call. */
static inline bool rq__region_scanner_timed_out(rq_region_scanner *s, uint64_t deadline_ns,
                                                unsigned rows)
{
    if (deadline_ns == 0) return false;
    if (s->clock_left > rows) {
        s->clock_left -= rows;
        return false;
    }
    s->clock_left = s->clock_steps;
    return rq__region_scanner_now(s) >= deadline_ns;
}

/* --- reads of ops that write (region_scanner_open.c) ------------------------------------------- */

/* The time that all reads of one op together may take under the token. The initial value is zero: the time starts when
 * one of the reads has examined some hundred cells, so that most ops read no clock. */
typedef struct rq__token_slice {
    uint64_t until_ns;
} rq__token_slice;

/* Reads one row in the newest staged state (everything inserted, durable or not), for conditions
 * and read-modify-writes. REQUIRES: the writer token. `scan` has is_get. RQ_E_AGAIN as for
 * rq_region_scanner_next; without a need (rq_read_ctx_needs): the slice is over. */
RQ_NODISCARD
rq_err rq__staged_read_row(rq_region *r, const rq_scan *scan, rq_arena *arena, rq_read_ctx *ctx,
                           rq__token_slice *slice, rq_cellblock *out, rq_error *why);
/* Likewise, the next row of a scanner. */
RQ_NODISCARD
rq_err rq__staged_next(rq_region_scanner *s, rq_read_ctx *ctx, rq__token_slice *slice,
                       rq_cellblock *out, rq_error *why);
/* A scanner of one row in its newest staged state, for a thread that has locked the row (apart.h) instead of holding
 * the token. Inside a read section, like rq__staged_read_on. */
RQ_NODISCARD
rq_err rq__staged_open(rq_region *r, const rq_scan *scan, rq_arena *arena, rq_region_scanner **ret,
                       rq_error *why);
/* Reads the scanner's row until `yield_ns`: then RQ_E_AGAIN without a need; the next call goes on. */
RQ_NODISCARD
rq_err rq__staged_read_on(rq_region_scanner *s, rq_read_ctx *ctx, uint64_t yield_ns,
                          rq_cellblock *out, rq_error *why);

#endif
