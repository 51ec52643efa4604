/* SPDX-License-Identifier: Apache-2.0 */
/* See long_lists.h. One pass over the text finds brackets, commas and the elements between them, and notes where a
 * piece of 256 plain elements begins and ends; 256 pieces become a piece of the next level. The code in #{} of a string
 * is read like that in brackets. What this reader does not understand for certain (here-documents, patterns,
 * % literals, comments of several lines) ends its work. */
#include "shell/long_lists.h"
#include "shell/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS 4 /* of 256: more elements than a text has */
/* Words that an element must not have: what they do differs in a lambda, or they may set a variable. */
#define KEYWORDS                                                                                   \
    "yield return break next redo retry super block_given begin rescue ensure end if unless else " \
    "elsif case when while until for in then do def class module alias undef and or not "          \
    "binding local_variables defined BEGIN END"

typedef struct edit {
    size_t at;
    const char *text;
} edit;

/* What encloses a piece. */
typedef struct enclosure {
    const char *opens, *closes;
} enclosure;
static const enclosure of_list = {"*->{[", "]}.()"}, of_hash = {"**->{({", "})}.()"};

typedef struct level {
    size_t begin; /* of the piece that is being collected */
    size_t count; /* of what it has */
} level;

/* An open bracket. */
typedef struct open_list {
    char bracket;            /* '"': #{} of a string */
    const enclosure *pieces; /* of an array or a hash; NULL: it is neither */
    bool is_plain;       /* all of the element that is being read: it means the same in a lambda */
    bool has_pair;       /* it has => or a key: */
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
    RQ_TRY(note(r, v->begin, l->pieces->opens));
    RQ_TRY(note(r, l->end, l->pieces->closes));
    return n + 1 < LEVELS ? add(r, l, n + 1, v->begin) : RQ_OK;
}

/* At a comma or the closing bracket. Behind an element that is not plain new pieces begin. */
static rq_err end_element(reader *r)
{
    open_list *l = top(r);
    if (l == NULL || !l->has_element) return RQ_OK;
    l->has_element = false;
    l->was_plain = l->was_plain && l->is_plain;
    /* Pairs without braces are one element together. */
    bool counts = l->pieces != NULL && l->is_plain && l->has_pair == (l->pieces == &of_hash);
    l->is_plain = true;
    l->has_pair = false;
    if (counts) return add(r, l, 0, l->element);
    memset(l->levels, 0, sizeof l->levels);
    return RQ_OK;
}

/* --- brackets --------------------------------------------------------------------------------- */

static bool follows_one_of(const reader *r, size_t i, const char *marks)
{
    return i == 0 || strchr(marks, r->text[i - 1]) != NULL;
}

/* Behind blanks in front of i. */
static size_t skip_back(const reader *r, size_t i)
{
    while (i > 0 && isspace((unsigned char)r->text[i - 1]))
        i--;
    return i;
}

/* The pieces of an array or hash literal; behind a name a bracket is an index, a brace a block. */
static const enclosure *pieces_of(const reader *r, size_t i)
{
    if (r->text[i] == '[') return follows_one_of(r, i, " \t\r\n=([{,>|;&") ? &of_list : NULL;
    if (r->text[i] != '{') return NULL;
    size_t k = skip_back(r, i);
    bool is_arrow = k > 1 && r->text[k - 1] == '>' && r->text[k - 2] == '=';
    return is_arrow || (k > 0 && follows_one_of(r, k, "=([,:")) ? &of_hash : NULL;
}

static rq_err push(reader *r, char bracket, const enclosure *pieces)
{
    void *stack = r->stack;
    RQ_TRY(grow(&stack, &r->cap, r->depth, sizeof *r->stack));
    r->stack = stack;
    r->stack[r->depth++] =
        (open_list){.bracket = bracket, .pieces = pieces, .is_plain = true, .was_plain = true};
    return RQ_OK;
}

/* false: it closes no bracket that is open. */
static bool fits(char opened, char closes)
{
    return (opened == '[' && closes == ']') || (opened == '{' && closes == '}') ||
           (opened == '(' && closes == ')') || (opened == '"' && closes == '}');
}

static rq_err close_bracket(reader *r, size_t i, bool *ret_stop)
{
    *ret_stop = r->depth == 0 || !fits(top(r)->bracket, r->text[i]);
    if (*ret_stop) return RQ_OK;
    RQ_TRY(end_element(r));
    bool plain = top(r)->was_plain;
    r->depth--;
    take(r, i, i + 1, plain);
    return RQ_OK;
}

/* --- tokens ----------------------------------------------------------------------------------- */

/* Reads quoted text from i on, until its closing quote or until #{ begins code in it; *next is the position behind it.
 * `begin` is the position in front of i: that of the opening quote, or of the } that has ended code. */
