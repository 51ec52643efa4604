/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalog: which namespaces, tables and regions exist, which regions are open here, and the
 * durable procedures that change any of it. It is master and assignment of the one server.
 *
 * On the way of a Put or Get it is the first stop: region name → open region, without a lock.
 *
 * Readers see a *view* of immutable nodes (catalog/view.h), replaced by publishing a pointer; the
 * old one is retired through the epoch. Whatever a lookup returns is valid until the end of the
 * caller's read section (a loop's iteration, or an rq_epoch_pin), unless it is referenced. Changes go through rq_catalog_submit; each is a procedure with a durable
 * record, and a crash at any step leaves the old or the new state.
 *
 * A server starts with rq_root_open (catalog/root.h: lock, versions, cluster id), rq_engine_open,
 * rq_catalog_open; it ends with rq_catalog_close, rq_engine_close, rq_root_close.
 */
#ifndef RQ_CATALOG_CATALOG_H
#define RQ_CATALOG_CATALOG_H

#include "catalog/root.h"
#include "region/engine.h"

typedef struct rq_catalog rq_catalog;

typedef struct rq_server_name {
    const char *host; /* what clients are told */
    uint16_t port;
    int64_t start_code; /* wall clock at start, ms */
    const char *text;   /* "host,port,startcode"; filled in by the catalog */
} rq_server_name;

typedef struct rq_catalog_options {
    rq_server_name server; /* copied */
    rq_server_name master;
    const struct rq_config *config; /* base/config.h; borrowed until close. NULL: defaults */
} rq_catalog_options;

/*
 * Blocking. On an empty root lays everything out; else reads meta, opens the regions of enabled
 * tables and resumes unfinished procedures. A region that cannot be opened is logged, stays closed
 * and answers NotServingRegionException; the rest is served.
 */
RQ_NODISCARD
rq_err rq_catalog_open(rq_engine *engine, rq_root *root, const rq_catalog_options *options,
                       rq_catalog **ret, rq_error *why);
/* Blocking. From now on no procedure is accepted; returns when no step runs and everybody who waits
 * for a procedure has been answered: before the ports are closed, which waits for calls. Regions
 * are served on. Followed by rq_catalog_close, which does the same where it was not done. */
void rq_catalog_stop(rq_catalog *c);
/* Blocking. New procedures are refused, running ones finish; closes every region with a flush, meta
 * and the procedure store last. `clean` false: as after a crash (tests): nothing is flushed. NULL
 * is fine. The catalog is freed in any case; the first error is returned. */
rq_err rq_catalog_close(rq_catalog *c, bool clean, rq_error *why);

const rq_server_name *rq_catalog_server(const rq_catalog *c);
const rq_server_name *rq_catalog_master(const rq_catalog *c);
rq_root *rq_catalog_root(const rq_catalog *c);
rq_engine *rq_catalog_engine(const rq_catalog *c);
/* For rq_engine_options.region_failed: closes the region with abort and opens it again. Any thread.
 */
void rq_catalog_region_failed(rq_catalog *c, rq_region *r, const rq_error *why);

/*
 * Region replicas. This server is the only one, so a replica is a name and no copy: the region
 * itself answers under it, read-only, and says that its answer may be stale, as HBase's do. More
 * than this many are refused.
 */
#define RQ_REPLICATION_MAX 64
/* REGION_REPLICATION, within 1 and that. */
int rq_catalog_replication(const rq_table_schema *s);

/* --- regions: read section -------------------------------------------------------------------- */
/* HBASE: RegionState.State; as meta's info:state names them. */
typedef enum rq_region_state {
    RQ_REGION_OFFLINE,
    RQ_REGION_OPENING,
    RQ_REGION_OPEN,
    RQ_REGION_CLOSING,
    RQ_REGION_CLOSED,
    RQ_REGION_FAILED_OPEN, /* `failure` says why; closed until an operator acts */
    RQ_REGION_SPLITTING,
    RQ_REGION_SPLIT, /* never in a view: daughters are in its place */
    RQ_REGION_MERGING,
} rq_region_state;
#define RQ_REGION_STATES (RQ_REGION_MERGING + 1)

/* Immutable, part of a view. */
typedef struct rq_catalog_region {
    const rq_region_info *info;
    rq_region *region; /* RQ_REGION_OPEN only, else NULL */
    rq_region_state state;
    const char *failure;
    int64_t open_seqnum; /* meta's info:seqnumDuringOpen */
    int64_t changed_ms;  /* when the state was entered */
} rq_catalog_region;

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
/* Other names of the same regions, under REGION_REPLICATION: info has the replica's id and names,
 * all else is the region's own. By start key, then replica id. REQUIRES: i below replica_count. */
const rq_catalog_region *rq_catalog_table_replica(const rq_catalog_table *t, size_t i);

/*
 * The open region of a RegionSpecifier of type REGION_NAME (binary region name; HBase looks at the
 * encoded part alone) or ENCODED_REGION_NAME. RQ_E_NOT_SERVING_REGION "… is not online on …",
 * RQ_E_REGION_OPENING, as HBase.
 */
