/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading through an index, and repairing it. Entries are read first, AT_ONCE of them, then their
 * rows; an entry whose row has another value is skipped by a reader, and deleted by a repair. A
 * reader of covered columns reads rows only for entries that are not verified; a repair verifies
 * them.
 */
#include "rowkey/index_priv.h"

#include <stdlib.h>

enum { AT_ONCE = 100, REPAIR_ATTEMPTS = 16 };

typedef struct fetched {
    rq_buf key;   /* of the entry */
    rq_buf value; /* of the entry's key */
    rq__entry entry;
    rq_row *copy; /* made of the entry's copies, if they are asked for and it is verified */
    rq_row *row;  /* as read now; NULL: returned */
} fetched;

typedef struct group {
    fetched items[AT_ONCE];
    size_t count, at;
} group;

struct rq_index_scanner {
    rq_index *x;
    rq_scanner *entries;
    bool covered_only;
    group group;
    rq_err ended_by; /* the error that every further call returns: its group was read in part */
    rq_failure failure;
};

/* --- groups of entries ------------------------------------------------------------------------ */

static void group_clear(group *g)
{
    for (size_t i = 0; i < g->count; i++) {
        rq_buf_clear(&g->items[i].key);
        rq_buf_clear(&g->items[i].value);
        rq_buf_clear(&g->items[i].entry.row);
        rq_row_free(g->items[i].copy);
        rq_row_free(g->items[i].row);
        g->items[i] = (fetched){0};
    }
    g->count = g->at = 0;
}

/* Skips rows of the index table that are not entries. `copies`: also makes the row, if the entry
 * has the copies. */
static rq_err take_entry(const rq_index *x, group *g, const rq_row *row, bool copies)
{
    fetched *f = &g->items[g->count];
    rq_bytes key = row->cells[0].row;
    g->count++;
    RQ_TRY(rq_buf_append(&f->key, key.data, key.len));
    if (!rq__entry_take(row, &f->entry)) return RQ_E_NO_MEMORY;
    rq_err rc = rq__index_value_of(key, &f->value);
    if (rc == RQ_E_MALFORMED) f->entry.exists = false;
    if (rc == RQ_OK && copies) rc = rq__copies_row(x, row, &f->entry, &f->copy);
    return rc == RQ_E_MALFORMED ? RQ_OK : rc;
}

/* RQ_E_CANCELLED: a repair must end, because the index is being closed. */
static rq_err go_on(const rq_index *x, rq_failure *why)
{
    return rq__upkeep_stops(x->upkeep)
               ? rq__index_fail(why, RQ_E_CANCELLED, "the index is being closed")
               : RQ_OK;
}

static rq_err read_entries(const rq_index *x, rq_scanner *scanner, group *g, bool copies,
                           rq_failure *why)
{
    while (g->count < AT_ONCE) {
        rq_row *row = NULL;
        RQ_TRY(rq_scanner_next(scanner, &row, why));
        if (row == NULL) return RQ_OK;
        bool is_cursor = row->count == 0; /* only in a repair */
        rq_err rc = is_cursor ? RQ_OK : take_entry(x, g, row, copies);
        rq_row_free(row);
        if (rc != RQ_OK) return rq__index_fail(why, rc, "out of memory, for entries of an index");
        if (is_cursor) RQ_TRY(go_on(x, why));
    }
    return RQ_OK;
}

/* Whole rows; or the covered columns alone, read for those entries that do not have them. */
static rq_err read_rows(rq_index *x, group *g, bool covered_only, rq_failure *why)
{
    for (size_t i = 0; i < g->count; i++) {
        fetched *f = &g->items[i];
        if (!f->entry.exists) continue;
        if (covered_only && f->copy != NULL) {
            f->row = f->copy;
            f->copy = NULL;
            continue;
        }
        rq_get_request get = {.size = sizeof get,
                              .row = {f->entry.row.ptr, f->entry.row.len},
                              .columns = x->covered,
                              .column_count = covered_only ? x->covered_count : 0};
        RQ_TRY(rq_table_get(x->table, &get, &f->row, why));
    }
    return RQ_OK;
}

