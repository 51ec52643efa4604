/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scan: one call of a scanner, which opens it, goes on, renews its lease or closes it. Between its
 * calls a scanner is kept under an id, with a lease (leases.c), and is charged to its owner: what
 * its caller keeps of a connection, or of another place that has an end.
 *
 *   take lease ─► check sequence ─► [slice: next, next, …]* ─► take() ─► give lease back, or close
 */
#ifndef RQ_OPS_SCAN_H
#define RQ_OPS_SCAN_H

#include "ops/ops.h"
#include "ops/read.h"
#include "region/region_scanner.h"

typedef struct rq_scan_owner rq_scan_owner;
struct rq__scan_holder;

/* The owner in *state, made when that is NULL; NULL: no memory. It belongs to the caller, and to its
 * scanners beyond its end. */
rq_scan_owner *rq_scan_owner_get(void **state);
/* The owner's connection has closed: its scanners end some seconds later, or as soon as memory is
 * needed. The pointer is the caller's no longer. */
void rq_scan_owner_gone(rq_ops *ops, rq_scan_owner *owner);

/* What of a scan concerns its calls, not the region. */
typedef struct rq_scan_extra {
    uint64_t max_result_bytes; /* 0: the server's */
    uint64_t mvcc_read_point;  /* 0: the newest */
    bool need_cursor;
    bool query_metrics;
} rq_scan_extra;

/* Results stand in the sink one behind the other. */
typedef struct rq_scan_result {
    uint32_t cells;
    bool is_partial; /* its row goes on */
} rq_scan_result;

typedef struct rq_op_scan rq_op_scan;

struct rq_op_scan {
    /* The caller's. */
    rq_scan_owner *owner;
    bool opens;          /* a scanner of op.region; else scanner_id goes on */
    uint64_t scanner_id; /* valid in take() and later also where the op opened it */
    /* Where it opens: fills the scan from memory of the scanner's arena, which outlives the op. */
    rq_err (*fill)(rq_op_scan *s, rq_arena *arena, rq_scan *ret, rq_scan_extra *ret_extra);
    bool has_call_seq;
    uint64_t call_seq;     /* must be the scanner's next one */
    bool renews;           /* the lease only */
    bool closes;           /* afterwards */
    uint32_t rows_max;     /* results of this call; 0: none are read */
    int32_t limit_of_rows; /* of the scan; <= 0: none */
    uint32_t timeout_ms;   /* of the call; 0: the server's */
    bool allows_partials;
    bool allows_heartbeats; /* an end by time, perhaps without results */
    bool counts_rows;       /* for stats: also those that a filter left out */
    /* The end of the region, if the scan goes on behind it, is told by a call without results. */
    bool tells_border_apart;
    bool stale; /* op.region was named as a replica; in take(): of the scanner */
    rq_cellblock *out;
    /* The results are whole and the scanner is still held: an error ends the scanner. */
    rq_err (*take)(rq_op_scan *s);
    /* Results, valid in take(). */
    rq_scan_result *results;
    uint32_t result_count;
    bool more_results;   /* of the scan */
    bool more_in_region; /* else it is the region's end */
    bool is_heartbeat;
    rq_slice cursor_row; /* of a heartbeat, where it was asked for; empty: not known */
    uint64_t read_point;
    uint64_t lease_ms;
    rq_scan_stats stats; /* of this call; block_bytes is 0, see read.ctx */
    /* Valid in done() too. */
    bool has_opened;  /* a scanner, which an error has closed */
    bool was_counted; /* an error came after call_seq was used: the call cannot be repeated */
    bool is_idle;     /* nothing was read and take() was not called: renewed, or closed before */
    /* The op's. */
    struct rq__scan_holder *holder;
    uint64_t bytes_max;
    uint64_t time_limit_ns; /* 0: none */
    uint32_t result_cap;
    rq_cellblock_mark first; /* of this call */
    rq_cellblock_mark begun; /* where the result under construction begins */
    rq_cellblock_mark last;  /* where the one before it began; a result is of one row */
    int32_t complete_rows;
    bool row_limit_reached;
    rq_op_read read;
};

/* The caller's fields are set, the others are zero. RQ_E_CALLER_DISCONNECTED: the caller has gone. */
void rq_op_scan_start(rq_op_scan *s);

#endif
