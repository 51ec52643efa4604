/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librorqual: HBase's data model for C programs. One API on three kinds of databases, chosen by a
 * URL (rq_connect):
 *
 *   "hbase://host:2181"          a cluster, Rorqual or HBase, found through its ZooKeeper
 *   "hbase+rpc://host:16020"     a cluster, found through one of its servers
 *   "hbase://a:2181,b:2181/zn"   several addresses, also with hbase+rpc: one of them is asked, at random, and the next
 *                                one if it does not answer; with hbase: a path is the cluster's znode
 *   "file:/path"                 a folder of this machine, in this process, without a server; also
 *                                "file:///path" and "file:path" (relative to the working directory)
 *   "memory:"                    as file:, in memory; gone when it is closed
 *
 *     rq_db *db; rq_table *users; rq_failure why = {.size = sizeof why};
 *     rq_family cf = {.name = "cf"};
 *     rq_table_spec spec = {.size = sizeof spec, .name = "users", .families = &cf, .family_count = 1};
 *     if (rq_connect("file:/tmp/db", NULL, &db, &why) != RQ_OK ||
 *         rq_table_create(db, &spec, &why) != RQ_OK ||
 *         rq_table_open(db, "users", &users, &why) != RQ_OK ||
 *         rq_put_value(users, rq_text("ann"), rq_text("cf"), rq_text("age"), rq_text("31"), &why) != RQ_OK)
 *         puts(why.message);
 *
 * Conventions
 *  1. Errors. A call that can fail returns an rq_err, RQ_OK (0) for success, and fills its last
 *     parameter, which may be NULL. On an error, results (parameters named ret) are unchanged
 *     unless the declaration says otherwise. Every call on a database may return RQ_E_FORKED (it
 *     was opened by the parent process), RQ_E_CLOSED, RQ_E_INVALID (an argument) and
 *     RQ_E_NO_MEMORY; the declarations do not repeat these. Where the declaration does not allow NULL, a NULL argument
 *     is refused with RQ_E_INVALID (a NULL name perhaps with RQ_E_ILLEGAL_ARGUMENT); this includes handles and the
 *     places of results.
 *  2. Bytes. rq_bytes are borrowed: a call copies what it keeps, and what a result contains lives
 *     until the result is freed. Bytes with a length and without data are refused.
 *  3. Structs that the caller fills begin with `size`, set to the struct's sizeof; fields that are
 *     zero have the default that their comment gives. Later versions append fields; if a field that this version does
 *     not have is not zero, the call is refused (RQ_E_UNSUPPORTED). Pointers to arrays come with a count; both may be
 *     0.
 *  4. Threads. Any thread may use any database or table, also at the same time. A scanner or a result may be used by
 *     one thread at a time. When an object is freed, no other thread may be using it, and afterwards no thread (tables and
 *     scanners of a closed database excepted: rq_disconnect). The library does not detect violations of these rules; their effect is
 *     undefined. A signal handler may interrupt any call, which then continues; it may not make calls itself.
 *  5. Time. Timestamps are milliseconds since 1970; time ranges are [min, max).
 *  6. The library prints nothing, ends no process and installs no signal handler; its threads block
 *     all signals, and with rq_connect_options.no_threads it has none. Its only mutable global state is a list of the
 *     folders that it has locked: a fork handler (pthread_atfork) uses the list to release the child's copies of the
 *     locks. After a fork the child can use no database of its parent: every call returns RQ_E_FORKED and touches
 *     nothing that the parent uses. It may open databases of its own, also the parent's folder once the parent has
 *     closed it or ended.
 *  7. Limits are HBase's: rows of 1 to 32,767 bytes, families of printable characters.
 */
#ifndef RORQUAL_H
#define RORQUAL_H

#include "rorqual/errors.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Borrowed bytes; data may be NULL when len is 0. */
typedef struct rq_bytes {
    const void *data;
    size_t len;
} rq_bytes;

static inline rq_bytes rq_text(const char *text)
{
    rq_bytes b = {text, strlen(text)};
    return b;
}

static inline rq_bytes rq_bytes_of(const void *data, size_t len)
{
    rq_bytes b = {data, len};
    return b;
}

/* The library's version, "0.1.0"; a static string. */
RQ_API const char *rq_version(void);

/* --- failures --------------------------------------------------------------------------------- */

/* rq_failure.action of a call that is no batch, or whose failure is not that of one action. */
#define RQ_NO_ACTION SIZE_MAX

/* Why a call failed. Allocated by the caller, who sets `size`; a failed call sets the rest, a successful one nothing. */
typedef struct rq_failure {
    size_t size;
    rq_err code;
    /* A later call may succeed. The library has already repeated this one until its timeout. */
    bool retryable;
    size_t action;        /* the index of the batch's action that failed first, or RQ_NO_ACTION */
    char hbase_class[96]; /* HBase's exception, "org.apache.hadoop.hbase.TableNotFoundException" */
    char message[1024];   /* one line or more, for people; longer texts are cut */
} rq_failure;

/* --- databases -------------------------------------------------------------------------------- */

typedef struct rq_db rq_db;

/* A name and a value, both terminated by NUL. */
typedef struct rq_property {
    const char *name;
    const char *value;
} rq_property;

