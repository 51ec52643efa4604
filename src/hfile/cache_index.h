/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the entries of the block cache's files and families by hash: a hash table with chains, of one entry on average.
 * When there are more entries than buckets, each new entry splits one bucket into two (linear hashing), so that no call
 * moves more than a short chain; only the array of buckets is copied when it doubles. The array never shrinks.
 *
 * An entry embeds a link. The owner's lock is held.
 */
#ifndef RQ_HFILE_CACHE_INDEX_H
#define RQ_HFILE_CACHE_INDEX_H

#include "base/err.h"
#include "base/macros.h"

#include <stddef.h>
#include <stdint.h>

typedef struct rq__cache_link {
    struct rq__cache_link *next;
    uint64_t hash;
} rq__cache_link;

typedef struct rq__cache_index {
    rq__cache_link **buckets;
    size_t used; /* buckets */
    size_t half; /* the largest power of two that is at most `used` */
    size_t room; /* for buckets */
    size_t count;
} rq__cache_index;

RQ_NODISCARD
rq_err rq__cache_index_init(rq__cache_index *x);
/* REQUIRES: empty, or never initialised. */
void rq__cache_index_clear(rq__cache_index *x);
/* The first link of the chain for this hash; NULL: it is empty. The chain also has entries with other hashes. */
rq__cache_link *rq__cache_index_chain(const rq__cache_index *x, uint64_t hash);
/* If there is no memory for a bucket, the chains grow. */
void rq__cache_index_add(rq__cache_index *x, rq__cache_link *link, uint64_t hash);
void rq__cache_index_remove(rq__cache_index *x, rq__cache_link *link);

#endif
