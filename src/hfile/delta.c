/* SPDX-License-Identifier: Apache-2.0 */
/* PREFIX, DIFF and FAST_DIFF (delta.h). */
#include "hfile/delta.h"

#include "hfile/block_codec.h"
#include "hfile/plain.h"

#include <stdlib.h>

/* On disk: DO NOT CHANGE. */
#define DIFF_SAME_KEY_LEN 0x01u
#define DIFF_SAME_VALUE_LEN 0x02u
#define DIFF_SAME_TYPE 0x04u
#define DIFF_TIME_IS_DIFFERENCE 0x08u
#define DIFF_TIME_LEN_SHIFT 4 /* bytes less one, in three bits */
#define DIFF_TIME_IS_NEGATIVE 0x80u

#define FAST_TIME_SHARED 0x07u /* how many bytes */
#define FAST_SAME_KEY_LEN 0x08u
#define FAST_SAME_VALUE_LEN 0x10u
#define FAST_SAME_TYPE 0x20u
#define FAST_SAME_VALUE 0x40u

#define TIME_AND_TYPE_LEN 9
#define ROW_LEN_LEN 2

/* --- writing ---------------------------------------------------------------------------------- */

/* Length of the common prefix of two strings of `n` bytes. The load that compares the tail overlaps bytes that are
 * known to be equal. */
static inline size_t shared_bytes(const uint8_t *a, const uint8_t *b, size_t n)
{
    if (n >= 16) {
        for (size_t i = 0;; i = i + 32 <= n ? i + 16 : n - 16) {
            unsigned equal = rq_v16_mask(rq_v16_equal(rq_v16_load(a + i), rq_v16_load(b + i)));
            if (equal != 0xffff) return i + (size_t)__builtin_ctz(~equal);
            if (i + 16 == n) return n;
        }
    }
    if (n >= 8) {
        uint64_t differ = rq_get_u64(a) ^ rq_get_u64(b);
        if (differ != 0) return (size_t)__builtin_ctzll(differ) / 8;
        differ = rq_get_u64(a + n - 8) ^ rq_get_u64(b + n - 8);
        return differ == 0 ? n : n - 8 + (size_t)__builtin_ctzll(differ) / 8;
    }
    if (n >= 4) {
        uint32_t differ = rq_get_u32(a) ^ rq_get_u32(b);
        if (differ != 0) return (size_t)__builtin_ctz(differ) / 8;
        differ = rq_get_u32(a + n - 4) ^ rq_get_u32(b + n - 4);
        return differ == 0 ? n : n - 4 + (size_t)__builtin_ctz(differ) / 8;
    }
    size_t i = 0;
    while (i < n && a[i] == b[i])
        i++;
    return i;
}

static inline size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

rq__delta_shared rq__delta_shared_of(const rq_cell *a, const rq_cell *b)
{
    rq__delta_shared s = {
        .row = (uint32_t)shared_bytes(a->row, b->row, min_size(a->row_len, b->row_len))};
    s.same_row = s.row == a->row_len && a->row_len == b->row_len;
    if (s.same_row)
        s.qualifier = (uint32_t)shared_bytes(a->qualifier, b->qualifier,
                                             min_size(a->qualifier_len, b->qualifier_len));
    return s;
}

static size_t shared_be64(uint64_t a, uint64_t b)
{
    return a == b ? 8 : (size_t)__builtin_clzll(a ^ b) / 8;
}

/* Length of the common prefix of two flat keys, at most up to the end of the qualifiers. All cells
 * of a file have the same family, which is not compared. */
static inline size_t shared_name(const rq_cell *a, const rq_cell *b, rq__delta_shared s)
{
    if (a->row_len != b->row_len) return a->row_len >> 8 == b->row_len >> 8 ? 1 : 0;
    size_t n = ROW_LEN_LEN + (size_t)s.row;
    return s.same_row ? n + 1 + a->family_len + s.qualifier : n;
}

/* Length of the common prefix of two flat keys. */
static size_t shared_key(const rq_cell *a, const rq_cell *b, rq__delta_shared s)
{
    size_t n = shared_name(a, b, s);
    size_t longer = a->qualifier_len > b->qualifier_len ? a->qualifier_len : b->qualifier_len;
    if (!s.same_row || s.qualifier != longer) return n;
    size_t time = shared_be64((uint64_t)a->timestamp, (uint64_t)b->timestamp);
    n += time;
    return time == 8 && a->type == b->type ? n + 1 : n;
}

