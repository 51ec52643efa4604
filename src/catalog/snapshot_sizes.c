/* SPDX-License-Identifier: Apache-2.0 */
/* The size of a snapshot: the bytes of the files that it keeps in archive/ and that no table has
 * any more. A file that several snapshots of a table name is counted for the first of these
 * snapshots, by name. Links, references and the files of split parents are not counted, but the
 * files that links and references point to are. HBASE: FileArchiverNotifierImpl. */
#include "catalog/ddl_priv.h"
#include "catalog/snapshot_manifest.h"
#include "catalog/snapshots.h"
#include "store/mob.h"
#include "store/reference.h"

#include <stdlib.h>

typedef struct sums {
    rq_vfs *vfs;
    rq_arena paths; /* for the paths of one folder */
    rq_arena counted_arena;
    rq__names counted; /* files that snapshots of this table were charged for, ascending */
} sums;

static rq_err remember(sums *s, rq_slice name)
{
    rq_slice copy = rq_arena_copy(&s->counted_arena, name);
    return copy.ptr == NULL ? RQ_E_NO_MEMORY : rq__names_add(&s->counted, copy);
}

static void forget(sums *s)
{
    s->counted.count = 0;
    rq_arena_clear(&s->counted_arena);
    rq_arena_init(&s->counted_arena);
}

/* --- a snapshot ------------------------------------------------------------------------------- */

/* `dir`: the folder that the file has, or had, below data/ or mobdir/. *ret 0: the file is still
 * there, or is not in archive/ either. */
static rq_err archived_size(sums *s, const char *dir, rq_slice name, uint64_t *ret, rq_error *why)
{
    size_t mob = sizeof RQ_MOB_DIR; /* with the slash */
    const char *below = strncmp(dir, RQ_MOB_DIR "/", mob) == 0 ? dir + mob : dir;
    const char *path =
        rq_arena_printf(&s->paths, "%s/%.*s", dir, (int)name.len, (const char *)name.ptr);
    const char *archived =
        rq_arena_printf(&s->paths, "archive/%s/%.*s", below, (int)name.len, (const char *)name.ptr);
    rq_stat st = {0};
    *ret = 0;
    if (path == NULL || archived == NULL) return rq_no_memory(why);
    rq_err rc = rq_vfs_stat(s->vfs, path, &st, why);
    if (rc != RQ_E_NOT_FOUND) return rc;
    rc = rq_vfs_stat(s->vfs, archived, &st, why);
    if (rc == RQ_OK) *ret = st.size;
    return rc == RQ_E_NOT_FOUND ? RQ_OK : rc;
}

static rq_err add_file(sums *s, const char *dir, rq_slice name, size_t sorted, uint64_t *sum,
                       rq_error *why)
{
    rq_store_name parts;
    uint64_t bytes;
    rq_store_name_parse(name, &parts);
    if (parts.is_link || parts.is_reference || rq__names_have(&s->counted, sorted, name))
        return RQ_OK;
    RQ_TRY(archived_size(s, dir, name, &bytes, why));
    if (bytes == 0) return RQ_OK;
    *sum += bytes;
    return remember(s, name) == RQ_OK ? RQ_OK : rq_no_memory(why);
}

static rq_err add_region(sums *s, const char *region_dir, const rq_region_files *files,
                         size_t sorted, uint64_t *sum, rq_error *why)
{
    rq_err rc = RQ_OK;
    if (region_dir == NULL) return rq_no_memory(why);
    for (size_t i = 0; rc == RQ_OK && i < files->count; i++) {
        const rq_family_files *f = &files->families[i];
        const char *dir = rq_arena_printf(&s->paths, "%s/%.*s", region_dir, (int)f->name.len,
                                          (const char *)f->name.ptr);
        if (dir == NULL) return rq_no_memory(why);
        for (size_t k = 0; rc == RQ_OK && k < f->count; k++)
            rc = add_file(s, dir, f->files[k].name, sorted, sum, why);
    }
    return rc;
}

