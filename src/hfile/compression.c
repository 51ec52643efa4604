/* SPDX-License-Identifier: Apache-2.0 */
/* The codecs, each with the framing that HBase's own codec streams give a block (compression.h).
 *
 * Hadoop block framing divides the input into pieces that fit into the reader's buffer. Hadoop's
 * codecs default to 256 KiB less an overhead (snappy's is the largest: a sixth and 32 bytes), so
 * all of them can read pieces of CHUNK, which is below that. HBASE: BlockCompressorStream,
 * BlockDecompressorStream. */
#include "hfile/compression.h"

#include <bzlib.h>
#include <lz4.h>
#include <lzo/lzo1x.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#define CHUNK (192 * 1024)
/* aircompressor's LzoCodec holds 64 KiB. */
#define LZO_CHUNK (48 * 1024)

/* A bare zstd frame begins with this; as a raw length it would be 683 MB. */
static const uint8_t zstd_magic[4] = {0x28, 0xb5, 0x2f, 0xfd};

struct rq_codec {
    rq_compression kind;
    int level;
    bool deflate_ready;
    bool inflate_ready;
    z_stream deflate;
    z_stream inflate;
    ZSTD_CCtx *zstd_out;
    ZSTD_DCtx *zstd_in;
    bool zstd_bare;
    void *lz4_state;
    void *lzo_state;
};

rq_err rq_codec_new(rq_compression c, int level, rq_codec **ret)
{
    if (!rq_compression_is_supported(c)) return RQ_E_UNSUPPORTED;
    /* Only checks that the library's ABI matches the header. */
    if (c == RQ_COMPRESSION_LZO && lzo_init() != LZO_E_OK) return RQ_E_UNSUPPORTED;
    rq_codec *codec = calloc(1, sizeof(*codec));
    if (codec == NULL) return RQ_E_NO_MEMORY;
    codec->kind = c;
    codec->level = level;
    *ret = codec;
    return RQ_OK;
}

void rq_codec_free(rq_codec *codec)
{
    if (codec == NULL) return;
    if (codec->deflate_ready) (void)deflateEnd(&codec->deflate);
    if (codec->inflate_ready) (void)inflateEnd(&codec->inflate);
    (void)ZSTD_freeCCtx(codec->zstd_out);
    (void)ZSTD_freeDCtx(codec->zstd_in);
    free(codec->lz4_state);
    free(codec->lzo_state);
    free(codec);
}

void rq_codec_write_bare_zstd(rq_codec *codec)
{
    codec->zstd_bare = true;
}

/* --- gzip ------------------------------------------------------------------------------------ */

#define GZIP_WINDOW_BITS (15 + 16)

static rq_err gz_compress(rq_codec *c, rq_slice raw, rq_buf *out)
{
    if (raw.len > UINT32_MAX) return RQ_E_INVALID;
    if (!c->deflate_ready) {
        int level = c->level == 0 ? Z_DEFAULT_COMPRESSION : c->level;
        if (deflateInit2(&c->deflate, level, Z_DEFLATED, GZIP_WINDOW_BITS, 8, Z_DEFAULT_STRATEGY) !=
            Z_OK)
            return RQ_E_NO_MEMORY;
        c->deflate_ready = true;
    } else {
        (void)deflateReset(&c->deflate);
    }
    size_t bound = deflateBound(&c->deflate, raw.len);
    RQ_TRY(rq_buf_reserve(out, bound));
    c->deflate.next_in = (Bytef *)(uintptr_t)raw.ptr;
    c->deflate.avail_in = (uInt)raw.len;
    c->deflate.next_out = out->ptr + out->len;
    c->deflate.avail_out = (uInt)bound;
    int rc = deflate(&c->deflate, Z_FINISH);
    RQ_ASSERT(rc == Z_STREAM_END); /* deflateBound's promise */
    out->len += bound - c->deflate.avail_out;
    return RQ_OK;
}

