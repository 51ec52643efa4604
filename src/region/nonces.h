/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers which increments and appends were applied: a retried one (same nonce group and nonce)
 * is applied once and answered with the result of the first (HBASE: ServerNonceManager). One table
 * serves all regions of a server, so that closing, moving, splitting or merging a region moves no
 * nonces in memory. What must survive a crash is in files per region (nonce_files.h).
 *
 * A nonce is kept for its life, measured by the monotonic clock, so jumps of the wall clock do not
 * matter. Up to `count_max` live nonces are always kept; above that the oldest are dropped. A nonce
 * takes at most 40 bytes, including its entry in the region's list of unwritten nonces. Every
 * operation is O(1) except expiry, which proceeds in small steps. Any thread.
 */
#ifndef RQ_REGION_NONCES_H
#define RQ_REGION_NONCES_H

#include "base/err.h"
#include "base/executor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rq__nonces rq__nonces;

/* The id of an entry. After the entry has expired or was dropped a lookup finds nothing. */
typedef uint32_t rq__nonce_id;

typedef struct rq__nonce {
    uint64_t group, nonce;
    uint64_t seqid;  /* of the operation */
    uint64_t age_ms; /* time since it was added, plus its age if it was loaded */
} rq__nonce;

RQ_NODISCARD
rq_err rq__nonces_new(rq_executor *ex, size_t count_max, uint64_t life_ms, rq__nonces **ret);
void rq__nonces_free(rq__nonces *n); /* NULL is allowed */

/* The sequence id of the operation that was done with the nonce; 0: none. */
uint64_t rq__nonces_find(rq__nonces *n, uint64_t group, uint64_t nonce);
/* Adds a nonce with age 0. An existing one keeps its sequence id and age. RQ_E_NO_MEMORY. */
RQ_NODISCARD
rq_err rq__nonces_add(rq__nonces *n, uint64_t group, uint64_t nonce, uint64_t seqid,
                      rq__nonce_id *ret);
/* Removes a nonce whose operation failed. */
void rq__nonces_forget(rq__nonces *n, rq__nonce_id id);
/* Adds a nonce read from a file. It must be older than all nonces added so far, so they are added
 * youngest first. Nonces that are too old, or exceed count_max, are ignored. */
RQ_NODISCARD
rq_err rq__nonces_add_old(rq__nonces *n, const rq__nonce *old);
/* Reads an entry. False: it has expired or was dropped. */
bool rq__nonces_get(rq__nonces *n, rq__nonce_id id, rq__nonce *ret);

/* Drops some of the expired nonces; called periodically. */
void rq__nonces_expire(rq__nonces *n);
/* Nonces added before this monotonic time need not be written to disk. */
uint64_t rq__nonces_useless_before_ns(rq__nonces *n);
uint64_t rq__nonces_life_ms(const rq__nonces *n);

typedef struct rq__nonces_stats {
    uint64_t count;   /* kept now */
    uint64_t dropped; /* live ones dropped for younger ones */
    uint64_t bytes;   /* memory */
} rq__nonces_stats;
void rq__nonces_get_stats(rq__nonces *n, rq__nonces_stats *ret);

/* --- what is in no file yet ------------------------------------------------------------------- */
/* A region's nonces that are in no file, oldest first. Guarded by its owner. Zeroed: empty. */
typedef struct rq__nonce_list {
    rq__nonce_id *ids;
    size_t count, room;
} rq__nonce_list;

/* Reserves room for one more, so that add cannot fail. */
RQ_NODISCARD
rq_err rq__nonce_list_reserve(rq__nonce_list *l);
void rq__nonce_list_add(rq__nonce_list *l, rq__nonce_id id);
/* Drops the first `count`, which were written to a file. */
void rq__nonce_list_drop(rq__nonce_list *l, size_t count);
void rq__nonce_list_clear(rq__nonce_list *l);

#endif
