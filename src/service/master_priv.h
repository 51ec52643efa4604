/* SPDX-License-Identifier: Apache-2.0 */
/* MasterService's handlers by file: changes (master_ddl.c), lists and states (master_info.c), calls
 * on single regions (master_regions.c), features that do not exist here (master_idle.c), the
 * cluster's status (cluster_status.c), switches (master_service.c, with the method table). */
#ifndef RQ_SERVICE_MASTER_PRIV_H
#define RQ_SERVICE_MASTER_PRIV_H

#include "service/admin_priv.h"

#include "proto/error.pb-c.h"
#include "proto/hbase.pb-c.h"
#include "proto/procedure.pb-c.h"

/* master_ddl.c */
/* A change requested by a call, which is answered when it has been submitted; in the call's
 * arena. */
typedef struct rq__ddl_job {
    rq_ddl ddl;
    rq_call *call;
    bool silent; /* the answer does not name the procedure */
} rq__ddl_job;

/* NULL: out of memory; the call was answered. */
rq__ddl_job *rq__ddl_job_new(rq_call *call, rq_ddl_kind kind, uint64_t nonce_group, uint64_t nonce);

/* The serialized message, in the arena; .ptr is NULL when memory is exhausted. */
rq_slice rq__packed(rq_arena *arena, const ProtobufCMessage *m);

/* Submits and waits: until the procedure has passed its checks, or with ddl->wait_finished until its
 * end. Blocking, on RQ_POOL_CALL. */
RQ_NODISCARD
rq_err rq__submit_and_wait(rq_admin_services *s, rq_ddl *ddl, rq_error *why);

void rq__create_table(void *ctx, rq_call *call);
void rq__delete_table(void *ctx, rq_call *call);
void rq__truncate_table(void *ctx, rq_call *call);
void rq__enable_table(void *ctx, rq_call *call);
void rq__disable_table(void *ctx, rq_call *call);
void rq__modify_table(void *ctx, rq_call *call);
void rq__add_column(void *ctx, rq_call *call);
void rq__modify_column(void *ctx, rq_call *call);
void rq__modify_table_tracker(void *ctx, rq_call *call);
void rq__modify_column_tracker(void *ctx, rq_call *call);
void rq__delete_column(void *ctx, rq_call *call);
void rq__create_namespace(void *ctx, rq_call *call);
void rq__modify_namespace(void *ctx, rq_call *call);
void rq__delete_namespace(void *ctx, rq_call *call);
void rq__flush_table(void *ctx, rq_call *call);
void rq__split_region(void *ctx, rq_call *call);
void rq__truncate_region(void *ctx, rq_call *call);
void rq__merge_regions(void *ctx, rq_call *call);
void rq__dispatch_merging_regions(void *ctx, rq_call *call);
void rq__exec_procedure(void *ctx, rq_call *call);
void rq__is_procedure_done(void *ctx, rq_call *call);
void rq__get_procedure_result(void *ctx, rq_call *call);
void rq__abort_procedure(void *ctx, rq_call *call);
/* The error of a procedure that has one; NULL: out of memory. */
Pb__ForeignExceptionMessage *rq__foreign_exception(rq_arena *arena, const rq_procedure *p);

/* procedure_state.c */
/* With its parameters; NULL: out of memory. */
Pb__Procedure *rq__procedure_message(rq_arena *arena, const rq_procedure *p);
void rq__get_procedures(void *ctx, rq_call *call);
void rq__get_peer_procedures(void *ctx, rq_call *call);

/* master_info.c */
/* The names ("ns:q" or "q") of users' tables that all of the conditions select; those that are NULL
 * or empty select all. Sorted, in the arena. */
RQ_NODISCARD
rq_err rq__select_table_names(const rq_admin_services *a, const char *regex, const char *ns,
                              Pb__TableName *const *names, size_t name_count, rq_arena *arena,
                              rq_slice **ret, size_t *ret_count, rq_error *why);
