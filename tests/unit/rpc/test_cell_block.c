/* SPDX-License-Identifier: Apache-2.0 */
/* Cell-block codecs and compressors: round trips, the libraries' own functions as the other side, and invalid bytes. */
#include "rpc/cell_codec.h"
#include "rpc/compressor.h"

#include "base/random.h"
#include "compress/codec.h"
#include "../base/unit.h"

#include <bzlib.h>
#include <lz4.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

static void fill_cells(rq_cellblock *b, unsigned count)
{
    char qualifier[32], value[200];
    for (unsigned i = 0; i < count; i++) {
        snprintf(qualifier, sizeof qualifier, "q%u", i);
        memset(value, 'a' + (int)(i % 26), sizeof value);
        rq_cell c = {
            .row = (const uint8_t *)"row",
            .row_len = 3,
            .family = (const uint8_t *)"f",
            .family_len = 1,
            .qualifier = (const uint8_t *)qualifier,
            .qualifier_len = (uint32_t)strlen(qualifier),
            .value = (const uint8_t *)value,
            .value_len = i % sizeof value,
            .timestamp = 1700000000000 + i,
            .type = i % 5 == 0 ? RQ_TYPE_DELETE_COLUMN : RQ_TYPE_PUT,
            .tags = (const uint8_t *)"\0\2\1x",
            .tags_len = i % 3 == 0 ? 4 : 0,
        };
        assert_int_equal(rq_cellblock_append(b, &c), RQ_OK);
    }
}

static void check_codec(rq_cell_codec codec)
{
    rq_cellblock cells = {.with_tags = rq__cell_codec_has_tags(codec)};
    rq_cellblock back = {.with_tags = cells.with_tags};
    rq_buf wire = {0};
    fill_cells(&cells, 50);
    assert_int_equal(rq__cell_codec_encode(codec, rq_buf_slice(&cells.bytes), &wire), RQ_OK);
    assert_int_equal(rq__cell_codec_decode(codec, rq_buf_slice(&wire), &back, NULL), RQ_OK);
    assert_int_equal(back.count, 50);
    assert_int_equal(back.bytes.len, cells.bytes.len);
    assert_memory_equal(back.bytes.ptr, cells.bytes.ptr, cells.bytes.len);
    unsigned cut_ok = 0;
    for (size_t n = 0; n < 200; n++) {
        rq_cellblock cut = {0};
        if (rq__cell_codec_decode(codec, rq_slice_of(wire.ptr, n), &cut, NULL) == RQ_OK) cut_ok++;
        rq_cellblock_clear(&cut);
    }
    assert_in_range(cut_ok, 1, 6); /* truncated blocks are valid only at cell boundaries */
    rq_cellblock_clear(&cells);
    rq_cellblock_clear(&back);
    rq_buf_clear(&wire);
}

static void cell_codecs_translate_there_and_back(void **state)
{
    (void)state;
    check_codec(RQ_CODEC_CELL);
    check_codec(RQ_CODEC_CELL_TAGS);
}

static void codecs_are_found_by_java_class(void **state)
{
    (void)state;
    rq_cell_codec c;
    assert_true(rq__cell_codec_find("org.apache.hadoop.hbase.codec.KeyValueCodec", &c));
    assert_int_equal(c, RQ_CODEC_KEYVALUE);
    assert_true(rq__cell_codec_find("org.apache.hadoop.hbase.codec.KeyValueCodecWithTags", &c));
    assert_true(rq__cell_codec_has_tags(c));
    assert_false(rq__cell_codec_find("org.apache.hadoop.hbase.codec.NoCodec", &c));
    assert_null(rq__compressor_find("org.apache.hadoop.io.compress.NoCodec"));
}

static const char *const compressors[] = {
    "org.apache.hadoop.io.compress.DefaultCodec",
    "org.apache.hadoop.io.compress.GzipCodec",
    "org.apache.hadoop.io.compress.SnappyCodec",
    "org.apache.hadoop.io.compress.Lz4Codec",
    "org.apache.hadoop.io.compress.ZStandardCodec",
    "org.apache.hadoop.hbase.io.compress.zstd.ZstdCodec",
    "org.apache.hadoop.io.compress.BZip2Codec",
};

/* Compresses in slices, each of which must be short. */
static void pack_in_slices(const rq_compressor *c, rq_slice raw, rq_buf *packed)
{
    rq_codec *codec;
    unsigned slices = 0;
    size_t len = raw.len;
    assert_int_equal(rq__compressor_begin(c, &codec), RQ_OK);
    do {
        assert_int_equal(rq__compressor_step(c, codec, &raw, packed), RQ_OK);
        slices++;
    } while (raw.len > 0);
    assert_true(slices * 16 * rq__compressor_short(c) >= len);
    rq_codec_free(codec);
}

