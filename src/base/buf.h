/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable byte buffer on the heap. A zero-initialised buffer is empty; rq_buf_clear frees it.
 * Under AddressSanitizer, bytes that were neither appended nor reserved are poisoned.
 */
#ifndef RQ_BASE_BUF_H
#define RQ_BASE_BUF_H

#include "base/asan.h"
#include "base/bytes.h"
#include "base/err.h"

typedef struct rq_buf {
    uint8_t *ptr;
    size_t len;
    size_t cap;
} rq_buf;

/* Makes room for `more` bytes behind len: the caller may write these, and none behind them.
 * Invalidates pointers into the buffer. */
RQ_NODISCARD
rq_err rq_buf_reserve(rq_buf *b, size_t more);
RQ_NODISCARD
rq_err rq_buf_append(rq_buf *b, const void *bytes, size_t len);
RQ_NODISCARD
rq_err rq_buf_append_u8(rq_buf *b, uint8_t v);
RQ_NODISCARD
rq_err rq_buf_append_be16(rq_buf *b, uint16_t v);
RQ_NODISCARD
rq_err rq_buf_append_be32(rq_buf *b, uint32_t v);
RQ_NODISCARD
rq_err rq_buf_append_be64(rq_buf *b, uint64_t v);
RQ_NODISCARD
rq_err rq_buf_append_varint(rq_buf *b, uint64_t v);
RQ_NODISCARD
rq_err rq_buf_append_vlong(rq_buf *b, int64_t v);
RQ_NODISCARD
rq_err rq_buf_printf(rq_buf *b, const char *fmt, ...) RQ_PRINTF(2, 3);

static inline rq_slice rq_buf_slice(const rq_buf *b)
{
    return (rq_slice){b->ptr, b->len};
}

/* The capacity after rq_buf_reserve(b, more). */
static inline size_t rq_buf_cap_after(const rq_buf *b, size_t more)
{
    if (b->cap - b->len >= more) return b->cap;
    size_t cap = b->cap < 64 ? 64 : b->cap * 2;
    return cap < b->len + more ? b->len + more : cap;
}
/* Gives the memory behind its last byte back. */
void rq_buf_trim(rq_buf *b);

/* Makes all allocated bytes writable, as rq_buf_reserve would. Returns the number of bytes
 * behind len. */
static inline size_t rq_buf_take_room(rq_buf *b)
{
    if (b->cap > 0) RQ_UNPOISON(b->ptr, b->cap);
    return b->cap - b->len;
}

/* Empties the buffer and keeps its memory. */
static inline void rq_buf_reset(rq_buf *b)
{
    if (b->cap > 0) RQ_POISON(b->ptr, b->cap);
    b->len = 0;
}

/* Frees the memory; the buffer is empty and usable again. */
void rq_buf_clear(rq_buf *b);

#endif
