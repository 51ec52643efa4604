/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of procedures, as a table: a new kind needs an entry here and its steps. */
#include "catalog/ddl_priv.h"

#define JAVA "org.apache.hadoop.hbase.master.procedure."

#define ASSIGN "org.apache.hadoop.hbase.master.assignment."

#define ALTER(k, payload_of)                                                                       \
    {                                                                                              \
        .kind = k, .java_class = JAVA "ModifyTableProcedure", .payload = payload_of,               \
        .prepare = rq__alter_prepare,                                                              \
        .steps = {{"UPDATE_TABLE_DESCRIPTOR", rq__alter_commit},                                   \
                  {"REOPEN_ALL_REGIONS", rq__alter_reopen}},                                       \
        .commit = 0, .answer_at_end = true,                                                        \
    }

#define LOCK(k, level)                                                                             \
    {                                                                                              \
        .kind = k, .java_class = "org.apache.hadoop.hbase.master.locking.LockProcedure",           \
        .payload = &rq__payload_lock, .prepare = rq__lock_prepare,                                 \
        .steps = {{"HOLD", rq__lock_hold}}, .commit = 0, .lock = level, .holds = true,             \
    }

#define TRACKER(k, name)                                                                           \
    {                                                                                              \
        .kind = k, .java_class = "org.apache.hadoop.hbase.regionserver.storefiletracker." name,    \
        .payload = &rq__payload_tracker, .precheck = rq__tracker_precheck,                         \
        .prepare = rq__tracker_prepare,                                                            \
        .steps = {{"MODIFY_STORE_FILE_TRACKER_FINISH_MIGRATION", rq__alter_commit},                \
                  {"REOPEN_ALL_REGIONS", rq__alter_reopen}},                                       \
        .commit = 0,                                                                               \
    }

