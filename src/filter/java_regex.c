/* SPDX-License-Identifier: Apache-2.0 */
/* Translates Java's regular expressions to PCRE2's language. Most of both languages is the same
 * (Perl's) and is copied. Parts that PCRE2 lacks or interprets differently are rewritten:
 *
 *   . ^ $ \Z \b                      line ends and words are Java's, and depend on its flags
 *   \uXXXX \0ooo \cX \Q...\E \1      one character or group, without ambiguity
 *   \p{Alpha} \p{IsLatin} \p{sc=..}  POSIX names are ASCII in Java, Unicode in PCRE2
 *   [a[bc]] [a-z&&[^x]]              union, intersection of classes: alternatives, look-aheads
 *   blanks and comments              removed where COMMENTS is on
 *   characters above ASCII           protected from case folding, which is ASCII's in Java
 *
 * So nearly all flags are resolved by the translation: it follows flags inside the pattern through
 * its groups, and PCRE2 only gets the flag for case folding (its line ends are LF, its dot matches
 * everything).
 *
 * Syntax that Java refuses is refused even if PCRE2 accepts it: (*VERB), \C, \K, \g, an escaped
 * letter without meaning.
 *
 * This file translates everything outside of classes; classes are in java_regex_class.c, the forms
 * of a single character in java_regex_char.c. */
#include "filter/java_regex_priv.h"

#define LINE_ENDS "\\n\\r\\x{85}\\x{2028}\\x{2029}"
#define WORD "[\\p{L}\\p{Nd}_]"

/* One character standing for itself. */
static rq_err put_literal(rq__regex *t, uint32_t c)
{
    if (!rq__regex_folds_too_much(t, c)) return rq__regex_put_plain(t->out, c);
    return rq_buf_printf(t->out, "(?-i:\\x{%x})", c);
}

static rq_err put_dot(rq__regex *t)
{
    if (rq__regex_has(t, RQ__REGEX_DOTALL)) return rq__regex_put(t->out, ".");
    return rq__regex_put(t->out,
                         rq__regex_has(t, RQ__REGEX_UNIX_LINES) ? "[^\\n]" : "[^" LINE_ENDS "]");
}

/* With MULTILINE after any line end, but never at the end of the text, not even of an empty one. */
static rq_err put_caret(rq__regex *t)
{
    if (!rq__regex_has(t, RQ__REGEX_MULTILINE)) return rq__regex_put(t->out, "\\A");
    if (rq__regex_has(t, RQ__REGEX_UNIX_LINES))
        return rq__regex_put(t->out, "(?:(?<![^\\n])(?!\\z))");
    return rq__regex_put(t->out, "(?:(?<![^" LINE_ENDS "])(?!(?<=\\r)\\n)(?!\\z))");
}

/* Appends the assertion for $ or \Z: it holds at the end of the text and before a line end, namely
 * the last one of the text or, with `everywhere`, any. It never holds between CR and LF. */
static rq_err put_dollar(rq__regex *t, bool everywhere)
{
    if (rq__regex_has(t, RQ__REGEX_UNIX_LINES))
        return rq__regex_put(t->out, everywhere ? "(?=\\n|\\z)" : "(?=\\n?\\z)");
    if (everywhere)
        return rq__regex_put(t->out, "(?:\\z|(?=(?<!\\r)\\n|[\\r\\x{85}\\x{2028}\\x{2029}]))");
    return rq__regex_put(t->out,
                         "(?:\\z|(?=(?:\\r\\n|(?<!\\r)\\n|[\\r\\x{85}\\x{2028}\\x{2029}])\\z))");
}

/* Words are letters and digits of Unicode here (JDK 17), although \w is ASCII. */
static rq_err put_boundary(rq__regex *t, bool inside)
{
    if (inside)
        return rq__regex_put(t->out, "(?:(?<=" WORD ")(?=" WORD ")|(?<!" WORD ")(?!" WORD "))");
    return rq__regex_put(t->out, "(?:(?<=" WORD ")(?!" WORD ")|(?<!" WORD ")(?=" WORD "))");
}

/* \N with as many digits as name an existing group. The first digit has been read. */
static rq_err put_reference(rq__regex *t, uint8_t digit)
{
    unsigned group = digit - '0';
    while (rq__regex_left(t) > 0 && rq__ascii_digit(*t->ptr)) {
        unsigned longer = group * 10 + (*t->ptr - '0');
        if (longer > t->captures) break;
        group = longer;
        t->ptr++;
    }
    if (group > t->reference) t->reference = group;
    return rq_buf_printf(t->out, "\\g{%u}", group);
}

/* In Java a number may name a group that does not exist, and never matches; PCRE2 refuses such a
 * pattern. So the missing groups are added, in an alternative that always fails and need not
 * match. */
static rq_err put_missing_groups(rq__regex *t)
{
    if (t->reference <= t->captures) return RQ_OK;
    RQ_TRY(rq__regex_put(t->out, "(?:(?!)"));
    for (unsigned i = t->captures; i < t->reference; i++)
        RQ_TRY(rq__regex_put(t->out, "()"));
    return rq__regex_put(t->out, "|)");
}

