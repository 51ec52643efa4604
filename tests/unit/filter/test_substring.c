/* SPDX-License-Identifier: Apache-2.0 */
/* The searches of ascii_text.h compared with naive ones, over random texts of few letters; and
 * SubstringComparator compared with its definition, for ASCII and other texts. */
#include "../base/unit.h"

#include "filter/ascii_text.h"
#include "filter/comparator.h"
#include "filter/java_text.h"
#include "proto/comparator.pb-c.h"

#include <string.h>

static uint64_t state;

static uint64_t next_random(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

/* Exactly sized, so that a sanitizer detects reads outside. */
static uint8_t *random_text(size_t len, unsigned letters)
{
    uint8_t *p = malloc(len > 0 ? len : 1);
    assert_non_null(p);
    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)((next_random() % 2 == 0 ? 'a' : 'A') + next_random() % letters);
    return p;
}

static void matches_memmem(void **unused)
{
    (void)unused;
    for (int round = 0; round < 100000; round++) {
        size_t len = next_random() % 80;
        size_t needle_len = next_random() % (round % 2 == 0 ? 6 : 40);
        uint8_t *text = random_text(len, 2);
        uint8_t *needle = random_text(needle_len, 2);
        /* Copies the needle to the start or the end of the text. */
        if (needle_len <= len && next_random() % 2 == 0)
            memcpy(text + (next_random() % 2) * (len - needle_len), needle, needle_len);
        bool expected = needle_len == 0 || memmem(text, len, needle, needle_len) != NULL;
        assert_int_equal(rq__bytes_find(rq_slice_of(text, len), rq_slice_of(needle, needle_len)),
                         expected);
        free(text);
        free(needle);
    }
}

static uint8_t lower_of(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 'a' - 'A') : c;
}

/* '@' and '`', '[' and '{' and other pairs differ only by the bit that distinguishes upper and lower
 * case. */
static void either_case_is_found_and_nothing_else(void **unused)
{
    (void)unused;
    static const uint8_t alphabet[] = {'a', 'A', 'z', 'Z',  '@',  '`',
                                       '[', '{', '0', 0x10, 0xc1, 0xe1};
    for (int round = 0; round < 100000; round++) {
        size_t len = next_random() % 80;
        size_t needle_len = next_random() % 4;
        uint8_t *text = random_text(len, 1);
        uint8_t *lower = random_text(len, 1);
        uint8_t *needle = random_text(needle_len, 1);
        for (size_t i = 0; i < len; i++) {
            text[i] = alphabet[next_random() % sizeof alphabet];
            lower[i] = lower_of(text[i]);
        }
        for (size_t i = 0; i < needle_len; i++)
            needle[i] = lower_of(alphabet[next_random() % (sizeof alphabet - 2)]);
        bool expected = needle_len == 0 || memmem(lower, len, needle, needle_len) != NULL;
        assert_int_equal(
            rq__ascii_find_folded(rq_slice_of(text, len), rq_slice_of(needle, needle_len)),
            expected);
        free(text);
        free(lower);
        free(needle);
    }
}

static void one_byte_beyond_ascii_is_seen(void **unused)
{
    (void)unused;
    for (size_t len = 0; len < 70; len++) {
        uint8_t *text = random_text(len, 26);
        assert_true(rq__ascii_only(rq_slice_of(text, len)));
        for (size_t i = 0; i < len; i++) {
            uint8_t was = text[i];
            text[i] = (uint8_t)(0x80 + next_random() % 128);
            assert_false(rq__ascii_only(rq_slice_of(text, len)));
            text[i] = was;
        }
        free(text);
    }
}

/* SubstringComparator's search in undecoded bytes relies on this. */
static void two_characters_have_a_lower_case_in_ascii(void **unused)
{
    (void)unused;
    rq_buf text = {0};
    rq_buf lower = {0};
    for (uint32_t c = 0x80; c < 0x110000; c++) {
        if (c >= 0xd800 && c < 0xe000) continue;
        rq_buf_reset(&text);
        rq_buf_reset(&lower);
        assert_int_equal(rq__utf8_append(&text, c), RQ_OK);
        assert_int_equal(rq__java_append_lower(rq_buf_slice(&text), &lower), RQ_OK);
        bool ascii = false;
        for (size_t i = 0; i < lower.len; i++)
            ascii = ascii || lower.ptr[i] < 0x80;
        assert_int_equal(ascii, c == 0x130 || c == 0x212a);
    }
    rq_buf_clear(&text);
    rq_buf_clear(&lower);
}

