/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compression of blocks of HFiles and of cell blocks on connections, in the forms that Hadoop's and
 * HBase's codecs write: a stream in the library's own format, or Hadoop's block framing: be32 raw
 * length, then (be32 compressed length, bytes) until the raw length is reached; repeated to the
 * end.
 *
 * A codec keeps its work memory between calls; one thread at a time.
 */
#ifndef RQ_COMPRESS_CODEC_H
#define RQ_COMPRESS_CODEC_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

/* The form of compressed bytes. */
typedef enum rq_form {
    RQ_FORM_COPY, /* not compressed */
    RQ_FORM_ZLIB,
    RQ_FORM_GZIP, /* rq_codec_append reads several members, one after the other */
    RQ_FORM_BZIP2,
    RQ_FORM_ZSTD, /* frames, without Hadoop's framing */
    /* Hadoop's block framing: */
    RQ_FORM_SNAPPY_BLOCKS,
    RQ_FORM_LZ4_BLOCKS,
    RQ_FORM_LZO_BLOCKS, /* LZO1X */
    RQ_FORM_ZSTD_BLOCKS,
} rq_form;

typedef struct rq_codec_options {
    rq_form form;
    /* 0: the library's default. BZIP2: the block size in 100 kB; 0: the smallest that holds the
     * input. Snappy, LZ4 and LZO have no levels. */
    int level;
    size_t chunk_max;  /* most raw bytes in a chunk of Hadoop's framing */
    bool reads_frames; /* rq_codec_fill with ZSTD_BLOCKS also accepts the form ZSTD */
} rq_codec_options;

typedef struct rq_codec rq_codec;

/* Whether codecs of this form can be made. RQ_E_UNSUPPORTED names the library: it is not installed, or of
 * another version than its header. All but zlib are loaded by the first call (libraries.h). */
RQ_NODISCARD
rq_err rq_form_check(rq_form form, rq_error *why);

/* RQ_E_NO_MEMORY; RQ_E_UNSUPPORTED as rq_form_check. */
RQ_NODISCARD
rq_err rq_codec_new(const rq_codec_options *o, rq_codec **ret);
void rq_codec_free(rq_codec *c); /* NULL is allowed */

/* Appends the compressed form of `raw` to `out`. RQ_E_RESULT_TOO_LARGE: `raw` is longer than 2
 * GiB. */
RQ_NODISCARD
rq_err rq_codec_compress(rq_codec *c, rq_slice raw, rq_buf *out);
/* Compresses in pieces, so that the caller can do other work between the calls: compresses up to `most` bytes (at least
 * one) from the front of *raw, removes them from *raw, and appends the output that the library has produced so far.
 * Call it until *raw is empty; then `out` is complete. The bytes may differ from rq_codec_compress's. REQUIRES: after
 * an error, only rq_codec_free. */
RQ_NODISCARD
rq_err rq_codec_pack(rq_codec *c, rq_slice *raw, size_t most, rq_buf *out);
/* Decompresses untrusted bytes of a known length: fills out[0 … raw_len) exactly. RQ_E_MALFORMED:
 * the bytes are not of this form, or decompress to more or fewer bytes. Never writes past
 * raw_len. */
RQ_NODISCARD
rq_err rq_codec_fill(rq_codec *c, rq_slice packed, uint8_t *out, size_t raw_len);
/* Decompresses untrusted bytes of unknown length and appends them to `out`. RQ_E_MALFORMED;
 * RQ_E_RESULT_TOO_LARGE: they are more than raw_max. After an error `out` has up to raw_max + 1
 * bytes more. */
RQ_NODISCARD
rq_err rq_codec_append(rq_codec *c, rq_slice packed, size_t raw_max, rq_buf *out);

#endif
