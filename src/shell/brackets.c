/* SPDX-License-Identifier: Apache-2.0 */
/* See brackets.h. Counts the brackets and the blocks that are open, and reads each byte once. A word such as `if` opens
 * a block in one place and none in another; it is counted only where it certainly opens one, but every `end` is taken to close one.
 * So the count is sometimes too low, which costs a needless parse, and never too high, which would let the shell wait for
 * an end that has been typed. Literals with %, patterns, characters (?a) and code in strings are not understood: a statement that
 * has them is parsed after each line. */
#include "shell/brackets.h"
#include "shell/words.h"

#include <ctype.h>
#include <string.h>

#define EACH_LINE 4096 /* bytes: shorter statements are parsed for each line */

static bool is_in(char c, const char *marks)
{
    return c != '\0' && strchr(marks, c) != NULL;
}

/* --- strings ---------------------------------------------------------------------------------- */

/* Skips the rest of a string, from i on. Returns the position of the quote that ends it; `len`: the string is still
 * open. */
static size_t skip_quoted(rq__brackets *b, const char *text, size_t i, size_t len)
{
    for (; i < len && text[i] != b->quote; i++) {
        if (text[i] == '#' && b->quote == '"') b->is_unclear = true;
        if (text[i] == '\\') i++;
    }
    if (i < len) b->quote = 0;
    return i;
}

/* A here-document may begin at i: <<~NAME, <<-'NAME' or <<NAME. After an assignment, a bracket or a comma it is one for certain;
 * elsewhere << may be the operator. */
static void open_document(rq__brackets *b, const char *text, size_t i, size_t len)
{
    size_t at = i + 2;
    if (at < len && is_in(text[at], "~-")) at++;
    char quote = at < len && is_in(text[at], "'\"") ? text[at++] : '\0';
    size_t n = 0;
    while (at + n < len && rq__is_word(text[at + n]))
        n++;
    bool is_name = n > 0 && !isdigit((unsigned char)text[at]);
    if (!is_name || b->document_len > 0 || !is_in(b->last, "=([{,") ||
        (quote != '\0' && (at + n >= len || text[at + n] != quote)))
        b->is_unclear = true;
    b->document = at;
    b->document_len = n;
    b->document_indents = at > i + 2 && text[i + 2] != '\'' && text[i + 2] != '"';
}

/* Skips one line of the open here-document; the line begins at i. Returns the position of its end. The line with nothing
 * but the end mark closes the here-document. */
static size_t skip_document_line(rq__brackets *b, const char *text, size_t i, size_t len)
{
    const char *newline = memchr(text + i, '\n', len - i);
    size_t end = newline != NULL ? (size_t)(newline - text) : len;
    if (memmem(text + i, end - i, "#{", 2) != NULL) b->is_unclear = true;
    size_t from = i, to = end > i && text[end - 1] == '\r' ? end - 1 : end;
    while (b->document_indents && from < to && is_in(text[from], " \t"))
        from++;
    if (to - from == b->document_len &&
        memcmp(text + from, text + b->document, b->document_len) == 0)
        b->document_len = 0;
    b->in_document = b->document_len > 0;
    return end;
}

/* --- words ------------------------------------------------------------------------------------ */

/* Whether a definition, from its name at i on, has an = in its line: `def a(b) = c` has no `end`. */
static bool has_equal(const char *text, size_t i, size_t len)
{
    const char *newline = memchr(text + i, '\n', len - i);
    return memchr(text + i, '=', newline != NULL ? (size_t)(newline - text) - i : len - i) != NULL;
}