static bool contains(rq_slice text, rq_slice needle)
{
    Pb__SubstringComparator m = PB__SUBSTRING_COMPARATOR__INIT;
    uint8_t bytes[128];
    rq_arena arena = {0};
    rq_comparator *c;
    rq_error why = {.code = RQ_OK};
    int result = 0;
    m.substr = (ProtobufCBinaryData){needle.len, (uint8_t *)(uintptr_t)needle.ptr};
    size_t len = pb__substring_comparator__pack(&m, bytes);
    assert_int_equal(
        rq_comparator_parse(RQ_SLICE_LIT("org.apache.hadoop.hbase.filter.SubstringComparator"),
                            rq_slice_of(bytes, len), &arena, &c, &why),
        RQ_OK);
    assert_int_equal(rq_comparator_compare(c, text, &result, &why), RQ_OK);
    rq_arena_clear(&arena);
    return result == 0;
}

/* new String(bytes, UTF_8).toLowerCase(ROOT) */
static void decode_and_lower(rq_slice bytes, rq_buf *out)
{
    rq_buf decoded = {0};
    rq_slice text;
    assert_int_equal(rq__java_decode(RQ__UTF_8, bytes, &decoded, &text), RQ_OK);
    assert_int_equal(rq__java_append_lower(text, out), RQ_OK);
    rq_buf_clear(&decoded);
}

static void append_pieces(rq_buf *out, size_t count)
{
    static const char *const pieces[] = {
        "a",    "K",    "k",        "I",        "i",        "x",        "\xe2\x84\xaa", "\xc4\xb0",
        "\xff", "\xc4", "\xe2\x84", "\xc3\x84", "\xc3\xa4", "\xce\xa3", "\xcc\x87"};
    for (size_t i = 0; i < count; i++) {
        const char *p = pieces[next_random() % RQ_ARRAY_LEN(pieces)];
        assert_int_equal(rq_buf_append(out, p, strlen(p)), RQ_OK);
    }
}

static void comparator_answers_as_defined(void **unused)
{
    (void)unused;
    for (int round = 0; round < 20000; round++) {
        rq_buf text = {0};
        rq_buf needle = {0};
        rq_buf lower_text = {0};
        rq_buf lower_needle = {0};
        append_pieces(&text, next_random() % 12);
        append_pieces(&needle, next_random() % 3);
        decode_and_lower(rq_buf_slice(&text), &lower_text);
        decode_and_lower(rq_buf_slice(&needle), &lower_needle);
        bool expected = lower_needle.len == 0 ||
                        (lower_text.len > 0 && memmem(lower_text.ptr, lower_text.len,
                                                      lower_needle.ptr, lower_needle.len) != NULL);
        assert_int_equal(contains(rq_buf_slice(&text), rq_buf_slice(&needle)), expected);
        rq_buf_clear(&text);
        rq_buf_clear(&needle);
        rq_buf_clear(&lower_text);
        rq_buf_clear(&lower_needle);
    }
}

static bool finds(const char *text, const char *needle)
{
    return contains(rq_slice_cstr(text), rq_slice_cstr(needle));
}

static void other_alphabets_are_seen(void **unused)
{
    (void)unused;
    assert_true(finds("The Quick Fox", "qUICK"));
    assert_true(finds("", ""));
    assert_false(finds("", "x"));
    assert_true(finds("\xc3\x84pfel und Birnen", "\xc3\xa4PFEL"));
    assert_false(finds("Apfel", "\xc3\xa4pfel"));
    assert_true(finds("20 \xe2\x84\xaa", "k")); /* the lower case of the Kelvin sign */
    assert_true(finds("plain \xe2\x82\xac", "LAIN"));
}

int main(void)
{
    state = unit_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_memmem),
        cmocka_unit_test(either_case_is_found_and_nothing_else),
        cmocka_unit_test(one_byte_beyond_ascii_is_seen),
        cmocka_unit_test(two_characters_have_a_lower_case_in_ascii),
        cmocka_unit_test(comparator_answers_as_defined),
        cmocka_unit_test(other_alphabets_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
