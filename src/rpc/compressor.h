/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compression of cell blocks, found by the Java class in a connection header: one stream in the
 * library's own format (zlib, gzip, bzip2, zstd), or Hadoop's block framing (snappy, lz4, and
 * HBase's own zstd); see compress/codec.h.
 */
#ifndef RQ_RPC_COMPRESSOR_H
#define RQ_RPC_COMPRESSOR_H

#include "base/buf.h"
#include "base/bytes.h"

typedef struct rq_compressor rq_compressor;
typedef struct rq_codec rq_codec;

/* NULL: the codec is unknown. Static. */
const rq_compressor *rq__compressor_find(const char *java_class);
/* RQ_E_UNSUPPORTED: the library that it needs is not installed. */
RQ_NODISCARD
rq_err rq__compressor_check(const rq_compressor *c, rq_error *why);

/* Most bytes of a cell block, compressed or not, that take less than about 200 µs. */
size_t rq__compressor_short(const rq_compressor *c);
/* Whether a few bytes may take milliseconds to decompress, because the codec works on a large block
 * before it knows the length. NULL: no. */
bool rq__compressor_expands(const rq_compressor *c);

/* Compresses `raw` and appends it to `out`. */
RQ_NODISCARD
rq_err rq__compressor_pack(const rq_compressor *c, rq_slice raw, rq_buf *out);
/* The same in slices of a few milliseconds. *ret is the caller's (rq_codec_free). */
RQ_NODISCARD
rq_err rq__compressor_begin(const rq_compressor *c, rq_codec **ret);
/* Compresses some of *raw and moves *raw behind it. With the call after which *raw is empty, `out` is complete. */
RQ_NODISCARD
rq_err rq__compressor_step(const rq_compressor *c, rq_codec *codec, rq_slice *raw, rq_buf *out);
/* Decompresses `packed`, untrusted bytes, and appends at most raw_max bytes to `out`.
 * RQ_E_MALFORMED; RQ_E_RESULT_TOO_LARGE: it is longer. */
RQ_NODISCARD
rq_err rq__compressor_unpack(const rq_compressor *c, rq_slice packed, size_t raw_max, rq_buf *out,
                             rq_error *why);

/* The same in slices of a few milliseconds. Zeroed: not begun. */
typedef struct rq_unpacking {
    const rq_compressor *compressor;
    rq_codec *codec;
    rq_slice left; /* of the packed bytes */
    size_t len;    /* of all of them */
    size_t raw_max;
    rq_buf raw;
    rq_err rc;
    bool has_begun;
} rq_unpacking;

void rq__unpacking_begin(rq_unpacking *u, const rq_compressor *c, rq_slice packed, size_t raw_max);
/* A slice. True: it was the last one. */
bool rq__unpacking_step(rq_unpacking *u);
/* The bytes, and how it ended, as rq__compressor_unpack. */
RQ_NODISCARD
rq_err rq__unpacking_take(rq_unpacking *u, rq_buf *ret, rq_error *why);
void rq__unpacking_clear(rq_unpacking *u);

#endif
