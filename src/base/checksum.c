/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32 and CRC-32C in plain C: eight tables of 256 words, eight bytes a step (Kounavis and Berry, A
 * Systematic Approach to Building High Performance Software-based CRC Generators, 2005).
 * crc32c_x86.c and crc32c_arm.c have CRC-32C by the processor's own instructions.
 */
#include "base/checksum.h"

#include "base/bytes.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Rorqual reads integers of eight bytes as little-endian ones"
#endif

#include <pthread.h>

/* Reflected polynomials. */
#define CRC32 0xedb88320u
#define CRC32C 0x82f63b78u

typedef struct tables {
    uint32_t words[8][256];
} tables;

/* Each table is filled before its first use, and constant from then on. */
static tables of_crc32, of_crc32c;
static pthread_once_t crc32_filled = PTHREAD_ONCE_INIT, crc32c_filled = PTHREAD_ONCE_INIT;

static void fill(tables *t, uint32_t polynomial)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = c >> 1 ^ ((c & 1) != 0 ? polynomial : 0);
        t->words[0][i] = c;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t i = 0; i < 256; i++)
            t->words[k][i] = t->words[k - 1][i] >> 8 ^ t->words[0][t->words[k - 1][i] & 0xff];
}

static void fill_crc32(void)
{
    fill(&of_crc32, CRC32);
}

static void fill_crc32c(void)
{
    fill(&of_crc32c, CRC32C);
}

static uint32_t checksum(const tables *of, uint32_t crc, const void *bytes, size_t len)
{
    const uint32_t(*t)[256] = of->words;
    const uint8_t *p = bytes;
    uint32_t c = ~crc;
    for (; len >= 8; p += 8, len -= 8) {
        uint32_t low = c ^ rq_get_u32(p);
        uint32_t high = rq_get_u32(p + 4);
        c = t[7][low & 0xff] ^ t[6][low >> 8 & 0xff] ^ t[5][low >> 16 & 0xff] ^ t[4][low >> 24] ^
            t[3][high & 0xff] ^ t[2][high >> 8 & 0xff] ^ t[1][high >> 16 & 0xff] ^ t[0][high >> 24];
    }
    for (; len > 0; p++, len--)
        c = c >> 8 ^ t[0][(c ^ *p) & 0xff];
    return ~c;
}

uint32_t rq_crc32(uint32_t crc, const void *bytes, size_t len)
{
    pthread_once(&crc32_filled, fill_crc32);
    return checksum(&of_crc32, crc, bytes, len);
}

uint32_t rq__crc32c_plain(uint32_t crc, const void *bytes, size_t len)
{
    pthread_once(&crc32c_filled, fill_crc32c);
    return checksum(&of_crc32c, crc, bytes, len);
}

#if !defined(__x86_64__) && !defined(__ARM_FEATURE_CRC32)
uint32_t rq_crc32c(uint32_t crc, const void *bytes, size_t len)
{
    return rq__crc32c_plain(crc, bytes, len);
}
#endif
