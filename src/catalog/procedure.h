/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durable procedures. A change of the catalog is a procedure: a record in the procedure store
 * (master:store, family proc, row be64 id), and a list of steps.
 *
 *   submit ─► [early kinds: record] ─► waits for its lock ─► checks ─► record ─► steps ─► finished
 *                                                              │                  │
 *                                         fails: no record remains                └─► a step fails:
 *
 *     certainly not committed, and error permanent or first run ─► undone; ended as failed
 *     else, if the error is temporary (base/errors.def)         ─► repeated, at growing intervals
 *     else, or if repeated too often                            ─► parked
 *
 *  1. The record says everything the steps need, region names included. It is written before the
 *     first step, again when the procedure is parked, and when it has finished. The first record is
 *     durable before the first step, or together with it if the first step is the commit; the last
 *     record is not waited for.
 *  2. Every step may be repeated: after a crash all steps run again from the first.
 *  3. One step is the *commit*: one atomic write to meta (or one new .tableinfo file). Before it
 *     the old state holds, after it the new one. If the step changes many rows of meta, it writes several
 *     records, one of which contains the commit. A start ignores rows that were written before the commit, or are to
 *     be removed after it (ddl_parts.c).
 *  4. With one server, records, meta and the tables' own edits share one log, of which always a
 *     prefix is durable. So if a client's edit survives a crash, all earlier writes of procedures
 *     survive too, for instance those that created its table. With several servers
 *     (rq_catalog.one_log is false), a procedure waits until each of its writes is durable.
 *  5. Procedures on one table, or on the same region of it, run one after another in the order they
 *     came; those of different tables, and of different regions of one table, side by side. A
 *     procedure on a namespace excludes those on its tables (proc_queue.c).
 *  6. No thread waits for a lock: a waiting procedure is an entry in a queue.
 *  7. No step is repeated forever, with two exceptions: while memory or disk space is missing, and the steps of
 *     REOPEN_REGION. A *parked* procedure runs no step and has left the queues of its locks. What conflicts with it
 *     (proc_locks.c) is refused with its error, not kept waiting. It stays parked over restarts; a start does not wait
 *     for it. If its error is temporary, it is tried again every ten minutes, unless another procedure holds its locks;
 *     otherwise it stays parked until it is aborted. An undo that cannot remove its rows from meta (ddl_parts.c) parks
 *     its procedure, too; each further attempt then continues the undo.
 *  8. An abort before the commit undoes; after it each remaining step is tried once more, and steps
 *     that fail again are skipped. A commit step that writes many rows of meta is not skipped as long as rows are
 *     missing or left over: the procedure is parked again, because after its end a start would take these rows for
 *     a table's. hbase:meta tells whether they are (ddl_parts.c).
 *  9. A procedure without a record (REOPEN_REGION) holds no lock between two attempts.
 * 10. A step may wait for reports of servers (calls.c): the procedure keeps its locks, and no
 *     thread. It is neither aborted nor ended before they have arrived. A crash meanwhile is a
 *     crash in the step.
 */
#ifndef RQ_CATALOG_PROCEDURE_H
#define RQ_CATALOG_PROCEDURE_H

#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/view.h"
#include "region/region_files.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct rq__proc rq__proc;
typedef struct rq__claim rq__claim;
typedef struct rq__lock_table rq__lock_table;
struct rq__batch;

/* A step. The procedure holds its locks. Idempotent. May block on files. To wait without a thread, a step
 * returns RQ_E_AGAIN with p->calls outstanding or with p->wait_ns set, and is called again after the
 * last report or that time. It keeps its progress in p->stage and p->at, which are 0 at the beginning of
 * each attempt. */
typedef rq_err (*rq__step)(rq_catalog *c, rq__proc *p, rq_error *why);

#define RQ__STEPS_MAX 6

/* Whether the commit has happened. */
typedef enum rq__commit_state {
    RQ__COMMIT_UNKNOWN,
    RQ__COMMIT_NO,
    RQ__COMMIT_YES,
} rq__commit_state;

