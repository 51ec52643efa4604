/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a folder in this order: who wrote it, the log, the procedures, hbase:meta, then everything
 * on disk, compared with meta. Unreadable parts are reported and skipped, so that one run finds
 * everything. Contract in fsck.h. */
#include "catalog/fsck_priv.h"
#include "region/region_files.h"
#include "store/reference.h"

#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "catalog/adopt.h"
#include "catalog/root_priv.h"
#include "base/read_failure.h"

void rq__fsck_report(rq__fsck *k, rq_finding level, const char *place, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    k->findings.report(k->findings.ctx, level, place, text);
}

static void count_finding(void *ctx, rq_finding level, const char *place, const char *text)
{
    rq__fsck *k = ctx;
    if (k->half_made) level = RQ_FINDING_NOTE;
    if (level == RQ_FINDING_PROBLEM)
        k->totals.problems++;
    else
        k->totals.notes++;
    k->options->findings.report(k->options->findings.ctx, level, place, text);
}

static void pass_step(void *ctx, uint64_t bytes)
{
    rq__fsck *k = ctx;
    if (k->options->findings.step != NULL)
        k->options->findings.step(k->options->findings.ctx, bytes);
}

rq_err rq__fsck_list(rq__fsck *k, const char *dir, rq_dir_entry **ret, size_t *ret_count,
                     rq_error *why)
{
    return rq_vfs_list_if_any(k->vfs, dir, &k->arena, ret, ret_count, why);
}

static int by_path(const void *a, const void *b)
{
    const rq__fsck_path *x = a, *y = b;
    return strcmp(x->path, y->path);
}

bool rq__fsck_has_path(const rq__fsck_paths *set, const char *path)
{
    const rq__fsck_path key = {.path = path};
    return tfind(&key, &set->tree, by_path) != NULL;
}

rq_err rq__fsck_note_path(rq__fsck *k, rq__fsck_paths *set, const char *path)
{
    if (rq__fsck_has_path(set, path)) return RQ_OK;
    rq__fsck_path *p = rq_arena_calloc(&k->arena, 1, sizeof *p);
    if (p == NULL) return RQ_E_NO_MEMORY;
    p->path = rq_arena_printf(&k->arena, "%s", path);
    if (p->path == NULL || tsearch(p, &set->tree, by_path) == NULL) return RQ_E_NO_MEMORY;
    p->next = set->first;
    set->first = p;
    return RQ_OK;
}

/* The folders above a known folder are known, too. */
rq_err rq__fsck_note_target(rq__fsck *k, const char *path)
{
    char *dir = rq_arena_printf(&k->arena, "%s", path);
    if (dir == NULL) return RQ_E_NO_MEMORY;
    for (char *slash = strrchr(dir, '/'); slash != NULL; slash = strrchr(dir, '/')) {
        *slash = '\0';
        if (rq__fsck_has_path(&k->target_dirs, dir)) break;
        RQ_TRY(rq__fsck_note_path(k, &k->target_dirs, dir));
    }
    return rq__fsck_note_path(k, &k->targets, path);
}

static bool is_known_target(void *ctx, const char *path)
{
    rq__fsck *k = ctx;
    if (rq__fsck_has_path(&k->targets, path)) return true;
    /* Out of memory: the file will be read once more. */
    rq_err rc = rq__fsck_note_target(k, path);
    (void)rc;
    return false;
}

/* Reports a link without a back reference: the archive's cleaner would remove the file behind it. Not
 * for a reference to a link: in a folder of HBase's it may rely on the back reference of the link. */
static rq_err look_at_link(rq__fsck *k, const rq_region_info *info,
                           const rq_region_survey_family *f, const char *file, rq_error *why)
{
    rq_store_name parts;
    rq_stat st;
    rq_store_name_parse(rq_slice_cstr(file), &parts);
    if (!parts.is_link || parts.is_reference) return RQ_OK;
    const char *place = rq_arena_printf(&k->arena, "%s/%s", f->dir, file);
    const char *back = rq_link_back_reference(&k->arena, info, f->name, rq_slice_cstr(file));
    if (place == NULL || back == NULL) return rq_no_memory(why);
    rq_err rc = rq_vfs_stat(k->vfs, back, &st, NULL);
    if (rc == RQ_E_NOT_FOUND)
        rq__fsck_report(k, RQ_FINDING_PROBLEM, place, "has no back reference %s", back);
    return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(why, rc, "%s", back);
}

static rq_err look_at_links(rq__fsck *k, const rq_region_info *info, const rq_region_survey *s,
                            rq_error *why)
{
    for (size_t i = 0; i < s->family_count; i++)
        for (size_t j = 0; j < s->families[i].file_count; j++)
            RQ_TRY(look_at_link(k, info, &s->families[i], s->families[i].files[j], why));
    return RQ_OK;
}

bool rq__fsck_edits_replayed(const rq__fsck *k, const rq_region_info *info)
{
    return k->foreign && !k->refused && !rq_slice_eq(info->ns, RQ_SLICE_LIT("master"));
}

