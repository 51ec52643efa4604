/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of each kind of procedure, as listed in kinds.c, and the functions they share. */
#ifndef RQ_CATALOG_DDL_PRIV_H
#define RQ_CATALOG_DDL_PRIV_H

#include "catalog/catalog_priv.h"

typedef rq_err rq__step_fn(rq_catalog *c, rq__proc *p, rq_error *why);

/* ddl_create.c */
rq__step_fn rq__create_precheck, rq__create_prepare, rq__create_layout, rq__create_open,
    rq__create_commit, rq__create_publish;
rq__step_fn rq__create_undo;
rq__commit_state rq__create_seen(rq_catalog *c, const rq__proc *p);
/* RQ_E_QUOTA_EXCEEDED: the namespace may not have more regions. */
RQ_NODISCARD
rq_err rq__split_check_quota(rq_catalog *c, rq__proc *p, rq_error *why);
/* ddl_drop.c */
rq__step_fn rq__delete_prepare, rq__delete_commit, rq__delete_remove;
rq__step_fn rq__truncate_precheck, rq__truncate_prepare, rq__truncate_layout, rq__truncate_commit,
    rq__truncate_remove, rq__truncate_finish;
rq__step_fn rq__truncate_undo;
rq__commit_state rq__truncate_seen(rq_catalog *c, const rq__proc *p);
/* Replaces the rows of p->old_regions in meta by those of p->regions, which are closed. RQ_E_AGAIN: see
 * rq__parts_write. */
rq__step_fn rq__replace_rows;
/* ddl_state.c */
rq__step_fn rq__enable_prepare, rq__enable_mark, rq__enable_open;
rq__step_fn rq__disable_precheck, rq__disable_prepare, rq__disable_mark, rq__disable_close,
    rq__disable_finish;
rq__step_fn rq__flush_prepare, rq__flush_run;
rq__step_fn rq__reopen_prepare, rq__reopen_run;
rq__step_fn rq__assign_prepare, rq__unassign_prepare, rq__unassign_run;
rq__step_fn rq__move_prepare, rq__move_close, rq__move_open;
/* locks.c */
rq__step_fn rq__lock_prepare, rq__lock_hold;
/* ddl_regions.c */
rq__step_fn rq__split_prepare, rq__split_check, rq__merge_prepare, rq__merge_check;
rq__step_fn rq__regions_close, rq__regions_layout, rq__regions_commit, rq__regions_open;
rq__step_fn rq__regions_undo;
rq__commit_state rq__regions_seen(rq_catalog *c, const rq__proc *p);
/* ddl_truncate_region.c */
rq__step_fn rq__truncate_region_prepare, rq__truncate_region_check, rq__truncate_region_close,
    rq__truncate_region_remove, rq__truncate_region_open;
rq__commit_state rq__truncate_region_seen(rq_catalog *c, const rq__proc *p);
/* ddl_holes.c */
rq__step_fn rq__holes_prepare, rq__holes_layout, rq__holes_commit, rq__holes_open;
rq__commit_state rq__holes_seen(rq_catalog *c, const rq__proc *p);
/* check.c: the regions in the table's folder that are neither in the view nor in hbase:meta. */
RQ_NODISCARD
rq_err rq__find_orphans(rq_catalog *c, rq_slice ns, rq_slice qualifier, rq_arena *arena,
                        rq_region_info **ret, size_t *ret_count, rq_error *why);
/* check.c: whether any table's folder contains the region; true also if a folder cannot be read. */
bool rq__region_is_on_disk(rq_catalog *c, const char *encoded);
/* ddl_parents.c */
rq__step_fn rq__clean_prepare, rq__clean_run;
/* Adds to p->old_regions the split and merged regions of the table that are still in hbase:meta. */
rq__step_fn rq__add_parents;
/* The tables with split or merged regions in hbase:meta: {namespace, qualifier}, in the arena. */
RQ_NODISCARD
rq_err rq__tables_with_remains(rq_catalog *c, rq_arena *arena, rq_slice (**ret)[2],
                               size_t *ret_count, rq_error *why);
/* ddl_alter.c */
rq__step_fn rq__alter_prepare, rq__alter_commit, rq__alter_reopen;
rq__step_fn rq__tracker_precheck, rq__tracker_prepare;
/* ddl_namespace.c */
rq__step_fn rq__ns_create_precheck, rq__ns_create_prepare, rq__ns_create_folder, rq__ns_put;
rq__step_fn rq__ns_create_undo;
rq__step_fn rq__ns_modify_precheck, rq__ns_modify_prepare;
rq__step_fn rq__ns_delete_prepare, rq__ns_delete_row, rq__ns_delete_rest;

