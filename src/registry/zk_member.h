/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's membership of a cluster, in ZooKeeper: rs/NAME while its session lives, and either
 * backup-masters/NAME or, in one process of the cluster, master. The nodes and values are HBase's.
 *
 * Being the active master here decides nothing about who may write: the storage does (vfs/shared.h).
 * A process whose session has expired still regards itself as the master until ZooKeeper tells it.
 */
#ifndef RQ_REGISTRY_ZK_MEMBER_H
#define RQ_REGISTRY_ZK_MEMBER_H

#include "base/arena.h"
#include "base/executor.h"
#include "catalog/catalog.h"

typedef struct rq_member rq_member;

typedef enum rq_member_state {
    RQ_MEMBER_JOINING, /* no session yet, or no longer */
    RQ_MEMBER_STANDBY,
    RQ_MEMBER_ACTIVE,
    RQ_MEMBER_REFUSED, /* ZooKeeper has another cluster below this root; forever */
} rq_member_state;

typedef struct rq_member_options {
    rq_executor *executor;
    const char *quorum;            /* "host:port,host:port" */
    const char *root;              /* "/hbase": one level or more */
    int session_ms;                /* as wished; ZooKeeper has a range for it */
    rq_server_name server, master; /* with `text`; both names of this process */
    uint16_t server_info_port, master_info_port;
    const char *cluster_id; /* of the storage; the first master writes it */
    /* The state, the active master or the servers have changed. On the member's own thread. */
    void (*changed)(void *ctx);
    void *ctx;
} rq_member_options;

typedef struct rq_member_view {
    rq_member_state state;
    bool connected;
    const char *active;         /* the active master's ServerName; "": none is known */
    const char *const *servers; /* in rs/, sorted */
    size_t server_count;
    const char *trouble; /* why it is REFUSED, or the last error while JOINING; "" */
} rq_member_view;

/* Joins in the background, and again after each loss of the session. Strings must live until close. */
RQ_NODISCARD rq_err rq_member_open(const rq_member_options *o, rq_member **ret, rq_error *why);
/* Leaves: its nodes go at once. NULL is allowed. */
void rq_member_close(rq_member *m);
/* As last heard; copied into the arena. Any thread. */
RQ_NODISCARD rq_err rq_member_look(rq_member *m, rq_arena *arena, rq_member_view *ret);

#endif
