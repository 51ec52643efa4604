/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The znodes that only the active master of a cluster writes: meta-region-server, table/NAME, namespace/NAME,
 * draining/SERVER.
 * They stay when it ends, and the next one corrects them. The list is given as a whole; what differs from
 * the list written before is written, and removed.
 */
#ifndef RQ_REGISTRY_ZK_NODES_H
#define RQ_REGISTRY_ZK_NODES_H

#include "registry/zk_client.h"
#include "registry/zk_member.h"

#include <pthread.h>

struct rq__node_list;

typedef struct rq__zk_nodes {
    pthread_mutex_t lock;
    struct rq__node_list *next; /* given, not taken yet; guarded by the lock */
    /* The lane's: */
    struct rq__node_list *now,
        *written; /* `written`: NULL unless all of it is in ZooKeeper by this process */
} rq__zk_nodes;

void rq__zk_nodes_init(rq__zk_nodes *n);
void rq__zk_nodes_clear(rq__zk_nodes *n);
/* Any thread; copies. */
RQ_NODISCARD rq_err rq__zk_nodes_give(rq__zk_nodes *n, const rq_member_node *list, size_t count);
/* Writes what is to be written. May be repeated, after an error too. */
RQ_NODISCARD rq_err rq__zk_nodes_write(rq__zk_nodes *n, rq__zk *zk, const char *root,
                                       rq_arena *arena, rq_error *why);
/* This process is not the active master, or has another session: nothing is known to be written. */
void rq__zk_nodes_forget(rq__zk_nodes *n);

#endif
