/* SPDX-License-Identifier: Apache-2.0 */
/* What must stand in a text for a regular expression to be found in it. */
#ifndef RQ_FILTER_REQUIRED_TEXT_H
#define RQ_FILTER_REQUIRED_TEXT_H

#include "base/buf.h"

/*
 * Appends the longest string of ASCII bytes of which it is easy to see that every match contains it
 * (nothing where that is hard to see). `pattern` is one of Java's that was found to be sound
 * (java_regex.h has translated it), `flags` are java.util.regex.Pattern's.
 */
RQ_NODISCARD
rq_err rq__regex_required_text(rq_slice pattern, unsigned flags, rq_buf *out);

#endif
