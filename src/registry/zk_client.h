/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session with a real ZooKeeper, by Debian's libzookeeper-mt. The library is loaded (dlopen) for the first
 * session: a process without a session has neither its code nor its two threads.
 *
 * Functions block. Only one thread at a time may call them, which is that of the session's lane and never one of
 * the library's. Errors: RQ_E_NOT_FOUND; RQ_E_EXISTS (the node; or children of a node that is to be removed);
 * RQ_E_CONFLICT (the node has another version); RQ_E_PERMISSION; RQ_E_CLOSED: the session has ended, and its
 * ephemeral nodes are removed; RQ_E_TIMEOUT: no connection, and it is unknown whether a write was made.
 */
#ifndef RQ_REGISTRY_ZK_CLIENT_H
#define RQ_REGISTRY_ZK_CLIENT_H

#include "base/arena.h"
#include "base/executor.h"

typedef struct rq__zk rq__zk;

typedef enum rq__zk_event_kind {
    RQ__ZK_CONNECTED,    /* also after each reconnection; the library has set the watches again */
    RQ__ZK_DISCONNECTED, /* the session may still live */
    RQ__ZK_EXPIRED,      /* the session has ended; a new one must be opened */
    RQ__ZK_CHANGED,      /* a watched node has changed; once for each watch */
} rq__zk_event_kind;

typedef struct rq__zk_options {
    const char *quorum; /* "host:port,host:port" */
    int timeout_ms;     /* requested timeout of the session; the server may change it */
    rq_lane *lane;
    /* Called on the lane. `session` is the session of the event, which may already have ended. */
    void (*event)(void *ctx, uint64_t session, rq__zk_event_kind kind);
    void *ctx;
    uint64_t session; /* a number that the caller chooses; passed to `event` */
} rq__zk_options;

typedef struct rq__zk_node {
    rq_slice value;
    int32_t version;
    bool own; /* the node is ephemeral and belongs to this session */
} rq__zk_node;

/* RQ_E_UNSUPPORTED: the library is not installed. */
RQ_NODISCARD rq_err rq__zk_can_open(rq_error *why);
/* RQ_E_UNSUPPORTED: as above. RQ_E_CONFIG: no such host. Connects in the
 * background. */
RQ_NODISCARD rq_err rq__zk_open(const rq__zk_options *o, rq__zk **ret, rq_error *why);
/* Ends the session: its ephemeral nodes are removed at once. NULL is allowed. */
void rq__zk_close(rq__zk *z);
RQ_NODISCARD rq_err rq__zk_create(rq__zk *z, const char *path, rq_slice value, bool ephemeral,
                                  rq_error *why);
/* Replaces the value, whatever its version. */
RQ_NODISCARD rq_err rq__zk_set(rq__zk *z, const char *path, rq_slice value, rq_error *why);
/* `watch`: an event follows when the node changes or goes. */
RQ_NODISCARD rq_err rq__zk_get(rq__zk *z, const char *path, bool watch, rq_arena *arena,
                               rq__zk_node *ret, rq_error *why);
RQ_NODISCARD rq_err rq__zk_remove(rq__zk *z, const char *path, int32_t version, rq_error *why);
/* Removes both nodes or none: `other` has any version. */
RQ_NODISCARD rq_err rq__zk_remove_both(rq__zk *z, const char *path, int32_t version,
                                       const char *other, rq_error *why);
/* Sorted; watches the node's children. */
RQ_NODISCARD rq_err rq__zk_children(rq__zk *z, const char *path, rq_arena *arena, const char ***ret,
                                    size_t *ret_count, rq_error *why);

#endif
