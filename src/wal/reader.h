/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one WAL file without an open log. The same code replays the log, prints it (`rorqual
 * wal`) and is fuzzed. Every byte is checked before it is used.
 *
 * An invalid frame is the *tail* (RQ_E_END: it was being written when the power failed) unless
 * something proves that it was durable: the WAL file's end according to its successor
 * (rq__wal_reader_set_end), or a later valid frame of the same WAL file that was staged after a
 * sync beyond it. Then it is RQ_E_CORRUPT with file and offset, and rq__wal_reader_skip continues
 * behind it.
 */
#ifndef RQ_WAL_READER_H
#define RQ_WAL_READER_H

#include "vfs/vfs.h"
#include "wal/record.h"

typedef struct rq_wal_reader rq_wal_reader;

/* From the WAL file's header. */
typedef struct rq_wal_file_info {
    uint64_t number;        /* ascending over the log's life */
    uint64_t epoch;         /* of the log; increases with each open */
    uint64_t first_lsn;     /* = its predecessor's end */
    uint64_t oldest_number; /* oldest WAL file still needed when this one was begun */
    uint64_t prev_number;   /* number of its predecessor, 0: none */
    int64_t created_ms;
    uint32_t prev_crc; /* of its predecessor's last frame */
    bool clean;        /* written by a clean close: no earlier WAL file is needed */
} rq_wal_file_info;

/* Opens a WAL file. RQ_E_NOT_FOUND: no header was ever completed (an unused file). RQ_E_CORRUPT,
 * RQ_E_VERSION. */
RQ_NODISCARD rq_err rq__wal_reader_open(rq_vfs *vfs, const char *path, rq_wal_reader **ret,
                                        rq_error *why);
/* Reads a WAL file that is open and whose header was read; the file stays the caller's. `size`: the file's. */
RQ_NODISCARD rq_err rq__wal_reader_of(rq_file *file, const char *path, const rq_wal_file_info *info,
                                      uint64_t size, rq_wal_reader **ret, rq_error *why);
void rq__wal_reader_close(rq_wal_reader *r);
const rq_wal_file_info *rq__wal_reader_info(const rq_wal_reader *r);
/* Sets the WAL file's end: the first LSN of its successor. */
void rq__wal_reader_set_end(rq_wal_reader *r, uint64_t end_lsn);
/* Reads the next record; its slices are valid until the next call. RQ_E_END at the end.
 * RQ_E_CORRUPT: the reader stays before the invalid frame. */
RQ_NODISCARD rq_err rq__wal_reader_next(rq_wal_reader *r, rq_wal_record *ret, rq_error *why);
/* After RQ_E_CORRUPT: moves to the next valid frame, or to the end. */
RQ_NODISCARD rq_err rq__wal_reader_skip(rq_wal_reader *r, rq_error *why);
/* Drops what was read ahead and looks at the file's size again: the file is being written. */
RQ_NODISCARD rq_err rq__wal_reader_refresh(rq_wal_reader *r, rq_error *why);
/* LSN at which the last record read begins. */
uint64_t rq__wal_reader_record_lsn(const rq_wal_reader *r);
/* Moves to a frame that begins at `lsn`, according to an index. */
void rq__wal_reader_seek(rq_wal_reader *r, uint64_t lsn);
/* LSN behind the last frame read; after RQ_E_END the WAL file's end. */
uint64_t rq__wal_reader_lsn(const rq_wal_reader *r);
uint64_t rq__wal_reader_offset(const rq_wal_reader *r);
/* File offset of an LSN. */
uint64_t rq__wal_reader_lsn_offset(const rq_wal_reader *r, uint64_t lsn);
uint32_t rq__wal_reader_prev_crc(const rq_wal_reader *r);
/* The highest position that the frames read so far show to be durable. */
uint64_t rq__wal_reader_durable(const rq_wal_reader *r);

/* --- a sealed WAL file's index ---------------------------------------------------------------- */
#define RQ_WAL_CHUNKS 64 /* equal parts of a WAL file, for the index */

typedef struct rq_wal_index_entry {
    rq_slice region;
    uint64_t lowest, highest; /* sequence ids of records of all kinds */
    uint64_t highest_edit;    /* 0: no EDIT */
    uint64_t chunks;          /* bit i: a frame of the region begins in chunk i */
} rq_wal_index_entry;

/* Reads the index of a WAL file and calls back for each region. RQ_E_NOT_FOUND: it has none,
 * because it was sealed after an error. REQUIRES: rq__wal_reader_set_end was called. */
RQ_NODISCARD rq_err rq_wal_reader_index(rq_wal_reader *r,
                                        rq_err (*callback)(void *ctx, const rq_wal_index_entry *e),
                                        void *ctx, rq_error *why);
/* Moves to the first frame that begins in the chunk, according to the index. RQ_E_END: none
 * does. */
RQ_NODISCARD rq_err rq_wal_reader_seek_chunk(rq_wal_reader *r, unsigned chunk, rq_error *why);

#endif
