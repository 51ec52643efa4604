/* SPDX-License-Identifier: Apache-2.0 */
/* The filter language. HBASE: ParseFilter 2.6, followed step by step, including its oddities
 * (filters lost between parentheses, unterminated quotes), because scripts may depend on them.
 *
 * Two stacks, of operators and finished filters. A simple expression Name(arguments) becomes a
 * filter by the table of makers (language_make.c); an operator first completes operators of higher
 * precedence on the stack (SKIP, WHILE before AND before OR). A filter is its class name and its
 * packed message; wrapping packs the message again, which the limit of the nesting depth bounds. */
#include "filter/language.h"

#include "filter/filter_priv.h"
#include "filter/language_make.h"

#include "proto/filter.pb-c.h"

#include <stdlib.h>

#define PACKAGE "org.apache.hadoop.hbase.filter."
#define TEXT_LEN_MAX (1024 * 1024)

typedef struct node {
    const char *java_class; /* with the package */
    rq_slice message;
    unsigned depth;
} node;

typedef enum operator{ LEFT_PAREN, SKIP, WHILE, AND, OR } operator;

typedef struct language {
    rq_arena *arena;
    rq_slice text;
    rq_error *why;
    operator* operators;
    size_t operator_count;
    node *nodes;
    size_t node_count;
} language;

static rq_err illegal(language *l, const char *text)
{
    return rq_fail(l->why, RQ_E_ILLEGAL_ARGUMENT, "%s", text);
}

/* --- Messages --------------------------------------------------------------------------------- */
static Pb__Filter filter_message(const node *n)
{
    Pb__Filter m = PB__FILTER__INIT;
    m.name = (char *)(uintptr_t)n->java_class;
    m.has_serialized_filter = true;
    m.serialized_filter =
        (ProtobufCBinaryData){n->message.len, (uint8_t *)(uintptr_t)n->message.ptr};
    return m;
}

/* --- Simple expressions: Name(arguments) ------------------------------------------------------ */
static bool is_unescaped_quote(rq_slice s, size_t i)
{
    return i + 1 == s.len || s.ptr[i + 1] != '\'';
}

/* Up to the first closing parenthesis outside quotes. */
static rq_err extract_expression(language *l, size_t begin, rq_slice *ret)
{
    rq_slice s = l->text;
    bool quoted = false;
    for (size_t i = begin; i < s.len; i++) {
        if (s.ptr[i] == '\'') {
            if (is_unescaped_quote(s, i))
                quoted = !quoted;
            else
                i++;
        }
        if (s.ptr[i] == ')' && !quoted) {
            *ret = rq_slice_of(s.ptr + begin, i + 1 - begin);
            return RQ_OK;
        }
    }
    return illegal(l, "Incorrect Filter String");
}

static bool ends_argument(uint8_t c)
{
    return c == ' ' || c == ',' || c == ')';
}

/* s[begin] and s[end] are the quotes; two quotes inside stand for one. The result keeps its outer
 * quotes. */
static rq_err unescape(language *l, rq_slice s, size_t begin, size_t end, rq_slice *ret)
{
    uint8_t *out = rq_arena_alloc(l->arena, end - begin + 1);
    if (out == NULL) return RQ_E_NO_MEMORY;
    size_t n = 0;
    out[n++] = '\'';
    for (size_t i = begin + 1; i < end; i++) {
        out[n++] = s.ptr[i];
        if (s.ptr[i] == '\'' && i + 1 != end && s.ptr[i + 1] == '\'') i++;
    }
    out[n++] = '\'';
    *ret = rq_slice_of(out, n);
    return RQ_OK;
}

/* The quoted argument that begins at *i; *i becomes the position behind it. *ret stays empty if the
 * quote ends with the expression, where HBase finds no argument and reports no error. */
static rq_err quoted_argument(language *l, rq_slice s, size_t *i, rq_slice *ret)
{
    for (size_t j = *i + 1; j < s.len; j++) {
        if (s.ptr[j] == '\'') {
            if (is_unescaped_quote(s, j)) {
                RQ_TRY(unescape(l, s, *i, j, ret));
                *i = j + 1;
                return RQ_OK;
            }
            j++;
        } else if (j + 1 == s.len) {
            return illegal(l, "Incorrect argument list");
        }
    }
    return RQ_OK;
}

static rq_err bare_argument(language *l, rq_slice s, size_t *i, rq_slice *ret)
{
    for (size_t j = *i; j < s.len; j++) {
        if (ends_argument(s.ptr[j])) {
            *ret = rq_slice_of(s.ptr + *i, j - *i);
            *i = j;
            return RQ_OK;
        }
    }
    return illegal(l, "Incorrect argument list");
}

