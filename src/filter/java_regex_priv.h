/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the translation of Java's regular expressions: java_regex.c handles groups, anchors and
 * flags, java_regex_class.c classes and properties, java_regex_char.c single characters.
 *
 * A take function reads at t->ptr and leaves t->ptr behind what it has read.
 */
#ifndef RQ_FILTER_JAVA_REGEX_PRIV_H
#define RQ_FILTER_JAVA_REGEX_PRIV_H

#include "filter/java_regex.h"

#define RQ__REGEX_GROUP_DEPTH_MAX 250 /* PCRE2's own */

/* The state of a translation. */
typedef struct rq__regex {
    const uint8_t *begin, *ptr, *end;
    rq_buf *out;
    const char *what;                                  /* why the pattern was refused */
    unsigned flags;                                    /* in effect here */
    unsigned flags_outside[RQ__REGEX_GROUP_DEPTH_MAX]; /* flags outside of each open group */
    size_t depth;
    unsigned class_depth;
    unsigned captures;  /* capturing groups opened so far */
    unsigned reference; /* highest group number referred to */
    bool callouts;
    bool in_braces;        /* inside a quantifier's braces */
    bool after_quantifier; /* a lazy or possessive sign may follow */
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
/* Returns RQ_E_INVALID and sets the reason (a literal). */
RQ_NODISCARD
rq_err rq__regex_refuse(rq__regex *t, const char *what);
RQ_NODISCARD
rq_err rq__regex_put(rq_buf *out, const char *text);
/* Appends one literal character, in a class or outside. */
RQ_NODISCARD
rq_err rq__regex_put_plain(rq_buf *out, uint32_t c);
/* Whether PCRE2 folds the case of a character that Java would not. */
bool rq__regex_folds_too_much(const rq__regex *t, uint32_t c);
/* Reads the next character. REQUIRES: there is one. */
uint32_t rq__regex_take(rq__regex *t);
/* Skips what COMMENTS ignores. */
void rq__regex_skip_comments(rq__regex *t);
/* Reads an escape whose letter has been read. *is_char false: it is not a single character. */
RQ_NODISCARD
rq_err rq__regex_take_escape(rq__regex *t, uint8_t letter, uint32_t *ret, bool *is_char);

/* --- java_regex_class.c ----------------------------------------------------------------------- */
/* Reads what follows \p or \P and appends the property as part of a class. */
RQ_NODISCARD
rq_err rq__regex_put_property(rq__regex *t, bool negated, rq_buf *out);
/* Reads a class after its opening bracket. */
RQ_NODISCARD
rq_err rq__regex_put_class(rq__regex *t, rq_buf *out);

#endif
