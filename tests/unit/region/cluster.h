/* SPDX-License-Identifier: Apache-2.0 */
/* Two simulated servers on one shared storage, each with an engine and one region of table t. Values of family a above 100
 * bytes are in MOB files. */
#ifndef RQ_TESTS_REGION_CLUSTER_H
#define RQ_TESTS_REGION_CLUSTER_H

#include "fixture.h"

#include "region/engine_priv.h"
#include "region/owned.h"
#include "vfs/sim.h"
#include "vfs/sim_shared.h"

#define SERVERS 2

typedef struct cluster_server {
    rq_sim_node *node;
    rq_shared *shared;
    rq_tenure *tenure;
    char name[32];
    fixture f;
} cluster_server;

typedef struct cluster {
    rq_sim *sim;
    rq_sim_storage *storage;
    cluster_server servers[SERVERS];
    unsigned start_code;
} cluster;

/* Starts both servers and creates the region, which is closed. */
void cluster_init(cluster *c);
void cluster_end(cluster *c);
/* Starts a new incarnation of a server that has ended. */
void cluster_start(cluster *c, cluster_server *s);
/* Ends the server without warning, like kill -9. */
void cluster_crash(cluster *c, cluster_server *s);
void cluster_fence(cluster_server *by, const char *name);
rq_err cluster_open(cluster_server *s, rq_error *why);
rq_err cluster_close(cluster_server *s, bool abort);
/* Reads the manifest of the server's region. */
void cluster_manifest(cluster_server *s, rq__manifest *m);
/* The number of openings that need the log. */
size_t cluster_keys(cluster_server *s, const char *log);

#endif
