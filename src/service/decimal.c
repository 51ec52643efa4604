/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with two decimal places; contract in decimal.h. */
#include "service/decimal.h"

#define UNSCALED_LEN_MAX 4096
#define SCALE_MAX 20000
#define SCALE 2

static uint32_t *limbs_of(const rq__decimal *d)
{
    return (uint32_t *)(void *)d->limbs.ptr;
}

static size_t count_of(const rq__decimal *d)
{
    return d->limbs.len / sizeof(uint32_t);
}

static void trim(rq__decimal *d)
{
    size_t n = count_of(d);
    while (n > 0 && limbs_of(d)[n - 1] == 0)
        n--;
    d->limbs.len = n * sizeof(uint32_t);
    if (n == 0) d->negative = false;
}

/* n limbs, all zero. */
static rq_err set_zero(rq__decimal *d, size_t n)
{
    rq_buf_reset(&d->limbs);
    RQ_TRY(rq_buf_reserve(&d->limbs, (n + 1) * sizeof(uint32_t)));
    memset(d->limbs.ptr, 0, (n + 1) * sizeof(uint32_t));
    d->limbs.len = n * sizeof(uint32_t);
    d->negative = false;
    return RQ_OK;
}

static rq_err push(rq__decimal *d, uint32_t limb)
{
    return rq_buf_append(&d->limbs, &limb, sizeof limb);
}

void rq__decimal_clear(rq__decimal *d)
{
    rq_buf_clear(&d->limbs);
    d->negative = false;
}

rq_err rq__decimal_copy(const rq__decimal *d, rq__decimal *ret)
{
    rq_buf_reset(&ret->limbs);
    ret->negative = d->negative;
    return d->limbs.len == 0 ? RQ_OK : rq_buf_append(&ret->limbs, d->limbs.ptr, d->limbs.len);
}

/* --- by a small number ------------------------------------------------------------------------ */

