/* SPDX-License-Identifier: Apache-2.0 */
/* Ruby's Regexp, which mruby leaves to others, on PCRE2: literals, =~, match, and what String does
 * with patterns (prelude/regexp.rb). Regexp#search gives the positions of the groups as bytes.
 * Scripts are the user's own, but a pattern must not run forever: PCRE2's match limit stays. */
#include "shell/shell_priv.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/data.h>
#include <mruby/string.h>
#include <mruby/variable.h>
#include <pcre2.h>

static void free_code(mrb_state *mrb, void *p)
{
    (void)mrb;
    pcre2_code_free(p);
}

static const mrb_data_type code_type = {"Regexp", free_code};

/* The flags of a literal, "imx", or Ruby's numbers. */
static uint32_t options_of(mrb_state *mrb, mrb_value flags)
{
    uint32_t options = PCRE2_MULTILINE; /* Ruby's ^ and $ */
    if (mrb_integer_p(flags)) {
        mrb_int n = mrb_integer(flags);
        return options | (n & 1 ? PCRE2_CASELESS : 0) | (n & 2 ? PCRE2_EXTENDED : 0) |
               (n & 4 ? PCRE2_DOTALL : 0);
    }
    if (!mrb_string_p(flags)) return mrb_test(flags) ? options | PCRE2_CASELESS : options;
    const char *text = mrb_string_value_cstr(mrb, &flags);
    if (strchr(text, 'i') != NULL) options |= PCRE2_CASELESS;
    if (strchr(text, 'x') != NULL) options |= PCRE2_EXTENDED;
    if (strchr(text, 'm') != NULL) options |= PCRE2_DOTALL;
    return options;
}

/* The state of a pattern's conversion. */
typedef struct conversion {
    mrb_state *mrb;
    const char *text;
    mrb_int copied;
    mrb_value out; /* nil: nothing was replaced yet */
} conversion;

static void replace(conversion *c, mrb_int begin, mrb_int end, const char *with)
{
    if (mrb_nil_p(c->out)) c->out = mrb_str_new(c->mrb, "", 0);
    mrb_str_cat(c->mrb, c->out, c->text + c->copied, (size_t)(begin - c->copied));
    mrb_str_cat_cstr(c->mrb, c->out, with);
    c->copied = end;
}

/* The flags of a group "(?mi-x:": Ruby's m is PCRE2's s. */
static void on_group(conversion *c, mrb_int i, mrb_int len)
{
    if (i + 2 >= len || c->text[i + 1] != '?') return;
    mrb_int end = i + 2;
    while (end < len && c->text[end] != '\0' && strchr("imx-", c->text[end]) != NULL)
        end++;
    if (end == len || (c->text[end] != ':' && c->text[end] != ')')) return;
    for (mrb_int k = i + 2; k < end; k++)
        if (c->text[k] == 'm') replace(c, k, k + 1, "s");
}

/* Converts the pattern to PCRE2: Ruby's \h is a hexadecimal digit, \H any other character. */
static mrb_value in_pcre(mrb_state *mrb, mrb_value source)
{
    mrb_int len = RSTRING_LEN(source);
    bool in_class = false;
    conversion c = {mrb, RSTRING_PTR(source), 0, mrb_nil_value()};
    for (mrb_int i = 0; i < len; i++) {
        if (c.text[i] == '[') in_class = true;
        if (c.text[i] == ']') in_class = false;
        if (c.text[i] == '(' && !in_class) on_group(&c, i, len);
        if (c.text[i] != '\\' || i + 1 == len) continue;
        bool digit = c.text[i + 1] == 'h', other = c.text[i + 1] == 'H' && !in_class;
        if (digit || other)
            replace(&c, i, i + 2, in_class ? "0-9a-fA-F" : digit ? "[0-9a-fA-F]" : "[^0-9a-fA-F]");
        i++;
    }
    if (mrb_nil_p(c.out)) return source;
    return mrb_str_cat(mrb, c.out, c.text + c.copied, (size_t)(len - c.copied));
}

/* The flags as Ruby's number (Regexp#options). */
static mrb_int ruby_options(uint32_t options)
{
    return (options & PCRE2_CASELESS ? 1 : 0) | (options & PCRE2_EXTENDED ? 2 : 0) |
           (options & PCRE2_DOTALL ? 4 : 0);
}

