/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C on AArch64, by the instruction that ARMv8.1 requires and most ARMv8.0 processors have. */
#include "base/checksum.h"

#include <arm_acle.h>
#include <string.h>

uint32_t rq_crc32c(uint32_t crc, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    uint32_t c = ~crc;
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        c = __crc32cd(c, word);
    }
    for (; len > 0; p++, len--)
        c = __crc32cb(c, *p);
    return ~c;
}
