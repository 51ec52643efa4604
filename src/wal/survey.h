/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Examines a log on disk, for tools: which files are its live WAL files, in order, and what they
 * contain. Writes nothing and opens no file for writing. Damage is reported and skipped, so that
 * one call finds all of it. A server starts on a log without reported damage. It also starts if the
 * only damage is in one of a header's two copies.
 */
#ifndef RQ_WAL_SURVEY_H
#define RQ_WAL_SURVEY_H

#include "base/arena.h"
#include "wal/reader.h"

typedef struct rq_wal_surveyed_file {
    const char *path;
    rq_wal_file_info info;
    uint64_t size_bytes; /* of the file */
    bool live;           /* false: a recycled file with old content */
    bool sealed;         /* its end is known from its successor */
    uint64_t end_lsn;    /* when sealed */
} rq_wal_surveyed_file;

typedef struct rq_wal_survey {
    rq_wal_surveyed_file *files; /* ascending by number; the live ones are last, as a chain */
    size_t count;
} rq_wal_survey;

typedef struct rq_wal_survey_calls {
    /* Called for each record. An error ends the reading and is returned. May be NULL. */
    rq_err (*record)(void *ctx, const rq_wal_surveyed_file *s, const rq_wal_record *r,
                     uint64_t offset, rq_error *why);
    /* Called for each damage; `what` gives file and offset. */
    void (*damage)(void *ctx, const rq_error *what);
    void *ctx;
} rq_wal_survey_calls;

/* Examines a log's folder. An absent folder has no WAL files. Results are in the arena. Returns
 * only errors of reading; damage is reported by `calls`. */
RQ_NODISCARD
rq_err rq_wal_survey_dir(rq_vfs *vfs, const char *dir, rq_arena *arena,
                         const rq_wal_survey_calls *calls, rq_wal_survey *ret, rq_error *why);
/* Examines a single file, whose end is unknown. */
RQ_NODISCARD
rq_err rq_wal_survey_file(rq_vfs *vfs, const char *path, rq_arena *arena,
                          const rq_wal_survey_calls *calls, rq_wal_survey *ret, rq_error *why);
/* Reads all records of one WAL file. *ret_end (may be NULL): the offset behind the last one. */
RQ_NODISCARD
rq_err rq_wal_survey_read(rq_vfs *vfs, const rq_wal_surveyed_file *s,
                          const rq_wal_survey_calls *calls, uint64_t *ret_end, rq_error *why);

#endif
