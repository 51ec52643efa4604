/* SPDX-License-Identifier: Apache-2.0 */
/* BigDecimalComparator: numbers in the format of HBase's Bytes.toBytes(BigDecimal): be32 scale and
 * a two's complement unscaled integer, big-endian; the number is unscaled / 10^scale. HBASE:
 * BigDecimalComparator, Bytes.toBigDecimal; java.math.BigDecimal.compareTo (2.0 equals 2.00).
 *
 * Signs are compared first. Then the decimal exponents, bounded by the bit lengths, decide unless
 * they are close. Only then the number of smaller scale is multiplied and the integers are
 * compared. So a scale of two thousand million costs nothing, and the multiplication is bounded by
 * the number of given digits. It may take half a millisecond, so it counts (pace.h). */
#include "filter/filter_priv.h"

#include "proto/comparator.pb-c.h"

/* A limit, because comparing takes quadratic time on untrusted bytes; HBase has none. */
#define UNSCALED_LEN_MAX 4096

typedef struct decimal {
    int sign;
    int32_t scale;
    uint32_t *limbs; /* magnitude, least significant first, no leading zeros */
    size_t count;
} decimal;

typedef struct decimal_comparator {
    rq_comparator base;
    rq_pace *pace;
    rq_buf mine, theirs; /* limbs */
} decimal_comparator;

#define NULL_VALUE RQ_E_END /* fewer than five bytes: HBase gets null */

static rq_err decode(rq_slice bytes, rq_buf *memory, decimal *ret)
{
    if (bytes.len < 5) return NULL_VALUE;
    const uint8_t *unscaled = bytes.ptr + 4;
    size_t len = bytes.len - 4;
    if (len > UNSCALED_LEN_MAX) return RQ_E_UNSUPPORTED;
    bool negative = (unscaled[0] & 0x80) != 0;
    size_t count = (len + 3) / 4;
    rq_buf_reset(memory);
    RQ_TRY(rq_buf_reserve(memory, count * sizeof(uint32_t)));
    uint32_t *limbs = (uint32_t *)(void *)memory->ptr;
    memset(limbs, 0, count * sizeof *limbs);
    for (size_t i = 0; i < len; i++) {
        uint8_t b = unscaled[len - 1 - i];
        if (negative) b = (uint8_t)~b;
        limbs[i / 4] |= (uint32_t)b << (i % 4 * 8);
    }
    /* -x is ~x + 1. The carry leaves the top only for zero, which is not negative. */
    for (size_t i = 0; negative && i < count; i++)
        if (++limbs[i] != 0) break;
    while (count > 0 && limbs[count - 1] == 0)
        count--;
    memory->len = count * sizeof *limbs;
    *ret = (decimal){.sign = count == 0 ? 0
                             : negative ? -1
                                        : 1,
                     .scale = (int32_t)rq_get_be32(bytes.ptr),
                     .limbs = limbs,
                     .count = count};
    return RQ_OK;
}

/* The integer has `*low` or `*low` + 1 decimal digits. */
static int64_t digits_at_least(const decimal *d)
{
    int64_t bits = (int64_t)d->count * 32 - __builtin_clz(d->limbs[d->count - 1]); /* count > 0 */
    /* log10(2) = 0.30102999566…; the result is too small by less than 1. */
    return (bits - 1) * 30102999 / 100000000 + 1;
}

static rq_err multiply_by_power_of_10(decimal *d, rq_buf *memory, uint64_t exponent)
{
    /* 10^9 needs 30 bits: at most one more limb per factor. */
    size_t room = (d->count + exponent / 9 + 2) * sizeof(uint32_t);
    memory->len = d->count * sizeof(uint32_t);
    RQ_TRY(rq_buf_reserve(memory, room - memory->len));
    d->limbs = (uint32_t *)(void *)memory->ptr;
    while (exponent > 0) {
        uint32_t factor = 1;
        for (unsigned i = 0; i < 9 && exponent > 0; i++, exponent--)
            factor *= 10;
        uint64_t carry = 0;
        for (size_t i = 0; i < d->count; i++) {
            carry += (uint64_t)d->limbs[i] * factor;
            d->limbs[i] = (uint32_t)carry;
            carry >>= 32;
        }
        if (carry > 0) d->limbs[d->count++] = (uint32_t)carry;
    }
    return RQ_OK;
}