RQ_NODISCARD
rq_err rq_catalog_region_by_name(const rq_catalog *c, rq_slice region_name, rq_region **ret,
                                 rq_error *why);
RQ_NODISCARD
rq_err rq_catalog_region_by_encoded(const rq_catalog *c, rq_slice encoded, rq_region **ret,
                                    rq_error *why);
/* The same, and what it is called: ->info->replica_id above 0 if a replica was named. ->region is
 * set. */
RQ_NODISCARD
rq_err rq_catalog_replica_by_name(const rq_catalog *c, rq_slice region_name,
                                  const rq_catalog_region **ret, rq_error *why);
RQ_NODISCARD
rq_err rq_catalog_replica_by_encoded(const rq_catalog *c, rq_slice encoded,
                                     const rq_catalog_region **ret, rq_error *why);
/* Open or not, replicas too; NULL when the catalog knows none of that encoded name. */
const rq_catalog_region *rq_catalog_region_find(const rq_catalog *c, rq_slice encoded);
/* "ns:q" or "q". NULL: no such table. hbase:meta is a table; the procedure store is none. */
const rq_catalog_table *rq_catalog_table_find(const rq_catalog *c, rq_slice table);
/* All tables, ascending by namespace, then qualifier. */
void rq_catalog_tables(const rq_catalog *c, const rq_catalog_table *const **ret, size_t *ret_count);
/* The region of the table that holds the row, open or not. RQ_E_TABLE_NOT_FOUND. */
RQ_NODISCARD
rq_err rq_catalog_locate(const rq_catalog *c, rq_slice table, rq_slice row,
                         const rq_catalog_region **ret, rq_error *why);
/* All regions that are open, meta first, listed in the arena. */
RQ_NODISCARD
rq_err rq_catalog_online(const rq_catalog *c, rq_arena *arena, const rq_catalog_region ***ret,
                         size_t *ret_count);
/* Grows with every published view: whoever caches something derived can tell. */
uint64_t rq_catalog_view_number(const rq_catalog *c);
/* `changed` is called once for each later view, after it is published, by the thread that did it;
 * it must not block. NULL: no longer; when that returns, no call is under way. One listener at a
 * time. */
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
/* The two parts as they come in protobuf messages. */
RQ_NODISCARD
rq_err rq_table_name_check(rq_slice ns, rq_slice qualifier, rq_error *why);
RQ_NODISCARD
rq_err rq_namespace_name_check(rq_slice ns, rq_error *why);
/* "ns:q", or "q" in the default namespace. .ptr NULL when memory is out. */
rq_slice rq_table_name_join(rq_arena *a, rq_slice ns, rq_slice qualifier);

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
} rq_ddl_kind;

/*
 * A change and, once submitted, what became of the submission. The caller fills the first part
 * (slices stay his until `submitted` has run) and may free the object in submitted().
 */
typedef struct rq_ddl {
    rq_ddl_kind kind;
    rq_slice ns;        /* tables: of the table; namespaces: the name */
    rq_slice qualifier; /* tables */
    /* CREATE_TABLE, MODIFY_TABLE: TableSchema. ADD/MODIFY_FAMILY: ColumnFamilySchema.
     * CREATE/MODIFY_NAMESPACE: NamespaceDescriptor. Serialized protobuf. TABLE/FAMILY_TRACKER: the
     * store-file tracker's name. */
    rq_slice descriptor;
    rq_slice family; /* DELETE_FAMILY, FAMILY_TRACKER; SPLIT/TRUNCATE/ASSIGN/UNASSIGN_REGION: the
                        encoded name */
    /* CREATE_TABLE: split keys, in any order. FLUSH_TABLE: families, none for all. SPLIT_REGION:
     * the row, empty or none for the middle; behind it the region's name for messages.
     * MERGE_REGIONS: encoded names. */
    const rq_slice *split_keys;
    size_t split_key_count;
    bool preserve_splits;        /* TRUNCATE_TABLE */
    bool no_reopen;              /* MODIFY_TABLE with reopen_regions = false */
    bool forcible;               /* MERGE_REGIONS that do not touch */
    uint64_t nonce_group, nonce; /* nonce 0: none */
    rq_slice user;
    /* When submitted() runs. Otherwise: as HBase's RPC returns, which is once the first checks have
     * passed under the table's lock, and for alters once all is done. */
    bool early; /* once accepted: TRUNCATE of clients since 2.0, ENABLE of those since 1.1 */
    bool wait_finished; /* once all is done; rc is then the procedure's outcome */

    rq_lane *lane; /* where submitted() runs; NULL: any thread */
    void (*submitted)(struct rq_ddl *ddl);

    /* Set when submitted() runs. On an error no procedure exists, or it ended with that error. */
    rq_err rc;
    rq_error why;
    uint64_t proc_id; /* 0: none was made */
    /* The catalog's. */
    rq_catalog *catalog;
    rq_task task;
    struct rq_ddl *next; /* of those that wait for the same record */
} rq_ddl;

/* Any thread, never blocks. submitted() runs once, always. */
void rq_catalog_submit(rq_catalog *c, rq_ddl *ddl);
/* For pools, tools, tests: submits and waits until the procedure has *finished*. */
RQ_NODISCARD
rq_err rq_catalog_ddl_sync(rq_catalog *c, rq_ddl *ddl, rq_error *why);

