/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replication peers: their configuration, whether they are enabled, and how far the log has been
 * shipped to them. They are rows of master:store, family state:
 *
 *   peer:ID   config    "PBUF" + ReplicationPeer    position  be64 epoch of the log, be64 LSN
 *             state     "PBUF" + ReplicationState   lost      be64 ms, see rq_peer_info
 *
 * Each peer is a holder of the log (vfs/retention.h) from its position on, also while it is
 * disabled; one that has lost writes holds nothing. Over a clean stop the log itself keeps what they
 * need (rq_wal_keep_from). Peers are changed by procedures (ddl_peer.c); the source of replication
 * moves positions.
 *
 * Any thread may call. One lock guards the list and is never held across I/O; another one serializes
 * changes and is held across I/O.
 */
#ifndef RQ_CATALOG_PEERS_H
#define RQ_CATALOG_PEERS_H

#include "catalog/catalog.h"

/* The namespace field of a procedure on a peer: no namespace can have such a name, so peers have
 * locks of their own. */
#define RQ_PEER_LOCK_PREFIX "peer:"

typedef struct rq_peer_info {
    const char *id;
    rq_slice config; /* ReplicationPeer, packed */
    bool enabled;
    rq_lsn position; /* everything before it is shipped, or need not be */
    /* Since when writes have been missing at the peer, because the log could not be kept for it; 0:
     * none are. It needs another way to get them (CopyTable, SyncTable). */
    int64_t lost_ms;
    uint64_t version; /* of config and enabled: increases with each change of any peer */
} rq_peer_info;

/* Copies of all peers, ascending by id, in the arena. */
RQ_NODISCARD
rq_err rq_catalog_peers(rq_catalog *c, rq_arena *arena, rq_peer_info **ret, size_t *ret_count);
/* RQ_E_NOT_FOUND: there is no such peer. */
RQ_NODISCARD
rq_err rq_catalog_peer(rq_catalog *c, rq_slice id, rq_arena *arena, rq_peer_info *ret);
/* Whether the peer is enabled and still as it was when it had this version. */
bool rq_catalog_peer_is_current(rq_catalog *c, const char *id, uint64_t version);
/* Calls `changed` after each change of a peer's config or state, on the changing thread; it must not
 * block. NULL: no more calls; on return, none is running. */
void rq_catalog_on_peer_change(rq_catalog *c, void (*changed)(void *ctx), void *ctx);

/* The log before `position` is not needed for the peer any more. Durable on return; blocks.
 * RQ_E_NOT_FOUND: the peer was removed. A later position stays: it is of a peer that was removed
 * and added again. */
RQ_NODISCARD
rq_err rq_catalog_peer_advance(rq_catalog *c, const char *id, rq_lsn position, rq_error *why);
/* Releases the log although the peer has not got all of it: disables the peer and notes the loss.
 * Durable on return; blocks. RQ_E_NOT_FOUND: the peer was removed or changed since it had this
 * version. */
RQ_NODISCARD
rq_err rq_catalog_peer_give_up(rq_catalog *c, const char *id, uint64_t version, rq_error *why);

#endif