static rq_err gz_decompress(rq_codec *c, rq_slice packed, uint8_t *out, size_t raw_len)
{
    if (packed.len > UINT32_MAX || raw_len >= UINT32_MAX) return RQ_E_CORRUPT;
    if (!c->inflate_ready) {
        if (inflateInit2(&c->inflate, GZIP_WINDOW_BITS) != Z_OK) return RQ_E_NO_MEMORY;
        c->inflate_ready = true;
    } else {
        (void)inflateReset(&c->inflate);
    }
    uint8_t nothing;
    c->inflate.next_in = (Bytef *)(uintptr_t)packed.ptr;
    c->inflate.avail_in = (uInt)packed.len;
    c->inflate.next_out = raw_len == 0 ? &nothing : out;
    c->inflate.avail_out = (uInt)raw_len;
    int rc = inflate(&c->inflate, Z_FINISH);
    if (rc == Z_MEM_ERROR) return RQ_E_NO_MEMORY;
    if (rc != Z_STREAM_END || c->inflate.avail_out != 0 || c->inflate.avail_in != 0)
        return RQ_E_CORRUPT;
    return RQ_OK;
}

/* --- bzip2 ----------------------------------------------------------------------------------- */

#define BZIP2_BLOCK_BYTES 100000

static rq_err bzip2_compress(rq_slice raw, rq_buf *out)
{
    if (raw.len > INT32_MAX) return RQ_E_INVALID;
    /* The library's own bound: one percent more, and 600 bytes. */
    size_t bound = raw.len + raw.len / 100 + 1000;
    RQ_TRY(rq_buf_reserve(out, bound));
    /* A block size no larger than the input saves memory on both sides. */
    size_t blocks = (raw.len + BZIP2_BLOCK_BYTES - 1) / BZIP2_BLOCK_BYTES;
    int size = blocks < 1 ? 1 : blocks > 9 ? 9 : (int)blocks;
    unsigned len = (unsigned)bound;
    char nothing = 0;
    char *in = raw.len == 0 ? &nothing : (char *)(uintptr_t)raw.ptr;
    int rc = BZ2_bzBuffToBuffCompress((char *)out->ptr + out->len, &len, in, (unsigned)raw.len,
                                      size, 0, 0);
    if (rc == BZ_MEM_ERROR) return RQ_E_NO_MEMORY;
    RQ_ASSERT(rc == BZ_OK);
    out->len += len;
    return RQ_OK;
}

static rq_err bzip2_decompress(rq_slice packed, uint8_t *out, size_t raw_len)
{
    if (packed.len > INT32_MAX || raw_len > INT32_MAX) return RQ_E_CORRUPT;
    bz_stream s = {0};
    int rc = BZ2_bzDecompressInit(&s, 0, 0);
    if (rc != BZ_OK) return RQ_E_NO_MEMORY;
    char nothing = 0;
    s.next_in = (char *)(uintptr_t)packed.ptr;
    s.avail_in = (unsigned)packed.len;
    s.next_out = raw_len == 0 ? &nothing : (char *)out;
    s.avail_out = (unsigned)raw_len;
    rc = BZ2_bzDecompress(&s);
    /* The stream must end here: the end is reported with the last byte or, if that filled the
     * output, by the next call. */
    if (rc == BZ_OK && s.avail_out == 0) rc = BZ2_bzDecompress(&s);
    bool exact = rc == BZ_STREAM_END && s.avail_out == 0 && s.avail_in == 0;
    (void)BZ2_bzDecompressEnd(&s);
    if (rc == BZ_MEM_ERROR) return RQ_E_NO_MEMORY;
    return exact ? RQ_OK : RQ_E_CORRUPT;
}

/* --- one chunk of the block-framed ones ------------------------------------------------------ */

static size_t chunk_bound(const rq_codec *c, size_t len)
{
    switch (c->kind) {
    case RQ_COMPRESSION_SNAPPY:
        return snappy_max_compressed_length(len);
    case RQ_COMPRESSION_LZ4:
        return (size_t)LZ4_compressBound((int)len);
    case RQ_COMPRESSION_LZO:
        return len + len / 16 + 64 + 3; /* what its documentation says */
    default:
        return ZSTD_compressBound(len);
    }
}

