/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes a block on disk: header, checksums, sizes. Within the room. */
#ifndef RQ_HFILE_BLOCK_CODEC_H
#define RQ_HFILE_BLOCK_CODEC_H

#include "base/buf.h"
#include "hfile/format.h"

typedef struct rq__block_header {
    rq_block_kind kind;
    uint32_t on_disk_len; /* header, payload and checksums */
    uint32_t raw_len;     /* length of the decompressed payload */
    uint32_t data_len;    /* header and payload on disk, covered by the checksums */
    uint64_t prev_offset; /* UINT64_MAX: none */
    uint8_t checksum_type;
    uint32_t bytes_per_checksum;
} rq__block_header;

/* The largest payload accepted. */
#define RQ_HFILE_BLOCK_LEN_MAX (1u << 30)

/* Length of the checksums for `data_len` bytes. */
static inline uint64_t rq__checksums_len(uint64_t data_len, uint32_t bytes_per_checksum)
{
    return (data_len + bytes_per_checksum - 1) / bytes_per_checksum * 4;
}

/* Parses and checks a header: the magic, and that the sizes agree with each other and with the
 * compression. RQ_E_CORRUPT; the message begins with path and offset. */
RQ_NODISCARD
rq_err rq__block_header_parse(const uint8_t bytes[RQ_HFILE_HEADER_LEN], rq_compression compression,
                              const char *path, uint64_t offset, rq__block_header *ret,
                              rq_error *why);
/* Parses the header of a complete block and verifies its checksums. block.len must be exactly
 * the block's. */
RQ_NODISCARD
rq_err rq__block_verify(rq_slice block, rq_compression compression, const char *path,
                        uint64_t offset, rq__block_header *ret, rq_error *why);

/* Fills the header at out->ptr[start], where the caller left room, for the block whose
 * (compressed) payload ends the buffer, and appends its checksums. */
RQ_NODISCARD
rq_err rq__block_seal(rq_buf *out, size_t start, rq_block_kind kind, uint32_t raw_len,
                      uint64_t prev_offset, rq_checksum_type type, uint32_t bytes_per_checksum);

#endif
