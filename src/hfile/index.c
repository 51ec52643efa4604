/* SPDX-License-Identifier: Apache-2.0 */
/* The block index: building one chunk of it, and searching one block of it (index.h). */
#include "hfile/index.h"

#include <stdlib.h>

#define ENTRY_HEAD_LEN 12 /* be64 offset, be32 size */

/* --- reading --------------------------------------------------------------------------------- */

static inline uint32_t relative_offset(rq__index_view v, uint32_t i)
{
    return rq_get_be32(v.bytes + 4 + 4 * (size_t)i);
}

static inline const uint8_t *entries_of(rq__index_view v)
{
    return v.bytes + 4 * ((size_t)v.count + 2);
}

bool rq__index_check(rq_slice bytes, uint64_t limit, bool cell_keys, rq__index_view *ret,
                     size_t *ret_len)
{
    if (bytes.len < 8) return false;
    uint32_t count = rq_get_be32(bytes.ptr);
    if (count > (bytes.len - 8) / (4 + ENTRY_HEAD_LEN)) return false;
    rq__index_view v = {bytes.ptr, count};
    size_t entries_len = bytes.len - 4 * ((size_t)count + 2);
    if (relative_offset(v, 0) != 0 || relative_offset(v, count) > entries_len) return false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t begin = relative_offset(v, i);
        uint32_t end = relative_offset(v, i + 1);
        if (end < begin || end - begin < ENTRY_HEAD_LEN || end > entries_len) return false;
        rq__index_entry e = rq__index_at(v, i);
        if (e.size < RQ_HFILE_HEADER_LEN || e.offset > limit || e.size > limit - e.offset)
            return false;
        rq_cell key;
        if (cell_keys && rq_cell_parse_stored_key(e.key, &key, NULL) != RQ_OK) return false;
    }
    *ret = v;
    *ret_len = 4 * ((size_t)count + 2) + relative_offset(v, count);
    return true;
}

rq__index_view rq__index_view_of(const uint8_t *bytes)
{
    return (rq__index_view){bytes, rq_get_be32(bytes)};
}

rq__index_entry rq__index_at(rq__index_view v, uint32_t i)
{
    uint32_t begin = relative_offset(v, i);
    uint32_t end = relative_offset(v, i + 1);
    const uint8_t *p = entries_of(v) + begin;
    return (rq__index_entry){
        .offset = rq_get_be64(p),
        .size = rq_get_be32(p + 8),
        .key = rq_slice_of(p + ENTRY_HEAD_LEN, end - begin - ENTRY_HEAD_LEN),
    };
}

/* A view on a key that passed rq__index_check. */
static inline void trusted_key(rq_slice key, rq_cell *ret)
{
    const uint8_t *tail = key.ptr + key.len - 9;
    ret->row_len = rq_get_be16(key.ptr);
    ret->row = key.ptr + 2;
    const uint8_t *family = ret->row + ret->row_len;
    ret->family_len = family[0];
    ret->family = family + 1;
    ret->qualifier = ret->family + ret->family_len;
    ret->qualifier_len = (uint32_t)(tail - ret->qualifier);
    ret->timestamp = (int64_t)rq_get_be64(tail);
    ret->type = tail[8];
}

/* Number of leading entries that sort before `key`, or also at it. */
static inline uint32_t count_up_to(rq__index_view v, const rq__sidecar *marks, rq_cell_order order,
                                   const rq_cell *key, int at_most)
{
    uint32_t low = 0;
    uint32_t high = v.count;
    rq_cell c;
    if (marks != NULL) rq__sidecar_narrow(marks, key, &low, &high);
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        trusted_key(rq__index_at(v, mid).key, &c);
        if (rq_cell_compare_key(order, &c, key) <= at_most)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

int64_t rq__index_floor(rq__index_view v, const rq__sidecar *marks, rq_cell_order order,
                        const rq_cell *key)
{
    return (int64_t)count_up_to(v, marks, order, key, 0) - 1;
}

int64_t rq__index_floor_before(rq__index_view v, const rq__sidecar *marks, rq_cell_order order,
                               const rq_cell *key)
{
    return (int64_t)count_up_to(v, marks, order, key, -1) - 1;
}

static rq_err parse_for_marks(void *arg, uint32_t at, rq_cell *ret)
{
    const rq__index_view *v = arg;
    trusted_key(rq__index_at(*v, at).key, ret);
    return RQ_OK;
}

rq__sidecar *rq__index_marks(rq__slab *slab, rq__index_view v, rq_cell_order order)
{
    rq__sidecar *marks = NULL;
    if (v.count <= RQ__MARKS_PER_SAMPLE || order != RQ_ORDER_DEFAULT) return NULL;
    /* Parsing cannot fail after the check. */
    (void)!rq__sidecar_new(slab, NULL, v.count, order, parse_for_marks, &v, &marks);
    return marks;
}

int64_t rq__index_floor_bytes(rq__index_view v, rq_slice key)
{
    uint32_t low = 0;
    uint32_t high = v.count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (rq_slice_compare(rq__index_at(v, mid).key, key) <= 0)
            low = mid + 1;
        else
            high = mid;
    }
    return (int64_t)low - 1;
}