/* ddl_peer.c */
rq__step_fn rq__peer_precheck, rq__peer_add_prepare, rq__peer_add_store, rq__peer_remove_prepare,
    rq__peer_remove_store;
bool rq__peer_remove_make_room(rq_catalog *c, const rq__proc *p);
rq__step_fn rq__peer_enable_prepare, rq__peer_enable_store, rq__peer_disable_prepare,
    rq__peer_disable_store;
rq__step_fn rq__peer_update_prepare, rq__peer_update_store;
/* ddl_snapshot.c */
rq__step_fn rq__snapshot_precheck, rq__snapshot_prepare, rq__snapshot_begin, rq__snapshot_collect,
    rq__snapshot_complete;
rq__step_fn rq__snapshot_undo;
rq__commit_state rq__snapshot_seen(rq_catalog *c, const rq__proc *p);
rq__step_fn rq__snapshot_delete_prepare, rq__snapshot_delete_commit, rq__snapshot_delete_files;
rq__commit_state rq__snapshot_delete_seen(rq_catalog *c, const rq__proc *p);
/* The procedure's hold on archive/: no file is removed there until the hold is released or the
 * procedure ends. */
RQ_NODISCARD
rq_err rq__hold_archive(rq_catalog *c, rq__proc *p, rq_error *why);
void rq__release_archive(rq__proc *p);
/* ddl_restore.c */
rq__step_fn rq__clone_precheck, rq__clone_prepare, rq__clone_layout;
rq__step_fn rq__clone_undo;
rq__step_fn rq__restore_precheck, rq__restore_prepare, rq__restore_layout, rq__restore_commit,
    rq__restore_publish, rq__restore_remove;
/* ddl_create.c: RQ_E_QUOTA_EXCEEDED if the procedure's table, with `wanted` regions in all, would exceed
 * the limits of its namespace. `is_new`: the table does not exist yet, so it counts against the limit of
 * tables too. Without hbase.quota.enabled there are no limits. */
RQ_NODISCARD
rq_err rq__namespace_quota_check(rq_catalog *c, rq__proc *p, int64_t wanted, bool is_new,
                                 rq_error *why);
/* rows.c: removes the row that a dropped table (kind 't') or namespace ('n') has in hbase:quota, if there is one. */
RQ_NODISCARD
rq_err rq__drop_quotas(rq_catalog *c, char kind, rq_slice name, rq_error *why);

/* --- ddl_parts.c ------------------------------------------------------------------------------ */
/* Appends the rows of item `i` of the step's change to the batch. */
typedef rq_err rq__item_fn(rq_catalog *c, const rq__proc *p, size_t i, rq__batch *b);
/* Writes the rows of `count` items to meta, in order, in as many records as they need; all are durable on return. If
 * this is the commit step, the item `commit` is the commit; RQ__NO_COMMIT: none is. RQ_E_AGAIN: the step waits, and is
 * called again (rq__wait_a_while). After another error the rows of the first items may be written; a repetition of the
 * step goes on with the others (p->written). A step calls it for one list of items only. */
RQ_NODISCARD
rq_err rq__parts_write(rq_catalog *c, rq__proc *p, size_t count, size_t commit, rq__item_fn *fn,
                       rq_error *why);
#define RQ__NO_COMMIT SIZE_MAX
/* For an undo: removes the rows that the commit step may have written, the commit's first. RQ_E_AGAIN: see
 * rq__parts_write. After another error rows may be left: the undo fails, too. */
RQ_NODISCARD
rq_err rq__parts_undo(rq_catalog *c, rq__proc *p, rq_error *why);

/* How much of a change hbase:meta has, whose rows are written in parts. */
typedef enum rq__parts_state {
    RQ__PARTS_UNKNOWN, /* hbase:meta cannot be read */
    RQ__PARTS_NONE,    /* it is not committed; rows that precede the commit may be there */
    RQ__PARTS_SOME,    /* it is committed, and rows that it removes are there */
    RQ__PARTS_ALL,
} rq__parts_state;
/* Reads the table's rows. Blocking. REQUIRES: p->ops->rows is not RQ__ROWS_WHOLE. */
rq__parts_state rq__parts_look(rq_catalog *c, const rq__proc *p);

/* The prepared procedures that write hbase:meta in parts, of which the last process may have written some only: sorted
 * by table, at most one of each table. REQUIRES: no procedure runs yet. */
