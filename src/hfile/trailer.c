/* SPDX-License-Identifier: Apache-2.0 */
/* The trailer and the file info (trailer.h): the first parts of a file that are read and
 * checked. */
#include "hfile/trailer.h"

#include "base/checksum.h"
#include "base/pb.h"

#include <inttypes.h>
#include <stdlib.h>

#define SEAL_LEN 12
static const uint8_t seal_magic[8] = "RQTRAILR";

/* The names known to HBase 1.x; 2.x still writes them, and reads its own names too. HBASE:
 * FixedFileTrailer.getHBase1CompatibleName, getComparatorClass. */
typedef struct comparator_row {
    const char *name;
    rq_cell_order order;
} comparator_row;

static const comparator_row comparators[] = {
    {"org.apache.hadoop.hbase.KeyValue$KVComparator",
     RQ_ORDER_DEFAULT}, /* written: first of each */
    {"org.apache.hadoop.hbase.KeyValue$MetaComparator", RQ_ORDER_META},
    {"org.apache.hadoop.hbase.KeyValue$KeyComparator", RQ_ORDER_DEFAULT},
    {"org.apache.hadoop.hbase.KeyValue$MetaKeyComparator", RQ_ORDER_META},
    {"org.apache.hadoop.hbase.CellComparator", RQ_ORDER_DEFAULT},
    {"org.apache.hadoop.hbase.CellComparatorImpl", RQ_ORDER_DEFAULT},
    {"org.apache.hadoop.hbase.InnerStoreCellComparator", RQ_ORDER_DEFAULT},
    {"org.apache.hadoop.hbase.CellComparator$MetaCellComparator", RQ_ORDER_META},
    {"org.apache.hadoop.hbase.CellComparatorImpl$MetaCellComparator", RQ_ORDER_META},
    {"org.apache.hadoop.hbase.MetaCellComparator", RQ_ORDER_META},
};

static const char *comparator_name(rq_cell_order order)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(comparators); i++)
        if (comparators[i].order == order) return comparators[i].name;
    return NULL;
}

static bool comparator_parse(rq_slice name, rq_cell_order *ret)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(comparators); i++)
        if (rq_slice_eq(name, rq_slice_cstr(comparators[i].name))) {
            *ret = comparators[i].order;
            return true;
        }
    return false;
}

uint32_t rq__trailer_len(uint32_t major)
{
    return major == 3 ? RQ_HFILE_TRAILER_LEN : major == 2 ? RQ_HFILE_TRAILER_V2_LEN : 0;
}

/* Covers the trailer, including the version behind the checksum, but not the checksum itself. */
static uint32_t seal_sum(const uint8_t *trailer, const uint8_t *seal)
{
    uint32_t sum = rq_crc32c(0, trailer, (size_t)(seal + 8 - trailer));
    return rq_crc32c(sum, seal + SEAL_LEN, 4);
}

/* --- writing --------------------------------------------------------------------------------- */

static rq_err write_message(const rq__trailer *t, rq_buf *out)
{
    RQ_TRY(rq_pb_put_number(out, 1, t->file_info_offset));
    RQ_TRY(rq_pb_put_number(out, 2, t->load_on_open_offset));
    RQ_TRY(rq_pb_put_number(out, 3, t->uncompressed_index_len));
    RQ_TRY(rq_pb_put_number(out, 4, t->total_uncompressed_len));
    RQ_TRY(rq_pb_put_number(out, 5, t->data_index_count));
    RQ_TRY(rq_pb_put_number(out, 6, t->meta_index_count));
    RQ_TRY(rq_pb_put_number(out, 7, t->entry_count));
    RQ_TRY(rq_pb_put_number(out, 8, t->data_index_levels));
    RQ_TRY(rq_pb_put_number(out, 9, t->first_data_offset));
    RQ_TRY(rq_pb_put_number(out, 10, t->last_data_offset));
    RQ_TRY(rq_pb_put_bytes(out, 11, rq_slice_cstr(comparator_name(t->order))));
    return rq_pb_put_number(out, 12, t->compression);
}

