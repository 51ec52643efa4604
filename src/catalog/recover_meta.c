/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings hbase:meta in line with the regions on disk: makes rows for regions that have none, and
 * replays the readable part of the log, with an engine and a catalog that are opened for this and
 * then stop cleanly.
 */
#include "catalog/recover_priv.h"

#include "catalog/catalog_priv.h"
#include "catalog/snapshot_manifest.h"
#include "base/read_failure.h"

#include <stdio.h>
#include <stdlib.h>

#define PASSES_MAX 3

/* --- what becomes of each --------------------------------------------------------------------- */

static bool overlap(const rq_region_info *a, const rq_region_info *b)
{
    if (!rq_slice_eq(a->table, b->table)) return false;
    bool a_first = a->end_key.len == 0 || rq_slice_compare(b->start_key, a->end_key) < 0;
    bool b_first = b->end_key.len == 0 || rq_slice_compare(a->start_key, b->end_key) < 0;
    return a_first && b_first;
}

static bool contains(const rq_region_info *outer, const rq_region_info *inner)
{
    if (rq_slice_compare(outer->start_key, inner->start_key) > 0) return false;
    if (outer->end_key.len == 0) return true;
    return inner->end_key.len > 0 && rq_slice_compare(inner->end_key, outer->end_key) <= 0;
}

/* A file of a region refers to one of this: <file>.<encoded name>. */
static rq_err find_references(rq__recover *r, const char *dir, rq_error *why)
{
    rq_dir_entry *regions, *families, *files;
    size_t count, n, m;
    RQ_TRY(rq__fsck_list(&r->k, dir, &regions, &count, why));
    for (size_t i = 0; i < count; i++) {
        const char *region = rq_arena_printf(&r->k.arena, "%s/%s", dir, regions[i].name);
        if (region == NULL) return RQ_E_NO_MEMORY;
        if (!regions[i].is_dir || regions[i].name[0] == '.') continue;
        RQ_TRY(rq__fsck_list(&r->k, region, &families, &n, why));
        for (size_t f = 0; f < n; f++) {
            const char *family = rq_arena_printf(&r->k.arena, "%s/%s", region, families[f].name);
            if (family == NULL) return RQ_E_NO_MEMORY;
            if (!families[f].is_dir) continue;
            RQ_TRY(rq__fsck_list(&r->k, family, &files, &m, why));
            for (size_t x = 0; x < m; x++) {
                const char *dot = strrchr(files[x].name, '.');
                for (size_t l = 0; dot != NULL && l < r->lost_count; l++)
                    r->lost[l].referred_to |= strcmp(dot + 1, r->lost[l].info.encoded) == 0;
            }
        }
    }
    return RQ_OK;
}

static rq_err find_all_references(rq__recover *r, rq_error *why)
{
    for (size_t i = 0; i < r->lost_count; i++) {
        char *dir = rq_arena_printf(&r->k.arena, "%s", r->lost[i].dir);
        if (dir == NULL) return RQ_E_NO_MEMORY;
        *strrchr(dir, '/') = '\0';
        bool seen = i > 0 && strncmp(dir, r->lost[i - 1].dir, strlen(dir)) == 0 &&
                    r->lost[i - 1].dir[strlen(dir)] == '/';
        if (!seen) RQ_TRY(find_references(r, dir, why));
    }
    return RQ_OK;
}

/* Links of cloned tables: archive/<family's folder>/.links-<file>/ has an entry for each. */
static rq_err find_links(rq__recover *r, rq__lost_region *l, rq_error *why)
{
    rq_dir_entry *families, *files, *links;
    size_t count, n, m;
    RQ_TRY(rq__fsck_list(&r->k, l->dir, &families, &count, why));
    for (size_t f = 0; f < count && !l->is_needed; f++) {
        if (!rq_region_is_family_folder(&families[f])) continue;
        const char *dir = rq_arena_printf(&r->k.arena, "%s/%s", l->dir, families[f].name);
        if (dir == NULL) return rq_no_memory(why);
        RQ_TRY(rq__fsck_list(&r->k, dir, &files, &n, why));
        for (size_t i = 0; i < n && !l->is_needed; i++) {
            const char *back =
                rq_arena_printf(&r->k.arena, "archive/%s/.links-%s", dir, files[i].name);
            if (back == NULL) return rq_no_memory(why);
            RQ_TRY(rq_vfs_list_if_any(r->vfs, back, &r->k.arena, &links, &m, why));
            l->is_needed = m > 0;
        }
    }
    return RQ_OK;
}