typedef struct rq_connect_options {
    size_t size;
    /* How long a call may take, repetitions included, in milliseconds; 0: 60,000. */
    uint32_t timeout_ms;
    /* The user's name that a cluster is told; NULL: the name of the process's user. */
    const char *user;
    /* hbase:// only: the cluster's znode; NULL: the URL's path, or /hbase. */
    const char *znode_parent;
    /* file: and memory: only: settings of the engine by HBase's names (docs/settings.md), e.g.
     * rorqual.wal.sync = handover or hbase.hregion.memstore.flush.size. */
    const rq_property *settings;
    size_t setting_count;
    /* file: only: fail with RQ_E_NOT_FOUND if there is no folder, instead of making one. */
    bool must_exist;
    /* Completions of asynchronous calls run on a thread of the library; else inside rq_poll. */
    bool completion_thread;
    uint8_t reserved[6]; /* 0; padding in older programs, which may have left it as it was */
    /* file: and memory: only, and not with completion_thread: the library starts no thread. The
     * engine's own work (log, flushes, compactions, timers) is done by the threads that are in a call:
     *  - a call that waits (for the disk, for memory, for a definition) does that work meanwhile;
     *  - a call that has changed rows also does waiting work, flushes before compactions, for 1 ms or
     *    until the piece that it has begun can be interrupted (a sync of a file cannot);
     *  - rq_poll does it until the calls it waits for have ended, or, if none is outstanding, until
     *    nothing is left to do or its timeout is over.
     * When memory is full and nobody has polled, a put takes as long as a flush. Between calls nothing
     * happens: an idle program calls rq_poll from time to time, or when rq_descriptor's descriptor is
     * readable. What is acknowledged is as durable as with threads. */
    bool no_threads;
} rq_connect_options;

/* Opens a database; options may be NULL. The caller closes it with rq_disconnect. Blocks: for a
 * folder until its log is read, for a cluster until the registry has answered.
 * RQ_E_LOCKED: a process (this one, perhaps) has the folder open, and the message names it.
 * RQ_E_INVALID: not a URL of the kinds above. RQ_E_CONFIG: a setting. RQ_E_IO: no cluster answers,
 * or the folder cannot be read or written, or its parent does not exist. RQ_E_PERMISSION, RQ_E_NO_SPACE: likewise, and why. RQ_E_NOT_FOUND: no cluster is registered there, or no
 * folder is there (must_exist). RQ_E_VERSION, RQ_E_UNSUPPORTED, RQ_E_STATE, RQ_E_CORRUPT: a folder
 * that cannot be opened; the message says why. */
RQ_API rq_err rq_connect(const char *url, const rq_connect_options *options, rq_db **ret,
                         rq_failure *why);

/* Closes a database and frees it, also when it returns an error: an engine of this process flushes
 * its memory to files first. Running calls of other threads end, with RQ_E_CLOSED if they wait for a
 * cluster; so do asynchronous ones, whose completions run before this returns, on this thread or the
 * library's. Later calls on its tables and scanners return RQ_E_CLOSED; the tables and scanners must still be closed.
 * `db` itself may not be passed to any function any more, nor by another thread that is about to begin a call.
 * NULL is fine. RQ_E_STATE: called by a completion; nothing was done. RQ_E_FORKED: nothing was done, the memory stays
 * allocated. Other errors: what is acknowledged is safe in the log, and the next rq_connect recovers it. */
RQ_API rq_err rq_disconnect(rq_db *db, rq_failure *why);

/* --- tables and namespaces: definitions ------------------------------------------------------- */

/* A column family with HBase's attributes: VERSIONS, TTL, COMPRESSION, BLOOMFILTER … Attributes
 * that are not given have HBase's defaults. */
typedef struct rq_family {
    const char *name;
    const rq_property *attributes;
    size_t attribute_count;
} rq_family;

typedef struct rq_table_spec {
    size_t size;
    const char *name; /* "table" or "namespace:table" */
    const rq_family *families;
    size_t family_count;
    const rq_property *attributes; /* of the table: MAX_FILESIZE, DURABILITY … */
    size_t attribute_count;
    const rq_bytes *split_keys; /* the first rows of all regions but the first */
    size_t split_key_count;
} rq_table_spec;

/* The calls that define tables, namespaces and snapshots return when the change is done, or after
 * timeout_ms: RQ_E_TIMEOUT, with a cluster also RQ_E_CALL_TIMEOUT, or RQ_E_IO if its master could not be
 * reached. The change may then be made later. With a cluster, a call that has failed for a time is
 * repeated; the cluster makes the change once, however often it was asked (rq_snapshot_drop excepted). */

/* Creates a table and returns when it can be used.
 * RQ_E_TABLE_EXISTS, RQ_E_NAMESPACE_NOT_FOUND, RQ_E_ILLEGAL_ARGUMENT (a name), RQ_E_DO_NOT_RETRY
 * (an attribute). */
RQ_API rq_err rq_table_create(rq_db *db, const rq_table_spec *spec, rq_failure *why);
/* Removes a disabled table. RQ_E_TABLE_NOT_FOUND, RQ_E_TABLE_NOT_DISABLED. */
RQ_API rq_err rq_table_drop(rq_db *db, const char *name, rq_failure *why);
/* RQ_E_TABLE_NOT_FOUND, RQ_E_TABLE_NOT_DISABLED (it is enabled). */
RQ_API rq_err rq_table_enable(rq_db *db, const char *name, rq_failure *why);
/* RQ_E_TABLE_NOT_FOUND, RQ_E_TABLE_NOT_ENABLED. */
RQ_API rq_err rq_table_disable(rq_db *db, const char *name, rq_failure *why);
/* Removes all rows of a disabled table and enables it. RQ_E_TABLE_NOT_FOUND,
 * RQ_E_TABLE_NOT_DISABLED. */
