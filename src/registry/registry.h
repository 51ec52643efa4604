/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of a standalone server, from which clients learn where meta and master are. Two protocols
 * give the same answers, computed from the catalog: ZooKeeper's wire protocol (zookeeper.c) with HBase's
 * znodes (znodes.c), and ClientMetaService over RPC (meta_service.c). There is no real ZooKeeper: the
 * znodes are read-only, and change only when tables do. */
#ifndef RQ_REGISTRY_REGISTRY_H
#define RQ_REGISTRY_REGISTRY_H

#include "catalog/catalog.h"
#include "rpc/server.h"

#include "proto/hbase.pb-c.h"

typedef struct rq_registry rq_registry;

#define RQ_REGISTRY_ADDRESSES_MAX 8

typedef struct rq_registry_options {
    const rq_env *env;
    rq_loops *loops;
    rq_catalog *catalog;
    const char *const *addresses; /* numeric; read during open */
    unsigned address_count;       /* 0: 127.0.0.1 alone */
    uint16_t zk_port;             /* on all of them; 0: any port free on all addresses */
    const char *zk_root;          /* NULL: "/hbase" (HBASE: zookeeper.znode.parent) */
    size_t memory_max;            /* limit for watches and unfinished requests; 0: 1 MiB */
    /* Budget for answers that clients have not read; shared with others, must outlive the registry,
     * may be NULL. */
    rq_budget *unread;
    const rq_transform_kind *transform; /* below every connection (net/transform.h); NULL: none */
} rq_registry_options;

/* Listens for ZooKeeper clients. Loops, catalog, budget and transform must outlive the registry;
 * the rest of the options is copied or read during the call. */
RQ_NODISCARD
rq_err rq_registry_open(const rq_registry_options *o, rq_registry **ret, rq_error *why);
/* One of the registry's listeners, for connections in memory (net/memory.h); valid until the registry
 * is closed. */
rq_listener *rq_registry_listener(rq_registry *r);
/* REQUIRES: the loops run, or never ran. NULL is fine. */
void rq_registry_close(rq_registry *r);

/* The content of ClientMetaService's answers, allocated from the call's arena. A NULL member is unknown, and the answers
 * leave it out. */
typedef struct rq_meta_view {
    const char *cluster_id;
    Pb__ServerName *active; /* the master */
    Pb__ServerName **backups;
    size_t backup_count;
    Pb__ServerName **servers; /* region servers */
    size_t server_count;
    Pb__ServerName *meta_server; /* the server of hbase:meta */
    int meta_copies;             /* replicas of hbase:meta, at least 1 */
} rq_meta_view;

/* The source of ClientMetaService's answers. It is the first member of rq_catalog_answers (standalone server) or of
 * rq_member_answers (process of a cluster). */
typedef struct rq_meta_answers {
    rq_err (*look)(const struct rq_meta_answers *a, rq_call *call, rq_meta_view *ret);
} rq_meta_answers;

/* ClientMetaService, for both RPC ports; `a` must outlive the servers. */
rq_rpc_service rq_meta_service_methods(const rq_meta_answers *a);

/* A standalone server's answers, from its catalog, which must outlive them. */
typedef struct rq_catalog_answers {
    rq_meta_answers answers;
    rq_catalog *catalog;
} rq_catalog_answers;
rq_catalog_answers rq_catalog_answers_of(rq_catalog *catalog);
/* BootstrapNodeService, for the region server's port. */
rq_rpc_service rq_bootstrap_service_methods(rq_catalog *catalog);

#endif
