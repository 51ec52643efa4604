/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameter messages a client sends, written straight into a buffer: no message objects, no
 * allocation but the buffer's growth. Everything is without the region (field 1 of each request):
 * a request that goes out again after a region moved gets another region in front of the same
 * bytes.
 *
 * Cells of a mutation do not stand in the message: they are appended to a cell block
 * (KeyValueCodec) and the message says how many they are. HBASE: RequestConverter, ProtobufUtil.
 */
#ifndef RQ_CLIENT_REQUEST_H
#define RQ_CLIENT_REQUEST_H

#include "base/buf.h"
#include "cell/cell.h"

/* Borrowed slices; a zeroed one with a row reads the newest version of every column. */
typedef struct rq_get {
    rq_slice row;
    rq_slice family;       /* empty: all */
    rq_slice qualifier;    /* counts with has_qualifier */
    uint32_t max_versions; /* 0: one */
    uint32_t column_limit; /* ColumnCountGetFilter; 0: none */
    bool has_qualifier;
} rq_get;

/* On the wire: DO NOT CHANGE. HBASE: MutationProto.MutationType. */
typedef enum rq_mutate_kind {
    RQ_MUTATE_APPEND = 0,
    RQ_MUTATE_INCREMENT = 1,
    RQ_MUTATE_PUT = 2,
    RQ_MUTATE_DELETE = 3,
} rq_mutate_kind;

typedef struct rq_mutate {
    rq_mutate_kind kind;
    rq_slice row;
    const rq_cell *cells; /* of that row; a delete's carry the type of the marker */
    size_t cell_count;
    uint64_t nonce; /* 0: none; a repeated increment or append with the same one acts once */
    /* checkAndMutate: this column must hold exactly this value. */
    bool has_condition;
    rq_slice condition_family, condition_qualifier, condition_value;
} rq_mutate;

typedef struct rq_scan {
    rq_slice start; /* empty: the table's (reversed: last) row */
    rq_slice stop;  /* empty: to the end; exclusive */
    rq_slice family;
    uint64_t limit;        /* rows; 0: all */
    uint32_t caching;      /* rows of an answer; 0: as many as fit result_bytes */
    uint64_t result_bytes; /* of an answer; 0: 2 MiB, as HBase's client asks */
    bool reversed;
    bool no_cache_blocks;
} rq_scan;

/* The region in front: field 1 of Get-, Mutate-, ScanRequest and RegionAction. */
RQ_NODISCARD
rq_err rq_put_region(rq_buf *out, rq_slice region_name);
/* GetRequest, MutateRequest behind the region. */
RQ_NODISCARD
rq_err rq_put_get_body(rq_buf *out, const rq_get *get);
RQ_NODISCARD
rq_err rq_put_mutate_body(rq_buf *out, rq_buf *cells, const rq_mutate *m, uint64_t nonce_group);
/* One Action of a RegionAction, with its tag. */
RQ_NODISCARD
rq_err rq_put_get_action(rq_buf *out, uint32_t index, const rq_get *get);
RQ_NODISCARD
rq_err rq_put_mutate_action(rq_buf *out, rq_buf *cells, uint32_t index, const rq_mutate *m);
/* ScanRequest behind the region: opens a scanner at `start` and takes its first answer. */
RQ_NODISCARD
rq_err rq_put_scan_open(rq_buf *out, const rq_scan *scan, rq_slice start, bool include_start,
                        uint32_t rows, uint32_t limit);
/* The whole ScanRequest that goes on (or, `close`, ends). `sequence` counts from 0 behind the one
 * that opened the scanner. */
RQ_NODISCARD
rq_err rq_put_scan_next(rq_buf *out, uint64_t scanner, uint64_t sequence, uint32_t rows,
                        uint32_t limit, bool close);

#endif