static rq_err open_group(rq__regex *t, const char *text, unsigned flags_inside)
{
    if (t->depth == RQ__REGEX_GROUP_DEPTH_MAX) return rq__regex_refuse(t, "groups nested too deep");
    t->flags_outside[t->depth++] = t->flags;
    t->flags = flags_inside;
    return rq__regex_put(t->out, text);
}

static rq_err close_group(rq__regex *t)
{
    if (t->depth == 0) return rq__regex_refuse(t, "Unmatched closing ')'");
    t->flags = t->flags_outside[--t->depth];
    t->ptr++;
    return rq__regex_put(t->out, ")");
}

static unsigned flag_of(uint8_t letter)
{
    switch (letter) {
    case 'd':
        return RQ__REGEX_UNIX_LINES;
    case 'i':
        return RQ__REGEX_CASE_INSENSITIVE;
    case 'x':
        return RQ__REGEX_COMMENTS;
    case 'm':
        return RQ__REGEX_MULTILINE;
    case 's':
        return RQ__REGEX_DOTALL;
    case 'u':
        return RQ__REGEX_UNICODE_CASE;
    default:
        return 0;
    }
}

/* Behind "(?", before letters or '-': flags for the rest of the group or for a new one. */
static rq_err translate_flags(rq__regex *t)
{
    bool on = true;
    unsigned flags = t->flags;
    for (; rq__regex_left(t) > 0 && *t->ptr != ')' && *t->ptr != ':'; t->ptr++) {
        unsigned flag = flag_of(*t->ptr);
        if (*t->ptr == '-' && on)
            on = false;
        else if (*t->ptr == 'U')
            return rq__regex_refuse(t, "inline flag U is not supported");
        else if (flag == 0)
            return rq__regex_refuse(t, "Unknown inline modifier");
        else
            flags = on ? flags | flag : flags & ~flag;
    }
    if (rq__regex_left(t) == 0) return rq__regex_refuse(t, "Unknown inline modifier");
    bool folds = (flags & RQ__REGEX_CASE_INSENSITIVE) != 0;
    if (*t->ptr++ == ':') return open_group(t, folds ? "(?i:" : "(?-i:", flags);
    t->flags = flags;
    return rq__regex_put(t->out, folds ? "(?i)" : "(?-i)");
}

static rq_err translate_group(rq__regex *t)
{
    if (rq__regex_next_is(t, "(*")) return rq__regex_refuse(t, "Dangling meta character '*'");
    if (!rq__regex_next_is(t, "(?")) {
        t->ptr++;
        t->captures++;
        return open_group(t, "(", t->flags);
    }
    static const char *const openings[] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(openings); i++)
        if (rq__regex_next_is(t, openings[i])) {
            t->ptr += strlen(openings[i]);
            return open_group(t, openings[i], t->flags);
        }
    if (rq__regex_next_is(t, "(?<") && rq__regex_left(t) > 3 && rq__ascii_letter(t->ptr[3])) {
        t->ptr += 3;
        t->captures++;
        RQ_TRY(open_group(t, "(?<", t->flags));
        while (rq__regex_left(t) > 0 && *t->ptr != '>')
            RQ_TRY(rq_buf_append_u8(t->out, *t->ptr++));
        if (rq__regex_left(t) == 0)
            return rq__regex_refuse(t, "named capturing group is missing trailing '>'");
        return rq_buf_append_u8(t->out, *t->ptr++);
    }
    if (rq__regex_left(t) > 2 && (rq__ascii_letter(t->ptr[2]) || t->ptr[2] == '-')) {
        t->ptr += 2;
        return translate_flags(t);
    }
    return rq__regex_refuse(t, "Unknown group type");
}

static rq_err put_callout(rq__regex *t)
{
    t->items = 0;
    return t->callouts ? rq__regex_put(t->out, "(?C)") : RQ_OK;
}

/* Called before every item that is not a quantifier or part of one. */
static rq_err begin_item(rq__regex *t)
{
    bool due = t->after_quantifier || ++t->items > RQ__REGEX_CALLOUT_ITEMS;
    t->after_quantifier = false;
    return due ? put_callout(t) : RQ_OK;
}

/* Behind \Q. */
static rq_err translate_quoted(rq__regex *t)
{
    while (rq__regex_left(t) > 0) {
        if (rq__regex_next_is(t, "\\E")) {
            t->ptr += 2;
            break;
        }
        RQ_TRY(begin_item(t));
        RQ_TRY(put_literal(t, rq__regex_take(t)));
    }
    return RQ_OK;
}

static rq_err translate_property(rq__regex *t, bool negated)
{
    RQ_TRY(rq__regex_put(t->out, "["));
    RQ_TRY(rq__regex_put_property(t, negated, t->out));
    return rq__regex_put(t->out, "]");
}

