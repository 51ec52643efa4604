/* SPDX-License-Identifier: Apache-2.0 */
/* MasterService and AdminService: DDL, cluster status, switches, flushes and compactions. Handlers
 * run on the loop of the call's connection; long work runs on RQ_POOL_CALL, and the call is
 * answered on its loop afterwards. */
#ifndef RQ_SERVICE_ADMIN_H
#define RQ_SERVICE_ADMIN_H

#include "base/config.h"
#include "catalog/catalog.h"
#include "replication/replication.h"
#include "replication/sink_router.h"
#include "rpc/server.h"
#include "service/service.h"

typedef struct rq_admin_services rq_admin_services;

typedef struct rq_admin_services_options {
    const rq_env *env;
    rq_engine *engine;
    rq_catalog *
        catalog; /* NULL: this process has none; then `host` is set, and only its methods may be served */
    rq_host *host;      /* NULL: the catalog's */
    uint16_t info_port; /* without a catalog: of the pages, as clients are told; 0: none */
    const rq_config *config;
    struct rq_metrics *metrics; /* NULL: the cluster's status has no requests */
    rq_loops *loops;
    /* Handles UpdateConfiguration, on RQ_POOL_CALL; NULL: the call is refused. */
    rq_err (*reload)(void *ctx, rq_error *why);
    void *reload_ctx;
    rq_slow_log *slow;             /* what the slow-log calls read; may be NULL */
    struct rq_user_metrics *users; /* NULL: requests are not counted by user */
    /* For replication, both ways; NULL (tests): its sink is refused. */
    rq_client_service *client;
    rq_replication *replication;
    /* Of a server of a cluster: replicated entries are passed on by `router`, and counted in `sink`. NULL: entries are
     * applied here, and counted by `replication`. */
    rq_sink_router *router;
    rq_sink *sink;
    struct rq_quotas *quotas; /* quota/quota.h; NULL: there are none */
    /* The names of the standby masters, in the arena. Never blocks; any thread. NULL: there are none. */
    rq_err (*standbys)(void *ctx, rq_arena *arena, rq_server_name **ret, size_t *ret_count);
    void *standbys_ctx;
    /* Begins the orderly end of the process, for StopServer, StopMaster and Shutdown; must not
     * block. NULL: they are refused. */
    void (*stop)(void *ctx);
    void *stop_ctx;
    /* Begins the end of all processes of a cluster, for Shutdown; must not block. NULL: Shutdown calls `stop`, which
     * ends this process. */
    rq_err (*shut_down)(void *ctx);
    void *shut_down_ctx;
} rq_admin_services_options;

/* Everything in the options outlives it. */
RQ_NODISCARD
rq_err rq_admin_services_new(const rq_admin_services_options *o, rq_admin_services **ret,
                             rq_error *why);
/* REQUIRES: no call is in flight. NULL is fine. */
void rq_admin_services_free(rq_admin_services *s);
/* The tables to register: "MasterService" on the master's port, "AdminService" on the region
 * server's. Valid as long as the services. */
rq_rpc_service rq_master_service_methods(rq_admin_services *s);
rq_rpc_service rq_admin_service_methods(rq_admin_services *s);
/* "AdminService" of a cluster's server: what needs its regions alone. */
rq_rpc_service rq_host_admin_service_methods(rq_admin_services *s);
/* An RPC handler; `ctx` is an rq_admin_services. Applies a ReplicateWALEntry from another server of the cluster, whose
 * keys name regions of this server. REQUIRES: the caller has checked the sender; the parameter is not decoded yet. */
void rq_admin_apply_entries(void *ctx, rq_call *call);
/* The methods of AdminService that the master serves (admin_mob.c). */
rq_rpc_service rq_master_admin_service_methods(rq_admin_services *s);
/* "LockService" on the master's port (master_locks.c). */
rq_rpc_service rq_lock_service_methods(rq_admin_services *s);
/* "RegionServerStatusService" on the master's port (region_servers.c). */
rq_rpc_service rq_status_service_methods(rq_admin_services *s);
/* "HbckService" on the master's port (hbck.c). */
rq_rpc_service rq_hbck_service_methods(rq_admin_services *s);
/* Likewise on the port of a cluster's master: each call is refused. */
rq_rpc_service rq_refused_hbck_service_methods(rq_admin_services *s);

#endif
