/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A standby's watch over the process of the active master. It finds that the process has ended by the rule for other
 * servers (rule 7 of silence.c): no connection of the process to this one is open, and its address refuses new ones at
 * two checks in a row. A process that runs, is paused or is cut off by lost packets refuses nobody. Refusals of one that was
 * never heard say nothing: a firewall may always have been there. No clock is read.
 *
 * A master that ends in order closes its port while it still closes its regions. It sets a mark (is_leaving) before it
 * closes the port, and removes the mark after its znode `master`. A master without a mark was either killed, or has left
 * in order and the caller's view of ZooKeeper is outdated. So the view is read again after the mark was looked for; only
 * if the new view still names the master was it killed.
 *
 *   check ── it has a connection to this process ──► nothing to do
 *     └───── it has none ──► probe: ExecuteProcedures without orders ── refused, twice ──► no mark ──► the view, read
 *                                                                                again, names it ──► it has ended
 */
#ifndef RQ_CLUSTER_MASTER_WATCH_H
#define RQ_CLUSTER_MASTER_WATCH_H

#include "cluster/remote.h"

typedef struct rq_master_watch rq_master_watch;

typedef struct rq_master_watch_options {
    void (*send)(void *ctx, rq_remote_request *r); /* as rq_remote_options.send */
    /* Whether the server has a proven connection to this process (rq_sides_is_connected). Must not block. */
    bool (*is_connected)(void *ctx, const rq_server_name *server);
    /* Whether the server is marked as a master that ends in order; true also if that cannot be read now. May block. */
    bool (*is_leaving)(void *ctx, const rq_server_name *server);
    /* Has the view read again; *ret is the number of the first view whose reading begins after this call. RQ_E_NO_MEMORY:
     * the next check calls it again. */
    rq_err (*read_again)(void *ctx, uint64_t *ret);
    void *ctx;
} rq_master_watch_options;

RQ_NODISCARD
rq_err rq_master_watch_new(const rq_master_watch_options *o, rq_master_watch **ret);
/* Checks the process whose server is the active master's in view number `view`, and sends a probe if needed. True: it has
 * ended. `server` NULL: there is no master to watch. One thread calls this, every few hundred milliseconds. */
bool rq_master_watch_check(rq_master_watch *w, const rq_server_name *server, uint64_t view);
/* REQUIRES: no probe is outstanding. NULL is fine. */
void rq_master_watch_free(rq_master_watch *w);

#endif
