/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of cells in the format of HBase's KeyValueCodec: for each cell a be32 length and a
 * KeyValue. Reads return it, responses send it unchanged, and the log stores a batch in it, so a
 * cell is copied once on its way out. With `with_tags` (KeyValueCodecWithTags) each length includes
 * the tags; otherwise tags are dropped.
 */
#ifndef RQ_CELL_CELLBLOCK_H
#define RQ_CELL_CELLBLOCK_H

#include "base/buf.h"
#include "cell/cell.h"

typedef struct rq_cellblock {
    rq_buf bytes;
    uint32_t count;
    bool with_tags;
    /* Limit of bytes.len, beyond which appends return RQ_E_RESULT_TOO_LARGE; 0: none. reset and
     * clear set it to 0. Checked when the buffer has to grow, so the length may exceed the limit up
     * to the buffer's capacity. */
    size_t bytes_max;
} rq_cellblock;

/* A position to truncate to: rq_cellblock_truncate drops everything appended after it. */
typedef struct rq_cellblock_mark {
    size_t len;
    uint32_t count;
} rq_cellblock_mark;

/* Makes room for `more` bytes. */
RQ_NODISCARD RQ_COLD rq_err rq__cellblock_grow(rq_cellblock *b, size_t more);
RQ_NODISCARD rq_err rq_cellblock_append(rq_cellblock *b, const rq_cell *cell);
/* Appends a cell given as a KeyValue without tags. */
RQ_NODISCARD
static inline rq_err rq_cellblock_append_keyvalue(rq_cellblock *b, rq_slice keyvalue)
{
    if (RQ_UNLIKELY(keyvalue.len > INT32_MAX || b->count == UINT32_MAX)) return RQ_E_INVALID;
    if (RQ_UNLIKELY(RQ_ASAN || b->bytes.cap - b->bytes.len < 4 + keyvalue.len))
        RQ_TRY(rq__cellblock_grow(b, 4 + keyvalue.len));
    uint8_t *out = b->bytes.ptr + b->bytes.len;
    rq_put_be32(out, (uint32_t)keyvalue.len);
    memcpy(out + 4, keyvalue.ptr, keyvalue.len);
    b->bytes.len += 4 + keyvalue.len;
    b->count++;
    return RQ_OK;
}
static inline rq_cellblock_mark rq_cellblock_get_mark(const rq_cellblock *b)
{
    return (rq_cellblock_mark){b->bytes.len, b->count};
}
void rq_cellblock_truncate(rq_cellblock *b, rq_cellblock_mark mark);
void rq_cellblock_reset(rq_cellblock *b);
void rq_cellblock_clear(rq_cellblock *b);

/* Parses the next cell into *ret, a view on the bytes, which may be untrusted. RQ_E_END at the
 * end, RQ_E_MALFORMED on malformed input. */
RQ_NODISCARD rq_err rq_cellblock_next(rq_cursor *c, rq_cell *ret, rq_error *why);
/* Like rq_cellblock_next, for bytes read from storage: RQ_E_CORRUPT. */
RQ_NODISCARD
static inline rq_err rq_cellblock_next_stored(rq_cursor *c, rq_cell *ret, rq_error *why)
{
    return rq_err_of_storage(rq_cellblock_next(c, ret, why), why);
}

#endif