rq_err rq__index_from_root(rq_cursor *root, uint32_t count, rq_buf *out)
{
    /* Offset, size and an empty key's length take 13 bytes: a wrong count is found before memory is
     * allocated for it. */
    if (count > rq_cursor_left(root) / (ENTRY_HEAD_LEN + 1)) return RQ_E_CORRUPT;
    size_t start = out->len;
    size_t head_len = 4 * ((size_t)count + 2);
    RQ_TRY(rq_buf_reserve(out, head_len + rq_cursor_left(root)));
    rq_put_be32(out->ptr + start, count);
    out->len += head_len;
    for (uint32_t i = 0; i < count; i++) {
        rq_slice head;
        rq_slice key;
        int64_t key_len;
        if (!rq_cursor_bytes(root, ENTRY_HEAD_LEN, &head) || !rq_cursor_vlong(root, &key_len) ||
            key_len < 0 || key_len > INT32_MAX || !rq_cursor_bytes(root, (size_t)key_len, &key))
            return RQ_E_CORRUPT;
        rq_put_be32(out->ptr + start + 4 + 4 * (size_t)i, (uint32_t)(out->len - start - head_len));
        RQ_TRY(rq_buf_append(out, head.ptr, head.len));
        RQ_TRY(rq_buf_append(out, key.ptr, key.len));
    }
    rq_put_be32(out->ptr + start + 4 + 4 * (size_t)count, (uint32_t)(out->len - start - head_len));
    return RQ_OK;
}

/* --- building -------------------------------------------------------------------------------- */

typedef struct rq__index_chunk_entry {
    uint64_t offset;
    uint64_t sub_entries;
    size_t key_at; /* in keys */
    uint32_t key_len;
    uint32_t size;
} chunk_entry;

void rq__index_chunk_clear(rq__index_chunk *c)
{
    free(c->entries);
    rq_buf_clear(&c->keys);
    *c = (rq__index_chunk){0};
}

void rq__index_chunk_reset(rq__index_chunk *c)
{
    c->count = 0;
    c->non_root_len = 0;
    c->root_len = 0;
    rq_buf_reset(&c->keys);
}

rq_err rq__index_chunk_add(rq__index_chunk *c, rq_slice key, uint64_t offset, uint32_t size,
                           uint64_t sub_entries)
{
    if (c->count == c->cap) {
        size_t cap = c->cap == 0 ? 64 : c->cap * 2;
        chunk_entry *entries = realloc(c->entries, cap * sizeof(*entries));
        if (entries == NULL) return RQ_E_NO_MEMORY;
        c->entries = entries;
        c->cap = cap;
    }
    size_t key_at = c->keys.len;
    RQ_TRY(rq_buf_append(&c->keys, key.ptr, key.len));
    c->entries[c->count++] = (chunk_entry){
        .offset = offset,
        .sub_entries = sub_entries,
        .key_at = key_at,
        .key_len = (uint32_t)key.len,
        .size = size,
    };
    c->non_root_len += ENTRY_HEAD_LEN + key.len;
    c->root_len += ENTRY_HEAD_LEN + rq_vlong_len((int64_t)key.len) + key.len;
    return RQ_OK;
}

rq__index_entry rq__index_chunk_at(const rq__index_chunk *c, size_t i)
{
    const chunk_entry *e = &c->entries[i];
    return (rq__index_entry){e->offset, e->size, rq_slice_of(c->keys.ptr + e->key_at, e->key_len)};
}

size_t rq__index_chunk_len(const rq__index_chunk *c)
{
    return 4 * (c->count + 2) + c->non_root_len;
}

static uint8_t *put_entry_head(uint8_t *out, const chunk_entry *e)
{
    rq_put_be64(out, e->offset);
    rq_put_be32(out + 8, e->size);
    return out + ENTRY_HEAD_LEN;
}

rq_err rq__index_chunk_write(const rq__index_chunk *c, rq_buf *out)
{
    size_t len = rq__index_chunk_len(c);
    if (len > INT32_MAX) return RQ_E_INVALID;
    RQ_TRY(rq_buf_reserve(out, len));
    uint8_t *mark = out->ptr + out->len;
    uint8_t *entries = mark + 4 * (c->count + 2);
    uint8_t *p = entries;
    rq_put_be32(mark, (uint32_t)c->count);
    for (size_t i = 0; i < c->count; i++) {
        const chunk_entry *e = &c->entries[i];
        mark += 4;
        rq_put_be32(mark, (uint32_t)(p - entries));
        p = put_entry_head(p, e);
        memcpy(p, c->keys.ptr + e->key_at, e->key_len);
        p += e->key_len;
    }
    rq_put_be32(mark + 4, (uint32_t)(p - entries));
    out->len += len;
    return RQ_OK;
}