RQ_API rq_err rq_table_truncate(rq_db *db, const char *name, bool preserve_splits, rq_failure *why);
/* Writes the table's memory to files and returns when that is done. RQ_E_TABLE_NOT_FOUND. */
RQ_API rq_err rq_table_flush(rq_db *db, const char *name, rq_failure *why);
/* Whether the table exists, enabled or not. Errors as rq_table_describe's, except RQ_E_TABLE_NOT_FOUND.
 * RQ_E_ILLEGAL_ARGUMENT: `name` is not a valid table name. */
RQ_API rq_err rq_table_exists(rq_db *db, const char *name, bool *ret, rq_failure *why);

/* Strings in order; the library's, freed by rq_names_free. */
typedef struct rq_names {
    size_t count;
    const char *const *items;
} rq_names;
/* The names of all user tables, ascending: of one namespace, or (NULL) of all. The caller frees
 * them. RQ_E_NAMESPACE_NOT_FOUND. */
RQ_API rq_err rq_table_list(rq_db *db, const char *ns, rq_names **ret, rq_failure *why);
/* NULL is fine. */
RQ_API void rq_names_free(rq_names *names);

/* A table's definition and state; the library's, freed by rq_table_info_free. Attributes are all
 * that HBase's describe shows, ascending by name. */
typedef struct rq_table_info {
    const char *name;
    bool is_enabled;
    const rq_family *families; /* ascending by name */
    size_t family_count;
    const rq_property *attributes;
    size_t attribute_count;
} rq_table_info;
/* RQ_E_TABLE_NOT_FOUND. The caller frees the result. */
RQ_API rq_err rq_table_describe(rq_db *db, const char *name, rq_table_info **ret, rq_failure *why);
/* NULL is fine. */
RQ_API void rq_table_info_free(rq_table_info *info);

/* Changes of a table's definition, made together. */
typedef struct rq_alteration {
    size_t size;
    const char *name; /* of the table */
    /* Families to add or to change. A changed family keeps the attributes that are not given. */
    const rq_family *families;
    size_t family_count;
    const char *const *dropped_families; /* removed, with their cells */
    size_t dropped_family_count;
    const rq_property *attributes; /* of the table; a value of NULL removes the attribute */
    size_t attribute_count;
} rq_alteration;
/* Returns when every region has the new definition. RQ_E_TABLE_NOT_FOUND; RQ_E_NO_SUCH_FAMILY (a family to drop does
 * not exist), RQ_E_DO_NOT_RETRY (an attribute), and other errors as in HBase. */
RQ_API rq_err rq_table_alter(rq_db *db, const rq_alteration *alteration, rq_failure *why);

/* A region of a table. */
typedef struct rq_region_entry {
    rq_bytes name;        /* "table,start,id.encoded." */
    const char *encoded;  /* its last part */
    rq_bytes start, stop; /* rows in [start, stop); empty: no bound */
    const char *server;   /* "host:port" of the server that has it; in process: "" */
} rq_region_entry;
typedef struct rq_region_list {
    size_t count;
    const rq_region_entry *items; /* ascending by start */
} rq_region_list;
/* The regions that are open. RQ_E_TABLE_NOT_FOUND. The caller frees the list. */
RQ_API rq_err rq_table_regions(rq_db *db, const char *name, rq_region_list **ret, rq_failure *why);
/* NULL is fine. */
RQ_API void rq_region_list_free(rq_region_list *list);
/* Splits the region that has the row, at the row, and returns when both parts are open.
 * RQ_E_TABLE_NOT_FOUND, RQ_E_NOT_FOUND (no region is open there), RQ_E_DO_NOT_RETRY (the row is the
 * region's first). */
RQ_API rq_err rq_table_split(rq_db *db, const char *name, rq_bytes row, rq_failure *why);
/* Merges regions that are neighbours, given by their encoded names, and returns when the merged one is
 * open. RQ_E_UNKNOWN_REGION, RQ_E_MERGE_REGION. */
RQ_API rq_err rq_table_merge(rq_db *db, const char *name, const char *const *regions, size_t count,
                             rq_failure *why);
/* Begins a compaction of all regions, of one family or (NULL) of all, and returns; `major`: of all
 * files. RQ_E_TABLE_NOT_FOUND, RQ_E_NO_SUCH_FAMILY. */
RQ_API rq_err rq_table_compact(rq_db *db, const char *name, const char *family, bool major,
                               rq_failure *why);

/* A cluster, or the engine of this process as its only server. */
typedef struct rq_server_info {
    const char *name; /* "host,port,start" */
    size_t region_count;
} rq_server_info;
typedef struct rq_cluster_info {
    const char *id;
    const char *version; /* of the master's software */
    const char *master;  /* as a server's name */
    const rq_server_info *servers;
    size_t server_count;
    size_t dead_server_count;
} rq_cluster_info;
/* The caller frees the result. */
RQ_API rq_err rq_cluster_describe(rq_db *db, rq_cluster_info **ret, rq_failure *why);
/* NULL is fine. */
RQ_API void rq_cluster_info_free(rq_cluster_info *info);

