/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HBase's OrderedNumeric: decimal numbers of any size, rounded (half up) to 31 digits.
 *
 *   07 -infinity | 08 ~E ~M large negative | 13-E ~M | 14 E' ~M small negative | 15 zero
 *   16 ~E' M small positive | 17+E M | 22 E M large positive | 23 infinity | 26 NaN
 *
 * The number is 0.M × 100^E with digits of base 100 (the first is not 0), each as 2 × digit + 1, the
 * last as 2 × digit. E from 0 to 10 stands in the header; a larger one, and E' = -E of a number below
 * 1, follow as SQLite4's varint. Small numbers are 0.M × 100^-E'.
 *
 * A value that HBase cannot encode (an exponent above EXPONENT_MAX) is refused.
 */
#include "rowkey/rowkey_priv.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PRECISION = 31, EXPONENT_MAX = 1000000, DIGITS_MAX = 64 };

/* 0.digits × 10^point; no zero at either end. */
typedef struct decimal {
    bool negative;
    size_t count; /* 0: zero */
    int64_t point;
    char digits[PRECISION + 1];
} decimal;

/* --- text to decimal -------------------------------------------------------------------------- */

/* Rounds half up; the digits are those of `text` but for its point. */
static void round_digits(decimal *d, const char *digits, size_t count)
{
    size_t keep = count < PRECISION ? count : PRECISION;
    bool up = count > PRECISION && digits[PRECISION] >= '5';
    memcpy(d->digits, digits, keep);
    while (up && keep > 0 && d->digits[keep - 1] == '9')
        keep--;
    if (up && keep == 0) {
        d->digits[keep++] = '1';
        d->point++;
    } else if (up) {
        d->digits[keep - 1]++;
    }
    while (keep > 0 && d->digits[keep - 1] == '0')
        keep--;
    d->count = keep;
}

