/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites Ruby that mruby's parser does not know into Ruby that it knows, before a statement is
 * parsed:
 *
 *     18446744073709551616     Shell.big("18446744073709551616",10)      prelude/big.rb
 *     defined?(a)              (Shell.defined("a"){a})                   prelude/ruby.rb
 *     rescue IOError           rescue IOError => rescued_
 *     raise, $!                raise rescued_, rescued_                  behind a rescue; or its name
 *     while a, until a         while Wire.go_on and a, until !Wire.go_on or a    Ctrl-C ends them
 *     __LINE__                 70000                                   behind line 32,767 (rq__line_for_mruby)
 *     a long list              pieces of it                                      long_lists.h
 *
 * Quoted text, here-documents and comments stay, but for $! and __LINE__ in #{} of a string. */
#include "shell/rewrite.h"

#include "shell/long_lists.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define DIGITS_OF_MAX 19  /* decimal ones of 2^63-1 */
#define HEX_DIGITS_MAX 16 /* of 64 bits */

typedef struct rewriter {
    const char *text;
    size_t len;
    size_t copied;        /* bytes of the text that were copied to `out` or replaced */
    rq_slice rescued;     /* the variable of the last rescue; empty: there was none */
    rq_slice heredocs[8]; /* end markers of the here-documents that begin in this line */
    size_t heredoc_count;
    uint64_t line; /* the number of the line at `counted`; 0: not known */
    size_t counted;
    rq_buf *out;
} rewriter;

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static rq_err put(rewriter *r, const char *text)
{
    return rq_buf_append(r->out, text, strlen(text));
}

/* Replaces the text from `begin` to `end` with the text that is put next. */
static rq_err replace(rewriter *r, size_t begin, size_t end)
{
    RQ_TRY(rq_buf_append(r->out, r->text + r->copied, begin - r->copied));
    r->copied = end;
    return RQ_OK;
}

static size_t skip_blanks(const rewriter *r, size_t i)
{
    while (i < r->len && (r->text[i] == ' ' || r->text[i] == '\t'))
        i++;
    return i;
}

static bool at(const rewriter *r, size_t i, const char *word)
{
    size_t n = strlen(word);
    return i + n <= r->len && memcmp(r->text + i, word, n) == 0;
}

/* Ends at a newline, `;`, `}` or the end of the text. */
static bool is_end(const rewriter *r, size_t i)
{
    return i >= r->len || is_one_of(r->text[i], "\r\n;}#");
}

/* --- $!, __LINE__ and quoted text --------------------------------------------------------------- */

/* The number of the line that has text[i]; 0: unknown. It counts on from the place of the previous call. REQUIRES: i is not
 * before that place. */
static uint64_t line_at(rewriter *r, size_t i)
{
    if (r->line == 0) return 0;
    for (; r->counted < i; r->counted++)
        if (r->text[r->counted] == '\n') r->line++;
    return r->line;
}

static rq_err on_line(rewriter *r, size_t begin, size_t end)
{
    char number[24];
    uint64_t line = line_at(r, begin);
    if (line >> RQ__LINE_BITS == 0) return RQ_OK;
    RQ_TRY(replace(r, begin, end));
    snprintf(number, sizeof number, "%llu", (unsigned long long)line);
    return put(r, number);
}

static rq_err replace_by_rescued(rewriter *r, size_t begin, size_t end)
{
    RQ_TRY(replace(r, begin, end));
    return rq_buf_append(r->out, r->rescued.ptr, r->rescued.len);
}

/* The end of the quoted text or comment that begins at i; i: there is none. */
static rq_err skip_quoted(rewriter *r, size_t i, size_t *ret_end)
{
    char end = r->text[i] == '#' ? '\n' : r->text[i];
    *ret_end = i;
    if (!is_one_of(r->text[i], "#'\"`")) return RQ_OK;
    for (i++; i < r->len && r->text[i] != end; i++) {
        if (r->text[i] == '\\' && end != '\n') i++;
        if (end == '"' && r->rescued.len > 0 && at(r, i, "#{$!"))
            RQ_TRY(replace_by_rescued(r, i + 2, i + 4));
        if (end == '"' && at(r, i, "#{__LINE__}")) RQ_TRY(on_line(r, i + 2, i + 10));
    }
    *ret_end = i < r->len ? i + 1 : r->len;
    return RQ_OK;
}

