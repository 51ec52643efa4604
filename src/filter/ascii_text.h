/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain text, which most values are: lower case and search, sixteen bytes a step. What has other
 * bytes than ASCII is for java_text.h.
 */
#ifndef RQ_FILTER_ASCII_TEXT_H
#define RQ_FILTER_ASCII_TEXT_H

#include "base/bytes.h"

/* What may be written or read behind a text's end. */
#define RQ__ASCII_PAD 16

/* The text in lower case; `out` has room for text.len + RQ__ASCII_PAD. False: it is not all ASCII
 * (and `out` holds nothing of use). */
bool rq__ascii_lower(rq_slice text, uint8_t *out);

/* REQUIRES: RQ__ASCII_PAD bytes behind `text` can be read. An empty needle is found. */
bool rq__ascii_find(rq_slice text, rq_slice needle);

#endif
