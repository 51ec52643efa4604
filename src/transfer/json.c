/* SPDX-License-Identifier: Apache-2.0 */
/* See json.h. Lines are read by Jansson. */
#include "transfer/json.h"

#include "client/client.h"
#include "transfer/scan.h"

#include <jansson.h>
#include <stdlib.h>

/* --- writing ---------------------------------------------------------------------------------- */

/* A code point that stands for itself between quotes. */
static bool is_plain(uint32_t c)
{
    return c >= ' ' && c != '"' && c != '\\' && c != 0x7f;
}

static rq_err put_text(rq_buf *out, rq_slice s)
{
    RQ_TRY(rq_buf_append_u8(out, '"'));
    for (size_t i = 0; i < s.len;) {
        uint32_t c;
        size_t len = rq_utf8_take(rq_slice_of(s.ptr + i, s.len - i), &c);
        if (len > 0 && is_plain(c))
            RQ_TRY(rq_buf_append(out, s.ptr + i, len));
        else if (len > 0 && c == '"')
            RQ_TRY(rq_buf_append(out, "\\\"", 2));
        else
            RQ_TRY(rq_buf_printf(out, "\\\\x%02X", s.ptr[i]));
        i += len > 0 && (is_plain(c) || c == '"') ? len : 1;
    }
    return rq_buf_append_u8(out, '"');
}

static rq_err put_cell(rq_buf *out, const rq_cell *c)
{
    RQ_TRY(rq_buf_printf(out, "{\"family\":"));
    RQ_TRY(put_text(out, rq_cell_family(c)));
    RQ_TRY(rq_buf_printf(out, ",\"qualifier\":"));
    RQ_TRY(put_text(out, rq_cell_qualifier(c)));
    RQ_TRY(rq_buf_printf(out, ",\"timestamp\":%lld", (long long)c->timestamp));
    if (c->type != RQ_TYPE_PUT)
        RQ_TRY(rq_buf_printf(out, ",\"type\":\"%s\"", rq_cell_type_name(c->type)));
    RQ_TRY(rq_buf_printf(out, ",\"value\":"));
    RQ_TRY(put_text(out, rq_cell_value(c)));
    return rq_buf_append_u8(out, '}');
}

