/* SPDX-License-Identifier: Apache-2.0 */
/* The RPC services: each handler translates a decoded request into calls of ops, region and
 * catalog, and their results into messages. Handlers run on the loop of the call's connection and
 * never block: waiting for a file happens on a pool, waiting for the log ends with a task on the
 * loop's lane. */
#ifndef RQ_SERVICE_SERVICE_H
#define RQ_SERVICE_SERVICE_H

#include "base/config.h"
#include "base/env.h"
#include "catalog/catalog.h"
#include "ops/ops.h"
#include "region/region.h"
#include "registry/meta_view.h"
#include "rpc/server.h"

typedef struct rq_client_service rq_client_service;

typedef struct rq_client_service_options {
    const rq_env *env;
    rq_engine *engine;
    rq_catalog *catalog; /* NULL: this process has none; then `host` is set */
    rq_host *host;       /* whose regions are served; NULL: the catalog's */
    const rq_config *config;
    rq_ops *ops;
    rq_loops *loops; /* created, not started: each gets a seat */
} rq_client_service_options;

/* ClientService: get, mutate, multi, scan, endpoints and bulk load. Everything in the options must
 * outlive it. */
RQ_NODISCARD
rq_err rq_client_service_new(const rq_client_service_options *o, rq_client_service **ret,
                             rq_error *why);
/* REQUIRES: loops are stopped (no call is in flight). */
void rq_client_service_free(rq_client_service *s);
/* Applies the settings that change without a restart. Any thread. */
void rq_client_service_reload(rq_client_service *s, const rq_config *config);
/* The method table to register under "ClientService"; valid as long as the service. */
rq_rpc_service rq_client_service_methods(rq_client_service *s);

/* ClientMetaService, for both RPC ports; `a` must outlive the servers. */
rq_rpc_service rq_meta_service_methods(const rq_meta_answers *a);
/* BootstrapNodeService, for the region server's port; the catalog must outlive the server. */
rq_rpc_service rq_bootstrap_service_methods(rq_catalog *catalog);

#endif
