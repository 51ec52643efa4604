/* SPDX-License-Identifier: Apache-2.0 */
/* Character classes of a Java pattern, and properties, which are classes with a name.
 *
 * Java's classes have unions and intersections, [a[bc]] and [a-z&&[^x]], which PCRE2 lacks. A class
 * of several parts becomes a group that matches exactly one character: for a union any part matches
 * it; for an intersection the last part matches it, and the others are look-aheads. */
#include "filter/java_regex_priv.h"

#define CLASS_DEPTH_MAX 50

/* --- properties ------------------------------------------------------------------------------- */

/* Java's name, its equivalent in a PCRE2 class, and the negated one. */
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

rq_err rq__regex_put_property(rq__regex *t, bool negated, rq_buf *out)
{
    rq_slice name;
    if (rq__regex_next_is(t, "{")) {
        t->ptr++;
        const uint8_t *close =
            rq__regex_left(t) == 0 ? NULL : memchr(t->ptr, '}', rq__regex_left(t));
        if (close == NULL) return rq__regex_refuse(t, "Unclosed character family");
        name = rq_slice_of(t->ptr, (size_t)(close - t->ptr));
        t->ptr = close + 1;
    } else {
        if (rq__regex_left(t) == 0) return rq__regex_refuse(t, "Unknown character property name");
        name = rq_slice_of(t->ptr, 1);
        t->ptr++;
    }
    for (size_t i = 0; i < RQ_ARRAY_LEN(properties); i++) {
        if (!rq_slice_eq(name, rq_slice_cstr(properties[i].name))) continue;
        const char *text = negated ? properties[i].out : properties[i].in;
        return text == NULL ? rq__regex_refuse(t, "unsupported character property")
                            : rq__regex_put(out, text);
    }
    name = after_prefix(name);
    for (size_t i = 0; i < name.len; i++)
        if (!rq__ascii_letter(name.ptr[i]) && name.ptr[i] != '_')
            return rq__regex_refuse(t, "unsupported character property");
    if (name.len == 0 || (name.len > 2 && memcmp(name.ptr, "In", 2) == 0 && name.ptr[2] >= 'A' &&
                          name.ptr[2] <= 'Z'))
        return rq__regex_refuse(t, "unsupported character property"); /* In…: a block */
    RQ_TRY(rq__regex_put(out, negated ? "\\P{" : "\\p{"));
    RQ_TRY(rq_buf_append(out, name.ptr, name.len));
    return rq__regex_put(out, "}");
}

/* --- classes ---------------------------------------------------------------------------------- */

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
        RQ_TRY(rq__regex_put(out, "["));
        RQ_TRY(rq_buf_append(out, o->items.ptr, o->items.len));
        return rq__regex_put(out, "]");
    }
    RQ_TRY(rq__regex_put(out, "(?:"));
    if (o->items.len > 0) {
        RQ_TRY(rq__regex_put(out, "["));
        RQ_TRY(rq_buf_append(out, o->items.ptr, o->items.len));
        RQ_TRY(rq__regex_put(out, "]"));
        RQ_TRY(rq_buf_append(out, o->nested.ptr, o->nested.len));
    } else {
        RQ_TRY(rq_buf_append(out, o->nested.ptr + 1, o->nested.len - 1));
    }
    return rq__regex_put(out, ")");
}

/* Behind a backslash in a class. *is_char: it is a character, which may begin a range. */
static rq_err take_class_escape(rq__regex *t, operand *o, uint32_t *ret, bool *is_char)
{
    if (rq__regex_left(t) == 0) return rq__regex_refuse(t, "Illegal/unsupported escape sequence");
    if (*t->ptr >= 0x80 || (!rq__ascii_letter(*t->ptr) && !rq__ascii_digit(*t->ptr))) {
        *is_char = true;
        *ret = rq__regex_take(t);
        return RQ_OK;
    }
    uint8_t letter = *t->ptr++;
    RQ_TRY(rq__regex_take_escape(t, letter, ret, is_char));
    if (*is_char) return RQ_OK;
    if (letter == 'p' || letter == 'P') return rq__regex_put_property(t, letter == 'P', &o->items);
    if (strchr("dDhHsSvVwW", letter) != NULL) return rq_buf_printf(&o->items, "\\%c", letter);
    return rq__regex_refuse(t, "Illegal/unsupported escape sequence");
}

/* Adds the characters from first to last to the operand. Characters whose case PCRE2 would fold but
 * Java would not are put into a separate class without case folding. */
static rq_err put_range(const rq__regex *t, operand *o, uint32_t first, uint32_t last)
{
    bool shielded = rq__regex_folds_too_much(t, last);
    rq_buf *out = &o->items;
    if (shielded) {
        if (first < 0x80) RQ_TRY(rq_buf_printf(&o->items, "\\x{%x}-\\x{7f}", first));
        out = &o->nested;
        RQ_TRY(rq__regex_put(out, "|(?-i:["));
    }
    if (first == last)
        RQ_TRY(rq__regex_put_plain(out, first));
    else
        RQ_TRY(rq_buf_printf(out, "\\x{%x}-\\x{%x}", first, last));
    return shielded ? rq__regex_put(out, "])") : RQ_OK;
}

