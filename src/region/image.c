/* SPDX-License-Identifier: Apache-2.0 */
/* A folder at one moment; contract in image.h. */
#include "region/image.h"

#include "region/engine_priv.h"
#include "store/mob_files.h"
#include "store/reference.h"
#include "wal/image.h"

#include <stdlib.h>

#define DEPTH_MAX 24
#define BYTES_MAX ((size_t)64 * 1024 * 1024) /* of a small file */
#define INLINE_MAX ((uint64_t)1024 * 1024)   /* larger ones are listed by path and size */
#define LINKS ".links-"
#define NONCES_MAX RQ__NONCE_FILE_BYTES_MAX

typedef struct taking {
    rq_vfs *vfs;
    rq_engine *engine; /* NULL: a stopped folder */
    rq_holder *holder; /* NULL likewise */
    const rq_image_sink *sink;
    bool has_snapshots; /* HBase's: then the whole archive may be referred to */
} taking;

static const char *below(rq_arena *a, const char *dir, const char *name)
{
    return dir[0] == '\0' ? rq_arena_printf(a, "%s", name) : rq_arena_printf(a, "%s/%s", dir, name);
}

/* --- parts ------------------------------------------------------------------------------------ */

static bool is_cache_file(const taking *t, const char *path)
{
    return t->engine != NULL && t->engine->cache_path != NULL &&
           strcmp(t->engine->cache_path, path) == 0;
}

static rq_err pass(const taking *t, const rq_image_part *part, rq_error *why)
{
    if (part->kind == RQ_IMAGE_FILE && is_cache_file(t, part->path)) return RQ_OK;
    if (part->kind == RQ_IMAGE_FILE && t->holder != NULL &&
        rq_holder_add(t->holder, part->path) != RQ_OK)
        return rq_no_memory(why);
    return t->sink->take(t->sink->ctx, part, why);
}

static rq_err pass_dir(const taking *t, const char *path, rq_error *why)
{
    return pass(t, &(rq_image_part){.kind = RQ_IMAGE_DIR, .path = path}, why);
}

static rq_err pass_bytes(const taking *t, const char *path, size_t max, rq_error *why)
{
    rq_arena a = {0};
    rq_image_part part = {.kind = RQ_IMAGE_BYTES, .path = path};
    rq_err rc = rq_vfs_read_file(t->vfs, path, max, &a, &part.bytes, why);
    if (rc == RQ_OK) rc = pass(t, &part, why);
    rq_arena_clear(&a);
    return rc;
}

/* RQ_E_NOT_FOUND: the file was removed meanwhile. */
static rq_err pass_file(const taking *t, const char *path, rq_error *why)
{
    rq_stat st;
    RQ_TRY(rq_vfs_stat(t->vfs, path, &st, why));
    return pass(t, &(rq_image_part){.kind = RQ_IMAGE_FILE, .path = path, .size = st.size}, why);
}

/* A small file is listed with its bytes. */
static rq_err pass_any(const taking *t, const char *path, rq_error *why)
{
    rq_stat st;
    RQ_TRY(rq_vfs_stat(t->vfs, path, &st, why));
    return st.size <= INLINE_MAX ? pass_bytes(t, path, (size_t)INLINE_MAX, why)
                                 : pass_file(t, path, why);
}

/* --- any tree --------------------------------------------------------------------------------- */

static bool is_store_file(const char *name)
{
    rq_store_name parts;
    rq_slice s = rq_slice_cstr(name);
    if (!rq__store_file_name_ok(s)) return false;
    rq_store_name_parse(s, &parts);
    return !parts.is_reference && !parts.is_link;
}

/* Called for each file of a walk. The walk lists folders and descends into them by itself. */
typedef rq_err (*each_file)(const taking *t, const char *dir, const char *name, const char *path,
                            rq_error *why);

