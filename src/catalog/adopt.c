/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contract in adopt.h. What must be so before a folder of HBase's is taken over:
 *
 *   - no log is in a server's folder of WALs/: a clean stop moves them to oldWALs/, a killed HBase
 *     leaves them. They are read to say what they hold, but one that seems to hold nothing is no
 *     proof: what was acknowledged may never have left that process's buffers
 *   - no log in MasterData/WALs/ or a recovered.edits/ holds an edit above what its family's files
 *     hold (the largest MAX_SEQ_ID_KEY): HBase would replay it, this server could not
 *   - no procedure in master:store is unfinished, but crashes of servers and what stands under them
 *   - every family keeps its files by the tracker DEFAULT or FILE
 *
 * A log of a region or family whose folder is gone is of something dropped. HBASE: WALSplitter,
 * HRegion.replayRecoveredEditsIfAny, RegionProcedureStore.
 */
#include "catalog/adopt.h"

#include "base/checksum.h"
#include "catalog/catalog_priv.h"
#include "catalog/descriptor.h"
#include "catalog/pwal.h"
#include "catalog/tableinfo.h"
#include "hfile/reader.h"
#include "proto/procedure.pb-c.h"
#include "region/region_info.h"
#include "store/pb_arena.h"

#include <stdio.h>
#include <stdlib.h>

#define LOG_BYTES_MAX ((size_t)1 << 30)
#define OLD_LOGS "MasterData/oldWALs"

static const char *const log_dirs[] = {"WALs", "MasterData/WALs"};

/* RQ_OK with nothing in it for a folder that is not there. */
static rq_err list(rq_vfs *v, const char *dir, rq_arena *a, rq_dir_entry **ret, size_t *ret_count,
                   rq_error *why)
{
    rq_error own = {0};
    rq_err rc = rq_vfs_list(v, dir, a, ret, ret_count, &own);
    if (rc == RQ_E_NOT_FOUND) {
        *ret_count = 0;
        return RQ_OK;
    }
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}

/* --- each log of HBase's ---------------------------------------------------------------------- */

typedef rq_err (*log_visit)(void *ctx, const char *path, bool is_dir, rq_error *why);

