/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a region lies on disk, as HBase lays it out (HBASE: HRegionFileSystem, HFileArchiveUtil,
 * WALSplitUtil):
 *
 *   data/<namespace>/<table>/<encoded>/.regioninfo
 *   data/<namespace>/<table>/<encoded>/<family>/<file>
 *   data/<namespace>/<table>/<encoded>/recovered.edits/<n>.seqid
 *   archive/data/<namespace>/<table>/<encoded>/<family>/<file>
 *
 * The catalog's procedure store, master:store, stands under MasterData/ (HBASE:
 * MasterRegionFactory).
 */
#include "region/engine_priv.h"
#include "region/owned.h"
#include "store/reference.h"

#include <stdio.h>
#include <stdlib.h>

#define REGION_INFO_MAX ((size_t)1024 * 1024)

const char *rq__region_dir(rq_arena *arena, const rq_region_info *info)
{
    const char *root = rq_slice_eq(info->ns, RQ_SLICE_LIT("master")) ? "MasterData/" : "";
    return rq_arena_printf(arena, "%sdata/%.*s/%.*s/%s", root, (int)info->ns.len,
                           (const char *)info->ns.ptr, (int)info->qualifier.len,
                           (const char *)info->qualifier.ptr, info->encoded);
}

const char *rq__family_dir(rq_arena *arena, const rq_region_info *info, rq_slice family)
{
    const char *dir = rq__region_dir(arena, info);
    if (dir == NULL) return NULL;
    return rq_arena_printf(arena, "%s/%.*s", dir, (int)family.len, (const char *)family.ptr);
}

/* --- creating --------------------------------------------------------------------------------- */

bool rq_region_is_family_folder(const rq_dir_entry *entry)
{
    return entry->is_dir && entry->name[0] != '.' && strcmp(entry->name, "recovered.edits") != 0;
}

/* Writes the same bytes again over a file that an earlier attempt has left, and syncs it. The attempt
 * may have ended before its syncs, or a sync may have failed; after a failed sync the kernel regards
 * the pages as clean, so that a sync without a new write would succeed without writing them. */
static rq_err write_again(rq_vfs *vfs, const char *path, rq_slice bytes, rq_error *why)
{
    rq_file *f;
    RQ_TRY(rq_vfs_open(vfs, path, RQ_OPEN_WRITE, &f, why));
    rq_err rc = rq_file_write(f, bytes.ptr, bytes.len, 0, why);
    if (rc == RQ_OK) rc = rq_file_sync(f, why);
    rq_err closed = rq_file_close(f);
    if (rc == RQ_OK && closed != RQ_OK) rc = rq_fail(why, closed, "cannot close %s", path);
    return rc == RQ_OK ? rq_vfs_sync_parent(vfs, path, why) : rc;
}

/* Writes the file unless it is complete and correct: a crash may have left a part of it. */
static rq_err write_region_info(rq_vfs *vfs, rq_arena *arena, const char *dir,
                                const rq_region_info *info, rq_error *why)
{
    const char *path = rq_arena_printf(arena, "%s/.regioninfo", dir);
    rq_slice bytes;
    if (path == NULL || rq_region_info_serialize_delimited(info, arena, &bytes) != RQ_OK)
        return rq_no_memory(why);
    rq_slice old;
    rq_err rc = rq_vfs_read_file(vfs, path, REGION_INFO_MAX, arena, &old, NULL);
    if (rc == RQ_OK && rq_slice_eq(old, bytes)) return write_again(vfs, path, bytes, why);
    if (rc != RQ_E_NOT_FOUND) RQ_TRY(rq_vfs_remove(vfs, path, why));
    return rq_vfs_write_new_file(vfs, path, bytes, why);
}

