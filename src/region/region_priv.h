/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The region's internals. How each field is guarded is noted beside it:
 *   const    set at open, never changed
 *   token    only the writer token's holder (token.c)
 *   atomic   any thread
 *   lock     `lock`, a leaf mutex held for a few instructions
 *   gate     the holder of the named gate (a queue of blocking tasks, token.c)
 */
#ifndef RQ_REGION_REGION_PRIV_H
#define RQ_REGION_REGION_PRIV_H

#include "base/meter.h"
#include "hfile/read_ctx.h"
#include "region/engine.h"
#include "region/manifest.h"
#include "region/nonce_files.h"
#include "region/row_locks.h"
#include "store/compaction.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

/* --- the writer token (token.c) --------------------------------------------------------------- */
typedef struct rq__work {
    struct rq__work *next;
    rq_lane *lane;   /* the lane that may continue draining at this work; NULL: none */
    unsigned weight; /* number of ops */
    /* Runs under the token; never blocks on a lane. From its call on the work struct belongs to its
     * owner again. When the region's meter reports the end of the time slice, it stops and stores the
     * remaining work, which has a lane, in rq_region.interrupted. It also does so, and sets
     * rq_region.wants_pool, before a long op if it runs on a lane. */
    void (*run)(rq_region *r, struct rq__work *work);
} rq__work;

/* Runs `work` under the token: at once if it is free, otherwise its holder does, after the work
 * enqueued before. */
void rq__region_enqueue(rq_region *r, rq__work *work);
/* Likewise, by a thread of RQ_POOL_READ, which has no other work. */
void rq__region_enqueue_here(rq_region *r, rq__work *work);
/* For pool threads and tools: returns when run(r, arg) has run under the token. */
void rq__region_with_token(rq_region *r, void (*run)(rq_region *r, void *arg), void *arg);

/* A gate admits one task at a time, in order of arrival. For blocking tasks only. In the
 * simulation tasks are stacks on one thread, so a task that may wait inside a gate must not hold
 * a mutex. */
typedef struct rq__gate_waiter {
    struct rq__gate_waiter *next;
    rq_latch latch;
} rq__gate_waiter;

typedef struct rq__gate {
    pthread_mutex_t lock;
    bool busy RQ_GUARDED_BY(lock);
    rq__gate_waiter *first RQ_GUARDED_BY(lock);
    rq__gate_waiter *last RQ_GUARDED_BY(lock);
} rq__gate;

void rq__gate_init(rq__gate *g);
void rq__gate_destroy(rq__gate *g);
void rq__gate_enter(rq__gate *g, rq_executor *ex);
void rq__gate_leave(rq__gate *g, rq_executor *ex);

/* Sequence ids in files made elsewhere must be below this limit, so that enough numbers are left
 * for all later writes. */
#define RQ__SEQID_LIMIT (UINT64_C(1) << 62)

/* --- the region ------------------------------------------------------------------------------- */
typedef enum rq__region_state {
    RQ__REGION_OPEN,
    RQ__REGION_CLOSING,
    RQ__REGION_CLOSED,
    RQ__REGION_FAILED, /* log or files failed: no write is acknowledged any more */
} rq__region_state;

typedef struct rq__name_list {
    char (*names)[RQ_STORE_FILE_NAME_MAX + 1];
    size_t count;
} rq__name_list;

/* Requested and running compactions of a store, in one word, so that a reader never sees a state
 * between the two. */
enum {
    RQ__WANT_MINOR = 1, /* check whether one is due */
    RQ__WANT_MAJOR = 2,
    RQ__WANT_ASKED = 4, /* requested by a client: compact MOB files, too */
    RQ__WANT_QUIET = 8, /* the store is no longer written to (quiet.c) */
    RQ__WANTS = RQ__WANT_MINOR | RQ__WANT_MAJOR | RQ__WANT_ASKED | RQ__WANT_QUIET,
    RQ__RUNS_MINOR = 16,
    RQ__RUNS_MAJOR = 32,
    RQ__RUNS = RQ__RUNS_MINOR | RQ__RUNS_MAJOR,
};

/* Published compaction settings: a reload puts newer ones in front; older ones stay until the end,
 * since a compaction may hold them. */
