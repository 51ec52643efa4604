/* SPDX-License-Identifier: Apache-2.0 */
/* The cleaner of MOB files; contract and order of steps in mob_cleaner.h. */
#include "region/mob_cleaner.h"

#include "region/engine_priv.h"
#include "region/filelist.h"
#include "region/owned.h"
#include "region/tracking.h"
#include "store/mob_files.h"

#include <stdlib.h>

/* If a region's manifest changes this often while it is being read, the region waits for the next
 * round. */
#define TRIES_MAX 8

/* An absent folder has no entries. */
static rq_err list_dir(rq_vfs *vfs, const char *dir, rq_arena *a, rq_dir_entry **ret,
                       size_t *ret_count, rq_error *why)
{
    *ret_count = 0;
    return dir == NULL ? rq_no_memory(why) : rq_vfs_list_if_any(vfs, dir, a, ret, ret_count, why);
}

/* --- archiving -------------------------------------------------------------------------------- */

/* The name of a link: a clone has links for HBase's bookkeeping; nothing is read through them. */
static bool is_link(const char *name)
{
    return strchr(name, '=') != NULL;
}

static rq_err archive_one(rq_vfs *vfs, const char *dir, const char *name, rq_error *why)
{
    rq_arena a = {0};
    const char *from = rq_arena_printf(&a, "%s/%s", dir, name);
    const char *to = rq_arena_printf(&a, "archive%s", dir + sizeof RQ_MOB_DIR - 1);
    rq_err rc = from == NULL || to == NULL ? rq_no_memory(why)
                : is_link(name)            ? rq_vfs_remove(vfs, from, why)
                                           : rq__archive_move(vfs, dir, to, name, why);
    rq_arena_clear(&a);
    return rc;
}

static bool is_kept(rq_slice name, const rq_region_info *keep, size_t count)
{
    rq_slice region = rq_mob_file_region(name);
    for (size_t i = 0; i < count; i++)
        if (rq_slice_eq(region, rq_slice_cstr(keep[i].encoded))) return true;
    return false;
}

static rq_err archive_family(rq_vfs *vfs, const char *dir, const rq_region_info *keep,
                             size_t keep_count, rq_error *why)
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count;
    size_t left = 0;
    rq_err rc = list_dir(vfs, dir, &a, &entries, &count, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        rq_slice name = rq_slice_cstr(entries[i].name);
        bool stays = entries[i].is_dir || is_kept(name, keep, keep_count);
        left += stays;
        if (!stays) rc = archive_one(vfs, dir, entries[i].name, why);
    }
    rq_arena_clear(&a);
    if (rc != RQ_OK || left > 0) return rc;
    /* Files that came after the listing stay, and so does the folder. */
    rq_error own = {0};
    rc = rq_vfs_remove(vfs, dir, &own);
    bool is_fine = rc == RQ_OK || rc == RQ_E_NOT_FOUND || rc == RQ_E_EXISTS;
    return is_fine ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}

/* Empty folders on the way up go too. */
static void remove_empty(rq_vfs *vfs, rq_arena *a, const char *dir)
{
    char *path = rq_arena_cstr(a, rq_slice_cstr(dir));
    for (int level = 0; level < 2 && path != NULL; level++) { /* the region's and the table's */
        if (rq_vfs_remove(vfs, path, NULL) != RQ_OK) return;
        *strrchr(path, '/') = '\0';
    }
}

rq_err rq_mob_archive(rq_engine *e, rq_slice table, rq_slice family, const rq_region_info *keep,
                      size_t keep_count, rq_error *why)
{
    rq_vfs *vfs = e->env.vfs;
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count = 0;
    const char *dir = rq_mob_region_dir(&a, table);
    rq_err rc = list_dir(vfs, dir, &a, &entries, &count, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        if (!entries[i].is_dir) continue;
        if (family.len > 0 && !rq_slice_eq(family, rq_slice_cstr(entries[i].name))) continue;
        const char *path = rq_arena_printf(&a, "%s/%s", dir, entries[i].name);
        rc = path == NULL ? rq_no_memory(why) : archive_family(vfs, path, keep, keep_count, why);
    }
    if (rc == RQ_OK && count > 0) remove_empty(vfs, &a, dir);
    rq_arena_clear(&a);
    return rc;
}