static bool is_true(const rq_index *x, const fetched *f)
{
    const rq_kv *cell = f->row == NULL ? NULL : rq__index_cell(x, f->row);
    return cell != NULL && rq_slice_eq(rq_slice_of_bytes(cell->value), rq_buf_slice(&f->value));
}

/* --- reading ---------------------------------------------------------------------------------- */

static rq_err open_range(rq_index_scanner *s, const rq_index_range *range, rq_failure *why)
{
    rq_buf start = {0}, stop = {0};
    rq_bytes none = {NULL, 0};
    rq_err rc = RQ_OK;
    rq_index all = *s->x;
    all.unique = true; /* the value alone */
    if (range->from.len > 0) rc = rq__index_key(&all, range->from, none, &start);
    if (rc == RQ_OK && !range->no_end) {
        rc = rq__index_key(&all, range->to, none, &stop);
        if (rc == RQ_OK && range->includes_to) stop.ptr[stop.len - 1] = 1; /* behind 00 00 */
    }
    rq_scan_request scan = {
        .size = sizeof scan, .start = {start.ptr, start.len}, .stop = {stop.ptr, stop.len}};
    if (rc != RQ_OK)
        rc = rq__index_fail(why, rc, "out of memory, for a scan");
    else
        rc = rq_table_scan(s->x->entries, &scan, &s->entries, why);
    rq_buf_clear(&start);
    rq_buf_clear(&stop);
    return rc;
}

rq_err rq_index_scan(rq_index *index, const rq_index_range *range, rq_index_scanner **ret,
                     rq_failure *failure)
{
    RQ_TRY(rq_needs(index, "index", failure));
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_index_range own;
    RQ_TRY(rq__index_sized(&own, sizeof own, range, offsetof(rq_index_range, covered_only),
                           "rq_index_range", failure));
    range = &own;
    if (range->covered_only && index->covered_count == 0)
        return rq__index_fail(failure, RQ_E_INVALID, "the index covers no columns");
    if ((range->from.data == NULL && range->from.len > 0) ||
        (range->to.data == NULL && range->to.len > 0))
        return rq__index_fail(failure, RQ_E_INVALID,
                              "a bound of the range has a length but no data");
    rq_index_scanner *s = calloc(1, sizeof *s);
    if (s == NULL) return rq__index_fail(failure, RQ_E_NO_MEMORY, "out of memory, for a scan");
    s->x = index;
    s->covered_only = range->covered_only;
    s->failure.size = sizeof s->failure;
    rq_err rc = open_range(s, range, failure);
    if (rc == RQ_OK)
        *ret = s;
    else
        rq_index_scanner_close(s);
    return rc;
}

static rq_err next_row(rq_index_scanner *scanner, rq_row **ret, rq_failure *failure)
{
    group *g = &scanner->group;
    for (;;) {
        for (; g->at < g->count; g->at++) {
            fetched *f = &g->items[g->at];
            if (!is_true(scanner->x, f)) continue;
            *ret = f->row;
            f->row = NULL;
            g->at++;
            return RQ_OK;
        }
        group_clear(g);
        RQ_TRY(read_entries(scanner->x, scanner->entries, g, scanner->covered_only, failure));
        RQ_TRY(read_rows(scanner->x, g, scanner->covered_only, failure));
        if (g->count == 0) break;
    }
    *ret = NULL;
    return RQ_OK;
}

rq_err rq_index_next(rq_index_scanner *scanner, rq_row **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(scanner, "scanner", failure));
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    RQ_TRY(rq_db_needs_home(scanner->x->table->db, failure));
    if (scanner->ended_by == RQ_OK) scanner->ended_by = next_row(scanner, ret, &scanner->failure);
    return rq__copy_failure(&scanner->failure, scanner->ended_by, failure);
}

void rq_index_scanner_close(rq_index_scanner *scanner)
{
    if (scanner == NULL) return;
    group_clear(&scanner->group);
    rq_scanner_close(scanner->entries);
    free(scanner);
}

/* --- repairing -------------------------------------------------------------------------------- */

/* Writes the row's copies to a valid entry and verifies the entry. The row's generation is changed (rq__index_fence)
 * after the entry has its new token (index.c); this fails if the row has changed since it was read. */
