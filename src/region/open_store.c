/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a store of a region: which files it has.
 *
 * If manifest and folder differ, which one counts (manifest.h, IN_USE):
 *  - no manifest: the folder (HBase made the region, or it was never flushed)
 *  - IN_USE: the manifest; other files are leftovers of a crash: complete HFiles go to the archive,
 *    incomplete ones are removed
 *  - not IN_USE, and equal: both
 *  - not IN_USE, different: the folder; another program changed it after our clean close
 *
 * Where the FILE tracker keeps a list (filelist.h), the list stands for the folder. In a cluster only the
 * manifest counts. */
#include "region/engine_priv.h"
#include "region/filelist.h"
#include "region/opening.h"
#include "region/tracking.h"
#include "store/reference.h"

#include <stdlib.h>

/* --- files of a family ------------------------------------------------------------------------ */

typedef struct names {
    const char **items;
    size_t count;
} names;

/* Regular files in the folder whose names could be store files', ascending. */
static rq_err list_folder(rq_vfs *vfs, const char *dir, rq_arena *arena, names *ret, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    *ret = (names){0};
    rq_err rc = rq_vfs_list(vfs, dir, arena, &entries, &count, why);
    if (rc != RQ_OK) return rc;
    ret->items = rq_arena_calloc(arena, count + 1, sizeof *ret->items);
    if (ret->items == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++) {
        if (entries[i].is_dir || entries[i].name[0] == '.') continue;
        /* Skipping a file would lose its cells. */
        if (!rq__store_file_name_ok(rq_slice_cstr(entries[i].name)))
            return rq_fail(why, RQ_E_UNSUPPORTED,
                           "%s/%s is not a store file that this version can read", dir,
                           entries[i].name);
        ret->items[ret->count++] = entries[i].name;
    }
    return RQ_OK;
}

static int name_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool has(const names *ascending, const char *name)
{
    return ascending->count > 0 && bsearch(&name, ascending->items, ascending->count,
                                           sizeof *ascending->items, name_order) != NULL;
}

/* The names of a family's files in the manifest, in its order (NULL: it has none). */
static rq_err files_named(const rq__manifest_family *f, rq_arena *arena, names *ret, rq_error *why)
{
    size_t count = f == NULL ? 0 : f->file_count;
    *ret = (names){rq_arena_calloc(arena, count + 1, sizeof *ret->items), 0};
    if (ret->items == NULL) return rq_no_memory(why);
    for (; ret->count < count; ret->count++) {
        ret->items[ret->count] = rq_arena_cstr(arena, f->files[ret->count]);
        if (ret->items[ret->count] == NULL) return rq_no_memory(why);
    }
    return RQ_OK;
}

/* A sorted copy, for searches: after bulk loads a store may have thousands of files. */
static rq_err sort(const names *n, rq_arena *arena, names *ret, rq_error *why)
{
    *ret = (names){rq_arena_alloc(arena, (n->count + 1) * sizeof *ret->items), n->count};
    if (ret->items == NULL) return rq_no_memory(why);
    if (n->count == 0) return RQ_OK;
    memcpy(ret->items, n->items, n->count * sizeof *ret->items);
    qsort(ret->items, ret->count, sizeof *ret->items, name_order);
    return RQ_OK;
}

/* A file of a crashed flush or compaction, or a compaction's input that was not archived in
 * time. */
static rq_err put_aside(rq_region *r, rq_slice family, const char *dir, const char *name,
                        rq_arena *arena, rq_error *why)
{
    const char *path = rq_arena_printf(arena, "%s/%s", dir, name);
    if (path == NULL) return rq_no_memory(why);
    rq__region_removes_names(r);
    rq_store_name parts;
    rq_store_name_parse(rq_slice_cstr(name), &parts);
    if (parts.is_reference || parts.is_link) { /* its cells were rewritten */
        RQ_TRY(rq__archive_file(r->env.vfs, &r->info, family, name, why));
        return rq_vfs_sync_dir(r->env.vfs, dir, why);
    }
    rq_hfile_reader *reader;
    rq_error broken = {0};
    rq_err rc = rq_hfile_reader_open(r->env.vfs, path, NULL, false, &reader, &broken);
    if (rc == RQ_E_CORRUPT || rc == RQ_E_INVALID) {
        RQ_TRY(rq_vfs_remove(r->env.vfs, path, why));
        return rq_vfs_sync_dir(r->env.vfs, dir, why);
    }
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", broken.message);
    rq_hfile_reader_unref(reader);
    rq_log_info(r->env.log, "region", "moved %s to archive/: the manifest does not list it", path);
    return rq__archive_file(r->env.vfs, &r->info, family, name, why);
}

