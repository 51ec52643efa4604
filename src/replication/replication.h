/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source of replication: ships the log to the catalog's peers (catalog/peers.h).
 *
 *    log ─ tail ─► filter ─► shipment ─ outlet ─► a region server of the peer
 *                                          └► applied: position moves, the log before it is released
 *
 * Each enabled peer has a thread (source.c); one more thread starts and ends these as peers change. No
 * event loop ever waits for them. Without peers there is only the latter thread, which sleeps.
 */
#ifndef RQ_REPLICATION_REPLICATION_H
#define RQ_REPLICATION_REPLICATION_H

#include "base/config.h"
#include "catalog/peers.h"
#include "replication/sink.h"

typedef struct rq_replication rq_replication;

typedef struct rq_replication_options {
    const rq_env *env;
    rq_engine *engine;
    rq_catalog *catalog;
    const rq_config *config; /* NULL: defaults */
    const char *data_path;   /* absolute, for peers that copy files */
} rq_replication_options;

/* Starts it. Everything in the options outlives it. */
RQ_NODISCARD
rq_err rq_replication_new(const rq_replication_options *o, rq_replication **ret, rq_error *why);
/* Ends the threads and writes the positions. Call it before the catalog is closed. Blocks for at most
 * five seconds, the time limit of requests to a peer's ZooKeeper quorum. Afterwards only
 * rq_replication_free may be called. NULL is fine. */
void rq_replication_stop(rq_replication *r);
void rq_replication_free(rq_replication *r);

/* The sink's counters. */
rq_sink *rq_replication_sink(rq_replication *r);

/* The state of one peer. Times in ms since 1970; 0: never. */
typedef struct rq_source_status {
    const char *id;
    bool enabled;
    bool running;       /* it has a thread */
    uint64_t log_bytes; /* bytes of the log that are kept for it */
    uint32_t
        ended_logs; /* of a cluster: logs of ended servers that this server ships, or will ship */
    uint32_t
        waiting_logs; /* those of them that wait: other ended logs are shipped before, or the peer is disabled */
    uint64_t lag_ms;         /* age of the oldest record that is not shipped; 0: all are */
    uint64_t age_of_last_ms; /* of the newest shipped record, when it was applied */
    int64_t shipped_ms;      /* when the last batch was applied */
    int64_t next_write_ms;   /* when the oldest record that is not shipped was written */
    int64_t lost_ms;         /* see rq_peer_info */
    uint64_t records;        /* read from the log */
    uint64_t shipped_records, shipped_edits, shipped_bytes, shipped_batches;
    uint64_t shipped_files; /* of bulk loads */
    uint64_t filtered;      /* records that the peer does not get */
    uint64_t failed;        /* attempts that failed */
    const char *problem;    /* why the last attempt failed; "": it did not fail */
} rq_source_status;

/* As HBase shows it. The "size" of its queue, which is the log, is in WAL files. */
rq_source_load rq_source_load_of(const rq_source_status *s);

/* All peers, ascending by id, in the arena. Any thread but those of event loops, because it takes a lock
 * (which is held for copies only). */
RQ_NODISCARD
rq_err rq_replication_status(rq_replication *r, rq_arena *arena, rq_source_status **ret,
                             size_t *ret_count);

/* HBASE: ReplicationPeerManager.checkSameClusterKey. Blocks: asks the quorum of the key for the
 * cluster's id. RQ_E_DO_NOT_RETRY with HBase's text: it is this cluster, or it does not answer. */
RQ_NODISCARD
rq_err rq_replication_check_key(rq_replication *r, const char *cluster_key, rq_error *why);

#endif
