/* SPDX-License-Identifier: Apache-2.0 */
/* Translates a pattern of java.util.regex to PCRE2's syntax. */
#ifndef RQ_FILTER_JAVA_REGEX_H
#define RQ_FILTER_JAVA_REGEX_H

#include "base/buf.h"

/* java.util.regex.Pattern's flags. */
#define RQ__REGEX_UNIX_LINES 0x01
#define RQ__REGEX_CASE_INSENSITIVE 0x02
#define RQ__REGEX_COMMENTS 0x04
#define RQ__REGEX_MULTILINE 0x08
#define RQ__REGEX_LITERAL 0x10
#define RQ__REGEX_DOTALL 0x20
#define RQ__REGEX_UNICODE_CASE 0x40
#define RQ__REGEX_CANON_EQ 0x80
#define RQ__REGEX_UNICODE_CHARACTER_CLASS 0x100

#define RQ__REGEX_CALLOUT_ITEMS 32

/*
 * Appends to `out` a PCRE2 pattern that matches the same texts as the Java pattern (well-formed
 * UTF-8) under the flags. Compile it with UTF, DOTALL, LF line ends, CASELESS for CASE_INSENSITIVE
 * and UCP for UNICODE_CHARACTER_CLASS. RQ_E_INVALID: Java refuses the pattern, or PCRE2 has no
 * equivalent; *what (a literal) is the reason, *where the position.
 *
 * With `callouts` the pattern has a callout at its beginning, behind each quantifier, and after
 * every RQ__REGEX_CALLOUT_ITEMS items without one, so that no search can repeat work without
 * reaching a callout.
 */
RQ_NODISCARD
rq_err rq__java_regex_translate(rq_slice pattern, unsigned flags, bool callouts, rq_buf *out,
                                const char **what, size_t *where);

#endif
