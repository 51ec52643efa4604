/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes, decodes and reads snapshots; the layout is in snapshot_manifest.h. */
#include "catalog/snapshot_manifest.h"

#include "base/pb.h"
#include "store/mob.h"
#include "store/reference.h"

#include <stdlib.h>

#define INFO_MAX ((size_t)4 * 1024 * 1024)
#define REGION_LIMIT 1000000

enum {
    MANIFEST_SCHEMA = 1,
    MANIFEST_REGION = 2,
    REGION_INFO = 2,
    REGION_FAMILY = 3,
    FAMILY_NAME = 1,
    FAMILY_FILE = 2,
    FILE_NAME = 1,
    FILE_REFERENCE = 2,
    FILE_SIZE = 3,
    INFO_TABLE = 2,
    INFO_CREATED = 3,
    INFO_TTL = 8,
};

/* --- writing ---------------------------------------------------------------------------------- */

rq_err rq__snapshot_put_schema(rq_buf *out, rq_slice schema)
{
    return rq_pb_put_bytes(out, MANIFEST_SCHEMA, schema);
}

static rq_err put_file(rq_buf *out, const rq_region_file *f)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, FAMILY_FILE, &at));
    RQ_TRY(rq_pb_put_bytes(out, FILE_NAME, f->name));
    if (f->reference.len > 0) RQ_TRY(rq_pb_put_bytes(out, FILE_REFERENCE, f->reference));
    RQ_TRY(rq_pb_put_number(out, FILE_SIZE, f->size));
    return rq_pb_end(out, at);
}

static rq_err put_family(rq_buf *out, const rq_family_files *f)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, REGION_FAMILY, &at));
    RQ_TRY(rq_pb_put_bytes(out, FAMILY_NAME, f->name));
    for (size_t i = 0; i < f->count; i++)
        RQ_TRY(put_file(out, &f->files[i]));
    return rq_pb_end(out, at);
}

static rq_err put_info(rq_buf *out, const rq_region_info *info)
{
    rq_arena arena = {0};
    rq_slice bytes;
    rq_err rc = rq_region_info_serialize(info, &arena, &bytes);
    if (rc == RQ_OK) /* without "PBUF" */
        rc = rq_pb_put_bytes(out, REGION_INFO, rq_slice_of(bytes.ptr + 4, bytes.len - 4));
    rq_arena_clear(&arena);
    return rc;
}

rq_err rq__snapshot_put_region(rq_buf *out, const rq_region_info *info,
                               const rq_region_files *files)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, MANIFEST_REGION, &at));
    RQ_TRY(put_info(out, info));
    for (size_t i = 0; i < files->count; i++)
        RQ_TRY(put_family(out, &files->families[i]));
    return rq_pb_end(out, at);
}

/* --- reading: a message is walked twice, first to count what it repeats ------------------------- */

static rq_err bad(rq_error *why, const char *what)
{
    return rq_fail(why, RQ_E_SNAPSHOT_CORRUPT, "the snapshot's manifest: %s", what);
}

/* *ret_count: the fields of that number that hold bytes. */
static rq_err count_fields(rq_slice message, uint32_t number, size_t *ret_count, rq_error *why)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    rq_err rc;
    *ret_count = 0;
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK)
        *ret_count += f.number == number && f.wire == RQ_PB_BYTES;
    return rc == RQ_E_END ? RQ_OK : bad(why, "malformed");
}

static rq_err take_file(rq_slice message, rq_region_file *ret, rq_error *why)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    rq_err rc;
    *ret = (rq_region_file){0};
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if (f.number == FILE_NAME && f.wire == RQ_PB_BYTES) ret->name = f.bytes;
        if (f.number == FILE_REFERENCE && f.wire == RQ_PB_BYTES) ret->reference = f.bytes;
        if (f.number == FILE_SIZE && f.wire == RQ_PB_VARINT) ret->size = f.value;
    }
    if (rc != RQ_E_END) return bad(why, "malformed");
    return ret->name.len > 0 ? RQ_OK : bad(why, "a file without a name");
}

