/* SPDX-License-Identifier: Apache-2.0 */
/* ClientMetaService: the registry over RPC, which newer clients prefer to ZooKeeper. Served on the
 * ports of both master and region server, as in HBase. HBASE: HBaseRpcServicesBase. */
#include "registry/registry.h"
#include "registry/znodes.h"

#include "proto/registry.pb-c.h"

static void get_cluster_id(void *ctx, rq_call *call)
{
    Pb__GetClusterIdResponse r = PB__GET_CLUSTER_ID_RESPONSE__INIT;
    r.cluster_id = (char *)rq_root_cluster_id(rq_catalog_root(ctx));
    rq_call_reply(call, &r.base);
}

static void get_active_master(void *ctx, rq_call *call)
{
    Pb__GetActiveMasterResponse r = PB__GET_ACTIVE_MASTER_RESPONSE__INIT;
    Pb__ServerName server = rq__server_message(rq_catalog_master(ctx));
    r.server_name = &server;
    rq_call_reply(call, &r.base);
}

static void get_masters(void *ctx, rq_call *call)
{
    Pb__GetMastersResponse r = PB__GET_MASTERS_RESPONSE__INIT;
    Pb__ServerName server = rq__server_message(rq_catalog_master(ctx));
    Pb__GetMastersResponseEntry entry = PB__GET_MASTERS_RESPONSE_ENTRY__INIT;
    Pb__GetMastersResponseEntry *entries[] = {&entry};
    entry.server_name = &server;
    entry.is_active = 1;
    r.master_servers = entries;
    r.n_master_servers = 1;
    rq_call_reply(call, &r.base);
}

/* hbase:meta is one region on this server, and so are its replicas. */
static void get_meta_locations(void *ctx, rq_call *call)
{
    Pb__GetMetaRegionLocationsResponse r = PB__GET_META_REGION_LOCATIONS_RESPONSE__INIT;
    Pb__ServerName server = rq__server_message(rq_catalog_server(ctx));
    Pb__TableName table = PB__TABLE_NAME__INIT;
    Pb__RegionInfo infos[RQ_REPLICATION_MAX];
    Pb__RegionLocation items[RQ_REPLICATION_MAX];
    Pb__RegionLocation *locations[RQ_REPLICATION_MAX];
    const rq_catalog_table *meta = rq_catalog_table_find(ctx, RQ_SLICE_LIT("hbase:meta"));
    int copies = meta == NULL ? 1 : rq_catalog_replication(meta->schema);
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
        items[i].server_name = &server;
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
    Pb__ServerName server = rq__server_message(rq_catalog_server(ctx));
    Pb__ServerName *servers[] = {&server};
    r.server_name = servers;
    r.n_server_name = 1;
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

rq_rpc_service rq_meta_service_methods(rq_catalog *catalog)
{
    return (rq_rpc_service){.name = "ClientMetaService",
                            .methods = methods,
                            .method_count = RQ_ARRAY_LEN(methods),
                            .ctx = catalog};
}
