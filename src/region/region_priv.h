/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The region from inside. What each field is guarded by is said beside it:
 *   const    set at open, never changed
 *   token    the writer token's holder only (token.c)
 *   atomic   anybody
 *   lock     `lock`, a leaf mutex held for a few instructions
 *   gate     whoever passed the named gate (a queue of blocking tasks, token.c)
 */
#ifndef RQ_REGION_REGION_PRIV_H
#define RQ_REGION_REGION_PRIV_H

#include "base/meter.h"
#include "hfile/read_ctx.h"
#include "region/engine.h"
#include "region/manifest.h"
#include "region/nonce_files.h"
#include "store/compaction.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

/* --- the writer token (token.c) --------------------------------------------------------------- */
typedef struct rq__work {
    struct rq__work *next;
    rq_lane *lane;   /* who may go on draining when it is this work's turn; NULL: nobody */
    unsigned weight; /* ops */
    /* Runs under the token; never blocks. The work is its owner's again when it begins. It stops
     * when the region's meter says so, and leaves the rest, which has a lane, in `interrupted`. */
    void (*run)(rq_region *r, struct rq__work *work);
} rq__work;

/* Runs `work` under the token: at once when it is free, else by whoever has it, after what was
 * enqueued before. */
void rq__region_enqueue(rq_region *r, rq__work *work);
/* For pool threads and tools: returns once run(r, arg) has run under the token. */
void rq__region_with_token(rq_region *r, void (*run)(rq_region *r, void *arg), void *arg);

/* One at a time, first come first served. Blocking tasks only: in the simulation they are stacks on
 * one thread, so what may wait inside must not hold a mutex. */
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

/* Numbers of files from elsewhere are below it; from there on there is room for every write. */
#define RQ__SEQID_LIMIT (UINT64_C(1) << 62)

/* --- the region ------------------------------------------------------------------------------- */
typedef enum rq__region_state {
    RQ__REGION_OPEN,
    RQ__REGION_CLOSING,
    RQ__REGION_CLOSED,
    RQ__REGION_FAILED, /* log or files failed: nothing more is acknowledged */
} rq__region_state;

typedef struct rq__name_list {
    char (*names)[RQ_STORE_FILE_NAME_MAX + 1];
    size_t count;
} rq__name_list;

/* What compactions are wished for a store, and which one is at work. One word, so that whoever asks
 * for the state never looks between the two. */
enum {
    RQ__WANT_MINOR = 1, /* to look for one */
    RQ__WANT_MAJOR = 2,
    RQ__WANT_ASKED = 4, /* a client did: MOB files are compacted too */
    RQ__WANTS = RQ__WANT_MINOR | RQ__WANT_MAJOR | RQ__WANT_ASKED,
    RQ__RUNS_MINOR = 8,
    RQ__RUNS_MAJOR = 16,
    RQ__RUNS = RQ__RUNS_MINOR | RQ__RUNS_MAJOR,
};

/* Compaction settings as published: a reload puts newer ones in front, the older ones stay until the
 * end, since a compaction may hold them. */
typedef struct rq__compaction_node {
    struct rq__compaction_node *older;
    rq_compaction_settings settings;
} rq__compaction_node;

/* A store with what the region keeps about it. */
typedef struct rq__region_store {
    rq_store *store;  /* const */
    rq_slice family;  /* const: its name, the schema's bytes */
    uint64_t flushed; /* commit gate: every cell at or below is in a file */
    struct rq__compaction_node *_Atomic compaction; /* rq__compaction_of */
    _Atomic bool compacting;                        /* a task is queued or runs */
    _Atomic unsigned compactions;                   /* RQ__WANT_…, RQ__RUNS_… */
    _Atomic unsigned postponed; /* RQ__WANT_…: open reads do not see all files, or a
                                        * full disk; the engine's looks ask again */
    _Atomic bool owes_major;    /* one was asked for when there were no files */
    _Atomic bool is_large;      /* what is wanted is for the other pool */
    _Atomic int32_t rank;       /* with which the task was submitted */
    /* Inputs that were replaced and could not be archived (a full disk): tried again. The store's
     * compaction task alone. */
    rq__name_list unarchived;
    _Atomic bool has_unarchived;
    rq_ranked_task task;
    rq_region *region;
} rq__region_store;