/* The functions below write to `p`, which has room_for bytes, and return the end. */
static size_t room_for(const rq_cell *cell)
{
    const size_t flags = 1, family = 1, numbers = 3 * RQ_VARINT_MAX;
    return flags + family + cell->family_len + numbers + rq_cell_key_len(cell) + cell->value_len +
           RQ_VLONG_MAX;
}

static inline uint8_t *put_bytes(uint8_t *p, const uint8_t *bytes, size_t len)
{
    rq_short_copy(p, bytes, len);
    return p + len;
}

static inline uint8_t *put_number(uint8_t *p, uint64_t n)
{
    if (RQ_UNLIKELY(n >= 0x80)) return p + rq_put_varint(p, n);
    *p = (uint8_t)n;
    return p + 1;
}

static uint8_t *put_flat_key(const rq_cell *cell, size_t from, uint8_t *p)
{
    size_t len = rq_cell_key_len(cell);
    rq_cell_serialize_key(cell, p);
    if (from > 0) memmove(p, p + from, len - from);
    return p + (len - from);
}

/* Row and qualifier behind the shared bytes; the family is known. */
static inline uint8_t *put_row_and_qualifier(const rq_cell *cell, size_t shared, uint8_t *p)
{
    size_t row_end = ROW_LEN_LEN + (size_t)cell->row_len;
    if (shared >= row_end) {
        size_t skip = shared - row_end - 1 - cell->family_len;
        return put_bytes(p, cell->qualifier + skip, cell->qualifier_len - skip);
    }
    uint8_t len[ROW_LEN_LEN];
    rq_put_be16(len, cell->row_len);
    size_t skip = 0;
    if (shared < ROW_LEN_LEN)
        p = put_bytes(p, len + shared, ROW_LEN_LEN - shared);
    else
        skip = shared - ROW_LEN_LEN;
    p = put_bytes(p, cell->row + skip, cell->row_len - skip);
    return put_bytes(p, cell->qualifier, cell->qualifier_len);
}

static uint8_t *encode_prefix(const rq_cell *cell, const rq_cell *last, rq__delta_shared s,
                              uint8_t *p)
{
    size_t shared = last == NULL ? 0 : shared_key(cell, last, s);
    p = put_number(p, rq_cell_key_len(cell) - shared);
    p = put_number(p, cell->value_len);
    p = put_number(p, shared);
    p = put_flat_key(cell, shared, p);
    return put_bytes(p, cell->value, cell->value_len);
}

/* HBASE: ByteBufferUtils.longFitsIn: a negative number takes all eight. */
static unsigned bytes_of(uint64_t v)
{
    return v == 0 ? 1 : 8 - (unsigned)__builtin_clzll(v) / 8;
}

/* A timestamp in DIFF. */
typedef struct diff_time {
    uint64_t magnitude;
    unsigned len; /* bytes of the magnitude */
    bool negative;
    bool is_difference;
} diff_time;

static diff_time diff_time_of(uint64_t v)
{
    bool negative = (int64_t)v < 0;
    if (negative) v = 0 - v;
    return (diff_time){v, bytes_of(v), negative, false};
}

/* The timestamp or its difference, whichever is shorter. */
static diff_time shorter_time(const rq_cell *cell, const rq_cell *last)
{
    diff_time whole = diff_time_of((uint64_t)cell->timestamp);
    if (last == NULL) return whole;
    diff_time difference = diff_time_of((uint64_t)last->timestamp - (uint64_t)cell->timestamp);
    difference.is_difference = true;
    return difference.len < whole.len ? difference : whole;
}

/* The last three arguments are the encoding's flags. */
static inline unsigned same_flags(const rq_cell *cell, const rq_cell *last, unsigned same_key_len,
                                  unsigned same_value_len, unsigned same_type)
{
    return (rq_cell_key_len(cell) == rq_cell_key_len(last) ? same_key_len : 0) |
           (cell->value_len == last->value_len ? same_value_len : 0) |
           (cell->type == last->type ? same_type : 0);
}

