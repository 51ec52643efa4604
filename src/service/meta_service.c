/* SPDX-License-Identifier: Apache-2.0 */
/* ClientMetaService: the registry over RPC, which newer clients prefer to ZooKeeper. Served on the
 * ports of both master and region server, as in HBase. rq_meta_answers is the source of the answers.
 * HBASE: HBaseRpcServicesBase. */
#include "service/service.h"

#include "service/messages.h"

#include "proto/registry.pb-c.h"

/* False: the call was answered. */
static bool look(const void *ctx, rq_call *call, rq_meta_view *ret)
{
    const rq_meta_answers *a = ctx;
    *ret = (rq_meta_view){0};
    rq_err rc = a->look(a, &call->arena, ret);
    if (rc != RQ_OK) rq_call_fail(call, rc, NULL);
    return rc == RQ_OK;
}

/* *ret NULL: there is no name. False: the call was answered, because memory is exhausted. */
static bool take_name(rq_call *call, const rq_server_name *name, Pb__ServerName **ret)
{
    *ret = name == NULL ? NULL : rq__server_name_message(&call->arena, name);
    if (name == NULL || *ret != NULL) return true;
    rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    return false;
}

static void get_cluster_id(void *ctx, rq_call *call)
{
    Pb__GetClusterIdResponse r = PB__GET_CLUSTER_ID_RESPONSE__INIT;
    rq_meta_view v;
    if (!look(ctx, call, &v)) return;
    r.cluster_id = (char *)v.cluster_id;
    rq_call_reply(call, &r.base);
}

static void get_active_master(void *ctx, rq_call *call)
{
    Pb__GetActiveMasterResponse r = PB__GET_ACTIVE_MASTER_RESPONSE__INIT;
    rq_meta_view v;
    if (!look(ctx, call, &v) || !take_name(call, v.active, &r.server_name)) return;
    rq_call_reply(call, &r.base);
}

static bool add_master(rq_call *call, Pb__GetMastersResponse *r, const rq_server_name *name,
                       bool active)
{
    Pb__GetMastersResponseEntry *e = rq_arena_alloc(&call->arena, sizeof *e);
    if (e == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return false;
    }
    pb__get_masters_response_entry__init(e);
    e->is_active = active;
    r->master_servers[r->n_master_servers++] = e;
    return take_name(call, name, &e->server_name);
}

static void get_masters(void *ctx, rq_call *call)
{
    Pb__GetMastersResponse r = PB__GET_MASTERS_RESPONSE__INIT;
    rq_meta_view v;
    if (!look(ctx, call, &v)) return;
    r.master_servers =
        rq_arena_alloc(&call->arena, (v.backup_count + 1) * sizeof *r.master_servers);
    if (r.master_servers == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    if (v.active != NULL && !add_master(call, &r, v.active, true)) return;
    for (size_t i = 0; i < v.backup_count; i++)
        if (!add_master(call, &r, &v.backups[i], false)) return;
    rq_call_reply(call, &r.base);
}

/* hbase:meta is one region on one server, and so are its replicas. */
static void get_meta_locations(void *ctx, rq_call *call)
{
    Pb__GetMetaRegionLocationsResponse r = PB__GET_META_REGION_LOCATIONS_RESPONSE__INIT;
    Pb__TableName table = PB__TABLE_NAME__INIT;
    Pb__RegionInfo infos[RQ_REPLICATION_MAX];
    Pb__RegionLocation items[RQ_REPLICATION_MAX];
    Pb__RegionLocation *locations[RQ_REPLICATION_MAX];
    Pb__ServerName *server;
    rq_meta_view v;
    if (!look(ctx, call, &v) || !take_name(call, v.meta_server, &server)) return;
    int copies = server == NULL ? 0 : v.meta_copies;
    table.namespace_ = (ProtobufCBinaryData){5, (uint8_t *)"hbase"};
    table.qualifier = (ProtobufCBinaryData){4, (uint8_t *)"meta"};
    for (int i = 0; i < copies; i++) {
        pb__region_info__init(&infos[i]);
        infos[i].table_name = &table;
        infos[i].region_id = 1;
        infos[i].has_start_key = infos[i].has_end_key = 1;
        infos[i].has_offline = infos[i].has_split = 1;
        infos[i].has_replica_id = 1;
        infos[i].replica_id = i;
        pb__region_location__init(&items[i]);
        items[i].region_info = &infos[i];
        items[i].server_name = server;
        items[i].seq_num = -1; /* HBASE: HRegionLocation without a number */
        locations[i] = &items[i];
    }
    r.meta_locations = locations;
    r.n_meta_locations = (size_t)copies;
    rq_call_reply(call, &r.base);
}

static void get_bootstrap_nodes(void *ctx, rq_call *call)
{
    Pb__GetBootstrapNodesResponse r = PB__GET_BOOTSTRAP_NODES_RESPONSE__INIT;
    rq_meta_view v;
    if (!look(ctx, call, &v)) return;
    r.server_name = rq_arena_alloc(&call->arena, (v.server_count + 1) * sizeof *r.server_name);
    if (r.server_name == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    for (; r.n_server_name < v.server_count; r.n_server_name++)
        if (!take_name(call, &v.servers[r.n_server_name], &r.server_name[r.n_server_name])) return;
    rq_call_reply(call, &r.base);
}

static const rq_rpc_method methods[] = {
    {"GetClusterId", &pb__get_cluster_id_request__descriptor, get_cluster_id},
    {"GetActiveMaster", &pb__get_active_master_request__descriptor, get_active_master},
    {"GetMasters", &pb__get_masters_request__descriptor, get_masters},
    {"GetMetaRegionLocations", &pb__get_meta_region_locations_request__descriptor,
     get_meta_locations},
    {"GetBootstrapNodes", &pb__get_bootstrap_nodes_request__descriptor, get_bootstrap_nodes},
};

rq_rpc_service rq_meta_service_methods(const rq_meta_answers *a)
{
    return (rq_rpc_service){.name = "ClientMetaService",
                            .methods = methods,
                            .method_count = RQ_ARRAY_LEN(methods),
                            .ctx = (void *)(uintptr_t)a};
}
