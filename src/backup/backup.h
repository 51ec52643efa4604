/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backup: a data folder's content at one moment (session.h), copied to a folder that is a data folder
 * itself. Restore: the way back, checked against the backup's list (marker.h). Both are as crash-safe as
 * copy.h says.
 */
#ifndef RQ_BACKUP_BACKUP_H
#define RQ_BACKUP_BACKUP_H

#include "catalog/fsck.h"

/* What a command shows meanwhile. */
typedef struct rq_backup_progress {
    /* Something begins that will pass `bytes` bytes; 0: unknown. */
    void (*begin)(void *ctx, const char *what, uint64_t bytes);
    void (*step)(void *ctx, uint64_t bytes);
    rq_findings findings; /* of the look through the copy */
    void *ctx;
} rq_backup_progress;

typedef struct rq_backup_options {
    const char *source, *target;
    bool never_link; /* copies even where a link would do */
    bool no_verify;  /* neither reads what was linked nor looks through the copy */
    const rq_backup_progress *progress;
} rq_backup_options;

typedef struct rq_backup_result {
    bool was_running; /* the source */
    int64_t taken_ms;
    uint64_t files, bytes; /* of the copy */
    uint64_t linked_files, linked_bytes;
    uint64_t problems; /* what fsck found in the copy; it is then not finished */
} rq_backup_result;

/* Blocks. RQ_E_CORRUPT: the source is damaged; the target stays unfinished. */
RQ_NODISCARD
rq_err rq_backup(const rq_backup_options *o, rq_backup_result *ret, rq_error *why);
/* `source` is a finished backup. RQ_E_NOT_FOUND: it is none. RQ_E_CORRUPT: it differs from its list. */
RQ_NODISCARD
rq_err rq_restore(const rq_backup_options *o, rq_backup_result *ret, rq_error *why);
/* Looks whether a backup is what its list says; writes nothing. */
RQ_NODISCARD
rq_err rq_backup_check(const rq_backup_options *o, rq_backup_result *ret, rq_error *why);

#endif
