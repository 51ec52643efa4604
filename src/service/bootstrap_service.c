/* SPDX-License-Identifier: Apache-2.0 */
/* BootstrapNodeService: lists the region servers that serve ClientMetaService, here only this one.
 * HBase's region servers call it on each other. HBASE: RSRpcServices.getAllBootstrapNodes. */
#include "service/service.h"

#include "service/messages.h"

#include "proto/registry.pb-c.h"

static void get_all_bootstrap_nodes(void *ctx, rq_call *call)
{
    Pb__GetAllBootstrapNodesResponse r = PB__GET_ALL_BOOTSTRAP_NODES_RESPONSE__INIT;
    Pb__ServerName *server = rq__server_name_message(&call->arena, rq_catalog_server(ctx));
    if (server == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    r.node = &server;
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