/* Counts the word that begins at i if it opens or closes a block. Returns the position of its last byte. */
static size_t take_word(rq__brackets *b, const char *text, size_t i, size_t len)
{
    size_t end = i;
    while (end < len && rq__is_word(text[end]))
        end++;
    const char *word = text + i;
    size_t n = end - i;
    bool is_name = is_in(b->last, ".") || (i > 0 && is_in(text[i - 1], ":@$")) ||
                   (end < len && is_in(text[end], "?!:"));
    bool loops = rq__is_one_of(word, n, "while until for");
    bool opens =
        b->at_start && (loops || rq__is_one_of(word, n, "begin class module case if unless") ||
                        (rq__is_one_of(word, n, "def") && !has_equal(text, end, len)));
    opens = opens || (rq__is_one_of(word, n, "begin") && b->last == '=') ||
            (rq__is_one_of(word, n, "do") && !b->in_loop);
    if (opens && !is_name) b->words++;
    if (b->at_start) b->in_loop = loops;
    bool is_method = i > 0 && text[i - 1] == '.';
    if (rq__is_one_of(word, n, "end") && !is_method && b->words > 0) b->words--;
    return end - 1;
}

/* --- the text --------------------------------------------------------------------------------- */

/* Whether something that this reader does not understand may begin at i: a pattern or a division (/), a literal (%w[]), a
 * character (?a), a command (`), a comment of lines (=begin), __END__, or a variable such as $". */
static bool is_unclear(const char *text, size_t i, size_t len)
{
    char next = i + 1 < len ? text[i + 1] : '\n';
    if (text[i] == '%') return !isspace((unsigned char)next);
    if (text[i] == '=') return (i == 0 || text[i - 1] == '\n') && next == 'b';
    if (text[i] == '_') return next == '_';
    if (text[i] == '$') return !rq__is_word(next);
    if (text[i] == '?')
        return i == 0 || !rq__is_word(text[i - 1]) || !is_in(next, " \t\r\n).,;&|]}");
    return memchr("/`\\", text[i], sizeof "/`\\") != NULL; /* and NUL */
}

static void take_mark(rq__brackets *b, const char *text, size_t i, size_t len)
{
    char c = text[i];
    if (c == '[' || c == '(' || c == '{') b->depth++;
    if ((c == ']' || c == ')' || c == '}') && b->depth > 0) b->depth--;
    if (c != '<' || i + 1 >= len || text[i + 1] != '<' || (i > 0 && text[i - 1] == '<')) return;
    if (i + 2 < len && !isspace((unsigned char)text[i + 2])) open_document(b, text, i, len);
}

/* Takes what begins at i, outside of strings and here-documents. Returns the position of its last byte. */
static size_t take_code(rq__brackets *b, const char *text, size_t i, size_t len)
{
    char c = text[i];
    size_t last = i;
    if (is_unclear(text, i, len)) b->is_unclear = true;
    if (c == '#') {
        const char *end = memchr(text + i, '\n', len - i);
        return (end != NULL ? (size_t)(end - text) : len) - 1;
    }
    if (c == '\n') {
        b->at_start = true;
        b->in_loop = false;
        b->in_document = b->document_len > 0;
        return i;
    }
    if (isspace((unsigned char)c)) return i;
    if (c == '\'' || c == '"') {
        b->quote = c;
        last = skip_quoted(b, text, i + 1, len);
    } else if (rq__is_word(c)) {
        last = take_word(b, text, i, len);
    } else {
        take_mark(b, text, i, len);
    }
    b->last = c;
    b->at_start = false;
    return last;
}

static size_t take(rq__brackets *b, const char *text, size_t i, size_t len)
{
    if (b->quote != 0) return skip_quoted(b, text, i, len);
    return b->in_document ? skip_document_line(b, text, i, len) : take_code(b, text, i, len);
}

bool rq__brackets_wait(rq__brackets *b, const char *text, size_t len)
{
    if (b->at == 0) b->at_start = true;
    for (; b->at < len && !b->is_unclear; b->at++)
        b->at = take(b, text, b->at, len);
    if (b->at > len) b->at = len;
    bool is_open = b->depth > 0 || b->words > 0 || b->quote != 0 || b->in_document;
    bool waits = !b->is_unclear && is_open && len < b->parse_at;
    if (!waits && len > EACH_LINE) b->parse_at = len + len / 4;
    return waits;
}
