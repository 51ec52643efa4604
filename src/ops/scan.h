/* SPDX-License-Identifier: Apache-2.0 */
/* Scan: one call of a scanner, which opens it, continues it, renews its lease or closes it. Between
 * calls a scanner is kept under an id, with a lease (leases.c), and charged to its owner: an object
 * that the caller keeps per connection, or per other client with a limited life.
 *
 *    take lease ─► check sequence ─► [slice: next, next, …]* ─► take() ─► give lease back, or close */
#ifndef RQ_OPS_SCAN_H
#define RQ_OPS_SCAN_H

#include "ops/ops.h"
#include "ops/read.h"
#include "region/region_scanner.h"

typedef struct rq_scan_owner rq_scan_owner;
struct rq__scan_holder;

/* Returns the owner in *state, and creates it if *state is NULL; NULL: out of memory. The caller ends the owner's life
 * by rq_scan_owner_gone; the owner is freed when its last scanner is closed. */
rq_scan_owner *rq_scan_owner_get(void **state);
/* The owner's connection has closed: its scanners are closed some seconds later, or as soon as
 * memory is needed. The caller must not use the pointer any more. */
void rq_scan_owner_gone(rq_ops *ops, rq_scan_owner *owner);

/* Parameters of a scan that concern its calls and not the region's scanner. */
typedef struct rq_scan_extra {
    uint64_t max_result_bytes; /* 0: the server's */
    uint64_t mvcc_read_point;  /* 0: the newest */
    bool need_cursor;
    bool query_metrics;
} rq_scan_extra;

/* The results are adjacent in the sink. */
typedef struct rq_scan_result {
    uint32_t cells;
    bool is_partial; /* its row goes on */
} rq_scan_result;

typedef struct rq_op_scan rq_op_scan;

struct rq_op_scan {
    /* The caller's. */
    rq_scan_owner *owner;
    bool opens;          /* opens a scanner of op.region; otherwise scanner_id is continued */
    uint64_t scanner_id; /* valid in take() and later, also if the op opened the scanner */
    /* When opening: fills the scan, in memory of the scanner's arena, which outlives the op. */
    rq_err (*fill)(rq_op_scan *s, rq_arena *arena, rq_scan *ret, rq_scan_extra *ret_extra);
    bool fills_long; /* fill() takes long, and runs on RQ_POOL_CODEC if the seat has a lane */
    bool has_call_seq;
    uint64_t call_seq;     /* must be the scanner's next one */
    bool renews;           /* the lease only */
    bool closes;           /* afterwards */
    uint32_t rows_max;     /* results of this call; 0: none are read */
    int32_t limit_of_rows; /* of the scan; <= 0: none */
    uint32_t timeout_ms;   /* of the call; 0: the server's */
    bool allows_partials;
    bool allows_heartbeats; /* an end by time, perhaps without results */
    bool counts_rows;       /* for statistics: counts rows excluded by a filter too */
    /* If the scan continues behind the region, the region's end is reported by a call without
     * results. */
    bool tells_border_apart;
    bool stale; /* op.region was named as a replica; in take() this holds for the scanner */
    rq_cellblock *out;
    /* The results are complete and the scanner is still held: an error closes the scanner. */
    rq_err (*take)(rq_op_scan *s);
    /* Results, valid in take(). */
    rq_scan_result *results;
    uint32_t result_count;
    bool more_results;   /* of the scan */
    bool more_in_region; /* else it is the region's end */
    bool is_heartbeat;
    rq_slice cursor_row; /* of a heartbeat, if requested; empty: unknown */
    uint64_t read_point;
    uint64_t lease_ms;
    rq_scan_stats stats; /* of this call; block_bytes is 0, see read.ctx instead */
    /* Valid in done() too. */
    bool has_opened;  /* a scanner, which an error has closed */
    bool was_counted; /* failed after call_seq was used: the call cannot be repeated */
    bool is_idle;     /* nothing was read and take() was not called: the scanner was renewed, or had
                       * been closed before */
    /* The op's. */
    struct rq__scan_holder *holder;
    rq_region *region; /* the holder's, once it was given back; a reference */
    uint64_t bytes_max;
    uint64_t time_limit_ns; /* 0: none */
    uint32_t result_cap;
    rq_cellblock_mark first; /* of this call */
    rq_cellblock_mark begun; /* beginning of the result under construction */
    rq_cellblock_mark last;  /* beginning of the previous result; a result has cells of one row */
    int32_t complete_rows;
    bool row_limit_reached;
    bool is_gated; /* the call of an open scanner has passed a policy */
    rq_op_read read;
};

/* REQUIRES: the caller has set its fields, and all others are zero. RQ_E_CALLER_DISCONNECTED: the
 * caller's connection has closed. */
void rq_op_scan_start(rq_op_scan *s);

#endif