/* A snapshot: a table's definition and cells at one moment, kept by the files that have them. */
typedef struct rq_snapshot_entry {
    const char *name;
    const char *table;
    int64_t created_ms; /* since 1970 */
    uint64_t ttl_s;     /* seconds after which it is removed; 0: it stays */
} rq_snapshot_entry;
typedef struct rq_snapshot_list {
    size_t count;
    const rq_snapshot_entry *items; /* ascending by name */
} rq_snapshot_list;
/* All complete snapshots. The caller frees the list. */
RQ_API rq_err rq_snapshots(rq_db *db, rq_snapshot_list **ret, rq_failure *why);
/* NULL is fine. */
RQ_API void rq_snapshot_list_free(rq_snapshot_list *list);
/* Takes a snapshot of a table and returns when it is complete. The table's memstores are flushed
 * first; with `skips_flush` they are not, and their cells are missing from the snapshot.
 * RQ_E_SNAPSHOT_CREATION (no such table, or it failed), RQ_E_SNAPSHOT_EXISTS (the name),
 * RQ_E_ILLEGAL_ARGUMENT (a name, or hbase:meta). */
RQ_API rq_err rq_snapshot_create(rq_db *db, const char *name, const char *table, bool skips_flush,
                                 rq_failure *why);
/* RQ_E_SNAPSHOT_NOT_FOUND. */
RQ_API rq_err rq_snapshot_drop(rq_db *db, const char *name, rq_failure *why);
/* Makes a new table of a snapshot, without copying cells. RQ_E_SNAPSHOT_NOT_FOUND, RQ_E_TABLE_EXISTS,
 * RQ_E_NAMESPACE_NOT_FOUND. */
RQ_API rq_err rq_snapshot_clone(rq_db *db, const char *name, const char *table, rq_failure *why);
/* Restores a disabled table to the state of its snapshot and leaves it disabled. A dropped table is
 * created again, enabled. RQ_E_SNAPSHOT_NOT_FOUND, RQ_E_TABLE_NOT_DISABLED. */
RQ_API rq_err rq_snapshot_restore(rq_db *db, const char *name, rq_failure *why);

/* RQ_E_NAMESPACE_EXISTS, RQ_E_ILLEGAL_ARGUMENT (the name). */
RQ_API rq_err rq_namespace_create(rq_db *db, const char *name, const rq_property *properties,
                                  size_t property_count, rq_failure *why);
/* Removes an empty namespace. RQ_E_NAMESPACE_NOT_FOUND, RQ_E_CONSTRAINT (it has tables). */
RQ_API rq_err rq_namespace_drop(rq_db *db, const char *name, rq_failure *why);
/* Ascending, HBase's own ("hbase", "default") among them. The caller frees the names. */
RQ_API rq_err rq_namespace_list(rq_db *db, rq_names **ret, rq_failure *why);

/* A namespace and its properties; the library's, freed by rq_namespace_info_free. */
typedef struct rq_namespace_info {
    const char *name;
    const rq_property *properties; /* ascending by name */
    size_t property_count;
} rq_namespace_info;
/* RQ_E_NAMESPACE_NOT_FOUND. The caller frees the result. */
RQ_API rq_err rq_namespace_describe(rq_db *db, const char *name, rq_namespace_info **ret,
                                    rq_failure *why);
/* NULL is fine. */
RQ_API void rq_namespace_info_free(rq_namespace_info *info);
/* Sets properties of a namespace; a value of NULL removes the property. Properties that are not given stay.
 * Of two alterations of a namespace at the same time, one may undo the other: they read the properties
 * before they write them, as HBase's shell does. RQ_E_NAMESPACE_NOT_FOUND; RQ_E_CONSTRAINT,
 * RQ_E_DO_NOT_RETRY (the value of a quota, such as hbase.namespace.quota.maxtables). */
RQ_API rq_err rq_namespace_alter(rq_db *db, const char *name, const rq_property *properties,
                                 size_t property_count, rq_failure *why);

/* --- rows ------------------------------------------------------------------------------------- */

typedef struct rq_table rq_table;

/* Opens a table for reading and writing; it need not exist until it is used. The caller closes it.
 * RQ_E_ILLEGAL_ARGUMENT: the name. */
RQ_API rq_err rq_table_open(rq_db *db, const char *name, rq_table **ret, rq_failure *why);
/* REQUIRES: no synchronous call on it is running. Its scanners and asynchronous calls go on. NULL is fine. In a forked
 * child nothing is done. */
RQ_API void rq_table_close(rq_table *table);

/* What a cell is: a value, or in raw scans a delete marker. HBase's numbers. */
typedef enum rq_kv_type {
    RQ_KV_PUT = 4,
    RQ_KV_DELETE = 8,                 /* of one version */
    RQ_KV_DELETE_FAMILY_VERSION = 10, /* of all columns of a family at one timestamp */
    RQ_KV_DELETE_COLUMN = 12,         /* of a column's versions up to a timestamp */
    RQ_KV_DELETE_FAMILY = 14,         /* of a family's columns up to a timestamp */
} rq_kv_type;

/* A cell of a result: one version of one column. */
typedef struct rq_kv {
    rq_bytes row;
    rq_bytes family;
    rq_bytes qualifier;
    rq_bytes value;
    int64_t timestamp;
    rq_kv_type type;
} rq_kv;

/* A row's cells, in HBase's order: by family, qualifier, newest first. The library's; it lives
 * until rq_row_free, or rq_results_free if it is part of results. */
typedef struct rq_row {
    size_t count; /* 0: the row has none of what was asked for */
    const rq_kv *cells;
    bool exists;     /* of a get with existence_only; else whether count > 0 */
    bool is_partial; /* of a scan with `batch`: the next result has more cells of this row */
    bool is_stale;   /* read from a replica of a region: it may be older than the last change */
    rq_bytes cursor; /* of a scan with wants_cursors: if not empty, this result has no cells, only
                      * the key of the row read last, perhaps in part */
} rq_row;
/* NULL is fine. */
RQ_API void rq_row_free(rq_row *row);
/* The first cell of a column in the row, which is its newest one (in a raw scan perhaps a delete marker), or NULL. It
 * belongs to the row. `row` may be NULL. Searches cell by cell. */
