/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog: which namespaces, tables and regions exist, where they are to be open, and the durable
 * procedures that change them. It does the work of HBase's master. The regions themselves are opened
 * by the host (host/host.h), which is also where requests find them.
 *
 * Readers see a *view* of immutable nodes (catalog/view.h). A change publishes a new view by
 * swapping a pointer; the old one is retired through the epoch. Everything that a lookup returns is
 * valid until the end of the caller's read section (a loop's iteration, or an rq_epoch_pin), unless
 * a reference is taken. Changes go through rq_catalog_submit; each is a procedure with a durable
 * record, and a crash at any step leaves the old or the new state.
 *
 * Start: rq_root_open (catalog/root.h: lock, versions, cluster id), rq_engine_open, rq_host_new,
 * rq_catalog_open. Stop: rq_catalog_close, rq_host_free, rq_engine_close, rq_root_close. */
#ifndef RQ_CATALOG_CATALOG_H
#define RQ_CATALOG_CATALOG_H

#include "catalog/root.h"
#include "host/calls.h"

typedef struct rq_catalog rq_catalog;

typedef struct rq_catalog_options {
    rq_host *host; /* borrowed until close */
    /* How servers are reached; copied, its ctx is borrowed until close. NULL: `host` is the only one. */
    const rq_region_calls *calls;
    rq_server_name master; /* copied */
    uint16_t
        info_port; /* port of the HTTP pages, as reported to clients; 0: they cannot reach any */
    const struct rq_config *config; /* base/config.h; borrowed until close. NULL: defaults */
    size_t procedure_bytes_max;     /* memory of unfinished procedures; 0: no limit */
    /* In a cluster: the peers of the catalog (catalog/peers.h) have changed. Called by procedures; returns when every server
     * that is up follows the new list, and blocks for a few seconds at most. After a temporary error such as RQ_E_TIMEOUT
     * the procedure calls it again. NULL: the catalog's own process alone ships the log. */
    rq_err (*peers_changed)(void *ctx, rq_catalog *c, rq_error *why);
    void *peers_ctx;
    /* Bytes of a record of the log in which a procedure writes rows of hbase:meta (ddl_parts.c); 0: RQ__PART_BYTES. */
    size_t part_bytes;
} rq_catalog_options;

/* Blocking. Lays out an empty root; otherwise reads meta, opens the regions of enabled tables and
 * resumes unfinished procedures. A region that cannot be opened is logged, stays closed and answers
 * NotServingRegionException; the other regions are served. */
RQ_NODISCARD
rq_err rq_catalog_open(rq_root *root, const rq_catalog_options *options, rq_catalog **ret,
                       rq_error *why);
/* Blocking. Stops accepting procedures, and returns when no step runs and every client that waits
 * for a procedure has its answer. Call it before closing the ports, which waits for calls. Regions
 * are still served. rq_catalog_close must follow; it calls this if it was not called. */
void rq_catalog_stop(rq_catalog *c);
/* Blocking. Refuses new procedures, waits for running ones, and closes every region with a flush,
 * meta and the procedure store last. `clean` false: as after a crash (for tests): nothing is
 * flushed. NULL is fine. The catalog is freed in any case; returns the first error. */
rq_err rq_catalog_close(rq_catalog *c, bool clean, rq_error *why);

const rq_server_name *rq_catalog_server(const rq_catalog *c);
const rq_server_name *rq_catalog_master(const rq_catalog *c);
/* HBase's info port, for master and region server; 0: clients cannot reach any HTTP pages. */
uint16_t rq_catalog_info_port(const rq_catalog *c);
rq_root *rq_catalog_root(const rq_catalog *c);
rq_host *rq_catalog_host(const rq_catalog *c);
rq_engine *rq_catalog_engine(const rq_catalog *c);
/* For rq_engine_options.region_failed: closes the region with abort and reopens it. Any thread. */
void rq_catalog_region_failed(rq_catalog *c, rq_region *r, const rq_error *why);
/* In a cluster: opens the regions of a dead server on other servers, in the background. REQUIRES: the server is
 * fenced, and rq_region_calls.is_up returns false for it. Any thread; may be repeated. */
void rq_catalog_server_down(rq_catalog *c, const rq_server_name *server);
/* The same for every server for which rq_region_calls.is_up returns false: servers may have ended before this
 * catalog was open. */
