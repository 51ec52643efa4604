/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hand-written protobuf encoding for the messages that occur in every request, response and file.
 * For these, protobuf-c's generic code, with one allocation per field, would cost more than the
 * work itself. All other messages use the generated code of proto/.
 *
 * A field is a varint (number << 3 | wire type) and a value: a varint, 8 bytes, 4 bytes, or a
 * length and that many bytes (protobuf.dev, "Encoding"). Groups are rejected: HBase sends none.
 */
#ifndef RQ_BASE_PB_H
#define RQ_BASE_PB_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

enum { RQ_PB_VARINT = 0, RQ_PB_FIXED64 = 1, RQ_PB_BYTES = 2, RQ_PB_FIXED32 = 5 };

/* The tag of a field with a number up to 15: one byte with number and wire type. */
#define RQ_PB_TAG(number, wire) ((number) << 3 | (wire))

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct rq_pb_field {
    uint32_t number; /* never 0 */
    uint8_t wire;
    uint64_t value; /* value of a varint field; else 0 */
    rq_slice bytes; /* content of other fields, in the message; else empty */
} rq_pb_field;

/* Reads a varint length and that many bytes: a delimited message of a stream. */
RQ_NODISCARD
RQ_INLINE bool rq_pb_delimited(rq_cursor *c, rq_slice *ret)
{
    uint64_t len;
    if (!rq_cursor_varint(c, &len) || len > rq_cursor_left(c)) return false;
    *ret = (rq_slice){c->ptr, (size_t)len};
    c->ptr += len;
    return true;
}

/* Reads the next field. REQUIRES: the message is not at its end. False: malformed. Inline
 * because a request has twenty fields and most need one comparison and one load. */
RQ_NODISCARD
RQ_INLINE bool rq_pb_field_read(rq_cursor *message, rq_pb_field *ret)
{
    uint64_t tag;
    if (!rq_cursor_varint(message, &tag) || tag >> 3 == 0 || tag > UINT32_MAX) return false;
    ret->number = (uint32_t)(tag >> 3);
    ret->wire = (uint8_t)(tag & 7);
    ret->value = 0;
    ret->bytes = (rq_slice){0};
    switch (ret->wire) {
    case RQ_PB_VARINT:
        return rq_cursor_varint(message, &ret->value);
    case RQ_PB_BYTES:
        return rq_pb_delimited(message, &ret->bytes);
    case RQ_PB_FIXED64:
        return rq_cursor_bytes(message, 8, &ret->bytes);
    case RQ_PB_FIXED32:
        return rq_cursor_bytes(message, 4, &ret->bytes);
    default:
        return false;
    }
}

/* Reads the next field. RQ_E_END: no more fields. RQ_E_MALFORMED: malformed. */
RQ_NODISCARD
rq_err rq_pb_next(rq_cursor *message, rq_pb_field *ret);

/* --- writing ---------------------------------------------------------------------------------- */

RQ_NODISCARD
rq_err rq_pb_put_number(rq_buf *out, uint32_t field, uint64_t v);
RQ_NODISCARD
rq_err rq_pb_put_bytes(rq_buf *out, uint32_t field, rq_slice bytes);
/* Writes a nested message: call begin, write its fields, call end with begin's *ret_at. */
RQ_NODISCARD
rq_err rq_pb_begin(rq_buf *out, uint32_t field, size_t *ret_at);
RQ_NODISCARD
rq_err rq_pb_end(rq_buf *out, size_t at);

#endif
