/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session with a real ZooKeeper, by Debian's libzookeeper-mt. The library is opened when the first
 * session is (dlopen): a process without a session has neither its code nor its two threads.
 *
 * Functions block, and may be called from one thread at a time, not from the library's: the session's
 * lane. Errors: RQ_E_NOT_FOUND, RQ_E_EXISTS (a node; children of a node that is to be removed),
 * RQ_E_CONFLICT (another version), RQ_E_PERMISSION; RQ_E_CLOSED: the session has ended, and with it
 * its ephemeral nodes; RQ_E_TIMEOUT: no connection, the fate of a write is unknown.
 */
#ifndef RQ_REGISTRY_ZK_CLIENT_H
#define RQ_REGISTRY_ZK_CLIENT_H

#include "base/arena.h"
#include "base/executor.h"

typedef struct rq__zk rq__zk;

typedef enum rq__zk_event_kind {
    RQ__ZK_CONNECTED,    /* also again, after a disconnect; watches are set again */
    RQ__ZK_DISCONNECTED, /* the session may still live */
    RQ__ZK_EXPIRED,      /* it does not; only a new session can go on */
    RQ__ZK_CHANGED,      /* a watched node, once for each watch */
} rq__zk_event_kind;

typedef struct rq__zk_options {
    const char *quorum; /* "host:port,host:port" */
    int timeout_ms;     /* of the session, as wished; the server may change it */
    rq_lane *lane;
    /* Called on the lane. `session` is the session of the event, which may already have ended. */
    void (*event)(void *ctx, uint64_t session, rq__zk_event_kind kind);
    void *ctx;
    uint64_t session; /* the caller's number for it */
} rq__zk_options;

typedef struct rq__zk_node {
    rq_slice value;
    int32_t version;
    bool own; /* ephemeral, of this session */
} rq__zk_node;

/* RQ_E_UNSUPPORTED: the library is not installed. RQ_E_CONFIG: no such host. Connects in the
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
/* Sorted; watches the node's children. */
RQ_NODISCARD rq_err rq__zk_children(rq__zk *z, const char *path, rq_arena *arena, const char ***ret,
                                    size_t *ret_count, rq_error *why);

#endif