rq_err rq__manifest_of_schema(rq_arena *arena, const rq_table_schema *schema, rq__manifest *ret,
                              rq_error *why)
{
    *ret = (rq__manifest){.next_seqid = 1};
    ret->families = rq_arena_calloc(arena, schema->family_count + 1, sizeof *ret->families);
    if (ret->families == NULL) return rq_no_memory(why);
    for (; ret->family_count < schema->family_count; ret->family_count++)
        ret->families[ret->family_count].name = schema->families[ret->family_count].name;
    return RQ_OK;
}

static rq_err create_manifest(rq_vfs *vfs, rq_arena *arena, const rq_region_info *info,
                              const rq_table_schema *schema, rq_error *why)
{
    rq__manifest old;
    uint64_t generation = 0;
    rq_err rc = rq__manifest_read(vfs, info->encoded, arena, &old, &generation, why);
    if (rc != RQ_E_NOT_FOUND) return rc; /* there already, or unreadable */
    if (why != NULL) why->code = RQ_OK;
    rq__manifest m;
    RQ_TRY(rq__manifest_of_schema(arena, schema, &m, why));
    generation = 0;
    return rq__manifest_write(vfs, info->encoded, &m, &generation, NULL, why);
}

/* In a cluster. */
static rq_err create_owned(const rq__cluster *c, rq_arena *arena, const rq_region_info *info,
                           const rq_table_schema *schema, rq_error *why)
{
    rq__manifest m;
    RQ_TRY(rq__manifest_of_schema(arena, schema, &m, why));
    return rq__owned_create(c, info->encoded, &m, why);
}

/* Creates the region's folder and makes it and its name durable. The catalog has made the table's folder, durably, with the
 * table's descriptor (rq__tableinfo_write). If it is missing, for a region without a table, the folders above are made, too;
 * if the process is killed meanwhile, a later call does not sync their names again. */
static rq_err make_region_dir(rq_vfs *vfs, const char *dir, rq_error *why)
{
    rq_err rc = rq_vfs_mkdir(vfs, dir, NULL);
    if (rc != RQ_OK && rc != RQ_E_EXISTS) return rq_vfs_mkdirs(vfs, dir, why);
    return rq_vfs_sync_parent(vfs, dir, why);
}

rq_err rq__region_lay_out(rq_vfs *vfs, rq_arena *arena, const rq_region_info *info,
                          const rq_table_schema *schema, rq_error *why)
{
    const char *dir = rq__region_dir(arena, info);
    rq_err rc = dir == NULL ? rq_no_memory(why) : make_region_dir(vfs, dir, why);
    for (size_t i = 0; i < schema->family_count && rc == RQ_OK; i++) {
        const char *family = rq__family_dir(arena, info, schema->families[i].name);
        rc = family == NULL ? rq_no_memory(why) : rq_vfs_mkdir(vfs, family, why);
        if (rc != RQ_E_EXISTS) continue;
        if (why != NULL) why->code = RQ_OK;
        rc = RQ_OK;
    }
    /* Syncs the folder, which makes the families' names durable too. */
    return rc == RQ_OK ? write_region_info(vfs, arena, dir, info, why) : rc;
}

static rq_err create(rq_engine *e, rq_vfs *vfs, const rq_region_info *info,
                     const rq_table_schema *schema, bool with_manifest, rq_error *why)
{
    rq_arena arena = {0};
    rq_err rc = rq__region_lay_out(vfs, &arena, info, schema, why);
    if (rc == RQ_OK && with_manifest) /* not through a batch: see rq_vfs_cas */
        rc = e->cluster != NULL ? create_owned(e->cluster, &arena, info, schema, why)
                                : create_manifest(e->env.vfs, &arena, info, schema, why);
    rq_arena_clear(&arena);
    return rc;
}

rq_err rq_region_create(rq_engine *e, const rq_region_info *info, const rq_table_schema *schema,
                        rq_error *why)
{
    return create(e, e->env.vfs, info, schema, true, why);
}

rq_err rq_region_complete(rq_engine *e, rq_vfs *vfs, const rq_region_info *info,
                          const rq_table_schema *schema, rq_error *why)
{
    return create(e, vfs, info, schema, rq__region_needs_manifest(e, schema), why);
}

