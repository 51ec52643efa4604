/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data block encodings. Within the room. HBASE: DataBlockEncoding.
 *
 * An ENCODED_DATA block's payload is be16 encoding id and the encoded cells. ROW_INDEX_V1 contains
 * plain cells, which are all that is kept in memory; the other encodings are kept as they are
 * (delta.h).
 *
 *   ROW_INDEX_V1   plain cells | be32 rows | be32 offset of each row… | be32 length of the cells
 *   PREFIX, DIFF, FAST_DIFF   delta.h
 */
#ifndef RQ_HFILE_ENCODING_H
#define RQ_HFILE_ENCODING_H

#include "base/buf.h"
#include "hfile/format.h"

/* NULL: HBase has no such number. */
const char *rq__encoding_name(rq_block_encoding e);
bool rq__encoding_parse(rq_slice name, rq_block_encoding *ret);

/* HBASE: KeyValue.Type; the numbers below 16 as bits. */
static inline bool rq__is_cell_type(uint8_t type)
{
    return type < 16 ? (0x5511u >> type & 1) != 0 : type == RQ_TYPE_MAXIMUM;
}

/* Returns the part of the payload that is kept in memory (tags of a delta encoding are still
 * compressed). RQ_E_CORRUPT. */
RQ_NODISCARD
rq_err rq__encoding_decode(rq_block_encoding e, rq_slice payload, rq_slice *ret);

/* Appends a ROW_INDEX_V1 payload: `cells` are plain cells, `rows` the be32 offsets of the rows
 * in them. */
RQ_NODISCARD
rq_err rq__encoding_put_row_index(rq_slice cells, rq_slice rows, rq_buf *out);

#endif