static int compare_integers(const decimal *a, const decimal *b)
{
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    for (size_t i = a->count; i-- > 0;)
        if (a->limbs[i] != b->limbs[i]) return a->limbs[i] < b->limbs[i] ? -1 : 1;
    return 0;
}

/* A step takes about a nanosecond; the number grows by a limb in about each round. */
static void spend(rq_pace *pace, const decimal *product, uint64_t exponent)
{
    pace->slice_left -= (int64_t)(exponent / 9 * product->count / 8);
}

static rq_err compare_magnitudes(rq_pace *pace, decimal *a, rq_buf *a_memory, decimal *b,
                                 rq_buf *b_memory, int *ret)
{
    int64_t a_exponent = digits_at_least(a) - a->scale;
    int64_t b_exponent = digits_at_least(b) - b->scale;
    if (a_exponent + 1 < b_exponent || b_exponent + 1 < a_exponent) {
        *ret = a_exponent < b_exponent ? -1 : 1;
        return RQ_OK;
    }
    int64_t more = (int64_t)a->scale - b->scale; /* as many digits as the counts differ by */
    if (more < 0)
        RQ_TRY(multiply_by_power_of_10(a, a_memory, (uint64_t)-more));
    else
        RQ_TRY(multiply_by_power_of_10(b, b_memory, (uint64_t)more));
    spend(pace, more < 0 ? a : b, (uint64_t)(more < 0 ? -more : more));
    *ret = compare_integers(a, b);
    return RQ_OK;
}

static rq_err decimal_compare(rq_comparator *c, rq_slice bytes, int *ret, rq_error *why)
{
    decimal_comparator *d = (decimal_comparator *)c;
    decimal mine;
    decimal theirs;
    if (RQ_UNLIKELY(rq__pace_is_due(d->pace))) return RQ_E_AGAIN;
    RQ_TRY(decode(c->value, &d->mine, &mine));
    rq_err rc = decode(bytes, &d->theirs, &theirs);
    if (rc == NULL_VALUE) return rq__filter_throw(why, RQ__NULL_POINTER);
    if (rc == RQ_E_UNSUPPORTED)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "BigDecimal of %zu bytes, the limit is %d",
                       bytes.len, UNSCALED_LEN_MAX);
    RQ_TRY(rc);
    if (mine.sign != theirs.sign || mine.sign == 0) {
        *ret = (mine.sign > theirs.sign) - (mine.sign < theirs.sign);
        return RQ_OK;
    }
    RQ_TRY(compare_magnitudes(d->pace, &mine, &d->mine, &theirs, &d->theirs, ret));
    if (mine.sign < 0) *ret = -*ret;
    return RQ_OK;
}

static const rq_comparator_class decimal_class = {decimal_compare};

rq_err rq__parse_big_decimal(rq__parse *p, rq_slice bytes, rq_comparator **ret)
{
    const Pb__BigDecimalComparator *m =
        rq__parse_message(p, &pb__big_decimal_comparator__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    rq_slice value = rq__slice_of_pb(m->comparable->value);
    if (value.len < 5) return rq_fail(&p->why, RQ_E_DO_NOT_RETRY, RQ__NULL_POINTER);
    if (value.len - 4 > UNSCALED_LEN_MAX)
        return rq__parse_illegal(p, "BigDecimal of %zu bytes, the limit is %d", value.len,
                                 UNSCALED_LEN_MAX);
    decimal_comparator *d =
        (decimal_comparator *)rq__parse_new_comparator(p, sizeof *d, &decimal_class, value);
    if (d == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(rq__parse_pace(p, &d->pace));
    RQ_TRY(rq__parse_own_buf(p, &d->mine));
    RQ_TRY(rq__parse_own_buf(p, &d->theirs));
    *ret = &d->base;
    return RQ_OK;
}
