/* SPDX-License-Identifier: Apache-2.0 */
/* Records that tests of shared storage write into a log, so that a reader recognizes each write: its number,
 * a length and bytes that follow from it, and a checksum. */
#ifndef RQ_TESTS_EXTENTS_H
#define RQ_TESTS_EXTENTS_H

#include "base/bytes.h"
#include "base/checksum.h"

#define EXTENT_HEAD 16
#define EXTENT_MAX (EXTENT_HEAD + 300)

static inline size_t extent_make(uint64_t lsn, uint8_t out[static EXTENT_MAX])
{
    size_t len = (size_t)(lsn * 37 % 300);
    rq_put_be64(out, lsn);
    rq_put_be32(out + 8, (uint32_t)len);
    for (size_t i = 0; i < len; i++)
        out[EXTENT_HEAD + i] = (uint8_t)(lsn * 11 + i);
    rq_put_be32(out + 12, rq_crc32c(rq_crc32c(0, out, 12), out + EXTENT_HEAD, len));
    return EXTENT_HEAD + len;
}

/* Marks the numbers of one stripe's writes; the first that is incomplete ends the stripe: false. */
static inline bool extents_of(const uint8_t *bytes, size_t len, bool present[], uint64_t lsn_max)
{
    size_t at = 0;
    uint8_t expected[EXTENT_MAX];
    while (len - at >= EXTENT_HEAD) {
        uint64_t lsn = rq_get_be64(bytes + at);
        size_t whole = lsn < lsn_max ? extent_make(lsn, expected) : SIZE_MAX;
        if (whole > len - at || memcmp(bytes + at, expected, whole) != 0) break;
        present[lsn] = true;
        at += whole;
    }
    return at == len;
}

#endif
