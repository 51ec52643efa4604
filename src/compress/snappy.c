/* SPDX-License-Identifier: Apache-2.0 */
/* One chunk of Hadoop's block framing in Snappy (codec_priv.h). */
#include "compress/codec_priv.h"

static size_t snappy_bound(const rq_codec *c, size_t raw_len)
{
    return c->library.snappy.snappy_max_compressed_length(raw_len);
}

static rq_err snappy_chunk(rq_codec *c, rq_slice raw, uint8_t *out, size_t room, size_t *ret_len)
{
    *ret_len = room;
    return c->library.snappy.snappy_compress((const char *)raw.ptr, raw.len, (char *)out,
                                             ret_len) == SNAPPY_OK
               ? RQ_OK
               : RQ_E_NO_MEMORY;
}

static rq_err unsnappy_chunk(rq_codec *c, rq_slice packed, uint8_t *out, size_t room,
                             size_t *ret_len)
{
    const char *p = (const char *)packed.ptr;
    if (c->library.snappy.snappy_uncompressed_length(p, packed.len, ret_len) != SNAPPY_OK ||
        *ret_len > room ||
        c->library.snappy.snappy_uncompress(p, packed.len, (char *)out, ret_len) != SNAPPY_OK)
        return RQ_E_MALFORMED;
    return RQ_OK;
}

const rq__chunks rq__chunks_snappy = {snappy_bound, snappy_chunk, unsnappy_chunk};
