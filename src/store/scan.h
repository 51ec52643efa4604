/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decoded Get or Scan of HBase's client API. A Get is a scan of one row with is_get. All slices
 * and arrays belong to the caller and must outlive every use of the scan (for a scanner: they are
 * in the scanner's arena).
 */
#ifndef RQ_STORE_SCAN_H
#define RQ_STORE_SCAN_H

#include "cell/cellblock.h"
#include "filter/filter.h"

/* [min, max): HBase's TimeRange. All time is {0, INT64_MAX}. */
typedef struct rq_time_range {
    int64_t min;
    int64_t max;
} rq_time_range;

#define RQ_TIME_RANGE_ALL ((rq_time_range){0, INT64_MAX})

typedef struct rq_scan_family {
    rq_slice family;
    const rq_slice *qualifiers; /* ascending, unique */
    size_t qualifier_count;     /* 0: all columns of the family */
    bool has_time_range;        /* overrides the scan's */
    rq_time_range time_range;
} rq_scan_family;

typedef struct rq_scan {
    rq_slice start_row; /* empty: from the beginning (reversed: from the end) */
    rq_slice stop_row;  /* empty: to the end */
    bool include_start;
    bool include_stop;
    bool reversed;
    bool raw; /* returns delete markers and deleted cells */
    bool is_get;
    bool cache_blocks;
    bool read_uncommitted;
    bool check_existence_only;
    bool load_families_on_demand;
    const rq_scan_family *families; /* ascending by name */
    size_t family_count;            /* 0: all families */
    int32_t max_versions;           /* >= 1; INT32_MAX: all (limited by the family's VERSIONS) */
    rq_time_range time_range;
    /* Limit of a row's cells in a result, beyond which the read fails with RQ_E_ROW_TOO_BIG; 0:
     * none. HBASE: hbase.table.max.rowsize */
    uint64_t row_bytes_max;
    int32_t store_limit;  /* cells per row and family; -1: none */
    int32_t store_offset; /* cells skipped per row and family */
    int32_t batch;        /* cells per result; <= 0: none */
    rq_filter *filter;    /* may be NULL */
    bool counts_rows;     /* the client wants a count of the rows the filter excluded */
    /* MOB families (store/mob.h); HBASE: attributes of scans and gets */
    bool mob_raw;           /* hbase.mob.scan.raw: return references as stored */
    bool mob_refs_only;     /* hbase.mob.scan.ref.only: return only references */
    bool mob_cache_blocks;  /* hbase.mob.cache.blocks */
    bool mob_empty_on_miss; /* empty.value.on.mobcell.miss: no error when a MOB file is gone */
} rq_scan;

/* A get of a whole row: the newest version of each column. */
static inline rq_scan rq_scan_of_row(rq_slice row)
{
    return (rq_scan){.start_row = row,
                     .stop_row = row,
                     .include_start = true,
                     .include_stop = true,
                     .is_get = true,
                     .cache_blocks = true,
                     .max_versions = 1,
                     .time_range = RQ_TIME_RANGE_ALL,
                     .store_limit = -1};
}

/* Whether the row is behind the scan's stop row, in the scan's direction. */
static inline bool rq_scan_is_behind_stop(const rq_scan *scan, rq_cell_order order, rq_slice row)
{
    if (scan->stop_row.len == 0) return false;
    int c = rq_row_compare(order, row, scan->stop_row);
    if (c == 0) return !scan->include_stop;
    return scan->reversed ? c < 0 : c > 0;
}

/* Limits of a read, checked between cells. 0: no limit. */
typedef struct rq_scan_limits {
    uint32_t cells;           /* per next(): the batch */
    uint64_t bytes;           /* total rq_result_bytes of `out` */
    uint64_t deadline_ns;     /* executor's monotonic clock */
    bool may_stop_inside_row; /* else bytes and time are checked between rows only */
    /* After this time the read returns RQ_E_AGAIN without a need (rq_read_ctx_needs): the loop's
     * time slice is over, and the same call continues later. Anywhere, also inside a row. */
    uint64_t yield_ns;
} rq_scan_limits;

/* The size of a result as HBase counts it against hbase.client.scanner.max.result.size: a heap
 * size of 32 bytes and its KeyValue for each cell (HBASE: ScannerContext, KeyValue.heapSize). */
static inline uint64_t rq_result_bytes(const rq_cellblock *b)
{
    return b->bytes.len + (uint64_t)b->count * (32 - 4);
}

/* HBASE: ScannerContext.NextState */
typedef enum rq_scan_state {
    RQ_SCAN_MORE,          /* a complete row (or its last part) was delivered; more may follow */
    RQ_SCAN_DONE,          /* the region has no more for this scan */
    RQ_SCAN_BATCH_REACHED, /* limit of cells, inside a row */
    RQ_SCAN_BYTES_REACHED, /* between rows */
    RQ_SCAN_BYTES_REACHED_MID_ROW,
    RQ_SCAN_TIME_REACHED, /* between rows (possibly with nothing delivered: heartbeat) */
    RQ_SCAN_TIME_REACHED_MID_ROW,
} rq_scan_state;

#endif