/* --- literals --------------------------------------------------------------------------------- */

typedef struct literal {
    size_t begin, end; /* of all, of 0x and digits */
    size_t digits;     /* where they begin */
    size_t count;      /* of digits, without leading zeros and _ */
    bool is_hex;
} literal;

/* Skips the word of letters and digits at i; true: it is a decimal or hexadecimal integer. */
static bool read_word(const rewriter *r, size_t i, literal *ret)
{
    const char *text = r->text;
    bool is_hex = i + 2 < r->len && text[i] == '0' && (text[i + 1] | 0x20) == 'x';
    bool is_number = isdigit((unsigned char)text[i]);
    *ret = (literal){.begin = i, .digits = is_hex ? i + 2 : i, .is_hex = is_hex};
    for (i = ret->digits; i < r->len && is_word(text[i]); i++) {
        if (text[i] == '_') continue;
        if (is_hex ? !isxdigit((unsigned char)text[i]) : !isdigit((unsigned char)text[i]))
            is_number = false;
        if (ret->count > 0 || text[i] != '0') ret->count++;
    }
    ret->end = i;
    return is_number;
}

/* Above 2^63 - 1. */
static bool is_big(const char *text, const literal *l)
{
    static const char max[] = "9223372036854775807";
    char digits[DIGITS_OF_MAX];
    size_t n = 0;
    if (l->is_hex && l->count != HEX_DIGITS_MAX) return l->count > HEX_DIGITS_MAX;
    if (l->is_hex) {
        const char *from = text + l->digits;
        while (*from == '0' || *from == '_') /* a digit that is not 0 follows */
            from++;
        return *from > '7';
    }
    if (l->count != DIGITS_OF_MAX) return l->count > DIGITS_OF_MAX;
    for (size_t i = l->end; i-- > l->digits && n < DIGITS_OF_MAX;)
        if (text[i] != '_') digits[DIGITS_OF_MAX - ++n] = text[i];
    return memcmp(digits, max, DIGITS_OF_MAX) > 0;
}

/* 1.234… */
static bool is_part_of_float(const rewriter *r, const literal *l)
{
    if (l->begin > 0 && r->text[l->begin - 1] == '.') return true;
    return l->end + 1 < r->len && r->text[l->end] == '.' &&
           isdigit((unsigned char)r->text[l->end + 1]);
}

static rq_err on_number(rewriter *r, const literal *l)
{
    if (!is_big(r->text, l) || is_part_of_float(r, l)) return RQ_OK;
    RQ_TRY(replace(r, l->begin, l->end));
    RQ_TRY(put(r, "Shell.big(\""));
    RQ_TRY(rq_buf_append(r->out, r->text + l->digits, l->end - l->digits));
    return put(r, l->is_hex ? "\",16)" : "\",10)");
}

/* --- words ------------------------------------------------------------------------------------ */

/* The expression behind `defined?`, in parentheses or a name. */
static bool read_operand(const rewriter *r, size_t i, size_t *ret_begin, size_t *ret_end,
                         size_t *ret_next)
{
    size_t depth = 0;
    i = skip_blanks(r, i);
    *ret_begin = i;
    if (i < r->len && r->text[i] == '(') {
        *ret_begin = i + 1;
        for (; i < r->len; i++) {
            if (r->text[i] == '(') depth++;
            if (r->text[i] == ')' && --depth == 0) break;
        }
        *ret_end = i;
        *ret_next = i + 1;
        return i<r->len && * ret_end> * ret_begin;
    }
    while (i < r->len && (is_word(r->text[i]) || is_one_of(r->text[i], "@$:.?")))
        i++;
    *ret_end = *ret_next = i;
    return i > *ret_begin;
}

static rq_err on_defined(rewriter *r, size_t begin, size_t end, size_t *next)
{
    size_t from, to, behind;
    if (!read_operand(r, end + 1, &from, &to, &behind)) return RQ_OK;
    /* The operand is quoted as text; an operand that contains quotes is only evaluated. */
    bool quotes = memchr(r->text + from, '\'', to - from) != NULL;
    RQ_TRY(replace(r, begin, behind));
    RQ_TRY(put(r, "(Shell.defined('"));
    if (!quotes) RQ_TRY(rq_buf_append(r->out, r->text + from, to - from));
    RQ_TRY(put(r, "'){"));
    RQ_TRY(rq_buf_append(r->out, r->text + from, to - from));
    RQ_TRY(put(r, "})"));
    *next = behind;
    return RQ_OK;
}

