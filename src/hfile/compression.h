/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Block compression with HBase's framing on disk.
 *
 *  GZ            one gzip stream per block
 *  SNAPPY, LZ4   Hadoop block framing: be32 raw length, then (be32 compressed length, bytes) until
 *                the raw length is reached; repeated
 *  LZO           Hadoop block framing of LZO1X (HBASE: aircompressor's and hadoop-lzo's LzoCodec)
 *  BZIP2         one bzip2 stream per block (HBASE: Hadoop's BZip2Codec)
 *  ZSTD          Hadoop block framing (HBASE: hbase-compression-zstd, -aircompressor) or bare
 *                frames (HBASE: Hadoop's ZStandardCodec); both are read, an option selects which
 *                is written
 *
 * A codec keeps its work memory between blocks; one thread at a time.
 */
#ifndef RQ_HFILE_COMPRESSION_H
#define RQ_HFILE_COMPRESSION_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

/* Ordinals of HBase's Compression.Algorithm, as in HFile trailers: DO NOT CHANGE. */
typedef enum rq_compression {
    RQ_COMPRESSION_LZO = 0,
    RQ_COMPRESSION_GZ = 1,
    RQ_COMPRESSION_NONE = 2,
    RQ_COMPRESSION_SNAPPY = 3,
    RQ_COMPRESSION_LZ4 = 4,
    RQ_COMPRESSION_BZIP2 = 5,
    RQ_COMPRESSION_ZSTD = 6,
    RQ_COMPRESSION_LZMA = 7,
    RQ_COMPRESSION_BROTLI = 8,
    RQ_COMPRESSION_COUNT
} rq_compression;

/* HBase's name ("GZ"), or NULL for an unknown number. */
const char *rq_compression_name(rq_compression c);
/* Parses a name, ignoring case. False: HBase has no such algorithm. */
bool rq_compression_parse(rq_slice name, rq_compression *ret);
/* Whether this build supports it. */
bool rq_compression_is_supported(rq_compression c);

typedef struct rq_codec rq_codec;

/* level 0: the algorithm's default. RQ_E_UNSUPPORTED. */
RQ_NODISCARD
rq_err rq_codec_new(rq_compression c, int level, rq_codec **ret);
void rq_codec_free(rq_codec *codec); /* NULL is fine */
/* From now on writes ZSTD as bare frames; reading is not affected. */
void rq_codec_write_bare_zstd(rq_codec *codec);

/* Appends the compressed form of `raw` to `out`. */
RQ_NODISCARD
rq_err rq_codec_compress(rq_codec *codec, rq_slice raw, rq_buf *out);
/* Fills out[0 … raw_len) exactly. RQ_E_CORRUPT: the bytes are malformed, or decompress to more
 * or fewer bytes. Never writes past raw_len. */
RQ_NODISCARD
rq_err rq_codec_decompress(rq_codec *codec, rq_slice packed, uint8_t *out, size_t raw_len);

#endif
