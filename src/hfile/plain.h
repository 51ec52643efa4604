/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain cells in a block: KeyValues one after another, each followed by tags and sequence id if the
 * file has them. Within the room. Every cell that a scan examines is parsed here, so each length is
 * loaded once and each bound checked once; all bytes are untrusted.
 *
 *     KeyValue (cell/cell.h) | be16 tags length, tags (has_tags) | vlong sequence id (has_mvcc)
 */
#ifndef RQ_HFILE_PLAIN_H
#define RQ_HFILE_PLAIN_H

#include "cell/cell.h"
#include "hfile/encoding.h"

typedef struct rq__plain_shape {
    bool has_tags, has_mvcc;
} rq__plain_shape;

/* A sequence id of more than one byte, as every cell has until a compaction zeroes it: a vlong.
 * Returns its length; 0: it does not fit into `left` bytes, or is negative. */
static inline size_t rq__plain_long_seqid(const uint8_t *p, size_t left, uint64_t *ret)
{
    size_t bytes = (size_t)0x90 - p[0]; /* 1 to 8 of a positive number */
    if (RQ_LIKELY(bytes - 1 < 7 && left > 8)) {
        *ret = rq_get_be64(p + 1) >> (64 - 8 * bytes);
        return 1 + bytes;
    }
    rq_cursor c = {p, p + left};
    int64_t number;
    if (!rq_cursor_vlong(&c, &number) || number < 0) return 0;
    *ret = (uint64_t)number;
    return (size_t)(c.ptr - p);
}

/* Parses the cell at `p` and returns its length; 0: it does not fit into `left` bytes or is
 * malformed. *ret is changed on success only. */
static inline size_t rq__plain_parse(const uint8_t *p, size_t left, rq__plain_shape shape,
                                     rq_cell *ret)
{
    if (left < 8 + RQ_KEY_FIXED_LEN) return 0;
    size_t key_len = rq_get_be32(p);
    size_t value_len = rq_get_be32(p + 4);
    size_t row_len = rq_get_be16(p + 8);
    size_t len = 8 + key_len + value_len; /* the sum of three 32-bit numbers */
    if (len > left || row_len + RQ_KEY_FIXED_LEN > key_len || row_len > RQ_ROW_LEN_MAX) return 0;
    const uint8_t *family = p + 10 + row_len;
    const uint8_t *tail = p + key_len - 1;
    size_t family_len = *family++;
    uint8_t type = tail[8];
    if (row_len + family_len + RQ_KEY_FIXED_LEN > key_len || !rq__is_cell_type(type)) return 0;
    size_t end = len;
    size_t tags_len = 0;
    uint64_t seqid = 0;
    if (shape.has_tags) {
        if (left - end < 2) return 0;
        tags_len = rq_get_be16(p + end);
        end += 2;
        if (tags_len > left - end) return 0;
        end += tags_len;
    }
    if (shape.has_mvcc) {
        if (left == end) return 0;
        seqid = p[end++];
        if (RQ_UNLIKELY(seqid >= 128)) {
            size_t more = rq__plain_long_seqid(p + end - 1, left - end + 1, &seqid);
            if (more == 0) return 0;
            end += more - 1;
        }
    }
    *ret = (rq_cell){
        .row = p + 10,
        .family = family,
        .qualifier = family + family_len,
        .value = tail + 9,
        .tags = tags_len == 0 ? NULL : p + len + 2,
        .timestamp = (int64_t)rq_get_be64(tail),
        .seqid = seqid,
        .qualifier_len = (uint32_t)(key_len - RQ_KEY_FIXED_LEN - row_len - family_len),
        .value_len = (uint32_t)value_len,
        .row_len = (uint16_t)row_len,
        .tags_len = (uint16_t)tags_len,
        .family_len = (uint8_t)family_len,
        .type = type,
    };
    return end;
}

/* HBASE: WritableUtils.decodeVIntSize. */
static inline size_t rq__vlong_len(uint8_t first)
{
    int8_t v = (int8_t)first;
    return v >= -112 ? 1 : (size_t)(v < -120 ? -119 - v : -111 - v);
}

/* Adds the length of tags and sequence id to the `len` bytes of a cell before them; 0: longer
 * than `left`. */
