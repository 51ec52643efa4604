/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs: data survives a round trip in every framing that HBase's codecs write, and no output exceeds its limit. */
#include "base/random.h"
#include "hfile/compression.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

#include <cmocka.h>

static const rq_compression kinds[] = {
    RQ_COMPRESSION_NONE, RQ_COMPRESSION_GZ,  RQ_COMPRESSION_SNAPPY, RQ_COMPRESSION_LZ4,
    RQ_COMPRESSION_ZSTD, RQ_COMPRESSION_LZO, RQ_COMPRESSION_BZIP2};

static void fill(rq_buf *b, rq_random *random, size_t len)
{
    rq_buf_reset(b);
    assert_int_equal(rq_buf_reserve(b, len + 1), RQ_OK);
    uint64_t spread = 1 + rq_random_below(random, 255);
    for (size_t i = 0; i < len; i++)
        b->ptr[i] = (uint8_t)rq_random_below(random, spread);
    b->len = len;
}

static void compressed_data_decompresses(void **state)
{
    (void)state;
    rq_random random;
    rq_random_seed(&random, 1);
    rq_buf raw = {0};
    rq_buf packed = {0};
    static const size_t lens[] = {0, 1, 100, 65536, 196608, 196609, 1000000};
    for (size_t k = 0; k < RQ_ARRAY_LEN(kinds); k++) {
        rq_codec *c;
        assert_int_equal(rq__compression_codec(kinds[k], 0, false, &c), RQ_OK);
        for (size_t i = 0; i < RQ_ARRAY_LEN(lens); i++) {
            fill(&raw, &random, lens[i]);
            rq_buf_reset(&packed);
            assert_int_equal(rq_codec_compress(c, rq_buf_slice(&raw), &packed), RQ_OK);
            uint8_t *out = malloc(raw.len + 1);
            assert_non_null(out);
            assert_int_equal(rq_codec_fill(c, rq_buf_slice(&packed), out, raw.len), RQ_OK);
            assert_int_equal(raw.len == 0 ? 0 : memcmp(out, raw.ptr, raw.len), 0);
            /* A header with a wrong length is detected. */
            if (raw.len > 0)
                assert_int_equal(rq_codec_fill(c, rq_buf_slice(&packed), out, raw.len - 1),
                                 RQ_E_MALFORMED);
            free(out);
            out = malloc(raw.len + 1);
            assert_non_null(out);
            assert_int_equal(rq_codec_fill(c, rq_buf_slice(&packed), out, raw.len + 1),
                             RQ_E_MALFORMED);
            free(out);
        }
        rq_codec_free(c);
    }
    rq_buf_clear(&raw);
    rq_buf_clear(&packed);
}

static void damaged_bytes_are_an_error_or_other_bytes_but_never_outside(void **state)
{
    (void)state;
    rq_random random;
    rq_random_seed(&random, 2);
    rq_buf raw = {0};
    rq_buf packed = {0};
    for (size_t k = 0; k < RQ_ARRAY_LEN(kinds); k++) {
        rq_codec *c;
        assert_int_equal(rq__compression_codec(kinds[k], 0, false, &c), RQ_OK);
        fill(&raw, &random, 3000);
        assert_int_equal((rq_buf_reset(&packed), rq_codec_compress(c, rq_buf_slice(&raw), &packed)),
                         RQ_OK);
        for (int i = 0; i < 2000; i++) {
            uint8_t *copy = malloc(packed.len);
            uint8_t *out = malloc(raw.len);
            assert_true(copy != NULL && out != NULL);
            memcpy(copy, packed.ptr, packed.len);
            for (unsigned n = 1 + (unsigned)rq_random_below(&random, 4); n > 0; n--)
                copy[rq_random_below(&random, packed.len)] = (uint8_t)rq_random_next(&random);
            rq_err rc = rq_codec_fill(c, rq_slice_of(copy, packed.len), out, raw.len);
            assert_true(rc == RQ_OK || rc == RQ_E_MALFORMED);
            free(copy);
            free(out);
        }
        rq_codec_free(c);
    }
    rq_buf_clear(&raw);
    rq_buf_clear(&packed);
}

