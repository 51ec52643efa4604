/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the libraries that are loaded when a codec needs them (libraries.c). */
#ifndef RQ_COMPRESS_LIBRARIES_H
#define RQ_COMPRESS_LIBRARIES_H

#include "base/library.h"

#include "compress/codec.h"

#include <bzlib.h>
#include <lz4.h>
#include <lzo/lzo1x.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#define RQ__BZIP2_FUNCTIONS(X)                                                                     \
    X(BZ2_bzBuffToBuffCompress)                                                                    \
    X(BZ2_bzCompressInit)                                                                          \
    X(BZ2_bzCompress)                                                                              \
    X(BZ2_bzCompressEnd)                                                                           \
    X(BZ2_bzDecompressInit)                                                                        \
    X(BZ2_bzDecompress)                                                                            \
    X(BZ2_bzDecompressEnd)
#define RQ__LZ4_FUNCTIONS(X) X(LZ4_compressBound) X(LZ4_compress_default) X(LZ4_decompress_safe)
#define RQ__LZO_FUNCTIONS(X) X(__lzo_init_v2) X(lzo1x_1_compress) X(lzo1x_decompress_safe)
#define RQ__SNAPPY_FUNCTIONS(X)                                                                    \
    X(snappy_max_compressed_length)                                                                \
    X(snappy_compress)                                                                             \
    X(snappy_uncompressed_length)                                                                  \
    X(snappy_uncompress)
#define RQ__ZLIB_FUNCTIONS(X)                                                                      \
    X(deflate)                                                                                     \
    X(deflateBound)                                                                                \
    X(deflateEnd)                                                                                  \
    X(deflateInit2_)                                                                               \
    X(deflateReset)                                                                                \
    X(inflate)                                                                                     \
    X(inflateEnd)                                                                                  \
    X(inflateInit2_)                                                                               \
    X(inflateReset)
#define RQ__ZSTD_FUNCTIONS(X)                                                                      \
    X(ZSTD_compressBound)                                                                          \
    X(ZSTD_compressCCtx)                                                                           \
    X(ZSTD_createCCtx)                                                                             \
    X(ZSTD_CCtx_reset)                                                                             \
    X(ZSTD_CCtx_setParameter)                                                                      \
    X(ZSTD_CCtx_setPledgedSrcSize)                                                                 \
    X(ZSTD_compressStream2)                                                                        \
    X(ZSTD_freeCCtx)                                                                               \
    X(ZSTD_createDCtx)                                                                             \
    X(ZSTD_freeDCtx)                                                                               \
    X(ZSTD_DCtx_reset)                                                                             \
    X(ZSTD_decompressDCtx)                                                                         \
    X(ZSTD_decompressStream)                                                                       \
    X(ZSTD_isError)

/* The functions of one library; the codec's form determines which. */
typedef union rq__library_table {
    struct {
        RQ__BZIP2_FUNCTIONS(RQ_LIBRARY_MEMBER)
    } bzip2;
    struct {
        RQ__LZ4_FUNCTIONS(RQ_LIBRARY_MEMBER)
    } lz4;
    struct {
        RQ__LZO_FUNCTIONS(RQ_LIBRARY_MEMBER)
    } lzo;
    struct {
        RQ__SNAPPY_FUNCTIONS(RQ_LIBRARY_MEMBER)
    } snappy;
    struct {
        RQ__ZLIB_FUNCTIONS(RQ_LIBRARY_MEMBER)
    } zlib;
    struct {
        RQ__ZSTD_FUNCTIONS(RQ_LIBRARY_MEMBER)
    } zstd;
} rq__library_table;

/* Loads the library of the form; does nothing for a form that needs none of these libraries. RQ_E_UNSUPPORTED: the
 * library is not installed, or its version is not that of the header used at build time. */
RQ_NODISCARD
rq_err rq__form_load(rq_form form, rq__library_table *ret, rq_error *why);

#endif
