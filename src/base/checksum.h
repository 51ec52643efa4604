/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli; SSE4.2) for the log, manifests and HFile blocks; CRC-32 (zlib's). */
#ifndef RQ_BASE_CHECKSUM_H
#define RQ_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Continue with the former result as `crc`; start with 0. */
uint32_t rq_crc32c(uint32_t crc, const void *bytes, size_t len);
/* The same by the instruction alone, as on a processor without wide products. For tests. */
uint32_t rq__crc32c_by_lanes(uint32_t crc, const void *bytes, size_t len);
uint32_t rq_crc32(uint32_t crc, const void *bytes, size_t len);

#endif