/* The settings now; valid as long as the store. Any thread. */
static inline const rq_compaction_settings *rq__compaction_of(const rq__region_store *s)
{
    return &atomic_load_explicit(&s->compaction, memory_order_acquire)->settings;
}

/* Open read points: a slot each (number + 1, 0: free); what finds no slot is counted in a list. */
#define RQ__READ_POINT_SLOTS 32

typedef struct rq__read_point {
    uint64_t number;
    uint64_t count;
} rq__read_point;

/* Ops of one batch that share a log record and a sequence number. On the stack of who runs the
 * batch: a region's own would be cold memory whenever many are written to. */
#define RQ__GROUP_ROOM 64

typedef struct rq__group {
    rq_segment_pending *cells; /* first_cells, or the heap's */
    rq_slice *slices;
    size_t count, room;
    size_t bytes;
    size_t staged_bytes; /* of the groups before this one */
    int durability;      /* of all its ops */
    size_t first_op;     /* in the batch */
    rq_segment_pending first_cells[RQ__GROUP_ROOM];
    rq_slice first_slices[RQ__GROUP_ROOM];
} rq__group;

/* Where the last write found what the next will look at: asked for from memory as soon as the
 * region is known (rq_region_expect_write), for a region that is one of many lies in no cache.
 * Addresses only; what they point to may be gone. */
typedef struct rq__warm {
    _Atomic(const void *) store; /* the first */
    _Atomic(const void *) version;
    _Atomic(const void *) segment; /* its active one, and where that puts the next cell */
    _Atomic(const void *) tail;
    _Atomic(const void *) bounds; /* the region's first and last row */
} rq__warm;

/* Reads are counted where the processor's own line is: one count for all would go from core to core
 * with every get. */
#define RQ__READ_COUNTS 8
typedef struct rq__read_count {
    _Atomic uint64_t n;
    uint64_t apart[7]; /* no two share a cache line */
} rq__read_count;

struct rq_region {
    /* What every write looks at, side by side. */
    _Atomic unsigned refs;
    _Atomic int state;        /* rq__region_state */
    rq__warm warm;            /* atomic */
    rq__region_store *stores; /* const */
    size_t store_count;       /* const */
    rq_wal_region *log;       /* const until closed */
    rq_engine *engine;        /* const */

    _Atomic(rq__work *) queue; /* NULL: the token is free; see token.c */
    rq__work *backlog;         /* token: taken from the queue, for the next drainer */
    rq__work *interrupted;     /* token: what is left of the work that ran, to go on first */
    rq_table_schema *schema;   /* const */
    rq_env env;                /* const */
    uint64_t cell_bytes_max;   /* const; 0: no limit */
    /* token: */
    uint64_t staged_seqid; /* the last number given */
    rq_lsn staged_lsn;     /* the last record's */
    rq_lsn sync_horizon;   /* of the last that must be durable before it may be seen */
    rq_lsn write_horizon;  /* … that must be handed over */
    rq__group *group;      /* of the batch that runs; NULL: none does */
    struct rq_write *held_first, *held_last; /* writes that wait for memory */
    uint64_t memstore_heap;                  /* as told to the engine */
    uint64_t unaccounted;                    /* bytes staged since */
    bool log_is_full;                        /* the log had no place for the last record */
    /* atomic: */
    _Atomic bool flush_requested;
    _Atomic uint64_t read_point;
    _Atomic uint64_t acked_sync, acked_write; /* log positions known to be so */
    _Atomic uint64_t memstore_bytes;          /* heap, for anybody to look at */
    _Atomic uint64_t active_bytes;            /* heap of the active segments */
    _Atomic uint64_t inflight;                /* writes and background tasks not finished */
    _Atomic(rq_latch *) idle;                 /* opened when inflight falls to 0 while closing */
    _Atomic uint64_t write_requests, filtered_read_requests;
    rq__read_count read_requests[RQ__READ_COUNTS];
    /* const: */
    rq_slice log_scopes; /* rq_wal_record.scopes */
    uint64_t flush_bytes;
    const rq__compaction_node *compaction_site; /* the engine's, when the stores were settled */
    uint64_t blocking_bytes;
    int64_t timestamp_slop_ms; /* INT64_MAX: not checked */
    rq_region_info info;