static rq_err chunk_compress(rq_codec *c, const uint8_t *raw, size_t len, uint8_t *out, size_t room,
                             size_t *ret_len)
{
    switch (c->kind) {
    case RQ_COMPRESSION_SNAPPY: {
        size_t n = room;
        if (snappy_compress((const char *)raw, len, (char *)out, &n) != SNAPPY_OK)
            return RQ_E_NO_MEMORY;
        *ret_len = n;
        return RQ_OK;
    }
    case RQ_COMPRESSION_LZ4: {
        if (c->lz4_state == NULL && (c->lz4_state = malloc((size_t)LZ4_sizeofState())) == NULL)
            return RQ_E_NO_MEMORY;
        int n = LZ4_compress_fast_extState(c->lz4_state, (const char *)raw, (char *)out, (int)len,
                                           (int)room, 1);
        RQ_ASSERT(n > 0); /* room is LZ4_compressBound */
        *ret_len = (size_t)n;
        return RQ_OK;
    }
    case RQ_COMPRESSION_LZO: {
        if (c->lzo_state == NULL && (c->lzo_state = malloc(LZO1X_1_MEM_COMPRESS)) == NULL)
            return RQ_E_NO_MEMORY;
        lzo_uint n = room;
        int rc = lzo1x_1_compress(raw, len, out, &n, c->lzo_state);
        RQ_ASSERT(rc == LZO_E_OK); /* its documentation: it cannot fail */
        *ret_len = n;
        return RQ_OK;
    }
    default: {
        if (c->zstd_out == NULL && (c->zstd_out = ZSTD_createCCtx()) == NULL) return RQ_E_NO_MEMORY;
        int level = c->level == 0 ? ZSTD_CLEVEL_DEFAULT : c->level;
        size_t n = ZSTD_compressCCtx(c->zstd_out, out, room, raw, len, level);
        if (ZSTD_isError(n)) return RQ_E_NO_MEMORY;
        *ret_len = n;
        return RQ_OK;
    }
    }
}

/* Writes at most `room` bytes. */
static rq_err chunk_decompress(rq_codec *c, rq_slice packed, uint8_t *out, size_t room,
                               size_t *ret_len)
{
    switch (c->kind) {
    case RQ_COMPRESSION_SNAPPY: {
        size_t n;
        const char *p = (const char *)packed.ptr;
        if (snappy_uncompressed_length(p, packed.len, &n) != SNAPPY_OK || n > room ||
            snappy_uncompress(p, packed.len, (char *)out, &n) != SNAPPY_OK)
            return RQ_E_CORRUPT;
        *ret_len = n;
        return RQ_OK;
    }
    case RQ_COMPRESSION_LZ4: {
        if (packed.len > INT32_MAX || room > INT32_MAX) return RQ_E_CORRUPT;
        int n =
            LZ4_decompress_safe((const char *)packed.ptr, (char *)out, (int)packed.len, (int)room);
        if (n < 0) return RQ_E_CORRUPT;
        *ret_len = (size_t)n;
        return RQ_OK;
    }
    case RQ_COMPRESSION_LZO: {
        lzo_uint n = room;
        if (lzo1x_decompress_safe(packed.ptr, packed.len, out, &n, NULL) != LZO_E_OK)
            return RQ_E_CORRUPT;
        *ret_len = n;
        return RQ_OK;
    }
    default: {
        if (c->zstd_in == NULL && (c->zstd_in = ZSTD_createDCtx()) == NULL) return RQ_E_NO_MEMORY;
        size_t n = ZSTD_decompressDCtx(c->zstd_in, out, room, packed.ptr, packed.len);
        if (ZSTD_isError(n)) return RQ_E_CORRUPT;
        *ret_len = n;
        return RQ_OK;
    }
    }
}

/* --- Hadoop block framing -------------------------------------------------------------------- */

