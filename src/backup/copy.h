/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target folder of a backup or a restore while it is written.
 *
 *  1. RQ_ROOT_UNFINISHED is created first and made durable before any other name; it is removed last,
 *     after everything else is durable. So a folder is either finished or refused by every server, and
 *     an interrupted copy is never taken for a complete one.
 *  2. A target that holds an unfinished copy is emptied and filled again. Any other content is refused.
 *  3. The target is locked like a server's folder.
 *
 * Bytes are copied in user space, not by the kernel, because their checksums are needed.
 */
#ifndef RQ_BACKUP_COPY_H
#define RQ_BACKUP_COPY_H

#include "base/buf.h"
#include "vfs/vfs.h"

typedef struct rq_copy {
    rq_vfs *vfs; /* of the target */
    bool may_link;
    bool checksums;                          /* also read linked files, for their checksums */
    void (*step)(void *ctx, uint64_t bytes); /* may be NULL */
    void *ctx;
    uint64_t linked_files, linked_bytes, copied_files, copied_bytes;
    /* private: */
    rq_file *lock;
    uint8_t *buf;
    char *made; /* the folder created last */
} rq_copy;

/* Creates the folder or takes an existing one. `what` is the command, written to RQ_ROOT_UNFINISHED. Neither
 * `source` nor `folder` may lie in the other one. RQ_E_EXISTS: the folder is not empty. RQ_E_LOCKED. */
RQ_NODISCARD
rq_err rq__copy_begin(const char *folder, const char *source, const char *what, rq_copy *ret,
                      rq_error *why);
RQ_NODISCARD
rq_err rq__copy_dir(rq_copy *c, const char *path, rq_error *why);
RQ_NODISCARD
rq_err rq__copy_bytes(rq_copy *c, const char *path, rq_slice bytes, uint32_t *ret_crc,
                      rq_error *why);
/* Copies the first `size` bytes of an open file; `immutable`: a hard link suffices. *ret_crc is 0
 * for a linked file without checksums. RQ_E_CORRUPT: the file is shorter. */
RQ_NODISCARD
rq_err rq__copy_file(rq_copy *c, const char *path, rq_file *from, uint64_t size, bool immutable,
                     uint32_t *ret_crc, rq_error *why);
/* Makes a hard link to the file in the target; never copies. *ret_crc as above. REQUIRES: the file does not
 * change any more. */
RQ_NODISCARD
rq_err rq__copy_link(rq_copy *c, const char *path, rq_file *from, uint64_t size, uint32_t *ret_crc,
                     rq_error *why);
/* Makes everything durable. */
RQ_NODISCARD
rq_err rq__copy_sync(rq_copy *c, rq_error *why);
/* Removes RQ_ROOT_UNFINISHED (rule 1). REQUIRES: rq__copy_sync has succeeded. */
RQ_NODISCARD
rq_err rq__copy_finish(rq_copy *c, rq_error *why);
/* Releases lock and memory; an unfinished copy stays unfinished. */
void rq__copy_clear(rq_copy *c);

#endif
