/* SPDX-License-Identifier: Apache-2.0 */
/* The form of each compression on disk (compression.h). Its names are in format.c.
 *
 * Hadoop's framing divides the input into chunks that fit into the reader's buffer. Hadoop's
 * codecs default to 256 KiB less an overhead (snappy's is the largest: a sixth and 32 bytes), so
 * each of them can read a chunk of CHUNK bytes, which is less. */
#include "hfile/compression.h"

#define CHUNK (192 * 1024)
/* aircompressor's LzoCodec holds 64 KiB. */
#define LZO_CHUNK (48 * 1024)

static const rq_form forms[RQ_COMPRESSION_COUNT] = {
    [RQ_COMPRESSION_LZO] = RQ_FORM_LZO_BLOCKS,   [RQ_COMPRESSION_GZ] = RQ_FORM_GZIP,
    [RQ_COMPRESSION_NONE] = RQ_FORM_COPY,        [RQ_COMPRESSION_SNAPPY] = RQ_FORM_SNAPPY_BLOCKS,
    [RQ_COMPRESSION_LZ4] = RQ_FORM_LZ4_BLOCKS,   [RQ_COMPRESSION_BZIP2] = RQ_FORM_BZIP2,
    [RQ_COMPRESSION_ZSTD] = RQ_FORM_ZSTD_BLOCKS,
};

rq_err rq_compression_check(rq_compression c, rq_error *why)
{
    if ((unsigned)c >= RQ_COMPRESSION_COUNT ||
        (forms[c] == RQ_FORM_COPY && c != RQ_COMPRESSION_NONE))
        return rq_fail(why, RQ_E_UNSUPPORTED, "compression %s is not supported",
                       (unsigned)c < RQ_COMPRESSION_COUNT ? rq_compression_name(c)
                                                          : "of a newer version");
    return rq_form_check(forms[c], why);
}

rq_err rq__compression_codec(rq_compression c, int level, bool zstd_bare, rq_codec **ret)
{
    RQ_TRY(rq_compression_check(c, NULL));
    rq_codec_options o = {
        .form = forms[c],
        .level = c == RQ_COMPRESSION_BZIP2 ? 0 : level,
        .chunk_max = c == RQ_COMPRESSION_LZO ? LZO_CHUNK : CHUNK,
    };
    if (c == RQ_COMPRESSION_ZSTD) {
        o.reads_frames = true;
        if (zstd_bare) o.form = RQ_FORM_ZSTD;
    }
    return rq_codec_new(&o, ret);
}
