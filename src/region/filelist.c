/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and location of HBase's file lists; their meaning is described in filelist.h. */
#include "region/filelist.h"

#include "base/checksum.h"
#include "base/pb.h"
#include "region/manifest.h"
#include "store/reference.h"

#include <stdlib.h>

#define VERSION 1
#define BYTES_MAX ((size_t)16 * 1024 * 1024) /* HBASE: StoreFileListFile.MAX_FILE_SIZE */

/* HBASE: StoreFileList { timestamp 1, store_file 2 { name 1, size 2 }, version 3 } */
enum { LIST_TIMESTAMP = 1, LIST_FILE = 2, LIST_VERSION = 3 };
enum { FILE_NAME = 1, FILE_SIZE = 2 };

/* --- bytes ------------------------------------------------------------------------------------ */

static bool is_bytes(const rq_pb_field *f, uint32_t number)
{
    return f->number == number && f->wire == RQ_PB_BYTES;
}

static bool is_number(const rq_pb_field *f, uint32_t number)
{
    return f->number == number && f->wire == RQ_PB_VARINT;
}

/* Unknown fields mean a newer HBase, whose lists cannot be interpreted safely. */
static rq_err decode_entry(rq_slice pb, rq__filelist_entry *ret, rq_error *why)
{
    rq_cursor c = rq_cursor_of(pb);
    rq_pb_field f;
    *ret = (rq__filelist_entry){0};
    while (rq_cursor_left(&c) > 0) {
        if (!rq_pb_field_read(&c, &f))
            return rq_fail(why, RQ_E_CORRUPT, "list of files: malformed entry");
        if (is_bytes(&f, FILE_NAME))
            ret->name = f.bytes;
        else if (is_number(&f, FILE_SIZE))
            ret->size = f.value;
        else
            return rq_fail(why, RQ_E_VERSION, "list of files: an entry's field is unknown");
    }
    if (!rq__store_file_name_ok(ret->name))
        return rq_fail(why, RQ_E_CORRUPT, "list of files: not the name of a store file");
    return RQ_OK;
}

static rq_err decode_message(rq_slice pb, rq_arena *arena, rq__filelist *ret, rq_error *why)
{
    rq_cursor c = rq_cursor_of(pb);
    uint64_t version = 1;
    rq__filelist l = {0};
    /* An entry takes at least four bytes. */
    l.files = rq_arena_calloc(arena, pb.len / 4 + 1, sizeof *l.files);
    if (l.files == NULL) return rq_no_memory(why);
    while (rq_cursor_left(&c) > 0) {
        rq_pb_field f;
        if (!rq_pb_field_read(&c, &f))
            return rq_fail(why, RQ_E_CORRUPT, "list of files: malformed");
        if (is_number(&f, LIST_TIMESTAMP))
            l.timestamp = f.value;
        else if (is_bytes(&f, LIST_FILE))
            RQ_TRY(decode_entry(f.bytes, &l.files[l.count++], why));
        else if (is_number(&f, LIST_VERSION))
            version = f.value;
        else
            return rq_fail(why, RQ_E_VERSION, "list of files: an unknown field");
    }
    if (version > VERSION)
        return rq_fail(why, RQ_E_VERSION, "list of files of version %llu, this server knows %d",
                       (unsigned long long)version, VERSION);
    *ret = l;
    return RQ_OK;
}

rq_err rq__filelist_decode(rq_slice bytes, rq_arena *arena, rq__filelist *ret, rq_error *why)
{
    if (bytes.len < 4) return rq_fail(why, RQ_E_END, "list of files: truncated");
    uint32_t len = rq_get_be32(bytes.ptr);
    if (len == 0 || len > BYTES_MAX)
        return rq_fail(why, RQ_E_CORRUPT, "list of files: a length of %u bytes", len);
    if (bytes.len - 4 < (size_t)len + 4) return rq_fail(why, RQ_E_END, "list of files: truncated");
    rq_slice pb = rq_slice_of(bytes.ptr + 4, len);
    if (rq_crc32(0, pb.ptr, pb.len) != rq_get_be32(pb.ptr + len))
        return rq_fail(why, RQ_E_CORRUPT, "list of files: wrong checksum");
    return decode_message(pb, arena, ret, why);
}

static rq_err put_entry(const rq__filelist_entry *e, rq_buf *out)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, LIST_FILE, &at));
    RQ_TRY(rq_pb_put_bytes(out, FILE_NAME, e->name));
    RQ_TRY(rq_pb_put_number(out, FILE_SIZE, e->size));
    return rq_pb_end(out, at);
}

