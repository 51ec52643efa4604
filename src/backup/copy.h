/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A data folder in the making: the target of a backup or a restore.
 *
 *  1. The first name in it is RQ_ROOT_UNFINISHED, durable before any other; the last thing done is to
 *     remove it, after all else is durable. So a folder is either finished or refused by every
 *     server, and a copy that was interrupted is never taken for a whole one.
 *  2. A target that holds an unfinished copy is emptied and begun anew. Any other content is refused.
 *  3. The target is locked like a server's folder.
 *
 * The bytes pass through this program although the kernel could copy them: their checksums are needed.
 */
#ifndef RQ_BACKUP_COPY_H
#define RQ_BACKUP_COPY_H

#include "base/buf.h"
#include "vfs/vfs.h"

typedef struct rq_copy {
    rq_vfs *vfs; /* of the target */
    bool may_link;
    bool checksums;
    void (*step)(void *ctx, uint64_t bytes); /* may be NULL */
    void *ctx;
    uint64_t linked_files, linked_bytes, copied_files, copied_bytes;
    /* private: */
    rq_file *lock;
    uint8_t *buf;
    char *made; /* the last folder made */
} rq_copy;

/* Makes or takes the folder. `what` is the command, for the marker; `source` is a folder that must not lie
 * in it, nor it in that. RQ_E_EXISTS: it is not empty. RQ_E_LOCKED. */
RQ_NODISCARD
rq_err rq__copy_begin(const char *folder, const char *source, const char *what, rq_copy *ret,
                      rq_error *why);
RQ_NODISCARD
rq_err rq__copy_dir(rq_copy *c, const char *path, rq_error *why);
RQ_NODISCARD
rq_err rq__copy_bytes(rq_copy *c, const char *path, rq_slice bytes, uint32_t *ret_crc,
                      rq_error *why);
/* The first `size` bytes of an open file; `immutable`: a link will do. RQ_E_CORRUPT: the file is shorter.
 * *ret_crc is 0 without checksums. */
RQ_NODISCARD
rq_err rq__copy_file(rq_copy *c, const char *path, rq_file *from, uint64_t size, bool immutable,
                     uint32_t *ret_crc, rq_error *why);
/* Makes everything durable. */
RQ_NODISCARD
rq_err rq__copy_sync(rq_copy *c, rq_error *why);
/* Rule 1. REQUIRES: rq__copy_sync. */
RQ_NODISCARD
rq_err rq__copy_finish(rq_copy *c, rq_error *why);
/* Releases lock and memory; an unfinished copy stays as one. */
void rq__copy_clear(rq_copy *c);

#endif
