/* SPDX-License-Identifier: Apache-2.0 */
/* Regions that consist of links; contract and layout in region_files.h. Links and back references
 * are written without a sync each, because a clone has thousands of them: the caller's batch syncs
 * everything. */
#include "region/engine_priv.h"
#include "region/owned.h"
#include "region/region_files.h"
#include "region/tracking.h"
#include "store/mob.h"
#include "store/reference.h"

#include <stdlib.h>

#define FOLDER_TRIES_MAX 16

/* --- unsynced files --------------------------------------------------------------------------- */

rq_err rq__make_folders(rq_vfs *vfs, rq_arena *arena, const char *path, rq_error *why)
{
    rq_error own = {0};
    rq_err rc = rq_vfs_mkdir(vfs, path, &own);
    if (rc == RQ_E_NOT_FOUND) {
        const char *slash = strrchr(path, '/');
        const char *parent =
            slash == NULL ? NULL : rq_arena_printf(arena, "%.*s", (int)(slash - path), path);
        if (parent == NULL) return rq_fail(why, rc, "%s", own.message);
        RQ_TRY(rq__make_folders(vfs, arena, parent, why));
        rc = rq_vfs_mkdir(vfs, path, &own);
    }
    return rc == RQ_OK || rc == RQ_E_EXISTS ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}

static rq_err write_once(rq_vfs *vfs, const char *path, rq_slice bytes, rq_error *why)
{
    rq_file *f;
    RQ_TRY(rq_vfs_open(vfs, path, RQ_OPEN_WRITE | RQ_OPEN_CREATE | RQ_OPEN_EXCL, &f, why));
    rq_err rc = bytes.len == 0 ? RQ_OK : rq_file_write(f, bytes.ptr, bytes.len, 0, why);
    rq_err closed = rq_file_close(f);
    return rc == RQ_OK && closed != RQ_OK ? rq_fail(why, closed, "cannot close %s", path) : rc;
}

/* An existing file is of an earlier attempt, and perhaps only a part of it was written. */
static rq_err write_file(rq_vfs *vfs, const char *path, rq_slice bytes, rq_error *why)
{
    rq_error own = {0};
    rq_err rc = write_once(vfs, path, bytes, &own);
    if (rc == RQ_E_EXISTS && bytes.len == 0) return RQ_OK;
    if (rc == RQ_E_EXISTS) {
        RQ_TRY(rq_vfs_remove(vfs, path, why));
        return write_once(vfs, path, bytes, why);
    }
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}

/* --- links ------------------------------------------------------------------------------------ */

typedef struct linking {
    rq_engine *engine;
    rq_vfs *vfs; /* where the links are made */
    rq_arena *arena;
    const char *region;  /* of the links: encoded name */
    rq_slice table;      /* of the links, as displayed */
    rq_slice from_table; /* of the files, as displayed */
    const char *from_region;
    rq_slice family;
    rq_error *why;
} linking;

/* "ns:q" as a file's name has it: "ns=q". NULL: out of memory. */
static char *in_file_name(rq_arena *arena, rq_slice table)
{
    char *text = rq_arena_cstr(arena, table);
    char *colon = text == NULL ? NULL : strchr(text, ':');
    if (colon != NULL) *colon = '=';
    return text;
}

/* Where the HFile is, by the name it has in the snapshot, and the name of a link to it. */
typedef struct target {
    rq_slice ns, table, region, file;
    char *name;
} target;

