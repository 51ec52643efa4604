/* SPDX-License-Identifier: Apache-2.0 */
/* AdminService: calls of clients and tools to a region server: regions, flush, compaction, load.
 * HBASE: RSRpcServices. What a master calls is in region_servers.c. */
#include "service/admin_priv.h"
#include "service/listing.h"
#include "service/messages.h"
#include "service/slow_text.h"

#include "host/split_policy.h"
#include "quota/quota.h"
#include "region/region_scanner.h"
#include "store/store.h"
#include "wal/wal.h"

#include "proto/admin.pb-c.h"
#include "proto/logs.pb-c.h"
#include "proto/quota.pb-c.h"

#include <stdlib.h>
#include <string.h>

/* --- regions ---------------------------------------------------------------------------------- */

static rq_err find_replica(const rq_admin_services *s, const Pb__RegionSpecifier *spec,
                           const rq_catalog_region **ret, rq_error *why)
{
    rq_slice name = rq_slice_of(spec->value.data, spec->value.len);
    if (spec->type == PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__ENCODED_REGION_NAME)
        return rq_host_find_encoded(s->host, name, ret, why);
    return rq_host_find(s->host, name, ret, why);
}

rq_err rq__admin_find_region(const rq_admin_services *s, const Pb__RegionSpecifier *spec,
                             rq_region **ret, rq_error *why)
{
    const rq_catalog_region *r;
    RQ_TRY(find_replica(s, spec, &r, why));
    *ret = r->region;
    return RQ_OK;
}

/* `info` is the region's own, or that of the replica named in the request. */
static rq_err reply_region_info(rq_admin_services *s, rq_call *call, rq_region *region,
                                Pb__RegionInfo *info, rq_slice split_row)
{
    const Pb__GetRegionInfoRequest *request = (const Pb__GetRegionInfoRequest *)call->param;
    Pb__GetRegionInfoResponse response = PB__GET_REGION_INFO_RESPONSE__INIT;
    response.region_info = info;
    if (request->has_compaction_state && request->compaction_state) {
        response.has_compaction_state = 1;
        response.compaction_state =
            (Pb__GetRegionInfoResponse__CompactionState)rq_region_compaction_state(region);
    }
    response.has_splittable = response.has_mergeable = 1;
    response.splittable = rq_host_splittable(s->host, region);
    response.mergeable = !rq_region_is_closing(region) && !rq_region_has_references(region);
    if (split_row.len > 0) {
        response.has_best_split_row = 1;
        response.best_split_row =
            (ProtobufCBinaryData){split_row.len, (uint8_t *)(uintptr_t)split_row.ptr};
    }
    rq_call_reply(call, &response.base);
    return RQ_OK;
}

typedef struct split_row_job {
    rq__blocking blocking;
    rq_region *region; /* a reference */
    Pb__RegionInfo *info;
    rq_slice row;
} split_row_job;

static rq_err split_row_work(rq__blocking *b)
{
    split_row_job *j = RQ_CONTAINER_OF(b, split_row_job, blocking);
    rq_err rc =
        rq_host_split_point(b->services->host, j->region, true, &b->call->arena, &j->row, &b->why);
    if (rc != RQ_OK) rq_region_unref(j->region);
    return rc;
}

static void split_row_answer(rq__blocking *b)
{
    split_row_job *j = RQ_CONTAINER_OF(b, split_row_job, blocking);
    rq_region *region = j->region;
    rq_call *call = b->call;
    if (reply_region_info(b->services, call, region, j->info, j->row) != RQ_OK)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    rq_region_unref(region);
}