RQ_NODISCARD
rq_err rq__parts_unfinished(rq_catalog *c, rq_arena *a, const rq__proc *const **ret,
                            size_t *ret_count);
/* NULL: the table has none. */
const rq__proc *rq__parts_of_table(const rq__proc *const *list, size_t count, rq_slice table);
/* Removes the regions that a start must ignore from the list: the procedure's new ones, or, if the change was
 * committed, its old ones. *ret_none: the start must ignore the whole table. `has_state`: hbase:meta has the table's
 * state. */
RQ_NODISCARD
rq_err rq__parts_leave_out(const rq__proc *p, bool has_state, rq__opened *list, size_t *count,
                           bool *ret_none);

/* --- common (ddl_common.c) -------------------------------------------------------------------- */
/* p->schema; parses it from p->descriptor after a restart. */
RQ_NODISCARD
rq_err rq__need_schema(rq__proc *p, rq_error *why);
/* "tableName=t, state=ENABLED", as Java prints a TableState. */
RQ_NODISCARD
rq_err rq__fail_state(rq_err code, const char *prefix, const rq__proc *p, rq_table_state state,
                      rq_error *why);
/* Index of the region with that encoded name in the table; pub.region_count: not found. */
size_t rq__table_find(rq_catalog *c, const rq__table_node *t, rq_slice encoded);
/* Refuses a table or namespace whose folder would be the procedure store's. */
RQ_NODISCARD
rq_err rq__internal_check(const rq__proc *p, rq_error *why);
/* Fails with the table's name as the message. */
RQ_NODISCARD
rq_err rq__fail_table(rq_err code, const rq__proc *p, rq_error *why);

/* One atomic, durable write to meta. */
RQ_NODISCARD
rq_err rq__meta_commit(rq_catalog *c, const rq__batch *b, rq_error *why);
/* One atomic write to meta, of data that the next start writes again (locations of regions). If there is
 * one log, it is not durable on return, and on a full disk it is kept in memory; else it is durable. */
RQ_NODISCARD
rq_err rq__meta_note(rq_catalog *c, const rq__batch *b, rq_error *why);
/* As rq__meta_commit, from a step of the procedure; notes the commit if this is the commit step. */
RQ_NODISCARD
rq_err rq__proc_commit(rq_catalog *c, rq__proc *p, const rq__batch *b, rq_error *why);

/* Region infos for sorted split keys, in p->arena. */
RQ_NODISCARD
rq_err rq__make_regions(rq_catalog *c, rq__proc *p, const rq_slice *keys, size_t count,
                        rq_error *why);
/* Creates the folders of the new regions p->regions through a batch (vfs/batch.h); _durably: through a batch of its
 * own. After a restart the regions may exist and have rows: these stay. */
RQ_NODISCARD
rq_err rq__create_regions(rq_catalog *c, rq__proc *p, rq_vfs *batch, rq_error *why);
RQ_NODISCARD
rq_err rq__create_regions_durably(rq_catalog *c, rq__proc *p, rq_error *why);
/* The same for regions that may have been made by others: keeps their files and manifests. Durable on return. */
RQ_NODISCARD
rq_err rq__adopt_regions(rq_catalog *c, rq__proc *p, rq_error *why);
/* Remove the folders of closed regions in two steps: _archive archives the store files, then _remove removes the
 * rest through a batch. _destroy does both. */
RQ_NODISCARD
rq_err rq__archive_regions(rq_catalog *c, const rq_region_info *list, size_t count, rq_error *why);
RQ_NODISCARD
rq_err rq__remove_regions(rq_catalog *c, const rq_region_info *list, size_t count, rq_vfs *batch,
                          rq_error *why);
RQ_NODISCARD
rq_err rq__destroy_regions(rq_catalog *c, const rq_region_info *list, size_t count, rq_error *why);
/* Copies the infos of the table's regions into p->arena. */
RQ_NODISCARD
rq_err rq__copy_infos(rq__proc *p, const rq__table_node *t, rq_region_info **ret,
                      size_t *ret_count);

/* The functions below change the view; arguments are borrowed. Each reads the table's current state
 * under the edit lock, so procedures on different regions of one table do not undo each other's
 * changes. RQ_E_TABLE_NOT_FOUND, RQ_E_NO_MEMORY. */
/* Adds the table, or replaces it with all its regions. */
RQ_NODISCARD
rq_err rq__publish_table(rq_catalog *c, rq_table_schema *schema, rq_table_state state,
                         rq__region_node *const *nodes, size_t count, rq_error *why);
