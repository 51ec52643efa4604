/* SPDX-License-Identifier: Apache-2.0 */
/* A block's bytes on disk: header, checksums, sizes. Within the room. */
#ifndef RQ_HFILE_BLOCK_CODEC_H
#define RQ_HFILE_BLOCK_CODEC_H

#include "base/buf.h"
#include "hfile/format.h"

typedef struct rq__block_header {
    rq_block_kind kind;
    uint32_t on_disk_len; /* whole block: header, payload, checksums */
    uint32_t raw_len;     /* payload after decompression */
    uint32_t data_len;    /* header and payload as on disk: what the checksums cover */
    uint64_t prev_offset; /* UINT64_MAX: none */
    uint8_t checksum_type;
    uint32_t bytes_per_checksum;
} rq__block_header;

/* The largest payload we hold in memory, whatever a header says. */
#define RQ_HFILE_BLOCK_LEN_MAX (1u << 30)

/* Bytes of checksums behind `data_len` bytes. */
static inline uint64_t rq__checksums_len(uint64_t data_len, uint32_t bytes_per_checksum)
{
    return (data_len + bytes_per_checksum - 1) / bytes_per_checksum * 4;
}

/* Parses and judges a header alone: known magic, sizes that agree with one another and with the
 * compression. RQ_E_CORRUPT; `place` ("FILE, block at offset N") opens the message. */
RQ_NODISCARD
rq_err rq__block_header_parse(const uint8_t bytes[RQ_HFILE_HEADER_LEN], rq_compression compression,
                              const char *path, uint64_t offset, rq__block_header *ret,
                              rq_error *why);
/* The header of a whole block and its checksums. block.len must be exactly the block's. */
RQ_NODISCARD
rq_err rq__block_verify(rq_slice block, rq_compression compression, const char *path,
                        uint64_t offset, rq__block_header *ret, rq_error *why);

/* Fills the header at out->ptr[start] for the block whose (compressed) payload ends the buffer and
 * appends its checksums. The header's room was left by the caller. */
RQ_NODISCARD
rq_err rq__block_seal(rq_buf *out, size_t start, rq_block_kind kind, uint32_t raw_len,
                      uint64_t prev_offset, rq_checksum_type type, uint32_t bytes_per_checksum);

#endif