static rq_err resolve(const linking *l, rq_slice name, target *ret)
{
    rq_store_name parts;
    rq_store_name_parse(name, &parts);
    *ret = (target){.file = parts.file};
    if (parts.is_link) { /* a link of a clone names the original */
        ret->ns = parts.ns.len == 0 ? RQ_SLICE_LIT("default") : parts.ns;
        ret->table = parts.table;
        ret->region = parts.region;
        ret->name = rq_arena_cstr(l->arena, name);
        return ret->name == NULL ? rq_no_memory(l->why) : RQ_OK;
    }
    const char *table = in_file_name(l->arena, l->from_table);
    if (table == NULL) return rq_no_memory(l->why);
    if (!rq_mob_table_parts(l->from_table, &ret->ns, &ret->table))
        return rq_fail(l->why, RQ_E_CORRUPT, "%s is not a valid table name", table);
    ret->region = parts.is_reference ? parts.parent : rq_slice_cstr(l->from_region);
    ret->name = rq_arena_printf(l->arena, "%s=%.*s-%.*s%s%.*s", table, (int)ret->region.len,
                                (const char *)ret->region.ptr, (int)parts.file.len,
                                (const char *)parts.file.ptr, parts.is_reference ? "." : "",
                                (int)parts.parent.len, (const char *)parts.parent.ptr);
    return ret->name == NULL ? rq_no_memory(l->why) : RQ_OK;
}

/* The folder of back references to the target; NULL: out of memory. */
static const char *back_reference_dir(rq_arena *arena, const target *t, rq_slice family)
{
    return rq_arena_printf(arena, "archive/data/%.*s/%.*s/%.*s/%.*s/.links-%.*s", (int)t->ns.len,
                           (const char *)t->ns.ptr, (int)t->table.len, (const char *)t->table.ptr,
                           (int)t->region.len, (const char *)t->region.ptr, (int)family.len,
                           (const char *)family.ptr, (int)t->file.len, (const char *)t->file.ptr);
}

static const char *back_reference(rq_arena *arena, const char *dir, const char *region,
                                  rq_slice of_table)
{
    const char *table = in_file_name(arena, of_table);
    return dir == NULL || table == NULL ? NULL
                                        : rq_arena_printf(arena, "%s/%s.%s", dir, region, table);
}

const char *rq_link_back_reference(rq_arena *arena, const rq_region_info *info, rq_slice family,
                                   rq_slice name)
{
    target t;
    rq_error why = {0};
    const linking l = {.arena = arena, .why = &why};
    if (resolve(&l, name, &t) != RQ_OK) return NULL;
    return back_reference(arena, back_reference_dir(arena, &t, family), info->encoded, info->table);
}

static rq_err write_back_reference(const linking *l, const target *t)
{
    rq_vfs *vfs = l->vfs;
    const char *dir = back_reference_dir(l->arena, t, l->family);
    const char *path = back_reference(l->arena, dir, l->region, l->table);
    if (path == NULL) return rq_no_memory(l->why);
    if (strlen(l->region) + 1 + l->table.len > RQ_NAME_MAX)
        return rq_fail(l->why, RQ_E_UNSUPPORTED,
                       "%.*s: the name of a link's back reference is too long", (int)l->table.len,
                       (const char *)l->table.ptr);
    /* The archive's cleaner may remove the folder while it is empty. */
    rq_err rc = RQ_E_NOT_FOUND;
    rq_error own = {0};
    for (int i = 0; i < FOLDER_TRIES_MAX && rc == RQ_E_NOT_FOUND; i++) {
        RQ_TRY(rq__make_folders(vfs, l->arena, dir, l->why));
        rc = write_file(vfs, path, (rq_slice){0}, &own);
    }
    return rc == RQ_OK ? RQ_OK : rq_fail(l->why, rc, "%s", own.message);
}

static rq_err reference_bytes(const linking *l, rq_slice message, rq_slice *ret)
{
    rq_hfile_half half;
    uint8_t *bytes = rq_arena_alloc(l->arena, message.len + 4);
    if (bytes == NULL) return rq_no_memory(l->why);
    memcpy(bytes, "PBUF", 4);
    if (message.len > 0) memcpy(bytes + 4, message.ptr, message.len);
    *ret = rq_slice_of(bytes, message.len + 4);
    return rq_reference_decode(*ret, &half, l->why);
}

