/* SPDX-License-Identifier: Apache-2.0 */
/* A codec's life, and its calls by form; contract in codec.h. */
#include "compress/codec_priv.h"

#include <stdlib.h>

/* Bytes by which the output of a stream of unknown length grows. */
#define STREAM_STEP ((size_t)16 * 1024)

/* A zstd frame begins with these bytes; as a raw length of Hadoop's framing they would be 683
 * MB. */
static const uint8_t zstd_magic[4] = {0x28, 0xb5, 0x2f, 0xfd};

static const struct {
    const rq__stream *stream;
    const rq__chunks *chunks;
} forms[] = {
    [RQ_FORM_COPY] = {NULL, NULL},
    [RQ_FORM_ZLIB] = {&rq__stream_zlib, NULL},
    [RQ_FORM_GZIP] = {&rq__stream_gzip, NULL},
    [RQ_FORM_BZIP2] = {&rq__stream_bzip2, NULL},
    [RQ_FORM_ZSTD] = {&rq__stream_zstd, NULL},
    [RQ_FORM_SNAPPY_BLOCKS] = {NULL, &rq__chunks_snappy},
    [RQ_FORM_LZ4_BLOCKS] = {NULL, &rq__chunks_lz4},
    [RQ_FORM_LZO_BLOCKS] = {NULL, &rq__chunks_lzo},
    [RQ_FORM_ZSTD_BLOCKS] = {NULL, &rq__chunks_zstd},
};

rq_err rq_form_check(rq_form form, rq_error *why)
{
    rq__library_table library;
    return rq__form_load(form, &library, why);
}

rq_err rq_codec_new(const rq_codec_options *o, rq_codec **ret)
{
    rq_codec *c = calloc(1, sizeof *c);
    if (c == NULL) return RQ_E_NO_MEMORY;
    rq_err rc = rq__form_load(o->form, &c->library, NULL);
    if (rc != RQ_OK) {
        free(c);
        return rc;
    }
    c->options = *o;
    c->stream = forms[o->form].stream;
    c->chunks = forms[o->form].chunks;
    *ret = c;
    return RQ_OK;
}

static void end_unpacking(rq_codec *c)
{
    if (c->unpacks && c->stream->end != NULL) c->stream->end(c);
    c->unpacks = false;
}

void rq_codec_free(rq_codec *c)
{
    if (c == NULL) return;
    if (c->bzip_ready) (void)c->library.bzip2.BZ2_bzCompressEnd(&c->bzip);
    end_unpacking(c);
    if (c->deflate_ready) (void)c->library.zlib.deflateEnd(&c->deflate);
    if (c->inflate_ready) (void)c->library.zlib.inflateEnd(&c->inflate);
    if (c->zstd_out != NULL) (void)c->library.zstd.ZSTD_freeCCtx(c->zstd_out);
    if (c->zstd_in != NULL) (void)c->library.zstd.ZSTD_freeDCtx(c->zstd_in);
    free(c->lzo_state);
    free(c);
}

rq_err rq_codec_compress(rq_codec *c, rq_slice raw, rq_buf *out)
{
    if (raw.len > INT32_MAX) return RQ_E_RESULT_TOO_LARGE;
    if (c->stream != NULL) return c->stream->compress(c, raw, out);
    if (c->chunks != NULL) return rq__blocks_compress(c, raw, out);
    return rq_buf_append(out, raw.ptr, raw.len);
}

static rq_err stream_pack(rq_codec *c, rq_slice in, bool last, rq_buf *out)
{
    bool ended = false;
    while (in.len > 0 || (last && !ended)) {
        RQ_TRY(rq_buf_reserve(out, STREAM_STEP));
        size_t made = rq_buf_take_room(out);
        if (made > INT32_MAX) made = INT32_MAX;
        RQ_TRY(c->stream->pack(c, &in, out->ptr + out->len, &made, last, &ended));
        out->len += made;
    }
    return RQ_OK;
}

rq_err rq_codec_pack(rq_codec *c, rq_slice *raw, size_t most, rq_buf *out)
{
    if (raw->len > INT32_MAX) return RQ_E_RESULT_TOO_LARGE;
    size_t chunk =
        c->chunks == NULL ? 1 : c->options.chunk_max; /* a frame per piece: of whole chunks */
    most = most < chunk ? chunk : most - most % chunk;
    size_t len = raw->len < most ? raw->len : most;
    rq_slice piece = rq_slice_of(raw->ptr, len);
    if (c->stream != NULL && !c->packs) RQ_TRY(c->stream->pack_begin(c, raw->len));
    c->packs = raw->len > len;
    *raw = rq_slice_of(raw->ptr + len, raw->len - len);
    if (c->stream != NULL) return stream_pack(c, piece, raw->len == 0, out);
    if (c->chunks != NULL) return rq__blocks_compress(c, piece, out);
    return rq_buf_append(out, piece.ptr, piece.len);
}

/* --- a known length --------------------------------------------------------------------------- */

static rq_err stream_fill(rq_codec *c, rq_slice in, uint8_t *out, size_t raw_len)
{
    if (in.len == 0) return RQ_E_MALFORMED;
    uint8_t nothing; /* the libraries want a pointer even without room */
    size_t done = 0;
    bool ended = false;
    while (!ended) {
        size_t in_before = in.len, made = raw_len - done;
        rq_err rc =
            c->stream->step(c, &in, raw_len == 0 ? &nothing : out + done, &made, true, &ended);
        if (rc != RQ_OK) return rc;
        done += made;
        if (!ended && made == 0 && in.len == in_before) return RQ_E_MALFORMED; /* cut off */
    }
    return done == raw_len && in.len == 0 ? RQ_OK : RQ_E_MALFORMED;
}

