/* SPDX-License-Identifier: Apache-2.0 */
/* ClientMetaService: the registry over RPC, which newer clients prefer to ZooKeeper. Served on the
 * ports of both master and region server, as in HBase. rq_meta_answers is the source of the
 * answers: the catalog of a standalone server (here), or a cluster's ZooKeeper (member_service.c).
 * HBASE: HBaseRpcServicesBase. */
#include "registry/registry.h"
#include "registry/znodes.h"

#include "proto/registry.pb-c.h"

/* --- the methods ------------------------------------------------------------------------------ */

/* False: the call was answered. */
static bool look(const void *ctx, rq_call *call, rq_meta_view *ret)
{
    const rq_meta_answers *a = ctx;
    *ret = (rq_meta_view){0};
    rq_err rc = a->look(a, call, ret);
    if (rc != RQ_OK) rq_call_fail(call, rc, NULL);
    return rc == RQ_OK;
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
    if (!look(ctx, call, &v)) return;
    r.server_name = v.active;
    rq_call_reply(call, &r.base);
}

static void add_master(Pb__GetMastersResponse *r, Pb__GetMastersResponseEntry *e,
                       Pb__ServerName *name, bool active)
{
    pb__get_masters_response_entry__init(e);
    e->server_name = name;
    e->is_active = active;
    r->master_servers[r->n_master_servers++] = e;
}

static void get_masters(void *ctx, rq_call *call)
{
    Pb__GetMastersResponse r = PB__GET_MASTERS_RESPONSE__INIT;
    rq_meta_view v;
    if (!look(ctx, call, &v)) return;
    Pb__GetMastersResponseEntry *list =
        rq_arena_alloc(&call->arena, (v.backup_count + 1) * sizeof *list);
    r.master_servers =
        rq_arena_alloc(&call->arena, (v.backup_count + 1) * sizeof *r.master_servers);
    if (list == NULL || r.master_servers == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    if (v.active != NULL) add_master(&r, list++, v.active, true);
    for (size_t i = 0; i < v.backup_count; i++)
        add_master(&r, list++, v.backups[i], false);
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
    rq_meta_view v;
    if (!look(ctx, call, &v)) return;
    int copies = v.meta_server == NULL ? 0 : v.meta_copies;
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
        items[i].server_name = v.meta_server;
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
    r.server_name = v.servers;
    r.n_server_name = v.server_count;
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

/* --- a standalone server ---------------------------------------------------------------------- */

static Pb__ServerName *message_of(rq_call *call, const rq_server_name *name)
{
    Pb__ServerName *m = rq_arena_alloc(&call->arena, sizeof *m);
    if (m != NULL) *m = rq__server_message(name);
    return m;
}

static rq_err look_at_catalog(const rq_meta_answers *a, rq_call *call, rq_meta_view *ret)
{
    rq_catalog *catalog = RQ_CONTAINER_OF(a, const rq_catalog_answers, answers)->catalog;
    const rq_catalog_table *meta = rq_catalog_table_find(catalog, RQ_SLICE_LIT("hbase:meta"));
    ret->cluster_id = rq_root_cluster_id(rq_catalog_root(catalog));
    ret->active = message_of(call, rq_catalog_master(catalog));
    ret->meta_server = message_of(call, rq_catalog_server(catalog));
    ret->meta_copies = meta == NULL ? 1 : rq_catalog_replication(meta->schema);
    ret->servers = rq_arena_alloc(&call->arena, sizeof *ret->servers);
    if (ret->active == NULL || ret->meta_server == NULL || ret->servers == NULL)
        return RQ_E_NO_MEMORY;
    ret->servers[0] = ret->meta_server;
    ret->server_count = 1;
    return RQ_OK;
}

rq_catalog_answers rq_catalog_answers_of(rq_catalog *catalog)
{
    return (rq_catalog_answers){.answers = {look_at_catalog}, .catalog = catalog};
}
