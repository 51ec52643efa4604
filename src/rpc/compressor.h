/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compression of whole cell blocks, by the Java class a connection header names.
 *
 * Hadoop's codecs frame in two ways: as one stream of the library's own format (zlib, gzip, bzip2,
 * zstd),
 * or in blocks: be32 raw length, then (be32 compressed length, bytes) until the raw length is
 * reached, repeated to the end (snappy, lz4, and HBase's own zstd).
 */
#ifndef RQ_RPC_COMPRESSOR_H
#define RQ_RPC_COMPRESSOR_H

#include "base/buf.h"
#include "base/bytes.h"

typedef struct rq_compressor rq_compressor;

/* NULL: we have no such codec. Static. */
const rq_compressor *rq_compressor_find(const char *java_class);

/* As many bytes of a cell block, packed or not, take less than about 200 µs. */
size_t rq_compressor_short(const rq_compressor *c);
/* A few bytes may take milliseconds to unpack: the codec works on a large block before it tells how
 * much there is. NULL: no. */
bool rq_compressor_expands(const rq_compressor *c);

/* Appends. */
RQ_NODISCARD
rq_err rq_compressor_pack(const rq_compressor *c, rq_slice raw, rq_buf *out);
/* Appends at most raw_max bytes; RQ_E_MALFORMED, RQ_E_RESULT_TOO_LARGE. */
RQ_NODISCARD
rq_err rq_compressor_unpack(const rq_compressor *c, rq_slice packed, size_t raw_max, rq_buf *out,
                            rq_error *why);

#endif