/* [sign] digits [. digits] [e [sign] digits] */
static bool parse_decimal(rq_slice s, decimal *ret)
{
    char digits[PRECISION + 1]; /* one more decides the rounding */
    size_t i = 0, count = 0;
    bool any = false, pointed = false;
    char exponent[16];
    *ret = (decimal){.negative = s.len > 0 && s.ptr[0] == '-'};
    if (s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+')) i++;
    for (; i < s.len && (isdigit(s.ptr[i]) || (s.ptr[i] == '.' && !pointed)); i++) {
        if (s.ptr[i] == '.') {
            pointed = true;
            continue;
        }
        any = true;
        if (count == 0 && s.ptr[i] == '0') {
            ret->point -= pointed;
            continue;
        }
        if (count < sizeof digits) digits[count] = (char)s.ptr[i];
        count++;
        ret->point += !pointed;
    }
    if (!any) return false;
    if (i < s.len) {
        size_t len = s.len - i - 1;
        char *end;
        if ((s.ptr[i] != 'e' && s.ptr[i] != 'E') || len == 0 || len >= sizeof exponent)
            return false;
        memcpy(exponent, s.ptr + i + 1, len);
        exponent[len] = '\0';
        if (isspace((unsigned char)exponent[0])) return false;
        ret->point += strtoll(exponent, &end, 10);
        if (*end != '\0') return false;
    }
    round_digits(ret, digits, count < sizeof digits ? count : sizeof digits);
    return true;
}

/* --- encoding --------------------------------------------------------------------------------- */

/* HBASE: OrderedBytes.putVaruint64, SQLite4's. */
static rq_err append_varuint(uint64_t v, uint8_t flip, rq_buf *out)
{
    uint8_t b[9];
    size_t len;
    if (v <= 240) {
        b[0] = (uint8_t)v;
        len = 1;
    } else if (v <= 2287) {
        b[0] = (uint8_t)((v - 240) / 256 + 241);
        b[1] = (uint8_t)((v - 240) % 256);
        len = 2;
    } else if (v <= 67823) {
        b[0] = 249;
        rq_put_be16(b + 1, (uint16_t)(v - 2288));
        len = 3;
    } else { /* EXPONENT_MAX has three bytes */
        uint8_t four[4];
        b[0] = 250;
        rq_put_be32(four, (uint32_t)v);
        memcpy(b + 1, four + 1, 3);
        len = 4;
    }
    for (size_t i = 0; i < len; i++)
        b[i] ^= flip;
    return rq_buf_append(out, b, len);
}

static rq_err append_mantissa(const decimal *d, rq_buf *out)
{
    uint8_t flip = d->negative ? 0xff : 0;
    size_t odd = (d->point & 1) != 0 ? 1 : 0; /* a zero in front makes pairs around the point */
    size_t pairs = (d->count + odd + 1) / 2;
    for (size_t i = 0; i < pairs; i++) {
        int high = 2 * i < odd ? 0 : d->digits[2 * i - odd] - '0';
        int low = 2 * i + 1 - odd < d->count ? d->digits[2 * i + 1 - odd] - '0' : 0;
        int b = 2 * (10 * high + low) + (i + 1 < pairs ? 1 : 0);
        RQ_TRY(rq_buf_append_u8(out, (uint8_t)b ^ flip));
    }
    return RQ_OK;
}

static rq_err append_decimal(const rq__part *p, const decimal *d, rq_buf *out, rq_error *why)
{
    uint8_t flip = d->negative ? 0xff : 0;
    if (d->count == 0) return rq_buf_append_u8(out, 0x15);
    if (d->point > EXPONENT_MAX || d->point < -EXPONENT_MAX)
        return rq__part_fail(p, RQ_E_INVALID, why, "the exponent is beyond ±%d", EXPONENT_MAX);
    int64_t e = (d->point + (d->point & 1)) / 2;
    if (d->point <= 0) { /* below 1 */
        RQ_TRY(rq_buf_append_u8(out, d->negative ? 0x14 : 0x16));
        RQ_TRY(append_varuint((uint64_t)-e, flip ^ 0xff, out));
    } else if (e <= 10) {
        RQ_TRY(rq_buf_append_u8(out, (uint8_t)(d->negative ? 0x13 - e : 0x17 + e)));
    } else {
        RQ_TRY(rq_buf_append_u8(out, d->negative ? 0x08 : 0x22));
        RQ_TRY(append_varuint((uint64_t)e, flip, out));
    }
    return append_mantissa(d, out);
}

/* The shortest text that reads back as this double, as Java's Double.toString in most cases. */
static void shortest(double v, char *text, size_t size)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, size, "%.*e", digits - 1, v);
        if (strtod(text, NULL) == v) return;
    }
}

rq_err rq__numeric_encode(const rq__part *p, const rq_key_value *v, rq_buf *out, rq_error *why)
{
    char text[40];
    decimal d;
    rq_slice s = rq_slice_of(v->bytes.data, v->bytes.len);
    if (v->kind == RQ_VALUE_REAL) {
        if (isnan(v->real)) return rq_buf_append_u8(out, 0x26);
        if (isinf(v->real)) return rq_buf_append_u8(out, v->real < 0 ? 0x07 : 0x23);
        shortest(v->real, text, sizeof text);
        s = rq_slice_cstr(text);
    } else if (v->kind == RQ_VALUE_INT || v->kind == RQ_VALUE_UINT) {
        if (v->kind == RQ_VALUE_INT)
            snprintf(text, sizeof text, "%lld", (long long)v->integer);
        else
            snprintf(text, sizeof text, "%llu", (unsigned long long)v->natural);
        s = rq_slice_cstr(text);
    } else if (v->kind != RQ_VALUE_DECIMAL) {
        return rq__part_fail(p, RQ_E_INVALID, why, "the value is not a number");
    }
    if (!parse_decimal(s, &d))
        return rq__part_fail(p, RQ_E_INVALID, why, "'%.*s' is not a decimal number",
                             s.len > 100 ? 100 : (int)s.len, (const char *)s.ptr);
    return append_decimal(p, &d, out, why);
}

/* --- decoding --------------------------------------------------------------------------------- */

