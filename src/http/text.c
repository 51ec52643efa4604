/* SPDX-License-Identifier: Apache-2.0 */
/* Text of pages: numbers in readable units, and escaping of bytes that could be markup. */
#include "http/http_priv.h"

#include <stdarg.h>
#include <stdio.h>

void rq__put(rq__text *t, const char *fmt, ...)
{
    char small[512];
    va_list args;
    if (t->rc != RQ_OK) return;
    va_start(args, fmt);
    int n = vsnprintf(small, sizeof small, fmt, args);
    va_end(args);
    if (n < 0) return;
    size_t len = (size_t)n;
    if (len < sizeof small) {
        t->rc = rq_buf_append(&t->buf, small, len);
        return;
    }
    t->rc = rq_buf_reserve(&t->buf, len + 1);
    if (t->rc != RQ_OK) return;
    va_start(args, fmt);
    vsnprintf((char *)t->buf.ptr + t->buf.len, len + 1, fmt, args);
    va_end(args);
    t->buf.len += len;
}

static void put_slice(rq__text *t, const void *bytes, size_t len)
{
    if (t->rc == RQ_OK) t->rc = rq_buf_append(&t->buf, bytes, len);
}

/* --- UTF-8 ------------------------------------------------------------------------------------ */

/* The length of the character that `s` begins with; 0: it is invalid, or may change the page's
 * layout. */
static size_t take_printable(rq_slice s)
{
    uint32_t code;
    size_t len = rq_utf8_take(s, &code);
    if (len == 0) return 0;
    /* C1 control characters, and those that change the direction of text. */
    if (code >= 0x7f && code < 0xa0) return 0;
    if ((code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)) return 0;
    if (code == 0xfffe || code == 0xffff) return 0;
    return len;
}

typedef const char *escape_fn(uint8_t c);

static void put_escaped(rq__text *t, rq_slice s, escape_fn *escape, const char *bad)
{
    while (s.len > 0 && t->rc == RQ_OK) {
        size_t len = s.ptr[0] < ' ' ? 0 : take_printable(s);
        const char *other = len == 1 ? escape(s.ptr[0]) : NULL;
        if (len == 0)
            rq__put(t, bad, s.ptr[0]);
        else if (other != NULL)
            rq__put(t, "%s", other);
        else
            put_slice(t, s.ptr, len);
        if (len == 0) len = 1;
        s.ptr += len;
        s.len -= len;
    }
}

static const char *escape_html(uint8_t c)
{
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

static const char *escape_json(uint8_t c)
{
    switch (c) {
    case '<':
        return "\\u003c";
    case '>':
        return "\\u003e";
    case '&':
        return "\\u0026";
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    default:
        return NULL;
    }
}

void rq__put_html(rq__text *t, rq_slice s)
{
    put_escaped(t, s, escape_html, "\\x%02X");
}

void rq__put_json(rq__text *t, rq_slice s)
{
    put_slice(t, "\"", 1);
    put_escaped(t, s, escape_json, "\\\\x%02X");
    put_slice(t, "\"", 1);
}

/* --- numbers ---------------------------------------------------------------------------------- */

void rq__put_bytes(rq__text *t, uint64_t bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < RQ_ARRAY_LEN(units); unit++)
        value /= 1024;
    rq__put(t, unit > 0 && value < 100 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

void rq__put_count(rq__text *t, uint64_t n)
{
    char digits[24], out[32];
    size_t len = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)n), o = 0;
    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) out[o++] = ',';
        out[o++] = digits[i];
    }
    put_slice(t, out, o);
}

void rq__put_duration(rq__text *t, uint64_t ns)
{
    double us = (double)ns / 1e3;
    if (us < 1000)
        rq__put(t, "%.0f µs", us);
    else if (us < 1e6)
        rq__put(t, "%.1f ms", us / 1e3);
    else
        rq__put(t, "%.1f s", us / 1e6);
}
