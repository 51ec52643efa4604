/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replication queues that a server of a cluster owns (wal/queues.h): those of its own log, and those of ended logs that it
 * has claimed. Nothing here ships; cluster_source.c has a source for each queue.
 *
 *   follow ─► the list of peers (peer_list.h): queues of new peers, none of removed ones
 *   write  ─► objects whose positions or queues have changed; then the own log is released up to its lowest position
 *   claim  ─► queues of fenced servers, whose owners have ended
 *   share  ─► which queues of ended logs are shipped now: for each peer a few, so that no peer waits for another
 *   finish ─► queues of ended logs that are shipped whole; their logs may be removed afterwards
 *
 *  1. A new peer's queue of the own log begins where the log ended before the list was last read without the peer. So a write
 *     that is acknowledged after the peer was written to the list is always in the queue; a few earlier ones are, too. The log is
 *     kept from there on, also while there is no peer.
 *  2. A position is the end of what the peer has confirmed. It is written about once a second; after the end of a server, the
 *     next owner ships the rest again.
 *  3. The version of the list that this server follows is written after the sources of changed peers have ended.
 *  4. Nothing is shipped before the own log's object exists and the list was read once more. So a master that finds no object
 *     after it has written a list without peers may take the list for followed (peer_list.h).
 *  5. A log is claimed if one of its queues can be shipped at once, or if no peer wants any. A queue whose peer has no
 *     free place waits: owned, or still unclaimed.
 *
 * One thread calls all functions but those marked; these may be called by any thread. Functions that return rq_err block.
 */
#ifndef RQ_REPLICATION_QUEUE_SET_H
#define RQ_REPLICATION_QUEUE_SET_H

#include "replication/log_reader.h"
#include "replication/peer_list.h"

#include <pthread.h>

/* Ended logs that a server ships to one peer at a time. It may own more. */
#define RQ__PLACES_MAX 8

typedef struct rq__peer_queue rq__peer_queue;
typedef struct rq__log_queues rq__log_queues;
typedef struct rq__queue_set rq__queue_set;

/* The queue of a peer in a log. */
struct rq__peer_queue {
    rq__peer_queue *next;
    rq__log_queues *log;
    uint64_t number; /* of the peer */
    rq_lsn position; /* guarded by the set's lock */
    rq_lsn written;  /* the position in the object */
    int64_t lost_ms; /* guarded by the set's lock, as in rq_wal_queue */
    bool done;       /* an ended log is shipped whole; guarded by the set's lock */
    bool
        has_place; /* of an ended log: it is one of those that are shipped to the peer; guarded by the set's lock */
    void *source;     /* the caller's; NULL: the queue is not shipped */
    uint64_t version; /* of the peer, with which the source was started */
    char id[];
};

struct rq__log_queues {
    rq__log_queues *next;
    rq__queue_set *set;
    bool is_own;
    bool is_lost;  /* another server owns it; guarded by the set's lock */
    bool is_dirty; /* the object is to be written; guarded by the set's lock */
    uint64_t generation, edit, seen;
    rq__peer_queue *first;
    char server[RQ_SHARED_NAME_MAX + 1];
};

typedef struct rq__queue_set_options {
    const rq_env *env;
    rq_shared *shared;
    const char *server; /* this one's ServerName; borrowed */
    rq_wal *wal;        /* this server's log */
    rq_retention *retention;
    const char *ended; /* the set with the names of fenced servers */
    uint64_t log_max;  /* bytes of the own log kept for a peer; 0: no limit */
    /* Ends the source of a queue and sets q->source to NULL; the queue's position is set when this returns. NULL: queues
     * have no sources. */
    void (*stop)(void *ctx, rq__peer_queue *q);
    void *ctx;
} rq__queue_set_options;

