/* SPDX-License-Identifier: Apache-2.0 */
/* AdminService on the master's port. GetRegionInfo answers by the name or encoded name of any
 * region that the catalog knows. Clients also send compactions "of type MOB", and ask for their
 * state, to the master, with the name of a pseudo region (store/mob.h). HBASE:
 * HBaseAdmin.majorCompact(…, CompactType.MOB), MasterRpcServices.compactRegion and getRegionInfo.
 * HBase 2.6 itself answers the first with NotServingRegionException since HBASE-23571. */
#include "service/master_priv.h"
#include "service/messages.h"
#include "service/slow_text.h"

#include "proto/admin.pb-c.h"
#include "store/mob.h"

/* Whether `spec` names the MOB pseudo region of a table; that table in *ret_table. */
static bool is_mob_region(const Pb__RegionSpecifier *spec, rq_slice *ret_table)
{
    rq_slice name = rq_slice_of(spec->value.data, spec->value.len);
    rq_slice table = name;
    rq_buf own = {0};
    char encoded[RQ_MD5_HEX_LEN + 1];
    for (table.len = 0; table.len < name.len && name.ptr[table.len] != ',';)
        table.len++;
    bool is = spec->type == PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__REGION_NAME &&
              rq_mob_region_name(table, &own, encoded) == RQ_OK &&
              rq_slice_eq(name, rq_buf_slice(&own));
    rq_buf_clear(&own);
    *ret_table = table;
    return is;
}

static rq_err not_online(const Pb__RegionSpecifier *spec, rq_error *why)
{
    char name[600];
    rq_bytes_to_string(rq_slice_of(spec->value.data, spec->value.len), name, sizeof name);
    return rq_fail(why, RQ_E_NOT_SERVING_REGION, "%s is not online on the master", name);
}

/* Runs on a thread of the pool, because in a cluster it waits for other servers. */
static rq_err compact(rq__blocking *b)
{
    const Pb__CompactRegionRequest *request = (const Pb__CompactRegionRequest *)b->call->param;
    rq_slice table;
    rq_slice family = {0};
    if (request->has_family) family = rq_slice_of(request->family.data, request->family.len);
    return is_mob_region(request->region, &table)
               ? rq_catalog_compact_mob(b->services->catalog, table, family, &b->why)
               : not_online(request->region, &b->why);
}

static void answer_compact(rq__blocking *b)
{
    Pb__CompactRegionResponse response = PB__COMPACT_REGION_RESPONSE__INIT;
    rq_call_reply(b->call, &response.base);
}

static void compact_region(void *ctx, rq_call *call)
{
    rq__blocking *b = rq_arena_calloc(&call->arena, 1, sizeof *b);
    if (b == NULL)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else
        rq__blocking_start(b, ctx, call, compact, answer_compact);
}

/* MAJOR while a major compaction of any region of the table runs, by the last reports of the regions' servers. */
static int compaction_state(const rq_admin_services *s, rq_slice table)
{
    const rq_catalog_table *t = rq_catalog_table_find(s->catalog, table);
    for (size_t i = 0; t != NULL && i < t->region_count; i++) {
        rq_region_load load;
        if (rq_catalog_load(s->catalog, rq_catalog_table_region(t, i), &load) &&
            load.compaction_state >= 2)
            return 2;
    }
    return 0;
}

static rq_err reply_mob_region(const rq_admin_services *s, rq_call *call, rq_slice table)
{
    const Pb__GetRegionInfoRequest *request = (const Pb__GetRegionInfoRequest *)call->param;
    Pb__GetRegionInfoResponse response = PB__GET_REGION_INFO_RESPONSE__INIT;
    rq_region_info info;
    rq_slice ns, qualifier;
    if (!rq_mob_table_parts(table, &ns, &qualifier)) return RQ_E_INVALID;
    RQ_TRY(rq_region_info_make(&call->arena, ns, qualifier, RQ_SLICE_LIT(".mob"), (rq_slice){0}, 0,
                               0, &info));
    response.region_info = rq__region_info_message(&call->arena, &info);
    if (response.region_info == NULL) return RQ_E_NO_MEMORY;
    if (request->has_compaction_state && request->compaction_state) {
        response.has_compaction_state = 1;
        response.compaction_state =
            (Pb__GetRegionInfoResponse__CompactionState)compaction_state(s, table);
    }
    rq_call_reply(call, &response.base);
    return RQ_OK;
}

/* HBase's master answers with the region's info alone. */
static rq_err reply_info(rq_call *call, const rq_catalog_region *r)
{
    Pb__GetRegionInfoResponse response = PB__GET_REGION_INFO_RESPONSE__INIT;
    response.region_info = rq__region_info_message(&call->arena, r->info);
    if (response.region_info == NULL) return RQ_E_NO_MEMORY;
    rq_call_reply(call, &response.base);
    return RQ_OK;
}

static rq_err unknown(const Pb__RegionSpecifier *spec, rq_error *why)
{
    char name[600];
    rq_bytes_to_string(rq_slice_of(spec->value.data, spec->value.len), name, sizeof name);
    return rq_fail(why, RQ_E_UNKNOWN_REGION, "%s", name);
}

static void get_region_info(void *ctx, rq_call *call)
{
    const rq_admin_services *s = ctx;
    const Pb__GetRegionInfoRequest *request = (const Pb__GetRegionInfoRequest *)call->param;
    rq_error why = {.code = RQ_OK};
    rq_slice table;
    const rq_catalog_region *r =
        rq_catalog_region_find(s->catalog, rq__encoded_of(request->region));
    rq_err rc = r != NULL                                ? reply_info(call, r)
                : is_mob_region(request->region, &table) ? reply_mob_region(ctx, call, table)
                                                         : unknown(request->region, &why);
    if (rc != RQ_OK) rq_call_fail_why(call, rc, &why);
}

static const rq_rpc_method methods[] = {
    {"GetRegionInfo", &pb__get_region_info_request__descriptor, get_region_info},
    {"CompactRegion", &pb__compact_region_request__descriptor, compact_region},
    {"UpdateConfiguration", &pb__update_configuration_request__descriptor,
     rq__update_configuration},
};

rq_rpc_service rq_master_admin_service_methods(rq_admin_services *s)
{
    return rq__admin_service(s, "AdminService", methods, RQ_ARRAY_LEN(methods));
}
