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

static bool is_of(const rq__column *column, const rq_cell *c)
{
    return rq_slice_eq(column->family, rq_cell_family(c)) &&
           rq_slice_eq(column->qualifier, rq_cell_qualifier(c));
}

/* The column's first cell, which is the newest. */
static rq_err find(const rq__column *column, const rq_op_result *row, rq_slice *ret)
{
    rq_cell c;
    rq_err rc;
    rq_result_view view = row->row;
    rq_cursor cells = row->cells;
    *ret = (rq_slice){0};
    while ((rc = rq_result_next(&view, &cells, &c)) == RQ_OK)
        if (is_of(column, &c)) {
            *ret = rq_cell_value(&c);
            return RQ_OK;
        }
    return rc == RQ_E_END ? RQ_OK : rc;
}

static rq_err look(const rq_op_result *row, rq_slice *ret_row, int64_t *ret_newest,
                   uint64_t *ret_cells)
{
    rq_cell c;
    rq_err rc;
    rq_result_view view = row->row;
    rq_cursor cells = row->cells;
    *ret_cells = 0;
    *ret_newest = 0;
    *ret_row = (rq_slice){0};
    while ((rc = rq_result_next(&view, &cells, &c)) == RQ_OK) {
        *ret_row = rq_cell_row(&c);
        if (c.timestamp > *ret_newest) *ret_newest = c.timestamp;
        ++*ret_cells;
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}

rq_err rq__text_put_row(const rq__columns *c, rq_op_result *row, rq_buf *out, uint64_t *ret_cells,
                        rq_error *why)
{
    rq_slice key, field;
    int64_t newest;
    RQ_TRY(look(row, &key, &newest, ret_cells));
    for (size_t i = 0; i < c->count; i++) {
        const rq__column *column = &c->list[i];
        if (i > 0) RQ_TRY(rq_buf_append_u8(out, (uint8_t)c->format.separator));
        if (column->kind == RQ__COLUMN_TIME) {
            RQ_TRY(rq_buf_printf(out, "%lld", (long long)newest));
            continue;
        }
        field = key;
        if (column->kind == RQ__COLUMN_CELL) RQ_TRY(find(column, row, &field));
        if (column->kind == RQ__COLUMN_TTL || column->kind == RQ__COLUMN_ATTRIBUTES)
            field = (rq_slice){0};
        RQ_TRY(put_field(&c->format, out, field, key, why));
    }
    return rq_buf_append_u8(out, '\n');
}