/* The payload of a kind: the request's parameters (rq_ddl_params), and results of prepare. */
typedef union rq__payload {
    struct {
        rq_slice *split_keys; /* only until prepare */
        size_t count;
    } create;
    struct {
        bool preserve_splits;
    } truncate;
    struct { /* alters, including changes of the store-file tracker */
        /* Only until prepare, which makes the new TableSchema (rq__proc.descriptor) of these four: */
        rq_slice schema;        /* MODIFY_TABLE: TableSchema */
        rq_slice family_schema; /* ADD_FAMILY, MODIFY_FAMILY: ColumnFamilySchema */
        rq_slice tracker;       /* TABLE_TRACKER, FAMILY_TRACKER: the store-file tracker's name */
        rq_slice family;        /* DELETE_FAMILY, FAMILY_TRACKER: the family's name */
        bool no_reopen;
        rq_slice *removed; /* names of the families that the alter deletes */
        size_t removed_count;
        bool fewer_replicas; /* the alter lowers REGION_REPLICATION; not known after a restart */
    } alter;
    struct {
        rq_slice *families; /* none: all */
        size_t count;
    } flush;
    struct {
        rq_slice region;     /* encoded name */
        rq_slice row;        /* only until prepare; empty: the middle */
        rq_slice shown_name; /* the region's name in messages; empty: the encoded one */
    } split;
    struct {
        rq_slice *regions; /* encoded names; only until prepare */
        size_t count;
        bool forcible; /* only until the checks are done */
    } merge;
    struct {               /* LOCK_… */
        rq_slice *regions; /* encoded names */
        size_t count;
        rq_slice description;
        int64_t renewed_ms; /* under the procedures' lock; 0: it has not been granted in this run */
        int64_t heard_ms; /* time of the client's last request or heartbeat; 0: none in this run */
        bool released;    /* under the procedures' lock */
    } lock;
    struct {
        rq_slice name;       /* encoded */
        int64_t open_seqnum; /* TRUNCATE_REGION: the number the region was opened with */
        /* TRUNCATE_REGION in a cluster. The record has `truncations` only; `openings` is of this run. */
        rq_region_numbers noted;
        bool override;   /* UNASSIGN_REGION: a region that is closed already is no error */
        rq_slice server; /* MOVE_REGION: the target, a ServerName; empty: any server */
    } region;
    struct { /* SNAPSHOT, CLONE_SNAPSHOT, RESTORE_SNAPSHOT */
        rq_slice name;
        rq_slice description; /* SNAPSHOT: SnapshotDescription */
        bool flush;           /* SNAPSHOT */
        bool names_disabled;  /* SNAPSHOT: only until prepare */
        rq_slice tracker;     /* CLONE_SNAPSHOT: only until prepare */
    } snapshot;
} rq__payload;

/* Operations on one member of rq__payload (payload.c). NULL: nothing to do. */
typedef struct rq__payload_kind {
    rq_err (*take)(rq__proc *p, const rq_ddl *d); /* copies the submission's data into the arena */
    uint8_t (*flags)(const rq__proc *p);          /* bits of the record's flags */
    bool (*set_flags)(rq__proc *p, uint8_t flags);
    rq_err (*encode)(const rq__proc *p, rq_buf *b);
    /* Decodes a field whose tag is not one of the common ones; false: the tag is unknown here too. */
    bool (*decode)(rq__proc *p, uint8_t tag, rq_slice value, rq_err *ret);
    rq_err (*each_region)(const rq__proc *p, rq_err (*each)(void *ctx, rq_slice encoded),
                          void *ctx);
    bool (*holds_closed)(const rq__proc *p);
    /* The snapshot that the procedure locks besides its table; *ret_exclusive: it creates the snapshot. */
    rq_slice (*snapshot)(const rq__proc *p, bool *ret_exclusive);
} rq__payload_kind;

extern const rq__payload_kind rq__payload_none, rq__payload_create, rq__payload_truncate,
    rq__payload_modify, rq__payload_put_family, rq__payload_delete_family, rq__payload_tracker,
    rq__payload_namespace, rq__payload_flush, rq__payload_split, rq__payload_merge,
    rq__payload_region, rq__payload_peer, rq__payload_snapshot, rq__payload_restore,
    rq__payload_lock;