static rq_err walk(const taking *t, const char *dir, unsigned depth, each_file each, rq_error *why)
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count = 0;
    if (depth > DEPTH_MAX) return rq_fail(why, RQ_E_STATE, "%s: too deep", dir);
    rq_err rc = rq_vfs_list_if_any(t->vfs, dir, &a, &entries, &count, why);
    if (rc == RQ_OK) rc = pass_dir(t, dir, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        const char *path = below(&a, dir, entries[i].name);
        if (path == NULL)
            rc = rq_no_memory(why);
        else if (entries[i].is_dir)
            rc = walk(t, path, depth + 1, each, why);
        else
            rc = each(t, dir, entries[i].name, path, why);
    }
    rq_arena_clear(&a);
    return rc;
}

static rq_err each_any(const taking *t, const char *dir, const char *name, const char *path,
                       rq_error *why)
{
    (void)dir;
    return is_store_file(name) ? pass_file(t, path, why) : pass_any(t, path, why);
}

static rq_err each_nonces(const taking *t, const char *dir, const char *name, const char *path,
                          rq_error *why)
{
    (void)dir;
    (void)name;
    return pass_bytes(t, path, NONCES_MAX, why);
}

/* A MOB file that is still being written belongs to a flush that had not committed when the regions
 * were listed, so no manifest of the list refers to it. */
static rq_err each_mob(const taking *t, const char *dir, const char *name, const char *path,
                       rq_error *why)
{
    bool being_written =
        t->engine != NULL && rq_mob_files_is_being_written(t->engine->mob_files, name);
    if (being_written) return RQ_OK;
    return strchr(name, '=') != NULL ? pass_any(t, path, why) : each_any(t, dir, name, path, why);
}

/* --- the archive ------------------------------------------------------------------------------ */

static bool is_link_folder(const char *name)
{
    return strncmp(name, LINKS, sizeof LINKS - 1) == 0;
}

static int compare_with_links(const void *key, const void *entry)
{
    const char *name = ((const rq_dir_entry *)entry)->name;
    int c = strncmp(LINKS, name, sizeof LINKS - 1);
    return c != 0 ? c : strcmp(key, name + sizeof LINKS - 1);
}

/* HBase notes links to a file (of clones) in the folder .links-FILE beside it. The entries are sorted. */
static bool has_links(const rq_dir_entry *entries, size_t count, const char *name)
{
    return bsearch(name, entries, count, sizeof *entries, compare_with_links) != NULL;
}

static rq_err walk_archive(const taking *t, const char *dir, unsigned depth, rq_error *why)
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count = 0;
    if (depth > DEPTH_MAX) return rq_fail(why, RQ_E_STATE, "%s: too deep", dir);
    rq_err rc = rq_vfs_list_if_any(t->vfs, dir, &a, &entries, &count, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        const char *path = below(&a, dir, entries[i].name);
        if (path == NULL)
            rc = rq_no_memory(why);
        else if (entries[i].is_dir && is_link_folder(entries[i].name))
            rc = walk(t, path, depth + 1, each_any, why);
        else if (entries[i].is_dir)
            rc = walk_archive(t, path, depth + 1, why);
        else if (t->has_snapshots || has_links(entries, count, entries[i].name))
            rc = pass_file(t, path, why);
    }
    rq_arena_clear(&a);
    return rc;
}

/* --- an open region --------------------------------------------------------------------------- */

/* A region's parts, collected under its gates and passed to the sink after leaving them: a flush
 * never waits for the sink. */
typedef struct listed {
    const taking *taking;
    rq_region *region;
    rq_arena arena;
    rq_image_part *parts;
    size_t count, room;
    rq__manifest manifest;
} listed;

