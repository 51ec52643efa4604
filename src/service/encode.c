/* SPDX-License-Identifier: Apache-2.0 */
/* Results for clients; see encode.h. */
#include "service/encode.h"

static ProtobufCBinaryData binary(rq_slice s)
{
    return (ProtobufCBinaryData){s.len, (uint8_t *)s.ptr};
}

static void encode_cell(const rq_cell *c, Pb__Cell *ret)
{
    pb__cell__init(ret);
    ret->has_row = ret->has_family = ret->has_qualifier = ret->has_value = 1;
    ret->row = binary(rq_cell_row(c));
    ret->family = binary(rq_cell_family(c));
    ret->qualifier = binary(rq_cell_qualifier(c));
    ret->value = binary(rq_cell_value(c));
    ret->has_timestamp = 1;
    ret->timestamp = (uint64_t)c->timestamp;
    ret->has_cell_type = 1;
    ret->cell_type = (Pb__CellType)c->type;
}

rq_err rq__encode_cells(rq_slice bytes, uint32_t count, rq_arena *arena, Pb__Result *ret)
{
    Pb__Cell *cells = rq_arena_alloc(arena, count * sizeof *cells);
    ret->cell = rq_arena_alloc(arena, count * sizeof(Pb__Cell *));
    if (cells == NULL || ret->cell == NULL) return RQ_E_NO_MEMORY;
    rq_cursor cursor = rq_cursor_of(bytes);
    for (uint32_t i = 0; i < count; i++) {
        rq_cell cell;
        RQ_TRY(rq_cellblock_next(&cursor, &cell, NULL));
        encode_cell(&cell, &cells[i]);
        ret->cell[i] = &cells[i];
    }
    ret->n_cell = count;
    return RQ_OK;
}

static rq_err take_cells(rq_cellblock *from, rq_cellblock *out)
{
    if (out->bytes.len == 0 && from->bytes.len > RQ__PACKED_AT_ONCE) {
        rq_cellblock_clear(out);
        out->bytes = from->bytes;
        from->bytes = (rq_buf){0};
        return RQ_OK;
    }
    return rq_buf_append(&out->bytes, from->bytes.ptr, from->bytes.len);
}

rq_err rq__encode_result(rq_call *call, rq_cellblock *cells, Pb__Result *ret)
{
    if (!call->client->has_codec)
        return rq__encode_cells(rq_buf_slice(&cells->bytes), cells->count, &call->arena, ret);
    rq_cellblock *out = &call->cells;
    RQ_ASSERT(cells->with_tags == out->with_tags);
    if (cells->count > UINT32_MAX - out->count) return RQ_E_INVALID;
    RQ_TRY(take_cells(cells, out));
    out->count += cells->count;
    ret->has_associated_cell_count = 1;
    ret->associated_cell_count = (int32_t)cells->count;
    return RQ_OK;
}

rq_err rq__pack_message(rq_call *call, const ProtobufCMessage *message, rq_buf *ret)
{
    size_t room = protobuf_c_message_get_packed_size(message);
    RQ_TRY(rq_arena_account(&call->arena, room));
    RQ_TRY(rq_buf_reserve(ret, room));
    ret->len = protobuf_c_message_pack(message, ret->ptr);
    RQ_ASSERT(ret->len == room);
    return RQ_OK;
}
