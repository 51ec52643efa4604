/* SPDX-License-Identifier: Apache-2.0 */
/* Cell-block compression with zlib, bzip2, snappy, lz4 and zstd; contract in compressor.h. */
#include "rpc/compressor.h"

#include <bzlib.h>
#include <lz4.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

/* Bytes in one block before compression. Java's decompressors have buffers of 64 kB and more. */
#define BLOCK_RAW ((size_t)64 * 1024)
#define STREAM_STEP ((size_t)16 * 1024)

enum { WINDOW_ZLIB = 15, WINDOW_GZIP = 15 + 16 };

struct rq_compressor {
    const char *java_class;
    int window; /* zlib's windowBits */
    rq_err (*pack)(const rq_compressor *c, rq_slice raw, rq_buf *out);
    rq_err (*unpack)(const rq_compressor *c, rq_slice packed, size_t raw_max, rq_buf *out);
    /* For one block of the blocked form; pack_block returns 0 on failure, unpack_block the number
     * of bytes or SIZE_MAX. */
    size_t (*bound)(size_t raw_len);
    size_t (*pack_block)(const uint8_t *raw, size_t len, uint8_t *out, size_t out_len);
    size_t (*unpack_block)(const uint8_t *packed, size_t len, uint8_t *out, size_t out_len);
};

/* ---- zlib and gzip streams ------------------------------------------------------------------- */

static rq_err zlib_pack(const rq_compressor *c, rq_slice raw, rq_buf *out)
{
    z_stream z = {0};
    if (raw.len > UINT32_MAX) return RQ_E_RESULT_TOO_LARGE;
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, c->window, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return RQ_E_NO_MEMORY;
    rq_err rc = rq_buf_reserve(out, deflateBound(&z, raw.len));
    if (rc == RQ_OK) {
        z.next_in = (uint8_t *)raw.ptr;
        z.avail_in = (unsigned)raw.len;
        z.next_out = out->ptr + out->len;
        z.avail_out = (unsigned)rq_buf_take_room(out);
        rc = deflate(&z, Z_FINISH) == Z_STREAM_END ? RQ_OK : RQ_E_IO;
    }
    if (rc == RQ_OK) out->len = (size_t)(z.next_out - out->ptr);
    deflateEnd(&z);
    return rc;
}

/* Reserves room for one more step, but never for more than raw_max bytes behind `start`. */
static rq_err step_room(rq_buf *out, size_t start, size_t raw_max, size_t *ret)
{
    size_t have = out->len - start;
    if (have > raw_max) return RQ_E_RESULT_TOO_LARGE;
    RQ_TRY(rq_buf_reserve(out, STREAM_STEP));
    size_t room = rq_buf_take_room(out);
    size_t left = raw_max - have + 1; /* one more byte than allowed, to detect too much output */
    *ret = room < left ? room : left;
    if (*ret > INT32_MAX) *ret = INT32_MAX;
    return RQ_OK;
}

static rq_err inflate_all(z_stream *z, bool members, size_t raw_max, rq_buf *out)
{
    size_t start = out->len;
    for (;;) {
        size_t room;
        RQ_TRY(step_room(out, start, raw_max, &room));
        z->next_out = out->ptr + out->len;
        z->avail_out = (unsigned)room;
        int rc = inflate(z, Z_NO_FLUSH);
        out->len = (size_t)(z->next_out - out->ptr);
        if (rc == Z_STREAM_END) {
            if (z->avail_in == 0) break;
            /* gzip: another member may follow */
            if (!members || inflateReset(z) != Z_OK) return RQ_E_MALFORMED;
        } else if (rc != Z_OK) {
            return rc == Z_MEM_ERROR ? RQ_E_NO_MEMORY : RQ_E_MALFORMED;
        }
    }
    return out->len - start > raw_max ? RQ_E_RESULT_TOO_LARGE : RQ_OK;
}