/* --- HBase's sequence id file ----------------------------------------------------------------- */

/* "<n>.seqid", formerly "<n>_seqid". */
static bool parse_seqid_name(const char *name, uint64_t *ret)
{
    char *end;
    if (name[0] < '0' || name[0] > '9') return false;
    *ret = strtoull(name, &end, 10);
    return strcmp(end, ".seqid") == 0 || strcmp(end, "_seqid") == 0;
}

static bool is_unreplayed_edits(const char *name)
{
    for (const char *p = name; *p != '\0'; p++)
        if (*p < '0' || *p > '9') return false;
    return name[0] != '\0';
}

rq_err rq__seqid_file_read(rq_vfs *vfs, const rq_region_info *info, uint64_t *ret, rq_error *why)
{
    rq_arena arena = {0};
    rq_dir_entry *entries = NULL;
    size_t count = 0;
    uint64_t highest = 0;
    const char *dir = rq__family_dir(&arena, info, RQ_SLICE_LIT("recovered.edits"));
    rq_err rc =
        dir == NULL ? RQ_E_NO_MEMORY : rq_vfs_list(vfs, dir, &arena, &entries, &count, NULL);
    if (rc == RQ_E_NOT_FOUND) rc = RQ_OK;
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        uint64_t n;
        if (parse_seqid_name(entries[i].name, &n))
            highest = n > highest ? n : highest;
        else if (is_unreplayed_edits(entries[i].name))
            rc = rq_fail(why, RQ_E_STATE, "%s/%s contains edits that HBase has not replayed", dir,
                         entries[i].name);
    }
    rq_arena_clear(&arena);
    if (rc != RQ_OK) return rq_fail(why, rc, "recovered.edits: %s", rq_err_text(rc));
    *ret = highest;
    return RQ_OK;
}

