/* SPDX-License-Identifier: Apache-2.0 */
/* The string that every match of a pattern must contain: examples, and random patterns and texts,
 * where every text that PCRE2 matches must contain the string. (test_regex compares with Java; all
 * its searches use the required string.) */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "../base/unit.h"

#include "filter/java_regex.h"
#include "filter/required_text.h"

#include <pcre2.h>
#include <string.h>

static uint64_t state;

static uint64_t next_random(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

static void required(const char *pattern, unsigned flags, rq_buf *out)
{
    rq_buf_reset(out);
    assert_int_equal(rq__regex_required_text(rq_slice_cstr(pattern), flags, out), RQ_OK);
    assert_int_equal(rq_buf_append_u8(out, 0), RQ_OK);
}

static void the_longest_plain_run_is_required(void **unused)
{
    (void)unused;
    static const struct {
        const char *pattern;
        unsigned flags;
        const char *expected;
    } examples[] = {
        {"", 0, ""},
        {"abc", 0, "abc"},
        {"^[0-9]{4}_0000500$", 0, "_0000500"},
        {"over [0-9]*12345 lazy", 0, "12345 lazy"},
        {"abc*", 0, "ab"},
        {"abc?d", 0, "ab"},
        {"abc+d", 0, "abc"},
        {"abc{0,2}?d", 0, "ab"},
        {"abc++def*+g", 0, "abc"},
        {"a(bcd)ef", 0, "ef"},
        {"a(b(c|d)\\)[)]e)fgh", 0, "fgh"},
        {"a\\.b\\\\c", 0, "a.b\\c"},
        {"ab\\dcde\\b", 0, "cde"},
        {"ab|cd", 0, ""},
        {"(ab|cd)", 0, ""},
        {"[ab|]cd", 0, "cd"},
        {"[^]a]bc", 0, ""},
        {"[a[bc]]de", 0, ""},
        {"(?i)abc", 0, ""},
        {"abc(?i)def", 0, ""},
        {"a(?:bc)def", 0, ""},
        {"\\Qab|c\\E", 0, ""},
        {"\\x41bc", 0, ""},
        {"ab\xc3\xa4, cde", 0, ", cde"},
        {"ab\xc3\xa4*cde", 0, "cde"},
        {"abc", RQ__REGEX_CASE_INSENSITIVE, ""},
        {"abc", RQ__REGEX_COMMENTS, ""},
        {"a|b*", RQ__REGEX_LITERAL, "a|b*"},
        {"ab", RQ__REGEX_DOTALL | RQ__REGEX_MULTILINE, "ab"},
    };
    rq_buf out = {0};
    for (size_t i = 0; i < RQ_ARRAY_LEN(examples); i++) {
        required(examples[i].pattern, examples[i].flags, &out);
        assert_string_equal((const char *)out.ptr, examples[i].expected);
    }
    rq_buf_clear(&out);
}

static void random_pattern(char *out)
{
    static const char *const pieces[] = {
        "a",    "b",     "ab",  "ba",   "a",     "b",      "*",    "+",   "?",
        "{2}",  "{0,1}", "*?",  "++",   "|",     "(",      ")",    "(a",  "b)",
        ".",    "^",     "$",   "[ab]", "[^a]",  "[|(]",   "\\(",  "\\.", "\\b",
        "\\\\", "[",     "\\Q", "\\E",  "\\x61", "[\\]a]", "(?i)", "(?:", "\xc3\xa4"};
    *out = 0;
    for (size_t n = 1 + next_random() % 8; n > 0; n--)
        strcat(out, pieces[next_random() % RQ_ARRAY_LEN(pieces)]);
}

static pcre2_code *compile(const char *pattern, unsigned flags)
{
    rq_buf translated = {0};
    const char *what = NULL;
    size_t where = 0;
    int error = 0;
    pcre2_code *code = NULL;
    if (rq__java_regex_translate(rq_slice_cstr(pattern), flags, false, &translated, &what,
                                 &where) == RQ_OK)
        code = pcre2_compile(translated.len == 0 ? (const uint8_t *)"" : translated.ptr,
                             translated.len,
                             PCRE2_UTF | PCRE2_DOTALL |
                                 ((flags & RQ__REGEX_CASE_INSENSITIVE) != 0 ? PCRE2_CASELESS : 0),
                             &error, &where, NULL);
    rq_buf_clear(&translated);
    return code;
}

static size_t random_text(char *out)
{
    static const char *const pieces[] = {"a", "b",  "A",        "|",   "(",
                                         ".", "\\", "\xc3\xa4", "aba", "\n"};
    *out = 0;
    for (size_t n = next_random() % 8; n > 0; n--)
        strcat(out, pieces[next_random() % RQ_ARRAY_LEN(pieces)]);
    return strlen(out);
}

static void a_match_contains_the_required_text(void **unused)
{
    (void)unused;
    static const unsigned flags[] = {
        0, 0, 0, RQ__REGEX_CASE_INSENSITIVE, RQ__REGEX_LITERAL, RQ__REGEX_COMMENTS};
    char pattern[128];
    char text[128];
    rq_buf out = {0};
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    size_t patterns = 0;
    size_t with_text = 0;
    size_t matches = 0;
    for (int round = 0; round < 100000; round++) {
        unsigned f = flags[next_random() % RQ_ARRAY_LEN(flags)];
        random_pattern(pattern);
        pcre2_code *code = compile(pattern, f);
        if (code == NULL) continue;
        required(pattern, f, &out);
        patterns++;
        with_text += out.len > 1;
        for (int i = 0; i < 10; i++) {
            size_t len = random_text(text);
            if (pcre2_match(code, (const uint8_t *)text, len, 0, 0, match, NULL) < 0) continue;
            matches++;
            if (strstr(text, (const char *)out.ptr) == NULL)
                fail_msg("'%s' (flags %u) is in '%s' without '%s'", pattern, f, text,
                         (const char *)out.ptr);
        }
        pcre2_code_free(code);
    }
    assert_true(patterns > 10000 && with_text > patterns / 4 && matches > patterns / 10);
    pcre2_match_data_free(match);
    rq_buf_clear(&out);
}

int main(void)
{
    state = unit_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_plain_run_is_required),
        cmocka_unit_test(a_match_contains_the_required_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
