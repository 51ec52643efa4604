/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32 by zlib, and CRC-32C in plain C: eight tables of 256 words, eight bytes a step (Kounavis
 * and Berry, A Systematic Approach to Building High Performance Software-based CRC Generators,
 * 2005). crc32c_x86.c and crc32c_arm.c have CRC-32C by the processor's own instructions.
 */
#include "base/checksum.h"

#include "base/bytes.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Rorqual reads integers of eight bytes as little-endian ones"
#endif

#include <pthread.h>
#include <zlib.h>

#define POLYNOMIAL 0x82f63b78u /* reflected */

/* Filled before the first use. */
static uint32_t tables[8][256]; /* constant from then on */
static pthread_once_t filled = PTHREAD_ONCE_INIT;

static void fill(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = c >> 1 ^ ((c & 1) != 0 ? POLYNOMIAL : 0);
        tables[0][i] = c;
    }
    for (int t = 1; t < 8; t++)
        for (uint32_t i = 0; i < 256; i++)
            tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xff];
}

uint32_t rq__crc32c_plain(uint32_t crc, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    uint32_t c = ~crc;
    pthread_once(&filled, fill);
    for (; len >= 8; p += 8, len -= 8) {
        uint32_t low = c ^ rq_get_u32(p);
        uint32_t high = rq_get_u32(p + 4);
        c = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
            tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
            tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
    }
    for (; len > 0; p++, len--)
        c = c >> 8 ^ tables[0][(c ^ *p) & 0xff];
    return ~c;
}

#if !defined(__x86_64__) && !defined(__ARM_FEATURE_CRC32)
uint32_t rq_crc32c(uint32_t crc, const void *bytes, size_t len)
{
    return rq__crc32c_plain(crc, bytes, len);
}
#endif

uint32_t rq_crc32(uint32_t crc, const void *bytes, size_t len)
{
    return (uint32_t)crc32_z(crc, bytes, len);
}
