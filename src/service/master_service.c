/* SPDX-License-Identifier: Apache-2.0 */
/* MasterService: its method table, the switches, and answers of a single server to questions about
 * a cluster. */
#include "service/master_priv.h"
#include "service/messages.h"
#include "service/rsgroup.h"
#include "service/slow_text.h"

#include "proto/access_control.pb-c.h"
#include "proto/client.pb-c.h"
#include "proto/logs.pb-c.h"
#include "proto/master.pb-c.h"
#include "proto/quota.pb-c.h"
#include "proto/replication.pb-c.h"

/* --- switches --------------------------------------------------------------------------------- */

typedef struct switch_job {
    rq__blocking blocking;
    rq_switch which[2];
    bool before[2];
    size_t count;
    bool on;
    bool repeated; /* the answer is a list */
} switch_job;

static rq_err switch_work(rq__blocking *b)
{
    switch_job *j = RQ_CONTAINER_OF(b, switch_job, blocking);
    for (size_t i = 0; i < j->count; i++)
        RQ_TRY(rq_catalog_switch_set(b->services->catalog, j->which[i], j->on, &j->before[i],
                                     &b->why));
    return RQ_OK;
}

/* The answer of every single switch is a bool in field 1: one message type encodes them all. */
static void switch_answer(rq__blocking *b)
{
    switch_job *j = RQ_CONTAINER_OF(b, switch_job, blocking);
    protobuf_c_boolean before[2] = {j->before[0], j->before[1]};
    if (j->repeated) {
        Pb__SetSplitOrMergeEnabledResponse response = PB__SET_SPLIT_OR_MERGE_ENABLED_RESPONSE__INIT;
        response.prev_value = before;
        response.n_prev_value = j->count;
        rq_call_reply(b->call, &response.base);
        return;
    }
    Pb__SetBalancerRunningResponse response = PB__SET_BALANCER_RUNNING_RESPONSE__INIT;
    response.has_prev_balance_value = 1;
    response.prev_balance_value = before[0];
    rq_call_reply(b->call, &response.base);
}

