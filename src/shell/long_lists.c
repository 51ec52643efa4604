/* SPDX-License-Identifier: Apache-2.0 */
/* See long_lists.h. One pass over the text finds brackets, commas and the elements between them, and notes where a
 * piece of 256 plain elements begins and ends; 256 pieces become a piece of the next level. What this reader does
 * not understand for certain (here-documents, % literals, comments of several lines) ends its work. */
#include "shell/long_lists.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS 4 /* of 256: more elements than a text has */
#define OPENS "*->{["
#define CLOSES "]}.()"

typedef struct edit {
    size_t at;
    const char *text;
} edit;

typedef struct level {
    size_t begin; /* of the piece that is being collected */
    size_t count; /* of what it has */
} level;

/* An open bracket. */
typedef struct open_list {
    char bracket;
    bool is_list;        /* an array literal */
    bool is_plain;       /* all of the element that is being read */
    bool was_plain;      /* all elements so far */
    bool has_element;    /* something stands behind the last comma */
    size_t element, end; /* where it begins, and the end of what was read of it */
    level levels[LEVELS];
} open_list;

typedef struct reader {
    const char *text;
    size_t len;
    open_list *stack;
    size_t depth, cap;
    edit *edits;
    size_t edit_count, edit_cap;
} reader;

/* One more item in an array that grows by doubling. */
static rq_err grow(void **items, size_t *cap, size_t count, size_t size)
{
    if (count < *cap) return RQ_OK;
    size_t wanted = *cap == 0 ? 16 : 2 * *cap;
    void *p = realloc(*items, wanted * size);
    if (p == NULL) return RQ_E_NO_MEMORY;
    *items = p;
    *cap = wanted;
    return RQ_OK;
}

static rq_err note(reader *r, size_t at, const char *text)
{
    void *edits = r->edits;
    RQ_TRY(grow(&edits, &r->edit_cap, r->edit_count, sizeof *r->edits));
    r->edits = edits;
    r->edits[r->edit_count++] = (edit){at, text};
    return RQ_OK;
}

/* --- elements --------------------------------------------------------------------------------- */

static open_list *top(reader *r)
{
    return r->depth == 0 ? NULL : &r->stack[r->depth - 1];
}

/* Something of the current element. */
static void take(reader *r, size_t begin, size_t end, bool plain)
{
    open_list *l = top(r);
    if (l == NULL) return;
    if (!l->has_element) l->element = begin;
    l->has_element = true;
    l->end = end;
    if (!plain) l->is_plain = false;
}

/* A plain element, or a piece of the level below, has ended. */
static rq_err add(reader *r, open_list *l, unsigned n, size_t begin)
{
    level *v = &l->levels[n];
    if (v->count == 0) v->begin = begin;
    if (++v->count < RQ__LIST_PIECE) return RQ_OK;
    v->count = 0;
    RQ_TRY(note(r, v->begin, OPENS));
    RQ_TRY(note(r, l->end, CLOSES));
    return n + 1 < LEVELS ? add(r, l, n + 1, v->begin) : RQ_OK;
}

/* At a comma or the closing bracket. Behind an element that is not plain new pieces begin. */
static rq_err end_element(reader *r)
{
    open_list *l = top(r);
    if (l == NULL || !l->has_element) return RQ_OK;
    l->has_element = false;
    l->was_plain = l->was_plain && l->is_plain;
    bool counts = l->is_list && l->is_plain;
    l->is_plain = true;
    if (counts) return add(r, l, 0, l->element);
    memset(l->levels, 0, sizeof l->levels);
    return RQ_OK;
}

/* --- brackets --------------------------------------------------------------------------------- */

/* An array literal; behind a name a bracket is an index. */
static bool begins_list(const reader *r, size_t i)
{
    return i == 0 || strchr(" \t\r\n=([{,>|;&", r->text[i - 1]) != NULL;
}

static rq_err open_bracket(reader *r, size_t i)
{
    void *stack = r->stack;
    RQ_TRY(grow(&stack, &r->cap, r->depth, sizeof *r->stack));
    r->stack = stack;
    r->stack[r->depth++] = (open_list){.bracket = r->text[i],
                                       .is_list = r->text[i] == '[' && begins_list(r, i),
                                       .is_plain = true,
                                       .was_plain = r->text[i] != '('};
    return RQ_OK;
}

/* false: it closes no bracket that is open. */
static bool fits(char opened, char closes)
{
    return (opened == '[' && closes == ']') || (opened == '{' && closes == '}') ||
           (opened == '(' && closes == ')');
}

static rq_err close_bracket(reader *r, size_t i, bool *ret_stop)
{
    *ret_stop = r->depth == 0 || !fits(top(r)->bracket, r->text[i]);
    if (*ret_stop) return RQ_OK;
    RQ_TRY(end_element(r));
    bool plain = top(r)->was_plain && (top(r)->is_list || top(r)->bracket == '{');
    r->depth--;
    take(r, i, i + 1, plain);
    return RQ_OK;
}

