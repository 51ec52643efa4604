/* SPDX-License-Identifier: Apache-2.0 */
/* Cell blocks: each cell is a be32 length and a KeyValue; there are no headers or separators.
 * HBASE: KeyValueCodec, KeyValueCodecWithTags. */
#include "cell/cellblock.h"

#include "base/work_limit.h"

rq_err rq__cellblock_grow(rq_cellblock *b, size_t more)
{
    if (b->bytes_max > 0 && b->bytes.len + more > b->bytes_max) return RQ_E_RESULT_TOO_LARGE;
    return rq_buf_reserve(&b->bytes, more);
}

rq_err rq_cellblock_append(rq_cellblock *b, const rq_cell *cell)
{
    size_t len = rq_cell_serialized_len(cell, b->with_tags);
    if (len > INT32_MAX || b->count == UINT32_MAX) return RQ_E_INVALID;
    if (RQ_UNLIKELY(RQ_ASAN || b->bytes.cap - b->bytes.len < 4 + len))
        RQ_TRY(rq__cellblock_grow(b, 4 + len));
    rq_work_count(len);
    uint8_t *out = b->bytes.ptr + b->bytes.len;
    rq_put_be32(out, (uint32_t)len);
    rq_cell_serialize(cell, b->with_tags, out + 4);
    b->bytes.len += 4 + len;
    b->count++;
    return RQ_OK;
}

void rq_cellblock_truncate(rq_cellblock *b, rq_cellblock_mark mark)
{
    RQ_ASSERT(mark.len <= b->bytes.len && mark.count <= b->count);
    b->bytes.len = mark.len;
    b->count = mark.count;
}

void rq_cellblock_reset(rq_cellblock *b)
{
    rq_buf_reset(&b->bytes);
    b->count = 0;
    b->bytes_max = 0;
}

void rq_cellblock_clear(rq_cellblock *b)
{
    rq_buf_clear(&b->bytes);
    b->count = 0;
    b->bytes_max = 0;
}

rq_err rq_cellblock_next(rq_cursor *c, rq_cell *ret, rq_error *why)
{
    size_t left = rq_cursor_left(c);
    if (left == 0) return RQ_E_END;
    if (left < 4)
        return rq_fail(why, RQ_E_MALFORMED, "cell block ends in a cell's length (%zu bytes left)",
                       left);
    size_t len = rq_get_be32(c->ptr);
    if (len > left - 4)
        return rq_fail(why, RQ_E_MALFORMED, "cell of %zu bytes in a cell block with %zu left", len,
                       left - 4);
    RQ_TRY(rq__cell_parse(rq_slice_of(c->ptr + 4, len), ret, why));
    c->ptr += 4 + len;
    rq_work_count(0);
    return RQ_OK;
}
