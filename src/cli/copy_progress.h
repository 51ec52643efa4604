/* SPDX-License-Identifier: Apache-2.0 */
/* Progress and result of `rorqual backup` and `rorqual restore`. Progress and errors go to standard
 * error (on a terminal a progress bar, elsewhere a line at the beginning of each phase and every
 * 10 s), the result to standard output. One thread. */
#ifndef RQ_CLI_COPY_PROGRESS_H
#define RQ_CLI_COPY_PROGRESS_H

#include "backup/backup.h"
#include "cli/progress.h"

typedef struct rq_copy_progress {
    rq_backup_progress calls; /* for the options */
    rq_progress bar;
    const char *command, *what;
    uint64_t done, total;
    int64_t printed_ns;
    bool quiet;
} rq_copy_progress;

void rq__copy_progress_init(rq_copy_progress *p, const char *command, bool quiet);
/* Prints the result or the error; returns the process's exit code. */
int rq__copy_progress_end(rq_copy_progress *p, const rq_backup_options *o,
                          const rq_backup_result *r, const char *verb, rq_err rc,
                          const rq_error *why);

#endif