static inline size_t rq__plain_with_tail(const uint8_t *p, size_t left, rq__plain_shape shape,
                                         size_t len)
{
    if (shape.has_tags) {
        if (left - len < 2) return 0;
        len += 2 + (size_t)rq_get_be16(p + len);
    }
    if (shape.has_mvcc) {
        if (left <= len) return 0;
        len += RQ_LIKELY(p[len] < 128) ? 1 : rq__vlong_len(p[len]);
    }
    return left < len ? 0 : len;
}

/* Returns only the length and the row, for cells that are skipped; 0: the lengths are malformed.
 * Other errors are only found by rq__plain_parse. */
static inline size_t rq__plain_len(const uint8_t *p, size_t left, rq__plain_shape shape,
                                   rq_slice *ret_row)
{
    if (left < 8 + RQ_KEY_FIXED_LEN) return 0;
    size_t key_len = rq_get_be32(p);
    size_t row_len = rq_get_be16(p + 8);
    size_t len = 8 + key_len + rq_get_be32(p + 4);
    if (len > left || row_len + RQ_KEY_FIXED_LEN > key_len) return 0;
    *ret_row = rq_slice_of(p + 10, row_len);
    return rq__plain_with_tail(p, left, shape, len);
}

/* Like rq__plain_parse, for the common case that row and family have the same lengths as in the
 * previous cell (*c): these lengths need no check. 0: not that case; *c is unchanged and the
 * caller must use rq__plain_parse. */
static inline size_t rq__plain_parse_alike(const uint8_t *p, size_t left, rq__plain_shape shape,
                                           rq_cell *c)
{
    size_t row_len = c->row_len;
    size_t family_len = c->family_len;
    size_t fixed = RQ_KEY_FIXED_LEN + row_len + family_len;
    if (RQ_UNLIKELY(left <= 8 + fixed || shape.has_tags)) return 0;
    size_t key_len = rq_get_be32(p);
    size_t value_len = rq_get_be32(p + 4);
    size_t len = 8 + key_len + value_len;
    const uint8_t *family = p + 11 + row_len;
    if (key_len < fixed || len >= left || rq_get_be16(p + 8) != row_len || family[-1] != family_len)
        return 0;
    const uint8_t *tail = p + key_len - 1;
    uint8_t type = tail[8];
    uint64_t seqid = 0;
    if (shape.has_mvcc) seqid = p[len++];
    if (RQ_UNLIKELY(!rq__is_cell_type(type))) return 0;
    if (seqid >= 128) {
        size_t more = rq__plain_long_seqid(p + len - 1, left - len + 1, &seqid);
        if (more == 0) return 0;
        len += more - 1;
    }
    c->row = p + 10;
    c->family = family;
    c->qualifier = family + family_len;
    c->qualifier_len = (uint32_t)(key_len - fixed);
    c->timestamp = (int64_t)rq_get_be64(tail);
    c->type = type;
    c->value = tail + 9;
    c->value_len = (uint32_t)value_len;
    c->seqid = seqid;
    return len;
}

/* Whether two rows are equal, given the bytes of their cells from the row's length field on.
 * Both have at least `row_len` bytes, which is the length of one of them. */
static inline bool rq__plain_same_row(const uint8_t *a, const uint8_t *b, size_t row_len)
{
    size_t len = 2 + row_len;
    if (RQ_LIKELY(len - 8 <= 8))
        return ((rq_get_u64(a) ^ rq_get_u64(b)) |
                (rq_get_u64(a + len - 8) ^ rq_get_u64(b + len - 8))) == 0;
    return rq_short_eq_len(a, b, len);
}

/* The length of the cell at `p` if it is one of this row; 0: it is not, or is not sound. */
static inline size_t rq__plain_len_in_row(const uint8_t *p, size_t left, rq__plain_shape shape,
                                          const uint8_t *row, size_t row_len)
{
    if (left < 8 + RQ_KEY_FIXED_LEN + row_len || !rq__plain_same_row(p + 8, row - 2, row_len))
        return 0;
    size_t key_len = rq_get_be32(p);
    size_t len = 8 + key_len + rq_get_be32(p + 4);
    if (len > left || row_len + RQ_KEY_FIXED_LEN > key_len) return 0;
    return rq__plain_with_tail(p, left, shape, len);
}

#endif
