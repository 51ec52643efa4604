/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Java regular expression, translated (java_regex.h), compiled by PCRE2 and searched for within
 * limits. The only user of PCRE2.
 */
#ifndef RQ_FILTER_REGEX_H
#define RQ_FILTER_REGEX_H

#include "base/arena.h"
#include "filter/pace.h"

typedef struct rq_regex rq_regex;

/* FIND: part of a text must match (Matcher.find); MATCHES: all of it (Matcher.matches). */
typedef enum rq_regex_kind { RQ_REGEX_FIND, RQ_REGEX_MATCHES } rq_regex_kind;

/*
 * Compiles `pattern`, UTF-8 (malformed bytes become U+FFFD), with the `flags` of
 * java.util.regex.Pattern. Freed with the arena. The memory it needs (a compiled pattern may be a
 * thousand times as long as its text) is subtracted from *bytes_left first. RQ_E_DO_NOT_RETRY with
 * the text of PatternSyntaxException.
 */
RQ_NODISCARD
rq_err rq_regex_new(rq_slice pattern, unsigned flags, rq_regex_kind kind, rq_arena *arena,
                    size_t *bytes_left, rq_regex **ret, rq_error *why);

/*
 * Searches the text (well-formed UTF-8). RQ_E_AGAIN: the slice of `pace` is used up; the next call
 * with the same text and pace->resuming set continues the search. RQ_E_DO_NOT_RETRY: it takes too
 * long. One thread at a time.
 */
RQ_NODISCARD
rq_err rq_regex_search(rq_regex *r, rq_slice text, rq_pace *pace, bool *ret, rq_error *why);
/* Whether the next call would continue the last search. */
bool rq__regex_is_paused(const rq_regex *r);

#endif
