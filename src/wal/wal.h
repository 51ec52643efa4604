/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The write-ahead log: one per server, shared by all regions.
 *
 *   region ── stage ──► ring of staged bytes ── push ──► WAL file ── log's lane ──► disk
 *                                                 │ written                        │ synced
 *                                         HANDOVER waiters                   SYNC waiters
 *
 *  1. A region's writer *stages* a record: a short critical section copies it into the ring and
 *     assigns it the next log position (rq_lsn). Staging order is the log's order.
 *  2. At the end of its iteration every loop *pushes*. The first one takes the pen (wal_priv.h) and
 *     writes all staged bytes with one write; a loop that finds the pen taken continues, and the
 *     pen's holder writes its bytes, too.
 *  3. The log's own lane syncs all that is written with one sync, and repeats that while there are
 *     waiters. Then it wakes each lane that has waiters once.
 *  4. No record is acknowledged behind a hole. Bytes whose write or sync failed are appended again,
 *     at the same positions, to a new WAL file; when that fails, too, the log has failed for good.
 *  5. WAL files are recycled, oldest first, once no region needs a record in them.
 *
 * The format is described in wal/format.h.
 *
 * In a cluster the log is on shared storage (options.tenure): each incarnation of a server has one of
 * its own, which is begun empty and which another server reads after a fence (sealed.h). What differs:
 * records are always acknowledged as with RQ_WAL_SYNC; storage that cannot be reached delays
 * acknowledgements, and is no failure; a ledger has at most 16 MB, and above 256 MB of log on_pressure is
 * called with `urgent`; the log fails with RQ_E_SERVER_ABORTED once the tenure has ended; rq_wal_replay
 * delivers nothing, and rq_wal_replay_region returns RQ_E_UNSUPPORTED.
 */
#ifndef RQ_WAL_WAL_H
#define RQ_WAL_WAL_H

#include "base/bytes.h"
#include "base/env.h"
#include "base/err.h"
#include "base/histogram.h"
#include "vfs/retention.h"
#include "vfs/shared.h"
#include "wal/record.h"

typedef struct rq_wal rq_wal;
typedef struct rq_wal_member rq_wal_member;
typedef struct rq_wal_region rq_wal_region;

/* A position in the log: the end of a record, in bytes. It only grows, also across restarts. 0
 * is before every record. */
typedef uint64_t rq_lsn;

typedef enum rq_wal_sync {
    RQ_WAL_SYNC,     /* acknowledged when fdatasync has returned */
    RQ_WAL_HANDOVER, /* acknowledged when written to the operating system; synced in the
                      * background */
} rq_wal_sync;

/* A record with its headers may have at most half of staging_bytes_max. */
/* Reports of a log on shared storage about late appends (striped_late.c). */
typedef enum rq_wal_late_kind {
    RQ_WAL_LATE_SLOW, /* an append took longer than slow_ns */
    RQ_WAL_LATE_LOST, /* an append failed or timed out: it is repeated in a new ledger */
    RQ_WAL_LATE_STALLED, /* the new ledger cannot be created: writes wait, and the creation is retried */
    RQ_WAL_LATE_RESUMED, /* after LOST or STALLED: the log accepts appends again */
    RQ_WAL_LATE_KINDS,
} rq_wal_late_kind;

typedef struct rq_wal_late {
    rq_wal_late_kind kind;
    const char *object;  /* the stripe's name on the storage; NULL for STALLED and RESUMED */
    uint64_t bytes, ns;  /* since the append was sent; since the log stands still */
    const char *why;     /* LOST, STALLED */
    uint64_t suppressed; /* reports of the kind that were left out since the last one */
} rq_wal_late;

typedef struct rq_wal_options {
    const char *dir;          /* NULL: ".rorqual/wal"; created when missing */
    uint64_t file_bytes;      /* 0: 64 MB; size at which a new WAL file is begun */
    uint64_t max_log_bytes;   /* 0: 32 WAL files; above it on_pressure is called with `urgent` */
    size_t staging_bytes;     /* 0: 1 MB; initial size of the ring */
    size_t staging_bytes_max; /* 0: 64 MB; maximum size of the ring, see rq_wal_stage */
    rq_wal_sync sync;
    /* Not NULL: the log is in this tenure's ledgers on shared storage (striped.c), not in files.
     * Outlives the log, and is ended by the caller after it. `server_name` is its name. */
    rq_tenure *tenure;
    const char *server_name;
    rq_retention *retention; /* asked before a WAL file is recycled; outlives the log. NULL: none */
    /* Replay also delivers records behind a corrupt place; it then returns RQ_OK and reports
     * each place to on_corrupt. Without it, replay stops there with RQ_E_CORRUPT. */
    bool salvage;
    /* All callbacks are called on the log's lane (on_corrupt: during replay) and must not block. */
    /* `holder` has unflushed records in the oldest WAL file. `urgent`: the log is longer than
     * max_log_bytes. Otherwise it is longer than an eighth of that and few regions hold the
     * WAL file: if they have little to flush, flushing them frees a file for reuse, so that no
     * new one is needed. Called with the log's region lock held: post a flush and return; the
     * only rq_wal calls allowed are rq_wal_region_owner and rq_wal_region_name. The owner is
     * NULL for a region found in the log that was not opened. Called again with each new WAL file
     * while the log stays that long. */
    void (*on_pressure)(void *ctx, rq_wal_region *holder, bool urgent);
    void (*on_corrupt)(void *ctx, const rq_error *why);
    /* Called once, when the log has failed for good. */
    void (*on_failed)(void *ctx, const rq_error *why);
    /* Of a log on shared storage, a few times a minute at most. With the log's lock held: log it, and return. */
    void (*on_late)(void *ctx, const rq_wal_late *late);
    uint64_t slow_ns; /* 0: no append is slow */
    void *ctx;
} rq_wal_options;