static rq_err unpack_in_slices(const rq_compressor *c, rq_slice packed, size_t raw_max, rq_buf *ret)
{
    rq_unpacking u;
    unsigned slices = 1;
    rq__unpacking_begin(&u, c, packed, raw_max);
    while (!rq__unpacking_step(&u))
        slices++;
    rq_err rc = rq__unpacking_take(&u, ret, NULL);
    rq__unpacking_clear(&u);
    assert_true(ret->len <= raw_max + 1);
    if (c == rq__compressor_find("org.apache.hadoop.io.compress.BZip2Codec"))
        assert_true(slices * 16 * rq__compressor_short(c) >= ret->len);
    return rc;
}

static void check_unpacking(const rq_compressor *c, rq_slice packed, const uint8_t *raw, size_t len)
{
    rq_buf back = {0};
    assert_int_equal(unpack_in_slices(c, packed, len, &back), RQ_OK);
    assert_int_equal(back.len, len);
    if (len > 0) assert_memory_equal(back.ptr, raw, len);
    rq_buf_clear(&back);
    if (len > 0)
        assert_int_equal(unpack_in_slices(c, packed, len - 1, &back), RQ_E_RESULT_TOO_LARGE);
    rq_buf_clear(&back);
    if (packed.len > 1 && len > 0)
        assert_int_not_equal(
            unpack_in_slices(c, rq_slice_of(packed.ptr, packed.len - 1), len, &back), RQ_OK);
    rq_buf_clear(&back);
}

static void check_round_trip(const rq_compressor *c, const uint8_t *raw, size_t len, bool slices)
{
    rq_buf packed = {0}, back = {0};
    if (slices)
        pack_in_slices(c, rq_slice_of(raw, len), &packed);
    else
        assert_int_equal(rq__compressor_pack(c, rq_slice_of(raw, len), &packed), RQ_OK);
    check_unpacking(c, rq_buf_slice(&packed), raw, len);
    assert_int_equal(rq__compressor_unpack(c, rq_buf_slice(&packed), len, &back, NULL), RQ_OK);
    assert_int_equal(back.len, len);
    if (len > 0) assert_memory_equal(back.ptr, raw, len);
    rq_buf_clear(&back);
    if (len > 0)
        assert_int_equal(rq__compressor_unpack(c, rq_buf_slice(&packed), len - 1, &back, NULL),
                         RQ_E_RESULT_TOO_LARGE);
    rq_buf_clear(&back);
    if (packed.len > 1 && len > 0)
        assert_int_not_equal(
            rq__compressor_unpack(c, rq_slice_of(packed.ptr, packed.len - 1), len, &back, NULL),
            RQ_OK);
    rq_buf_clear(&back);
    rq_buf_clear(&packed);
}

static void compressors_round_trip(void **state)
{
    (void)state;
    enum { MAX = 3000000 };
    uint8_t *raw = malloc(MAX);
    rq_random r;
    rq_random_seed(&r, 1);
    for (size_t i = 0; i < MAX; i++)
        raw[i] = i % 7 < 3 ? (uint8_t)rq_random_next(&r) : (uint8_t)(i / 100);
    static const size_t lens[] = {0, 1, 100, 65535, 65536, 65537, 200000, MAX};
    for (size_t i = 0; i < RQ_ARRAY_LEN(compressors); i++) {
        for (size_t k = 0; k < RQ_ARRAY_LEN(lens); k++) {
            check_round_trip(rq__compressor_find(compressors[i]), raw, lens[k], false);
            check_round_trip(rq__compressor_find(compressors[i]), raw, lens[k], true);
        }
    }
    free(raw);
}

/* --- the libraries themselves ----------------------------------------------------------------- */
/* *len: room at `out`, then what was written. */

typedef bool (*convert)(rq_slice in, uint8_t *out, size_t *len);

static bool inflate_all(rq_slice in, uint8_t *out, size_t *len, int window)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)in.ptr,
                  .avail_in = (uInt)in.len,
                  .next_out = out,
                  .avail_out = (uInt)*len};
    if (inflateInit2(&z, window) != Z_OK) return false;
    bool ok = inflate(&z, Z_FINISH) == Z_STREAM_END && z.avail_in == 0;
    *len = z.total_out;
    inflateEnd(&z);
    return ok;
}

static bool deflate_all(rq_slice in, uint8_t *out, size_t *len, int window)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)in.ptr,
                  .avail_in = (uInt)in.len,
                  .next_out = out,
                  .avail_out = (uInt)*len};
    if (deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) != Z_OK) return false;
    bool ok = deflate(&z, Z_FINISH) == Z_STREAM_END;
    *len = z.total_out;
    deflateEnd(&z);
    return ok;
}