void rq_catalog_look_for_ended(rq_catalog *c);

/* Region replicas. There is only this server, so a replica is a name and not a copy: the region
 * itself answers under it, read-only, and marks its answers as possibly stale, as HBase's replicas
 * do. Replications above RQ_REPLICATION_MAX (host/host.h) are refused. */
/* REGION_REPLICATION, limited to 1 … RQ_REPLICATION_MAX. */
int rq_catalog_replication(const rq_table_schema *s);

/* --- regions: read section -------------------------------------------------------------------- */
/* Immutable, part of a view; the host finds it by its names. */
typedef rq_host_region rq_catalog_region;

/* HBASE: TableState.State; on the wire: DO NOT CHANGE. */
typedef enum rq_table_state {
    RQ_TABLE_ENABLED = 0,
    RQ_TABLE_DISABLED = 1,
    RQ_TABLE_DISABLING = 2,
    RQ_TABLE_ENABLING = 3,
} rq_table_state;

/* Immutable, part of a view. */
typedef struct rq_catalog_table {
    rq_table_schema *schema; /* reference it to keep it */
    rq_table_state state;
    size_t region_count;
    size_t replica_count;
} rq_catalog_table;

/* The i-th region, ascending by start key. REQUIRES: i below region_count. */
const rq_catalog_region *rq_catalog_table_region(const rq_catalog_table *t, size_t i);
/* The i-th replica, another name of a region, under REGION_REPLICATION: info has the replica's id
 * and names, everything else is the region's. Ascending by start key, then replica id. REQUIRES: i
 * below replica_count. */
const rq_catalog_region *rq_catalog_table_replica(const rq_catalog_table *t, size_t i);

/* The region, open or not, or the replica, with that encoded name; NULL: unknown. */
const rq_catalog_region *rq_catalog_region_find(const rq_catalog *c, rq_slice encoded);
/* The servers that are up, sorted by their names (rq_server_names_find). The caller has a reference on each name;
 * the list is in the arena. Never blocks. */
RQ_NODISCARD
rq_err rq_catalog_servers(rq_catalog *c, rq_arena *arena, const rq_server_name ***ret,
                          size_t *ret_count);
/* Likewise, the servers that get regions: not those that are decommissioned or end in order. */
RQ_NODISCARD
rq_err rq_catalog_destinations(rq_catalog *c, rq_arena *arena, const rq_server_name ***ret,
                               size_t *ret_count);
/* Likewise, the dead servers; without those at whose address a later server is up. */
RQ_NODISCARD
rq_err rq_catalog_dead_servers(rq_catalog *c, rq_arena *arena, const rq_server_name ***ret,
                               size_t *ret_count);
/* Removes a server from the list of dead servers for good; false: the list does not have it. */
bool rq_catalog_forget_dead(rq_catalog *c, const rq_server_name *server);
/* Whether there may be other servers than this process. */
bool rq_catalog_is_cluster(const rq_catalog *c);
/* Decommissions a server of a cluster, or ends that (`drains` is false). The catalog opens no regions on a decommissioned
 * server unless a client names it. A server that is not up is left as it is. Blocks. */
RQ_NODISCARD
rq_err rq_catalog_drain(rq_catalog *c, const rq_server_name *server, bool drains, rq_error *why);
bool rq_catalog_is_draining(const rq_catalog *c, const rq_server_name *server);
/* Those that drain, up or not, referenced for the caller, in the arena. */
RQ_NODISCARD
rq_err rq_catalog_draining(rq_catalog *c, rq_arena *arena, const rq_server_name ***ret,
                           size_t *ret_count);
/* Begins to move the server's regions to other servers, except those of the namespace hbase. RQ_E_DO_NOT_RETRY: the server
 * has regions, and there is no other server. */
RQ_NODISCARD
rq_err rq_catalog_offload(rq_catalog *c, const rq_server_name *server, rq_error *why);
/* Begins to move regions, given by their encoded names, to the server. Unknown regions are left out; nothing is moved if
 * the server is not up. */
RQ_NODISCARD
rq_err rq_catalog_bring(rq_catalog *c, const rq_server_name *server, const rq_slice *encoded,
                        size_t count, rq_error *why);
