/* SPDX-License-Identifier: Apache-2.0 */
/* Names and bytes of references and links; the formats are described in reference.h. */
#include "store/reference.h"

#include "cell/cell.h"
#include "store/mob.h"

/* A row of the largest length, the other fields of a key, and the message around them. */
#define REFERENCE_BYTES_MAX (RQ_ROW_LEN_MAX + 64)

#define TAG_SPLIT_KEY (1 << 3 | 2)
#define TAG_RANGE (2 << 3)
#define RANGE_TOP 0
#define RANGE_BOTTOM 1

/* --- names ------------------------------------------------------------------------------------ */

static rq_slice before(rq_slice s, size_t at)
{
    return rq_slice_of(s.ptr, at);
}

static rq_slice behind(rq_slice s, size_t at)
{
    return rq_slice_of(s.ptr + at + 1, s.len - at - 1);
}

/* s.len when it is not there. */
static size_t find(rq_slice s, char c)
{
    size_t i = 0;
    while (i < s.len && s.ptr[i] != (uint8_t)c)
        i++;
    return i;
}

static size_t find_last(rq_slice s, char c)
{
    for (size_t i = s.len; i-- > 0;)
        if (s.ptr[i] == (uint8_t)c) return i;
    return s.len;
}

void rq_store_name_parse(rq_slice name, rq_store_name *ret)
{
    *ret = (rq_store_name){.file = name};
    /* A table name may contain '.' and '-'; the part behind '=' has them only as separators. */
    size_t mark = find_last(name, '=');
    if (mark < name.len) {
        rq_slice where = before(name, mark), rest = behind(name, mark);
        size_t dash = find(rest, '-'), equals = find(where, '=');
        if (dash == 0 || dash + 1 >= rest.len || where.len == 0) return;
        ret->is_link = true;
        ret->table = where;
        if (equals < where.len) {
            ret->ns = before(where, equals);
            ret->table = behind(where, equals);
        }
        ret->region = before(rest, dash);
        ret->file = behind(rest, dash);
    }
    size_t dot = find(ret->file, '.');
    if (dot == 0 || dot + 1 >= ret->file.len) return;
    ret->is_reference = true;
    ret->parent = behind(ret->file, dot);
    ret->file = before(ret->file, dot);
}

/* --- bytes ------------------------------------------------------------------------------------ */

rq_err rq_reference_encode(const rq_hfile_half *half, rq_buf *out)
{
    rq_cell cell = rq_cell_first_on_row(half->row);
    size_t key_len = rq_cell_key_len(&cell);
    RQ_TRY(rq_buf_append(out, "PBUF", 4));
    RQ_TRY(rq_buf_append_u8(out, TAG_SPLIT_KEY));
    RQ_TRY(rq_buf_append_varint(out, key_len));
    RQ_TRY(rq_buf_reserve(out, key_len));
    rq_cell_serialize_key(&cell, out->ptr + out->len);
    out->len += key_len;
    RQ_TRY(rq_buf_append_u8(out, TAG_RANGE));
    return rq_buf_append_u8(out, half->top ? RANGE_TOP : RANGE_BOTTOM);
}

