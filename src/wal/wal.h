/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The write-ahead log: one per server, shared by all regions.
 *
 *   region ── stage ──► ring of staged bytes ── push (leader) ──► segment file ── log's lane ──►
 * disk │ written                      │ synced HANDOVER waiters                SYNC waiters
 *
 *  1. A region's writer *stages* a record: a short critical section copies it into the ring and
 *     gives it the next log position (rq_lsn). Staging order is the log's order.
 *  2. At the end of its iteration every loop *pushes*: whoever finds the log free writes all staged
 *     bytes with one write; who finds it taken goes on, the leader takes his bytes along.
 *  3. The log's own lane syncs once for all that is written and starts again at once while somebody
 *     waits. Then each lane with waiters is woken once.
 *  4. Nothing is acknowledged above a hole, and bytes whose write or sync failed are appended
 * again, with the same positions, to a new segment; when that fails too, the log has failed for
 * good.
 *  5. Segments are recycled oldest first once no region needs a record in them.
 *
 * The format stands in wal/format.h.
 */
#ifndef RQ_WAL_WAL_H
#define RQ_WAL_WAL_H

#include "base/bytes.h"
#include "base/env.h"
#include "base/err.h"
#include "wal/record.h"

typedef struct rq_wal rq_wal;
typedef struct rq_wal_member rq_wal_member;
typedef struct rq_wal_region rq_wal_region;

/* A place in the log: the position behind a record. Grows for ever, also across restarts; 0 is
 * before everything. */
typedef uint64_t rq_lsn;

typedef enum rq_wal_sync {
    RQ_WAL_SYNC,     /* acknowledged once fdatasync returned */
    RQ_WAL_HANDOVER, /* acknowledged once handed to the operating system; synced behind the back */
} rq_wal_sync;

/* A record, its headers included, may not be longer than a half of staging_bytes_max. */
typedef struct rq_wal_options {
    const char *dir;          /* NULL: ".rorqual/wal"; created when missing */
    uint64_t segment_bytes;   /* 0: 64 MB; a new segment is begun behind it */
    uint64_t max_log_bytes;   /* 0: 32 segments; above it on_pressure is called */
    size_t staging_bytes;     /* 0: 1 MB; the ring at start */
    size_t staging_bytes_max; /* 0: 64 MB; the ring's ceiling, see rq_wal_stage */
    rq_wal_sync sync;
    /* Deliver what stands behind a corrupt place too (rq_wal_replay then returns RQ_OK and reports
     * each place to on_corrupt). Without it replay stops there with RQ_E_CORRUPT. */
    bool salvage;
    /* All callbacks: from the log's lane (on_corrupt: from replay), must not block. */
    /* This region holds records of the log's oldest segment. `urgent`: the log is longer than
     * max_log_bytes. Else it has an eighth of that, and few regions hold that segment: where they
     * have little to flush, a whole file is free for it, to be written over instead of a new one.
     * Called with the log's region lock held: post a flush and return; no rq_wal call but
     * rq_wal_region_owner and _name. The owner is NULL for a region found in the log that nobody
     * opened. Called again with each new segment while the log stays so long. */
    void (*on_pressure)(void *ctx, rq_wal_region *holder, bool urgent);
    void (*on_corrupt)(void *ctx, const rq_error *why);
    /* Once, when the log has failed for good. */
    void (*on_failed)(void *ctx, const rq_error *why);
    void *ctx;
} rq_wal_options;

/* Blocking. Reads the segments' headers. RQ_E_CORRUPT names the file of a broken or missing one;
 * nothing is changed on disk before replay has succeeded. The env outlives the log. */
RQ_NODISCARD rq_err rq_wal_open(const rq_env *env, const rq_wal_options *options, rq_wal **ret,
                                rq_error *why);
/*
 * Delivers every record found, in log order; records a region has flushed already may be among them
 * (compare with its flushed number). REQUIRES: once, before anything else. Afterwards the log is
 * ready to append; on a full disk it refuses records with RQ_E_NO_SPACE until there is space, by
 * itself (only a log that had no segment at all cannot begin). Segments with records stay until each region named in them says flushed (open it
 * and call rq_wal_region_flushed, or rq_wal_forget). `callback` may be NULL; an error from it ends
 * the replay and is returned. Slices of the record are valid during the callback.
 */
RQ_NODISCARD rq_err rq_wal_replay(rq_wal *wal,
                                  rq_err (*callback)(void *ctx, const rq_wal_record *r), void *ctx,
                                  rq_error *why);
/* One region's records alone, at any time after replay: those staged before the call. Blocking, any
 * pool thread; reads only the parts of segments in which the region has records. Records need not
 * be synced yet; unpushed ones are pushed first. */
RQ_NODISCARD rq_err rq_wal_replay_region(rq_wal *wal, const char *encoded,
                                         rq_err (*callback)(void *ctx, const rq_wal_record *r),
                                         void *ctx, rq_error *why);
/*
 * Blocking. REQUIRES: nobody stages, waits or pushes any more; members have left, regions are
 * closed. Pushes and syncs what is left. With `clean` an empty log stays behind (one segment that
 * says so); if a region still needs a record, RQ_E_STATE and the log is closed as if not clean.
 * NULL is fine. Always frees.
 */
