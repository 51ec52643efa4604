/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which increments and appends were done already: a retried one (same nonce group and nonce) counts
 * once and is answered with what the first left behind (HBASE: ServerNonceManager). One table for
 * all regions of a server, so that a region that is closed, moved, split or merged takes nothing
 * along in memory; what outlives a crash stands in files by region (nonce_files.h).
 *
 * A nonce is kept for its life, counted on the monotonic clock: jumps of the wall clock do not
 * matter. Up to `count_max` live nonces are always kept; above that the oldest go first. At most 40
 * bytes each are taken, the region's list of what is in no file yet included. Every operation is
 * O(1) but for expiry, which goes on in small pieces. Any thread.
 */
#ifndef RQ_REGION_NONCES_H
#define RQ_REGION_NONCES_H

#include "base/err.h"
#include "base/executor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rq__nonces rq__nonces;

/* An entry's place; valid until the entry expires or is dropped, then nothing is found there. */
typedef uint32_t rq__nonce_id;

typedef struct rq__nonce {
    uint64_t group, nonce;
    uint64_t seqid;  /* of the operation */
    uint64_t age_ms; /* since it was added, or loaded with an age */
} rq__nonce;

RQ_NODISCARD
rq_err rq__nonces_new(rq_executor *ex, size_t count_max, uint64_t life_ms, rq__nonces **ret);
void rq__nonces_free(rq__nonces *n); /* NULL is fine */

/* The number of the operation that was done under it, 0 for none. */
uint64_t rq__nonces_find(rq__nonces *n, uint64_t group, uint64_t nonce);
/* Notes it as of now. One that is there already keeps its number and age. RQ_E_NO_MEMORY. */
RQ_NODISCARD
rq_err rq__nonces_add(rq__nonces *n, uint64_t group, uint64_t nonce, uint64_t seqid,
                      rq__nonce_id *ret);
/* The operation did not happen after all. */
void rq__nonces_forget(rq__nonces *n, rq__nonce_id id);
/* Notes one that is older than all that were added: those of a file, the youngest first. What is
 * too old, or one too many, is passed over. */
RQ_NODISCARD
rq_err rq__nonces_add_old(rq__nonces *n, const rq__nonce *old);
/* False: it expired or was dropped. */
bool rq__nonces_get(rq__nonces *n, rq__nonce_id id, rq__nonce *ret);

/* Drops what has expired, a piece of it; from time to time. */
void rq__nonces_expire(rq__nonces *n);
/* Nonces that were added before this time of the monotonic clock need no place on disk. */
uint64_t rq__nonces_useless_before_ns(rq__nonces *n);
uint64_t rq__nonces_life_ms(const rq__nonces *n);

typedef struct rq__nonces_stats {
    uint64_t count;   /* kept now */
    uint64_t dropped; /* live ones that had to go for younger ones */
    uint64_t bytes;   /* of memory */
} rq__nonces_stats;
void rq__nonces_get_stats(rq__nonces *n, rq__nonces_stats *ret);

/* --- what is in no file yet ------------------------------------------------------------------- */
/* A region's, oldest first. Its owner's lock. Zeroed: empty. */
typedef struct rq__nonce_list {
    rq__nonce_id *ids;
    size_t count, room;
} rq__nonce_list;

/* Room for one more; afterwards add cannot fail. */
RQ_NODISCARD
rq_err rq__nonce_list_reserve(rq__nonce_list *l);
void rq__nonce_list_add(rq__nonce_list *l, rq__nonce_id id);
/* The first `count` are in a file now. */
void rq__nonce_list_drop(rq__nonce_list *l, size_t count);
void rq__nonce_list_clear(rq__nonce_list *l);

#endif