    rq_arena arena;            /* const: info, dir, scopes */
    const char *dir;           /* const: data/<ns>/<table>/<encoded> */
    uint64_t open_seqid;       /* const: the first number after opening */
    int64_t flush_interval_ms; /* const; 0 or less: memstores do not grow old */
    uint64_t flush_changes;    /* const */
    rq_region *next;           /* the engine's list and lock */
    rq_region **link;
    rq_epoch_node retired;
    rq_meter meter;     /* token: of the stretch of who drains */
    rq_task drain_task; /* posted while the token waits for its next drainer */

    /* token: */
    rq_read_ctx read_ctx;
    rq_arena scratch;
    rq_cellblock scratch_cells;
    rq__nonce_list nonces; /* of ops in memory and the log alone: the next flush writes them */

    /* atomic: */
    _Atomic uint64_t read_floor; /* the highest number smallest_read_point started from */
    _Atomic uint64_t read_slots[RQ__READ_POINT_SLOTS];
    _Atomic uint64_t held;         /* writes in the held list */
    _Atomic bool flush_everything; /* the next one: all families, not by policy */
    _Atomic bool flush_waits;      /* for a compaction: too many files */
    _Atomic bool flush_again;      /* the last one failed; the engine's tick asks for the next */
    _Atomic int flush_rc;          /* rq_err of the last one */
    uint64_t flush_waits_since_ns; /* the flush task's; 0: it does not */
    uint64_t flush_due_ns;         /* the engine's tick's: of a flush for age; 0: none is due */
    _Atomic uint64_t compacted_cells, compacting_cells;
    _Atomic uint64_t max_flushed_seqid;
    _Atomic bool failure_told;
    _Atomic bool stop; /* background work ends at its next look */

    rq_task flush_task;
    rq__gate flush_gate;            /* one flush at a time */
    rq__nonce_files nonce_files;    /* flush gate */
    _Atomic uint64_t nonces_due_ns; /* rq__nonce_files_due_ns */
    _Atomic bool nonces_tidied;     /* nonce_task is queued or runs */
    rq_task nonce_task;
    rq__gate commit_gate;        /* one change of the manifest at a time */
    rq__manifest_state manifest; /* commit gate */
    char **unwanted;             /* commit gate: paths; files given up while it is in doubt */
    size_t unwanted_count;

    pthread_mutex_t lock;
    rq__read_point *read_points RQ_GUARDED_BY(lock);
    size_t read_point_from RQ_GUARDED_BY(lock); /* the first that is in use */
    size_t read_point_to RQ_GUARDED_BY(lock);
    size_t read_point_room RQ_GUARDED_BY(lock);
    size_t read_point_holes RQ_GUARDED_BY(lock); /* of them: count 0 */
};

static inline rq__region_state rq__region_state_now(const rq_region *r)
{
    return (rq__region_state)atomic_load_explicit(&r->state, memory_order_acquire);
}

void rq__region_count_read(rq_region *r); /* any thread */

/* One of all, or NULL; *ret_place: which. */
rq__region_store *rq__region_find_store(rq_region *r, rq_slice family, size_t *ret_place);

/* The store of the family, or NULL. `hint`: where to look first, updated; a mutation names one
 * family over and over. */
static inline rq__region_store *rq__region_store_of(rq_region *r, rq_slice family, size_t *hint)
{
    rq__region_store *s = &r->stores[*hint];
    if (RQ_LIKELY(*hint < r->store_count &&
                  rq_short_compare(s->family.ptr, s->family.len, family.ptr, family.len) == 0))
        return s;
    return rq__region_find_store(r, family, hint);
}

/* Numbers up to `seqid` may be seen from here on. Any thread. */
void rq__region_raise_read_point(rq_region *r, uint64_t seqid);
/* Below it nothing is read any more but the newest of what is visible. */
uint64_t rq__region_smallest_read_point(rq_region *r);
void rq__region_free(rq_region *r);
/* Gives the region up. Any thread; the first reason counts. */
void rq__region_fail(rq_region *r, const rq_error *why);
/* Background tasks and writes in flight; `leave` may let a closing go on. */
bool rq__region_enter(rq_region *r); /* false: closing */
void rq__region_leave(rq_region *r);
void rq__region_leave_many(rq_region *r, unsigned count);
/* References at once. */
void rq__region_ref_many(rq_region *r, unsigned count);
void rq__region_unref_many(rq_region *r, unsigned count);
rq_err rq__region_not_serving(const rq_region *r, rq_error *why);
/* NoSuchColumnFamilyException in HBase's words. */
rq_err rq__region_no_family(const rq_region *r, rq_slice family, rq_error *why);