/* --- what may go ------------------------------------------------------------------------------ */

typedef struct candidate {
    rq_slice table;
    const char *dir, *name;
    bool expired; /* even if it is referenced */
} candidate;

typedef struct cleaning {
    rq_engine *engine;
    const rq_mob_cleaning *what;
    rq_arena arena;
    candidate *list;
    size_t count, room;
    rq_mob_writers others;
    bool has_asked; /* the other servers have been asked, or there are none */
    rq_mob_refs refs;
} cleaning;

static rq_err add_candidate(cleaning *c, const candidate *one)
{
    if (c->count == c->room) {
        size_t room = c->room == 0 ? 64 : 2 * c->room;
        candidate *list = realloc(c->list, room * sizeof *list);
        if (list == NULL) return RQ_E_NO_MEMORY;
        c->list = list;
        c->room = room;
    }
    c->list[c->count++] = *one;
    return RQ_OK;
}

/* HBASE: MobFileCleanerChore.handleOneTable: only if no expired version is kept. */
static bool is_expired(const cleaning *c, const rq_family_schema *f, const char *name)
{
    if (f->ttl_s == RQ_TTL_FOREVER || f->min_versions > 0) return false;
    return rq_mob_file_is_expired(rq_slice_cstr(name), c->what->now_ms - (int64_t)f->ttl_s * 1000);
}

static rq_err look_at_file(cleaning *c, const rq_table_schema *t, const rq_family_schema *f,
                           const char *dir, const char *name, rq_error *why)
{
    candidate one = {t->name, dir, name, is_expired(c, f, name)};
    if (is_link(name) || name[0] == '.') return RQ_OK;
    const char *path = rq_arena_printf(&c->arena, "%s/%s", dir, name);
    if (path == NULL) return rq_no_memory(why);
    rq_stat st;
    rq_error own = {0};
    rq_err rc = rq_vfs_stat(c->engine->env.vfs, path, &st, &own);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", own.message);
    if (st.mtime_ms > c->what->now_ms - c->what->min_age_ms ||
        rq_mob_files_is_being_written(c->engine->mob_files, name))
        return RQ_OK;
    return add_candidate(c, &one) == RQ_OK ? RQ_OK : rq_no_memory(why);
}

static rq_err list_candidates(cleaning *c, const rq_table_schema *t, rq_error *why)
{
    for (size_t i = 0; i < t->family_count; i++) {
        const rq_family_schema *f = &t->families[i];
        if (!f->is_mob) continue;
        rq_dir_entry *entries;
        size_t count;
        const char *dir = rq_mob_family_dir(&c->arena, t->name, f->name);
        RQ_TRY(list_dir(c->engine->env.vfs, dir, &c->arena, &entries, &count, why));
        for (size_t j = 0; j < count; j++)
            if (!entries[j].is_dir) RQ_TRY(look_at_file(c, t, f, dir, entries[j].name, why));
    }
    return RQ_OK;
}

/* --- what other servers write ------------------------------------------------------------------ */

static bool has_mob(const rq_table_schema *t)
{
    for (size_t i = 0; i < t->family_count; i++)
        if (t->families[i].is_mob) return true;
    return false;
}

/* Whether the region's next swap may name store files that its present manifest does not name. Waits for the end of a swap.
 * A failed region swaps no more. */
static bool is_in_doubt(rq_region *r)
{
    rq__gate_enter(&r->commit_gate, r->env.executor);
    bool is = r->manifest.in_doubt && rq__region_state_now(r) != RQ__REGION_FAILED;
    rq__gate_leave(&r->commit_gate, r->env.executor);
    return is;
}

static rq_err check_certain(rq_engine *e, rq_arena *arena, rq_error *why)
{
    rq_region **list;
    size_t count;
    rq_err rc = rq_engine_regions(e, arena, &list, &count);
    if (rc != RQ_OK) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++) {
        if (rc == RQ_OK && has_mob(list[i]->schema) && is_in_doubt(list[i]))
            rc = rq_fail(why, RQ_E_STATE,
                         "region %s: a write of its manifest failed, so the manifest's content is "
                         "uncertain",
                         list[i]->info.encoded);
        rq_region_unref(list[i]);
    }
    return rc;
}

