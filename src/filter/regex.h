/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A regular expression of Java, compiled by PCRE2 (java_regex.h says how it is translated) and
 * searched for within limits: the only user of PCRE2.
 */
#ifndef RQ_FILTER_REGEX_H
#define RQ_FILTER_REGEX_H

#include "base/arena.h"
#include "filter/pace.h"

typedef struct rq_regex rq_regex;

/* Part of a text must match (Matcher.find), or all of it (Matcher.matches). */
typedef enum rq_regex_kind { RQ_REGEX_FIND, RQ_REGEX_MATCHES } rq_regex_kind;

/*
 * `pattern` is UTF-8 (what is malformed in it becomes U+FFFD), `flags` are java.util.regex.Pattern's. Freed with the arena. What
 * it takes (compiled patterns may be a thousand times as long as their text) is taken off
 * *bytes_left first. RQ_E_DO_NOT_RETRY with the text of PatternSyntaxException.
 */
RQ_NODISCARD
rq_err rq_regex_new(rq_slice pattern, unsigned flags, rq_regex_kind kind, rq_arena *arena,
                    size_t *bytes_left, rq_regex **ret, rq_error *why);

/*
 * Is it in the text (well-formed UTF-8)? RQ_E_AGAIN: the slice of `pace` is spent; the search goes
 * on in the next call with the same text, when pace->resuming is set. RQ_E_DO_NOT_RETRY: it takes
 * too long. One thread at a time.
 */
RQ_NODISCARD
rq_err rq_regex_search(rq_regex *r, rq_slice text, rq_pace *pace, bool *ret, rq_error *why);
/* The next call would go on with the text of the last one. */
bool rq_regex_is_paused(const rq_regex *r);

#endif
