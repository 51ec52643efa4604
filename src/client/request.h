/* SPDX-License-Identifier: Apache-2.0 */
/* The parameter messages of a client's calls, encoded directly into a buffer: no message objects, and no
 * allocation except the buffer's growth. Messages are made without the region (field 1 of each
 * request), so that a retry after a region has moved puts another region before the same bytes.
 *
 * Cells of a mutation are not in the message: they are appended to a cell block (KeyValueCodec),
 * and the message has their number. A mutation with a condition in a Multi is an exception (rq__put_atomic_body).
 * HBASE: RequestConverter, ProtobufUtil. */
#ifndef RQ_CLIENT_REQUEST_H
#define RQ_CLIENT_REQUEST_H

#include "base/buf.h"
#include "cell/cell.h"

/* Borrowed slices; if only the row is set, reads the newest version of every column. */
typedef struct rq_get {
    rq_slice row;
    rq_slice family;       /* empty: all */
    rq_slice qualifier;    /* counts with has_qualifier */
    uint32_t max_versions; /* 0: one */
    uint32_t column_limit; /* ColumnCountGetFilter; 0: none */
    bool has_qualifier;
    uint32_t priority; /* of the call; 0: the table's */
    uint16_t replica;  /* of the region that is read; 0: the region itself. Not in a batch */
    rq_slice more;     /* further fields of the message Get, encoded */
    /* With replica 0: asks the region itself, and its replicas if it fails or does not answer soon (hedge.c). */
    bool any_replica;
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
    const rq_cell *cells; /* of that row; a delete's cells have the types of the markers */
    size_t cell_count;
    uint64_t nonce; /* 0: none; a retried increment or append with the same nonce is applied once */
    /* checkAndMutate: this column must have exactly this value. */
    bool has_condition;
    rq_slice condition_family, condition_qualifier, condition_value;
    rq_slice condition; /* or the complete message Condition, encoded; empty: none */
    rq_slice more;      /* further fields of the message MutationProto, encoded */
    uint32_t priority;  /* of the call; 0: the table's */
    bool with_tags;     /* sends the cells' tags; the client must be opened with_tags */
} rq_mutate;

#define RQ_SCAN_RESULT_BYTES (2U << 20) /* HBASE: hbase.client.scanner.max.result.size */

typedef struct rq_scan {
    rq_slice start; /* empty: the table's first (reversed: last) row */
    rq_slice stop;  /* empty: to the end; exclusive */
    rq_slice family;
    uint64_t limit;        /* rows; 0: all */
    uint32_t caching;      /* rows per response; 0: as many as fit result_bytes */
    uint64_t result_bytes; /* bytes per response; 0: 2 MiB, as HBase's client requests */
    bool excludes_start;
    bool includes_stop; /* the caller encodes the field include_stop_row into `more` */
    bool reversed;
    bool no_cache_blocks;
    rq_slice more;    /* further fields of the message Scan, encoded */
    bool is_stepwise; /* waits for rq_op_scan_step after each response with rows */
    bool
        fetches_ahead; /* without a limit: requests the third and each later response before the rows of
                         * the response before it are passed on */
    uint32_t batch; /* cells of an item: a longer row is passed as several items; 0: whole rows */
    bool
        wants_cursors; /* a response without a whole row gives an item with `cursor`; not with a batch */
    uint32_t priority;   /* of the calls; 0: the table's */
    uint16_t replica;    /* of the regions that are read; 0: the regions themselves */
    bool any_replica;    /* as a get's */
    bool counts_metrics; /* rq_op_scan_metrics */
} rq_scan;

/* The region, before the rest of the message: field 1 of Get-, Mutate-, ScanRequest and RegionAction. */
RQ_NODISCARD
rq_err rq__put_region(rq_buf *out, rq_slice region_name);
/* The fields of GetRequest and MutateRequest after the region. */
RQ_NODISCARD
rq_err rq__put_get_body(rq_buf *out, const rq_get *get);
RQ_NODISCARD
rq_err rq__put_mutate_body(rq_buf *out, rq_buf *cells, const rq_mutate *m, uint64_t nonce_group);
/* One Action of a RegionAction, with its tag. */
RQ_NODISCARD
rq_err rq__put_get_action(rq_buf *out, uint32_t index, const rq_get *get);
RQ_NODISCARD
rq_err rq__put_mutate_action(rq_buf *out, rq_buf *cells, uint32_t index, const rq_mutate *m);
/* The fields of a RegionAction after the region whose changes are all or nothing. `condition`: the encoded message
 * Condition; empty: none. */
RQ_NODISCARD
rq_err rq__put_atomic_body(rq_buf *out, rq_buf *cells, const rq_mutate *list, size_t count,
                           rq_slice condition);
/* The highest priority of the mutations. */
uint32_t rq__mutations_priority(const rq_mutate *list, size_t count);
/* The fields of ScanRequest after the region: opens a scanner at `start` and requests its first response.
 * `takes_parts`: the server may answer with a part of a row, or (after half of the call's time-out) with
 * a heartbeat without rows. HBASE: client_handles_partials, without which servers send no heartbeats. */
RQ_NODISCARD
rq_err rq__put_scan_open(rq_buf *out, const rq_scan *scan, rq_slice start, bool include_start,
                         uint32_t rows, uint32_t limit, bool takes_parts);
/* The complete ScanRequest that continues a scan. `sequence`: 0 for the first request after the one that opened
 * the scanner, then 1, 2 … */
RQ_NODISCARD
rq_err rq__put_scan_next(rq_buf *out, const rq_scan *scan, uint64_t scanner, uint64_t sequence,
                         uint32_t rows, uint32_t limit, bool takes_parts);
/* The complete ScanRequest that closes the scanner. */
RQ_NODISCARD
rq_err rq__put_scan_close(rq_buf *out, uint64_t scanner);

#endif
