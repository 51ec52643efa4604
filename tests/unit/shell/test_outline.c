/* SPDX-License-Identifier: Apache-2.0 */
/* The prompts inside a statement, as irb of the official shell shows them. */
#include "unit.h"

#include "shell/outline.h"

#include <string.h>

static void check(const char *text, int depth, char string, bool goes_on)
{
    rq__outline o = rq__outline_of(text, strlen(text));
    assert_int_equal(o.depth, depth);
    assert_int_equal(o.string, string);
    assert_int_equal(o.goes_on, goes_on);
}

static void brackets_and_blocks_nest(void **state)
{
    (void)state;
    check("scan('t1',\n", 1, 0, true);
    check("[1,2].each do |x|\n", 1, 0, true);
    check("[1,2].each do |x|\n  puts x\n", 1, 0, false);
    check("def foo(a)\n", 1, 0, false);
    check("begin\n  if x\n    y\n  end\n", 1, 0, false);
    check("puts 1 if x\n", 0, 0, false);
    check("while x do\n", 1, 0, true);
}

static void an_open_string_is_known_by_its_quote(void **state)
{
    (void)state;
    check("s = \"abc\n", 0, '"', false);
    check("s = 'abc\n", 0, '\'', false);
    check("s = \"a\\\"b\"\n", 0, 0, false);
    check("x = <<-END\ntext\n", 0, '"', true);
    check("x = <<-END\ntext\nEND\n", 0, 0, true);
    check("=begin\nit's (\n", 0, '=', false);
    check("=begin\nit's (\n=end\n", 0, 0, false);
    check("x\n=begin it\n=ending (\n=end of it\ny(\n", 1, 0, true);
}

static void comments_and_methods_named_like_keywords_count_nothing(void **state)
{
    (void)state;
    check("# do begin (\n", 0, 0, false);
    check("x.end\n", 0, 0, false);
    check("x.begin\n", 0, 0, false);
    check("", 0, 0, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(brackets_and_blocks_nest),
        cmocka_unit_test(an_open_string_is_known_by_its_quote),
        cmocka_unit_test(comments_and_methods_named_like_keywords_count_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
