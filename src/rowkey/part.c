/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One part of a key: a value to bytes and back.
 *
 * A descending part is the ascending one with all bits inverted. Descending times (ms, us, ns,
 * msdigits) and digits are instead the largest value minus the value, as most HBase schemas have
 * them.
 */
#include "rowkey/rowkey_priv.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

rq_err rq__part_fail(const rq__part *p, rq_err code, rq_error *why, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (p->name == NULL)
        return rq_fail(why, code, "part %s: %s", p->type == NULL ? "'literal'" : p->type, text);
    return rq_fail(why, code, "part %s (%s): %s", p->name, p->type, text);
}

/* --- values ----------------------------------------------------------------------------------- */

static rq_err take_natural(const rq__part *p, const rq_key_value *v, uint64_t most, uint64_t *ret,
                           rq_error *why)
{
    if (v->kind == RQ_VALUE_UINT)
        *ret = v->natural;
    else if (v->kind == RQ_VALUE_INT && v->integer >= 0)
        *ret = (uint64_t)v->integer;
    else if (v->kind == RQ_VALUE_INT)
        return rq__part_fail(p, RQ_E_INVALID, why, "%lld is negative", (long long)v->integer);
    else
        return rq__part_fail(p, RQ_E_INVALID, why, "the value is not an integer");
    if (*ret > most)
        return rq__part_fail(p, RQ_E_INVALID, why, "%llu is larger than %llu",
                             (unsigned long long)*ret, (unsigned long long)most);
    return RQ_OK;
}

static rq_err take_integer(const rq__part *p, const rq_key_value *v, int64_t *ret, rq_error *why)
{
    int64_t most = INT64_MAX >> (64 - 8 * p->width);
    if (v->kind == RQ_VALUE_INT)
        *ret = v->integer;
    else if (v->kind == RQ_VALUE_UINT && v->natural <= INT64_MAX)
        *ret = (int64_t)v->natural;
    else
        return rq__part_fail(p, RQ_E_INVALID, why, "the value is not an integer of %u bytes",
                             p->width);
    if (*ret > most || *ret < -most - 1)
        return rq__part_fail(p, RQ_E_INVALID, why, "%lld does not fit into %u bytes",
                             (long long)*ret, p->width);
    return RQ_OK;
}

static rq_err take_real(const rq__part *p, const rq_key_value *v, double *ret, rq_error *why)
{
    if (v->kind == RQ_VALUE_REAL)
        *ret = v->real;
    else if (v->kind == RQ_VALUE_INT)
        *ret = (double)v->integer;
    else if (v->kind == RQ_VALUE_UINT)
        *ret = (double)v->natural;
    else
        return rq__part_fail(p, RQ_E_INVALID, why, "the value is not a number");
    if (p->width == 4 && (double)(float)*ret != *ret && !isnan(*ret))
        return rq__part_fail(p, RQ_E_INVALID, why, "%.17g is not a float of 32 bits", *ret);
    return RQ_OK;
}

static rq_err take_bytes(const rq__part *p, const rq_key_value *v, rq_slice *ret, rq_error *why)
{
    if (v->kind != RQ_VALUE_BYTES)
        return rq__part_fail(p, RQ_E_INVALID, why, "the value is neither text nor bytes");
    *ret = rq_slice_of(v->bytes.len == 0 ? "" : v->bytes.data, v->bytes.len);
    return RQ_OK;
}

/* --- numbers ---------------------------------------------------------------------------------- */

static rq_err append_number(uint64_t v, uint32_t width, rq_buf *out)
{
    uint8_t bytes[8];
    rq_put_be64(bytes, v);
    return rq_buf_append(out, bytes + 8 - width, width);
}

static rq_err append_digits(uint64_t v, uint32_t digits, rq_buf *out)
{
    char text[24];
    snprintf(text, sizeof text, "%0*llu", (int)digits, (unsigned long long)v);
    return rq_buf_append(out, text, digits);
}

static uint64_t all_nines(uint32_t digits)
{
    uint64_t v = 1;
    for (uint32_t i = 0; i < digits; i++)
        v *= 10;
    return v - 1;
}

static uint64_t top_bit(uint32_t width)
{
    return UINT64_C(1) << (8 * width - 1);
}

