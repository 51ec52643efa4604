/* SPDX-License-Identifier: Apache-2.0 */
/* A new file that is written from front to back through a buffer. One thread. */
#ifndef RQ_TRANSFER_OUT_H
#define RQ_TRANSFER_OUT_H

#include "base/buf.h"
#include "vfs/vfs.h"

#include <sys/types.h>

typedef struct rq__out {
    rq_file *file;
    rq_buf buf;
    uint64_t flushed; /* bytes in the file */
} rq__out;

/* Replaces a file of that name. rq__out_close follows, after an error too. */
RQ_NODISCARD
rq_err rq__out_open(rq_vfs *v, const char *path, rq__out *ret, rq_error *why);
static inline uint64_t rq__out_len(const rq__out *o)
{
    return o->flushed + o->buf.len;
}
/* Writes the buffer when it is large: called after each record. */
RQ_NODISCARD
rq_err rq__out_ease(rq__out *o, rq_error *why);
/* Writes the buffer, without making it durable. */
RQ_NODISCARD
rq_err rq__out_flush(rq__out *o, rq_error *why);
/* Makes everything durable. */
RQ_NODISCARD
rq_err rq__out_finish(rq__out *o, rq_error *why);
void rq__out_close(rq__out *o);

/* Opens a folder. If it is missing it is made with `mode`, in a parent that must exist, and *ret_made is true; ret_made
 * may be NULL. */
RQ_NODISCARD
rq_err rq__open_folder(const char *path, mode_t mode, rq_vfs **ret, bool *ret_made, rq_error *why);
/* Removes the folder if it is empty: for work that has made the folder and then failed. REQUIRES: the caller holds the
 * folder's lock. */
void rq__drop_empty_folder(const char *path);
/* Writes or replaces a small file: after a crash, and rq__complete_file, it is the old or the new one. */
RQ_NODISCARD
rq_err rq__put_file(rq_vfs *v, const char *path, rq_slice bytes, rq_error *why);
/* Ends a replacement that a crash interrupted: before a file that may have been replaced is read. */
RQ_NODISCARD
rq_err rq__complete_file(rq_vfs *v, const char *path, rq_error *why);
/* Moves a finished file to its name, which may be taken by an older one. */
RQ_NODISCARD
rq_err rq__move_file(rq_vfs *v, const char *from, const char *to, rq_error *why);
/* Removes a file that may be missing. */
RQ_NODISCARD
rq_err rq__drop_file(rq_vfs *v, const char *path, rq_error *why);

#endif
