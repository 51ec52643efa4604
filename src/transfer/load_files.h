/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a bulk load that are not loaded yet: those of the folder, their pieces, and those that an
 * earlier run has begun to load. One thread. */
#ifndef RQ_TRANSFER_LOAD_FILES_H
#define RQ_TRANSFER_LOAD_FILES_H

#include "transfer/load_hfiles.h"
#include "transfer/load_journal.h"

#define RQ__LOAD_PIECES "_rorqual_pieces" /* has a folder for each family */

/* No open region has the rows now: the file waits for a later round. */
#define RQ__NO_REGION SIZE_MAX

typedef struct rq__load_file {
    const char *path; /* in the vfs */
    const rq_family_schema *family;
    uint64_t size, mtime_ms; /* when it was found */
    rq_slice first, last;    /* rows; in the arena */
    size_t region;           /* that has its rows, in this round; RQ__NO_REGION */
    bool is_called;          /* a call of this run has named it */
    bool is_done;
} rq__load_file;

typedef struct rq__load_job {
    rq__load *l;
    rq_arena arena;
    rq__load_file *files;
    size_t count, cap;
    rq__load_journal journal;
    unsigned waits; /* for calls that may be loading a file, so far */
    rq_error why;   /* of the last call that failed */
} rq__load_job;

/* The files that are to be loaded. REQUIRES: the journal is open. */
RQ_NODISCARD
rq_err rq__load_list_files(rq__load_job *j, rq_error *why);
/* Adds a file; one without cells is passed over. `path` NULL: no memory. */
RQ_NODISCARD
rq_err rq__load_add_file(rq__load_job *j, const char *path, const rq_family_schema *family,
                         rq_error *why);
/* The path of that piece of a file. NULL: no memory. */
const char *rq__load_piece_of(rq__load_job *j, const char *path, const rq_family_schema *family,
                              size_t number);
/* How many names the file has; 0: it is gone, and its folder is there. */
RQ_NODISCARD
rq_err rq__load_count_names(rq__load_job *j, const char *path, size_t *ret, rq_error *why);

#endif