static uint64_t largest(uint32_t width)
{
    return UINT64_MAX >> (64 - 8 * width);
}

/* HBASE: OrderedBytes.encodeFloat64; one NaN. */
static uint64_t ordered_bits(double v, uint32_t width)
{
    uint64_t bits;
    uint32_t half;
    if (width == 8) {
        if (isnan(v)) return UINT64_C(0xfff8000000000000);
        memcpy(&bits, &v, 8);
        return bits ^ (bits >> 63 != 0 ? UINT64_MAX : top_bit(8));
    }
    float single = (float)v;
    if (isnan(v)) return 0xffc00000u;
    memcpy(&half, &single, 4);
    return half ^ (half >> 31 != 0 ? UINT32_MAX : (uint32_t)top_bit(4));
}

static double ordered_real(uint64_t bits, uint32_t width)
{
    double v;
    float single;
    uint32_t half = (uint32_t)bits;
    if (width == 8) {
        bits ^= bits >> 63 != 0 ? top_bit(8) : UINT64_MAX;
        memcpy(&v, &bits, 8);
        return v;
    }
    half ^= half >> 31 != 0 ? (uint32_t)top_bit(4) : UINT32_MAX;
    memcpy(&single, &half, 4);
    return (double)single;
}

static uint64_t raw_bits(double v, uint32_t width)
{
    uint64_t ordered = ordered_bits(v, width);
    return ordered ^ (ordered & top_bit(width) ? top_bit(width) : largest(width));
}

static double raw_real(uint64_t bits, uint32_t width)
{
    return ordered_real(bits ^ (bits & top_bit(width) ? largest(width) : top_bit(width)), width);
}

/* --- encoding --------------------------------------------------------------------------------- */

static rq_err encode_number(const rq__part *p, const rq_key_value *v, rq_buf *out, rq_error *why)
{
    uint64_t n = 0;
    int64_t i = 0;
    double d = 0;
    switch (p->kind) {
    case RQ__PART_UINT:
        RQ_TRY(take_natural(p, v, largest(p->width), &n, why));
        return append_number(n, p->width, out);
    case RQ__PART_INT:
        RQ_TRY(take_integer(p, v, &i, why));
        return append_number((uint64_t)i ^ top_bit(p->width), p->width, out);
    case RQ__PART_RAW_INT:
        RQ_TRY(take_integer(p, v, &i, why));
        return append_number((uint64_t)i, p->width, out);
    case RQ__PART_FLOAT:
        RQ_TRY(take_real(p, v, &d, why));
        return append_number(ordered_bits(d, p->width), p->width, out);
    case RQ__PART_RAW_FLOAT:
        RQ_TRY(take_real(p, v, &d, why));
        return append_number(raw_bits(d, p->width), p->width, out);
    case RQ__PART_SECONDS:
        RQ_TRY(take_natural(p, v, UINT32_MAX, &n, why));
        return append_number(n, 4, out);
    case RQ__PART_TIME:
        RQ_TRY(take_natural(p, v, INT64_MAX, &n, why));
        return append_number(p->desc ? INT64_MAX - n : n, 8, out);
    case RQ__PART_TIME_DIGITS:
        RQ_TRY(take_natural(p, v, INT64_MAX, &n, why));
        return append_digits(p->desc ? INT64_MAX - n : n, 19, out);
    default:
        RQ_TRY(take_natural(p, v, all_nines(p->width), &n, why));
        return append_digits(p->desc ? all_nines(p->width) - n : n, p->width, out);
    }
}

static rq_err encode_fixed(const rq__part *p, rq_slice s, rq_buf *out, rq_error *why)
{
    if (!p->is_text && s.len != p->width)
        return rq__part_fail(p, RQ_E_INVALID, why, "the value has %zu bytes, not %u", s.len,
                             p->width);
    if (s.len > p->width)
        return rq__part_fail(p, RQ_E_INVALID, why, "the value has %zu bytes, more than %u", s.len,
                             p->width);
    if (p->is_text && s.len > 0 && memchr(s.ptr, 0, s.len) != NULL)
        return rq__part_fail(p, RQ_E_INVALID, why, "a text has no byte 00");
    RQ_TRY(rq_buf_append(out, s.ptr, s.len));
    for (size_t i = s.len; i < p->width; i++)
        RQ_TRY(rq_buf_append_u8(out, 0));
    return RQ_OK;
}