rq_err rq_mob_writes(rq_engine *e, rq_arena *arena, rq_slice **ret, size_t *ret_count,
                     rq_error *why)
{
    RQ_TRY(check_certain(e, arena, why));
    rq_err rc = rq_mob_files_list_written(e->mob_files, arena, ret, ret_count);
    return rc == RQ_OK ? RQ_OK : rq_no_memory(why);
}

static bool has_name(const rq_slice *sorted, size_t count, rq_slice name)
{
    return count > 0 && bsearch(&name, sorted, count, sizeof name, rq_slice_order) != NULL;
}

/* REQUIRES: the candidates were listed. */
static rq_err exclude_writes_of_others(cleaning *c, rq_error *why)
{
    rq_mob_writers *w = &c->others;
    size_t kept = 0;
    c->has_asked = true;
    if (c->what->ask == NULL) return RQ_OK;
    RQ_TRY(c->what->ask(c->what->ctx, &c->arena, w, why));
    if (w->server_count > 1) qsort(w->servers, w->server_count, sizeof *w->servers, rq_slice_order);
    if (w->file_count > 1) qsort(w->files, w->file_count, sizeof *w->files, rq_slice_order);
    for (size_t i = 0; i < c->count; i++)
        if (!has_name(w->files, w->file_count, rq_slice_cstr(c->list[i].name)))
            c->list[kept++] = c->list[i];
    c->count = kept;
    return RQ_OK;
}

/* Regions of this process pass: its own files were excluded when they were listed. */
static rq_err check_owner(const cleaning *c, const char *region, rq_slice owner, rq_error *why)
{
    const rq__cluster *cluster = c->engine->cluster;
    if (cluster == NULL || !c->has_asked || owner.len == 0 ||
        rq_slice_eq(owner, rq_slice_cstr(cluster->server_name)) ||
        has_name(c->others.servers, c->others.server_count, owner))
        return RQ_OK;
    return rq_fail(
        why, RQ_E_STATE,
        "region %s belongs to %.*s, which has not listed the MOB files that it is writing", region,
        (int)owner.len, (const char *)owner.ptr);
}

/* --- who refers to what ----------------------------------------------------------------------- */

/* A folder's store files, or the list that stands for the folder (region/filelist.h). */
static rq_err read_folder(cleaning *c, const rq_table_schema *t, const rq_family_schema *schema,
                          const char *dir, rq_arena *a, rq_error *why)
{
    rq_vfs *vfs = c->engine->env.vfs;
    rq__filelist list = {0};
    if (rq__tracking_reads_list(t, schema)) {
        rq_error own = {0};
        rq_err rc = rq__filelist_read(vfs, dir, a, &list, &own);
        for (size_t i = 0; rc == RQ_OK && i < list.count; i++) {
            const char *name = rq_arena_cstr(a, list.files[i].name);
            if (name == NULL) return rq_no_memory(why);
            RQ_TRY(rq_mob_refs_of_store_file(vfs, dir, name, &c->refs, why));
        }
        if (rc != RQ_E_NOT_FOUND) return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", own.message);
    }
    rq_dir_entry *entries;
    size_t count;
    RQ_TRY(list_dir(vfs, dir, a, &entries, &count, why));
    for (size_t i = 0; i < count; i++)
        if (!entries[i].is_dir && rq__store_file_name_ok(rq_slice_cstr(entries[i].name)))
            RQ_TRY(rq_mob_refs_of_store_file(vfs, dir, entries[i].name, &c->refs, why));
    return RQ_OK;
}

/* A file that a closed region's manifest names but its folder lacks may be on its way to the
 * archive: the files of a split's parent are archived one by one, and the daughters may be newer
 * than the list of regions being processed. If it is in neither place, another program removed
 * it. */