/* The back reference first: a link without one would lose its file. *ret_name: in the arena. */
static rq_err write_link(const linking *l, const char *dir, const rq_region_file *file,
                         rq_slice *ret_name)
{
    target t;
    rq_slice bytes = {0};
    if (!rq__store_file_name_ok(file->name))
        return rq_fail(l->why, RQ_E_CORRUPT, "the snapshot lists a file that is not a store file");
    RQ_TRY(resolve(l, file->name, &t));
    if (!rq__store_file_name_ok(rq_slice_cstr(t.name)))
        return rq_fail(l->why, RQ_E_UNSUPPORTED, "%s: the name of a link is too long", t.name);
    const char *path = rq_arena_printf(l->arena, "%s/%s", dir, t.name);
    if (path == NULL) return rq_no_memory(l->why);
    rq_store_name parts;
    rq_store_name_parse(file->name, &parts);
    if (parts.is_reference) RQ_TRY(reference_bytes(l, file->reference, &bytes));
    RQ_TRY(write_back_reference(l, &t));
    *ret_name = rq_slice_cstr(t.name);
    return write_file(l->vfs, path, bytes, l->why);
}

/* --- a region --------------------------------------------------------------------------------- */

static rq_err link_family(linking *l, const char *dir, const rq_region_files *files,
                          rq__manifest_family *ret)
{
    const rq_family_files *f = NULL;
    for (size_t i = 0; i < files->count; i++)
        if (rq_slice_eq(files->families[i].name, ret->name)) f = &files->families[i];
    if (dir == NULL) return rq_no_memory(l->why);
    RQ_TRY(rq__make_folders(l->vfs, l->arena, dir, l->why));
    if (f == NULL) return RQ_OK;
    ret->files = rq_arena_calloc(l->arena, f->count + 1, sizeof *ret->files);
    if (ret->files == NULL) return rq_no_memory(l->why);
    l->family = ret->name;
    for (; ret->file_count < f->count; ret->file_count++)
        RQ_TRY(write_link(l, dir, &f->files[ret->file_count], &ret->files[ret->file_count]));
    if (ret->file_count > 1) qsort(ret->files, ret->file_count, sizeof *ret->files, rq_slice_order);
    return RQ_OK;
}

bool rq__region_needs_manifest(const rq_engine *e, const rq_table_schema *schema)
{
    if (e->cluster != NULL) return true;
    for (size_t i = 0; i < schema->family_count; i++)
        if (rq__tracking_reads_list(schema, &schema->families[i])) return true;
    return false;
}

/* Not in the batch: see rq_vfs_cas. */
static rq_err write_manifest(const linking *l, rq__manifest *m)
{
    rq__manifest old;
    uint64_t generation = 0;
    rq_error own = {0};
    rq_vfs *vfs = l->engine->env.vfs;
    /* One that is there is of an earlier attempt, and since then the region may have been open. */
    if (l->engine->cluster != NULL)
        return rq__owned_create(l->engine->cluster, l->region, m, l->why);
    rq_err rc = rq__manifest_read(vfs, l->region, l->arena, &old, &generation, &own);
    if (rc == RQ_E_NOT_FOUND) generation = 0;
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(l->why, rc, "%s", own.message);
    return rq__manifest_write(vfs, l->region, m, &generation, NULL, l->why);
}

static rq_err link_region(linking *l, const rq_region_info *info, const rq_table_schema *schema,
                          const rq_region_files *files)
{
    rq_vfs *vfs = l->vfs;
    rq_slice bytes;
    rq__manifest m;
    const char *dir = rq__region_dir(l->arena, info);
    const char *path = dir == NULL ? NULL : rq_arena_printf(l->arena, "%s/.regioninfo", dir);
    RQ_TRY(rq__manifest_of_schema(l->arena, schema, &m, l->why));
    if (path == NULL || rq_region_info_serialize_delimited(info, l->arena, &bytes) != RQ_OK)
        return rq_no_memory(l->why);
    RQ_TRY(rq__make_folders(vfs, l->arena, dir, l->why));
    RQ_TRY(write_file(vfs, path, bytes, l->why));
    for (size_t i = 0; i < m.family_count; i++)
        RQ_TRY(link_family(l, rq__family_dir(l->arena, info, m.families[i].name), files,
                           &m.families[i]));
    return rq__region_needs_manifest(l->engine, schema) ? write_manifest(l, &m) : RQ_OK;
}

