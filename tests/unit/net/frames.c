/* SPDX-License-Identifier: Apache-2.0 */
/* A transform for tests; see frames.h. */
#include "frames.h"

#include <stdlib.h>

typedef struct frames {
    rq_transform base;
    rq_buf in; /* an incomplete record */
    size_t at;
    rq_buf plain; /* decoded bytes of a record */
    size_t plain_at;
    size_t repeat; /* repetitions of `byte` that remain */
    uint8_t byte;
    bool greeted, answered, ended;
} frames;

static uint8_t sum_of(const uint8_t *p, size_t len)
{
    uint8_t sum = 7;
    for (size_t i = 0; i < len; i++)
        sum = (uint8_t)(sum * 31 + p[i]);
    return sum;
}

static rq_err append_record(rq_buf *out, unsigned head, const uint8_t *bytes, size_t len)
{
    RQ_TRY(rq_buf_append_be16(out, (uint16_t)head));
    RQ_TRY(rq_buf_reserve(out, 1 + len));
    uint8_t *p = out->ptr + out->len;
    for (size_t i = 0; i < len; i++)
        p[1 + i] = bytes[i] ^ FRAMES_KEY;
    p[0] = sum_of(p + 1, len);
    out->len += 1 + len;
    return RQ_OK;
}

static size_t run_of(const uint8_t *p, size_t len)
{
    size_t n = 1;
    while (n < len && n < FRAMES_LEN_MAX && p[n] == p[0])
        n++;
    return n;
}

static rq_err encode(rq_buf *out, const uint8_t *p, size_t len, size_t step)
{
    while (len > 0) {
        size_t n = run_of(p, len);
        if (n >= 8) {
            RQ_TRY(append_record(out, FRAMES_REPEAT | (unsigned)n, p, 1));
        } else {
            n = len < step ? len : step;
            RQ_TRY(append_record(out, (unsigned)n, p, n));
        }
        p += n;
        len -= n;
    }
    return RQ_OK;
}

/* ---- the server's side ----------------------------------------------------------------------- */

static rq_err feed(rq_transform *t, rq_slice wire)
{
    frames *f = (frames *)t;
    if (f->at > 0) memmove(f->in.ptr, f->in.ptr + f->at, f->in.len - f->at);
    f->in.len -= f->at;
    f->at = 0;
    return rq_buf_append(&f->in, wire.ptr, wire.len);
}

static rq_err greet(frames *f)
{
    if (f->in.len < 4) return RQ_OK;
    if (memcmp(f->in.ptr, "HELO", 4) != 0) return RQ_E_MALFORMED;
    f->greeted = true;
    f->at = 4;
    return RQ_OK;
}

/* Finds the next complete record. *ret_len 0: none. */
static rq_err record(rq_slice in, size_t *ret_len, unsigned *ret_head)
{
    *ret_len = 0;
    if (in.len < FRAMES_HEAD) return RQ_OK;
    *ret_head = rq_get_be16(in.ptr);
    size_t n = *ret_head & FRAMES_LEN_MAX;
    size_t body = (*ret_head & FRAMES_REPEAT) != 0 ? 1 : n;
    if (in.len < FRAMES_HEAD + body) return RQ_OK;
    if (in.ptr[2] != sum_of(in.ptr + FRAMES_HEAD, body)) return RQ_E_MALFORMED;
    *ret_len = FRAMES_HEAD + body;
    return RQ_OK;
}

static rq_err next_record(frames *f)
{
    rq_slice in = rq_slice_of(f->in.ptr + f->at, f->in.len - f->at);
    size_t len;
    unsigned head;
    RQ_TRY(record(in, &len, &head));
    if (len == 0) return RQ_OK;
    f->at += len;
    f->plain_at = 0;
    rq_buf_reset(&f->plain);
    if ((head & FRAMES_REPEAT) != 0) {
        f->repeat = head & FRAMES_LEN_MAX;
        f->byte = in.ptr[FRAMES_HEAD] ^ FRAMES_KEY;
        return RQ_OK;
    }
    if (head == 0) f->ended = true;
    RQ_TRY(rq_buf_reserve(&f->plain, len));
    for (size_t i = FRAMES_HEAD; i < len; i++)
        f->plain.ptr[f->plain.len++] = in.ptr[i] ^ FRAMES_KEY;
    return RQ_OK;
}

