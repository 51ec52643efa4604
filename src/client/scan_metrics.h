/* SPDX-License-Identifier: Apache-2.0 */
/* The costs of a scan: counts made by the client, and by the servers if the client requests them.
 * HBASE: ScanMetrics, ServerSideScanMetrics of 2.6.1. */
#ifndef RQ_CLIENT_SCAN_METRICS_H
#define RQ_CLIENT_SCAN_METRICS_H

#include "base/bytes.h"
#include "base/err.h"
#include "cell/cell.h"

/* name; the servers' at the end */
#define RQ_SCAN_METRICS(X)                                                                         \
    X(RPC_CALLS)                                                                                   \
    X(REMOTE_RPC_CALLS)                                                                            \
    X(MILLIS_BETWEEN_NEXTS)                                                                        \
    X(NOT_SERVING_REGION_EXCEPTION)                                                                \
    X(BYTES_IN_RESULTS)                                                                            \
    X(BYTES_IN_REMOTE_RESULTS)                                                                     \
    X(REGIONS_SCANNED)                                                                             \
    X(RPC_RETRIES)                                                                                 \
    X(REMOTE_RPC_RETRIES)                                                                          \
    X(ROWS_SCANNED)                                                                                \
    X(ROWS_FILTERED)                                                                               \
    X(BLOCK_BYTES_SCANNED)                                                                         \
    X(FS_READ_TIME)

typedef enum rq_scan_metric {
#define X(name) RQ_SCAN_##name,
    RQ_SCAN_METRICS(X)
#undef X
        RQ_SCAN_METRIC_COUNT
} rq_scan_metric;

typedef struct rq_scan_metrics {
    uint64_t values[RQ_SCAN_METRIC_COUNT];
    bool is_remote;   /* the server of the region is on another host */
    int64_t asked_ns; /* when the last request was sent; 0: none yet */
} rq_scan_metrics;

const char *rq_scan_metric_name(rq_scan_metric m);

/* Reads an answer's message ScanMetrics, untrusted; unknown names are skipped, as in HBase. */
RQ_NODISCARD
rq_err rq__scan_metrics_add(rq_scan_metrics *m, rq_slice message);
void rq__scan_metrics_region(rq_scan_metrics *m, const char *host);
/* Counts a request. `between`: it asks for more rows; false for one that closes the scanner. */
void rq__scan_metrics_call(rq_scan_metrics *m, bool between, int64_t now_ns);
void rq__scan_metrics_failure(rq_scan_metrics *m, rq_err err);
void rq__scan_metrics_retry(rq_scan_metrics *m);
void rq__scan_metrics_cell(rq_scan_metrics *m, const rq_cell *c);

#endif