/* HBASE: ParseFilter.getFilterArguments. */
static rq_err take_arguments(language *l, rq_slice s, rq__arguments *ret)
{
    const uint8_t *paren = memchr(s.ptr, '(', s.len);
    if (paren == NULL) return illegal(l, "Incorrect argument list");
    rq_slice *args = rq_arena_calloc(l->arena, s.len, sizeof *args);
    if (args == NULL) return RQ_E_NO_MEMORY;
    size_t count = 0;
    for (size_t i = (size_t)(paren - s.ptr) + 1; i < s.len; i++) {
        if (ends_argument(s.ptr[i])) continue;
        rq_slice arg = {0};
        if (s.ptr[i] == '\'')
            RQ_TRY(quoted_argument(l, s, &i, &arg));
        else
            RQ_TRY(bare_argument(l, s, &i, &arg));
        if (arg.len > 0) args[count++] = arg;
    }
    *ret = (rq__arguments){.arg = args, .count = count, .arena = l->arena};
    return RQ_OK;
}

static rq_err push_simple(language *l, rq_slice s)
{
    size_t name_len = 0;
    while (name_len < s.len && s.ptr[name_len] != '(' && s.ptr[name_len] != ' ')
        name_len++;
    if (name_len == 0 || name_len == s.len) return illegal(l, "Incorrect Filter Name");
    rq_slice name = rq_slice_of(s.ptr, name_len);
    rq__arguments a;
    RQ_TRY(take_arguments(l, s, &a));
    node *n = &l->nodes[l->node_count];
    rq_err rc = rq__language_make(name, &a, &n->java_class, &n->message);
    if (rc == RQ_E_NOT_FOUND)
        return rq_fail(l->why, RQ_E_ILLEGAL_ARGUMENT, "Filter Name %.*s not supported",
                       (int)(name.len < 300 ? name.len : 300), (const char *)name.ptr);
    if (rc == RQ_E_ILLEGAL_ARGUMENT)
        return rq_fail(l->why, RQ_E_ILLEGAL_ARGUMENT, "Incorrect filter string %.*s",
                       (int)(s.len < 900 ? s.len : 900), (const char *)s.ptr);
    RQ_TRY(rc);
    n->depth = 0;
    l->node_count++;
    return RQ_OK;
}

/* --- Operators -------------------------------------------------------------------------------- */
static rq_err set_depth(language *l, node *n, unsigned inner)
{
    if (inner >= RQ__FILTER_DEPTH_MAX)
        return rq_fail(l->why, RQ_E_ILLEGAL_ARGUMENT, "filters nested more than %d deep",
                       RQ__FILTER_DEPTH_MAX);
    n->depth = inner + 1;
    return RQ_OK;
}

/* Combines the operators of this kind on top of the stack, with the filters between them, into one
 * list. */
static rq_err reduce_list(language *l, operator op, const char *too_few)
{
    size_t operands = 1;
    while (l->operator_count > 0 && l->operators[l->operator_count - 1] == op) {
        l->operator_count--;
        operands++;
    }
    if (l->node_count < operands) return illegal(l, too_few);
    l->node_count -= operands;
    node *first = &l->nodes[l->node_count];
    Pb__FilterList m = PB__FILTER_LIST__INIT;
    Pb__Filter *filters = rq_arena_calloc(l->arena, operands, sizeof *filters);
    m.filters = rq_arena_calloc(l->arena, operands, sizeof *m.filters);
    if (filters == NULL || m.filters == NULL) return RQ_E_NO_MEMORY;
    unsigned depth = 0;
    for (size_t i = 0; i < operands; i++) {
        filters[i] = filter_message(&first[i]);
        m.filters[i] = &filters[i];
        if (first[i].depth > depth) depth = first[i].depth;
    }
    m.n_filters = operands;
    m.operator_ = op == AND ? PB__FILTER_LIST__OPERATOR__MUST_PASS_ALL
                            : PB__FILTER_LIST__OPERATOR__MUST_PASS_ONE;
    RQ_TRY(rq__language_pack(l->arena, &m.base, &first->message));
    first->java_class = PACKAGE "FilterList";
    RQ_TRY(set_depth(l, first, depth));
    l->node_count++;
    return RQ_OK;
}

/* SkipFilter and WhileMatchFilter are one message on the wire. */
static rq_err reduce_wrapper(language *l, const char *java_class, const char *too_few)
{
    if (l->node_count == 0) return illegal(l, too_few);
    node *n = &l->nodes[l->node_count - 1];
    Pb__Filter inner = filter_message(n);
    Pb__SkipFilter m = PB__SKIP_FILTER__INIT;
    m.filter = &inner;
    RQ_TRY(rq__language_pack(l->arena, &m.base, &n->message));
    n->java_class = java_class;
    l->operator_count--;
    return set_depth(l, n, n->depth);
}