static rq_err read_archived(cleaning *c, const rq__manifest_family *f, const char *dir, rq_arena *a,
                            rq_error *why)
{
    rq_vfs *vfs = c->engine->env.vfs;
    const char *archive = rq_arena_printf(a, "archive/%s", dir);
    if (archive == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < f->file_count; i++) {
        rq_stat st;
        rq_error own = {0};
        const char *name = rq_arena_cstr(a, f->files[i]);
        const char *path = name == NULL ? NULL : rq_arena_printf(a, "%s/%s", dir, name);
        if (path == NULL) return rq_no_memory(why);
        rq_err rc = rq_vfs_stat(vfs, path, &st, &own);
        if (rc == RQ_OK) continue; /* it was read with the folder */
        if (rc == RQ_E_NOT_FOUND)
            rc = rq_mob_refs_of_store_file(vfs, archive, name, &c->refs, &own);
        if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", own.message);
    }
    return RQ_OK;
}

/* A file that a manifest in use names. In a cluster a manifest is in use until its region is removed, while the region's files
 * are moved to the archive one by one: the file may be there already. */
static rq_err read_named(cleaning *c, const char *dir, const char *name, rq_arena *a, rq_error *why)
{
    rq_vfs *vfs = c->engine->env.vfs;
    rq_error own = {0};
    rq_err rc = rq_mob_refs_of_store_file(vfs, dir, name, &c->refs, &own);
    if (rc == RQ_E_NOT_FOUND && c->engine->cluster != NULL) {
        const char *archive = rq_arena_printf(a, "archive/%s", dir);
        if (archive == NULL) return rq_no_memory(why);
        rc = rq_mob_refs_of_store_file(vfs, archive, name, &c->refs, NULL);
    }
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}

/* While the region is in use, only its manifest counts. */
static rq_err read_family(cleaning *c, const rq__manifest *m, const rq_table_schema *t,
                          const rq_family_schema *schema, const char *dir, rq_arena *a,
                          rq_error *why)
{
    const rq__manifest_family *f = rq__manifest_family_of(m, schema->name);
    if (!m->in_use) {
        RQ_TRY(read_folder(c, t, schema, dir, a, why));
        return f == NULL ? RQ_OK : read_archived(c, f, dir, a, why);
    }
    for (size_t i = 0; f != NULL && i < f->file_count; i++) {
        const char *name = rq_arena_cstr(a, f->files[i]);
        if (name == NULL) return rq_no_memory(why);
        RQ_TRY(read_named(c, dir, name, a, why));
    }
    return RQ_OK;
}

/* Under the commit gate: a manifest that is being written may still fail to become durable, but
 * reading it would treat it as durable (vfs/cas.c, rule 4). */
static rq_err read_manifest(cleaning *c, const char *encoded, rq_arena *a, rq__manifest *m,
                            uint64_t *generation, rq_error *why)
{
    rq_error own = {0};
    *m = (rq__manifest){0};
    *generation = 0;
    if (strlen(encoded) > RQ_ENCODED_NAME_LEN) return RQ_OK;
    rq_region *open = rq__engine_find(c->engine, encoded);
    if (open != NULL) rq__gate_enter(&open->commit_gate, open->env.executor);
    rq_err rc = open != NULL && open->manifest.in_doubt
                    ? rq_fail(&own, RQ_E_STATE,
                              "region %s: a write of its manifest failed, so the manifest's "
                              "content is uncertain",
                              encoded)
                    : rq__manifest_read_any(c->engine, encoded, a, m, generation, &own);
    if (open != NULL) rq__gate_leave(&open->commit_gate, open->env.executor);
    rq_region_unref(open);
    return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}

/* If the folder is gone, the region was removed after the regions were listed, and the regions made
 * from it may be in no list. HBASE: MobFileCleanupUtil, "was deleted during MOB file cleaner
 * chore". */
static rq_err check_there(cleaning *c, const char *dir, rq_error *why)
{
    rq_stat st;
    rq_error own = {0};
    rq_err rc = dir == NULL ? rq_no_memory(&own) : rq_vfs_stat(c->engine->env.vfs, dir, &st, &own);
    if (rc == RQ_E_NOT_FOUND)
        return rq_fail(why, RQ_E_STATE, "region %s was removed while searching for MOB files", dir);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}

