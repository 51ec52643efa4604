/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data block encodings. Within the room. HBASE: DataBlockEncoding.
 *
 * An ENCODED_DATA block's payload is be16 encoding id and the encoded cells. ROW_INDEX_V1's are
 * plain cells and are all that is kept of the block; the others stay as they are (delta.h).
 *
 *   ROW_INDEX_V1   plain cells | be32 rows | be32 where each row begins… | be32 length of the cells
 *   PREFIX, DIFF, FAST_DIFF   delta.h
 */
#ifndef RQ_HFILE_ENCODING_H
#define RQ_HFILE_ENCODING_H

#include "base/buf.h"
#include "hfile/format.h"

/* NULL for a number HBase does not have. */
const char *rq__encoding_name(rq_block_encoding e);
bool rq__encoding_parse(rq_slice name, rq_block_encoding *ret);

/* HBASE: KeyValue.Type; the numbers below 16 as bits. */
static inline bool rq__is_cell_type(uint8_t type)
{
    return type < 16 ? (0x5511u >> type & 1) != 0 : type == RQ_TYPE_MAXIMUM;
}

/* Where the cells stand in the payload, in their form in memory but for a delta encoding's tags.
 * RQ_E_CORRUPT. */
RQ_NODISCARD
rq_err rq__encoding_decode(rq_block_encoding e, rq_slice payload, rq_slice *ret);

/* Appends ROW_INDEX_V1's payload of plain cells, `rows` of which begin at these be32 offsets. */
RQ_NODISCARD
rq_err rq__encoding_put_row_index(rq_slice cells, rq_slice rows, rq_buf *out);

#endif
