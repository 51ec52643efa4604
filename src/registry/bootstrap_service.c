/* SPDX-License-Identifier: Apache-2.0 */
/* BootstrapNodeService: lists the region servers that serve ClientMetaService, here only this one.
 * HBase's region servers call it on each other. HBASE: RSRpcServices.getAllBootstrapNodes. */
#include "registry/registry.h"
#include "registry/znodes.h"

#include "proto/registry.pb-c.h"

static void get_all_bootstrap_nodes(void *ctx, rq_call *call)
{
    Pb__GetAllBootstrapNodesResponse r = PB__GET_ALL_BOOTSTRAP_NODES_RESPONSE__INIT;
    Pb__ServerName server = rq__server_message(rq_catalog_server(ctx));
    Pb__ServerName *servers[] = {&server};
    r.node = servers;
    r.n_node = 1;
    rq_call_reply(call, &r.base);
}

static const rq_rpc_method methods[] = {
    {"GetAllBootstrapNodes", &pb__get_all_bootstrap_nodes_request__descriptor,
     get_all_bootstrap_nodes},
};

rq_rpc_service rq_bootstrap_service_methods(rq_catalog *catalog)
{
    return (rq_rpc_service){.name = "BootstrapNodeService",
                            .methods = methods,
                            .method_count = RQ_ARRAY_LEN(methods),
                            .ctx = catalog};
}