static rq_err add(listed *l, rq_image_part part)
{
    if (l->count == l->room) {
        size_t room = l->room == 0 ? 32 : l->room * 2;
        rq_image_part *more = realloc(l->parts, room * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        l->parts = more;
        l->room = room;
    }
    l->parts[l->count++] = part;
    return RQ_OK;
}

static rq_err add_bytes(listed *l, const char *path, size_t max, rq_error *why)
{
    rq_image_part part = {.kind = RQ_IMAGE_BYTES, .path = path};
    RQ_TRY(rq_vfs_read_file(l->taking->vfs, path, max, &l->arena, &part.bytes, why));
    return add(l, part) == RQ_OK ? RQ_OK : rq_no_memory(why);
}

/* A binary search: the manifest's names are sorted, and may be many, because clients decide how many files a bulk load
 * has. It must be fast, because flushes of the region wait meanwhile. */
static bool manifest_names(const listed *l, rq_slice family, const char *name)
{
    const rq__manifest_family *f = rq__manifest_family_of(&l->manifest, family);
    rq_slice key = rq_slice_cstr(name);
    return f != NULL && f->file_count > 0 &&
           bsearch(&key, f->files, f->file_count, sizeof *f->files, rq_slice_order) != NULL;
}

static rq_err add_store_file(listed *l, const char *path, rq_error *why)
{
    rq_stat st;
    RQ_TRY(rq_vfs_stat(l->taking->vfs, path, &st, why));
    rq_image_part part = {.kind = RQ_IMAGE_FILE, .path = path, .size = st.size};
    return add(l, part) == RQ_OK ? RQ_OK : rq_no_memory(why);
}

/* Whether a snapshot or a clone may refer to it. */
static bool may_be_referred_to(const listed *l, const char *path)
{
    rq_stat st;
    rq_arena a = {0};
    if (l->taking->has_snapshots) return true;
    const char *name = strrchr(path, '/') + 1;
    const char *links =
        rq_arena_printf(&a, "archive/%.*s.links-%s", (int)(name - path), path, name);
    bool may = links == NULL || rq_vfs_stat(l->taking->vfs, links, &st, NULL) != RQ_E_NOT_FOUND;
    rq_arena_clear(&a);
    return may;
}

/* An input of a compaction, before it is moved to the archive, is listed as if it were there: an
 * opening with a manifest in use moves it. A file that is still being written is incomplete. */
static rq_err add_unnamed(listed *l, const char *path, rq_error *why)
{
    rq_error own = {0};
    rq_hfile_reader *reader;
    if (!l->region->manifest.in_use || !may_be_referred_to(l, path)) return RQ_OK;
    rq_err rc = rq_hfile_reader_open(l->taking->vfs, path, NULL, false, &reader, &own);
    if (rc == RQ_E_CORRUPT || rc == RQ_E_INVALID) return RQ_OK;
    if (rc == RQ_E_NOT_FOUND) return RQ_OK; /* it is in the archive, which is listed later */
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", own.message);
    rq_image_part part = {
        .kind = RQ_IMAGE_FILE, .path = path, .size = rq_hfile_reader_info(reader)->size_bytes};
    rq_hfile_reader_unref(reader);
    return add(l, part) == RQ_OK ? RQ_OK : rq_no_memory(why);
}

static rq_err add_tree(listed *l, const char *dir, rq_slice family, unsigned depth, rq_error *why);

static rq_err add_entry(listed *l, const char *path, const rq_dir_entry *e, rq_slice family,
                        unsigned depth, rq_error *why)
{
    if (path == NULL) return rq_no_memory(why);
    if (e->is_dir)
        return add_tree(l, path, depth == 0 ? rq_slice_cstr(e->name) : (rq_slice){0}, depth + 1,
                        why);
    bool in_family = depth == 1 && rq__manifest_family_of(&l->manifest, family) != NULL;
    if (!in_family || !rq__store_file_name_ok(rq_slice_cstr(e->name)))
        return add_bytes(l, path, BYTES_MAX, why);
    bool named = manifest_names(l, family, e->name);
    if (is_store_file(e->name))
        return named ? add_store_file(l, path, why) : add_unnamed(l, path, why);
    return named ? add_bytes(l, path, BYTES_MAX, why) : RQ_OK;
}

/* The region's folder (depth 0), a family's (1), and what lies in those. */
static rq_err add_tree(listed *l, const char *dir, rq_slice family, unsigned depth, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    if (depth > DEPTH_MAX) return rq_fail(why, RQ_E_STATE, "%s: too deep", dir);
    RQ_TRY(rq_vfs_list_if_any(l->taking->vfs, dir, &l->arena, &entries, &count, why));
    if (add(l, (rq_image_part){.kind = RQ_IMAGE_DIR, .path = dir}) != RQ_OK)
        return rq_no_memory(why);
    for (size_t i = 0; i < count; i++)
        RQ_TRY(
            add_entry(l, below(&l->arena, dir, entries[i].name), &entries[i], family, depth, why));
    return RQ_OK;
}

/* The slots as they are: one of them is the manifest, the other an older one or nothing. */
static rq_err add_slots(listed *l, rq_error *why)
{
    for (int i = 0; i < 2; i++) {
        rq_error own = {0};
        const char *path =
            rq_arena_printf(&l->arena, RQ__MANIFEST_DIR "/%s.%d", l->region->info.encoded, i);
        if (path == NULL) return rq_no_memory(why);
        rq_err rc = add_bytes(l, path, BYTES_MAX, &own);
        if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", own.message);
    }
    return RQ_OK;
}

static rq_err add_nonces(listed *l, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    const char *dir = rq_arena_printf(&l->arena, RQ__NONCE_DIR "/%s", l->region->info.encoded);
    if (dir == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_list_if_any(l->taking->vfs, dir, &l->arena, &entries, &count, why));
    for (size_t i = 0; i < count; i++) {
        const char *path = below(&l->arena, dir, entries[i].name);
        if (path == NULL) return rq_no_memory(why);
        RQ_TRY(add_bytes(l, path, NONCES_MAX, why));
    }
    return RQ_OK;
}

/* REQUIRES: flush gate, commit gate. */
static rq_err list_open(listed *l, const char *dir, rq_error *why)
{
    rq_region *r = l->region;
    if (r->manifest.in_doubt)
        return rq_fail(why, RQ_E_STATE,
                       "region %s: a write of its manifest failed, so the manifest's content is "
                       "uncertain; try again when the disk works",
                       r->info.encoded);
    RQ_TRY(rq__region_files(r, &l->arena, &l->manifest));
    RQ_TRY(add_slots(l, why));
    RQ_TRY(add_nonces(l, why));
    return add_tree(l, dir, (rq_slice){0}, 0, why);
}

static rq_err report_open(const taking *t, rq_region *r, const char *dir, rq_error *why)
{
    listed l = {.taking = t, .region = r};
    rq__gate_enter(&r->flush_gate, r->env.executor); /* the nonces do not change either */
    rq__gate_enter(&r->commit_gate, r->env.executor);
    rq_err rc = list_open(&l, dir, why);
    rq__gate_leave(&r->commit_gate, r->env.executor);
    rq__gate_leave(&r->flush_gate, r->env.executor);
    for (size_t i = 0; i < l.count && rc == RQ_OK; i++)
        rc = pass(t, &l.parts[i], why);
    free(l.parts);
    rq_arena_clear(&l.arena);
    return rc;
}

/* --- tables ----------------------------------------------------------------------------------- */

static rq_region *open_region(const taking *t, const char *encoded)
{
    return t->engine == NULL ? NULL : rq__engine_find(t->engine, encoded);
}

static rq_err report_region(const taking *t, const char *dir, const char *encoded, rq_error *why)
{
    rq_region *r = open_region(t, encoded);
    if (r == NULL) return walk(t, dir, 0, each_any, why);
    rq_err rc = report_open(t, r, dir, why);
    rq_region_unref(r);
    return rc;
}

/* data/ (level 0), a namespace (1), a table (2). */
static rq_err report_data(const taking *t, const char *dir, unsigned level, rq_error *why)
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count = 0;
    rq_err rc = rq_vfs_list_if_any(t->vfs, dir, &a, &entries, &count, why);
    if (rc == RQ_OK) rc = pass_dir(t, dir, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        const char *path = below(&a, dir, entries[i].name);
        bool inner = entries[i].is_dir && entries[i].name[0] != '.';
        if (path == NULL)
            rc = rq_no_memory(why);
        else if (inner && level < 2)
            rc = report_data(t, path, level + 1, why);
        else if (inner)
            rc = report_region(t, path, entries[i].name, why);
        else
            rc = entries[i].is_dir ? walk(t, path, 0, each_any, why) : pass_any(t, path, why);
    }
    rq_arena_clear(&a);
    return rc;
}

