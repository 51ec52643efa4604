/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log as it lies on disk, for tools: which files are its live segments, in order, and what is
 * in them. Nothing is written, no file is opened for writing. What is wrong is told and passed, so
 * that one call finds all of it; whether a server would start is the same question as whether
 * anything was told.
 */
#ifndef RQ_WAL_SURVEY_H
#define RQ_WAL_SURVEY_H

#include "base/arena.h"
#include "wal/reader.h"

typedef struct rq_wal_survey_segment {
    const char *path;
    rq_wal_segment_info info;
    uint64_t size_bytes; /* of the file */
    bool live;           /* else what a recycled file held before */
    bool sealed;         /* its end is known: where the next one begins */
    uint64_t end_lsn;    /* when sealed */
} rq_wal_survey_segment;

typedef struct rq_wal_survey {
    rq_wal_survey_segment *segments; /* ascending by number, the live ones last and in a chain */
    size_t count;
} rq_wal_survey;

typedef struct rq_wal_survey_calls {
    /* Each record of a segment read; an error ends the reading and is returned. May be NULL. */
    rq_err (*record)(void *ctx, const rq_wal_survey_segment *s, const rq_wal_record *r,
                     uint64_t offset, rq_error *why);
    /* What is damaged: file and offset are in the message. */
    void (*damage)(void *ctx, const rq_error *what);
    void *ctx;
} rq_wal_survey_calls;

/* The files of a log's folder. No folder: no segments. Memory is the arena's. An error is one of
 * reading; damage is told. */
RQ_NODISCARD
rq_err rq_wal_survey_dir(rq_vfs *vfs, const char *dir, rq_arena *arena,
                         const rq_wal_survey_calls *calls, rq_wal_survey *ret, rq_error *why);
/* A single file, of which nobody says where it ends. */
RQ_NODISCARD
rq_err rq_wal_survey_file(rq_vfs *vfs, const char *path, rq_arena *arena,
                          const rq_wal_survey_calls *calls, rq_wal_survey *ret, rq_error *why);
/* Reads one segment from its first record to its last. *ret_end (may be NULL): the offset behind
 * it. */
RQ_NODISCARD
rq_err rq_wal_survey_read(rq_vfs *vfs, const rq_wal_survey_segment *s,
                          const rq_wal_survey_calls *calls, uint64_t *ret_end, rq_error *why);

#endif