/* How a start finds out whether a change that is written to hbase:meta in several records (ddl_parts.c) was committed,
 * and which regions the table then has. */
typedef enum rq__rows_rule {
    RQ__ROWS_WHOLE, /* the change is one record */
    RQ__ROWS_TABLE, /* the row with the table's state is the commit: without it there is no table */
    RQ__ROWS_REPLACED, /* the row of the first new region is the commit: without it the table has the old regions,
                        * with it the new ones */
} rq__rows_rule;

typedef struct rq__proc_kind {
    rq_ddl_kind kind;
    const char *java_class;
    const rq__payload_kind *payload;
    /* The checks that HBase makes in the RPC. Runs without the lock, before the procedure has an id. May
     * be NULL. */
    rq__step precheck;
    /* Called if the first record cannot be written. True: it has released disk space, so the write may be
     * repeated. NULL: the kind has nothing to release. */
    bool (*make_room)(rq_catalog *c, const rq__proc *p);
    /* Computes the data for the record. Runs once, under the lock; not after a restart. */
    rq__step prepare;
    struct {
        const char *name;
        rq__step run;
    } steps[RQ__STEPS_MAX];
    unsigned commit; /* index of the commit step */
    /* Rolls back the steps before the commit; may be NULL. RQ_E_AGAIN as of a step. After another error the procedure is
     * parked, and the undo is repeated later. */
    rq__step undo;
    /* After a restart: whether the view, which was made from meta, has the change that the commit step
     * makes. NULL: it cannot be seen. */
    rq__commit_state (*seen)(rq_catalog *c, const rq__proc *p);
    bool transient; /* without a record: a crash ends it */
    rq__rows_rule rows;
    rq_lock_level lock;
    bool holds;      /* its step returns RQ_E_AGAIN as long as it keeps its lock (locks.c) */
    bool start_ends; /* after the commit, what is left to do is done by every start */
    /* Its first step is the commit. With one log the sync of the commit makes the record durable too. */
    bool commits_first;
    bool vital; /* it frees space, or an operator needs it to free space (rq__batch.vital) */
    bool leaves_regions; /* it neither opens nor closes its regions, so a start opens them */
    bool answer_at_end;  /* HBase's RPC returns when the procedure has finished */
    bool
        not_abortable; /* AbortProcedure is refused. HBASE: isRollbackSupported is false, or abort */
} rq__proc_kind;

/* NULL: unknown. */
const rq__proc_kind *rq__proc_kind_of(rq_ddl_kind kind);
/* The kind of records that cannot be decoded: it locks its table and has no steps. */
extern const rq__proc_kind rq__proc_kind_unknown;

/* What follows once the regions that the procedure has opened, and that are in no view, are closed
 * again. */
typedef enum rq__ending {
    RQ__ENDING_NOT,
    RQ__ENDING_UNDO, /* the procedure is rolled back, and ends with rc and why */
    RQ__ENDING_FAIL, /* the procedure ends with rc and why, without a rollback */
    RQ__ENDING_RETRY /* the step is repeated later; meanwhile the procedure holds no lock */
} rq__ending;

