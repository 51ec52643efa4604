/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a recovery: marks, regions, descriptors, log, hbase:meta. The contract is in
 * recover.h. */
#include "catalog/recover_priv.h"

#include "catalog/adopt.h"
#include "catalog/root_priv.h"
#include "catalog/tableinfo.h"
#include "base/read_failure.h"
#include "region/set_aside.h"

#include <stdio.h>
#include <stdlib.h>

#define MARK "recover\n"
#define REGION_INFO_MAX ((size_t)1024 * 1024)
#define COPY_BYTES ((size_t)1024 * 1024)

void rq__recover_report(rq__recover *r, const char *what, const char *place, const char *text)
{
    r->found++;
    r->options->report(r->options->ctx, what, place, text);
}

static void ignore_finding(void *ctx, rq_finding level, const char *place, const char *text)
{
    (void)ctx;
    (void)level;
    (void)place;
    (void)text;
}

/* --- moving ----------------------------------------------------------------------------------- */

static rq_err need_aside(rq__recover *r, rq_error *why)
{
    return r->aside != NULL ? RQ_OK : rq__fsck_find_place(&r->k, &r->aside, why);
}

static rq_err move(void *ctx, const char *path, rq_error *why)
{
    rq__recover *r = ctx;
    RQ_TRY(need_aside(r, why));
    return rq__fsck_move(&r->k, path, r->aside, why);
}

/* --- marks of the folder ---------------------------------------------------------------------- */

static bool is_there(const rq__recover *r, const char *path)
{
    rq_stat st;
    return rq_vfs_stat(r->vfs, path, &st, NULL) != RQ_E_NOT_FOUND;
}

static rq_err fix_mark(rq__recover *r, const char *path, const char *text, rq_error *why)
{
    rq__recover_report(r, "mark", path, text);
    if (!r->options->act) return RQ_OK;
    if (is_there(r, path)) RQ_TRY(move(r, path, why));
    return rq__root_write_mark(r->vfs, r->env->executor, path, why);
}

static rq_err fix_marks(rq__recover *r, rq_error *why)
{
    static const char *const paths[] = {".rorqual/version", "hbase.version", "hbase.id"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(paths); i++) {
        rq_error own = {0};
        rq_err rc = rq__root_check_mark(r->vfs, paths[i], &own);
        if (rc == RQ_E_VERSION) return rq_fail(why, rc, "%s", own.message);
        if (rq_is_read_failure(rc)) return rq_fail(why, rc, "%s", own.message);
        if (rc != RQ_OK) RQ_TRY(fix_mark(r, paths[i], "is rewritten", why));
    }
    return RQ_OK;
}

/* --- regions ---------------------------------------------------------------------------------- */

static void report_part(void *ctx, const char *place, const char *text)
{
    rq__recover *r = ctx;
    r->options->report(r->options->ctx, "set aside", place, text);
}

static rq_err look_into_region(rq__recover *r, const char *ns, const char *qualifier,
                               const char *encoded, rq_error *why)
{
    const rq_set_aside calls = {report_part, r->options->act ? move : NULL, r};
    rq_region_info info = {.ns = rq_slice_cstr(ns), .qualifier = rq_slice_cstr(qualifier)};
    memcpy(info.encoded, encoded, strlen(encoded) + 1);
    return rq_region_set_aside(r->vfs, &info, &calls, &r->found, why);
}

static bool is_region_name(const rq_dir_entry *e)
{
    size_t n = strspn(e->name, "0123456789abcdef");
    return e->is_dir && e->name[n] == '\0' && n > 0 && n <= RQ_ENCODED_NAME_LEN;
}

static rq_err look_into_table(rq__recover *r, const char *dir, const char *ns,
                              const char *qualifier, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    RQ_TRY(rq__fsck_list(&r->k, dir, &entries, &count, why));
    for (size_t i = 0; i < count; i++)
        if (is_region_name(&entries[i]))
            RQ_TRY(look_into_region(r, ns, qualifier, entries[i].name, why));
    return RQ_OK;
}

typedef rq_err (*each_table)(rq__recover *r, const char *dir, const char *ns, const char *qualifier,
                             rq_error *why);