static rq_err verify_entry(rq_index *x, rq_bytes key, rq__entry *e, const rq_row *row,
                           rq_failure *why)
{
    rq__copies copies = {0};
    rq_bytes name = row->cells[0].row;
    bool done = false;
    rq_err rc = rq__copies_make(x, row, NULL, 0, &copies);
    if (rc != RQ_OK)
        rc = rq__index_fail(why, rc, "out of memory, for a repair");
    else
        rc = rq__entry_put(x, key, name, e, &copies, &done, why);
    if (rc == RQ_OK && done) rc = rq__index_fence(x, row, name, &done, why);
    if (rc == RQ_OK && done) rc = rq__entry_verify(x, key, e, why);
    rq_buf_clear(&copies.bytes);
    return rc;
}

/* Of an entry that was put just now for this cell. */
static rq_err verify_added(rq_index *x, rq_bytes key, rq__entry *e, const rq_kv *cell,
                           rq_failure *why)
{
    rq_row *row;
    if (x->covered_count == 0) return RQ_OK;
    RQ_TRY(rq__index_read(x, cell->row, &row, why));
    const rq_kv *now = rq__index_cell(x, row);
    bool same =
        now != NULL && rq_slice_eq(rq_slice_of_bytes(now->value), rq_slice_of_bytes(cell->value));
    rq_err rc = same ? verify_entry(x, key, e, row, why) : RQ_OK;
    rq_row_free(row);
    return rc;
}

static bool same_cells(const rq_kv *a, const rq_kv *b)
{
    if (a == NULL || b == NULL) return a == b;
    return a->timestamp == b->timestamp &&
           rq_slice_eq(rq_slice_of_bytes(a->value), rq_slice_of_bytes(b->value));
}

/* Of an entry that is true. */
static bool copies_are_true(const rq_index *x, const fetched *f)
{
    for (size_t i = 0; i < x->covered_count; i++) {
        const rq_column *c = &x->covered[i];
        if (f->copy == NULL || !same_cells(rq_row_find(f->copy, c->family, c->qualifier),
                                           rq_row_find(f->row, c->family, c->qualifier)))
            return false;
    }
    return true;
}

/* Gives a row its entry, if it has none. A unique index keeps the entry of another row with the value. */
static rq_err repair_row(rq_index *x, const rq_row *row, rq_index_repairs *r, rq_failure *why)
{
    const rq_kv *cell = rq__index_cell(x, row);
    rq_buf key = {0};
    rq_row *found = NULL;
    rq__entry e = {0};
    bool done = false;
    if (cell == NULL) return RQ_OK;
    r->rows++;
    rq_err rc = rq__index_key(x, cell->value, row->cells[0].row, &key);
    if (rc != RQ_OK) return rq__index_fail(why, rc, "out of memory, for a repair");
    rq_get_request get = {.size = sizeof get, .row = {key.ptr, key.len}};
    rc = rq_table_get(x->entries, &get, &found, why);
    if (rc == RQ_OK && !rq__entry_take(found, &e))
        rc = rq__index_fail(why, RQ_E_NO_MEMORY, "out of memory, for a repair");
    if (rc == RQ_OK && !e.exists) {
        rc =
            rq__entry_put(x, (rq_bytes){key.ptr, key.len}, row->cells[0].row, &e, NULL, &done, why);
        r->added += done;
        if (rc == RQ_OK && done) rc = verify_added(x, (rq_bytes){key.ptr, key.len}, &e, cell, why);
    } else if (rc == RQ_OK && x->unique) {
        r->duplicates += !rq_slice_eq(rq_buf_slice(&e.row), rq_slice_of_bytes(row->cells[0].row));
    }
    rq_buf_clear(&e.row);
    rq_row_free(found);
    rq_buf_clear(&key);
    return rc;
}

/* The scan returns a cursor when it has found no row for long, so that a repair that must stop does not wait for the next
 * row. A cursor has no cells: repair_row does nothing. */
static rq_err repair_rows(rq_index *x, rq_index_repairs *r, rq_failure *why)
{
    rq_column column = {x->family, x->qualifier};
    rq_scan_request scan = {
        .size = sizeof scan, .columns = &column, .column_count = 1, .wants_cursors = true};
    rq_scanner *s;
    RQ_TRY(rq_table_scan(x->table, &scan, &s, why));
    rq_row *row = NULL;
    rq_err rc = rq_scanner_next(s, &row, why);
    while (rc == RQ_OK && row != NULL) {
        rc = repair_row(x, row, r, why);
        rq_row_free(row);
        row = NULL;
        if (rc == RQ_OK) rc = go_on(x, why);
        if (rc == RQ_OK) rc = rq_scanner_next(s, &row, why);
    }
    rq_scanner_close(s);
    return rc;
}