rq_err rq_reference_decode(rq_slice bytes, rq_hfile_half *ret, rq_error *why)
{
    rq_slice key = {NULL, 0};
    uint64_t range = UINT64_MAX;
    rq_cell cell;
    if (bytes.len < 4 || memcmp(bytes.ptr, "PBUF", 4) != 0)
        return rq_fail(why, RQ_E_CORRUPT, "not a reference to a store file");
    rq_cursor c = rq_cursor_of(rq_slice_of(bytes.ptr + 4, bytes.len - 4));
    while (rq_cursor_left(&c) > 0) {
        uint64_t tag;
        uint64_t n;
        if (!rq_cursor_varint(&c, &tag) || !rq_cursor_varint(&c, &n))
            return rq_fail(why, RQ_E_CORRUPT, "reference: truncated");
        if (tag == TAG_SPLIT_KEY) {
            if (n > rq_cursor_left(&c) || !rq_cursor_bytes(&c, (size_t)n, &key))
                return rq_fail(why, RQ_E_CORRUPT, "reference: truncated");
        } else if (tag == TAG_RANGE) {
            range = n;
        } else {
            return rq_fail(why, RQ_E_CORRUPT, "reference: unknown field");
        }
    }
    if (range > RANGE_BOTTOM || rq_cell_parse_stored_key(key, &cell, NULL) != RQ_OK)
        return rq_fail(why, RQ_E_CORRUPT, "reference: bad %s",
                       range > RANGE_BOTTOM ? "range" : "split key");
    *ret = (rq_hfile_half){.row = rq_cell_row(&cell), .top = range == RANGE_TOP};
    return RQ_OK;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* The path of the HFile while its region exists; NULL: out of memory. */
static char *place_of(rq_arena *a, const char *dir, const rq_store_name *name)
{
    rq_slice d = rq_slice_cstr(dir);
    size_t slash = find_last(d, '/');
    rq_slice family = behind(d, slash);
    if (name->is_link)
        return rq_arena_printf(
            a, "data/%.*s/%.*s/%.*s/%.*s/%.*s", name->ns.len == 0 ? 7 : (int)name->ns.len,
            name->ns.len == 0 ? "default" : (const char *)name->ns.ptr, (int)name->table.len,
            (const char *)name->table.ptr, (int)name->region.len, (const char *)name->region.ptr,
            (int)family.len, (const char *)family.ptr, (int)name->file.len,
            (const char *)name->file.ptr);
    rq_slice table = before(d, find_last(before(d, slash), '/'));
    return rq_arena_printf(a, "%.*s/%.*s/%.*s/%.*s", (int)table.len, (const char *)table.ptr,
                           (int)name->parent.len, (const char *)name->parent.ptr, (int)family.len,
                           (const char *)family.ptr, (int)name->file.len,
                           (const char *)name->file.ptr);
}

rq_err rq_store_file_locate(rq_vfs *vfs, const char *dir, const char *name, rq_arena *arena,
                            const char **ret, rq_error *why)
{
    rq_store_name parts;
    rq_stat st;
    rq_store_name_parse(rq_slice_cstr(name), &parts);
    bool elsewhere = parts.is_reference || parts.is_link;
    char *places[3] = {0};
    places[0] =
        elsewhere ? place_of(arena, dir, &parts) : rq_arena_printf(arena, "%s/%s", dir, name);
    if (places[0] != NULL) places[1] = rq_arena_printf(arena, "archive/%s", places[0]);
    if (places[0] != NULL) places[2] = rq_arena_printf(arena, RQ_MOB_DIR "/%s", places[0]);
    if (places[2] == NULL) return rq_no_memory(why);
    for (int i = 0; i < (parts.is_link ? 3 : elsewhere ? 2 : 1); i++) {
        rq_error inner = {0};
        rq_err rc = rq_vfs_stat(vfs, places[i], &st, &inner);
        if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", inner.message);
        if (rc == RQ_E_NOT_FOUND) continue;
        *ret = places[i];
        return RQ_OK;
    }
    return rq_fail(why, RQ_E_NOT_FOUND, "%s does not exist%s", places[0],
                   elsewhere ? ", also not in archive/" : "");
}

static rq_err open_part(rq_vfs *vfs, const char *path, const rq_hfile_half *half,
                        const rq_hfile_reader_options *options, rq_hfile_reader **ret,
                        rq_error *why)
{
    rq_hfile_reader_options o = *options;
    /* The half from the empty row on is the whole file: references of merged regions. */
    o.half = half == NULL || (half->top && half->row.len == 0) ? NULL : half;
    return rq_hfile_reader_open_with(vfs, path, &o, ret, why);
}

rq_err rq_store_open_elsewhere(rq_vfs *vfs, const char *dir, const char *path,
                               const rq_store_name *name, const rq_hfile_reader_options *o,
                               rq_hfile_reader **ret, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_slice bytes;
    rq_hfile_half half;
    rq_error inner = {0};
    rq_err rc = RQ_OK;
    if (name->is_reference) {
        rc = rq_vfs_read_file(vfs, path, REFERENCE_BYTES_MAX, &a, &bytes, &inner);
        if (rc == RQ_OK) rc = rq_reference_decode(bytes, &half, &inner);
    }
    char *here = place_of(&a, dir, name);
    char *archived = here == NULL ? NULL : rq_arena_printf(&a, "archive/%s", here);
    if (rc == RQ_OK && archived == NULL) rc = rq_no_memory(&inner);
    if (rc == RQ_OK) {
        const rq_hfile_half *part = name->is_reference ? &half : NULL;
        rc = open_part(vfs, here, part, o, ret, &inner);
        if (rc == RQ_E_NOT_FOUND) rc = open_part(vfs, archived, part, o, ret, &inner);
        /* A missing file is damage to the caller, which opens the store: the folder says that it
         * exists. */
        if (rc == RQ_E_NOT_FOUND) rc = RQ_E_CORRUPT;
    }
    if (rc != RQ_OK) (void)rq_fail(why, rc, "%s: %s", path, inner.message);
    rq_arena_clear(&a);
    return rc;
}
