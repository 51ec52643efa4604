/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Borrowed byte strings and the integer encodings of HBase's wire and disk formats.
 *
 * Everything on disk and in cell blocks is big-endian (Java's DataOutput); protobuf's varints and
 * Hadoop's WritableUtils vints are the two variable-length forms. Readers that take a cursor check
 * bounds and return false at the end instead of reading past it.
 */
#ifndef RQ_BASE_BYTES_H
#define RQ_BASE_BYTES_H

#include "base/simd.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Borrowed bytes. The function that returns a slice says who owns the bytes and how long they
 * are valid. */
typedef struct rq_slice {
    const uint8_t *ptr;
    size_t len;
} rq_slice;

#define RQ_SLICE_LIT(s) ((rq_slice){(const uint8_t *)(s), sizeof(s) - 1})

static inline rq_slice rq_slice_of(const void *ptr, size_t len)
{
    return (rq_slice){(const uint8_t *)ptr, len};
}

static inline rq_slice rq_slice_cstr(const char *s)
{
    return (rq_slice){(const uint8_t *)s, strlen(s)};
}

/* A copy that ends with a zero byte, also of a slice without a pointer; NULL: no memory. */
char *rq_slice_strdup(rq_slice s);
static inline bool rq_slice_eq(rq_slice a, rq_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* The text, or its first bytes, at most `max`, that do not end within a character of UTF-8. */
static inline rq_slice rq_text_beginning(rq_slice text, size_t max)
{
    size_t len = text.len < max ? text.len : max;
    size_t least = len < 3 ? 0 : len - 3; /* a character has up to three bytes of this kind */
    size_t end = len;
    if (len == text.len) return text;
    while (end > least && (text.ptr[end] & 0xc0) == 0x80)
        end--;
    text.len = (text.ptr[end] & 0xc0) == 0x80 ? len : end; /* as it is, if it is not UTF-8 */
    return text;
}

/* Unsigned lexicographic order, as HBase's Bytes.compareTo: < 0, 0, > 0. */
static inline int rq_bytes_compare(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
    size_t n = a_len < b_len ? a_len : b_len;
    int c = n == 0 ? 0 : memcmp(a, b, n);
    if (c != 0) return c;
    return (a_len > b_len) - (a_len < b_len);
}

static inline int rq_slice_compare(rq_slice a, rq_slice b)
{
    return rq_bytes_compare(a.ptr, a.len, b.ptr, b.len);
}

/* rq_slice_compare of two elements of an array, for qsort and bsearch. */
int rq_slice_order(const void *a, const void *b);

/* rq_short_compare returns what rq_bytes_compare returns, and is faster for short strings such
 * as keys. It compares sixteen or eight bytes at a time without a call. The tail is compared by
 * a load that overlaps bytes already known to be equal. Strings longer than RQ_SHORT_BYTES_MAX
 * go to memcmp, whose vector loop is faster from about that length. */
#define RQ_SHORT_BYTES_MAX 64

static inline uint64_t rq_get_be64(const uint8_t *p);
static inline uint32_t rq_get_be32(const uint8_t *p);

/* Compares sixteen bytes: < 0, 0, > 0. */
static inline int rq_compare_16(const uint8_t *a, const uint8_t *b)
{
    unsigned differ = rq_v16_mask(rq_v16_equal(rq_v16_load(a), rq_v16_load(b))) ^ 0xffffu;
    if (differ == 0) return 0;
    unsigned at = (unsigned)__builtin_ctz(differ);
    return a[at] < b[at] ? -1 : 1;
}

static inline int rq_short_compare(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
    size_t n = a_len < b_len ? a_len : b_len;
    uint64_t x;
    uint64_t y;
    if (n >= 16) {
        if (__builtin_expect(n > RQ_SHORT_BYTES_MAX, 0))
            return rq_bytes_compare(a, a_len, b, b_len);
        int c = rq_compare_16(a, b);
        for (size_t i = 16; c == 0 && i < n; i += 16) {
            size_t at = i + 16 <= n ? i : n - 16;
            c = rq_compare_16(a + at, b + at);
        }
        return c != 0 ? c : (a_len > b_len) - (a_len < b_len);
    }
    if (n >= 8) {
        x = rq_get_be64(a);
        y = rq_get_be64(b);
        if (x == y) {
            x = rq_get_be64(a + n - 8);
            y = rq_get_be64(b + n - 8);
        }
    } else if (n >= 4) {
        x = (uint64_t)rq_get_be32(a) << 32 | rq_get_be32(a + n - 4);
        y = (uint64_t)rq_get_be32(b) << 32 | rq_get_be32(b + n - 4);
    } else if (n > 0) {
        x = (uint64_t)a[0] << 16 | (uint64_t)a[n >> 1] << 8 | a[n - 1];
        y = (uint64_t)b[0] << 16 | (uint64_t)b[n >> 1] << 8 | b[n - 1];
    } else {
        x = y = 0;
    }
    if (x != y) return x < y ? -1 : 1;
    return (a_len > b_len) - (a_len < b_len);
}

static inline uint64_t rq_get_u64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static inline uint32_t rq_get_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* Whether two strings of `len` bytes each are equal. */
static inline bool rq_short_eq_len(const uint8_t *a, const uint8_t *b, size_t len)
{
    if (len >= 8) {
        if (__builtin_expect(len > RQ_SHORT_BYTES_MAX, 0)) return memcmp(a, b, len) == 0;
        uint64_t differ = rq_get_u64(a + len - 8) ^ rq_get_u64(b + len - 8);
        for (size_t i = 0; i + 8 < len; i += 8)
            differ |= rq_get_u64(a + i) ^ rq_get_u64(b + i);
        return differ == 0;
    }
    if (len >= 4)
        return ((rq_get_u32(a) ^ rq_get_u32(b)) |
                (rq_get_u32(a + len - 4) ^ rq_get_u32(b + len - 4))) == 0;
    return len == 0 ||
           ((a[0] ^ b[0]) | (a[len >> 1] ^ b[len >> 1]) | (a[len - 1] ^ b[len - 1])) == 0;
}

static inline bool rq_short_eq(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
    return a_len == b_len && rq_short_eq_len(a, b, a_len);
}

/* memcpy, faster for short strings. The ranges must not overlap. */
static inline void rq_short_copy(uint8_t *to, const uint8_t *from, size_t len)
{
    if (len > 16) {
        memcpy(to, from, len);
    } else if (len >= 8) {
        uint64_t head, tail;
        memcpy(&head, from, 8);
        memcpy(&tail, from + len - 8, 8);
        memcpy(to, &head, 8);
        memcpy(to + len - 8, &tail, 8);
    } else if (len >= 4) {
        uint32_t head, tail;
        memcpy(&head, from, 4);
        memcpy(&tail, from + len - 4, 4);
        memcpy(to, &head, 4);
        memcpy(to + len - 4, &tail, 4);
    } else if (len > 0) {
        uint8_t first = from[0], middle = from[len >> 1], last = from[len - 1];
        to[0] = first;
        to[len >> 1] = middle;
        to[len - 1] = last;
    }
}

static inline bool rq_slice_starts_with(rq_slice s, rq_slice prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

static inline uint16_t rq_get_be16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return __builtin_bswap16(v);
}

static inline uint32_t rq_get_be32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return __builtin_bswap32(v);
}

static inline uint64_t rq_get_be64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return __builtin_bswap64(v);
}

