/* SPDX-License-Identifier: Apache-2.0 */
/* Hadoop's block framing, and one chunk of it in LZ4, LZO and zstd (codec_priv.h). HBASE:
 * BlockCompressorStream, BlockDecompressorStream. */
#include "compress/codec_priv.h"

#include <stdlib.h>

/* --- LZ4 -------------------------------------------------------------------------------------- */

static size_t lz4_bound(const rq_codec *c, size_t raw_len)
{
    return (size_t)c->library.lz4.LZ4_compressBound((int)raw_len);
}

static rq_err lz4_chunk(rq_codec *c, rq_slice raw, uint8_t *out, size_t room, size_t *ret_len)
{
    int n = c->library.lz4.LZ4_compress_default((const char *)raw.ptr, (char *)out, (int)raw.len,
                                                (int)room);
    if (n <= 0) return RQ_E_NO_MEMORY; /* room is enough: LZ4_compressBound */
    *ret_len = (size_t)n;
    return RQ_OK;
}

static rq_err unlz4_chunk(rq_codec *c, rq_slice packed, uint8_t *out, size_t room, size_t *ret_len)
{
    if (packed.len > INT32_MAX) return RQ_E_MALFORMED;
    int n =
        c->library.lz4.LZ4_decompress_safe((const char *)packed.ptr, (char *)out, (int)packed.len,
                                           room > INT32_MAX ? INT32_MAX : (int)room);
    if (n < 0) return RQ_E_MALFORMED;
    *ret_len = (size_t)n;
    return RQ_OK;
}

const rq__chunks rq__chunks_lz4 = {lz4_bound, lz4_chunk, unlz4_chunk};

/* --- LZO -------------------------------------------------------------------------------------- */

static size_t lzo_bound(const rq_codec *c, size_t raw_len)
{
    (void)c;
    return raw_len + raw_len / 16 + 64 + 3; /* as in its documentation */
}

static rq_err lzo_chunk(rq_codec *c, rq_slice raw, uint8_t *out, size_t room, size_t *ret_len)
{
    if (c->lzo_state == NULL && (c->lzo_state = malloc(LZO1X_1_MEM_COMPRESS)) == NULL)
        return RQ_E_NO_MEMORY;
    lzo_uint n = room;
    int rc = c->library.lzo.lzo1x_1_compress(raw.ptr, raw.len, out, &n, c->lzo_state);
    RQ_ASSERT(rc == LZO_E_OK); /* its documentation: it cannot fail */
    *ret_len = n;
    return RQ_OK;
}

static rq_err unlzo_chunk(rq_codec *c, rq_slice packed, uint8_t *out, size_t room, size_t *ret_len)
{
    lzo_uint n = room;
    if (c->library.lzo.lzo1x_decompress_safe(packed.ptr, packed.len, out, &n, NULL) != LZO_E_OK)
        return RQ_E_MALFORMED;
    *ret_len = n;
    return RQ_OK;
}

const rq__chunks rq__chunks_lzo = {lzo_bound, lzo_chunk, unlzo_chunk};

/* --- zstd ------------------------------------------------------------------------------------- */

static size_t zstd_bound(const rq_codec *c, size_t raw_len)
{
    return c->library.zstd.ZSTD_compressBound(raw_len);
}

static rq_err zstd_chunk(rq_codec *c, rq_slice raw, uint8_t *out, size_t room, size_t *ret_len)
{
    if (c->zstd_out == NULL && (c->zstd_out = c->library.zstd.ZSTD_createCCtx()) == NULL)
        return RQ_E_NO_MEMORY;
    int level = c->options.level == 0 ? ZSTD_CLEVEL_DEFAULT : c->options.level;
    *ret_len = c->library.zstd.ZSTD_compressCCtx(c->zstd_out, out, room, raw.ptr, raw.len, level);
    return c->library.zstd.ZSTD_isError(*ret_len) ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err unzstd_chunk(rq_codec *c, rq_slice packed, uint8_t *out, size_t room, size_t *ret_len)
{
    if (c->zstd_in == NULL && (c->zstd_in = c->library.zstd.ZSTD_createDCtx()) == NULL)
        return RQ_E_NO_MEMORY;
    *ret_len = c->library.zstd.ZSTD_decompressDCtx(c->zstd_in, out, room, packed.ptr, packed.len);
    return c->library.zstd.ZSTD_isError(*ret_len) ? RQ_E_MALFORMED : RQ_OK;
}

const rq__chunks rq__chunks_zstd = {zstd_bound, zstd_chunk, unzstd_chunk};

/* --- framing ---------------------------------------------------------------------------------- */

rq_err rq__blocks_compress(rq_codec *c, rq_slice raw, rq_buf *out)
{
    size_t chunk_max = c->options.chunk_max;
    if (raw.len == 0) return rq_buf_append_be32(out, 0);
    for (size_t done = 0; done < raw.len;) {
        size_t len = raw.len - done < chunk_max ? raw.len - done : chunk_max, packed_len;
        size_t bound = c->chunks->bound(c, len);
        RQ_TRY(rq_buf_reserve(out, 8 + bound));
        uint8_t *at = out->ptr + out->len;
        RQ_TRY(
            c->chunks->compress(c, rq_slice_of(raw.ptr + done, len), at + 8, bound, &packed_len));
        rq_put_be32(at, (uint32_t)len);
        rq_put_be32(at + 4, (uint32_t)packed_len);
        out->len += 8 + packed_len;
        done += len;
    }
    return RQ_OK;
}

/* The chunks of one frame, together frame_len bytes. */
static rq_err frame_fill(rq_codec *c, rq_cursor *in, uint8_t *out, size_t frame_len)
{
    for (size_t done = 0; done < frame_len;) {
        uint32_t packed_len;
        rq_slice chunk;
        size_t len;
        if (!rq_cursor_be32(in, &packed_len) || !rq_cursor_bytes(in, packed_len, &chunk))
            return RQ_E_MALFORMED;
        RQ_TRY(c->chunks->decompress(c, chunk, out + done, frame_len - done, &len));
        if (len == 0) return RQ_E_MALFORMED;
        done += len;
    }
    return RQ_OK;
}

rq_err rq__blocks_fill(rq_codec *c, rq_slice packed, uint8_t *out, size_t raw_len)
{
    rq_cursor in = rq_cursor_of(packed);
    size_t done = 0;
    /* Empty frames may follow: Hadoop's stream writes one behind a large write. */
    while (done < raw_len || rq_cursor_left(&in) > 0) {
        uint32_t frame_len;
        if (!rq_cursor_be32(&in, &frame_len) || frame_len > raw_len - done) return RQ_E_MALFORMED;
        RQ_TRY(frame_fill(c, &in, out + done, frame_len));
        done += frame_len;
    }
    return RQ_OK;
}

rq_err rq__blocks_append(rq_codec *c, rq_slice packed, size_t raw_max, rq_buf *out)
{
    rq_cursor in = rq_cursor_of(packed);
    size_t start = out->len;
    while (rq_cursor_left(&in) > 0) {
        uint32_t frame_len;
        if (!rq_cursor_be32(&in, &frame_len)) return RQ_E_MALFORMED;
        if (frame_len > raw_max - (out->len - start)) return RQ_E_RESULT_TOO_LARGE;
        RQ_TRY(rq_buf_reserve(out, frame_len));
        RQ_TRY(frame_fill(c, &in, out->ptr + out->len, frame_len));
        out->len += frame_len;
    }
    return RQ_OK;
}
