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
 * The codecs themselves: compress/codec.h.
 */
#ifndef RQ_HFILE_COMPRESSION_H
#define RQ_HFILE_COMPRESSION_H

#include "compress/codec.h"

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
/* Whether files can be read and written with it. RQ_E_UNSUPPORTED: this version has no such codec, or its
 * library is missing. */
RQ_NODISCARD
rq_err rq_compression_check(rq_compression c, rq_error *why);

/* A codec of a file's blocks. Level 0: the algorithm's default. `zstd_bare`: writes ZSTD as bare
 * frames; reading is not affected. RQ_E_UNSUPPORTED. */
RQ_NODISCARD
rq_err rq__compression_codec(rq_compression c, int level, bool zstd_bare, rq_codec **ret);

#endif
