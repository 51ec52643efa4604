/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates the processes of a cluster inside one process: each node listens on its own port and
 * calls the others. */
#ifndef RQ_TEST_PEERS_NODES_H
#define RQ_TEST_PEERS_NODES_H

#include "peers/peers.h"
#include "peers/service.h"

#include "../base/unit.h"

#include "base/log.h"
#include "rpc/server.h"

#include <stdatomic.h>

typedef struct node {
    rq_loops *loops;
    rq_budget *budget;
    rq_rpc_server *server;
    rq_sides *sides;
    rq_peer_service *service;
    rq_peers *peers;
    rq_secret secret;
    const rq_server_name *name; /* has a reference; may be changed while no connection is open */
    uint16_t port;
    _Atomic bool lease_expired; /* responses to clients are held */
} node;

/* The node's name is 127.0.0.1,PORT,START_CODE. Its calls end after `timeout_ms`. It answers ReplicateWALEntry with the
 * message and the cells. */
void node_start(node *n, const char *secret, int64_t start_code, unsigned timeout_ms);
void node_rename(node *n, const rq_server_name *name);
/* Ends the node's outgoing calls; may be called before node_stop. */
void node_stop_calling(node *n);
void node_stop(node *n);
rq_secret secret_of(const char *text);

/* A call whose end is waited for. */
typedef struct asked {
    rq_peer_call call;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned ended;
    rq_err rc;
    rq_error why;
    rq_buf answer;
} asked;

/* Begins a call without waiting. `to` must live until the call has ended. */
void ask_begin(asked *a, node *from, const rq_server_name *to, const char *method,
               rq_slice request);
/* With cells, which must live as long. */
void ask_begin_with(asked *a, node *from, const rq_server_name *to, const char *method,
                    rq_slice request, rq_slice cells);
rq_err ask_end(asked *a);
rq_err ask(node *from, const rq_server_name *to, const char *method, rq_slice request,
           rq_error *why);

#endif