/* A rescue clause, not `a rescue b`: it begins a line, or follows `;` or `begin`. */
static bool begins_clause(const rewriter *r, size_t i)
{
    while (i > 0 && (r->text[i - 1] == ' ' || r->text[i - 1] == '\t'))
        i--;
    return i == 0 || r->text[i - 1] == '\n' || r->text[i - 1] == ';';
}

/* The clause's variable; without one it gets `rescued_`. */
static rq_err on_rescue(rewriter *r, size_t end, size_t *next)
{
    size_t i = end, variable = 0;
    while (!is_end(r, i) && !at(r, i, " then")) {
        if (at(r, i, "=>")) variable = skip_blanks(r, i + 2);
        i++;
    }
    *next = i;
    if (variable > 0) {
        size_t stop = variable;
        while (stop < r->len && (is_word(r->text[stop]) || is_one_of(r->text[stop], "@$")))
            stop++;
        r->rescued = rq_slice_of(r->text + variable, stop - variable);
        return RQ_OK;
    }
    r->rescued = rq_slice_cstr("rescued_");
    while (i > end && (r->text[i - 1] == ' ' || r->text[i - 1] == '\t'))
        i--;
    RQ_TRY(replace(r, i, i));
    return put(r, " => rescued_");
}

/* `raise` without an argument. */
static bool is_bare(const rewriter *r, size_t i)
{
    size_t next = skip_blanks(r, i);
    return is_end(r, next) ||
           (next > i && (at(r, next, "if ") || at(r, next, "unless ") || at(r, next, "end")));
}

/* A loop that begins a line, or ends one behind `end`: elsewhere the word may be part of a literal. */
static rq_err on_loop(rewriter *r, size_t begin, size_t end, const char *condition)
{
    size_t i = begin;
    while (i > 0 && (r->text[i - 1] == ' ' || r->text[i - 1] == '\t'))
        i--;
    bool behind_end =
        i >= 3 && i < begin && at(r, i - 3, "end") && (i == 3 || !is_word(r->text[i - 4]));
    bool has_condition = end < r->len && is_one_of(r->text[end], " \t(");
    if (!has_condition || !(behind_end || begins_clause(r, begin))) return RQ_OK;
    RQ_TRY(replace(r, end, end));
    return put(r, condition);
}

static rq_err on_word(rewriter *r, size_t begin, size_t end, size_t *next)
{
    size_t n = end - begin;
    if (n == 7 && at(r, begin, "defined") && at(r, end, "?"))
        return on_defined(r, begin, end, next);
    if (n == 8 && at(r, begin, "__LINE__")) return on_line(r, begin, end);
    if (n == 6 && at(r, begin, "rescue") && begins_clause(r, begin)) return on_rescue(r, end, next);
    if (n == 5 && at(r, begin, "while")) return on_loop(r, begin, end, " Wire.go_on and");
    if (n == 5 && at(r, begin, "until")) return on_loop(r, begin, end, " !Wire.go_on or");
    if (n == 5 && at(r, begin, "raise") && r->rescued.len > 0 && is_bare(r, end)) {
        RQ_TRY(replace(r, end, end));
        RQ_TRY(put(r, " "));
        return rq_buf_append(r->out, r->rescued.ptr, r->rescued.len);
    }
    return RQ_OK;
}

/* --- here-documents and comments of several lines ------------------------------------------- */

/* The end marker of the here-document that begins at i ("<<~END", "<<-'END'"); empty: none begins there. */
static rq_slice heredoc_at(const rewriter *r, size_t i)
{
    if (!at(r, i, "<<")) return (rq_slice){0};
    i += 2;
    bool is_indented = i < r->len && is_one_of(r->text[i], "~-");
    if (is_indented) i++;
    bool is_quoted = i < r->len && is_one_of(r->text[i], "'\"");
    if (is_quoted) i++;
    size_t end = i;
    while (end < r->len && is_word(r->text[end]))
        end++;
    bool is_name = end > i && (is_indented || is_quoted ? !isdigit((unsigned char)r->text[i])
                                                        : isupper((unsigned char)r->text[i]));
    return is_name ? rq_slice_of(r->text + i, end - i) : (rq_slice){0};
}

