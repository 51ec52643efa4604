/* SPDX-License-Identifier: Apache-2.0 */
/* The two regions that everything else depends on, read without an engine: the cells of their files
 * and, from the log, the edits above the flushed number. The newest cell of each column counts,
 * unless a marker hides it. Both are small enough to be held in memory. */
#include "catalog/fsck_priv.h"

#include "base/pb_arena.h"
#include "catalog/newest.h"
#include "base/read_failure.h"
#include "cell/cellblock.h"
#include "hfile/reader.h"
#include "proto/procedure.pb-c.h"

#include <stdlib.h>

static rq_err add_cell(rq__fsck *k, rq__fsck_cells *to, const rq_cell *c)
{
    bool is_put = !rq_cell_is_delete(c);
    rq__keep keep = to->is_meta && is_put ? rq__meta_keep(c) : RQ__KEEP;
    if (keep == RQ__KEEP_NOT) return RQ_OK;
    if (to->count == to->cap) {
        size_t cap = to->cap == 0 ? 256 : to->cap * 2;
        rq_cell *more = realloc(to->list, cap * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        to->list = more;
        to->cap = cap;
    }
    rq_cell copy = *c;
    if (keep == RQ__KEEP_COLUMN || (to->is_meta && c->value_len > RQ__META_VALUE_MAX))
        copy.value_len = 0;
    copy.row = rq_arena_copy(&k->arena, rq_cell_row(c)).ptr;
    copy.family = rq_arena_copy(&k->arena, rq_cell_family(c)).ptr;
    copy.qualifier = rq_arena_copy(&k->arena, rq_cell_qualifier(c)).ptr;
    copy.value = rq_arena_copy(&k->arena, rq_cell_value(&copy)).ptr;
    copy.tags = NULL;
    copy.tags_len = 0;
    if (copy.row == NULL || (copy.value_len > 0 && copy.value == NULL)) return RQ_E_NO_MEMORY;
    to->list[to->count++] = copy;
    return RQ_OK;
}

/* --- the log ---------------------------------------------------------------------------------- */

static void log_damage(void *ctx, const rq_error *what)
{
    rq__fsck *k = ctx;
    k->log_damaged = true;
    rq__fsck_report(k, RQ_FINDING_PROBLEM, ".rorqual/wal", "%s", what->message);
}

static rq_err take_record(void *ctx, const rq_wal_surveyed_file *s, const rq_wal_record *r,
                          uint64_t offset, rq_error *why)
{
    rq__fsck *k = ctx;
    (void)why;
    k->totals.log_records++;
    if (r->kind != RQ_WAL_EDIT) return RQ_OK;
    rq__fsck_cells *to = NULL;
    if (rq_slice_eq(r->table, RQ_SLICE_LIT("hbase:meta"))) to = &k->meta_log;
    if (rq_slice_eq(r->table, RQ_SLICE_LIT("master:store"))) to = &k->store_log;
    rq_cursor c = rq_cursor_of(r->payload);
    rq_err rc = RQ_OK;
    while (rc == RQ_OK) {
        rq_cell cell;
        rq_error own = {0};
        rc = rq_cellblock_next_stored(&c, &cell, &own);
        if (rc == RQ_E_END) break;
        if (rc != RQ_OK) {
            rq_error what = {0};
            (void)rq_fail(&what, rc, "%s: offset %llu: %s", s->path, (unsigned long long)offset,
                          own.message);
            log_damage(k, &what);
            break;
        }
        cell.seqid = r->sequence_id;
        if (to != NULL) RQ_TRY(add_cell(k, to, &cell));
    }
    return RQ_OK;
}

rq_err rq__fsck_log(rq__fsck *k, rq_error *why)
{
    k->meta_log.is_meta = true;
    const rq_wal_survey_calls calls = {take_record, log_damage, k};
    rq_wal_survey v;
    RQ_TRY(rq_wal_survey_dir(k->vfs, ".rorqual/wal", &k->arena, &calls, &v, why));
    for (size_t i = 0; i < v.count; i++)
        if (v.files[i].live) RQ_TRY(rq_wal_survey_read(k->vfs, &v.files[i], &calls, NULL, why));
    return RQ_OK;
}

/* --- cells ------------------------------------------------------------------------------------ */

static rq_err read_file(rq__fsck *k, const char *dir, const char *name, rq__fsck_cells *to,
                        rq_error *why)
{
    rq_hfile_reader *reader;
    rq_error own = {0};
    const char *path = rq_arena_printf(&k->arena, "%s/%s", dir, name);
    if (path == NULL) return RQ_E_NO_MEMORY;
    rq_err rc = rq_hfile_reader_open(k->vfs, path, NULL, false, &reader, &own);
    bool opened = rc == RQ_OK;
    if (opened) {
        rq_hfile_scanner s;
        rq_read_ctx ctx = {.may_block = true};
        rq_hfile_scanner_init(&s, reader);
        rc = rq_hfile_scanner_seek_first(&s, &ctx, &own);
        while (rc == RQ_OK) {
            rc = add_cell(k, to, rq_hfile_scanner_cell(&s));
            if (rc == RQ_OK) rc = rq_hfile_scanner_next(&s, &ctx, &own);
        }
        rq_hfile_scanner_clear(&s);
        rq_read_ctx_clear(&ctx);
        rq_hfile_reader_unref(reader);
    }
    if (rc == RQ_E_END || rc == RQ_OK) return RQ_OK;
    if (rq_is_read_failure(rc)) return rq_fail(why, rc, "%s", own.message);
    k->meta_whole = false;
    /* rq__fsck_look_at_region has reported a file that cannot be opened; with `deep` it has read all
     * blocks, too. */
    if (opened && !k->options->deep)
        rq__fsck_report(k, RQ_FINDING_PROBLEM, path, "%s", own.message);
    return RQ_OK;
}

static int order_default(const void *a, const void *b)
{
    return rq_cell_compare(RQ_ORDER_DEFAULT, a, b);
}

static int order_meta(const void *a, const void *b)
{
    return rq_cell_compare(RQ_ORDER_META, a, b);
}

/* All valid cells of the region, including markers, in order. */
static rq_err collect(rq__fsck *k, const rq_region_info *info, const rq__fsck_cells *log,
                      bool is_meta, rq__fsck_cells *ret, rq_error *why)
{
    rq_region_survey s;
    uint64_t before = k->totals.problems;
    RQ_TRY(rq__fsck_look_at_region(k, info, NULL, false, false, &s, why));
    if (k->totals.problems > before) k->meta_whole = false;
    for (size_t i = 0; i < s.family_count; i++) {
        const rq_region_survey_family *f = &s.families[i];
        for (size_t n = 0; n < f->file_count; n++)
            RQ_TRY(read_file(k, f->dir, f->files[n], ret, why));
    }
    for (size_t i = 0; i < log->count; i++) {
        uint64_t flushed = 0;
        for (size_t f = 0; f < s.family_count; f++)
            if (rq_slice_eq(s.families[f].name, rq_cell_family(&log->list[i])))
                flushed = s.families[f].flushed;
        if (log->list[i].seqid > flushed) RQ_TRY(add_cell(k, ret, &log->list[i]));
    }
    if (ret->count > 1)
        qsort(ret->list, ret->count, sizeof *ret->list, is_meta ? order_meta : order_default);
    return RQ_OK;
}

/* `ignored`: the row has cells with invalid timestamps. */
typedef rq_err (*row_call)(rq__fsck *k, const rq_cell *cells, size_t count, bool ignored,
                           rq_error *why);

static rq_err one_row(rq__fsck *k, const rq_cell *cells, size_t count, rq__newest *n,
                      rq_cell *counting, row_call call, rq_error *why)
{
    size_t kept = 0;
    rq__newest_row(n);
    for (size_t i = 0; i < count; i++) {
        bool counts;
        RQ_TRY(rq__newest_take(n, &cells[i], &counts));
        if (counts) counting[kept++] = cells[i];
    }
    if (kept == 0 && n->ignored) {
        counting[kept++] =
            (rq_cell){.row = cells[0].row, .row_len = cells[0].row_len, .type = RQ_TYPE_PUT};
    }
    return kept > 0 ? call(k, counting, kept, n->ignored, why) : RQ_OK;
}

static rq_err each_row(rq__fsck *k, const rq__fsck_cells *all, row_call call, rq_error *why)
{
    rq__newest n = {0};
    rq_cell *counting = malloc((all->count + 1) * sizeof *counting);
    rq_err rc = counting == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    for (size_t i = 0, end; i < all->count && rc == RQ_OK; i = end) {
        for (end = i + 1; end < all->count; end++)
            if (!rq_cell_same_row(&all->list[i], &all->list[end])) break;
        rc = one_row(k, all->list + i, end - i, &n, counting, call, why);
    }
    rq__newest_clear(&n);
    free(counting);
    return rc;
}

/* --- hbase:meta ------------------------------------------------------------------------------- */

static void *grown(void *list, size_t count, size_t *cap, size_t size)
{
    if (count < *cap) return list;
    size_t more = *cap == 0 ? 64 : *cap * 2;
    void *p = realloc(list, more * size);
    if (p != NULL) *cap = more;
    return p;
}

/* The last table, because a table's rows follow each other, except malformed ones; or else another entry, which
 * sort_tables joins with the first one. NULL: out of memory. */
static rq__fsck_table *table_of_row(rq__fsck *k, rq_slice name)
{
    if (k->table_count > 0 && rq_slice_eq(k->tables[k->table_count - 1].name, name))
        return &k->tables[k->table_count - 1];
    rq__fsck_table *more = grown(k->tables, k->table_count, &k->table_cap, sizeof *more);
    if (more == NULL) return NULL;
    k->tables = more;
    k->tables[k->table_count] = (rq__fsck_table){.name = name};
    return &k->tables[k->table_count++];
}

static int by_name(const void *a, const void *b)
{
    const rq__fsck_table *x = a, *y = b;
    return rq_slice_compare(x->name, y->name);
}

static void sort_tables(rq__fsck *k)
{
    size_t kept = 0;
    if (k->table_count > 1) qsort(k->tables, k->table_count, sizeof *k->tables, by_name);
    for (size_t i = 0; i < k->table_count; i++) {
        const rq__fsck_table *t = &k->tables[i];
        if (kept > 0 && rq_slice_eq(k->tables[kept - 1].name, t->name)) {
            k->tables[kept - 1].disabled |= t->disabled;
            k->tables[kept - 1].has_regions |= t->has_regions;
        } else {
            k->tables[kept++] = *t;
        }
    }
    k->table_count = kept;
}

rq__fsck_table *rq__fsck_table_of(const rq__fsck *k, rq_slice name)
{
    const rq__fsck_table key = {.name = name};
    return k->table_count == 0 ? NULL
                               : bsearch(&key, k->tables, k->table_count, sizeof key, by_name);
}

static void report_row(rq__fsck *k, const rq__meta_row *row, const char *what, const char *how)
{
    char text[300];
    rq_bytes_to_string(rq_slice_of(row->row.ptr, row->row.len > 60 ? 60 : row->row.len), text,
                       sizeof text);
    rq__fsck_report(k, RQ_FINDING_PROBLEM, "hbase:meta", "row %s: %s is %s", text, what, how);
}

/* Uses what can still be read of a malformed row: the folders of its region and of the region's
 * parents are not orphans. */
static rq_err claim(rq__fsck *k, const rq__meta_row *row)
{
    rq_slice ns, qualifier, r = row->row;
    if (rq_table_name_parse(r, &ns, &qualifier, NULL) == RQ_OK)
        return table_of_row(k, r) == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    if (r.len > RQ_ENCODED_NAME_LEN + 1 && r.ptr[r.len - 1] == '.') {
        char *name = rq_arena_cstr(
            &k->arena, rq_slice_of(r.ptr + r.len - RQ_ENCODED_NAME_LEN - 1, RQ_ENCODED_NAME_LEN));
        if (name == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(rq__fsck_note_path(k, &k->claimed, name));
    }
    for (size_t i = 0; i < row->merged_count; i++)
        RQ_TRY(rq__fsck_note_path(k, &k->claimed, row->merged[i].encoded));
    return RQ_OK;
}

static rq_err take_row(void *ctx, const rq__meta_row *row, rq_error *why)
{
    rq__fsck *k = ctx;
    (void)why;
    if (row->malformed != NULL) {
        report_row(k, row, row->malformed, "malformed");
        return claim(k, row);
    }
    if (row->odd != NULL) {
        report_row(k, row, row->odd, "out of place");
        k->parents_unknown |= row->odd == rq__meta_odd_relatives;
    }
    if (rq_slice_eq(row->row, RQ_SLICE_LIT("hbase:meta"))) return RQ_OK;
    rq__fsck_table *t = table_of_row(k, row->is_table ? row->row : row->info.table);
    if (t == NULL) return RQ_E_NO_MEMORY;
    if (row->is_table) {
        t->disabled |= row->table_state != RQ_TABLE_ENABLED;
        return RQ_OK;
    }
    bool is_parent = row->info.offline && row->info.split;
    t->has_regions |= !is_parent && row->info.replica_id == 0;
    rq__fsck_region *more = grown(k->regions, k->region_count, &k->region_cap, sizeof *more);
    if (more == NULL) return RQ_E_NO_MEMORY;
    k->regions = more;
    k->regions[k->region_count++] = (rq__fsck_region){
        .info = row->info,
        .is_parent = is_parent,
    };
    for (size_t i = 0; i < row->merged_count; i++)
        RQ_TRY(rq__fsck_note_path(k, &k->merged, row->merged[i].encoded));
    return RQ_OK;
}

static rq_err meta_row(rq__fsck *k, const rq_cell *cells, size_t count, bool ignored, rq_error *why)
{
    return rq__meta_row_read(cells, count, ignored, &k->arena, take_row, k, why);
}

rq_err rq__fsck_meta(rq__fsck *k, rq_error *why)
{
    rq_region_info info;
    rq__fsck_cells all = {.is_meta = true};
    RQ_TRY(rq_region_info_meta(&k->arena, &info));
    rq_err rc = collect(k, &info, &k->meta_log, true, &all, why);
    if (rc == RQ_OK) rc = each_row(k, &all, meta_row, why);
    sort_tables(k);
    free(all.list);
    return rc;
}

/* --- master:store ----------------------------------------------------------------------------- */

static rq_err procedure_row(rq__fsck *k, const rq_cell *cells, size_t count, bool ignored,
                            rq_error *why)
{
    (void)ignored;
    (void)why;
    for (size_t i = 0; i < count; i++) {
        if (!rq_slice_eq(rq_cell_family(&cells[i]), RQ_SLICE_LIT("proc"))) continue;
        if (cells[i].value_len == 0) continue;
        rq_pb_arena memory;
        rq_pb_arena_init(&memory, &k->arena);
        Pb__Procedure *m =
            pb__procedure__unpack(&memory.allocator, cells[i].value_len, cells[i].value);
        if (m == NULL && memory.exhausted) return RQ_E_NO_MEMORY;
        if (m == NULL) {
            rq__fsck_report(k, RQ_FINDING_PROBLEM, "master:store", "a malformed procedure record");
            k->meta_whole = false;
            continue; /* nothing is compared then */
        }
        if (m->state == PB__PROCEDURE_STATE__SUCCESS || m->state == PB__PROCEDURE_STATE__FAILED ||
            m->state == PB__PROCEDURE_STATE__ROLLEDBACK)
            continue;
        k->unfinished++;
        rq__fsck_report(k, RQ_FINDING_NOTE, "master:store",
                        "procedure %llu (%s) is not finished; the next start will continue it",
                        (unsigned long long)m->proc_id, m->class_name);
        RQ_TRY(rq__fsck_add_procedure(k, rq_cell_value(&cells[i])));
    }
    return RQ_OK;
}

rq_err rq__fsck_procedures(rq__fsck *k, rq_error *why)
{
    rq_region_info info;
    rq__fsck_cells all = {0};
    rq_slice none = {NULL, 0};
    RQ_TRY(rq_region_info_make(&k->arena, RQ_SLICE_LIT("master"), RQ_SLICE_LIT("store"), none, none,
                               1, 0, &info)); /* HBASE: MasterRegion.REGION_INFO */
    rq_err rc = collect(k, &info, &k->store_log, false, &all, why);
    if (rc == RQ_OK) rc = each_row(k, &all, procedure_row, why);
    rq__fsck_sort_changes(k);
    free(all.list);
    return rc;
}