static void get_region_info(void *ctx, rq_call *call)
{
    const Pb__GetRegionInfoRequest *request = (const Pb__GetRegionInfoRequest *)call->param;
    rq_error why = {.code = RQ_OK};
    const rq_catalog_region *r;
    Pb__RegionInfo *info = NULL;
    rq_region_info own;
    rq_err rc = find_replica(ctx, request->region, &r, &why);
    bool on_pool = rc == RQ_OK && request->has_best_split_row && request->best_split_row;
    /* The view's info is valid until the end of this iteration of the loop only. */
    if (on_pool) rc = rq_region_info_copy(&call->arena, r->info, &own);
    if (rc == RQ_OK) info = rq__region_info_message(&call->arena, on_pool ? &own : r->info);
    if (rc == RQ_OK && info == NULL) rc = RQ_E_NO_MEMORY;
    if (rc == RQ_OK && on_pool) {
        split_row_job *j = rq_arena_calloc(&call->arena, 1, sizeof *j);
        if (j != NULL) {
            j->region = rq_region_ref(r->region);
            j->info = info;
            rq__blocking_start(&j->blocking, ctx, call, split_row_work, split_row_answer);
            return;
        }
        rc = RQ_E_NO_MEMORY;
    }
    if (rc == RQ_OK) rc = reply_region_info(ctx, call, r->region, info, (rq_slice){NULL, 0});
    if (rc != RQ_OK) rq_call_fail_why(call, rc, &why);
}

/* The open regions, followed by their replicas. NULL: out of memory. */
static Pb__RegionInfo **online_infos(const rq_admin_services *s, rq_arena *arena, size_t *ret_count)
{
    const rq_catalog_region **regions;
    const rq_catalog_table *const *tables;
    size_t count, table_count, n = 0;
    if (rq_catalog_online(s->catalog, arena, &regions, &count) != RQ_OK) return NULL;
    rq_catalog_tables(s->catalog, &tables, &table_count);
    size_t cap = count + 1;
    for (size_t t = 0; t < table_count; t++)
        cap += tables[t]->replica_count;
    Pb__RegionInfo **list = rq_arena_alloc(arena, cap * sizeof(Pb__RegionInfo *));
    if (list == NULL) return NULL;
    for (size_t i = 0; i < count; i++)
        if ((list[n++] = rq__region_info_message(arena, regions[i]->info)) == NULL) return NULL;
    for (size_t t = 0; t < table_count; t++) {
        for (size_t i = 0; i < tables[t]->replica_count; i++) {
            const rq_catalog_region *r = rq_catalog_table_replica(tables[t], i);
            if (r->region == NULL) continue;
            if ((list[n++] = rq__region_info_message(arena, r->info)) == NULL) return NULL;
        }
    }
    *ret_count = n;
    return list;
}

static rq_err list_online_regions(rq__listing *l, rq_slice *ret)
{
    Pb__GetOnlineRegionResponse response = PB__GET_ONLINE_REGION_RESPONSE__INIT;
    response.region_info = online_infos(l->services, &l->call->arena, &response.n_region_info);
    if (response.region_info == NULL) return RQ_E_NO_MEMORY;
    return rq__listing_pack(l, &response.base, ret);
}

static void get_online_region(void *ctx, rq_call *call)
{
    rq__listing_reply(ctx, call, list_online_regions);
}

static rq_err list_region_loads(rq__listing *l, rq_slice *ret)
{
    const Pb__GetRegionLoadRequest *request = (const Pb__GetRegionLoadRequest *)l->call->param;
    Pb__GetRegionLoadResponse response = PB__GET_REGION_LOAD_RESPONSE__INIT;
    if (request->table_name != NULL) RQ_TRY(rq__table_name_check(request->table_name, &l->why));
    response.region_loads = rq__region_loads_message(&l->call->arena, l->services->catalog,
                                                     request->table_name, &response.n_region_loads);
    if (response.region_loads == NULL) return RQ_E_NO_MEMORY;
    return rq__listing_pack(l, &response.base, ret);
}

static void get_region_load(void *ctx, rq_call *call)
{
    rq__listing_reply(ctx, call, list_region_loads);
}

/* --- flush and compaction --------------------------------------------------------------------- */

typedef struct flush_job {
    rq__blocking blocking;
    rq_region *region; /* a reference */
    rq_slice family;
    bool flushed;
} flush_job;

