/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cell-block codecs, by the Java class a connection header names. Inside the server a cell block is
 * always KeyValues (cell/cellblock.h), which is what nearly every client speaks; the older
 * CellCodec is translated on the way in and out.
 *
 *   CellCodec:          be32 row length, row, be32 family length, family, be32 qualifier length,
 *                       qualifier, be64 timestamp, u8 type, be32 value length, value, be64 sequence
 *   CellCodecWithTags:  the same with be32 tags length, tags before the sequence
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

/* False: we have no such codec. */
bool rq_cell_codec_find(const char *java_class, rq_cell_codec *ret);

static inline bool rq_cell_codec_has_tags(rq_cell_codec c)
{
    return c == RQ_CODEC_KEYVALUE_TAGS || c == RQ_CODEC_CELL_TAGS;
}

/* Whether blocks of this codec are KeyValues as they are. */
static inline bool rq_cell_codec_is_native(rq_cell_codec c)
{
    return c == RQ_CODEC_KEYVALUE || c == RQ_CODEC_KEYVALUE_TAGS;
}

/* Appends the cells of `wire`, untrusted bytes of a codec that is not native, to `ret`. */
RQ_NODISCARD
rq_err rq_cell_codec_decode(rq_cell_codec codec, rq_slice wire, rq_cellblock *ret, rq_error *why);
/* Appends our KeyValues to `out` in a codec that is not native. */
RQ_NODISCARD
rq_err rq_cell_codec_encode(rq_cell_codec codec, rq_slice keyvalues, rq_buf *out);

#endif