static void set_switches(void *ctx, rq_call *call, const rq_switch *which, size_t count, bool on,
                         bool repeated)
{
    switch_job *j = rq_arena_calloc(&call->arena, 1, sizeof *j);
    if (j == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    for (size_t i = 0; i < count; i++)
        j->which[i] = which[i];
    j->count = count;
    j->on = on;
    j->repeated = repeated;
    rq__blocking_start(&j->blocking, ctx, call, switch_work, switch_answer);
}

static void set_switch(void *ctx, rq_call *call, rq_switch which, bool on)
{
    set_switches(ctx, call, &which, 1, on, false);
}

static void reply_switch(void *ctx, rq_call *call, rq_switch which)
{
    const rq_admin_services *a = ctx;
    Pb__IsBalancerEnabledResponse response = PB__IS_BALANCER_ENABLED_RESPONSE__INIT;
    response.enabled = rq_catalog_switch_get(a->catalog, which);
    rq_call_reply(call, &response.base);
}

static void set_balancer(void *ctx, rq_call *call)
{
    set_switch(ctx, call, RQ_SWITCH_BALANCER,
               ((const Pb__SetBalancerRunningRequest *)call->param)->on);
}

static void is_balancer(void *ctx, rq_call *call)
{
    reply_switch(ctx, call, RQ_SWITCH_BALANCER);
}

static void set_normalizer(void *ctx, rq_call *call)
{
    set_switch(ctx, call, RQ_SWITCH_NORMALIZER,
               ((const Pb__SetNormalizerRunningRequest *)call->param)->on);
}

static void is_normalizer(void *ctx, rq_call *call)
{
    reply_switch(ctx, call, RQ_SWITCH_NORMALIZER);
}

static void set_catalog_janitor(void *ctx, rq_call *call)
{
    set_switch(ctx, call, RQ_SWITCH_CATALOG_JANITOR,
               ((const Pb__EnableCatalogJanitorRequest *)call->param)->enable);
}

static void is_catalog_janitor(void *ctx, rq_call *call)
{
    reply_switch(ctx, call, RQ_SWITCH_CATALOG_JANITOR);
}

static void set_snapshot_cleanup(void *ctx, rq_call *call)
{
    set_switch(ctx, call, RQ_SWITCH_SNAPSHOT_CLEANUP,
               ((const Pb__SetSnapshotCleanupRequest *)call->param)->enabled);
}

static void is_snapshot_cleanup(void *ctx, rq_call *call)
{
    reply_switch(ctx, call, RQ_SWITCH_SNAPSHOT_CLEANUP);
}

static void set_peer_modification(void *ctx, rq_call *call)
{
    set_switch(ctx, call, RQ_SWITCH_PEER_MODIFICATION,
               ((const Pb__ReplicationPeerModificationSwitchRequest *)call->param)->on);
}

static void is_peer_modification(void *ctx, rq_call *call)
{
    reply_switch(ctx, call, RQ_SWITCH_PEER_MODIFICATION);
}

static void set_cleaner(void *ctx, rq_call *call)
{
    set_switch(ctx, call, RQ_SWITCH_CLEANER,
               ((const Pb__SetCleanerChoreRunningRequest *)call->param)->on);
}

static void is_cleaner(void *ctx, rq_call *call)
{
    reply_switch(ctx, call, RQ_SWITCH_CLEANER);
}

static rq_switch switch_of(Pb__MasterSwitchType type)
{
    return type == PB__MASTER_SWITCH_TYPE__SPLIT ? RQ_SWITCH_SPLIT : RQ_SWITCH_MERGE;
}

static void set_split_or_merge(void *ctx, rq_call *call)
{
    const Pb__SetSplitOrMergeEnabledRequest *r =
        (const Pb__SetSplitOrMergeEnabledRequest *)call->param;
    rq_switch which[2];
    size_t count = r->n_switch_types < 2 ? r->n_switch_types : 2;
    for (size_t i = 0; i < count; i++)
        which[i] = switch_of(r->switch_types[i]);
    set_switches(ctx, call, which, count, r->enabled, true);
}

static void is_split_or_merge(void *ctx, rq_call *call)
{
    const Pb__IsSplitOrMergeEnabledRequest *r =
        (const Pb__IsSplitOrMergeEnabledRequest *)call->param;
    reply_switch(ctx, call, switch_of(r->switch_type));
}

/* --- chores ----------------------------------------------------------------------------------- */

typedef struct balance_job {
    rq__blocking blocking;
    rq_balance_options options;
    rq_balance done;
} balance_job;

static rq_err balance_work(rq__blocking *b)
{
    balance_job *j = RQ_CONTAINER_OF(b, balance_job, blocking);
    return rq_catalog_balance(b->services->catalog, &j->options, &j->done);
}

static void balance_answer(rq__blocking *b)
{
    const rq_balance *done = &RQ_CONTAINER_OF(b, balance_job, blocking)->done;
    Pb__BalanceResponse response = PB__BALANCE_RESPONSE__INIT;
    response.balancer_ran = done->ran;
    response.has_moves_calculated = response.has_moves_executed = 1;
    response.moves_calculated = (uint32_t)done->planned;
    response.moves_executed = (uint32_t)done->begun;
    rq_call_reply(b->call, &response.base);
}

static void balance(void *ctx, rq_call *call)
{
    const Pb__BalanceRequest *r = (const Pb__BalanceRequest *)call->param;
    balance_job *j = rq_arena_calloc(&call->arena, 1, sizeof *j);
    if (j == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    j->options.dry = r->has_dry_run && r->dry_run;
    j->options.ignores_transitions = r->has_ignore_rit && r->ignore_rit;
    rq__blocking_start(&j->blocking, ctx, call, balance_work, balance_answer);
}

typedef struct normalize_job {
    rq__blocking blocking;
    rq_slice *names;
    size_t count;
    bool ran;
} normalize_job;

/* The request may name many tables, or a pattern. */
static rq_err select_names(normalize_job *j)
{
    rq__blocking *b = &j->blocking;
    const Pb__NormalizeRequest *r = (const Pb__NormalizeRequest *)b->call->param;
    rq_epoch_member m = {0};
    rq_epoch_pin(b->services->env.epoch, &m);
    rq_err rc =
        rq__select_table_names(b->services, r->regex, r->namespace_, r->table_names,
                               r->n_table_names, &b->call->arena, &j->names, &j->count, &b->why);
    rq_epoch_unpin(b->services->env.epoch, &m);
    return rc;
}

static rq_err normalize_work(rq__blocking *b)
{
    normalize_job *j = RQ_CONTAINER_OF(b, normalize_job, blocking);
    RQ_TRY(select_names(j));
    return rq_catalog_normalize(b->services->catalog, j->names, j->count, &j->ran);
}

static void normalize_answer(rq__blocking *b)
{
    Pb__NormalizeResponse response = PB__NORMALIZE_RESPONSE__INIT;
    response.normalizer_ran = RQ_CONTAINER_OF(b, normalize_job, blocking)->ran;
    rq_call_reply(b->call, &response.base);
}

static void normalize(void *ctx, rq_call *call)
{
    normalize_job *j = rq_arena_calloc(&call->arena, 1, sizeof *j);
    if (j == NULL)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else
        rq__blocking_start(&j->blocking, ctx, call, normalize_work, normalize_answer);
}

typedef struct scan_job {
    rq__blocking blocking;
    int64_t cleaned;
} scan_job;

static rq_err scan_work(rq__blocking *b)
{
    scan_job *j = RQ_CONTAINER_OF(b, scan_job, blocking);
    return rq_catalog_clean_parents(b->services->catalog, &j->cleaned, &b->why);
}

static void scan_answer(rq__blocking *b)
{
    scan_job *j = RQ_CONTAINER_OF(b, scan_job, blocking);
    Pb__RunCatalogScanResponse response = PB__RUN_CATALOG_SCAN_RESPONSE__INIT;
    response.has_scan_result = 1;
    response.scan_result = (int32_t)j->cleaned;
    rq_call_reply(b->call, &response.base);
}

/* HBASE: CatalogJanitor.scan: the number of regions that were removed, -1 while another scan runs. */
static void run_catalog_scan(void *ctx, rq_call *call)
{
    scan_job *j = rq_arena_calloc(&call->arena, 1, sizeof *j);
    if (j == NULL)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else
        rq__blocking_start(&j->blocking, ctx, call, scan_work, scan_answer);
}

/* --- questions about the cluster -------------------------------------------------------------- */

static void is_master_running(void *ctx, rq_call *call)
{
    (void)ctx;
    Pb__IsMasterRunningResponse response = PB__IS_MASTER_RUNNING_RESPONSE__INIT;
    response.is_master_running = 1;
    rq_call_reply(call, &response.base);
}

static void is_in_maintenance_mode(void *ctx, rq_call *call)
{
    const rq_admin_services *a = ctx;
    Pb__IsInMaintenanceModeResponse response = PB__IS_IN_MAINTENANCE_MODE_RESPONSE__INIT;
    response.inmaintenancemode = rq_catalog_in_maintenance(a->catalog);
    rq_call_reply(call, &response.base);
}

static void get_security_capabilities(void *ctx, rq_call *call)
{
    (void)ctx;
    Pb__SecurityCapabilitiesResponse response = PB__SECURITY_CAPABILITIES_RESPONSE__INIT;
    Pb__SecurityCapabilitiesResponse__Capability list[] = {
        PB__SECURITY_CAPABILITIES_RESPONSE__CAPABILITY__SIMPLE_AUTHENTICATION};
    response.capabilities = list;
    response.n_capabilities = 1;
    rq_call_reply(call, &response.base);
}

/* HBASE: HMaster.execMasterService */
static void exec_master_service(void *ctx, rq_call *call)
{
    const Pb__CoprocessorServiceRequest *r = (const Pb__CoprocessorServiceRequest *)call->param;
    if (rq__rsgroup_serves(ctx, r->call)) {
        rq__rsgroup_exec(ctx, call);
        return;
    }
    rq_call_fail(call, RQ_E_UNKNOWN_PROTOCOL,
                 "No registered Master Coprocessor Endpoint found for %s. Has it been enabled?",
                 r->call->service_name);
}

static const rq_rpc_method methods[] = {
    {"CreateTable", &pb__create_table_request__descriptor, rq__create_table},
    {"DeleteTable", &pb__delete_table_request__descriptor, rq__delete_table},
    {"truncateTable", &pb__truncate_table_request__descriptor, rq__truncate_table},
    {"EnableTable", &pb__enable_table_request__descriptor, rq__enable_table},
    {"DisableTable", &pb__disable_table_request__descriptor, rq__disable_table},
    {"ModifyTable", &pb__modify_table_request__descriptor, rq__modify_table},
    {"AddColumn", &pb__add_column_request__descriptor, rq__add_column},
    {"ModifyColumn", &pb__modify_column_request__descriptor, rq__modify_column},
    {"DeleteColumn", &pb__delete_column_request__descriptor, rq__delete_column},
    {"ModifyTableStoreFileTracker", &pb__modify_table_store_file_tracker_request__descriptor,
     rq__modify_table_tracker},
    {"ModifyColumnStoreFileTracker", &pb__modify_column_store_file_tracker_request__descriptor,
     rq__modify_column_tracker},
    {"FlushTable", &pb__flush_table_request__descriptor, rq__flush_table},
    {"SplitRegion", &pb__split_table_region_request__descriptor, rq__split_region},
    {"TruncateRegion", &pb__truncate_region_request__descriptor, rq__truncate_region},
    {"MergeTableRegions", &pb__merge_table_regions_request__descriptor, rq__merge_regions},
    {"DispatchMergingRegions", &pb__dispatch_merging_regions_request__descriptor,
     rq__dispatch_merging_regions},
    {"GetTableDescriptors", &pb__get_table_descriptors_request__descriptor,
     rq__get_table_descriptors},
    {"GetTableNames", &pb__get_table_names_request__descriptor, rq__get_table_names},
    {"ListTableDescriptorsByState", &pb__list_table_descriptors_by_state_request__descriptor,
     rq__list_table_descriptors_by_state},
    {"ListTableNamesByState", &pb__list_table_names_by_state_request__descriptor,
     rq__list_table_names_by_state},
    {"ListTableDescriptorsByNamespace",
     &pb__list_table_descriptors_by_namespace_request__descriptor,
     rq__list_table_descriptors_by_namespace},
    {"ListTableNamesByNamespace", &pb__list_table_names_by_namespace_request__descriptor,
     rq__list_table_names_by_namespace},
    {"GetTableState", &pb__get_table_state_request__descriptor, rq__get_table_state},
    {"GetSchemaAlterStatus", &pb__get_schema_alter_status_request__descriptor,
     rq__get_schema_alter_status},
    {"getLastMajorCompactionTimestamp", &pb__major_compaction_timestamp_request__descriptor,
     rq__last_major_compaction},
    {"getLastMajorCompactionTimestampForRegion",
     &pb__major_compaction_timestamp_for_region_request__descriptor,
     rq__last_major_compaction_for_region},
    {"CreateNamespace", &pb__create_namespace_request__descriptor, rq__create_namespace},
    {"ModifyNamespace", &pb__modify_namespace_request__descriptor, rq__modify_namespace},
    {"DeleteNamespace", &pb__delete_namespace_request__descriptor, rq__delete_namespace},
    {"GetNamespaceDescriptor", &pb__get_namespace_descriptor_request__descriptor,
     rq__get_namespace_descriptor},
    {"ListNamespaceDescriptors", &pb__list_namespace_descriptors_request__descriptor,
     rq__list_namespace_descriptors},
    {"ListNamespaces", &pb__list_namespaces_request__descriptor, rq__list_namespaces},
    {"getProcedureResult", &pb__get_procedure_result_request__descriptor, rq__get_procedure_result},
    {"AbortProcedure", &pb__abort_procedure_request__descriptor, rq__abort_procedure},
    {"GetProcedures", &pb__get_procedures_request__descriptor, rq__get_procedures},
    {"ListProcedures", &pb__list_procedures_request__descriptor, rq__get_procedures},
    {"GetLocks", &pb__get_locks_request__descriptor, rq__get_locks},
    {"ExecProcedure", &pb__exec_procedure_request__descriptor, rq__exec_procedure},
    {"ExecProcedureWithRet", &pb__exec_procedure_request__descriptor, rq__exec_procedure},
    {"IsProcedureDone", &pb__is_procedure_done_request__descriptor, rq__is_procedure_done},
    {"GetClusterStatus", &pb__get_cluster_status_request__descriptor, rq__get_cluster_status},
    {"IsMasterRunning", &pb__is_master_running_request__descriptor, is_master_running},
    {"IsMasterInMaintenanceMode", &pb__is_in_maintenance_mode_request__descriptor,
     is_in_maintenance_mode},
    {"Balance", &pb__balance_request__descriptor, balance},
    {"SetBalancerRunning", &pb__set_balancer_running_request__descriptor, set_balancer},
    {"IsBalancerEnabled", &pb__is_balancer_enabled_request__descriptor, is_balancer},
    {"Normalize", &pb__normalize_request__descriptor, normalize},
    {"SetNormalizerRunning", &pb__set_normalizer_running_request__descriptor, set_normalizer},
    {"IsNormalizerEnabled", &pb__is_normalizer_enabled_request__descriptor, is_normalizer},
    {"SetSplitOrMergeEnabled", &pb__set_split_or_merge_enabled_request__descriptor,
     set_split_or_merge},
    {"IsSplitOrMergeEnabled", &pb__is_split_or_merge_enabled_request__descriptor,
     is_split_or_merge},
    {"RunCatalogScan", &pb__run_catalog_scan_request__descriptor, run_catalog_scan},
    {"EnableCatalogJanitor", &pb__enable_catalog_janitor_request__descriptor, set_catalog_janitor},
    {"IsCatalogJanitorEnabled", &pb__is_catalog_janitor_enabled_request__descriptor,
     is_catalog_janitor},
    {"RunCleanerChore", &pb__run_cleaner_chore_request__descriptor, rq__run_cleaner},
    {"SetCleanerChoreRunning", &pb__set_cleaner_chore_running_request__descriptor, set_cleaner},
    {"IsCleanerChoreEnabled", &pb__is_cleaner_chore_enabled_request__descriptor, is_cleaner},
    {"ListDecommissionedRegionServers", &pb__list_decommissioned_region_servers_request__descriptor,
     rq__list_decommissioned},
    {"DecommissionRegionServers", &pb__decommission_region_servers_request__descriptor,
     rq__decommission},
    {"RecommissionRegionServer", &pb__recommission_region_server_request__descriptor,
     rq__recommission},
    {"ClearDeadServers", &pb__clear_dead_servers_request__descriptor, rq__clear_dead_servers},
    {"FlushMasterStore", &pb__flush_master_store_request__descriptor, rq__flush_master_store},
    {"getSecurityCapabilities", &pb__security_capabilities_request__descriptor,
     get_security_capabilities},
    {"ExecMasterService", &pb__coprocessor_service_request__descriptor, exec_master_service},
    {"GetCompletedSnapshots", &pb__get_completed_snapshots_request__descriptor,
     rq__get_completed_snapshots},
    {"ListReplicationPeers", &pb__list_replication_peers_request__descriptor, rq__list_peers},
    {"GetQuotaStates", &pb__get_quota_states_request__descriptor, rq__get_quota_states},
    {"GetSpaceQuotaRegionSizes", &pb__get_space_quota_region_sizes_request__descriptor,
     rq__get_region_sizes},
    {"GetUserPermissions", &pb__get_user_permissions_request__descriptor, rq__access_control},
    {"HasUserPermissions", &pb__has_user_permissions_request__descriptor, rq__access_control},
    {"IsRpcThrottleEnabled", &pb__is_rpc_throttle_enabled_request__descriptor,
     rq__is_rpc_throttle_enabled},
    {"SwitchRpcThrottle", &pb__switch_rpc_throttle_request__descriptor, rq__switch_rpc_throttle},
    {"SwitchExceedThrottleQuota", &pb__switch_exceed_throttle_quota_request__descriptor,
     rq__switch_exceed_throttle},
    {"SwitchSnapshotCleanup", &pb__set_snapshot_cleanup_request__descriptor, set_snapshot_cleanup},
    {"IsSnapshotCleanupEnabled", &pb__is_snapshot_cleanup_enabled_request__descriptor,
     is_snapshot_cleanup},
    {"ReplicationPeerModificationSwitch",
     &pb__replication_peer_modification_switch_request__descriptor, set_peer_modification},
    {"IsReplicationPeerModificationEnabled",
     &pb__is_replication_peer_modification_enabled_request__descriptor, is_peer_modification},
    {"GetReplicationPeerModificationProcedures",
     &pb__get_replication_peer_modification_procedures_request__descriptor,
     rq__get_peer_procedures},
    {"GetReplicationPeerConfig", &pb__get_replication_peer_config_request__descriptor,
     rq__get_peer},
    {"RemoveReplicationPeer", &pb__remove_replication_peer_request__descriptor, rq__remove_peer},
    {"EnableReplicationPeer", &pb__enable_replication_peer_request__descriptor, rq__enable_peer},
    {"DisableReplicationPeer", &pb__disable_replication_peer_request__descriptor, rq__disable_peer},
    {"UpdateReplicationPeerConfig", &pb__update_replication_peer_config_request__descriptor,
     rq__update_peer},
    {"IsReplicationPeerEnabled", &pb__get_replication_peer_state_request__descriptor,
     rq__is_peer_enabled},
    {"GetLogEntries", &pb__log_request__descriptor, rq__master_log_entries},
    {"Snapshot", &pb__snapshot_request__descriptor, rq__take_snapshot},
    {"DeleteSnapshot", &pb__delete_snapshot_request__descriptor, rq__delete_snapshot},
    {"IsSnapshotDone", &pb__is_snapshot_done_request__descriptor, rq__is_snapshot_done},
    {"RestoreSnapshot", &pb__restore_snapshot_request__descriptor, rq__restore_snapshot},
    {"MoveRegion", &pb__move_region_request__descriptor, rq__move_region},
    {"AssignRegion", &pb__assign_region_request__descriptor, rq__assign_region},
    {"UnassignRegion", &pb__unassign_region_request__descriptor, rq__unassign_region},
    {"OfflineRegion", &pb__offline_region_request__descriptor, rq__offline_region},
    {"SetQuota", &pb__set_quota_request__descriptor, rq__set_quota},
    {"Shutdown", &pb__shutdown_request__descriptor, rq__shutdown},
    {"StopMaster", &pb__stop_master_request__descriptor, rq__stop_master},
    {"AddReplicationPeer", &pb__add_replication_peer_request__descriptor, rq__add_peer},
    {"Grant", &pb__grant_request__descriptor, rq__access_control},
    {"Revoke", &pb__revoke_request__descriptor, rq__access_control},
    {"IsRestoreSnapshotDone", &pb__is_restore_snapshot_done_request__descriptor,
     rq__is_restore_snapshot_done},
};

rq_rpc_service rq_master_service_methods(rq_admin_services *s)
{
    return rq__admin_service(s, "MasterService", methods, RQ_ARRAY_LEN(methods));
}
