/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface between the public functions (rorqual/rorqual.h) and the back ends. A public
 * function checks its arguments, takes a slot, calls the back end and fills the caller's
 * failure.
 *
 *   rq_table_get ─► arguments ─► slot ─► backend->get ─► slot back ─► rq_failure
 *
 * A slot is used by one call at a time. It has the memory that a back end keeps between calls (an
 * arena, a seat), so that it need not be kept for each thread. A thread usually gets the slot it had before.
 * To close a database, rq_disconnect sets `closed` and waits until every slot is free, so that no call is
 * running when the back end is closed.
 *
 * Lifetimes: a scanner holds a reference on its table, a table on its rq_db. rq_disconnect frees the back end;
 * the rq_db stays allocated until the last table is closed.
 */
#ifndef RQ_API_BACKEND_H
#define RQ_API_BACKEND_H

#include "rorqual/rorqual.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/executor.h"
#include "cell/cell.h"

#include <stdatomic.h>

/* Why a call fails; copied to the caller's rq_failure at the call's end. */
typedef struct rq_why {
    rq_error error;
    size_t action;
    bool is_remote; /* retryable and java_class are from a server's response */
    bool retryable;
    char java_class[96];
} rq_why;

typedef struct rq_slot {
    _Alignas(RQ_CACHE_LINE) _Atomic bool busy;
    rq_arena arena; /* of the call; reset at its end */
    void *own;      /* the back end's, kept between calls */
} rq_slot;

#define RQ_SLOTS 128

typedef struct rq_backend rq_backend;

/* Where the rows of a scan are allocated. `counts`: each row lives until it is freed, also after the struct was
 * cleared. Not `counts` (all zero): rows live until the struct is cleared, and freeing a row does nothing. The
 * owner clears the struct. */
typedef struct rq_row_memory {
    bool counts;
    rq_arena arena;
    struct rq__row_chunk *chunk; /* result.c */
} rq_row_memory;
void rq_row_memory_clear(rq_row_memory *m);

/* The first member of a back end's database. */
struct rq_db {
    const rq_backend *backend;
    const struct rq__home *home; /* tells whether this process opened the database */
    _Atomic bool closed;
    _Atomic bool is_ending; /* the back end is being closed … */
    _Atomic bool has_ended; /* … and was */
    _Atomic unsigned refs;
    _Atomic uint64_t tables;             /* number of tables opened so far */
    uint32_t timeout_ms;                 /* of a call, repetitions included */
    struct rq__completions *completions; /* async.c */
    rq_slot slots[RQ_SLOTS];
};

struct rq_table {
    rq_db *db;
    _Atomic unsigned refs;
    rq_slice name;      /* as HBase shows it: "ns:q", or "q" in the default namespace */
    rq_slice ns;        /* a part of it, or "default" */
    rq_slice qualifier; /* a part of it */
    uint64_t number;    /* unique in the database; a key for caches */
    void *own;          /* of the back end, which frees it when it is closed */
    char bytes[];
};

/* --- arguments, checked ----------------------------------------------------------------------- */

/* The requested columns of a family: ascending, without duplicates. */
typedef struct rq_picked {
    rq_slice family;
    const rq_slice *qualifiers;
    size_t qualifier_count; /* 0: the whole family */
} rq_picked;

/* Attributes of an operation; copies. */
typedef struct rq_named {
    rq_slice name, value;
} rq_named;
typedef struct rq_named_list {
    const rq_named *items;
    size_t count;
} rq_named_list;

/* What gets and scans have in common. */
typedef struct rq_reading {
    const rq_picked *families; /* ascending by name */
    size_t family_count;       /* 0: all */
    int32_t max_versions;      /* >= 1 */
    int64_t min_timestamp, max_timestamp;
    rq_slice filter_class; /* empty: no filter */
    rq_slice filter;
    int32_t family_limit; /* -1: none */
    int32_t family_offset;
    bool existence_only;
    bool no_block_cache;
    bool no_lazy_families;
    bool reads_uncommitted;
    bool is_timeline;  /* replicas may be read */
    uint16_t replica;  /* the only one read; 0: the region itself, or any with is_timeline */
    uint32_t priority; /* 0: the table's */
    rq_named_list attributes;
    const struct rq_family_range *ranges; /* for these families, in place of the times above */
    size_t range_count;
} rq_reading;