RQ_API const rq_kv *rq_row_find(const rq_row *row, rq_bytes family, rq_bytes qualifier);
/* Copies a row, so that it outlives the results, list or scan that it came from. The copy has one piece
 * of memory of its own; the caller frees it with rq_row_free. */
RQ_API rq_err rq_row_copy(const rq_row *row, rq_row **ret, rq_failure *why);
/* Copies one cell, so that its row can be freed. The caller frees the copy with rq_kv_free. */
RQ_API rq_err rq_kv_copy(const rq_kv *cell, rq_kv **ret, rq_failure *why);
/* Frees a copy of rq_kv_copy. NULL is fine. */
RQ_API void rq_kv_free(rq_kv *cell);

/* A column; with qualifier.data NULL a whole family. The empty qualifier, which HBase allows, has
 * len 0 and a data that is not NULL (rq_text("")). */
typedef struct rq_column {
    rq_bytes family;
    rq_bytes qualifier;
} rq_column;

/* A time range for a family, instead of that of the request. */
typedef struct rq_family_times {
    rq_bytes family;
    int64_t min_timestamp;
    int64_t max_timestamp; /* 0: no limit */
} rq_family_times;

#define RQ_ALL_VERSIONS INT32_MAX

/* An attribute of an operation, which servers or their coprocessors know by its name; others are
 * ignored. A database of this process knows those of MOB files ("hbase.mob.scan.raw" …).
 * HBASE: OperationWithAttributes. */
typedef struct rq_named_bytes {
    const char *name; /* "_operation.attributes.id", "_acl", "_authorizations" … */
    rq_bytes value;
} rq_named_bytes;

/* Which servers may answer a read. HBASE: Consistency. */
typedef enum rq_consistency {
    RQ_CONSISTENCY_STRONG,   /* the region's own server: the last change is seen */
    RQ_CONSISTENCY_TIMELINE, /* also a replica of the region, which may be behind (rq_row.is_stale) */
} rq_consistency;

typedef struct rq_get_request {
    size_t size;
    rq_bytes row;
    const rq_column *columns;
    size_t column_count;   /* 0: all families */
    int32_t max_versions;  /* of each column; 0: 1 */
    int64_t min_timestamp; /* cells within [min, max) */
    int64_t max_timestamp; /* 0: no limit */
    /* A filter as text of HBase's filter language, "ColumnPrefixFilter('a')", or as bytes of HBase's
     * protobuf message Filter (class name 1, serialized filter 2), as rorqual/filters.h makes them; at
     * most one of them. */
    const char *filter_text;
    rq_bytes filter;
    int32_t family_limit;  /* cells of each family; 0: no limit */
    int32_t family_offset; /* cells of each family that are skipped */
    bool existence_only;   /* returns no cells, only whether there are some */
    bool no_block_cache;   /* blocks read from files are not kept in the cache */
    const rq_family_times *family_times;
    size_t family_times_count;
    /* Read all families at once. By default, if the filter examines only some families, the other families are read
     * only for rows that pass the filter. HBASE: setLoadColumnFamiliesOnDemand(false). */
    bool no_lazy_families;
    const rq_named_bytes *attributes;
    size_t attribute_count;
    /* Also reads uncommitted writes: a row may be incomplete, and a cell may be read that is never
     * committed. HBASE: IsolationLevel.READ_UNCOMMITTED. */
    bool reads_uncommitted;
    uint8_t reserved[7]; /* 0; padding in older programs, which may have left it as it was */
    /* Priority of the call at a cluster's servers; 0: the table's priority. HBase's servers have
     * separate handlers for priorities above 100. A batch has, at each server, the highest priority
     * of its actions. A database of this process ignores it. HBASE: setPriority;
     * HConstants.NORMAL_QOS … HIGH_QOS. */
    int32_t priority;
    uint32_t reserved_end; /* 0; padding in older programs */
    /* With RQ_CONSISTENCY_TIMELINE: the region's replica that is read, from 1 on; 0: the region itself, and all its
     * replicas if it fails or has not answered after 10 ms (a scan: 1 s); the first answer counts. In a batch each get is
     * answered by the region itself, and `replica` must be 0 (RQ_E_UNSUPPORTED). A replica that the table does not have
     * is retried like a region without a location: RQ_E_NOT_SERVING_REGION after timeout_ms. HBASE: setConsistency,
     * setReplicaId. */
    rq_consistency consistency;
    uint32_t replica;
} rq_get_request;

/* Reads a row. *ret is never NULL on success; the caller frees it. RQ_E_TABLE_NOT_FOUND,
 * RQ_E_TABLE_NOT_ENABLED, RQ_E_NO_SUCH_FAMILY; RQ_E_ILLEGAL_ARGUMENT (a filter's text),
 * RQ_E_DO_NOT_RETRY (its bytes); RQ_E_IO, RQ_E_CORRUPT; RQ_E_CALL_TIMEOUT and HBase's retryable
 * errors after timeout_ms. */
RQ_API rq_err rq_table_get(rq_table *table, const rq_get_request *get, rq_row **ret,
                           rq_failure *why);

typedef enum rq_change_kind {
    RQ_PUT,
    RQ_DELETE,
    RQ_APPEND,
    RQ_INCREMENT,
} rq_change_kind;