static rq_err encode_geohash(const rq__part *p, rq_slice s, rq_buf *out, rq_error *why)
{
    if (s.len != p->width)
        return rq__part_fail(p, RQ_E_INVALID, why, "the value has %zu letters, not %u", s.len,
                             p->width);
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] == 0 || strchr(RQ__GEOHASH_LETTERS, s.ptr[i]) == NULL)
            return rq__part_fail(p, RQ_E_INVALID, why, "letter %zu is not a GeoHash letter (%s)",
                                 i + 1, RQ__GEOHASH_LETTERS);
    return rq_buf_append(out, s.ptr, s.len);
}

static rq_err encode_bool(const rq__part *p, const rq_key_value *v, rq_buf *out, rq_error *why)
{
    if (v->kind != RQ_VALUE_BOOL || v->natural > 1)
        return rq__part_fail(p, RQ_E_INVALID, why, "the value is neither true nor false");
    return rq_buf_append_u8(out, (uint8_t)v->natural);
}

/* Ascending order, except for kinds whose descending form is not the inversion. */
static rq_err encode_present(const rq__part *p, const rq_key_value *v, rq_buf *out, rq_error *why)
{
    rq_slice s;
    if (p->kind == RQ__PART_BOOL) return encode_bool(p, v, out, why);
    if (p->kind < RQ__PART_FIXED && p->kind != RQ__PART_UUID) return encode_number(p, v, out, why);
    if (p->kind >= RQ__PART_RAW_INT) return encode_number(p, v, out, why);
    RQ_TRY(take_bytes(p, v, &s, why));
    if (p->kind == RQ__PART_VAR) return rq__var_encode(p, s, out, why);
    if (p->kind == RQ__PART_GEOHASH) return encode_geohash(p, s, out, why);
    return encode_fixed(p, s, out, why); /* a UUID, too */
}

static bool subtracts(const rq__part *p)
{
    return p->kind == RQ__PART_TIME || p->kind == RQ__PART_TIME_DIGITS ||
           p->kind == RQ__PART_DIGITS;
}

static void invert(uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)~p[i];
}

static void reverse(uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len / 2; i++) {
        uint8_t swap = p[i];
        p[i] = p[len - 1 - i];
        p[len - 1 - i] = swap;
    }
}

rq_err rq__part_encode(const rq__part *p, const rq_key_value *v, rq_buf *out, rq_error *why)
{
    size_t begin = out->len;
    if (p->kind == RQ__PART_LITERAL) return rq_buf_append(out, p->literal.ptr, p->literal.len);
    if (p->kind >= RQ__PART_OB_INT && p->kind <= RQ__PART_OB_BLOBVAR)
        return rq__ordered_encode(p, v, out, why);
    if (p->opt) {
        bool present = v->kind != RQ_VALUE_NULL;
        RQ_TRY(rq_buf_append_u8(out, (uint8_t)((present ? 1 : 0) ^ (p->desc ? 0xff : 0))));
        if (!present) return RQ_OK;
        begin++;
    }
    if (v->kind == RQ_VALUE_NULL)
        return rq__part_fail(p, RQ_E_INVALID, why, "the value is null (opt- allows null)");
    RQ_TRY(encode_present(p, v, out, why));
    if (p->desc && !subtracts(p)) invert(out->ptr + begin, out->len - begin);
    if (p->rev) reverse(out->ptr + begin, out->len - begin);
    return RQ_OK;
}

/* --- decoding --------------------------------------------------------------------------------- */

static uint64_t get_number(const uint8_t *p, uint32_t width)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < width; i++)
        v = v << 8 | p[i];
    return v;
}

static int64_t sign_extended(uint64_t v, uint32_t width)
{
    return (int64_t)(v << (64 - 8 * width)) >> (64 - 8 * width);
}

