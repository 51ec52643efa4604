/* SPDX-License-Identifier: Apache-2.0 */
/* The cell as bytes, in the same form on the wire, in the log and in an uncompressed block (layout
 * in cell.h). Parsing trusts no length: each part must lie inside its enclosing part, and no byte
 * may be left over. The *meaning* of a cell is not checked here: a negative timestamp or an empty
 * row is a legal key (block indexes have such bounds); the region refuses it in a mutation. */
#include "cell/cell.h"

#include <inttypes.h>

static uint8_t *put_bytes(uint8_t *out, const uint8_t *bytes, size_t len)
{
    if (len > 0) memcpy(out, bytes, len);
    return out + len;
}

static uint8_t *put_key(const rq_cell *c, uint8_t *out)
{
    rq_put_be16(out, c->row_len);
    out = put_bytes(out + 2, c->row, c->row_len);
    *out++ = c->family_len;
    out = put_bytes(out, c->family, c->family_len);
    out = put_bytes(out, c->qualifier, c->qualifier_len);
    rq_put_be64(out, (uint64_t)c->timestamp);
    out[8] = c->type;
    return out + 9;
}

void rq_cell_serialize_key(const rq_cell *c, uint8_t *out)
{
    (void)put_key(c, out);
}

/* Row, family, qualifier and value are adjacent in memory as in a KeyValue: most cells were parsed
 * from one, and only their timestamp may have been changed. */
static bool is_one_piece(const rq_cell *c)
{
    return c->family == c->row + c->row_len + 1 && c->qualifier == c->family + c->family_len &&
           c->value == c->qualifier + c->qualifier_len + 9;
}

static uint8_t *put_piece(const rq_cell *c, uint8_t *out)
{
    rq_put_be16(out, c->row_len);
    size_t key_len = rq_cell_key_len(c) - 2;
    memcpy(out + 2, c->row, key_len + c->value_len);
    out[2 + c->row_len] = c->family_len;
    out += 2 + key_len;
    rq_put_be64(out - 9, (uint64_t)c->timestamp);
    out[-1] = c->type;
    return out + c->value_len;
}

void rq_cell_serialize(const rq_cell *c, bool with_tags, uint8_t *out)
{
    rq_put_be32(out, (uint32_t)rq_cell_key_len(c));
    rq_put_be32(out + 4, c->value_len);
    if (is_one_piece(c))
        out = put_piece(c, out + 8);
    else
        out = put_bytes(put_key(c, out + 8), c->value, c->value_len);
    if (with_tags && c->tags_len > 0) {
        rq_put_be16(out, c->tags_len);
        (void)put_bytes(out + 2, c->tags, c->tags_len);
    }
}

/* HBASE: KeyValue.Type.isValidType. */
static bool is_type(uint8_t type)
{
    switch (type) {
    case RQ_TYPE_MINIMUM:
    case RQ_TYPE_PUT:
    case RQ_TYPE_DELETE:
    case RQ_TYPE_DELETE_FAMILY_VERSION:
    case RQ_TYPE_DELETE_COLUMN:
    case RQ_TYPE_DELETE_FAMILY:
    case RQ_TYPE_MAXIMUM:
        return true;
    default:
        return false;
    }
}

static inline rq_err parse_key(rq_slice key, rq_cell *ret, rq_error *why)
{
    if (key.len < RQ_KEY_FIXED_LEN)
        return rq_fail(why, RQ_E_MALFORMED, "Invalid key length in KeyValue. keyLength=%zu",
                       key.len);
    size_t room = key.len - RQ_KEY_FIXED_LEN; /* for row, family and qualifier */
    size_t row_len = rq_get_be16(key.ptr);
    if (row_len > RQ_ROW_LEN_MAX || row_len > room)
        return rq_fail(why, RQ_E_MALFORMED,
                       "Invalid row length in KeyValue, rowLength=%zu, keyLength=%zu", row_len,
                       key.len);
    room -= row_len;
    const uint8_t *row = key.ptr + 2;
    size_t family_len = row[row_len];
    if (family_len > RQ_FAMILY_LEN_MAX || family_len > room)
        return rq_fail(why, RQ_E_MALFORMED,
                       "Invalid family length in KeyValue, familyLength=%zu, rowLength=%zu, "
                       "keyLength=%zu",
                       family_len, row_len, key.len);
    room -= family_len;
    if (room > UINT32_MAX)
        return rq_fail(why, RQ_E_MALFORMED,
                       "Invalid qualifier length in KeyValue, qualifierLen=%zu", room);
    const uint8_t *family = row + row_len + 1;
    const uint8_t *qualifier = family + family_len;
    const uint8_t *tail = qualifier + room;
    if (!is_type(tail[8]))
        return rq_fail(why, RQ_E_MALFORMED, "Invalid type in KeyValue, type=%u", tail[8]);
    *ret = (rq_cell){
        .row = row,
        .row_len = (uint16_t)row_len,
        .family = family,
        .family_len = (uint8_t)family_len,
        .qualifier = qualifier,
        .qualifier_len = (uint32_t)room,
        .timestamp = (int64_t)rq_get_be64(tail),
        .type = tail[8],
    };
    return RQ_OK;
}