void rq__get_table_descriptors(void *ctx, rq_call *call);
void rq__get_table_names(void *ctx, rq_call *call);
void rq__list_table_descriptors_by_state(void *ctx, rq_call *call);
void rq__list_table_names_by_state(void *ctx, rq_call *call);
void rq__list_table_descriptors_by_namespace(void *ctx, rq_call *call);
void rq__list_table_names_by_namespace(void *ctx, rq_call *call);
void rq__get_table_state(void *ctx, rq_call *call);
void rq__get_schema_alter_status(void *ctx, rq_call *call);
void rq__get_namespace_descriptor(void *ctx, rq_call *call);
void rq__list_namespace_descriptors(void *ctx, rq_call *call);
void rq__list_namespaces(void *ctx, rq_call *call);
void rq__last_major_compaction(void *ctx, rq_call *call);
void rq__last_major_compaction_for_region(void *ctx, rq_call *call);

/* master_regions.c */
/* The encoded name, whichever kind of name the client sent; points into the message. */
rq_slice rq__encoded_of(const Pb__RegionSpecifier *spec);
void rq__move_region(void *ctx, rq_call *call);
void rq__assign_region(void *ctx, rq_call *call);
void rq__unassign_region(void *ctx, rq_call *call);
void rq__offline_region(void *ctx, rq_call *call);
void rq__run_cleaner(void *ctx, rq_call *call);

/* master_locks.c */
void rq__get_locks(void *ctx, rq_call *call);

/* master_quota.c */
void rq__set_quota(void *ctx, rq_call *call);
void rq__switch_rpc_throttle(void *ctx, rq_call *call);
void rq__switch_exceed_throttle(void *ctx, rq_call *call);
void rq__is_rpc_throttle_enabled(void *ctx, rq_call *call);
void rq__get_quota_states(void *ctx, rq_call *call);
void rq__get_region_sizes(void *ctx, rq_call *call);

/* master_servers.c */
void rq__clear_dead_servers(void *ctx, rq_call *call);
void rq__list_decommissioned(void *ctx, rq_call *call);
void rq__decommission(void *ctx, rq_call *call);
void rq__recommission(void *ctx, rq_call *call);
void rq__shutdown(void *ctx, rq_call *call);
void rq__stop_master(void *ctx, rq_call *call);
void rq__flush_master_store(void *ctx, rq_call *call);

/* master_idle.c */
void rq__access_control(void *ctx, rq_call *call);
void rq__master_log_entries(void *ctx, rq_call *call);

/* master_peers.c */
void rq__add_peer(void *ctx, rq_call *call);
void rq__remove_peer(void *ctx, rq_call *call);
void rq__enable_peer(void *ctx, rq_call *call);
void rq__disable_peer(void *ctx, rq_call *call);
void rq__update_peer(void *ctx, rq_call *call);
void rq__get_peer(void *ctx, rq_call *call);
void rq__list_peers(void *ctx, rq_call *call);
void rq__is_peer_enabled(void *ctx, rq_call *call);

/* master_snapshots.c */
void rq__take_snapshot(void *ctx, rq_call *call);
void rq__delete_snapshot(void *ctx, rq_call *call);
void rq__restore_snapshot(void *ctx, rq_call *call);
void rq__is_restore_snapshot_done(void *ctx, rq_call *call);
/* HBASE: SnapshotManager.ONLINE_SNAPSHOT_CONTROLLER_DESCRIPTION. */
#define RQ__SNAPSHOT_SIGNATURE "online-snapshot"
/* Takes a snapshot for ExecProcedure; `finished` answers the call when it is done. */
RQ_NODISCARD
rq_err rq__exec_snapshot(rq_admin_services *s, rq_call *call, const Pb__ProcedureDescription *asked,
                         void (*finished)(rq_ddl *ddl), rq_error *why);
void rq__get_completed_snapshots(void *ctx, rq_call *call);
void rq__is_snapshot_done(void *ctx, rq_call *call);

/* cluster_status.c */
void rq__get_cluster_status(void *ctx, rq_call *call);

#endif
