/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in adopt.h. Conditions for taking over a folder of HBase's:
 *
 *  - No log is in a server's folder below WALs/: a clean stop moves logs to oldWALs/, a killed
 *    HBase leaves them. They are read to describe their content in the error, but even a log that
 *    seems empty is refused: acknowledged edits may never have left the buffers of that process.
 *  - No log in MasterData/WALs/ or in a recovered.edits/ has an edit whose sequence id is above the
 *    largest MAX_SEQ_ID_KEY of its family's files: HBase would replay it, this server could not.
 *  - No family has a recovered.hfiles/ with files: the same kind of edits, where HBase splits logs
 *    to HFiles.
 *  - No procedure in master:store is unfinished, except those for crashes of servers and their
 *    children.
 *  - Every family uses the store-file tracker DEFAULT or FILE.
 *
 * A log of a region or family whose folder is gone belongs to something that was dropped. HBASE:
 * WALSplitter, HRegion.replayRecoveredEditsIfAny, RegionProcedureStore. */
#include "catalog/adopt.h"

#include "base/checksum.h"
#include "catalog/catalog_priv.h"
#include "catalog/pwal.h"
#include "catalog/tableinfo.h"
#include "catalog/tracker.h"
#include "base/read_failure.h"
#include "hfile/reader.h"
#include "region/region_info.h"

#include <stdio.h>
#include <stdlib.h>

#define LOG_BYTES_MAX ((size_t)1 << 30)
#define OLD_LOGS "MasterData/oldWALs"

static const char *const log_dirs[] = {"WALs", "MasterData/WALs"};

/* --- each log of HBase's ---------------------------------------------------------------------- */

typedef rq_err (*log_visit)(void *ctx, const char *path, bool is_dir, rq_error *why);

/* Visits servers' folders and the files in them; a folder after its files. */
static rq_err each_log(rq_vfs *v, rq_arena *a, log_visit visit, void *ctx, rq_error *why)
{
    for (size_t d = 0; d < RQ_ARRAY_LEN(log_dirs); d++) {
        rq_dir_entry *servers;
        size_t count;
        RQ_TRY(rq_vfs_list_if_any(v, log_dirs[d], a, &servers, &count, why));
        for (size_t i = 0; i < count; i++) {
            char *path = rq_arena_printf(a, "%s/%s", log_dirs[d], servers[i].name);
            if (path == NULL) return RQ_E_NO_MEMORY;
            rq_dir_entry *files = NULL;
            size_t n = 0;
            if (servers[i].is_dir) RQ_TRY(rq_vfs_list_if_any(v, path, a, &files, &n, why));
            for (size_t f = 0; f < n; f++) {
                char *file = rq_arena_printf(a, "%s/%s", path, files[f].name);
                if (file == NULL) return RQ_E_NO_MEMORY;
                RQ_TRY(visit(ctx, file, files[f].is_dir, why));
            }
            RQ_TRY(visit(ctx, path, servers[i].is_dir, why));
        }
    }
    return RQ_OK;
}

static rq_err add_to_stamp(void *ctx, const char *path, bool is_dir, rq_error *why)
{
    uint32_t *stamp = ctx;
    (void)is_dir;
    (void)why;
    *stamp = rq_crc32c(*stamp, path, strlen(path) + 1);
    if (*stamp == 0) *stamp = 1;
    return RQ_OK;
}

rq_err rq__adopt_look(rq_vfs *v, uint32_t *ret_stamp, rq_error *why)
{
    rq_arena a = {0};
    *ret_stamp = 0;
    rq_err rc = each_log(v, &a, add_to_stamp, ret_stamp, why);
    rq_arena_clear(&a);
    return rc;
}

/* --- what is in files ------------------------------------------------------------------------- */

/* A family's largest flushed number. */
typedef struct flushed {
    struct flushed *next;
    rq_slice region, family;
    bool is_there; /* its folder */
    uint64_t seqid;
} flushed;

typedef struct check {
    rq_vfs *vfs;
    rq_arena arena;
    flushed *known;
    bool clears; /* moves recovered.edits away whose edits are all in files */
} check;

