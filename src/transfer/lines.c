/* SPDX-License-Identifier: Apache-2.0 */
/* See lines.h. */
#include "transfer/lines.h"

#include <inttypes.h>

#define STEP_BYTES ((size_t)64 * 1024)
#define LINE_BYTES_MAX ((size_t)256 * 1024 * 1024)

rq_err rq__lines_open(rq_vfs *v, const char *path, bool has_quotes, rq__lines *ret, rq_error *why)
{
    *ret = (rq__lines){.path = path, .has_quotes = has_quotes};
    return rq__in_open(v, path, &ret->in, why);
}

void rq__lines_close(rq__lines *l)
{
    rq__in_close(&l->in);
}

/* The first LF of the bytes at the position. Lines may end with CR only: the search goes on where the last one has ended. */
static const uint8_t *find_lf(rq__lines *l, rq_slice s)
{
    uint64_t position = rq__in_position(&l->in);
    size_t from = l->lf_from > position ? (size_t)(l->lf_from - position) : 0;
    if (from >= s.len) return NULL;
    const uint8_t *lf = memchr(s.ptr + from, '\n', s.len - from);
    l->lf_from = position + (lf == NULL ? s.len : (size_t)(lf - s.ptr));
    return lf;
}

/* The first LF or CR. */
static const uint8_t *find_break(rq__lines *l, rq_slice s)
{
    const uint8_t *lf = find_lf(l, s);
    size_t len = lf == NULL ? s.len : (size_t)(lf - s.ptr);
    const uint8_t *cr = len == 0 ? NULL : memchr(s.ptr, '\r', len);
    return cr != NULL ? cr : lf;
}

static const uint8_t *find_break_outside_quotes(rq_slice s)
{
    bool quoted = false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '"') quoted = !quoted;
        if (!quoted && (s.ptr[i] == '\n' || s.ptr[i] == '\r')) return s.ptr + i;
    }
    return NULL;
}

/* The line at the position, and its number of bytes including the line end. */
static rq_err take(rq__lines *l, rq_slice *ret, size_t *ret_len, rq_error *why)
{
    for (size_t wanted = STEP_BYTES;; wanted *= 2) {
        rq_slice s;
        RQ_TRY(rq__in_peek(&l->in, wanted, &s, why));
        const uint8_t *end = l->has_quotes ? find_break_outside_quotes(s) : find_break(l, s);
        bool is_all = s.len < wanted || s.len == rq__in_left(&l->in);
        if (end == NULL && is_all) {
            *ret = s;
            *ret_len = s.len;
            return RQ_OK;
        }
        /* An LF may follow the CR. */
        if (end != NULL && (*end == '\n' || end + 1 < s.ptr + s.len || is_all)) {
            *ret = rq_slice_of(s.ptr, (size_t)(end - s.ptr));
            bool two = *end == '\r' && end + 1 < s.ptr + s.len && end[1] == '\n';
            *ret_len = ret->len + 1 + two;
            return RQ_OK;
        }
        if (wanted > LINE_BYTES_MAX)
            return rq_fail(why, RQ_E_INVALID, "%s: the line at byte %" PRIu64 " has no end%s",
                           l->path, rq__in_position(&l->in),
                           l->has_quotes ? ": a closing quote may be missing" : "");
    }
}

rq_err rq__lines_seek(rq__lines *l, uint64_t from, rq_error *why)
{
    rq_slice line;
    size_t len;
    rq__in_seek(&l->in, from == 0 ? 0 : from - 1);
    l->lf_from = 0;
    if (from == 0) return RQ_OK;
    RQ_TRY(take(l, &line, &len, why));
    rq__in_skip(&l->in, len);
    return RQ_OK;
}

rq_err rq__lines_next(rq__lines *l, uint64_t to, rq_slice *ret, rq_error *why)
{
    size_t len;
    l->start = rq__in_position(&l->in);
    if (l->start >= to || rq__in_left(&l->in) == 0) return RQ_E_END;
    RQ_TRY(take(l, ret, &len, why));
    rq__in_skip(&l->in, len);
    return RQ_OK;
}