/* --- write.c ---------------------------------------------------------------------------------- */
/* token: tells the engine what the memstores hold, asks for a flush when they hold much. */
void rq__region_account(rq_region *r);
/* token: tries held writes again. */
void rq__region_retry_held(rq_region *r);
/* Any thread: the same through the queue. */
void rq__region_poke(rq_region *r);
/* token: checks that need no reading. `atomic`: HBase reports a wrong row differently. */
rq_err rq__mutation_check(rq_region *r, const rq_mutation *m, bool atomic, int64_t now_ms,
                          rq_error *why);
/* What the table says when the op says USE_DEFAULT. */
rq_durability rq__durability_of(const rq_region *r, const rq_row_op *op);

/* --- group.c -----------------------------------------------------------------------------------
 */
/* token: an empty one, which becomes the region's. */
void rq__group_begin(rq__group *g);
/* REQUIRES: what was added is committed or taken back. */
void rq__group_end(rq__group *g);
/* token: adds a cell to the group. The cell's bytes are copied. */
rq_err rq__group_add(rq_region *r, rq__region_store *s, const rq_cell *cell);
/* token: takes back what was added since there were `count` cells. */
void rq__group_rollback(rq_region *r, size_t count);
/* token: gives the group its number, stages its record and inserts it. On failure nothing happened
 * and the group's cells are taken back. */
rq_err rq__group_commit(rq_region *r, int64_t now_ms, uint64_t nonce_group, uint64_t nonce,
                        rq_error *why);

/* --- expect.c --------------------------------------------------------------------------------- */
/* token: notes where the last write found what the next one will look at. */
void rq__region_note_warm(rq_region *r);
/* Writes that come soon, each of another region; an empty row: it has none. As rq_region_expect. */
void rq__region_expect_writes(const rq_region_expected *list, size_t count);
/* token: writes to the region that come next, linked; RQ_REGION_EXPECT_MAX of them are looked at.
 */
void rq__region_expect_list(rq_region *r, const struct rq_write *first);

/* --- rmw.c ------------------------------------------------------------------------------------ */
/* token: whether the op must read before it writes. */
bool rq__op_reads(const rq_row_op *op);
/* token: runs it whole. RQ_E_AGAIN: ctx names the block; nothing happened. */
rq_err rq__op_run_reading(rq_region *r, rq_row_op *op, rq_read_ctx *ctx, int64_t now_ms,
                          rq_error *why);

/* --- flush.c, compact.c ----------------------------------------------------------------------- */
/* Any thread: a flush will run soon. Cheap when one is asked for already. */
void rq__region_request_flush(rq_region *r);
/* The same for all families, whatever their sizes: the log wants its oldest records gone. */
void rq__region_request_full_flush(rq_region *r);
void rq__region_flush_task(rq_task *task);
typedef enum rq__flush_what {
    RQ__FLUSH_ALL,
    RQ__FLUSH_FAMILY,
    RQ__FLUSH_BY_POLICY, /* HBASE: FlushAllLargeStoresPolicy */
} rq__flush_what;
rq_err rq__region_flush(rq_region *r, rq__flush_what what, rq_slice family, bool *ret_flushed,
                        rq_error *why);
/* What the last flush ended with; returns what the one before did. While it is lack of space no
 * compaction of the engine takes any. */
rq_err rq__region_note_flush(rq_region *r, rq_err rc);
/* --- nonce_files.c, for a region -------------------------------------------------------------- */
/* Where its files are. */
rq__nonce_place rq__region_nonce_place(rq_region *r);
/* The engine's tick: asks for a look at the files when one of them holds nothing alive. */
void rq__region_nonces_look(rq_region *r);

/* --- flush_age.c ------------------------------------------------------------------------------ */
/* At opening: the table's settings over the site's. */
void rq__flush_age_settle(rq_region *r);
/* Whether the policy flushes the store whatever its size. REQUIRES: token, or a pinned epoch. */
bool rq__store_is_old(const rq__region_store *s, int64_t now_ms);
/* The engine's tick: notes that a flush is due in a while; asks for it when the while is over. */
void rq__flush_age_look(rq_region *r, int64_t now_ms);
void rq__flush_age_act(rq_region *r);