typedef struct rq__compaction_node {
    struct rq__compaction_node *older;
    rq_compaction_settings settings;
} rq__compaction_node;

/* A store and the region's state for it. */
typedef struct rq__region_store {
    rq_store *store;  /* const */
    rq_slice family;  /* const: its name, in the schema */
    uint64_t flushed; /* commit gate: every cell up to this number is in a file */
    struct rq__compaction_node *_Atomic compaction; /* rq__compaction_of */
    _Atomic bool compacting;                        /* a task is queued or runs */
    _Atomic unsigned compactions;                   /* RQ__WANT_…, RQ__RUNS_… */
    _Atomic unsigned postponed; /* RQ__WANT_…: postponed because open reads do not see all
                                        * files, or the disk is full; the engine's checks request
                                        * them again */
    _Atomic bool owes_major;    /* a major compaction was requested when there were no files */
    _Atomic bool is_large;      /* the requested compaction is a large one */
    _Atomic int32_t rank;       /* rank of the submitted task */
    /* Replaced inputs that could not be archived (a full disk); retried. Used by the store's
     * compaction task only. */
    rq__name_list unarchived;
    _Atomic bool has_unarchived;
    /* Commit gate: MOB files whose store files the manifest may name, because a failed swap is in doubt. They count as
     * being written until the next successful swap. */
    rq_mob_output doubtful;
    rq_ranked_task task;
    rq_region *region;
} rq__region_store;

/* The settings now; valid as long as the store. Any thread. */
static inline const rq_compaction_settings *rq__compaction_of(const rq__region_store *s)
{
    return &atomic_load_explicit(&s->compaction, memory_order_acquire)->settings;
}

/* Open read points: one per slot (number + 1, 0: free); without a free slot a read point is
 * counted in a list. */
#define RQ__READ_POINT_SLOTS 32

typedef struct rq__read_point {
    uint64_t number;
    uint64_t count;
} rq__read_point;

/* Ops of one batch that share a log record and a sequence id. On the stack of the thread that
 * runs the batch: a group in the region would be cold memory when many regions are written. */
#define RQ__GROUP_ROOM 64

typedef struct rq__group {
    rq_segment_pending *cells; /* first_cells, or on the heap */
    rq_slice *slices;
    size_t count, room;
    size_t bytes;
    size_t staged_bytes;  /* of earlier groups */
    int durability;       /* of all its ops */
    bool vital;           /* likewise */
    rq_slice cluster_ids; /* of all its ops */
    size_t first_op;      /* index in the batch */
    rq_segment_pending first_cells[RQ__GROUP_ROOM];
    rq_slice first_slices[RQ__GROUP_ROOM];
} rq__group;

/* Addresses used by the last write, which the next one will access: prefetched as soon as the
 * region is known (rq_region_expect), since one of many regions is in no cache. Only addresses:
 * the memory may have been freed. */
typedef struct rq__warm {
    _Atomic(const void *) store; /* the first */
    _Atomic(const void *) version;
    _Atomic(const void *) segment; /* its active segment, and where that stores the next cell */
    _Atomic(const void *) tail;
    _Atomic(const void *) bounds; /* the region's first and last row */
} rq__warm;

/* Ops whose reads run apart (apart.h). */
typedef struct rq__apart_line {
    size_t reading;
    struct rq__apart_reads *first, *last; /* wait until fewer read; oldest first */
} rq__apart_line;

/* Read counters, several per region: a single one would move between cores with every get. */
#define RQ__READ_COUNTS 8
typedef struct rq__read_count {
    _Atomic uint64_t n;
    uint64_t apart[7]; /* padding: no two share a cache line */
} rq__read_count;

struct rq_region {
    /* Used by every write, kept together. */
    _Atomic unsigned refs;
    _Atomic int state;        /* rq__region_state */
    rq__warm warm;            /* atomic */
    rq__region_store *stores; /* const */
    size_t store_count;       /* const */
    rq_wal_region *log;       /* const until closed */
    rq_engine *engine;        /* const */

