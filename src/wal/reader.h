/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one segment file, with no log open: the same code replays the log, prints it
 * (`rorqual wal`) and is fuzzed. Every byte is checked before it is believed.
 *
 * A bad frame is the *tail* (RQ_E_END: what was being written when the power went) unless something
 * proves that it had been durable once: the segment's end told by its successor (set_end), or a
 * later valid frame of the same segment that was staged after the bad place had been synced. Then
 * it is RQ_E_CORRUPT, naming file and offset, and skip() goes on behind it.
 */
#ifndef RQ_WAL_READER_H
#define RQ_WAL_READER_H

#include "vfs/vfs.h"
#include "wal/record.h"

typedef struct rq_wal_reader rq_wal_reader;

/* From the segment's header. */
typedef struct rq_wal_segment_info {
    uint64_t number;        /* ascending over the log's life */
    uint64_t epoch;         /* of the log, ascending with each open */
    uint64_t first_lsn;     /* = its predecessor's end */
    uint64_t oldest_number; /* the oldest segment still needed when this one was begun */
    uint64_t prev_number;   /* its predecessor's, 0: none */
    int64_t created_ms;
    uint32_t prev_crc; /* of its predecessor's last frame */
    bool clean;        /* begun by a clean close: nothing before it is needed */
} rq_wal_segment_info;

/* RQ_E_NOT_FOUND: no header was ever finished (an unused file). RQ_E_CORRUPT, RQ_E_VERSION. */
RQ_NODISCARD rq_err rq_wal_reader_open(rq_vfs *vfs, const char *path, rq_wal_reader **ret,
                                       rq_error *why);
void rq_wal_reader_close(rq_wal_reader *r);
const rq_wal_segment_info *rq_wal_reader_info(const rq_wal_reader *r);
/* The position at which the successor says this segment ends. */
void rq_wal_reader_set_end(rq_wal_reader *r, uint64_t end_lsn);
/* The next record; its slices are valid until the next call. RQ_E_END at the end. RQ_E_CORRUPT: the
 * reader stays in front of the bad place. */
RQ_NODISCARD rq_err rq_wal_reader_next(rq_wal_reader *r, rq_wal_record *ret, rq_error *why);
/* After RQ_E_CORRUPT: to the next valid frame, or the end. */
RQ_NODISCARD rq_err rq_wal_reader_skip(rq_wal_reader *r, rq_error *why);
/* Where the record last read begins. */
uint64_t rq_wal_reader_record_lsn(const rq_wal_reader *r);
/* To a frame that begins there, by the word of an index. */
void rq_wal_reader_seek(rq_wal_reader *r, uint64_t lsn);
/* Behind the last frame read: after RQ_E_END the segment's end. */
uint64_t rq_wal_reader_lsn(const rq_wal_reader *r);
uint64_t rq_wal_reader_offset(const rq_wal_reader *r);
/* Where in the file that place is. */
uint64_t rq_wal_reader_lsn_offset(const rq_wal_reader *r, uint64_t lsn);
uint32_t rq_wal_reader_prev_crc(const rq_wal_reader *r);

/* --- a sealed segment's index ----------------------------------------------------------------- */
#define RQ_WAL_CHUNKS 64 /* a segment counts as this many equal parts */

typedef struct rq_wal_index_entry {
    rq_slice region;
    uint64_t lowest, highest; /* sequence ids of all kinds */
    uint64_t highest_edit;    /* 0: no EDIT */
    uint64_t chunks;          /* bit i: a frame of the region begins in part i */
} rq_wal_index_entry;

/* Of a segment with a known end: RQ_E_NOT_FOUND when it has none (it was sealed by a failure).
 * Calls back for each region. REQUIRES: set_end. */
RQ_NODISCARD rq_err rq_wal_reader_index(rq_wal_reader *r,
                                        rq_err (*callback)(void *ctx, const rq_wal_index_entry *e),
                                        void *ctx, rq_error *why);
/* Goes to the first frame that begins in the part, by the index; RQ_E_END if none does. */
RQ_NODISCARD rq_err rq_wal_reader_seek_chunk(rq_wal_reader *r, unsigned chunk, rq_error *why);

#endif