/* --- commit.c --------------------------------------------------------------------------------- */
/* What a commit changes in one store; there may be several for a store. */
typedef struct rq__store_change {
    rq__region_store *store;
    const rq_store_file *removed;
    size_t removed_count;
    const rq_store_file *added; /* may be NULL */
    uint64_t flushed;           /* 0: as it is */
} rq__store_change;

/* Writes the manifest: the files of the stores' versions with the changes applied. REQUIRES: commit
 * gate. */
rq_err rq__region_commit(rq_region *r, const rq__store_change *changes, size_t change_count,
                         rq_error *why);
/* A finished file that will not be published: it goes, at once or when no manifest can name it any
 * more. A blocking task without the commit gate. */
void rq__region_give_up(rq__region_store *s, rq_store_file *f);
/* Before the first file after an opening. */
rq_err rq__region_mark_in_use(rq_region *r, rq_error *why);
/* A flush that waits for a compaction looks again. Any thread. */
void rq__region_resume_flush(rq_region *r);
/* One that failed is asked for again. Any thread. */
void rq__region_retry_flush(rq_region *r);
/* What the family (NULL: none) or table sets, if it is a number that is not negative. */
void rq__setting_i64(const rq_table_schema *t, const rq_family_schema *f, const char *property,
                     int64_t *value);
void rq__setting_u64(const rq_table_schema *t, const rq_family_schema *f, const char *property,
                     uint64_t *value);
/* A store's compaction settings, from family, table and site. `r` has its schema and flush size. */
void rq__compaction_settle(const rq_region *r, const rq_family_schema *f,
                           rq_compaction_settings *s);
struct rq_config;
rq_compaction_settings rq__compaction_settings_of_site(const struct rq_config *c);
/* Puts the settings in front of the list if they are others. One caller at a time. */
RQ_NODISCARD
rq_err rq__compaction_publish(rq__compaction_node *_Atomic *list, const rq_compaction_settings *s);
void rq__compaction_clear(rq__compaction_node *_Atomic *list);
/* Settles the region's stores anew, after the site's settings have changed. With the engine's lock. */
RQ_NODISCARD
rq_err rq__compaction_resettle(rq_region *r);
/* Looks whether the store needs a compaction and queues one. `wants`: RQ__WANT_…; 0: what was noted
 * before. */
void rq__store_request_compaction(rq__region_store *s, unsigned wants);
void rq__region_compact_task(rq_task *task);
/* Moves a file to archive/; a reference or link is removed. What stays is found at the next open.
 */
rq_err rq__archive_file(rq_vfs *vfs, const rq_region_info *info, rq_slice family, const char *name,
                        rq_error *why);
/* The file of folder `dir` to folder `to_dir`: at no moment it is in neither. */
rq_err rq__archive_move(rq_vfs *vfs, const char *dir, const char *to_dir, const char *name,
                        rq_error *why);

/* --- compacted.c ------------------------------------------------------------------------------ */
/* Of the files of a family's folder those go that another one replaced (HBase's compactions). */
rq_err rq__drop_compacted(rq_region *r, rq_slice family, const char *dir, rq_arena *arena,
                          const char **names, size_t *count, rq_error *why);

/* --- layout.c --------------------------------------------------------------------------------- */
/* Paths; in the arena, NULL when memory is out. */
const char *rq__region_dir(rq_arena *arena, const rq_region_info *info);
const char *rq__family_dir(rq_arena *arena, const rq_region_info *info, rq_slice family);
/* Folders and .regioninfo, durable; no manifest. What is there already is fine. */
rq_err rq__region_lay_out(rq_vfs *vfs, rq_arena *arena, const rq_region_info *info,
                          const rq_table_schema *schema, rq_error *why);
/* HBase's recovered.edits/<n>.seqid: the highest number used before; 0 when there is none. Refuses
 * (RQ_E_STATE) edits of HBase that were never replayed. */
rq_err rq__seqid_file_read(rq_vfs *vfs, const rq_region_info *info, uint64_t *ret, rq_error *why);
rq_err rq__seqid_file_write(rq_vfs *vfs, const rq_region_info *info, uint64_t seqid, rq_error *why);

#endif