/* The load of the region as its server last reported it; false: there is no report. */
bool rq_catalog_load(const rq_catalog *c, const rq_catalog_region *r, rq_region_load *ret);
/* The load that a server of the cluster last reported; false: no report, or there is no cluster. */
bool rq_catalog_server_load(const rq_catalog *c, const rq_server_name *server, rq_server_load *ret);
/* The sources of replication of another server, from its last report; in the arena. */
RQ_NODISCARD
rq_err rq_catalog_server_sources(const rq_catalog *c, const rq_server_name *server, rq_arena *arena,
                                 rq_source_load **ret, size_t *ret_count);
/* "ns:q" or "q". NULL: no such table. hbase:meta counts as a table, the procedure store does
 * not. */
const rq_catalog_table *rq_catalog_table_find(const rq_catalog *c, rq_slice table);
/* All tables, ascending by namespace, then qualifier. */
void rq_catalog_tables(const rq_catalog *c, const rq_catalog_table *const **ret, size_t *ret_count);
/* The region of the table that contains the row, open or not. RQ_E_TABLE_NOT_FOUND;
 * RQ_E_NOT_SERVING_REGION: no region contains it. */
RQ_NODISCARD
rq_err rq_catalog_locate(const rq_catalog *c, rq_slice table, rq_slice row,
                         const rq_catalog_region **ret, rq_error *why);
/* Likewise for a table found in an earlier read section. REQUIRES: rq_catalog_view_number, read in the
 * current section, returns what it returned when the table was found. */
RQ_NODISCARD
rq_err rq_catalog_locate_in(const rq_catalog_table *t, rq_slice row, const rq_catalog_region **ret,
                            rq_error *why);
/* All open regions, meta first; the list is in the arena. */
RQ_NODISCARD
rq_err rq_catalog_online(const rq_catalog *c, rq_arena *arena, const rq_catalog_region ***ret,
                         size_t *ret_count);
/* Increases with every published view, so that caches of derived data can detect changes. */
uint64_t rq_catalog_view_number(const rq_catalog *c);
/* Calls `changed` once for each later view, after it is published, on the publishing thread; it
 * must not block. NULL: no more calls; on return, none is running. One listener at a time. */
void rq_catalog_on_change(rq_catalog *c, void (*changed)(void *ctx), void *ctx);

/* --- namespaces: read section ----------------------------------------------------------------- */
typedef struct rq_namespace {
    rq_slice name;
    rq_attributes configuration;
} rq_namespace;

/* NULL: none of that name. */
const rq_namespace *rq_catalog_namespace_find(const rq_catalog *c, rq_slice name);
/* Ascending by name. */
void rq_catalog_namespaces(const rq_catalog *c, const rq_namespace *const **ret, size_t *ret_count);

/* --- names ------------------------------------------------------------------------------------ */
/* Splits "ns:q" or "q" and checks as HBase's TableName.valueOf; RQ_E_ILLEGAL_ARGUMENT with its
 * texts. The parts point into `name` (or to "default"). */
RQ_NODISCARD
rq_err rq_table_name_parse(rq_slice name, rq_slice *ret_ns, rq_slice *ret_qualifier, rq_error *why);
/* The two parts, as in protobuf messages. */
RQ_NODISCARD
rq_err rq_table_name_check(rq_slice ns, rq_slice qualifier, rq_error *why);
RQ_NODISCARD
rq_err rq__namespace_name_check(rq_slice ns, rq_error *why);