static rq_err report_master_data(const taking *t, const char *dir, rq_error *why)
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count = 0;
    rq_err rc = rq_vfs_list_if_any(t->vfs, dir, &a, &entries, &count, why);
    if (rc == RQ_OK) rc = pass_dir(t, dir, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        const char *path = below(&a, dir, entries[i].name);
        if (path == NULL)
            rc = rq_no_memory(why);
        else if (strcmp(entries[i].name, "data") == 0)
            rc = report_data(t, path, 0, why);
        else
            rc = entries[i].is_dir ? walk(t, path, 0, each_any, why) : pass_any(t, path, why);
    }
    rq_arena_clear(&a);
    return rc;
}

/* --- .rorqual --------------------------------------------------------------------------------- */

/* Whether the slot (NAME.0 or NAME.1) belongs to an open region, whose manifest was listed with it. */
static bool is_of_open_region(const taking *t, const char *slot)
{
    char encoded[RQ_ENCODED_NAME_LEN + 1];
    size_t len = strcspn(slot, ".");
    if (len >= sizeof encoded) return false;
    memcpy(encoded, slot, len);
    encoded[len] = '\0';
    rq_region *r = open_region(t, encoded);
    if (r == NULL) return false;
    rq_region_unref(r);
    return true;
}

/* Lists the manifests and nonces in .rorqual/regions and .rorqual/nonces that belong to no open
 * region. */