#define PEER(k, name, payload_of, id, room, frees)                                                 \
    {                                                                                              \
        .kind = k, .java_class = "org.apache.hadoop.hbase.master.replication." name,               \
        .payload = payload_of, .make_room = room, .precheck = rq__peer_precheck,                   \
        .prepare = rq__peer_##id##_prepare,                                                        \
        .steps = {{"UPDATE_PEER_STORAGE", rq__peer_##id##_store}}, .commit = 0,                    \
        .not_abortable = true, .lock = RQ_LOCK_NAMESPACE, .vital = frees,                          \
    }

static const rq__proc_kind kinds[] = {
    {
        .kind = RQ_DDL_CREATE_TABLE,
        .payload = &rq__payload_create,
        .java_class = JAVA "CreateTableProcedure",
        .precheck = rq__create_precheck,
        .prepare = rq__create_prepare,
        .steps = {{"WRITE_FS_LAYOUT", rq__create_layout},
                  {"ASSIGN_REGIONS", rq__create_open},
                  {"ADD_TO_META", rq__create_commit},
                  {"UPDATE_DESC_CACHE", rq__create_publish}},
        .commit = 2,
        .rows = RQ__ROWS_TABLE,
        .undo = rq__create_undo,
        .seen = rq__create_seen,
        .start_ends = true,
    },
    {
        .kind = RQ_DDL_DELETE_TABLE,
        .payload = &rq__payload_none,
        .java_class = JAVA "DeleteTableProcedure",
        .prepare = rq__delete_prepare,
        .steps = {{"REMOVE_FROM_META", rq__delete_commit}, {"CLEAR_FS_LAYOUT", rq__delete_remove}},
        .commit = 0,
        .rows = RQ__ROWS_TABLE,
        .commits_first = true,
        .vital = true,
    },
    {
        .kind = RQ_DDL_TRUNCATE_TABLE,
        .payload = &rq__payload_truncate,
        .java_class = JAVA "TruncateTableProcedure",
        .precheck = rq__truncate_precheck,
        .prepare = rq__truncate_prepare,
        .steps = {{"CREATE_FS_LAYOUT", rq__truncate_layout},
                  {"ADD_TO_META", rq__truncate_commit},
                  {"CLEAR_FS_LAYOUT", rq__truncate_remove},
                  {"ASSIGN_REGIONS", rq__truncate_finish}},
        .commit = 1,
        .rows = RQ__ROWS_REPLACED,
        .undo = rq__truncate_undo,
        .seen = rq__truncate_seen,
    },
    {
        .kind = RQ_DDL_ENABLE_TABLE,
        .payload = &rq__payload_none,
        .java_class = JAVA "EnableTableProcedure",
        .prepare = rq__enable_prepare,
        .steps = {{"SET_ENABLING_TABLE_STATE", rq__enable_mark},
                  {"MARK_REGIONS_ONLINE", rq__enable_open}},
        .commit = 0,
    },
    {
        .kind = RQ_DDL_DISABLE_TABLE,
        .payload = &rq__payload_none,
        .java_class = JAVA "DisableTableProcedure",
        .precheck = rq__disable_precheck,
        .prepare = rq__disable_prepare,
        .steps = {{"SET_DISABLING_TABLE_STATE", rq__disable_mark},
                  {"MARK_REGIONS_OFFLINE", rq__disable_close},
                  {"SET_DISABLED_TABLE_STATE", rq__disable_finish}},
        .commit = 0,
        .commits_first = true,
        .vital = true,
    },
    ALTER(RQ_DDL_MODIFY_TABLE, &rq__payload_modify),
    ALTER(RQ_DDL_ADD_FAMILY, &rq__payload_put_family),
    ALTER(RQ_DDL_MODIFY_FAMILY, &rq__payload_put_family),
    ALTER(RQ_DDL_DELETE_FAMILY, &rq__payload_delete_family),
    TRACKER(RQ_DDL_TABLE_TRACKER, "ModifyTableStoreFileTrackerProcedure"),
    TRACKER(RQ_DDL_FAMILY_TRACKER, "ModifyColumnFamilyStoreFileTrackerProcedure"),
    {
        .kind = RQ_DDL_CREATE_NAMESPACE,
        .payload = &rq__payload_namespace,
        .java_class = JAVA "CreateNamespaceProcedure",
        .precheck = rq__ns_create_precheck,
        .prepare = rq__ns_create_prepare,
        .steps = {{"CREATE_DIRECTORY", rq__ns_create_folder}, {"INSERT_INTO_NS_TABLE", rq__ns_put}},
        .commit = 1,
        .undo = rq__ns_create_undo,
        .lock = RQ_LOCK_NAMESPACE,
    },
    {
        .kind = RQ_DDL_MODIFY_NAMESPACE,
        .payload = &rq__payload_namespace,
        .java_class = JAVA "ModifyNamespaceProcedure",
        .precheck = rq__ns_modify_precheck,
        .prepare = rq__ns_modify_prepare,
        .steps = {{"UPDATE_NS_TABLE", rq__ns_put}},
        .commit = 0,
        .lock = RQ_LOCK_NAMESPACE,
    },
    {
        .kind = RQ_DDL_DELETE_NAMESPACE,
        .payload = &rq__payload_none,
        .java_class = JAVA "DeleteNamespaceProcedure",
        .prepare = rq__ns_delete_prepare,
        .steps = {{"DELETE_FROM_NS_TABLE", rq__ns_delete_row},
                  {"DELETE_DIRECTORIES", rq__ns_delete_rest}},
        .commit = 0,
        .lock = RQ_LOCK_NAMESPACE,
    },
    {
        .kind = RQ_DDL_FLUSH_TABLE,
        .not_abortable = true,
        .payload = &rq__payload_flush,
        .java_class = JAVA "FlushTableProcedure",
        .prepare = rq__flush_prepare,
        .steps = {{"FLUSH_REGIONS", rq__flush_run}},
        .transient = true,
    },
    {
        .kind = RQ_DDL_SPLIT_REGION,
        .payload = &rq__payload_split,
        .java_class = ASSIGN "SplitTableRegionProcedure",
        .prepare = rq__split_prepare,
        .steps = {{"SPLIT_TABLE_REGION_PREPARE", rq__split_check},
                  {"SPLIT_TABLE_REGION_CLOSE_PARENT_REGION", rq__regions_close},
                  {"SPLIT_TABLE_REGION_CREATE_DAUGHTER_REGIONS", rq__regions_layout},
                  {"SPLIT_TABLE_REGION_UPDATE_META", rq__regions_commit},
                  {"SPLIT_TABLE_REGION_OPEN_CHILD_REGIONS", rq__regions_open}},
        .commit = 3,
        .undo = rq__regions_undo,
        .seen = rq__regions_seen,
        .start_ends = true,
        .lock = RQ_LOCK_REGIONS,
    },
    {
        .kind = RQ_DDL_MERGE_REGIONS,
        .payload = &rq__payload_merge,
        .java_class = ASSIGN "MergeTableRegionsProcedure",
        .prepare = rq__merge_prepare,
        .steps = {{"MERGE_TABLE_REGIONS_PREPARE", rq__merge_check},
                  {"MERGE_TABLE_REGIONS_CLOSE_REGIONS", rq__regions_close},
                  {"MERGE_TABLE_REGIONS_CREATE_MERGED_REGION", rq__regions_layout},
                  {"MERGE_TABLE_REGIONS_UPDATE_META", rq__regions_commit},
                  {"MERGE_TABLE_REGIONS_OPEN_MERGED_REGION", rq__regions_open}},
        .commit = 3,
        .undo = rq__regions_undo,
        .seen = rq__regions_seen,
        .start_ends = true,
        .lock = RQ_LOCK_REGIONS,
    },
    {
        .kind = RQ_DDL_TRUNCATE_REGION,
        .payload = &rq__payload_region,
        .java_class = JAVA "TruncateRegionProcedure",
        .prepare = rq__truncate_region_prepare,
        .steps = {{"TRUNCATE_REGION_PRE_OPERATION", rq__truncate_region_check},
                  {"TRUNCATE_REGION_MAKE_OFFLINE", rq__truncate_region_close},
                  {"TRUNCATE_REGION_REMOVE", rq__truncate_region_remove},
                  {"TRUNCATE_REGION_MAKE_ONLINE", rq__truncate_region_open}},
        .commit = 2,
        .undo = rq__regions_undo,
        .seen = rq__truncate_region_seen,
        .lock = RQ_LOCK_REGIONS,
    },
    {
        .kind = RQ_DDL_CLEAN_PARENTS,
        .payload = &rq__payload_none,
        .java_class = ASSIGN "GCRegionProcedure",
        .prepare = rq__clean_prepare,
        .steps = {{"GC_REGION_PREPARE", rq__clean_run}},
        .transient = true,
    },
    {
        .kind = RQ_DDL_REOPEN_REGION,
        .not_abortable = true,
        .payload = &rq__payload_region,
        .java_class = ASSIGN "TransitRegionStateProcedure",
        .prepare = rq__reopen_prepare,
        .steps = {{"GET_ASSIGN_CANDIDATE", rq__reopen_run}},
        .transient = true,
        .lock = RQ_LOCK_REGIONS,
    },
    {
        .kind = RQ_DDL_ASSIGN_REGION,
        .not_abortable = true,
        .payload = &rq__payload_region,
        .java_class = ASSIGN "TransitRegionStateProcedure",
        .prepare = rq__assign_prepare,
        .steps = {{"GET_ASSIGN_CANDIDATE", rq__reopen_run}},
        .transient = true,
        .lock = RQ_LOCK_REGIONS,
    },
    {
        .kind = RQ_DDL_UNASSIGN_REGION,
        .not_abortable = true,
        .payload = &rq__payload_region,
        .java_class = ASSIGN "TransitRegionStateProcedure",
        .prepare = rq__unassign_prepare,
        .steps = {{"CLOSE", rq__unassign_run}},
        .transient = true,
        .lock = RQ_LOCK_REGIONS,
    },
    LOCK(RQ_DDL_LOCK_NAMESPACE, RQ_LOCK_NAMESPACE),
    LOCK(RQ_DDL_LOCK_TABLE, RQ_LOCK_TABLE),
    LOCK(RQ_DDL_LOCK_TABLE_SHARED, RQ_LOCK_TABLE_SHARED),
    LOCK(RQ_DDL_LOCK_REGIONS, RQ_LOCK_REGIONS),
    {
        .kind = RQ_DDL_MOVE_REGION,
        .not_abortable = true,
        .payload = &rq__payload_region,
        .java_class = ASSIGN "TransitRegionStateProcedure",
        .prepare = rq__move_prepare,
        .steps = {{"CLOSE", rq__move_close}, {"OPEN", rq__move_open}},
        .transient = true,
        .lock = RQ_LOCK_REGIONS,
    },
    {
        .kind = RQ_DDL_FILL_HOLES,
        .payload = &rq__payload_none,
        .java_class = JAVA "FixMetaProcedure", /* HBase has none */
        .prepare = rq__holes_prepare,
        .steps = {{"CREATE_REGIONS", rq__holes_layout},
                  {"ADD_TO_META", rq__holes_commit},
                  {"ASSIGN_REGIONS", rq__holes_open}},
        .commit = 1,
        .seen = rq__holes_seen,
        .leaves_regions = true,
    },
    {
        .kind = RQ_DDL_SNAPSHOT,
        .payload = &rq__payload_snapshot,
        .java_class = JAVA "SnapshotProcedure",
        .precheck = rq__snapshot_precheck,
        .prepare = rq__snapshot_prepare,
        .steps = {{"SNAPSHOT_WRITE_SNAPSHOT_INFO", rq__snapshot_begin},
                  {"SNAPSHOT_SNAPSHOT_ONLINE_REGIONS", rq__snapshot_collect},
                  {"SNAPSHOT_COMPLETE_SNAPSHOT", rq__snapshot_complete}},
        .commit = 2,
        .undo = rq__snapshot_undo,
        .seen = rq__snapshot_seen,
        .leaves_regions = true,
    },
    {
        .kind = RQ_DDL_DELETE_SNAPSHOT,
        .payload = &rq__payload_none,
        .java_class = JAVA "DeleteSnapshotProcedure",
        .precheck = rq__snapshot_delete_prepare,
        .prepare = rq__snapshot_delete_prepare,
        .steps = {{"DELETE_SNAPSHOT_INFO", rq__snapshot_delete_commit},
                  {"DELETE_SNAPSHOT_FILES", rq__snapshot_delete_files}},
        .commit = 0,
        .seen = rq__snapshot_delete_seen,
        .vital = true,
        .answer_at_end = true,
    },
    {
        .kind = RQ_DDL_CLONE_SNAPSHOT,
        .payload = &rq__payload_restore,
        .java_class = JAVA "CloneSnapshotProcedure",
        .precheck = rq__clone_precheck,
        .prepare = rq__clone_prepare,
        .steps = {{"CLONE_SNAPSHOT_WRITE_FS_LAYOUT", rq__clone_layout},
                  {"CLONE_SNAPSHOT_ASSIGN_REGIONS", rq__create_open},
                  {"CLONE_SNAPSHOT_ADD_TO_META", rq__create_commit},
                  {"CLONE_SNAPSHOT_UPDATE_DESC_CACHE", rq__create_publish}},
        .commit = 2,
        .rows = RQ__ROWS_TABLE,
        .undo = rq__clone_undo,
        .seen = rq__create_seen,
        .start_ends = true,
    },
    {
        .kind = RQ_DDL_RESTORE_SNAPSHOT,
        .not_abortable = true,
        .payload = &rq__payload_restore,
        .java_class = JAVA "RestoreSnapshotProcedure",
        .precheck = rq__restore_precheck,
        .prepare = rq__restore_prepare,
        .steps = {{"RESTORE_SNAPSHOT_WRITE_FS_LAYOUT", rq__restore_layout},
                  {"RESTORE_SNAPSHOT_UPDATE_META", rq__restore_commit},
                  {"RESTORE_SNAPSHOT_UPDATE_TABLE_DESCRIPTOR", rq__restore_publish},
                  {"RESTORE_SNAPSHOT_REMOVE_OLD_REGIONS", rq__restore_remove}},
        .commit = 1,
        .rows = RQ__ROWS_REPLACED,
        .undo = rq__truncate_undo,
        .seen = rq__truncate_seen,
    },
    PEER(RQ_DDL_ADD_PEER, "AddPeerProcedure", &rq__payload_peer, add, NULL, false),
    PEER(RQ_DDL_REMOVE_PEER, "RemovePeerProcedure", &rq__payload_none, remove,
         rq__peer_remove_make_room, true),
    PEER(RQ_DDL_ENABLE_PEER, "EnablePeerProcedure", &rq__payload_none, enable, NULL, false),
    PEER(RQ_DDL_DISABLE_PEER, "DisablePeerProcedure", &rq__payload_none, disable, NULL, true),
    PEER(RQ_DDL_UPDATE_PEER, "UpdatePeerConfigProcedure", &rq__payload_peer, update, NULL, false),
};

const rq__proc_kind rq__proc_kind_unknown = {.java_class = "", .payload = &rq__payload_none};

const rq__proc_kind *rq__proc_kind_of(rq_ddl_kind kind)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(kinds); i++)
        if (kinds[i].kind == kind) return &kinds[i];
    return NULL;
}
