/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the ZooKeeper registry: zookeeper.c has connections and sessions,
 * zk_requests.c answers requests, zk_watches.c sends events, zk_protocol.c encodes.
 *
 * A connection's data is used on its loop's thread only. */
#ifndef RQ_REGISTRY_ZK_PRIV_H
#define RQ_REGISTRY_ZK_PRIV_H

#include "registry/registry.h"
#include "registry/zk_protocol.h"
#include "registry/znodes.h"

#include "net/stream.h"
#include "net/unread.h"

/* Connections of one loop that have watches; only the loop uses the fields other than `posted` and
 * `count`. */
typedef struct rq__zk_watchers {
    rq_task task;
    rq_lane *lane;
    struct rq__zk_connection *first;
    struct rq__zk_connection *at; /* the next to be compared with `view`; NULL: all were */
    uint64_t view;
    struct rq__zk_connection *first_paused, *last_paused; /* in setWatches: rq__zk_go_on_later */
    _Atomic size_t count;
    atomic_bool posted; /* `task` is posted or deferred */
} rq__zk_watchers;

struct rq_registry {
    rq_env env;
    rq_catalog *catalog;
    rq__znodes znodes;
    rq_loops *loops;
    rq_listener *listeners[RQ_REGISTRY_ADDRESSES_MAX];
    unsigned listener_count;
    char *root;
    int64_t zxid_start;
    rq__zk_watchers *watchers; /* one per loop */
    rq_budget *unread;         /* budget for answers that clients have not read; may be NULL */
    size_t memory_max;         /* of watches and unfinished requests */
    _Atomic size_t memory_used;
};

typedef enum rq__zk_watch_kind { RQ__ZK_WATCH_DATA, RQ__ZK_WATCH_CHILD } rq__zk_watch_kind;

typedef struct rq__zk_connection {
    rq_registry *registry;
    rq_stream *stream;
    bool connected;
    int64_t session;
    int32_t timeout_ms;
    rq_arena arena;               /* of the request at hand */
    struct rq__zk_watch *watches; /* its own; zk_watches.c */
    void *watch_tree;             /* the same, by kind and path */
    size_t memory;                /* its part of rq_registry.memory_used */
    size_t input;                 /* the part of `memory` for an unfinished request */
    uint64_t expires_ns;          /* without a request until then the session ends */
    rq_unread unread;
    uint64_t view_seen; /* the view that watches were compared with, and that the current answer
                         * shows */
    bool watching;      /* is in its loop's list */
    bool comparing; /* its watches are being compared with the view `compared_view`, in slices */
    bool waits;  /* its next request waits for the end of this comparison, or for its next slice */
    bool paused; /* is in its loop's list of those between two slices of a setWatches */
    size_t set_again; /* paths of that setWatches that were handled */
    uint64_t compared_view;
    struct rq__zk_watch *compare_at; /* the next watch */
    struct rq__zk_connection *next_watching, *previous_watching;
    struct rq__zk_connection *next_paused, *previous_paused;
} rq__zk_connection;

/* Zxids: start time in ms << 16, plus the number of the catalog's view. Nodes below table/ and
 * namespace/ change with the view; all others are as old as the start. Zxids increase over
 * restarts, so a watch set again after one fires. */
static inline int64_t rq__zk_zxid_of(const rq_registry *r, uint64_t view)
{
    return r->zxid_start + (int64_t)view;
}

static inline int64_t rq__zk_zxid_now(const rq_registry *r)
{
    return rq__zk_zxid_of(r, rq_catalog_view_number(r->catalog));
}

/* --- zk_requests.c ---------------------------------------------------------------------------- */
/* Answers one request of a connection with a session. RQ_E_AGAIN: a slice of it was handled; call this again with the same
 * frame later. Another error closes the connection. */
RQ_NODISCARD
rq_err rq__zk_handle_request(rq__zk_connection *c, rq_slice frame);

/* --- zookeeper.c ------------------------------------------------------------------------------ */
/* Handles the request that has waited: all watches of the connection were compared, or its next slice is due. */
void rq__zk_go_on(rq__zk_connection *c);
/* Adds to the memory charged to the connection. False: the limit is reached. A connection may use at most as much
 * as then remains free: a single connection half of the limit, two connections a third each, and so on. */
bool rq__zk_charge(rq__zk_connection *c, size_t bytes);
void rq__zk_give(rq__zk_connection *c, size_t bytes);

/* --- zk_watches.c ----------------------------------------------------------------------------- */
bool rq__zk_is_watched(const rq__zk_connection *c, rq__zk_watch_kind kind, rq_slice path);
/* Adds a watch on the node at its current state; `node` NULL: it does not exist. A second watch of
 * the same kind and path changes nothing. RQ_E_NO_MEMORY: there is no room for another one. */
RQ_NODISCARD
rq_err rq__zk_watch_add(rq__zk_connection *c, rq__zk_watch_kind kind, rq_slice path,
                        const rq__znode *node);
RQ_NODISCARD
rq_err rq__zk_send_event(rq__zk_connection *c, enum rq__zk_event event, rq_slice path);
/* Compares the connection's watches with the current view, unless this was done. RQ_E_AGAIN: there are many; the
 * rest is compared in later slices, and then rq__zk_go_on is called. */
RQ_NODISCARD
rq_err rq__zk_watches_look(rq__zk_connection *c);
/* Calls rq__zk_go_on in another task of the loop. */
void rq__zk_go_on_later(rq__zk_connection *c);
/* At the connection's end. */
void rq__zk_watches_clear(rq__zk_connection *c);
/* The task of a loop's rq__zk_watchers. */
void rq__zk_watchers_run(rq_task *task);
/* Called by the catalog when its view has changed; any thread. ctx: the registry. */
void rq__zk_on_change(void *ctx);

#endif