/* Opens a log: reads the WAL files' headers. Blocks. RQ_E_CORRUPT names the file of a damaged or
 * missing WAL file. Nothing on disk changes before replay has succeeded. The env must outlive the
 * log. */
RQ_NODISCARD rq_err rq_wal_open(const rq_env *env, const rq_wal_options *options, rq_wal **ret,
                                rq_error *why);
/*
 * Delivers every record found, in log order. Among them may be records that their region has
 * flushed (compare with its flushed sequence id). REQUIRES: called once, before any other call.
 *
 * Afterwards the log accepts records. On a full disk it refuses them with RQ_E_NO_SPACE until there
 * is space (only a log without any WAL file cannot be started then). WAL files with records are
 * kept until each region in them has flushed: open it and call rq_wal_region_flushed, or call
 * rq_wal_forget. `callback` may be NULL; an error from it ends the replay and is returned. A
 * record's slices are valid during the callback.
 */
RQ_NODISCARD rq_err rq_wal_replay(rq_wal *wal,
                                  rq_err (*callback)(void *ctx, const rq_wal_record *r), void *ctx,
                                  rq_error *why);
/* Delivers one region's records that were staged before the call; at any time after replay.
 * Blocks; any pool thread. Reads only the parts of WAL files that contain records of the region.
 * Pushes staged records first; they need not be synced. */
RQ_NODISCARD rq_err rq_wal_replay_region(rq_wal *wal, const char *encoded,
                                         rq_err (*callback)(void *ctx, const rq_wal_record *r),
                                         void *ctx, rq_error *why);
/*
 * Pushes and syncs the rest and frees the log, also on an error. Blocks. REQUIRES: no thread
 * stages, waits or pushes any more, members have left, regions are closed. With `clean`, an empty
 * log remains (one WAL file flagged clean); if a region still needs a record, the log is closed as
 * if not clean and RQ_E_STATE is returned. NULL is allowed.
 */
rq_err rq_wal_close(rq_wal *wal, bool clean, rq_error *why);

/* Ends a log on shared storage as failed: unacknowledged records are never acknowledged, and
 * waiters soon get RQ_E_SERVER_ABORTED. For a server that must stop serving at once. Any thread. */
void rq_wal_abort(rq_wal *wal);

/* --- appending -------------------------------------------------------------------------------- */
/* A hint: prefetches what rq_wal_stage reads. */
void rq_wal_region_prefetch(const rq_wal_region *r);

/*
 * Stages a record. Any thread; never waits for a device. r->sequence_id must be above 0 and above
 * all earlier ones of the region. Region and table come from the handle (those of *r are ignored).
 * The payload is r->payload followed by the pieces in `more`. All bytes are copied. On success *ret
 * is the position to wait for; on failure nothing was staged.
 *
 * RQ_E_REGION_TOO_BUSY: the ring has its maximum size; wait for an older record and try again.
 * RQ_E_REQUEST_TOO_BIG: the record is longer than half of staging_bytes_max.
 * RQ_E_INVALID: a field is longer than the format allows.
 * RQ_E_NO_SPACE: the disk is full; what is in the log is safe. May be tried again.
 * RQ_E_NO_MEMORY: the ring could not grow.
 * Others: the log has failed.
 */
RQ_NODISCARD rq_err rq_wal_stage(rq_wal *wal, rq_wal_region *region, const rq_wal_record *r,
                                 const rq_slice *more, size_t more_count, rq_lsn *ret);
/*
 * Writes the staged bytes, unless another thread is writing, which then writes them, too. Every
 * loop calls it at the end of an iteration with its own member, whose completed waiters run before
 * this returns, unless they take longer than a time slice; other threads pass NULL. Cheap when nothing
 * is staged. May block in write(), never in a sync. Must not be called from a waiter's run().
 */