rq_err rq__json_put_row(rq_buf *out, rq_op_result *row, uint64_t *ret_cells)
{
    rq_cell c;
    rq_err rc;
    *ret_cells = 0;
    while ((rc = rq_result_next(&row->row, &row->cells, &c)) == RQ_OK) {
        if (++*ret_cells == 1) {
            RQ_TRY(rq_buf_printf(out, "{\"row\":"));
            RQ_TRY(put_text(out, rq_cell_row(&c)));
            RQ_TRY(rq_buf_printf(out, ",\"cells\":["));
        } else {
            RQ_TRY(rq_buf_append_u8(out, ','));
        }
        RQ_TRY(put_cell(out, &c));
    }
    if (rc != RQ_E_END) return rc;
    return *ret_cells == 0 ? RQ_OK : rq_buf_append(out, "]}\n", 3);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* The member's bytes, in r->bytes, which has room. */
static bool take_bytes(const json_t *object, const char *name, rq__json_row *r, rq_slice *ret)
{
    const json_t *text = json_object_get(object, name);
    size_t begin = r->bytes.len;
    if (!json_is_string(text)) return false;
    rq_err rc =
        rq_bytes_of_text(rq_slice_of(json_string_value(text), json_string_length(text)), &r->bytes);
    RQ_ASSERT(rc == RQ_OK);
    *ret = rq_slice_of(r->bytes.ptr + begin, r->bytes.len - begin);
    return true;
}

static bool take_type(const json_t *object, uint8_t *ret)
{
    static const uint8_t known[] = {RQ_TYPE_PUT, RQ_TYPE_DELETE, RQ_TYPE_DELETE_COLUMN,
                                    RQ_TYPE_DELETE_FAMILY, RQ_TYPE_DELETE_FAMILY_VERSION};
    const json_t *type = json_object_get(object, "type");
    *ret = RQ_TYPE_PUT;
    if (type == NULL) return true;
    for (size_t i = 0; json_is_string(type) && i < sizeof known; i++)
        if (strcmp(json_string_value(type), rq_cell_type_name(known[i])) == 0) {
            *ret = known[i];
            return true;
        }
    return false;
}

static const char *take_cell(const json_t *object, int64_t now_ms, rq_slice row, rq__json_row *r)
{
    rq_cell c = {.row = row.ptr, .row_len = (uint16_t)row.len, .timestamp = now_ms};
    rq_slice family, qualifier = {0}, value = {0};
    const json_t *time = json_object_get(object, "timestamp");
    if (!take_bytes(object, "family", r, &family)) return "A cell has no family";
    if (family.len == 0 || family.len > RQ_FAMILY_LEN_MAX)
        return "A family's length is not 1 to 127 bytes";
    if (json_object_get(object, "qualifier") != NULL &&
        !take_bytes(object, "qualifier", r, &qualifier))
        return "A qualifier is not text";
    if (json_object_get(object, "value") != NULL && !take_bytes(object, "value", r, &value))
        return "A value is not text";
    if (time != NULL && !json_is_integer(time)) return "A timestamp is not a number";
    if (time != NULL) c.timestamp = json_integer_value(time);
    if (c.timestamp < 0) return "Timestamp cannot be negative";
    if (!take_type(object, &c.type)) return "A cell's type is unknown";
    c.family = family.ptr;
    c.family_len = (uint8_t)family.len;
    c.qualifier = qualifier.ptr;
    c.qualifier_len = (uint32_t)qualifier.len;
    c.value = value.ptr;
    c.value_len = (uint32_t)value.len;
    r->cells[r->count++] = c;
    return NULL;
}

static rq_err make_room(rq__json_row *r, size_t cells, size_t bytes)
{
    rq_buf_reset(&r->bytes);
    r->count = 0;
    RQ_TRY(rq_buf_reserve(&r->bytes, bytes));
    if (cells <= r->cap) return RQ_OK;
    rq_cell *bigger = realloc(r->cells, cells * sizeof *bigger);
    if (bigger == NULL) return RQ_E_NO_MEMORY;
    r->cells = bigger;
    r->cap = cells;
    return RQ_OK;
}

static const char *take_row(const json_t *root, size_t len, int64_t now_ms, rq__json_row *r,
                            rq_err *rc)
{
    rq_slice row;
    const json_t *cells = json_object_get(root, "cells");
    if (!json_is_object(root)) return "The line is not an object";
    if (!json_is_array(cells)) return "The line has no cells";
    *rc = make_room(r, json_array_size(cells), len);
    if (*rc != RQ_OK) return NULL;
    if (!take_bytes(root, "row", r, &row)) return "No row key";
    if (row.len == 0) return "Empty value for ROW KEY.";
    if (row.len > RQ_ROW_LEN_MAX) return "Row key of more than 32767 bytes";
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const char *problem = take_cell(json_array_get(cells, i), now_ms, row, r);
        if (problem != NULL) return problem;
    }
    return r->count == 0 ? "The line has no cells" : NULL;
}

const char *rq__json_parse(rq_slice line, int64_t now_ms, rq__json_row *r, rq_err *rc)
{
    json_error_t error;
    *rc = RQ_OK;
    json_t *root = json_loadb((const char *)line.ptr, line.len,
                              JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (root == NULL) {
        if (json_error_code(&error) == json_error_out_of_memory) *rc = RQ_E_NO_MEMORY;
        return *rc == RQ_OK ? "The line is not JSON" : NULL;
    }
    const char *problem = take_row(root, line.len, now_ms, r, rc);
    json_decref(root);
    return problem;
}

void rq__json_row_clear(rq__json_row *r)
{
    free(r->cells);
    rq_buf_clear(&r->bytes);
    *r = (rq__json_row){0};
}