static rq_err add_regions(sums *s, const rq__snapshot *snapshot, uint64_t *sum, rq_error *why)
{
    size_t sorted = s->counted.count;
    rq_err rc = RQ_OK;
    for (size_t i = 0; rc == RQ_OK && i < snapshot->count; i++) {
        const rq_region_info *info = &snapshot->regions[i].info;
        const char *dir = rq_arena_printf(&s->paths, "data/%.*s/%.*s/%s", (int)info->ns.len,
                                          (const char *)info->ns.ptr, (int)info->qualifier.len,
                                          (const char *)info->qualifier.ptr, info->encoded);
        rc = add_region(s, dir, &snapshot->regions[i].files, sorted, sum, why);
        rq_arena_clear(&s->paths);
        rq_arena_init(&s->paths);
    }
    if (rc == RQ_OK && snapshot->mob.count > 0 && snapshot->count > 0)
        rc = add_region(s, rq_mob_region_dir(&s->paths, snapshot->regions[0].info.table),
                        &snapshot->mob, sorted, sum, why);
    rq__names_sort(&s->counted);
    return rc;
}

/* A snapshot that is damaged, or was deleted meanwhile, counts as 0 bytes. */
static rq_err measure(sums *s, rq_snapshot_size *one, rq_error *why)
{
    rq_arena arena = {0};
    rq__snapshot snapshot;
    rq_error own = {0};
    rq_err rc = rq__snapshot_read(s->vfs, one->name, &arena, &snapshot, &own);
    if (rc == RQ_OK) rc = add_regions(s, &snapshot, &one->bytes, &own);
    rq_arena_clear(&arena);
    if (rc == RQ_OK || rc == RQ_E_SNAPSHOT_NOT_FOUND || rc == RQ_E_SNAPSHOT_CORRUPT) return RQ_OK;
    return rq_fail(why, rc, "snapshot %.*s: %s", (int)one->name.len, (const char *)one->name.ptr,
                   own.message);
}

/* --- all -------------------------------------------------------------------------------------- */

static int by_table(const void *a, const void *b)
{
    const rq_snapshot_size *x = a, *y = b;
    int order = rq_slice_compare(x->table, y->table);
    return order != 0 ? order : rq_slice_compare(x->name, y->name);
}

static rq_err list_of_tables(rq_catalog *c, bool (*takes)(void *ctx, rq_slice table), void *ctx,
                             rq_arena *arena, rq_snapshot_size **ret, size_t *ret_count,
                             rq_error *why)
{
    rq_snapshot *all;
    size_t count;
    *ret_count = 0;
    RQ_TRY(rq_catalog_snapshots(c, arena, &all, &count, why));
    *ret = rq_arena_calloc(arena, count + 1, sizeof **ret);
    if (*ret == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++)
        if (takes(ctx, all[i].table))
            (*ret)[(*ret_count)++] = (rq_snapshot_size){.name = all[i].name, .table = all[i].table};
    if (*ret_count > 1) qsort(*ret, *ret_count, sizeof **ret, by_table);
    return RQ_OK;
}

rq_err rq_catalog_snapshot_sizes(rq_catalog *c, bool (*takes)(void *ctx, rq_slice table), void *ctx,
                                 rq_arena *arena, rq_snapshot_size **ret, size_t *ret_count,
                                 rq_error *why)
{
    sums s = {.vfs = c->env->vfs};
    RQ_TRY(list_of_tables(c, takes, ctx, arena, ret, ret_count, why));
    rq_err rc = RQ_OK;
    for (size_t i = 0; rc == RQ_OK && i < *ret_count; i++) {
        if (i > 0 && !rq_slice_eq((*ret)[i].table, (*ret)[i - 1].table)) forget(&s);
        rc = measure(&s, &(*ret)[i], why);
    }
    free(s.counted.list);
    rq_arena_clear(&s.counted_arena);
    rq_arena_clear(&s.paths);
    return rc;
}