static bool zlib_unpack(rq_slice in, uint8_t *out, size_t *len)
{
    return inflate_all(in, out, len, 15);
}

static bool zlib_pack(rq_slice in, uint8_t *out, size_t *len)
{
    return deflate_all(in, out, len, 15);
}

static bool gzip_unpack(rq_slice in, uint8_t *out, size_t *len)
{
    return inflate_all(in, out, len, 15 + 16);
}

static bool gzip_pack(rq_slice in, uint8_t *out, size_t *len)
{
    return deflate_all(in, out, len, 15 + 16);
}

static bool snappy_unpack(rq_slice in, uint8_t *out, size_t *len)
{
    return snappy_uncompress((const char *)in.ptr, in.len, (char *)out, len) == SNAPPY_OK;
}

static bool snappy_pack(rq_slice in, uint8_t *out, size_t *len)
{
    return snappy_compress((const char *)in.ptr, in.len, (char *)out, len) == SNAPPY_OK;
}

static bool lz4_unpack(rq_slice in, uint8_t *out, size_t *len)
{
    int n = LZ4_decompress_safe((const char *)in.ptr, (char *)out, (int)in.len, (int)*len);
    *len = (size_t)n;
    return n >= 0;
}

static bool lz4_pack(rq_slice in, uint8_t *out, size_t *len)
{
    int n = LZ4_compress_default((const char *)in.ptr, (char *)out, (int)in.len, (int)*len);
    *len = (size_t)n;
    return n > 0;
}

static bool zstd_unpack(rq_slice in, uint8_t *out, size_t *len)
{
    *len = ZSTD_decompress(out, *len, in.ptr, in.len);
    return !ZSTD_isError(*len);
}

static bool zstd_pack(rq_slice in, uint8_t *out, size_t *len)
{
    *len = ZSTD_compress(out, *len, in.ptr, in.len, 3);
    return !ZSTD_isError(*len);
}

static bool bzip2_unpack(rq_slice in, uint8_t *out, size_t *len)
{
    unsigned n = (unsigned)*len;
    int rc = BZ2_bzBuffToBuffDecompress((char *)out, &n, (char *)(uintptr_t)in.ptr,
                                        (unsigned)in.len, 0, 0);
    *len = n;
    return rc == BZ_OK;
}

static bool bzip2_pack(rq_slice in, uint8_t *out, size_t *len)
{
    unsigned n = (unsigned)*len;
    int rc = BZ2_bzBuffToBuffCompress((char *)out, &n, (char *)(uintptr_t)in.ptr, (unsigned)in.len,
                                      9, 0, 0);
    *len = n;
    return rc == BZ_OK;
}

/* In the order of `compressors`. */
static const struct {
    convert pack, unpack;
    bool framed; /* by Hadoop */
} libraries[] = {
    {zlib_pack, zlib_unpack, false},    {gzip_pack, gzip_unpack, false},
    {snappy_pack, snappy_unpack, true}, {lz4_pack, lz4_unpack, true},
    {zstd_pack, zstd_unpack, false},    {zstd_pack, zstd_unpack, true},
    {bzip2_pack, bzip2_unpack, false},
};
_Static_assert(RQ_ARRAY_LEN(libraries) == RQ_ARRAY_LEN(compressors), "one for each compressor");

/* be32 length of the bytes, then (be32 length, chunk) until they are complete; repeated. */
static void library_unpack(size_t i, rq_slice packed, uint8_t *out, size_t *len)
{
    rq_cursor c = rq_cursor_of(packed);
    size_t room = *len, at = 0;
    if (!libraries[i].framed) {
        assert_true(libraries[i].unpack(packed, out, len));
        return;
    }
    while (rq_cursor_left(&c) > 0) {
        uint32_t whole, n;
        assert_true(rq_cursor_be32(&c, &whole));
        for (size_t end = at + whole; at < end;) {
            rq_slice chunk;
            assert_true(rq_cursor_be32(&c, &n));
            assert_true(rq_cursor_bytes(&c, n, &chunk));
            size_t got = room - at;
            assert_true(libraries[i].unpack(chunk, out + at, &got));
            assert_true(got > 0 && at + got <= end);
            at += got;
        }
    }
    *len = at;
}

