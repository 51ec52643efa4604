/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C by the SSE4.2 instruction, eight bytes a step; CRC-32 by zlib. */
#include "base/checksum.h"

#include <nmmintrin.h>
#include <string.h>
#include <zlib.h>

uint32_t rq_crc32c(uint32_t crc, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t c = ~crc;
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        c = _mm_crc32_u64(c, v);
    }
    uint32_t c32 = (uint32_t)c;
    for (; len > 0; p++, len--)
        c32 = _mm_crc32_u8(c32, *p);
    return ~c32;
}

uint32_t rq_crc32(uint32_t crc, const void *bytes, size_t len)
{
    return (uint32_t)crc32_z(crc, bytes, len);
}
