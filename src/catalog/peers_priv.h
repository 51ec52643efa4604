/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog's list of replication peers, shared by peers.c (the list, its rows) and ddl_peer.c
 * (procedures). */
#ifndef RQ_CATALOG_PEERS_PRIV_H
#define RQ_CATALOG_PEERS_PRIV_H

#include "catalog/peers.h"
#include "vfs/retention.h"

#include <pthread.h>

typedef struct rq__peer {
    struct rq__peer *next; /* ascending by id */
    rq_arena arena;        /* of id and config */
    const char *id;
    rq_slice config;
    bool enabled;
    rq_lsn position;
    rq_lsn recorded; /* the position in its row */
    bool begins; /* its position is new: the peer is, or it had lost writes and is enabled again */
    int64_t lost_ms;
    uint64_t version;
    rq_holder *holder; /* NULL: it has lost writes, or is being closed */
} rq__peer;

typedef struct rq__peers {
    /* Held while a peer's row is written and the list is updated, because replication sources and
     * procedures change the same peers: else row and list could differ. Taken before `lock`. */
    pthread_mutex_t row_lock;
    pthread_mutex_t lock;
    rq__peer *first RQ_GUARDED_BY(lock);
    uint64_t version RQ_GUARDED_BY(lock);
    void (*changed)(void *ctx) RQ_GUARDED_BY(lock);
    void *changed_ctx RQ_GUARDED_BY(lock);
} rq__peers;

void rq__peers_init(rq_catalog *c);
/* At start: reads the rows and makes the holders. REQUIRES: nothing of the log was freed yet. */
RQ_NODISCARD
rq_err rq__peers_load(rq_catalog *c, rq_error *why);
/* Call before the regions are closed: from now on the log itself keeps what the holders kept. */
void rq__peers_close(rq_catalog *c);
/* Writes a peer's row and updates the list. A new peer gets the end of the log as its position, and
 * so does a peer that had lost writes and is enabled again. */
RQ_NODISCARD
rq_err rq__peer_put(rq_catalog *c, rq_slice id, rq_slice config, bool enabled, rq_error *why);
/* For a peer whose removal cannot be recorded: if the disk is full, releases the log kept for the
 * peer and waits briefly for the freed space. True: the log was released. If a crash follows, or
 * other data fills the space, the peer still exists and needs a resync. Blocks. */
bool rq__peer_make_room(rq_catalog *c, rq_slice id);
RQ_NODISCARD
rq_err rq__peer_remove(rq_catalog *c, rq_slice id, rq_error *why);

#endif
