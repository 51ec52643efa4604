/* SPDX-License-Identifier: Apache-2.0 */
/* Variable-length integers, order and printable form of bytes, checksums, buffers (base/bytes.h, base/buf.h). */
#include "unit.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/random.h"

static void vlong_reads_back_what_it_wrote(void **state)
{
    (void)state;
    rq_random r;
    rq_random_seed(&r, unit_seed());
    for (int i = 0; i < 200000; i++) {
        int64_t v = (int64_t)(rq_random_next(&r) >> rq_random_below(&r, 64));
        if (rq_random_below(&r, 2)) v = -v;
        uint8_t bytes[RQ_VLONG_MAX];
        size_t n = rq_put_vlong(bytes, v);
        assert_int_equal(n, rq_vlong_len(v));
        rq_cursor c = rq_cursor_of(rq_slice_of(bytes, n));
        int64_t back;
        assert_true(rq_cursor_vlong(&c, &back));
        assert_int_equal(back, v);
        c = rq_cursor_of(rq_slice_of(bytes, n - 1));
        assert_false(rq_cursor_vlong(&c, &back));
    }
}

/* Values whose bytes are documented in Hadoop's WritableUtils, or at a limit of the format. */
static void vlong_is_hadoops_form(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        uint8_t bytes[9];
        size_t len;
    } known[] = {
        {0, {0}, 1},
        {-112, {0x90}, 1},
        {127, {0x7f}, 1},
        {128, {0x8f, 0x80}, 2},
        {-113, {0x87, 0x70}, 2},
        {255, {0x8f, 0xff}, 2},
        {256, {0x8e, 0x01, 0x00}, 3},
        {-257, {0x86, 0x01, 0x00}, 3},
        {INT64_MAX, {0x88, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 9},
        {INT64_MIN, {0x80, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 9},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(known); i++) {
        uint8_t bytes[RQ_VLONG_MAX];
        assert_int_equal(rq_put_vlong(bytes, known[i].value), known[i].len);
        assert_memory_equal(bytes, known[i].bytes, known[i].len);
    }
}

static void varint_reads_back_and_refuses_eleven_bytes(void **state)
{
    (void)state;
    rq_random r;
    rq_random_seed(&r, unit_seed());
    for (int i = 0; i < 100000; i++) {
        uint64_t v = rq_random_next(&r) >> rq_random_below(&r, 64);
        uint8_t bytes[RQ_VARINT_MAX];
        size_t n = rq_put_varint(bytes, v);
        rq_cursor c = rq_cursor_of(rq_slice_of(bytes, n));
        uint64_t back;
        assert_true(rq_cursor_varint(&c, &back));
        assert_true(back == v);
        assert_int_equal(rq_cursor_left(&c), 0);
    }
    uint8_t endless[11];
    uint64_t v;
    memset(endless, 0xff, sizeof endless);
    rq_cursor c = rq_cursor_of(rq_slice_of(endless, sizeof endless));
    assert_false(rq_cursor_varint(&c, &v));
}

/* Decodes byte by byte, as the encoding is defined; -1: malformed or truncated. */
static int varint_by_definition(const uint8_t *bytes, size_t len, uint64_t *ret)
{
    *ret = 0;
    for (int i = 0; i < RQ_VARINT_MAX && (size_t)i < len; i++) {
        if (i == RQ_VARINT_MAX - 1 && bytes[i] > 1) return -1;
        *ret |= (uint64_t)(bytes[i] & 0x7f) << 7 * i;
        if (bytes[i] < 0x80) return i + 1;
    }
    return -1;
}

/* Includes encodings with more bytes than needed, truncated ones, too large values, and trailing
 * bytes. */
static void varint_of_any_bytes_is_what_its_definition_says(void **state)
{
    (void)state;
    rq_random r;
    rq_random_seed(&r, unit_seed());
    for (int i = 0; i < 200000; i++) {
        uint8_t bytes[24];
        uint64_t sparse = rq_random_below(&r, 3);
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)(rq_random_next(&r) | (rq_random_below(&r, 8) < sparse ? 0 : 0x80));
        size_t len = 1 + rq_random_below(&r, sizeof bytes);
        uint64_t expected, v;
        int used = varint_by_definition(bytes, len, &expected);
        rq_cursor c = rq_cursor_of(rq_slice_of(bytes, len));
        assert_int_equal(rq_cursor_varint(&c, &v), used > 0);
        if (used < 0) continue;
        assert_true(v == expected);
        assert_int_equal(rq_cursor_left(&c), len - (size_t)used);
    }
}

static void printable_form_is_hbases(void **state)
{
    (void)state;
    char out[64];
    assert_int_equal(rq_bytes_to_string(RQ_SLICE_LIT("a\\\x01z\xff"), out, sizeof out), 14);
    assert_string_equal(out, "a\\x5C\\x01z\\xFF");
    /* The output is cut between escapes, never inside one. */
    rq_bytes_to_string(RQ_SLICE_LIT("\x01\x02\x03"), out, 10);
    assert_string_equal(out, "\\x01\\x02");
}

static void order_is_unsigned_and_prefix_first(void **state)
{
    (void)state;
    assert_true(rq_slice_compare(RQ_SLICE_LIT("a"), RQ_SLICE_LIT("b")) < 0);
    assert_true(rq_slice_compare(RQ_SLICE_LIT("a"), RQ_SLICE_LIT("a\x01")) < 0);
    assert_true(rq_slice_compare(RQ_SLICE_LIT("\x80"), RQ_SLICE_LIT("\x7f")) > 0);
    assert_int_equal(rq_slice_compare((rq_slice){0}, (rq_slice){0}), 0);
}

