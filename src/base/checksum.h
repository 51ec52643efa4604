/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli) for the log, manifests and HFile blocks; CRC-32 (zlib's) for HFile
 * blocks. */
#ifndef RQ_BASE_CHECKSUM_H
#define RQ_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Checksum of bytes in several calls: `crc` is the previous call's result, 0 in the first call. */
uint32_t rq_crc32c(uint32_t crc, const void *bytes, size_t len);
/* CRC-32C in portable C, without processor instructions. */
uint32_t rq__crc32c_plain(uint32_t crc, const void *bytes, size_t len);
#ifdef __x86_64__
/* CRC-32C as computed on an x86-64 processor without VPCLMULQDQ. For tests. */
uint32_t rq__crc32c_by_lanes(uint32_t crc, const void *bytes, size_t len);
#endif
uint32_t rq_crc32(uint32_t crc, const void *bytes, size_t len);

#endif