static rq_err zlib_unpack(const rq_compressor *c, rq_slice packed, size_t raw_max, rq_buf *out)
{
    z_stream z = {.next_in = (uint8_t *)packed.ptr, .avail_in = (unsigned)packed.len};
    if (inflateInit2(&z, c->window) != Z_OK) return RQ_E_NO_MEMORY;
    rq_err rc = inflate_all(&z, c->window == WINDOW_GZIP, raw_max, out);
    inflateEnd(&z);
    return rc;
}

/* ---- bzip2 streams --------------------------------------------------------------------------- */

enum { BZIP2_BLOCK_100K = 9 }; /* as Hadoop's */

static rq_err bzip2_pack(const rq_compressor *c, rq_slice raw, rq_buf *out)
{
    (void)c;
    if (raw.len > INT32_MAX) return RQ_E_RESULT_TOO_LARGE;
    /* The library's own bound for incompressible data. */
    size_t bound = raw.len + raw.len / 100 + 600;
    RQ_TRY(rq_buf_reserve(out, bound));
    unsigned len = (unsigned)bound;
    int rc = BZ2_bzBuffToBuffCompress((char *)out->ptr + out->len, &len, (char *)raw.ptr,
                                      (unsigned)raw.len, BZIP2_BLOCK_100K, 0, 0);
    if (rc != BZ_OK) return rc == BZ_MEM_ERROR ? RQ_E_NO_MEMORY : RQ_E_IO;
    out->len += len;
    return RQ_OK;
}

static rq_err bunzip(bz_stream *z, size_t raw_max, rq_buf *out)
{
    size_t start = out->len;
    int rc = BZ_OK;
    while (rc != BZ_STREAM_END) {
        size_t room;
        RQ_TRY(step_room(out, start, raw_max, &room));
        unsigned in_before = z->avail_in;
        z->next_out = (char *)out->ptr + out->len;
        z->avail_out = (unsigned)room;
        rc = BZ2_bzDecompress(z);
        size_t made = room - z->avail_out;
        out->len += made;
        if (rc == BZ_MEM_ERROR) return RQ_E_NO_MEMORY;
        if (rc != BZ_OK && rc != BZ_STREAM_END) return RQ_E_MALFORMED;
        /* Truncated input: no byte consumed, none produced. */
        if (rc == BZ_OK && made == 0 && z->avail_in == in_before) return RQ_E_MALFORMED;
    }
    if (z->avail_in > 0) return RQ_E_MALFORMED;
    return out->len - start > raw_max ? RQ_E_RESULT_TOO_LARGE : RQ_OK;
}

static rq_err bzip2_unpack(const rq_compressor *c, rq_slice packed, size_t raw_max, rq_buf *out)
{
    (void)c;
    bz_stream z = {.next_in = (char *)packed.ptr, .avail_in = (unsigned)packed.len};
    if (BZ2_bzDecompressInit(&z, 0, 0) != BZ_OK) return RQ_E_NO_MEMORY;
    rq_err rc = bunzip(&z, raw_max, out);
    BZ2_bzDecompressEnd(&z);
    return rc;
}

/* ---- zstd streams ---------------------------------------------------------------------------- */

static rq_err zstd_pack(const rq_compressor *c, rq_slice raw, rq_buf *out)
{
    (void)c;
    size_t bound = ZSTD_compressBound(raw.len);
    RQ_TRY(rq_buf_reserve(out, bound));
    size_t n = ZSTD_compress(out->ptr + out->len, bound, raw.ptr, raw.len, ZSTD_CLEVEL_DEFAULT);
    if (ZSTD_isError(n)) return RQ_E_IO;
    out->len += n;
    return RQ_OK;
}