/* A snapshot that cannot be read needs nothing. */
static rq_err look_into_snapshot(rq__recover *r, const char *name, rq__lost_region *list,
                                 size_t count, rq_error *why)
{
    rq_arena a = {0};
    rq__snapshot s;
    rq_error own = {0};
    rq_err rc = rq__snapshot_read(r->vfs, rq_slice_cstr(name), &a, &s, &own);
    for (size_t i = 0; rc == RQ_OK && i < count; i++)
        list[i].is_needed |= rq__snapshot_names(&s, list[i].info.encoded);
    rq_arena_clear(&a);
    return rq_is_read_failure(rc) ? rq_fail(why, rc, "%s", own.message) : RQ_OK;
}

rq_err rq__recover_find_needs(rq__recover *r, rq__lost_region *list, size_t count, rq_error *why)
{
    rq_dir_entry *entries;
    size_t n;
    if (count == 0) return RQ_OK;
    for (size_t i = 0; i < count; i++)
        RQ_TRY(find_links(r, &list[i], why));
    RQ_TRY(rq__fsck_list(&r->k, RQ__SNAPSHOT_DIR, &entries, &n, why));
    for (size_t i = 0; i < n; i++)
        if (entries[i].is_dir && entries[i].name[0] != '.')
            RQ_TRY(look_into_snapshot(r, entries[i].name, list, count, why));
    return RQ_OK;
}

static void note_replaced(rq__lost_region *l, const rq_region_info *by)
{
    if (l->by == NULL || rq_slice_compare(by->start_key, l->by->start_key) < 0) l->by = by;
    if (l->by_last == NULL || rq_slice_compare(by->start_key, l->by_last->start_key) > 0)
        l->by_last = by;
}

/* Notes the regions that cover parts of the lost region's range: those known to hbase:meta, and
 * younger lost regions that were accepted before. */
static void find_replacements(rq__recover *r, size_t index)
{
    rq__lost_region *l = &r->lost[index];
    for (size_t i = 0; i < r->k.region_count; i++)
        if (!r->k.regions[i].is_parent && overlap(&r->k.regions[i].info, &l->info))
            note_replaced(l, &r->k.regions[i].info);
    for (size_t i = 0; i < index; i++)
        if (r->lost[i].fate == RQ__FATE_ADD && overlap(&r->lost[i].info, &l->info))
            note_replaced(l, &r->lost[i].info);
}

static int youngest_first(const void *a, const void *b)
{
    const rq__lost_region *x = a, *y = b;
    return (x->info.region_id < y->info.region_id) - (x->info.region_id > y->info.region_id);
}

static void report_fate(rq__recover *r, const rq__lost_region *l)
{
    static const char *const what[] = {[RQ__FATE_ADD] = "hbase:meta",
                                       [RQ__FATE_SPLIT_PARENT] = "hbase:meta",
                                       [RQ__FATE_MERGE_PARENT] = "hbase:meta",
                                       [RQ__FATE_ASIDE] = "set aside"};
    static const char *const text[] = {
        [RQ__FATE_ADD] = "has no row, and gets one",
        [RQ__FATE_SPLIT_PARENT] =
            "has no row; it was split, and is kept for the regions that refer to it",
        [RQ__FATE_MERGE_PARENT] =
            "has no row; it was merged, and is kept for the region that refers to it",
        [RQ__FATE_ASIDE] = "has no row, and other regions have its rows"};
    if (l->fate == RQ__FATE_STAYS)
        r->options->report(
            r->options->ctx, "note", l->dir,
            "has no row, and other regions have its rows; it stays, because a cloned "
            "table or a snapshot needs its files");
    else
        rq__recover_report(r, what[l->fate], l->dir, text[l->fate]);
}

rq_err rq__recover_decide(rq__recover *r, rq_error *why)
{
    RQ_TRY(find_all_references(r, why));
    RQ_TRY(rq__recover_find_needs(r, r->lost, r->lost_count, why));
    if (r->lost_count > 1) qsort(r->lost, r->lost_count, sizeof *r->lost, youngest_first);
    for (size_t i = 0; i < r->lost_count; i++) {
        rq__lost_region *l = &r->lost[i];
        find_replacements(r, i);
        l->fate = l->by == NULL               ? RQ__FATE_ADD
                  : !l->referred_to           ? (l->is_needed ? RQ__FATE_STAYS : RQ__FATE_ASIDE)
                  : contains(l->by, &l->info) ? RQ__FATE_MERGE_PARENT
                                              : RQ__FATE_SPLIT_PARENT;
        report_fate(r, l);
    }
    return RQ_OK;
}

/* --- rows ------------------------------------------------------------------------------------- */

static rq_err put_merge_parents(rq__recover *r, rq__batch *b, const rq_region_info *merged)
{
    size_t count = 0;
    rq_region_info *parents = rq_arena_calloc(b->arena, r->lost_count, sizeof *parents);
    if (parents == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < r->lost_count; i++)
        if (r->lost[i].fate == RQ__FATE_MERGE_PARENT && r->lost[i].by == merged)
            parents[count++] = r->lost[i].info;
    return count == 0 ? RQ_OK : rq__meta_put_merge_parents(b, merged, parents, count);
}