rq_err rq__filelist_encode(const rq__filelist *list, rq_buf *out)
{
    size_t at = out->len;
    RQ_TRY(rq_buf_append_be32(out, 0));
    RQ_TRY(rq_pb_put_number(out, LIST_TIMESTAMP, list->timestamp));
    for (size_t i = 0; i < list->count; i++)
        RQ_TRY(put_entry(&list->files[i], out));
    RQ_TRY(rq_pb_put_number(out, LIST_VERSION, VERSION));
    uint8_t *pb = out->ptr + at + 4;
    size_t len = out->len - at - 4;
    rq_put_be32(out->ptr + at, (uint32_t)len);
    return rq_buf_append_be32(out, rq_crc32(0, pb, len));
}

/* --- its place -------------------------------------------------------------------------------- */

/* Parses "f1.<number>" or "f2.<number>"; the number of "f1" and "f2" is 0. Other names are skipped,
 * as in HBase. HBASE: StoreFileListFile.TRACK_FILE_PATTERN. */
static bool parse_name(const rq_dir_entry *e, uint64_t *ret)
{
    const char *s = e->name;
    if (e->is_dir || s[0] != 'f' || (s[1] != '1' && s[1] != '2')) return false;
    *ret = 0;
    if (s[2] == '\0') return true;
    if (s[2] != '.') return false;
    size_t digits = strspn(s + 3, "0123456789");
    if (digits == 0 || digits > 18 || s[3 + digits] != '\0') return false;
    *ret = strtoull(s + 3, NULL, 10);
    return true;
}

/* RQ_E_END: the file is incomplete and does not count. */
static rq_err read_one(rq_vfs *vfs, const char *path, rq_arena *arena, rq__filelist *ret,
                       rq_error *why)
{
    rq_slice bytes;
    rq_error inner = {0};
    RQ_TRY(rq_vfs_read_file(vfs, path, BYTES_MAX + 8, arena, &bytes, why));
    rq_err rc = rq__filelist_decode(bytes, arena, ret, &inner);
    return rc == RQ_OK || rc == RQ_E_END ? rc : rq_fail(why, rc, "%s: %s", path, inner.message);
}

/* The newest list with this number. RQ_E_NOT_FOUND: none is complete. */
static rq_err read_of_number(rq_vfs *vfs, const char *dir, const rq_dir_entry *entries,
                             size_t count, uint64_t number, rq_arena *arena, rq__filelist *ret,
                             rq_error *why)
{
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        uint64_t n;
        rq__filelist l;
        if (!parse_name(&entries[i], &n) || n != number) continue;
        const char *path = rq_arena_printf(arena, "%s/%s", dir, entries[i].name);
        if (path == NULL) return rq_no_memory(why);
        rq_err rc = read_one(vfs, path, arena, &l, why);
        if (rc == RQ_E_END) continue;
        RQ_TRY(rc);
        if (!found || l.timestamp > ret->timestamp) *ret = l;
        found = true;
    }
    ret->number = number;
    return found ? RQ_OK : RQ_E_NOT_FOUND;
}

rq_err rq__filelist_read(rq_vfs *vfs, const char *family_dir, rq_arena *arena, rq__filelist *ret,
                         rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    rq_error inner = {0};
    const char *dir = rq_arena_printf(arena, "%s/" RQ__FILELIST_DIR, family_dir);
    if (dir == NULL) return rq_no_memory(why);
    rq_err rc = rq_vfs_list(vfs, dir, arena, &entries, &count, &inner);
    if (rc == RQ_E_NOT_FOUND) return rc;
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", inner.message);
    uint64_t below = UINT64_MAX;
    for (;;) {
        uint64_t highest = 0;
        bool any = false;
        for (size_t i = 0; i < count; i++) {
            uint64_t n;
            if (!parse_name(&entries[i], &n) || n >= below) continue;
            if (!any || n > highest) highest = n;
            any = true;
        }
        if (!any) return RQ_E_NOT_FOUND;
        rc = read_of_number(vfs, dir, entries, count, highest, arena, ret, why);
        if (rc != RQ_E_NOT_FOUND) return rc;
        below = highest;
    }
}