/* --- changes ---------------------------------------------------------------------------------- */
/* In durable records: DO NOT CHANGE. */
typedef enum rq_ddl_kind {
    RQ_DDL_CREATE_TABLE = 1,
    RQ_DDL_DELETE_TABLE = 2,
    RQ_DDL_TRUNCATE_TABLE = 3,
    RQ_DDL_ENABLE_TABLE = 4,
    RQ_DDL_DISABLE_TABLE = 5,
    RQ_DDL_MODIFY_TABLE = 6,
    RQ_DDL_ADD_FAMILY = 7,
    RQ_DDL_MODIFY_FAMILY = 8,
    RQ_DDL_DELETE_FAMILY = 9,
    RQ_DDL_CREATE_NAMESPACE = 10,
    RQ_DDL_MODIFY_NAMESPACE = 11,
    RQ_DDL_DELETE_NAMESPACE = 12,
    RQ_DDL_FLUSH_TABLE = 13,
    RQ_DDL_REOPEN_REGION = 14, /* internal */
    RQ_DDL_SPLIT_REGION = 15,
    RQ_DDL_MERGE_REGIONS = 16,
    RQ_DDL_CLEAN_PARENTS = 17, /* internal: the janitor's */
    RQ_DDL_ASSIGN_REGION = 20,
    RQ_DDL_UNASSIGN_REGION = 21,
    RQ_DDL_TRUNCATE_REGION = 22,
    RQ_DDL_TABLE_TRACKER = 23,
    RQ_DDL_FAMILY_TRACKER = 24,
    RQ_DDL_SNAPSHOT = 30,
    RQ_DDL_DELETE_SNAPSHOT = 31, /* of the table RQ_SNAPSHOT_NS:<name of the snapshot> */
    RQ_DDL_CLONE_SNAPSHOT = 32,
    RQ_DDL_RESTORE_SNAPSHOT = 33,
    RQ_DDL_ADD_PEER = 40,
    RQ_DDL_REMOVE_PEER = 41,
    RQ_DDL_ENABLE_PEER = 42,
    RQ_DDL_DISABLE_PEER = 43,
    RQ_DDL_UPDATE_PEER = 44,
    RQ_DDL_MOVE_REGION = 50,    /* closes an open region and opens it again */
    RQ_DDL_LOCK_NAMESPACE = 51, /* LockService: held until it is released or not renewed */
    RQ_DDL_LOCK_TABLE = 52,
    RQ_DDL_LOCK_TABLE_SHARED = 53,
    RQ_DDL_LOCK_REGIONS = 54,
    RQ_DDL_FILL_HOLES = 60, /* adds regions for key ranges of a table that no region covers */
} rq_ddl_kind;

/* The namespace under which procedures lock snapshots; no table can have it. */
#define RQ_SNAPSHOT_NS ".hbase-snapshot"

/* The parameters of a change: the member that its kind names. Kinds that are not listed have none.
 * `schema` and `descriptor` are serialized protobuf messages; `region` is an encoded name. */
typedef union rq_ddl_params {
    struct {                        /* CREATE_TABLE */
        rq_slice schema;            /* TableSchema */
        const rq_slice *split_keys; /* in any order */
        size_t split_key_count;
    } create;
    struct {             /* MODIFY_TABLE */
        rq_slice schema; /* TableSchema */
        bool no_reopen;  /* reopen_regions = false */
    } modify;
    struct {             /* ADD_FAMILY, MODIFY_FAMILY */
        rq_slice schema; /* ColumnFamilySchema */
    } put_family;
    struct { /* DELETE_FAMILY */
        rq_slice family;
    } delete_family;
    struct {             /* TABLE_TRACKER, FAMILY_TRACKER */
        rq_slice name;   /* of the store-file tracker */
        rq_slice family; /* FAMILY_TRACKER */
    } tracker;
    struct { /* TRUNCATE_TABLE */
        bool preserve_splits;
    } truncate;
    struct { /* FLUSH_TABLE */
        const rq_slice *families;
        size_t family_count; /* 0: all */
    } flush;
    struct { /* SPLIT_REGION */
        rq_slice region;
        rq_slice row;        /* the daughters' boundary; empty: the middle of the region */
        rq_slice shown_name; /* the region's name in messages; empty: the encoded name */
    } split;
    struct { /* MERGE_REGIONS */
        const rq_slice *regions;
        size_t region_count;
        bool forcible; /* merge regions that are not adjacent */
    } merge;
    struct { /* TRUNCATE_REGION, ASSIGN_REGION, UNASSIGN_REGION, MOVE_REGION */
        rq_slice region;
        bool override;   /* UNASSIGN_REGION: a region that is closed already is no error */
        rq_slice server; /* MOVE_REGION: the target, a ServerName; empty: the master chooses */
    } one_region;
    struct { /* SNAPSHOT */
        rq_slice name;
        rq_slice description; /* the complete SnapshotDescription, as the snapshot stores it */
        bool flush;
        bool names_disabled; /* the type becomes DISABLED if the table is disabled */
    } snapshot;
    struct { /* CLONE_SNAPSHOT, RESTORE_SNAPSHOT */
        rq_slice name;
        rq_slice tracker; /* the clone's store-file tracker; empty: the snapshot's */
    } restore;
    struct {                     /* LOCK_… */
        const rq_slice *regions; /* LOCK_REGIONS: encoded names */
        size_t region_count;
        rq_slice description;
    } lock;
    struct {                 /* CREATE_NAMESPACE, MODIFY_NAMESPACE */
        rq_slice descriptor; /* NamespaceDescriptor */
    } put_namespace;
    struct {                  /* ADD_PEER, UPDATE_PEER */
        rq_slice description; /* ReplicationPeerDescription */
    } put_peer;
} rq_ddl_params;