    _Atomic(rq__work *) queue;      /* NULL: the token is free; see token.c */
    rq__work *backlog;              /* token: taken from the queue, for the next drainer */
    rq__work *interrupted;          /* token: the rest of interrupted work, to be run first */
    rq_table_schema *schema;        /* const */
    rq_env env;                     /* const */
    uint64_t cell_bytes_max;        /* const; 0: no limit */
    _Atomic int64_t clock_floor_ms; /* atomic; the least timestamp that a cell without one gets */
    /* token: */
    uint64_t staged_seqid;   /* the last sequence id assigned */
    rq_lsn staged_lsn;       /* log position of the last record */
    rq_lsn sync_horizon;     /* log position of the last record that must be durable before it is
                            * visible */
    rq_lsn write_horizon;    /* … that must be written */
    rq__group *group;        /* of the running batch; NULL: none */
    struct rq__owned *owned; /* const; owned.h; NULL: the server is standalone */
    struct rq_write *held_first, *held_last; /* writes that wait for memory */
    struct rq__batch *long_batch;            /* alternates with other work; NULL: none */
    struct rq_write *long_first, *long_last; /* other long batches, in the order interrupted */
    uint64_t memstore_heap;                  /* as reported to the engine */
    uint64_t unaccounted;                    /* bytes staged since then */
    rq__work retry;                          /* the next slice of rq__region_retry_held */
    bool retry_queued;
    bool log_is_full; /* the log had no room for the last record */
    rq__row_locks row_locks;
    rq__apart_line apart;
    size_t bulk_loads;                    /* number of those that have published files */
    struct rq__copied_load *copied_loads; /* bulk loads that copy their files; see bulk_load.c */
    /* atomic: */
    _Atomic bool flush_requested;
    _Atomic uint64_t read_point;
    _Atomic uint64_t acked_sync, acked_write; /* log positions known to be synced and written */
    _Atomic uint64_t memstore_bytes;          /* heap, readable by any thread */
    _Atomic uint64_t active_bytes;            /* heap of the active segments */
    _Atomic uint64_t inflight;                /* unfinished writes and background tasks */
    _Atomic(rq_latch *) idle;                 /* opened when inflight becomes 0 while closing */
    _Atomic uint64_t write_requests, filtered_read_requests;
    rq__read_count read_requests[RQ__READ_COUNTS];
    /* const: */
    rq_slice log_scopes; /* rq_wal_record.scopes */
    uint64_t flush_bytes;
    const rq__compaction_node *compaction_site; /* the engine's, when the stores were configured */
    uint64_t blocking_bytes;
    int64_t timestamp_slop_ms; /* INT64_MAX: not checked */
    rq_region_info info;

    rq_arena arena;            /* const: info, dir, scopes */
    const char *dir;           /* const: data/<ns>/<table>/<encoded> */
    uint64_t open_seqid;       /* const: first sequence id after opening */
    int64_t flush_interval_ms; /* const; 0 or less: no flush for age */
    uint64_t flush_changes;    /* const */
    rq_region *next;           /* in the engine's list, guarded by its lock */
    rq_region **link;
    rq_region *next_of_hash; /* in a bucket of the engine's hash table, guarded by its lock */
    rq_epoch_node retired;
    rq_meter meter; /* token: time slice of the draining lane */
    bool on_pool;   /* token: its holder is a thread of RQ_POOL_READ, which took it for a long op */
    bool wants_pool;    /* token: such a thread is to go on with the interrupted work */
    rq_task drain_task; /* posted while the token waits for its next drainer */

    /* token: */
    rq_read_ctx read_ctx;
    rq_arena scratch;
    rq_cellblock scratch_cells;
    rq__nonce_list nonces; /* nonces of unflushed ops: the next flush writes them */

