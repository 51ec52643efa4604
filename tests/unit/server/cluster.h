/* SPDX-License-Identifier: Apache-2.0 */
/* A server object with its own folder, and a client that is connected to the server over sockets.
 * Failures assert. */
#ifndef RQ_TEST_SERVER_CLUSTER_H
#define RQ_TEST_SERVER_CLUSTER_H

#include "base/log.h"
#include "server/server.h"

#include "client/client.h"

typedef struct cluster {
    char folder[64];
    rq_log log;
    rq_config *config;
    rq_server *server;
    char zookeeper[64];
    rq_client *client;
    rq_client_table *table;
    rq_op *op;
    rq_op_result last; /* result of the last operation, without data that it points to */
    char value[64];    /* value of the last get; empty: no such row */
    char text[256];    /* text of the last failure */
    bool done;
} cluster;

/* Starts on a new folder or, with `folder`, on the folder of a stopped server. `policy` may be
 * NULL. */
void cluster_start(cluster *c, const char *folder, const struct rq_gate_policy *policy,
                   const rq_transform_kind *transform);
/* The same, with user quotas that the test's load never reaches. */
void cluster_start_with_quotas(cluster *c, const struct rq_gate_policy *policy);
/* Connects the client. */
void cluster_connect(cluster *c);
/* Creates table "t" with family "f". */
void cluster_create_table(cluster *c);
void cluster_open_table(cluster *c);
/* These functions return the operation's error. */
rq_err cluster_put(cluster *c, const char *row, const char *value);
rq_err cluster_get(cluster *c, const char *row);
/* Stops the server, and keeps the folder. */
void cluster_stop(cluster *c);
void cluster_remove_folder(cluster *c);

#endif
