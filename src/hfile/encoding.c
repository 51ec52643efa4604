/* SPDX-License-Identifier: Apache-2.0 */
/* Data block encodings (encoding.h). HBASE: RowIndexCodecV1, RowIndexEncoderV1 2.6; HBase writes
 * hbase:meta and the master's store with it. */
#include "hfile/encoding.h"

#include "hfile/delta.h"

typedef struct encoding_row {
    const char *name;
    rq_block_encoding id;
} encoding_row;

static const encoding_row encodings[] = {
    {"NONE", RQ_ENCODING_NONE},
    {"PREFIX", RQ_ENCODING_PREFIX},
    {"DIFF", RQ_ENCODING_DIFF},
    {"FAST_DIFF", RQ_ENCODING_FAST_DIFF},
    {"ROW_INDEX_V1", RQ_ENCODING_ROW_INDEX_V1},
};

const char *rq__encoding_name(rq_block_encoding e)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(encodings); i++)
        if (encodings[i].id == e) return encodings[i].name;
    return NULL;
}

bool rq__encoding_parse(rq_slice name, rq_block_encoding *ret)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(encodings); i++)
        if (rq_slice_eq(name, rq_slice_cstr(encodings[i].name))) {
            *ret = encodings[i].id;
            return true;
        }
    return false;
}

rq_err rq__encoding_decode(rq_block_encoding e, rq_slice payload, rq_slice *ret)
{
    if (e == RQ_ENCODING_NONE) {
        *ret = payload;
        return RQ_OK;
    }
    if (rq__encoding_is_delta(e)) {
        if (payload.len < RQ__DELTA_HEADER_LEN || rq_get_be16(payload.ptr) != (uint16_t)e)
            return RQ_E_CORRUPT;
        *ret = rq_slice_of(payload.ptr + RQ__DELTA_HEADER_LEN, payload.len - RQ__DELTA_HEADER_LEN);
        return RQ_OK;
    }
    if (payload.len < 2 + 4 + 4 || rq_get_be16(payload.ptr) != (uint16_t)e) return RQ_E_CORRUPT;
    uint64_t cells_len = rq_get_be32(payload.ptr + payload.len - 4);
    uint64_t left = payload.len - 2 - 4 - 4;
    if (cells_len > left) return RQ_E_CORRUPT;
    uint64_t rows = rq_get_be32(payload.ptr + 2 + cells_len);
    if (rows * 4 != left - cells_len) return RQ_E_CORRUPT;
    *ret = rq_slice_of(payload.ptr + 2, cells_len);
    return RQ_OK;
}

rq_err rq__encoding_put_row_index(rq_slice cells, rq_slice rows, rq_buf *out)
{
    RQ_TRY(rq_buf_append_be16(out, RQ_ENCODING_ROW_INDEX_V1));
    RQ_TRY(rq_buf_append(out, cells.ptr, cells.len));
    RQ_TRY(rq_buf_append_be32(out, (uint32_t)(rows.len / 4)));
    RQ_TRY(rq_buf_append(out, rows.ptr, rows.len));
    return rq_buf_append_be32(out, (uint32_t)cells.len);
}
