/* SPDX-License-Identifier: Apache-2.0 */
/* Request and response heads; layouts in wire.h. The request header's fields are decoded by hand,
 * because protobuf-c would allocate memory for each of them in every call. */
#include "rpc/wire.h"

#include "base/pb.h"

#include "proto/rpc.pb-c.h"

/* RequestHeader's fields used here (proto/rpc.proto). */
enum {
    CALL_ID = RQ_PB_TAG(1, RQ_PB_VARINT),
    TRACE_INFO = RQ_PB_TAG(2, RQ_PB_BYTES),
    METHOD_NAME = RQ_PB_TAG(3, RQ_PB_BYTES),
    REQUEST_PARAM = RQ_PB_TAG(4, RQ_PB_VARINT),
    CELL_BLOCK_META = RQ_PB_TAG(5, RQ_PB_BYTES),
    PRIORITY = RQ_PB_TAG(6, RQ_PB_VARINT),
    TIMEOUT = RQ_PB_TAG(7, RQ_PB_VARINT),
};

/* CellBlockMeta: its length. */
static bool cell_block_meta(rq_slice bytes, uint32_t *len)
{
    rq_cursor c = rq_cursor_of(bytes);
    rq_pb_field f;
    while (rq_cursor_left(&c) > 0) {
        if (!rq_pb_field_read(&c, &f)) return false;
        if (f.number == 1 && f.wire == RQ_PB_VARINT) *len = (uint32_t)f.value;
    }
    return true;
}

RQ_INLINE bool number32(rq_cursor *c, uint32_t *ret)
{
    uint64_t v;
    if (!rq_cursor_varint(c, &v)) return false;
    *ret = (uint32_t)v;
    return true;
}

/* Attributes, and unknown fields; but not a known field with an unexpected type. */
static bool other_field(rq_cursor *c)
{
    rq_pb_field f;
    return rq_pb_field_read(c, &f) && f.number > 7;
}

RQ_INLINE bool head_field(rq_cursor *c, rq_request_head *h)
{
    rq_slice bytes;
    uint64_t flag;
    switch (*c->ptr++) {
    case CALL_ID:
        return number32(c, &h->call_id);
    case TRACE_INFO:
        return rq_pb_delimited(c, &h->trace);
    case METHOD_NAME:
        return rq_pb_delimited(c, &h->method);
    case REQUEST_PARAM:
        if (!rq_cursor_varint(c, &flag)) return false;
        h->has_param = flag != 0;
        return true;
    case CELL_BLOCK_META:
        h->has_cell_block = true;
        return rq_pb_delimited(c, &bytes) && cell_block_meta(bytes, &h->cell_block_len);
    case PRIORITY:
        return number32(c, &h->priority);
    case TIMEOUT:
        return number32(c, &h->timeout_ms);
    default:
        c->ptr--;
        return other_field(c);
    }
}

static bool hex_digit(uint8_t c, uint64_t *id)
{
    unsigned digit = 16;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (c >= 'a' && c <= 'f') digit = c - 'a' + 10u;
    *id = *id << 4 | digit;
    return digit < 16;
}

/* "00-", 32 hexadecimal digits of the trace, "-", 16 of the span, "-", flags. W3C Trace Context. */
static uint64_t traceparent_id(rq_slice value)
{
    enum { BEFORE = 3, DIGITS = 32, LEAST = 55 };
    uint64_t id = 0;
    if (value.len < LEAST || value.ptr[2] != '-' || value.ptr[BEFORE + DIGITS] != '-') return 0;
    for (size_t i = BEFORE; i < BEFORE + DIGITS; i++)
        if (!hex_digit(value.ptr[i], &id)) return 0;
    return id;
}

static uint64_t header_id(rq_slice entry)
{
    rq_cursor c = rq_cursor_of(entry);
    rq_slice key = {0}, value = {0};
    rq_pb_field f;
    while (rq_cursor_left(&c) > 0 && rq_pb_field_read(&c, &f)) {
        if (f.number == 1) key = f.bytes;
        if (f.number == 2) value = f.bytes;
    }
    return rq_slice_eq(key, RQ_SLICE_LIT("traceparent")) ? traceparent_id(value) : 0;
}

uint64_t rq__request_trace_id(rq_slice trace)
{
    rq_cursor c = rq_cursor_of(trace);
    rq_pb_field f;
    uint64_t id = 0;
    while (id == 0 && rq_cursor_left(&c) > 0 && rq_pb_field_read(&c, &f)) {
        if (f.number == 1 && f.wire == RQ_PB_VARINT) id = f.value;
        if (f.number == 3) id = header_id(f.bytes);
    }
    return id;
}

