/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the files of a region as a snapshot needs them; contract in region_files.h. */
#include "region/region_files.h"

#include "region/engine_priv.h"
#include "region/owned.h"
#include "region/survey.h"
#include "store/mob.h"
#include "store/mob_files.h"
#include "store/reference.h"

#include <stdlib.h>

#define REFERENCE_MAX ((size_t)256 * 1024)

/* --- one file --------------------------------------------------------------------------------- */

static rq_err read_reference(rq_vfs *vfs, const char *path, rq_arena *arena, rq_slice *ret,
                             rq_error *why)
{
    rq_slice bytes;
    rq_hfile_half half;
    RQ_TRY(rq_vfs_read_file(vfs, path, REFERENCE_MAX, arena, &bytes, why));
    RQ_TRY(rq_reference_decode(bytes, &half, why));
    *ret = rq_slice_of(bytes.ptr + 4, bytes.len - 4);
    return RQ_OK;
}

#define LOCATE_TRIES_MAX 8

/* The size of the HFile that a link or reference stands for. It may move to the archive after it
 * was found. */
static rq_err size_elsewhere(rq_vfs *vfs, const char *dir, const char *file, rq_arena *arena,
                             uint64_t *ret, rq_error *why)
{
    rq_stat st;
    rq_error own = {0};
    rq_err rc = RQ_E_NOT_FOUND;
    for (int i = 0; i < LOCATE_TRIES_MAX && rc == RQ_E_NOT_FOUND; i++) {
        const char *path;
        RQ_TRY(rq_store_file_locate(vfs, dir, file, arena, &path, why));
        rc = rq_vfs_stat(vfs, path, &st, &own);
    }
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", own.message);
    *ret = st.size;
    return RQ_OK;
}

/* `dir` is the family's folder. */
static rq_err describe(rq_vfs *vfs, const char *dir, rq_slice name, rq_arena *arena,
                       rq_region_file *ret, rq_error *why)
{
    rq_store_name parts;
    rq_stat st;
    const char *file = rq_arena_cstr(arena, name);
    const char *path = file == NULL ? NULL : rq_arena_printf(arena, "%s/%s", dir, file);
    if (path == NULL) return rq_no_memory(why);
    *ret = (rq_region_file){.name = rq_slice_cstr(file)};
    rq_store_name_parse(ret->name, &parts);
    if (parts.is_reference) RQ_TRY(read_reference(vfs, path, arena, &ret->reference, why));
    if (parts.is_reference || parts.is_link)
        return size_elsewhere(vfs, dir, file, arena, &ret->size, why);
    RQ_TRY(rq_vfs_stat(vfs, path, &st, why));
    ret->size = st.size;
    return RQ_OK;
}

static rq_err describe_all(rq_vfs *vfs, const char *dir, const rq_slice *names, size_t count,
                           rq_arena *arena, rq_family_files *ret, rq_error *why)
{
    if (dir == NULL) return rq_no_memory(why);
    ret->files = rq_arena_calloc(arena, count + 1, sizeof *ret->files);
    if (ret->files == NULL) return rq_no_memory(why);
    for (; ret->count < count; ret->count++)
        RQ_TRY(describe(vfs, dir, names[ret->count], arena, &ret->files[ret->count], why));
    return RQ_OK;
}

/* --- an open region --------------------------------------------------------------------------- */

typedef struct taking {
    rq_arena *arena;
    rq_region_files *files;
} taking;

static rq_err list_open(rq_region *r, const taking *t, rq_error *why)
{
    rq__manifest m;
    if (r->manifest.in_doubt)
        return rq_fail(why, RQ_E_STATE, "region %s: a write of its manifest failed",
                       r->info.encoded);
    if (rq__region_files(r, t->arena, &m) != RQ_OK) return rq_no_memory(why);
    t->files->families = rq_arena_calloc(t->arena, m.family_count + 1, sizeof(rq_family_files));
    if (t->files->families == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < m.family_count; i++) {
        rq_family_files *f = &t->files->families[t->files->count++];
        f->name = rq_arena_copy(t->arena, m.families[i].name);
        if (f->name.ptr == NULL) return rq_no_memory(why);
        RQ_TRY(describe_all(r->env.vfs, rq__family_dir(t->arena, &r->info, f->name),
                            m.families[i].files, m.families[i].file_count, t->arena, f, why));
    }
    return RQ_OK;
}

