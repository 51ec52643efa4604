/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log's inside, shared by the files of this room:
 *
 *   wal.c      open, replay, close      lane.c     sync, roll, repair, prewriting (the log's lane)
 *   append.c   stage and push           holders.c  which region holds which segment
 *   wait.c     members and waiters
 *
 * The way of a position:  staged ≥ written ≥ synced. All three are ends of frames.
 *
 * Writing a segment needs the *pen*: one thread at a time has it, without holding the mutex. A loop
 * takes it in push (leader); the lane takes it to roll and to repair. A leader that fails, or that
 * the lane waits for, hands it over to the lane.
 *
 * Locks, in the order they are taken: regions_mutex, mutex, then a member's. The pen is no lock.
 */
#ifndef RQ_WAL_WAL_PRIV_H
#define RQ_WAL_WAL_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "vfs/vfs.h"
#include "wal/format.h"
#include "wal/reader.h"
#include "wal/record_codec.h"
#include "wal/segment.h"
#include "wal/wal.h"

#define RQ_WAL_PATH_MAX 512
#define RQ_WAL_BUCKETS 1024
#define RQ_WAL_BACKGROUND_SYNC_BYTES (4u << 20) /* HANDOVER: unsynced bytes that start a sync */
#define RQ_WAL_IDLE_NS 1000000000u              /* bytes nobody waits for are synced after it */
/* How long a full disk keeps who waits for the log waiting before he is told. */
#define RQ_WAL_PATIENCE_NS ((uint64_t)5 * 1000 * 1000 * 1000)
#define RQ_WAL_RETRY_NS 100000000u /* between attempts when the disk is full */
#define RQ_WAL_REPAIR_TRIES 2

typedef struct segment segment;
typedef struct note note;

/* A file of the log. */
typedef struct slot {
    struct slot *next; /* in wal->free_slots */
    rq_file *file;
    unsigned id;         /* NNNNNN.wal */
    int older;           /* the header copy to overwrite next */
    uint64_t number;     /* of the segment its header names, 0: none */
    uint64_t prewritten; /* the file has real bytes up to here */
    bool bad;            /* a sync failed: never written again */
} slot;

/* A live piece of the log. By mutex, but for what only the pen's holder uses. */
struct segment {
    segment *next; /* younger */
    slot *slot;
    uint64_t number;
    uint64_t prev_number;
    rq_lsn first_lsn;
    rq_lsn end_lsn; /* once sealed */
    bool sealed;
    bool indexed;     /* chunks below and in the notes are exact */
    uint32_t holders; /* regions with an EDIT not flushed */
    uint32_t chunk_first[RQ_WAL_CHUNKS];
};

/* What one region has in one segment. */
struct note {
    segment *segment;
    uint64_t lowest, highest; /* of all kinds */
    uint64_t highest_edit;
    uint64_t chunks;
    bool holds; /* counted in segment->holders */
};

struct rq_wal_region {
    rq_wal *wal;
    rq_wal_region *next; /* in its bucket */
    void *owner;
    bool open;   /* these by regions_mutex */
    note *notes; /* oldest segment first; by mutex */
    size_t note_count, note_cap;
    uint64_t flushed;
    uint64_t found; /* highest sequence id of replay */
    uint16_t table_len;
    char encoded[RQ_WAL_REGION_NAME_MAX + 1];
    uint8_t table[];
};

struct rq_wal_member {
    rq_wal *wal;
    rq_wal_member *next;
    rq_lane *lane; /* NULL: the log's own, whose waiters run where they are completed */
    rq_task task;
    pthread_mutex_t mutex;
    struct waiter_list {
        rq_wal_waiter *head, *last;
    } waiting[2]; /* [1]: until synced. By mutex, as the following */
    bool posted;
    bool left;
    _Atomic uint32_t count; /* of both lists: a hint that spares the mutex */
};

typedef enum pen { PEN_FREE, PEN_LEADER, PEN_LANE } pen;

struct rq_wal {
    rq_env env;
    rq_wal_options options;
    char dir[256];
    uint64_t epoch;
    uint64_t chunk_width;
    rq_lane *lane;
    rq_task lane_task;
    rq_timer timer;

    pthread_mutex_t regions_mutex;
    rq_wal_region *
        *buckets; /* RQ_WAL_BUCKETS; by regions_mutex and mutex to change, either to read */

    pthread_mutex_t mutex; /* guards what follows up to the members */
    uint8_t *ring;         /* ring_cap bytes, a power of two; position lsn & (ring_cap - 1) */
    size_t ring_cap;
    rq_lsn ring_from;      /* what is below was left behind when the ring grew */
    uint8_t *ring_retired; /* the pen's holder may still read it */
    rq_lsn staged, written, synced;
    rq_lsn attested;                              /* the newest frame says that much is durable */
    rq_lsn mark_end;                              /* behind the last mark: no reason to sync */
    uint32_t staged_crc, written_crc, synced_crc; /* of the frame that ends there */
    rq_lsn sync_wanted;
    segment *oldest, *newest; /* the live chain; staging notes the newest */
    segment *write_segment;   /* older than newest only while the lane rolls or repairs */
    slot *free_slots;
    slot *spare; /* ready for the next roll; the lane's */
    uint64_t next_number;
    unsigned next_slot;
    pen pen;
    bool push_wanted; /* somebody found the pen taken */
    bool lane_wants_pen;
    bool lane_posted, lane_running;
    bool roll_wanted;
    bool prewriting; /* the lane fills behind write_segment's prewritten */
    bool timed_out;  /* the idle timer fired */
    bool timer_armed;
    bool no_space;           /* stage refuses what does not fit into what is there */
    uint64_t retry_at_ns;    /* 0: nothing to try again */
    uint64_t stuck_since_ns; /* the disk is full since then; 0: it is not */
    /* Waiters above it are told RQ_E_NO_SPACE at the lane's next attempt; UINT64_MAX: nobody is. */
    _Atomic rq_lsn stuck_above;
    rq_err broken; /* a write or sync failed; the lane repairs */
    bool broken_by_sync;
    uint64_t pressed_oldest, pressed_newest; /* the chain when pressure was last looked at */
    bool replayed;
    bool closing; /* no more waiting for disk space */
    rq_wal_stats stats;

    _Atomic(rq_lsn) staged_mark, written_mark, synced_mark; /* copies, for who holds no lock */
    _Atomic(int) failed;                                    /* rq_err */

    pthread_mutex_t members_mutex; /* held alone, or before a member's */
    rq_wal_member *members;
    rq_wal_member *direct; /* blocking waiters */
};

/* --- wal.c ------------------------------------------------------------------------------------ */
void rq__wal_slot_path(const rq_wal *wal, unsigned id, char path[static RQ_WAL_PATH_MAX]);
/* Closes; the file stays. */
void rq__wal_slot_free(slot *s);

/* --- append.c --------------------------------------------------------------------------------- */
RQ_NODISCARD rq_err rq__wal_ring_init(rq_wal *wal);
/* REQUIRES: mutex. All bytes from there on are still in the ring. */
bool rq__wal_ring_holds(const rq_wal *wal, rq_lsn from);
/* REQUIRES: mutex. Back to its first size, if it has grown and nothing is in it. */
void rq__wal_ring_shrink(rq_wal *wal);
/* REQUIRES: the pen. Writes the ring's bytes [from, to) at their places in the segment. */
RQ_NODISCARD rq_err rq__wal_ring_write(const uint8_t *ring, size_t cap, const segment *s,
                                       const slot *to_slot, rq_lsn from, rq_lsn to, rq_error *why);
/* REQUIRES: mutex, staged == written == synced. A mark says that all before it is durable. */
void rq__wal_stage_mark(rq_wal *wal);
/* REQUIRES: mutex and the pen, which is kept. Writes what is staged; the mutex is released while it
 * writes. On failure wal->broken or no_space is set. */
void rq__wal_write_staged(rq_wal *wal);

/* --- lane.c ----------------------------------------------------------------------------------- */
void rq__wal_lane_run(rq_task *task);
void rq__wal_timer_run(rq_task *task);
/* REQUIRES: mutex. */
void rq__wal_lane_wake(rq_wal *wal);
/* REQUIRES: mutex. True: the caller posts lane_task, when it has left the mutex: else the lane's
 * thread would wake only to wait for it. */
bool rq__wal_lane_claim(rq_wal *wal);
/* REQUIRES: mutex; gives the pen up, or over to the lane. */
void rq__wal_pen_release(rq_wal *wal);
/* A free or new file, its name durable. No lock held, the lane's or before the lane starts. */
RQ_NODISCARD rq_err rq__wal_slot_take(rq_wal *wal, slot **ret, rq_error *why);
/* REQUIRES: mutex. Sees to it that what nobody waits for is synced, attested or retried later. */
void rq__wal_arm_timer(rq_wal *wal);

/* --- wait.c ----------------------------------------------------------------------------------- */
RQ_NODISCARD rq_err rq__wal_member_new(rq_wal *wal, rq_lane *lane, rq_wal_member **ret);
void rq__wal_member_free(rq_wal_member *m);
/* After a mark moved or the log failed; no lock held. `self` is left to its caller. */
void rq__wal_complete(rq_wal *wal, rq_wal_member *self);
/* Runs what is done. On the member's lane, no lock held. */
void rq__wal_member_run_done(rq_wal_member *m);

/* --- holders.c -------------------------------------------------------------------------------- */
rq_wal_region *rq__wal_region_find(const rq_wal *wal, rq_slice encoded);
/* At close: one of the regions that need records; NULL: none does. */
const rq_wal_region *rq__wal_holder(const rq_wal *wal);
RQ_NODISCARD rq_err rq__wal_region_add(rq_wal *wal, rq_slice encoded, rq_slice table,
                                       rq_wal_region **ret);
void rq__wal_region_free(rq_wal_region *r);
/* REQUIRES: mutex. Room for one more note, so that noting cannot fail afterwards. */
RQ_NODISCARD rq_err rq__wal_note_reserve(rq_wal_region *r);
/* REQUIRES: mutex, reserved. A frame of the region begins at `lsn` of the segment. */
void rq__wal_note(rq_wal_region *r, segment *s, uint64_t chunk_width, rq_lsn lsn,
                  uint64_t sequence_id, rq_wal_kind kind);
/* REQUIRES: mutex. Whatever `from` notes, `to` may hold as well. */
RQ_NODISCARD rq_err rq__wal_notes_inherit(rq_wal *wal, const segment *from, segment *to);
/* REQUIRES: mutex. Segments at the old end that nobody needs become free slots. */
void rq__wal_recycle(rq_wal *wal);
/* REQUIRES: mutex. The segment's index, header included. */
RQ_NODISCARD rq_err rq__wal_index_build(rq_wal *wal, const segment *s, rq_lsn end, rq_buf *ret);
/* No lock held. */
void rq__wal_press(rq_wal *wal);
/* REQUIRES: mutex. */
uint64_t rq__wal_live_bytes(const rq_wal *wal);
/* Whether who holds the oldest segment is asked to flush, and how. REQUIRES: mutex. */
typedef enum rq__wal_pressure { PRESSURE_NONE, PRESSURE_GENTLE, PRESSURE_URGENT } rq__wal_pressure;
rq__wal_pressure rq__wal_pressure_now(const rq_wal *wal);

static inline uint64_t rq__wal_offset(const segment *s, rq_lsn lsn)
{
    return RQ_WAL_FRAMES_AT + (lsn - s->first_lsn);
}

static inline bool rq__wal_has_failed(const rq_wal *wal)
{
    return atomic_load_explicit(&wal->failed, memory_order_acquire) != RQ_OK;
}

#endif