typedef struct rq_family_range {
    rq_slice family;
    int64_t min_timestamp, max_timestamp;
} rq_family_range;

typedef struct rq_getting {
    rq_slice row;
    rq_reading read;
} rq_getting;

typedef struct rq_scanning {
    rq_slice start, stop;
    bool include_start, include_stop, reversed, raw;
    rq_reading read;
    uint64_t limit; /* rows; 0: none */
    uint32_t caching;
    uint32_t batch;
    uint64_t fetch_bytes; /* 0: the back end's */
    rq_read_type read_type;
    bool wants_cursors;
    bool no_fetch_ahead; /* the back end requests rows ahead only when `ahead` is called */
} rq_scanning;

typedef struct rq_changing {
    rq_change_kind kind;
    rq_slice row;
    rq_cell *cells;    /* of that row */
    size_t cell_count; /* 0: a delete of the whole row */
    int64_t timestamp; /* of a delete of the whole row; RQ_TIMESTAMP_LATEST: the server's clock */
    rq_durability_level durability;
    uint64_t ttl_ms;
    bool returns_nothing;
    int64_t min_timestamp, max_timestamp;
    uint32_t priority; /* 0: the table's */
    rq_named_list attributes;
} rq_changing;

typedef struct rq_checking {
    rq_slice family, qualifier;
    unsigned op; /* HBase's CompareType */
    rq_slice value;
    rq_slice filter_class; /* empty: the comparison counts */
    rq_slice filter;
    int64_t min_timestamp, max_timestamp;
} rq_checking;

typedef struct rq_acting {
    bool is_get;
    rq_getting get;
    const rq_checking *check; /* of changes; NULL: none */
    rq_changing *changes;
    size_t change_count;
} rq_acting;

/* Whether the action's changes are made all or nothing, apart from other actions. */
static inline bool rq_acting_is_atomic(const rq_acting *a)
{
    return !a->is_get && (a->change_count > 1 || a->check != NULL);
}

typedef enum rq_define_kind {
    RQ_DEFINE_CREATE_TABLE,
    RQ_DEFINE_DROP_TABLE,
    RQ_DEFINE_ENABLE_TABLE,
    RQ_DEFINE_DISABLE_TABLE,
    RQ_DEFINE_TRUNCATE_TABLE,
    RQ_DEFINE_FLUSH_TABLE,
    RQ_DEFINE_CREATE_NAMESPACE,
    RQ_DEFINE_DROP_NAMESPACE,
    RQ_DEFINE_ALTER_NAMESPACE,
    RQ_DEFINE_ALTER_TABLE,
    RQ_DEFINE_SPLIT_REGION,
    RQ_DEFINE_MERGE_REGIONS,
    RQ_DEFINE_SNAPSHOT,
    RQ_DEFINE_DROP_SNAPSHOT,
    RQ_DEFINE_CLONE_SNAPSHOT,
    RQ_DEFINE_RESTORE_SNAPSHOT, /* also if the table does not exist any more */
} rq_define_kind;

typedef struct rq_defining {
    rq_define_kind kind;
    rq_slice ns;
    rq_slice qualifier;
    /* A serialized message: TableSchema or NamespaceDescriptor of a creation or alteration, or
     * SnapshotDescription; with the fields that the caller sets. */
    rq_slice message;
    const rq_slice *split_keys;
    size_t split_key_count;
    bool preserve_splits;
    const rq_region_entry *region; /* of a split, at row */
    rq_slice row;
    const rq_slice *regions; /* of a merge: encoded names */
    size_t region_count;
    rq_slice snapshot; /* its name */
    bool skips_flush;
} rq_defining;

/* A table's open regions, in any order; everything is in the arena. */
typedef struct rq_region_finding {
    rq_arena *arena;
    rq_region_entry *items;
    size_t count, cap;
} rq_region_finding;
/* Copies everything; the name ends with ".encoded.". RQ_E_MALFORMED, RQ_E_NO_MEMORY. */
RQ_NODISCARD
rq_err rq_region_found(rq_region_finding *f, rq_slice name, rq_slice start, rq_slice stop,
                       const char *server);

