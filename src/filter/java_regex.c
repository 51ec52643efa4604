/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Java's regular expressions in PCRE2's language. Most of both languages is the same (Perl's) and
 * is copied; rewritten is what means something else or nothing in PCRE2:
 *
 *   . ^ $ \Z \b                      line ends and words are Java's, and depend on its flags
 *   \uXXXX \0ooo \cX \Q...\E \1      one character or group, without ambiguity
 *   \p{Alpha} \p{IsLatin} \p{sc=..}  POSIX names are ASCII in Java, Unicode in PCRE2
 *   [a[bc]] [a-z&&[^x]]             union and intersection of classes: alternatives, look-aheads
 *   blanks and comments             left out here, where COMMENTS is on
 *   characters above ASCII          shielded from case folding, which is ASCII's in Java
 *
 * So nearly all flags are spent here: flags inside the pattern are followed through its groups, and
 * PCRE2 is told of case folding only (its line ends are LF, its dot takes everything).
 *
 * Refused is what Java refuses and PCRE2 would take for something else: (*VERB), \C, \K, \g, an
 * escaped letter without meaning. A class in parts becomes a group that takes exactly one
 * character: the last part takes it, the others look ahead at it.
 */
#include "filter/java_regex.h"

#include "filter/java_text.h"

#include <stdlib.h>

#define CLASS_DEPTH_MAX 50
#define GROUP_DEPTH_MAX 250 /* PCRE2's own */

#define LINE_ENDS "\\n\\r\\x{85}\\x{2028}\\x{2029}"
#define WORD "[\\p{L}\\p{Nd}_]"

typedef struct translation {
    const uint8_t *begin, *ptr, *end;
    rq_buf *out;
    const char *what;
    unsigned flags;                          /* here */
    unsigned flags_outside[GROUP_DEPTH_MAX]; /* of the open groups' surroundings */
    size_t depth;
    unsigned class_depth;
    unsigned captures;  /* groups opened so far */
    unsigned reference; /* the highest group that is referred to by number */
} translation;

static rq_err refuse(translation *t, const char *what)
{
    t->what = what;
    return RQ_E_INVALID;
}

static size_t left(const translation *t)
{
    return (size_t)(t->end - t->ptr);
}

static bool next_is(const translation *t, const char *text)
{
    size_t n = strlen(text);
    return left(t) >= n && memcmp(t->ptr, text, n) == 0;
}

static rq_err put(rq_buf *out, const char *text)
{
    return rq_buf_append(out, text, strlen(text));
}

static rq_err put_code_point(rq_buf *out, uint32_t c)
{
    return rq_buf_printf(out, "\\x{%x}", c);
}

static bool is_ascii_letter(uint8_t c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool has(const translation *t, unsigned flag)
{
    return (t->flags & flag) != 0;
}

/* Does PCRE2 fold the case of a character that Java would not? */
static bool folds_too_much(const translation *t, uint32_t c)
{
    return c >= 0x80 && has(t, RQ__REGEX_CASE_INSENSITIVE) && !has(t, RQ__REGEX_UNICODE_CASE);
}

/* One character standing for itself, in a class or outside. */
static rq_err put_plain(rq_buf *out, uint32_t c)
{
    if (c < 0x80 && !is_ascii_letter((uint8_t)c) && !is_digit((uint8_t)c))
        return put_code_point(out, c);
    return rq__utf8_append(out, c);
}

/* The same outside classes. */
static rq_err put_literal(translation *t, uint32_t c)
{
    if (!folds_too_much(t, c)) return put_plain(t->out, c);
    return rq_buf_printf(t->out, "(?-i:\\x{%x})", c);
}

static uint32_t take(translation *t)
{
    rq_slice rest = rq_slice_of(t->ptr, left(t));
    uint32_t c = rq__utf8_take(&rest);
    t->ptr = rest.ptr;
    return c;
}

static bool is_line_end(const translation *t, uint32_t c)
{
    if (c == '\n') return true;
    if (has(t, RQ__REGEX_UNIX_LINES)) return false;
    return c == '\r' || c == 0x85 || c == 0x2028 || c == 0x2029;
}

/* What COMMENTS makes invisible. */
static void skip_comments(translation *t)
{
    if (!has(t, RQ__REGEX_COMMENTS)) return;
    while (left(t) > 0) {
        if (*t->ptr == ' ' || (*t->ptr >= '\t' && *t->ptr <= '\r')) {
            t->ptr++;
        } else if (*t->ptr == '#') {
            while (left(t) > 0 && !is_line_end(t, take(t)))
                continue;
        } else {
            return;
        }
    }
}

static int hex_digit(uint8_t c)
{
    if (is_digit(c)) return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Exactly `count` hex digits. */
static bool take_hex(translation *t, size_t count, uint32_t *ret)
{
    if (left(t) < count) return false;
    uint32_t v = 0;
    for (size_t i = 0; i < count; i++) {
        int d = hex_digit(t->ptr[i]);
        if (d < 0) return false;
        v = v << 4 | (uint32_t)d;
    }
    t->ptr += count;
    *ret = v;
    return true;
}

/* --- Escapes that are one character ----------------------------------------------------------- */
/* Behind \u: two escapes may be one character's surrogates. */
static rq_err take_unicode(translation *t, uint32_t *ret)
{
    if (!take_hex(t, 4, ret)) return refuse(t, "Illegal Unicode escape sequence");
    if (*ret < 0xd800 || *ret > 0xdfff) return RQ_OK;
    uint32_t low;
    if (*ret > 0xdbff || !next_is(t, "\\u")) return refuse(t, "unpaired surrogate");
    t->ptr += 2;
    if (!take_hex(t, 4, &low) || low < 0xdc00 || low > 0xdfff)
        return refuse(t, "unpaired surrogate");
    *ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
    return RQ_OK;
}

/* Behind \x: two digits, or any number in braces. */
static rq_err take_x(translation *t, uint32_t *ret)
{
    if (!next_is(t, "{"))
        return take_hex(t, 2, ret) ? RQ_OK : refuse(t, "Illegal hexadecimal escape sequence");
    t->ptr++;
    *ret = 0;
    while (left(t) > 0 && hex_digit(*t->ptr) >= 0) {
        *ret = *ret << 4 | (uint32_t)hex_digit(*t->ptr++);
        if (*ret > 0x10ffff) return refuse(t, "Hexadecimal codepoint is too big");
    }
    if (!next_is(t, "}")) return refuse(t, "Unclosed hexadecimal escape sequence");
    t->ptr++;
    return *ret >= 0xd800 && *ret <= 0xdfff ? refuse(t, "unpaired surrogate") : RQ_OK;
}

/* Behind \0: one to three octal digits, three only up to 377. */
static rq_err take_octal(translation *t, uint32_t *ret)
{
    size_t n = 0;
    *ret = 0;
    while (n < 3 && left(t) > 0 && *t->ptr >= '0' && *t->ptr <= '7') {
        if (n == 2 && *ret > 037) break;
        *ret = *ret << 3 | (uint32_t)(*t->ptr++ - '0');
        n++;
    }
    return n > 0 ? RQ_OK : refuse(t, "Illegal octal escape sequence");
}

/* The escape's letter has been read. *is_char false: it is no single character. */
static rq_err take_char_escape(translation *t, uint8_t letter, uint32_t *ret, bool *is_char)
{
    *is_char = true;
    switch (letter) {
    case 'u':
        return take_unicode(t, ret);
    case 'x':
        return take_x(t, ret);
    case '0':
        return take_octal(t, ret);
    case 'c':
        if (left(t) == 0) return refuse(t, "Illegal control escape sequence");
        *ret = take(t) ^ 64;
        return RQ_OK;
    case 'a':
        *ret = 7;
        return RQ_OK;
    case 'e':
        *ret = 27;
        return RQ_OK;
    case 'f':
        *ret = '\f';
        return RQ_OK;
    case 'n':
        *ret = '\n';
        return RQ_OK;
    case 'r':
        *ret = '\r';
        return RQ_OK;
    case 't':
        *ret = '\t';
        return RQ_OK;
    default:
        *is_char = false;
        return RQ_OK;
    }
}

/* --- Properties ------------------------------------------------------------------------------- */
/* Java's name, what it is in a PCRE2 class, and negated there. */
static const struct {
    const char *name, *in, *out;
} properties[] = {
    {"Lower", "[:lower:]", "[:^lower:]"},
    {"Upper", "[:upper:]", "[:^upper:]"},
    {"ASCII", "\\x{0}-\\x{7f}", "\\x{80}-\\x{10ffff}"},
    {"Alpha", "[:alpha:]", "[:^alpha:]"},
    {"Digit", "[:digit:]", "[:^digit:]"},
    {"Alnum", "[:alnum:]", "[:^alnum:]"},
    {"Punct", "[:punct:]", "[:^punct:]"},
    {"Graph", "[:graph:]", "[:^graph:]"},
    {"Print", "[:print:]", "[:^print:]"},
    {"Blank", "[:blank:]", "[:^blank:]"},
    {"Cntrl", "[:cntrl:]", "[:^cntrl:]"},
    {"XDigit", "[:xdigit:]", "[:^xdigit:]"},
    {"Space", "[:space:]", "[:^space:]"},
    {"L1", "\\x{0}-\\x{ff}", "\\x{100}-\\x{10ffff}"},
    {"LC", "\\p{L&}", "\\P{L&}"},
    {"all", "\\x{0}-\\x{10ffff}", NULL},
    {"javaLowerCase", "\\p{Lowercase}", "\\P{Lowercase}"},
    {"javaUpperCase", "\\p{Uppercase}", "\\P{Uppercase}"},
    {"javaAlphabetic", "\\p{Alphabetic}", "\\P{Alphabetic}"},
    {"javaIdeographic", "\\p{Ideographic}", "\\P{Ideographic}"},
    {"javaTitleCase", "\\p{Lt}", "\\P{Lt}"},
    {"javaDigit", "\\p{Nd}", "\\P{Nd}"},
    {"javaLetter", "\\p{L}", "\\P{L}"},
    {"javaDefined", "\\P{Cn}", "\\p{Cn}"},
};

static rq_slice after_prefix(rq_slice name)
{
    static const char *const prefixes[] = {"Is", "script=", "sc=", "general_category=", "gc="};
    for (size_t i = 0; i < RQ_ARRAY_LEN(prefixes); i++)
        if (rq_slice_starts_with(name, rq_slice_cstr(prefixes[i])))
            return rq_slice_of(name.ptr + strlen(prefixes[i]), name.len - strlen(prefixes[i]));
    return name;
}

/* Behind \p or \P: the property as part of a class. */
static rq_err put_property(translation *t, bool negated, rq_buf *out)
{
    rq_slice name;
    if (next_is(t, "{")) {
        t->ptr++;
        const uint8_t *close = left(t) == 0 ? NULL : memchr(t->ptr, '}', left(t));
        if (close == NULL) return refuse(t, "Unclosed character family");
        name = rq_slice_of(t->ptr, (size_t)(close - t->ptr));
        t->ptr = close + 1;
    } else {
        if (left(t) == 0) return refuse(t, "Unknown character property name");
        name = rq_slice_of(t->ptr, 1);
        t->ptr++;
    }
    for (size_t i = 0; i < RQ_ARRAY_LEN(properties); i++) {
        if (!rq_slice_eq(name, rq_slice_cstr(properties[i].name))) continue;
        const char *text = negated ? properties[i].out : properties[i].in;
        return text == NULL ? refuse(t, "unsupported character property") : put(out, text);
    }
    name = after_prefix(name);
    for (size_t i = 0; i < name.len; i++)
        if (!is_ascii_letter(name.ptr[i]) && name.ptr[i] != '_')
            return refuse(t, "unsupported character property");
    if (name.len == 0 || (name.len > 2 && memcmp(name.ptr, "In", 2) == 0 && name.ptr[2] >= 'A' &&
                          name.ptr[2] <= 'Z'))
        return refuse(t, "unsupported character property"); /* In…: a block */
    RQ_TRY(put(out, negated ? "\\P{" : "\\p{"));
    RQ_TRY(rq_buf_append(out, name.ptr, name.len));
    return put(out, "}");
}

/* --- Classes ---------------------------------------------------------------------------------- */
/* One operand of an intersection: plain items and nested classes, any of which may match. */
typedef struct operand {
    rq_buf items;  /* inside of a PCRE2 class */
    rq_buf nested; /* "|class|class…" */
} operand;

static void operand_clear(operand *o)
{
    rq_buf_clear(&o->items);
    rq_buf_clear(&o->nested);
}

static rq_err put_operand(const operand *o, rq_buf *out)
{
    if (o->nested.len == 0) {
        RQ_TRY(put(out, "["));
        RQ_TRY(rq_buf_append(out, o->items.ptr, o->items.len));
        return put(out, "]");
    }
    RQ_TRY(put(out, "(?:"));
    if (o->items.len > 0) {
        RQ_TRY(put(out, "["));
        RQ_TRY(rq_buf_append(out, o->items.ptr, o->items.len));
        RQ_TRY(put(out, "]"));
        RQ_TRY(rq_buf_append(out, o->nested.ptr, o->nested.len));
    } else {
        RQ_TRY(rq_buf_append(out, o->nested.ptr + 1, o->nested.len - 1));
    }
    return put(out, ")");
}

static rq_err translate_class(translation *t, rq_buf *out);

/* Behind a backslash in a class. *is_char: it is a character that may begin a range. */
static rq_err take_class_escape(translation *t, operand *o, uint32_t *ret, bool *is_char)
{
    if (left(t) == 0) return refuse(t, "Illegal/unsupported escape sequence");
    if (*t->ptr >= 0x80 || (!is_ascii_letter(*t->ptr) && !is_digit(*t->ptr))) {
        *is_char = true;
        *ret = take(t);
        return RQ_OK;
    }
    uint8_t letter = *t->ptr++;
    RQ_TRY(take_char_escape(t, letter, ret, is_char));
    if (*is_char) return RQ_OK;
    if (letter == 'p' || letter == 'P') return put_property(t, letter == 'P', &o->items);
    if (strchr("dDhHsSvVwW", letter) != NULL) return rq_buf_printf(&o->items, "\\%c", letter);
    return refuse(t, "Illegal/unsupported escape sequence");
}

/* Characters from first to last into the operand. What PCRE2 would fold and Java not goes into a
 * class of its own. */
static rq_err put_range(const translation *t, operand *o, uint32_t first, uint32_t last)
{
    bool shielded = folds_too_much(t, last);
    rq_buf *out = &o->items;
    if (shielded) {
        if (first < 0x80) RQ_TRY(rq_buf_printf(&o->items, "\\x{%x}-\\x{7f}", first));
        out = &o->nested;
        RQ_TRY(put(out, "|(?-i:["));
    }
    if (first == last)
        RQ_TRY(put_plain(out, first));
    else
        RQ_TRY(rq_buf_printf(out, "\\x{%x}-\\x{%x}", first, last));
    return shielded ? put(out, "])") : RQ_OK;
}

/* Behind \Q: all but the last character, which may begin a range. *any: there is one. */
static rq_err take_class_quoted(translation *t, operand *o, uint32_t *ret_last, bool *any)
{
    *any = false;
    while (left(t) > 0 && !next_is(t, "\\E")) {
        if (*any) RQ_TRY(put_range(t, o, *ret_last, *ret_last));
        *ret_last = take(t);
        *any = true;
    }
    if (left(t) > 0) t->ptr += 2;
    return RQ_OK;
}

/* The character behind a range's '-', and what is quoted together with it. */
static rq_err take_range_end(translation *t, operand *o, uint32_t *ret)
{
    if (left(t) == 0) return refuse(t, "Illegal character range");
    if (next_is(t, "\\Q")) {
        t->ptr += 2;
        if (left(t) == 0 || next_is(t, "\\E")) return refuse(t, "Illegal character range");
        *ret = take(t);
        uint32_t last;
        bool any;
        RQ_TRY(take_class_quoted(t, o, &last, &any));
        return any ? put_range(t, o, last, last) : RQ_OK;
    }
    if (*t->ptr != '\\') {
        *ret = take(t);
        return RQ_OK;
    }
    t->ptr++;
    operand nothing = {0};
    bool is_char;
    rq_err rc = take_class_escape(t, &nothing, ret, &is_char);
    operand_clear(&nothing);
    RQ_TRY(rc);
    return is_char ? RQ_OK : refuse(t, "Illegal character range");
}

/* The item at t->ptr, which is neither the class's end nor "&&" nor a nested class. */
static rq_err take_class_item(translation *t, operand *o)
{
    uint32_t first;
    bool is_char = true;
    if (next_is(t, "\\Q")) {
        t->ptr += 2;
        RQ_TRY(take_class_quoted(t, o, &first, &is_char));
    } else if (*t->ptr == '\\') {
        t->ptr++;
        RQ_TRY(take_class_escape(t, o, &first, &is_char));
    } else {
        first = take(t);
    }
    if (!is_char) return RQ_OK;
    skip_comments(t);
    if (left(t) < 2 || *t->ptr != '-' || t->ptr[1] == ']' || t->ptr[1] == '[')
        return put_range(t, o, first, first);
    t->ptr++;
    skip_comments(t);
    uint32_t last;
    RQ_TRY(take_range_end(t, o, &last));
    return last < first ? refuse(t, "Illegal character range") : put_range(t, o, first, last);
}

static bool is_empty(const operand *o)
{
    return o->items.len == 0 && o->nested.len == 0;
}

/* Items up to the class's end or "&&", neither of which is taken. A bracket that would close an
 * empty class stands for itself. */
static rq_err take_operand(translation *t, bool is_first, operand *o)
{
    for (;;) {
        skip_comments(t);
        if (left(t) == 0) return refuse(t, "Unclosed character class");
        if (next_is(t, "&&")) return RQ_OK;
        if (*t->ptr == ']' && !(is_first && is_empty(o))) return RQ_OK;
        if (*t->ptr == '[') {
            t->ptr++;
            RQ_TRY(put(&o->nested, "|"));
            RQ_TRY(translate_class(t, &o->nested));
        } else {
            RQ_TRY(take_class_item(t, o));
        }
    }
}

/* The operands of a class without its negation: look-aheads in `ahead`, the last one in *o. */
static rq_err take_operands(translation *t, rq_buf *ahead, operand *o)
{
    RQ_TRY(take_operand(t, true, o));
    while (next_is(t, "&&")) {
        t->ptr += 2;
        /* Java takes some of these, for something or other. */
        if (left(t) > 0 && (*t->ptr == '&' || *t->ptr == ']')) return refuse(t, "Bad class syntax");
        if (!is_empty(o)) { /* "&&x" alone is x */
            RQ_TRY(put(ahead, "(?="));
            RQ_TRY(put_operand(o, ahead));
            RQ_TRY(put(ahead, ")"));
        }
        operand_clear(o);
        RQ_TRY(take_operand(t, false, o));
    }
    t->ptr++; /* ] */
    return is_empty(o) ? refuse(t, "Bad class syntax") : RQ_OK;
}

static rq_err put_class(const rq_buf *ahead, const operand *o, bool negated, rq_buf *out)
{
    if (ahead->len == 0 && o->nested.len == 0) {
        RQ_TRY(put(out, negated ? "[^" : "["));
        RQ_TRY(rq_buf_append(out, o->items.ptr, o->items.len));
        return put(out, "]");
    }
    RQ_TRY(put(out, negated ? "(?:(?!" : "(?:"));
    if (ahead->len > 0) RQ_TRY(rq_buf_append(out, ahead->ptr, ahead->len));
    RQ_TRY(put_operand(o, out));
    return put(out, negated ? ")(?s:.))" : ")");
}

/* t->ptr is behind the opening bracket. */
static rq_err translate_class(translation *t, rq_buf *out)
{
    if (t->class_depth == CLASS_DEPTH_MAX) return refuse(t, "classes nested too deep");
    t->class_depth++;
    bool negated = next_is(t, "^");
    if (negated) t->ptr++;
    operand o = {0};
    rq_buf ahead = {0};
    rq_err rc = take_operands(t, &ahead, &o);
    if (rc == RQ_OK) rc = put_class(&ahead, &o, negated, out);
    operand_clear(&o);
    rq_buf_clear(&ahead);
    t->class_depth--;
    return rc;
}

/* --- Outside classes -------------------------------------------------------------------------- */
static rq_err put_dot(translation *t)
{
    if (has(t, RQ__REGEX_DOTALL)) return put(t->out, ".");
    return put(t->out, has(t, RQ__REGEX_UNIX_LINES) ? "[^\\n]" : "[^" LINE_ENDS "]");
}

/* With MULTILINE behind any line end, but not at the end of the text, not even of an empty one. */
static rq_err put_caret(translation *t)
{
    if (!has(t, RQ__REGEX_MULTILINE)) return put(t->out, "\\A");
    if (has(t, RQ__REGEX_UNIX_LINES)) return put(t->out, "(?:(?<![^\\n])(?!\\z))");
    return put(t->out, "(?:(?<![^" LINE_ENDS "])(?!(?<=\\r)\\n)(?!\\z))");
}

/* At the end of the text or before a line end: the last one, with `everywhere` any. Never between
 * CR and LF. */
static rq_err put_dollar(translation *t, bool everywhere)
{
    if (has(t, RQ__REGEX_UNIX_LINES))
        return put(t->out, everywhere ? "(?=\\n|\\z)" : "(?=\\n?\\z)");
    if (everywhere) return put(t->out, "(?:\\z|(?=(?<!\\r)\\n|[\\r\\x{85}\\x{2028}\\x{2029}]))");
    return put(t->out, "(?:\\z|(?=(?:\\r\\n|(?<!\\r)\\n|[\\r\\x{85}\\x{2028}\\x{2029}])\\z))");
}

/* Words are of Unicode's letters and digits here (JDK 17), though \w is ASCII. */
static rq_err put_boundary(translation *t, bool inside)
{
    if (inside) return put(t->out, "(?:(?<=" WORD ")(?=" WORD ")|(?<!" WORD ")(?!" WORD "))");
    return put(t->out, "(?:(?<=" WORD ")(?!" WORD ")|(?<!" WORD ")(?=" WORD "))");
}

/* \N with as many digits as there are groups for. The first has been read. */
static rq_err put_reference(translation *t, uint8_t digit)
{
    unsigned group = digit - '0';
    while (left(t) > 0 && is_digit(*t->ptr)) {
        unsigned longer = group * 10 + (*t->ptr - '0');
        if (longer > t->captures) break;
        group = longer;
        t->ptr++;
    }
    if (group > t->reference) t->reference = group;
    return rq_buf_printf(t->out, "\\g{%u}", group);
}

/* Java lets a number name a group that is not there, and never matches it; PCRE2 refuses the
 * pattern. So there are such groups, behind what always fails and need not match. */
static rq_err put_missing_groups(translation *t)
{
    if (t->reference <= t->captures) return RQ_OK;
    RQ_TRY(put(t->out, "(?:(?!)"));
    for (unsigned i = t->captures; i < t->reference; i++)
        RQ_TRY(put(t->out, "()"));
    return put(t->out, "|)");
}

static rq_err open_group(translation *t, const char *text, unsigned flags_inside)
{
    if (t->depth == GROUP_DEPTH_MAX) return refuse(t, "groups nested too deep");
    t->flags_outside[t->depth++] = t->flags;
    t->flags = flags_inside;
    return put(t->out, text);
}

static rq_err close_group(translation *t)
{
    if (t->depth == 0) return refuse(t, "Unmatched closing ')'");
    t->flags = t->flags_outside[--t->depth];
    t->ptr++;
    return put(t->out, ")");
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

/* Behind "(?", where letters or '-' follow: flags for the rest of the group or for a new one. */
static rq_err translate_flags(translation *t)
{
    bool on = true;
    unsigned flags = t->flags;
    for (; left(t) > 0 && *t->ptr != ')' && *t->ptr != ':'; t->ptr++) {
        unsigned flag = flag_of(*t->ptr);
        if (*t->ptr == '-' && on)
            on = false;
        else if (*t->ptr == 'U')
            return refuse(t, "inline flag U is not supported");
        else if (flag == 0)
            return refuse(t, "Unknown inline modifier");
        else
            flags = on ? flags | flag : flags & ~flag;
    }
    if (left(t) == 0) return refuse(t, "Unknown inline modifier");
    bool folds = (flags & RQ__REGEX_CASE_INSENSITIVE) != 0;
    if (*t->ptr++ == ':') return open_group(t, folds ? "(?i:" : "(?-i:", flags);
    t->flags = flags;
    return put(t->out, folds ? "(?i)" : "(?-i)");
}

static rq_err translate_group(translation *t)
{
    if (next_is(t, "(*")) return refuse(t, "Dangling meta character '*'");
    if (!next_is(t, "(?")) {
        t->ptr++;
        t->captures++;
        return open_group(t, "(", t->flags);
    }
    static const char *const openings[] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(openings); i++)
        if (next_is(t, openings[i])) {
            t->ptr += strlen(openings[i]);
            return open_group(t, openings[i], t->flags);
        }
    if (next_is(t, "(?<") && left(t) > 3 && is_ascii_letter(t->ptr[3])) {
        t->ptr += 3;
        t->captures++;
        RQ_TRY(open_group(t, "(?<", t->flags));
        while (left(t) > 0 && *t->ptr != '>')
            RQ_TRY(rq_buf_append_u8(t->out, *t->ptr++));
        if (left(t) == 0) return refuse(t, "named capturing group is missing trailing '>'");
        return rq_buf_append_u8(t->out, *t->ptr++);
    }
    if (left(t) > 2 && (is_ascii_letter(t->ptr[2]) || t->ptr[2] == '-')) {
        t->ptr += 2;
        return translate_flags(t);
    }
    return refuse(t, "Unknown group type");
}

/* Behind \Q. */
static rq_err translate_quoted(translation *t)
{
    while (left(t) > 0) {
        if (next_is(t, "\\E")) {
            t->ptr += 2;
            break;
        }
        RQ_TRY(put_literal(t, take(t)));
    }
    return RQ_OK;
}

static rq_err translate_property(translation *t, bool negated)
{
    RQ_TRY(put(t->out, "["));
    RQ_TRY(put_property(t, negated, t->out));
    return put(t->out, "]");
}

/* Behind \k: the name goes as it is. */
static rq_err translate_named_reference(translation *t)
{
    const uint8_t *close = left(t) == 0 ? NULL : memchr(t->ptr, '>', left(t));
    if (!next_is(t, "<") || close == NULL)
        return refuse(t, "\\k is not followed by '<' for named capturing group");
    RQ_TRY(put(t->out, "\\k"));
    RQ_TRY(rq_buf_append(t->out, t->ptr, (size_t)(close + 1 - t->ptr)));
    t->ptr = close + 1;
    return RQ_OK;
}

static rq_err translate_escape(translation *t)
{
    t->ptr++;
    if (left(t) == 0) return refuse(t, "Unexpected internal error");
    if (*t->ptr >= 0x80 || (!is_ascii_letter(*t->ptr) && !is_digit(*t->ptr)))
        return put_literal(t, take(t));
    uint8_t letter = *t->ptr++;
    uint32_t c;
    bool is_char;
    RQ_TRY(take_char_escape(t, letter, &c, &is_char));
    if (is_char) return put_literal(t, c);
    if (is_digit(letter)) return put_reference(t, letter);
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
    case 'b':
        return next_is(t, "{") ? refuse(t, "unsupported boundary") : put_boundary(t, false);
    case 'B':
        return put_boundary(t, true);
    default:
        if (strchr("ADGHRSVWXdhsvwz", letter) != NULL) return rq_buf_printf(t->out, "\\%c", letter);
        return refuse(t, "Illegal/unsupported escape sequence");
    }
}

static rq_err translate_one(translation *t)
{
    switch (*t->ptr) {
    case '\\':
        return translate_escape(t);
    case '(':
        return translate_group(t);
    case ')':
        return close_group(t);
    case '[':
        t->ptr++;
        return translate_class(t, t->out);
    case '.':
        t->ptr++;
        return put_dot(t);
    case '^':
        t->ptr++;
        return put_caret(t);
    case '$':
        t->ptr++;
        return put_dollar(t, has(t, RQ__REGEX_MULTILINE));
    case '|':
    case '?':
    case '*':
    case '+':
    case '{':
    case '}':
    case ',':
        return rq_buf_append_u8(t->out, *t->ptr++);
    default:
        return put_literal(t, take(t));
    }
}

static rq_err translate_all(translation *t)
{
    for (;;) {
        skip_comments(t);
        if (left(t) == 0) return t->depth == 0 ? RQ_OK : refuse(t, "Unclosed group");
        RQ_TRY(translate_one(t));
    }
}

rq_err rq__java_regex_translate(rq_slice pattern, unsigned flags, rq_buf *out, const char **what,
                                size_t *where)
{
    if (pattern.len == 0) return RQ_OK;
    translation t = {
        .begin = pattern.ptr,
        .ptr = pattern.ptr,
        .end = pattern.ptr + pattern.len,
        .out = out,
        .flags = flags,
    };
    if ((flags & RQ__REGEX_UNICODE_CHARACTER_CLASS) != 0) t.flags |= RQ__REGEX_UNICODE_CASE;
    rq_err rc = RQ_OK;
    if (has(&t, RQ__REGEX_LITERAL))
        while (rc == RQ_OK && left(&t) > 0)
            rc = put_literal(&t, take(&t));
    else
        rc = translate_all(&t);
    if (rc == RQ_OK) rc = put_missing_groups(&t);
    if (rc == RQ_E_INVALID) {
        *what = t.what;
        *where = (size_t)(t.ptr - t.begin);
    }
    return rc;
}