    /* atomic: */
    _Atomic uint64_t read_floor; /* the highest number smallest_read_point started from */
    _Atomic uint64_t read_slots[RQ__READ_POINT_SLOTS];
    _Atomic uint64_t held;         /* number of held writes */
    _Atomic bool flush_everything; /* the next flush takes all families, not by policy */
    _Atomic bool flush_waits;      /* the flush waits for a compaction: too many files */
    _Atomic bool flush_again;      /* the last flush failed; the engine's tick requests another */
    _Atomic int flush_rc;          /* rq_err of the last flush */
    uint64_t flush_waits_since_ns; /* used by the flush task; 0: it does not wait */
    uint64_t flush_due_ns;         /* used by the engine's tick: when a flush for age is due; 0:
                                    * none */
    /* quiet.c; used by the engine's tick */
    uint64_t quiet_point;    /* the read point at the last look, or when the region was opened */
    uint64_t quiet_since_ns; /* when it was first seen; 0: nothing is to be done */
    _Atomic uint64_t compacted_cells, compacting_cells;
    _Atomic uint64_t max_flushed_seqid;
    _Atomic bool failure_reported;
    _Atomic bool stop;                       /* background work ends at its next check */
    _Atomic(struct rq__table_times *) times; /* table_times.c; NULL: none was added yet */

    rq_task flush_task;
    rq__gate flush_gate;            /* one flush at a time */
    rq__nonce_files nonce_files;    /* flush gate */
    _Atomic uint64_t nonces_due_ns; /* rq__nonce_files_due_ns */
    _Atomic bool nonces_tidied;     /* nonce_task is queued or runs */
    rq_task nonce_task;
    rq__gate commit_gate;        /* one change of the manifest at a time */
    rq__manifest_state manifest; /* commit gate */
    /* Generation and next number of the manifest that the last clean close wrote; generation 0:
     * unknown, or there was no clean close. */
    uint64_t closed_generation, closed_next_seqid;
    /* A name may have been removed from a family's folder since the folder was synced. */
    _Atomic bool has_removed_names;
    char **unwanted; /* commit gate: paths of files discarded while the manifest is
                                  * in doubt */
    size_t unwanted_count;

    pthread_mutex_t lock;
    rq__read_point *read_points RQ_GUARDED_BY(lock);
    size_t read_point_from RQ_GUARDED_BY(lock); /* index of the first one in use */
    size_t read_point_to RQ_GUARDED_BY(lock);
    size_t read_point_room RQ_GUARDED_BY(lock);
    size_t read_point_holes RQ_GUARDED_BY(lock); /* entries with count 0 */
};

static inline rq__region_state rq__region_state_now(const rq_region *r)
{
    return (rq__region_state)atomic_load_explicit(&r->state, memory_order_acquire);
}

void rq__region_count_read(rq_region *r); /* any thread */

/* Finds a store, or NULL. *ret_place: its index. */
rq__region_store *rq__region_find_store(rq_region *r, rq_slice family, size_t *ret_place);

/* The store of the family, or NULL. `hint`: the index to try first, updated, since a mutation
 * names one family repeatedly. */
static inline rq__region_store *rq__region_store_of(rq_region *r, rq_slice family, size_t *hint)
{
    rq__region_store *s = &r->stores[*hint];
    if (RQ_LIKELY(*hint < r->store_count &&
                  rq_short_eq(s->family.ptr, s->family.len, family.ptr, family.len)))
        return s;
    return rq__region_find_store(r, family, hint);
}

/* Makes sequence ids up to `seqid` visible. Any thread. */
void rq__region_raise_read_point(rq_region *r, uint64_t seqid);
/* The smallest open read point: of versions below it only the newest visible one is still read. */
uint64_t rq__region_smallest_read_point(rq_region *r);
void rq__region_free(rq_region *r);
/* Marks the region failed. Any thread; the first reason is kept. */
void rq__region_fail(rq_region *r, const rq_error *why);
/* Count background tasks and writes in flight; `leave` may let a close continue. */
bool rq__region_enter(rq_region *r); /* false: closing */
void rq__region_leave(rq_region *r);
void rq__region_leave_many(rq_region *r, unsigned count);
/* Take or drop several references at once. */
void rq__region_ref_many(rq_region *r, unsigned count);
void rq__region_unref_many(rq_region *r, unsigned count);
rq_err rq__region_not_serving(const rq_region *r, rq_error *why);
/* Returns NoSuchColumnFamilyException with HBase's text. */
rq_err rq__region_no_family(const rq_region *r, rq_slice family, rq_error *why);