/* Behind \k: the name is copied. */
static rq_err translate_named_reference(rq__regex *t)
{
    const uint8_t *close = rq__regex_left(t) == 0 ? NULL : memchr(t->ptr, '>', rq__regex_left(t));
    if (!rq__regex_next_is(t, "<") || close == NULL)
        return rq__regex_refuse(t, "\\k is not followed by '<' for named capturing group");
    RQ_TRY(rq__regex_put(t->out, "\\k"));
    RQ_TRY(rq_buf_append(t->out, t->ptr, (size_t)(close + 1 - t->ptr)));
    t->ptr = close + 1;
    return RQ_OK;
}

static rq_err translate_escape(rq__regex *t)
{
    t->ptr++;
    if (rq__regex_left(t) == 0) return rq__regex_refuse(t, "Unexpected internal error");
    if (*t->ptr >= 0x80 || (!rq__ascii_letter(*t->ptr) && !rq__ascii_digit(*t->ptr)))
        return put_literal(t, rq__regex_take(t));
    uint8_t letter = *t->ptr++;
    uint32_t c;
    bool is_char;
    RQ_TRY(rq__regex_take_escape(t, letter, &c, &is_char));
    if (is_char) return put_literal(t, c);
    if (rq__ascii_digit(letter)) return put_reference(t, letter);
    switch (letter) {
    case 'Q':
        return translate_quoted(t);
    case 'p':
    case 'P':
        return translate_property(t, letter == 'P');
    case 'k':
        return translate_named_reference(t);
    case 'Z':
        return put_dollar(t, false);
    case 'G': /* the end of the previous match: there is none, and a search may begin further on */
        return rq__regex_put(t->out, "\\A");
    case 'b':
        return rq__regex_next_is(t, "{") ? rq__regex_refuse(t, "unsupported boundary")
                                         : put_boundary(t, false);
    case 'B':
        return put_boundary(t, true);
    default:
        if (strchr("ADHRSVWXdhsvwz", letter) != NULL) return rq_buf_printf(t->out, "\\%c", letter);
        return rq__regex_refuse(t, "Illegal/unsupported escape sequence");
    }
}

/* Copies a quantifier character by character. False: there is none. (If something begins like a
 * quantifier but is none, PCRE2 takes it literally.) */
static bool passes_quantifier(rq__regex *t)
{
    uint8_t c = *t->ptr;
    if (t->in_braces && (rq__ascii_digit(c) || c == ',' || c == '}')) {
        t->in_braces = c != '}';
        t->after_quantifier = c == '}';
        return true;
    }
    t->in_braces = c == '{';
    if (c == '?' || c == '*' || c == '+') t->after_quantifier = true;
    return c == '{' || c == '?' || c == '*' || c == '+';
}

static rq_err translate_one(rq__regex *t)
{
    if (!passes_quantifier(t)) RQ_TRY(begin_item(t));
    switch (*t->ptr) {
    case '\\':
        return translate_escape(t);
    case '(':
        return translate_group(t);
    case ')':
        return close_group(t);
    case '[':
        t->ptr++;
        return rq__regex_put_class(t, t->out);
    case '.':
        t->ptr++;
        return put_dot(t);
    case '^':
        t->ptr++;
        return put_caret(t);
    case '$':
        t->ptr++;
        return put_dollar(t, rq__regex_has(t, RQ__REGEX_MULTILINE));
    case '|':
    case '?':
    case '*':
    case '+':
    case '{':
    case '}':
    case ',':
        return rq_buf_append_u8(t->out, *t->ptr++);
    default:
        return put_literal(t, rq__regex_take(t));
    }
}

static rq_err translate_all(rq__regex *t)
{
    for (;;) {
        rq__regex_skip_comments(t);
        if (rq__regex_left(t) == 0)
            return t->depth == 0 ? RQ_OK : rq__regex_refuse(t, "Unclosed group");
        RQ_TRY(translate_one(t));
    }
}

rq_err rq__java_regex_translate(rq_slice pattern, unsigned flags, bool callouts, rq_buf *out,
                                const char **what, size_t *where)
{
    if (pattern.len == 0) return RQ_OK;
    rq__regex t = {
        .begin = pattern.ptr,
        .ptr = pattern.ptr,
        .end = pattern.ptr + pattern.len,
        .out = out,
        .flags = flags,
        .callouts = callouts,
    };
    if ((flags & RQ__REGEX_UNICODE_CHARACTER_CLASS) != 0) t.flags |= RQ__REGEX_UNICODE_CASE;
    rq_err rc = put_callout(&t);
    if (rq__regex_has(&t, RQ__REGEX_LITERAL))
        while (rc == RQ_OK && rq__regex_left(&t) > 0)
            rc = put_literal(&t, rq__regex_take(&t));
    else if (rc == RQ_OK)
        rc = translate_all(&t);
    if (rc == RQ_OK) rc = put_missing_groups(&t);
    if (rc == RQ_E_INVALID) {
        *what = t.what;
        *where = (size_t)(t.ptr - t.begin);
    }
    return rc;
}
