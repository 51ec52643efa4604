/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of other servers of the cluster to this process: a service of rpc, in which a connection's first two
 * calls prove the cluster's secret (cluster/handshake.h). Before that, and after a proof that is wrong, every
 * other call is refused with AccessDeniedException.
 *
 * It is a service of its own, which only servers of a cluster register. AdminService and
 * RegionServerStatusService, which any client may call, refuse these methods.
 */
#ifndef RQ_PEERS_SERVICE_H
#define RQ_PEERS_SERVICE_H

#include "cluster/secret.h"
#include "cluster/sides.h"
#include "rpc/server.h"

typedef struct rq_peer_service rq_peer_service;

typedef struct rq_peer_service_options {
    const rq_secret *secret;            /* all are borrowed */
    const rq_server_name *const *names; /* of this process, as the other servers know it */
    size_t name_count;
    rq_sides *sides;
    /* Takes a ReplicateWALEntry of a proven server, whose parameter (rq_call_param_bytes) is not decoded; as a handler
     * of rpc. NULL: such calls are refused. */
    void (*apply)(void *ctx, rq_call *call);
    void *apply_ctx;
    const rq_log *log;
} rq_peer_service_options;

RQ_NODISCARD
rq_err rq_peer_service_new(const rq_peer_service_options *o, rq_peer_service **ret);
/* REQUIRES: no call is in flight, no connection is left. NULL is fine. */
void rq_peer_service_free(rq_peer_service *s);
/* The table to register; valid as long as the service. */
rq_rpc_service rq_peer_service_methods(rq_peer_service *s);

#endif