/* A change and, once submitted, the outcome of the submission. The caller fills the first part
 * (slices must stay valid until `submitted` has run) and may free the object in submitted(). */
typedef struct rq_ddl {
    rq_ddl_kind kind;
    rq_slice ns;        /* the namespace that is changed, or the table's */
    rq_slice qualifier; /* the table's; empty for changes of a namespace */
    rq_ddl_params of;
    uint64_t nonce_group, nonce; /* nonce 0: none */
    rq_slice user;
    /* The connection that submits the change; connections share the memory of procedures. 0: the server itself. */
    uint64_t client;
    /* When submitted() runs. With both false it runs when HBase's RPC would return: once the first checks
     * have passed under the table's lock, for alters once the procedure has finished. */
    bool early; /* once accepted: TRUNCATE of clients since 2.0, ENABLE of clients since 1.1 */
    bool wait_finished; /* once the procedure has finished; rc is then its outcome */

    rq_lane *lane; /* where submitted() runs; NULL: any thread */
    void (*submitted)(struct rq_ddl *ddl);

    /* Set when submitted() runs. On an error no procedure exists, or it ended with that error. */
    rq_err rc;
    rq_error why;
    uint64_t proc_id; /* 0: none was made */
    /* The catalog's. */
    rq_catalog *catalog;
    rq_task task;
    struct rq_ddl *next; /* of those with the same nonce */
} rq_ddl;

/* Any thread, never blocks. submitted() runs exactly once, in any case. RQ_E_CALL_QUEUE_TOO_BIG: the
 * unfinished procedures use all of procedure_bytes_max, or those of ddl->client all of its share. */
void rq_catalog_submit(rq_catalog *c, rq_ddl *ddl);

/* --- procedures ------------------------------------------------------------------------------- */
/* What a procedure locks while it runs. All locks but TABLE_SHARED are exclusive. */
typedef enum rq_lock_level {
    RQ_LOCK_TABLE,
    RQ_LOCK_REGIONS, /* the regions it names; the table's other regions may change meanwhile */
    RQ_LOCK_NAMESPACE,
    RQ_LOCK_TABLE_SHARED,
} rq_lock_level;

typedef struct rq_procedure {
    uint64_t id;
    rq_ddl_kind kind; /* 0: the record is of a kind that this version does not know, or garbage */
    const char *java_class; /* as clients are shown it */
    rq_slice ns, qualifier;
    rq_slice user;
    uint64_t nonce_group, nonce;
    int64_t submitted_ms, updated_ms;
    bool finished;
    bool waiting; /* for a lock; or for its next attempt, without holding a lock */
    bool holds;   /* a LockService procedure that has got its lock; it runs no step */
    rq_lock_level level;
    rq_slice *regions; /* REGIONS, unfinished: their encoded names */
    size_t region_count;
    bool parked; /* a step failed: it waits for an abort, a bypass or a late retry (procedure.h) */
    const char *step;
    rq_err rc; /* finished: the outcome; otherwise the error of the last attempt, if it failed */
    const char *message;
} rq_procedure;

/* False: unknown (never existed, or its result was evicted), or memory is exhausted. Strings are
 * copied into the arena. Any thread. */
bool rq_catalog_procedure(rq_catalog *c, uint64_t proc_id, rq_arena *arena, rq_procedure *ret);
/* All that are kept, ascending by id. The finished ones are copied some at a time, so that the lock is held for a short time; those
 * that are evicted meanwhile are left out. */