rq_err rq_region_create_linked(rq_engine *e, rq_vfs *vfs, const rq_region_info *info,
                               const rq_table_schema *schema, const rq_region_info *from,
                               const rq_region_files *files, rq_error *why)
{
    rq_arena arena = {0};
    linking l = {.engine = e,
                 .vfs = vfs,
                 .arena = &arena,
                 .region = info->encoded,
                 .table = info->table,
                 .from_table = from->table,
                 .from_region = from->encoded,
                 .why = why};
    rq_err rc = link_region(&l, info, schema, files);
    rq_arena_clear(&arena);
    return rc;
}

/* --- MOB files -------------------------------------------------------------------------------- */

static rq_err link_mob(linking *l, const rq_table_schema *schema, const rq_region_files *files)
{
    rq_slice name;
    for (size_t i = 0; i < files->count; i++) {
        l->family = files->families[i].name;
        if (rq_table_schema_family(schema, l->family) == NULL) continue;
        const char *dir = rq_mob_family_dir(l->arena, schema->name, l->family);
        if (dir == NULL) return rq_no_memory(l->why);
        RQ_TRY(rq__make_folders(l->vfs, l->arena, dir, l->why));
        for (size_t k = 0; k < files->families[i].count; k++)
            RQ_TRY(write_link(l, dir, &files->families[i].files[k], &name));
    }
    return RQ_OK;
}

rq_err rq_mob_create_linked(rq_engine *e, rq_vfs *vfs, const rq_table_schema *schema, rq_slice from,
                            const rq_region_files *files, rq_error *why)
{
    rq_arena arena = {0};
    rq_buf name = {0};
    char own[RQ_MD5_HEX_LEN + 1], theirs[RQ_MD5_HEX_LEN + 1];
    rq_err rc = rq_mob_region_name(schema->name, &name, own);
    if (rc == RQ_OK) rc = rq_mob_region_name(from, &name, theirs);
    linking l = {.engine = e,
                 .vfs = vfs,
                 .arena = &arena,
                 .region = own,
                 .table = schema->name,
                 .from_table = from,
                 .from_region = theirs,
                 .why = why};
    rc = rc == RQ_OK ? link_mob(&l, schema, files) : rq_no_memory(why);
    rq_buf_clear(&name);
    rq_arena_clear(&arena);
    return rc;
}

static rq_err remove_links(rq_vfs *vfs, rq_arena *arena, const char *dir, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    if (dir == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_list_if_any(vfs, dir, arena, &entries, &count, why));
    for (size_t i = 0; i < count; i++) {
        rq_store_name parts;
        rq_store_name_parse(rq_slice_cstr(entries[i].name), &parts);
        if (entries[i].is_dir || !parts.is_link) continue;
        const char *path = rq_arena_printf(arena, "%s/%s", dir, entries[i].name);
        RQ_TRY(path == NULL ? rq_no_memory(why) : rq_vfs_remove(vfs, path, why));
    }
    return RQ_OK;
}

/* A folder that has other files stays. */
static void remove_if_empty(rq_vfs *vfs, const char *dir)
{
    rq_err rc = dir == NULL ? RQ_OK : rq_vfs_remove(vfs, dir, NULL);
    (void)rc;
}

/* A table that hbase:meta has lost may have MOB files under the same name: they stay. */
rq_err rq_mob_remove_linked(rq_engine *e, const rq_table_schema *schema, rq_error *why)
{
    rq_vfs *vfs = e->env.vfs;
    rq_arena arena = {0};
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < schema->family_count && rc == RQ_OK; i++) {
        const char *dir = rq_mob_family_dir(&arena, schema->name, schema->families[i].name);
        rc = remove_links(vfs, &arena, dir, why);
        if (rc == RQ_OK) remove_if_empty(vfs, dir);
    }
    if (rc == RQ_OK) remove_if_empty(vfs, rq_mob_region_dir(&arena, schema->name));
    rq_arena_clear(&arena);
    return rc;
}
