/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the translation of Java's regular expressions shares: java_regex.c knows groups, anchors and
 * flags, java_regex_class.c classes and properties, java_regex_char.c single characters.
 *
 * What takes something reads at t->ptr and leaves t->ptr behind it.
 */
#ifndef RQ_FILTER_JAVA_REGEX_PRIV_H
#define RQ_FILTER_JAVA_REGEX_PRIV_H

#include "filter/java_regex.h"

#define RQ__REGEX_GROUP_DEPTH_MAX 250 /* PCRE2's own */

/* A pattern on its way. */
typedef struct rq__regex {
    const uint8_t *begin, *ptr, *end;
    rq_buf *out;
    const char *what;                                  /* why it was refused */
    unsigned flags;                                    /* here */
    unsigned flags_outside[RQ__REGEX_GROUP_DEPTH_MAX]; /* of the open groups' surroundings */
    size_t depth;
    unsigned class_depth;
    unsigned captures;  /* groups opened so far */
    unsigned reference; /* the highest group that is referred to by number */
    bool callouts;
    bool in_braces;        /* of a quantifier */
    bool after_quantifier; /* its lazy or possessive sign may follow */
    unsigned items;        /* since the last callout */
} rq__regex;

static inline size_t rq__regex_left(const rq__regex *t)
{
    return (size_t)(t->end - t->ptr);
}

static inline bool rq__regex_next_is(const rq__regex *t, const char *text)
{
    size_t n = strlen(text);
    return rq__regex_left(t) >= n && memcmp(t->ptr, text, n) == 0;
}

static inline bool rq__regex_has(const rq__regex *t, unsigned flag)
{
    return (t->flags & flag) != 0;
}

static inline bool rq__ascii_letter(uint8_t c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static inline bool rq__ascii_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* --- java_regex_char.c ------------------------------------------------------------------------ */
/* RQ_E_INVALID, for this reason (a literal). */
RQ_NODISCARD
rq_err rq__regex_refuse(rq__regex *t, const char *what);
RQ_NODISCARD
rq_err rq__regex_put(rq_buf *out, const char *text);
/* One character standing for itself, in a class or outside. */
RQ_NODISCARD
rq_err rq__regex_put_plain(rq_buf *out, uint32_t c);
/* Does PCRE2 fold the case of a character that Java would not? */
bool rq__regex_folds_too_much(const rq__regex *t, uint32_t c);
/* The next character. REQUIRES: there is one. */
uint32_t rq__regex_take(rq__regex *t);
/* What COMMENTS makes invisible. */
void rq__regex_skip_comments(rq__regex *t);
/* The escape's letter has been read. *is_char false: it is no single character. */
RQ_NODISCARD
rq_err rq__regex_take_escape(rq__regex *t, uint8_t letter, uint32_t *ret, bool *is_char);

/* --- java_regex_class.c ----------------------------------------------------------------------- */
/* Behind \p or \P: the property as part of a class. */
RQ_NODISCARD
rq_err rq__regex_put_property(rq__regex *t, bool negated, rq_buf *out);
/* Behind a class's opening bracket. */
RQ_NODISCARD
rq_err rq__regex_put_class(rq__regex *t, rq_buf *out);

#endif
