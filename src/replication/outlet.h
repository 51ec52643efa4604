/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to a peer's cluster: a client that knows the cluster's region servers. Only outlet.c
 * and region_locator.c include the client's headers, because some of their names are also defined in the server's code.
 * Used by one thread; all calls block. HBASE: HBaseReplicationEndpoint, ReplicationSinkManager. */
#ifndef RQ_REPLICATION_OUTLET_H
#define RQ_REPLICATION_OUTLET_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdatomic.h>
#include <stdint.h>

typedef struct rq__outlet rq__outlet;

typedef struct rq__outlet_options {
    const char *cluster_key; /* HOST[:PORT],…:PORT:/ZNODE */
    uint32_t timeout_ms;     /* of a batch */
    uint64_t seed;           /* chooses the first region server */
    const atomic_bool *stop;
} rq__outlet_options;

/* RQ_E_IO: no server of the quorum, or no master, answers. RQ_E_NOT_FOUND: there is no cluster under
 * this znode. */
RQ_NODISCARD
rq_err rq__outlet_open(const rq__outlet_options *o, rq__outlet **ret, rq_error *why);
/* NULL is fine. */
void rq__outlet_close(rq__outlet *o);
/* Asks the quorum for the cluster's id; RQ_E_IO, RQ_E_NOT_FOUND as above. */
RQ_NODISCARD
rq_err rq__outlet_ask_id(const char *cluster_key, char ret[static 64], rq_error *why);
const char *rq__outlet_cluster_id(const rq__outlet *o);
/* Sends a batch to a region server and waits until it is applied; after a failure the next call
 * uses another server. RQ_E_TABLE_NOT_FOUND, RQ_E_NO_SUCH_FAMILY: the peer lacks a table or family.
 * RQ_E_CANCELLED: *stop is set. Other errors may be temporary. */
RQ_NODISCARD
rq_err rq__outlet_ship(rq__outlet *o, rq_slice message, rq_slice cells, rq_error *why);

#endif