static uint8_t *encode_diff(const rq_cell *cell, const rq_cell *last, rq__delta_shared s,
                            uint8_t *p)
{
    unsigned flags = 0;
    size_t shared = 0;
    diff_time time = shorter_time(cell, last);
    if (last == NULL) {
        *p++ = cell->family_len;
        p = put_bytes(p, cell->family, cell->family_len);
    } else {
        shared = shared_name(cell, last, s);
        flags = same_flags(cell, last, DIFF_SAME_KEY_LEN, DIFF_SAME_VALUE_LEN, DIFF_SAME_TYPE);
    }
    if (time.is_difference) flags |= DIFF_TIME_IS_DIFFERENCE;
    if (time.negative) flags |= DIFF_TIME_IS_NEGATIVE;
    *p++ = (uint8_t)(flags | (time.len - 1) << DIFF_TIME_LEN_SHIFT);
    if ((flags & DIFF_SAME_KEY_LEN) == 0) p = put_number(p, rq_cell_key_len(cell));
    if ((flags & DIFF_SAME_VALUE_LEN) == 0) p = put_number(p, cell->value_len);
    p = put_number(p, shared);
    p = put_row_and_qualifier(cell, shared, p);
    memcpy(p, &time.magnitude, sizeof time.magnitude); /* little-endian */
    p += time.len;                                     /* the other bytes are overwritten */
    if ((flags & DIFF_SAME_TYPE) == 0) *p++ = cell->type;
    return put_bytes(p, cell->value, cell->value_len);
}

static uint8_t *encode_fast_diff(const rq_cell *cell, const rq_cell *last, rq__delta_shared s,
                                 uint8_t *p)
{
    if (last == NULL) {
        *p++ = 0;
        return encode_prefix(cell, NULL, s, p);
    }
    size_t shared = shared_name(cell, last, s);
    size_t time_shared = shared_be64((uint64_t)cell->timestamp, (uint64_t)last->timestamp);
    if (time_shared > 7) time_shared = 7;
    unsigned flags = (unsigned)time_shared |
                     same_flags(cell, last, FAST_SAME_KEY_LEN, FAST_SAME_VALUE_LEN, FAST_SAME_TYPE);
    if (rq_slice_eq(rq_cell_value(cell), rq_cell_value(last))) flags |= FAST_SAME_VALUE;
    *p++ = (uint8_t)flags;
    if ((flags & FAST_SAME_KEY_LEN) == 0) p = put_number(p, rq_cell_key_len(cell));
    if ((flags & FAST_SAME_VALUE_LEN) == 0) p = put_number(p, cell->value_len);
    p = put_number(p, shared);
    p = put_row_and_qualifier(cell, shared, p);
    rq_put_be64(p, (uint64_t)cell->timestamp << 8 * time_shared);
    p += 8 - time_shared;
    if ((flags & FAST_SAME_TYPE) == 0) *p++ = cell->type;
    return (flags & FAST_SAME_VALUE) != 0 ? p : put_bytes(p, cell->value, cell->value_len);
}

static rq_err put_tags(const rq_cell *cell, rq__tag_dictionary *dictionary, rq_buf *out)
{
    rq_slice tags = rq_slice_of(cell->tags, cell->tags_len);
    RQ_TRY(rq_buf_append_varint(out, tags.len));
    return dictionary != NULL ? rq__tag_dictionary_pack(dictionary, tags, out)
                              : rq_buf_append(out, tags.ptr, tags.len);
}

