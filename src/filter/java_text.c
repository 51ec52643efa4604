/* SPDX-License-Identifier: Apache-2.0 */
/* Java's decoding and lower case. Comparators run on every cell, so plain ASCII is decoded without
 * a copy and lower-cased in one tight loop. The rest is exact where that is cheap:
 *
 * 1. Malformed UTF-8: the JDK replaces one to three bytes by one U+FFFD, by rules of its own (a
 *    surrogate encoded in three bytes is one, a broken four-byte form up to three).
 * 2. Lower case: the table of Character.toLowerCase, U+0130 as two characters, and the final sigma.
 *    Whether a word ends is decided by "letter or not" here, by a BreakIterator in Java. */
#include "filter/java_text.h"

#include <strings.h>

#define REPLACEMENT 0xfffd

/* --- UTF-8 ------------------------------------------------------------------------------------ */
rq_err rq__utf8_append(rq_buf *out, uint32_t c)
{
    uint8_t b[4];
    size_t n;
    if (c < 0x80) {
        b[0] = (uint8_t)c, n = 1;
    } else if (c < 0x800) {
        b[0] = (uint8_t)(0xc0 | c >> 6), n = 2;
    } else if (c < 0x10000) {
        b[0] = (uint8_t)(0xe0 | c >> 12), n = 3;
    } else {
        b[0] = (uint8_t)(0xf0 | c >> 18), n = 4;
    }
    for (size_t i = 1; i < n; i++)
        b[i] = (uint8_t)(0x80 | (c >> 6 * (n - 1 - i) & 0x3f));
    return rq_buf_append(out, b, n);
}

uint32_t rq__utf8_take(rq_slice *s)
{
    uint8_t b = s->ptr[0];
    size_t n = b < 0x80 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
    uint32_t c = n == 1 ? b : b & (0x7fu >> n);
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s->ptr[i] & 0x3f);
    s->ptr += n;
    s->len -= n;
    return c;
}

static bool continues(uint8_t b)
{
    return (b & 0xc0) == 0x80;
}

/* Whether `second` may follow the lead byte of a three- or four-byte form. */
static bool fits_lead(uint8_t lead, uint8_t second)
{
    if (!continues(second)) return false;
    if (lead == 0xe0) return second >= 0xa0;
    if (lead == 0xf0) return second >= 0x90;
    if (lead == 0xf4) return second <= 0x8f;
    return true;
}

/* One step of the JDK's decoder: returns the number of bytes consumed; *ok: they are a character.
 * HBASE: Bytes.toString, i.e. java.lang.String's decodeUTF8 (JDK 17). */
static size_t decode_step(rq_slice s, bool *ok)
{
    uint8_t lead = s.ptr[0];
    *ok = true;
    if (lead < 0x80) return 1;
    *ok = false;
    if (lead < 0xc2 || lead > 0xf4) return 1;
    size_t need = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (need == 2) {
        *ok = s.len >= 2 && continues(s.ptr[1]);
        return *ok ? 2 : 1;
    }
    size_t good = 1; /* bytes that form the beginning of a character */
    if (s.len > 1 && fits_lead(lead, s.ptr[1])) {
        good = 2;
        while (good < need && good < s.len && continues(s.ptr[good]))
            good++;
    }
    if (good < need) return good;
    *ok = !(lead == 0xed && s.ptr[1] >= 0xa0); /* surrogates */
    return need;
}

static size_t ascii_prefix(rq_slice s)
{
    size_t i = 0;
    for (; i + 8 <= s.len; i += 8) {
        uint64_t word;
        memcpy(&word, s.ptr + i, 8);
        if ((word & 0x8080808080808080u) != 0) break;
    }
    while (i < s.len && s.ptr[i] < 0x80)
        i++;
    return i;
}

static rq_err decode_utf8(rq_slice bytes, rq_buf *memory, rq_slice *ret)
{
    bool copying = false;
    rq_slice rest = bytes;
    while (rest.len > 0) {
        size_t ascii = ascii_prefix(rest);
        bool ok = true;
        size_t n = ascii > 0 ? ascii : decode_step(rest, &ok);
        if (!ok && !copying) {
            copying = true;
            rq_buf_reset(memory);
            RQ_TRY(rq_buf_append(memory, bytes.ptr, bytes.len - rest.len));
        }
        if (!ok)
            RQ_TRY(rq__utf8_append(memory, REPLACEMENT));
        else if (copying)
            RQ_TRY(rq_buf_append(memory, rest.ptr, n));
        rest = rq_slice_of(rest.ptr + n, rest.len - n);
    }
    *ret = copying ? rq_buf_slice(memory) : bytes;
    return RQ_OK;
}