RQ_NODISCARD
rq_err rq_catalog_procedures(rq_catalog *c, rq_arena *arena, rq_procedure **ret, size_t *ret_count);
/* Likewise those that are not finished. */
RQ_NODISCARD
rq_err rq_catalog_unfinished_procedures(rq_catalog *c, rq_arena *arena, rq_procedure **ret,
                                        size_t *ret_count);
/* Unfinished procedures by state, and procedures that have succeeded and failed since the start.
 * Any thread; visits every unfinished procedure. */
typedef struct rq_procedure_counts {
    uint64_t running, waiting, parked;
    uint64_t succeeded, failed;
} rq_procedure_counts;
void rq_catalog_procedure_counts(rq_catalog *c, rq_procedure_counts *ret);
/* Waits for a procedure's end without a thread. The caller fills the first part, and keeps the object until
 * the task has run or _unwatch has returned true. */
typedef struct rq_procedure_watch {
    rq_lane *lane; /* where the task runs */
    rq_task task;
    /* The catalog's. */
    struct rq_procedure_watch *next, **at;
} rq_procedure_watch;
/* True: the task will be posted, once: when the procedure has finished or is parked, or the catalog stops.
 * False: it is not running, or there are too many watches. Any thread, never blocks. */
bool rq_catalog_procedure_watch(rq_catalog *c, uint64_t proc_id, rq_procedure_watch *watch);
/* False: the task was posted. Any thread. */
bool rq_catalog_procedure_unwatch(rq_catalog *c, rq_procedure_watch *watch);
/* Drops a kept result early (HBase's client calls this after reading it). */
void rq_catalog_procedure_forget(rq_catalog *c, uint64_t proc_id);
/* Rolls an unfinished procedure back. False: it is unknown or finished, of a kind that HBase never
 * aborts (flushes, assignments, peers, restoring a snapshot), or past its commit; with `if_running`
 * false, also if it has begun. A parked procedure is ended in any case, as by _bypass. Any thread,
 * never blocks. */
bool rq_catalog_procedure_abort(rq_catalog *c, uint64_t proc_id, bool if_running);
/* Ends an unfinished procedure. Before its commit it is rolled back; after it each remaining step
 * is tried once more, and steps that fail again are skipped. If rows of hbase:meta would be missing or
 * left over after its end, it is tried once more and stays parked. False: it is unknown or finished, or
 * is executing a step after its commit. Any thread, never blocks. */
bool rq_catalog_procedure_bypass(rq_catalog *c, uint64_t proc_id);
/* LockService's heartbeat for the lock of a RQ_DDL_LOCK_… procedure: renews the lock, or (`keep`
 * false) releases it. *ret_held: the procedure holds the lock. RQ_E_DO_NOT_RETRY: the procedure is of
 * another kind. Any thread, never blocks. */
RQ_NODISCARD
rq_err rq_catalog_lock_heartbeat(rq_catalog *c, uint64_t proc_id, bool keep, bool *ret_held,
                                 rq_error *why);
/* HBase's class of the procedure, "org.apache.hadoop.hbase.master.procedure.…Procedure"; "":
 * unknown. */
const char *rq_ddl_java_class(rq_ddl_kind kind);
/* HBase's progress of an alter: the number of the table's regions that are not open, and of
 * all. */
void rq_catalog_alter_status(rq_catalog *c, rq_slice table, uint32_t *ret_to_update,
                             uint32_t *ret_total);

/* Retries in the background to open a region that could not be opened (RQ_REGION_FAILED_OPEN),
 * until it succeeds. RQ_E_UNKNOWN_REGION; RQ_E_DO_NOT_RETRY when it is not in that state. Any
 * thread. */
RQ_NODISCARD
rq_err rq_catalog_assign(rq_catalog *c, rq_slice encoded, rq_error *why);
/* Blocking: archives MOB files without references (region/mob_cleaner.h). */
RQ_NODISCARD
rq_err rq__catalog_clean_mob(rq_catalog *c, size_t *ret_archived, rq_error *why);
/* Requests a compaction with MOB files for the MOB families of open regions: of one table
 * (table.len > 0) and family (family.len > 0), or of all. */
RQ_NODISCARD
rq_err rq_catalog_compact_mob(rq_catalog *c, rq_slice table, rq_slice family, rq_error *why);
/* Runs a round of the archive's cleaner; *ret_ran false if it is switched off or already running.
 * Blocking. */