static rq_err framed_compress(rq_codec *c, rq_slice raw, rq_buf *out)
{
    if (raw.len > INT32_MAX) return RQ_E_INVALID;
    if (raw.len == 0) return rq_buf_append_be32(out, 0);
    size_t chunk = c->kind == RQ_COMPRESSION_LZO ? LZO_CHUNK : CHUNK;
    for (size_t done = 0; done < raw.len;) {
        size_t len = raw.len - done < chunk ? raw.len - done : chunk;
        size_t bound = chunk_bound(c, len);
        RQ_TRY(rq_buf_reserve(out, 8 + bound));
        size_t packed_len;
        RQ_TRY(chunk_compress(c, raw.ptr + done, len, out->ptr + out->len + 8, bound, &packed_len));
        rq_put_be32(out->ptr + out->len, (uint32_t)len);
        rq_put_be32(out->ptr + out->len + 4, (uint32_t)packed_len);
        out->len += 8 + packed_len;
        done += len;
    }
    return RQ_OK;
}

static rq_err framed_decompress(rq_codec *c, rq_slice packed, uint8_t *out, size_t raw_len)
{
    rq_cursor in = rq_cursor_of(packed);
    size_t done = 0;
    /* Empty frames may follow: Hadoop's stream writes one behind a large write. */
    while (done < raw_len || rq_cursor_left(&in) > 0) {
        uint32_t frame_len;
        if (!rq_cursor_be32(&in, &frame_len) || frame_len > raw_len - done) return RQ_E_CORRUPT;
        size_t frame_end = done + frame_len;
        while (done < frame_end) {
            uint32_t packed_len;
            rq_slice chunk;
            size_t len;
            if (!rq_cursor_be32(&in, &packed_len) || !rq_cursor_bytes(&in, packed_len, &chunk))
                return RQ_E_CORRUPT;
            RQ_TRY(chunk_decompress(c, chunk, out + done, frame_end - done, &len));
            if (len == 0) return RQ_E_CORRUPT;
            done += len;
        }
    }
    return RQ_OK;
}

static rq_err bare_zstd_compress(rq_codec *c, rq_slice raw, rq_buf *out)
{
    size_t bound = chunk_bound(c, raw.len);
    size_t len;
    RQ_TRY(rq_buf_reserve(out, bound));
    RQ_TRY(chunk_compress(c, raw.ptr, raw.len, out->ptr + out->len, bound, &len));
    out->len += len;
    return RQ_OK;
}

static rq_err zstd_decompress(rq_codec *c, rq_slice packed, uint8_t *out, size_t raw_len)
{
    if (packed.len < sizeof(zstd_magic) || memcmp(packed.ptr, zstd_magic, sizeof(zstd_magic)) != 0)
        return framed_decompress(c, packed, out, raw_len);
    size_t len;
    RQ_TRY(chunk_decompress(c, packed, out, raw_len, &len));
    return len == raw_len ? RQ_OK : RQ_E_CORRUPT;
}

/* --------------------------------------------------------------------------------------------- */

rq_err rq_codec_compress(rq_codec *codec, rq_slice raw, rq_buf *out)
{
    switch (codec->kind) {
    case RQ_COMPRESSION_NONE:
        return rq_buf_append(out, raw.ptr, raw.len);
    case RQ_COMPRESSION_GZ:
        return gz_compress(codec, raw, out);
    case RQ_COMPRESSION_BZIP2:
        return bzip2_compress(raw, out);
    default:
        if (codec->zstd_bare && codec->kind == RQ_COMPRESSION_ZSTD)
            return bare_zstd_compress(codec, raw, out);
        return framed_compress(codec, raw, out);
    }
}

rq_err rq_codec_decompress(rq_codec *codec, rq_slice packed, uint8_t *out, size_t raw_len)
{
    switch (codec->kind) {
    case RQ_COMPRESSION_NONE:
        if (packed.len != raw_len) return RQ_E_CORRUPT;
        if (raw_len > 0) memcpy(out, packed.ptr, raw_len);
        return RQ_OK;
    case RQ_COMPRESSION_GZ:
        return gz_decompress(codec, packed, out, raw_len);
    case RQ_COMPRESSION_BZIP2:
        return bzip2_decompress(packed, out, raw_len);
    case RQ_COMPRESSION_ZSTD:
        return zstd_decompress(codec, packed, out, raw_len);
    default:
        return framed_decompress(codec, packed, out, raw_len);
    }
}