struct rq__proc {
    rq__proc *next, *prev;
    rq__proc *index_next[2]; /* in the indexes by id and by nonce */
    rq_catalog *catalog;
    const rq__proc_kind *ops;
    const char *java_class; /* of the kind; for an unknown kind the one in its record */
    uint64_t id;
    rq_arena arena;  /* everything below that points somewhere */
    uint64_t client; /* who submitted it in this run; 0: the server itself, or before a restart */
    size_t charged;  /* bytes that it adds to rq__procedures.total and to its client's account */
    /* --- as submitted, in the record */
    rq_slice ns, qualifier, table; /* table: "ns:q" or "q" */
    rq_slice user;
    uint64_t nonce_group, nonce;
    int64_t submitted_ms;
    /* --- filled by prepare, in the record */
    rq_slice descriptor;     /* the TableSchema of the table, or a namespace's descriptor, as
                          * submitted */
    rq_region_info *regions; /* to be made */
    size_t region_count;
    rq_region_info *old_regions; /* to be destroyed */
    size_t old_region_count;
    rq__payload of; /* the member selected by `ops->payload` */
    /* --- of this run */
    rq_table_schema *schema;   /* parsed from `descriptor`; a reference */
    struct rq__opened *opened; /* malloc'ed; regions that are open and not yet in a view */
    size_t opened_count;
    const rq_server_name *to; /* MOVE_REGION: the target server; a reference */
    rq_slice left;            /* REOPEN_REGION: the name of the server that has ended */
    struct rq_holder *holder; /* of the files of a snapshot that is being taken or cloned */
    struct rq__calls *calls;  /* sent by the current step */
    struct rq__calls *files;  /* SNAPSHOT: calls that have reported the regions' files */
    rq_region_files mob;      /* SNAPSHOT: the MOB files, in the arena */
    unsigned stage;           /* progress of the current step; defined by the step */
    size_t at;                /* progress within the stage, likewise */
    size_t written; /* progress of rq__parts_write: kept while the step or the undo is repeated */
    rq_region_info *infos; /* the table's regions, of an alter or a disable; in the arena */
    size_t info_count;
    /* Tables and regions that it will add to its namespace, as found by prepare. Under procedures.lock. */
    int64_t coming_tables, coming_regions;
    uint64_t wait_ns;    /* not 0: the step returned RQ_E_AGAIN, and is run again after this time */
    bool logged_waiting; /* the reason why the step waits was logged */
    rq__ending ending;   /* with rc and why */
    bool abandoned;      /* in an ending: no region is left open that is in no view */
    bool in_step;        /* it waits for reports of calls, so rq__step_end was not called */
    unsigned attempts;   /* of the current step */
    bool prepared, recorded, resumed;
    bool put_away;   /* a result that an earlier clean stop has moved (proc_store.c) */
    bool undurable;  /* its record, and its submitter's answer, wait for the commit's sync */
    bool was_parked; /* it was parked before the restart; the start opened the regions in meta */
    bool committed;  /* the commit's write succeeded in this run */
    bool unsure;     /* the commit's write failed, but may have been written */
    /* Parked in its undo, maybe before a restart: the next attempt continues the undo. In the record. */
    bool undoes;
    /* With `undoes`: the error with which it will end; in the arena. NULL: not known after a restart. */
    rq_error *cause;
    bool left_out;   /* it was aborted and a failed step was skipped; rc and why have the error */
    bool unreadable; /* its record cannot be decoded: it can only be aborted; see why */
    bool ended;      /* rc and why are final */
    _Atomic unsigned step; /* others look at it while it runs */
    /* --- under procedures.lock, but until `finished` only its task uses rc, why and updated_ms */
    rq__claim *claims;     /* on its namespace, table, regions */
    uint64_t claim_steps;  /* for tests: claims compared by rq__claims_new */
    size_t blocked;        /* claims that are not granted */
    rq__proc *ready_next;  /* in the list of those that may start */
    bool ready;            /* is in that list */
    rq__proc *parked_next; /* in the list of parked ones */
    /* While it is parked: the sorted names of its regions, because each procedure of the table asks for some of them;
     * malloc'ed. NULL: there are few, or memory is exhausted. */
    struct rq__encoded_name *named;
    size_t named_count;
    bool queued;   /* its claims are in their queues */
    bool running;  /* started, neither finished nor sleeping; also if parked or recording */
    bool parked;   /* runs no step any more; rc and why have the reason */
    bool parking;  /* its record as a parked one is being written */
    bool revives;  /* parked, and its timer will try it again */
    bool refused;  /* a parked procedure excludes it: it ends with rc and why */
    bool waiting;  /* for reports of its calls */
    bool retrying; /* waits for its timer; rc and why are from the last attempt */
    bool sleeping; /* retrying, and gave up its locks for the wait */
    _Atomic bool aborted;
    bool finished;
    rq_err rc;
    rq_error why;
    int64_t updated_ms, acknowledged_ms;
    rq_ddl *ddl;    /* to be answered; then NULL */
    bool recording; /* an early kind: its first record is being written, then it is answered */
    rq_procedure_watch *watches;
    rq_ddl *same; /* calls with the same nonce that came during `recording`; they get its answer */
    rq_task task;
    rq_timer timer;
};