rq_err rq__trailer_write(const rq__trailer *t, rq_buf *out)
{
    rq_buf message = {0};
    rq_err rc = write_message(t, &message);
    if (rc != RQ_OK) goto out;
    rc = rq_buf_reserve(out, RQ_HFILE_TRAILER_LEN);
    if (rc != RQ_OK) goto out;
    uint8_t *b = out->ptr + out->len;
    memset(b, 0, RQ_HFILE_TRAILER_LEN);
    memcpy(b, rq__block_kind_magic(RQ_BLOCK_TRAILER), 8);
    size_t n = 8 + rq_put_varint(b + 8, message.len);
    memcpy(b + n, message.ptr, message.len);
    uint8_t *seal = b + RQ_HFILE_TRAILER_LEN - 4 - SEAL_LEN;
    RQ_ASSERT(b + n + message.len <= seal);
    memcpy(seal, seal_magic, sizeof(seal_magic));
    rq_put_be32(b + RQ_HFILE_TRAILER_LEN - 4, t->minor << 24 | t->major);
    rq_put_be32(seal + 8, seal_sum(b, seal));
    out->len += RQ_HFILE_TRAILER_LEN;
out:
    rq_buf_clear(&message);
    return rc;
}

/* --- reading --------------------------------------------------------------------------------- */

static bool parse_message(rq_slice message, rq__trailer *t, rq_slice *ret_comparator)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    while (rq_cursor_left(&c) > 0) {
        if (!rq_pb_field_read(&c, &f)) return false;
        switch (f.number) {
        case 1:
            t->file_info_offset = f.value;
            break;
        case 2:
            t->load_on_open_offset = f.value;
            break;
        case 3:
            t->uncompressed_index_len = f.value;
            break;
        case 4:
            t->total_uncompressed_len = f.value;
            break;
        case 5:
            if (f.value > INT32_MAX) return false;
            t->data_index_count = (uint32_t)f.value;
            break;
        case 6:
            if (f.value > INT32_MAX) return false;
            t->meta_index_count = (uint32_t)f.value;
            break;
        case 7:
            t->entry_count = f.value;
            break;
        case 8:
            if (f.value > INT32_MAX) return false;
            t->data_index_levels = (uint32_t)f.value;
            break;
        case 9:
            t->first_data_offset = f.value;
            break;
        case 10:
            t->last_data_offset = f.value;
            break;
        case 11:
            *ret_comparator = f.bytes;
            break;
        case 12:
            if (f.value >= RQ_COMPRESSION_COUNT) return false;
            t->compression = (rq_compression)f.value;
            break;
        case 13:
            t->encrypted = f.bytes.len > 0;
            break;
        default:
            break; /* a later version's */
        }
    }
    return true;
}

static bool padding_is_whole(const uint8_t *trailer, const uint8_t *padding, const uint8_t *end)
{
    const uint8_t *seal = end - SEAL_LEN;
    if (seal >= padding && memcmp(seal, seal_magic, sizeof(seal_magic)) == 0 &&
        rq_get_be32(seal + 8) == seal_sum(trailer, seal))
        return true;
    while (padding < end)
        if (*padding++ != 0) return false;
    return true;
}

static bool offset_is_inside(uint64_t offset, uint64_t end)
{
    return offset <= end && end - offset >= RQ_HFILE_HEADER_LEN;
}