/* --- held.c ----------------------------------------------------------------------------------- */
/* token: reports the memstores' size to the engine and requests a flush if they are large. */
void rq__region_account(rq_region *r);
/* token: retries held writes. */
void rq__region_retry_held(rq_region *r);
/* Any thread: retries held writes through the queue. */
void rq__region_poke(rq_region *r);

/* --- write.c ---------------------------------------------------------------------------------- */
/* token: checks that need no read. `atomic`: HBase reports a wrong row differently. */
rq_err rq__mutation_check(rq_region *r, const rq_mutation *m, bool atomic, int64_t now_ms,
                          rq_error *why);
/* The op's durability; the table's if it is USE_DEFAULT. */
rq_durability rq__durability_of(const rq_region *r, const rq_row_op *op);

/* --- group.c ---------------------------------------------------------------------------------- */
/* token: starts an empty group. */
void rq__group_begin(rq__group *g);
/* Ends the group. REQUIRES: everything added was committed or rolled back. */
void rq__group_end(rq__group *g);
/* token: adds a cell, which is copied, to the group. latest_ms: its timestamp if it has none. */
rq_err rq__group_add(rq_region *r, rq__region_store *s, const rq_cell *cell, int64_t latest_ms);
/* token: removes the cells added after the first `count`. */
void rq__group_rollback(rq_region *r, size_t count);
/* token: assigns the group a sequence id, stages its record and links its cells. On failure
 * nothing was done and the group's cells are rolled back. */
rq_err rq__group_commit(rq_region *r, int64_t now_ms, uint64_t nonce_group, uint64_t nonce,
                        rq_error *why);

/* --- expect.c --------------------------------------------------------------------------------- */
/* token: records the addresses that the next write will access. */
void rq__region_note_warm(rq_region *r);
/* Prefetches for writes that come soon, each to another region; an empty row: none. Like
 * rq_region_expect. */
void rq__region_expect_writes(const rq_region_expected *list, size_t count);
/* token: prefetches for the next writes to the region, a linked list, of which the first
 * RQ_REGION_EXPECT_MAX are used. */
void rq__region_expect_list(rq_region *r, const struct rq_write *first);

/* --- rmw.c ------------------------------------------------------------------------------------ */
static inline bool rq__mutation_is_delta(const rq_mutation *m)
{
    return m->type == RQ_MUTATE_INCREMENT || m->type == RQ_MUTATE_APPEND;
}

/* A Delete without a timestamp: it deletes the column's newest version, whose timestamp has to be
 * read. */
static inline bool rq__cell_deletes_newest(const rq_cell *c)
{
    return c->type == RQ_TYPE_DELETE && c->timestamp == RQ_TIMESTAMP_LATEST;
}

/* Whether the op must read before it writes. */
static inline bool rq__op_reads(const rq_row_op *op)
{
    if (op->condition_count > 0) return true;
    for (size_t i = 0; i < op->mutation_count; i++) {
        const rq_mutation *m = &op->mutations[i];
        if (rq__mutation_is_delta(m)) return true;
        if (m->type != RQ_MUTATE_DELETE) continue;
        for (size_t j = 0; j < m->cell_count; j++)
            if (rq__cell_deletes_newest(&m->cells[j])) return true;
    }
    return false;
}

/* token: runs the whole op. RQ_E_AGAIN: nothing was done; either ctx names the missing block, or ctx has no need and
 * the op's reads take too long. */
rq_err rq__op_run_reading(rq_region *r, rq_row_op *op, rq_read_ctx *ctx, int64_t now_ms,
                          rq_error *why);

/* --- flush.c, compact.c ----------------------------------------------------------------------- */
/* Requests a flush. Any thread. Cheap if one is requested already. */
void rq__region_request_flush(rq_region *r);
/* Requests a flush of all families, whatever their sizes: the log needs its oldest records
 * released. */
void rq__region_request_full_flush(rq_region *r);
void rq__region_flush_task(rq_task *task);
typedef enum rq__flush_what {
    RQ__FLUSH_ALL,
    RQ__FLUSH_FAMILY,
    RQ__FLUSH_BY_POLICY, /* HBASE: FlushAllLargeStoresPolicy */
} rq__flush_what;
rq_err rq__region_flush(rq_region *r, rq__flush_what what, rq_slice family, bool *ret_flushed,
                        rq_error *why);
