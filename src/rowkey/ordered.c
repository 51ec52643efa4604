/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HBase's OrderedBytes, byte for byte: a header byte that says what follows, then the value;
 * descending is the inversion of all bytes. Numbers of any size are in numeric.c.
 *
 *   05 null | 29 2a 2b 2c integers of 1, 2, 4, 8 bytes | 30 31 floats of 4, 8 bytes
 *   34 text 00 | 37 blob, 7 bits a byte, the top bit: more follow | 38 blob as it is
 *
 * HBASE: OrderedBytes.
 */
#include "rowkey/rowkey_priv.h"

enum {
    HEADER_NULL = 0x05,
    HEADER_INT8 = 0x29,
    HEADER_FLOAT32 = 0x30,
    HEADER_TEXT = 0x34,
    HEADER_BLOB_VAR = 0x37,
    HEADER_BLOB = 0x38,
};

static uint8_t header_of(const rq__part *p)
{
    unsigned log2 = (unsigned)__builtin_ctz(p->width | 0x100u);
    switch (p->kind) {
    case RQ__PART_OB_INT:
        return (uint8_t)(HEADER_INT8 + log2);
    case RQ__PART_OB_FLOAT:
        return (uint8_t)(HEADER_FLOAT32 + log2 - 2);
    case RQ__PART_OB_TEXT:
        return HEADER_TEXT;
    case RQ__PART_OB_BLOB:
        return HEADER_BLOB;
    default:
        return HEADER_BLOB_VAR;
    }
}

/* The plain part with the same bytes behind the header. */
static rq__part plain_of(const rq__part *p)
{
    rq__part plain = *p;
    plain.kind = p->kind == RQ__PART_OB_INT ? RQ__PART_INT : RQ__PART_FLOAT;
    plain.desc = false;
    return plain;
}

/* --- encoding --------------------------------------------------------------------------------- */

static rq_err append_blob_var(rq_slice s, rq_buf *out)
{
    unsigned bits = 0, count = 0;
    for (size_t i = 0; i < s.len; i++) {
        bits = (bits << 8 | s.ptr[i]) & 0x7fff;
        count += 8;
        while (count >= 7) {
            count -= 7;
            bool more = i + 1 < s.len || count > 0;
            RQ_TRY(rq_buf_append_u8(out, (uint8_t)((more ? 0x80 : 0) | (bits >> count & 0x7f))));
        }
    }
    if (count == 0 && s.len > 0) return RQ_OK;
    return rq_buf_append_u8(out, (uint8_t)(bits << (7 - count) & 0x7f));
}

static rq_err encode_bytes(const rq__part *p, rq_slice s, rq_buf *out, rq_error *why)
{
    bool has_zero = s.len > 0 && memchr(s.ptr, 0, s.len) != NULL;
    if (p->kind == RQ__PART_OB_BLOBVAR) return append_blob_var(s, out);
    if (has_zero && p->kind == RQ__PART_OB_TEXT)
        return rq__part_fail(p, RQ_E_INVALID, why, "a text has no byte 00");
    if (has_zero && p->desc)
        return rq__part_fail(p, RQ_E_INVALID, why, "a descending ob-blob has no byte 00");
    RQ_TRY(rq_buf_append(out, s.ptr, s.len));
    if (p->kind == RQ__PART_OB_TEXT || p->desc) return rq_buf_append_u8(out, 0);
    return RQ_OK;
}

static rq_err encode_null(const rq__part *p, rq_buf *out, rq_error *why)
{
    if (!rq__part_is_nullable_ob(p))
        return rq__part_fail(p, RQ_E_INVALID, why, "HBase's type has no null");
    RQ_TRY(rq_buf_append_u8(out, HEADER_NULL));
    return p->kind == RQ__PART_OB_BLOB && p->desc ? rq_buf_append_u8(out, 0) : RQ_OK;
}

static rq_err encode_ascending(const rq__part *p, const rq_key_value *v, rq_buf *out, rq_error *why)
{
    rq__part plain = plain_of(p);
    if (v->kind == RQ_VALUE_NULL) return encode_null(p, out, why);
    if (p->kind == RQ__PART_OB_NUM) return rq__numeric_encode(p, v, out, why);
    RQ_TRY(rq_buf_append_u8(out, header_of(p)));
    if (p->kind == RQ__PART_OB_INT || p->kind == RQ__PART_OB_FLOAT)
        return rq__part_encode(&plain, v, out, why);
    if (v->kind != RQ_VALUE_BYTES)
        return rq__part_fail(p, RQ_E_INVALID, why, "the value is neither text nor bytes");
    return encode_bytes(p, rq_slice_of(v->bytes.len == 0 ? "" : v->bytes.data, v->bytes.len), out,
                        why);
}