rq_err rq__cell_parse_key(rq_slice key, rq_cell *ret, rq_error *why)
{
    return parse_key(key, ret, why);
}

bool rq_tags_are_whole(const uint8_t *tags, size_t len)
{
    while (len > 0) {
        if (len < 3) return false;
        size_t tag_len = rq_get_be16(tags); /* type byte included */
        if (tag_len < 1 || tag_len > len - 2) return false;
        tags += 2 + tag_len;
        len -= 2 + tag_len;
    }
    return true;
}

rq_err rq__cell_parse(rq_slice bytes, rq_cell *ret, rq_error *why)
{
    if (bytes.len < 8)
        return rq_fail(why, RQ_E_MALFORMED,
                       "Overflow when reading lengths of KeyValue of %zu bytes", bytes.len);
    uint64_t key_len = rq_get_be32(bytes.ptr);
    uint64_t value_len = rq_get_be32(bytes.ptr + 4);
    uint64_t left = bytes.len - 8;
    if (key_len > left)
        return rq_fail(why, RQ_E_MALFORMED,
                       "Invalid key length in KeyValue. keyLength=%" PRIu64 ", length=%zu", key_len,
                       bytes.len);
    left -= key_len;
    if (value_len > INT32_MAX || value_len > left)
        return rq_fail(why, RQ_E_MALFORMED,
                       "Invalid value length in KeyValue, valueLength=%" PRIu64
                       ", keyLength=%" PRIu64 ", length=%zu",
                       value_len, key_len, bytes.len);
    left -= value_len;
    RQ_TRY(parse_key(rq_slice_of(bytes.ptr + 8, key_len), ret, why));
    ret->value = bytes.ptr + 8 + key_len;
    ret->value_len = (uint32_t)value_len;
    if (left > 0) {
        const uint8_t *tail = ret->value + value_len;
        if (left < 2 || rq_get_be16(tail) != left - 2 || !rq_tags_are_whole(tail + 2, left - 2))
            return rq_fail(why, RQ_E_MALFORMED,
                           "Invalid tags in KeyValue: %" PRIu64 " bytes behind a value of %" PRIu64,
                           left, value_len);
        ret->tags_len = (uint16_t)(left - 2);
        ret->tags = ret->tags_len == 0 ? NULL : tail + 2;
    }
    return RQ_OK;
}

bool rq_cell_tag(const rq_cell *c, uint8_t tag_type, rq_slice *ret)
{
    const uint8_t *tag = c->tags;
    size_t left = c->tags_len;
    while (left >= 3) {
        size_t len = rq_get_be16(tag);
        if (len < 1 || len > left - 2) return false; /* not made by rq__cell_parse */
        if (tag[2] == tag_type) {
            *ret = rq_slice_of(tag + 3, len - 1);
            return true;
        }
        tag += 2 + len;
        left -= 2 + len;
    }
    return false;
}

const char *rq_cell_type_name(uint8_t type)
{
    switch (type) {
    case RQ_TYPE_MINIMUM:
        return "Minimum";
    case RQ_TYPE_PUT:
        return "Put";
    case RQ_TYPE_DELETE:
        return "Delete";
    case RQ_TYPE_DELETE_FAMILY_VERSION:
        return "DeleteFamilyVersion";
    case RQ_TYPE_DELETE_COLUMN:
        return "DeleteColumn";
    case RQ_TYPE_DELETE_FAMILY:
        return "DeleteFamily";
    case RQ_TYPE_MAXIMUM:
        return "Maximum";
    default:
        return "Unknown";
    }
}
