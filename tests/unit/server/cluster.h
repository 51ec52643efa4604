/* SPDX-License-Identifier: Apache-2.0 */
/* A server object on a folder of its own, and a client that is connected to it over sockets. Failures
 * assert. */
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
    rq_op_result last; /* without what it points to */
    char value[64];    /* of the last get; empty: no such row */
    char text[256];    /* of the last failure */
    bool done;
} cluster;

/* The folder is new, or with `folder` that of a server that was stopped. `policy` may be NULL. */
void cluster_start(cluster *c, const char *folder, const struct rq_gate_policy *policy,
                   const rq_transform_kind *transform);
/* The same, with quotas that limit users to more than a test can do. */
void cluster_start_with_quotas(cluster *c, const struct rq_gate_policy *policy);
/* Connects the client. */
void cluster_connect(cluster *c);
/* Table "t" with family "f". */
void cluster_create_table(cluster *c);
void cluster_open_table(cluster *c);
/* Return the operation's error. */
rq_err cluster_put(cluster *c, const char *row, const char *value);
rq_err cluster_get(cluster *c, const char *row);
/* Stops the server; the folder stays. */
void cluster_stop(cluster *c);
void cluster_remove_folder(cluster *c);

#endif
