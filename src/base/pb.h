/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protobuf's wire format by hand, for what stands in every request, every answer and every file:
 * there protobuf-c's generic messages, a memory allocation for each field, would cost more than the
 * work. Everything else uses the messages of proto/.
 *
 * A field is a varint (number << 3 | wire type), then a varint, or 8, or 4 bytes, or a length and
 * as many bytes (protobuf.dev, "Encoding"). Groups are not accepted: HBase sends none.
 */
#ifndef RQ_BASE_PB_H
#define RQ_BASE_PB_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

enum { RQ_PB_VARINT = 0, RQ_PB_FIXED64 = 1, RQ_PB_BYTES = 2, RQ_PB_FIXED32 = 5 };

/* What stands in front of a field up to number 15: one byte, which names number and wire type at
 * once. */
#define RQ_PB_TAG(number, wire) ((number) << 3 | (wire))

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct rq_pb_field {
    uint32_t number; /* never 0 */
    uint8_t wire;
    uint64_t value; /* of a varint, else 0 */
    rq_slice bytes; /* of all others, in the message; else empty */
} rq_pb_field;

/* A length and as many bytes, as messages follow each other in a stream. */
RQ_NODISCARD
RQ_INLINE bool rq_pb_delimited(rq_cursor *c, rq_slice *ret)
{
    uint64_t len;
    if (!rq_cursor_varint(c, &len) || len > rq_cursor_left(c)) return false;
    *ret = (rq_slice){c->ptr, (size_t)len};
    c->ptr += len;
    return true;
}

/* The next field of a message that is not at its end. False: malformed. Inline, since a request has
 * twenty of them and most need nothing but one comparison and one load. */
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

/* The same, to be called until it says RQ_E_END; RQ_E_MALFORMED: malformed. */
RQ_NODISCARD
rq_err rq_pb_next(rq_cursor *message, rq_pb_field *ret);

/* --- writing ---------------------------------------------------------------------------------- */

RQ_NODISCARD
rq_err rq_pb_put_number(rq_buf *out, uint32_t field, uint64_t v);
RQ_NODISCARD
rq_err rq_pb_put_bytes(rq_buf *out, uint32_t field, rq_slice bytes);
/* A message inside a message: begin, its fields, end. */
RQ_NODISCARD
rq_err rq_pb_begin(rq_buf *out, uint32_t field, size_t *ret_at);
RQ_NODISCARD
rq_err rq_pb_end(rq_buf *out, size_t at);

#endif