static void unref_region(void *thing)
{
    rq_region_unref(thing);
}

static rq_err flush_work(rq__blocking *b)
{
    flush_job *f = RQ_CONTAINER_OF(b, flush_job, blocking);
    rq_err rc = rq_region_flush(f->region, f->family, &f->flushed, &b->why);
    if (rc == RQ_OK) rq_region_compact_if_due(f->region); /* HBASE: RSRpcServices.flushRegion */
    return rc;
}

static void flush_answer(rq__blocking *b)
{
    flush_job *f = RQ_CONTAINER_OF(b, flush_job, blocking);
    Pb__FlushRegionResponse response = PB__FLUSH_REGION_RESPONSE__INIT;
    rq_executor *executor = b->services->env.executor;
    response.last_flush_time = (uint64_t)executor->now_ms(executor);
    response.has_flushed = 1;
    response.flushed = f->flushed;
    rq_call_reply(b->call, &response.base);
}

static rq_err begin_flush(rq_admin_services *s, rq_call *call, rq_error *why)
{
    const Pb__FlushRegionRequest *request = (const Pb__FlushRegionRequest *)call->param;
    rq_region *region;
    RQ_TRY(rq__admin_find_region(s, request->region, &region, why));
    flush_job *f = rq_arena_calloc(&call->arena, 1, sizeof *f);
    if (f == NULL) return RQ_E_NO_MEMORY;
    f->region = rq_region_ref(region);
    rq_err rc = rq_arena_link(&call->arena, unref_region, f->region);
    if (rc != RQ_OK) {
        rq_region_unref(f->region);
        return rc;
    }
    if (request->has_family) f->family = rq_slice_of(request->family.data, request->family.len);
    rq__blocking_start(&f->blocking, s, call, flush_work, flush_answer);
    return RQ_OK;
}

static void flush_region(void *ctx, rq_call *call)
{
    rq_error why = {.code = RQ_OK};
    rq_err rc = begin_flush(ctx, call, &why);
    if (rc != RQ_OK) rq_call_fail_why(call, rc, &why);
}

static bool has_family(const rq_region *r, rq_slice family)
{
    rq_table_schema *schema = rq_region_schema(r);
    bool has = rq_table_schema_family(schema, family) != NULL;
    rq_table_schema_unref(schema);
    return has;
}

/* HBASE: RSRpcServices.compactRegion. */
static rq_err no_such_family(const rq_region *r, rq_slice family, rq_error *why)
{
    char name[600];
    rq_region_info_text(rq_region_get_info(r), name, sizeof name);
    return rq_fail(why, RQ_E_NO_SUCH_FAMILY, "column family %.*s does not exist in region %s",
                   (int)family.len, (const char *)family.ptr, name);
}

static void compact_region(void *ctx, rq_call *call)
{
    const rq_admin_services *s = ctx;
    const Pb__CompactRegionRequest *request = (const Pb__CompactRegionRequest *)call->param;
    Pb__CompactRegionResponse response = PB__COMPACT_REGION_RESPONSE__INIT;
    rq_error why = {.code = RQ_OK};
    rq_region *region;
    rq_slice family = {0};
    if (request->has_family) family = rq_slice_of(request->family.data, request->family.len);
    rq_err rc = rq__admin_find_region(s, request->region, &region, &why);
    if (rc == RQ_OK && family.len > 0 && !has_family(region, family))
        rc = no_such_family(region, family, &why);
    if (rc == RQ_OK) rc = rq_quotas_may_compact(s->quotas, region, call->client->user, &why);
    if (rc == RQ_OK)
        rc = rq_region_compact(region, family, request->has_major && request->major, &why);
    if (rc != RQ_OK)
        rq_call_fail_why(call, rc, &why);
    else
        rq_call_reply(call, &response.base);
}

