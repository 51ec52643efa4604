/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the log as a ReplicateWALEntryRequest: the message has an entry for each record; the cells
 * of all records, in the log's encoding, form the cell block (KeyValueCodecWithTags). */
#ifndef RQ_REPLICATION_SHIPMENT_H
#define RQ_REPLICATION_SHIPMENT_H

#include "base/buf.h"
#include "replication/filter.h"
#include "wal/record.h"

typedef struct rq__shipment {
    rq_buf message;
    rq_buf cells;
    size_t entries;
    uint64_t edits; /* cells */
    uint64_t files; /* of bulk loads */
    uint64_t file_bytes;
    uint64_t filtered;     /* records that were left out */
    int64_t last_write_ms; /* of the newest entry */
    int64_t first_write_ms;
} rq__shipment;

/* What decides whether a record is shipped. */
typedef struct rq__selection {
    const rq__filter *filter;
    uint8_t own_id[RQ_CLUSTER_ID_LEN];
    uint8_t peer_id[RQ_CLUSTER_ID_LEN];
    /* Whether the table exists here, and the family (if given) in it; edits of others are not shipped.
     * NULL: all exist. For peers that lack dropped tables (hbase.replication.drop.on.deleted.table). */
    bool (*exists)(void *ctx, rq_slice table, rq_slice family);
    void *ctx;
    /* For bulk loads; NULL: they are not shipped. */
    const char *cluster;   /* hbase.replication.cluster.id */
    const char *data_path; /* absolute */
} rq__selection;

/* Adds a record, unless the filter excludes it. RQ_E_CORRUPT: its cells are malformed. */
RQ_NODISCARD
rq_err rq__shipment_add(rq__shipment *s, const rq__selection *by, const rq_wal_record *r,
                        rq_error *why);
/* Adds the location of bulk-loaded files. Call it once, after the last record. */
RQ_NODISCARD
rq_err rq__shipment_seal(rq__shipment *s, const rq__selection *by);
/* Empties it and keeps the memory. */
void rq__shipment_reset(rq__shipment *s);
void rq__shipment_clear(rq__shipment *s);
static inline size_t rq__shipment_bytes(const rq__shipment *s)
{
    return s->message.len + s->cells.len;
}

#endif
