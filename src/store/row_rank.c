/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of rows; see row_rank.h. */
#include "store/row_rank.h"

#include "base/simd.h"

/* Bytes of the common prefix that are included in the rank, because later rows may be longer
 * ("0999", "1000"). */
#define SLACK 2
#define SLACK_DIGITS 4
#define DIGITS 15 /* of 4 bits */

static size_t common_length(rq_slice a, rq_slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    size_t i = 0;
    while (i < n && a.ptr[i] == b.ptr[i])
        i++;
    return i;
}

/* Whether a rank of eight bytes would omit digits in which two rows may differ. */
static bool goes_on_in_digits(rq_slice row, size_t at)
{
    size_t end = row.len < at + 9 ? row.len : at + 9;
    for (size_t i = at; i < end; i++)
        if (row.ptr[i] < '0' || row.ptr[i] > '9') return false;
    return end > at;
}

rq_ranking rq__ranking_of(rq_slice first, rq_slice last)
{
    size_t len = common_length(first, last);
    bool digits = goes_on_in_digits(first, len) && goes_on_in_digits(last, len);
    size_t slack = digits ? SLACK_DIGITS : SLACK;
    return (rq_ranking){first.ptr, len < slack ? 0 : len - slack, digits};
}

bool rq__ranking_same(const rq_ranking *a, const rq_ranking *b)
{
    static const rq_ranking none = {0};
    if (a == NULL) a = &none;
    if (b == NULL) b = &none;
    return a->len == b->len && a->digits == b->digits;
}

static uint64_t eight_bytes(const uint8_t *p, size_t len)
{
    if (len >= 8) return rq_get_be64(p);
    uint64_t v = 0;
    for (size_t i = 0; i < len; i++)
        v |= (uint64_t)p[i] << (56 - 8 * i);
    return v;
}

/* Four bits per byte: 0 for the row's end or a byte before '0', 1 to 10 for a digit, 11 for a byte
 * behind '9'; bytes after the first non-digit are not used. */
static uint64_t digits_rank(const uint8_t *p, size_t len)
{
    uint8_t padded[16] = {0};
    if (len < sizeof padded) {
        rq_short_copy(padded, p, len);
        p = padded;
    }
    rq_v16 eleven = rq_v16_splat(11);
    rq_v16 d = rq_v16_min(rq_v16_subtract(rq_v16_load(p), rq_v16_splat('0' - 1)), eleven);
    rq_v16 ends = rq_v16_or(rq_v16_equal(d, rq_v16_splat(0)), rq_v16_equal(d, eleven));
    unsigned end = rq_v16_mask(ends) | 1u << DIGITS;
    unsigned used = 4 * ((unsigned)__builtin_ctz(end) + 1);
    uint64_t v = rq_v16_nibbles(d);
    return (used < 64 ? v >> (64 - used) << (64 - used) : v) >> 4;
}

uint64_t rq__row_rank(const rq_ranking *r, const uint8_t *row, size_t len)
{
    size_t skip = r == NULL ? 0 : r->len;
    if (skip > 0) {
        size_t n = len < skip ? len : skip;
        int c = rq_short_compare(row, n, r->common, n);
        if (c > 0) return RQ_RANK_MAX;
        if (c < 0 || len < skip) return 0;
    }
    if (r != NULL && r->digits) return 1 + digits_rank(row + skip, len - skip);
    return 1 + (eight_bytes(row + skip, len - skip) >> 1);
}
