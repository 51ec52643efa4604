/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions for mistyped words (base/suggest.h). */
#include "base/macros.h"
#include "base/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *nearest(const char *word)
{
    static const char *const known[] = {"server",    "bench", "fsck", "multi-get",
                                        "multi-put", "get",   "put",  "rorqual.memory"};
    rq_suggestion s = rq_suggest(word);
    for (size_t i = 0; i < RQ_ARRAY_LEN(known); i++)
        rq_suggest_consider(&s, known[i]);
    return s.best;
}

static void one_slip_is_forgiven(void **state)
{
    (void)state;
    assert_string_equal(nearest("sever"), "server");
    assert_string_equal(nearest("serverr"), "server");
    assert_string_equal(nearest("sarver"), "server");
    assert_string_equal(nearest("bnech"), "bench");
    assert_string_equal(nearest("mutli-get"), "multi-get");
    assert_string_equal(nearest("rorqual.memroy"), "rorqual.memory");
    assert_string_equal(nearest("gte"), "get");
}

static void a_beginning_is_completed(void **state)
{
    (void)state;
    assert_string_equal(nearest("serv"), "server");
    assert_string_equal(nearest("multi"), "multi-get");
    assert_null(nearest("ser"));
}

static void other_words_have_no_suggestion(void **state)
{
    (void)state;
    assert_null(nearest(""));
    assert_null(nearest("x"));
    assert_null(nearest("compact"));
    assert_null(nearest("rorqual"));
}

static void a_known_word_is_its_own_nearest(void **state)
{
    (void)state;
    assert_string_equal(nearest("multi-put"), "multi-put");
}

static void long_words_are_passed_over(void **state)
{
    (void)state;
    char word[1000];
    memset(word, 'a', sizeof word);
    word[sizeof word - 1] = '\0';
    assert_null(nearest(word));
    rq_suggestion s = rq_suggest("get");
    rq_suggest_consider(&s, word);
    assert_null(s.best);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_slip_is_forgiven),
        cmocka_unit_test(a_beginning_is_completed),
        cmocka_unit_test(other_words_have_no_suggestion),
        cmocka_unit_test(a_known_word_is_its_own_nearest),
        cmocka_unit_test(long_words_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