rq_err rq__delta_encode(rq__delta_shape shape, const rq_cell *cell, const rq_cell *last,
                        rq__delta_shared shared, rq__tag_dictionary *dictionary, rq_buf *out)
{
    RQ_TRY(rq_buf_reserve(out, room_for(cell)));
    uint8_t *p = out->ptr + out->len;
    p = shape.encoding == RQ_ENCODING_PREFIX ? encode_prefix(cell, last, shared, p)
        : shape.encoding == RQ_ENCODING_DIFF ? encode_diff(cell, last, shared, p)
                                             : encode_fast_diff(cell, last, shared, p);
    if (shape.has_tags) {
        out->len = (size_t)(p - out->ptr);
        RQ_TRY(put_tags(cell, dictionary, out));
        RQ_TRY(rq_buf_reserve(out, RQ_VLONG_MAX));
        p = out->ptr + out->len;
    }
    if (shape.has_mvcc) p += rq_put_vlong(p, (int64_t)cell->seqid);
    out->len = (size_t)(p - out->ptr);
    return RQ_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */

void rq__delta_clear(rq__delta *d)
{
    free(d->key);
    *d = (rq__delta){0};
}

static rq_err grow(rq__delta *d, size_t len)
{
    if (RQ_LIKELY(len <= d->room)) return RQ_OK;
    size_t room = len < 256 ? 256 : len + len / 2;
    uint8_t *key = realloc(d->key, room);
    if (key == NULL) return RQ_E_NO_MEMORY;
    d->key = key;
    d->room = (uint32_t)room;
    return RQ_OK;
}

/* Row, family and qualifier of a key whose lengths have been checked. */
static inline void point_into_key(rq__delta *d, size_t row_len, size_t family_len)
{
    rq_cell *c = &d->cell;
    c->row = d->key + ROW_LEN_LEN;
    c->row_len = (uint16_t)row_len;
    c->family = c->row + row_len + 1;
    c->family_len = (uint8_t)family_len;
    c->qualifier = c->family + family_len;
    c->qualifier_len = (uint32_t)(d->key_len - RQ_KEY_FIXED_LEN - row_len - family_len);
}

rq_err rq__delta_copy(rq__delta *to, const rq__delta *from)
{
    RQ_TRY(grow(to, from->key_len));
    uint8_t *key = to->key;
    uint32_t room = to->room;
    *to = *from;
    to->key = key;
    to->room = room;
    if (from->key_len == 0) return RQ_OK;
    memcpy(key, from->key, from->key_len);
    point_into_key(to, from->cell.row_len, from->cell.family_len);
    return RQ_OK;
}

/* A varint below 2^31; most are one byte. */
static inline bool take_number(rq_cursor *c, size_t *ret)
{
    if (RQ_LIKELY(c->ptr < c->end && *c->ptr < 0x80)) {
        *ret = *c->ptr++;
        return true;
    }
    uint64_t n;
    if (!rq_cursor_varint(c, &n) || n > INT32_MAX) return false;
    *ret = (size_t)n;
    return true;
}

static inline bool take_bytes(rq_cursor *c, uint8_t *out, size_t len)
{
    if (len > rq_cursor_left(c)) return false;
    rq_short_copy(out, c->ptr, len); /* if len is 0, `out` may be NULL */
    c->ptr += len;
    return true;
}

static inline bool take_value(rq__delta *d, rq_cursor *c, size_t len)
{
    if (len > rq_cursor_left(c)) return false;
    d->cell.value = c->ptr;
    d->cell.value_len = (uint32_t)len;
    c->ptr += len;
    return true;
}

/* d->key holds a whole key of d->key_len bytes that has not been checked yet. */
static bool adopt_key(rq__delta *d)
{
    size_t len = d->key_len;
    if (len < RQ_KEY_FIXED_LEN) return false;
    size_t row_len = rq_get_be16(d->key);
    if (row_len > len - RQ_KEY_FIXED_LEN || row_len > RQ_ROW_LEN_MAX) return false;
    size_t family_len = d->key[ROW_LEN_LEN + row_len];
    if (family_len > len - RQ_KEY_FIXED_LEN - row_len) return false;
    const uint8_t *tail = d->key + len - TIME_AND_TYPE_LEN;
    if (!rq__is_cell_type(tail[8])) return false;
    d->cell.timestamp = (int64_t)rq_get_be64(tail);
    d->cell.type = tail[8];
    point_into_key(d, row_len, family_len);
    return true;
}

static rq_err next_prefix(rq__delta *d, rq_cursor *c)
{
    size_t rest;
    size_t value_len;
    size_t shared;
    if (!take_number(c, &rest) || !take_number(c, &value_len) || !take_number(c, &shared) ||
        shared > d->key_len || rest > rq_cursor_left(c))
        return RQ_E_CORRUPT;
    RQ_TRY(grow(d, shared + rest));
    if (!take_bytes(c, d->key + shared, rest)) return RQ_E_CORRUPT;
    d->key_len = (uint32_t)(shared + rest);
    return adopt_key(d) && take_value(d, c, value_len) ? RQ_OK : RQ_E_CORRUPT;
}

/* Common to DIFF and FAST_DIFF: row, family and qualifier of a key of `key_len` bytes. */
static rq_err take_row_and_qualifier(rq__delta *d, rq_cursor *c, const uint8_t *family,
                                     size_t key_len, size_t shared)
{
    size_t family_len = family[0];
    size_t row_len = d->cell.row_len;
    size_t row_end = ROW_LEN_LEN + row_len;
    size_t left = rq_cursor_left(c);
    if (key_len < RQ_KEY_FIXED_LEN + family_len) return RQ_E_CORRUPT;
    if (d->key_len > 0 && shared >= row_end) {
        /* Only the end of the qualifier is new. */
        size_t keep = row_end + 1 + family_len;
        size_t end = key_len - TIME_AND_TYPE_LEN;
        if (shared < keep || shared > d->key_len - TIME_AND_TYPE_LEN || shared > end ||
            end - shared > left)
            return RQ_E_CORRUPT;
        RQ_TRY(grow(d, key_len));
        if (!take_bytes(c, d->key + shared, end - shared)) return RQ_E_CORRUPT;
    } else {
        if (d->key_len == 0 && shared != 0) return RQ_E_CORRUPT;
        /* The key cannot be longer than the bytes left and the previous key: this bounds the
         * length. */
        if (key_len > left + d->key_len + RQ_KEY_FIXED_LEN + family_len) return RQ_E_CORRUPT;
        RQ_TRY(grow(d, key_len));
        if (shared < ROW_LEN_LEN) {
            if (!take_bytes(c, d->key + shared, ROW_LEN_LEN - shared)) return RQ_E_CORRUPT;
            row_len = rq_get_be16(d->key);
            shared = ROW_LEN_LEN;
        }
        if (row_len > RQ_ROW_LEN_MAX || row_len + family_len + RQ_KEY_FIXED_LEN > key_len)
            return RQ_E_CORRUPT;
        row_end = ROW_LEN_LEN + row_len;
        if (!take_bytes(c, d->key + shared, row_end - shared)) return RQ_E_CORRUPT;
        if (d->key_len == 0 || row_len != d->cell.row_len)
            memcpy(d->key + row_end, family, 1 + family_len);
        size_t qualifier = row_end + 1 + family_len;
        if (!take_bytes(c, d->key + qualifier, key_len - TIME_AND_TYPE_LEN - qualifier))
            return RQ_E_CORRUPT;
    }
    d->key_len = (uint32_t)key_len;
    point_into_key(d, row_len, family_len);
    return RQ_OK;
}

static inline void put_time_and_type(rq__delta *d)
{
    uint8_t *tail = d->key + d->key_len - TIME_AND_TYPE_LEN;
    rq_put_be64(tail, (uint64_t)d->cell.timestamp);
    tail[8] = d->cell.type;
}

static rq_err next_diff(rq__delta *d, rq_cursor *c, rq_slice payload)
{
    bool first = d->key_len == 0;
    if (first) {
        rq_slice family;
        uint8_t len;
        d->family_at = (uint32_t)(c->ptr - payload.ptr);
        if (!rq_cursor_u8(c, &len) || !rq_cursor_bytes(c, len, &family)) return RQ_E_CORRUPT;
    }
    uint8_t flags;
    size_t key_len = d->key_len;
    size_t value_len = d->cell.value_len;
    size_t shared;
    if (!rq_cursor_u8(c, &flags)) return RQ_E_CORRUPT;
    if (first && (flags & (DIFF_SAME_KEY_LEN | DIFF_SAME_VALUE_LEN | DIFF_SAME_TYPE |
                           DIFF_TIME_IS_DIFFERENCE)) != 0)
        return RQ_E_CORRUPT;
    if (((flags & DIFF_SAME_KEY_LEN) == 0 && !take_number(c, &key_len)) ||
        ((flags & DIFF_SAME_VALUE_LEN) == 0 && !take_number(c, &value_len)) ||
        !take_number(c, &shared))
        return RQ_E_CORRUPT;
    RQ_TRY(take_row_and_qualifier(d, c, payload.ptr + d->family_at, key_len, shared));
    unsigned len = (flags >> DIFF_TIME_LEN_SHIFT & 7u) + 1;
    if (len > rq_cursor_left(c)) return RQ_E_CORRUPT;
    uint64_t time = 0;
    for (unsigned i = 0; i < len; i++)
        time |= (uint64_t)c->ptr[i] << 8 * i;
    c->ptr += len;
    if ((flags & DIFF_TIME_IS_NEGATIVE) != 0) time = 0 - time;
    if ((flags & DIFF_TIME_IS_DIFFERENCE) != 0) time = (uint64_t)d->cell.timestamp - time;
    d->cell.timestamp = (int64_t)time;
    if ((flags & DIFF_SAME_TYPE) == 0 &&
        (!rq_cursor_u8(c, &d->cell.type) || !rq__is_cell_type(d->cell.type)))
        return RQ_E_CORRUPT;
    put_time_and_type(d);
    return take_value(d, c, value_len) ? RQ_OK : RQ_E_CORRUPT;
}

static rq_err first_fast_diff(rq__delta *d, rq_cursor *c, rq_slice payload)
{
    uint8_t flags;
    size_t key_len;
    size_t value_len;
    size_t shared;
    if (!rq_cursor_u8(c, &flags) || flags != 0 || !take_number(c, &key_len) ||
        !take_number(c, &value_len) || !take_number(c, &shared) || shared != 0 ||
        key_len > rq_cursor_left(c))
        return RQ_E_CORRUPT;
    RQ_TRY(grow(d, key_len));
    uint32_t at = (uint32_t)(c->ptr - payload.ptr);
    if (!take_bytes(c, d->key, key_len)) return RQ_E_CORRUPT;
    d->key_len = (uint32_t)key_len;
    if (!adopt_key(d)) return RQ_E_CORRUPT;
    d->family_at = at + ROW_LEN_LEN + d->cell.row_len;
    return take_value(d, c, value_len) ? RQ_OK : RQ_E_CORRUPT;
}

static rq_err next_fast_diff(rq__delta *d, rq_cursor *c, rq_slice payload)
{
    if (d->key_len == 0) return first_fast_diff(d, c, payload);
    uint8_t flags;
    size_t key_len = d->key_len;
    size_t value_len = d->cell.value_len;
    size_t shared;
    if (!rq_cursor_u8(c, &flags) ||
        ((flags & FAST_SAME_KEY_LEN) == 0 && !take_number(c, &key_len)) ||
        ((flags & FAST_SAME_VALUE_LEN) == 0 && !take_number(c, &value_len)) ||
        !take_number(c, &shared))
        return RQ_E_CORRUPT;
    RQ_TRY(take_row_and_qualifier(d, c, payload.ptr + d->family_at, key_len, shared));
    unsigned len = 8 - (flags & FAST_TIME_SHARED);
    if (len > rq_cursor_left(c)) return RQ_E_CORRUPT;
    uint64_t time = 0;
    for (unsigned i = 0; i < len; i++)
        time = time << 8 | c->ptr[i];
    c->ptr += len;
    if (len < 8) time |= (uint64_t)d->cell.timestamp >> 8 * len << 8 * len;
    d->cell.timestamp = (int64_t)time;
    if ((flags & FAST_SAME_TYPE) == 0 &&
        (!rq_cursor_u8(c, &d->cell.type) || !rq__is_cell_type(d->cell.type)))
        return RQ_E_CORRUPT;
    put_time_and_type(d);
    if ((flags & FAST_SAME_VALUE) == 0) return take_value(d, c, value_len) ? RQ_OK : RQ_E_CORRUPT;
    return value_len == d->cell.value_len ? RQ_OK : RQ_E_CORRUPT;
}

/* Everything up to the tags. */
static inline rq_err next_key_and_value(rq__delta *d, rq_block_encoding e, rq_cursor *c,
                                        rq_slice payload)
{
    switch (e) {
    case RQ_ENCODING_PREFIX:
        return next_prefix(d, c);
    case RQ_ENCODING_DIFF:
        return next_diff(d, c, payload);
    default:
        return next_fast_diff(d, c, payload);
    }
}

static inline bool take_seqid(rq_cursor *c, uint64_t *ret)
{
    if (RQ_LIKELY(c->ptr < c->end && *c->ptr < 0x80)) {
        *ret = *c->ptr++;
        return true;
    }
    size_t left = rq_cursor_left(c);
    size_t len = left == 0 ? 0 : rq__plain_long_seqid(c->ptr, left, ret);
    c->ptr += len;
    return len > 0;
}

rq_err rq__delta_next(rq__delta *d, rq__delta_shape shape, rq_slice payload)
{
    rq_cursor c = {payload.ptr + d->next_pos, payload.ptr + payload.len};
    d->pos = d->next_pos;
    RQ_TRY(next_key_and_value(d, shape.encoding, &c, payload));
    d->cell.tags = NULL;
    d->cell.tags_len = 0;
    if (shape.has_tags) {
        size_t len;
        if (!take_number(&c, &len) || len > UINT16_MAX || len > rq_cursor_left(&c))
            return RQ_E_CORRUPT;
        if (len > 0) d->cell.tags = c.ptr;
        d->cell.tags_len = (uint16_t)len;
        c.ptr += len;
    }
    d->cell.seqid = 0;
    if (shape.has_mvcc && !take_seqid(&c, &d->cell.seqid)) return RQ_E_CORRUPT;
    d->next_pos = (uint32_t)(c.ptr - payload.ptr);
    return RQ_OK;
}

static rq_err unpack_cell(rq__delta *d, rq__tag_dictionary *dictionary, rq__delta_shape shape,
                          rq_slice payload, rq_buf *out)
{
    rq_cursor c = {payload.ptr + d->next_pos, payload.ptr + payload.len};
    const uint8_t *begin = c.ptr;
    size_t len;
    RQ_TRY(next_key_and_value(d, shape.encoding, &c, payload));
    if (!take_number(&c, &len) || len > UINT16_MAX) return RQ_E_CORRUPT;
    RQ_TRY(rq_buf_append(out, begin, (size_t)(c.ptr - begin)));
    RQ_TRY(rq__tag_dictionary_unpack(dictionary, &c, len, out));
    const uint8_t *tail = c.ptr;
    if (shape.has_mvcc && !take_seqid(&c, &d->cell.seqid)) return RQ_E_CORRUPT;
    d->next_pos = (uint32_t)(c.ptr - payload.ptr);
    return rq_buf_append(out, tail, (size_t)(c.ptr - tail));
}

/* Limits the length of a block's cells with uncompressed tags: two bytes can stand for a tag of 64 KiB, and the
 * block's header does not have the uncompressed length. A writer ends a block by the length of its cells with
 * uncompressed tags, so this is about the family's block size; the first summand allows for any usual one. With
 * hbase.writer.unified.encoded.blocksize.ratio HBase ends blocks by their encoded length instead; the second
 * summand allows such blocks of any size, if a cell's tags have at most a few hundred bytes. HBASE:
 * HFileWriterImpl.checkBlockBoundary */
static size_t unpacked_max(size_t packed)
{
    const size_t ratio = 64;
    if (packed > RQ_HFILE_BLOCK_LEN_MAX / ratio) return RQ_HFILE_BLOCK_LEN_MAX;
    size_t max = RQ__DELTA_UNPACKED_FREE + packed * ratio;
    return max < RQ_HFILE_BLOCK_LEN_MAX ? max : RQ_HFILE_BLOCK_LEN_MAX;
}

rq_err rq__delta_unpack_tags(rq__delta_shape shape, rq_slice payload, rq_buf *out)
{
    rq__tag_dictionary dictionary = {0};
    rq__delta d = {0};
    size_t max = unpacked_max(payload.len);
    rq_err rc = rq_buf_reserve(out, payload.len);
    while (rc == RQ_OK && d.next_pos < payload.len) {
        rc = unpack_cell(&d, &dictionary, shape, payload, out);
        if (rc == RQ_OK && out->len > max) rc = RQ_E_CORRUPT;
    }
    rq__delta_clear(&d);
    rq__tag_dictionary_clear(&dictionary);
    return rc;
}

/* --- checkpoints ------------------------------------------------------------------------------ */

#define CHECKPOINT_BYTES_FREE 4096

/* A checkpoint's header, in front of its key's bytes. */
typedef struct checkpoint {
    uint64_t seqid;
    uint32_t pos, next_pos;
    uint32_t key_len, family_at;
    uint32_t value_at, value_len;
    uint32_t tags_at;
    uint32_t tags_len;
} checkpoint;

/* The words are the checkpoints' offsets behind them, in words; then come the checkpoints. */
static inline const uint8_t *record_of(const rq__sidecar *s, uint32_t i)
{
    return (const uint8_t *)(s->words + s->count + s->words[i]);
}

static rq_err add_checkpoint(const rq__delta *d, rq_slice payload, rq_buf *places, rq_buf *records)
{
    uint32_t at = (uint32_t)(records->len / sizeof(uint32_t));
    checkpoint p = {
        .seqid = d->cell.seqid,
        .pos = d->pos,
        .next_pos = d->next_pos,
        .key_len = d->key_len,
        .family_at = d->family_at,
        .value_at = (uint32_t)(d->cell.value - payload.ptr),
        .value_len = d->cell.value_len,
        .tags_at = d->cell.tags_len == 0 ? 0 : (uint32_t)(d->cell.tags - payload.ptr),
        .tags_len = d->cell.tags_len,
    };
    RQ_TRY(rq_buf_append(places, &at, sizeof(at)));
    RQ_TRY(rq_buf_append(records, &p, sizeof(p)));
    RQ_TRY(rq_buf_append(records, d->key, d->key_len));
    static const uint8_t zeros[sizeof(uint32_t)];
    return rq_buf_append(records, zeros, -records->len % sizeof(uint32_t));
}

/* A cell with a long key may take only a few bytes of the block, but its checkpoint has the whole key. So
 * checkpoints are farther apart then: at any position, those before it take at most about twice the bytes
 * of the cells before it. */
static bool is_due(uint32_t i, const rq__delta *d, const rq_buf *records)
{
    return i % RQ__DELTA_CELLS_PER_CHECKPOINT == 0 &&
           records->len <= CHECKPOINT_BYTES_FREE + 2 * (size_t)d->pos;
}

rq_err rq__delta_checkpoints(rq__slab *slab, rq__delta_shape shape, rq_slice payload,
                             rq__sidecar **ret)
{
    rq_buf places = {0};
    rq_buf records = {0};
    rq__delta d = {0};
    rq_err rc = RQ_OK;
    *ret = NULL;
    for (uint32_t i = 0; rc == RQ_OK && d.next_pos < payload.len; i++) {
        rc = rq__delta_next(&d, shape, payload);
        if (rc == RQ_OK && is_due(i, &d, &records))
            rc = add_checkpoint(&d, payload, &places, &records);
    }
    if (rc == RQ_OK) {
        size_t heap_len;
        rq__sidecar *s = rq__slab_take(slab, sizeof(*s) + places.len + records.len, &heap_len);
        if (s == NULL) {
            rc = RQ_E_NO_MEMORY;
        } else {
            *s = (rq__sidecar){.heap_len = heap_len,
                               .count = (uint32_t)(places.len / sizeof(uint32_t))};
            memcpy(s->words, places.ptr, places.len);
            memcpy((uint8_t *)s->words + places.len, records.ptr, records.len);
            *ret = s;
        }
    }
    rq__delta_clear(&d);
    rq_buf_clear(&records);
    rq_buf_clear(&places);
    return rc;
}

/* The key of a checkpoint; it was checked when it was made. */
static rq_cell key_of(const uint8_t *record)
{
    checkpoint p;
    memcpy(&p, record, sizeof(p));
    const uint8_t *key = record + sizeof(p);
    const uint8_t *tail = key + p.key_len - TIME_AND_TYPE_LEN;
    size_t row_len = rq_get_be16(key);
    const uint8_t *family = key + ROW_LEN_LEN + row_len;
    return (rq_cell){
        .row = key + ROW_LEN_LEN,
        .row_len = (uint16_t)row_len,
        .family = family + 1,
        .family_len = family[0],
        .qualifier = family + 1 + family[0],
        .qualifier_len = (uint32_t)(p.key_len - RQ_KEY_FIXED_LEN - row_len - family[0]),
        .timestamp = (int64_t)rq_get_be64(tail),
        .type = tail[8],
    };
}

int64_t rq__delta_checkpoint_before(const rq__sidecar *s, rq_cell_order order, const rq_cell *key)
{
    uint32_t low = 0;
    uint32_t high = s->count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        rq_cell cell = key_of(record_of(s, mid));
        if (rq_cell_compare_key(order, &cell, key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return (int64_t)low - 1;
}

uint32_t rq__delta_checkpoint_pos(const rq__sidecar *s, uint32_t i)
{
    checkpoint p;
    memcpy(&p, record_of(s, i), sizeof(p));
    return p.pos;
}

rq_err rq__delta_restore(rq__delta *d, const rq__sidecar *s, uint32_t i, rq_slice payload)
{
    const uint8_t *record = record_of(s, i);
    checkpoint p;
    memcpy(&p, record, sizeof(p));
    RQ_TRY(grow(d, p.key_len));
    memcpy(d->key, record + sizeof(p), p.key_len);
    d->cell = key_of(record);
    d->key_len = p.key_len;
    point_into_key(d, d->cell.row_len, d->cell.family_len);
    d->cell.value = payload.ptr + p.value_at;
    d->cell.value_len = p.value_len;
    d->cell.tags = p.tags_len == 0 ? NULL : payload.ptr + p.tags_at;
    d->cell.tags_len = (uint16_t)p.tags_len;
    d->cell.seqid = p.seqid;
    d->pos = p.pos;
    d->next_pos = p.next_pos;
    d->family_at = p.family_at;
    return RQ_OK;
}