#define RQ__PROC_CLIENTS 1024

/* Memory of unfinished procedures. */
typedef struct rq__proc_account {
    size_t bytes;
    size_t lock_bytes; /* the part of `bytes` that locks of LockService use */
} rq__proc_account;

typedef struct rq__procedures {
    pthread_mutex_t lock;
    uint64_t next_id;
    uint64_t marked_id; /* id of the empty row that the last clean stop left in `proc`; 0: none */
    rq__proc *active, *active_last; /* in order of arrival */
    size_t bytes_max;               /* limit of total.bytes */
    rq__proc_account total;
    rq__proc_account clients[RQ__PROC_CLIENTS]; /* by the client's number; see proc_share.c */
    rq__proc *finished;                         /* newest first */
    size_t finished_count;
    uint64_t succeeded, failed;    /* since the start */
    rq_log_limit end_lines[2];     /* about procedures that succeeded, and that failed */
    rq_log_limit trouble_lines[2]; /* warnings about steps, and errors */
    int64_t evicted_ms;            /* when results were last checked for expiry */
    rq__proc **index[2];           /* unfinished and finished procedures: buckets by id, by nonce */
    size_t index_mask, indexed;
    rq__lock_table *locks;
    rq__proc *ready, **ready_end; /* have all their locks and have not been started yet */
    rq__proc *parked;
    uint64_t lock_steps; /* for tests: claims and keys visited */
    unsigned watches;    /* of all procedures (proc_watch.c) */
    unsigned busy;       /* tasks that were submitted and have not ended */
    bool stopping;
    /* Retries REOPEN_REGION procedures that could not be made for lack of memory (proc_reopen.c). */
    struct {
        bool any; /* the timer is armed */
        rq_timer timer;
        rq_task task;
    } lost;
    rq_latch *idle;    /* set by stop; opened when no task is running */
    rq_lane *lane;     /* of retry timers */
    unsigned stepping; /* procedures that run a step (proc_pause.c) */
    bool paused;
    struct rq__pause_waiter *pause_waiters; /* steps that wait for the end of a pause */
    rq_latch *quiet;                        /* opened when no step runs */
    /* For tests: called before each step; an error counts as the step's. NULL in a server. */
    rq_err (*before_step)(void *ctx, const rq__proc *p, rq_error *why);
    void *before_step_ctx;
    /* For tests: writes a part of a change to hbase:meta (ddl_parts.c). NULL in a server. */
    rq_err (*write_part)(void *ctx, const rq__proc *p, const struct rq__batch *b, rq_error *why);
    void *write_part_ctx;
} rq__procedures;

RQ_NODISCARD
rq_err rq__procedures_init(rq_catalog *c, size_t bytes_max, rq_error *why);
/* Reads the records: finished ones become results, the others wait for _resume. */
RQ_NODISCARD
rq_err rq__procedures_load(rq_catalog *c, rq_error *why);
/* True if an unfinished procedure has begun to work on the region or its table and is responsible
 * for opening the region. A procedure that was only accepted is not, because it may still be refused.
 * A parked one does nothing, so the start opens its regions unless they are half changed
 * (rq__proc_holds_closed). */
bool rq__procedures_own(rq_catalog *c, const rq_region_info *info);
/* Whether a split of the region was requested and is not finished. */
bool rq__procedures_splitting(rq_catalog *c, const rq_region_info *info);
void rq__procedures_resume(rq_catalog *c);
/* Refuses new procedures and returns when no step runs. Procedures that wait for a lock or for a retry
 * are not ended; the next start continues those that have a record. */
void rq__procedures_stop(rq_catalog *c);
/* At a clean stop: moves the records of finished procedures to where HBase does not look for
 * procedures (proc_store.c), and deletes those of LockService's locks. As HBase expects it, the row of
 * the highest id stays, without a value. */
RQ_NODISCARD
rq_err rq__procedures_sweep(rq_catalog *c, rq_error *why);
void rq__procedures_clear(rq_catalog *c);

/* --- proc_pause.c ----------------------------------------------------------------------------- */
/* Returns when no step runs; none begins until _go_on. One pause at a time; not in a step. */
void rq__procedures_pause(rq_catalog *c);
void rq__procedures_go_on(rq_catalog *c);