rq_err rq__ordered_encode(const rq__part *p, const rq_key_value *v, rq_buf *out, rq_error *why)
{
    size_t begin = out->len;
    RQ_TRY(encode_ascending(p, v, out, why));
    for (size_t i = begin; p->desc && i < out->len; i++)
        out->ptr[i] = (uint8_t)~out->ptr[i];
    return RQ_OK;
}

/* --- decoding --------------------------------------------------------------------------------- */

/* Up to the byte 00, which is taken, too, or (ob-blob) to the key's end. */
static rq_err take_bytes(const rq__part *p, rq_cursor *c, uint8_t flip, rq_arena *arena,
                         rq_slice *ret, rq_error *why)
{
    bool ends = p->kind == RQ__PART_OB_TEXT || p->desc;
    uint8_t *bytes = rq_arena_alloc(arena, rq_cursor_left(c));
    size_t len = 0;
    if (bytes == NULL) return rq_no_memory(why);
    while (c->ptr < c->end) {
        uint8_t b = *c->ptr++ ^ flip;
        if (b == 0 && ends) {
            *ret = rq_slice_of(bytes, len);
            return RQ_OK;
        }
        bytes[len++] = b;
    }
    if (ends) return rq__part_fail(p, RQ_E_MALFORMED, why, "the end mark is missing");
    *ret = rq_slice_of(bytes, len);
    return RQ_OK;
}

static rq_err take_blob_var(const rq__part *p, rq_cursor *c, uint8_t flip, rq_arena *arena,
                            rq_slice *ret, rq_error *why)
{
    uint8_t *bytes = rq_arena_alloc(arena, rq_cursor_left(c));
    unsigned bits = 0, count = 0;
    size_t len = 0;
    if (bytes == NULL) return rq_no_memory(why);
    while (c->ptr < c->end) {
        uint8_t b = *c->ptr++ ^ flip;
        bits = (bits << 7 | (b & 0x7f)) & 0x7fff;
        count += 7;
        if (count >= 8) {
            count -= 8;
            bytes[len++] = (uint8_t)(bits >> count);
        }
        if (b & 0x80) continue;
        *ret = rq_slice_of(bytes, len);
        return RQ_OK;
    }
    return rq__part_fail(p, RQ_E_MALFORMED, why, "the end mark is missing");
}

static rq_err decode_null(const rq__part *p, rq_cursor *c, rq_key_value *ret, rq_error *why)
{
    uint8_t end;
    if (p->kind == RQ__PART_OB_BLOB && p->desc && !rq_cursor_u8(c, &end))
        return rq__part_fail(p, RQ_E_MALFORMED, why, "the key ends in this part");
    *ret = rq_key_null();
    return RQ_OK;
}

rq_err rq__ordered_decode(const rq__part *p, rq_cursor *c, rq_arena *arena, rq_key_value *ret,
                          rq_error *why)
{
    uint8_t flip = p->desc ? 0xff : 0, header;
    rq_cursor begin = *c;
    rq_slice s = {0};
    if (!rq_cursor_u8(c, &header))
        return rq__part_fail(p, RQ_E_MALFORMED, why, "the key ends before this part");
    header ^= flip;
    if (header == HEADER_NULL && rq__part_is_nullable_ob(p)) return decode_null(p, c, ret, why);
    if (p->kind == RQ__PART_OB_NUM) {
        *c = begin;
        return rq__numeric_decode(p, c, flip, arena, ret, why);
    }
    if (header != header_of(p))
        return rq__part_fail(p, RQ_E_MALFORMED, why, "the first byte is %02x, not %02x", header,
                             header_of(p));
    if (p->kind == RQ__PART_OB_INT || p->kind == RQ__PART_OB_FLOAT) {
        rq__part plain = plain_of(p);
        plain.desc = p->desc;
        return rq__part_decode(&plain, c, arena, ret, why);
    }
    RQ_TRY(p->kind == RQ__PART_OB_BLOBVAR ? take_blob_var(p, c, flip, arena, &s, why)
                                          : take_bytes(p, c, flip, arena, &s, why));
    *ret = rq_key_bytes((rq_bytes){s.ptr, s.len});
    return RQ_OK;
}