/* What an edit of a RQ_DELETE removes. Edits of other kinds ignore it. */
typedef enum rq_delete_scope {
    RQ_DELETE_COLUMN,         /* all versions of the column up to the timestamp */
    RQ_DELETE_VERSION,        /* one version: that of the timestamp, or the newest */
    RQ_DELETE_FAMILY,         /* all columns of the family up to the timestamp */
    RQ_DELETE_FAMILY_VERSION, /* all columns of the family at the timestamp */
} rq_delete_scope;

/* The timestamp 0 as such: 0 in an edit means the server's clock. */
#define RQ_TIMESTAMP_ZERO INT64_MIN

/* A column of a change. Fixed layout. */
typedef struct rq_edit {
    rq_bytes family;
    rq_bytes qualifier;
    /* Of a put or append: what is written. Of an increment: the number to add, 8 bytes, big-endian; if
     * it is empty, `amount` is added. */
    rq_bytes value;
    int64_t timestamp; /* 0: the change's */
    int64_t amount;    /* of an increment, if value is empty */
    rq_delete_scope scope;
    uint32_t reserved; /* 0 */
} rq_edit;

typedef enum rq_durability_level {
    RQ_DURABILITY_DEFAULT,  /* as the table and the server are set */
    RQ_DURABILITY_SKIP_LOG, /* in memory only: lost at a crash */
    RQ_DURABILITY_ASYNC,    /* the call returns before the change is in the log, where it is soon */
    RQ_DURABILITY_SYNC,     /* on disk when the call returns */
    RQ_DURABILITY_FSYNC,    /* the same */
} rq_durability_level;

/* A put, delete, append or increment of one row: all or nothing. */
typedef struct rq_change {
    size_t size;
    rq_change_kind kind;
    rq_bytes row;
    const rq_edit *edits;
    size_t edit_count; /* 0: of a delete only: the whole row */
    int64_t timestamp; /* of edits without one; 0: the server's clock */
    rq_durability_level durability;
    uint64_t ttl_ms;       /* cells expire after this time; 0: as their family says */
    bool returns_nothing;  /* an append or increment without its result */
    int64_t min_timestamp; /* of the cells that an append or increment reads: [min, max) */
    int64_t max_timestamp; /* 0: no limit */
    const rq_named_bytes *attributes;
    size_t attribute_count;
    int32_t priority; /* as a get's; of several changes the highest counts */
} rq_change;

/* Changes a row; durable as requested when it returns. `ret` may be NULL; otherwise *ret is the
 * result of an append or increment (the new cells), or a row without cells; the caller frees it.
 * After RQ_E_CALL_TIMEOUT or RQ_E_IO the change may have been made. Appends and increments
 * that the library repeats are applied once. Errors as rq_table_get's, and RQ_E_REGION_TOO_BUSY
 * (memory or disk are full). */
RQ_API rq_err rq_table_change(rq_table *table, const rq_change *change, rq_row **ret,
                              rq_failure *why);
/* Several changes of one row, all or nothing (HBase's RowMutations). `changes` are an array of
 * structs whose size is the first one's. Appends and increments among several must have
 * returns_nothing. Errors as rq_table_change's. */
RQ_API rq_err rq_table_change_row(rq_table *table, const rq_change *changes, size_t count,
                                  rq_failure *why);

/* Compares the given value with the stored one, as HBase's checkAndMutate: RQ_COMPARE_LESS holds if
 * the given value is less than the stored one. */
typedef enum rq_compare {
    RQ_COMPARE_EQUAL,
    RQ_COMPARE_NOT_EQUAL,
    RQ_COMPARE_LESS,
    RQ_COMPARE_LESS_OR_EQUAL,
    RQ_COMPARE_GREATER,
    RQ_COMPARE_GREATER_OR_EQUAL,
    RQ_COMPARE_ABSENT, /* the column has no value, or an empty one */
} rq_compare;

typedef struct rq_check {
    size_t size;
    /* The column; not used with a filter. */
    rq_bytes family;
    rq_bytes qualifier;
    rq_compare compare;
    rq_bytes value;
    /* Or a filter (rq_get_request): the check holds if a cell of the row passes. */
    const char *filter_text;
    rq_bytes filter;
    int64_t min_timestamp; /* of the cells that are looked at */
    int64_t max_timestamp; /* 0: no limit */
} rq_check;

/* Makes the changes if the check holds; *ret_done is whether it did. The check and all changes are on one row, and the
 * changes are made all or nothing. `ret` may be NULL; otherwise *ret is the result of an append or increment, which the
 * caller frees. Errors as rq_table_change's. */
RQ_API rq_err rq_table_check_and_change(rq_table *table, const rq_check *check,
                                        const rq_change *changes, size_t count, bool *ret_done,
                                        rq_row **ret, rq_failure *why);

/* --- batches ---------------------------------------------------------------------------------- */

/* One action: a get, or changes of one row (one, or several that are atomic). Fixed layout. */
typedef struct rq_action {
    const rq_get_request *get; /* NULL: changes */
    const rq_change *changes;
    size_t change_count;
} rq_action;

typedef struct rq_outcome {
    rq_err code;
    bool retryable;
    bool done;               /* of a success: false if the action's check did not hold, else true */
    const rq_row *row;       /* of a get, append, increment; else NULL */
    const char *hbase_class; /* of a failure; else NULL */
    const char *message;
} rq_outcome;

/* One outcome for each action, in the actions' order. The library's, freed by rq_results_free. */
typedef struct rq_results {
    size_t count;
    const rq_outcome *items;
} rq_results;
/* NULL is fine. */
RQ_API void rq_results_free(rq_results *results);