rq_err rq__index_chunk_write_root(const rq__index_chunk *c, rq_buf *out)
{
    RQ_TRY(rq_buf_reserve(out, c->root_len));
    uint8_t *p = out->ptr + out->len;
    for (size_t i = 0; i < c->count; i++) {
        const chunk_entry *e = &c->entries[i];
        p = put_entry_head(p, e);
        p += rq_put_vlong(p, (int64_t)e->key_len);
        memcpy(p, c->keys.ptr + e->key_at, e->key_len);
        p += e->key_len;
    }
    out->len += c->root_len;
    return RQ_OK;
}

rq_err rq__index_chunk_write_mid_key(const rq__index_chunk *c, rq_buf *out)
{
    RQ_ASSERT(c->count > 0);
    uint64_t middle = (c->entries[c->count - 1].sub_entries - 1) / 2;
    size_t i = 0;
    while (c->entries[i].sub_entries <= middle)
        i++;
    uint64_t before = i == 0 ? 0 : c->entries[i - 1].sub_entries;
    RQ_TRY(rq_buf_append_be64(out, c->entries[i].offset));
    RQ_TRY(rq_buf_append_be32(out, c->entries[i].size));
    return rq_buf_append_be32(out, (uint32_t)(middle - before));
}

/* --- short keys ------------------------------------------------------------------------------ */

/* The shortest bytes m with left < m <= right that result from the first difference; false if the
 * two are equal. If left is a prefix of right, one zero byte is appended to it. */
static bool shorten(rq_slice left, rq_slice right, uint8_t *out, size_t *ret_len)
{
    size_t n = left.len < right.len ? left.len : right.len;
    size_t i = 0;
    while (i < n && left.ptr[i] == right.ptr[i])
        i++;
    if (i == n) {
        if (left.len >= right.len) return false;
        memcpy(out, right.ptr, n);
        out[n] = 0;
    } else {
        memcpy(out, left.ptr, i);
        out[i] = (uint8_t)(left.ptr[i] + 1);
    }
    *ret_len = i + 1;
    return true;
}

static rq_err serialize_key(const rq_cell *key, rq_buf *out)
{
    rq_buf_reset(out);
    RQ_TRY(rq_buf_reserve(out, rq_cell_key_len(key)));
    rq_cell_serialize_key(key, out->ptr);
    out->len = rq_cell_key_len(key);
    return RQ_OK;
}

rq_err rq__index_key_between(rq_cell_order order, const rq_cell *left, const rq_cell *right,
                             rq_buf *out)
{
    /* Rows of hbase:meta are not plain bytes: no key between two of them may be invented. */
    if (left == NULL || order == RQ_ORDER_META) return serialize_key(right, out);
    size_t room = (size_t)right->row_len + right->family_len + right->qualifier_len + 1;
    uint8_t *bytes = malloc(room);
    if (bytes == NULL) return RQ_E_NO_MEMORY;
    size_t len;
    rq_cell key;
    if (shorten(rq_cell_row(left), rq_cell_row(right), bytes, &len))
        key = rq_cell_first_on_row(rq_slice_of(bytes, len));
    else if (shorten(rq_cell_family(left), rq_cell_family(right), bytes, &len))
        key = rq_cell_first_on_column(rq_cell_row(right), rq_slice_of(bytes, len), (rq_slice){0});
    else if (shorten(rq_cell_qualifier(left), rq_cell_qualifier(right), bytes, &len))
        key = rq_cell_first_on_column(rq_cell_row(right), rq_cell_family(right),
                                      rq_slice_of(bytes, len));
    else
        key = *right;
    rq_err rc = serialize_key(&key, out);
    free(bytes);
    return rc;
}

bool rq__index_key_has_next(const rq_cell *key)
{
    return key->type > RQ_TYPE_MINIMUM || key->timestamp > RQ_TIMESTAMP_OLDEST;
}

rq_err rq__index_key_behind(const rq_cell *key, rq_buf *out)
{
    static const uint8_t types[] = {
        RQ_TYPE_DELETE_FAMILY, RQ_TYPE_DELETE_COLUMN, RQ_TYPE_DELETE_FAMILY_VERSION,
        RQ_TYPE_DELETE,        RQ_TYPE_PUT,           RQ_TYPE_MINIMUM};
    RQ_ASSERT(rq__index_key_has_next(key));
    rq_cell next = *key;
    size_t i = 0;
    while (i < RQ_ARRAY_LEN(types) && types[i] >= key->type)
        i++;
    if (i == RQ_ARRAY_LEN(types)) next.timestamp--;
    next.type = i == RQ_ARRAY_LEN(types) ? RQ_TYPE_MAXIMUM : types[i];
    return serialize_key(&next, out);
}
