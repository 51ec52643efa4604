/* SPDX-License-Identifier: Apache-2.0 */
/* What the sink of replication has applied, for metrics and the server's load. HBASE: MetricsSink.
 * Counted by any loop, once per call. */
#ifndef RQ_REPLICATION_SINK_H
#define RQ_REPLICATION_SINK_H

#include "base/log.h"
#include "host/calls.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rq_sink {
    int64_t started_ms;            /* wall clock */
    _Atomic uint64_t entries;      /* applied */
    _Atomic uint64_t batches;      /* applied */
    _Atomic uint64_t failed;       /* batches */
    _Atomic uint64_t bulk_files;   /* loaded */
    _Atomic uint64_t bulk_skipped; /* files of bulk loads that were left out */
    _Atomic int64_t last_write_ms; /* when the last applied entry was written at its source */
    _Atomic int64_t applied_ms;    /* when that was applied here */
    rq_log_limit refused_lines;    /* of refused batches */
} rq_sink;

/* A batch has ended. `write_ms`: of its last entry; 0: it has none. */
void rq_sink_count(rq_sink *s, size_t entries, int64_t write_ms, int64_t now_ms, bool ok);
/* The age of the last applied entry at the time it was applied; 0: none was applied. */
uint64_t rq_sink_age_ms(const rq_sink *s);
void rq_sink_get_load(const rq_sink *s, rq_sink_load *ret);

#endif