/* --- procedure.c ------------------------------------------------------------------------------ */

/* Begins other background work of the catalog; the caller ends it by rq__procs_task_done, for which
 * rq__procedures_stop waits. False: the procedures are stopping. */
bool rq__procedures_task_begin(rq_catalog *c);

/* --- proc_reopen.c ---------------------------------------------------------------------------- */

/* Submits a REOPEN_REGION procedure and does not wait for it. `left`: the server of the region, which has ended;
 * NULL: the region has failed in this process, or is not open. The procedure does nothing if another one has opened
 * the region meanwhile. If memory does not suffice, the submission is repeated every second. */
void rq__procedures_reopen(rq_catalog *c, const rq_region_info *info, const rq_server_name *left);
void rq__procedures_reopen_init(rq__procedures *ps);

/* --- records (proc_record.c) ------------------------------------------------------------------ */
/* A serialized pb Procedure. */
RQ_NODISCARD
rq_err rq__proc_encode(const rq__proc *p, rq_arena *arena, rq_slice *ret);
/* Fills an empty procedure from untrusted bytes. RQ_E_CORRUPT: fields up to the error are filled
 * in. */
RQ_NODISCARD
rq_err rq__proc_decode(rq_slice bytes, rq__proc *p, rq_error *why);
/* Call it after RQ_E_CORRUPT: turns `p` into a procedure that keeps its record, blocks operations that
 * its table's lock would exclude, and can be aborted. */
RQ_NODISCARD
rq_err rq__proc_set_unreadable(rq__proc *p, uint64_t id, const rq_error *why);

/* Fields of a record. DO NOT CHANGE. */
enum rq__record_tag {
    RQ__TAG_NS = 1,
    RQ__TAG_QUALIFIER = 2,
    RQ__TAG_DESCRIPTOR = 3,
    RQ__TAG_NAME = 4,       /* alters: a family; kinds of one region: its encoded name */
    RQ__TAG_FLAGS = 5,      /* u8: 1 preserve_splits, 2 no_reopen, 4 prepared, 8 flush, 16 undoes */
    RQ__TAG_REGION = 6,     /* a RegionInfo; written by earlier versions only */
    RQ__TAG_OLD_REGION = 7, /* likewise */
    RQ__TAG_REMOVED_FAMILY = 8, /* alters */
    RQ__TAG_OPEN_SEQNUM = 9,    /* TRUNCATE_REGION: be64 */
    RQ__TAG_SNAPSHOT = 10,      /* name of the snapshot */
    RQ__TAG_DESCRIPTION = 11,   /* SNAPSHOT: SnapshotDescription */
    RQ__TAG_TRUNCATIONS = 12,   /* TRUNCATE_REGION: be64 */
    RQ__TAG_LOCKED_REGION = 20, /* LOCK_REGIONS: an encoded name */
    RQ__TAG_REGIONS = 21,       /* all of them, see proc_regions.c */
    RQ__TAG_OLD_REGIONS = 22,
};

RQ_NODISCARD
rq_err rq__record_put(rq_buf *b, enum rq__record_tag tag, rq_slice value);

/* --- lists of regions in a record (proc_regions.c) -------------------------------------------- */
#define RQ__RECORD_LIST_MAX 1000000
/* Bytes of all start and end keys of a list. Without a limit a damaged list of some bytes for each region, of which each
 * key shares 32 kB with the one before it, would be read into gigabytes. */
#define RQ__RECORD_KEYS_MAX ((uint64_t)256 << 20)
/* Appends a list of regions of one table. RQ_E_REQUEST_TOO_BIG: it could not be read again. */
RQ_NODISCARD
rq_err rq__regions_encode(rq_buf *b, const rq_region_info *list, size_t count);
/* Reads a list of regions of the procedure's table from untrusted bytes, into its arena. RQ_E_CORRUPT: the bytes are malformed,
 * or *ret is not NULL, because the record has two such lists. */
RQ_NODISCARD
rq_err rq__regions_decode(rq__proc *p, rq_slice bytes, rq_region_info **ret, size_t *ret_count,
                          rq_error *why);

#endif
