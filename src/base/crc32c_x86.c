/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C on x86-64: the SSE4.2 instruction, or carry-less products of 512 bits.
 *
 * The instruction has a latency of three cycles and a throughput of one per cycle, so three
 * independent lanes take little more time than one (64 KiB: 8 µs by one lane, 3 by three). The
 * checksum of a lane is moved over the bytes behind it by a product of polynomials: clmul(a, k),
 * read as 64 reflected bits, is a * k * x. The crc32 instruction, with 0 as the old checksum and
 * this product as data, multiplies the product by x^32 and reduces it mod P. So k = x^(n - 33) mod
 * P moves `a` by n bits.
 *
 * A processor with VPCLMULQDQ on 512 bits folds 256 bytes at a time instead: 16 bytes are
 * lo * x^64 + hi, and moving them by n bits is lo * x^(n + 64) + hi * x^n, each a product as above.
 * (Intel, Fast CRC Computation for Generic Polynomials Using PCLMULQDQ, 2009.)
 */
#include "base/checksum.h"

#include "base/macros.h"

#include <immintrin.h>
#include <nmmintrin.h>
#include <stdbool.h>
#include <string.h>
#include <wmmintrin.h>
#if __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>
#endif

/* Lane lengths for blocks, and for a log's record. Shifting by one lane: x^(8 * lane - 33) mod P,
 * reflected; by two: x^(16 * lane - 33). */
enum { LONG_LANE = 680, SHORT_LANE = 136 };
#define OVER_ONE_LONG 0xe417f38a
#define OVER_TWO_LONG 0x3f70cc6f
#define OVER_ONE_SHORT 0x6992cea2
#define OVER_TWO_SHORT 0x18b33a4e

/* x^(n + 31) and x^(n - 33) mod P, reflected, for n = 2048 and 512 bits. */
#define LO_OVER_2048 0xdcb17aa4
#define HI_OVER_2048 0xb9e02b86
#define LO_OVER_512 0x740eef02
#define HI_OVER_512 0x9e4addf8
#define FOLD_FROM ((size_t)1024) /* bytes: less is not worth it */

static inline uint64_t word(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static inline uint64_t times(uint64_t crc, uint32_t k)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)(uint32_t)crc),
                                           _mm_cvtsi64_si128((int64_t)k), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

/* The sum over three lanes. */
RQ_INLINE uint64_t three_lanes(uint64_t c, const unsigned char *p, size_t lane, uint32_t over_one,
                               uint32_t over_two)
{
    uint64_t c1 = 0, c2 = 0;
    for (size_t i = 0; i < lane; i += 8) {
        c = _mm_crc32_u64(c, word(p + i));
        c1 = _mm_crc32_u64(c1, word(p + lane + i));
        c2 = _mm_crc32_u64(c2, word(p + 2 * lane + i));
    }
    return _mm_crc32_u64(0, times(c, over_two) ^ times(c1, over_one)) ^ c2;
}

#define WIDE __attribute__((target("avx512f,vpclmulqdq")))

WIDE static inline __m512i moved(__m512i x, __m512i over, __m512i onto)
{
    __m512i lo = _mm512_clmulepi64_epi128(x, over, 0x00);
    __m512i hi = _mm512_clmulepi64_epi128(x, over, 0x11);
    return _mm512_ternarylogic_epi64(lo, hi, onto, 0x96); /* all three xored */
}

/* Folds the first `len` bytes, a positive multiple of 256. */
WIDE static uint64_t folded(uint64_t c, const unsigned char *p, size_t len)
{
    const __m512i far = _mm512_set4_epi64(HI_OVER_2048, LO_OVER_2048, HI_OVER_2048, LO_OVER_2048);
    const __m512i near = _mm512_set4_epi64(HI_OVER_512, LO_OVER_512, HI_OVER_512, LO_OVER_512);
    __m512i x[4];
    for (int i = 0; i < 4; i++)
        x[i] = _mm512_loadu_si512(p + 64 * i);
    x[0] = _mm512_xor_si512(x[0], _mm512_zextsi128_si512(_mm_cvtsi64_si128((int64_t)c)));
    for (p += 256, len -= 256; len > 0; p += 256, len -= 256)
        for (int i = 0; i < 4; i++)
            x[i] = moved(x[i], far, _mm512_loadu_si512(p + 64 * i));
    for (int i = 1; i < 4; i++)
        x[i] = moved(x[i - 1], near, x[i]);
    uint64_t rest[8];
    memcpy(rest, &x[3], sizeof(rest));
    c = 0;
    for (int i = 0; i < 8; i++)
        c = _mm_crc32_u64(c, rest[i]);
    return c;
}

/* glibc has read the processor's features already. The compiler's own function (#else) would read them again in each
 * process, before main, even if it is never called. In a virtual machine each of its cpuid instructions takes tens of
 * microseconds. */
static inline bool can_fold(void)
{
#ifdef CPU_FEATURE_ACTIVE
    return CPU_FEATURE_ACTIVE(AVX512F) && CPU_FEATURE_ACTIVE(VPCLMULQDQ);
#else
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
#endif
}

uint32_t rq__crc32c_by_lanes(uint32_t crc, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t c = (uint32_t)~crc;
    for (size_t step = 3 * LONG_LANE; len >= step; p += step, len -= step)
        c = three_lanes(c, p, LONG_LANE, OVER_ONE_LONG, OVER_TWO_LONG);
    for (size_t step = 3 * SHORT_LANE; len >= step; p += step, len -= step)
        c = three_lanes(c, p, SHORT_LANE, OVER_ONE_SHORT, OVER_TWO_SHORT);
    for (; len >= 8; p += 8, len -= 8)
        c = _mm_crc32_u64(c, word(p));
    uint32_t c32 = (uint32_t)c;
    for (; len > 0; p++, len--)
        c32 = _mm_crc32_u8(c32, *p);
    return ~c32;
}

uint32_t rq_crc32c(uint32_t crc, const void *bytes, size_t len)
{
    if (len < FOLD_FROM || !can_fold()) return rq__crc32c_by_lanes(crc, bytes, len);
    const unsigned char *p = bytes;
    size_t part = len / 256 * 256;
    uint32_t c = (uint32_t)folded((uint32_t)~crc, p, part);
    return rq__crc32c_by_lanes(~c, p + part, len - part);
}
