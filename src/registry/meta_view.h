/* SPDX-License-Identifier: Apache-2.0 */
/* The servers of the cluster as clients are told over RPC: the content of ClientMetaService's answers
 * (service/meta_service.c), and its two sources, a standalone server's catalog and a cluster's ZooKeeper
 * (zk_member.h). */
#ifndef RQ_REGISTRY_META_VIEW_H
#define RQ_REGISTRY_META_VIEW_H

#include "base/arena.h"
#include "catalog/catalog.h"

/* A NULL member is unknown, and the answers leave it out. */
typedef struct rq_meta_view {
    const char *cluster_id;
    const rq_server_name *active; /* the master */
    const rq_server_name *backups;
    size_t backup_count;
    const rq_server_name *servers; /* region servers */
    size_t server_count;
    const rq_server_name *meta_server; /* the server of hbase:meta */
    int meta_copies;                   /* replicas of hbase:meta, at least 1 */
} rq_meta_view;

/* A source of views. It is the first member of rq_catalog_answers (standalone server) or of
 * rq_member_answers (process of a cluster). */
typedef struct rq_meta_answers {
    /* Any thread inside a read section. The view's pointers are valid until the section ends and the arena
     * is cleared. */
    rq_err (*look)(const struct rq_meta_answers *a, rq_arena *arena, rq_meta_view *ret);
} rq_meta_answers;

/* A standalone server's answers, from its catalog, which must outlive them. */
typedef struct rq_catalog_answers {
    rq_meta_answers answers;
    rq_catalog *catalog;
} rq_catalog_answers;
rq_catalog_answers rq_catalog_answers_of(rq_catalog *catalog);

#endif
