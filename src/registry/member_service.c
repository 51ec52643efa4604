/* SPDX-License-Identifier: Apache-2.0 */
/* ClientMetaService of a cluster's process, master or not: the answers come from ZooKeeper, as the member last
 * heard it. What is not known is left out, and the client asks another server. HBASE: HBaseRpcServicesBase. */
#include "registry/zk_member.h"

#include "registry/registry.h"
#include "registry/znodes.h"

#include "proto/registry.pb-c.h"

#include <stdio.h>

static rq_err look(void *ctx, rq_call *call, rq_member_view *ret)
{
    rq_member_answers *a = ctx;
    rq_member *m = atomic_load(&a->member);
    *ret = (rq_member_view){.active = ""};
    return m == NULL ? RQ_OK : rq_member_look(m, &call->arena, ret);
}

/* NULL: the text is no ServerName, or there is no memory. */
static Pb__ServerName *message_of(rq_call *call, const char *text)
{
    rq_server_name name;
    if (text == NULL || !rq_member_name_of(text, &call->arena, &name)) return NULL;
    Pb__ServerName *m = rq_arena_calloc(&call->arena, 1, sizeof *m);
    if (m != NULL) *m = rq__server_message(&name);
    return m;
}

static void get_cluster_id(void *ctx, rq_call *call)
{
    const rq_member_answers *a = ctx;
    Pb__GetClusterIdResponse r = PB__GET_CLUSTER_ID_RESPONSE__INIT;
    r.cluster_id = (char *)a->cluster_id;
    rq_call_reply(call, &r.base);
}

static void get_active_master(void *ctx, rq_call *call)
{
    Pb__GetActiveMasterResponse r = PB__GET_ACTIVE_MASTER_RESPONSE__INIT;
    rq_member_view v;
    rq_err rc = look(ctx, call, &v);
    if (rc != RQ_OK) {
        rq_call_fail(call, rc, NULL);
        return;
    }
    r.server_name = message_of(call, v.active);
    rq_call_reply(call, &r.base);
}

static void add_master(rq_call *call, const char *text, bool active, Pb__GetMastersResponse *r)
{
    Pb__GetMastersResponseEntry *e = rq_arena_calloc(&call->arena, 1, sizeof *e);
    Pb__ServerName *name = message_of(call, text);
    if (e == NULL || name == NULL) return;
    pb__get_masters_response_entry__init(e);
    e->server_name = name;
    e->is_active = active;
    r->master_servers[r->n_master_servers++] = e;
}

static void get_masters(void *ctx, rq_call *call)
{
    Pb__GetMastersResponse r = PB__GET_MASTERS_RESPONSE__INIT;
    rq_member_view v;
    rq_err rc = look(ctx, call, &v);
    if (rc == RQ_OK)
        r.master_servers =
            rq_arena_calloc(&call->arena, v.backup_count + 1, sizeof *r.master_servers);
    if (rc != RQ_OK || r.master_servers == NULL) {
        rq_call_fail(call, rc == RQ_OK ? RQ_E_NO_MEMORY : rc, NULL);
        return;
    }
    add_master(call, v.active, true, &r);
    for (size_t i = 0; i < v.backup_count; i++)
        add_master(call, v.backups[i], false, &r);
    rq_call_reply(call, &r.base);
}

/* hbase:meta is in the active master's process. */
static void get_meta_locations(void *ctx, rq_call *call)
{
    Pb__GetMetaRegionLocationsResponse r = PB__GET_META_REGION_LOCATIONS_RESPONSE__INIT;
    Pb__TableName table = PB__TABLE_NAME__INIT;
    Pb__RegionInfo info = PB__REGION_INFO__INIT;
    Pb__RegionLocation location = PB__REGION_LOCATION__INIT, *locations[] = {&location};
    rq_member_view v;
    rq_err rc = look(ctx, call, &v);
    if (rc != RQ_OK) {
        rq_call_fail(call, rc, NULL);
        return;
    }
    table.namespace_ = (ProtobufCBinaryData){5, (uint8_t *)"hbase"};
    table.qualifier = (ProtobufCBinaryData){4, (uint8_t *)"meta"};
    info.table_name = &table;
    info.region_id = 1;
    info.has_start_key = info.has_end_key = 1;
    info.has_offline = info.has_split = 1;
    info.has_replica_id = 1;
    location.region_info = &info;
    location.server_name = message_of(call, rq_member_active_server(&v));
    location.seq_num = -1; /* HBASE: HRegionLocation without a number */
    r.meta_locations = locations;
    r.n_meta_locations = location.server_name != NULL;
    rq_call_reply(call, &r.base);
}

static void get_bootstrap_nodes(void *ctx, rq_call *call)
{
    Pb__GetBootstrapNodesResponse r = PB__GET_BOOTSTRAP_NODES_RESPONSE__INIT;
    rq_member_view v;
    rq_err rc = look(ctx, call, &v);
    if (rc == RQ_OK)
        r.server_name = rq_arena_calloc(&call->arena, v.server_count + 1, sizeof *r.server_name);
    if (rc != RQ_OK || r.server_name == NULL) {
        rq_call_fail(call, rc == RQ_OK ? RQ_E_NO_MEMORY : rc, NULL);
        return;
    }
    for (size_t i = 0; i < v.server_count; i++) {
        Pb__ServerName *name = message_of(call, v.servers[i]);
        if (name != NULL) r.server_name[r.n_server_name++] = name;
    }
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

rq_rpc_service rq_member_service_methods(rq_member_answers *a)
{
    return (rq_rpc_service){.name = "ClientMetaService",
                            .methods = methods,
                            .method_count = RQ_ARRAY_LEN(methods),
                            .ctx = a};
}