rq_err rq__java_decode(rq__charset charset, rq_slice bytes, rq_buf *memory, rq_slice *ret)
{
    if (charset == RQ__UTF_8) return decode_utf8(bytes, memory, ret);
    size_t ascii = ascii_prefix(bytes);
    if (ascii == bytes.len) {
        *ret = bytes;
        return RQ_OK;
    }
    rq_buf_reset(memory);
    for (size_t i = 0; i < bytes.len; i++) {
        uint32_t c = bytes.ptr[i];
        if (c >= 0x80 && charset == RQ__US_ASCII) c = REPLACEMENT;
        RQ_TRY(rq__utf8_append(memory, c));
    }
    *ret = rq_buf_slice(memory);
    return RQ_OK;
}

bool rq__charset_find(rq_slice name, rq__charset *ret)
{
    static const struct {
        const char *name;
        rq__charset charset;
    } names[] = {
        {"UTF-8", RQ__UTF_8},
        {"UTF8", RQ__UTF_8},
        {"unicode-1-1-utf-8", RQ__UTF_8},
        {"ISO-8859-1", RQ__ISO_8859_1},
        {"ISO8859_1", RQ__ISO_8859_1},
        {"ISO8859-1", RQ__ISO_8859_1},
        {"latin1", RQ__ISO_8859_1},
        {"8859_1", RQ__ISO_8859_1},
        {"US-ASCII", RQ__US_ASCII},
        {"ASCII", RQ__US_ASCII},
        {"ISO646-US", RQ__US_ASCII},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(names); i++)
        if (strlen(names[i].name) == name.len &&
            strncasecmp(names[i].name, (const char *)name.ptr, name.len) == 0) {
            *ret = names[i].charset;
            return true;
        }
    return false;
}

/* --- Lower case ------------------------------------------------------------------------------- */
static const struct {
    uint32_t first, last, step;
    int32_t difference;
} lower_case[] = {
#define X(first, last, step, difference) {first, last, step, difference},
#include "filter/lowercase.def"
#undef X
};

static uint32_t lower_of(uint32_t c)
{
    if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
    size_t low = 0;
    size_t high = RQ_ARRAY_LEN(lower_case);
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (lower_case[mid].last < c)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == RQ_ARRAY_LEN(lower_case) || c < lower_case[low].first) return c;
    if ((c - lower_case[low].first) % lower_case[low].step != 0) return c;
    return (uint32_t)((int32_t)c + lower_case[low].difference);
}

static bool is_letter(uint32_t c)
{
    if (c < 0x80) return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    if (c < 0x100) return c >= 0xc0 && c != 0xd7 && c != 0xf7;
    return !(c >= 0x2000 && c < 0x2070) && !(c >= 0x3000 && c < 0x3040) && c != REPLACEMENT;
}

rq_err rq__java_append_lower(rq_slice s, rq_buf *out)
{
    uint32_t before = 0;
    while (s.len > 0) {
        size_t ascii = ascii_prefix(s);
        if (ascii > 0) {
            RQ_TRY(rq_buf_reserve(out, ascii));
            for (size_t i = 0; i < ascii; i++) {
                uint8_t c = s.ptr[i];
                out->ptr[out->len + i] = c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
            }
            out->len += ascii;
            before = s.ptr[ascii - 1];
            s = rq_slice_of(s.ptr + ascii, s.len - ascii);
            continue;
        }
        uint32_t c = rq__utf8_take(&s);
        rq_slice rest = s;
        if (c == 0x3a3 && is_letter(before) && (rest.len == 0 || !is_letter(rq__utf8_take(&rest))))
            RQ_TRY(rq__utf8_append(out, 0x3c2)); /* final sigma */
        else
            RQ_TRY(rq__utf8_append(out, lower_of(c)));
        if (c == 0x130) RQ_TRY(rq__utf8_append(out, 0x307)); /* the dot of a Turkish I */
        before = c;
    }
    return RQ_OK;
}