static mrb_value initialize(mrb_state *mrb, mrb_value self)
{
    mrb_value source, flags = mrb_nil_value();
    int code;
    PCRE2_SIZE at;
    mrb_get_args(mrb, "S|oo", &source, &flags, &(mrb_value){0});
    mrb_value pattern = in_pcre(mrb, source);
    uint32_t options = options_of(mrb, flags);
    pcre2_code *p = pcre2_compile((PCRE2_SPTR)RSTRING_PTR(pattern),
                                  (PCRE2_SIZE)RSTRING_LEN(pattern), options, &code, &at, NULL);
    if (p == NULL) {
        char text[128];
        (void)pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof text);
        mrb_raisef(mrb, mrb_class_get(mrb, "RegexpError"), "%s: /%v/", text, source);
    }
    mrb_data_init(self, p, &code_type);
    mrb_iv_set(mrb, self, mrb_intern_lit(mrb, "@source"), source);
    mrb_iv_set(mrb, self, mrb_intern_lit(mrb, "@options"), mrb_fixnum_value(ruby_options(options)));
    return self;
}

/* Without an answer: the pattern takes too many steps, or too much memory. */
static void refuse(mrb_state *mrb, int code, mrb_value source)
{
    char text[128];
    (void)pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof text);
    mrb_raisef(mrb, mrb_class_get(mrb, "RegexpError"), "%s: /%v/", text, source);
}

/* search(text, from) → [begin, end, begin of group 1 or nil, …] or nil */
static mrb_value search(mrb_state *mrb, mrb_value self)
{
    mrb_value text;
    mrb_int from;
    mrb_get_args(mrb, "Si", &text, &from);
    pcre2_code *p = mrb_data_get_ptr(mrb, self, &code_type);
    if (from < 0 || from > RSTRING_LEN(text)) return mrb_nil_value();
    pcre2_match_data *m = pcre2_match_data_create_from_pattern(p, NULL);
    if (m == NULL) mrb_raise(mrb, E_RUNTIME_ERROR, "out of memory");
    int n = pcre2_match(p, (PCRE2_SPTR)RSTRING_PTR(text), (PCRE2_SIZE)RSTRING_LEN(text),
                        (PCRE2_SIZE)from, 0, m, NULL);
    mrb_value list = mrb_nil_value();
    if (n > 0) {
        const PCRE2_SIZE *at = pcre2_get_ovector_pointer(m);
        uint32_t count = pcre2_get_ovector_count(m);
        list = mrb_ary_new(mrb);
        for (uint32_t i = 0; i < 2 * count; i++)
            mrb_ary_push(mrb, list,
                         at[i] == PCRE2_UNSET ? mrb_nil_value()
                                              : mrb_int_value(mrb, (mrb_int)at[i]));
    }
    pcre2_match_data_free(m);
    if (n < 0 && n != PCRE2_ERROR_NOMATCH)
        refuse(mrb, n, mrb_iv_get(mrb, self, mrb_intern_lit(mrb, "@source")));
    return list;
}

/* names → [[name, number of the group], …] */
static mrb_value names(mrb_state *mrb, mrb_value self)
{
    pcre2_code *p = mrb_data_get_ptr(mrb, self, &code_type);
    uint32_t count = 0, size = 0;
    PCRE2_SPTR table = NULL;
    mrb_value list = mrb_ary_new(mrb);
    (void)pcre2_pattern_info(p, PCRE2_INFO_NAMECOUNT, &count);
    (void)pcre2_pattern_info(p, PCRE2_INFO_NAMEENTRYSIZE, &size);
    (void)pcre2_pattern_info(p, PCRE2_INFO_NAMETABLE, (void *)&table);
    for (uint32_t i = 0; i < count; i++, table += size)
        mrb_ary_push(mrb, list,
                     mrb_assoc_new(mrb, mrb_str_new_cstr(mrb, (const char *)table + 2),
                                   mrb_int_value(mrb, table[0] << 8 | table[1])));
    return list;
}

/* Regexp.remember(match, groups): $~, $1 … $9, which Ruby itself cannot set. */
static mrb_value remember(mrb_state *mrb, mrb_value self)
{
    mrb_value match, groups;
    char name[] = "$1";
    (void)self;
    mrb_get_args(mrb, "oA", &match, &groups);
    mrb_gv_set(mrb, mrb_intern_lit(mrb, "$~"), match);
    for (mrb_int i = 1; i <= 9; i++, name[1]++)
        mrb_gv_set(mrb, mrb_intern_cstr(mrb, name),
                   i < RARRAY_LEN(groups) ? mrb_ary_ref(mrb, groups, i) : mrb_nil_value());
    return match;
}

void rq__define_regexp(mrb_state *mrb)
{
    struct RClass *c = mrb_define_class(mrb, "Regexp", mrb->object_class);
    MRB_SET_INSTANCE_TT(c, MRB_TT_DATA);
    mrb_define_class(mrb, "RegexpError", mrb_class_get(mrb, "StandardError"));
    mrb_define_method(mrb, c, "initialize", initialize, MRB_ARGS_ARG(1, 2));
    mrb_define_method(mrb, c, "search", search, MRB_ARGS_REQ(2));
    mrb_define_class_method(mrb, c, "remember", remember, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, c, "group_names", names, MRB_ARGS_NONE());
}
