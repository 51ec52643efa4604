/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of zlib, bzip2 and zstd (codec_priv.h). */
#include "compress/codec_priv.h"

enum { WINDOW_ZLIB = 15, WINDOW_GZIP = 15 + 16 }; /* zlib's windowBits */

/* --- zlib and gzip ---------------------------------------------------------------------------- */

static int window_of(const rq_codec *c)
{
    return c->options.form == RQ_FORM_GZIP ? WINDOW_GZIP : WINDOW_ZLIB;
}

static rq_err zlib_pack_begin(rq_codec *c, size_t raw_len)
{
    z_stream *z = &c->deflate;
    (void)raw_len;
    if (c->deflate_ready) {
        (void)c->library.zlib.deflateReset(z);
        return RQ_OK;
    }
    int level = c->options.level == 0 ? Z_DEFAULT_COMPRESSION : c->options.level;
    int rc = c->library.zlib.deflateInit2_(z, level, Z_DEFLATED, window_of(c), 8,
                                           Z_DEFAULT_STRATEGY, ZLIB_VERSION, (int)sizeof *z);
    c->deflate_ready = rc == Z_OK;
    return c->deflate_ready ? RQ_OK : RQ_E_NO_MEMORY;
}

static rq_err zlib_pack(rq_codec *c, rq_slice *in, uint8_t *out, size_t *made, bool last,
                        bool *ended)
{
    z_stream *z = &c->deflate;
    size_t room = *made;
    z->next_in = (Bytef *)(uintptr_t)in->ptr;
    z->avail_in = (uInt)in->len;
    z->next_out = out;
    z->avail_out = (uInt)room;
    *ended = c->library.zlib.deflate(z, last ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_END;
    *in = rq_slice_of(in->ptr + (in->len - z->avail_in), z->avail_in);
    *made = room - z->avail_out;
    return RQ_OK;
}

static rq_err zlib_compress(rq_codec *c, rq_slice raw, rq_buf *out)
{
    z_stream *z = &c->deflate;
    RQ_TRY(zlib_pack_begin(c, raw.len));
    size_t bound = c->library.zlib.deflateBound(z, raw.len);
    RQ_TRY(rq_buf_reserve(out, bound));
    z->next_in = (Bytef *)(uintptr_t)raw.ptr;
    z->avail_in = (uInt)raw.len;
    z->next_out = out->ptr + out->len;
    z->avail_out = (uInt)bound;
    int rc = c->library.zlib.deflate(z, Z_FINISH);
    RQ_ASSERT(rc == Z_STREAM_END); /* deflateBound's promise */
    out->len += bound - z->avail_out;
    return RQ_OK;
}

static rq_err zlib_begin(rq_codec *c)
{
    z_stream *z = &c->inflate;
    if (c->inflate_ready) return c->library.zlib.inflateReset(z) == Z_OK ? RQ_OK : RQ_E_MALFORMED;
    int rc = c->library.zlib.inflateInit2_(z, window_of(c), ZLIB_VERSION, (int)sizeof *z);
    c->inflate_ready = rc == Z_OK;
    return c->inflate_ready ? RQ_OK : RQ_E_NO_MEMORY;
}

static rq_err zlib_step(rq_codec *c, rq_slice *in, uint8_t *out, size_t *made, bool rest,
                        bool *ended)
{
    z_stream *z = &c->inflate;
    size_t room = *made;
    z->next_in = (Bytef *)(uintptr_t)in->ptr;
    z->avail_in = (uInt)in->len;
    z->next_out = out;
    z->avail_out = (uInt)room;
    /* With Z_FINISH zlib does without a copy of its window. */
    int rc = c->library.zlib.inflate(z, rest ? Z_FINISH : Z_NO_FLUSH);
    *in = rq_slice_of(in->ptr + (in->len - z->avail_in), z->avail_in);
    *made = room - z->avail_out;
    *ended = rc == Z_STREAM_END;
    if (rc == Z_MEM_ERROR) return RQ_E_NO_MEMORY;
    return rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR ? RQ_OK : RQ_E_MALFORMED;
}

const rq__stream rq__stream_zlib = {
    zlib_compress, zlib_pack_begin, zlib_pack, zlib_begin, zlib_step, NULL, false};
const rq__stream rq__stream_gzip = {
    zlib_compress, zlib_pack_begin, zlib_pack, zlib_begin, zlib_step, NULL, true};

/* --- bzip2 ------------------------------------------------------------------------------------ */

#define BZIP2_BLOCK_BYTES 100000

static int bzip2_level(const rq_codec *c, size_t raw_len)
{
    if (c->options.level > 0) return c->options.level;
    /* A block size no larger than the input saves memory on both sides. */
    size_t blocks = (raw_len + BZIP2_BLOCK_BYTES - 1) / BZIP2_BLOCK_BYTES;
    return blocks < 1 ? 1 : blocks > 9 ? 9 : (int)blocks;
}

static rq_err bzip2_compress(rq_codec *c, rq_slice raw, rq_buf *out)
{
    /* The library's own bound is one percent more, and 600 bytes. */
    size_t bound = raw.len + raw.len / 100 + 1000;
    RQ_TRY(rq_buf_reserve(out, bound));
    unsigned len = (unsigned)bound;
    char nothing = 0;
    char *in = raw.len == 0 ? &nothing : (char *)(uintptr_t)raw.ptr;
    int rc = c->library.bzip2.BZ2_bzBuffToBuffCompress(
        (char *)out->ptr + out->len, &len, in, (unsigned)raw.len, bzip2_level(c, raw.len), 0, 0);
    if (rc == BZ_MEM_ERROR) return RQ_E_NO_MEMORY;
    RQ_ASSERT(rc == BZ_OK);
    out->len += len;
    return RQ_OK;
}

static rq_err bzip2_pack_begin(rq_codec *c, size_t raw_len)
{
    if (c->bzip_ready) (void)c->library.bzip2.BZ2_bzCompressEnd(&c->bzip);
    c->bzip = (bz_stream){0};
    c->bzip_ready =
        c->library.bzip2.BZ2_bzCompressInit(&c->bzip, bzip2_level(c, raw_len), 0, 0) == BZ_OK;
    return c->bzip_ready ? RQ_OK : RQ_E_NO_MEMORY;
}

static rq_err bzip2_pack(rq_codec *c, rq_slice *in, uint8_t *out, size_t *made, bool last,
                         bool *ended)
{
    bz_stream *s = &c->bzip;
    size_t room = *made;
    s->next_in = (char *)(uintptr_t)in->ptr;
    s->avail_in = (unsigned)in->len;
    s->next_out = (char *)out;
    s->avail_out = (unsigned)room;
    *ended = c->library.bzip2.BZ2_bzCompress(s, last ? BZ_FINISH : BZ_RUN) == BZ_STREAM_END;
    *in = rq_slice_of(in->ptr + (in->len - s->avail_in), s->avail_in);
    *made = room - s->avail_out;
    return RQ_OK;
}

static rq_err bzip2_begin(rq_codec *c)
{
    c->bunzip = (bz_stream){0};
    return c->library.bzip2.BZ2_bzDecompressInit(&c->bunzip, 0, 0) == BZ_OK ? RQ_OK
                                                                            : RQ_E_NO_MEMORY;
}

static rq_err bzip2_step(rq_codec *c, rq_slice *in, uint8_t *out, size_t *made, bool rest,
                         bool *ended)
{
    (void)rest;
    bz_stream *s = &c->bunzip;
    size_t room = *made;
    s->next_in = (char *)(uintptr_t)in->ptr;
    s->avail_in = (unsigned)in->len;
    s->next_out = (char *)out;
    s->avail_out = (unsigned)room;
    /* If the last byte fills the output, the end is reported by the next call. */
    int rc = c->library.bzip2.BZ2_bzDecompress(s);
    *in = rq_slice_of(in->ptr + (in->len - s->avail_in), s->avail_in);
    *made = room - s->avail_out;
    *ended = rc == BZ_STREAM_END;
    if (rc == BZ_MEM_ERROR) return RQ_E_NO_MEMORY;
    return rc == BZ_OK || rc == BZ_STREAM_END ? RQ_OK : RQ_E_MALFORMED;
}

static void bzip2_end(rq_codec *c)
{
    (void)c->library.bzip2.BZ2_bzDecompressEnd(&c->bunzip); /* up to 3.7 MB: not kept */
}

const rq__stream rq__stream_bzip2 = {bzip2_compress, bzip2_pack_begin, bzip2_pack, bzip2_begin,
                                     bzip2_step,     bzip2_end,        false};

/* --- zstd ------------------------------------------------------------------------------------- */

static rq_err zstd_compress(rq_codec *c, rq_slice raw, rq_buf *out)
{
    size_t bound = rq__chunks_zstd.bound(c, raw.len), len;
    RQ_TRY(rq_buf_reserve(out, bound));
    RQ_TRY(rq__chunks_zstd.compress(c, raw, out->ptr + out->len, bound, &len));
    out->len += len;
    return RQ_OK;
}

static rq_err zstd_pack_begin(rq_codec *c, size_t raw_len)
{
    if (c->zstd_out == NULL && (c->zstd_out = c->library.zstd.ZSTD_createCCtx()) == NULL)
        return RQ_E_NO_MEMORY;
    int level = c->options.level == 0 ? ZSTD_CLEVEL_DEFAULT : c->options.level;
    (void)c->library.zstd.ZSTD_CCtx_reset(c->zstd_out, ZSTD_reset_session_and_parameters);
    size_t level_set =
        c->library.zstd.ZSTD_CCtx_setParameter(c->zstd_out, ZSTD_c_compressionLevel, level);
    size_t size_set = c->library.zstd.ZSTD_CCtx_setPledgedSrcSize(c->zstd_out, raw_len);
    bool fails = c->library.zstd.ZSTD_isError(level_set) || c->library.zstd.ZSTD_isError(size_set);
    return fails ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err zstd_pack(rq_codec *c, rq_slice *in, uint8_t *out, size_t *made, bool last,
                        bool *ended)
{
    ZSTD_inBuffer i = {in->ptr, in->len, 0};
    ZSTD_outBuffer o = {out, *made, 0};
    size_t left = c->library.zstd.ZSTD_compressStream2(c->zstd_out, &o, &i,
                                                       last ? ZSTD_e_end : ZSTD_e_continue);
    *in = rq_slice_of(in->ptr + i.pos, in->len - i.pos);
    *made = o.pos;
    *ended = last && left == 0;
    return c->library.zstd.ZSTD_isError(left) ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err zstd_begin(rq_codec *c)
{
    if (c->zstd_in == NULL && (c->zstd_in = c->library.zstd.ZSTD_createDCtx()) == NULL)
        return RQ_E_NO_MEMORY;
    (void)c->library.zstd.ZSTD_DCtx_reset(c->zstd_in, ZSTD_reset_session_only);
    return RQ_OK;
}

static rq_err zstd_step(rq_codec *c, rq_slice *in, uint8_t *out, size_t *made, bool rest,
                        bool *ended)
{
    (void)rest;
    ZSTD_inBuffer i = {in->ptr, in->len, 0};
    ZSTD_outBuffer o = {out, *made, 0};
    size_t left = c->library.zstd.ZSTD_decompressStream(c->zstd_in, &o, &i);
    *in = rq_slice_of(in->ptr + i.pos, in->len - i.pos);
    *made = o.pos;
    *ended = left == 0;
    return c->library.zstd.ZSTD_isError(left) ? RQ_E_MALFORMED : RQ_OK;
}

const rq__stream rq__stream_zstd = {
    zstd_compress, zstd_pack_begin, zstd_pack, zstd_begin, zstd_step, NULL, true};
