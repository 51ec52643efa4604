/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks: numbers that order the rows of a segment mostly without their bytes. A search of a skip
 * list is a chain of cache misses, and a number beside the link saves the visit to the row.
 *
 * A rank is made of the eight bytes behind the part that the rows have in common ("row-000…"): 0
 * for rows before that part, the highest number for rows behind it, else 1 + those bytes / 2; where
 * they are decimal digits, as in many padded keys, fifteen of them fit. Different ranks order two
 * rows as their bytes do, equal ones leave it to the bytes. hbase:meta's rows have an order of
 * their own and no ranks.
 */
#ifndef RQ_STORE_ROW_RANK_H
#define RQ_STORE_ROW_RANK_H

#include "base/bytes.h"

#define RQ_RANK_MAX UINT64_MAX

/* What ranks are made of; only ranks of one ranking can be compared. */
typedef struct rq_ranking {
    const uint8_t *common; /* borrowed from `first` of rq_ranking_of */
    size_t len;
    bool digits; /* what follows is made of them, mostly */
} rq_ranking;

/* For rows between `first` and `last`: what these two have in common, all have. */
rq_ranking rq_ranking_of(rq_slice first, rq_slice last);

/* Whether both give the same ranks to rows between the same two; NULL: nothing is in common. */
bool rq_ranking_same(const rq_ranking *a, const rq_ranking *b);

/* NULL: nothing is known to be common. */
uint64_t rq_rank(const rq_ranking *r, const uint8_t *row, size_t len);

#endif