static bool take_varuint(rq_cursor *c, uint8_t flip, int64_t *ret)
{
    uint8_t b[4] = {0};
    if (!rq_cursor_u8(c, &b[0])) return false;
    b[0] ^= flip;
    size_t more = b[0] <= 240 ? 0 : b[0] <= 248 ? 1 : b[0] == 249 ? 2 : b[0] == 250 ? 3 : 99;
    if (more > 3 || rq_cursor_left(c) < more) return false;
    for (size_t i = 1; i <= more; i++)
        b[i] = *c->ptr++ ^ flip;
    if (more == 0) *ret = b[0];
    if (more == 1) *ret = (b[0] - 241) * 256 + b[1] + 240;
    if (more == 2) *ret = 2288 + b[1] * 256 + b[2];
    if (more == 3) *ret = (int64_t)b[1] << 16 | b[2] << 8 | b[3];
    return true;
}

static bool take_mantissa(rq_cursor *c, uint8_t flip, int64_t e, decimal *d)
{
    size_t count = 0;
    uint8_t b;
    d->point = 2 * e;
    do {
        if (!rq_cursor_u8(c, &b) || (b ^= flip) / 2 > 99) return false;
        char pair[2] = {(char)('0' + b / 2 / 10), (char)('0' + b / 2 % 10)};
        for (int i = 0; i < 2; i++) {
            if (count == 0 && pair[i] == '0') {
                d->point--;
                continue;
            }
            if (count >= PRECISION) {
                if (pair[i] != '0') return false;
                continue;
            }
            d->digits[count++] = pair[i];
        }
    } while (b & 1);
    while (count > 0 && d->digits[count - 1] == '0')
        count--;
    d->count = count;
    return count > 0;
}

/* The header without its flip. */
static bool take_decimal(rq_cursor *c, uint8_t header, uint8_t flip, decimal *d)
{
    int64_t e = 0;
    d->negative = header < 0x15;
    uint8_t inner = flip ^ (d->negative ? 0xff : 0);
    if (header == 0x14 || header == 0x16) {
        if (!take_varuint(c, inner ^ 0xff, &e)) return false;
        e = -e;
    } else if (header == 0x08 || header == 0x22) {
        if (!take_varuint(c, inner, &e)) return false;
    } else if (header >= 0x09 && header <= 0x13) {
        e = 0x13 - header;
    } else if (header >= 0x17 && header <= 0x21) {
        e = header - 0x17;
    } else {
        return false;
    }
    return take_mantissa(c, inner, e, d);
}

/* Plain if that is short, else with an exponent. */
static const char *decimal_text(const decimal *d, rq_arena *arena)
{
    const char *sign = d->negative ? "-" : "";
    int count = (int)d->count, point = (int)d->point;
    if (count == 0) return rq_arena_printf(arena, "0");
    if (point > 0 && point <= PRECISION && point >= count)
        return rq_arena_printf(arena, "%s%.*s%.*s", sign, count, d->digits, point - count,
                               "0000000000000000000000000000000");
    if (point > 0 && point < count)
        return rq_arena_printf(arena, "%s%.*s.%.*s", sign, point, d->digits, count - point,
                               d->digits + point);
    if (point <= 0 && point > -8)
        return rq_arena_printf(arena, "%s0.%.*s%.*s", sign, -point, "0000000", count, d->digits);
    return rq_arena_printf(arena, "%s%c%s%.*se%d", sign, d->digits[0], count > 1 ? "." : "",
                           count - 1, d->digits + 1, point - 1);
}

rq_err rq__numeric_decode(const rq__part *p, rq_cursor *c, uint8_t flip, rq_arena *arena,
                          rq_key_value *ret, rq_error *why)
{
    decimal d = {0};
    uint8_t header;
    if (!rq_cursor_u8(c, &header))
        return rq__part_fail(p, RQ_E_MALFORMED, why, "the key ends before this part");
    header ^= flip;
    if (header == 0x07 || header == 0x23 || header == 0x26) {
        *ret = rq_key_real(header == 0x26 ? NAN : header == 0x07 ? -INFINITY : INFINITY);
        return RQ_OK;
    }
    if (header != 0x15 && !take_decimal(c, header, flip, &d))
        return rq__part_fail(p, RQ_E_MALFORMED, why, "not a number (first byte %02x)", header);
    const char *text = decimal_text(&d, arena);
    if (text == NULL) return rq_no_memory(why);
    *ret = rq_key_text(text);
    ret->kind = RQ_VALUE_DECIMAL;
    return RQ_OK;
}
