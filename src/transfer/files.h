/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a transfer reads, and their parts: one file, or the files of a folder whose names
 * begin neither with '_' nor with '.' (HADOOP: FileInputFormat). */
#ifndef RQ_TRANSFER_FILES_H
#define RQ_TRANSFER_FILES_H

#include "transfer/plan.h"

typedef struct rq__file_part {
    const char *path; /* in the files' vfs */
    uint64_t from, to;
    int64_t time_ms; /* when the file was changed */
} rq__file_part;

typedef struct rq__files {
    rq_vfs *vfs;
    rq_vfs *progress_vfs;   /* NULL: the same */
    bool has_made_progress; /* the progress folder is this command's */
    rq_vfs *lock_vfs;       /* of the progress folder */
    rq_file *lock;
    rq_arena arena;
    const char *input, *base; /* base: the folder that has the files */
    const char *name;         /* of the only file; NULL: a folder */
    const char **paths;
    uint64_t *sizes;
    int64_t *times_ms; /* when they were changed */
    size_t count;
    rq__file_part *parts;
    size_t part_count;
} rq__files;

/* RQ_E_NOT_FOUND: there is none; RQ_E_CORRUPT: one is not a regular file. rq__files_close follows, even after an error. */
RQ_NODISCARD
rq_err rq__files_open(const char *input, rq__files *ret, rq_error *why);
/* Divides the files into parts of at most `bytes` bytes. An empty file has no part. */
RQ_NODISCARD
rq_err rq__files_split(rq__files *f, uint64_t bytes, rq_error *why);
/* RQ_E_CORRUPT: a file is empty, which no SequenceFile is. HBASE: its Import fails, too. */
RQ_NODISCARD
rq_err rq__files_check_results(const rq__files *f, rq_error *why);
/* The parts as lines of a plan, with the files' modification times if `with_times`; in the
 * arena. */
RQ_NODISCARD
rq_err rq__files_texts(rq__files *f, bool with_times, const char *const **ret, rq_error *why);
/* Opens the plan of the parts, in the folder `progress` (NULL: beside the files), and locks it. RQ_E_CONFLICT: the files have
 * another size or time of change than when it was begun. */
RQ_NODISCARD
rq_err rq__files_plan(rq__files *f, const char *progress, const char *name, const char *what,
                      rq__plan *ret, rq_error *why);
void rq__files_close(rq__files *f);

#endif