static rq_err get_digits(const rq__part *p, const uint8_t *b, uint64_t most, uint64_t *ret,
                         rq_error *why)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < p->width; i++) {
        if (b[i] < '0' || b[i] > '9')
            return rq__part_fail(p, RQ_E_MALFORMED, why, "byte %u is not a digit", i + 1);
        v = v * 10 + (uint64_t)(b[i] - '0'); /* 19 digits fit */
    }
    if (v > most) return rq__part_fail(p, RQ_E_MALFORMED, why, "the number is too large");
    *ret = p->desc ? most - v : v;
    return RQ_OK;
}

/* `b` has p->width bytes, in ascending form. */
static rq_err decode_fixed(const rq__part *p, const uint8_t *b, rq_key_value *ret, rq_error *why)
{
    uint64_t n = p->width <= 8 ? get_number(b, p->width) : 0;
    size_t len = p->width;
    switch (p->kind) {
    case RQ__PART_INT:
        *ret = rq_key_int(sign_extended(n ^ top_bit(p->width), p->width));
        return RQ_OK;
    case RQ__PART_RAW_INT:
        *ret = rq_key_int(sign_extended(n, p->width));
        return RQ_OK;
    case RQ__PART_FLOAT:
        *ret = rq_key_real(ordered_real(n, p->width));
        return RQ_OK;
    case RQ__PART_RAW_FLOAT:
        *ret = rq_key_real(raw_real(n, p->width));
        return RQ_OK;
    case RQ__PART_BOOL:
        if (n > 1) return rq__part_fail(p, RQ_E_MALFORMED, why, "neither true nor false");
        *ret = rq_key_bool(n == 1);
        return RQ_OK;
    case RQ__PART_TIME:
        if (n > INT64_MAX) return rq__part_fail(p, RQ_E_MALFORMED, why, "the time is negative");
        *ret = rq_key_uint(p->desc ? INT64_MAX - n : n);
        return RQ_OK;
    case RQ__PART_TIME_DIGITS:
    case RQ__PART_DIGITS:
        RQ_TRY(get_digits(p, b, p->kind == RQ__PART_DIGITS ? all_nines(p->width) : INT64_MAX, &n,
                          why));
        *ret = rq_key_uint(n);
        return RQ_OK;
    case RQ__PART_UINT:
    case RQ__PART_SECONDS:
        *ret = rq_key_uint(n);
        return RQ_OK;
    default:
        while (p->is_text && len > 0 && b[len - 1] == 0)
            len--;
        *ret = rq_key_bytes((rq_bytes){b, len});
        return RQ_OK;
    }
}

static rq_err decode_present(const rq__part *p, rq_cursor *c, rq_arena *arena, rq_key_value *ret,
                             rq_error *why)
{
    rq_slice s;
    if (p->kind == RQ__PART_VAR) {
        RQ_TRY(rq__var_decode(p, c, arena, &s, why));
        *ret = rq_key_bytes((rq_bytes){s.ptr, s.len});
        return RQ_OK;
    }
    if (!rq_cursor_bytes(c, p->width, &s))
        return rq__part_fail(p, RQ_E_MALFORMED, why, "the key ends in this part or before it");
    if ((p->desc && !subtracts(p)) || p->rev) {
        s = rq_arena_copy(arena, s);
        if (s.ptr == NULL) return rq_no_memory(why);
        if (p->rev) reverse((uint8_t *)(uintptr_t)s.ptr, s.len);
        if (p->desc && !subtracts(p)) invert((uint8_t *)(uintptr_t)s.ptr, s.len);
    }
    return decode_fixed(p, s.ptr, ret, why);
}

rq_err rq__part_decode(const rq__part *p, rq_cursor *c, rq_arena *arena, rq_key_value *ret,
                       rq_error *why)
{
    uint8_t tag;
    if (p->kind >= RQ__PART_OB_INT && p->kind <= RQ__PART_OB_BLOBVAR)
        return rq__ordered_decode(p, c, arena, ret, why);
    if (!p->opt) return decode_present(p, c, arena, ret, why);
    if (!rq_cursor_u8(c, &tag))
        return rq__part_fail(p, RQ_E_MALFORMED, why, "the key ends before this part");
    tag = p->desc ? (uint8_t)~tag : tag;
    if (tag > 1) return rq__part_fail(p, RQ_E_MALFORMED, why, "neither null nor a value");
    if (tag == 1) return decode_present(p, c, arena, ret, why);
    *ret = rq_key_null();
    return RQ_OK;
}