/* Flushes everything. REQUIRES: the region is idle and its folders are swept. If there is anything to flush, the
 * commit may be that of a clean close (rq__region_note_closed). */
RQ_NODISCARD
rq_err rq__region_flush_last(rq_region *r, rq_error *why);
/* Records that the manifest is as a clean close leaves it. */
void rq__region_note_closed(rq_region *r);
/* Flushes everything and calls `then` before another flush can begin. */
RQ_NODISCARD
rq_err rq__region_flush_then(rq_region *r, rq_err (*then)(rq_region *r, void *ctx, rq_error *why),
                             void *ctx, rq_error *why);
/* Records the last flush's result; returns the previous result. While the last result is
 * RQ_E_NO_SPACE, the engine's compactions pause. */
rq_err rq__region_note_flush(rq_region *r, rq_err rc);
/* --- a region's nonces (flush.c), its kind (region.c) ----------------------------------------- */
/* The place of its nonce files. */
rq__nonce_place rq__region_nonce_place(rq_region *r);
/* Of a table in the namespace hbase, or of master:store. */
bool rq__region_is_system(const rq_region *r);
/* The level at which flushes and compactions are logged: of system tables, whose small memstores
 * are flushed every few seconds under writes, debug. */
rq_log_level rq__region_log_level(const rq_region *r);
/* Called by the engine's tick: starts nonce_task if one of the files holds no live nonce. */
void rq__region_nonces_look(rq_region *r);

/* --- quiet.c ---------------------------------------------------------------------------------- */
/* Called by the engine's tick: requests compactions if the region was written to since it was opened, but not for
 * rorqual.compaction.quiet. */
void rq__quiet_look(rq_region *r);

/* --- flush_age.c ------------------------------------------------------------------------------ */
/* Sets the flush settings at opening: the table's over the site's. */
void rq__flush_age_init(rq_region *r);
/* Whether the policy flushes the store regardless of its size, because its memstore is old.
 * REQUIRES: token, or a pinned epoch. */
bool rq__store_is_old(const rq__region_store *s, int64_t now_ms);
/* Called by the engine's tick: _look schedules a flush for age after a random delay; _act
 * requests it when the delay is over. */
void rq__flush_age_look(rq_region *r, int64_t now_ms);
void rq__flush_age_act(rq_region *r);

/* --- linked.c --------------------------------------------------------------------------------- */
/* Whether a region without a manifest could not be opened. Without a manifest the folder counts (open_store.c), unless a
 * list of files stands for it; in a cluster it never does. */
bool rq__region_needs_manifest(const rq_engine *e, const rq_table_schema *schema);
/* Makes the missing folders of the path without syncing them. Another thread may be making the same
 * ones. */
RQ_NODISCARD
rq_err rq__make_folders(rq_vfs *vfs, rq_arena *arena, const char *path, rq_error *why);

/* --- commit.c --------------------------------------------------------------------------------- */
/* A change of one store in a commit; several may concern the same store. */
typedef struct rq__store_change {
    rq__region_store *store;
    const rq_store_file *removed;
    size_t removed_count;
    const rq_store_file *added; /* may be NULL */
    uint64_t flushed;           /* 0: unchanged */
} rq__store_change;

/* Writes the manifest: the files of the stores' versions with the changes applied. REQUIRES:
 * commit gate. */
rq_err rq__region_commit(rq_region *r, const rq__store_change *changes, size_t change_count,
                         rq_error *why);
/* The region's files, as a manifest would name them now, in the arena. REQUIRES: commit gate. */
RQ_NODISCARD
rq_err rq__region_files(rq_region *r, rq_arena *arena, rq__manifest *ret);
/* Discards a finished file that will not be published: removes it at once, or when no manifest
 * can name it any more. Blocks. Not with the commit gate held. */
void rq__region_give_up(rq__region_store *s, rq_store_file *f);
/* After a rewrite that was not committed: its MOB files no longer count as being written, at once, or when no manifest can
 * name their store files any more. An empty list is allowed. Blocks. Not with the commit gate held. */
