/* SPDX-License-Identifier: Apache-2.0 */
/* The plain form of base/simd.h. */
#define RQ_SIMD_PLAIN
#include "simd_forms.h"

void simd_plain(const uint8_t *a, const uint8_t *b, simd_results *ret)
{
    simd_all(a, b, ret);
}
