/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log's internals, shared by the files of this room:
 *
 *   wal.c      open, replay, close      lane.c     sync, roll, repair, prewriting (the log's lane)
 *   append.c   stage and push           holders.c  which region holds which WAL file
 *   wait.c     members and waiters      begin.c    how a WAL file begins
 *   striped.c  in the place of lane.c's work and begin.c, for a log on shared storage
 *
 * Positions: staged ≥ written ≥ synced. All three are ends of frames.
 *
 * Writing a WAL file needs the *pen*. One thread at a time has it, without holding the mutex: a
 * loop takes it in push; the lane takes it to roll and to repair. A loop whose write fails, or that
 * finds the lane waiting for the pen, passes it to the lane.
 *
 * Locks, in the order they are taken: regions_mutex, mutex, then a member's. The pen is not a lock:
 * no thread blocks on it.
 */
#ifndef RQ_WAL_WAL_PRIV_H
#define RQ_WAL_WAL_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "vfs/vfs.h"
#include "wal/format.h"
#include "wal/header.h"
#include "wal/reader.h"
#include "wal/record_codec.h"
#include "wal/wal.h"

#define RQ_WAL_PATH_MAX 512
#define RQ_WAL_BUCKETS_MIN 1024                 /* a power of two */
#define RQ_WAL_BACKGROUND_SYNC_BYTES (4u << 20) /* HANDOVER: unsynced bytes that start a sync */
/* Bytes without a waiter are synced after this time. */
#define RQ_WAL_IDLE_NS 1000000000u
/* The prewritten space that is reserved on a full disk for records that free space (append.c). */
#define RQ__WAL_RESERVE ((uint64_t)64 << 10)
/* How long a waiter waits for space on a full disk before it gets RQ_E_NO_SPACE. */
#define RQ_WAL_PATIENCE_NS ((uint64_t)5 * 1000 * 1000 * 1000)
#define RQ_WAL_RETRY_NS 100000000u /* between attempts when the disk is full */
#define RQ_WAL_REPAIR_TRIES 2
#define RQ_WAL_FREE_SLOTS_KEPT 2 /* recycled files that stay, for the next rolls */

typedef struct wal_file wal_file;
typedef struct note note;
typedef struct rq__striped rq__striped; /* striped.c */

/* A file of the log. */
typedef struct slot {
    struct slot *next; /* in wal->free_slots */
    rq_file *file;
    unsigned id;         /* NNNNNN.wal */
    int older;           /* the header copy to overwrite next */
    uint64_t number;     /* of the WAL file named in its header; 0: none */
    uint64_t prewritten; /* the file has allocated, written blocks up to here */
    bool bad;            /* a sync failed: the file is never written again */
} slot;

/* A live part of the log. Guarded by mutex, except what only the pen's holder uses. */
struct wal_file {
    wal_file *next; /* younger */
    slot *slot;
    uint64_t number;
    uint64_t prev_number;
    rq_lsn first_lsn;
    rq_lsn end_lsn;         /* once sealed */
    rq_wal_file_info found; /* its header, of a file that was there when the log was opened */
    bool sealed;
    bool indexed; /* chunk_first and the notes' chunks are exact */
    /* Of a log on shared storage: what was acknowledged in each stripe when the ledger was left (striped.c). */
    uint64_t lengths[RQ_SLOG_STRIPES];
    uint32_t holders; /* number of regions with an unflushed EDIT in it */
    uint32_t chunk_first[RQ_WAL_CHUNKS];
};

/* The records of one region in one WAL file. */
struct note {
    wal_file *file;
    uint64_t lowest, highest; /* of records of all kinds */
    uint64_t highest_edit;
    uint64_t chunks;
    bool holds; /* counted in file->holders */
};

struct rq_wal_region {
    rq_wal *wal;
    rq_wal_region *next; /* in its bucket */
    void *owner;
    bool open;   /* guarded by regions_mutex, as owner */
    note *notes; /* oldest WAL file first; guarded by mutex */
    size_t note_count, note_cap;
    uint64_t flushed;
    uint64_t found; /* highest sequence id found by replay */
    uint16_t table_len;
    char encoded[RQ_WAL_REGION_NAME_MAX + 1];
    uint8_t table[];
};

/* Completed waiters that were removed from a member's lists and have not run yet. */
typedef struct rq__wal_completed {
    rq_wal_waiter *first;
    rq_err rc; /* of each */
} rq__wal_completed;

struct rq_wal_member {
    rq_wal *wal;
    rq_wal_member *next;
    rq_lane *lane; /* NULL: the log's own member; its waiters run on the completing thread */
    rq_task task;
    pthread_mutex_t mutex;
    struct waiter_list {
        rq_wal_waiter *head, *last;
    } waiting[2]; /* [1]: wait for a sync. Guarded by mutex, as `posted` and `left` */
    bool posted;
    bool left;
    _Atomic uint32_t count; /* length of both lists; a hint that avoids taking the mutex */
    /* On the lane only: */
    rq__wal_completed stopped; /* left over by the last time slice */
    bool continues;            /* `task` is posted to run the next slice */
};

typedef enum pen { PEN_FREE, PEN_LOOP, PEN_LANE } pen;

struct rq_wal {
    rq_env env;
    rq_wal_options options;
    char dir[256];
    uint64_t epoch;
    uint64_t chunk_width;
    rq__striped *striped; /* const; NULL: the log is in files */
    rq_lane *lane;
    rq_task lane_task;
    rq_timer timer;

    pthread_mutex_t regions_mutex;
    rq_wal_region **
        buckets; /* changed with regions_mutex and mutex held, read with either, as the two counts */
    size_t bucket_count, region_count;

    pthread_mutex_t mutex; /* guards the fields below, up to members_mutex */
    uint8_t *ring;         /* ring_cap bytes, a power of two; position `lsn` is at lsn &
                            * (ring_cap - 1) */
    size_t ring_cap;
    rq_lsn ring_from;      /* bytes below were not copied when the ring grew */
    uint8_t *ring_retired; /* the former ring, which the pen's holder may still read */
    rq_lsn staged, written, synced;
    rq_lsn attested;                              /* durable position recorded in the newest
                                                   * frame */
    rq_lsn mark_end;                              /* end of the last mark; a mark alone needs no
                                                   * sync */
    uint32_t staged_crc, written_crc, synced_crc; /* of the frame that ends there */
    uint32_t copying; /* staged records whose bytes are not all in the ring yet */
    rq_lsn sync_wanted;
    wal_file *oldest, *newest; /* the live chain; staged records are noted in the newest */
    wal_file *current;         /* the WAL file being written; older than newest only while the lane
                               * rolls or repairs */
    slot *free_slots;
    slot *spare;        /* prepared for the next roll; used by the lane only */
    uint64_t kept_from; /* rq_wal_keep_from */
    uint64_t next_number;
    unsigned next_slot;
    pen pen;
    bool push_wanted; /* a push found the pen taken, or a record that is being copied */
    bool lane_wants_pen;
    bool lane_posted, lane_running;
    bool roll_wanted;
    bool prewriting; /* the lane is prewriting behind current's prewritten */
    bool timed_out;  /* the idle timer fired */
    bool timer_armed;
    bool no_space;          /* stage refuses records that do not fit into allocated space */
    uint64_t retry_at_ns;   /* 0: there is nothing to retry */
    uint64_t full_since_ns; /* since when the disk has been full; 0: it is not */
    /* Waiters above this position get RQ_E_NO_SPACE at the lane's next attempt; UINT64_MAX: none
     * do. */
    _Atomic rq_lsn full_above;
    rq_err broken; /* error of a failed write or sync, which the lane repairs */
    bool broken_by_sync;
    /* The log was opened on a full disk, and the former process's last WAL file could not be made durable from this
     * position on. No new WAL file may begin before that file is durable. 0: it is. */
    rq_lsn unsure;
    uint64_t pressed_oldest, pressed_newest; /* the chain at the last pressure check */
    bool replayed;
    bool closing; /* closing: do not wait for disk space */
    /* Number of threads that wait until `copying` is 0. While there are any, new records are copied
     * under the mutex, so that the wait ends. */
    uint32_t copies_awaited;
    pthread_cond_t copied;
    rq_wal_stats stats;
    rq_times sync_times; /* written under the mutex */

    _Atomic(rq_lsn) staged_mark, written_mark, synced_mark; /* copies, readable without a lock */
    _Atomic(int) failed;                                    /* rq_err */

    pthread_mutex_t members_mutex; /* taken alone, or before a member's mutex */
    rq_wal_member *members;
    rq_wal_member *direct; /* blocking waiters */
};

/* --- wal.c ------------------------------------------------------------------------------------ */
void rq__wal_slot_path(const rq_wal *wal, unsigned id, char path[static RQ_WAL_PATH_MAX]);
/* Closes the file and frees the slot. The file is not removed. */
void rq__wal_slot_free(slot *s);
/* Makes a sealed WAL file durable from that position on, before the header of the next file says that it is complete. A
 * sync alone is not enough: if a sync has failed before a crash, the kernel regards the pages as clean, although they
 * exist in memory only. So the bytes from `from` on, which no frame shows to be durable, are written once more.
 * RQ_E_NO_SPACE is possible on a file system that does not write in place. */
RQ_NODISCARD rq_err rq__wal_make_durable(const wal_file *s, rq_lsn from, rq_error *why);

/* --- append.c --------------------------------------------------------------------------------- */
RQ_NODISCARD rq_err rq__wal_ring_init(rq_wal *wal);
/* REQUIRES: mutex, which is released meanwhile. Waits until the bytes of all staged records are in the ring. On return
 * this is so until the caller releases the mutex. */
void rq__wal_await_copies(rq_wal *wal);
/* REQUIRES: mutex. Whether all bytes from `from` on are still in the ring. */
bool rq__wal_ring_holds(const rq_wal *wal, rq_lsn from);
/* REQUIRES: mutex. Shrinks the ring to its initial size if it is empty, not being written, and has
 * grown to more than twice that size. */
void rq__wal_ring_shrink(rq_wal *wal);
/* REQUIRES: the pen. Writes the ring's bytes [from, to) to their offsets in the WAL file. */
RQ_NODISCARD rq_err rq__wal_ring_write(const uint8_t *ring, size_t cap, const wal_file *s,
                                       const slot *to_slot, rq_lsn from, rq_lsn to, rq_error *why);
/* REQUIRES: mutex, staged == written == synced. Stages a mark, which records that everything
 * before it is durable. */
void rq__wal_stage_mark(rq_wal *wal);
/* REQUIRES: mutex and the pen, which the caller keeps. Writes the staged bytes, or sets push_wanted while a record is
 * being copied; releases the mutex while writing. On failure wal->broken or no_space is set. */
void rq__wal_write_staged(rq_wal *wal);

/* --- lane.c ----------------------------------------------------------------------------------- */
void rq__wal_lane_run(rq_task *task);
void rq__wal_timer_run(rq_task *task);
/* The lane's work, in a task of the lane other than lane_task. No lock held. */
void rq__wal_lane_turn(rq_wal *wal);
/* REQUIRES: mutex. */
void rq__wal_lane_wake(rq_wal *wal);
/* REQUIRES: mutex. True: the caller must post lane_task after releasing the mutex; otherwise the
 * lane's thread would wake up only to wait for the mutex. */
bool rq__wal_lane_claim(rq_wal *wal);
/* REQUIRES: mutex. Releases the pen, or passes it to the lane. */
void rq__wal_pen_release(rq_wal *wal);
/* --- begin.c ---------------------------------------------------------------------------------- */
/* A WAL file that is not in the log yet. NULL: no memory. */
wal_file *rq__wal_file_new(rq_lsn first_lsn);
/* REQUIRES: mutex. Makes the header of a WAL file that begins now; prev_crc is the checksum of the
 * frame before it. */
rq_wal_file_info rq__wal_info_of(rq_wal *wal, const wal_file *s, uint32_t prev_crc);
/* Writes the header, and shortens a file that is too long. Even after a failure the file's header on disk may have the WAL file's number. */
RQ_NODISCARD rq_err rq__wal_header_put(rq_wal *wal, slot *to, const rq_wal_file_info *info,
                                       rq_error *why);
/* --- lane.c, continued ------------------------------------------------------------------------ */
/* Takes a free file or makes a new one, whose name is durable. No lock held. On the lane, or
 * before the lane starts. */
RQ_NODISCARD rq_err rq__wal_slot_take(rq_wal *wal, slot **ret, rq_error *why);
/* REQUIRES: mutex. */
void rq__wal_marks_set(rq_wal *wal, rq_lsn written, rq_lsn synced);
/* Ends the log for good; on its lane. REQUIRES: mutex, which is released meanwhile. */
void rq__wal_fail(rq_wal *wal, rq_err rc, const rq_error *detail);
/* REQUIRES: mutex. The next attempt is made after RQ_WAL_RETRY_NS. */
void rq__wal_retry_later(rq_wal *wal);
bool rq__wal_may_retry(rq_wal *wal);
/* REQUIRES: mutex. Arms the timer if bytes without a waiter must later be synced, marked durable
 * or retried. */
void rq__wal_arm_timer(rq_wal *wal);

/* --- wait.c ----------------------------------------------------------------------------------- */
RQ_NODISCARD rq_err rq__wal_member_new(rq_wal *wal, rq_lane *lane, rq_wal_member **ret);
void rq__wal_member_free(rq_wal_member *m);
/* Completes waiters after a position has moved or the log has failed. No lock held. `self` is
 * skipped: its caller runs its waiters. */
void rq__wal_complete(rq_wal *wal, rq_wal_member *self);
/* Runs the member's completed waiters; on a lane, as many as a time slice allows, and the others in later
 * tasks of the lane. On its lane, no lock held. */
void rq__wal_member_run_done(rq_wal_member *m);

/* --- holders.c -------------------------------------------------------------------------------- */
rq_wal_region *rq__wal_region_find(const rq_wal *wal, rq_slice encoded);
/* At close: one of the regions that still need records; NULL: none. */
const rq_wal_region *rq__wal_holder(const rq_wal *wal);
RQ_NODISCARD rq_err rq__wal_region_add(rq_wal *wal, rq_slice encoded, rq_slice table,
                                       rq_wal_region **ret);
void rq__wal_region_free(rq_wal_region *r);
/* REQUIRES: mutex. Reserves one more note, so that rq__wal_note cannot fail. */
RQ_NODISCARD rq_err rq__wal_note_reserve(rq_wal_region *r);
/* REQUIRES: mutex, a reserved note. Records that a frame of the region begins at `lsn` in the
 * WAL file. */
void rq__wal_note(rq_wal_region *r, wal_file *s, uint64_t chunk_width, rq_lsn lsn,
                  uint64_t sequence_id, rq_wal_kind kind);
/* REQUIRES: mutex. Copies all notes of `from` to `to`, which may contain the same records. */
RQ_NODISCARD rq_err rq__wal_notes_inherit(rq_wal *wal, const wal_file *from, wal_file *to);
/* REQUIRES: mutex. Frees the slots of the oldest WAL files that no region needs. */
void rq__wal_recycle(rq_wal *wal);
/* REQUIRES: mutex. Builds the WAL file's index, including its header. */
RQ_NODISCARD rq_err rq__wal_index_build(rq_wal *wal, const wal_file *s, rq_lsn end, rq_buf *ret);
/* Calls on_pressure if the log is too long. No lock held. */
void rq__wal_press(rq_wal *wal);
/* REQUIRES: mutex. */
uint64_t rq__wal_live_bytes(const rq_wal *wal);
/* Whether the regions that hold the oldest WAL file should flush, and how urgently. REQUIRES:
 * mutex. */
typedef enum rq__wal_pressure { PRESSURE_NONE, PRESSURE_GENTLE, PRESSURE_URGENT } rq__wal_pressure;
rq__wal_pressure rq__wal_pressure_now(const rq_wal *wal);

static inline uint64_t rq__wal_offset(const wal_file *s, rq_lsn lsn)
{
    return RQ_WAL_FRAMES_AT + (lsn - s->first_lsn);
}

/* Whether the file has grown far beyond the size of a WAL file: on a disk without space for the next one, or before the
 * setting was reduced. REQUIRES: mutex. */
static inline bool rq__wal_is_too_long(const rq_wal *wal, const slot *s)
{
    return s->prewritten > RQ_WAL_FRAMES_AT + 2 * wal->options.file_bytes;
}

static inline bool rq__wal_has_failed(const rq_wal *wal)
{
    return atomic_load_explicit(&wal->failed, memory_order_acquire) != RQ_OK;
}

#endif
