/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cell-block codecs, found by the Java class in a connection header. Inside the server a cell block
 * always consists of KeyValues (cell/cellblock.h), which nearly all clients use; the older
 * CellCodec is converted on input and output.
 *
 *   CellCodec:          be32 row length, row, be32 family length, family, be32 qualifier length,
 *                       qualifier, be64 timestamp, u8 type, be32 value length, value, be64 sequence
 *   CellCodecWithTags:  as CellCodec, with be32 tags length, tags before the sequence
 */
#ifndef RQ_RPC_CELL_CODEC_H
#define RQ_RPC_CELL_CODEC_H

#include "cell/cellblock.h"

typedef enum rq_cell_codec {
    RQ_CODEC_NONE, /* cells travel in the messages */
    RQ_CODEC_KEYVALUE,
    RQ_CODEC_KEYVALUE_TAGS,
    RQ_CODEC_CELL,
    RQ_CODEC_CELL_TAGS,
} rq_cell_codec;

/* False: the codec is unknown. */
bool rq__cell_codec_find(const char *java_class, rq_cell_codec *ret);

static inline bool rq__cell_codec_has_tags(rq_cell_codec c)
{
    return c == RQ_CODEC_KEYVALUE_TAGS || c == RQ_CODEC_CELL_TAGS;
}

/* Whether the codec's blocks are KeyValues, so that they need no conversion. */
static inline bool rq__cell_codec_is_native(rq_cell_codec c)
{
    return c == RQ_CODEC_KEYVALUE || c == RQ_CODEC_KEYVALUE_TAGS;
}

/* Appends the cells of `wire`, untrusted bytes of a non-native codec, to `ret`. */
RQ_NODISCARD
rq_err rq__cell_codec_decode(rq_cell_codec codec, rq_slice wire, rq_cellblock *ret, rq_error *why);
/* Appends KeyValues to `out` in a non-native codec. */
RQ_NODISCARD
rq_err rq__cell_codec_encode(rq_cell_codec codec, rq_slice keyvalues, rq_buf *out);

#endif