/* flush gate: no other flush adds a file of one family meanwhile. */
static rq_err list_gated(rq_region *r, void *ctx, rq_error *why)
{
    rq__gate_enter(&r->commit_gate, r->env.executor);
    rq_err rc = list_open(r, ctx, why);
    rq__gate_leave(&r->commit_gate, r->env.executor);
    return rc;
}

static rq_err list_without_flush(rq_region *r, taking *t, rq_error *why)
{
    rq__gate_enter(&r->flush_gate, r->env.executor);
    rq_err rc = list_gated(r, t, why);
    rq__gate_leave(&r->flush_gate, r->env.executor);
    return rc;
}

rq_err rq_region_files_take(rq_region *r, bool flush, rq_arena *arena, rq_region_files *ret,
                            rq_error *why)
{
    taking t = {.arena = arena, .files = ret};
    *ret = (rq_region_files){0};
    if (!rq__region_enter(r)) return rq__region_not_serving(r, why);
    rq_err rc =
        flush ? rq__region_flush_then(r, list_gated, &t, why) : list_without_flush(r, &t, why);
    rq__region_leave(r);
    return rc;
}

/* --- a closed region -------------------------------------------------------------------------- */

/* The first problem counts: a snapshot must not lack a file. */
static void note_problem(void *ctx, rq_finding level, const char *place, const char *text)
{
    rq_error *why = ctx;
    if (level == RQ_FINDING_PROBLEM && why->code == RQ_OK)
        (void)rq_fail(why, RQ_E_CORRUPT, "%s %s", place, text);
}

static int by_family(const void *a, const void *b)
{
    return rq_slice_compare(((const rq_family_files *)a)->name, ((const rq_family_files *)b)->name);
}

static rq_err take_surveyed(rq_vfs *vfs, const rq_region_survey_family *from, rq_arena *arena,
                            rq_family_files *ret, rq_error *why)
{
    rq_slice *names = rq_arena_calloc(arena, from->file_count + 1, sizeof *names);
    if (names == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < from->file_count; i++)
        names[i] = rq_slice_cstr(from->files[i]);
    ret->name = from->name;
    return describe_all(vfs, from->dir, names, from->file_count, arena, ret, why);
}

/* In a cluster, where folders may have files of unfinished work of other servers. */
static rq_err files_of_closed_owned(rq_engine *e, const rq_region_info *info, rq_arena *arena,
                                    rq_region_files *ret, rq_error *why)
{
    rq__manifest m;
    RQ_TRY(rq__owned_read_closed(e->cluster, info->encoded, arena, &m, why));
    ret->families = rq_arena_calloc(arena, m.family_count + 1, sizeof *ret->families);
    if (ret->families == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < m.family_count; i++) {
        rq_family_files *f = &ret->families[ret->count++];
        f->name = m.families[i].name;
        RQ_TRY(describe_all(e->env.vfs, rq__family_dir(arena, info, f->name), m.families[i].files,
                            m.families[i].file_count, arena, f, why));
    }
    return RQ_OK;
}