/* Keeps the regions of the procedure's table; `schema` NULL: keeps the schema too. */
RQ_NODISCARD
rq_err rq__publish_state(rq_catalog *c, const rq__proc *p, rq_table_schema *schema,
                         rq_table_state state, rq_error *why);
/* Takes regions of the table (`list`; NULL: all) out of service: the view shows them in `state`.
 * *ret: calls, not sent yet, that close the regions that were open. See rq__take_down. */
RQ_NODISCARD
rq_err rq__publish_closed(rq_catalog *c, rq__proc *p, const rq_region_info *list, size_t count,
                          rq_region_state state, rq__calls **ret, rq_error *why);
/* Replaces all regions of the procedure's table by its new ones (p->regions): those in p->opened with
 * the state they have there, the others in the state `unopened`. (ddl_drop.c) */
RQ_NODISCARD
rq_err rq__publish_new_regions(rq_catalog *c, rq__proc *p, rq_table_state state,
                               rq_region_state unopened, rq_error *why);
/* Closes regions of a disabled table that are open: SetTableStateInMeta disables a table without
 * closing them (repair.c). For procedures that hold the table's lock and replace its regions.
 * (ddl_state.c) */
RQ_NODISCARD
rq_err rq__close_left_open(rq_catalog *c, rq__proc *p, rq_error *why);
/* Replaces nodes of the same encoded names in the table; `enables`: also makes the table
 * ENABLED. */
RQ_NODISCARD
rq_err rq__publish_nodes(rq_catalog *c, const rq__proc *p, rq__opened *list, size_t count,
                         bool enables, rq_error *why);
/* Replaces the regions `old` by the nodes. */
RQ_NODISCARD
rq_err rq__publish_swapped(rq_catalog *c, const rq__proc *p, const rq_region_info *old,
                           size_t old_count, rq__region_node *const *nodes, size_t count,
                           rq_error *why);
/* Replaces p->old_regions (may be none) in the view by p->regions, which are not open yet and shown in
 * `state`. */
RQ_NODISCARD
rq_err rq__publish_replaced(rq_catalog *c, const rq__proc *p, rq_region_state state, rq_error *why);
/* Starts a REOPEN_REGION procedure for each region of the list that could not be opened, unless the error
 * is permanent: damaged regions wait for an operator (rq_catalog_assign). */
void rq__reopen_failed(rq_catalog *c, const rq__opened *list, size_t count);
/* The number of names that a region of the table has: its own and one for each replica. 1 if `schema` is NULL, which
 * means that the descriptor cannot be read. */
int rq__region_copies(const rq_table_schema *schema);
/* Rows of opened (or failed) regions. */
RQ_NODISCARD
rq_err rq__batch_opened(rq_catalog *c, rq__batch *b, const rq__opened *list, size_t count);
/* Writes p's opened (or failed) regions to hbase:meta; `enables`: and then that the table is enabled, which is the
 * commit of a create. RQ_E_AGAIN: see rq__parts_write. */
RQ_NODISCARD
rq_err rq__meta_put_opened(rq_catalog *c, rq__proc *p, bool enables, rq_error *why);
/* The same, with rq__meta_note, for regions that were reopened. */
RQ_NODISCARD
rq_err rq__meta_note_opened(rq_catalog *c, const rq__opened *list, size_t count, rq_error *why);
/* Ends the use of p->opened, once meta and the view have it: retries failed regions, releases the nodes. */
void rq__opened_done(rq_catalog *c, rq__proc *p);
/* Makes p->opened for these regions, unless an earlier attempt has made it. REQUIRES: p->schema. */
RQ_NODISCARD
rq_err rq__need_opened(rq__proc *p, const rq_region_info *list, size_t count, rq_error *why);
/* A malloc'ed array for p->regions or other regions. NULL: out of memory. */
rq__opened *rq__opened_new(const rq_region_info *list, size_t count, rq_table_schema *schema);

/* --- retain.c --------------------------------------------------------------------------------- */
/* Sets `last` of each region to the server address in hbase:meta, as a preference for its opening. */
void rq__retain_places(rq_catalog *c, rq__opened *list, size_t count);
/* The same for regions whose server has ended; only with hbase.master.scp.retain.assignment. */
void rq__retain_places_after_end(rq_catalog *c, rq__opened *list, size_t count);

/* --- cluster_limits.c: what a cluster does not do yet. RQ_E_UNSUPPORTED ----------------------- */
RQ_NODISCARD
rq_err rq__cluster_check_schema(const rq_catalog *c, const rq_table_schema *s, rq_error *why);

#endif
