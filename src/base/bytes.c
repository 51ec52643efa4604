/* SPDX-License-Identifier: Apache-2.0 */
/* Slices as strings, cursors over untrusted bytes, the two variable-length integers, and printable keys. */
#include "base/bytes.h"
#include "base/macros.h"

#include <stdlib.h>

char *rq_slice_strdup(rq_slice s)
{
    char *copy = malloc(s.len + 1);
    if (copy == NULL) return NULL;
    if (s.len > 0) memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return copy;
}

int rq_slice_order(const void *a, const void *b)
{
    return rq_slice_compare(*(const rq_slice *)a, *(const rq_slice *)b);
}

bool rq_cursor_u8(rq_cursor *c, uint8_t *ret)
{
    if (c->ptr >= c->end) return false;
    *ret = *c->ptr++;
    return true;
}

bool rq_cursor_be16(rq_cursor *c, uint16_t *ret)
{
    if (rq_cursor_left(c) < 2) return false;
    *ret = rq_get_be16(c->ptr);
    c->ptr += 2;
    return true;
}

bool rq_cursor_be32(rq_cursor *c, uint32_t *ret)
{
    if (rq_cursor_left(c) < 4) return false;
    *ret = rq_get_be32(c->ptr);
    c->ptr += 4;
    return true;
}

bool rq_cursor_be64(rq_cursor *c, uint64_t *ret)
{
    if (rq_cursor_left(c) < 8) return false;
    *ret = rq_get_be64(c->ptr);
    c->ptr += 8;
    return true;
}

bool rq_cursor_bytes(rq_cursor *c, size_t len, rq_slice *ret)
{
    if (rq_cursor_left(c) < len) return false;
    *ret = rq_slice_of(c->ptr, len);
    c->ptr += len;
    return true;
}

/* Joins the 7-bit groups of eight bytes in parallel: pairs, then fours, then all. */
static uint64_t join_groups(uint64_t v)
{
    v = (v & 0x007f007f007f007fu) | (v & 0x7f007f007f007f00u) >> 1;
    v = (v & 0x00003fff00003fffu) | (v & 0x3fff00003fff0000u) >> 2;
    return (v & 0x000000000fffffffu) | (v & 0x0fffffff00000000u) >> 4;
}

/* Near the end of the bytes: one byte at a time. */
static bool varint_at_end(rq_cursor *c, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70 && c->ptr < c->end; shift += 7) {
        uint8_t b = *c->ptr++;
        if (shift == 63 && b > 1) return false;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b >= 0x80) continue;
        *ret = v;
        return true;
    }
    return false;
}

/* Most varints have two or three bytes. Longer ones are decoded eight bytes at a time, because a request may have many
 * timestamps that mean "latest", which take nine bytes each. */
bool rq__cursor_varint_long(rq_cursor *c, uint64_t *ret)
{
    uint64_t v;
    size_t left = rq_cursor_left(c);
    const uint8_t *p = c->ptr;
    if (RQ_LIKELY(left >= 3)) { /* lengths have two bytes, call ids and time-outs three */
        *ret = (uint64_t)(p[0] & 0x7f) | (uint64_t)(p[1] & 0x7f) << 7;
        c->ptr += 2;
        if (p[1] < 0x80) return true;
        *ret |= (uint64_t)p[2] << 14;
        c->ptr += 1;
        if (p[2] < 0x80) return true;
        c->ptr = p;
    }
    if (left < sizeof v) return varint_at_end(c, ret);
    memcpy(&v, c->ptr, sizeof v);
    uint64_t last = ~v & 0x8080808080808080u; /* bytes that end a varint */
    if (last != 0) {
        *ret = join_groups(v & (last ^ (last - 1)));
        c->ptr += (unsigned)__builtin_ctzll(last) / 8 + 1;
        return true;
    }
    c->ptr += sizeof v;
    if (left == 8) return false;
    uint8_t ninth = *c->ptr++;
    *ret = join_groups(v) | (uint64_t)(ninth & 0x7f) << 56;
    if (ninth < 0x80) return true;
    if (left == 9) return false;
    uint8_t tenth = *c->ptr++;
    *ret |= (uint64_t)tenth << 63;
    return tenth <= 1;
}

bool rq_cursor_vlong(rq_cursor *c, int64_t *ret)
{
    uint8_t first;
    if (!rq_cursor_u8(c, &first)) return false;
    int head = (first ^ 0x80) - 0x80; /* sign-extended */
    if (head >= -112) {
        *ret = head;
        return true;
    }
    bool negative = head < -120;
    unsigned bytes = (unsigned)(negative ? -120 - head : -112 - head);
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++) {
        uint8_t b;
        if (!rq_cursor_u8(c, &b)) return false;
        v = v << 8 | b;
    }
    *ret = (int64_t)(negative ? ~v : v);
    return true;
}

size_t rq_varint_len(uint64_t v)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1);
    return (bits * 9 + 64) / 64; /* bits / 7, rounded up */
}

size_t rq_put_varint(uint8_t *out, uint64_t v)
{
    size_t n = 0;
    while (v >= 0x80) {
        out[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    out[n++] = (uint8_t)v;
    return n;
}

size_t rq_utf8_take(rq_slice s, uint32_t *ret)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint8_t first = s.ptr[0];
    size_t len = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (len == 0 || first > 0xf4 || len > s.len) return 0;
    uint32_t point = len == 1 ? first : first & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((s.ptr[i] & 0xc0) != 0x80) return 0;
        point = point << 6 | (s.ptr[i] & 0x3f);
    }
    if (point < least[len] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return 0;
    *ret = point;
    return len;
}

static unsigned magnitude_bytes(uint64_t v)
{
    return v == 0 ? 1 : (71 - (unsigned)__builtin_clzll(v)) / 8;
}

size_t rq_vlong_len(int64_t v)
{
    if (v >= -112 && v <= 127) return 1;
    return 1 + magnitude_bytes(v < 0 ? ~(uint64_t)v : (uint64_t)v);
}

size_t rq_put_vlong(uint8_t *out, int64_t v)
{
    if (v >= -112 && v <= 127) {
        out[0] = (uint8_t)v;
        return 1;
    }
    uint64_t m = v < 0 ? ~(uint64_t)v : (uint64_t)v;
    unsigned bytes = magnitude_bytes(m);
    out[0] = (uint8_t)((v < 0 ? -120 : -112) - (int)bytes);
    for (unsigned i = 0; i < bytes; i++)
        out[1 + i] = (uint8_t)(m >> (8 * (bytes - 1 - i)));
    return 1 + bytes;
}

/* HBASE: Bytes.toStringBinary: printable ASCII is shown unchanged, except the backslash. */
size_t rq_bytes_to_string(rq_slice s, char *out, size_t size)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;
    if (size == 0) return 0;
    for (size_t i = 0; i < s.len; i++) {
        uint8_t b = s.ptr[i];
        if (b >= ' ' && b <= '~' && b != '\\') {
            if (n + 1 >= size) break;
            out[n++] = (char)b;
        } else {
            if (n + 4 >= size) break;
            out[n++] = '\\';
            out[n++] = 'x';
            out[n++] = hex[b >> 4];
            out[n++] = hex[b & 15];
        }
    }
    out[n] = '\0';
    return n;
}