rq_err rq_region_files_of_closed(rq_engine *e, const rq_region_info *info,
                                 const rq_table_schema *schema, rq_arena *arena,
                                 rq_region_files *ret, rq_error *why)
{
    rq_error problem = {0};
    const rq_findings findings = {.report = note_problem, .ctx = &problem};
    const rq_region_survey_options o = {.schema = schema, .closed_long = true};
    rq_region_survey s;
    *ret = (rq_region_files){0};
    if (e->cluster != NULL) return files_of_closed_owned(e, info, arena, ret, why);
    RQ_TRY(rq_region_survey_read(e->env.vfs, info, &o, arena, &findings, &s, why));
    if (problem.code != RQ_OK) return rq_fail(why, problem.code, "%s", problem.message);
    if (s.in_use)
        return rq_fail(why, RQ_E_STATE, "region %s was not closed cleanly", info->encoded);
    ret->families = rq_arena_calloc(arena, s.family_count + 1, sizeof *ret->families);
    if (ret->families == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < s.family_count; i++)
        RQ_TRY(take_surveyed(e->env.vfs, &s.families[i], arena, &ret->families[ret->count++], why));
    if (ret->count > 1) qsort(ret->families, ret->count, sizeof *ret->families, by_family);
    return RQ_OK;
}

/* --- MOB files -------------------------------------------------------------------------------- */

static rq_err list_mob_family(rq_engine *e, const char *dir, rq_arena *arena, rq_family_files *ret,
                              rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    if (dir == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_list_if_any(e->env.vfs, dir, arena, &entries, &count, why));
    ret->files = rq_arena_calloc(arena, count + 1, sizeof *ret->files);
    if (ret->files == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++)
        if (!entries[i].is_dir && entries[i].name[0] != '.')
            ret->files[ret->count++].name = rq_slice_cstr(entries[i].name);
    return RQ_OK;
}

rq_err rq_mob_files_list(rq_engine *e, const rq_table_schema *schema, rq_arena *arena,
                         rq_region_files *ret, rq_error *why)
{
    *ret = (rq_region_files){0};
    ret->families = rq_arena_calloc(arena, schema->family_count + 1, sizeof *ret->families);
    if (ret->families == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < schema->family_count; i++) {
        if (!schema->families[i].is_mob) continue;
        rq_family_files *f = &ret->families[ret->count++];
        f->name = schema->families[i].name;
        RQ_TRY(list_mob_family(e, rq_mob_family_dir(arena, schema->name, f->name), arena, f, why));
    }
    return RQ_OK;
}

/* `others`: sorted. */
static bool is_written(const rq_engine *e, const rq_slice *others, size_t count, rq_slice name)
{
    return rq_mob_files_is_being_written(e->mob_files, (const char *)name.ptr) ||
           (count > 0 && bsearch(&name, others, count, sizeof name, rq_slice_order) != NULL);
}

/* A file whose writer has failed is removed by the writer. Links are never removed in this way. */
static bool may_be_gone(rq_slice name)
{
    rq_store_name parts;
    rq_store_name_parse(name, &parts);
    return !parts.is_link;
}

static rq_err measure_mob_family(rq_engine *e, const char *dir, const rq_slice *others,
                                 size_t other_count, rq_arena *arena, rq_family_files *f,
                                 rq_error *why)
{
    size_t kept = 0;
    if (dir == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < f->count; i++) {
        rq_error own = {0};
        rq_slice name = f->files[i].name;
        if (is_written(e, others, other_count, name)) continue;
        rq_err rc = describe(e->env.vfs, dir, name, arena, &f->files[kept], &own);
        if (rc == RQ_E_NOT_FOUND && may_be_gone(name)) continue;
        if (rc != RQ_OK) return rq_fail(why, rc, "%s", own.message);
        kept++;
    }
    f->count = kept;
    return RQ_OK;
}

rq_err rq_mob_files_measure(rq_engine *e, const rq_table_schema *schema, const rq_slice *others,
                            size_t other_count, rq_arena *arena, rq_region_files *files,
                            rq_error *why)
{
    for (size_t i = 0; i < files->count; i++) {
        rq_family_files *f = &files->families[i];
        RQ_TRY(measure_mob_family(e, rq_mob_family_dir(arena, schema->name, f->name), others,
                                  other_count, arena, f, why));
    }
    return RQ_OK;
}