static rq_err files_by_manifest(rq_region *r, const names *named, const names *ascending,
                                rq_slice family, const char *dir, const names *folder,
                                rq_arena *arena, rq_error *why)
{
    for (size_t i = 0; i < named->count; i++)
        if (!has(folder, named->items[i]))
            return rq_fail(why, RQ_E_CORRUPT,
                           "store file %s/%s is in the manifest, but does not exist", dir,
                           named->items[i]);
    for (size_t i = 0; i < folder->count; i++) {
        rq_error own = {0};
        if (has(ascending, folder->items[i])) continue;
        rq_err rc = put_aside(r, family, dir, folder->items[i], arena, &own);
        /* No manifest names it, so it may stay until a closing or opening has space to move it. */
        if (rc != RQ_OK && rc != RQ_E_NO_SPACE) return rq_fail(why, rc, "%s", own.message);
    }
    return RQ_OK;
}

/* Keeps only the files in the FILE tracker's list. Without a list, a folder written by HBase has no
 * files (HBASE: FileBasedStoreFileTracker), and one of ours has all its files. */
static rq_err by_filelist(rq_region *r, const rq_family_schema *schema, const char *dir,
                          bool has_manifest, rq_arena *arena, names *folder, rq_error *why)
{
    rq__filelist list = {0};
    if (!rq__tracking_reads_list(r->schema, schema)) return RQ_OK;
    rq_err rc = rq__filelist_read(r->env.vfs, dir, arena, &list, why);
    if (rc == RQ_E_NOT_FOUND && has_manifest) return RQ_OK;
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rc;
    names listed = {rq_arena_calloc(arena, list.count + 1, sizeof *listed.items), 0};
    if (listed.items == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < list.count; i++) {
        const char *name = rq_arena_cstr(arena, list.files[i].name);
        if (name == NULL) return rq_no_memory(why);
        if (!has(folder, name))
            return rq_fail(why, RQ_E_CORRUPT,
                           "store file %s/%s is in the list of files, but does not exist", dir,
                           name);
        listed.items[listed.count++] = name;
    }
    *folder = listed;
    return RQ_OK;
}

