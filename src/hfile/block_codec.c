/* SPDX-License-Identifier: Apache-2.0 */
/* A block's bytes on disk (layout in format.h): the checks that every block passes when it is
 * read. */
#include "hfile/block_codec.h"

#include "base/checksum.h"

#include <inttypes.h>

/* The most bytes that one compressed byte can stand for: deflate's 258-byte match in two bits,
 * lz4's length bytes of 255, snappy's 64-byte copy in three bytes, zstd's 128 KiB run-length block
 * in four, lzo's length bytes of 255, bzip2's 46 MB of one byte in a block of some forty. */
static uint64_t ratio_max(rq_compression c)
{
    switch (c) {
    case RQ_COMPRESSION_GZ:
        return 1040;
    case RQ_COMPRESSION_SNAPPY:
        return 32;
    case RQ_COMPRESSION_LZ4:
        return 256;
    case RQ_COMPRESSION_ZSTD:
        return 64 * 1024;
    case RQ_COMPRESSION_LZO:
        return 256;
    case RQ_COMPRESSION_BZIP2:
        return 1 << 21;
    default:
        return 1;
    }
}

rq_err rq__block_header_parse(const uint8_t b[RQ_HFILE_HEADER_LEN], rq_compression compression,
                              const char *path, uint64_t offset, rq__block_header *ret,
                              rq_error *why)
{
    rq__block_header h;
    if (!rq__block_kind_of_magic(b, &h.kind)) {
        char magic[40];
        rq_bytes_to_string(rq_slice_of(b, 8), magic, sizeof(magic));
        return rq_fail(why, RQ_E_CORRUPT, "%s: no block at offset %" PRIu64 ": magic '%s'", path,
                       offset, magic);
    }
    uint64_t body_len = rq_get_be32(b + 8);
    h.raw_len = rq_get_be32(b + 12);
    h.prev_offset = rq_get_be64(b + 16);
    h.checksum_type = b[24];
    h.bytes_per_checksum = rq_get_be32(b + 25);
    h.data_len = rq_get_be32(b + 29);
    uint64_t on_disk_len = body_len + RQ_HFILE_HEADER_LEN;
    if (body_len > INT32_MAX - RQ_HFILE_HEADER_LEN || h.data_len < RQ_HFILE_HEADER_LEN ||
        h.bytes_per_checksum == 0 || h.bytes_per_checksum > INT32_MAX ||
        on_disk_len != h.data_len + rq__checksums_len(h.data_len, h.bytes_per_checksum))
        return rq_fail(why, RQ_E_CORRUPT,
                       "%s: block at offset %" PRIu64 " (%s): %" PRIu64
                       " bytes on disk do not agree with %u of data and a checksum each %u",
                       path, offset, rq_block_kind_name(h.kind), on_disk_len, h.data_len,
                       h.bytes_per_checksum);
    uint64_t packed_len = h.data_len - RQ_HFILE_HEADER_LEN;
    bool plausible = compression == RQ_COMPRESSION_NONE
                         ? h.raw_len == packed_len
                         : h.raw_len <= packed_len * ratio_max(compression);
    if (!plausible || h.raw_len > RQ_HFILE_BLOCK_LEN_MAX)
        return rq_fail(why, RQ_E_CORRUPT,
                       "%s: block at offset %" PRIu64 " (%s): %" PRIu64
                       " bytes cannot hold %u uncompressed ones (%s)",
                       path, offset, rq_block_kind_name(h.kind), packed_len, h.raw_len,
                       rq_compression_name(compression));
    h.on_disk_len = (uint32_t)on_disk_len;
    *ret = h;
    return RQ_OK;
}

rq_err rq__block_verify(rq_slice block, rq_compression compression, const char *path,
                        uint64_t offset, rq__block_header *ret, rq_error *why)
{
    if (block.len < RQ_HFILE_HEADER_LEN)
        return rq_fail(why, RQ_E_CORRUPT,
                       "%s: block at offset %" PRIu64 ": %zu bytes are too few for a header", path,
                       offset, block.len);
    rq__block_header h;
    RQ_TRY(rq__block_header_parse(block.ptr, compression, path, offset, &h, why));
    if (h.on_disk_len != block.len)
        return rq_fail(why, RQ_E_CORRUPT,
                       "%s: block at offset %" PRIu64 " (%s): its header says %u bytes, its index "
                       "%zu",
                       path, offset, rq_block_kind_name(h.kind), h.on_disk_len, block.len);
    if (h.checksum_type > RQ_CHECKSUM_CRC32C)
        return rq_fail(why, RQ_E_CORRUPT,
                       "%s: block at offset %" PRIu64 " (%s): unknown checksum type %u", path,
                       offset, rq_block_kind_name(h.kind), h.checksum_type);
    if (h.checksum_type != RQ_CHECKSUM_NONE) {
        const uint8_t *stored = block.ptr + h.data_len;
        for (uint64_t at = 0; at < h.data_len; at += h.bytes_per_checksum, stored += 4) {
            uint64_t left = h.data_len - at;
            size_t len = left < h.bytes_per_checksum ? left : h.bytes_per_checksum;
            uint32_t sum = h.checksum_type == RQ_CHECKSUM_CRC32C ? rq_crc32c(0, block.ptr + at, len)
                                                                 : rq_crc32(0, block.ptr + at, len);
            if (sum != rq_get_be32(stored))
                return rq_fail(why, RQ_E_CORRUPT,
                               "%s: block at offset %" PRIu64 " (%s): checksum of bytes %" PRIu64
                               " to %" PRIu64 " is %08x, expected %08x",
                               path, offset, rq_block_kind_name(h.kind), offset + at,
                               offset + at + len, sum, rq_get_be32(stored));
        }
    }
    *ret = h;
    return RQ_OK;
}

rq_err rq__block_seal(rq_buf *out, size_t start, rq_block_kind kind, uint32_t raw_len,
                      uint64_t prev_offset, rq_checksum_type type, uint32_t bytes_per_checksum)
{
    size_t data_len = out->len - start;
    uint64_t sums_len = rq__checksums_len(data_len, bytes_per_checksum);
    if (data_len + sums_len > INT32_MAX) return RQ_E_INVALID;
    RQ_TRY(rq_buf_reserve(out, sums_len));
    uint8_t *b = out->ptr + start;
    memcpy(b, rq__block_kind_magic(kind), 8);
    rq_put_be32(b + 8, (uint32_t)(data_len + sums_len - RQ_HFILE_HEADER_LEN));
    rq_put_be32(b + 12, raw_len);
    rq_put_be64(b + 16, prev_offset);
    b[24] = (uint8_t)type;
    rq_put_be32(b + 25, bytes_per_checksum);
    rq_put_be32(b + 29, (uint32_t)data_len);
    uint8_t *sums = out->ptr + out->len;
    for (size_t at = 0; at < data_len; at += bytes_per_checksum, sums += 4) {
        size_t len = data_len - at < bytes_per_checksum ? data_len - at : bytes_per_checksum;
        uint32_t sum = 0; /* with RQ_CHECKSUM_NONE the room stays. HBASE: HFileBlock.Writer */
        if (type == RQ_CHECKSUM_CRC32C)
            sum = rq_crc32c(0, b + at, len);
        else if (type == RQ_CHECKSUM_CRC32)
            sum = rq_crc32(0, b + at, len);
        rq_put_be32(sums, sum);
    }
    out->len += sums_len;
    return RQ_OK;
}