/* --- tokens ----------------------------------------------------------------------------------- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (c & 0x80) != 0;
}

/* Behind the quoted text that begins at i. */
static size_t take_quoted(reader *r, size_t i)
{
    char quote = r->text[i];
    size_t begin = i++;
    bool plain = quote != '`';
    for (; i < r->len && r->text[i] != quote; i++) {
        if (quote == '"' && r->text[i] == '#') plain = false;
        if (r->text[i] == '\\') i++;
    }
    i = i < r->len ? i + 1 : r->len;
    take(r, begin, i, plain);
    return i;
}

static bool is_one_of(const char *word, size_t n, const char *list)
{
    for (const char *p = list; *p != '\0'; p += strcspn(p, " "), p += *p == ' ')
        if (strcspn(p, " ") == n && memcmp(p, word, n) == 0) return true;
    return false;
}

static bool in_hash(reader *r)
{
    return r->depth > 0 && top(r)->bracket == '{';
}

/* A part of a symbol, a constant, a number or, in braces, a pair: pairs without braces are one element together. */
static bool is_plain_mark(reader *r, size_t i)
{
    char c = r->text[i], next = i + 1 < r->len ? r->text[i + 1] : '\n';
    if (c == ':') return in_hash(r) || is_word(next) || next == ':' || next == '"' || next == '\'';
    return c == '.' || c == '-' || (in_hash(r) && (c == '=' || c == '>'));
}

/* Numbers, constants, nil, true, false, symbols and the names of keys. */
static size_t take_word(reader *r, size_t i)
{
    size_t begin = i;
    while (i < r->len && is_word(r->text[i]))
        i++;
    char c = r->text[begin];
    bool is_symbol =
        begin > 0 && r->text[begin - 1] == ':' && (begin < 2 || r->text[begin - 2] != ':');
    bool is_key = in_hash(r) && i + 1 < r->len && r->text[i] == ':' && r->text[i + 1] != ':';
    bool is_name = isdigit((unsigned char)c) || isupper((unsigned char)c) || is_symbol || is_key ||
                   is_one_of(r->text + begin, i - begin, "nil true false");
    bool is_call = i < r->len && strchr("!?([{", r->text[i]) != NULL;
    if (i < r->len && r->text[i] == '?') i++; /* of a method's name */
    take(r, begin, i, is_name && !is_call);
    return i;
}

/* What may begin text that this reader would misread. */
static bool is_unclear(const reader *r, size_t i)
{
    char c = r->text[i], next = i + 1 < r->len ? r->text[i + 1] : '\n';
    if (c == '%') return !isspace((unsigned char)next);
    if (c == '<') return next == '<';
    if (c == '=') return (i == 0 || r->text[i - 1] == '\n') && next == 'b';
    return c == '/' || c == '?' || (c == '_' && next == '_') || (c == '\\' && next != '\n');
}

static rq_err take_token(reader *r, size_t i, size_t *next, bool *ret_stop)
{
    char c = r->text[i];
    *next = i + 1;
    *ret_stop = is_unclear(r, i);
    if (*ret_stop || isspace((unsigned char)c)) return RQ_OK;
    if (c == '#') {
        const char *end = memchr(r->text + i, '\n', r->len - i);
        *next = end != NULL ? (size_t)(end - r->text) : r->len;
    } else if (c == '\'' || c == '"' || c == '`') {
        *next = take_quoted(r, i);
    } else if (is_word(c)) {
        *next = take_word(r, i);
    } else if (c == ',') {
        return end_element(r);
    } else if (c == '[' || c == '{' || c == '(') {
        take(r, i, i + 1, true);
        return open_bracket(r, i);
    } else if (c == ']' || c == '}' || c == ')') {
        return close_bracket(r, i, ret_stop);
    } else {
        take(r, i, i + 1, is_plain_mark(r, i));
    }
    return RQ_OK;
}

/* --- the text --------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const edit *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

static rq_err apply(reader *r, rq_buf *out)
{
    size_t copied = 0;
    qsort(r->edits, r->edit_count, sizeof *r->edits, by_place);
    for (size_t k = 0; k < r->edit_count; k++) {
        const edit *e = &r->edits[k];
        RQ_TRY(rq_buf_append(out, r->text + copied, e->at - copied));
        RQ_TRY(rq_buf_append(out, e->text, strlen(e->text)));
        copied = e->at;
    }
    return rq_buf_append(out, r->text + copied, r->len - copied);
}

/* Most texts have fewer commas than a piece has elements. */
static bool has_commas(const char *text, size_t len)
{
    size_t n = 0;
    if (len == 0) return false; /* and the text may be NULL */
    for (const char *p = text; (p = memchr(p, ',', len - (size_t)(p - text))) != NULL; p++)
        if (++n >= RQ__LIST_PIECE - 1) return true;
    return false;
}

rq_err rq__long_lists(const char *text, size_t len, rq_buf *out)
{
    reader r = {.text = text, .len = len};
    rq_err rc = RQ_OK;
    bool stop = false;
    rq_buf_reset(out);
    if (!has_commas(text, len)) return RQ_OK;
    for (size_t i = 0, next; i < len && rc == RQ_OK && !stop; i = next)
        rc = take_token(&r, i, &next, &stop);
    if (rc == RQ_OK && r.edit_count > 0) rc = apply(&r, out);
    free(r.stack);
    free(r.edits);
    return rc;
}
