/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts and bytes of any length. Three ways to end them:
 *
 *   before a literal     the bytes as they are; the literal ends them
 *   last and ascending   the bytes as they are; the key ends them
 *   otherwise            a text, which has no byte 00, ends with 00; bytes end with 00 00, and a byte
 *                        00 in them is written 00 FF. So a prefix sorts before what it is a prefix
 *                        of. part.c inverts them if they are descending.
 */
#include "rowkey/rowkey_priv.h"

static bool stands_alone(const rq__part *p)
{
    return p->is_last && !p->desc;
}

rq_err rq__var_encode(const rq__part *p, rq_slice s, rq_buf *out, rq_error *why)
{
    if (p->is_text && s.len > 0 && memchr(s.ptr, 0, s.len) != NULL)
        return rq__part_fail(p, RQ_E_INVALID, why, "a text has no byte 00");
    if (p->literal.len > 0 && s.len > 0 && memchr(s.ptr, p->literal.ptr[0], s.len) != NULL)
        return rq__part_fail(p, RQ_E_INVALID, why,
                             "the value contains byte %02x, the first byte of the literal after it",
                             p->literal.ptr[0]);
    if (p->literal.len > 0 || stands_alone(p)) return rq_buf_append(out, s.ptr, s.len);
    for (size_t i = 0; i < s.len; i++) {
        RQ_TRY(rq_buf_append_u8(out, s.ptr[i]));
        if (s.ptr[i] == 0) RQ_TRY(rq_buf_append_u8(out, 0xff));
    }
    return rq_buf_append(out, "\0", p->is_text ? 1 : 2);
}

static rq_err take_rest(rq_cursor *c, size_t len, rq_slice *ret)
{
    *ret = rq_slice_of(c->ptr, len);
    c->ptr += len;
    return RQ_OK;
}

static rq_err unescape(const rq__part *p, rq_cursor *c, uint8_t flip, rq_arena *arena,
                       rq_slice *ret, rq_error *why)
{
    uint8_t *bytes = rq_arena_alloc(arena, rq_cursor_left(c));
    if (bytes == NULL) return rq_no_memory(why);
    for (size_t len = 0; c->ptr < c->end;) {
        uint8_t b = *c->ptr++ ^ flip, next = 0;
        if (b == 0 && !p->is_text) {
            if (!rq_cursor_u8(c, &next)) break;
            next ^= flip;
            if (next != 0 && next != 0xff)
                return rq__part_fail(p, RQ_E_MALFORMED, why, "byte 00 is followed by %02x", next);
        }
        if (b == 0 && next == 0) {
            *ret = rq_slice_of(bytes, len);
            return RQ_OK;
        }
        bytes[len++] = b;
    }
    return rq__part_fail(p, RQ_E_MALFORMED, why, "the end mark is missing");
}

rq_err rq__var_decode(const rq__part *p, rq_cursor *c, rq_arena *arena, rq_slice *ret,
                      rq_error *why)
{
    if (p->literal.len > 0) {
        const uint8_t *end = memchr(c->ptr, p->literal.ptr[0], rq_cursor_left(c));
        if (end == NULL)
            return rq__part_fail(p, RQ_E_MALFORMED, why, "the literal after this part is missing");
        return take_rest(c, (size_t)(end - c->ptr), ret);
    }
    if (stands_alone(p)) return take_rest(c, rq_cursor_left(c), ret);
    return unescape(p, c, p->desc ? 0xff : 0, arena, ret, why);
}