static rq_err zstd_fill(rq_codec *c, rq_slice packed, uint8_t *out, size_t raw_len)
{
    size_t len;
    RQ_TRY(rq__chunks_zstd.decompress(c, packed, out, raw_len, &len));
    return len == raw_len ? RQ_OK : RQ_E_MALFORMED;
}

static bool is_zstd_frame(rq_slice packed)
{
    return packed.len >= sizeof zstd_magic &&
           memcmp(packed.ptr, zstd_magic, sizeof zstd_magic) == 0;
}

rq_err rq_codec_fill(rq_codec *c, rq_slice packed, uint8_t *out, size_t raw_len)
{
    const rq_codec_options *o = &c->options;
    if (packed.len > UINT32_MAX || raw_len >= UINT32_MAX) return RQ_E_MALFORMED;
    if (o->form == RQ_FORM_COPY) {
        if (packed.len != raw_len) return RQ_E_MALFORMED;
        if (raw_len > 0) memcpy(out, packed.ptr, raw_len);
        return RQ_OK;
    }
    /* One call for a whole frame is faster than a stream. */
    if (o->form == RQ_FORM_ZSTD ||
        (o->form == RQ_FORM_ZSTD_BLOCKS && o->reads_frames && is_zstd_frame(packed)))
        return zstd_fill(c, packed, out, raw_len);
    if (c->chunks != NULL) return rq__blocks_fill(c, packed, out, raw_len);
    RQ_TRY(c->stream->begin(c));
    rq_err rc = stream_fill(c, packed, out, raw_len);
    if (c->stream->end != NULL) c->stream->end(c);
    return rc;
}

/* --- an unknown length ------------------------------------------------------------------------ */

/* Reserves room for one more step, but never for more than raw_max + 1 bytes behind `start`. */
static rq_err step_room(rq_buf *out, size_t start, size_t raw_max, size_t *ret)
{
    size_t have = out->len - start;
    if (have > raw_max) return RQ_E_RESULT_TOO_LARGE;
    RQ_TRY(rq_buf_reserve(out, STREAM_STEP));
    size_t room = rq_buf_take_room(out);
    size_t left = raw_max - have + 1; /* one more byte than allowed, to detect too much output */
    *ret = room < left ? room : left;
    if (*ret > INT32_MAX) *ret = INT32_MAX;
    return RQ_OK;
}

/* Of the stream, or the streams that follow each other. */
static rq_err stream_unpack(rq_codec *c, rq_slice *in, size_t most, size_t raw_max, rq_buf *out,
                            bool *ret_ended)
{
    size_t rest = in->len > most ? in->len - most : 0; /* for later calls */
    size_t until = most < SIZE_MAX - out->len ? out->len + most : SIZE_MAX;
    while (!c->unpack_ended || in->len > 0) {
        if ((rest > 0 && in->len <= rest) || out->len >= until) return RQ_OK;
        if (c->unpack_ended) {
            if (!c->stream->joins) return RQ_E_MALFORMED;
            RQ_TRY(c->stream->begin(c));
        }
        rq_slice piece = rq_slice_of(in->ptr, in->len - rest);
        size_t made;
        RQ_TRY(step_room(out, c->unpack_from, raw_max, &made));
        if (made > until - out->len) made = until - out->len;
        RQ_TRY(c->stream->step(c, &piece, out->ptr + out->len, &made, false, &c->unpack_ended));
        bool goes_on = made > 0 || piece.len + rest < in->len;
        out->len += made;
        *in = rq_slice_of(piece.ptr, piece.len + rest);
        if (!c->unpack_ended && !goes_on) return RQ_E_MALFORMED; /* cut off */
    }
    *ret_ended = true;
    return out->len - c->unpack_from > raw_max ? RQ_E_RESULT_TOO_LARGE : RQ_OK;
}

static rq_err begin_unpacking(rq_codec *c, size_t len, size_t from)
{
    if (len == 0) return RQ_E_MALFORMED;
    if (len > UINT32_MAX) return RQ_E_RESULT_TOO_LARGE;
    RQ_TRY(c->stream->begin(c));
    c->unpacks = true;
    c->unpack_ended = false;
    c->unpack_from = from;
    return RQ_OK;
}

rq_err rq_codec_unpack(rq_codec *c, rq_slice *packed, size_t most, size_t raw_max, rq_buf *out,
                       bool *ret_ended)
{
    if (c->stream == NULL) {
        *ret_ended = true;
        return rq_codec_append(c, *packed, raw_max, out);
    }
    *ret_ended = false;
    if (!c->unpacks) RQ_TRY(begin_unpacking(c, packed->len, out->len));
    rq_err rc = stream_unpack(c, packed, most, raw_max, out, ret_ended);
    if (rc != RQ_OK || *ret_ended) end_unpacking(c);
    return rc;
}

rq_err rq_codec_append(rq_codec *c, rq_slice packed, size_t raw_max, rq_buf *out)
{
    if (packed.len > UINT32_MAX) return RQ_E_RESULT_TOO_LARGE;
    if (c->options.form == RQ_FORM_COPY)
        return packed.len > raw_max ? RQ_E_RESULT_TOO_LARGE
                                    : rq_buf_append(out, packed.ptr, packed.len);
    if (c->chunks != NULL) return rq__blocks_append(c, packed, raw_max, out);
    bool ended;
    return rq_codec_unpack(c, &packed, SIZE_MAX, raw_max, out, &ended);
}
