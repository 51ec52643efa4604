/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backup copies the content that a data folder has at one moment (session.h) to another folder, which is a
 * data folder itself. A restore copies a backup and checks it against the backup's list (marker.h). For crash
 * safety see copy.h.
 */
#ifndef RQ_BACKUP_BACKUP_H
#define RQ_BACKUP_BACKUP_H

#include "catalog/fsck.h"

/* Progress, for the command to show. */
typedef struct rq_backup_progress {
    /* A phase `what` starts, in which step() will report `bytes` bytes; 0: unknown. */
    void (*begin)(void *ctx, const char *what, uint64_t bytes);
    void (*step)(void *ctx, uint64_t bytes);
    rq_findings findings; /* of the check of the copy */
    void *ctx;
} rq_backup_progress;

typedef struct rq_backup_options {
    const char *source, *target; /* folders; a check has no target */
    const char *previous;        /* a backup whose store files are linked, not copied; NULL */
    bool never_link;             /* copy files even where a hard link is possible */
    bool no_verify;              /* do not read linked files, and do not check the copy */
    const rq_backup_progress *progress; /* not NULL; all of its functions are set */
} rq_backup_options;

typedef struct rq_backup_result {
    bool was_running; /* a server ran on the source */
    int64_t taken_ms;
    uint64_t files, bytes; /* of the copy */
    uint64_t linked_files, linked_bytes;
    uint64_t problems; /* found by fsck in the copy; if > 0 it stays unfinished */
} rq_backup_result;

/* Blocks. RQ_E_CORRUPT: the source is damaged; the target stays marked as unfinished. */
RQ_NODISCARD
rq_err rq_backup(const rq_backup_options *o, rq_backup_result *ret, rq_error *why);
/* `source` must be a finished backup, else RQ_E_NOT_FOUND. RQ_E_CORRUPT: it differs from its list. */
RQ_NODISCARD
rq_err rq_restore(const rq_backup_options *o, rq_backup_result *ret, rq_error *why);
/* The newest finished backup in the folder that was begun at `to_ms` or before; *ret is
 * malloc'ed. It contains every write acknowledged before it was begun, and perhaps some later
 * ones. RQ_E_NOT_FOUND: there is none. RQ_E_CORRUPT: the list of a backup is damaged; this backup
 * might be the newest. */
RQ_NODISCARD
rq_err rq_backup_newest(const char *folder, int64_t to_ms, char **ret, int64_t *ret_taken_ms,
                        rq_error *why);
/* Checks a backup against its list; writes nothing. */
RQ_NODISCARD
rq_err rq_backup_check(const rq_backup_options *o, rq_backup_result *ret, rq_error *why);

#endif
