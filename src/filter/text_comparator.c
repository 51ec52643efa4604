/* SPDX-License-Identifier: Apache-2.0 */
/* SubstringComparator and RegexStringComparator: decode bytes to text as Java does, and search it.
 * Both return 0 for "found" and 1 for "not found". HBASE: the classes of these names.
 *
 * A regular expression (regex.h) is only evaluated on texts that contain its required string
 * (required_text.c). Where Java would run for minutes, this pauses or fails (pace.h). Both engines
 * of HBase (JAVA and JONI) are this one. */
#include "filter/ascii_text.h"
#include "filter/filter_priv.h"
#include "filter/java_regex.h"
#include "filter/java_text.h"
#include "filter/regex.h"
#include "filter/required_text.h"

#include "proto/comparator.pb-c.h"

/* Time of a string search, and of decoding: about a nanosecond per byte. */
static inline void spend(rq_pace *pace, rq_slice bytes)
{
    pace->slice_left -= (int64_t)(bytes.len / 8);
}

#define TEXT_KEEP ((size_t)64 << 10)

/* The text of a large value is freed, because the filter's scanner may be idle for long. */
static void drop_large(rq_buf *b)
{
    if (RQ_UNLIKELY(b->cap > TEXT_KEEP)) rq_buf_clear(b);
}

/* --- Substring -------------------------------------------------------------------------------- */
typedef struct substring_comparator {
    rq_comparator base; /* value: the lower-case text */
    rq_pace *pace;
    rq_buf needle, decoded, lower;
    bool is_ascii;   /* the needle */
    bool has_i_or_k; /* which are also the lower case of U+0130 and U+212A; no other ASCII letter
                      * is */
} substring_comparator;

/* Decoding and lower-casing add ASCII letters to a text only for U+0130 and U+212A ('i' and 'k').
 * So an ASCII needle without these letters is searched for in the undecoded bytes. */
static rq_err substring_compare(rq_comparator *c, rq_slice bytes, int *ret, rq_error *why)
{
    (void)why;
    substring_comparator *s = (substring_comparator *)c;
    spend(s->pace, bytes);
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
    RQ_TRY(rq__parse_pace(p, &s->pace));
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
    rq_pace *pace;
    rq_regex *regex;
    bool as_it_is; /* in the current search the bytes are the text; otherwise it is in `decoded` */
    rq_buf decoded, required; /* required: see required_text.h */
} regex_comparator;

/* *ret NULL: the required string is missing, so there is no match. */
static rq_err text_to_search(regex_comparator *r, rq_slice bytes, rq_slice *ret)
{
    *ret = (rq_slice){0};
    spend(r->pace, bytes);
    if (!rq__bytes_find(bytes, rq_buf_slice(&r->required))) return RQ_OK;
    RQ_TRY(rq__java_decode(r->charset, bytes, &r->decoded, ret));
    r->as_it_is = ret->ptr == bytes.ptr;
    if (ret->ptr == NULL) ret->ptr = (const uint8_t *)"";
    return RQ_OK;
}

static rq_err regex_compare(rq_comparator *c, rq_slice bytes, int *ret, rq_error *why)
{
    regex_comparator *r = (regex_comparator *)c;
    rq_slice text = r->as_it_is ? bytes : rq_buf_slice(&r->decoded);
    if (RQ_LIKELY(!r->pace->resuming || !rq__regex_is_paused(r->regex)))
        RQ_TRY(text_to_search(r, bytes, &text));
    bool found = false;
    rq_err rc = RQ_OK;
    if (text.ptr != NULL) rc = rq_regex_search(r->regex, text, r->pace, &found, why);
    if (rc == RQ_E_AGAIN) return rc; /* the search continues in the same text */
    drop_large(&r->decoded);
    *ret = !found;
    return rc;
}

static const rq_comparator_class regex_class = {regex_compare};

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
    RQ_TRY(rq__parse_own_buf(p, &r->decoded));
    RQ_TRY(rq__parse_own_buf(p, &r->required));
    rq_slice pattern;
    RQ_TRY(rq__java_decode(RQ__UTF_8, r->base.value, &r->decoded, &pattern));
    RQ_TRY(rq_regex_new(pattern, (unsigned)m->pattern_flags, RQ_REGEX_FIND, p->arena,
                        &p->bytes_left, &r->regex, &p->why));
    RQ_TRY(rq__parse_pace(p, &r->pace));
    RQ_TRY(rq__regex_required_text(pattern, (unsigned)m->pattern_flags, &r->required));
    *ret = &r->base;
    return RQ_OK;
}
