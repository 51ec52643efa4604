/* SPDX-License-Identifier: Apache-2.0 */
/* Every operation of base/simd.h on two vectors, as bytes: once with the machine's implementation
 * (test_simd.c), once with plain C (simd_plain.c). */
#ifndef RQ_TESTS_SIMD_FORMS_H
#define RQ_TESTS_SIMD_FORMS_H

#include "base/simd.h"

typedef struct simd_results {
    uint8_t either[16], equal[16], least[16], difference[16], splat[16], pair[16];
    unsigned mask_a, mask_equal;
    uint64_t nibbles;
} simd_results;

void simd_plain(const uint8_t *a, const uint8_t *b, simd_results *ret);

static inline void simd_bytes(rq_v16 v, uint8_t out[16])
{
    memcpy(out, &v, 16);
}

static inline void simd_all(const uint8_t *a, const uint8_t *b, simd_results *ret)
{
    rq_v16 x = rq_v16_load(a), y = rq_v16_load(b);
    uint64_t low, high;
    memcpy(&low, a, 8);
    memcpy(&high, b, 8);
    simd_bytes(rq_v16_or(x, y), ret->either);
    simd_bytes(rq_v16_equal(x, y), ret->equal);
    simd_bytes(rq_v16_min(x, y), ret->least);
    simd_bytes(rq_v16_subtract(x, y), ret->difference);
    simd_bytes(rq_v16_splat(a[3]), ret->splat);
    simd_bytes(rq_v16_pair(low, high), ret->pair);
    ret->mask_a = rq_v16_mask(x);
    ret->mask_equal = rq_v16_mask(rq_v16_equal(x, y));
    ret->nibbles = rq_v16_nibbles(rq_v16_min(x, rq_v16_splat(15)));
}

#endif