static rq_err remove_older_seqids(rq_vfs *vfs, rq_arena *arena, const char *dir, uint64_t seqid,
                                  rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    RQ_TRY(rq_vfs_list(vfs, dir, arena, &entries, &count, why));
    for (size_t i = 0; i < count; i++) {
        uint64_t n;
        if (!parse_seqid_name(entries[i].name, &n) || n >= seqid) continue;
        const char *path = rq_arena_printf(arena, "%s/%s", dir, entries[i].name);
        if (path == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(rq_vfs_remove(vfs, path, why));
    }
    return RQ_OK;
}

rq_err rq__seqid_file_write(rq_vfs *vfs, const rq_region_info *info, uint64_t seqid, rq_error *why)
{
    rq_arena arena = {0};
    const char *dir = rq__family_dir(&arena, info, RQ_SLICE_LIT("recovered.edits"));
    const char *path =
        dir == NULL ? NULL
                    : rq_arena_printf(&arena, "%s/%llu.seqid", dir, (unsigned long long)seqid);
    rq_err rc = path == NULL ? RQ_E_NO_MEMORY : rq_vfs_mkdirs(vfs, dir, why);
    if (rc == RQ_OK) {
        rc = rq_vfs_write_new_file(vfs, path, (rq_slice){0}, NULL);
        if (rc == RQ_E_EXISTS) rc = rq_vfs_sync_dir(vfs, dir, why);
    }
    if (rc == RQ_OK) rc = remove_older_seqids(vfs, &arena, dir, seqid, why);
    rq_arena_clear(&arena);
    return rc == RQ_OK
               ? RQ_OK
               : rq_fail(why, rc, "%llu.seqid: %s", (unsigned long long)seqid, rq_err_text(rc));
}

/* --- the archive ------------------------------------------------------------------------------ */

rq_err rq__archive_move(rq_vfs *vfs, const char *dir, const char *to_dir, const char *name,
                        rq_error *why)
{
    rq_arena arena = {0};
    const char *from = rq_arena_printf(&arena, "%s/%s", dir, name);
    const char *to = rq_arena_printf(&arena, "%s/%s", to_dir, name);
    rq_err rc = from == NULL || to == NULL ? rq_no_memory(why) : rq_vfs_move(vfs, from, to, why);
    rq_arena_clear(&arena);
    return rc;
}

rq_err rq__archive_file(rq_vfs *vfs, const rq_region_info *info, rq_slice family, const char *name,
                        rq_error *why)
{
    rq_arena arena = {0};
    const char *dir = rq__family_dir(&arena, info, family);
    const char *from = dir == NULL ? NULL : rq_arena_printf(&arena, "%s/%s", dir, name);
    rq_store_name parts;
    rq_store_name_parse(rq_slice_cstr(name), &parts);
    if (parts.is_reference || parts.is_link) { /* it only names another file */
        rq_err gone = from == NULL ? rq_no_memory(why) : rq_vfs_remove(vfs, from, why);
        rq_arena_clear(&arena);
        return gone;
    }
    const char *to_dir = dir == NULL ? NULL : rq_arena_printf(&arena, "archive/%s", dir);
    rq_err rc = to_dir == NULL ? rq_no_memory(why) : rq__archive_move(vfs, dir, to_dir, name, why);
    rq_arena_clear(&arena);
    return rc;
}

static rq_err archive_folder(rq_vfs *vfs, const rq_region_info *info, rq_slice family,
                             rq_error *why)
{
    rq_arena arena = {0};
    rq_dir_entry *entries;
    size_t count;
    const char *dir = rq__family_dir(&arena, info, family);
    rq_err rc =
        dir == NULL ? rq_no_memory(why) : rq_vfs_list(vfs, dir, &arena, &entries, &count, why);
    for (size_t i = 0; rc == RQ_OK && i < count; i++)
        if (!entries[i].is_dir && rq__store_file_name_ok(rq_slice_cstr(entries[i].name)))
            rc = rq__archive_file(vfs, info, family, entries[i].name, why);
    rq_arena_clear(&arena);
    return rc;
}

/* --- removing --------------------------------------------------------------------------------- */

static rq_err remove_folder(rq_vfs *vfs, const char *dir, rq_error *why)
{
    rq_stat st;
    rq_err rc = rq_vfs_stat(vfs, dir, &st, NULL);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    RQ_TRY(rq_vfs_remove_tree(vfs, dir, why));
    return rq_vfs_sync_parent(vfs, dir, why);
}

static rq_err destroy(rq_engine *e, rq_arena *arena, const rq_region_info *info, rq_error *why)
{
    rq_vfs *vfs = e->env.vfs;
    rq__claimed claimed;
    const char *dir = rq__region_dir(arena, info);
    if (dir == NULL) return rq_no_memory(why);
    if (e->cluster != NULL) RQ_TRY(rq__owned_claim(e, info->encoded, arena, &claimed, why));
    rq_dir_entry *entries = NULL;
    size_t count = 0;
    rq_err rc = rq_vfs_list(vfs, dir, arena, &entries, &count, NULL);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND)
        return rq_fail(why, rc, "%s: %s", dir, rq_err_text(rc));
    for (size_t i = 0; i < count; i++)
        if (rq_region_is_family_folder(&entries[i]))
            RQ_TRY(archive_folder(vfs, info, rq_slice_cstr(entries[i].name), why));
    RQ_TRY(remove_folder(vfs, dir, why));
    RQ_TRY(rq__nonce_files_remove(vfs, info->encoded, why));
    /* Last: as long as there is a folder or a manifest, the region's records in the log are kept. */
    return e->cluster != NULL ? rq__owned_remove(e, info->encoded, &claimed, why)
                              : rq__manifest_remove(vfs, info->encoded, why);
}