/* Snapshots, in any order; everything is in the arena. */
typedef struct rq_snapshot_finding {
    rq_arena *arena;
    rq_snapshot_entry *items;
    size_t count, cap;
} rq_snapshot_finding;
/* Copies what it takes from a SnapshotDescription. RQ_E_MALFORMED, RQ_E_NO_MEMORY. */
RQ_NODISCARD
rq_err rq_snapshot_found(rq_snapshot_finding *f, rq_slice description);

/* The back end fills it; everything is in the arena. */
typedef struct rq_cluster_finding {
    rq_arena *arena;
    rq_cluster_info *info;
} rq_cluster_finding;

/* Names that a back end finds, in any order. */
typedef struct rq_naming {
    rq_buf text; /* each with its NUL */
    size_t count;
} rq_naming;
RQ_NODISCARD
rq_err rq_naming_add(rq_naming *n, rq_slice name);

/* The outcomes of a batch's actions; the back end sets them one by one. */
typedef struct rq_outcomes rq_outcomes;
/* Takes over the row. `done`: false if the action's check did not hold. */
void rq_outcome_row(rq_outcomes *o, size_t action, rq_row *row, bool done);
/* `why` may be NULL. */
void rq_outcome_fail(rq_outcomes *o, size_t action, rq_err rc, const rq_why *why);
bool rq_outcome_is_set(const rq_outcomes *o, size_t action);

/* --- asynchronous calls (async.c) ------------------------------------------------------------- */

typedef enum rq_call_kind {
    RQ_CALL_GET,
    RQ_CALL_CHANGE,
    RQ_CALL_BATCH,
    RQ_CALL_NEXT,
} rq_call_kind;

/* An asynchronous call from its begin until its completion has run. From `start` until rq_call_done it belongs
 * to the back end. */
typedef struct rq_call {
    rq_task task; /* for the back end, to queue the call */
    struct rq_call *next;
    rq_call_kind kind;
    rq_table *table;
    rq_arena arena; /* of the arguments; begins in `lent` */
    rq_getting get;
    bool has_check;
    rq_checking check;
    rq_changing *changes;
    size_t change_count;
    bool returns_row; /* the changes return a row */
    rq_acting *actions;
    size_t action_count;
    struct rq_scanner *scanner;
    void *scan; /* the back end's state of the scan */
    size_t rows_max;
    void *own; /* for the back end */
    /* The outcome. */
    rq_err rc;
    rq_why why;
    bool done;
    rq_row *row;
    rq_outcomes *outcomes;
    rq_rows *rows;
    rq_done complete;
    void *context;
    /* The first memory of `arena`. The arguments of a get or put of one column fit in it, because many calls may be
     * outstanding, and an allocation is saved for each. */
    _Alignas(RQ_ARENA_ALIGN) uint8_t lent[512];
} rq_call;

/* Executes the call on this thread, by the back end's synchronous functions. */
void rq_call_run(rq_call *call);
/* Takes the row over, also if it fails. */
RQ_NODISCARD
rq_err rq_call_add_row(rq_call *call, rq_row *row);
size_t rq_call_row_count(const rq_call *call);
/* Starts the thread on which completions run, if the options ask for one. */
RQ_NODISCARD
rq_err rq_db_start_thread(rq_db *db, rq_error *why);
/* Marks the call as ended, so that its completion will run. Any thread; never waits. */
void rq_call_done(rq_call *call);
/* Whether rq_poll has something to do: a call has ended, or the database is being closed. Never waits. */
bool rq_db_has_ended_call(const rq_db *db);

/* --- the back end ----------------------------------------------------------------------------- */

