/* SPDX-License-Identifier: Apache-2.0 */
/* The growable buffer: doubles, so that appending stays linear. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

rq_err rq_buf_reserve(rq_buf *b, size_t more)
{
    if (b->cap - b->len >= more) {
        if (more > 0) RQ_UNPOISON(b->ptr + b->len, more);
        return RQ_OK;
    }
    if (more > SIZE_MAX / 2 - b->len) return RQ_E_NO_MEMORY;
    size_t cap = rq_buf_cap_after(b, more);
    uint8_t *ptr = realloc(b->ptr, cap);
    if (ptr == NULL) return RQ_E_NO_MEMORY;
    size_t reserved = b->len + more;
    RQ_POISON(ptr + reserved, cap - reserved);
    b->ptr = ptr;
    b->cap = cap;
    return RQ_OK;
}

void rq_buf_trim(rq_buf *b)
{
    if (b->len == b->cap) return;
    if (b->len == 0) {
        rq_buf_clear(b);
        return;
    }
    uint8_t *ptr = realloc(b->ptr, b->len);
    if (ptr == NULL) return;
    b->ptr = ptr;
    b->cap = b->len;
}

rq_err rq_buf_append(rq_buf *b, const void *bytes, size_t len)
{
    RQ_TRY(rq_buf_reserve(b, len));
    if (len > 0) memcpy(b->ptr + b->len, bytes, len);
    b->len += len;
    return RQ_OK;
}

rq_err rq_buf_append_u8(rq_buf *b, uint8_t v)
{
    return rq_buf_append(b, &v, 1);
}

rq_err rq_buf_append_be16(rq_buf *b, uint16_t v)
{
    uint8_t bytes[2];
    rq_put_be16(bytes, v);
    return rq_buf_append(b, bytes, sizeof bytes);
}

rq_err rq_buf_append_be32(rq_buf *b, uint32_t v)
{
    uint8_t bytes[4];
    rq_put_be32(bytes, v);
    return rq_buf_append(b, bytes, sizeof bytes);
}

rq_err rq_buf_append_be64(rq_buf *b, uint64_t v)
{
    uint8_t bytes[8];
    rq_put_be64(bytes, v);
    return rq_buf_append(b, bytes, sizeof bytes);
}

rq_err rq_buf_append_varint(rq_buf *b, uint64_t v)
{
    uint8_t bytes[RQ_VARINT_MAX];
    return rq_buf_append(b, bytes, rq_put_varint(bytes, v));
}

rq_err rq_buf_append_vlong(rq_buf *b, int64_t v)
{
    uint8_t bytes[RQ_VLONG_MAX];
    return rq_buf_append(b, bytes, rq_put_vlong(bytes, v));
}

rq_err rq_buf_printf(rq_buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) return RQ_E_INVALID;
    RQ_TRY(rq_buf_reserve(b, (size_t)n + 1));
    va_start(args, fmt);
    vsnprintf((char *)b->ptr + b->len, (size_t)n + 1, fmt, args);
    va_end(args);
    b->len += (size_t)n;
    return RQ_OK;
}

void rq_buf_clear(rq_buf *b)
{
    free(b->ptr);
    *b = (rq_buf){0};
}
