/* SPDX-License-Identifier: Apache-2.0 */
/* Finds text that every match of a regular expression contains. */
#ifndef RQ_FILTER_REQUIRED_TEXT_H
#define RQ_FILTER_REQUIRED_TEXT_H

#include "base/buf.h"

/*
 * Appends the longest ASCII string that is easily seen to be part of every match (nothing if there
 * is none). `pattern` is a valid Java pattern (accepted by java_regex.h); `flags` are those of
 * java.util.regex.Pattern.
 */
RQ_NODISCARD
rq_err rq__regex_required_text(rq_slice pattern, unsigned flags, rq_buf *out);

#endif