static rq_err zstd_unpack(const rq_compressor *c, rq_slice packed, size_t raw_max, rq_buf *out)
{
    (void)c;
    ZSTD_DStream *z = ZSTD_createDStream();
    if (z == NULL) return RQ_E_NO_MEMORY;
    size_t start = out->len;
    ZSTD_inBuffer in = {packed.ptr, packed.len, 0};
    size_t left = 1; /* of the frame: 0 at its end */
    rq_err rc = RQ_OK;
    while (rc == RQ_OK && (in.pos < in.size || left != 0)) {
        size_t room;
        rc = step_room(out, start, raw_max, &room);
        if (rc != RQ_OK) break;
        ZSTD_outBuffer o = {out->ptr + out->len, room, 0};
        size_t before = in.pos;
        left = ZSTD_decompressStream(z, &o, &in);
        out->len += o.pos;
        if (ZSTD_isError(left) || (left != 0 && o.pos == 0 && in.pos == before))
            rc = RQ_E_MALFORMED;
    }
    ZSTD_freeDStream(z);
    if (rc == RQ_OK && out->len - start > raw_max) rc = RQ_E_RESULT_TOO_LARGE;
    return rc;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static rq_err blocks_pack(const rq_compressor *c, rq_slice raw, rq_buf *out)
{
    for (size_t at = 0; at < raw.len;) {
        size_t n = raw.len - at < BLOCK_RAW ? raw.len - at : BLOCK_RAW;
        RQ_TRY(rq_buf_append_be32(out, (uint32_t)n));
        RQ_TRY(rq_buf_reserve(out, 4 + c->bound(n)));
        uint8_t *len_at = out->ptr + out->len;
        size_t packed = c->pack_block(raw.ptr + at, n, len_at + 4, rq_buf_take_room(out) - 4);
        if (packed == 0) return RQ_E_IO;
        rq_put_be32(len_at, (uint32_t)packed);
        out->len += 4 + packed;
        at += n;
    }
    return RQ_OK;
}

/* Unpacks the chunks of one block, together raw_len bytes. */
static rq_err block_unpack(const rq_compressor *c, rq_cursor *in, size_t raw_len, rq_buf *out)
{
    size_t end = out->len + raw_len;
    while (out->len < end) {
        uint32_t len;
        rq_slice chunk;
        if (!rq_cursor_be32(in, &len) || len == 0 || !rq_cursor_bytes(in, len, &chunk))
            return RQ_E_MALFORMED;
        size_t n = c->unpack_block(chunk.ptr, chunk.len, out->ptr + out->len, end - out->len);
        if (n == SIZE_MAX || n == 0) return RQ_E_MALFORMED;
        out->len += n;
    }
    return RQ_OK;
}

static rq_err blocks_unpack(const rq_compressor *c, rq_slice packed, size_t raw_max, rq_buf *out)
{
    rq_cursor in = rq_cursor_of(packed);
    size_t start = out->len;
    while (rq_cursor_left(&in) > 0) {
        uint32_t raw_len;
        if (!rq_cursor_be32(&in, &raw_len)) return RQ_E_MALFORMED;
        if (raw_len > raw_max - (out->len - start)) return RQ_E_RESULT_TOO_LARGE;
        RQ_TRY(rq_buf_reserve(out, raw_len));
        RQ_TRY(block_unpack(c, &in, raw_len, out));
    }
    return RQ_OK;
}

static size_t snappy_pack_block(const uint8_t *raw, size_t len, uint8_t *out, size_t out_len)
{
    if (snappy_compress((const char *)raw, len, (char *)out, &out_len) != SNAPPY_OK) return 0;
    return out_len;
}

static size_t snappy_unpack_block(const uint8_t *packed, size_t len, uint8_t *out, size_t out_len)
{
    size_t raw;
    if (snappy_uncompressed_length((const char *)packed, len, &raw) != SNAPPY_OK || raw > out_len)
        return SIZE_MAX;
    if (snappy_uncompress((const char *)packed, len, (char *)out, &out_len) != SNAPPY_OK)
        return SIZE_MAX;
    return out_len;
}

static size_t lz4_bound(size_t raw_len)
{
    return (size_t)LZ4_compressBound((int)raw_len);
}

static size_t lz4_pack_block(const uint8_t *raw, size_t len, uint8_t *out, size_t out_len)
{
    if (out_len > INT32_MAX) out_len = INT32_MAX;
    int n = LZ4_compress_default((const char *)raw, (char *)out, (int)len, (int)out_len);
    return n < 0 ? 0 : (size_t)n;
}

static size_t lz4_unpack_block(const uint8_t *packed, size_t len, uint8_t *out, size_t out_len)
{
    if (len > INT32_MAX) return SIZE_MAX;
    if (out_len > INT32_MAX) out_len = INT32_MAX;
    int n = LZ4_decompress_safe((const char *)packed, (char *)out, (int)len, (int)out_len);
    return n < 0 ? SIZE_MAX : (size_t)n;
}

static size_t zstd_pack_block(const uint8_t *raw, size_t len, uint8_t *out, size_t out_len)
{
    size_t n = ZSTD_compress(out, out_len, raw, len, ZSTD_CLEVEL_DEFAULT);
    return ZSTD_isError(n) ? 0 : n;
}

static size_t zstd_unpack_block(const uint8_t *packed, size_t len, uint8_t *out, size_t out_len)
{
    size_t n = ZSTD_decompress(out, out_len, packed, len);
    return ZSTD_isError(n) ? SIZE_MAX : n;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define HADOOP "org.apache.hadoop.io.compress."
#define HBASE "org.apache.hadoop.hbase.io.compress."
#define ZLIB(name, bits)                                                                           \
    {                                                                                              \
        name, bits, zlib_pack, zlib_unpack, NULL, NULL, NULL                                       \
    }
#define BLOCKS(name, algorithm, bound)                                                             \
    {                                                                                              \
        name, 0, blocks_pack, blocks_unpack, bound, algorithm##_pack_block,                        \
            algorithm##_unpack_block                                                               \
    }

static const rq_compressor compressors[] = {
    ZLIB(HADOOP "DefaultCodec", WINDOW_ZLIB),
    ZLIB(HADOOP "DeflateCodec", WINDOW_ZLIB),
    ZLIB(HADOOP "GzipCodec", WINDOW_GZIP),
    BLOCKS(HADOOP "SnappyCodec", snappy, snappy_max_compressed_length),
    BLOCKS(HBASE "aircompressor.SnappyCodec", snappy, snappy_max_compressed_length),
    BLOCKS(HBASE "xerial.SnappyCodec", snappy, snappy_max_compressed_length),
    BLOCKS(HADOOP "Lz4Codec", lz4, lz4_bound),
    BLOCKS(HBASE "aircompressor.Lz4Codec", lz4, lz4_bound),
    BLOCKS(HBASE "lz4.Lz4Codec", lz4, lz4_bound),
    {HADOOP "BZip2Codec", 0, bzip2_pack, bzip2_unpack, NULL, NULL, NULL},
    {HADOOP "ZStandardCodec", 0, zstd_pack, zstd_unpack, NULL, NULL, NULL},
    BLOCKS(HBASE "aircompressor.ZstdCodec", zstd, ZSTD_compressBound),
    BLOCKS(HBASE "zstd.ZstdCodec", zstd, ZSTD_compressBound),
};

const rq_compressor *rq_compressor_find(const char *java_class)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(compressors); i++)
        if (strcmp(compressors[i].java_class, java_class) == 0) return &compressors[i];
    return NULL;
}

size_t rq__compressor_short(const rq_compressor *c)
{
    if (c->pack == bzip2_pack) return 512;
    return c->pack == zlib_pack ? (size_t)8 * 1024 : (size_t)64 * 1024;
}

bool rq__compressor_expands(const rq_compressor *c)
{
    return c != NULL && c->pack == bzip2_pack;
}

rq_err rq_compressor_pack(const rq_compressor *c, rq_slice raw, rq_buf *out)
{
    return c->pack(c, raw, out);
}

rq_err rq_compressor_unpack(const rq_compressor *c, rq_slice packed, size_t raw_max, rq_buf *out,
                            rq_error *why)
{
    rq_err rc =
        packed.len > UINT32_MAX ? RQ_E_RESULT_TOO_LARGE : c->unpack(c, packed, raw_max, out);
    if (rc == RQ_E_MALFORMED)
        return rq_fail(why, rc, "cell block of %zu bytes was not written by %s", packed.len,
                       c->java_class);
    if (rc == RQ_E_RESULT_TOO_LARGE)
        return rq_fail(why, rc, "cell block of %zu bytes is larger than %zu when uncompressed",
                       packed.len, raw_max);
    return rc;
}