struct rq__queue_set {
    rq__queue_set_options o;
    pthread_mutex_t lock;
    rq_arena arena;    /* of the list */
    rq_peer_list list; /* replaced under the lock */
    uint32_t *counts;  /* of queues, for each peer of the list; the thread's */
    bool has_list;
    bool is_entered;       /* the own log's name is in the set "queues" (wal/queues.h) */
    bool may_ship;         /* see rule 4; guarded by the lock */
    rq__log_queues *first; /* the own log; then claimed ones, the oldest claim first */
    rq_lsn looked;         /* see rule 1 */
    rq_holder *holder;
    /* Ended logs that may be claimed, as last listed, and the one of them that is looked at next. */
    struct {
        rq_arena arena;
        const char **names; /* ascending */
        size_t count, next;
    } found;
};

/* From now on the own log is kept. */
RQ_NODISCARD
rq_err rq__queue_set_open(rq__queue_set *s, const rq__queue_set_options *o, rq_error *why);
/* Ends no sources. The own log is released; see rq__queue_set_leave. Also after rq__queue_set_open has failed. */
void rq__queue_set_close(rq__queue_set *s);

RQ_NODISCARD
rq_err rq__queue_set_follow(rq__queue_set *s, rq_error *why);
/* The first error; other objects are written nonetheless. */
RQ_NODISCARD
rq_err rq__queue_set_write(rq__queue_set *s, rq_error *why);
/* Claims at most one log, and looks at a few of those that it does not claim: first at those that have ended since the last
 * call. *ret: one was claimed, and there may be more. */
RQ_NODISCARD
rq_err rq__queue_set_claim(rq__queue_set *s, bool *ret, rq_error *why);
/* The ended logs that may have queues, as last listed, and those that this server owns. */
uint32_t rq__queue_set_ended_logs(const rq__queue_set *s);
/* Gives the peers' free places to queues of ended logs, the oldest claims first. */
void rq__queue_set_share(rq__queue_set *s);
RQ_NODISCARD
rq_err rq__queue_set_finish(rq__queue_set *s, rq_error *why);
/* The server ends in order, and its sources have ended: writes the positions. *ret: the own log has queues. It must then be
 * closed with its contents, and be fenced, so that another server claims them. Otherwise the object and the name are removed. */
RQ_NODISCARD
rq_err rq__queue_set_leave(rq__queue_set *s, bool *ret, rq_error *why);

/* The peer of a queue, in the list; NULL: the queue is not to be shipped now. The same thread. */
const rq_peer_info *rq__queue_peer(const rq__peer_queue *q);
/* The same, also if the queue waits or its peer is disabled; NULL: the peer wants it no more. REQUIRES: lock held, or the same
 * thread. */
const rq_peer_info *rq__queue_wanted_by(const rq__peer_queue *q);

/* --- any thread -------------------------------------------------------------------------------- */

/* Whether the queue is to be shipped to the peer as it was at this version. */
bool rq__queue_is_current(rq__log_queues *log, const char *id, uint64_t version);
/* RQ_E_NOT_FOUND: this server does not own the queue any more. */
RQ_NODISCARD
rq_err rq__queue_advance(rq__log_queues *log, const char *id, rq_lsn position);
/* The log is not kept for the peer any more: the master notes it, and disables the peer. RQ_E_NOT_FOUND: as above, or the peer
 * has changed, or an ended log was removed. That happens only to a log whose queues were made after the removal had begun, by its
 * fenced server, and counts as done: no write in it was acknowledged after the peer was added. */
RQ_NODISCARD
rq_err rq__queue_give_up(rq__log_queues *log, const char *id, uint64_t version);
/* An ended log was shipped to its end. */
void rq__queue_done(rq__log_queues *log, const char *id);

/* For the master: disables peers for which the server's log is not kept any more (rq_catalog_peer_give_up). Reads the log's queues. */
RQ_NODISCARD
rq_err rq_queues_note_losses(rq_shared *s, rq_catalog *c, const char *server, rq_error *why);

#endif