static rq_err flushed_of_dir(check *k, const char *dir, flushed *f, rq_error *why)
{
    rq_dir_entry *files;
    size_t count;
    RQ_TRY(rq_vfs_exists(k->vfs, dir, &f->is_there, why));
    RQ_TRY(rq_vfs_list_if_any(k->vfs, dir, &k->arena, &files, &count, why));
    for (size_t i = 0; i < count; i++) {
        if (files[i].is_dir || files[i].name[0] == '.') continue;
        char *path = rq_arena_printf(&k->arena, "%s/%s", dir, files[i].name);
        if (path == NULL) return RQ_E_NO_MEMORY;
        rq_hfile_reader *reader;
        /* References and links have no number of their own. */
        if (rq_hfile_reader_open(k->vfs, path, NULL, false, &reader, NULL) != RQ_OK) continue;
        const rq_hfile_info *info = rq_hfile_reader_info(reader);
        if (info->has_max_seqid && info->max_seqid > f->seqid) f->seqid = info->max_seqid;
        rq_hfile_reader_unref(reader);
    }
    return RQ_OK;
}

static bool is_plain(rq_slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.ptr[i] == '/' || name.ptr[i] < ' ') return false;
    return name.len > 0 && name.ptr[0] != '.';
}

static rq_err find_flushed(check *k, const rq__pwal_edit *e, const flushed **ret, rq_error *why)
{
    rq_slice family = rq_cell_family(e->cell);
    rq_slice ns;
    rq_slice qualifier;
    for (const flushed *f = k->known; f != NULL; f = f->next) {
        if (!rq_slice_eq(f->region, e->region) || !rq_slice_eq(f->family, family)) continue;
        *ret = f;
        return RQ_OK;
    }
    RQ_TRY(rq_table_name_parse(e->table, &ns, &qualifier, why));
    if (!is_plain(e->region) || !is_plain(family))
        return rq_fail(why, RQ_E_CORRUPT,
                       "a record of HBase's log has a malformed region or family");
    flushed *f = rq_arena_calloc(&k->arena, 1, sizeof *f);
    if (f == NULL) return RQ_E_NO_MEMORY;
    f->region = rq_arena_copy(&k->arena, e->region);
    f->family = rq_arena_copy(&k->arena, family);
    bool master = rq_slice_eq(ns, RQ_SLICE_LIT("master"));
    char *dir = rq_arena_printf(
        &k->arena, "%sdata/%.*s/%.*s/%.*s/%.*s", master ? "MasterData/" : "", (int)ns.len,
        (const char *)ns.ptr, (int)qualifier.len, (const char *)qualifier.ptr, (int)f->region.len,
        (const char *)f->region.ptr, (int)family.len, (const char *)family.ptr);
    if (f->region.ptr == NULL || f->family.ptr == NULL || dir == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(flushed_of_dir(k, dir, f, why));
    f->next = k->known;
    k->known = f;
    *ret = f;
    return RQ_OK;
}

/* Edits in a log that are in no file. */
typedef struct lost_edits {
    check *check;
    uint64_t count;
    char first[512]; /* description of the first lost edit */
} lost_edits;

static rq_err count_edit(void *ctx, const rq__pwal_edit *e, rq_error *why)
{
    lost_edits *l = ctx;
    const flushed *f = NULL;
    RQ_TRY(find_flushed(l->check, e, &f, why));
    if (!f->is_there || e->seqid <= f->seqid) return RQ_OK;
    if (l->count++ > 0) return RQ_OK;
    snprintf(l->first, sizeof l->first,
             "the first of %.*s, region %.*s, number %llu, where files go up to %llu",
             e->table.len > 200 ? 200 : (int)e->table.len, (const char *)e->table.ptr,
             e->region.len > 64 ? 64 : (int)e->region.len, (const char *)e->region.ptr,
             (unsigned long long)e->seqid, (unsigned long long)f->seqid);
    return RQ_OK;
}

#define ADVICE "start HBase on the folder once more and stop it cleanly; nothing was changed"

/* Accepts a server's folder, whose files are checked one by one. Refuses a folder with entries
 * inside it: they are not logs of HBase, and would be moved away unread. */
static rq_err check_log_dir(check *k, const char *path, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    const char *below = strstr(path, "WALs/") + strlen("WALs/");
    if (strchr(below, '/') == NULL) return RQ_OK;
    RQ_TRY(rq_vfs_list_if_any(k->vfs, path, &k->arena, &entries, &count, why));
    if (count == 0) return RQ_OK;
    return rq_fail(why, RQ_E_UNSUPPORTED,
                   "%s/%s is not a log, but is in the folder of Apache HBase's logs: move it "
                   "elsewhere; nothing was changed",
                   path, entries[0].name);
}

static rq_err check_log(void *ctx, const char *path, bool is_dir, rq_error *why)
{
    lost_edits l = {.check = ctx};
    if (is_dir) return check_log_dir(l.check, path, why);
    bool of_regions = strncmp(path, "WALs/", 5) == 0;
    rq_slice bytes;
    rq_arena a = {0};
    rq_error own = {0};
    rq_err rc = rq_vfs_read_file(l.check->vfs, path, LOG_BYTES_MAX, &a, &bytes, &own);
    if (rc == RQ_OK) rc = rq__pwal_read(bytes, count_edit, &l, &own);
    rq_arena_clear(&a);
    if (rq_is_read_failure(rc)) return rq_fail(why, rc, "%s: %s", path, own.message);
    if (rc != RQ_OK)
        return rq_fail(why, rc,
                       "%s is a log of an Apache HBase that used this folder, and cannot be read "
                       "(%s): " ADVICE,
                       path, own.message[0] == '\0' ? rq_err_text(rc) : own.message);
    if (l.count > 0)
        return rq_fail(why, RQ_E_STATE,
                       "%s is a log of an Apache HBase that was not stopped: %llu of its cells are "
                       "not in any HFile (first: %s): " ADVICE,
                       path, (unsigned long long)l.count, l.first);
    if (!of_regions) return RQ_OK;
    return rq_fail(why, RQ_E_STATE,
                   "%s is a log of an Apache HBase that was not stopped (a clean stop leaves none "
                   "there): " ADVICE,
                   path);
}

/* --- regions and tables ----------------------------------------------------------------------- */

/* Moves a file of recovered.edits away. Its region has not been opened since. All edits of the file
 * are in store files, so HBase would skip the file too. */
static rq_err put_recovered_away(check *k, const char *region, const char *name, const char *path,
                                 rq_error *why)
{
    char *to = rq_arena_printf(&k->arena, OLD_LOGS "/%s.%s", strrchr(region, '/') + 1, name);
    return to == NULL ? RQ_E_NO_MEMORY : rq_vfs_move(k->vfs, path, to, why);
}

/* Whether HBase would replay the file. Files with other names only have a sequence id in the name,
 * or were being written when log splitting was interrupted, or HBase could not read them and moved
 * them aside. HBASE: WALSplitUtil.getSplitEditFilesSorted. */
static bool is_recovered(const rq_dir_entry *e)
{
    const char *digits = e->name + (e->name[0] == '-');
    return !e->is_dir && digits[0] != '\0' && digits[strspn(digits, "0123456789")] == '\0';
}

static rq_err check_recovered(check *k, const char *region, rq_error *why)
{
    rq_dir_entry *files;
    size_t count;
    char *dir = rq_arena_printf(&k->arena, "%s/recovered.edits", region);
    if (dir == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(rq_vfs_list_if_any(k->vfs, dir, &k->arena, &files, &count, why));
    for (size_t i = 0; i < count; i++) {
        if (!is_recovered(&files[i])) continue;
        char *path = rq_arena_printf(&k->arena, "%s/%s", dir, files[i].name);
        if (path == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(check_log(k, path, false, why));
        if (k->clears) RQ_TRY(put_recovered_away(k, region, files[i].name, path, why));
    }
    return RQ_OK;
}

/* HBASE: HRegion.loadRecoveredHFilesIfAny, hbase.wal.split.to.hfile: when the region opens, all but
 * empty files are moved into the family's folder. */
static rq_err check_recovered_files(check *k, const char *family, rq_error *why)
{
    rq_dir_entry *files;
    size_t count;
    const char *dir = rq_arena_printf(&k->arena, "%s/recovered.hfiles", family);
    if (dir == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(rq_vfs_list_if_any(k->vfs, dir, &k->arena, &files, &count, why));
    for (size_t i = 0; i < count; i++) {
        rq_stat st;
        const char *path = rq_arena_printf(&k->arena, "%s/%s", dir, files[i].name);
        if (path == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(rq_vfs_stat(k->vfs, path, &st, why));
        if (st.size > 0)
            return rq_fail(why, RQ_E_STATE,
                           "%s contains edits of an Apache HBase that was not stopped: " ADVICE,
                           path);
    }
    return RQ_OK;
}

static rq_err check_region(check *k, const char *region, rq_error *why)
{
    rq_dir_entry *families;
    size_t count;
    RQ_TRY(check_recovered(k, region, why));
    RQ_TRY(rq_vfs_list_if_any(k->vfs, region, &k->arena, &families, &count, why));
    for (size_t i = 0; i < count; i++) {
        if (!families[i].is_dir || families[i].name[0] == '.') continue;
        const char *family = rq_arena_printf(&k->arena, "%s/%s", region, families[i].name);
        if (family == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(check_recovered_files(k, family, why));
    }
    return RQ_OK;
}

static rq_err check_table(check *k, const char *ns, const char *qualifier, rq_error *why)
{
    rq_table_schema *s;
    rq_error own = {0};
    rq_err rc = rq_tableinfo_read(k->vfs, rq_slice_cstr(ns), rq_slice_cstr(qualifier), &s, &own);
    if (rc == RQ_E_NO_MEMORY) return rc;
    if (rc == RQ_OK) { /* the start reports one that cannot be read as broken */
        for (size_t i = 0; i < s->family_count && rc == RQ_OK; i++)
            if (rq__tracker_check_known(s, &s->families[i], &own) != RQ_OK)
                rc = rq_fail(why, RQ_E_UNSUPPORTED, "table %s:%s: %s; nothing was changed", ns,
                             qualifier, own.message);
        rq_table_schema_unref(s);
        RQ_TRY(rc);
    }
    rq_dir_entry *regions;
    size_t count;
    char *dir = rq_arena_printf(&k->arena, "data/%s/%s", ns, qualifier);
    if (dir == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(rq_vfs_list_if_any(k->vfs, dir, &k->arena, &regions, &count, why));
    for (size_t i = 0; i < count; i++) {
        if (!regions[i].is_dir || regions[i].name[0] == '.') continue;
        char *region = rq_arena_printf(&k->arena, "%s/%s", dir, regions[i].name);
        if (region == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(check_region(k, region, why));
    }
    return RQ_OK;
}

static rq_err check_tables(check *k, rq_error *why)
{
    rq_dir_entry *spaces;
    size_t count;
    RQ_TRY(rq_vfs_list_if_any(k->vfs, "data", &k->arena, &spaces, &count, why));
    for (size_t i = 0; i < count; i++) {
        rq_dir_entry *tables;
        size_t n;
        char *dir = rq_arena_printf(&k->arena, "data/%s", spaces[i].name);
        if (dir == NULL) return RQ_E_NO_MEMORY;
        if (!spaces[i].is_dir || spaces[i].name[0] == '.') continue;
        RQ_TRY(rq_vfs_list_if_any(k->vfs, dir, &k->arena, &tables, &n, why));
        for (size_t t = 0; t < n; t++)
            if (tables[t].is_dir && tables[t].name[0] != '.')
                RQ_TRY(check_table(k, spaces[i].name, tables[t].name, why));
    }
    return RQ_OK;
}

/* --- all of it -------------------------------------------------------------------------------- */

rq_err rq__adopt_check(rq_vfs *v, rq_error *why)
{
    check k = {.vfs = v};
    rq_err rc = each_log(v, &k.arena, check_log, &k, why);
    if (rc == RQ_OK) rc = check_tables(&k, why);
    if (rc == RQ_OK) rc = rq__adopt_check_procedures(v, why);
    rq_arena_clear(&k.arena);
    return rc;
}

rq_err rq__adopt_recovered(rq_vfs *v, rq_error *why)
{
    check k = {.vfs = v, .clears = true};
    rq_err rc = check_tables(&k, why);
    rq_arena_clear(&k.arena);
    return rc;
}

/* --- afterwards ------------------------------------------------------------------------------- */

typedef struct old_records {
    rq_catalog *catalog;
    rq_arena arena;
    rq__batch batch;
    rq_slice *rows;
    size_t count, cap;
} old_records;

static rq_err take_old(void *ctx, const rq_cell *cells, size_t count, rq_error *why)
{
    old_records *o = ctx;
    (void)why;
    bool of_procedure = false;
    for (size_t i = 0; i < count; i++) {
        rq__catalog_saw_ms(o->catalog, cells[i].timestamp);
        of_procedure |= rq_slice_eq(rq_cell_family(&cells[i]), RQ_SLICE_LIT("proc"));
    }
    if (!of_procedure || count == 0 || cells[0].row_len != 8) return RQ_OK;
    if (o->count == o->cap) {
        size_t cap = o->cap == 0 ? 64 : o->cap * 2;
        rq_slice *more = realloc(o->rows, cap * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        o->rows = more;
        o->cap = cap;
    }
    o->rows[o->count] = rq_arena_copy(&o->arena, rq_cell_row(&cells[0]));
    return o->rows[o->count++].ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* Rows are in order, so the last one has the highest id. This row stays, without a value, because
 * this server and HBase must give every procedure a higher id (HBASE: RegionProcedureStore). */
static rq_err write_old(old_records *o, rq_region *store, rq_error *why)
{
    rq__batch_init(&o->batch, &o->arena, rq__catalog_now_ms(o->catalog));
    for (size_t i = 0; i + 1 < o->count; i++)
        RQ_TRY(rq__batch_delete_family(&o->batch, o->rows[i], "proc"));
    if (o->count > 0) {
        rq_slice last = o->rows[o->count - 1];
        RQ_TRY(rq__batch_put(&o->batch, last, "proc", RQ_SLICE_LIT("d"), rq_slice_of(last.ptr, 0)));
    }
    return rq__batch_commit(&o->batch, store, true, why);
}

rq_err rq__adopt_store(rq_catalog *c, rq_error *why)
{
    old_records o = {.catalog = c};
    rq_region *store;
    RQ_TRY(rq__store_ref(c, &store, why));
    rq_err rc = rq__region_each_row(store, NULL, NULL, take_old, &o, why);
    if (rc == RQ_OK) rc = write_old(&o, store, why);
    rq_region_unref(store);
    free(o.rows);
    rq_arena_clear(&o.arena);
    return rc;
}

static rq_err put_away(void *ctx, const char *path, bool is_dir, rq_error *why)
{
    rq_vfs *v = ctx;
    if (is_dir) return rq_vfs_remove_tree(v, path, why);
    rq_arena a = {0};
    char *to = rq_arena_printf(&a, OLD_LOGS "%s", strrchr(path, '/'));
    rq_err rc = to == NULL ? RQ_E_NO_MEMORY : rq_vfs_move(v, path, to, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq__adopt_logs(rq_vfs *v, rq_error *why)
{
    rq_arena a = {0};
    rq_err rc = each_log(v, &a, put_away, v, why);
    for (size_t d = 0; d < RQ_ARRAY_LEN(log_dirs) && rc == RQ_OK; d++) {
        rc = rq_vfs_mkdirs(v, log_dirs[d], why);
        if (rc == RQ_OK) rc = rq_vfs_sync_dir(v, log_dirs[d], why);
    }
    rq_arena_clear(&a);
    return rc;
}