/* The place behind the first line, from i on, that is `name` or begins with it. */
static size_t skip_to_line(const rewriter *r, size_t i, rq_slice name, bool may_go_on)
{
    while (i < r->len) {
        const char *newline = memchr(r->text + i, '\n', r->len - i);
        size_t end = newline != NULL ? (size_t)(newline - r->text) : r->len;
        size_t from = may_go_on ? i : skip_blanks(r, i), behind = from + name.len;
        bool is_here = behind <= end && memcmp(r->text + from, name.ptr, name.len) == 0;
        bool is_whole = behind == end || (behind < end && is_one_of(r->text[behind], "\r"));
        i = newline != NULL ? end + 1 : r->len;
        if (is_here && (is_whole || (may_go_on && is_one_of(r->text[behind], " \t")))) break;
    }
    return i;
}

/* The place behind the comment from =begin to =end that begins at i; i if there is none. */
static size_t skip_comment(const rewriter *r, size_t i)
{
    bool begins = (i == 0 || r->text[i - 1] == '\n') && at(r, i, "=begin");
    return begins ? skip_to_line(r, i, rq_slice_cstr("=end"), true) : i;
}

/* The place behind the here-documents whose text begins at i, the beginning of a line. */
static size_t skip_heredocs(rewriter *r, size_t i)
{
    for (size_t k = 0; k < r->heredoc_count; k++)
        i = skip_to_line(r, i, r->heredocs[k], false);
    r->heredoc_count = 0;
    return i;
}

static void take_heredoc(rewriter *r, size_t i)
{
    rq_slice name = heredoc_at(r, i);
    if (name.len > 0 && r->heredoc_count < RQ_ARRAY_LEN(r->heredocs))
        r->heredocs[r->heredoc_count++] = name;
}

static rq_err step(rewriter *r, size_t i, size_t *next)
{
    literal word;
    *next = skip_comment(r, i);
    if (*next > i) return RQ_OK;
    RQ_TRY(skip_quoted(r, i, next));
    if (*next > i && r->text[i] != '#') return RQ_OK;
    if (*next == i) *next = i + 1;
    if (r->text[*next - 1] == '\n') {
        *next = skip_heredocs(r, *next);
        return RQ_OK;
    }
    take_heredoc(r, i);
    if (r->rescued.len > 0 && at(r, i, "$!")) {
        *next = i + 2;
        return replace_by_rescued(r, i, i + 2);
    }
    if (!is_word(r->text[i])) return RQ_OK;
    bool is_number = read_word(r, i, &word);
    *next = word.end;
    if (is_number) return on_number(r, &word);
    /* A method's name or a symbol is no keyword. */
    if (i > 0 && is_one_of(r->text[i - 1], ".:@$")) return RQ_OK;
    return on_word(r, i, word.end, next);
}

static rq_err rewrite(const char *text, size_t len, uint64_t line, rq_buf *out)
{
    rewriter r = {.text = text, .len = len, .line = line, .out = out};
    rq_buf_reset(out);
    for (size_t i = 0, next; i < len; i = next)
        RQ_TRY(step(&r, i, &next));
    return r.copied == 0 && out->len == 0 ? RQ_OK
                                          : rq_buf_append(out, text + r.copied, len - r.copied);
}

rq_err rq__rewrite(const char *text, size_t len, uint64_t line, rq_buf *out)
{
    rq_buf pieces = {0};
    rq_err rc = rq__long_lists(text, len, &pieces);
    bool is_changed = pieces.len > 0;
    if (rc == RQ_OK && is_changed) rc = rewrite((const char *)pieces.ptr, pieces.len, line, out);
    if (rc == RQ_OK && !is_changed) rc = rewrite(text, len, line, out);
    if (rc == RQ_OK && is_changed && out->len == 0) rc = rq_buf_append(out, pieces.ptr, pieces.len);
    rq_buf_clear(&pieces);
    return rc;
}