/* Behind \Q: adds all but the last character, which may begin a range. *any: there is one. */
static rq_err take_class_quoted(rq__regex *t, operand *o, uint32_t *ret_last, bool *any)
{
    *any = false;
    while (rq__regex_left(t) > 0 && !rq__regex_next_is(t, "\\E")) {
        if (*any) RQ_TRY(put_range(t, o, *ret_last, *ret_last));
        *ret_last = rq__regex_take(t);
        *any = true;
    }
    if (rq__regex_left(t) > 0) t->ptr += 2;
    return RQ_OK;
}

/* The character behind a range's '-', and the characters quoted together with it. */
static rq_err take_range_end(rq__regex *t, operand *o, uint32_t *ret)
{
    if (rq__regex_left(t) == 0) return rq__regex_refuse(t, "Illegal character range");
    if (rq__regex_next_is(t, "\\Q")) {
        t->ptr += 2;
        if (rq__regex_left(t) == 0 || rq__regex_next_is(t, "\\E"))
            return rq__regex_refuse(t, "Illegal character range");
        *ret = rq__regex_take(t);
        uint32_t last;
        bool any;
        RQ_TRY(take_class_quoted(t, o, &last, &any));
        return any ? put_range(t, o, last, last) : RQ_OK;
    }
    if (*t->ptr != '\\') {
        *ret = rq__regex_take(t);
        return RQ_OK;
    }
    t->ptr++;
    operand nothing = {0};
    bool is_char;
    rq_err rc = take_class_escape(t, &nothing, ret, &is_char);
    operand_clear(&nothing);
    RQ_TRY(rc);
    return is_char ? RQ_OK : rq__regex_refuse(t, "Illegal character range");
}

/* The item at t->ptr, which is not the class's end, "&&" or a nested class. */
static rq_err take_class_item(rq__regex *t, operand *o)
{
    uint32_t first;
    bool is_char = true;
    if (rq__regex_next_is(t, "\\Q")) {
        t->ptr += 2;
        RQ_TRY(take_class_quoted(t, o, &first, &is_char));
    } else if (*t->ptr == '\\') {
        t->ptr++;
        RQ_TRY(take_class_escape(t, o, &first, &is_char));
    } else {
        first = rq__regex_take(t);
    }
    if (!is_char) return RQ_OK;
    rq__regex_skip_comments(t);
    if (rq__regex_left(t) < 2 || *t->ptr != '-' || t->ptr[1] == ']' || t->ptr[1] == '[')
        return put_range(t, o, first, first);
    t->ptr++;
    rq__regex_skip_comments(t);
    uint32_t last;
    RQ_TRY(take_range_end(t, o, &last));
    return last < first ? rq__regex_refuse(t, "Illegal character range")
                        : put_range(t, o, first, last);
}

static bool is_empty(const operand *o)
{
    return o->items.len == 0 && o->nested.len == 0;
}

/* Items up to the class's end or "&&", which are not consumed. A bracket that would close an empty
 * class is literal. */
static rq_err take_operand(rq__regex *t, bool is_first, operand *o)
{
    for (;;) {
        rq__regex_skip_comments(t);
        if (rq__regex_left(t) == 0) return rq__regex_refuse(t, "Unclosed character class");
        if (rq__regex_next_is(t, "&&")) return RQ_OK;
        if (*t->ptr == ']' && !(is_first && is_empty(o))) return RQ_OK;
        if (*t->ptr == '[') {
            t->ptr++;
            RQ_TRY(rq__regex_put(&o->nested, "|"));
            RQ_TRY(rq__regex_put_class(t, &o->nested));
        } else {
            RQ_TRY(take_class_item(t, o));
        }
    }
}

/* The operands of a class without its negation: look-aheads go to `ahead`, the last operand to
 * *o. */
static rq_err take_operands(rq__regex *t, rq_buf *ahead, operand *o)
{
    RQ_TRY(take_operand(t, true, o));
    while (rq__regex_next_is(t, "&&")) {
        t->ptr += 2;
        /* Java accepts some of these, with obscure meanings. */
        if (rq__regex_left(t) > 0 && (*t->ptr == '&' || *t->ptr == ']'))
            return rq__regex_refuse(t, "Bad class syntax");
        if (!is_empty(o)) { /* "&&x" alone is x */
            RQ_TRY(rq__regex_put(ahead, "(?="));
            RQ_TRY(put_operand(o, ahead));
            RQ_TRY(rq__regex_put(ahead, ")"));
        }
        operand_clear(o);
        RQ_TRY(take_operand(t, false, o));
    }
    t->ptr++; /* ] */
    return is_empty(o) ? rq__regex_refuse(t, "Bad class syntax") : RQ_OK;
}

static rq_err put_class(const rq_buf *ahead, const operand *o, bool negated, rq_buf *out)
{
    if (ahead->len == 0 && o->nested.len == 0) {
        RQ_TRY(rq__regex_put(out, negated ? "[^" : "["));
        RQ_TRY(rq_buf_append(out, o->items.ptr, o->items.len));
        return rq__regex_put(out, "]");
    }
    RQ_TRY(rq__regex_put(out, negated ? "(?:(?!" : "(?:"));
    if (ahead->len > 0) RQ_TRY(rq_buf_append(out, ahead->ptr, ahead->len));
    RQ_TRY(put_operand(o, out));
    return rq__regex_put(out, negated ? ")(?s:.))" : ")");
}

rq_err rq__regex_put_class(rq__regex *t, rq_buf *out)
{
    if (t->class_depth == CLASS_DEPTH_MAX) return rq__regex_refuse(t, "classes nested too deep");
    t->class_depth++;
    bool negated = rq__regex_next_is(t, "^");
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
