/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log's records at start, grouped by region until the regions are opened. HBASE: WAL splitting,
 * without the intermediate files.
 *
 * The log is read once. Records already flushed according to a region's manifest, family by family,
 * are skipped. The others are kept in memory up to a limit; beyond it the largest bucket is
 * dropped, and its region reads its records through the log's index when it is opened.
 *
 * In a cluster the server's own log is empty at start. The ended logs of other servers are adopted: read
 * once for all regions that will be opened here (adopt.c).
 */
#ifndef RQ_REGION_RECOVER_H
#define RQ_REGION_RECOVER_H

#include "base/buf.h"
#include "region/manifest.h"
#include "region/region.h"
#include "wal/wal.h"

#include <stdatomic.h>
#include <pthread.h>

typedef struct rq__bucket {
    struct rq__bucket *next;
    char encoded[RQ_WAL_REGION_NAME_MAX + 1];
    rq_buf table;
    rq_buf records; /* see recover.c */
    uint64_t count; /* needed records */
    bool by_index;  /* the records were dropped: rq_wal_replay_region delivers them */
    bool has_manifest;
    uint64_t highest;            /* highest sequence id of all records in adopted logs */
    struct rq__adopted *adopted; /* in a cluster: logs whose records are in the bucket */
    rq_arena arena;
    rq__manifest manifest; /* as read at start; in the arena */
} rq__bucket;

/* A log whose records are in a bucket. */
typedef struct rq__adopted {
    struct rq__adopted *next;
    char name[RQ_SHARED_NAME_MAX + 1];
} rq__adopted;

#define RQ__BUCKET_CHAINS 1024

typedef struct rq__recovery {
    pthread_mutex_t lock;
    rq__bucket *chains[RQ__BUCKET_CHAINS] RQ_GUARDED_BY(lock);
    size_t bytes RQ_GUARDED_BY(lock); /* of all records */
    size_t bytes_max;
    uint64_t recovered RQ_GUARDED_BY(lock); /* number of needed records */
    /* Memory was exhausted in rq__recovery_reread: every region without a bucket reads the log when
     * it is opened. */
    atomic_bool reread_all;
} rq__recovery;

void rq__recovery_init(rq__recovery *v, size_t bytes_max);
void rq__recovery_clear(rq__recovery *v);
RQ_NODISCARD
rq_err rq__bucket_new(rq_engine *e, rq_slice encoded, rq_slice table, rq__bucket **ret,
                      rq_error *why);
void rq__bucket_free(rq__bucket *b);
/* Adds a record if it is needed; for a bucket that is `by_index`, records are only counted. */
RQ_NODISCARD
rq_err rq__bucket_add(rq__bucket *b, const rq_wal_record *r, bool *ret_needed, rq_error *why);
RQ_NODISCARD
rq_err rq__bucket_deliver(const rq__bucket *b,
                          rq_err (*callback)(void *ctx, const rq_wal_record *r), void *ctx);
RQ_NODISCARD
rq_err rq__recovery_take_nonce(rq_engine *e, const rq_wal_record *r, rq_error *why);
/* Removes the region's bucket from the table and returns it; NULL: there is none. */
rq__bucket *rq__recovery_detach(rq__recovery *v, const char *encoded);
/* Puts the bucket into the table. False: the region has one already. */
bool rq__recovery_attach_first(rq__recovery *v, rq__bucket *b);
/* Reads the log. Once, at start. Blocks. */
RQ_NODISCARD
rq_err rq__recovery_collect(rq_engine *e, rq_error *why);
/* Delivers the region's records in log order and drops them. Blocks. */
RQ_NODISCARD
rq_err rq__recovery_take(rq_engine *e, const char *encoded,
                         rq_err (*callback)(void *ctx, const rq_wal_record *r), void *ctx,
                         rq_error *why);
/* In a cluster: delivers the region's records in the logs that its manifest lists, except this server's:
 * those of an adopted log from memory, the others from the storage. Blocks. */
RQ_NODISCARD
rq_err rq__recovery_take_logs(rq_region *r, rq_err (*callback)(void *ctx, const rq_wal_record *r),
                              void *ctx, rq_error *why);
/* Records that the region's memstore was discarded, so that its next opening reads the log again.
 * Cannot fail, since it is called while a failed region is closed. */
void rq__recovery_reread(rq_engine *e, const char *encoded);
/* Reports that the region was destroyed. */
void rq__recovery_drop(rq_engine *e, const char *encoded);

#endif
