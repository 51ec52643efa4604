/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HBase's znodes, computed from the catalog for each request. Their values are defined in
 * znode_values.h. HBASE: ZNodePaths.
 *
 *   /hbase            hbaseid master meta-region-server running backup-masters rs/SERVER
 *                     table/NAME (the states that 1.x clients read) table-lock draining namespace …
 */
#ifndef RQ_REGISTRY_ZNODES_H
#define RQ_REGISTRY_ZNODES_H

#include "base/arena.h"
#include "catalog/catalog.h"

#include "proto/hbase.pb-c.h"

typedef struct rq__znodes {
    rq_catalog *catalog;
    const char *root; /* "/hbase" */
} rq__znodes;

typedef struct rq__znode {
    rq_slice data;
    rq_slice *children; /* names; only if listed */
    size_t child_count;
    bool ephemeral;
    bool changes; /* it changes with the catalog's view; other nodes never change after the start */
} rq__znode;

/* The protobuf form of a server's name; points to the strings of s. */
static inline Pb__ServerName rq__server_message(const rq_server_name *s)
{
    Pb__ServerName m = PB__SERVER_NAME__INIT;
    m.host_name = (char *)s->host;
    m.has_port = 1;
    m.port = s->port;
    m.has_start_code = 1;
    m.start_code = (uint64_t)s->start_code;
    return m;
}

/* REQUIRES: inside a read section. RQ_E_NOT_FOUND: no such node. Everything is in the arena. `lists`: also
 * returns the names of the children, of which there may be very many; otherwise only their number. */
RQ_NODISCARD
rq_err rq__znode_get(const rq__znodes *z, rq_slice path, bool lists, rq_arena *arena,
                     rq__znode *ret);

#endif
