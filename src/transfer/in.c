/* SPDX-License-Identifier: Apache-2.0 */
/* See in.h. */
#include "transfer/in.h"

#include <inttypes.h>

#define WINDOW_BYTES ((size_t)256 * 1024)

rq_err rq__in_open(rq_vfs *v, const char *path, rq__in *ret, rq_error *why)
{
    *ret = (rq__in){.path = path};
    RQ_TRY(rq_vfs_open(v, path, RQ_OPEN_READ, &ret->file, why));
    return rq_file_size(ret->file, &ret->size, why);
}

void rq__in_close(rq__in *in)
{
    (void)rq_file_close(in->file);
    rq_buf_clear(&in->window);
    *in = (rq__in){0};
}

void rq__in_seek(rq__in *in, uint64_t position)
{
    in->offset = position;
    in->at = 0;
    rq_buf_reset(&in->window);
}

/* Drops the bytes that were read, and reads up to `len` bytes or a whole window. */
static rq_err fill(rq__in *in, size_t len, rq_error *why)
{
    size_t kept = in->at < in->window.len ? in->window.len - in->at : 0;
    uint64_t position = rq__in_position(in);
    if (kept > 0) memmove(in->window.ptr, in->window.ptr + in->at, kept);
    in->window.len = kept;
    in->offset = position;
    in->at = 0;
    size_t wanted = len > WINDOW_BYTES ? len : WINDOW_BYTES;
    size_t got = 0;
    if (rq_buf_reserve(&in->window, wanted - kept) != RQ_OK) return rq_no_memory(why);
    RQ_TRY(
        rq_file_read(in->file, in->window.ptr + kept, wanted - kept, position + kept, &got, why));
    in->window.len += got;
    return in->window.len < len
               ? rq_fail(why, RQ_E_CORRUPT,
                         "%s has become shorter than %" PRIu64 " bytes while it was read", in->path,
                         in->size)
               : RQ_OK;
}

rq_err rq__in_peek(rq__in *in, size_t len, rq_slice *ret, rq_error *why)
{
    uint64_t left = rq__in_left(in);
    if (len > left) len = (size_t)left;
    if (in->at > in->window.len || in->window.len - in->at < len) RQ_TRY(fill(in, len, why));
    size_t have = in->window.len - in->at;
    *ret = rq_slice_of(in->window.ptr + in->at, have < len ? have : len);
    return RQ_OK;
}
