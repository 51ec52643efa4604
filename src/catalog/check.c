/* SPDX-License-Identifier: Apache-2.0 */
/* The check that HBCK2 and the shell's hbck_chore_run ask for: compares the view with the folder.
 * Each finding is a line of the log, at most FINDINGS_MAX of a kind in a minute; nothing is changed.
 *
 *   a hole or an overlap   a region of a table does not begin where the one before it ends
 *   not open               a region of an enabled table that could not be opened
 *   orphan                 a region's folder that neither the view nor hbase:meta knows
 *
 * HBASE: HbckChore. fsck checks much more, also of a running server (catalog/fsck.h). */
#include "catalog/ddl_priv.h"
#include "base/read_failure.h"

#include <stdlib.h>

/* Clients may ask for the check as often as they like. */
#define FINDINGS_MAX 20
#define FINDINGS_RATE ((rq_log_rate){FINDINGS_MAX, UINT64_C(60000000000)})

typedef struct checking {
    rq_catalog *catalog;
    rq_arena *arena;
    rq_catalog_report *report;
    /* Encoded names of regions in hbase:meta that the view does not have: parents. */
    rq_slice *parents;
    size_t parent_count, parent_cap;
} checking;

static void log_finding(const checking *k, rq_log_limit *limit, const rq_region_info *info,
                        const char *what)
{
    char name[600];
    rq_bytes_to_string(info->name, name, sizeof name);
    rq_log_write_rated(k->catalog->env->log, limit, FINDINGS_RATE, RQ_LOG_WARN, "catalog",
                       "check: %s: %s", name, what);
}

static void check_table(checking *k, const rq_catalog_table *t)
{
    rq_catalog_report *n = k->report;
    rq__check_lines *lines = &k->catalog->check_lines;
    rq_slice expected = {0};
    n->tables++;
    for (size_t i = 0; i < t->region_count; i++) {
        const rq_catalog_region *r = rq_catalog_table_region(t, i);
        bool last = i + 1 == t->region_count;
        n->regions++;
        if (!rq_slice_eq(r->info->start_key, expected) || (last && r->info->end_key.len > 0)) {
            n->holes++;
            log_finding(k, &lines->holes, r->info,
                        "a gap or an overlap of row keys next to this region in hbase:meta");
        }
        if (t->state == RQ_TABLE_ENABLED && r->state == RQ_REGION_FAILED_OPEN) {
            n->not_open++;
            log_finding(k, &lines->not_open, r->info,
                        r->failure == NULL ? "region is not open" : r->failure);
        }
        expected = r->info->end_key;
    }
}

static void check_tables(checking *k)
{
    rq_epoch_member m = {0};
    const rq_catalog_table *const *tables;
    size_t count;
    rq_epoch_pin(k->catalog->env->epoch, &m);
    rq_catalog_tables(k->catalog, &tables, &count);
    for (size_t i = 0; i < count; i++)
        check_table(k, tables[i]);
    rq_epoch_unpin(k->catalog->env->epoch, &m);
}

/* --- folders ---------------------------------------------------------------------------------- */

