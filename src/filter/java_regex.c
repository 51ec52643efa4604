/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Java's regular expressions in PCRE2's language. Most of both languages is the same (Perl's) and
 * is copied; rewritten is what means something else or nothing in PCRE2:
 *
 *   \uXXXX \0ooo \cX \Q…\E            characters: written as \x{…} or escaped one by one
 *   \p{Alpha} \p{IsLatin} \p{sc=…}    POSIX names are ASCII in Java, Unicode in PCRE2
 *   [a[bc]] [a-z&&[^x]]               union and intersection of classes: alternatives, look-aheads
 *   (?u) (?d) (?U)                    flags PCRE2 lacks, or has with another meaning
 *
 * Refused is what Java refuses and PCRE2 would take for something else: (*VERB), \C, \K, \g, an
 * escaped letter without meaning. A class in parts becomes a group that takes exactly one
 * character: the last part takes it, the others look ahead at it.
 */
#include "filter/java_regex.h"

#include "filter/java_text.h"

#include <stdlib.h>

#define CLASS_DEPTH_MAX 50

typedef struct translation {
    const uint8_t *begin, *ptr, *end;
    rq_buf *out;
    unsigned *flags;
    const char *what;
    unsigned class_depth;
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

/* One character standing for itself. */
static rq_err put_literal(rq_buf *out, uint32_t c)
{
    if (c < 0x80 && !is_ascii_letter((uint8_t)c) && !is_digit((uint8_t)c))
        return put_code_point(out, c);
    return rq__utf8_append(out, c);
}

static uint32_t take(translation *t)
{
    rq_slice rest = rq_slice_of(t->ptr, left(t));
    uint32_t c = rq__utf8_take(&rest);
    t->ptr = rest.ptr;
    return c;
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

/* Characters up to \E stand for themselves. */
static rq_err put_quoted(translation *t, rq_buf *out)
{
    while (left(t) > 0) {
        if (next_is(t, "\\E")) {
            t->ptr += 2;
            break;
        }
        RQ_TRY(put_literal(out, take(t)));
    }
    return RQ_OK;
}

/* The item at t->ptr, which is neither the class's end nor "&&" nor a nested class. */
static rq_err take_class_item(translation *t, operand *o)
{
    uint32_t first;
    bool is_char = true;
    bool blank = false;
    if (next_is(t, "\\Q")) {
        t->ptr += 2;
        return put_quoted(t, &o->items);
    }
    if (*t->ptr == '\\') {
        t->ptr++;
        RQ_TRY(take_class_escape(t, o, &first, &is_char));
        if (!is_char) return RQ_OK;
    } else {
        blank = *t->ptr == ' ' || *t->ptr == '\t';
        first = take(t);
    }
    if (left(t) < 2 || *t->ptr != '-' || t->ptr[1] == ']' || t->ptr[1] == '[') {
        /* With COMMENTS on PCRE2 leaves out a blank, but only a naked one. */
        return blank ? rq_buf_append_u8(&o->items, (uint8_t)first) : put_literal(&o->items, first);
    }
    t->ptr++;
    uint32_t last;
    if (*t->ptr == '\\') {
        t->ptr++;
        operand nothing = {0};
        rq_err rc = take_class_escape(t, &nothing, &last, &is_char);
        operand_clear(&nothing);
        RQ_TRY(rc);
        if (!is_char) return refuse(t, "Illegal character range");
    } else {
        last = take(t);
    }
    if (last < first) return refuse(t, "Illegal character range");
    RQ_TRY(put_code_point(&o->items, first));
    RQ_TRY(put(&o->items, "-"));
    return put_code_point(&o->items, last);
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
        if (left(t) > 0 && (next_is(t, "&&") || *t->ptr == ']'))
            return refuse(t, "Bad class syntax");
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
/* Behind "(?", where letters or '-' follow: flags for the rest of the group or for a new one. */
static rq_err translate_flags(translation *t)
{
    bool on = true;
    RQ_TRY(put(t->out, "(?"));
    for (; left(t) > 0; t->ptr++) {
        switch (*t->ptr) {
        case 'i':
        case 'm':
        case 's':
            RQ_TRY(rq_buf_append_u8(t->out, *t->ptr));
            break;
        case 'x':
            RQ_TRY(put(t->out, on ? "xx" : "x"));
            break;
        case 'u':
            break; /* case folding is Unicode's anyway */
        case 'd':
            if (on) *t->flags |= RQ__REGEX_UNIX_LINES;
            break;
        case 'U':
            if (on) *t->flags |= RQ__REGEX_UNICODE_CHARACTER_CLASS;
            break;
        case '-':
            if (!on) return refuse(t, "Unknown inline modifier");
            on = false;
            RQ_TRY(put(t->out, "-"));
            break;
        case ')':
        case ':':
            return rq_buf_append_u8(t->out, *t->ptr++);
        default:
            return refuse(t, "Unknown inline modifier");
        }
    }
    return refuse(t, "Unknown inline modifier");
}

static rq_err translate_group(translation *t)
{
    if (next_is(t, "(*")) return refuse(t, "Dangling meta character '*'");
    if (!next_is(t, "(?")) {
        t->ptr++;
        return put(t->out, "(");
    }
    if (left(t) > 2 && (is_ascii_letter(t->ptr[2]) || t->ptr[2] == '-')) {
        t->ptr += 2;
        return translate_flags(t);
    }
    static const char *const openings[] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(openings); i++)
        if (next_is(t, openings[i])) {
            t->ptr += strlen(openings[i]);
            return put(t->out, openings[i]);
        }
    if (next_is(t, "(?<") && left(t) > 3 && is_ascii_letter(t->ptr[3])) {
        t->ptr += 3;
        return put(t->out, "(?<");
    }
    return refuse(t, "Unknown group type");
}

static rq_err translate_escape(translation *t)
{
    t->ptr++;
    if (left(t) == 0) return refuse(t, "Unexpected internal error");
    if (*t->ptr >= 0x80 || (!is_ascii_letter(*t->ptr) && !is_digit(*t->ptr)))
        return put_literal(t->out, take(t));
    uint8_t letter = *t->ptr++;
    uint32_t c;
    bool is_char;
    RQ_TRY(take_char_escape(t, letter, &c, &is_char));
    if (is_char) return put_code_point(t->out, c);
    if (letter == 'Q') return put_quoted(t, t->out);
    if (letter == 'p' || letter == 'P') {
        RQ_TRY(put(t->out, "["));
        RQ_TRY(put_property(t, letter == 'P', t->out));
        return put(t->out, "]");
    }
    if (letter == 'b' && next_is(t, "{")) return refuse(t, "unsupported boundary");
    if (letter == 'k' && !next_is(t, "<"))
        return refuse(t, "\\k is not followed by '<' for named capturing group");
    if (is_digit(letter) || strchr("ABDGHRSVWXZbdhkswvz", letter) != NULL)
        return rq_buf_printf(t->out, "\\%c", letter);
    return refuse(t, "Illegal/unsupported escape sequence");
}

static rq_err translate_all(translation *t)
{
    while (left(t) > 0) {
        switch (*t->ptr) {
        case '\\':
            RQ_TRY(translate_escape(t));
            break;
        case '[':
            t->ptr++;
            RQ_TRY(translate_class(t, t->out));
            break;
        case '(':
            RQ_TRY(translate_group(t));
            break;
        default:
            RQ_TRY(rq_buf_append_u8(t->out, *t->ptr++));
        }
    }
    return RQ_OK;
}

rq_err rq__java_regex_translate(rq_slice pattern, unsigned *flags, rq_buf *out, const char **what,
                                size_t *where)
{
    if ((*flags & RQ__REGEX_LITERAL) != 0) return rq_buf_append(out, pattern.ptr, pattern.len);
    translation t = {
        .begin = pattern.ptr,
        .ptr = pattern.ptr,
        .end = pattern.ptr + pattern.len,
        .out = out,
        .flags = flags,
    };
    rq_err rc = translate_all(&t);
    if (rc == RQ_E_INVALID) {
        *what = t.what;
        *where = (size_t)(t.ptr - t.begin);
    }
    return rc;
}
