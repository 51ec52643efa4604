/* SPDX-License-Identifier: Apache-2.0 */
/* Two simulated servers on one shared storage, each with an engine and one region of table t. */
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

/* Both are up; the region is there, and closed. */
void cluster_init(cluster *c);
void cluster_end(cluster *c);
/* A new incarnation of a server that has ended. */
void cluster_start(cluster *c, cluster_server *s);
/* As the end of a process without warning. */
void cluster_crash(cluster *c, cluster_server *s);
void cluster_fence(cluster_server *by, const char *name);
rq_err cluster_open(cluster_server *s, rq_error *why);
rq_err cluster_close(cluster_server *s, bool abort);
/* Of the server's region. */
void cluster_manifest(cluster_server *s, rq__manifest *m);
/* How many openings need the log. */
size_t cluster_keys(cluster_server *s, const char *log);

#endif