/* Servers' folders and the files in them; a folder after its files. */
static rq_err each_log(rq_vfs *v, rq_arena *a, log_visit visit, void *ctx, rq_error *why)
{
    for (size_t d = 0; d < RQ_ARRAY_LEN(log_dirs); d++) {
        rq_dir_entry *servers;
        size_t count;
        RQ_TRY(list(v, log_dirs[d], a, &servers, &count, why));
        for (size_t i = 0; i < count; i++) {
            char *path = rq_arena_printf(a, "%s/%s", log_dirs[d], servers[i].name);
            if (path == NULL) return RQ_E_NO_MEMORY;
            rq_dir_entry *files = NULL;
            size_t n = 0;
            if (servers[i].is_dir) RQ_TRY(list(v, path, a, &files, &n, why));
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
    bool clears; /* recovered.edits that hold nothing any more */
} check;

static rq_err flushed_of_dir(check *k, const char *dir, flushed *f, rq_error *why)
{
    rq_dir_entry *files;
    size_t count;
    rq_stat st;
    f->is_there = rq_vfs_stat(k->vfs, dir, &st, NULL) == RQ_OK;
    RQ_TRY(list(k->vfs, dir, &k->arena, &files, &count, why));
    for (size_t i = 0; i < count; i++) {
        if (files[i].is_dir || files[i].name[0] == '.') continue;
        char *path = rq_arena_printf(&k->arena, "%s/%s", dir, files[i].name);
        if (path == NULL) return RQ_E_NO_MEMORY;
        rq_hfile_reader *reader;
        /* References and links hold no number of their own. */
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
        return rq_fail(why, RQ_E_CORRUPT, "malformed region or family");
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

/* What a log holds that is in no file. */
typedef struct lost_edits {
    check *check;
    uint64_t count;
    char first[512]; /* in words */
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

#define ADVICE "start HBase on the folder once more and stop it cleanly; nothing was touched"

/* A server's folder holds files, which are visited themselves. What lies deeper is none of HBase's
 * logs, and would go with the folder unread. */
static rq_err check_log_dir(check *k, const char *path, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    const char *below = strstr(path, "WALs/") + strlen("WALs/");
    if (strchr(below, '/') == NULL) return RQ_OK;
    RQ_TRY(list(k->vfs, path, &k->arena, &entries, &count, why));
    if (count == 0) return RQ_OK;
    return rq_fail(why, RQ_E_UNSUPPORTED,
                   "%s/%s lies where an Apache HBase has its logs, and is none: move it; nothing "
                   "was touched",
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
    if (rc == RQ_E_NO_MEMORY || rc == RQ_E_IO) return rq_fail(why, rc, "%s: %s", path, own.message);
    if (rc != RQ_OK)
        return rq_fail(why, rc,
                       "%s is a log of an Apache HBase that worked on this folder, and cannot be "
                       "read (%s): " ADVICE,
                       path, own.message[0] == '\0' ? rq_err_text(rc) : own.message);
    if (l.count > 0)
        return rq_fail(why, RQ_E_STATE,
                       "%s is a log of an Apache HBase that was not stopped: %llu cells in it are "
                       "in no file (%s): " ADVICE,
                       path, (unsigned long long)l.count, l.first);
    if (!of_regions) return RQ_OK;
    return rq_fail(why, RQ_E_STATE,
                   "%s is a log of an Apache HBase that was not stopped (a clean stop leaves none "
                   "there): " ADVICE,
                   path);
}

/* --- regions and tables ----------------------------------------------------------------------- */

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s);
    size_t m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* A region that has any is not opened. All in it is in files: HBase would pass it over too. */
static rq_err put_recovered_away(check *k, const char *region, const char *name, const char *path,
                                 rq_error *why)
{
    rq_error own = {0};
    char *to = rq_arena_printf(&k->arena, OLD_LOGS "/%s.%s", strrchr(region, '/') + 1, name);
    if (to == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(rq_vfs_mkdirs(k->vfs, OLD_LOGS, why));
    rq_err rc = rq_vfs_link(k->vfs, path, to, &own);
    if (rc != RQ_OK && rc != RQ_E_EXISTS) return rq_fail(why, rc, "%s", own.message);
    RQ_TRY(rq_vfs_sync_dir(k->vfs, OLD_LOGS, why));
    return rq_vfs_remove(k->vfs, path, why);
}

/* Others say a sequence id, were still being written when a splitting died, or could not be read by
 * an HBase, which put them aside. HBASE: WALSplitUtil.getSplitEditFilesSorted. */
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
    RQ_TRY(list(k->vfs, dir, &k->arena, &files, &count, why));
    for (size_t i = 0; i < count; i++) {
        if (!is_recovered(&files[i])) continue;
        char *path = rq_arena_printf(&k->arena, "%s/%s", dir, files[i].name);
        if (path == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(check_log(k, path, false, why));
        if (k->clears) RQ_TRY(put_recovered_away(k, region, files[i].name, path, why));
    }
    return RQ_OK;
}

static rq_err check_table(check *k, const char *ns, const char *qualifier, rq_error *why)
{
    rq_table_schema *s;
    rq_error own = {0};
    rq_err rc = rq__tableinfo_read(k->vfs, rq_slice_cstr(ns), rq_slice_cstr(qualifier), &s, &own);
    if (rc == RQ_E_NO_MEMORY) return rc;
    if (rc == RQ_OK) { /* one that cannot be read is shown as broken by the start */
        for (size_t i = 0; i < s->family_count && rc == RQ_OK; i++)
            if (!rq__descriptor_tracker_served(s, &s->families[i]))
                rc = rq_fail(
                    why, RQ_E_UNSUPPORTED,
                    "table %s:%s keeps its files by another store-file tracker than DEFAULT and "
                    "FILE: let HBase finish its migration; nothing was touched",
                    ns, qualifier);
        rq_table_schema_unref(s);
        RQ_TRY(rc);
    }
    rq_dir_entry *regions;
    size_t count;
    char *dir = rq_arena_printf(&k->arena, "data/%s/%s", ns, qualifier);
    if (dir == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(list(k->vfs, dir, &k->arena, &regions, &count, why));
    for (size_t i = 0; i < count; i++) {
        if (!regions[i].is_dir || regions[i].name[0] == '.') continue;
        char *region = rq_arena_printf(&k->arena, "%s/%s", dir, regions[i].name);
        if (region == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(check_recovered(k, region, why));
    }
    return RQ_OK;
}

static rq_err check_tables(check *k, rq_error *why)
{
    rq_dir_entry *spaces;
    size_t count;
    RQ_TRY(list(k->vfs, "data", &k->arena, &spaces, &count, why));
    for (size_t i = 0; i < count; i++) {
        rq_dir_entry *tables;
        size_t n;
        char *dir = rq_arena_printf(&k->arena, "data/%s", spaces[i].name);
        if (dir == NULL) return RQ_E_NO_MEMORY;
        if (!spaces[i].is_dir || spaces[i].name[0] == '.') continue;
        RQ_TRY(list(k->vfs, dir, &k->arena, &tables, &n, why));
        for (size_t t = 0; t < n; t++)
            if (tables[t].is_dir && tables[t].name[0] != '.')
                RQ_TRY(check_table(k, spaces[i].name, tables[t].name, why));
    }
    return RQ_OK;
}

/* --- procedures ------------------------------------------------------------------------------- */

/* A cell of family proc, from whichever file. */
typedef struct record {
    rq_cell cell; /* bytes in the arena */
} record;

typedef struct records {
    record *list;
    size_t count, cap;
} records;

static rq_err add_record(records *r, rq_arena *a, const rq_cell *c)
{
    if (r->count == r->cap) {
        size_t cap = r->cap == 0 ? 64 : r->cap * 2;
        record *more = realloc(r->list, cap * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        r->list = more;
        r->cap = cap;
    }
    record *to = &r->list[r->count++];
    *to = (record){*c};
    to->cell.row = rq_arena_copy(a, rq_cell_row(c)).ptr;
    to->cell.family = rq_arena_copy(a, rq_cell_family(c)).ptr;
    to->cell.qualifier = rq_arena_copy(a, rq_cell_qualifier(c)).ptr;
    to->cell.value = rq_arena_copy(a, rq_cell_value(c)).ptr;
    to->cell.tags = NULL;
    to->cell.tags_len = 0;
    return to->cell.row == NULL || (c->value_len > 0 && to->cell.value == NULL) ? RQ_E_NO_MEMORY
                                                                                : RQ_OK;
}

static rq_err read_records(check *k, const char *path, records *out, rq_error *why)
{
    rq_hfile_reader *reader;
    RQ_TRY(rq_hfile_reader_open(k->vfs, path, NULL, false, &reader, why));
    rq_hfile_scanner s;
    rq_read_ctx ctx = {.may_block = true};
    rq_hfile_scanner_init(&s, reader);
    rq_err rc = rq_hfile_scanner_seek_first(&s, &ctx, why);
    while (rc == RQ_OK) {
        rc = add_record(out, &k->arena, rq_hfile_scanner_cell(&s));
        if (rc == RQ_OK) rc = rq_hfile_scanner_next(&s, &ctx, why);
    }
    rq_hfile_scanner_clear(&s);
    rq_read_ctx_clear(&ctx);
    rq_hfile_reader_unref(reader);
    return rc == RQ_E_END ? RQ_OK : rc;
}

static int by_key(const void *x, const void *y)
{
    return rq_cell_compare(RQ_ORDER_DEFAULT, &((const record *)x)->cell,
                           &((const record *)y)->cell);
}

/* The newest cell of each row that no marker hides stays, the others go. A compacted file that was
 * not archived yet brings its cells twice, which changes nothing. */
static void keep_newest(records *r)
{
    size_t n = 0;
    size_t i = 0;
    if (r->count > 0) qsort(r->list, r->count, sizeof *r->list, by_key);
    while (i < r->count) {
        size_t end = i;
        int64_t hidden_to = INT64_MIN;
        const record *found = NULL;
        while (end < r->count &&
               rq_slice_eq(rq_cell_row(&r->list[end].cell), rq_cell_row(&r->list[i].cell))) {
            const rq_cell *c = &r->list[end].cell;
            if (rq_cell_is_delete(c) && c->timestamp > hidden_to) hidden_to = c->timestamp;
            if (!rq_cell_is_delete(c) && found == NULL && c->timestamp > hidden_to)
                found = &r->list[end];
            end++;
        }
        if (found != NULL) r->list[n++] = *found;
        i = end;
    }
    r->count = n;
}

typedef struct procedure {
    uint64_t id, parent;
    const char *java_class;
    bool ended;
} procedure;

static rq_err parse_procedure(check *k, const rq_cell *c, procedure *ret, rq_error *why)
{
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, &k->arena);
    Pb__Procedure *m = pb__procedure__unpack(&memory.allocator, c->value_len, c->value);
    if (m == NULL)
        return rq_fail(why, RQ_E_CORRUPT, "MasterData holds a malformed procedure record");
    *ret = (procedure){.id = m->proc_id,
                       .parent = m->has_parent_id ? m->parent_id : 0,
                       .java_class = m->class_name,
                       .ended = m->state == PB__PROCEDURE_STATE__SUCCESS ||
                                m->state == PB__PROCEDURE_STATE__FAILED ||
                                m->state == PB__PROCEDURE_STATE__ROLLEDBACK};
    return RQ_OK;
}

/* Itself, or what it stands under, cares for a crashed server. */
static bool is_of_a_crash(const procedure *list, size_t count, const procedure *p)
{
    for (size_t depth = 0; p != NULL && depth <= count; depth++) {
        if (ends_with(p->java_class, ".ServerCrashProcedure")) return true;
        const procedure *parent = NULL;
        for (size_t i = 0; i < count && p->parent != 0; i++)
            if (list[i].id == p->parent) parent = &list[i];
        p = parent;
    }
    return false;
}

static rq_err check_records(check *k, const records *r, rq_error *why)
{
    procedure *list = rq_arena_calloc(&k->arena, r->count + 1, sizeof *list);
    size_t n = 0;
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < r->count; i++)
        if (r->list[i].cell.value_len > 0)
            RQ_TRY(parse_procedure(k, &r->list[i].cell, &list[n++], why));
    for (size_t i = 0; i < n; i++)
        if (!list[i].ended && !is_of_a_crash(list, n, &list[i]))
            return rq_fail(why, RQ_E_STATE,
                           "HBase's procedure %llu (%s) in MasterData is not finished: start HBase "
                           "on the folder once more and let it finish; nothing was touched",
                           (unsigned long long)list[i].id, list[i].java_class);
    return RQ_OK;
}

static rq_err check_procedures(check *k, rq_error *why)
{
    static const char store[] = "MasterData/data/master/store";
    rq_dir_entry *regions;
    size_t count;
    records r = {0};
    rq_err rc = list(k->vfs, store, &k->arena, &regions, &count, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        rq_dir_entry *files;
        size_t n;
        if (!regions[i].is_dir || regions[i].name[0] == '.') continue;
        char *dir = rq_arena_printf(&k->arena, "%s/%s/proc", store, regions[i].name);
        rc = dir == NULL ? RQ_E_NO_MEMORY : list(k->vfs, dir, &k->arena, &files, &n, why);
        for (size_t f = 0; rc == RQ_OK && f < n; f++) {
            char *path = rq_arena_printf(&k->arena, "%s/%s", dir, files[f].name);
            if (path == NULL) rc = RQ_E_NO_MEMORY;
            if (rc == RQ_OK && !files[f].is_dir && files[f].name[0] != '.')
                rc = read_records(k, path, &r, why);
        }
    }
    if (rc == RQ_OK) {
        keep_newest(&r);
        rc = check_records(k, &r, why);
    }
    free(r.list);
    return rc;
}

rq_err rq__adopt_check(rq_vfs *v, rq_error *why)
{
    check k = {.vfs = v};
    rq_err rc = each_log(v, &k.arena, check_log, &k, why);
    if (rc == RQ_OK) rc = check_tables(&k, why);
    if (rc == RQ_OK) rc = check_procedures(&k, why);
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

/* Rows come in order, so the last has the highest id: it stays, without a value, for ids go on
 * rising over both systems (HBASE: RegionProcedureStore). */
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
    rq_err rc = rq__region_each_row(store, take_old, &o, why);
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
    static const char to_dir[] = OLD_LOGS;
    rq_arena a = {0};
    char *to = rq_arena_printf(&a, "%s%s", to_dir, strrchr(path, '/'));
    rq_err rc = to == NULL ? RQ_E_NO_MEMORY : rq_vfs_mkdirs(v, to_dir, why);
    if (rc == RQ_OK) {
        rq_error own = {0};
        rc = rq_vfs_link(v, path, to, &own);
        rc = rc == RQ_E_EXISTS ? RQ_OK : rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", own.message);
    }
    if (rc == RQ_OK) rc = rq_vfs_sync_dir(v, to_dir, why);
    if (rc == RQ_OK) rc = rq_vfs_remove(v, path, why);
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
