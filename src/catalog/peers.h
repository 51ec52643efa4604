/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replication peers: their configuration, whether they are enabled, and how far the log has been
 * shipped to them. They are rows of master:store, family state:
 *
 *   peer:ID   config    "PBUF" + ReplicationPeer    position  be64 epoch of the log, be64 LSN
 *             state     "PBUF" + ReplicationState   lost      be64 ms, see rq_peer_info
 *
 * Each peer is a holder of the log (vfs/retention.h) from its position on, also while it is
 * disabled; a peer that has lost writes holds nothing. From a clean stop, which releases the holders, until
 * the next start the log itself keeps what the peers need (rq_wal_keep_from). Procedures change peers
 * (ddl_peer.c); the replication source moves their positions.
 *
 * In a cluster the servers ship their logs, and keep positions and logs themselves (replication/queue_set.h). There a peer's
 * `position` is a number instead, which is larger each time the peer begins anew; the catalog holds no log for the peer.
 *
 * Any thread may call. `lock` guards the list and is never held across I/O; `row_lock` serializes
 * changes and is held across I/O (peers_priv.h).
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
    /* Time from which on writes may be missing at the peer, because the log could not be kept for it; 0:
     * none are missing. They must be copied in another way (CopyTable, SyncTable). */
    int64_t lost_ms;
    uint64_t version; /* of config and enabled: increases with each change of any peer */
} rq_peer_info;

/* Copies of all peers, ascending by id, in the arena. */
RQ_NODISCARD
rq_err rq_catalog_peers(rq_catalog *c, rq_arena *arena, rq_peer_info **ret, size_t *ret_count);
/* RQ_E_NOT_FOUND: there is no such peer. */
RQ_NODISCARD
rq_err rq_catalog_peer(rq_catalog *c, rq_slice id, rq_arena *arena, rq_peer_info *ret);
/* Whether the peer is enabled and still has this version, so its config has not changed. */
bool rq_catalog_peer_is_current(rq_catalog *c, const char *id, uint64_t version);
/* Calls `changed` after each change of a peer's config or state, on the changing thread; it must not
 * block. NULL: no more calls; on return, none is running. */
void rq_catalog_on_peer_change(rq_catalog *c, void (*changed)(void *ctx), void *ctx);

/* Moves the peer's position: the peer does not need the log before `position` any more. Durable on
 * return; blocks. Does nothing if the peer has a later position: it was removed and added again.
 * RQ_E_NOT_FOUND: the peer was removed. */
RQ_NODISCARD
rq_err rq_catalog_peer_advance(rq_catalog *c, const char *id, rq_lsn position, rq_error *why);
/* Releases the log although not all of it was shipped to the peer: disables the peer and records the
 * loss (lost_ms). Durable on return; blocks. RQ_E_NOT_FOUND: the peer was removed, or its version is no
 * longer `version`. */
RQ_NODISCARD
rq_err rq_catalog_peer_give_up(rq_catalog *c, const char *id, uint64_t version, rq_error *why);

#endif