static bool has_state(const rq__fsck *k, rq_slice table)
{
    for (size_t i = 0; i < k->table_count; i++)
        if (rq_slice_eq(k->tables[i].name, table)) return true;
    return false;
}

static rq_err put_rows(rq__recover *r, rq__batch *b)
{
    for (size_t i = 0; i < r->lost_count; i++) {
        const rq__lost_region *l = &r->lost[i];
        if (l->fate == RQ__FATE_ADD) {
            RQ_TRY(rq__meta_put_region(b, &l->info, RQ_REGION_CLOSED, NULL, -1));
            if (!has_state(&r->k, l->info.table))
                RQ_TRY(rq__meta_put_table_state(b, l->info.table, RQ_TABLE_ENABLED));
            RQ_TRY(put_merge_parents(r, b, &l->info));
        } else if (l->fate == RQ__FATE_SPLIT_PARENT) {
            RQ_TRY(rq__meta_put_split_parent(b, &l->info, 1, l->by, l->by_last));
        }
    }
    for (size_t i = 0; i < r->k.region_count; i++)
        RQ_TRY(put_merge_parents(r, b, &r->k.regions[i].info));
    return RQ_OK;
}

static rq_err add_rows(rq__recover *r, rq_catalog *c, rq_error *why)
{
    rq_arena a = {0};
    rq__batch b;
    rq_region *meta;
    RQ_TRY(rq__meta_ref(c, &meta, why));
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    rq_err rc = put_rows(r, &b);
    for (size_t i = 0; rc == RQ_OK && i < b.count;) { /* after a crash, recover begins anew */
        const rq__batch part = rq__batch_part(&b, i);
        rc = rq__batch_commit(&part, meta, true, why);
        i += part.count;
    }
    rq_region_unref(meta);
    rq_arena_clear(&a);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "hbase:meta: %s", rq_err_text(rc));
}

/* --- a start and a stop ----------------------------------------------------------------------- */

static void region_failed(void *context, rq_region *region, const rq_error *why)
{
    const rq__recover *r = context;
    rq_log_error(r->env->log, "recover", "region %s failed: %s",
                 rq_region_get_info(region)->encoded, why->message);
}

/* *ret_kept: the log is still needed by a region that was not open. */
static rq_err run_pass(rq__recover *r, bool add, bool *ret_kept, rq_error *why)
{
    rq_root *root = NULL;
    rq_engine *engine = NULL;
    rq_host *host = NULL;
    rq_catalog *catalog = NULL;
    int64_t now = r->env->executor->now_ms(r->env->executor);
    rq_engine_options eo = {.region_failed = region_failed, .context = r, .salvage_log = true};
    rq_catalog_options co = {.master = {.host = "localhost", .port = 1, .start_code = now}};
    *ret_kept = false;
    rq_err rc = rq_root_open(r->env, &root, why);
    if (rc == RQ_OK) rc = rq_engine_open(r->env, &eo, &engine, why);
    if (rc == RQ_OK) rc = rq_host_new(engine, &co.master, NULL, &host);
    co.host = host;
    if (rc == RQ_OK) rc = rq_catalog_open(root, &co, &catalog, why);
    if (rc == RQ_OK && add) rc = add_rows(r, catalog, why);
    rq_error own = {0};
    bool clean = rc == RQ_OK;
    rq_err closed = catalog == NULL ? RQ_OK : rq_catalog_close(catalog, clean, &own);
    rq_host_free(host);
    if (engine != NULL) {
        rq_err ended = rq_engine_close(engine, clean && closed == RQ_OK, &own);
        if (closed == RQ_OK) closed = ended;
    }
    if (clean && closed == RQ_OK) rq_root_stopped_cleanly(root);
    *ret_kept = clean && closed == RQ_E_STATE;
    if (clean && closed != RQ_OK && !*ret_kept) rc = rq_fail(why, closed, "%s", own.message);
    rq_root_close(root);
    return rc;
}

/* The first pass writes the regions' rows. The second pass opens the regions, so that their records
 * in the log are replayed. */
rq_err rq__recover_meta(rq__recover *r, rq_error *why)
{
    bool kept = true;
    for (int pass = 0; pass < PASSES_MAX && kept; pass++) {
        bool add = pass == 0 && r->lost_count > 0;
        RQ_TRY(run_pass(r, add, &kept, why));
        kept |= add;
    }
    if (!kept || !r->log_damaged) return RQ_OK;
    return rq_fail(why, RQ_E_STATE,
                   "regions that cannot be opened still need the damaged write-ahead log; rorqual "
                   "fsck lists them");
}