rq_err rq_region_destroy(rq_engine *e, const rq_region_info *info, rq_error *why)
{
    rq_arena arena = {0};
    rq_err rc = destroy(e, &arena, info, why);
    rq_arena_clear(&arena);
    if (rc != RQ_OK) return rc;
    rq__recovery_drop(e, info->encoded);
    return RQ_OK;
}

/* --- archiving and removing in batches -------------------------------------------------------- */

#define LINK_TRIES_MAX 16 /* the archive's cleaner may remove an empty folder */

static rq_err link_file(rq_vfs *vfs, rq_arena *arena, const char *dir, const char *name,
                        rq_error *why)
{
    rq_error own = {0};
    rq_err rc = RQ_E_NOT_FOUND;
    const char *from = rq_arena_printf(arena, "%s/%s", dir, name);
    const char *to_dir = rq_arena_printf(arena, "archive/%s", dir);
    const char *to = rq_arena_printf(arena, "archive/%s/%s", dir, name);
    if (from == NULL || to_dir == NULL || to == NULL) return rq_no_memory(why);
    for (int i = 0; i < LINK_TRIES_MAX && rc == RQ_E_NOT_FOUND; i++) {
        RQ_TRY(rq__make_folders(vfs, arena, to_dir, why));
        rc = rq_vfs_link(vfs, from, to, &own);
    }
    return rc == RQ_OK || rc == RQ_E_EXISTS ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}

static rq_err link_family(rq_vfs *vfs, rq_arena *arena, const char *dir, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    RQ_TRY(rq_vfs_list(vfs, dir, arena, &entries, &count, why));
    for (size_t i = 0; i < count; i++) {
        rq_store_name parts;
        rq_store_name_parse(rq_slice_cstr(entries[i].name), &parts);
        if (!entries[i].is_dir && rq__store_file_name_ok(rq_slice_cstr(entries[i].name)) &&
            !parts.is_reference && !parts.is_link)
            RQ_TRY(link_file(vfs, arena, dir, entries[i].name, why));
    }
    return RQ_OK;
}

static rq_err archive_region(rq_vfs *vfs, rq_arena *arena, const rq_region_info *info,
                             rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    const char *dir = rq__region_dir(arena, info);
    if (dir == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_list_if_any(vfs, dir, arena, &entries, &count, why));
    for (size_t i = 0; i < count; i++) {
        if (!rq_region_is_family_folder(&entries[i])) continue;
        const char *family = rq_arena_printf(arena, "%s/%s", dir, entries[i].name);
        RQ_TRY(family == NULL ? rq_no_memory(why) : link_family(vfs, arena, family, why));
    }
    return RQ_OK;
}

rq_err rq_region_archive(rq_vfs *batch, const rq_region_info *info, rq_error *why)
{
    rq_arena arena = {0};
    rq_err rc = archive_region(batch, &arena, info, why);
    rq_arena_clear(&arena);
    return rc;
}

static rq_err remove_slots(rq_vfs *batch, rq_arena *arena, const char *encoded, rq_error *why)
{
    for (int i = 0; i < 2; i++) {
        const char *slot = rq_arena_printf(arena, RQ__MANIFEST_DIR "/%s.%d", encoded, i);
        RQ_TRY(slot == NULL ? rq_no_memory(why) : rq_vfs_remove_tree(batch, slot, why));
    }
    return RQ_OK;
}

static rq_err remove_region(rq_engine *e, rq_vfs *batch, rq_arena *arena,
                            const rq_region_info *info, rq_error *why)
{
    rq__claimed claimed;
    const char *dir = rq__region_dir(arena, info);
    if (dir == NULL) return rq_no_memory(why);
    if (e->cluster != NULL) RQ_TRY(rq__owned_claim(e, info->encoded, arena, &claimed, why));
    RQ_TRY(rq_vfs_remove_tree(batch, dir, why));
    RQ_TRY(rq__nonce_files_remove(batch, info->encoded, why));
    return e->cluster != NULL ? rq__owned_remove(e, info->encoded, &claimed, why)
                              : remove_slots(batch, arena, info->encoded, why);
}