static rq_err read_plain(rq_transform *t, void *to, size_t len, size_t *ret_len)
{
    frames *f = (frames *)t;
    *ret_len = 0;
    if (!f->greeted) RQ_TRY(greet(f));
    if (!f->greeted) return RQ_OK;
    if (f->repeat == 0 && f->plain_at == f->plain.len && !f->ended) RQ_TRY(next_record(f));
    if (f->repeat > 0) {
        *ret_len = len < f->repeat ? len : f->repeat;
        memset(to, f->byte, *ret_len);
        f->repeat -= *ret_len;
        return RQ_OK;
    }
    size_t left = f->plain.len - f->plain_at;
    *ret_len = len < left ? len : left;
    if (*ret_len > 0) memcpy(to, f->plain.ptr + f->plain_at, *ret_len);
    f->plain_at += *ret_len;
    return *ret_len == 0 && f->ended ? RQ_E_END : RQ_OK;
}

static rq_err input_end(rq_transform *t)
{
    const frames *f = (const frames *)t;
    return f->in.len > f->at ? RQ_E_MALFORMED : RQ_OK;
}

static rq_err wrap(rq_transform *t, rq_slice plain, rq_buf *wire)
{
    frames *f = (frames *)t;
    if (!f->greeted) return RQ_E_AGAIN;
    if (!f->answered) RQ_TRY(rq_buf_append(wire, "EHLO", 4));
    f->answered = true;
    return encode(wire, plain.ptr, plain.len, 1000);
}

static rq_err end(rq_transform *t, rq_buf *wire)
{
    (void)t;
    return append_record(wire, 0, NULL, 0);
}

static size_t held(const rq_transform *t)
{
    const frames *f = (const frames *)t;
    return sizeof *f + f->in.cap + f->plain.cap;
}

static void frames_free(rq_transform *t)
{
    frames *f = (frames *)t;
    rq_buf_clear(&f->in);
    rq_buf_clear(&f->plain);
    free(f);
}

rq_err frames_make(void *ctx, rq_transform **ret)
{
    static const rq_transform_calls calls = {feed, read_plain, input_end,  wrap,
                                             end,  held,       frames_free};
    (void)ctx;
    frames *f = calloc(1, sizeof *f);
    if (f == NULL) return RQ_E_NO_MEMORY;
    f->base.calls = &calls;
    *ret = &f->base;
    return RQ_OK;
}

/* ---- the client's side ----------------------------------------------------------------------- */

void frames_encode(rq_buf *out, const void *bytes, size_t len, size_t step)
{
    if (encode(out, bytes, len, step) != RQ_OK) abort();
}

void frames_encode_end(rq_buf *out)
{
    if (append_record(out, 0, NULL, 0) != RQ_OK) abort();
}

bool frames_decode(frames_reader *r, const void *bytes, size_t len, rq_buf *out)
{
    size_t at = 0, n;
    unsigned head;
    if (rq_buf_append(&r->in, bytes, len) != RQ_OK) abort();
    for (;;) {
        const uint8_t *p = r->in.ptr + at;
        if (record(rq_slice_of(p, r->in.len - at), &n, &head) != RQ_OK) return false;
        if (n == 0) break;
        at += n;
        if (head == 0) r->ended = true;
        size_t count = head & FRAMES_LEN_MAX;
        if (rq_buf_reserve(out, count) != RQ_OK) abort();
        for (size_t i = 0; i < count; i++)
            out->ptr[out->len++] =
                p[FRAMES_HEAD + ((head & FRAMES_REPEAT) != 0 ? 0 : i)] ^ FRAMES_KEY;
    }
    if (at > 0) memmove(r->in.ptr, r->in.ptr + at, r->in.len - at);
    r->in.len -= at;
    return true;
}
