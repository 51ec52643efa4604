/* SPDX-License-Identifier: Apache-2.0 */
/* Cell-block codecs; layouts in cell_codec.h. */
#include "rpc/cell_codec.h"

#define PACKAGE "org.apache.hadoop.hbase.codec."

static const struct {
    const char *java_class;
    rq_cell_codec codec;
} codecs[] = {
    {PACKAGE "KeyValueCodec", RQ_CODEC_KEYVALUE},
    {PACKAGE "KeyValueCodecWithTags", RQ_CODEC_KEYVALUE_TAGS},
    {PACKAGE "CellCodec", RQ_CODEC_CELL},
    {PACKAGE "CellCodecWithTags", RQ_CODEC_CELL_TAGS},
};

bool rq__cell_codec_find(const char *java_class, rq_cell_codec *ret)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(codecs); i++) {
        if (strcmp(codecs[i].java_class, java_class) != 0) continue;
        *ret = codecs[i].codec;
        return true;
    }
    return false;
}

static bool sized(rq_cursor *c, size_t max, rq_slice *ret)
{
    uint32_t len;
    return rq_cursor_be32(c, &len) && len <= max && rq_cursor_bytes(c, len, ret);
}

static bool read_cell(rq_cursor *c, bool tags, rq_cell *cell)
{
    rq_slice row, family, qualifier, value, tag_bytes = {0};
    uint64_t timestamp, sequence;
    uint8_t type;
    bool ok = sized(c, RQ_ROW_LEN_MAX, &row) && sized(c, RQ_FAMILY_LEN_MAX, &family) &&
              sized(c, INT32_MAX, &qualifier) && rq_cursor_be64(c, &timestamp) &&
              rq_cursor_u8(c, &type) && sized(c, INT32_MAX, &value) &&
              (!tags || sized(c, RQ_TAGS_LEN_MAX, &tag_bytes)) && rq_cursor_be64(c, &sequence);
    if (!ok) return false;
    *cell = (rq_cell){
        .row = row.ptr,
        .row_len = (uint16_t)row.len,
        .family = family.ptr,
        .family_len = (uint8_t)family.len,
        .qualifier = qualifier.ptr,
        .qualifier_len = (uint32_t)qualifier.len,
        .value = value.ptr,
        .value_len = (uint32_t)value.len,
        .tags = tag_bytes.len > 0 ? tag_bytes.ptr : NULL,
        .tags_len = (uint16_t)tag_bytes.len,
        .timestamp = (int64_t)timestamp,
        .type = type,
    };
    return true;
}

rq_err rq__cell_codec_decode(rq_cell_codec codec, rq_slice wire, rq_cellblock *ret, rq_error *why)
{
    rq_cursor c = rq_cursor_of(wire);
    while (rq_cursor_left(&c) > 0) {
        rq_cell cell;
        size_t at = wire.len - rq_cursor_left(&c);
        if (!read_cell(&c, codec == RQ_CODEC_CELL_TAGS, &cell))
            return rq_fail(why, RQ_E_MALFORMED, "malformed cell at offset %zu of the cell block",
                           at);
        RQ_TRY(rq_cellblock_append(ret, &cell));
    }
    return RQ_OK;
}

static rq_err put_sized(rq_buf *out, const uint8_t *bytes, size_t len)
{
    RQ_TRY(rq_buf_append_be32(out, (uint32_t)len));
    return rq_buf_append(out, bytes, len);
}

rq_err rq__cell_codec_encode(rq_cell_codec codec, rq_slice keyvalues, rq_buf *out)
{
    rq_cursor c = rq_cursor_of(keyvalues);
    rq_cell cell;
    rq_err rc;
    while ((rc = rq_cellblock_next(&c, &cell, NULL)) == RQ_OK) {
        RQ_TRY(put_sized(out, cell.row, cell.row_len));
        RQ_TRY(put_sized(out, cell.family, cell.family_len));
        RQ_TRY(put_sized(out, cell.qualifier, cell.qualifier_len));
        RQ_TRY(rq_buf_append_be64(out, (uint64_t)cell.timestamp));
        RQ_TRY(rq_buf_append_u8(out, cell.type));
        RQ_TRY(put_sized(out, cell.value, cell.value_len));
        if (codec == RQ_CODEC_CELL_TAGS) RQ_TRY(put_sized(out, cell.tags, cell.tags_len));
        RQ_TRY(rq_buf_append_be64(out, 0)); /* the sequence id stays inside the server */
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}
