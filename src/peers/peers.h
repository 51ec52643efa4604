/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of this process to other servers of its cluster, on connections on which both sides have proven the
 * cluster's secret (cluster/handshake.h). There is one connection for each pair of names. It is made for the first
 * call, and closed after a minute without calls.
 *
 *   any thread: rq_peers_call ──► the loop: link (client/link.h) ─ Hello, Prove, then calls ─► another server
 *                     done ◄──────────────────┘
 *
 * A call is sent at most once. If its connection fails, or no answer comes in time, it is unknown whether the
 * server has executed it: the error is retryable, and the caller repeats the call.
 */
#ifndef RQ_PEERS_PEERS_H
#define RQ_PEERS_PEERS_H

#include "cluster/orders.h"
#include "cluster/remote.h"
#include "cluster/secret.h"
#include "net/loop.h"

/* The service of connections between servers; its methods are HBase's, see service.c. */
#define RQ_PEER_SERVICE "RorqualPeerService"

typedef struct rq_peers rq_peers;

typedef struct rq_peers_options {
    rq_loop *loop;           /* its thread makes the connections and runs `done` */
    const rq_secret *secret; /* borrowed */
    const rq_log *log;
    unsigned timeout_ms; /* of a call, of a connect, of each step of a greeting */
} rq_peers_options;

typedef struct rq_peer_call {
    const rq_server_name
        *from; /* one of this process's names; all fields are borrowed until `done` */
    const rq_server_name *to;
    const char *method; /* static */
    rq_slice request;
    rq_slice cells; /* KeyValues with tags; empty: none */
    /* Called exactly once; on the loop, or before rq_peers_call returns. `answer` is valid during the callback.
     * `why` has a text if `rc` is an error. */
    void (*done)(struct rq_peer_call *c, rq_err rc, const rq_error *why, rq_slice answer);
    bool refused; /* in `done`: no process listens at the other server's address */
    /* Set by rq_peers_call: */
    rq_task task;
    rq_peers *peers;
} rq_peer_call;

RQ_NODISCARD
rq_err rq_peers_new(const rq_peers_options *o, rq_peers **ret);
/* Ends all calls at once with RQ_E_SERVER_STOPPED; later calls get this error too. Blocking; not on a loop.
 * REQUIRES: the loop runs. */
void rq_peers_stop(rq_peers *p);
/* REQUIRES: stopped, or never called. NULL is fine. */
void rq_peers_free(rq_peers *p);
/* Any thread. */
void rq_peers_call(rq_peers *p, rq_peer_call *c);

/* --- the send functions of remote.h and orders.h -------------------------------------------------- */

typedef struct rq_peer_role {
    rq_peers *peers;
    const rq_server_name *self; /* the sender: one of this process's names */
    /* The active master's name, referenced; NULL: none is known. Any thread; must not block. For reports. */
    const rq_server_name *(*active)(void *ctx);
    void *ctx;
} rq_peer_role;

/* rq_remote_options.send, rq_orders_options.report; `ctx` is an rq_peer_role. */
void rq_peers_send(void *ctx, rq_remote_request *r);
void rq_peers_report(void *ctx, rq_report *r);

#endif