/* Executes actions, grouped by server and region. Changes of one row keep their order; a get sees
 * the changes of its batch or does not, as in HBase. There is no atomicity beyond an action. RQ_OK:
 * every action succeeded. Otherwise it returns the error of the first failed action, with its index
 * in why->action, and still sets *ret. *ret is unchanged only if nothing was executed (an argument
 * was refused, the database is closed, no memory): set it to NULL before the call to tell the two
 * cases apart. The caller frees *ret; `ret` may be NULL. */
RQ_API rq_err rq_table_batch(rq_table *table, const rq_action *actions, size_t count,
                             rq_results **ret, rq_failure *why);

/* An action that may have a check: a get, or changes of one row as in rq_action. */
typedef struct rq_checked_action {
    size_t size;
    const rq_get_request *get; /* NULL: changes */
    const rq_check *check; /* of the row; if it does not hold nothing is changed. NULL: no check */
    const rq_change *changes;
    size_t change_count;
} rq_checked_action;

/* As rq_table_batch, also with checks; rq_outcome.done is whether an action's check held. Each action with a check is
 * atomic, as rq_table_check_and_change. Changes of one row keep their order, so a check sees the changes before it,
 * except those that fail temporarily: they are retried after the rest of the batch. If the connection is lost
 * before the response, a check is evaluated again, on a row that may already have the action's changes. `actions` is an
 * array of structs that all have the size of the first one. HBASE: Table.checkAndMutate(List). */
RQ_API rq_err rq_table_batch_checked(rq_table *table, const rq_checked_action *actions,
                                     size_t count, rq_results **ret, rq_failure *why);

/* --- scans ------------------------------------------------------------------------------------ */

typedef struct rq_scanner rq_scanner;

/* How HBase's servers read files for a scan (its ReadType): PREAD reads each block on its own, STREAM reads in sequence
 * with file readers that only this scan uses. Rorqual ignores it. */
typedef enum rq_read_type {
    RQ_READ_DEFAULT,
    RQ_READ_STREAM,
    RQ_READ_PREAD,
} rq_read_type;

typedef struct rq_scan_request {
    size_t size;
    rq_bytes start;      /* empty: the table's first row, or (reversed) its last one */
    rq_bytes stop;       /* empty: no end */
    bool excludes_start; /* rows behind `start` only */
    bool includes_stop;  /* the row `stop`, too */
    bool reversed;       /* from `start` downwards to `stop` */
    bool raw;            /* delete markers and deleted cells, too; of whole families only */
    bool no_block_cache;
    /* As the fields of rq_get_request that have the same names. */
    const rq_column *columns;
    size_t column_count;
    int32_t max_versions;
    int64_t min_timestamp;
    int64_t max_timestamp;
    const char *filter_text;
    rq_bytes filter;
    int32_t family_limit;
    int32_t family_offset;
    uint64_t limit;       /* rows in all; 0: no limit */
    uint32_t caching;     /* rows fetched at once; 0: as many as fit fetch_bytes */
    uint32_t batch;       /* cells of a result; longer rows come in parts; 0: no limit */
    uint64_t fetch_bytes; /* bytes fetched at once; 0: 2 MB from a cluster, 256 kB in process */
    /* As a get's, too, except read_type. */
    const rq_family_times *family_times;
    size_t family_times_count;
    bool no_lazy_families;
    const rq_named_bytes *attributes;
    size_t attribute_count;
    rq_read_type read_type;
    bool reads_uncommitted;
    int32_t priority;
    /* If a server reaches its limit of time or bytes before a row is complete, return a result
     * without cells that has the scan's position (rq_row.cursor), instead of waiting. A later scan
     * can start there. Not with `batch`, and not of a salted scan. HBASE: setNeedCursorResult. */
    bool wants_cursors;
    /* Fetch only when the caller needs rows. By default a scan of a cluster fetches ahead: from the
     * second fetch on, the next one is in progress while the caller reads the rows of the last. That
     * scan holds at most twice `fetch_bytes`, and a caller that stops early has wasted one fetch.
     * HBASE: setAsyncPrefetch (off by default there). */
    bool no_fetch_ahead;
    uint8_t reserved[2]; /* 0; padding in older programs */
    /* As a get's; a replica is read in all regions of the scan. */
    rq_consistency consistency;
    uint32_t replica;
} rq_scan_request;

/* Opens a scanner; the caller closes it. What `scan` points to is copied. Rows are read by rq_scanner_next, which also returns
 * errors of the table. Within a region a scan sees the rows as of one moment. */
RQ_API rq_err rq_table_scan(rq_table *table, const rq_scan_request *scan, rq_scanner **ret,
                            rq_failure *why);
/* The next row, which the caller frees; *ret is NULL at the end, then and in every later call. A small row shares 16 kB of
 * memory with its neighbours, which is freed with the last of them: keep a copy (rq_row_copy) instead of a row that
 * you need for long. An error of the database ends the scan; every later call returns that error again. Errors as
 * rq_table_get's; RQ_E_STATE: an asynchronous call is using the scanner. */
RQ_API rq_err rq_scanner_next(rq_scanner *scanner, rq_row **ret, rq_failure *why);
/* Rows of a scan; the library's, freed with them by rq_rows_free. */
typedef struct rq_rows {
    size_t count; /* 0: the end */
    rq_row *const *items;
} rq_rows;
/* NULL is fine. */
RQ_API void rq_rows_free(rq_rows *rows);
/* Like rq_scanner_next, for all rows of one answer of the database, at most `max` (0: no limit).
 * The caller frees *ret; at the end it has no rows. Rows read before an error in the same call are lost. */