static int sign(int c)
{
    return (c > 0) - (c < 0);
}

/* Strings that end at the end of their allocation, mostly with a common prefix. */
static void short_strings_have_the_same_order(void **state)
{
    (void)state;
    rq_random random;
    rq_random_seed(&random, unit_seed());
    for (int i = 0; i < 200000; i++) {
        size_t lens[2];
        uint8_t *texts[2];
        size_t equal = rq_random_below(&random, 80);
        for (int k = 0; k < 2; k++) {
            lens[k] = rq_random_below(&random, 80);
            texts[k] = malloc(lens[k] + 1);
            assert_non_null(texts[k]);
            for (size_t j = 0; j < lens[k]; j++)
                texts[k][1 + j] = j < equal ? (uint8_t)(j * 77) : (uint8_t)rq_random_next(&random);
        }
        int c = rq_short_compare(texts[0] + 1, lens[0], texts[1] + 1, lens[1]);
        assert_int_equal(sign(c),
                         sign(rq_bytes_compare(texts[0] + 1, lens[0], texts[1] + 1, lens[1])));
        free(texts[0]);
        free(texts[1]);
    }
}

static uint32_t bit_by_bit(uint32_t polynomial, uint32_t start, const uint8_t *bytes, size_t len)
{
    uint32_t slow = ~start;
    for (size_t k = 0; k < len; k++) {
        slow ^= bytes[k];
        for (int bit = 0; bit < 8; bit++)
            slow = slow >> 1 ^ (slow & 1 ? polynomial : 0);
    }
    return ~slow;
}

static void checksums_are_the_standard_ones(void **state)
{
    (void)state;
    assert_int_equal(rq_crc32c(0, "123456789", 9), 0xe3069283u);
    assert_int_equal(rq_crc32(0, "123456789", 9), 0xcbf43926u);
    assert_int_equal(rq_crc32c(rq_crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
    assert_int_equal(rq_crc32(rq_crc32(0, "1234", 4), "56789", 5), 0xcbf43926u);
    /* All lengths and alignments. */
    static uint8_t bytes[10000];
    rq_random random;
    rq_random_seed(&random, 1);
    for (size_t k = 0; k < sizeof bytes; k++)
        bytes[k] = (uint8_t)rq_random_next(&random);
    for (int round = 0; round < 300; round++) {
        size_t from = rq_random_below(&random, 64);
        size_t len = round < 100 ? (size_t)round * 41 : rq_random_below(&random, sizeof bytes - 64);
        uint32_t start = (uint32_t)rq_random_next(&random);
        uint32_t slow = bit_by_bit(0x82f63b78u, start, bytes + from, len);
        assert_int_equal(rq_crc32c(start, bytes + from, len), slow);
        assert_int_equal(rq__crc32c_plain(start, bytes + from, len), slow);
        assert_int_equal(rq_crc32(start, bytes + from, len),
                         bit_by_bit(0xedb88320u, start, bytes + from, len));
#ifdef __x86_64__
        assert_int_equal(rq__crc32c_by_lanes(start, bytes + from, len), slow);
#endif
    }
}

static void buffer_grows_and_keeps_its_bytes(void **state)
{
    (void)state;
    rq_buf b = {0};
    for (uint32_t i = 0; i < 10000; i++)
        assert_int_equal(rq_buf_append_be32(&b, i), RQ_OK);
    assert_int_equal(b.len, 40000);
    for (uint32_t i = 0; i < 10000; i++)
        assert_int_equal(rq_get_be32(b.ptr + 4 * i), i);
    assert_int_equal(rq_buf_reserve(&b, SIZE_MAX - 10), RQ_E_NO_MEMORY);
    assert_int_equal(rq_buf_printf(&b, "%d-%s", 7, "x"), RQ_OK);
    assert_memory_equal(b.ptr + 40000, "7-x", 3);
    rq_buf_clear(&b);
}

static void a_cut_text_ends_with_a_whole_character(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t max, len;
    } cases[] = {{"abc", 3, 3},
                 {"abc", 2, 2},
                 {"", 0, 0},
                 {"a\xc3\xa9", 2, 1},
                 {"a\xc3\xa9", 3, 3},
                 {"\xe2\x82\xac", 2, 0},
                 {"\xf0\x9f\x90\x8b!", 3, 0},
                 {"\xf0\x9f\x90\x8b!", 4, 4},
                 {"\x80\x80\x80\x80\x80\x80", 5, 5}}; /* not UTF-8 */
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++)
        assert_int_equal(rq_text_beginning(rq_slice_cstr(cases[i].text), cases[i].max).len,
                         cases[i].len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vlong_reads_back_what_it_wrote),
        cmocka_unit_test(vlong_is_hadoops_form),
        cmocka_unit_test(varint_reads_back_and_refuses_eleven_bytes),
        cmocka_unit_test(varint_of_any_bytes_is_what_its_definition_says),
        cmocka_unit_test(printable_form_is_hbases),
        cmocka_unit_test(order_is_unsigned_and_prefix_first),
        cmocka_unit_test(short_strings_have_the_same_order),
        cmocka_unit_test(checksums_are_the_standard_ones),
        cmocka_unit_test(buffer_grows_and_keeps_its_bytes),
        cmocka_unit_test(a_cut_text_ends_with_a_whole_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
