/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source of replication in a server of a cluster: ships this server's own log, and the rest of ended logs that it has
 * claimed, to the peers of the list on shared storage.
 *
 *   list of peers ─┐
 *   own log ───────┼─► queue_set.c ─► a source (source.c) for each queue ─► a region server of the peer
 *   ended logs ────┘        ▲                     │
 *                           └───── positions ◄────┘
 *
 * One thread keeps the queues; each source has a thread of its own. No event loop waits for them.
 */
#ifndef RQ_REPLICATION_CLUSTER_SOURCE_H
#define RQ_REPLICATION_CLUSTER_SOURCE_H

#include "base/config.h"
#include "replication/replication.h"
#include "vfs/shared.h"

typedef struct rq_cluster_source rq_cluster_source;

typedef struct rq_cluster_source_options {
    const rq_env *env;
    rq_engine *engine;
    rq_shared *shared;
    const char *server;     /* this one's ServerName */
    const char *cluster_id; /* of this cluster */
    const char *ended;      /* the set with the names of fenced servers */
    const rq_config *config;
} rq_cluster_source_options;

/* Reads the list of peers and makes this server's queues. Call it before the server takes regions: until then its log has no
 * records that a peer needs. Blocks. Everything in the options outlives it. */
RQ_NODISCARD
rq_err rq_cluster_source_new(const rq_cluster_source_options *o, rq_cluster_source **ret,
                             rq_error *why);
/* Ends the threads and writes the positions. True: the log has queues: it is to be closed with its contents, and then fenced.
 * Blocks for at most five seconds, the time limit of requests to a peer's ZooKeeper quorum. Afterwards only
 * rq_cluster_source_free may be called. NULL is fine. */
bool rq_cluster_source_stop(rq_cluster_source *r);
/* REQUIRES: stopped. NULL is fine. */
void rq_cluster_source_free(rq_cluster_source *r);

/* The queues that are shipped, and some of those that wait, because their peer is disabled or has no place for another ended log
 * (`running`: false); in the arena. Any thread but those of event loops. */
RQ_NODISCARD
rq_err rq_cluster_source_loads(rq_cluster_source *r, rq_arena *arena, rq_source_load **ret,
                               size_t *ret_count);
/* All peers, ascending by id, in the arena: sums over their queues on this server. *ret_kept: logs of ended servers that the
 * cluster keeps for peers; some are owned by other servers, or by nobody yet. The same threads. */
RQ_NODISCARD
rq_err rq_cluster_source_status(rq_cluster_source *r, rq_arena *arena, rq_source_status **ret,
                                size_t *ret_count, uint32_t *ret_kept);

#endif