rq_err rq__fsck_look_at_region(rq__fsck *k, const rq_region_info *info,
                               const rq_table_schema *schema, bool may_differ, bool closed,
                               rq_region_survey *ret, rq_error *why)
{
    const rq_region_survey_options o = {
        .schema = schema,
        .foreign = k->foreign || may_differ,
        .edits_replayed = rq__fsck_edits_replayed(k, info),
        .closed_long = closed,
        .in_change = may_differ || rq__fsck_table_changes(k, info->table),
    };
    RQ_TRY(rq_region_survey_read(k->vfs, info, &o, &k->arena, &k->findings, ret, why));
    k->totals.regions++;
    for (size_t i = 0; i < ret->family_count; i++)
        k->totals.files += ret->families[i].file_count;
    RQ_TRY(look_at_links(k, info, ret, why));
    return rq_region_survey_files(k->vfs, info, ret, k->options->deep, is_known_target, k,
                                  &k->findings, why);
}

/* --- who wrote it ----------------------------------------------------------------------------- */

static rq_err is_there(rq__fsck *k, const char *path, bool *ret, rq_error *why)
{
    rq_stat st;
    rq_error own = {0};
    rq_err rc = rq_vfs_stat(k->vfs, path, &st, &own);
    *ret = rc == RQ_OK;
    return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}

/* Checks what HBase left since the last adoption, and whether a start would take it over. */
static rq_err look_at_hbase(rq__fsck *k, rq_error *why)
{
    uint32_t stamp;
    rq_error own = {0};
    RQ_TRY(rq__adopt_look(k->vfs, &stamp, why));
    k->foreign = stamp != 0 || !k->ours;
    if (!k->foreign) return RQ_OK;
    rq__fsck_report(k, RQ_FINDING_NOTE, "", "Apache HBase was the last to use this folder");
    rq_err rc = rq__adopt_check(k->vfs, &own);
    if (rq_is_read_failure(rc)) return rq_fail(why, rc, "%s", own.message);
    k->refused = rc != RQ_OK;
    if (k->refused) rq__fsck_report(k, RQ_FINDING_PROBLEM, "", "%s", own.message);
    return RQ_OK;
}

static rq_err look_at_root(rq__fsck *k, rq_error *why)
{
    bool hbase;
    rq_error own = {0};
    RQ_TRY(is_there(k, ".rorqual", &k->ours, why));
    RQ_TRY(is_there(k, "hbase.version", &hbase, why));
    if (!k->ours && !hbase) return rq_fail(why, RQ_E_NOT_FOUND, "not a data folder");
    rq_err rc = k->options->is_copy ? RQ_OK : rq_root_check_finished(k->vfs, &own);
    if (rc == RQ_OK) rc = rq__root_look(k->vfs, k->ours, &own);
    if (rq_is_read_failure(rc)) return rq_fail(why, rc, "%s", own.message);
    if (rc != RQ_OK) rq__fsck_report(k, RQ_FINDING_PROBLEM, "", "%s", own.message);
    RQ_TRY(is_there(k, ".rorqual/open", &k->was_open, why));
    if (k->was_open)
        rq__fsck_report(k, RQ_FINDING_NOTE, ".rorqual/open",
                        "the server runs or was not stopped cleanly: the log is part of the data");
    return look_at_hbase(k, why);
}

/* --- everything ------------------------------------------------------------------------------- */

static rq_err look(rq__fsck *k, rq_error *why)
{
    RQ_TRY(rq__fsck_log(k, why));
    RQ_TRY(rq__fsck_procedures(k, why));
    RQ_TRY(rq__fsck_meta(k, why));
    RQ_TRY(rq__fsck_tables(k, why));
    RQ_TRY(rq__fsck_mob(k, why));
    RQ_TRY(rq__fsck_snapshots(k, why));
    return k->options->repair ? rq__fsck_repair(k, why) : RQ_OK;
}

/* If the lock's file is missing, the lock on the root folder counts, and no file is created. */
static rq_err take_lock(rq__fsck *k, rq_file **ret, rq_error *why)
{
    bool there;
    RQ_TRY(is_there(k, ".rorqual/lock", &there, why));
    return rq_vfs_lock(k->vfs, there ? ".rorqual/lock" : NULL, ret, why);
}

rq_err rq__fsck_begin(rq__fsck *k, rq_vfs *vfs, const rq_fsck_options *options, rq_error *why)
{
    *k = (rq__fsck){.vfs = vfs, .options = options, .meta_whole = true};
    k->findings = (rq_findings){count_finding, pass_step, k};
    if (!options->is_copy) RQ_TRY(take_lock(k, &k->lock, why));
    return look_at_root(k, why);
}

/* The paths are in the arena. */
static void free_path(void *path)
{
    (void)path;
}

void rq__fsck_end(rq__fsck *k)
{
    rq__fsck_paths *sets[] = {&k->rows,    &k->merged, &k->targets, &k->target_dirs,
                              &k->orphans, &k->known,  &k->claimed};
    for (size_t i = 0; i < RQ_ARRAY_LEN(sets); i++)
        tdestroy(sets[i]->tree, free_path);
    if (k->lock != NULL) (void)rq_file_close(k->lock);
    free(k->meta_log.list);
    free(k->store_log.list);
    free(k->regions);
    free(k->tables);
    free(k->changes);
    free(k->moving);
    rq_arena_clear(&k->arena);
}

rq_err rq_fsck(rq_vfs *vfs, const rq_fsck_options *options, rq_fsck_totals *ret, rq_error *why)
{
    rq__fsck k;
    rq_err rc = rq__fsck_begin(&k, vfs, options, why);
    if (rc == RQ_OK) rc = look(&k, why);
    rq__fsck_end(&k);
    *ret = k.totals;
    return rc;
}