rq_err rq_wal_close(rq_wal *wal, bool clean, rq_error *why);

/* --- appending -------------------------------------------------------------------------------- */
/* A hint: asks memory for what staging looks at. */
void rq_wal_region_ask_for(const rq_wal_region *r);

/*
 * Any thread, never waits for a device. r->sequence_id must be above 0 and above all former ones of
 * the region; region and table are the handle's (those of *r are ignored); the payload is
 * r->payload followed by the pieces in `more`. All bytes are copied. On success *ret is to be
 * waited for; on failure nothing was staged.
 *
 * RQ_E_REGION_TOO_BUSY: the ring is at its ceiling; wait for an older record and try again.
 * RQ_E_REQUEST_TOO_BIG: longer than a record may be.
 * RQ_E_NO_SPACE: the disk is full; what is in the log is safe. May be tried again.
 * RQ_E_NO_MEMORY: the ring could not grow.
 * Others: the log has failed.
 */
RQ_NODISCARD rq_err rq_wal_stage(rq_wal *wal, rq_wal_region *region, const rq_wal_record *r,
                                 const rq_slice *more, size_t more_count, rq_lsn *ret);
/*
 * Writes what is staged, or leaves it to who is writing just now. Every loop calls it at the end of
 * an iteration with its own membership, whose finished waiters run before this returns; others pass
 * NULL. Cheap when nothing is staged. May block in write(), never in sync. Not from within a
 * waiter's run().
 */
void rq_wal_push(rq_wal *wal, rq_wal_member *self);

typedef struct rq_wal_waiter {
    struct rq_wal_waiter *next;
    rq_lsn upto;
    /* RQ_OK; RQ_E_NO_SPACE: the disk is full since a while, and the record is written some day, if
     * the log does not end before; else why it will never be acknowledged. The waiter is its
     * owner's again. */
    void (*run)(struct rq_wal_waiter *w, rq_err rc);
} rq_wal_waiter;

/* Waiters of one member run on its lane, in log order. Freed by leave, when nobody waits. */
RQ_NODISCARD rq_err rq_wal_join(rq_wal *wal, rq_lane *lane, rq_wal_member **ret);
/* On the member's lane, or when the lane is gone. NULL is fine. */
void rq_wal_leave(rq_wal_member *m);
/*
 * Runs w once everything up to `upto` is acknowledged: durable with RQ_WAL_SYNC or when `synced` is
 * set, else handed over. Any thread; never runs w before it returns. Does not push. Waiting is what
 * makes the log sync: bytes nobody waits for are synced within a second.
 */
void rq_wal_wait(rq_wal_member *m, rq_wal_waiter *w, rq_lsn upto, bool synced);
/* For pool threads: pushes, and returns once `upto` is acknowledged as above. */
RQ_NODISCARD rq_err rq_wal_wait_blocking(rq_wal *wal, rq_lsn upto, bool synced);

/* --- regions and what they still need --------------------------------------------------------- */
/* Names are copied. The encoded name is at most RQ_WAL_REGION_NAME_MAX bytes, one handle per name
 * at a time (RQ_E_EXISTS). What replay found for the name is the handle's from now on. */
RQ_NODISCARD rq_err rq_wal_region_open(rq_wal *wal, const char *encoded, rq_slice table,
                                       void *owner, rq_wal_region **ret);
/* Records not flushed go on holding their segments. NULL is fine. After return no on_pressure call
 * for it runs. */
void rq_wal_region_close(rq_wal_region *r);
void *rq_wal_region_owner(const rq_wal_region *r);
const char *rq_wal_region_name(const rq_wal_region *r);
/* No record of the region with a number ≤ sequence_id is needed any more. Any thread. */
void rq_wal_region_flushed(rq_wal_region *r, uint64_t sequence_id);
/* The same for all records of a region that is not open (dropped for good). */
void rq_wal_forget(rq_wal *wal, const char *encoded);
/* Regions with needed records that are not open: asks for each whether to forget it (under the
 * log's region lock: no rq_wal call from within; NULL: never). Returns how many are left. */
size_t rq_wal_unclaimed(rq_wal *wal, bool (*forget)(void *ctx, const char *encoded), void *ctx);

/* --- state ------------------------------------------------------------------------------------ */
bool rq_wal_failed(const rq_wal *wal);
/* The disk was full when the log last tried. */
bool rq_wal_lacks_space(rq_wal *wal);
/* Highest sequence id replay found for the region, 0 for none (of all kinds). */
uint64_t rq_wal_found_sequence_id(rq_wal *wal, const char *encoded);
/* Ends the current segment soon and begins another (the Admin call RollWALWriter). */
void rq_wal_roll(rq_wal *wal);

typedef struct rq_wal_stats {
    uint64_t segments, log_bytes;   /* live ones */
    uint64_t records, record_bytes; /* staged since open */
    uint64_t writes, syncs, sync_ns, sync_ns_max;
    uint64_t rolls, recycled, reappends;
    rq_lsn staged, written, synced;
} rq_wal_stats;
void rq_wal_get_stats(rq_wal *wal, rq_wal_stats *ret);

#endif