static rq_err add_parent(checking *k, const rq_region_info *info)
{
    if (k->parent_count == k->parent_cap) {
        size_t cap = k->parent_cap == 0 ? 16 : k->parent_cap * 2;
        rq_slice *more = rq_arena_alloc(k->arena, cap * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        if (k->parent_count > 0) memcpy(more, k->parents, k->parent_count * sizeof *more);
        k->parents = more;
        k->parent_cap = cap;
    }
    rq_slice *to = &k->parents[k->parent_count++];
    *to = rq_arena_copy(k->arena, rq_slice_cstr(info->encoded));
    return to->ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err note_parents(void *ctx, const rq__meta_row *row, rq_error *why)
{
    checking *k = ctx;
    (void)why;
    if (row->malformed != NULL || row->is_table) return RQ_OK;
    if (row->daughter_count > 0) RQ_TRY(add_parent(k, &row->info));
    for (size_t i = 0; i < row->merged_count; i++)
        RQ_TRY(add_parent(k, &row->merged[i]));
    return RQ_OK;
}

static rq_err read_parents(checking *k, rq_error *why)
{
    rq_region *meta;
    RQ_TRY(rq__meta_ref(k->catalog, &meta, why));
    rq_err rc = rq__meta_scan(meta, note_parents, k, NULL, why);
    rq_region_unref(meta);
    if (k->parent_count > 1) qsort(k->parents, k->parent_count, sizeof *k->parents, rq_slice_order);
    return rc;
}

static bool is_known(const checking *k, rq_slice encoded)
{
    rq_epoch_member m = {0};
    rq_epoch_pin(k->catalog->env->epoch, &m);
    bool known = rq_catalog_region_find(k->catalog, encoded) != NULL;
    rq_epoch_unpin(k->catalog->env->epoch, &m);
    return known || (k->parent_count > 0 && bsearch(&encoded, k->parents, k->parent_count,
                                                    sizeof encoded, rq_slice_order) != NULL);
}

static bool is_region_folder(const rq_dir_entry *e)
{
    size_t len = strlen(e->name);
    return e->is_dir && len == RQ_ENCODED_NAME_LEN &&
           strspn(e->name, "0123456789abcdef") == RQ_ENCODED_NAME_LEN;
}

static rq_err check_folder(checking *k, const char *dir, rq_error *why)
{
    rq_dir_entry *list;
    size_t count;
    RQ_TRY(rq_vfs_list_if_any(k->catalog->env->vfs, dir, k->arena, &list, &count, why));
    for (size_t i = 0; i < count; i++) {
        if (!is_region_folder(&list[i]) || is_known(k, rq_slice_cstr(list[i].name))) continue;
        k->report->orphans++;
        rq_log_write_rated(k->catalog->env->log, &k->catalog->check_lines.orphans, FINDINGS_RATE,
                           RQ_LOG_WARN, "catalog",
                           "check: %s/%s: region folder without a row in hbase:meta", dir,
                           list[i].name);
    }
    return RQ_OK;
}

#define REGION_INFO_MAX ((size_t)1024 * 1024)

/* *ret_read false: it has no .regioninfo that could be the folder's. */
static rq_err read_info(const checking *k, const char *dir, const char *encoded, rq_slice table,
                        rq_region_info *ret, bool *ret_read, rq_error *why)
{
    rq_slice bytes;
    rq_error own = {0};
    const char *path = rq_arena_printf(k->arena, "%s/%s/.regioninfo", dir, encoded);
    if (path == NULL) return rq_no_memory(why);
    rq_err rc =
        rq_vfs_read_file(k->catalog->env->vfs, path, REGION_INFO_MAX, k->arena, &bytes, &own);
    if (rc == RQ_OK) rc = rq_region_info_parse_delimited(bytes, k->arena, ret, &own);
    if (rq_is_read_failure(rc)) return rq_fail(why, rc, "%s", own.message);
    *ret_read = rc == RQ_OK && strcmp(ret->encoded, encoded) == 0 && ret->replica_id == 0 &&
                rq_slice_eq(ret->table, table);
    if (!*ret_read)
        rq_log_write_rated(k->catalog->env->log, &k->catalog->check_lines.unreadable, FINDINGS_RATE,
                           RQ_LOG_WARN, "catalog",
                           "check: %s: missing, unreadable, or of another region than its folder's",
                           path);
    return RQ_OK;
}

static rq_err list_orphans(checking *k, const char *dir, rq_slice table, rq_region_info **ret,
                           size_t *ret_count, rq_error *why)
{
    rq_dir_entry *list;
    size_t count;
    RQ_TRY(rq_vfs_list_if_any(k->catalog->env->vfs, dir, k->arena, &list, &count, why));
    *ret = rq_arena_calloc(k->arena, count + 1, sizeof **ret);
    if (*ret == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++) {
        bool is_read;
        if (!is_region_folder(&list[i]) || is_known(k, rq_slice_cstr(list[i].name))) continue;
        RQ_TRY(read_info(k, dir, list[i].name, table, &(*ret)[*ret_count], &is_read, why));
        *ret_count += is_read;
    }
    return RQ_OK;
}

rq_err rq__find_orphans(rq_catalog *c, rq_slice ns, rq_slice qualifier, rq_arena *arena,
                        rq_region_info **ret, size_t *ret_count, rq_error *why)
{
    checking k = {.catalog = c, .arena = arena};
    const char *dir = rq_arena_printf(arena, "data/%.*s/%.*s", (int)ns.len, (const char *)ns.ptr,
                                      (int)qualifier.len, (const char *)qualifier.ptr);
    rq_slice table = rq_table_name_join(arena, ns, qualifier);
    *ret_count = 0;
    if (dir == NULL || table.ptr == NULL) return rq_no_memory(why);
    RQ_TRY(read_parents(&k, why));
    return list_orphans(&k, dir, table, ret, ret_count, why);
}

/* Whether a table in the namespace's folder has a region of this encoded name. True also after an
 * error. */
static bool namespace_has(const checking *k, const char *ns, const char *encoded)
{
    rq_dir_entry *list;
    size_t count;
    rq_stat st;
    rq_vfs *vfs = k->catalog->env->vfs;
    const char *dir = rq_arena_printf(k->arena, "data/%s", ns);
    if (dir == NULL || rq_vfs_list_if_any(vfs, dir, k->arena, &list, &count, NULL) != RQ_OK)
        return true;
    for (size_t i = 0; i < count; i++) {
        const char *region = rq_arena_printf(k->arena, "%s/%s/%s", dir, list[i].name, encoded);
        if (region == NULL) return true;
        if (list[i].is_dir && rq_vfs_stat(vfs, region, &st, NULL) != RQ_E_NOT_FOUND) return true;
    }
    return false;
}

bool rq__region_is_on_disk(rq_catalog *c, const char *encoded)
{
    rq_arena a;
    rq_dir_entry *list;
    size_t count;
    rq_arena_init(&a);
    const checking k = {.catalog = c, .arena = &a};
    bool found = rq_vfs_list_if_any(c->env->vfs, "data", &a, &list, &count, NULL) != RQ_OK;
    for (size_t i = 0; !found && i < count; i++)
        found = list[i].is_dir && namespace_has(&k, list[i].name, encoded);
    rq_arena_clear(&a);
    return found;
}

/* Tables whose procedures are not finished have folders that are in no view yet. */
static bool is_in_change(const checking *k, rq_slice ns, rq_slice qualifier)
{
    rq__procedures *ps = &k->catalog->procedures;
    bool found = false;
    pthread_mutex_lock(&ps->lock);
    for (const rq__proc *p = ps->active; p != NULL && !found; p = p->next)
        found = rq_slice_eq(p->ns, ns) && rq_slice_eq(p->qualifier, qualifier);
    pthread_mutex_unlock(&ps->lock);
    return found;
}

static rq_err check_namespace(checking *k, const char *ns, rq_error *why)
{
    rq_dir_entry *tables;
    size_t count;
    const char *dir = rq_arena_printf(k->arena, "data/%s", ns);
    if (dir == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_list_if_any(k->catalog->env->vfs, dir, k->arena, &tables, &count, why));
    for (size_t i = 0; i < count; i++) {
        const char *table = rq_arena_printf(k->arena, "%s/%s", dir, tables[i].name);
        if (table == NULL) return rq_no_memory(why);
        if (!tables[i].is_dir || is_in_change(k, rq_slice_cstr(ns), rq_slice_cstr(tables[i].name)))
            continue;
        RQ_TRY(check_folder(k, table, why));
    }
    return RQ_OK;
}

static rq_err check_folders(checking *k, rq_error *why)
{
    rq_dir_entry *list;
    size_t count;
    RQ_TRY(rq_vfs_list_if_any(k->catalog->env->vfs, "data", k->arena, &list, &count, why));
    for (size_t i = 0; i < count; i++)
        if (list[i].is_dir) RQ_TRY(check_namespace(k, list[i].name, why));
    return RQ_OK;
}

rq_err rq_catalog_check(rq_catalog *c, bool *ret_ran, rq_catalog_report *ret, rq_error *why)
{
    *ret = (rq_catalog_report){0};
    *ret_ran = false;
    if (atomic_exchange(&c->checking, true)) return RQ_OK;
    rq_arena a;
    rq_arena_init(&a);
    checking k = {.catalog = c, .arena = &a, .report = ret};
    check_tables(&k);
    rq_err rc = read_parents(&k, why);
    if (rc == RQ_OK) rc = check_folders(&k, why);
    rq_arena_clear(&a);
    *ret_ran = rc == RQ_OK;
    if (rc == RQ_OK)
        rq_log_info(
            c->env->log, "catalog",
            "check: %llu tables, %llu regions; %llu regions not open, %llu gaps or overlaps, %llu "
            "region folders without a row in hbase:meta",
            (unsigned long long)ret->tables, (unsigned long long)ret->regions,
            (unsigned long long)ret->not_open, (unsigned long long)ret->holes,
            (unsigned long long)ret->orphans);
    atomic_store(&c->checking, false);
    return rc;
}
