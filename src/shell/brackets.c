/* SPDX-License-Identifier: Apache-2.0 */
/* See brackets.h. Reads each byte once. Strings that go on over lines, here-documents, % literals, patterns and
 * characters (?a) are not understood: such a statement is parsed for each line. */
#include "shell/brackets.h"

#include <ctype.h>
#include <string.h>

#define EACH_LINE 4096 /* bytes: shorter statements are parsed for each line */

static size_t skip_quoted(rq__brackets *b, const char *text, size_t i, size_t len)
{
    char quote = text[i];
    for (i++; i < len && text[i] != quote; i++) {
        if (text[i] == '\n' || (text[i] == '#' && quote == '"')) b->is_unclear = true;
        if (text[i] == '\\') i++;
    }
    if (i >= len) b->is_unclear = true;
    return i;
}

static bool is_unclear(const char *text, size_t i, size_t len)
{
    char next = i + 1 < len ? text[i + 1] : '\n';
    if (text[i] == '%') return !isspace((unsigned char)next);
    if (text[i] == '<') return next == '<';
    if (text[i] == '=') return (i == 0 || text[i - 1] == '\n') && next == 'b';
    if (text[i] == '_') return next == '_';
    return memchr("/?`\\$", text[i], sizeof "/?`\\$") != NULL; /* and NUL */
}

static size_t take(rq__brackets *b, const char *text, size_t i, size_t len)
{
    char c = text[i];
    if (is_unclear(text, i, len)) b->is_unclear = true;
    if (c == '\'' || c == '"') return skip_quoted(b, text, i, len);
    if (c == '#') {
        const char *end = memchr(text + i, '\n', len - i);
        return end != NULL ? (size_t)(end - text) : len;
    }
    if (c == '[' || c == '(' || c == '{') b->depth++;
    if ((c == ']' || c == ')' || c == '}') && b->depth > 0) b->depth--;
    return i;
}

bool rq__brackets_wait(rq__brackets *b, const char *text, size_t len)
{
    for (; b->at < len && !b->is_unclear; b->at++)
        b->at = take(b, text, b->at, len);
    if (b->at > len) b->at = len;
    bool waits = !b->is_unclear && b->depth > 0 && len < b->parse_at;
    if (!waits && len > EACH_LINE) b->parse_at = len + len / 4;
    return waits;
}
