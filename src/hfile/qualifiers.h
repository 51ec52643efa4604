/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of qualifiers of a file's puts, if it is small: the file info entry RORQUAL_QUALIFIERS, a
 * key of our own that HBase ignores. A read that has found the newest version of each of them
 * elsewhere need not read the file (store/row_get.c); without it every get of a whole row would
 * read every file that has the row.
 *
 * Value: for each qualifier, unordered, one byte length and the qualifier. Absent: unknown, or too
 * many.
 */
#ifndef RQ_HFILE_QUALIFIERS_H
#define RQ_HFILE_QUALIFIERS_H

#include "base/bytes.h"

#include <stdbool.h>

#define RQ_QUALIFIERS_MAX 32 /* most qualifiers a file lists */
#define RQ__QUALIFIERS_BYTES 512

/* Collected while a file is written. Zeroed: empty. */
typedef struct rq__qualifiers {
    bool too_many; /* nothing is recorded any more */
    uint16_t count, len;
    uint16_t at; /* offset of the previous cell's entry */
    uint8_t bytes[RQ__QUALIFIERS_BYTES];
} rq__qualifiers;

void rq__qualifiers_add(rq__qualifiers *q, rq_slice qualifier);

/* Whether the value is well-formed. */
bool rq__qualifiers_ok(rq_slice value);
/* The next qualifier of a well-formed value; false at the end. *rest is the value at first. */
bool rq_qualifiers_next(rq_slice *rest, rq_slice *ret);
bool rq__qualifiers_has(rq_slice value, rq_slice qualifier);

#endif