static inline void rq_put_be16(uint8_t *p, uint16_t v)
{
    v = __builtin_bswap16(v);
    memcpy(p, &v, 2);
}

static inline void rq_put_be32(uint8_t *p, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(p, &v, 4);
}

static inline void rq_put_be64(uint8_t *p, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(p, &v, 8);
}

/*
 * A cursor over untrusted bytes. Each read checks the bounds, advances and returns true. On short
 * or malformed input it returns false, and the cursor's position is unspecified.
 */
typedef struct rq_cursor {
    const uint8_t *ptr;
    const uint8_t *end;
} rq_cursor;

static inline rq_cursor rq_cursor_of(rq_slice s)
{
    return (rq_cursor){s.ptr, s.ptr + s.len};
}

static inline size_t rq_cursor_left(const rq_cursor *c)
{
    return (size_t)(c->end - c->ptr);
}

bool rq_cursor_u8(rq_cursor *c, uint8_t *ret);
bool rq_cursor_be16(rq_cursor *c, uint16_t *ret);
bool rq_cursor_be32(rq_cursor *c, uint32_t *ret);
bool rq_cursor_be64(rq_cursor *c, uint64_t *ret);
bool rq_cursor_bytes(rq_cursor *c, size_t len, rq_slice *ret);
/* Protobuf base-128 varint, at most 10 bytes. */
bool rq__cursor_varint_long(rq_cursor *c, uint64_t *ret);
static inline bool rq_cursor_varint(rq_cursor *c, uint64_t *ret)
{
    if (c->ptr == c->end || (*c->ptr & 0x80) != 0) return rq__cursor_varint_long(c, ret);
    *ret = *c->ptr++;
    return true;
}
/* Hadoop's WritableUtils.readVLong: 1 to 9 bytes; the first gives sign and length. */
bool rq_cursor_vlong(rq_cursor *c, int64_t *ret);

/* Encoders write to `out`, which must have room for the longest form, and return the number of
 * bytes written. */
#define RQ_VARINT_MAX 10
#define RQ_VLONG_MAX 9
size_t rq_put_varint(uint8_t *out, uint64_t v);
size_t rq_varint_len(uint64_t v);
size_t rq_put_vlong(uint8_t *out, int64_t v);
size_t rq_vlong_len(int64_t v);

/* Decodes the text's first code point into *ret. Returns its length in bytes, or 0 for invalid
 * UTF-8 (RFC 3629). REQUIRES: s.len > 0. */
size_t rq_utf8_take(rq_slice s, uint32_t *ret);

/*
 * HBase's Bytes.toStringBinary: printable ASCII except '\' unchanged, other bytes as \xHH
 * (upper-case hex).
 * Writes at most `size` bytes including the terminating NUL and never cuts an escape. Returns
 * the length without the NUL.
 */
size_t rq_bytes_to_string(rq_slice s, char *out, size_t size);

#endif