rq_err rq_region_remove(rq_engine *e, rq_vfs *batch, const rq_region_info *info, rq_error *why)
{
    rq_arena arena = {0};
    rq_err rc = remove_region(e, batch, &arena, info, why);
    rq_arena_clear(&arena);
    if (rc == RQ_OK) rq__recovery_drop(e, info->encoded);
    return rc;
}

static rq_err take_files(rq_vfs *vfs, rq_arena *arena, const rq_region_info *info,
                         rq__manifest_family *f, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    const char *dir = rq__family_dir(arena, info, f->name);
    if (dir == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_list(vfs, dir, arena, &entries, &count, why));
    f->files = rq_arena_calloc(arena, count + 1, sizeof *f->files);
    if (f->files == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++) {
        rq_slice name = rq_slice_cstr(entries[i].name);
        if (!entries[i].is_dir && rq__store_file_name_ok(name)) f->files[f->file_count++] = name;
    }
    return RQ_OK;
}

/* The folders of a region without a manifest, which was never flushed or closed. */
static rq_err manifest_of_folders(rq_vfs *vfs, rq_arena *arena, const rq_region_info *info,
                                  rq__manifest *ret, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    const char *dir = rq__region_dir(arena, info);
    if (dir == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_list(vfs, dir, arena, &entries, &count, why));
    *ret = (rq__manifest){.next_seqid = 1};
    ret->families = rq_arena_calloc(arena, count + 1, sizeof *ret->families);
    if (ret->families == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++) {
        if (!rq_region_is_family_folder(&entries[i])) continue;
        rq__manifest_family *f = &ret->families[ret->family_count++];
        f->name = rq_slice_cstr(entries[i].name);
        RQ_TRY(take_files(vfs, arena, info, f, why));
    }
    return RQ_OK;
}

static rq_err drop_family(rq_vfs *vfs, rq_arena *arena, const rq_region_info *info, rq_slice family,
                          rq_error *why)
{
    rq__manifest m;
    rq_error own = {0};
    uint64_t generation = 0;
    rq_err rc = rq__manifest_read(vfs, info->encoded, arena, &m, &generation, &own);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", own.message);
    if (rc == RQ_E_NOT_FOUND) {
        generation = 0;
        RQ_TRY(manifest_of_folders(vfs, arena, info, &m, why));
    }
    const rq__manifest_family *f = rq__manifest_family_of(&m, family);
    if (f != NULL) {
        size_t i = (size_t)(f - m.families);
        m.family_count--;
        memmove(&m.families[i], &m.families[i + 1], (m.family_count - i) * sizeof *m.families);
        RQ_TRY(rq__manifest_write(vfs, info->encoded, &m, &generation, NULL, why));
    }
    return RQ_OK;
}

/* Once a manifest does not name the family, its records in the log are ignored. */
static rq_err remove_family(rq_engine *e, rq_arena *arena, const rq_region_info *info,
                            rq_slice family, rq_error *why)
{
    rq_vfs *vfs = e->env.vfs;
    RQ_TRY(e->cluster != NULL ? rq__owned_drop_family(e, info->encoded, arena, family, why)
                              : drop_family(vfs, arena, info, family, why));
    const char *dir = rq__family_dir(arena, info, family);
    if (dir == NULL) return rq_no_memory(why);
    rq_stat st;
    if (rq_vfs_stat(vfs, dir, &st, NULL) == RQ_E_NOT_FOUND) return RQ_OK;
    RQ_TRY(archive_folder(vfs, info, family, why));
    return remove_folder(vfs, dir, why);
}

rq_err rq_region_remove_family(rq_engine *e, const rq_region_info *info, rq_slice family,
                               rq_error *why)
{
    rq_arena arena = {0};
    rq_err rc = remove_family(e, &arena, info, family, why);
    rq_arena_clear(&arena);
    return rc;
}
