/* SPDX-License-Identifier: Apache-2.0 */
/* One record of the log: what a region did under one sequence id. Encoding: wal/format.h. */
#ifndef RQ_WAL_RECORD_H
#define RQ_WAL_RECORD_H

#include "base/bytes.h"
#include "base/err.h"

/* On disk: DO NOT CHANGE; append. */
typedef enum rq_wal_kind {
    RQ_WAL_EDIT = 1,  /* payload: cells, as cell/cellblock.h writes them, with tags */
    RQ_WAL_FLUSH = 2, /* this and the following kinds: payload defined by the region */
    RQ_WAL_COMPACTION = 3,
    RQ_WAL_BULK_LOAD = 4,
    RQ_WAL_REGION_OPEN = 5,
    RQ_WAL_REGION_CLOSE = 6,
} rq_wal_kind;
#define RQ_WAL_KIND_LAST RQ_WAL_REGION_CLOSE

#define RQ_WAL_REGION_NAME_MAX 63
#define RQ_WAL_TABLE_NAME_MAX 1024
#define RQ_WAL_CLUSTERS_MAX 255
#define RQ_WAL_CLUSTER_ID_LEN 16

typedef struct rq_wal_record {
    rq_wal_kind kind;
    rq_slice region; /* encoded name */
    rq_slice table;  /* "namespace:qualifier" as HBase's TableName prints it */
    uint64_t sequence_id;
    int64_t write_time_ms;
    uint64_t nonce_group, nonce; /* 0: none */
    rq_slice cluster_ids; /* UUIDs of RQ_WAL_CLUSTER_ID_LEN bytes: clusters that have applied the
                           * record */
    rq_slice scopes;      /* replicated families, each: u8 length, family, be32 scope */
    rq_slice payload;
    bool vital; /* for writers: on a full disk it may use the reserve for records that free space */
    uint64_t lsn; /* set by readers: LSN behind the record */
} rq_wal_record;

/* Whether records of this kind keep their WAL file. Recovery needs EDITs only; the other kinds
 * are for replication. */
static inline bool rq__wal_kind_holds(rq_wal_kind kind)
{
    return kind == RQ_WAL_EDIT;
}

/* Reads the next of `scopes`. False: the end, or malformed bytes (readers have checked theirs). */
static inline bool rq_wal_scope_next(rq_cursor *c, rq_slice *ret_family, uint32_t *ret_scope)
{
    uint8_t len;
    return rq_cursor_u8(c, &len) && rq_cursor_bytes(c, len, ret_family) &&
           rq_cursor_be32(c, ret_scope);
}

#endif