static void library_pack(size_t i, rq_slice raw, uint8_t *out, size_t *len)
{
    const size_t chunk = 50000;
    size_t room = *len, at = 4;
    if (!libraries[i].framed) {
        assert_true(libraries[i].pack(raw, out, len));
        return;
    }
    rq_put_be32(out, (uint32_t)raw.len);
    for (size_t from = 0; from < raw.len; from += chunk) {
        size_t n = raw.len - from < chunk ? raw.len - from : chunk;
        size_t got = room - at - 4;
        assert_true(libraries[i].pack(rq_slice_of(raw.ptr + from, n), out + at + 4, &got));
        rq_put_be32(out + at, (uint32_t)got);
        at += 4 + got;
    }
    *len = at;
}

static void check_with_library(size_t i, rq_slice raw, bool slices)
{
    const rq_compressor *c = rq__compressor_find(compressors[i]);
    size_t room = 2 * raw.len + 1000;
    uint8_t *other = malloc(room);
    rq_buf packed = {0}, back = {0};
    assert_non_null(other);
    if (slices)
        pack_in_slices(c, raw, &packed);
    else
        assert_int_equal(rq__compressor_pack(c, raw, &packed), RQ_OK);
    size_t len = room;
    library_unpack(i, rq_buf_slice(&packed), other, &len);
    assert_int_equal(len, raw.len);
    assert_memory_equal(other, raw.ptr, raw.len);
    len = room;
    library_pack(i, raw, other, &len);
    assert_int_equal(rq__compressor_unpack(c, rq_slice_of(other, len), raw.len, &back, NULL),
                     RQ_OK);
    assert_int_equal(back.len, raw.len);
    assert_memory_equal(back.ptr, raw.ptr, raw.len);
    if (raw.len <= 100) check_unpacking(c, rq_slice_of(other, len), raw.ptr, raw.len);
    rq_buf_clear(&packed);
    rq_buf_clear(&back);
    free(other);
}

static void compressors_agree_with_their_libraries(void **state)
{
    (void)state;
    enum { MAX = 200001 };
    uint8_t *raw = malloc(MAX);
    rq_random r;
    assert_non_null(raw);
    rq_random_seed(&r, 3);
    for (size_t i = 0; i < MAX; i++)
        raw[i] = i % 5 < 2 ? (uint8_t)rq_random_next(&r) : (uint8_t)(i / 300);
    static const size_t lens[] = {1, 100, 65537, MAX};
    for (size_t i = 0; i < RQ_ARRAY_LEN(libraries); i++)
        for (size_t k = 0; k < RQ_ARRAY_LEN(lens); k++)
            for (int slices = 0; slices < 2; slices++)
                check_with_library(i, rq_slice_of(raw, lens[k]), slices == 1);
    free(raw);
}

static void random_bytes_do_not_decompress(void **state)
{
    (void)state;
    rq_random r;
    rq_random_seed(&r, 2);
    uint8_t bytes[300];
    for (int round = 0; round < 2000; round++) {
        size_t len = (size_t)rq_random_below(&r, sizeof bytes);
        for (size_t i = 0; i < len; i++)
            bytes[i] = (uint8_t)rq_random_next(&r);
        if (round % 2 == 0 && len > 4) memset(bytes, 0, 3); /* makes the block's length small */
        for (size_t i = 0; i < RQ_ARRAY_LEN(compressors); i++) {
            rq_buf out = {0};
            rq_error why = {0};
            rq_err rc = rq__compressor_unpack(rq__compressor_find(compressors[i]),
                                              rq_slice_of(bytes, len), 10000, &out, &why);
            assert_true(out.len <= 10001);
            if (rc == RQ_E_MALFORMED) assert_true(why.message[0] != '\0');
            rq_buf_clear(&out);
        }
    }
}

static void gzip_members_are_joined(void **state)
{
    (void)state;
    const rq_compressor *c = rq__compressor_find(compressors[1]);
    rq_buf packed = {0}, back = {0};
    assert_int_equal(rq__compressor_pack(c, RQ_SLICE_LIT("one"), &packed), RQ_OK);
    assert_int_equal(rq__compressor_pack(c, RQ_SLICE_LIT("two"), &packed), RQ_OK);
    assert_int_equal(rq__compressor_unpack(c, rq_buf_slice(&packed), 100, &back, NULL), RQ_OK);
    assert_true(rq_slice_eq(rq_buf_slice(&back), RQ_SLICE_LIT("onetwo")));
    rq_buf_clear(&packed);
    rq_buf_clear(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cell_codecs_translate_there_and_back),
        cmocka_unit_test(codecs_are_found_by_java_class),
        cmocka_unit_test(compressors_round_trip),
        cmocka_unit_test(compressors_agree_with_their_libraries),
        cmocka_unit_test(random_bytes_do_not_decompress),
        cmocka_unit_test(gzip_members_are_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
