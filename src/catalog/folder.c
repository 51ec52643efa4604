/* SPDX-License-Identifier: Apache-2.0 */
/* See folder.h. */
#include "catalog/folder.h"

#include "catalog/fsck_priv.h"

static void ignore_finding(void *ctx, rq_finding level, const char *place, const char *text)
{
    (void)ctx;
    (void)level;
    (void)place;
    (void)text;
}

static rq_err add_family(rq__fsck *k, const rq_region_survey_family *f, rq_folder_region *r,
                         rq_error *why)
{
    for (size_t i = 0; i < f->file_count; i++) {
        rq_stat st;
        rq_error own = {0};
        const char *path = rq_arena_printf(&k->arena, "%s/%s", f->dir, f->files[i]);
        if (path == NULL) return rq_no_memory(why);
        rq_err rc = rq_vfs_stat(k->vfs, path, &st, &own);
        if (rc == RQ_E_NOT_FOUND) continue; /* fsck names it */
        if (rc != RQ_OK) return rq_fail(why, rc, "%s", own.message);
        r->files++;
        r->bytes += st.size;
    }
    r->stores++;
    return RQ_OK;
}

static rq_err add_region(rq__fsck *k, const rq_region_info *info, rq_arena *arena, rq_folder *ret,
                         rq_error *why)
{
    const rq_region_survey_options o = {
        .foreign = k->foreign,
        .edits_replayed = rq__fsck_edits_replayed(k, info),
        .in_change = true,
    };
    rq_region_survey s;
    rq_folder_region *r = &ret->regions[ret->region_count];
    *r = (rq_folder_region){0};
    RQ_TRY(rq_region_info_copy(arena, info, &r->info));
    RQ_TRY(rq_region_survey_read(k->vfs, info, &o, &k->arena, &k->findings, &s, why));
    for (size_t i = 0; i < s.family_count; i++)
        RQ_TRY(add_family(k, &s.families[i], r, why));
    ret->region_count++;
    return RQ_OK;
}

static rq_err add_tables(const rq__fsck *k, rq_arena *arena, rq_folder *ret)
{
    ret->tables = rq_arena_calloc(arena, k->table_count + 1, sizeof *ret->tables);
    if (ret->tables == NULL) return RQ_E_NO_MEMORY;
    ret->tables[ret->table_count++].name = RQ_SLICE_LIT("hbase:meta"); /* has no row of itself */
    for (size_t i = 0; i < k->table_count; i++) {
        rq_slice name = rq_arena_copy(arena, k->tables[i].name);
        if (name.ptr == NULL) return RQ_E_NO_MEMORY;
        ret->tables[ret->table_count++] =
            (rq_folder_table){.name = name, .disabled = k->tables[i].disabled};
    }
    return RQ_OK;
}

static rq_err add_regions(rq__fsck *k, rq_arena *arena, rq_folder *ret, rq_error *why)
{
    rq_region_info meta;
    ret->regions = rq_arena_calloc(arena, k->region_count + 1, sizeof *ret->regions);
    if (ret->regions == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(rq_region_info_meta(&k->arena, &meta));
    RQ_TRY(add_region(k, &meta, arena, ret, why));
    for (size_t i = 0; i < k->region_count; i++)
        if (!k->regions[i].is_parent) RQ_TRY(add_region(k, &k->regions[i].info, arena, ret, why));
    return RQ_OK;
}

rq_err rq_folder_read(rq_vfs *vfs, rq_arena *arena, rq_folder *ret, rq_error *why)
{
    const rq_fsck_options options = {.findings = {.report = ignore_finding}};
    rq__fsck k;
    *ret = (rq_folder){0};
    rq_err rc = rq__fsck_begin(&k, vfs, &options, why);
    if (rc == RQ_OK) rc = rq__fsck_log(&k, why);
    if (rc == RQ_OK) rc = rq__fsck_meta(&k, why);
    if (rc == RQ_OK) rc = add_tables(&k, arena, ret);
    if (rc == RQ_OK) rc = add_regions(&k, arena, ret, why);
    ret->log_records = k.totals.log_records;
    ret->problems = k.totals.problems;
    ret->was_open = k.was_open;
    rq__fsck_end(&k);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}