/* Whether the list has exactly these names. REQUIRES: no name is given twice. */
static rq_err names_exactly(const rq__filelist *l, const char *const *names, size_t count,
                            rq_arena *arena, bool *ret)
{
    *ret = l->count == count;
    if (!*ret || count == 0) return RQ_OK;
    rq_slice *sorted = rq_arena_alloc(arena, count * sizeof *sorted);
    if (sorted == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        sorted[i] = l->files[i].name;
    qsort(sorted, count, sizeof *sorted, rq_slice_order);
    for (size_t i = 0; i < count && *ret; i++) {
        rq_slice name = rq_slice_cstr(names[i]);
        *ret = bsearch(&name, sorted, count, sizeof *sorted, rq_slice_order) != NULL;
    }
    return RQ_OK;
}

static rq_err describe(rq_vfs *vfs, const char *dir, const char *const *names, size_t count,
                       rq_arena *arena, rq__filelist *ret, rq_error *why)
{
    ret->files = rq_arena_calloc(arena, count + 1, sizeof *ret->files);
    if (ret->files == NULL) return rq_no_memory(why);
    for (ret->count = 0; ret->count < count; ret->count++) {
        rq__filelist_entry *e = &ret->files[ret->count];
        rq_store_name parts;
        rq_stat st;
        e->name = rq_slice_cstr(names[ret->count]);
        rq_store_name_parse(e->name, &parts);
        if (parts.is_reference || parts.is_link) continue;
        const char *path = rq_arena_printf(arena, "%s/%s", dir, names[ret->count]);
        if (path == NULL) return rq_no_memory(why);
        RQ_TRY(rq_vfs_stat(vfs, path, &st, why));
        e->size = st.size;
    }
    return RQ_OK;
}

static rq_err write_new(rq_vfs *vfs, const char *dir, const rq__filelist *list, rq_arena *arena,
                        rq_error *why)
{
    rq_buf bytes = {0};
    const char *path = rq_arena_printf(arena, "%s/f1.%llu", dir, (unsigned long long)list->number);
    rq_err rc = path == NULL ? rq_no_memory(why) : rq__filelist_encode(list, &bytes);
    if (rc == RQ_OK) rc = rq_vfs_mkdirs(vfs, dir, why);
    if (rc == RQ_OK) rc = rq_vfs_write_new_file(vfs, path, rq_buf_slice(&bytes), why);
    rq_buf_clear(&bytes);
    return rc;
}

/* Removes lists with a lower number; RQ_OK if there are none. */
static rq_err remove_older(rq_vfs *vfs, const char *dir, uint64_t number, rq_arena *arena,
                           rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    RQ_TRY(rq_vfs_list_if_any(vfs, dir, arena, &entries, &count, why));
    for (size_t i = 0; i < count; i++) {
        uint64_t n;
        if (!parse_name(&entries[i], &n) || n >= number) continue;
        const char *path = rq_arena_printf(arena, "%s/%s", dir, entries[i].name);
        if (path == NULL) return rq_no_memory(why);
        RQ_TRY(rq_vfs_remove(vfs, path, why));
    }
    return RQ_OK;
}

/* The highest number of any list, including incomplete ones. */
static rq_err highest_number(rq_vfs *vfs, const char *dir, rq_arena *arena, uint64_t *ret,
                             rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    rq_error inner = {0};
    *ret = 0;
    rq_err rc = rq_vfs_list(vfs, dir, arena, &entries, &count, &inner);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", inner.message);
    for (size_t i = 0; i < count; i++) {
        uint64_t n;
        if (parse_name(&entries[i], &n) && n > *ret) *ret = n;
    }
    return RQ_OK;
}

static rq_err write_list(rq_vfs *vfs, const char *family_dir, const char *const *names,
                         size_t count, bool is_durable, int64_t now_ms, rq_arena *arena,
                         rq_error *why)
{
    rq__filelist old = {0};
    rq__filelist list = {0};
    uint64_t highest;
    rq_err rc = rq__filelist_read(vfs, family_dir, arena, &old, why);
    bool is_same = false;
    if (rc == RQ_OK && is_durable) RQ_TRY(names_exactly(&old, names, count, arena, &is_same));
    if (is_same) return RQ_OK;
    if (rc == RQ_E_NOT_FOUND && count == 0) return RQ_OK;
    /* An unreadable list is replaced: the region knows its files. */
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND && rc != RQ_E_CORRUPT) return rc;
    if (why != NULL) *why = (rq_error){0};
    const char *dir = rq_arena_printf(arena, "%s/" RQ__FILELIST_DIR, family_dir);
    if (dir == NULL) return rq_no_memory(why);
    RQ_TRY(highest_number(vfs, dir, arena, &highest, why));
    RQ_TRY(describe(vfs, family_dir, names, count, arena, &list, why));
    uint64_t now = now_ms > 0 ? (uint64_t)now_ms : 1;
    list.number = highest >= now ? highest + 1 : now;
    list.timestamp = old.timestamp >= now ? old.timestamp + 1 : now;
    RQ_TRY(write_new(vfs, dir, &list, arena, why));
    return remove_older(vfs, dir, list.number, arena, why);
}

rq_err rq__filelist_write(rq_vfs *vfs, const char *dir, const char *const *names, size_t count,
                          bool is_durable, int64_t now_ms, rq_error *why)
{
    rq_arena arena = {0};
    rq_err rc = write_list(vfs, dir, names, count, is_durable, now_ms, &arena, why);
    rq_arena_clear(&arena);
    return rc;
}

rq_err rq__filelist_remove(rq_vfs *vfs, const char *family_dir, rq_error *why)
{
    rq_arena arena = {0};
    const char *dir = rq_arena_printf(&arena, "%s/" RQ__FILELIST_DIR, family_dir);
    rq_err rc = dir == NULL ? rq_no_memory(why) : remove_older(vfs, dir, UINT64_MAX, &arena, why);
    rq_arena_clear(&arena);
    return rc;
}