bool rq__request_head_parse(rq_cursor *frame, rq_request_head *ret)
{
    *ret = (rq_request_head){0};
    if (!rq_pb_delimited(frame, &ret->bytes)) return false;
    ret->is_too_long = ret->bytes.len > RQ_REQUEST_HEAD_MAX;
    rq_cursor c = rq_cursor_of(ret->bytes);
    if (RQ_UNLIKELY(ret->is_too_long)) c.end = c.ptr + RQ_REQUEST_HEAD_MAX;
    while (c.ptr != c.end)
        if (!head_field(&c, ret)) return ret->is_too_long;
    return true;
}

rq_err rq__response_begin(rq_buf *out, uint32_t call_id, size_t message_len, size_t block_len,
                          size_t room)
{
    size_t meta_len = block_len == 0 ? 0 : 1 + rq_varint_len(block_len);
    size_t head_len = 1 + rq_varint_len(call_id) + (block_len == 0 ? 0 : 2 + meta_len);
    size_t total = rq_varint_len(head_len) + head_len + rq_varint_len(message_len) + message_len;
    if (message_len > RQ_RESPONSE_BYTES_MAX || block_len > RQ_RESPONSE_BYTES_MAX - total)
        return RQ_E_RESULT_TOO_LARGE;
    RQ_TRY(rq_buf_reserve(out, RQ_FRAME_HEAD + total - message_len + room));
    uint8_t *p = out->ptr + out->len;
    rq_put_be32(p, (uint32_t)(total + block_len));
    p += RQ_FRAME_HEAD;
    p += rq_put_varint(p, head_len);
    *p++ = 1 << 3 | RQ_PB_VARINT; /* call_id */
    p += rq_put_varint(p, call_id);
    if (block_len > 0) {
        *p++ = 3 << 3 | RQ_PB_BYTES; /* cell_block_meta */
        *p++ = (uint8_t)meta_len;
        *p++ = 1 << 3 | RQ_PB_VARINT; /* length */
        p += rq_put_varint(p, block_len);
    }
    p += rq_put_varint(p, message_len);
    out->len = (size_t)(p - out->ptr);
    return RQ_OK;
}

/* Length prefix and one delimited message. */
static rq_err append_delimited(rq_buf *out, const ProtobufCMessage *head,
                               const ProtobufCMessage *message)
{
    size_t head_len = protobuf_c_message_get_packed_size(head);
    size_t message_len = message == NULL ? 0 : protobuf_c_message_get_packed_size(message);
    size_t total = rq_varint_len(head_len) + head_len +
                   (message == NULL ? 0 : rq_varint_len(message_len) + message_len);
    if (total > RQ_RESPONSE_BYTES_MAX) return RQ_E_RESULT_TOO_LARGE;
    RQ_TRY(rq_buf_reserve(out, RQ_FRAME_HEAD + total));
    uint8_t *p = out->ptr + out->len;
    rq_put_be32(p, (uint32_t)total);
    p += RQ_FRAME_HEAD;
    p += rq_put_varint(p, head_len);
    p += protobuf_c_message_pack(head, p);
    if (message != NULL) {
        p += rq_put_varint(p, message_len);
        p += protobuf_c_message_pack(message, p);
    }
    out->len = (size_t)(p - out->ptr);
    return RQ_OK;
}

rq_err rq__response_message(rq_buf *out, uint32_t call_id, const ProtobufCMessage *message)
{
    Pb__ResponseHeader head = PB__RESPONSE_HEADER__INIT;
    head.has_call_id = true;
    head.call_id = call_id;
    return append_delimited(out, &head.base, message);
}

rq_err rq__response_exception(rq_buf *out, uint32_t call_id, const rq_rpc_exception *exception,
                              const char *text)
{
    Pb__ExceptionResponse e = PB__EXCEPTION_RESPONSE__INIT;
    e.exception_class_name = (char *)exception->java_class;
    e.stack_trace = (char *)text;
    e.has_do_not_retry = true;
    e.do_not_retry = exception->do_not_retry;
    e.has_server_overloaded = exception->server_overloaded;
    e.server_overloaded = exception->server_overloaded;
    if (exception->hostname != NULL) {
        e.hostname = (char *)exception->hostname;
        e.has_port = true;
        e.port = exception->port;
    }
    Pb__ResponseHeader head = PB__RESPONSE_HEADER__INIT;
    head.has_call_id = true;
    head.call_id = call_id;
    head.exception = &e;
    return append_delimited(out, &head.base, NULL);
}