void rq_wal_push(rq_wal *wal, rq_wal_member *self);

typedef struct rq_wal_waiter {
    struct rq_wal_waiter *next;
    rq_lsn upto;
    /* rc is RQ_OK; or RQ_E_NO_SPACE: the disk has been full for a while, and the record is
     * written when there is space, if the log is still open then; or the error for which it will
     * never be acknowledged. The waiter belongs to its owner again. */
    void (*run)(struct rq_wal_waiter *w, rq_err rc);
} rq_wal_waiter;

/* Makes a member: a lane that waits for the log. Its waiters run on the lane, in log order; those that
 * do not fit into one time slice run in further tasks. rq_wal_leave frees it. REQUIRES (leave): the member has no
 * waiters, and none of them is in run(). */
RQ_NODISCARD rq_err rq_wal_join(rq_wal *wal, rq_lane *lane, rq_wal_member **ret);
/* Called on the member's lane, or after the lane has ended. NULL is allowed. */
void rq_wal_leave(rq_wal_member *m);
/*
 * Runs w when everything up to `upto` is acknowledged: durable with RQ_WAL_SYNC or if `synced` is
 * set, otherwise written. Any thread. w runs in a task of the member's lane: called on that lane,
 * it runs after this has returned; called elsewhere, it may run before. Does not push. A waiter
 * makes the log sync at once; bytes without a waiter are synced within a second.
 */
void rq_wal_wait(rq_wal_member *m, rq_wal_waiter *w, rq_lsn upto, bool synced);
/* For pool threads: pushes, and blocks until `upto` is acknowledged as in rq_wal_wait. */
RQ_NODISCARD rq_err rq_wal_wait_blocking(rq_wal *wal, rq_lsn upto, bool synced);

/* --- regions and what they still need --------------------------------------------------------- */
/* Opens a region's handle. Names are copied. The encoded name has at most RQ_WAL_REGION_NAME_MAX
 * bytes. One handle per name at a time (RQ_E_EXISTS). RQ_E_INVALID: a name is too long, or the log
 * has records of this region under another table. The handle takes over what replay found for the
 * name. */
RQ_NODISCARD rq_err rq_wal_region_open(rq_wal *wal, const char *encoded, rq_slice table,
                                       void *owner, rq_wal_region **ret);
/* Closes the handle. Unflushed records continue to hold their WAL files. After return no
 * on_pressure call for it is running. NULL is allowed. */
void rq_wal_region_close(rq_wal_region *r);
void *rq_wal_region_owner(const rq_wal_region *r);
const char *rq_wal_region_name(const rq_wal_region *r);
/* Says that records of the region up to sequence_id are not needed any more. Any thread. */
void rq_wal_region_flushed(rq_wal_region *r, uint64_t sequence_id);
/* Whether a region, open or not, has unflushed records in the log. */
bool rq_wal_holds(rq_wal *wal, const char *encoded);
/* Says that no record of a region that is not open is needed (it was dropped). */
void rq_wal_forget(rq_wal *wal, const char *encoded);
/* Calls `forget` for each region that is not open but has needed records; true forgets it.
 * Called under the log's region lock: no rq_wal calls. NULL: forgets none. Returns how many
 * remain. */
size_t rq_wal_unclaimed(rq_wal *wal, bool (*forget)(void *ctx, const char *encoded), void *ctx);

/* --- state ------------------------------------------------------------------------------------ */
bool rq_wal_failed(const rq_wal *wal);
/* The disk was full at the log's last attempt. */
bool rq_wal_lacks_space(rq_wal *wal);
/* Highest sequence id of a record of any kind that replay found for the region; 0: none. */
uint64_t rq_wal_found_sequence_id(rq_wal *wal, const char *encoded);
/* Begins a new WAL file soon (the Admin call RollWALWriter). */
void rq_wal_roll(rq_wal *wal);
/* Changes rq_wal_options.slow_ns. */
void rq_wal_set_slow(rq_wal *wal, uint64_t slow_ns);

typedef struct rq_wal_stats {
    uint64_t files, log_bytes;      /* of live WAL files */
    uint64_t spare_bytes;           /* of files that no record needs, kept for reuse */
    uint64_t records, record_bytes; /* staged since open */
    uint64_t writes, syncs, sync_ns, sync_ns_max;
    uint64_t rolls, recycled, reappends;
    uint64_t slow_appends, lease_lapses, lease_lapsed_ns; /* of a log on shared storage */
    rq_lsn staged, written, synced;
} rq_wal_stats;
void rq_wal_get_stats(rq_wal *wal, rq_wal_stats *ret);
/* Adds the durations of all syncs. Any thread. */
void rq_wal_sync_times(const rq_wal *wal, rq_times_sum *to);

#endif
