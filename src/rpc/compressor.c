/* SPDX-License-Identifier: Apache-2.0 */
/* The compressors of cell blocks by Java class; contract in compressor.h. */
#include "rpc/compressor.h"

#include "compress/codec.h"

/* Raw bytes in a chunk of Hadoop's framing. Java's decompressors have buffers of 64 kB and more. */
#define CHUNK ((size_t)64 * 1024)
#define BZIP2_BLOCK_100K 9 /* as Hadoop's */

struct rq_compressor {
    const char *java_class;
    rq_form form;
};

#define HADOOP "org.apache.hadoop.io.compress."
#define HBASE "org.apache.hadoop.hbase.io.compress."

static const rq_compressor compressors[] = {
    {HADOOP "DefaultCodec", RQ_FORM_ZLIB},
    {HADOOP "DeflateCodec", RQ_FORM_ZLIB},
    {HADOOP "GzipCodec", RQ_FORM_GZIP},
    {HADOOP "SnappyCodec", RQ_FORM_SNAPPY_BLOCKS},
    {HBASE "aircompressor.SnappyCodec", RQ_FORM_SNAPPY_BLOCKS},
    {HBASE "xerial.SnappyCodec", RQ_FORM_SNAPPY_BLOCKS},
    {HADOOP "Lz4Codec", RQ_FORM_LZ4_BLOCKS},
    {HBASE "aircompressor.Lz4Codec", RQ_FORM_LZ4_BLOCKS},
    {HBASE "lz4.Lz4Codec", RQ_FORM_LZ4_BLOCKS},
    {HADOOP "BZip2Codec", RQ_FORM_BZIP2},
    {HADOOP "ZStandardCodec", RQ_FORM_ZSTD},
    {HBASE "aircompressor.ZstdCodec", RQ_FORM_ZSTD_BLOCKS},
    {HBASE "zstd.ZstdCodec", RQ_FORM_ZSTD_BLOCKS},
};

const rq_compressor *rq__compressor_find(const char *java_class)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(compressors); i++)
        if (strcmp(compressors[i].java_class, java_class) == 0) return &compressors[i];
    return NULL;
}

rq_err rq__compressor_check(const rq_compressor *c, rq_error *why)
{
    return rq_form_check(c->form, why);
}

size_t rq__compressor_short(const rq_compressor *c)
{
    if (c->form == RQ_FORM_BZIP2) return 512;
    return c->form == RQ_FORM_ZLIB || c->form == RQ_FORM_GZIP ? (size_t)8 * 1024
                                                              : (size_t)64 * 1024;
}

bool rq__compressor_expands(const rq_compressor *c)
{
    return c != NULL && c->form == RQ_FORM_BZIP2;
}

rq_err rq__compressor_begin(const rq_compressor *c, rq_codec **ret)
{
    return rq_codec_new(
        &(rq_codec_options){.form = c->form,
                            .level = c->form == RQ_FORM_BZIP2 ? BZIP2_BLOCK_100K : 0,
                            .chunk_max = CHUNK},
        ret);
}

/* Of rq__compressor_short, in a step. */
#define STEP_TIMES 16

rq_err rq__compressor_step(const rq_compressor *c, rq_codec *codec, rq_slice *raw, rq_buf *out)
{
    return rq_codec_pack(codec, raw, STEP_TIMES * rq__compressor_short(c), out);
}

rq_err rq__compressor_pack(const rq_compressor *c, rq_slice raw, rq_buf *out)
{
    rq_codec *codec;
    RQ_TRY(rq__compressor_begin(c, &codec));
    rq_err rc = rq_codec_compress(codec, raw, out);
    rq_codec_free(codec);
    return rc;
}

static rq_err unpack_failed(const rq_compressor *c, rq_err rc, size_t packed_len, size_t raw_max,
                            rq_error *why)
{
    if (rc == RQ_E_MALFORMED)
        return rq_fail(why, rc, "cell block of %zu bytes is not in the format of %s", packed_len,
                       c->java_class);
    if (rc == RQ_E_RESULT_TOO_LARGE)
        return rq_fail(why, rc, "cell block of %zu bytes is larger than %zu when uncompressed",
                       packed_len, raw_max);
    return rc;
}

rq_err rq__compressor_unpack(const rq_compressor *c, rq_slice packed, size_t raw_max, rq_buf *out,
                             rq_error *why)
{
    rq_codec *codec;
    RQ_TRY(rq__compressor_begin(c, &codec));
    rq_err rc = rq_codec_append(codec, packed, raw_max, out);
    rq_codec_free(codec);
    return unpack_failed(c, rc, packed.len, raw_max, why);
}

void rq__unpacking_begin(rq_unpacking *u, const rq_compressor *c, rq_slice packed, size_t raw_max)
{
    *u = (rq_unpacking){.compressor = c, .left = packed, .len = packed.len, .raw_max = raw_max};
    u->rc = rq__compressor_begin(c, &u->codec);
    u->has_begun = true;
}

bool rq__unpacking_step(rq_unpacking *u)
{
    bool ended = true;
    if (u->rc == RQ_OK)
        u->rc =
            rq_codec_unpack(u->codec, &u->left, STEP_TIMES * rq__compressor_short(u->compressor),
                            u->raw_max, &u->raw, &ended);
    return ended || u->rc != RQ_OK;
}

rq_err rq__unpacking_take(rq_unpacking *u, rq_buf *ret, rq_error *why)
{
    *ret = u->raw;
    u->raw = (rq_buf){0};
    return unpack_failed(u->compressor, u->rc, u->len, u->raw_max, why);
}

void rq__unpacking_clear(rq_unpacking *u)
{
    rq_codec_free(u->codec);
    rq_buf_clear(&u->raw);
    *u = (rq_unpacking){0};
}
