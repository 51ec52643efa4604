/* SPDX-License-Identifier: Apache-2.0 */
/* Ruby syntax that mruby's parser lacks, rewritten to syntax that it has. */
#include "unit.h"

#include "shell/long_lists.h"
#include "shell/rewrite.h"

#include <string.h>

/* expected NULL: the text is unchanged */
static void check(const char *text, const char *expected)
{
    rq_buf out = {0};
    assert_int_equal(rq__rewrite(text, strlen(text), 0, &out), RQ_OK);
    assert_int_equal(rq_buf_append_u8(&out, 0), RQ_OK);
    assert_string_equal((const char *)out.ptr, expected == NULL ? "" : expected);
    rq_buf_clear(&out);
}

static void long_integers_become_calls(void **state)
{
    (void)state;
    check("9223372036854775807", NULL);
    check("9223372036854775808", "Shell.big(\"9223372036854775808\",10)");
    check("x = 18_446_744_073_709_551_616 % 10",
          "x = Shell.big(\"18_446_744_073_709_551_616\",10) % 10");
    check("0x7fffffffffffffff", NULL);
    check("0x8000000000000000", "Shell.big(\"8000000000000000\",16)");
    check("0x00008000000000000000", "Shell.big(\"00008000000000000000\",16)");
    check("1.2345678901234567890123", NULL);
    check("12345678901234567890.5", NULL);
    check("f12345678901234567890", NULL);
}

static void check_from_line(uint64_t line, const char *text, const char *expected)
{
    rq_buf out = {0};
    assert_int_equal(rq__rewrite(text, strlen(text), line, &out), RQ_OK);
    assert_int_equal(rq_buf_append_u8(&out, 0), RQ_OK);
    assert_string_equal((const char *)out.ptr, expected == NULL ? "" : expected);
    rq_buf_clear(&out);
}

static void lines_of_long_files_become_numbers(void **state)
{
    (void)state;
    check_from_line(0, "__LINE__\n__LINE__", NULL);
    check_from_line(32766, "__LINE__\n__LINE__", NULL);
    check_from_line(32767, "__LINE__\n__LINE__", "__LINE__\n32768");
    check_from_line(
        4294967295, "f(__LINE__, \"#{__LINE__}\")\n'__LINE__' # __LINE__\nx.__LINE__\n__LINE__",
        "f(4294967295, \"#{4294967295}\")\n'__LINE__' # __LINE__\nx.__LINE__\n4294967298");
    check_from_line(70000, "\"a\n#{__LINE__}\n\" + <<E\n__LINE__\nE\n__LINE__",
                    "\"a\n#{70001}\n\" + <<E\n__LINE__\nE\n70005");
}

static void text_and_comments_stay(void **state)
{
    (void)state;
    check("puts '18446744073709551616' # 18446744073709551616", NULL);
    check("puts \"a \\\" 18446744073709551616\"", NULL);
    check("x = <<-END\n18446744073709551616\nEND\n", NULL);
    check("'18446744073709551616", NULL);
    check("=begin\nit's 18446744073709551616\n=end\n", NULL);
    check("=begin\nit's\n=end\n9223372036854775808",
          "=begin\nit's\n=end\nShell.big(\"9223372036854775808\",10)");
    check("f(<<~A, <<-'B', 9223372036854775808)\nit's 9223372036854775808\n A\n\"\nB\n"
          "9223372036854775808",
          "f(<<~A, <<-'B', Shell.big(\"9223372036854775808\",10))\nit's 9223372036854775808\n "
          "A\n\"\nB\nShell.big(\"9223372036854775808\",10)");
    check("a << 9223372036854775807\nb <<-1\nclass << self; end", NULL);
    check("x = <<E\nnever closed 9223372036854775808", NULL);
}

static void defined_evaluates_a_block(void **state)
{
    (void)state;
    check("defined?(a)", "(Shell.defined('a'){a})");
    check("x if defined? A::B", "x if (Shell.defined('A::B'){A::B})");
    check("defined?(f('x'))", "(Shell.defined(''){f('x')})");
    check("defined?(a", NULL);
    check("x.defined", NULL);
}

