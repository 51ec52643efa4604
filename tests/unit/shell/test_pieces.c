/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are run in pieces: where a piece may end, and how often a long piece is parsed. */
#include "unit.h"

#include "shell/line.h"
#include "shell/pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST ((size_t)1 << 30) /* bytes of a piece */

static volatile sig_atomic_t off = 0, on = 1; /* SIGINT */
static const rq__pieces_limits usual = {MOST, MOST, &off};

typedef struct given {
    char path[64];
    rq__pieces pieces;
} given;

static void give(given *g, const char *text, size_t len)
{
    strcpy(g->path, "/tmp/rorqual-pieces-XXXXXX");
    int fd = mkstemp(g->path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), len);
    (void)close(fd);
    assert_int_equal(rq__pieces_open(&g->pieces, g->path, &usual), 0);
}

static void give_text(given *g, const char *text)
{
    give(g, text, strlen(text));
}

static void drop(given *g)
{
    rq__pieces_close(&g->pieces);
    (void)unlink(g->path);
}

static void expect_piece(given *g, uint64_t begin, const char *text)
{
    assert_true(rq__pieces_next(&g->pieces));
    assert_int_equal(g->pieces.begin, begin);
    assert_int_equal(g->pieces.text.len, strlen(text));
    assert_memory_equal(g->pieces.text.ptr, text, strlen(text));
}

static void expect_end(given *g)
{
    assert_false(rq__pieces_next(&g->pieces));
    assert_int_equal(g->pieces.error, 0);
}

static void a_line_is_a_piece(void **state)
{
    (void)state;
    given g;
    give_text(&g, "\n  # comment\na = 1\n\nb = 2 # two\nc");
    for (int i = 0; i < 2; i++) {
        expect_piece(&g, 3, "a = 1\n");
        expect_piece(&g, 5, "b = 2 # two\n");
        expect_piece(&g, 6, "c");
        expect_end(&g);
        rq__pieces_restart(&g.pieces);
    }
    drop(&g);
}

/* A line that begins with a dot continues the previous one; a range does not. Comments may be
 * between them. */
static void a_dot_goes_on(void **state)
{
    (void)state;
    given g;
    give_text(&g, "a\n  .b\n# why\n  &.c\nd\n..5\n");
    expect_piece(&g, 1, "a\n  .b\n# why\n  &.c\n");
    expect_piece(&g, 5, "d\n");
    expect_piece(&g, 6, "..5\n");
    expect_end(&g);
    drop(&g);
}

static void what_is_open_is_one_piece(void **state)
{
    (void)state;
    given g;
    give_text(&g, "x = [\n1,\n2\n]\nif a\n");
    expect_piece(&g, 1, "x = [\n");
    for (int i = 0; i < 3; i++)
        assert_true(rq__pieces_more(&g.pieces));
    assert_int_equal(g.pieces.begin, 1);
    assert_int_equal(g.pieces.text.len, 13);
    assert_memory_equal(g.pieces.text.ptr, "x = [\n1,\n2\n]\n", 13);
    expect_piece(&g, 5, "if a\n");
    assert_false(rq__pieces_more(&g.pieces));
    assert_int_equal(g.pieces.error, 0);
    drop(&g);
}

static void data_is_not_code(void **state)
{
    (void)state;
    given g;
    give_text(&g, "a\n__END__\nb\n");
    expect_piece(&g, 1, "a\n");
    expect_end(&g);
    drop(&g);
    give_text(&g, "");
    expect_end(&g);
    drop(&g);
}

static void a_byte_0_is_kept(void **state)
{
    (void)state;
    given g;
    give(&g, "a = '\0'\n\0\n", 10);
    assert_true(rq__pieces_next(&g.pieces));
    assert_memory_equal(g.pieces.text.ptr, "a = '\0'\n", 8);
    assert_true(rq__pieces_next(&g.pieces));
    assert_memory_equal(g.pieces.text.ptr, "\0\n", 2);
    expect_end(&g);
    drop(&g);
}

/* A pattern, which the bracket scanner does not understand, in each line of a piece that never
 * ends. */
static void a_long_piece_is_parsed_seldom(void **state)
{
    (void)state;
    static const char *const lines[] = {"p(/a/)\n", "  p(/a/)\n", "end if /a/\n", "x = {\n"};
    for (size_t k = 0; k < RQ_ARRAY_LEN(lines); k++) {
        given g;
        rq_buf text = {0};
        size_t parsed = 0;
        for (size_t i = 0; i < 200000; i++)
            assert_int_equal(rq_buf_append(&text, lines[k], strlen(lines[k])), RQ_OK);
        give(&g, (const char *)text.ptr, text.len);
        assert_true(rq__pieces_next(&g.pieces));
        do
            parsed += g.pieces.text.len;
        while (rq__pieces_more(&g.pieces));
        assert_int_equal(g.pieces.text.len, text.len);
        assert_true(parsed < 70 * text.len + (size_t)4096 * 4096);
        rq_buf_clear(&text);
        drop(&g);
    }
}