/* A family added by an alter has no folder yet. In a cluster the names are not needed. */
static rq_err list_or_make(const rq_region *r, const char *dir, rq_arena *arena, names *ret,
                           rq_error *why)
{
    bool there;
    rq_error detail = {0};
    if (r->owned != NULL) {
        RQ_TRY(rq_vfs_exists(r->env.vfs, dir, &there, why));
        return there ? RQ_OK : rq_vfs_mkdirs(r->env.vfs, dir, why);
    }
    rq_err rc = list_folder(r->env.vfs, dir, arena, ret, &detail);
    if (rc == RQ_E_NOT_FOUND) return rq_vfs_mkdirs(r->env.vfs, dir, why);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

static rq_err files_of_family(rq_region *r, const rq__manifest *m, bool has_manifest,
                              const rq_family_schema *schema, rq_arena *arena, names *ret,
                              rq_error *why)
{
    rq_slice family = schema->name;
    const char *dir = rq__family_dir(arena, &r->info, family);
    names folder = {0};
    if (dir == NULL) return rq_no_memory(why);
    RQ_TRY(list_or_make(r, dir, arena, &folder, why));
    const rq__manifest_family *f =
        has_manifest || r->owned != NULL ? rq__manifest_family_of(m, family) : NULL;
    names ascending;
    RQ_TRY(files_named(f, arena, ret, why));
    /* In a cluster other files in the folder may be about to be committed by another server. If a
     * named file is missing, opening the store fails. */
    if (r->owned != NULL) return RQ_OK;
    RQ_TRY(sort(ret, arena, &ascending, why));
    if (has_manifest && m->in_use)
        return files_by_manifest(r, ret, &ascending, family, dir, &folder, arena, why);
    RQ_TRY(by_filelist(r, schema, dir, has_manifest, arena, &folder, why));
    *ret = folder;
    bool same = f != NULL && f->file_count == folder.count;
    for (size_t i = 0; i < folder.count && same; i++)
        same = has(&ascending, folder.items[i]);
    return same ? RQ_OK : rq__drop_compacted(r, family, dir, arena, ret->items, &ret->count, why);
}

/* --- stores ----------------------------------------------------------------------------------- */

/* HBASE: DefaultMobStoreCompactor reads them from the store's configuration. */
static rq_mob_options mob_options(const rq_region *r, const rq_family_schema *f)
{
    const rq_engine *e = r->engine;
    rq_mob_options o = {.files = e->mob_files,
                        .start_key = r->info.start_key,
                        .region = r->info.encoded,
                        .optimized = e->mob_optimized,
                        .file_bytes_max = e->mob_file_bytes_max,
                        .discard_missing = e->mob_discard_missing};
    rq_slice text;
    if (rq_schema_setting(r->schema, f, "hbase.mob.compaction.type", &text))
        o.optimized = rq_slice_eq(text, RQ_SLICE_LIT("optimized"));
    if (rq_schema_setting(r->schema, f, "hbase.unsafe.mob.discard.miss", &text))
        o.discard_missing = rq_slice_eq(text, RQ_SLICE_LIT("true"));
    rq__setting_u64(r->schema, f, "hbase.mob.compactions.max.file.size", &o.file_bytes_max);
    return o;
}

rq_err rq__open_store(rq_region *r, size_t i, const rq__manifest *m, bool has_manifest,
                      rq_arena *arena, rq_error *why)
{
    const rq_family_schema *f = &r->schema->families[i];
    rq__region_store *s = &r->stores[i];
    names files = {0};
    RQ_TRY(files_of_family(r, m, has_manifest, f, arena, &files, why));
    rq_mob_options mob = mob_options(r, f);
    rq_compaction_settings compaction = {0};
    r->compaction_site = atomic_load(&r->engine->compaction);
    rq__compaction_settings_of_store(r, f, &compaction);
    if (rq__compaction_publish(&s->compaction, &compaction) != RQ_OK) return rq_no_memory(why);
    rq_store_options o = {
        .env = &r->env,
        .cache = r->engine->cache,
        .slabs = r->engine->slabs,
        .table = r->schema,
        .family = f,
        .dir = rq__family_dir(arena, &r->info, f->name),
        .files = &r->engine->files,
        .caching = &r->engine->caching,
        .is_date_tiered = compaction.policy == RQ_COMPACT_DATE_TIERED,
        .versions_alive = &r->engine->versions_alive,
        .version_freed = rq__engine_version_freed,
        .version_freed_context = r->engine,
        .mob = &mob,
    };
    if (o.dir == NULL) return rq_no_memory(why);
    RQ_TRY(rq_store_open(&o, files.items, files.count, &s->store, why));
    s->family = rq_store_schema(s->store)->name;
    r->store_count = i + 1;
    s->region = r;
    s->task.task.run = rq__region_compact_task;
    const rq__manifest_family *mf = has_manifest ? rq__manifest_family_of(m, f->name) : NULL;
    s->flushed = mf != NULL ? mf->flushed : has_manifest ? RQ__FLUSHED_OF_NEW_FAMILY : 0;
    return RQ_OK;
}

rq_err rq__sweep_store(rq_region *r, const rq__region_store *s, rq_arena *arena, rq_error *why)
{
    names folder, live;
    const char *dir = rq_store_dir(s->store);
    const rq_store_version *v = rq_store_version_now(s->store); /* no thread publishes any more */
    RQ_TRY(list_folder(r->env.vfs, dir, arena, &folder, why));
    live = (names){rq_arena_alloc(arena, (v->file_count + 1) * sizeof *live.items), v->file_count};
    if (live.items == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < live.count; i++)
        live.items[i] = v->files[i].name;
    if (live.count > 1) qsort(live.items, live.count, sizeof *live.items, name_order);
    for (size_t i = 0; i < folder.count; i++) {
        if (!has(&live, folder.items[i]))
            RQ_TRY(put_aside(r, rq_store_schema(s->store)->name, dir, folder.items[i], arena, why));
    }
    bool has_removed = atomic_load_explicit(&r->has_removed_names, memory_order_relaxed);
    return has_removed ? rq_vfs_sync_dir(r->env.vfs, dir, why) : RQ_OK;
}
