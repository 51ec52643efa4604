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
    int64_t lost_ms;
    uint64_t version;
    rq_holder *holder; /* NULL: it has lost writes, or is being closed */
} rq__peer;

typedef struct rq__peers {
    /* Held while a row is written and the list follows it: sources move the positions of peers that
     * procedures remove and add again. Taken before `lock`. */
    pthread_mutex_t row_lock;
    pthread_mutex_t lock;
    rq__peer *first RQ_GUARDED_BY(lock);
    uint64_t version RQ_GUARDED_BY(lock);
    void (*changed)(void *ctx) RQ_GUARDED_BY(lock);
    void *changed_ctx RQ_GUARDED_BY(lock);
} rq__peers;

void rq__peers_init(rq_catalog *c);
/* At start, with the log kept from its beginning: reads the rows, takes the holders. */
RQ_NODISCARD
rq_err rq__peers_load(rq_catalog *c, rq_error *why);
/* Before the regions are closed: the log itself keeps what the holders kept. */
void rq__peers_close(rq_catalog *c);
/* Writes a peer's row and the list. A peer that is new begins at the end of the log, and so does
 * one that had lost writes and is enabled. */
RQ_NODISCARD
rq_err rq__peer_put(rq_catalog *c, rq_slice id, rq_slice config, bool enabled, rq_error *why);
/* For a peer whose removal cannot be recorded: on a full disk it releases the peer's part of the
 * log and waits briefly for the freed space. Returns whether it did. After a crash, or if other
 * data fills the space, the peer stays and needs a resync. Blocks. */
bool rq__peer_make_room(rq_catalog *c, rq_slice id);
RQ_NODISCARD
rq_err rq__peer_remove(rq_catalog *c, rq_slice id, rq_error *why);

#endif
