/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SubstringComparator and RegexStringComparator: bytes decoded to text as Java does and searched.
 * Both answer 0 for "found" and 1 for "not". HBASE: the classes of these names.
 *
 * Regular expressions run on PCRE2 (compiled to machine code where it can) after translation
 * (java_regex.c), on texts that contain what every match must (required_text.c). A search has a
 * ceiling on backtracking: Java would go on for minutes, here the request fails. Both engines of
 * HBase (JAVA and JONI) are this one.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "filter/ascii_text.h"
#include "filter/filter_priv.h"
#include "filter/java_regex.h"
#include "filter/java_text.h"
#include "filter/required_text.h"

#include "proto/comparator.pb-c.h"

#include <pcre2.h>

/* About 50 ms of backtracking; an ordinary search of a value needs some hundred steps. */
#define TEXT_KEEP ((size_t)64 << 10)
#define MATCH_LIMIT 1000000
#define HEAP_LIMIT_KIB 4096

/* --- Substring -------------------------------------------------------------------------------- */
typedef struct substring_comparator {
    rq_comparator base; /* value: the lower-case text */
    rq_buf needle, decoded, lower;
    bool is_ascii;   /* the needle */
    bool has_i_or_k; /* which are lower case of U+0130 and U+212A too; no other ASCII is */
} substring_comparator;

/* Decoding and lower case of other characters neither add ASCII to a text nor take some away,
 * except for those two: an ASCII needle is searched for in the bytes. */
/* The text of a large value is not kept: the filter's scanner may rest for long. */
static void drop_large(rq_buf *b)
{
    if (RQ_UNLIKELY(b->cap > TEXT_KEEP)) rq_buf_clear(b);
}

static rq_err substring_compare(rq_comparator *c, rq_slice bytes, int *ret, rq_error *why)
{
    (void)why;
    substring_comparator *s = (substring_comparator *)c;
    *ret = !(s->is_ascii && rq__ascii_find_folded(bytes, c->value));
    if (*ret == 0 || (s->is_ascii && !s->has_i_or_k) || rq__ascii_only(bytes)) return RQ_OK;
    rq_slice text;
    rq_buf_reset(&s->lower);
    RQ_TRY(rq__java_decode(RQ__UTF_8, bytes, &s->decoded, &text));
    RQ_TRY(rq__java_append_lower(text, &s->lower));
    *ret = !rq__bytes_find(rq_buf_slice(&s->lower), c->value);
    drop_large(&s->decoded);
    drop_large(&s->lower);
    return RQ_OK;
}

static const rq_comparator_class substring_class = {substring_compare};

rq_err rq__parse_substring(rq__parse *p, rq_slice bytes, rq_comparator **ret)
{
    const Pb__SubstringComparator *m =
        rq__parse_message(p, &pb__substring_comparator__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    substring_comparator *s = (substring_comparator *)rq__parse_new_comparator(
        p, sizeof *s, &substring_class, (rq_slice){0});
    if (s == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(rq__parse_own_buf(p, &s->needle));
    RQ_TRY(rq__parse_own_buf(p, &s->decoded));
    RQ_TRY(rq__parse_own_buf(p, &s->lower));
    rq_slice text;
    RQ_TRY(rq__java_decode(RQ__UTF_8, rq__slice_of_pb(m->substr), &s->decoded, &text));
    RQ_TRY(rq__java_append_lower(text, &s->needle));
    rq_slice needle = s->base.value = rq_buf_slice(&s->needle);
    s->is_ascii = rq__ascii_only(needle);
    s->has_i_or_k = needle.len > 0 &&
                    (memchr(needle.ptr, 'i', needle.len) || memchr(needle.ptr, 'k', needle.len));
    *ret = &s->base;
    return RQ_OK;
}

/* --- Regex ------------------------------------------------------------------------------------ */
typedef struct regex_comparator {
    rq_comparator base; /* value: the pattern as sent */
    rq__charset charset;
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *context;
    bool has_machine_code;
    rq_buf translated, decoded, required; /* required: see required_text.h */
} regex_comparator;

static int run_pattern(const regex_comparator *r, rq_slice text)
{
    const uint8_t *subject = text.len == 0 ? (const uint8_t *)"" : text.ptr;
    int rc = PCRE2_ERROR_JIT_STACKLIMIT;
    if (r->has_machine_code) /* nothing else that pcre2_match would look at first */
        rc = pcre2_jit_match(r->code, subject, text.len, 0, 0, r->match, r->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(r->code, subject, text.len, 0, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, r->match,
                         r->context);
    return rc;
}

static rq_err regex_compare(rq_comparator *c, rq_slice bytes, int *ret, rq_error *why)
{
    regex_comparator *r = (regex_comparator *)c;
    rq_slice text;
    *ret = 1;
    if (!rq__bytes_find(bytes, rq_buf_slice(&r->required))) return RQ_OK;
    RQ_TRY(rq__java_decode(r->charset, bytes, &r->decoded, &text));
    int rc = run_pattern(r, text);
    drop_large(&r->decoded);
    if (rc == PCRE2_ERROR_NOMEMORY) return RQ_E_NO_MEMORY;
    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH) {
        char text_of_rc[128];
        pcre2_get_error_message(rc, (PCRE2_UCHAR *)text_of_rc, sizeof text_of_rc);
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "regular expression on %zu bytes: %s", bytes.len,
                       text_of_rc);
    }
    *ret = rc == PCRE2_ERROR_NOMATCH;
    return RQ_OK;
}

static const rq_comparator_class regex_class = {regex_compare};

static void release_regex(void *thing)
{
    regex_comparator *r = thing;
    pcre2_match_context_free(r->context);
    pcre2_match_data_free(r->match);
    pcre2_code_free(r->code);
}

static uint32_t options_of(unsigned flags)
{
    uint32_t options = PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOTALL;
    if ((flags & RQ__REGEX_CASE_INSENSITIVE) != 0) options |= PCRE2_CASELESS;
    if ((flags & RQ__REGEX_UNICODE_CHARACTER_CLASS) != 0) options |= PCRE2_UCP;
    return options;
}

static rq_err syntax_error(rq__parse *p, const char *what, size_t where, rq_slice pattern)
{
    return rq_fail(&p->why, RQ_E_DO_NOT_RETRY,
                   "java.util.regex.PatternSyntaxException: %s near index %zu\n%.*s", what, where,
                   (int)(pattern.len < 300 ? pattern.len : 300), (const char *)pattern.ptr);
}

/* A few bytes of a pattern can be a large program. */
static rq_err account(rq__parse *p, const regex_comparator *r)
{
    size_t code = 0, machine_code = 0;
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_SIZE, &code);
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_JITSIZE, &machine_code);
    return rq_arena_account(p->arena, code + machine_code + r->translated.cap);
}