void rq__region_give_up_mob(rq__region_store *s, rq_mob_output *o);
/* Called before a name is removed from a family's folder without a sync of the folder. */
static inline void rq__region_removes_names(rq_region *r)
{
    atomic_store_explicit(&r->has_removed_names, true, memory_order_relaxed);
}
/* Sets IN_USE; called before the first file is made after an opening. */
rq_err rq__region_mark_in_use(rq_region *r, rq_error *why);
/* --- flush.c, continued ----------------------------------------------------------------------- */
/* Wakes a flush that waits for a compaction. Any thread. */
void rq__region_resume_flush(rq_region *r);
/* Requests a failed flush again. Any thread. */
void rq__region_retry_flush(rq_region *r);
/* --- compaction_settings.c -------------------------------------------------------------------- */
/* Sets *value to the property's value for the family (NULL: none) or table, if it is a
 * non-negative number. */
void rq__setting_i64(const rq_table_schema *t, const rq_family_schema *f, const char *property,
                     int64_t *value);
void rq__setting_u64(const rq_table_schema *t, const rq_family_schema *f, const char *property,
                     uint64_t *value);
/* Computes a store's compaction settings from family, table and site. REQUIRES: `r` has its
 * schema and flush size. */
void rq__compaction_settings_of_store(const rq_region *r, const rq_family_schema *f,
                                      rq_compaction_settings *s);
struct rq_config;
rq_compaction_settings rq__compaction_settings_of_site(const struct rq_config *c);
/* Puts the settings in front of the list if they differ. One caller at a time. */
RQ_NODISCARD
rq_err rq__compaction_publish(rq__compaction_node *_Atomic *list, const rq_compaction_settings *s);
void rq__compaction_clear(rq__compaction_node *_Atomic *list);
/* Computes the settings of the region's stores again after the site's have changed. With the
 * engine's lock. */
RQ_NODISCARD
rq_err rq__compaction_reconfigure(rq_region *r);
/* --- compact.c -------------------------------------------------------------------------------- */
/* Queues a compaction if the store needs one. `wants`: RQ__WANT_…; 0: requests recorded before. */
void rq__store_request_compaction(rq__region_store *s, unsigned wants);
void rq__region_compact_task(rq_task *task);
/* --- files (layout.c) ------------------------------------------------------------------------- */
/* Moves a file to archive/; a reference or link is removed. A file that could not be moved is
 * found at the next open. */
rq_err rq__archive_file(rq_vfs *vfs, const rq_region_info *info, rq_slice family, const char *name,
                        rq_error *why);
/* Moves a file from folder `dir` to `to_dir`; at every moment it is in at least one of them. */
rq_err rq__archive_move(rq_vfs *vfs, const char *dir, const char *to_dir, const char *name,
                        rq_error *why);

/* --- compacted.c ------------------------------------------------------------------------------ */
/* Removes from the list (and archives) files of a family's folder that HBase's compactions have
 * replaced. */
rq_err rq__drop_compacted(rq_region *r, rq_slice family, const char *dir, rq_arena *arena,
                          const char **names, size_t *count, rq_error *why);

/* --- layout.c --------------------------------------------------------------------------------- */
/* Paths, in the arena; NULL when memory is exhausted. */
const char *rq__region_dir(rq_arena *arena, const rq_region_info *info);
const char *rq__family_dir(rq_arena *arena, const rq_region_info *info, rq_slice family);
/* Creates folders and .regioninfo, durably; no manifest. Existing ones are kept. */
rq_err rq__region_lay_out(rq_vfs *vfs, rq_arena *arena, const rq_region_info *info,
                          const rq_table_schema *schema, rq_error *why);
/* A new region's manifest: the table's families, without files. */
rq_err rq__manifest_of_schema(rq_arena *arena, const rq_table_schema *schema, rq__manifest *ret,
                              rq_error *why);
/* Reads HBase's recovered.edits/<n>.seqid: the highest sequence id used before; 0: none.
 * RQ_E_STATE: there are edits of HBase that were never replayed. */
rq_err rq__seqid_file_read(rq_vfs *vfs, const rq_region_info *info, uint64_t *ret, rq_error *why);
rq_err rq__seqid_file_write(rq_vfs *vfs, const rq_region_info *info, uint64_t seqid, rq_error *why);

#endif
