/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which increments and appends were done already: a retried one (same nonce group and nonce) counts
 * once and is answered with what the first left behind (HBASE: ServerNonceManager). A hash with
 * expiry, used by the writer token's holder alone; empty it takes no memory.
 */
#ifndef RQ_REGION_NONCES_H
#define RQ_REGION_NONCES_H

#include "base/err.h"

#include <stdint.h>

/* HBASE: hbase.server.hashNonce.gracePeriod */
#define RQ__NONCE_LIFE_MS ((int64_t)30 * 60 * 1000)

typedef struct rq__nonce {
    uint64_t group, nonce;
    uint64_t seqid; /* of the operation; 0: a free slot */
    int64_t time_ms;
} rq__nonce;

typedef struct rq__nonces {
    rq__nonce *slots;
    size_t room; /* a power of two, or 0 */
    size_t count;
} rq__nonces;

/* Room for one more, expired ones dropped when it gets tight; afterwards add cannot fail. */
RQ_NODISCARD
rq_err rq__nonces_reserve(rq__nonces *n, int64_t now_ms);
void rq__nonces_add(rq__nonces *n, uint64_t group, uint64_t nonce, uint64_t seqid, int64_t time_ms);
/* The number of the operation that was done under it, 0 for none. */
uint64_t rq__nonces_find(const rq__nonces *n, uint64_t group, uint64_t nonce, int64_t now_ms);
void rq__nonces_clear(rq__nonces *n);

#endif
