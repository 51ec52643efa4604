/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans: region after region, each with a scanner of ops that is kept between calls.
 *
 *    next ─► a row fetched before │ fetch ─► open or continue the region's scanner ─► rows
 *                                          └► its end: the next region
 *
 * When a region was split or closed, or the scanner's lease has ended, a new scanner continues after the
 * last returned row. If only a part of this row was returned (a scan with `batch`), the row is read again,
 * and cells up to the last returned one are skipped. They are compared by the order of cells, not
 * counted, because the row may have changed meanwhile.
 */
#include "embed/embed_priv.h"

#include "ops/scan.h"

#include <stdlib.h>

#define FETCH_BYTES ((uint64_t)256 * 1024)

typedef struct embed_scan {
    const rq_scanning *args;
    rq_table *table;
    void *owner; /* rq_scan_owner */
    uint64_t scanner_id;
    bool is_open; /* the scanner `scanner_id` is open */
    bool has_ended;
    uint64_t rows_left; /* UINT64_MAX: no limit */
    /* Where to continue with a new scanner. */
    rq_buf from;
    bool include_from;
    rq_buf border; /* the region's end key, or (reversed) its start key */
    /* For a row that is returned in parts. */
    bool gave_part;
    rq_cellblock last_given; /* its last returned cell, without value; valid with gave_part */
    bool reads_again;        /* a new scanner reads this row again from its start */
    /* Fetched and not returned. */
    rq_cellblock out;
    size_t out_at;
    rq_scan_result *results;
    size_t result_count, result_at, result_cap;
    bool has_given;  /* a row was returned since the last fetch */
    bool gave_end;   /* the end of this row was returned */
    size_t given_at; /* offset of this row's cells in `out` */
    rq_row *cursor;  /* to be returned next */
} embed_scan;

typedef struct scan_call {
    rq_op_scan op;
    embed_scan *scan;
} scan_call;

/* --- regions ---------------------------------------------------------------------------------- */