/* *ret_changed: the region changed meanwhile, so the result is incomplete. */
static rq_err read_region(cleaning *c, const rq_table_schema *t, const char *table_dir,
                          const char *region, bool *ret_changed, rq_error *why)
{
    rq_arena a = {0};
    rq__manifest m, then;
    uint64_t before = 0;
    uint64_t after = 0;
    rq_error own = {0};
    rq_err rc = read_manifest(c, region, &a, &m, &before, &own);
    if (rc == RQ_OK) rc = check_owner(c, region, m.owner, &own);
    for (size_t i = 0; i < t->family_count && rc == RQ_OK; i++) {
        if (!t->families[i].is_mob) continue;
        rq_slice family = t->families[i].name;
        const char *dir = rq_arena_printf(&a, "%s/%s/%.*s", table_dir, region, (int)family.len,
                                          (const char *)family.ptr);
        rc = dir == NULL ? rq_no_memory(&own)
                         : read_family(c, &m, t, &t->families[i], dir, &a, &own);
    }
    rq_err again = read_manifest(c, region, &a, &then, &after, why);
    if (again == RQ_OK && after == 0)
        again = check_there(c, rq_arena_printf(&a, "%s/%s", table_dir, region), why);
    rq_arena_clear(&a);
    *ret_changed = again == RQ_OK && before != after;
    if (again != RQ_OK || *ret_changed) return again;
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}

static rq_err read_table(cleaning *c, const rq_table_schema *t, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    const char *dir =
        rq_arena_printf(&c->arena, "data/%.*s/%.*s", (int)t->ns.len, (const char *)t->ns.ptr,
                        (int)t->qualifier.len, (const char *)t->qualifier.ptr);
    RQ_TRY(list_dir(c->engine->env.vfs, dir, &c->arena, &entries, &count, why));
    for (size_t i = 0; i < count; i++) {
        if (!entries[i].is_dir || entries[i].name[0] == '.') continue;
        bool changed = true;
        for (int tries = 0; changed; tries++) {
            if (tries == TRIES_MAX)
                return rq_fail(why, RQ_E_STATE,
                               "region %s changed during every attempt to search it for MOB files",
                               entries[i].name);
            RQ_TRY(read_region(c, t, dir, entries[i].name, &changed, why));
        }
    }
    return RQ_OK;
}

static rq_err read_tables(cleaning *c, rq_error *why)
{
    for (size_t i = 0; i < c->what->table_count && c->count > 0; i++)
        if (has_mob(c->what->tables[i])) RQ_TRY(read_table(c, c->what->tables[i], why));
    return RQ_OK;
}

/* --- the round -------------------------------------------------------------------------------- */

/* Stops when a holder begins to list files: it may have listed store files that referred to a
 * candidate before they were compacted. A holder that begins later lists no such store file. */
static rq_err archive_unreferenced(cleaning *c, size_t *ret_archived, rq_error *why)
{
    for (size_t i = 0; i < c->count && !rq_retention_keeps_all(c->engine->retention); i++) {
        const candidate *one = &c->list[i];
        if (!one->expired && rq_mob_refs_has(&c->refs, one->table, rq_slice_cstr(one->name)))
            continue;
        RQ_TRY(archive_one(c->engine->env.vfs, one->dir, one->name, why));
        ++*ret_archived;
    }
    return RQ_OK;
}

rq_err rq_mob_clean(rq_engine *e, const rq_mob_cleaning *what, size_t *ret_archived, rq_error *why)
{
    cleaning c = {.engine = e, .what = what};
    rq_err rc = RQ_OK;
    *ret_archived = 0;
    for (size_t i = 0; i < what->table_count && rc == RQ_OK; i++)
        if (has_mob(what->tables[i])) rc = list_candidates(&c, what->tables[i], why);
    if (rc == RQ_OK && what->ask != NULL) rc = read_tables(&c, why);
    if (rc == RQ_OK && c.count > 0) rc = exclude_writes_of_others(&c, why);
    if (rc == RQ_OK) rc = read_tables(&c, why);
    if (rc == RQ_OK && c.count > 0) rc = rq_engine_check_not_fenced(c.engine, why);
    if (rc == RQ_OK) rc = archive_unreferenced(&c, ret_archived, why);
    rq_mob_refs_clear(&c.refs);
    rq_arena_clear(&c.arena);
    free(c.list);
    return rc;
}
