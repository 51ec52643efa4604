/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callouts in a translated pattern do not change its result: PCRE2 runs random patterns with
 * and without callouts over random texts. No pattern avoids the callouts: a pattern that backtracks
 * reaches them often.
 */
#include "../base/unit.h"

#include "base/random.h"
#include "filter/java_regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

static rq_random randomness;

static size_t below(size_t n)
{
    return rq_random_below(&randomness, n);
}

static void put(rq_buf *b, const char *text)
{
    assert_int_equal(rq_buf_append(b, text, strlen(text)), RQ_OK);
}

static void put_quantifier(rq_buf *b)
{
    static const char *const quantifiers[] = {"*",     "+",      "?",     "*?",   "+?",     "??",
                                              "*+",    "{2}",    "{1,3}", "{2,}", "{0,2}?", "{3}+",
                                              "{2,4}", "{1}{2}", "{,2}",  "{x",   "{",      "{2"};
    put(b, quantifiers[below(RQ_ARRAY_LEN(quantifiers))]);
}

static void put_pattern(rq_buf *b, unsigned depth)
{
    static const char *const atoms[] = {"a",
                                        "b",
                                        "ab",
                                        ".",
                                        "[ab]",
                                        "[^a]",
                                        "\\w",
                                        "\\b",
                                        "^",
                                        "$",
                                        "\\Qa*b\\E",
                                        "(?i)",
                                        "x ",
                                        "\\1",
                                        "\\G",
                                        "\\z",
                                        "[a-c&&[^b]]",
                                        "\\p{Alpha}",
                                        "abababababababababababababababababababab",
                                        "#",
                                        "\\n"};
    static const char *const groups[] = {"(",    "(?:",  "(?=",   "(?!",  "(?>",
                                         "(?<=", "(?<!", "(?<n>", "(?x:", "(?s-i:"};
    for (size_t n = 1 + below(6); n > 0; n--) {
        if (depth > 0 && below(3) == 0) {
            put(b, groups[below(RQ_ARRAY_LEN(groups))]);
            put_pattern(b, depth - 1);
            put(b, ")");
        } else {
            put(b, atoms[below(RQ_ARRAY_LEN(atoms))]);
        }
        if (below(3) == 0) put_quantifier(b);
        if (below(8) == 0) put(b, "|");
    }
}

static pcre2_code *compiled(rq_slice pattern, unsigned flags, bool callouts)
{
    rq_buf translated = {0};
    const char *what = NULL;
    size_t where = 0;
    int error = 0;
    pcre2_code *code = NULL;
    if (rq__java_regex_translate(pattern, flags, callouts, &translated, &what, &where) == RQ_OK)
        code = pcre2_compile(
            translated.len == 0 ? (const uint8_t *)"" : translated.ptr, translated.len,
            PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOTALL, &error, &where,
            NULL);
    rq_buf_clear(&translated);
    return code;
}

static int search(const pcre2_code *code, const char *text, pcre2_match_data *match)
{
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    assert_non_null(context);
    pcre2_set_match_limit(context, 20000);
    int rc = pcre2_match(code, (const uint8_t *)text, strlen(text), 0, PCRE2_NO_UTF_CHECK, match,
                         context);
    pcre2_match_context_free(context);
    return rc;
}

static void callouts_change_no_answer(void **state)
{
    (void)state;
    rq_random_seed(&randomness, unit_seed());
    pcre2_match_data *one = pcre2_match_data_create(1, NULL);
    pcre2_match_data *other = pcre2_match_data_create(1, NULL);
    unsigned compiles = 0;
    unsigned found = 0;
    for (int round = 0; round < 20000; round++) {
        rq_buf pattern = {0};
        put_pattern(&pattern, 3);
        unsigned flags = below(4) == 0 ? RQ__REGEX_COMMENTS : 0;
        pcre2_code *plain = compiled(rq_buf_slice(&pattern), flags, false);
        pcre2_code *calling = compiled(rq_buf_slice(&pattern), flags, true);
        if ((plain == NULL) != (calling == NULL))
            fail_msg("%.*s: compiles %s callouts only", (int)pattern.len, pattern.ptr,
                     plain == NULL ? "with" : "without");
        compiles += plain != NULL;
        for (int i = 0; plain != NULL && i < 8; i++) {
            char text[64];
            size_t len = below(60);
            for (size_t k = 0; k < len; k++)
                text[k] = "aabbx \n{2"[below(9)];
            text[len] = '\0';
            int a = search(plain, text, one);
            int b = search(calling, text, other);
            if (a == PCRE2_ERROR_MATCHLIMIT || b == PCRE2_ERROR_MATCHLIMIT) continue;
            bool same = (a >= 0) == (b >= 0);
            if (same && a >= 0)
                same = memcmp(pcre2_get_ovector_pointer(one), pcre2_get_ovector_pointer(other),
                              2 * sizeof(size_t)) == 0;
            found += a >= 0;
            if (!same)
                fail_msg("%.*s on '%s': %d and %d", (int)pattern.len, pattern.ptr, text, a, b);
        }
        pcre2_code_free(plain);
        pcre2_code_free(calling);
        rq_buf_clear(&pattern);
    }
    print_message("%u patterns, %u found\n", compiles, found);
    assert_in_range(compiles, 2000, 20000);
    pcre2_match_data_free(one);
    pcre2_match_data_free(other);
}

static int count(pcre2_callout_block *block, void *data)
{
    (void)block;
    ++*(unsigned *)data;
    return 0;
}

static void backtracking_patterns_have_callouts(void **state)
{
    (void)state;
    static const char *const patterns[] = {"(a+)+[bc]",
                                           "x?{(a+)+[bc]",
                                           "a{2,(a+)+[bc]",
                                           "(?:a|a)*[bc]",
                                           "(?:a?){10}(?:a?){10}[bc]",
                                           "(?x)a{ #\n (a+)+[bc]",
                                           "\\Qa\\E+a*[bc]"};
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    for (size_t i = 0; i < RQ_ARRAY_LEN(patterns); i++) {
        unsigned calls = 0;
        pcre2_code *code = compiled(rq_slice_cstr(patterns[i]), 0, true);
        if (code == NULL) continue; /* a refused pattern is fine */
        pcre2_set_match_limit(context, 100000);
        pcre2_set_callout(context, count, &calls);
        static const char text[] = "a{2,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        int rc = pcre2_match(code, (const uint8_t *)text, sizeof text - 1, 0, PCRE2_NO_UTF_CHECK,
                             match, context);
        print_message("%s: %d, %u calls\n", patterns[i], rc, calls);
        if (rc == PCRE2_ERROR_MATCHLIMIT) assert_true(calls > 10000);
        pcre2_code_free(code);
    }
    pcre2_match_context_free(context);
    pcre2_match_data_free(match);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callouts_change_no_answer),
        cmocka_unit_test(backtracking_patterns_have_callouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