RQ_NODISCARD
rq_err rq_catalog_clean_archive(rq_catalog *c, bool *ret_ran, rq_error *why);

/* Flushes the region of the procedures, master:store. Blocking. */
RQ_NODISCARD
rq_err rq_catalog_flush_store(rq_catalog *c, rq_error *why);
/* Splits and merges regions of these tables (`names`: "ns:q" or "q", sorted; NULL: all) as the
 * normalizer plans it; the procedures are not waited for. *ret_ran false: it is switched off. Outside a read
 * section. */
RQ_NODISCARD
rq_err rq_catalog_normalize(rq_catalog *c, const rq_slice *names, size_t count, bool *ret_ran);
typedef struct rq_balance_options {
    bool dry;                 /* nothing is moved; also while the balancer is switched off */
    bool ignores_transitions; /* it runs even while regions are being opened or closed */
} rq_balance_options;
typedef struct rq_balance {
    bool ran;              /* false: the balancer is switched off, or regions are in transition */
    size_t planned, begun; /* moves */
} rq_balance;
/* Moves regions to servers that have fewer; the procedures are not waited for. Outside a read section. */
RQ_NODISCARD
rq_err rq_catalog_balance(rq_catalog *c, const rq_balance_options *o, rq_balance *ret);
/* Archives split and merged regions to which no file refers any more. *ret_count: their number, or -1
 * if another call is still running. Blocking. */
RQ_NODISCARD
rq_err rq_catalog_clean_parents(rq_catalog *c, int64_t *ret_count, rq_error *why);
/* For rq_engine_options.region_grown: splits the region if its table's policy asks for it. */
void rq_catalog_region_grown(rq_catalog *c, rq_region *r);

/* --- snapshots -------------------------------------------------------------------------------- */
typedef struct rq_snapshot {
    rq_slice name;
    rq_slice table;       /* as displayed */
    rq_slice description; /* SnapshotDescription */
    int64_t created_ms, ttl_s;
} rq_snapshot;

typedef struct rq_snapshot_size {
    rq_slice name, table;
    uint64_t bytes; /* of files that the table, and snapshots before it in the list, do not have */
} rq_snapshot_size;

/* Sizes of the snapshots of all tables for which takes() returns true, ordered by table, then name, in
 * the arena. Blocking: looks for each file of the snapshots. */
RQ_NODISCARD
rq_err rq_catalog_snapshot_sizes(rq_catalog *c, bool (*takes)(void *ctx, rq_slice table), void *ctx,
                                 rq_arena *arena, rq_snapshot_size **ret, size_t *ret_count,
                                 rq_error *why);
/* All snapshots, ascending by name, in the arena; damaged ones are logged and left out. Blocking. */
RQ_NODISCARD
rq_err rq_catalog_snapshots(rq_catalog *c, rq_arena *arena, rq_snapshot **ret, size_t *ret_count,
                            rq_error *why);
/* Whether there is a snapshot of that name; RQ_E_SNAPSHOT_UNKNOWN: there is none, and none is being
 * taken. Blocking. */
RQ_NODISCARD
rq_err rq_catalog_snapshot_done(rq_catalog *c, rq_slice name, bool *ret);

/* --- rows of the server's own tables (rows.c); blocking ---------------------------------------- */
/* Creates hbase:quota if it does not exist. */
RQ_NODISCARD
rq_err rq_catalog_need_quota_table(rq_catalog *c, rq_error *why);
/* Calls `dropped` when the quotas of a dropped table were removed from hbase:quota, on the thread
 * of the procedure; it must not block. NULL: no more calls, and none is running. */
void rq_catalog_on_quotas_dropped(rq_catalog *c, void (*dropped)(void *ctx), void *ctx);
/* Creates hbase:rsgroup if it does not exist. */
RQ_NODISCARD
rq_err rq_catalog_need_rsgroup_table(rq_catalog *c, rq_error *why);
/* One column of a row; value.ptr NULL: deleted. */
typedef struct rq_row_change {
    rq_slice row, value;
} rq_row_change;
/* Changes the column in rows of a table with one region, all or nothing. Durable on return. */
RQ_NODISCARD
rq_err rq_catalog_rows_change(rq_catalog *c, rq_slice table, const char *family, rq_slice qualifier,
                              const rq_row_change *list, size_t count, rq_error *why);
