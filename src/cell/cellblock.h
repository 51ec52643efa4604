/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of cells as HBase's KeyValueCodec writes them: each a be32 length and a KeyValue. It is
 * what a read returns, what goes out on the wire as it is, and what a batch's log record holds, so
 * a cell is copied once on its way out. Length counts tags iff `with_tags`
 * (KeyValueCodecWithTags); the codec without tags drops them.
 */
#ifndef RQ_CELL_CELLBLOCK_H
#define RQ_CELL_CELLBLOCK_H

#include "base/buf.h"
#include "cell/cell.h"

typedef struct rq_cellblock {
    rq_buf bytes;
    uint32_t count;
    bool with_tags;
    size_t bytes_max; /* it grows no further: RQ_E_RESULT_TOO_LARGE; 0: no limit. Until reset */
} rq_cellblock;

/* A place to go back to: everything appended after it can be dropped. */
typedef struct rq_cellblock_mark {
    size_t len;
    uint32_t count;
} rq_cellblock_mark;

/* Makes room for `more` bytes. */
RQ_NODISCARD RQ_COLD rq_err rq_cellblock_grow(rq_cellblock *b, size_t more);
RQ_NODISCARD rq_err rq_cellblock_append(rq_cellblock *b, const rq_cell *cell);
/* Of a cell whose KeyValue is at hand, without tags. */
RQ_NODISCARD
static inline rq_err rq_cellblock_append_keyvalue(rq_cellblock *b, rq_slice keyvalue)
{
    if (RQ_UNLIKELY(keyvalue.len > INT32_MAX || b->count == UINT32_MAX)) return RQ_E_INVALID;
    if (RQ_UNLIKELY(RQ_ASAN || b->bytes.cap - b->bytes.len < 4 + keyvalue.len))
        RQ_TRY(rq_cellblock_grow(b, 4 + keyvalue.len));
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

/* Walks untrusted or own bytes; each call parses one cell into *ret (a view on the bytes).
 * RQ_E_END at the end, RQ_E_MALFORMED on malformed input. */
RQ_NODISCARD rq_err rq_cellblock_next(rq_cursor *c, rq_cell *ret, rq_error *why);
/* The same of one that was read from storage: RQ_E_CORRUPT. */
RQ_NODISCARD
static inline rq_err rq_cellblock_next_stored(rq_cursor *c, rq_cell *ret, rq_error *why)
{
    return rq_err_of_storage(rq_cellblock_next(c, ret, why), why);
}

#endif
