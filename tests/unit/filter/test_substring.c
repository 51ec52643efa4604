/* SPDX-License-Identifier: Apache-2.0 */
/* Lower case and search of plain text against the obvious ones, over random texts of few letters;
 * and SubstringComparator on both sides of the border to other alphabets. */
#include "../base/unit.h"

#include "filter/ascii_text.h"
#include "filter/comparator.h"
#include "proto/comparator.pb-c.h"

#include <string.h>

static uint64_t state;

static uint64_t next_random(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

/* Exactly sized, so that a sanitizer sees what is read behind its end and its pad. */
static uint8_t *random_text(size_t len, size_t pad, unsigned letters)
{
    uint8_t *p = malloc(len + pad + 1);
    assert_non_null(p);
    for (size_t i = 0; i < len + pad; i++)
        p[i] = (uint8_t)((next_random() % 2 == 0 ? 'a' : 'A') + next_random() % letters);
    return p;
}

static void lower_case_is_that_of_c(void **unused)
{
    (void)unused;
    for (int round = 0; round < 20000; round++) {
        size_t len = next_random() % 70;
        uint8_t *text = random_text(len, 0, 26);
        uint8_t *out = malloc(len + RQ__ASCII_PAD);
        assert_non_null(out);
        for (size_t i = 0; i < len; i++)
            if (next_random() % 4 == 0) text[i] = (uint8_t)(next_random() % 128);
        assert_true(rq__ascii_lower(rq_slice_of(text, len), out));
        for (size_t i = 0; i < len; i++)
            assert_int_equal(out[i],
                             text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 'a' - 'A' : text[i]);
        if (len > 0) {
            text[next_random() % len] = (uint8_t)(128 + next_random() % 128);
            assert_false(rq__ascii_lower(rq_slice_of(text, len), out));
        }
        free(text);
        free(out);
    }
}

static void finds_what_memmem_finds(void **unused)
{
    (void)unused;
    for (int round = 0; round < 50000; round++) {
        size_t len = next_random() % 80;
        size_t needle_len = next_random() % 6;
        uint8_t *text = random_text(len, RQ__ASCII_PAD, 2);
        uint8_t *needle = random_text(needle_len, 0, 2);
        bool expected = needle_len == 0 || memmem(text, len, needle, needle_len) != NULL;
        assert_int_equal(rq__ascii_find(rq_slice_of(text, len), rq_slice_of(needle, needle_len)),
                         expected);
        free(text);
        free(needle);
    }
}

static bool contains(const char *text, const char *needle)
{
    Pb__SubstringComparator m = PB__SUBSTRING_COMPARATOR__INIT;
    uint8_t bytes[64];
    rq_arena arena = {0};
    rq_comparator *c;
    rq_error why = {.code = RQ_OK};
    int result = 0;
    m.substr = (ProtobufCBinaryData){strlen(needle), (uint8_t *)(uintptr_t)needle};
    size_t len = pb__substring_comparator__pack(&m, bytes);
    assert_int_equal(
        rq_comparator_parse(RQ_SLICE_LIT("org.apache.hadoop.hbase.filter.SubstringComparator"),
                            rq_slice_of(bytes, len), &arena, &c, &why),
        RQ_OK);
    assert_int_equal(rq_comparator_compare(c, rq_slice_cstr(text), &result, &why), RQ_OK);
    rq_arena_clear(&arena);
    return result == 0;
}

static void other_alphabets_are_seen(void **unused)
{
    (void)unused;
    assert_true(contains("The Quick Fox", "qUICK"));
    assert_true(contains("", ""));
    assert_false(contains("", "x"));
    assert_true(contains("\xc3\x84pfel und Birnen", "\xc3\xa4PFEL"));
    assert_false(contains("Apfel", "\xc3\xa4pfel"));
    assert_true(contains("20 \xe2\x84\xaa", "k")); /* the Kelvin sign's lower case */
    assert_true(contains("plain \xe2\x82\xac", "LAIN"));
}

int main(void)
{
    state = unit_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lower_case_is_that_of_c),
        cmocka_unit_test(finds_what_memmem_finds),
        cmocka_unit_test(other_alphabets_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
