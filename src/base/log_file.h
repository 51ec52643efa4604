/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log's file. Its size is limited, because remote peers can cause lines: when it has bytes_max bytes, it is renamed
 * to PATH.1, the former PATH.1 to PATH.2 and so on, and the oldest file is removed. If PATH is a symbolic link, this is
 * done with the file that the link leads to. If another process has renamed the file meanwhile, the log only opens PATH
 * again. The log keeps its descriptor number, because other threads write to it.
 *
 * The file belongs to the log's sink: the sink's lock is held while a line is written, and while the file is replaced.
 */
#ifndef RQ_BASE_LOG_FILE_H
#define RQ_BASE_LOG_FILE_H

#include "base/err.h"
#include "base/log.h"

typedef struct rq_log_file {
    const char *path;   /* must outlive it */
    uint64_t bytes_max; /* 0: no limit */
    unsigned backups;   /* former files that are kept */
    int fd;             /* the log's */
    uint64_t bytes;     /* in the file; later lines of other processes are not counted */
} rq_log_file;

/* Opens the file for a log, which must have a sink; sets log->fd. A new file has mode 0640 or less. The struct must outlive
 * all copies of the log. */
RQ_NODISCARD
rq_err rq_log_file_open(rq_log_file *f, rq_log *log, rq_error *why);
/* Opens the path again, after another process has renamed the file. A new file has the mode of the file that it replaces, so
 * that the same users may read it. On an error the log still writes to the former file. */
RQ_NODISCARD
rq_err rq_log_file_reopen(rq_log_file *f, rq_log *log, rq_error *why);

/* Called under the sink's lock after a line of `len` bytes was written. */
void rq__log_file_grew(rq_log_file *f, size_t len);

#endif
