/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks: numbers that order most rows of a segment without reading their bytes. A search in a skip
 * list is a chain of cache misses; a rank stored next to the link avoids the access to the row.
 *
 * A rank is computed from the eight bytes after the rows' common prefix ("row-000…"): 0 for rows
 * before that prefix, the maximum for rows behind it, else 1 + these bytes / 2. If they are decimal
 * digits, as in many padded keys, fifteen digits are used. Different ranks order two rows as their
 * bytes do; rows with equal ranks must be compared bytewise. hbase:meta's rows have another order
 * and no ranks.
 */
#ifndef RQ_STORE_ROW_RANK_H
#define RQ_STORE_ROW_RANK_H

#include "base/bytes.h"

#define RQ_RANK_MAX UINT64_MAX

/* How ranks are computed. Only ranks of the same ranking can be compared. */
typedef struct rq_ranking {
    const uint8_t *common; /* borrowed from `first` of rq__ranking_of */
    size_t len;
    bool digits; /* the bytes after it are mostly decimal digits */
} rq_ranking;

/* A ranking for rows between `first` and `last`: their common prefix is common to all. */
rq_ranking rq__ranking_of(rq_slice first, rq_slice last);

/* Whether both give the same ranks to rows in the same range. NULL: there is no common prefix. */
bool rq__ranking_same(const rq_ranking *a, const rq_ranking *b);

/* The rank of a row. `r` NULL: no common prefix is known. */
uint64_t rq__row_rank(const rq_ranking *r, const uint8_t *row, size_t len);

#endif