/* Durable on return. */
RQ_NODISCARD
rq_err rq_catalog_row_put(rq_catalog *c, rq_slice table, rq_slice row, const char *family,
                          rq_slice qualifier, rq_slice value, rq_error *why);
/* `qualifier` NULL: the whole family. */
RQ_NODISCARD
rq_err rq_catalog_row_delete(rq_catalog *c, rq_slice table, rq_slice row, const char *family,
                             const rq_slice *qualifier, rq_error *why);
/* Calls `callback` with the newest cells of the row, valid during the call; not if the row has none. */
RQ_NODISCARD
rq_err rq_catalog_row(rq_catalog *c, rq_slice table, rq_slice row,
                      rq_err (*callback)(void *ctx, const rq_cell *cells, size_t count,
                                         rq_error *why),
                      void *ctx, rq_error *why);
/* Calls `callback` for each row of the table, with the row's newest cells, valid during the call. */
RQ_NODISCARD
rq_err rq_catalog_each_row(rq_catalog *c, rq_slice table,
                           rq_err (*callback)(void *ctx, const rq_cell *cells, size_t count,
                                              rq_error *why),
                           void *ctx, rq_error *why);

/* --- checks and repairs by hand (HBCK2) ------------------------------------------------------- */
typedef struct rq_catalog_report {
    uint64_t tables, regions;
    uint64_t holes;    /* borders of regions that do not meet */
    uint64_t not_open; /* regions of enabled tables that could not be opened */
    uint64_t orphans;  /* folders of regions that nobody knows */
} rq_catalog_report;

/* Compares the view with the folder and logs what it finds (check.c). *ret_ran false: another call
 * is still running. Blocking. */
RQ_NODISCARD
rq_err rq_catalog_check(rq_catalog *c, bool *ret_ran, rq_catalog_report *ret, rq_error *why);
/* Repairs what the check calls holes and overlaps, table by table (fix.c): regions are added, and
 * overlapping ones are merged. Blocking. RQ_E_DO_NOT_RETRY names the first table that could not be
 * repaired, after all others were. */
RQ_NODISCARD
rq_err rq_catalog_fix(rq_catalog *c, rq_slice user, rq_error *why);
/* Sets a state in hbase:meta and in the view, without the locks of procedures: for tables whose
 * procedure is stuck. No region is opened or closed. Blocking. RQ_E_TABLE_NOT_FOUND. */
RQ_NODISCARD
rq_err rq_catalog_set_table_state(rq_catalog *c, rq_slice ns, rq_slice qualifier,
                                  rq_table_state state, rq_table_state *ret_before, rq_error *why);
/* The same for a region: `name` is the state's name, written to hbase:meta; `shown` the state in the
 * view. A region that is open is still shown as open. Blocking. RQ_E_UNKNOWN_REGION. */
RQ_NODISCARD
rq_err rq_catalog_set_region_state(rq_catalog *c, rq_slice encoded, const char *name,
                                   rq_region_state shown, rq_region_state *ret_before,
                                   rq_error *why);

/* hbase.master.maintenance_mode: the start opens only tables of the namespace hbase. */
bool rq_catalog_in_maintenance(const rq_catalog *c);

/* --- switches --------------------------------------------------------------------------------- */
typedef enum rq_switch {
    RQ_SWITCH_BALANCER,
    RQ_SWITCH_NORMALIZER,
    RQ_SWITCH_SPLIT,
    RQ_SWITCH_MERGE,
    RQ_SWITCH_CATALOG_JANITOR,
    RQ_SWITCH_CLEANER,
    RQ_SWITCH_SNAPSHOT_CLEANUP,
    RQ_SWITCH_PEER_MODIFICATION,
    RQ_SWITCH_RPC_THROTTLE, /* HBase keeps it in ZooKeeper */
    RQ_SWITCH_COUNT
} rq_switch;

bool rq_catalog_switch_get(const rq_catalog *c, rq_switch which);
/* Blocking (durable on return, for switches that HBase stores). */
RQ_NODISCARD
rq_err rq_catalog_switch_set(rq_catalog *c, rq_switch which, bool on, bool *ret_before,
                             rq_error *why);

#endif