static rq_err walk_tables(rq__recover *r, each_table each, rq_error *why)
{
    rq_dir_entry *spaces, *tables;
    size_t count, n;
    RQ_TRY(rq__fsck_list(&r->k, "data", &spaces, &count, why));
    for (size_t i = 0; i < count; i++) {
        if (!spaces[i].is_dir || spaces[i].name[0] == '.') continue;
        const char *dir = rq_arena_printf(&r->k.arena, "data/%s", spaces[i].name);
        if (dir == NULL) return rq_no_memory(why);
        RQ_TRY(rq__fsck_list(&r->k, dir, &tables, &n, why));
        for (size_t t = 0; t < n; t++) {
            if (!tables[t].is_dir || tables[t].name[0] == '.') continue;
            const char *path = rq_arena_printf(&r->k.arena, "%s/%s", dir, tables[t].name);
            if (path == NULL) return rq_no_memory(why);
            RQ_TRY(each(r, path, spaces[i].name, tables[t].name, why));
        }
    }
    return RQ_OK;
}

/* --- descriptors ------------------------------------------------------------------------------ */

static rq_err put_field(rq_buf *b, uint8_t tag, rq_slice value)
{
    RQ_TRY(rq_buf_append_u8(b, tag));
    RQ_TRY(rq_buf_append_varint(b, value.len));
    return rq_buf_append(b, value.ptr, value.len);
}

static bool has_family(const rq_slice *list, size_t count, rq_slice name)
{
    for (size_t i = 0; i < count; i++)
        if (rq_slice_eq(list[i], name)) return true;
    return false;
}

/* The names of folders in the table's regions. */
static rq_err find_families(rq__recover *r, const char *dir, rq_slice *list, size_t room,
                            size_t *ret_count, rq_error *why)
{
    rq_dir_entry *regions, *inner;
    size_t count, n;
    *ret_count = 0;
    RQ_TRY(rq__fsck_list(&r->k, dir, &regions, &count, why));
    for (size_t i = 0; i < count; i++) {
        if (!is_region_name(&regions[i])) continue;
        const char *path = rq_arena_printf(&r->k.arena, "%s/%s", dir, regions[i].name);
        if (path == NULL) return rq_no_memory(why);
        RQ_TRY(rq__fsck_list(&r->k, path, &inner, &n, why));
        for (size_t f = 0; f < n; f++) {
            rq_slice name = rq_slice_cstr(inner[f].name);
            if (rq_region_is_family_folder(&inner[f]) && *ret_count < room &&
                !has_family(list, *ret_count, name))
                list[(*ret_count)++] = name;
        }
    }
    return RQ_OK;
}

/* TableSchema{1: TableName{1: ns, 2: qualifier}, 3: ColumnFamilySchema{1: name} …} */
static rq_err make_descriptor(const char *ns, const char *qualifier, const rq_slice *families,
                              size_t count, rq_buf *ret)
{
    rq_buf inner = {0};
    rq_err rc = put_field(&inner, 0x0a, rq_slice_cstr(ns));
    if (rc == RQ_OK) rc = put_field(&inner, 0x12, rq_slice_cstr(qualifier));
    if (rc == RQ_OK) rc = put_field(ret, 0x0a, rq_buf_slice(&inner));
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        rq_buf_reset(&inner);
        rc = put_field(&inner, 0x0a, families[i]);
        if (rc == RQ_OK) rc = put_field(ret, 0x1a, rq_buf_slice(&inner));
    }
    rq_buf_clear(&inner);
    return rc;
}

#define FAMILIES_MAX 1000

static rq_err write_descriptor(rq__recover *r, const char *dir, const char *ns,
                               const char *qualifier, rq_error *why)
{
    rq_buf pb = {0};
    rq_table_schema *schema;
    size_t count = 0;
    rq_slice *families = rq_arena_calloc(&r->k.arena, FAMILIES_MAX, sizeof *families);
    if (families == NULL) return rq_no_memory(why);
    RQ_TRY(find_families(r, dir, families, FAMILIES_MAX, &count, why));
    char *old = rq_arena_printf(&r->k.arena, "%s/.tabledesc", dir);
    if (old == NULL) return rq_no_memory(why);
    if (is_there(r, old)) RQ_TRY(move(r, old, why));
    rq_err rc = make_descriptor(ns, qualifier, families, count, &pb);
    if (rc == RQ_OK) rc = rq_table_schema_parse(rq_buf_slice(&pb), &schema, why);
    if (rc == RQ_OK) {
        rc = rq__tableinfo_write(r->vfs, schema, why);
        rq_table_schema_unref(schema);
    }
    rq_buf_clear(&pb);
    return rc;
}

