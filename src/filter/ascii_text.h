/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search in bytes that are plain text, as most values are, sixteen places a step. What else than
 * ASCII matters is for java_text.h.
 */
#ifndef RQ_FILTER_ASCII_TEXT_H
#define RQ_FILTER_ASCII_TEXT_H

#include "base/bytes.h"

/* Nothing above 0x7f? */
bool rq__ascii_only(rq_slice text);

/* memmem for short texts; an empty needle is found. Reads nothing outside of both. */
bool rq__bytes_find(rq_slice text, rq_slice needle);

/* The same where the text's ASCII letters may be of either case. REQUIRES: the needle is ASCII, its
 * letters are lower case. The text may hold anything. */
bool rq__ascii_find_folded(rq_slice text, rq_slice needle);

#endif
