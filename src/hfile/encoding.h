/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data block encodings. Within the room. HBASE: DataBlockEncoding.
 *
 * An ENCODED_DATA block's payload is be16 encoding id and the encoded cells. It is decoded when it
 * is loaded: everything behind that sees plain cells, as in a DATA block.
 *
 *   ROW_INDEX_V1   plain cells | be32 rows | be32 where each row begins… | be32 length of the cells
 */
#ifndef RQ_HFILE_ENCODING_H
#define RQ_HFILE_ENCODING_H

#include "base/buf.h"
#include "hfile/format.h"

/* NULL for a number HBase does not have. */
const char *rq__encoding_name(rq_block_encoding e);
bool rq__encoding_parse(rq_slice name, rq_block_encoding *ret);
bool rq__encoding_is_supported(rq_block_encoding e);

/* Where the plain cells stand in the payload. RQ_E_CORRUPT, RQ_E_UNSUPPORTED. */
RQ_NODISCARD
rq_err rq__encoding_decode(rq_block_encoding e, rq_slice payload, rq_slice *ret);

/* Appends the payload of plain cells, `rows` of which begin at these be32 offsets. */
RQ_NODISCARD
rq_err rq__encoding_encode(rq_block_encoding e, rq_slice cells, rq_slice rows, rq_buf *out);

#endif
