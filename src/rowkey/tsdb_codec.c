/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenTSDB 2's rows.
 *
 *   key        [salt 1] metric 3 | hour 4 (seconds) | tag name 3, tag value 3, … by tag name
 *   qualifier  seconds:       2 bytes, delta_s << 4 | flags
 *              milliseconds:  4 bytes, F0000000 | delta_ms << 6 | flags
 *   flags      8: floating point; the other three bits: length of the value - 1
 *   value      an integer in 1, 2, 4 or 8 bytes, the fewest; a float in 4 or 8
 *   compacted  the qualifiers one after the other, by time; the values likewise, and a byte: 1 if
 *              seconds and milliseconds are mixed, else 0
 *
 * Qualifiers of an odd length are annotations, and no points. The salt is Java's hash of the key
 * without salt and time, modulo the number of buckets.
 */
#include "rowkey/tsdb_priv.h"

enum { FLAG_FLOAT = 8, FLAG_LENGTH = 7 };

/* --- points ----------------------------------------------------------------------------------- */

static uint8_t put_integer(int64_t v, uint8_t out[8])
{
    uint8_t all[8];
    uint8_t len = v == (int8_t)v ? 1 : v == (int16_t)v ? 2 : v == (int32_t)v ? 4 : 8;
    rq_put_be64(all, (uint64_t)v);
    memcpy(out, all + 8 - len, len);
    return len;
}

/* A double that is a float is written as one. */
static uint8_t put_real(double v, uint8_t out[8])
{
    float single = (float)v;
    uint64_t bits;
    uint32_t half;
    if ((double)single == v) {
        memcpy(&half, &single, 4);
        rq_put_be32(out, half);
        return 4;
    }
    memcpy(&bits, &v, 8);
    rq_put_be64(out, bits);
    return 8;
}

void rq__tsdb_encode(const rq_tsdb_point *point, rq__tsdb_cell *ret)
{
    uint32_t in_row = (uint32_t)(point->time_ms % (RQ__TSDB_ROW_S * 1000));
    ret->value_len = point->is_real ? put_real(point->real, ret->value)
                                    : put_integer(point->integer, ret->value);
    uint32_t flags = (point->is_real ? FLAG_FLOAT : 0) | (ret->value_len - 1u);
    bool seconds = in_row % 1000 == 0;
    ret->qualifier_len = seconds ? 2 : 4;
    if (seconds)
        rq_put_be16(ret->qualifier, (uint16_t)(in_row / 1000 << 4 | flags));
    else
        rq_put_be32(ret->qualifier, 0xf0000000u | in_row << 6 | flags);
}

static rq_err take_value(rq_cursor *c, uint32_t flags, rq_tsdb_value *ret)
{
    rq_slice s;
    size_t len = (flags & FLAG_LENGTH) + 1;
    if (!rq_cursor_bytes(c, len, &s)) return RQ_E_MALFORMED;
    ret->is_real = (flags & FLAG_FLOAT) != 0;
    uint64_t bits = 0;
    for (size_t i = 0; i < len; i++)
        bits = bits << 8 | s.ptr[i];
    if (!ret->is_real) {
        ret->integer = (int64_t)(bits << (64 - 8 * len)) >> (64 - 8 * len);
        ret->real = (double)ret->integer;
        return RQ_OK;
    }
    ret->integer = 0;
    if (len == 8) {
        memcpy(&ret->real, &bits, 8);
    } else if (len == 4) {
        uint32_t half = (uint32_t)bits;
        float single;
        memcpy(&single, &half, 4);
        ret->real = (double)single;
    } else {
        return RQ_E_MALFORMED;
    }
    return RQ_OK;
}

static rq_err take_point(rq_cursor *qualifiers, rq_cursor *values, uint32_t base_s,
                         rq_tsdb_value *ret)
{
    uint32_t four, flags;
    uint16_t two;
    if (rq_cursor_left(qualifiers) > 0 && qualifiers->ptr[0] >= 0xf0) {
        if (!rq_cursor_be32(qualifiers, &four)) return RQ_E_MALFORMED;
        flags = four & 15;
        ret->time_ms = (int64_t)base_s * 1000 + (four >> 6 & 0x3fffff);
    } else {
        if (!rq_cursor_be16(qualifiers, &two)) return RQ_E_MALFORMED;
        flags = two & 15;
        ret->time_ms = ((int64_t)base_s + (two >> 4)) * 1000;
    }
    return take_value(values, flags, ret);
}

static size_t first_length(rq_slice qualifier)
{
    return qualifier.len > 0 && qualifier.ptr[0] >= 0xf0 ? 4 : 2;
}

rq_err rq__tsdb_decode(rq_slice qualifier, rq_slice value, uint32_t base_s, rq__tsdb_take take,
                       void *ctx, rq_error *why)
{
    bool compacted = qualifier.len > first_length(qualifier);
    rq_cursor q = rq_cursor_of(qualifier), v = rq_cursor_of(value);
    if (qualifier.len == 0 || qualifier.len % 2 != 0) return RQ_OK;
    if (compacted && value.len > 0) v.end--; /* the byte that says whether they are mixed */
    while (q.ptr < q.end) {
        rq_tsdb_value point;
        if (take_point(&q, &v, base_s, &point) != RQ_OK)
            return rq_fail(why, RQ_E_MALFORMED, "the column's value ends before its last point");
        RQ_TRY(take(ctx, &point));
    }
    if (v.ptr != v.end)
        return rq_fail(why, RQ_E_MALFORMED, "%zu bytes after the column's last point",
                       rq_cursor_left(&v));
    return RQ_OK;
}

/* --- keys ------------------------------------------------------------------------------------- */

static void sort_tags(rq__tsdb_ids *ids)
{
    for (size_t i = 1; i < ids->tag_count; i++)
        for (size_t k = i; k > 0 && memcmp(ids->tags[k], ids->tags[k - 1], RQ__TSDB_UID) < 0; k--) {
            uint8_t swap[2 * RQ__TSDB_UID];
            memcpy(swap, ids->tags[k], sizeof swap);
            memcpy(ids->tags[k], ids->tags[k - 1], sizeof swap);
            memcpy(ids->tags[k - 1], swap, sizeof swap);
        }
}

size_t rq__tsdb_key(rq__tsdb_ids *ids, uint32_t base_s, uint32_t salt_buckets, uint8_t *key)
{
    uint8_t hashed[RQ__TSDB_KEY_MAX];
    size_t len = salt_buckets > 0 ? 1 : 0, tags = ids->tag_count * 2 * RQ__TSDB_UID;
    sort_tags(ids);
    memcpy(hashed, ids->metric, RQ__TSDB_UID);
    memcpy(hashed + RQ__TSDB_UID, ids->tags, tags);
    if (salt_buckets > 0)
        key[0] =
            (uint8_t)rq__phoenix_bucket(rq_slice_of(hashed, RQ__TSDB_UID + tags), salt_buckets);
    memcpy(key + len, ids->metric, RQ__TSDB_UID);
    rq_put_be32(key + len + RQ__TSDB_UID, base_s);
    memcpy(key + len + RQ__TSDB_UID + RQ__TSDB_TIME, ids->tags, tags);
    return len + RQ__TSDB_UID + RQ__TSDB_TIME + tags;
}