rq_err rq__trailer_parse(rq_slice bytes, uint64_t file_len, const char *path, rq__trailer *ret,
                         rq_error *why)
{
    if (bytes.len < 4)
        return rq_fail(why, RQ_E_CORRUPT, "%s: a file of %" PRIu64 " bytes is not an HFile", path,
                       file_len);
    uint32_t version = rq_get_be32(bytes.ptr + bytes.len - 4);
    rq__trailer t = {
        .major = version & 0xffffff,
        .minor = version >> 24,
        .first_data_offset = UINT64_MAX,
        .last_data_offset = UINT64_MAX,
        .compression = RQ_COMPRESSION_NONE,
    };
    uint32_t len = rq__trailer_len(t.major);
    uint64_t start = file_len - len;
    if (len == 0)
        return rq_fail(why, RQ_E_CORRUPT,
                       "%s: trailer at offset %" PRIu64
                       ": version %u.%u is not a known HFile version",
                       path, file_len - 4, t.major, t.minor);
    if (bytes.len < len)
        return rq_fail(why, RQ_E_CORRUPT,
                       "%s: a file of %" PRIu64 " bytes has no room for a trailer of %u", path,
                       file_len, len);
    const uint8_t *b = bytes.ptr + bytes.len - len;
    const uint8_t *end = bytes.ptr + bytes.len - 4;
    if (memcmp(b, rq__block_kind_magic(RQ_BLOCK_TRAILER), 8) != 0)
        return rq_fail(why, RQ_E_CORRUPT, "%s: trailer at offset %" PRIu64 ": wrong magic", path,
                       start);
    /* After the magic was checked: a torn file may end in any version number. */
    if (t.major == 2 && t.minor < 3)
        return rq_fail(why, RQ_E_UNSUPPORTED, "%s: HFile version 2.%u is older than 2.3", path,
                       t.minor);
    rq_cursor c = {b + 8, end};
    uint64_t message_len;
    rq_slice message;
    rq_slice comparator = {0};
    if (!rq_cursor_varint(&c, &message_len) || message_len > rq_cursor_left(&c) ||
        !rq_cursor_bytes(&c, message_len, &message) || !parse_message(message, &t, &comparator) ||
        !padding_is_whole(b, c.ptr, end))
        return rq_fail(why, RQ_E_CORRUPT, "%s: trailer at offset %" PRIu64 ": malformed", path,
                       start);
    if (comparator.len > 0 && !comparator_parse(comparator, &t.order)) {
        char name[160];
        rq_bytes_to_string(comparator, name, sizeof(name));
        return rq_fail(why, RQ_E_CORRUPT,
                       "%s: trailer at offset %" PRIu64 ": unknown comparator '%s'", path, start,
                       name);
    }
    if (t.encrypted) return rq_fail(why, RQ_E_UNSUPPORTED, "%s: the file is encrypted", path);
    rq_error missing = {0};
    if (rq_compression_check(t.compression, &missing) != RQ_OK)
        return rq_fail(why, missing.code, "%s: %s", path, missing.message);
    if (!offset_is_inside(t.load_on_open_offset, start) ||
        !offset_is_inside(t.file_info_offset, start) ||
        t.file_info_offset < t.load_on_open_offset || t.data_index_levels < 1 ||
        t.data_index_levels > RQ_HFILE_INDEX_LEVELS_MAX ||
        (t.entry_count > 0) != (t.data_index_count > 0) ||
        (t.entry_count > 0 &&
         (t.first_data_offset > t.last_data_offset || t.last_data_offset >= t.load_on_open_offset)))
        return rq_fail(why, RQ_E_CORRUPT,
                       "%s: trailer at offset %" PRIu64 ": its numbers do not fit the file", path,
                       start);
    *ret = t;
    return RQ_OK;
}

/* --- file info ------------------------------------------------------------------------------- */

static const uint8_t pb_magic[4] = "PBUF";

typedef struct rq__file_info_entry {
    uint8_t *bytes; /* key, then value */
    uint32_t key_len;
    uint32_t value_len;
} info_entry;

static rq_slice key_of(const info_entry *e)
{
    return rq_slice_of(e->bytes, e->key_len);
}

static rq_slice value_of(const info_entry *e)
{
    return rq_slice_of(e->bytes + e->key_len, e->value_len);
}

void rq__file_info_clear(rq__file_info *info)
{
    for (size_t i = 0; i < info->count; i++)
        free(info->entries[i].bytes);
    free(info->entries);
    *info = (rq__file_info){0};
}

/* The key's index, or where it would be inserted. */
static size_t find(const rq__file_info *info, rq_slice key, bool *ret_there)
{
    size_t low = 0;
    size_t high = info->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = rq_slice_compare(key_of(&info->entries[mid]), key);
        if (c == 0) {
            *ret_there = true;
            return mid;
        }
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    *ret_there = false;
    return low;
}

