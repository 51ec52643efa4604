/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text as Java sees it: the result of `new String(bytes, charset)` and toLowerCase(Locale.ROOT), as
 * well-formed UTF-8.
 */
#ifndef RQ_FILTER_JAVA_TEXT_H
#define RQ_FILTER_JAVA_TEXT_H

#include "base/buf.h"

typedef enum rq__charset {
    RQ__UTF_8,
    RQ__ISO_8859_1,
    RQ__US_ASCII,
} rq__charset;

/* Finds a charset by Java's names and aliases. False: not one of these. */
bool rq__charset_find(rq_slice name, rq__charset *ret);

/* Decodes bytes to UTF-8. *ret is `bytes` if that is already right, else it is in `memory`.
 * Malformed input becomes U+FFFD, as many as the JDK's decoder makes. */
RQ_NODISCARD
rq_err rq__java_decode(rq__charset charset, rq_slice bytes, rq_buf *memory, rq_slice *ret);

/* Appends the lower-case form of well-formed UTF-8. */
RQ_NODISCARD
rq_err rq__java_append_lower(rq_slice utf8, rq_buf *out);

/* Appends one code point as UTF-8. */
RQ_NODISCARD
rq_err rq__utf8_append(rq_buf *out, uint32_t code_point);
/* Removes and returns the first code point of well-formed, non-empty UTF-8. */
uint32_t rq__utf8_take(rq_slice *utf8);

#endif
