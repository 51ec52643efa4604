/* SPDX-License-Identifier: Apache-2.0 */
/* See set_aside.h. */
#include "region/set_aside.h"

#include "region/engine_priv.h"
#include "region/survey.h"

#include <stdio.h>

typedef struct work {
    rq_vfs *vfs;
    const rq_region_info *info;
    const rq_set_aside *calls;
    rq_arena arena;
    bool has_manifest;
    rq__manifest manifest;
    bool changed; /* the manifest is to be written anew */
    const char **bad;
    size_t bad_count, bad_room;
    uint64_t *count;
} work;

static void report(work *w, const char *place, const char *text)
{
    w->calls->report(w->calls->ctx, place, text);
    ++*w->count;
}

/* --- the manifest ----------------------------------------------------------------------------- */

static rq_err move_slots(work *w, rq_error *why)
{
    for (int i = 0; i < 2 && w->calls->move != NULL; i++) {
        bool there;
        const char *path =
            rq_arena_printf(&w->arena, RQ__MANIFEST_DIR "/%s.%d", w->info->encoded, i);
        if (path == NULL) return rq_no_memory(why);
        RQ_TRY(rq_vfs_exists(w->vfs, path, &there, why));
        if (there) RQ_TRY(w->calls->move(w->calls->ctx, path, why));
    }
    return RQ_OK;
}

static rq_err read_manifest(work *w, rq_error *why)
{
    rq_error own = {0};
    const char *other,
        *place = rq_arena_printf(&w->arena, RQ__MANIFEST_DIR "/%s", w->info->encoded);
    if (place == NULL) return rq_no_memory(why);
    rq_err rc = rq__manifest_peek(w->vfs, w->info->encoded, &w->arena, &w->manifest, &other, &own);
    w->has_manifest = rc == RQ_OK;
    if (rc == RQ_OK || rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc != RQ_E_CORRUPT) return rq_fail(why, rc, "%s", own.message);
    char text[1100];
    snprintf(text, sizeof text, "%s; the region's files are taken from its folder", own.message);
    report(w, place, text);
    return move_slots(w, why);
}

static bool is_bad(const work *w, const char *dir, rq_slice name)
{
    size_t n = strlen(dir);
    for (size_t i = 0; i < w->bad_count; i++)
        if (strncmp(w->bad[i], dir, n) == 0 && w->bad[i][n] == '/' &&
            rq_slice_eq(rq_slice_cstr(w->bad[i] + n + 1), name))
            return true;
    return false;
}

static bool is_there(const work *w, const char *dir, rq_slice name)
{
    rq_arena a = {0};
    rq_stat st;
    const char *path = rq_arena_printf(&a, "%s/%.*s", dir, (int)name.len, (const char *)name.ptr);
    bool there = path == NULL || rq_vfs_stat(w->vfs, path, &st, NULL) != RQ_E_NOT_FOUND;
    rq_arena_clear(&a);
    return there;
}

/* Without what is bad or missing. */
static rq_err write_manifest(work *w, rq_error *why)
{
    rq__manifest m;
    uint64_t generation;
    RQ_TRY(rq__manifest_read(w->vfs, w->info->encoded, &w->arena, &m, &generation, why));
    for (size_t i = 0; i < m.family_count; i++) {
        rq__manifest_family *f = &m.families[i];
        const char *dir = rq__family_dir(&w->arena, w->info, f->name);
        size_t kept = 0;
        if (dir == NULL) return rq_no_memory(why);
        for (size_t n = 0; n < f->file_count; n++)
            if (is_there(w, dir, f->files[n]) && !is_bad(w, dir, f->files[n]))
                f->files[kept++] = f->files[n];
        f->file_count = kept;
    }
    return rq__manifest_write(w->vfs, w->info->encoded, &m, &generation, NULL, why);
}

/* --- files ------------------------------------------------------------------------------------ */

typedef struct verdict {
    bool is_bad;
    char text[600];
} verdict;

static bool starts_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* A region serves with a value that cannot be read, and with rows that are not its own. */
static void judge(void *ctx, rq_finding level, const char *place, const char *text)
{
    verdict *v = ctx;
    if (level != RQ_FINDING_PROBLEM || v->is_bad) return;
    if (starts_with(place, "mobdir/") || starts_with(text, "refers to the MOB file") ||
        starts_with(text, "holds rows "))
        return;
    v->is_bad = true;
    snprintf(v->text, sizeof v->text, "%s", text);
}