/* Arguments live as long as the call. A failing call fills `why`. */
struct rq_backend {
    bool is_remote; /* calls wait for servers: several at a time are faster */
    bool
        no_threads; /* rq_connect_options.no_threads: code above the back end starts no thread either */
    /* Frees everything of the back end but the rq_db. REQUIRES: no call is running. */
    rq_err (*close)(rq_db *db, rq_error *why);
    rq_err (*define)(rq_db *db, rq_slot *slot, const rq_defining *d, rq_why *why);
    /* The serialized TableSchema, appended to `ret`. */
    rq_err (*describe)(rq_db *db, rq_slot *slot, rq_slice ns, rq_slice qualifier, rq_buf *ret,
                       bool *ret_enabled, rq_why *why);
    /* User tables; ns empty: of all namespaces. */
    rq_err (*tables)(rq_db *db, rq_slot *slot, rq_slice ns, rq_naming *ret, rq_why *why);
    rq_err (*namespaces)(rq_db *db, rq_slot *slot, rq_naming *ret, rq_why *why);
    /* The serialized NamespaceDescriptor, appended to `ret`. RQ_E_NAMESPACE_NOT_FOUND. */
    rq_err (*describe_namespace)(rq_db *db, rq_slot *slot, rq_slice ns, rq_buf *ret, rq_why *why);
    rq_err (*snapshots)(rq_db *db, rq_slot *slot, rq_snapshot_finding *ret, rq_why *why);
    /* RQ_E_TABLE_NOT_FOUND. */
    rq_err (*regions)(rq_db *db, rq_slot *slot, rq_slice ns, rq_slice qualifier,
                      rq_region_finding *ret, rq_why *why);
    /* family empty: all. */
    rq_err (*compact)(rq_db *db, rq_slot *slot, rq_slice ns, rq_slice qualifier, rq_slice family,
                      bool major, rq_why *why);
    rq_err (*cluster)(rq_db *db, rq_slot *slot, rq_cluster_finding *ret, rq_why *why);
    rq_err (*get)(rq_table *t, rq_slot *slot, const rq_getting *get, rq_row **ret, rq_why *why);
    /* check NULL: no check. Several changes, or a change with a check, are atomic; all are of one row. `ret` NULL:
     * the caller does not want the resulting row. */
    rq_err (*change)(rq_table *t, rq_slot *slot, const rq_checking *check, rq_changing *changes,
                     size_t count, bool *ret_done, rq_row **ret, rq_why *why);
    /* Sets every outcome, or fails as a whole. */
    rq_err (*batch)(rq_table *t, rq_slot *slot, rq_acting *actions, size_t count, rq_outcomes *ret,
                    rq_why *why);
    /* Begins a scan; *ret: its state, owned by the back end until scan_close. `scan` stays valid as long. */
    rq_err (*scan)(rq_table *t, rq_slot *slot, const rq_scanning *scan, void **ret, rq_why *why);
    /* Returns at most `max` rows, allocated in `memory` or freed by the caller; 0: the scan's end. Requests rows
     * from the database only if none is buffered. */
    rq_err (*next)(rq_table *t, rq_slot *slot, void *scan, rq_row_memory *memory, size_t max,
                   rq_row **rows, size_t *ret_count, rq_why *why);
    /* Whether `next` returns at once, with a row. */
    bool (*has_row)(const void *scan);
    /* Requests the rows after the buffered ones, without waiting; `next` may do this too. NULL: the back
     * end cannot. */
    void (*ahead)(rq_table *t, rq_slot *slot, void *scan);
    /* slot NULL: the back end was closed. */
    void (*scan_close)(rq_db *db, rq_slot *slot, void *scan);

    /* Begins an asynchronous call, which ends with rq_call_done. */
    void (*start)(rq_db *db, rq_call *call);
    /* Ends calls that wait, with RQ_E_CLOSED; db->closed is set. NULL: no call waits for long. */
    void (*stop)(rq_db *db);
    /* Does the work of asynchronous calls on this thread, until one has ended, the database is closed or the time
     * has passed; one thread at a time. rq_poll also calls it, with time 0, when no call is outstanding. NULL: the back
     * end has threads of its own for this. */
    void (*turn)(rq_db *db, int64_t timeout_ns);
    /* A descriptor that is readable when `turn` has something to do. */
    int (*descriptor)(rq_db *db);
    /* The next time at which `turn` has work that its descriptor does not show (rq_clock_ns,
     * CLOCK_MONOTONIC; INT64_MAX: never). */
    int64_t (*due)(rq_db *db);
    /* Does work that no call waits for, until there is none or the time has passed. NULL: it needs no
     * caller for that. */
    void (*idle)(rq_db *db, int64_t timeout_ns);
    /* Lets a while pass for an asynchronous call that waits for a slot while it is executed. NULL: it
     * sleeps. */
    void (*pause)(rq_db *db);
    /* A call has ended that was not given to the back end: `turn` looks. NULL: `turn` need not be
     * told. */
    void (*wake)(rq_db *db);
};