static rq_err take_quoted(reader *r, size_t begin, size_t i, char quote, size_t *next)
{
    bool has_code = false;
    for (; i < r->len && r->text[i] != quote && !has_code; i++) {
        if (r->text[i] == '\\')
            i++;
        else
            has_code = quote == '"' && i + 1 < r->len && r->text[i] == '#' && r->text[i + 1] == '{';
    }
    *next = i < r->len ? i + 1 : r->len;
    take(r, begin, *next, true);
    return has_code ? push(r, '"', NULL) : RQ_OK;
}

/* Keys may be here. */
static bool in_pairs(reader *r)
{
    return r->depth > 0 && (top(r)->bracket == '{' || top(r)->bracket == '(');
}

/* A key of a hash, or of a call's hash without braces: plain where no pieces are made. */
static bool note_pair(reader *r)
{
    if (r->depth > 0) top(r)->has_pair = true;
    return in_pairs(r);
}

/* `=` is a part of a comparison or of =>, and no assignment. */
static bool is_plain_equal(reader *r, size_t i)
{
    char next = i + 1 < r->len ? r->text[i + 1] : '\n', last = i > 0 ? r->text[i - 1] : ' ';
    if (next == '>') return note_pair(r);
    if (next == '=' || next == '~' || last == '=') return true;
    bool compares = last == '!' || last == '<' || last == '>';
    return compares && !(i > 1 && r->text[i - 2] == last); /* <<= and >>= assign */
}

static bool is_plain_mark(reader *r, size_t i)
{
    char c = r->text[i], next = i + 1 < r->len ? r->text[i + 1] : '\n';
    if (c == '=') return is_plain_equal(r, i);
    char last = i > 0 ? r->text[i - 1] : ' ';
    bool is_key = rq__is_word(last) || last == '"' || last == '\'';
    return c != ':' || next == ':' || !is_key || note_pair(r);
}

static size_t take_word(reader *r, size_t i)
{
    size_t begin = i;
    while (i < r->len && rq__is_word(r->text[i]))
        i++;
    const char *word = r->text + begin;
    size_t n = i - begin;
    bool is_named = begin > 0 && strchr(".:@$", r->text[begin - 1]) != NULL; /* or a symbol */
    bool is_numbered = n == 2 && word[0] == '_' && isdigit((unsigned char)word[1]);
    bool is_plain = is_named || !(is_numbered || rq__is_one_of(word, n, KEYWORDS));
    if (i < r->len && r->text[i] == '?' && !(i + 1 < r->len && r->text[i + 1] == ' '))
        i++; /* of a method's name */
    take(r, begin, i, is_plain);
    return i;
}

/* Behind a value / and % are operators, if a blank follows or nothing separates them from it. */
static bool follows_value(const reader *r, size_t i)
{
    size_t k = skip_back(r, i);
    if (k == 0 || !(rq__is_word(r->text[k - 1]) || strchr(")]}\"'", r->text[k - 1]) != NULL))
        return false;
    if (k == i) return true;
    size_t begin = k;
    while (begin > 0 && rq__is_word(r->text[begin - 1]))
        begin--;
    bool is_blank = i + 1 == r->len || isspace((unsigned char)r->text[i + 1]);
    return is_blank && !rq__is_one_of(r->text + begin, k - begin, KEYWORDS);
}

/* What may begin text that this reader would misread. */
static bool is_unclear(const reader *r, size_t i)
{
    char c = r->text[i], next = i + 1 < r->len ? r->text[i + 1] : '\n';
    if (c == '%' || c == '/') return !follows_value(r, i);
    if (c == '<') return next == '<' && !(i + 2 < r->len && isspace((unsigned char)r->text[i + 2]));
    if (c == '=') return (i == 0 || r->text[i - 1] == '\n') && next == 'b';
    if (c == '$') return !rq__is_word(next);
    if (c == '?') return !isspace((unsigned char)next);
    return c == '`' || (c == '_' && next == '_') || (c == '\\' && next != '\n');
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
    } else if (c == '\'' || c == '"') {
        return take_quoted(r, i, i + 1, c, next);
    } else if (rq__is_word(c)) {
        *next = take_word(r, i);
    } else if (c == ',') {
        return end_element(r);
    } else if (c == '[' || c == '{' || c == '(') {
        take(r, i, i + 1, true);
        return push(r, c, pieces_of(r, i));
    } else if (c == ']' || c == '}' || c == ')') {
        bool is_code = c == '}' && r->depth > 0 && top(r)->bracket == '"';
        RQ_TRY(close_bracket(r, i, ret_stop));
        if (is_code) return take_quoted(r, i, i + 1, '"', next);
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
