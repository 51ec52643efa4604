/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which qualifiers the puts of a file have, where they are few: the file info's RORQUAL_QUALIFIERS,
 * a key of our own that HBase passes over. A read that has found the newest version of each of them
 * elsewhere need not look into the file (store/row_get.c): without it every get of a whole row
 * would look into every file that has the row.
 *
 * Its value: for each qualifier, in no order, one byte of length and the qualifier. Absent: not
 * known, or too many.
 */
#ifndef RQ_HFILE_QUALIFIERS_H
#define RQ_HFILE_QUALIFIERS_H

#include "base/bytes.h"

#include <stdbool.h>

#define RQ_QUALIFIERS_MAX 32 /* of a file that lists them */
#define RQ__QUALIFIERS_BYTES 512

/* Gathered while a file is written. Zeroed: none. */
typedef struct rq__qualifiers {
    bool too_many; /* from here on nothing is noted */
    uint16_t count, len;
    uint16_t at; /* the entry of the cell before */
    uint8_t bytes[RQ__QUALIFIERS_BYTES];
} rq__qualifiers;

void rq__qualifiers_add(rq__qualifiers *q, rq_slice qualifier);

/* Whether it is a value as above. */
bool rq__qualifiers_ok(rq_slice value);
/* The next one of a value that is ok; false behind the last. *rest begins as the value. */
bool rq_qualifiers_next(rq_slice *rest, rq_slice *ret);
bool rq_qualifiers_has(rq_slice value, rq_slice qualifier);

#endif