/* --- databases -------------------------------------------------------------------------------- */

/* Initialises the rq_db of a back end's database, which was allocated with zeros; it has one reference. */
RQ_NODISCARD
rq_err rq_db_init(rq_db *db, const rq_backend *backend, uint32_t timeout_ms, rq_error *why);
/* Releases a reference. If the opening of a database fails, this undoes rq_db_init. */
void rq_db_unref(rq_db *db);
/* Copies the caller's struct, whose first field is its size, to the library's struct; fields that an older, shorter
 * struct lacks are zero. RQ_E_INVALID: no struct, or a size that no version had or will have. RQ_E_UNSUPPORTED: a
 * field of a later version is set. */
RQ_NODISCARD
rq_err rq_sized(void *to, size_t to_size, const void *from, size_t least, const char *what,
                rq_error *why);
/* A struct that the caller allocates and the library fills; its first field is its size. RQ_E_INVALID: a size that no
 * version had or will have. */
RQ_NODISCARD
rq_err rq_sized_result(const void *to, size_t least, const char *what, rq_error *why);
/* Fills the part of the caller's struct that this version knows; `size` stays, and so do fields of a later version.
 * REQUIRES: rq_sized_result accepts it. */
void rq_fill_sized(void *to, const void *from, size_t from_size);
/* RQ_E_INVALID, "no WHAT", if a required argument is NULL. */
RQ_NODISCARD rq_err rq_needs(const void *argument, const char *what, rq_failure *failure);
/* RQ_E_INVALID if bytes.len is not 0 but bytes.data is NULL. */
RQ_NODISCARD rq_err rq_check_bytes(rq_bytes bytes, const char *what, rq_error *why);
/* Fills the caller's failure from `rc` and `why`; returns `rc`. */
rq_err rq_fill_failure(rq_failure *to, rq_err rc, const rq_why *why);

static inline void rq_why_clear(rq_why *why)
{
    rq_error_clear(&why->error);
    why->action = RQ_NO_ACTION;
    why->is_remote = false;
}

/* The first `count` cells of a cell block as a row, allocated in `memory`; NULL: the caller frees the row.
 * RQ_E_MALFORMED. */
RQ_NODISCARD
rq_err rq_row_of_block(rq_slice block, uint32_t count, rq_row_memory *memory, rq_row **ret);
/* Makes a row without cells that tells how far a scan is; the caller frees it. */
RQ_NODISCARD
rq_err rq_row_of_cursor(rq_slice cursor, rq_row **ret);

/* As rq_scanner_next, for at most `max` rows of one response of the database; 0: the scan's end. The caller frees
 * each row. An embedded database allocates the rows in `memory`, which several scanners of one thread may share;
 * NULL: in the scanner's own. REQUIRES: memory->counts. */
RQ_NODISCARD
rq_err rq_scanner_take(rq_scanner *s, rq_row_memory *memory, size_t max, rq_row **rows,
                       size_t *ret_count, rq_failure *failure);

/* On a cluster: requests the rows of the next rq_scanner_take ahead, unless some are buffered. */
void rq_scanner_ahead(rq_scanner *s);

/* Whether this is the process that opened the database, and not a child made by fork; accesses nothing but db->home. */
bool rq_db_is_home(const rq_db *db);
/* RQ_E_FORKED in such a child. For functions that take a lock, or use rows in memory, before they take a slot. */
RQ_NODISCARD
rq_err rq_db_needs_home(const rq_db *db, rq_failure *failure);

static inline rq_slice rq_slice_of_bytes(rq_bytes b)
{
    return rq_slice_of(b.data, b.len);
}

#endif