static void what_cannot_be_read_is_an_error(void **state)
{
    (void)state;
    rq__pieces p;
    assert_int_equal(rq__pieces_open(&p, "/nope/x", &usual), ENOENT);
    rq__pieces_close(&p);
    assert_int_equal(rq__pieces_open(&p, "/", &usual), EISDIR);
    rq__pieces_close(&p);
}

/* A pipe's content is read twice, too. */
static void a_pipe_is_read(void **state)
{
    (void)state;
    int ends[2];
    char path[32];
    rq__pieces p;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "a\nb\n", 4), 4);
    (void)close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_int_equal(rq__pieces_open(&p, path, &usual), 0);
    for (int i = 0; i < 2; i++) {
        assert_true(rq__pieces_next(&p));
        assert_true(rq__pieces_next(&p));
        assert_memory_equal(p.text.ptr, "b\n", 2);
        assert_false(rq__pieces_next(&p));
        rq__pieces_restart(&p);
    }
    rq__pieces_close(&p);
    (void)close(ends[0]);
}

/* The temporary copy of a pipe has a limit, which is exact; /dev/zero has no end. */
static void a_copy_has_a_limit(void **state)
{
    (void)state;
    rq__pieces p;
    for (size_t max = 3; max <= 4; max++) {
        int ends[2];
        char path[32];
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], "a\nb\n", 4), 4);
        (void)close(ends[1]);
        snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
        rq__pieces_limits limits = {MOST, max, &off};
        assert_int_equal(rq__pieces_open(&p, path, &limits), max < 4 ? EFBIG : 0);
        rq__pieces_close(&p);
        (void)close(ends[0]);
    }
    rq__pieces_limits limits = {MOST, 1 << 20, &off};
    assert_int_equal(rq__pieces_open(&p, "/dev/zero", &limits), EFBIG);
    rq__pieces_close(&p);
}

/* A FIFO without a writer: Ctrl-C ends the wait. */
static void a_silent_pipe_is_left(void **state)
{
    (void)state;
    rq__pieces p;
    char folder[] = "/tmp/rorqual-pieces-XXXXXX", path[64];
    rq__pieces_limits limits = {MOST, MOST, &on};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(rq__pieces_open(&p, path, &limits), EINTR);
    rq__pieces_close(&p);
    (void)unlink(path);
    (void)rmdir(folder);
}

/* A line, and a piece of several lines, that is longer than the limit is an error and takes no more memory. */
static void a_piece_has_a_limit(void **state)
{
    (void)state;
    static const char *const texts[] = {"a = [1,\n2,\n", "x = '0123456789'\n"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(texts); i++) {
        for (size_t max = strlen(texts[i]) - 1; max <= strlen(texts[i]); max++) {
            given g;
            give_text(&g, texts[i]);
            rq__pieces_close(&g.pieces);
            rq__pieces_limits limits = {max, 0, &off};
            assert_int_equal(rq__pieces_open(&g.pieces, g.path, &limits), 0);
            bool goes_on = rq__pieces_next(&g.pieces);
            while (goes_on && rq__pieces_more(&g.pieces)) {
            }
            assert_int_equal(g.pieces.error, max < strlen(texts[i]) ? ENOMEM : 0);
            assert_true(g.pieces.text.len <= max);
            drop(&g);
        }
    }
}

/* Lines with zero bytes, without an end, and of any length; the limit is exact. */
static void lines_are_read(void **state)
{
    (void)state;
    rq_buf line = {0};
    char text[2000];
    memset(text, 'x', sizeof text);
    memcpy(text, "a\0b\n\n", 5);
    text[1999] = '\n';
    FILE *file = fmemopen(text, sizeof text, "r");
    assert_non_null(file);
    assert_int_equal(rq__line_read(file, 4, &line), RQ_OK);
    assert_int_equal(line.len, 4);
    assert_memory_equal(line.ptr, "a\0b\n", 5);
    assert_int_equal(rq__line_read(file, 4, &line), RQ_OK);
    assert_string_equal(line.ptr, "\n");
    assert_int_equal(rq__line_read(file, sizeof text - 5, &line), RQ_OK);
    assert_int_equal(line.len, sizeof text - 5);
    assert_int_equal(rq__line_read(file, 0, &line), RQ_E_END);
    assert_int_equal(line.len, 0);
    rewind(file);
    assert_int_equal(rq__line_read(file, 3, &line), RQ_E_NO_MEMORY);
    assert_int_equal(line.len, 0);
    (void)fclose(file);
    rq_buf_clear(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_a_piece),
        cmocka_unit_test(a_dot_goes_on),
        cmocka_unit_test(what_is_open_is_one_piece),
        cmocka_unit_test(data_is_not_code),
        cmocka_unit_test(a_byte_0_is_kept),
        cmocka_unit_test(a_long_piece_is_parsed_seldom),
        cmocka_unit_test(what_cannot_be_read_is_an_error),
        cmocka_unit_test(a_pipe_is_read),
        cmocka_unit_test(a_copy_has_a_limit),
        cmocka_unit_test(a_silent_pipe_is_left),
        cmocka_unit_test(a_piece_has_a_limit),
        cmocka_unit_test(lines_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