/* HBASE: ParseFilter.popArguments. */
static rq_err reduce_top(language *l)
{
    if (l->operator_count == 0) return illegal(l, "Mismatched parenthesis");
    switch (l->operators[l->operator_count - 1]) {
    case OR:
        return reduce_list(l, OR, "Incorrect input string - an OR needs two filters");
    case AND:
        return reduce_list(l, AND, "Incorrect input string - an AND needs two filters");
    case SKIP:
        return reduce_wrapper(l, PACKAGE "SkipFilter",
                              "Incorrect input string - a SKIP wraps a filter");
    case WHILE:
        return reduce_wrapper(l, PACKAGE "WhileMatchFilter",
                              "Incorrect input string - a WHILE wraps a filter");
    case LEFT_PAREN:
        break;
    }
    if (l->node_count == 0) return illegal(l, "Incorrect Filter String");
    l->operator_count--;
    return RQ_OK;
}

static int precedence(operator op)
{
    return op == OR ? 3 : op == AND ? 2 : 1;
}

static rq_err push_operator(language *l, operator op)
{
    while (l->operator_count > 0 && l->operators[l->operator_count - 1] != LEFT_PAREN &&
           precedence(l->operators[l->operator_count - 1]) < precedence(op))
        RQ_TRY(reduce_top(l));
    l->operators[l->operator_count++] = op;
    return RQ_OK;
}

/* HBase removes an operator after each step without checking it; filters that are lost by this in
 * HBase are lost here too. */
static rq_err close_paren(language *l)
{
    if (l->operator_count == 0) return illegal(l, "Mismatched parenthesis");
    operator top = l->operators[l->operator_count - 1];
    if (top == LEFT_PAREN) {
        l->operator_count--;
        return RQ_OK;
    }
    while (top != LEFT_PAREN) {
        RQ_TRY(reduce_top(l));
        if (l->operator_count == 0) return illegal(l, "Mismatched parenthesis");
        top = l->operators[--l->operator_count];
    }
    return RQ_OK;
}

/* --- The text --------------------------------------------------------------------------------- */
/* Whether the word is at i, with a blank or parenthesis on both sides. HBase allows SKIP and WHILE
 * at the beginning of the text and after an opening parenthesis. */
static bool word_at(rq_slice s, size_t i, const char *word, bool wraps)
{
    size_t n = strlen(word);
    if (s.len - i <= n || memcmp(s.ptr + i, word, n) != 0) return false;
    if (s.ptr[i + n] != ' ' && s.ptr[i + n] != '(') return false;
    if (i == 0) return wraps;
    return s.ptr[i - 1] == ' ' || s.ptr[i - 1] == ')' || (wraps && s.ptr[i - 1] == '(');
}

static rq_err compile(language *l)
{
    static const struct {
        const char *word;
        operator op;
        bool wraps;
    } words[] = {
        {"OR", OR, false}, {"AND", AND, false}, {"SKIP", SKIP, true}, {"WHILE", WHILE, true}};
    rq_slice s = l->text;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == ' ' || s.ptr[i] == '\t') continue;
        if (s.ptr[i] == '(') {
            l->operators[l->operator_count++] = LEFT_PAREN;
            continue;
        }
        size_t w = 0;
        while (w < RQ_ARRAY_LEN(words) && !word_at(s, i, words[w].word, words[w].wraps))
            w++;
        if (w < RQ_ARRAY_LEN(words)) {
            RQ_TRY(push_operator(l, words[w].op));
            i += strlen(words[w].word) - 1;
        } else if (s.ptr[i] == ')') {
            RQ_TRY(close_paren(l));
        } else {
            rq_slice expression = {0};
            RQ_TRY(extract_expression(l, i, &expression));
            RQ_TRY(push_simple(l, expression));
            i += expression.len - 1;
        }
    }
    while (l->operator_count > 0)
        RQ_TRY(reduce_top(l));
    return l->node_count == 1 ? RQ_OK : illegal(l, "Incorrect Filter String");
}

rq_err rq_filter_language_compile(rq_slice text, rq_arena *arena, rq_slice *ret_java_class_name,
                                  rq_slice *ret_serialized, rq_error *why)
{
    language l = {.arena = arena, .text = text, .why = why};
    if (text.len > TEXT_LEN_MAX)
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "filter of more than %d bytes", TEXT_LEN_MAX);
    /* Each operator and each filter takes at least one character. */
    l.operators = rq_arena_calloc(arena, text.len + 1, sizeof *l.operators);
    l.nodes = rq_arena_calloc(arena, text.len + 1, sizeof *l.nodes);
    if (l.operators == NULL || l.nodes == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(compile(&l));
    *ret_java_class_name = rq_slice_cstr(l.nodes[0].java_class);
    *ret_serialized = l.nodes[0].message;
    return RQ_OK;
}
