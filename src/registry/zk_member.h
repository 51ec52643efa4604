/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's membership of a cluster, in ZooKeeper. While its session lives, the process has the ephemeral nodes
 * rs/NAME and either backup-masters/NAME or, in one process of the cluster, master. Nodes and values are HBase's.
 *
 * Being the active master here gives no right to write: the storage decides who may write (vfs/shared.h), because
 * a process whose session has expired still regards itself as the master until ZooKeeper reports this to it.
 */
#ifndef RQ_REGISTRY_ZK_MEMBER_H
#define RQ_REGISTRY_ZK_MEMBER_H

#include "base/arena.h"
#include "base/executor.h"
#include "catalog/catalog.h"
#include "registry/meta_view.h"

#include <stdatomic.h>

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
    int session_ms;                /* requested session timeout; ZooKeeper limits it to a range */
    rq_server_name server, master; /* with `text`; both names of this process */
    uint16_t server_info_port, master_info_port;
    const char *cluster_id; /* of the storage; the first member writes it to hbaseid */
    /* Called when the state, the active master or the servers have changed. On the member's own thread. */
    void (*changed)(void *ctx);
    void *ctx;
} rq_member_options;

typedef struct rq_member_view {
    rq_member_state state;
    bool connected;
    const char *active;         /* the active master's ServerName; "": none is known */
    const char *const *servers; /* in rs/, sorted */
    size_t server_count;
    const char *const *backups; /* standby masters, sorted */
    size_t backup_count;
    /* A member has called rq_member_end_cluster: all processes must end. */
    bool is_shut_down;
    const char *trouble; /* why it is REFUSED, or the last error while JOINING; "" */
    /* Of the last rq_member_read_again that was called before this was read; 0: none. */
    uint64_t number;
} rq_member_view;

/* RQ_E_UNSUPPORTED: ZooKeeper's client library is not installed. */
RQ_NODISCARD rq_err rq_member_can_open(rq_error *why);
/* Joins in the background, and again after each loss of the session. Strings must live until close. */
RQ_NODISCARD rq_err rq_member_open(const rq_member_options *o, rq_member **ret, rq_error *why);
/* Leaves the cluster: the member's nodes are removed at once. NULL is allowed. */
void rq_member_close(rq_member *m);
/* As last heard; copied into the arena. Any thread. */
RQ_NODISCARD rq_err rq_member_look(rq_member *m, rq_arena *arena, rq_member_view *ret);

/* Has ZooKeeper read again, in the background, again after errors: views with a `number` of *ret or more have nothing that
 * was removed before this call. Any thread. */
RQ_NODISCARD rq_err rq_member_read_again(rq_member *m, uint64_t *ret);

/* The process has ended, and is fenced: its nodes `master` and rs/SERVER are removed together, if `master` still names it, so
 * that its place is free before its session ends. Done in the background, again after errors. `master` and `server`: its
 * ServerNames, copied. Any thread. */
RQ_NODISCARD rq_err rq_member_depose(rq_member *m, const char *master, const char *server);

/* Tells all processes of the cluster to end: removes the node `running` in the background, and retries after errors.
 * The master of the next start makes the node again. Any thread. */
RQ_NODISCARD rq_err rq_member_end_cluster(rq_member *m);

/* Parses a ServerName of the view; in the arena. False: the text is no ServerName, or there is no memory. */
bool rq_member_name_of(const char *text, rq_arena *arena, rq_server_name *ret);
/* The region server in the active master's process: of v->servers, the one with the master's host and start code
 * (processes of a cluster have different start codes). NULL: not known. */
const char *rq_member_active_server(const rq_member_view *v);

/* The source of ClientMetaService's answers in a process of a cluster (member_answers.c), for both RPC ports. */
typedef struct rq_member_answers {
    rq_meta_answers answers;
    _Atomic(rq_member *) member; /* NULL: nothing is known yet */
    const char *cluster_id;
} rq_member_answers;
/* Sets all but the member. */
void rq_member_answers_init(rq_member_answers *a, const char *cluster_id);

typedef struct rq_member_node {
    const char *path; /* below the root: "table/t" */
    rq_slice value;
} rq_member_node;

/* For an active master that has opened hbase:meta: sets the nodes meta-region-server and those below table/ and
 * namespace/; others below these are removed. The list is copied, and written in the background while this process
 * is ACTIVE. Any thread. */
RQ_NODISCARD rq_err rq_member_write(rq_member *m, const rq_member_node *list, size_t count);

#endif
