/* SPDX-License-Identifier: Apache-2.0 */
/* A server's responses, read in place. Untrusted bytes: every function checks them and returns
 * RQ_E_MALFORMED; nothing is allocated and all results point into the given bytes. */
#ifndef RQ_CLIENT_RESPONSE_H
#define RQ_CLIENT_RESPONSE_H

#include "base/bytes.h"
#include "base/err.h"
#include "cell/cell.h"

typedef struct rq_exception_view {
    rq_slice java_class; /* empty: no exception */
    rq_slice text;       /* the stack trace */
    bool do_not_retry;
} rq_exception_view;

/* A response frame without its length. */
typedef struct rq_response_view {
    uint32_t call_id;
    bool has_call_id;
    rq_exception_view exception;
    rq_slice message;
    rq_slice cells; /* the cell block */
} rq_response_view;

/* The cells of a row: the first `count` of a cell block (which advances as they are read), and
 * those in the message. */
typedef struct rq_result_view {
    bool present;
    bool exists;
    bool partial;
    bool stale;            /* read from a replica */
    uint32_t count;        /* cells in the block */
    rq_slice inline_cells; /* the Result's bytes; the cells are its field 1 */
} rq_result_view;

typedef struct rq_action_result {
    uint32_t index;
    rq_result_view result;
    rq_exception_view exception;
} rq_action_result;

/* One region's answers of a Multi. */
typedef struct rq_region_result {
    rq_slice actions; /* for rq__action_result_next */
    rq_exception_view exception;
    bool processed; /* of an atomic group with a condition */
} rq_region_result;

typedef struct rq_scan_view {
    rq_slice cells_per_result; /* packed or not */
    bool has_scanner;
    uint64_t scanner;
    bool more_results;           /* in the table */
    bool more_results_in_region; /* true if absent */
    bool heartbeat;
    bool stale;       /* read from a replica */
    bool is_empty;    /* no results */
    rq_slice cursor;  /* the row that the server has reached; empty: not given */
    rq_slice metrics; /* the message ScanMetrics; empty: none */
    rq_slice message;
} rq_scan_view;

RQ_NODISCARD
rq_err rq__response_parse(rq_slice frame, rq_response_view *ret);
RQ_NODISCARD
rq_err rq_get_response_parse(rq_slice message, rq_result_view *ret);
RQ_NODISCARD
rq_err rq__mutate_response_parse(rq_slice message, rq_result_view *ret, bool *ret_processed);
/* The next region's results, in the request's order; RQ_E_END after the last. */
RQ_NODISCARD
rq_err rq__multi_response_next(rq_cursor *message, rq_region_result *ret);
/* The next action's result; RQ_E_END after the last. */
RQ_NODISCARD
rq_err rq__action_result_next(rq_cursor *actions, rq_action_result *ret);
RQ_NODISCARD
rq_err rq__scan_response_parse(rq_slice message, rq_scan_view *ret);
/* The rows of a scan's response: first those with cells in the block, then those in the message. */
typedef struct rq_scan_rows {
    rq_cursor message;
    rq_cursor packed;
    rq_cursor flags; /* the message again, for partial_flag_per_result */
    rq_cursor packed_flags;
    bool stale;
} rq_scan_rows;
void rq__scan_rows_begin(const rq_scan_view *v, rq_scan_rows *ret);
RQ_NODISCARD
rq_err rq__scan_rows_next(rq_scan_rows *r, rq_result_view *ret);

/* The result's next cell, from the block or from the message; RQ_E_END after the last. The caller
 * must read all cells of a result, to move the block's cursor behind them. */
RQ_NODISCARD
rq_err rq_result_next(rq_result_view *r, rq_cursor *block, rq_cell *ret);

/* The error for a Java class; RQ_E_IOEXCEPTION for an unknown class. */
rq_err rq__err_of_class(rq_slice java_class);

#endif