rq_err rq__file_info_set(rq__file_info *info, rq_slice key, rq_slice value)
{
    if (key.len > INT32_MAX || value.len > INT32_MAX) return RQ_E_INVALID;
    if (info->count == info->cap) {
        size_t cap = info->cap == 0 ? 24 : info->cap * 2;
        info_entry *entries = realloc(info->entries, cap * sizeof(*entries));
        if (entries == NULL) return RQ_E_NO_MEMORY;
        info->entries = entries;
        info->cap = cap;
    }
    info_entry e = {malloc(key.len + value.len + 1), (uint32_t)key.len, (uint32_t)value.len};
    if (e.bytes == NULL) return RQ_E_NO_MEMORY;
    if (key.len > 0) memcpy(e.bytes, key.ptr, key.len);
    if (value.len > 0) memcpy(e.bytes + key.len, value.ptr, value.len);
    bool there;
    size_t at = find(info, key, &there);
    if (there) {
        free(info->entries[at].bytes);
    } else {
        memmove(info->entries + at + 1, info->entries + at, (info->count - at) * sizeof(e));
        info->count++;
    }
    info->entries[at] = e;
    return RQ_OK;
}

bool rq__file_info_get(const rq__file_info *info, rq_slice key, rq_slice *ret)
{
    bool there;
    size_t at = find(info, key, &there);
    if (there) *ret = value_of(&info->entries[at]);
    return there;
}

bool rq__file_info_at(const rq__file_info *info, size_t i, rq_slice *ret_key, rq_slice *ret_value)
{
    if (i >= info->count) return false;
    *ret_key = key_of(&info->entries[i]);
    *ret_value = value_of(&info->entries[i]);
    return true;
}

static size_t pair_len(const info_entry *e)
{
    return 2 + rq_varint_len(e->key_len) + e->key_len + rq_varint_len(e->value_len) + e->value_len;
}

rq_err rq__file_info_write(const rq__file_info *info, rq_buf *out)
{
    size_t len = 0;
    for (size_t i = 0; i < info->count; i++)
        len += 1 + rq_varint_len(pair_len(&info->entries[i])) + pair_len(&info->entries[i]);
    RQ_TRY(rq_buf_append(out, pb_magic, sizeof(pb_magic)));
    RQ_TRY(rq_buf_append_varint(out, len));
    for (size_t i = 0; i < info->count; i++) {
        RQ_TRY(rq_buf_append_varint(out, 1 << 3 | RQ_PB_BYTES));
        RQ_TRY(rq_buf_append_varint(out, pair_len(&info->entries[i])));
        RQ_TRY(rq_pb_put_bytes(out, 1, key_of(&info->entries[i])));
        RQ_TRY(rq_pb_put_bytes(out, 2, value_of(&info->entries[i])));
    }
    return RQ_OK;
}

static rq_err parse_pair(rq_slice pair, rq__file_info *info)
{
    rq_cursor c = rq_cursor_of(pair);
    rq_pb_field f;
    rq_slice key = {0};
    rq_slice value = {0};
    while (rq_cursor_left(&c) > 0) {
        if (!rq_pb_field_read(&c, &f)) return RQ_E_CORRUPT;
        if (f.number == 1) key = f.bytes;
        if (f.number == 2) value = f.bytes;
    }
    return rq__file_info_set(info, key, value);
}

rq_err rq__file_info_parse(rq_slice payload, rq__file_info *ret)
{
    rq_cursor c = rq_cursor_of(payload);
    rq_slice magic;
    uint64_t len;
    if (!rq_cursor_bytes(&c, sizeof(pb_magic), &magic) ||
        memcmp(magic.ptr, pb_magic, sizeof(pb_magic)) != 0 || !rq_cursor_varint(&c, &len) ||
        len != rq_cursor_left(&c))
        return RQ_E_CORRUPT;
    rq__file_info info = {0};
    rq_err rc = RQ_OK;
    rq_pb_field f;
    while (rc == RQ_OK && rq_cursor_left(&c) > 0) {
        if (!rq_pb_field_read(&c, &f))
            rc = RQ_E_CORRUPT;
        else if (f.number == 1)
            rc = parse_pair(f.bytes, &info);
    }
    if (rc != RQ_OK) {
        rq__file_info_clear(&info);
        return rc;
    }
    *ret = info;
    return RQ_OK;
}
