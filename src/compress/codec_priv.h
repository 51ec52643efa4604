/* SPDX-License-Identifier: Apache-2.0 */
/* A codec's state, and the two kinds of forms: streams (streams.c) and blocks (blocks.c). */
#ifndef RQ_COMPRESS_CODEC_PRIV_H
#define RQ_COMPRESS_CODEC_PRIV_H

#include "compress/libraries.h"

/* One stream in a library's own format. */
typedef struct rq__stream {
    rq_err (*compress)(rq_codec *c, rq_slice raw, rq_buf *out);
    /* Starts to compress `raw_len` bytes in pieces. RQ_E_NO_MEMORY. */
    rq_err (*pack_begin)(rq_codec *c, size_t raw_len);
    /* Compresses: advances `in`, writes at most *made bytes and sets *made to the number written. `last`: no input
     * follows `in`; *ended: the stream is complete. RQ_E_NO_MEMORY. */
    rq_err (*pack)(rq_codec *c, rq_slice *in, uint8_t *out, size_t *made, bool last, bool *ended);
    /* Starts to decompress. RQ_E_NO_MEMORY. */
    rq_err (*begin)(rq_codec *c);
    /* Decompresses: advances `in`, writes at most *made bytes and sets *made to the number written.
     * `rest`: `out` has room for the rest of the stream. RQ_E_MALFORMED, RQ_E_NO_MEMORY. */
    rq_err (*step)(rq_codec *c, rq_slice *in, uint8_t *out, size_t *made, bool rest, bool *ended);
    void (*end)(rq_codec *c); /* after each begin; NULL: nothing to release */
    bool joins;               /* another stream may follow the first */
} rq__stream;

/* One chunk of Hadoop's framing. */
typedef struct rq__chunks {
    size_t (*bound)(const rq_codec *c, size_t raw_len);
    /* `room` is at least the bound. RQ_E_NO_MEMORY. */
    rq_err (*compress)(rq_codec *c, rq_slice raw, uint8_t *out, size_t room, size_t *ret_len);
    /* Writes at most `room` bytes. RQ_E_MALFORMED, RQ_E_NO_MEMORY. */
    rq_err (*decompress)(rq_codec *c, rq_slice packed, uint8_t *out, size_t room, size_t *ret_len);
} rq__chunks;

struct rq_codec {
    rq_codec_options options;
    const rq__stream *stream; /* NULL: blocks, or a copy */
    const rq__chunks *chunks; /* NULL: a stream, or a copy */
    z_stream deflate, inflate;
    bool deflate_ready, inflate_ready;
    bz_stream bunzip, bzip;
    bool unpacks;       /* rq_codec_unpack has begun and not ended */
    bool unpack_ended;  /* its stream, after which another one may follow */
    size_t unpack_from; /* length of its result when it began */
    bool packs;         /* rq_codec_pack has begun and not ended */
    bool bzip_ready;    /* and with it `bzip` */
    ZSTD_CCtx *zstd_out;
    ZSTD_DCtx *zstd_in;
    void *lzo_state;
    rq__library_table library; /* of the form */
};

extern const rq__stream rq__stream_zlib, rq__stream_gzip, rq__stream_bzip2, rq__stream_zstd;
extern const rq__chunks rq__chunks_snappy, rq__chunks_lz4, rq__chunks_lzo, rq__chunks_zstd;

rq_err rq__blocks_compress(rq_codec *c, rq_slice raw, rq_buf *out);
rq_err rq__blocks_fill(rq_codec *c, rq_slice packed, uint8_t *out, size_t raw_len);
rq_err rq__blocks_append(rq_codec *c, rq_slice packed, size_t raw_max, rq_buf *out);

#endif