static rq_err take_family(rq_slice message, rq_arena *arena, rq_family_files *ret, rq_error *why)
{
    size_t count;
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    RQ_TRY(count_fields(message, FAMILY_FILE, &count, why));
    *ret = (rq_family_files){.files = rq_arena_calloc(arena, count + 1, sizeof *ret->files)};
    if (ret->files == NULL) return rq_no_memory(why);
    while (rq_pb_next(&c, &f) == RQ_OK) {
        if (f.wire != RQ_PB_BYTES) continue;
        if (f.number == FAMILY_NAME) ret->name = f.bytes;
        if (f.number == FAMILY_FILE) RQ_TRY(take_file(f.bytes, &ret->files[ret->count++], why));
    }
    return ret->name.len > 0 ? RQ_OK : bad(why, "a family without a name");
}

static rq_err take_info(rq_slice message, rq_arena *arena, rq_region_info *ret, rq_error *why)
{
    rq_error own = {0};
    uint8_t *bytes = rq_arena_alloc(arena, message.len + 4);
    if (bytes == NULL) return rq_no_memory(why);
    memcpy(bytes, "PBUF", 4);
    if (message.len > 0) memcpy(bytes + 4, message.ptr, message.len);
    rq_err rc = rq_region_info_parse(rq_slice_of(bytes, message.len + 4), arena, ret, &own);
    if (rc == RQ_E_NO_MEMORY) return rq_no_memory(why);
    return rc == RQ_OK ? RQ_OK : bad(why, "a malformed RegionInfo");
}

static rq_err take_region(rq_slice message, rq_arena *arena, rq__snapshot_region *ret,
                          rq_error *why)
{
    size_t count;
    bool has_info = false;
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    RQ_TRY(count_fields(message, REGION_FAMILY, &count, why));
    *ret = (rq__snapshot_region){0};
    ret->files.families = rq_arena_calloc(arena, count + 1, sizeof *ret->files.families);
    if (ret->files.families == NULL) return rq_no_memory(why);
    while (rq_pb_next(&c, &f) == RQ_OK) {
        if (f.wire != RQ_PB_BYTES) continue;
        if (f.number == REGION_INFO) {
            RQ_TRY(take_info(f.bytes, arena, &ret->info, why));
            has_info = true;
        }
        if (f.number == REGION_FAMILY)
            RQ_TRY(take_family(f.bytes, arena, &ret->files.families[ret->files.count++], why));
    }
    return has_info ? RQ_OK : bad(why, "a region without a RegionInfo");
}

static bool is_mob_region(const rq_region_info *info)
{
    return info->region_id == 0 && rq_slice_eq(info->start_key, RQ_SLICE_LIT(".mob"));
}

static void keep_region(rq__snapshot *s, const rq__snapshot_region *r)
{
    if (is_mob_region(&r->info))
        s->mob = r->files;
    else if (!(r->info.split && r->info.offline) && r->info.replica_id == 0)
        s->regions[s->count++] = *r;
}

static int by_start_key(const void *a, const void *b)
{
    return rq_slice_compare(((const rq__snapshot_region *)a)->info.start_key,
                            ((const rq__snapshot_region *)b)->info.start_key);
}

/* The regions must cover the table once: they become one. */
static rq_err check_regions(rq__snapshot *s, rq_error *why)
{
    if (s->count == 0) return bad(why, "no region");
    qsort(s->regions, s->count, sizeof *s->regions, by_start_key);
    for (size_t i = 0; i < s->count; i++) {
        const rq_region_info *r = &s->regions[i].info;
        if (!rq_slice_eq(r->table, s->regions[0].info.table))
            return bad(why, "regions of several tables");
        if (i + 1 < s->count && !rq_slice_eq(r->end_key, s->regions[i + 1].info.start_key))
            return bad(why, "its regions have a gap or overlap");
    }
    if (s->regions[0].info.start_key.len > 0 || s->regions[s->count - 1].info.end_key.len > 0)
        return bad(why, "its regions do not cover the table");
    return RQ_OK;
}

rq_err rq__snapshot_parse(rq_slice manifest, rq_arena *arena, rq__snapshot *ret, rq_error *why)
{
    size_t count;
    rq_cursor c = rq_cursor_of(manifest);
    rq_pb_field f;
    rq__snapshot_region region;
    *ret = (rq__snapshot){0};
    RQ_TRY(count_fields(manifest, MANIFEST_REGION, &count, why));
    if (count > REGION_LIMIT) return bad(why, "too many regions");
    ret->regions = rq_arena_calloc(arena, count + 1, sizeof *ret->regions);
    if (ret->regions == NULL) return rq_no_memory(why);
    while (rq_pb_next(&c, &f) == RQ_OK) {
        if (f.wire != RQ_PB_BYTES) continue;
        if (f.number == MANIFEST_SCHEMA) ret->schema = f.bytes;
        if (f.number != MANIFEST_REGION) continue;
        RQ_TRY(take_region(f.bytes, arena, &region, why));
        keep_region(ret, &region);
    }
    if (ret->schema.len == 0) return bad(why, "no table descriptor");
    return check_regions(ret, why);
}