static rq_err look_at_descriptor(rq__recover *r, const char *dir, const char *ns,
                                 const char *qualifier, rq_error *why)
{
    rq_table_schema *schema;
    rq_error own = {0};
    if (strcmp(ns, "hbase") == 0) return RQ_OK; /* a start writes those */
    rq_err rc =
        rq_tableinfo_read(r->vfs, rq_slice_cstr(ns), rq_slice_cstr(qualifier), &schema, &own);
    if (rc == RQ_OK) {
        rq_table_schema_unref(schema);
        return RQ_OK;
    }
    if (rq_is_read_failure(rc)) return rq_fail(why, rc, "%s", own.message);
    rq__recover_report(r, "descriptor", dir,
                       "is rebuilt from the families' folders; attributes (VERSIONS, TTL, …) are "
                       "HBase's defaults: alter the table afterwards");
    return r->options->act ? write_descriptor(r, dir, ns, qualifier, why) : RQ_OK;
}

/* --- the log ---------------------------------------------------------------------------------- */

static void log_damage(void *ctx, const rq_error *what)
{
    rq__recover *r = ctx;
    r->log_damaged = true;
    rq__recover_report(r, "log", ".rorqual/wal", what->message);
}

static rq_err copy_wal_file(rq__recover *r, const char *name, uint8_t *buf, rq_error *why)
{
    rq_file *from = NULL, *to = NULL;
    const char *path = rq_arena_printf(&r->k.arena, ".rorqual/wal/%s", name);
    const char *target =
        path == NULL ? NULL : rq_arena_printf(&r->k.arena, "%s/%s", r->aside, path);
    if (target == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_open(r->vfs, path, RQ_OPEN_READ, &from, why));
    rq_err rc = rq_vfs_open(r->vfs, target, RQ_OPEN_WRITE | RQ_OPEN_CREATE, &to, why);
    for (uint64_t at = 0; rc == RQ_OK;) {
        size_t n = 0;
        rc = rq_file_read(from, buf, COPY_BYTES, at, &n, why);
        if (rc != RQ_OK || n == 0) break;
        rc = rq_file_write(to, buf, n, at, why);
        at += n;
    }
    if (rc == RQ_OK) rc = rq_file_sync(to, why);
    (void)rq_file_close(to);   /* synced */
    (void)rq_file_close(from); /* only read */
    return rc;
}

/* WAL files are written again when they are not needed, so a copy stays and not a link. */
static rq_err copy_log_aside(rq__recover *r, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    RQ_TRY(need_aside(r, why));
    const char *dir = rq_arena_printf(&r->k.arena, "%s/.rorqual/wal", r->aside);
    uint8_t *buf = malloc(COPY_BYTES);
    rq_err rc = dir == NULL || buf == NULL ? rq_no_memory(why) : rq_vfs_mkdirs(r->vfs, dir, why);
    if (rc == RQ_OK) rc = rq__fsck_list(&r->k, ".rorqual/wal", &entries, &count, why);
    for (size_t i = 0; rc == RQ_OK && i < count; i++)
        if (!entries[i].is_dir) rc = copy_wal_file(r, entries[i].name, buf, why);
    if (rc == RQ_OK) rc = rq_vfs_sync_dir(r->vfs, dir, why);
    free(buf);
    return rc;
}

static rq_err look_at_log(rq__recover *r, rq_error *why)
{
    const rq_wal_survey_calls calls = {NULL, log_damage, r};
    rq_wal_survey v;
    RQ_TRY(rq_wal_survey_dir(r->vfs, ".rorqual/wal", &r->k.arena, &calls, &v, why));
    for (size_t i = 0; i < v.count; i++)
        if (v.files[i].live) RQ_TRY(rq_wal_survey_read(r->vfs, &v.files[i], &calls, NULL, why));
    return r->log_damaged && r->options->act ? copy_log_aside(r, why) : RQ_OK;
}

/* --- regions without a row -------------------------------------------------------------------- */

static rq_err note_rows(rq__recover *r)
{
    for (size_t i = 0; i < r->k.region_count; i++)
        RQ_TRY(rq__fsck_note_path(&r->k, &r->k.rows, r->k.regions[i].info.encoded));
    return RQ_OK;
}