static rq_err list_unclaimed(const taking *t, const char *dir, rq_error *why)
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count = 0;
    rq_err rc = rq_vfs_list_if_any(t->vfs, dir, &a, &entries, &count, why);
    if (rc == RQ_OK) rc = pass_dir(t, dir, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        const char *path = below(&a, dir, entries[i].name);
        if (path == NULL)
            rc = rq_no_memory(why);
        else if (is_of_open_region(t, entries[i].name))
            rc = entries[i].is_dir ? pass_dir(t, path, why) : RQ_OK;
        else
            rc = entries[i].is_dir ? walk(t, path, 0, each_nonces, why)
                                   : pass_bytes(t, path, BYTES_MAX, why);
    }
    rq_arena_clear(&a);
    return rc;
}

static rq_err report_log(const taking *t, rq_error *why)
{
    rq_arena a = {0};
    rq_wal_image image;
    rq_err rc = pass_dir(t, ".rorqual/wal", why);
    if (rc == RQ_OK) rc = rq_wal_image_take(t->engine->wal, &a, &image, why);
    for (size_t i = 0; rc == RQ_OK && i < image.count; i++)
        rc = pass(t,
                  &(rq_image_part){.kind = RQ_IMAGE_LOG,
                                   .path = image.pieces[i].path,
                                   .size = image.pieces[i].bytes},
                  why);
    if (rc == RQ_OK)
        rc = pass(
            t,
            &(rq_image_part){.kind = RQ_IMAGE_BYTES, .path = image.last_path, .bytes = image.last},
            why);
    rq_arena_clear(&a);
    return rc;
}

