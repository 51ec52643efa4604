/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is read from front to back through a window. One thread. */
#ifndef RQ_TRANSFER_IN_H
#define RQ_TRANSFER_IN_H

#include "base/buf.h"
#include "vfs/vfs.h"

typedef struct rq__in {
    const char *path; /* the caller's */
    rq_file *file;
    uint64_t size;   /* of the file when it was opened */
    uint64_t offset; /* in the file, of the window's first byte */
    rq_buf window;
    size_t at; /* in the window: the position */
} rq__in;

/* `path` must outlive it. rq__in_close follows, after an error too. */
RQ_NODISCARD
rq_err rq__in_open(rq_vfs *v, const char *path, rq__in *ret, rq_error *why);
void rq__in_close(rq__in *in);
static inline uint64_t rq__in_position(const rq__in *in)
{
    return in->offset + in->at;
}
static inline uint64_t rq__in_left(const rq__in *in)
{
    uint64_t at = rq__in_position(in);
    return at >= in->size ? 0 : in->size - at;
}
void rq__in_seek(rq__in *in, uint64_t position);
/* Makes `len` bytes readable at the position; *ret is valid until the next call. Fewer only at the
 * end that the file had when it was opened; RQ_E_CORRUPT: the file ends before that now. */
RQ_NODISCARD
rq_err rq__in_peek(rq__in *in, size_t len, rq_slice *ret, rq_error *why);
static inline void rq__in_skip(rq__in *in, size_t len)
{
    in->at += len;
}

#endif