static rq_err note_bad(work *w, const char *path)
{
    if (w->bad_count == w->bad_room) {
        size_t room = w->bad_room == 0 ? 8 : w->bad_room * 2;
        const char **more = rq_arena_calloc(&w->arena, room, sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        if (w->bad_count > 0) memcpy(more, w->bad, w->bad_count * sizeof *more);
        w->bad = more;
        w->bad_room = room;
    }
    w->bad[w->bad_count++] = path;
    return RQ_OK;
}

static rq_err look_at_file(work *w, rq_slice family, const char *dir, const char *name,
                           rq_error *why)
{
    verdict v = {0};
    const char *files[] = {name};
    rq_region_survey_family f = {.name = family, .dir = dir, .files = files, .file_count = 1};
    const rq_region_survey s = {.families = &f, .family_count = 1};
    const rq_findings findings = {judge, NULL, &v};
    RQ_TRY(rq_region_survey_files(w->vfs, w->info, &s, true, NULL, NULL, &findings, why));
    if (!v.is_bad) return RQ_OK;
    const char *path = rq_arena_printf(&w->arena, "%s/%s", dir, name);
    if (path == NULL || note_bad(w, path) != RQ_OK) return rq_no_memory(why);
    report(w, path, v.text);
    w->changed = true;
    return RQ_OK;
}

static rq_err look_at_listed(work *w, const rq__manifest_family *f, const char *dir, rq_error *why)
{
    for (size_t i = 0; i < f->file_count; i++) {
        const char *name = rq_arena_cstr(&w->arena, f->files[i]);
        if (name == NULL) return rq_no_memory(why);
        if (is_there(w, dir, f->files[i])) {
            if (w->manifest.in_use) RQ_TRY(look_at_file(w, f->name, dir, name, why));
            continue;
        }
        const char *path = rq_arena_printf(&w->arena, "%s/%s", dir, name);
        if (path == NULL) return rq_no_memory(why);
        report(w, path, "is missing; the region continues without it");
        w->changed = true;
    }
    return RQ_OK;
}

/* Of a region that was closed, or has no manifest, the folder counts. */
static rq_err look_at_folder(work *w, rq_slice family, const char *dir, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    RQ_TRY(rq_vfs_list_if_any(w->vfs, dir, &w->arena, &entries, &count, why));
    for (size_t i = 0; i < count; i++)
        if (!entries[i].is_dir && rq__store_file_name_ok(rq_slice_cstr(entries[i].name)))
            RQ_TRY(look_at_file(w, family, dir, entries[i].name, why));
    return RQ_OK;
}

static rq_err look_at_family(work *w, rq_slice family, rq_error *why)
{
    const char *dir = rq__family_dir(&w->arena, w->info, family);
    const rq__manifest_family *f =
        w->has_manifest ? rq__manifest_family_of(&w->manifest, family) : NULL;
    if (dir == NULL) return rq_no_memory(why);
    if (f != NULL) RQ_TRY(look_at_listed(w, f, dir, why));
    bool by_manifest = w->has_manifest && w->manifest.in_use;
    return by_manifest ? RQ_OK : look_at_folder(w, family, dir, why);
}

static rq_err look(work *w, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    const char *dir = rq__region_dir(&w->arena, w->info);
    if (dir == NULL) return rq_no_memory(why);
    RQ_TRY(read_manifest(w, why));
    RQ_TRY(rq_vfs_list_if_any(w->vfs, dir, &w->arena, &entries, &count, why));
    for (size_t i = 0; i < count; i++)
        if (rq_region_is_family_folder(&entries[i]))
            RQ_TRY(look_at_family(w, rq_slice_cstr(entries[i].name), why));
    return RQ_OK;
}

rq_err rq_region_set_aside(rq_vfs *vfs, const rq_region_info *info, const rq_set_aside *calls,
                           uint64_t *ret_count, rq_error *why)
{
    work w = {.vfs = vfs, .info = info, .calls = calls, .count = ret_count};
    rq_err rc = look(&w, why);
    bool act = rc == RQ_OK && calls->move != NULL;
    if (act && w.changed && w.has_manifest) rc = write_manifest(&w, why);
    for (size_t i = 0; act && rc == RQ_OK && i < w.bad_count; i++)
        rc = calls->move(calls->ctx, w.bad[i], why);
    rq_arena_clear(&w.arena);
    return rc;
}
