/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See ascii_text.h. The search compares the needle's first and last byte with sixteen places at
 * once and looks closer where both fit, which in text is seldom anywhere but at a match.
 */
#include "filter/ascii_text.h"

#include <emmintrin.h>
#include <string.h>

/* Of sixteen bytes below 0x80. */
static inline __m128i lower16(__m128i x)
{
    /* 'A' to 'Z', and nothing else, are moved to the upper end of the signed bytes. */
    __m128i moved = _mm_add_epi8(x, _mm_set1_epi8(127 - 'Z'));
    __m128i upper = _mm_cmpgt_epi8(moved, _mm_set1_epi8(127 - 26));
    return _mm_or_si128(x, _mm_and_si128(upper, _mm_set1_epi8(0x20)));
}

bool rq__ascii_lower(rq_slice text, uint8_t *out)
{
    __m128i seen = _mm_setzero_si128();
    size_t i = 0;
    for (; i + 16 <= text.len; i += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(text.ptr + i));
        seen = _mm_or_si128(seen, x);
        _mm_storeu_si128((__m128i *)(void *)(out + i), lower16(x));
    }
    if (i < text.len) {
        uint8_t rest[16] = {0};
        memcpy(rest, text.ptr + i, text.len - i);
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)rest);
        seen = _mm_or_si128(seen, x);
        _mm_storeu_si128((__m128i *)(void *)(out + i), lower16(x));
    }
    return _mm_movemask_epi8(seen) == 0;
}

bool rq__ascii_find(rq_slice text, rq_slice needle)
{
    if (needle.len == 0) return true;
    if (needle.len > text.len) return false;
    size_t places = text.len - needle.len + 1;
    __m128i first = _mm_set1_epi8((char)needle.ptr[0]);
    __m128i last = _mm_set1_epi8((char)needle.ptr[needle.len - 1]);
    for (size_t i = 0; i < places; i += 16) {
        const uint8_t *at = text.ptr + i;
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(at + needle.len - 1));
        unsigned mask = (unsigned)_mm_movemask_epi8(
            _mm_and_si128(_mm_cmpeq_epi8(a, first), _mm_cmpeq_epi8(b, last)));
        if (places - i < 16) mask &= (1u << (places - i)) - 1;
        for (; mask != 0; mask &= mask - 1) {
            const uint8_t *here = at + (unsigned)__builtin_ctz(mask);
            if (memcmp(here, needle.ptr, needle.len) == 0) return true;
        }
    }
    return false;
}