static rq_err each_wal_file(const taking *t, const char *dir, const char *name, const char *path,
                            rq_error *why)
{
    rq_stat st;
    (void)dir;
    (void)name;
    RQ_TRY(rq_vfs_stat(t->vfs, path, &st, why));
    return pass(t, &(rq_image_part){.kind = RQ_IMAGE_LOG, .path = path, .size = st.size}, why);
}

/* Entries of .rorqual that concern this folder only, and are not copied. */
static bool is_not_copied(const char *name)
{
    static const char *const names[] = {"lock", "control", "aside", "wal", "backup", "incomplete"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static rq_err list_server_files(const taking *t, rq_error *why)
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count = 0;
    rq_err rc = rq_vfs_list_if_any(t->vfs, ".rorqual", &a, &entries, &count, why);
    if (rc == RQ_OK && count > 0) rc = pass_dir(t, ".rorqual", why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        const char *name = entries[i].name;
        const char *path = below(&a, ".rorqual", name);
        if (path == NULL)
            rc = rq_no_memory(why);
        else if (strcmp(name, "regions") == 0 || strcmp(name, "nonces") == 0)
            rc = list_unclaimed(t, path, why);
        else if (!is_not_copied(name))
            rc = entries[i].is_dir ? walk(t, path, 0, each_any, why) : pass_any(t, path, why);
    }
    rq_arena_clear(&a);
    if (rc != RQ_OK || count == 0) return rc;
    return t->engine != NULL ? report_log(t, why) : walk(t, ".rorqual/wal", 0, each_wal_file, why);
}

/* --- the root --------------------------------------------------------------------------------- */

static bool is_listed_separately(const char *name)
{
    static const char *const names[] = {"data",     "MasterData", "mobdir",    "archive",
                                        ".rorqual", "staging",    "lost+found"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static rq_err list_other_entries(const taking *t, const rq_dir_entry *entries, size_t count,
                                 rq_error *why)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = entries[i].name;
        if (is_listed_separately(name)) continue;
        RQ_TRY(entries[i].is_dir ? walk(t, name, 0, each_any, why) : pass_any(t, name, why));
    }
    return RQ_OK;
}

static rq_err report_all(taking *t, const rq_dir_entry *entries, size_t count, rq_error *why)
{
    for (size_t i = 0; i < count; i++)
        t->has_snapshots |= strcmp(entries[i].name, ".hbase-snapshot") == 0;
    RQ_TRY(report_data(t, "data", 0, why));
    RQ_TRY(report_master_data(t, "MasterData", why));
    /* Behind the regions: a MOB file that one of them refers to is there, or in the archive. */
    bool has_mob;
    RQ_TRY(rq_vfs_exists(t->vfs, "mobdir", &has_mob, why));
    if (has_mob) RQ_TRY(walk(t, "mobdir", 0, each_mob, why));
    RQ_TRY(walk_archive(t, "archive", 0, why));
    RQ_TRY(list_other_entries(t, entries, count, why));
    return list_server_files(t, why); /* the log last */
}

static rq_err take(taking *t, rq_error *why)
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count;
    rq_err rc = rq_vfs_list(t->vfs, "", &a, &entries, &count, why);
    if (rc == RQ_OK) rc = report_all(t, entries, count, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq_image_take(rq_engine *e, rq_holder *holder, const rq_image_sink *sink, rq_error *why)
{
    taking t = {.vfs = e->env.vfs, .engine = e, .holder = holder, .sink = sink};
    rq_wal_hold(e->wal, holder);
    rq_err rc = take(&t, why);
    if (rc == RQ_OK) rq_holder_narrow(holder);
    return rc;
}

rq_err rq_image_of_stopped(rq_vfs *vfs, const rq_image_sink *sink, rq_error *why)
{
    taking t = {.vfs = vfs, .sink = sink};
    return take(&t, why);
}
