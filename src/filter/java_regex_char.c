/* SPDX-License-Identifier: Apache-2.0 */
/* Single characters of a Java pattern: reads a plain, escaped or numeric character, and writes it
 * in a form that PCRE2 takes literally. */
#include "filter/java_regex_priv.h"

#include "filter/java_text.h"

rq_err rq__regex_refuse(rq__regex *t, const char *what)
{
    t->what = what;
    return RQ_E_INVALID;
}

rq_err rq__regex_put(rq_buf *out, const char *text)
{
    return rq_buf_append(out, text, strlen(text));
}

static rq_err put_code_point(rq_buf *out, uint32_t c)
{
    return rq_buf_printf(out, "\\x{%x}", c);
}

bool rq__regex_folds_too_much(const rq__regex *t, uint32_t c)
{
    return c >= 0x80 && rq__regex_has(t, RQ__REGEX_CASE_INSENSITIVE) &&
           !rq__regex_has(t, RQ__REGEX_UNICODE_CASE);
}

rq_err rq__regex_put_plain(rq_buf *out, uint32_t c)
{
    if (c < 0x80 && !rq__ascii_letter((uint8_t)c) && !rq__ascii_digit((uint8_t)c))
        return put_code_point(out, c);
    return rq__utf8_append(out, c);
}

uint32_t rq__regex_take(rq__regex *t)
{
    rq_slice rest = rq_slice_of(t->ptr, rq__regex_left(t));
    uint32_t c = rq__utf8_take(&rest);
    t->ptr = rest.ptr;
    return c;
}

static bool is_line_end(const rq__regex *t, uint32_t c)
{
    if (c == '\n') return true;
    if (rq__regex_has(t, RQ__REGEX_UNIX_LINES)) return false;
    return c == '\r' || c == 0x85 || c == 0x2028 || c == 0x2029;
}

void rq__regex_skip_comments(rq__regex *t)
{
    if (!rq__regex_has(t, RQ__REGEX_COMMENTS)) return;
    while (rq__regex_left(t) > 0) {
        if (*t->ptr == ' ' || (*t->ptr >= '\t' && *t->ptr <= '\r')) {
            t->ptr++;
        } else if (*t->ptr == '#') {
            while (rq__regex_left(t) > 0 && !is_line_end(t, rq__regex_take(t)))
                continue;
        } else {
            return;
        }
    }
}

static int hex_digit(uint8_t c)
{
    if (rq__ascii_digit(c)) return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Exactly `count` hex digits. */
static bool take_hex(rq__regex *t, size_t count, uint32_t *ret)
{
    if (rq__regex_left(t) < count) return false;
    uint32_t v = 0;
    for (size_t i = 0; i < count; i++) {
        int d = hex_digit(t->ptr[i]);
        if (d < 0) return false;
        v = v << 4 | (uint32_t)d;
    }
    t->ptr += count;
    *ret = v;
    return true;
}

/* --- escapes that are one character ----------------------------------------------------------- */

/* Behind \u: two escapes may be the surrogates of one character. */
static rq_err take_unicode(rq__regex *t, uint32_t *ret)
{
    if (!take_hex(t, 4, ret)) return rq__regex_refuse(t, "Illegal Unicode escape sequence");
    if (*ret < 0xd800 || *ret > 0xdfff) return RQ_OK;
    uint32_t low;
    if (*ret > 0xdbff || !rq__regex_next_is(t, "\\u"))
        return rq__regex_refuse(t, "unpaired surrogate");
    t->ptr += 2;
    if (!take_hex(t, 4, &low) || low < 0xdc00 || low > 0xdfff)
        return rq__regex_refuse(t, "unpaired surrogate");
    *ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
    return RQ_OK;
}

/* Behind \x: two digits, or any number in braces. */
static rq_err take_x(rq__regex *t, uint32_t *ret)
{
    if (!rq__regex_next_is(t, "{"))
        return take_hex(t, 2, ret) ? RQ_OK
                                   : rq__regex_refuse(t, "Illegal hexadecimal escape sequence");
    t->ptr++;
    *ret = 0;
    while (rq__regex_left(t) > 0 && hex_digit(*t->ptr) >= 0) {
        *ret = *ret << 4 | (uint32_t)hex_digit(*t->ptr++);
        if (*ret > 0x10ffff) return rq__regex_refuse(t, "Hexadecimal codepoint is too big");
    }
    if (!rq__regex_next_is(t, "}"))
        return rq__regex_refuse(t, "Unclosed hexadecimal escape sequence");
    t->ptr++;
    return *ret >= 0xd800 && *ret <= 0xdfff ? rq__regex_refuse(t, "unpaired surrogate") : RQ_OK;
}

/* Behind \0: one to three octal digits, three only up to 377. */
static rq_err take_octal(rq__regex *t, uint32_t *ret)
{
    size_t n = 0;
    *ret = 0;
    while (n < 3 && rq__regex_left(t) > 0 && *t->ptr >= '0' && *t->ptr <= '7') {
        if (n == 2 && *ret > 037) break;
        *ret = *ret << 3 | (uint32_t)(*t->ptr++ - '0');
        n++;
    }
    return n > 0 ? RQ_OK : rq__regex_refuse(t, "Illegal octal escape sequence");
}

rq_err rq__regex_take_escape(rq__regex *t, uint8_t letter, uint32_t *ret, bool *is_char)
{
    *is_char = true;
    switch (letter) {
    case 'u':
        return take_unicode(t, ret);
    case 'x':
        return take_x(t, ret);
    case '0':
        return take_octal(t, ret);
    case 'c':
        if (rq__regex_left(t) == 0) return rq__regex_refuse(t, "Illegal control escape sequence");
        *ret = rq__regex_take(t) ^ 64;
        return RQ_OK;
    case 'a':
        *ret = 7;
        return RQ_OK;
    case 'e':
        *ret = 27;
        return RQ_OK;
    case 'f':
        *ret = '\f';
        return RQ_OK;
    case 'n':
        *ret = '\n';
        return RQ_OK;
    case 'r':
        *ret = '\r';
        return RQ_OK;
    case 't':
        *ret = '\t';
        return RQ_OK;
    default:
        *is_char = false;
        return RQ_OK;
    }
}
