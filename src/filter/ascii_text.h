/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches in ASCII text, which most values are, sixteen positions per step. For other text see
 * java_text.h.
 */
#ifndef RQ_FILTER_ASCII_TEXT_H
#define RQ_FILTER_ASCII_TEXT_H

#include "base/bytes.h"

/* Whether no byte is above 0x7f. */
bool rq__ascii_only(rq_slice text);

/* memmem for short texts; an empty needle is always found. Reads no byte outside text and
 * needle. */
bool rq__bytes_find(rq_slice text, rq_slice needle);

/* Like rq__bytes_find, but ignores the case of the text's ASCII letters. REQUIRES: the needle is
 * ASCII with lower-case letters. The text may contain any bytes. */
bool rq__ascii_find_folded(rq_slice text, rq_slice needle);

#endif
