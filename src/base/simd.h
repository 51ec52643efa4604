/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of sixteen bytes: the few operations that comparing and searching bytes need.
 *
 * Three forms of the same functions: SSE2 on x86-64, NEON on AArch64, plain C elsewhere or with
 * RQ_SIMD_PLAIN (tests compare the forms). All treat bytes as unsigned.
 */
#ifndef RQ_BASE_SIMD_H
#define RQ_BASE_SIMD_H

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && !defined(RQ_SIMD_PLAIN)
#include <emmintrin.h>
#ifdef __SSSE3__
#include <tmmintrin.h>
#endif

typedef __m128i rq_v16;

static inline rq_v16 rq_v16_load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline rq_v16 rq_v16_splat(uint8_t byte)
{
    return _mm_set1_epi8((char)byte);
}

/* The first eight bytes from `low`, the others from `high`, in the machine's byte order. */
static inline rq_v16 rq_v16_pair(uint64_t low, uint64_t high)
{
    return _mm_set_epi64x((int64_t)high, (int64_t)low);
}

static inline rq_v16 rq_v16_or(rq_v16 a, rq_v16 b)
{
    return _mm_or_si128(a, b);
}

/* 0xff where bytes are equal, 0 elsewhere. */
static inline rq_v16 rq_v16_equal(rq_v16 a, rq_v16 b)
{
    return _mm_cmpeq_epi8(a, b);
}

static inline rq_v16 rq_v16_min(rq_v16 a, rq_v16 b)
{
    return _mm_min_epu8(a, b);
}

/* a - b, at least 0. */
static inline rq_v16 rq_v16_subtract(rq_v16 a, rq_v16 b)
{
    return _mm_subs_epu8(a, b);
}

/* The highest bit of each byte; byte i becomes bit i. */
static inline unsigned rq_v16_mask(rq_v16 a)
{
    return (unsigned)_mm_movemask_epi8(a);
}

/* The low four bits of each byte, packed; the first byte's are the highest. */
static inline uint64_t rq_v16_nibbles(rq_v16 a)
{
#ifdef __SSSE3__
    __m128i pairs = _mm_maddubs_epi16(a, _mm_set1_epi16(0x0110));
#else
    __m128i pairs = _mm_and_si128(_mm_or_si128(_mm_slli_epi16(a, 4), _mm_srli_epi16(a, 8)),
                                  _mm_set1_epi16(0xff));
#endif
    return __builtin_bswap64((uint64_t)_mm_cvtsi128_si64(_mm_packus_epi16(pairs, pairs)));
}

#elif defined(__ARM_NEON) && defined(__aarch64__) && !defined(RQ_SIMD_PLAIN)
#include <arm_neon.h>

typedef uint8x16_t rq_v16;

static inline rq_v16 rq_v16_load(const uint8_t *p)
{
    return vld1q_u8(p);
}

static inline rq_v16 rq_v16_splat(uint8_t byte)
{
    return vdupq_n_u8(byte);
}

static inline rq_v16 rq_v16_pair(uint64_t low, uint64_t high)
{
    return vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(low), vcreate_u64(high)));
}

static inline rq_v16 rq_v16_or(rq_v16 a, rq_v16 b)
{
    return vorrq_u8(a, b);
}

static inline rq_v16 rq_v16_equal(rq_v16 a, rq_v16 b)
{
    return vceqq_u8(a, b);
}

static inline rq_v16 rq_v16_min(rq_v16 a, rq_v16 b)
{
    return vminq_u8(a, b);
}

static inline rq_v16 rq_v16_subtract(rq_v16 a, rq_v16 b)
{
    return vqsubq_u8(a, b);
}

/* Each byte keeps the bit of its position in its half; then each half is summed. */
static inline unsigned rq_v16_mask(rq_v16 a)
{
    static const uint8_t places[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t high = vreinterpretq_u8_s8(vshrq_n_s8(vreinterpretq_s8_u8(a), 7));
    uint8x16_t bits = vandq_u8(high, vld1q_u8(places));
    return vaddv_u8(vget_low_u8(bits)) | (unsigned)vaddv_u8(vget_high_u8(bits)) << 8;
}

static inline uint64_t rq_v16_nibbles(rq_v16 a)
{
    uint16x8_t pairs = vreinterpretq_u16_u8(a);
    uint16x8_t both = vorrq_u16(vshlq_n_u16(pairs, 4), vshrq_n_u16(pairs, 8));
    return __builtin_bswap64(vget_lane_u64(vreinterpret_u64_u8(vmovn_u16(both)), 0));
}

#else

typedef struct rq_v16 {
    uint8_t bytes[16];
} rq_v16;

static inline rq_v16 rq_v16_load(const uint8_t *p)
{
    rq_v16 v;
    memcpy(v.bytes, p, sizeof v.bytes);
    return v;
}

static inline rq_v16 rq_v16_splat(uint8_t byte)
{
    rq_v16 v;
    memset(v.bytes, byte, sizeof v.bytes);
    return v;
}

static inline rq_v16 rq_v16_pair(uint64_t low, uint64_t high)
{
    rq_v16 v;
    memcpy(v.bytes, &low, 8);
    memcpy(v.bytes + 8, &high, 8);
    return v;
}

static inline rq_v16 rq_v16_or(rq_v16 a, rq_v16 b)
{
    for (int i = 0; i < 16; i++)
        a.bytes[i] |= b.bytes[i];
    return a;
}

static inline rq_v16 rq_v16_equal(rq_v16 a, rq_v16 b)
{
    for (int i = 0; i < 16; i++)
        a.bytes[i] = a.bytes[i] == b.bytes[i] ? 0xff : 0;
    return a;
}

static inline rq_v16 rq_v16_min(rq_v16 a, rq_v16 b)
{
    for (int i = 0; i < 16; i++)
        if (b.bytes[i] < a.bytes[i]) a.bytes[i] = b.bytes[i];
    return a;
}

static inline rq_v16 rq_v16_subtract(rq_v16 a, rq_v16 b)
{
    for (int i = 0; i < 16; i++)
        a.bytes[i] = a.bytes[i] > b.bytes[i] ? (uint8_t)(a.bytes[i] - b.bytes[i]) : 0;
    return a;
}

static inline unsigned rq_v16_mask(rq_v16 a)
{
    unsigned mask = 0;
    for (unsigned i = 0; i < 16; i++)
        mask |= (unsigned)(a.bytes[i] >> 7) << i;
    return mask;
}

static inline uint64_t rq_v16_nibbles(rq_v16 a)
{
    uint64_t v = 0;
    for (int i = 0; i < 16; i++)
        v = v << 4 | (a.bytes[i] & 0xfu);
    return v;
}

#endif
#endif