static rq_err multiply_small(rq__decimal *d, uint32_t by)
{
    uint64_t carry = 0;
    for (size_t i = 0; i < count_of(d); i++) {
        carry += (uint64_t)limbs_of(d)[i] * by;
        limbs_of(d)[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return carry == 0 ? RQ_OK : push(d, (uint32_t)carry);
}

/* Returns the remainder. */
static uint32_t divide_small(rq__decimal *d, uint32_t by)
{
    uint64_t rest = 0;
    for (size_t i = count_of(d); i-- > 0;) {
        rest = rest << 32 | limbs_of(d)[i];
        limbs_of(d)[i] = (uint32_t)(rest / by);
        rest %= by;
    }
    bool negative = d->negative;
    trim(d);
    d->negative = negative; /* the caller may round away from zero */
    return (uint32_t)rest;
}

static rq_err add_one(rq__decimal *d)
{
    for (size_t i = 0; i < count_of(d); i++)
        if (++limbs_of(d)[i] != 0) return RQ_OK;
    return push(d, 1);
}

/* Divides the magnitude by 10^digits, rounding half to even. Of the dropped digits, all but the
 * highest only matter for whether they are all zero. */
static rq_err drop_digits(rq__decimal *d, unsigned digits)
{
    bool below = false;
    if (digits == 0) return RQ_OK;
    for (; digits > 9 && count_of(d) > 0; digits -= 9)
        below |= divide_small(d, 1000000000) != 0;
    for (; digits > 1 && count_of(d) > 0; digits--)
        below |= divide_small(d, 10) != 0;
    uint32_t last = digits == 1 ? divide_small(d, 10) : 0;
    bool odd = count_of(d) > 0 && (limbs_of(d)[0] & 1) != 0;
    if (last > 5 || (last == 5 && (below || odd))) RQ_TRY(add_one(d));
    trim(d);
    return RQ_OK;
}

/* --- bytes ------------------------------------------------------------------------------------ */

rq_err rq__decimal_parse(rq_slice bytes, rq__decimal *ret)
{
    if (bytes.len < 5) return RQ_E_NULL_POINTER;
    int32_t scale = (int32_t)rq_get_be32(bytes.ptr);
    const uint8_t *unscaled = bytes.ptr + 4;
    size_t len = bytes.len - 4;
    if (len > UNSCALED_LEN_MAX || scale > SCALE_MAX || scale < -SCALE_MAX) return RQ_E_UNSUPPORTED;
    bool negative = (unscaled[0] & 0x80) != 0;
    RQ_TRY(set_zero(ret, (len + 3) / 4));
    for (size_t i = 0; i < len; i++) {
        uint8_t b = unscaled[len - 1 - i];
        if (negative) b = (uint8_t)~b;
        limbs_of(ret)[i / 4] |= (uint32_t)b << (i % 4 * 8);
    }
    if (negative) RQ_TRY(add_one(ret)); /* -x is ~x + 1 */
    trim(ret);
    ret->negative = negative && count_of(ret) > 0;
    for (; scale <= SCALE - 9 && count_of(ret) > 0; scale += 9)
        RQ_TRY(multiply_small(ret, 1000000000));
    for (; scale < SCALE && count_of(ret) > 0; scale++)
        RQ_TRY(multiply_small(ret, 10));
    return scale > SCALE ? drop_digits(ret, (unsigned)(scale - SCALE)) : RQ_OK;
}

rq_err rq__decimal_write(const rq__decimal *d, rq_buf *out)
{
    /* Shortest two's complement, big-endian: starts with one byte more than the magnitude, for the
     * sign, and drops leading bytes while the next byte has the same sign bit. */
    size_t len = count_of(d) * 4 + 1;
    RQ_TRY(rq_buf_append_be32(out, SCALE));
    RQ_TRY(rq_buf_reserve(out, len));
    uint8_t *p = out->ptr + out->len;
    unsigned carry = 1;
    for (size_t i = 0; i < len; i++) {
        unsigned b = i / 4 < count_of(d) ? limbs_of(d)[i / 4] >> (i % 4 * 8) & 0xff : 0;
        if (d->negative) {
            b = (~b & 0xff) + carry;
            carry = b >> 8;
        }
        p[len - 1 - i] = (uint8_t)b;
    }
    size_t skip = 0;
    while (skip + 1 < len && p[skip] == (d->negative ? 0xff : 0) &&
           (p[skip + 1] & 0x80) == (d->negative ? 0x80 : 0))
        skip++;
    memmove(p, p + skip, len - skip);
    out->len += len - skip;
    return RQ_OK;
}

/* --- arithmetic ------------------------------------------------------------------------------- */

static int compare_magnitudes(const rq__decimal *a, const rq__decimal *b)
{
    if (count_of(a) != count_of(b)) return count_of(a) < count_of(b) ? -1 : 1;
    for (size_t i = count_of(a); i-- > 0;)
        if (limbs_of(a)[i] != limbs_of(b)[i]) return limbs_of(a)[i] < limbs_of(b)[i] ? -1 : 1;
    return 0;
}

int rq__decimal_compare(const rq__decimal *a, const rq__decimal *b)
{
    if (a->negative != b->negative) return a->negative ? -1 : 1;
    int c = compare_magnitudes(a, b);
    return a->negative ? -c : c;
}

static rq_err add_magnitude(rq__decimal *sum, const rq__decimal *d)
{
    uint64_t carry = 0;
    while (count_of(sum) < count_of(d))
        RQ_TRY(push(sum, 0));
    for (size_t i = 0; i < count_of(sum); i++) {
        carry += limbs_of(sum)[i];
        if (i < count_of(d)) carry += limbs_of(d)[i];
        limbs_of(sum)[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return carry == 0 ? RQ_OK : push(sum, (uint32_t)carry);
}

/* ret = larger - smaller, where `ret` may be either of them and has room for as many limbs as
 * `larger`. */
static void subtract_magnitudes(const rq__decimal *larger, const rq__decimal *smaller,
                                rq__decimal *ret)
{
    size_t n = count_of(larger);
    size_t m = count_of(smaller);
    int64_t borrow = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t v = (int64_t)limbs_of(larger)[i] - borrow;
        if (i < m) v -= limbs_of(smaller)[i];
        borrow = v < 0;
        limbs_of(ret)[i] = (uint32_t)v;
    }
    ret->limbs.len = n * sizeof(uint32_t);
}

rq_err rq__decimal_add(rq__decimal *sum, const rq__decimal *d)
{
    if (sum->negative == d->negative) return add_magnitude(sum, d);
    if (compare_magnitudes(sum, d) >= 0) {
        subtract_magnitudes(sum, d, sum);
    } else {
        RQ_TRY(rq_buf_reserve(&sum->limbs, d->limbs.len - sum->limbs.len));
        subtract_magnitudes(d, sum, sum);
        sum->negative = d->negative;
    }
    trim(sum);
    return RQ_OK;
}

rq_err rq__decimal_multiply(const rq__decimal *a, const rq__decimal *b, rq__decimal *ret)
{
    size_t n = count_of(a);
    size_t m = count_of(b);
    RQ_TRY(set_zero(ret, n + m));
    for (size_t i = 0; i < n; i++) {
        uint64_t carry = 0;
        for (size_t j = 0; j < m; j++) {
            carry += (uint64_t)limbs_of(a)[i] * limbs_of(b)[j] + limbs_of(ret)[i + j];
            limbs_of(ret)[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        limbs_of(ret)[i + m] = (uint32_t)carry;
    }
    trim(ret);
    ret->negative = a->negative != b->negative && count_of(ret) > 0;
    return drop_digits(ret, SCALE);
}
