/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The znodes that only the active master of a cluster writes: meta-region-server, table/NAME, namespace/NAME.
 * They stay when the master ends, and the next master corrects them. The caller passes complete lists; nodes that
 * differ from the list written before are written, and nodes that are no longer in the list are removed.
 */
#ifndef RQ_REGISTRY_ZK_NODES_H
#define RQ_REGISTRY_ZK_NODES_H

#include "registry/zk_client.h"
#include "registry/zk_member.h"

#include <pthread.h>

struct rq__node_list;

typedef struct rq__zk_nodes {
    pthread_mutex_t lock;
    struct rq__node_list *next; /* the newest list, unless the lane has it; guarded by the lock */
    /* Used on the member's lane only: */
    struct rq__node_list *now,
        *written; /* the list that this process has written completely; NULL: none */
} rq__zk_nodes;

void rq__zk_nodes_init(rq__zk_nodes *n);
void rq__zk_nodes_clear(rq__zk_nodes *n);
/* Any thread; copies. */
RQ_NODISCARD rq_err rq__zk_nodes_give(rq__zk_nodes *n, const rq_member_node *list, size_t count);
/* Writes the newest list to ZooKeeper, as far as it is not written yet. May be repeated, also after an error. */
RQ_NODISCARD rq_err rq__zk_nodes_write(rq__zk_nodes *n, rq__zk *zk, const char *root,
                                       rq_arena *arena, rq_error *why);
/* Call it when this process is not the active master, or has a new session: everything will be written again. */
void rq__zk_nodes_forget(rq__zk_nodes *n);

#endif