static void a_bare_raise_names_the_exception(void **state)
{
    (void)state;
    check("begin\n  a\nrescue => e\n  raise\nend", "begin\n  a\nrescue => e\n  raise e\nend");
    check("begin; a; rescue IOError; raise; end",
          "begin; a; rescue IOError => rescued_; raise rescued_; end");
    check("begin\n a\nrescue\n puts $!.message\n raise if x\nend",
          "begin\n a\nrescue => rescued_\n puts rescued_.message\n raise rescued_ if x\nend");
    check("begin\n a\nrescue => e\n puts \"#{$!}\"\nend",
          "begin\n a\nrescue => e\n puts \"#{e}\"\nend");
    check("begin\n a\nrescue A, B => e\n raise C, 'x'\nend", NULL);
    check("a rescue b", NULL);
    check("raise", NULL);
}

static void loops_ask_whether_to_go_on(void **state)
{
    (void)state;
    check("while true\n  x\nend", "while Wire.go_on and true\n  x\nend");
    check("x = 0; while(x < 1) do x += 1; end",
          "x = 0; while Wire.go_on and(x < 1) do x += 1; end");
    check("until a or b; end", "until !Wire.go_on or a or b; end");
    check("begin\n x\nend while x", "begin\n x\nend while Wire.go_on and x");
    check("%w[do while on]", NULL);
    check("x =~ /go while/", NULL);
    check("while_ 1\nwhile: 1\nx.while 1\n'while'", NULL);
    check("send while x", NULL);
}

static void no_byte_is_too_much(void **state)
{
    (void)state;
    static const char text[] = "a\0b 'c\0 defined?\0(";
    rq_buf out = {0};
    assert_int_equal(rq__rewrite(text, sizeof text - 1, 0, &out), RQ_OK);
    assert_int_equal(rq__rewrite("", 0, 0, &out), RQ_OK);
    assert_int_equal(out.len, 0);
    rq_buf_clear(&out);
}

/* --- long lists ------------------------------------------------------------------------------- */

/* "[", then the element `count` times, then "]". */
static rq_buf list_of(const char *before, const char *element, size_t count)
{
    rq_buf b = {0};
    assert_int_equal(rq_buf_append(&b, before, strlen(before)), RQ_OK);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) assert_int_equal(rq_buf_append(&b, ", ", 2), RQ_OK);
        assert_int_equal(rq_buf_append(&b, element, strlen(element)), RQ_OK);
    }
    assert_int_equal(rq_buf_append(&b, "]", 1), RQ_OK);
    return b;
}

/* The work of mruby for a text without commas in strings: for each element it walks over the whole
 * list. */
static uint64_t steps_of(rq_slice text)
{
    uint64_t steps = 0, lists[16] = {0};
    size_t depth = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '[' && depth < 15) lists[++depth] = 1;
        if (text.ptr[i] == ',' && depth > 0) steps += lists[depth]++;
        if (text.ptr[i] == ']' && depth > 0) depth--;
    }
    return steps;
}

static void long_lists_cost_less_than_their_square(void **state)
{
    (void)state;
    static const char *const elements[] = {"1",      "'a'",      "\"x\\n\"",
                                           ":a",     "VERSIONS", "-1.5",
                                           "nil",    "['r', 1]", "{NAME => 'f', a: 1}",
                                           "a",      "a + 1",    "\"#{a}-#{b['c']}\"",
                                           "[a, b]", "f(a)",     "java::Lang",
                                           "x = 1"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(elements); i++) {
        bool plain = strcmp(elements[i], "x = 1") != 0;
        for (size_t n = 1000; n <= (i == 0 ? 1000000 : 100000); n *= 10) {
            rq_buf text = list_of("a = [", elements[i], n), out = {0};
            assert_int_equal(rq__long_lists((const char *)text.ptr, text.len, &out), RQ_OK);
            if (plain) assert_true(steps_of(rq_buf_slice(&out)) < n * 4 * RQ__LIST_PIECE);
            if (!plain) assert_int_equal(out.len, 0);
            rq_buf_clear(&text);
            rq_buf_clear(&out);
        }
    }
}

static void check_list(const char *before, const char *element, size_t count, bool is_cut)
{
    rq_buf text = list_of(before, element, count), out = {0};
    assert_int_equal(rq__rewrite((const char *)text.ptr, text.len, 0, &out), RQ_OK);
    assert_int_equal(out.len > 0, is_cut);
    rq_buf_clear(&text);
    rq_buf_clear(&out);
}

