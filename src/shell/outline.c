/* SPDX-License-Identifier: Apache-2.0 */
/* See outline.h. */
#include "shell/outline.h"

#include <ctype.h>
#include <string.h>

static bool one_of(const char *word, size_t len, const char *list)
{
    for (const char *p = list; *p != '\0';) {
        size_t n = strcspn(p, " ");
        if (n == len && memcmp(p, word, len) == 0) return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

static void take_word(rq__glance *g, const char *word, size_t len)
{
    bool block = one_of(word, len, "class module def begin case");
    bool conditional = g->at_start && one_of(word, len, "if unless while until for");
    bool is_do = one_of(word, len, "do") && !g->loop;
    if (block || conditional || is_do) g->o.depth++;
    if (one_of(word, len, "end") && g->o.depth > 0) g->o.depth--;
    if (conditional) g->loop = one_of(word, len, "while until for");
    g->o.goes_on = one_of(word, len, "do else ensure then and or not return");
    g->at_start = g->o.goes_on;
}

/* At the quote that ends the open string, from i on; `len`: it stays open. */
static size_t end_string(rq__glance *g, const char *text, size_t i, size_t len)
{
    for (; i < len && text[i] != g->o.string; i++)
        if (text[i] == '\\') i++;
    if (i < len) g->o.string = 0;
    g->o.goes_on = g->at_start = false;
    return i;
}

/* The offset of the line after the one at i; `len`: there is none. */
static size_t next_line(const char *text, size_t i, size_t len)
{
    const char *newline = i < len ? memchr(text + i, '\n', len - i) : NULL;
    return newline != NULL ? (size_t)(newline - text) + 1 : len;
}

static void take_mark(rq__glance *g, char c)
{
    if (strchr("([{", c) != NULL) g->o.depth++;
    bool closes = strchr(")]}", c) != NULL;
    if (closes && g->o.depth > 0) g->o.depth--;
    g->o.goes_on = !closes && c != ';' && c != '?' && c != '!';
    g->at_start = c == ';' || c == '=' || c == '(' || c == '{' || c == '|';
}

/* At the last byte of the mark that ends the open here-document, from the line at i on. */
static size_t end_document(rq__glance *g, const char *text, size_t i, size_t len)
{
    for (; i < len; i = next_line(text, i, len)) {
        size_t at = i, n = g->mark_len;
        while (at < len && (text[at] == ' ' || text[at] == '\t'))
            at++;
        if (at + n >= len || memcmp(text + at, text + g->mark, n) != 0 || text[at + n] != '\n')
            continue;
        g->o.string = 0;
        g->mark_len = 0;
        return at + n - 1;
    }
    return len;
}

/* Behind the here-document that begins at i ("<<-END"); i itself if it is none. */
static size_t skip_document(rq__glance *g, const char *text, size_t i, size_t len)
{
    size_t name = i + 2;
    if (name < len && (text[name] == '-' || text[name] == '~')) name++;
    size_t n = 0;
    while (name + n < len && (isupper((unsigned char)text[name + n]) || text[name + n] == '_'))
        n++;
    if (n == 0) return i;
    g->mark = name;
    g->mark_len = n;
    g->o.string = '"';
    return end_document(g, text, next_line(text, name + n, len), len);
}

/* At the last byte of the line that ends the open comment, from the line at i on. */
static size_t end_comment(rq__glance *g, const char *text, size_t i, size_t len)
{
    for (; i < len; i = next_line(text, i, len)) {
        if (i + 4 >= len || memcmp(text + i, "=end", 4) != 0) continue;
        if (!isspace((unsigned char)text[i + 4])) continue;
        g->o.string = 0;
        size_t next = next_line(text, i, len);
        return text[next - 1] == '\n' ? next - 2 : next - 1;
    }
    return len;
}

/* The place behind the comment that begins at i ("=begin" at the beginning of a line); i if there is none. */
static size_t skip_comment(rq__glance *g, const char *text, size_t i, size_t len)
{
    bool begins = i == 0 || text[i - 1] == '\n';
    if (!begins || i + 6 >= len || memcmp(text + i, "=begin", 6) != 0) return i;
    if (!isspace((unsigned char)text[i + 6])) return i;
    g->o.string = '=';
    return end_comment(g, text, next_line(text, i, len), len);
}

/* Of the string, here-document or comment that is open. */
static size_t go_on(rq__glance *g, const char *text, size_t i, size_t len)
{
    if (g->o.string == '=') return end_comment(g, text, i, len);
    return g->mark_len > 0 ? end_document(g, text, i, len) : end_string(g, text, i, len);
}

static size_t take(rq__glance *g, const char *text, size_t i, size_t len)
{
    char c = text[i];
    size_t behind = c == '=' ? skip_comment(g, text, i, len) : i;
    if (behind != i) return behind;
    if (c == '<' && i + 1 < len && text[i + 1] == '<') {
        size_t end = skip_document(g, text, i, len);
        if (end != i) return end;
    }
    if (c == '"' || c == '\'' || c == '`') {
        g->o.string = c;
        return end_string(g, text, i + 1, len);
    }
    if (isalnum((unsigned char)c) || c == '_' || c == '@' || c == '$' || (c & 0x80) != 0) {
        size_t end = i;
        while (end < len && (isalnum((unsigned char)text[end]) || text[end] == '_' ||
                             text[end] == '@' || text[end] == '$' || (text[end] & 0x80) != 0))
            end++;
        if (i > 0 && (text[i - 1] == '.' || text[i - 1] == ':'))
            g->o.goes_on = g->at_start = false;
        else
            take_word(g, text + i, end - i);
        return end - 1;
    }
    if (!isspace((unsigned char)c)) take_mark(g, c);
    return i;
}

rq__outline rq__outline_of(const char *text, size_t len)
{
    rq__outline_place from = {0};
    return rq__outline_from(&from, text, len);
}

rq__outline rq__outline_from(rq__outline_place *from, const char *text, size_t len)
{
    if (from->at == 0) from->g = (rq__glance){.at_start = true};
    rq__glance g = from->g;
    for (size_t i = from->at; i < len; i++) {
        if (g.o.string != 0) {
            i = go_on(&g, text, i, len);
        } else if (text[i] == '#') {
            while (i + 1 < len && text[i + 1] != '\n')
                i++;
        } else if (text[i] == '\n') {
            g.at_start = true;
            g.loop = false;
            *from = (rq__outline_place){.g = g, .at = i + 1};
        } else {
            i = take(&g, text, i, len);
        }
    }
    if (g.o.string != 0 && len > 0 && text[len - 1] == '\n')
        *from = (rq__outline_place){.g = g, .at = len};
    return g.o;
}