static void compaction_switch(void *ctx, rq_call *call)
{
    const rq_admin_services *s = ctx;
    const Pb__CompactionSwitchRequest *request = (const Pb__CompactionSwitchRequest *)call->param;
    Pb__CompactionSwitchResponse response = PB__COMPACTION_SWITCH_RESPONSE__INIT;
    response.prev_state = rq_engine_compactions_enable(s->engine, request->enabled);
    rq_call_reply(call, &response.base);
}

/* HBASE: RSRpcServices.clearCompactionQueues. */
static void clear_compaction_queues(void *ctx, rq_call *call)
{
    const rq_admin_services *s = ctx;
    const Pb__ClearCompactionQueuesRequest *request =
        (const Pb__ClearCompactionQueuesRequest *)call->param;
    Pb__ClearCompactionQueuesResponse response = PB__CLEAR_COMPACTION_QUEUES_RESPONSE__INIT;
    bool is_cleared[2] = {false, false};
    for (size_t i = 0; i < request->n_queue_name; i++) {
        const char *name = request->queue_name[i];
        bool large = strcmp(name, "long") == 0;
        if (!large && strcmp(name, "short") != 0) {
            rq_error why = {.code = RQ_OK};
            rq_err rc = rq_fail(&why, RQ_E_IOEXCEPTION, "Unknown queue name %s", name);
            rq_call_fail_why(call, rc, &why);
            return;
        }
        if (!is_cleared[large]) rq_engine_clear_compactions(s->engine, large);
        is_cleared[large] = true;
    }
    rq_call_reply(call, &response.base);
}

/* --- files ------------------------------------------------------------------------------------ */

/* Room for `more` paths; the capacity at least doubles, because there may be thousands of
 * stores. */
