/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of a standalone server, from which clients learn where meta and master are: ZooKeeper's wire
 * protocol (zookeeper.c) with HBase's znodes (znodes.c), computed from the catalog. There is no real
 * ZooKeeper: the znodes are read-only, and change only when tables do. ClientMetaService gives the same
 * information over RPC (meta_view.h). */
#ifndef RQ_REGISTRY_REGISTRY_H
#define RQ_REGISTRY_REGISTRY_H

#include "catalog/catalog.h"
#include "net/budget.h"
#include "net/loop.h"
#include "net/stream.h"
#include "net/transform.h"

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

#endif