/* HBASE: a server with Hadoop's own ZStandardCodec writes zstd frames without HBase's framing. */
static void bare_zstd_frames_are_read(void **state)
{
    (void)state;
    rq_random random;
    rq_random_seed(&random, 3);
    rq_buf raw = {0};
    fill(&raw, &random, 70000);
    size_t bound = ZSTD_compressBound(raw.len);
    uint8_t *packed = malloc(2 * bound);
    uint8_t *out = malloc(2 * raw.len);
    assert_true(packed != NULL && out != NULL);
    size_t n = ZSTD_compress(packed, bound, raw.ptr, raw.len, 1);
    rq_codec *c;
    assert_int_equal(rq__compression_codec(RQ_COMPRESSION_ZSTD, 0, false, &c), RQ_OK);
    assert_int_equal(rq_codec_fill(c, rq_slice_of(packed, n), out, raw.len), RQ_OK);
    assert_memory_equal(out, raw.ptr, raw.len);
    /* Two frames, one after the other. */
    n += ZSTD_compress(packed + n, bound, raw.ptr, raw.len, 1);
    assert_int_equal(rq_codec_fill(c, rq_slice_of(packed, n), out, 2 * raw.len), RQ_OK);
    assert_memory_equal(out + raw.len, raw.ptr, raw.len);
    rq_codec_free(c);
    free(packed);
    free(out);
    rq_buf_clear(&raw);
}

static void bare_zstd_frames_are_written_when_asked_for(void **state)
{
    (void)state;
    rq_random random;
    rq_random_seed(&random, 5);
    rq_buf raw = {0};
    rq_buf packed = {0};
    uint8_t out[70000];
    static const size_t lens[] = {0, 1, 70000};
    rq_codec *c;
    assert_int_equal(rq__compression_codec(RQ_COMPRESSION_ZSTD, 0, true, &c), RQ_OK);
    for (size_t i = 0; i < RQ_ARRAY_LEN(lens); i++) {
        fill(&raw, &random, lens[i]);
        rq_buf_reset(&packed);
        assert_int_equal(rq_codec_compress(c, rq_buf_slice(&raw), &packed), RQ_OK);
        assert_int_equal(ZSTD_getFrameContentSize(packed.ptr, packed.len), raw.len);
        assert_int_equal(rq_codec_fill(c, rq_buf_slice(&packed), out, raw.len), RQ_OK);
        assert_memory_equal(out, raw.ptr, raw.len);
    }
    rq_codec_free(c);
    rq_buf_clear(&packed);
    rq_buf_clear(&raw);
}

/* HBASE: BlockCompressorStream writes a large write as one raw length followed by many chunks, and
 * an empty frame after them. */
static void many_chunks_under_one_length_are_read(void **state)
{
    (void)state;
    rq_random random;
    rq_random_seed(&random, 4);
    rq_buf raw = {0};
    rq_buf packed = {0};
    rq_codec *c;
    assert_int_equal(rq__compression_codec(RQ_COMPRESSION_SNAPPY, 0, false, &c), RQ_OK);
    fill(&raw, &random, 50000);
    assert_int_equal(rq_buf_append_be32(&packed, (uint32_t)raw.len), RQ_OK);
    for (size_t at = 0; at < raw.len; at += 7000) {
        rq_buf one = {0}; /* raw length, then one chunk with its length */
        size_t len = raw.len - at < 7000 ? raw.len - at : 7000;
        assert_int_equal(rq_codec_compress(c, rq_slice_of(raw.ptr + at, len), &one), RQ_OK);
        assert_int_equal(rq_buf_append(&packed, one.ptr + 4, one.len - 4), RQ_OK);
        rq_buf_clear(&one);
    }
    assert_int_equal(rq_buf_append_be32(&packed, 0), RQ_OK);
    uint8_t *out = malloc(raw.len);
    assert_non_null(out);
    assert_int_equal(rq_codec_fill(c, rq_buf_slice(&packed), out, raw.len), RQ_OK);
    assert_memory_equal(out, raw.ptr, raw.len);
    rq_codec_free(c);
    free(out);
    rq_buf_clear(&raw);
    rq_buf_clear(&packed);
}

static void names_are_hbases(void **state)
{
    (void)state;
    rq_compression c;
    rq_codec *codec;
    assert_true(rq_compression_parse(RQ_SLICE_LIT("gz"), &c));
    assert_int_equal(c, RQ_COMPRESSION_GZ);
    assert_string_equal(rq_compression_name(RQ_COMPRESSION_ZSTD), "ZSTD");
    assert_true(rq_compression_parse(RQ_SLICE_LIT("BROTLI"), &c));
    assert_int_equal(rq_compression_check(c, NULL), RQ_E_UNSUPPORTED);
    assert_int_equal(rq__compression_codec(c, 0, false, &codec), RQ_E_UNSUPPORTED);
    assert_false(rq_compression_parse(RQ_SLICE_LIT("ZIP"), &c));
    assert_null(rq_compression_name((rq_compression)99));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compressed_data_decompresses),
        cmocka_unit_test(damaged_bytes_are_an_error_or_other_bytes_but_never_outside),
        cmocka_unit_test(bare_zstd_frames_are_read),
        cmocka_unit_test(bare_zstd_frames_are_written_when_asked_for),
        cmocka_unit_test(many_chunks_under_one_length_are_read),
        cmocka_unit_test(names_are_hbases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