/* --- procedures ------------------------------------------------------------------------------- */
typedef struct rq_procedure {
    uint64_t id;
    rq_ddl_kind kind; /* 0: its record is of a kind that this version does not know, or garbage */
    const char *java_class; /* as clients are shown it */
    rq_slice ns, qualifier;
    rq_slice user;
    uint64_t nonce_group, nonce;
    int64_t submitted_ms, updated_ms;
    bool finished;
    bool waiting; /* for a lock, or without one for its next attempt */
    bool parked;  /* its step failed for good: it waits for rq_catalog_procedure_abort */
    const char *step;
    rq_err rc; /* finished: the outcome; else the error of the last attempt, if it failed */
    const char *message;
} rq_procedure;

/* False: unknown (never existed, or its result was evicted). Strings are copied into the arena. Any
 * thread. */
bool rq_catalog_procedure(rq_catalog *c, uint64_t proc_id, rq_arena *arena, rq_procedure *ret);
/* All that are kept, ascending by id. */
RQ_NODISCARD
rq_err rq_catalog_procedures(rq_catalog *c, rq_arena *arena, rq_procedure **ret, size_t *ret_count);
/* How many procedures there are in each state, and since the start how many ended well and did not. Any
 * thread; costs a look at each unfinished one. */
typedef struct rq_procedure_counts {
    uint64_t running, waiting, parked;
    uint64_t succeeded, failed;
} rq_procedure_counts;
void rq_catalog_procedure_counts(rq_catalog *c, rq_procedure_counts *ret);
/* Drops the kept result sooner (HBase's client does so after it took it). */
void rq_catalog_procedure_forget(rq_catalog *c, uint64_t proc_id);
/* Ends an unfinished procedure. Before its commit it is undone; behind it each remaining step is
 * tried once more, and what fails again is left out. False: it is unknown or finished, or it runs
 * and is behind its commit; with `if_running` false also when it has begun. Any thread, never
 * blocks. */
bool rq_catalog_procedure_abort(rq_catalog *c, uint64_t proc_id, bool if_running);
/* HBase's "ConvertClassName"-style names: "org.apache.hadoop.hbase.master.procedure.…Procedure". */
const char *rq_ddl_java_class(rq_ddl_kind kind);
/* HBase's progress of an alter: regions that still have the old schema, and all. */
RQ_NODISCARD
rq_err rq_catalog_alter_status(rq_catalog *c, rq_slice table, uint32_t *ret_to_update,
                               uint32_t *ret_total, rq_error *why);

/* Opens a region that could not be opened (RQ_REGION_FAILED_OPEN) again, in the background, until
 * it succeeds. RQ_E_UNKNOWN_REGION; RQ_E_DO_NOT_RETRY when it is not in that state. Any thread. */
RQ_NODISCARD
rq_err rq_catalog_assign(rq_catalog *c, rq_slice encoded, rq_error *why);
/* Blocking: MOB files that nobody refers to go to the archive (region/mob_cleaner.h). */
RQ_NODISCARD
rq_err rq_catalog_clean_mob(rq_catalog *c, size_t *ret_archived, rq_error *why);
/* Asks for a compaction with MOB files of the open regions' MOB families: of one table
 * (table.len > 0) and family (family.len > 0), or of all. */
RQ_NODISCARD
rq_err rq_catalog_compact_mob(rq_catalog *c, rq_slice table, rq_slice family, rq_error *why);
/* A round of the archive's cleaner; *ret_ran false when it is switched off or at work already.
 * Blocking. */
RQ_NODISCARD
rq_err rq_catalog_clean_archive(rq_catalog *c, bool *ret_ran, rq_error *why);

/* Archives regions that were split or merged and that nobody refers to any more; how many.
 * Blocking.
 */
RQ_NODISCARD
rq_err rq_catalog_clean_parents(rq_catalog *c, uint64_t *ret_count, rq_error *why);
/* By its table's policy, and having no references itself. HBASE: HRegion.isSplittable. */
bool rq_catalog_region_is_splittable(rq_catalog *c, rq_region *r);
/* Where it would be split, in the arena; ret->len 0: nowhere. Blocking, may flush. */
RQ_NODISCARD
rq_err rq_catalog_split_point(rq_catalog *c, rq_region *r, rq_arena *arena, rq_slice *ret,
                              rq_error *why);
/* For rq_engine_options.region_grown: splits the region when its table's policy says so. */
void rq_catalog_region_grown(rq_catalog *c, rq_region *r);

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
    RQ_SWITCH_COMPACTION, /* the region server's; like janitor's and cleaner's not kept */
    RQ_SWITCH_COUNT
} rq_switch;

bool rq_catalog_switch_get(const rq_catalog *c, rq_switch which);
/* Blocking (durable when it returns, for those HBase remembers). */
RQ_NODISCARD
rq_err rq_catalog_switch_set(rq_catalog *c, rq_switch which, bool on, bool *ret_before,
                             rq_error *why);

#endif