static rq_err reserve_files(rq_call *call, Pb__GetStoreFileResponse *m, size_t more, size_t *cap)
{
    if (m->n_store_file + more <= *cap) return RQ_OK;
    *cap = 2 * *cap + more;
    char **list = rq_arena_alloc(&call->arena, *cap * sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    if (m->n_store_file > 0) memcpy(list, m->store_file, m->n_store_file * sizeof *list);
    m->store_file = list;
    return RQ_OK;
}

static rq_err add_files(const rq_region *r, const struct rq_store *store, rq_call *call,
                        Pb__GetStoreFileResponse *m, size_t *cap)
{
    const rq_region_info *info = rq_region_get_info(r);
    rq_slice family = rq_store_schema(store)->name;
    const rq_store_version *v = rq_store_version_now(store);
    RQ_TRY(reserve_files(call, m, v->file_count, cap));
    for (size_t i = 0; i < v->file_count; i++) {
        char *path = rq_arena_printf(&call->arena, "data/%.*s/%.*s/%s/%.*s/%s", (int)info->ns.len,
                                     (const char *)info->ns.ptr, (int)info->qualifier.len,
                                     (const char *)info->qualifier.ptr, info->encoded,
                                     (int)family.len, (const char *)family.ptr, v->files[i].name);
        if (path == NULL) return RQ_E_NO_MEMORY;
        m->store_file[m->n_store_file++] = path;
    }
    return RQ_OK;
}

/* The place of the family's store; the number of stores: there is none. */
static size_t store_of(const rq_region *r, rq_slice family)
{
    size_t low = 0, high = rq_region_store_count(r);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = rq_slice_compare(rq_store_schema(rq_region_store_at(r, middle))->name, family);
        if (order == 0) return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return rq_region_store_count(r);
}

/* For each store, and once more: whether its files are listed. If no family is named, all are. NULL: out of memory. */
static bool *listed_stores(const rq_region *r, const Pb__GetStoreFileRequest *request,
                           rq_arena *arena)
{
    size_t count = rq_region_store_count(r);
    bool *listed = rq_arena_calloc(arena, count + 1, sizeof *listed);
    if (listed == NULL) return NULL;
    for (size_t i = 0; i < count; i++)
        listed[i] = request->n_family == 0;
    for (size_t i = 0; i < request->n_family; i++)
        listed[store_of(r, rq__pb_slice(request->family[i]))] = true;
    return listed;
}

/* Paths below the data folder. */
static rq_err list_store_files(rq_admin_services *s, rq_call *call, Pb__GetStoreFileResponse *ret,
                               rq_error *why)
{
    const Pb__GetStoreFileRequest *request = (const Pb__GetStoreFileRequest *)call->param;
    size_t cap = 0;
    rq_region *region;
    RQ_TRY(rq__admin_find_region(s, request->region, &region, why));
    const bool *listed = listed_stores(region, request, &call->arena);
    if (listed == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < rq_region_store_count(region); i++)
        if (listed[i]) RQ_TRY(add_files(region, rq_region_store_at(region, i), call, ret, &cap));
    return RQ_OK;
}

static void get_store_file(void *ctx, rq_call *call)
{
    Pb__GetStoreFileResponse response = PB__GET_STORE_FILE_RESPONSE__INIT;
    rq_error why = {.code = RQ_OK};
    rq_err rc = list_store_files(ctx, call, &response, &why);
    if (rc != RQ_OK)
        rq_call_fail_why(call, rc, &why);
    else
        rq_call_reply(call, &response.base);
}

/* --- the server ------------------------------------------------------------------------------- */

static void get_server_info(void *ctx, rq_call *call)
{
    const rq_admin_services *s = ctx;
    Pb__GetServerInfoResponse response = PB__GET_SERVER_INFO_RESPONSE__INIT;
    Pb__ServerInfo info = PB__SERVER_INFO__INIT;
    info.server_name = rq__server_name_message(&call->arena, rq_host_name(s->host));
    if (info.server_name == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    info.webui_port = s->info_port;
    info.has_webui_port = info.webui_port != 0;
    response.server_info = &info;
    rq_call_reply(call, &response.base);
}

/* HBase answers with the regions that hold back the log; here the log's own pressure flushes
 * them. */
static void roll_wal_writer(void *ctx, rq_call *call)
{
    const rq_admin_services *s = ctx;
    Pb__RollWALWriterResponse response = PB__ROLL_WALWRITER_RESPONSE__INIT;
    rq_wal_roll(rq_engine_wal(s->engine));
    rq_call_reply(call, &response.base);
}

static rq_err update_configuration(rq__blocking *b)
{
    const rq_admin_services *s = b->services;
    if (s->reload == NULL)
        return rq_fail(&b->why, RQ_E_UNSUPPORTED, "there are no settings to read again");
    return s->reload(s->reload_ctx, &b->why);
}

static void answer_update(rq__blocking *b)
{
    Pb__UpdateConfigurationResponse response = PB__UPDATE_CONFIGURATION_RESPONSE__INIT;
    rq_call_reply(b->call, &response.base);
}

/* Reloads the settings that can change without a restart (`reloads` in settings.def). HBASE:
 * HRegionServer.updateConfiguration. */
void rq__update_configuration(void *ctx, rq_call *call)
{
    rq__blocking *b = rq_arena_calloc(&call->arena, 1, sizeof *b);
    if (b == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    rq__blocking_start(b, ctx, call, update_configuration, answer_update);
}

static const rq_rpc_method methods[] = {
    {"GetRegionInfo", &pb__get_region_info_request__descriptor, get_region_info},
    {"SplitRegion", &pb__split_region_request__descriptor, rq__split_region_1x},
    {"GetOnlineRegion", &pb__get_online_region_request__descriptor, get_online_region},
    {"GetRegionLoad", &pb__get_region_load_request__descriptor, get_region_load},
    {"FlushRegion", &pb__flush_region_request__descriptor, flush_region},
    {"CompactRegion", &pb__compact_region_request__descriptor, compact_region},
    {"CompactionSwitch", &pb__compaction_switch_request__descriptor, compaction_switch},
    {"GetServerInfo", &pb__get_server_info_request__descriptor, get_server_info},
    {"RollWALWriter", &pb__roll_walwriter_request__descriptor, roll_wal_writer},
    {"GetSlowLogResponses", &pb__slow_log_response_request__descriptor, rq__get_slow_logs},
    {"GetLargeLogResponses", &pb__slow_log_response_request__descriptor, rq__get_large_logs},
    {"GetSpaceQuotaSnapshots", &pb__get_space_quota_snapshots_request__descriptor,
     rq__get_space_quota_snapshots},
    {"GetCachedFilesList", &pb__get_cached_files_list_request__descriptor, rq__get_cached_files},
    {"GetStoreFile", &pb__get_store_file_request__descriptor, get_store_file},
    {"ClearSlowLogsResponses", &pb__clear_slow_log_response_request__descriptor,
     rq__clear_slow_logs},
    {"GetLogEntries", &pb__log_request__descriptor, rq__get_log_entries},
    {"ClearRegionBlockCache", &pb__clear_region_block_cache_request__descriptor,
     rq__clear_region_block_cache},
    {"ClearCompactionQueues", &pb__clear_compaction_queues_request__descriptor,
     clear_compaction_queues},
    {"UpdateConfiguration", &pb__update_configuration_request__descriptor,
     rq__update_configuration},
    {"StopServer", &pb__stop_server_request__descriptor, rq__stop_server},
    {"OpenRegion", &pb__open_region_request__descriptor, rq__refuse_call},
    {"CloseRegion", &pb__close_region_request__descriptor, rq__refuse_call},
    {"WarmupRegion", &pb__warmup_region_request__descriptor, rq__refuse_call},
    {"MergeRegions", &pb__merge_regions_request__descriptor, rq__refuse_call},
    {"UpdateFavoredNodes", &pb__update_favored_nodes_request__descriptor, rq__refuse_call},
    {"Replay", &pb__replicate_walentry_request__descriptor, rq__refuse_call},
    {"ReplicateWALEntry", &pb__replicate_walentry_request__descriptor, rq__replicate_entries},
    {"ExecuteProcedures", &pb__execute_procedures_request__descriptor, rq__refuse_call},
};

/* Longest parameter of an administrative request: its handler walks the request's lists on the event loop. Some ten
 * thousand names fit. */
#define PARAM_MAX ((size_t)1 << 20)
/* For the methods that walk theirs on RQ_POOL_CALL: a hundred thousand regions and more. */
#define LONG_PARAM_MAX ((size_t)16 << 20)

static const rq_rpc_param_limit param_limits[] = {
    {"CreateTable", LONG_PARAM_MAX},
    {"Assigns", LONG_PARAM_MAX},
    {"Unassigns", LONG_PARAM_MAX},
    {"SetRegionStateInMeta", LONG_PARAM_MAX},
    {"GetStoreFile", 2 * RQ_RPC_PARAM_SHORT}, /* looks each family up */
    {"RequestLock", RQ_RPC_PARAM_SHORT},      /* computes the names of regions */
    {"ReplicateWALEntry", SIZE_MAX},          /* taken in slices */
};

rq_rpc_service rq__admin_service(rq_admin_services *s, const char *name, const rq_rpc_method *table,
                                 size_t count)
{
    return (rq_rpc_service){.name = name,
                            .methods = table,
                            .method_count = count,
                            .ctx = s,
                            .param_max = PARAM_MAX,
                            .param_limits = param_limits,
                            .param_limit_count = RQ_ARRAY_LEN(param_limits),
                            .describe = rq__describe_call,
                            .ended = rq__audit};
}

rq_rpc_service rq_admin_service_methods(rq_admin_services *s)
{
    return rq__admin_service(s, "AdminService", methods, RQ_ARRAY_LEN(methods));
}

/* --- of a cluster's server -------------------------------------------------------------------- */

/* The others ask the catalog, or the master alone may order them (peers/service.h). */
static const rq_rpc_method host_methods[] = {
    {"GetRegionInfo", &pb__get_region_info_request__descriptor, get_region_info},
    {"GetOnlineRegion", &pb__get_online_region_request__descriptor, rq__host_online_region},
    {"GetRegionLoad", &pb__get_region_load_request__descriptor, rq__host_region_load},
    {"FlushRegion", &pb__flush_region_request__descriptor, flush_region},
    {"CompactRegion", &pb__compact_region_request__descriptor, compact_region},
    {"CompactionSwitch", &pb__compaction_switch_request__descriptor, compaction_switch},
    {"ClearCompactionQueues", &pb__clear_compaction_queues_request__descriptor,
     clear_compaction_queues},
    {"GetServerInfo", &pb__get_server_info_request__descriptor, get_server_info},
    {"RollWALWriter", &pb__roll_walwriter_request__descriptor, roll_wal_writer},
    {"GetStoreFile", &pb__get_store_file_request__descriptor, get_store_file},
    {"GetCachedFilesList", &pb__get_cached_files_list_request__descriptor, rq__get_cached_files},
    {"ClearRegionBlockCache", &pb__clear_region_block_cache_request__descriptor,
     rq__clear_region_block_cache},
    {"GetSlowLogResponses", &pb__slow_log_response_request__descriptor, rq__get_slow_logs},
    {"GetLargeLogResponses", &pb__slow_log_response_request__descriptor, rq__get_large_logs},
    {"GetLogEntries", &pb__log_request__descriptor, rq__get_log_entries},
    {"ClearSlowLogsResponses", &pb__clear_slow_log_response_request__descriptor,
     rq__clear_slow_logs},
    {"UpdateConfiguration", &pb__update_configuration_request__descriptor,
     rq__update_configuration},
    {"ReplicateWALEntry", &pb__replicate_walentry_request__descriptor, rq__replicate_entries},
    {"StopServer", &pb__stop_server_request__descriptor, rq__stop_server},
    {"OpenRegion", &pb__open_region_request__descriptor, rq__refuse_call},
    {"CloseRegion", &pb__close_region_request__descriptor, rq__refuse_call},
    {"WarmupRegion", &pb__warmup_region_request__descriptor, rq__refuse_call},
    {"ExecuteProcedures", &pb__execute_procedures_request__descriptor, rq__refuse_call},
};

rq_rpc_service rq_host_admin_service_methods(rq_admin_services *s)
{
    return rq__admin_service(s, "AdminService", host_methods, RQ_ARRAY_LEN(host_methods));
}

/* --- life ------------------------------------------------------------------------------------- */

rq_err rq_admin_services_new(const rq_admin_services_options *o, rq_admin_services **ret,
                             rq_error *why)
{
    rq_admin_services *s = calloc(1, sizeof *s);
    if (s == NULL) return rq_no_memory(why);
    pthread_mutex_init(&s->rsgroup_lock, NULL);
    rq__blocking_shares_init(&s->blocking);
    s->env = *o->env;
    s->audit_limits.seed = s->env.executor->random(s->env.executor);
    s->engine = o->engine;
    s->catalog = o->catalog;
    s->host = o->host != NULL ? o->host : rq_catalog_host(o->catalog);
    s->info_port = o->catalog == NULL ? o->info_port : rq_catalog_info_port(o->catalog);
    s->config = o->config;
    s->loops = o->loops;
    s->reload = o->reload;
    s->reload_ctx = o->reload_ctx;
    s->slow = o->slow;
    s->users = o->users;
    s->quotas = o->quotas;
    s->stop = o->stop;
    s->stop_ctx = o->stop_ctx;
    s->shut_down = o->shut_down;
    s->shut_down_ctx = o->shut_down_ctx;
    s->standbys = o->standbys;
    s->standbys_ctx = o->standbys_ctx;
    s->metrics = o->metrics;
    s->client = o->client;
    s->replication = o->replication;
    s->router = o->router;
    s->sink = o->replication == NULL ? o->sink : rq_replication_sink(o->replication);
    *ret = s;
    return RQ_OK;
}

void rq_admin_services_free(rq_admin_services *s)
{
    if (s == NULL) return;
    pthread_mutex_destroy(&s->rsgroup_lock);
    rq__blocking_shares_destroy(&s->blocking);
    free(s);
}
