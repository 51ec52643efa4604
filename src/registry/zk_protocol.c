/* SPDX-License-Identifier: Apache-2.0 */
/* Jute's primitives, and frames; see zk_protocol.h. */
#include "registry/zk_protocol.h"

bool rq__zk_read_i32(rq_cursor *c, int32_t *ret)
{
    uint32_t v;
    if (!rq_cursor_be32(c, &v)) return false;
    *ret = (int32_t)v;
    return true;
}

bool rq__zk_read_i64(rq_cursor *c, int64_t *ret)
{
    uint64_t v;
    if (!rq_cursor_be64(c, &v)) return false;
    *ret = (int64_t)v;
    return true;
}

bool rq__zk_read_bool(rq_cursor *c, bool *ret)
{
    uint8_t v;
    if (!rq_cursor_u8(c, &v)) return false;
    *ret = v != 0;
    return true;
}

bool rq__zk_read_buffer(rq_cursor *c, rq_slice *ret)
{
    int32_t len;
    if (!rq__zk_read_i32(c, &len)) return false;
    if (len < 0) len = 0;
    return rq_cursor_bytes(c, (size_t)len, ret);
}

rq_err rq__zk_write_buffer(rq_buf *b, rq_slice bytes)
{
    RQ_TRY(rq_buf_append_be32(b, (uint32_t)bytes.len));
    return rq_buf_append(b, bytes.ptr, bytes.len);
}

rq_err rq__zk_write_stat(rq_buf *b, const rq__zk_stat *s)
{
    RQ_TRY(rq_buf_append_be64(b, (uint64_t)s->czxid));
    RQ_TRY(rq_buf_append_be64(b, (uint64_t)s->mzxid));
    RQ_TRY(rq_buf_append_be64(b, (uint64_t)s->ctime));
    RQ_TRY(rq_buf_append_be64(b, (uint64_t)s->mtime));
    RQ_TRY(rq_buf_append_be32(b, (uint32_t)s->version));
    RQ_TRY(rq_buf_append_be32(b, (uint32_t)s->cversion));
    RQ_TRY(rq_buf_append_be32(b, (uint32_t)s->aversion));
    RQ_TRY(rq_buf_append_be64(b, (uint64_t)s->ephemeral_owner));
    RQ_TRY(rq_buf_append_be32(b, (uint32_t)s->data_length));
    RQ_TRY(rq_buf_append_be32(b, (uint32_t)s->child_count));
    return rq_buf_append_be64(b, (uint64_t)s->pzxid);
}

rq_err rq__zk_frame_begin(rq_buf *b, size_t *ret_at)
{
    *ret_at = b->len;
    return rq_buf_append_be32(b, 0);
}

void rq__zk_frame_end(rq_buf *b, size_t at)
{
    rq_put_be32(b->ptr + at, (uint32_t)(b->len - at - 4));
}

rq_err rq__zk_reply_header(rq_buf *b, int32_t xid, int64_t zxid, int32_t err)
{
    RQ_TRY(rq_buf_append_be32(b, (uint32_t)xid));
    RQ_TRY(rq_buf_append_be64(b, (uint64_t)zxid));
    return rq_buf_append_be32(b, (uint32_t)err);
}
