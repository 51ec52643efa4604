/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress of a bulk load of a folder, in the folder's file _rorqual_load, so that a killed
 * load can be resumed:
 *
 *    rorqual load 3
 *    for WHAT
 *    call BYTES TIME PATH       the file is named in a call that is about to be made
 *    done BYTES TIME PATH       the server has loaded the file
 *    divided N BYTES TIME PATH  the file's N pieces are complete, and loaded in its place
 *
 * BYTES and TIME, the time of the last change in ms, are those of the file that was found: a later
 * file with the same name is not the one that was loaded. A line is durable before the action it
 * announces begins. An incomplete last line is ignored.
 */
#ifndef RQ_TRANSFER_LOAD_JOURNAL_H
#define RQ_TRANSFER_LOAD_JOURNAL_H

#include "base/arena.h"
#include "base/buf.h"
#include "vfs/vfs.h"

typedef enum rq__load_state {
    RQ__LOAD_NEW,
    RQ__LOAD_CALLED,
    RQ__LOAD_DONE,
    RQ__LOAD_DIVIDED,
} rq__load_state;

typedef struct rq__journal_line {
    const char *path;
    rq__load_state state;
    uint64_t pieces; /* of a divided file */
    uint64_t size;
    uint64_t mtime_ms;
    size_t number; /* of the line that was read */
} rq__journal_line;

typedef struct rq__load_journal {
    rq_vfs *vfs;
    const char *what;
    bool is_off;     /* nothing is kept: the folder cannot be written */
    bool is_resumed; /* an earlier run has written it */
    rq_arena arena;
    rq__journal_line *lines; /* of earlier runs; sorted by path, the last of a path counts */
    size_t count;
    rq_buf text;   /* what the file has */
    rq_file *file; /* NULL: not written by this run */
} rq__load_journal;

/* Reads the journal of an earlier run. RQ_E_CONFLICT: it has another `what`, which must outlive the
 * journal. rq__journal_close follows, even after an error. */
RQ_NODISCARD
rq_err rq__journal_open(rq_vfs *v, const char *what, rq__load_journal *ret, rq_error *why);
/* Of an earlier run. */
rq__load_state rq__journal_state(const rq__load_journal *j, const char *path);
/* Whether the line counts for its path. */
bool rq__journal_is_last(const rq__load_journal *j, size_t line);
/* Appends lines; durable when this returns. The first call creates the file. */
RQ_NODISCARD
rq_err rq__journal_note(rq__load_journal *j, const rq__journal_line *lines, size_t count,
                        rq_error *why);
void rq__journal_close(rq__load_journal *j);
/* Forgets it: the load has ended. */
RQ_NODISCARD
rq_err rq__journal_remove(rq_vfs *v, rq_error *why);

#endif
