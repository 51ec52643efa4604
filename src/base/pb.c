/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf fields; contract in pb.h. One byte is reserved for a nested message's length; if it
 * needs more, the message is moved, which is rare. So nothing is measured in advance. */
#include "base/pb.h"

rq_err rq_pb_next(rq_cursor *message, rq_pb_field *ret)
{
    if (rq_cursor_left(message) == 0) return RQ_E_END;
    return rq_pb_field_read(message, ret) ? RQ_OK : RQ_E_MALFORMED;
}

rq_err rq_pb_put_number(rq_buf *out, uint32_t field, uint64_t v)
{
    RQ_TRY(rq_buf_reserve(out, (size_t)2 * RQ_VARINT_MAX));
    uint8_t *p = out->ptr + out->len;
    p += rq_put_varint(p, (uint64_t)field << 3 | RQ_PB_VARINT);
    p += rq_put_varint(p, v);
    out->len = (size_t)(p - out->ptr);
    return RQ_OK;
}

rq_err rq_pb_put_bytes(rq_buf *out, uint32_t field, rq_slice bytes)
{
    RQ_TRY(rq_buf_reserve(out, (size_t)2 * RQ_VARINT_MAX + bytes.len));
    uint8_t *p = out->ptr + out->len;
    p += rq_put_varint(p, (uint64_t)field << 3 | RQ_PB_BYTES);
    p += rq_put_varint(p, bytes.len);
    if (bytes.len > 0) memcpy(p, bytes.ptr, bytes.len);
    out->len = (size_t)(p - out->ptr) + bytes.len;
    return RQ_OK;
}

rq_err rq_pb_begin(rq_buf *out, uint32_t field, size_t *ret_at)
{
    RQ_TRY(rq_buf_append_varint(out, (uint64_t)field << 3 | RQ_PB_BYTES));
    *ret_at = out->len;
    return rq_buf_append_u8(out, 0);
}

rq_err rq_pb_end(rq_buf *out, size_t at)
{
    uint8_t length[RQ_VARINT_MAX];
    size_t body = out->len - at - 1;
    size_t n = rq_put_varint(length, body);
    if (n > 1) {
        RQ_TRY(rq_buf_reserve(out, n - 1));
        memmove(out->ptr + at + n, out->ptr + at + 1, body);
        out->len += n - 1;
    }
    memcpy(out->ptr + at, length, n);
    return RQ_OK;
}