RQ_API rq_err rq_scanner_next_rows(rq_scanner *scanner, size_t max, rq_rows **ret, rq_failure *why);
/* Closes a scanner, which must not be used any more. NULL is fine. If an asynchronous call is using the scanner, the
 * call's completion still comes. */
RQ_API void rq_scanner_close(rq_scanner *scanner);

/* --- asynchronous calls ------------------------------------------------------------------------
 *
 * A function …_async begins what its namesake does and returns. If it returns RQ_OK, `done` is called
 * exactly once, later: inside rq_poll, rq_disconnect, or on the library's thread
 * (rq_connect_options.completion_thread). Otherwise nothing was begun. What the arguments point to is
 * copied. Calls of one table may end in any order. Any number may be outstanding: those on a cluster
 * are on the wire together, those on a folder or in memory are executed by up to eight threads (with
 * rq_connect_options.no_threads inside rq_poll, eight at a time).
 */

/* Completion functions. Results are those of the synchronous call, or NULL if it has none; the
 * completion frees them. */
typedef struct rq_completion {
    size_t size; /* of the struct, as the library fills it */
    rq_err code;
    bool done; /* of rq_table_check_and_change_async */
    rq_row *row;
    rq_results *results;   /* of a batch, also if an action failed */
    rq_rows *rows;         /* of rq_scanner_next_async */
    const rq_failure *why; /* of a failed call, else NULL; valid during the completion */
} rq_completion;

/* May make calls, synchronous ones and further asynchronous ones; not rq_poll or rq_disconnect. */
typedef void (*rq_done)(void *context, const rq_completion *completion);

/* Completes with the row. */
RQ_API rq_err rq_table_get_async(rq_table *table, const rq_get_request *get, rq_done done,
                                 void *context, rq_failure *why);
/* Completes with the new cells of an append or increment; the row is NULL after a put or delete, and
 * with returns_nothing. */
RQ_API rq_err rq_table_change_async(rq_table *table, const rq_change *change, rq_done done,
                                    void *context, rq_failure *why);
/* Completes with a code alone. */
RQ_API rq_err rq_table_change_row_async(rq_table *table, const rq_change *changes, size_t count,
                                        rq_done done, void *context, rq_failure *why);
/* Completes with `done`, and with the new cells of an append or increment. */
RQ_API rq_err rq_table_check_and_change_async(rq_table *table, const rq_check *check,
                                              const rq_change *changes, size_t count, rq_done done,
                                              void *context, rq_failure *why);
/* Completes with the results, even if actions of the batch failed. */
RQ_API rq_err rq_table_batch_async(rq_table *table, const rq_action *actions, size_t count,
                                   rq_done done, void *context, rq_failure *why);
RQ_API rq_err rq_table_batch_checked_async(rq_table *table, const rq_checked_action *actions,
                                           size_t count, rq_done done, void *context,
                                           rq_failure *why);
/* The scan's next rows, as rq_scanner_next_rows. RQ_E_STATE: another asynchronous call is using the scanner. The
 * scanner may be closed before the call has ended (rq_scanner_close). */
RQ_API rq_err rq_scanner_next_async(rq_scanner *scanner, size_t max, rq_done done, void *context,
                                    rq_failure *why);

/* Runs the completions of the calls that have ended; if there are none, waits for one, at most
 * timeout_ms (0: does not wait; -1: no limit). On a cluster it also does the work of the calls.
 * *ret_count (may be NULL) is how many ran. RQ_E_STATE: another thread is in rq_poll, a completion
 * calls it, or the completions have a thread. Returns at once if no call is outstanding; with
 * rq_connect_options.no_threads it does the engine's work then. */
RQ_API rq_err rq_poll(rq_db *db, int timeout_ms, size_t *ret_count, rq_failure *why);
/* A descriptor for the caller's event loop (poll, epoll, libuv, glib), level-triggered: when it is
 * readable, rq_poll(db, 0, …) has something to do. Nothing else may be done with it; it is closed by
 * rq_disconnect. RQ_E_STATE: the completions have a thread. */
RQ_API rq_err rq_descriptor(rq_db *db, int *ret, rq_failure *why);

/* --- short forms ------------------------------------------------------------------------------ */

/* Puts one value. Errors as rq_table_change's. */
RQ_API rq_err rq_put_value(rq_table *table, rq_bytes row, rq_bytes family, rq_bytes qualifier,
                           rq_bytes value, rq_failure *why);
/* Copies the newest value of a column into `buf` of `cap` bytes. *ret_len is its length, or SIZE_MAX
 * if there is none. RQ_E_RESULT_TOO_LARGE: it is longer than cap; *ret_len is set, and `buf` is unchanged. Other errors as
 * rq_table_get's. */
RQ_API rq_err rq_get_value(rq_table *table, rq_bytes row, rq_bytes family, rq_bytes qualifier,
                           void *buf, size_t cap, size_t *ret_len, rq_failure *why);
/* Adds to a counter of 8 bytes, big-endian, and returns its new value; an absent one counts as 0.
 * RQ_E_DO_NOT_RETRY: the column holds something else. Other errors as rq_table_change's. */
RQ_API rq_err rq_add_value(rq_table *table, rq_bytes row, rq_bytes family, rq_bytes qualifier,
                           int64_t amount, int64_t *ret, rq_failure *why);
/* Deletes a whole row; RQ_OK if there is none. Errors as rq_table_change's. */
RQ_API rq_err rq_delete_row(rq_table *table, rq_bytes row, rq_failure *why);

#ifdef __cplusplus
}
#endif

#endif
