/* SPDX-License-Identifier: Apache-2.0 */
/* Statements of many lines: how often they are parsed, and how many bytes are read to make
 * prompts. */
#include "unit.h"

#include "shell/brackets.h"
#include "shell/outline.h"

#include "base/buf.h"

#include <string.h>

typedef struct work {
    uint64_t parsed;   /* bytes parsed */
    uint64_t outlined; /* bytes read to make prompts */
    bool last;         /* the last line was parsed */
} work;

/* Reads a statement of `begin`, `count` times `line`, and `end`. */
static work read_lines(const char *begin, const char *line, size_t count, const char *end)
{
    work w = {0};
    rq_buf text = {0};
    rq__brackets b = {0};
    rq__outline_place place = {0};
    for (size_t i = 0; i < count + 2; i++) {
        const char *next = i == 0 ? begin : i <= count ? line : end;
        assert_int_equal(rq_buf_append(&text, next, strlen(next)), RQ_OK);
        w.last = !rq__brackets_wait(&b, (const char *)text.ptr, text.len);
        if (w.last) w.parsed += text.len;
        w.outlined += text.len - place.at;
        (void)rq__outline_from(&place, (const char *)text.ptr, text.len);
    }
    rq_buf_clear(&text);
    return w;
}

static void work_grows_with_the_length(void **state)
{
    (void)state;
    static const char *const lines[] = {"'abc',\n", "1, # it's one [\n",
                                        "['r', {NAME => \"f\"}],\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (size_t n = 100; n <= 100000; n *= 10) {
            work w = read_lines("x = [\n", lines[i], n, "]\n");
            uint64_t len = n * strlen(lines[i]) + 8;
            assert_true(w.parsed < 8 * len + 4096 * 4096);
            assert_true(w.outlined <= 2 * len + 16);
            assert_true(w.last);
        }
}

/* Strings and here-documents over several lines, blocks, definitions, conditions. */
static void so_it_is_with_text_and_blocks(void **state)
{
    (void)state;
    static const char *const statements[][3] = {
        {"x = 'a\n", "it is # [ do end\n", "'\n"},
        {"put 't', 'r', \"a\n", "begin 'it\n", "\"\n"},
        {"x = <<~END\n", "it's [ \"here\" #\n", "  END\n"},
        {"f(<<-'E', 1)\n", "E 1\n", "E\n"},
        {"x = <<E\n", " E\n", "E\n"},
        {"t.each do |x|\n", "puts x.nil? if x << 1\n", "end\n"},
        {"x = begin\n", "a if b\n", "end\n"},
        {"def f\n", "[1].each do |x| puts $stdout end\n", "end\n"},
        {"while x do\n", "if a then b end\n", "end\n"},
        {"if x\n", "y = x.end - x.begin\n", "end\n"}};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        for (size_t n = 100; n <= 100000; n *= 10) {
            const char *const *s = statements[i];
            work w = read_lines(s[0], s[1], n, s[2]);
            assert_true(w.parsed < 8 * n * strlen(s[1]) + 4096 * 4096);
            assert_true(w.outlined <= 2 * n * strlen(s[1]) + 64);
            assert_true(w.last);
        }
}

/* The shell must not wait for the end of a word that opens no block. */
static void what_opens_nothing_is_parsed(void **state)
{
    (void)state;
    static const char *const lines[] = {"def f(x) = x\n",     "x.begin\n",     "a if b while c\n",
                                        "{do: 1}\n",          "y = x.class\n", "puts :if, :do\n",
                                        "while a do b end\n", "x <<E\n",       "'a' 'b'\n",
                                        "x = <<A\ntext\nA\n", "x.\nif(1)\n",   "begin? 1\n",
                                        "a do 1 end\n",       "x[1] << 2\n",   "'it''s'\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        work w = read_lines("", lines[i], 3000, "1\n");
        assert_true(w.last);
        assert_true(w.parsed > 3000 * 3000 / 2 * strlen(lines[i]));
    }
}

/* A statement that might be misread is parsed again at each line, as is a line that closes no
 * bracket. */
static void doubts_are_parsed(void **state)
{
    (void)state;
    static const char *const begins[] = {"x = [ /[/,\n",  "x = [ %w([),\n",   "x = [ ?[,\n",
                                         "x = [a <<E,\n", "x = [\"#{[}\",\n", "x = [ `[`,\n",
                                         "x = [ $[,\n",   "x\n=begin\n"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        work w = read_lines(begins[i], "1,\n", 3000, "1\n");
        assert_true(w.parsed > 3000 * 3000 * 3 / 2);
    }
}

static void an_outline_goes_on_where_it_was(void **state)
{
    (void)state;
    static const char text[] =
        "x = [\n'a\nb',\nif y\n# (\n1 ]\n=begin\n(\n=end\nfoo(<<E,\n (\nE\n1)\nend\n";
    rq__outline_place place = {0};
    for (size_t len = 0; len < sizeof text; len++) {
        rq__outline a = rq__outline_of(text, len), b = rq__outline_from(&place, text, len);
        assert_int_equal(a.depth, b.depth);
        assert_int_equal(a.string, b.string);
        assert_int_equal(a.goes_on, b.goes_on);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_grows_with_the_length),
        cmocka_unit_test(so_it_is_with_text_and_blocks),
        cmocka_unit_test(what_opens_nothing_is_parsed),
        cmocka_unit_test(doubts_are_parsed),
        cmocka_unit_test(an_outline_goes_on_where_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
