/* SPDX-License-Identifier: Apache-2.0 */
/* Scanners between their calls: found by id, with a lease, charged with their memory (leases.c). */
#ifndef RQ_OPS_LEASES_H
#define RQ_OPS_LEASES_H

#include "base/env.h"
#include "ops/ops.h"
#include "ops/scan.h"

typedef struct rq__leases rq__leases;

typedef struct rq__scan_holder {
    uint64_t id;
    rq_arena arena; /* of scan, filter and scanner; its growth is charged */
    rq_scan scan;
    rq_scan_extra extra;
    rq_region_scanner *scanner;
    rq_region *region; /* a reference */
    bool stale;        /* it was named as a replica */
    bool at_border;    /* the region is exhausted, but a separate response without results must
                        * report that */
    uint64_t next_call_seq;
    rq_slice partial_row; /* row of the last result if that was partial; own memory */
    rq_buf partial_row_bytes;
    /* the table's */
    rq__leases *leases;
    uint64_t expires_ns;
    bool busy;
    bool opened;     /* from now on growth is charged, but never refused */
    bool refused;    /* its opening failed, because there was no room */
    bool never_fits; /* … and there would be none even without other scanners */
    rq_scan_owner *owner;
    size_t charged; /* charged to the owner: this block, the arena, the row's bytes */
    size_t row_charged;
    struct rq__scan_holder *hash_next;
    struct rq__scan_holder *newer, *older;           /* by lease, while not busy */
    struct rq__scan_holder *owner_next, *owner_prev; /* of the same owner, while not busy */
    _Alignas(RQ_ARENA_ALIGN) uint8_t first_bytes[];  /* of the arena */
} rq__scan_holder;

/* `bytes_max` of scanners in all. */
RQ_NODISCARD
rq_err rq__leases_new(const rq_env *env, uint64_t lease_ms, size_t bytes_max, rq_lane *lane,
                      rq__leases **ret);
/* Disarms the timer; its task may still be queued to the lane, or run. */
void rq__leases_stop(rq__leases *t);
/* REQUIRES: no call is in flight, and the connections have closed. */
void rq__leases_free(rq__leases *t);
/* As rq_scan_owner_gone. */
void rq__lease_owner_gone(rq__leases *t, rq_scan_owner *owner);
/* How long the scanners of a closed connection are kept. */
#define RQ__ORPHAN_NS (10 * 1000000000ull)
/* Creates a holder with an id, busy; the caller fills it and then sets `opened`.
 * RQ_E_CALL_QUEUE_TOO_BIG: the owner has used its share, or there is no room. Later, when the arena
 * grows, `refused` reports that. */
RQ_NODISCARD
rq_err rq__lease_new(rq__leases *t, rq_scan_owner *owner, rq__scan_holder **ret);
/* Takes a scanner out for a request; from now on it belongs to that request's connection.
 * RQ_E_UNKNOWN_SCANNER; RQ_E_LEASE while another request has it; RQ_E_END if it was closed because
 * it was exhausted, with *ret_last_seq. */
RQ_NODISCARD
rq_err rq__lease_take(rq__leases *t, uint64_t id, rq_scan_owner *owner, rq__scan_holder **ret,
                      uint64_t *ret_last_seq);
/* Back with a new lease time. */
void rq__lease_give_back(rq__leases *t, rq__scan_holder *h);
/* Closes and frees it. `remember` that it ended without error, for a client that closes it once
 * more. */
void rq__lease_close(rq__leases *t, rq__scan_holder *h, bool remember);
void rq__leases_get_stats(rq__leases *t, rq_scanner_stats *ret);

#endif