/* The comparator is linked to the arena already: what is set here is released with it. */
static rq_err compile(rq__parse *p, regex_comparator *r, rq_slice pattern, unsigned flags)
{
    const char *what = NULL;
    size_t where = 0;
    rq_err rc = rq__java_regex_translate(pattern, flags, &r->translated, &what, &where);
    if (rc == RQ_E_INVALID) return syntax_error(p, what, where, pattern);
    RQ_TRY(rc);

    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (context == NULL) return RQ_E_NO_MEMORY;
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    const uint8_t *source = r->translated.len == 0 ? (const uint8_t *)"" : r->translated.ptr;
    int error = 0;
    r->code = pcre2_compile(source, r->translated.len, options_of(flags), &error, &where, context);
    pcre2_compile_context_free(context);
    if (r->code == NULL) {
        char text[200];
        if (pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof text) < 0) text[0] = '\0';
        return syntax_error(p, text, where, pattern);
    }
    /* Without machine code (no memory that may be executed) it is slower, not wrong. */
    r->has_machine_code = pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE) == 0;
    r->match = pcre2_match_data_create(1, NULL);
    r->context = pcre2_match_context_create(NULL);
    if (r->match == NULL || r->context == NULL) return RQ_E_NO_MEMORY;
    pcre2_set_match_limit(r->context, MATCH_LIMIT);
    pcre2_set_heap_limit(r->context, HEAP_LIMIT_KIB);
    return account(p, r);
}

static rq_err check_settings(rq__parse *p, const Pb__RegexStringComparator *m,
                             rq__charset *ret_charset)
{
    if (m->engine != NULL && strcmp(m->engine, "JAVA") != 0 && strcmp(m->engine, "JONI") != 0)
        return rq__parse_illegal(p,
                                 "No enum constant org.apache.hadoop.hbase.filter."
                                 "RegexStringComparator.EngineType.%.100s",
                                 m->engine);
    const unsigned all = 0x1ff;
    if (((unsigned)m->pattern_flags & ~all) != 0)
        return rq__parse_illegal(p, "Unknown flag 0x%x", (unsigned)m->pattern_flags & ~all);
    if (((unsigned)m->pattern_flags & RQ__REGEX_CANON_EQ) != 0)
        return rq__parse_illegal(p, "flag CANON_EQ is not supported");
    *ret_charset = RQ__UTF_8;
    if (m->charset[0] != '\0' && !rq__charset_find(rq_slice_cstr(m->charset), ret_charset))
        return rq_fail(&p->why, RQ_E_DO_NOT_RETRY,
                       "java.nio.charset.UnsupportedCharsetException: %.100s", m->charset);
    return RQ_OK;
}

rq_err rq__parse_regex_string(rq__parse *p, rq_slice bytes, rq_comparator **ret)
{
    const Pb__RegexStringComparator *m =
        rq__parse_message(p, &pb__regex_string_comparator__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    regex_comparator *r = (regex_comparator *)rq__parse_new_comparator(p, sizeof *r, &regex_class,
                                                                       rq__slice_of_pb(m->pattern));
    if (r == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(check_settings(p, m, &r->charset));
    RQ_TRY(rq_arena_link(p->arena, release_regex, r));
    RQ_TRY(rq__parse_own_buf(p, &r->translated));
    RQ_TRY(rq__parse_own_buf(p, &r->decoded));
    RQ_TRY(rq__parse_own_buf(p, &r->required));
    rq_slice pattern;
    RQ_TRY(rq__java_decode(RQ__UTF_8, r->base.value, &r->decoded, &pattern));
    RQ_TRY(compile(p, r, pattern, (unsigned)m->pattern_flags));
    RQ_TRY(rq__regex_required_text(pattern, (unsigned)m->pattern_flags, &r->required));
    *ret = &r->base;
    return RQ_OK;
}