static void what_means_the_same_in_a_lambda_is_cut(void **state)
{
    (void)state;
    check_list("[", "1", RQ__LIST_PIECE - 1, false);
    check_list("[", "1", RQ__LIST_PIECE, true);
    check_list("put 't', [", "1", 300, true);
    check_list("x = 'it\\'s [' # [\ny = [", "1", 300, true);
    check_list("x.empty?; y = [", "1", 300, true);
    static const char *const moved[] = {"a",
                                        "f(1)",
                                        "(1)",
                                        "\"#{a}\"",
                                        "F(1)",
                                        "A.b",
                                        "*[1]",
                                        "@a",
                                        "[a]",
                                        "{1 => a}",
                                        "A::b",
                                        "->{a}",
                                        "a / 2",
                                        "a/2",
                                        "a % 2",
                                        "a%2",
                                        "a == b",
                                        "a <= b",
                                        "a ? b : c",
                                        "x.y?",
                                        "a.map { |x| x }",
                                        "f(a: 1)",
                                        "a.end",
                                        "f('a' => 1)",
                                        "\"\\\\#{a}\"",
                                        "\"\\#{ = }\"",
                                        "a << b",
                                        ":if",
                                        "\"#{a[\"b, c\"]}\""};
    for (size_t i = 0; i < RQ_ARRAY_LEN(moved); i++)
        check_list("[", moved[i], 1000, true);
    static const char *const others[] = {"1 => 2",
                                         "a: 1",
                                         "a:1",
                                         "\"a\": 1",
                                         "'a':1",
                                         "'a' => 1",
                                         "x = 1",
                                         "x += 1",
                                         "$!",
                                         "`a`",
                                         "return",
                                         "1 if A",
                                         "__LINE__",
                                         "?a",
                                         "(x = 1)",
                                         "\"#{x = 1}\"",
                                         "yield",
                                         "_1",
                                         "%w[a]",
                                         "/a/",
                                         "x <<= 1",
                                         "f { y = 1 }",
                                         "<<~E",
                                         "f(x = 1)",
                                         "\"\\\\#{x = 1}\"",
                                         "block_given?",
                                         "a ? b : (c = 1)",
                                         "when / ,/"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(others); i++)
        check_list("[", others[i], 1000, false);
    static const char *const before[] = {"a[",        "%w[",    "x = %q( [",
                                         "x =~ /[ [", "<<E\n[", "=begin\n[",
                                         "'[",        "\"[",    "x = 1\n__END__\n["};
    for (size_t i = 0; i < RQ_ARRAY_LEN(before); i++)
        check_list(before[i], "1", 1000, false);
}

/* In braces pairs are counted only if the braces are a hash. */
static void hashes_are_cut_as_lists(void **state)
{
    (void)state;
    check_list("x = {", "a => b", 300, true);
    check_list("x = {", "a: \"#{b}\"", 300, true);
    check_list("create 't', {", "'a': 1", 300, true);
    check_list("f({", "'a' => [b, 1]", 300, true);
    check_list("x = {", "a => (b = 1)", 300, false);
    check_list("x = {", "**a", 300, false);
    check_list("f(", "a => b", 300, false);
    check_list("f {", "a => b", 300, false);
    check_list("f(x) {", "a => b", 300, false);
}

/* A piece ends before the code that follows its last element. */
static void pieces_are_lambdas(void **state)
{
    (void)state;
    rq_buf text = list_of("[a = 2, ", "1", RQ__LIST_PIECE), out = {0};
    text.len--;
    assert_int_equal(rq_buf_append(&text, " # ]\n, b]", 9), RQ_OK);
    assert_int_equal(rq__long_lists((const char *)text.ptr, text.len, &out), RQ_OK);
    assert_memory_equal(out.ptr, "[a = 2, *->{[1, 1,", 18);
    assert_memory_equal(out.ptr + out.len - 17, ", 1]}.() # ]\n, b]", 17);
    rq_buf_clear(&text);
    rq_buf_clear(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_integers_become_calls),
        cmocka_unit_test(lines_of_long_files_become_numbers),
        cmocka_unit_test(text_and_comments_stay),
        cmocka_unit_test(defined_evaluates_a_block),
        cmocka_unit_test(a_bare_raise_names_the_exception),
        cmocka_unit_test(loops_ask_whether_to_go_on),
        cmocka_unit_test(no_byte_is_too_much),
        cmocka_unit_test(long_lists_cost_less_than_their_square),
        cmocka_unit_test(what_means_the_same_in_a_lambda_is_cut),
        cmocka_unit_test(hashes_are_cut_as_lists),
        cmocka_unit_test(pieces_are_lambdas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