/* --- on disk ---------------------------------------------------------------------------------- */

const char *rq__snapshot_path(rq_arena *arena, const char *dir, rq_slice name, const char *file)
{
    return rq_arena_printf(arena, "%s/%.*s%s%s", dir, (int)name.len, (const char *)name.ptr,
                           file[0] == '\0' ? "" : "/", file);
}

static rq_err no_snapshot(rq_slice name, rq_error *why)
{
    return rq_fail(why, RQ_E_SNAPSHOT_NOT_FOUND, "Snapshot '%.*s' doesn't exist on the filesystem",
                   (int)name.len, (const char *)name.ptr);
}

static rq_err read_part(rq_vfs *v, rq_slice name, const char *file, size_t max, rq_arena *arena,
                        rq_slice *ret, rq_error *why)
{
    rq_error own = {0};
    const char *path = rq__snapshot_path(arena, RQ__SNAPSHOT_DIR, name, file);
    if (path == NULL) return rq_no_memory(why);
    rq_err rc = rq_vfs_read_file(v, path, max, arena, ret, &own);
    if (rc == RQ_E_INVALID || rc == RQ_E_CORRUPT)
        return rq_fail(why, RQ_E_SNAPSHOT_CORRUPT, "%s: %s", path, own.message);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}

rq_err rq__snapshot_read(rq_vfs *v, rq_slice name, rq_arena *arena, rq__snapshot *ret,
                         rq_error *why)
{
    rq_slice bytes;
    rq_error own = {0};
    if (!rq__snapshot_exists(v, name)) return no_snapshot(name, why);
    rq_err rc =
        read_part(v, name, RQ__SNAPSHOT_MANIFEST, RQ__SNAPSHOT_MANIFEST_MAX, arena, &bytes, &own);
    if (rc == RQ_E_NOT_FOUND)
        return rq_fail(why, RQ_E_SNAPSHOT_CORRUPT,
                       "Snapshot '%.*s' has no " RQ__SNAPSHOT_MANIFEST
                       ": an HBase before 1.0 wrote it, or it is damaged",
                       (int)name.len, (const char *)name.ptr);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", own.message);
    return rq__snapshot_parse(bytes, arena, ret, why);
}

static rq_err take_description(rq__snapshot_info *s, rq_error *why)
{
    rq_cursor c = rq_cursor_of(s->bytes);
    rq_pb_field f;
    rq_err rc;
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if (f.number == INFO_TABLE && f.wire == RQ_PB_BYTES) s->table = f.bytes;
        if (f.number == INFO_CREATED && f.wire == RQ_PB_VARINT) s->created_ms = (int64_t)f.value;
        if (f.number == INFO_TTL && f.wire == RQ_PB_VARINT) s->ttl_s = (int64_t)f.value;
    }
    if (rc == RQ_E_END) return RQ_OK;
    return rq_fail(why, RQ_E_SNAPSHOT_CORRUPT, "Couldn't read snapshot info of %.*s",
                   (int)s->name.len, (const char *)s->name.ptr);
}

rq_err rq__snapshot_info_read(rq_vfs *v, rq_slice name, rq_arena *arena, rq__snapshot_info *ret,
                              rq_error *why)
{
    rq_error own = {0};
    *ret = (rq__snapshot_info){.name = name};
    if (name.len > RQ_NAME_MAX) return no_snapshot(name, why);
    rq_err rc = read_part(v, name, RQ__SNAPSHOT_INFO, INFO_MAX, arena, &ret->bytes, &own);
    if (rc == RQ_E_NOT_FOUND) return no_snapshot(name, why);
    return rc == RQ_OK ? take_description(ret, why) : rq_fail(why, rc, "%s", own.message);
}

bool rq__snapshot_is_expired(const rq__snapshot_info *s, int64_t now_ms)
{
    return s->created_ms != 0 && s->ttl_s > 0 && s->ttl_s < INT64_MAX / 1000 &&
           s->created_ms < INT64_MAX - s->ttl_s * 1000 && s->created_ms + s->ttl_s * 1000 < now_ms;
}