static rq_err remove_deleted(rq_index *x, const fetched *f, rq_failure *why)
{
    if (f->entry.timestamp == 0 || f->entry.timestamp > rq__index_time(0) - RQ__LONG_AGO_MS)
        return RQ_OK;
    return rq__entry_remove(x, (rq_bytes){f->key.ptr, f->key.len}, &f->entry, why);
}

/* Deletes an invalid entry. As in a write (index.c), the entry's token is read first, then the row, and the row's
 * generation is changed (rq__index_fence) before the entry is deleted. The fence fails if the row has changed since it
 * was read: by a writer, or by the fence for another entry of the row. */
static rq_err repair_entry(rq_index *x, fetched *f, bool *ret_done, rq_failure *why)
{
    rq_bytes row = {f->entry.row.ptr, f->entry.row.len};
    *ret_done = false;
    for (int i = 0; i < REPAIR_ATTEMPTS && !is_true(x, f); i++) {
        bool fenced = false;
        RQ_TRY(rq__index_fence(x, f->row, row, &fenced, why));
        if (fenced)
            return rq__entry_delete(x, (rq_bytes){f->key.ptr, f->key.len}, &f->entry, ret_done,
                                    why);
        rq_row_free(f->row);
        f->row = NULL;
        RQ_TRY(rq__index_read(x, row, &f->row, why));
    }
    return RQ_OK;
}

static rq_err repair_group(rq_index *x, group *g, rq_index_repairs *r, rq_failure *why)
{
    for (size_t i = 0; i < g->count; i++) {
        fetched *f = &g->items[i];
        bool done = false;
        if (!f->entry.exists)
            RQ_TRY(remove_deleted(x, f, why));
        else if (!is_true(x, f))
            RQ_TRY(repair_entry(x, f, &done, why));
        else if (!copies_are_true(x, f))
            RQ_TRY(verify_entry(x, (rq_bytes){f->key.ptr, f->key.len}, &f->entry, f->row, why));
        r->removed += done;
    }
    return RQ_OK;
}

/* With cursors, as repair_rows. */
static rq_err repair_entries(rq_index *x, rq_index_repairs *r, rq_failure *why)
{
    rq_scan_request scan = {.size = sizeof scan, .wants_cursors = true};
    rq_scanner *s;
    group *g = calloc(1, sizeof *g);
    if (g == NULL) return rq__index_fail(why, RQ_E_NO_MEMORY, "out of memory, for a repair");
    rq_err rc = rq_table_scan(x->entries, &scan, &s, why);
    if (rc == RQ_OK) {
        do {
            group_clear(g);
            rc = go_on(x, why);
            if (rc == RQ_OK) rc = read_entries(x, s, g, true, why);
            if (rc == RQ_OK) rc = read_rows(x, g, false, why);
            if (rc == RQ_OK) rc = repair_group(x, g, r, why);
            r->entries += g->count;
        } while (rc == RQ_OK && g->count > 0);
        rq_scanner_close(s);
    }
    group_clear(g);
    free(g);
    return rc;
}

rq_err rq__index_repair(rq_index *x, rq_index_repairs *r, rq_failure *why)
{
    RQ_TRY(repair_entries(x, r, why)); /* first: a unique index's stale entries make room */
    return repair_rows(x, r, why);
}

rq_err rq_index_repair(rq_index *index, rq_index_repairs *ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(index, "index", failure));
    rq_index_repairs r = {.size = sizeof r};
    rq_why why;
    rq_why_clear(&why);
    if (ret != NULL && rq_sized_result(ret, offsetof(rq_index_repairs, added), "rq_index_repairs",
                                       &why.error) != RQ_OK)
        return rq_fill_failure(failure, RQ_E_INVALID, &why);
    RQ_TRY(rq__index_repair(index, &r, failure));
    if (ret != NULL) rq_fill_sized(ret, &r, sizeof r);
    return RQ_OK;
}