/* Regions whose start key is at or before the row. */
static size_t regions_up_to(const rq_catalog_table *t, rq_slice row)
{
    size_t low = 0, high = t->region_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rq_slice_compare(rq_catalog_table_region(t, middle)->info->start_key, row) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The region in which a reversed scan continues below the row; row empty: the last one. */
static rq_err locate_below(const rq__embed *e, rq__embed_seat *seat, const rq_table *t,
                           rq_slice row, rq_region **ret, rq_error *why)
{
    const rq_catalog_table *table = rq_catalog_table_find(e->catalog, t->name);
    size_t n = table == NULL ? 0 : row.len == 0 ? table->region_count : regions_up_to(table, row);
    if (n > 1 && row.len > 0 &&
        rq_slice_eq(rq_catalog_table_region(table, n - 1)->info->start_key, row))
        n--;
    if (n == 0) return rq__locate(e, seat, t, row, ret, why); /* no such table */
    return rq__locate(e, seat, t, rq_catalog_table_region(table, n - 1)->info->start_key, ret, why);
}

static rq_err locate(const rq__embed *e, rq__embed_seat *seat, const embed_scan *s, rq_region **ret,
                     rq_error *why)
{
    rq_slice from = rq_buf_slice(&s->from);
    if (s->args->reversed && (!s->include_from || from.len == 0))
        return locate_below(e, seat, s->table, from, ret, why);
    return rq__locate(e, seat, s->table, from, ret, why);
}

/* --- a call of the scanner -------------------------------------------------------------------- */

static rq_err fill(rq_op_scan *op, rq_arena *arena, rq_scan *ret, rq_scan_extra *ret_extra)
{
    const embed_scan *s = RQ_CONTAINER_OF(op, scan_call, op)->scan;
    const rq_scanning *a = s->args;
    *ret = (rq_scan){.start_row = rq_arena_copy(arena, rq_buf_slice(&s->from)),
                     .stop_row = a->stop,
                     .include_start = s->include_from,
                     .include_stop = a->include_stop,
                     .reversed = a->reversed,
                     .raw = a->raw,
                     .batch = (int32_t)a->batch};
    if (ret->start_row.ptr == NULL) return RQ_E_NO_MEMORY;
    *ret_extra =
        (rq_scan_extra){.max_result_bytes = a->fetch_bytes > 0 ? a->fetch_bytes : FETCH_BYTES,
                        .need_cursor = a->wants_cursors};
    return rq__reading_to_scan(&a->read, op->read.op.region, arena, ret, &op->read.op.why);
}

static rq_err take(rq_op_scan *op)
{
    embed_scan *s = RQ_CONTAINER_OF(op, scan_call, op)->scan;
    if (op->result_count > s->result_cap) {
        rq_scan_result *more = realloc(s->results, op->result_count * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        s->results = more;
        s->result_cap = op->result_count;
    }
    if (op->result_count > 0)
        memcpy(s->results, op->results, op->result_count * sizeof *s->results);
    s->result_count = op->result_count;
    /* A call without a row has ended because its time was over; then it may have a cursor. */
    if (op->result_count > 0 || !op->is_heartbeat || op->cursor_row.len == 0) return RQ_OK;
    return rq_row_of_cursor(op->cursor_row, &s->cursor);
}

static rq_err keep_border(embed_scan *s, const rq_region *region)
{
    const rq_region_info *info = rq_region_get_info(region);
    rq_slice border = s->args->reversed ? info->start_key : info->end_key;
    rq_buf_reset(&s->border);
    return rq_buf_append(&s->border, border.ptr, border.len);
}

/* Whether the region's border is the scan's end. */
static bool ends_at_border(const embed_scan *s)
{
    const rq_scanning *a = s->args;
    rq_slice border = rq_buf_slice(&s->border);
    if (border.len == 0) return true;
    if (a->stop.len == 0) return false;
    int c = rq_slice_compare(border, a->stop);
    return a->reversed ? c <= 0 : c > 0 || (c == 0 && !a->include_stop);
}

/* The region has no more: the next one is opened at the border. */
static rq_err leave_region(embed_scan *s)
{
    s->is_open = false;
    s->has_ended = ends_at_border(s);
    s->include_from = !s->args->reversed;
    s->reads_again = false;
    rq_buf_reset(&s->from);
    return rq_buf_append(&s->from, s->border.ptr, s->border.len);
}

static rq_err call_scanner(rq__embed *e, rq_slot *slot, rq__embed_seat *seat, scan_call *c,
                           rq_error *why)
{
    embed_scan *s = c->scan;
    rq_op_scan *op = &c->op;
    rq_op *base = &op->read.op;
    op->owner = rq_scan_owner_get(&s->owner);
    if (op->owner == NULL) return rq_no_memory(why);
    op->scanner_id = s->scanner_id;
    op->opens = !s->is_open;
    op->fill = fill;
    op->take = take;
    op->rows_max = s->args->caching > 0 ? s->args->caching : INT32_MAX;
    op->limit_of_rows = s->rows_left > INT32_MAX ? 0 : (int32_t)s->rows_left;
    op->allows_heartbeats = s->args->wants_cursors;
    op->timeout_ms = e->db.timeout_ms;
    op->out = &s->out;
    rq__op_begin(seat, slot, base, RQ_OP_SCAN);
    if (op->opens) {
        RQ_TRY(locate(e, seat, s, &base->region, why));
        RQ_TRY(keep_border(s, base->region));
    }
    rq_op_scan_start(op);
    if (base->rc != RQ_OK) *why = base->why;
    return base->rc;
}

static rq_err fetch_once(rq__embed *e, rq_slot *slot, rq__embed_seat *seat, embed_scan *s,
                         rq_error *why)
{
    scan_call c;
    memset(&c, 0, sizeof c);
    c.scan = s;
    rq_cellblock_reset(&s->out);
    s->out_at = s->result_at = s->result_count = 0;
    rq__seat_enter(e, seat);
    rq_err rc = call_scanner(e, slot, seat, &c, why);
    rq__seat_exit(e, seat);
    if (rc != RQ_OK) {
        s->is_open = false;
        s->result_count = 0;
        rq_row_free(s->cursor);
        s->cursor = NULL;
        return rc;
    }
    s->scanner_id = c.op.scanner_id;
    s->is_open = c.op.more_results && c.op.more_in_region;
    if (!c.op.more_results) {
        s->has_ended = true;
        return RQ_OK;
    }
    return c.op.more_in_region ? RQ_OK : leave_region(s);
}

/* Errors after which a new scanner continues the scan. */
static bool scanner_is_gone(rq_err rc)
{
    return rc == RQ_E_UNKNOWN_SCANNER || rc == RQ_E_LEASE || rc == RQ_E_SCANNER_RESET;
}

/* Notes the last returned row in `from`, where a new scanner would continue. Call it before the results
 * with this row are freed. */
static rq_err keep_place(embed_scan *s)
{
    rq_cell cell;
    bool has_given = s->has_given;
    s->has_given = false;
    if (!has_given || s->has_ended || !s->is_open) return RQ_OK; /* it continues at the border */
    rq_cursor c =
        rq_cursor_of(rq_slice_of(s->out.bytes.ptr + s->given_at, s->out.bytes.len - s->given_at));
    RQ_TRY(rq_cellblock_next(&c, &cell, NULL));
    s->include_from = !s->gave_end;
    rq_buf_reset(&s->from);
    return rq_buf_append(&s->from, cell.row, cell.row_len);
}

static rq_err fetch(rq__embed *e, rq_slot *slot, embed_scan *s, rq_error *why)
{
    rq__attempts attempts = {0};
    rq__embed_seat *seat;
    rq_why seat_why;
    rq_err rc;
    rq_why_clear(&seat_why);
    if (rq__seat_of(e, slot, &seat, &seat_why) != RQ_OK) return rq_no_memory(why);
    if (keep_place(s) != RQ_OK) return rq_no_memory(why);
    for (;;) {
        bool was_open = s->is_open;
        rc = fetch_once(e, slot, seat, s, why);
        if (rc == RQ_OK) return RQ_OK;
        s->reads_again = s->gave_part;
        if (was_open && scanner_is_gone(rc))
            rq_error_clear(why);
        else if (!rq__attempt_again(e, &attempts, rc, why))
            return rc;
    }
}

/* --- rows ------------------------------------------------------------------------------------- */

/* The bytes of the next result's cells. */
static rq_err next_result(embed_scan *s, rq_scan_result *ret, rq_slice *ret_block)
{
    size_t begin = s->out_at;
    *ret = s->results[s->result_at++];
    for (uint32_t i = 0; i < ret->cells; i++) {
        if (s->out.bytes.len - s->out_at < 4) return RQ_E_MALFORMED;
        s->out_at += 4 + (size_t)rq_get_be32(s->out.bytes.ptr + s->out_at);
    }
    if (s->out_at > s->out.bytes.len) return RQ_E_MALFORMED;
    *ret_block = rq_slice_of(s->out.bytes.ptr + begin, s->out_at - begin);
    return RQ_OK;
}

static void count_row(embed_scan *s)
{
    s->gave_part = false;
    if (s->rows_left != UINT64_MAX) s->rows_left--;
}

static rq_cell last_given(const embed_scan *s)
{
    rq_cursor c = rq_cursor_of(rq_buf_slice(&s->last_given.bytes));
    rq_cell cell = {0};
    RQ_ASSERT(rq_cellblock_next(&c, &cell, NULL) == RQ_OK);
    return cell;
}

static rq_err note_part(embed_scan *s, const rq_kv *last)
{
    rq_cell key = {.row = last->row.data,
                   .family = last->family.data,
                   .qualifier = last->qualifier.data,
                   .timestamp = last->timestamp,
                   .qualifier_len = (uint32_t)last->qualifier.len,
                   .row_len = (uint16_t)last->row.len,
                   .family_len = (uint8_t)last->family.len,
                   .type = (uint8_t)last->type};
    s->gave_part = true;
    rq_cellblock_reset(&s->last_given);
    return rq_cellblock_append(&s->last_given, &key);
}

/* Counts a row that is about to be returned, or notes that it is a part of a row. The last part of a row is
 * not always marked as the last one; then the row is counted when the next row is returned. */
static rq_err note_returned(embed_scan *s, const rq_row *row)
{
    if (RQ_UNLIKELY(s->gave_part)) {
        rq_cell last = last_given(s);
        if (!rq_slice_eq(rq_slice_of_bytes(row->cells[0].row), rq_cell_row(&last))) count_row(s);
    }
    if (RQ_UNLIKELY(row->is_partial)) return note_part(s, &row->cells[row->count - 1]);
    count_row(s);
    return RQ_OK;
}

/* Removes the cells that were returned before from a result, after its row was read again. */
static rq_err skip_given(embed_scan *s, rq_scan_result *result, rq_slice *block)
{
    rq_cell given = last_given(s), cell;
    rq_cursor c = rq_cursor_of(*block);
    for (; result->cells > 0; result->cells--) {
        *block = rq_slice_of(c.ptr, (size_t)(c.end - c.ptr));
        rq_err rc = rq_cellblock_next(&c, &cell, NULL);
        if (rc != RQ_OK) return rc == RQ_E_END ? RQ_E_MALFORMED : rc;
        s->reads_again = rq_slice_eq(rq_cell_row(&cell), rq_cell_row(&given)) &&
                         rq_cell_compare_key(RQ_ORDER_DEFAULT, &cell, &given) <= 0;
        if (!s->reads_again) return RQ_OK;
    }
    return RQ_OK;
}

static rq_err take_row(embed_scan *s, rq_row_memory *memory, rq_row **ret)
{
    rq_scan_result result;
    rq_slice block;
    rq_row *row;
    *ret = NULL;
    s->given_at = s->out_at;
    RQ_TRY(next_result(s, &result, &block));
    s->has_given = true;
    s->gave_end = !result.is_partial;
    if (s->reads_again) RQ_TRY(skip_given(s, &result, &block));
    if (result.cells == 0) return RQ_OK;
    RQ_TRY(rq_row_of_block(block, result.cells, memory, &row));
    row->is_partial = result.is_partial;
    row->is_stale = s->args->read.replica > 0;
    rq_err rc = row->count == 0 ? RQ_E_MALFORMED : note_returned(s, row);
    if (rc == RQ_OK)
        *ret = row;
    else
        rq_row_free(row);
    return rc;
}

static rq_err take_rows(embed_scan *s, rq_row_memory *memory, size_t max, rq_row **rows,
                        size_t *ret_count)
{
    size_t n = 0;
    rq_err rc = RQ_OK;
    while (rc == RQ_OK && n < max && s->result_at < s->result_count) {
        rc = take_row(s, memory, &rows[n]);
        if (RQ_LIKELY(rc == RQ_OK && rows[n] != NULL)) n++;
    }
    while (RQ_UNLIKELY(rc != RQ_OK) && n > 0)
        rq_row_free(rows[--n]);
    *ret_count = n;
    return rc;
}

rq_err rq__embed_next(rq_table *t, rq_slot *slot, void *scan, rq_row_memory *memory, size_t max,
                      rq_row **rows, size_t *ret_count, rq_why *why)
{
    embed_scan *s = scan;
    rq__embed *e = rq__embed_of(t->db);
    while (*ret_count == 0) {
        if (s->result_at < s->result_count) {
            rq_err rc = take_rows(s, memory, max, rows, ret_count);
            if (rc != RQ_OK) return rq_fail(&why->error, rc, "%s", rq_err_text(rc));
        } else if (s->cursor != NULL) {
            rows[(*ret_count)++] = s->cursor;
            s->cursor = NULL;
        } else if (s->has_ended || s->rows_left == 0) {
            return RQ_OK;
        } else {
            RQ_TRY(fetch(e, slot, s, &why->error));
        }
    }
    return RQ_OK;
}

bool rq__embed_has_row(const void *scan)
{
    const embed_scan *s = scan;
    return s->result_at < s->result_count || s->cursor != NULL;
}

/* --- life ------------------------------------------------------------------------------------- */

rq_err rq__embed_scan(rq_table *t, rq_slot *slot, const rq_scanning *scan, void **ret, rq_why *why)
{
    embed_scan *s = calloc(1, sizeof *s);
    (void)slot;
    if (s == NULL) return rq_no_memory(&why->error);
    s->args = scan;
    s->table = t;
    s->include_from = scan->include_start;
    s->rows_left = scan->limit == 0 ? UINT64_MAX : scan->limit;
    if (rq_buf_append(&s->from, scan->start.ptr, scan->start.len) != RQ_OK) {
        free(s);
        return rq_no_memory(&why->error);
    }
    *ret = s;
    return RQ_OK;
}

static void close_scanner(rq__embed *e, rq_slot *slot, embed_scan *s)
{
    scan_call c;
    rq__embed_seat *seat;
    rq_why why;
    rq_why_clear(&why);
    if (rq__seat_of(e, slot, &seat, &why) == RQ_OK && s->is_open) {
        memset(&c, 0, sizeof c);
        c.scan = s;
        c.op.owner = s->owner;
        c.op.scanner_id = s->scanner_id;
        c.op.closes = true;
        c.op.take = take;
        c.op.out = &s->out;
        rq_cellblock_reset(&s->out);
        rq__op_begin(seat, slot, &c.op.read.op, RQ_OP_SCAN);
        rq__seat_enter(e, seat);
        rq_op_scan_start(&c.op);
        rq__seat_exit(e, seat);
    }
    if (s->owner != NULL) rq_scan_owner_gone(e->ops, s->owner);
}

void rq__embed_scan_close(rq_db *db, rq_slot *slot, void *scan)
{
    embed_scan *s = scan;
    if (slot != NULL)
        close_scanner(rq__embed_of(db), slot, s);
    else
        free(s->owner); /* ops are gone, with the scanner */
    rq_buf_clear(&s->from);
    rq_buf_clear(&s->border);
    rq_cellblock_clear(&s->last_given);
    rq_cellblock_clear(&s->out);
    rq_row_free(s->cursor);
    free(s->results);
    free(s);
}
