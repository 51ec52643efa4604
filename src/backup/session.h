/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A data folder's content at one moment, for commands: of a running server through its control
 * socket, of a stopped folder under its lock. Until the source is closed, every part stays readable:
 * as bytes in memory, or from its file, even if the file has moved to the archive.
 *
 * Memory: about 4 kB for each region. One thread.
 */
#ifndef RQ_BACKUP_SESSION_H
#define RQ_BACKUP_SESSION_H

#include "region/image.h"
#include "vfs/vfs.h"

typedef struct rq_source_part {
    rq_image_kind kind;
    const char *path;
    uint64_t size;
    const uint8_t *bytes; /* of a RQ_IMAGE_BYTES; else NULL */
} rq_source_part;

typedef struct rq_source {
    rq_vfs *vfs; /* the folder itself */
    bool is_running;
    rq_source_part *parts; /* ascending by path */
    size_t count;
    uint64_t bytes; /* of all parts */
    /* private: */
    size_t room;
    int fd;        /* of the control socket */
    rq_file *lock; /* of a stopped folder */
    rq_arena arena;
} rq_source;

/* `name`: the caller, for the server's log. RQ_E_LOCKED: the folder is in use, and has no control
 * socket. RQ_E_NOT_FOUND: it is no data folder. RQ_E_STATE: it is an unfinished copy, or the server
 * cannot list it. */
RQ_NODISCARD
rq_err rq__source_open(const char *folder, const char *name, rq_source *ret, rq_error *why);
/* Like rq__source_open, for a running server only. RQ_E_NOT_FOUND: no server listens there. */
RQ_NODISCARD
rq_err rq_source_open_running(const char *folder, const char *name, rq_source *ret, rq_error *why);
/* The holders of files and log (vfs/retention.h) of the server that runs on the folder, in the arena.
 * RQ_E_NOT_FOUND: no server runs there. */
RQ_NODISCARD
rq_err rq_source_holders(const char *folder, rq_arena *arena, rq_holder_info **ret,
                         size_t *ret_count, rq_error *why);
/* Releases holds and memory. A zeroed source is allowed. */
void rq_source_close(rq_source *s);
/* Releases the log; call it once all parts of the log were read. RQ_E_STATE: the server ended meanwhile, so
 * the parts that were read may be inconsistent. */
RQ_NODISCARD
rq_err rq__source_log_done(rq_source *s, rq_error *why);
/* Opens the file of a part that is not in memory, at its current path. */
RQ_NODISCARD
rq_err rq__source_open_part(rq_source *s, const rq_source_part *part, rq_file **ret, rq_error *why);
/* NULL: it has no such part. */
const rq_source_part *rq__source_find(const rq_source *s, const char *path);

/* A read-only vfs that shows the source as a folder; nothing in it can be locked, created or removed.
 * The source outlives it. */
RQ_NODISCARD
rq_err rq_source_vfs_new(rq_source *s, rq_vfs **ret, rq_error *why);

#endif