bool rq__snapshot_exists(rq_vfs *v, rq_slice name)
{
    rq_arena arena = {0};
    rq_stat st;
    const char *path = rq__snapshot_path(&arena, RQ__SNAPSHOT_DIR, name, RQ__SNAPSHOT_INFO);
    bool there = path == NULL || rq_vfs_stat(v, path, &st, NULL) != RQ_E_NOT_FOUND;
    rq_arena_clear(&arena);
    return there;
}

static bool files_name(const rq_region_files *files, const char *name)
{
    for (size_t f = 0; f < files->count; f++)
        for (size_t i = 0; i < files->families[f].count; i++) {
            rq_slice own = files->families[f].files[i].name;
            if (memmem(own.ptr, own.len, name, strlen(name)) != NULL) return true;
        }
    return false;
}

bool rq__snapshot_names(const rq__snapshot *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->regions[i].info.encoded, name) == 0 || files_name(&s->regions[i].files, name))
            return true;
    return files_name(&s->mob, name);
}

/* --- verifying -------------------------------------------------------------------------------- */

/* Looks for the file at its path in data/ or mobdir/, as if the snapshot's regions were still in place,
 * and then in archive/. rq_store_file_locate would look in the archive only for links and references. */
static rq_err verify_file(rq_vfs *v, const char *dir, const rq_region_file *f, rq_error *why)
{
    rq_arena arena = {0};
    rq_store_name parts;
    rq_stat st;
    const char *found;
    rq_error own = {0};
    rq_err rc = RQ_OK;
    const char *name = rq_arena_cstr(&arena, f->name);
    const char *base =
        strncmp(dir, RQ_MOB_DIR "/", sizeof RQ_MOB_DIR) == 0 ? dir + sizeof RQ_MOB_DIR : dir;
    const char *archived =
        name == NULL ? NULL : rq_arena_printf(&arena, "archive/%s/%s", base, name);
    const char *path = name == NULL ? NULL : rq_arena_printf(&arena, "%s/%s", dir, name);
    rq_store_name_parse(f->name, &parts);
    if (archived == NULL || path == NULL)
        rc = rq_no_memory(&own);
    else if (parts.is_link || parts.is_reference)
        rc = rq_store_file_locate(v, dir, name, &arena, &found, &own);
    else if (rq_vfs_stat(v, path, &st, NULL) != RQ_OK)
        rc = rq_vfs_stat(v, archived, &st, &own);
    if (rc == RQ_E_NOT_FOUND)
        rc = rq_fail(why, RQ_E_SNAPSHOT_CORRUPT,
                     "Can't find hfile: %s in the real (%s) or archive (%s) directory for the "
                     "primary table.",
                     name, path, archived);
    else if (rc != RQ_OK)
        (void)rq_fail(why, rc, "%s", own.message);
    rq_arena_clear(&arena);
    return rc;
}

static rq_err verify_files(rq_vfs *v, const char *region_dir, const rq_region_files *files,
                           rq_error *why)
{
    rq_arena arena = {0};
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < files->count && rc == RQ_OK; i++) {
        const rq_family_files *f = &files->families[i];
        const char *dir = rq_arena_printf(&arena, "%s/%.*s", region_dir, (int)f->name.len,
                                          (const char *)f->name.ptr);
        if (dir == NULL) rc = rq_no_memory(why);
        for (size_t k = 0; k < f->count && rc == RQ_OK; k++)
            rc = verify_file(v, dir, &f->files[k], why);
    }
    rq_arena_clear(&arena);
    return rc;
}

rq_err rq__snapshot_verify(rq_vfs *v, const rq__snapshot *s, rq_error *why)
{
    rq_arena arena = {0};
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < s->count && rc == RQ_OK; i++) {
        const rq_region_info *info = &s->regions[i].info;
        const char *dir = rq_arena_printf(&arena, "data/%.*s/%.*s/%s", (int)info->ns.len,
                                          (const char *)info->ns.ptr, (int)info->qualifier.len,
                                          (const char *)info->qualifier.ptr, info->encoded);
        rc = dir == NULL ? rq_no_memory(why) : verify_files(v, dir, &s->regions[i].files, why);
    }
    if (rc == RQ_OK && s->mob.count > 0) {
        const char *dir = rq_mob_region_dir(&arena, s->regions[0].info.table);
        rc = dir == NULL ? rq_no_memory(why) : verify_files(v, dir, &s->mob, why);
    }
    rq_arena_clear(&arena);
    return rc;
}
