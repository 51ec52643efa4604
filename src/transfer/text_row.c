/* SPDX-License-Identifier: Apache-2.0 */
/* See text_row.h. */
#include "transfer/text_row.h"

#include "client/client.h"
#include "transfer/scan.h"

static bool has(rq_slice s, char c)
{
    return s.len > 0 && memchr(s.ptr, c, s.len) != NULL;
}

static rq_err put_quoted(rq_buf *out, rq_slice s)
{
    RQ_TRY(rq_buf_append_u8(out, '"'));
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '"') RQ_TRY(rq_buf_append_u8(out, '"'));
        RQ_TRY(rq_buf_append_u8(out, s.ptr[i]));
    }
    return rq_buf_append_u8(out, '"');
}

/* Also the separator as \xNN. */
static rq_err put_escaped(const rq_text_format *f, rq_buf *out, rq_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == (uint8_t)f->separator)
            RQ_TRY(rq_buf_printf(out, "\\x%02X", s.ptr[i]));
        else
            RQ_TRY(rq__text_of_bytes(rq_slice_of(s.ptr + i, 1), out));
    }
    return RQ_OK;
}

static rq_err put_field(const rq_text_format *f, rq_buf *out, rq_slice s, rq_slice row,
                        rq_error *why)
{
    if (f->has_escapes) return put_escaped(f, out, s);
    bool breaks = has(s, '\n') || has(s, '\r') || has(s, f->separator);
    if (f->has_quotes && (breaks || has(s, '"'))) return put_quoted(out, s);
    if (!breaks) return s.len == 0 ? RQ_OK : rq_buf_append(out, s.ptr, s.len);
    char name[128];
    rq_bytes_to_string(row, name, sizeof name);
    return rq_fail(why, RQ_E_INVALID,
                   "row %s has the separator or a line break in a field: use --escape, --format "
                   "csv or json",
                   name);
}

/* --- fields ----------------------------------------------------------------------------------- */

/* The place in c->by_name of the first column with this name or a later one. */
static size_t find(const rq__columns *c, const rq_cell *cell)
{
    size_t low = 0, high = c->cell_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (rq__column_compare(&c->list[c->by_name[mid]], cell) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* A column may be listed several times. The first cell is the newest. */
static void place(const rq__columns *c, rq__line *l, const rq_cell *cell)
{
    rq_slice value = rq_cell_value(cell);
    for (size_t i = find(c, cell); i < c->cell_count; i++) {
        rq_slice *field = &l->fields[c->by_name[i]];
        if (field->ptr != NULL || rq__column_compare(&c->list[c->by_name[i]], cell) != 0) return;
        *field = value.ptr != NULL ? value : RQ_SLICE_LIT("");
    }
}

/* Fields without a cell are empty. */
static rq_err take_cells(const rq__columns *c, rq_op_result *row, rq__line *l, uint64_t *ret_cells)
{
    rq_cell cell;
    rq_err rc;
    *ret_cells = 0;
    l->timestamp = 0;
    l->row = (rq_slice){0};
    memset(l->fields, 0, c->count * sizeof *l->fields);
    while ((rc = rq_result_next(&row->row, &row->cells, &cell)) == RQ_OK) {
        l->row = rq_cell_row(&cell);
        if (cell.timestamp > l->timestamp) l->timestamp = cell.timestamp;
        place(c, l, &cell);
        ++*ret_cells;
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}

rq_err rq__text_put_row(const rq__columns *c, rq__line *l, rq_op_result *row, rq_buf *out,
                        uint64_t *ret_cells, rq_error *why)
{
    RQ_TRY(take_cells(c, row, l, ret_cells));
    for (size_t i = 0; i < c->count; i++) {
        if (i > 0) RQ_TRY(rq_buf_append_u8(out, (uint8_t)c->format.separator));
        if (i == c->time)
            RQ_TRY(rq_buf_printf(out, "%lld", (long long)l->timestamp));
        else
            RQ_TRY(put_field(&c->format, out, i == c->row ? l->row : l->fields[i], l->row, why));
    }
    return rq_buf_append_u8(out, '\n');
}
