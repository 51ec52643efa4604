/* SPDX-License-Identifier: Apache-2.0 */
/* Result { cell 1, exists 3, stale 4, partial 5 }; Cell { row 1, family 2, qualifier 3,
 * timestamp 4, cell_type 5, value 6, tags 7 }. */
#include "transfer/result.h"

#include "base/pb.h"
#include "client/client.h"

static rq_err put_cell(rq_buf *out, const rq_cell *c)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, 1, &at));
    RQ_TRY(rq_pb_put_bytes(out, 1, rq_cell_row(c)));
    RQ_TRY(rq_pb_put_bytes(out, 2, rq_cell_family(c)));
    RQ_TRY(rq_pb_put_bytes(out, 3, rq_cell_qualifier(c)));
    RQ_TRY(rq_pb_put_number(out, 4, (uint64_t)c->timestamp));
    RQ_TRY(rq_pb_put_number(out, 5, c->type));
    RQ_TRY(rq_pb_put_bytes(out, 6, rq_cell_value(c)));
    if (c->tags_len > 0) RQ_TRY(rq_pb_put_bytes(out, 7, rq_slice_of(c->tags, c->tags_len)));
    return rq_pb_end(out, at);
}

rq_err rq__result_put(rq_buf *out, rq_buf *scratch, rq_op_result *row, rq_slice *ret_row,
                      uint64_t *ret_cells)
{
    rq_cell c;
    rq_err rc;
    *ret_cells = 0;
    rq_buf_reset(scratch);
    while ((rc = rq_result_next(&row->row, &row->cells, &c)) == RQ_OK) {
        if (++*ret_cells == 1) *ret_row = rq_cell_row(&c);
        RQ_TRY(put_cell(scratch, &c));
    }
    if (rc != RQ_E_END) return rc;
    RQ_TRY(rq_pb_put_number(scratch, 4, 0));
    RQ_TRY(rq_pb_put_number(scratch, 5, row->row.partial));
    rq_buf_reset(out);
    RQ_TRY(rq_buf_append_varint(out, scratch->len));
    return rq_buf_append(out, scratch->ptr, scratch->len);
}

rq_err rq__result_open(rq_slice value, rq_slice *ret_cells)
{
    rq_cursor c = rq_cursor_of(value);
    if (!rq_pb_delimited(&c, ret_cells) || rq_cursor_left(&c) > 0) return RQ_E_MALFORMED;
    return RQ_OK;
}

static bool is_known_type(uint8_t type)
{
    return type == RQ_TYPE_PUT || type == RQ_TYPE_DELETE || type == RQ_TYPE_DELETE_COLUMN ||
           type == RQ_TYPE_DELETE_FAMILY || type == RQ_TYPE_DELETE_FAMILY_VERSION;
}

rq_err rq__result_next(rq_slice *cells, rq_cell *ret)
{
    rq_result_view view = {.inline_cells = *cells};
    rq_cursor none = {0};
    RQ_TRY(rq_result_next(&view, &none, ret));
    *cells = view.inline_cells;
    return is_known_type(ret->type) && ret->row_len > 0 ? RQ_OK : RQ_E_MALFORMED;
}