static bool meta_knows(const rq__fsck *k, const char *encoded)
{
    return rq__fsck_has_path(&k->rows, encoded) || rq__fsck_has_path(&k->merged, encoded) ||
           rq__fsck_has_path(&k->claimed, encoded);
}

static rq_err note_lost(rq__recover *r, const rq_region_info *info, const char *dir)
{
    if (r->lost_count == r->lost_room) {
        size_t room = r->lost_room == 0 ? 16 : r->lost_room * 2;
        rq__lost_region *more = realloc(r->lost, room * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        r->lost = more;
        r->lost_room = room;
    }
    r->lost[r->lost_count++] = (rq__lost_region){.info = *info, .dir = dir};
    return RQ_OK;
}

/* A region that no server can open. */
static rq_err set_region_aside(rq__recover *r, const char *dir, const char *encoded, rq_error *why)
{
    rq__lost_region l = {.dir = dir};
    memcpy(l.info.encoded, encoded, strlen(encoded) + 1);
    RQ_TRY(rq__recover_find_needs(r, &l, 1, why));
    if (l.is_needed) {
        r->options->report(r->options->ctx, "note", dir,
                           "has no readable .regioninfo; it stays, because a cloned table or "
                           "a snapshot needs its files");
        return RQ_OK;
    }
    rq__recover_report(r, "set aside", dir,
                       "a region without a row in hbase:meta and without a readable .regioninfo");
    return r->options->act ? rq__fsck_move_region(&r->k, dir, r->aside, why) : RQ_OK;
}

static rq_err look_for_row(rq__recover *r, const char *dir, const char *encoded, rq_error *why)
{
    rq_slice bytes;
    rq_region_info info;
    rq_error own = {0};
    const char *path = rq_arena_printf(&r->k.arena, "%s/.regioninfo", dir);
    if (meta_knows(&r->k, encoded)) return RQ_OK;
    if (path == NULL) return rq_no_memory(why);
    rq_err rc = rq_vfs_read_file(r->vfs, path, REGION_INFO_MAX, &r->k.arena, &bytes, &own);
    if (rc == RQ_OK) rc = rq_region_info_parse_delimited(bytes, &r->k.arena, &info, &own);
    if (rq_is_read_failure(rc)) return rq_fail(why, rc, "%s", own.message);
    if (rc == RQ_OK && strcmp(info.encoded, encoded) == 0)
        return note_lost(r, &info, dir) == RQ_OK ? RQ_OK : rq_no_memory(why);
    return set_region_aside(r, dir, encoded, why);
}

static rq_err look_for_rows(rq__recover *r, const char *dir, const char *ns, const char *qualifier,
                            rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    if (strcmp(ns, "hbase") == 0 && strcmp(qualifier, "meta") == 0) return RQ_OK;
    RQ_TRY(rq__fsck_list(&r->k, dir, &entries, &count, why));
    for (size_t i = 0; i < count; i++) {
        if (!is_region_name(&entries[i])) continue;
        const char *region = rq_arena_printf(&r->k.arena, "%s/%s", dir, entries[i].name);
        if (region == NULL) return rq_no_memory(why);
        if (r->options->act) RQ_TRY(need_aside(r, why));
        RQ_TRY(look_for_row(r, region, entries[i].name, why));
    }
    return RQ_OK;
}

/* Compares hbase:meta, as far as it can be read, with the folders. */
static rq_err look_at_meta(rq__recover *r, rq_error *why)
{
    RQ_TRY(rq__fsck_log(&r->k, why));
    RQ_TRY(rq__fsck_procedures(&r->k, why));
    RQ_TRY(rq__fsck_meta(&r->k, why));
    if (r->k.unfinished > 0) {
        r->options->report(r->options->ctx, "note", "master:store",
                           "procedures are unfinished, so hbase:meta is left as it is: start the "
                           "server, and look with rorqual fsck afterwards");
        return RQ_OK;
    }
    if (note_rows(r) != RQ_OK) return rq_no_memory(why);
    RQ_TRY(walk_tables(r, look_for_rows, why));
    RQ_TRY(rq__recover_decide(r, why));
    for (size_t i = 0; i < r->lost_count && r->options->act; i++)
        if (r->lost[i].fate == RQ__FATE_ASIDE)
            RQ_TRY(rq__fsck_move_region(&r->k, r->lost[i].dir, r->aside, why));
    return RQ_OK;
}

/* --- all -------------------------------------------------------------------------------------- */

/* The mark of another command is its own. */
static rq_err begin(rq__recover *r, rq_error *why)
{
    rq_slice bytes = {0};
    rq_error own = {0};
    uint32_t stamp = 0;
    rq_err rc = rq_vfs_read_file(r->vfs, RQ_ROOT_UNFINISHED, 4096, &r->k.arena, &bytes, &own);
    bool marked = rc == RQ_OK && rq_slice_eq(bytes, RQ_SLICE_LIT(MARK));
    /* The command that was writing the marker had changed nothing yet. */
    bool torn = rc == RQ_OK && !marked && rq_slice_starts_with(RQ_SLICE_LIT(MARK), bytes);
    if (rc == RQ_OK && !marked && !torn) return rq_root_check_finished(r->vfs, why);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", own.message);
    if (!is_there(r, ".rorqual")) return rq_fail(why, RQ_E_NOT_FOUND, "not a data folder");
    if (!is_there(r, "data") && !is_there(r, "MasterData"))
        return rq_fail(why, RQ_E_NOT_FOUND,
                       "there is nothing to recover: the folder has neither data/ nor MasterData/, "
                       "so it has no tables. Nothing was written; restore a backup");
    RQ_TRY(rq__adopt_look(r->vfs, &stamp, why));
    if (stamp != 0)
        return rq_fail(why, RQ_E_STATE,
                       "Apache HBase was the last to use the folder; rorqual fsck prints details");
    if (marked || torn)
        rq__recover_report(r, "mark", RQ_ROOT_UNFINISHED,
                           "left by an interrupted recover; is removed at the end");
    if (marked || !r->options->act) return RQ_OK;
    if (torn) RQ_TRY(rq_vfs_remove(r->vfs, RQ_ROOT_UNFINISHED, why));
    return rq_vfs_write_new_file(r->vfs, RQ_ROOT_UNFINISHED, RQ_SLICE_LIT(MARK), why);
}

static rq_err offline(rq__recover *r, rq_error *why)
{
    RQ_TRY(begin(r, why));
    RQ_TRY(fix_marks(r, why));
    RQ_TRY(look_into_table(r, "MasterData/data/master/store", "master", "store", why));
    RQ_TRY(walk_tables(r, look_into_table, why));
    RQ_TRY(walk_tables(r, look_at_descriptor, why));
    RQ_TRY(look_at_log(r, why));
    RQ_TRY(look_at_meta(r, why));
    if (!r->options->act) return RQ_OK;
    RQ_TRY(rq_vfs_remove(r->vfs, RQ_ROOT_UNFINISHED, why));
    return rq_vfs_sync_dir(r->vfs, ".rorqual", why);
}

static bool has_rows_to_add(const rq__recover *r)
{
    for (size_t i = 0; i < r->lost_count; i++)
        if (r->lost[i].fate != RQ__FATE_ASIDE && r->lost[i].fate != RQ__FATE_STAYS) return true;
    return false;
}

rq_err rq_recover(const rq_env *env, const rq_recover_options *o, rq_recover_result *ret,
                  rq_error *why)
{
    rq__recover r = {.env = env, .vfs = env->vfs, .options = o};
    rq_file *lock = NULL;
    r.quiet = (rq_fsck_options){.deep = true, .findings = {ignore_finding, NULL, NULL}};
    r.k = (rq__fsck){.vfs = env->vfs, .options = &r.quiet, .ours = true, .meta_whole = true};
    r.k.findings = r.quiet.findings;
    rq_err rc =
        rq_vfs_lock(r.vfs, is_there(&r, ".rorqual/lock") ? ".rorqual/lock" : NULL, &lock, why);
    if (rc == RQ_OK) rc = offline(&r, why);
    (void)rq_file_close(lock); /* only a lock */
    if (rc == RQ_OK && o->act && (r.log_damaged || has_rows_to_add(&r)))
        rc = rq__recover_meta(&r, why);
    *ret = (rq_recover_result){.found = r.found};
    if (r.k.totals.moved > 0 || r.log_damaged)
        snprintf(ret->aside_text, sizeof ret->aside_text, "%s", r.aside == NULL ? "" : r.aside);
    free(r.lost);
    rq__fsck_end(&r.k);
    return rc;
}
