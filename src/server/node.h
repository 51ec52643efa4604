/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server of a cluster as an object: what `rorqual server --cluster` runs. Region server and standby master
 * in one; it becomes the active master when ZooKeeper elects it (node_master.c).
 *
 *   store, tenure ─► engine, host ─► loops ─► services, the region server's port ─► ZooKeeper ─► reports to the master
 */
#ifndef RQ_SERVER_NODE_H
#define RQ_SERVER_NODE_H

#include "server/server.h"

typedef struct rq_node rq_node;

/* Joins the cluster that options->cluster names. Returns when this process is registered in ZooKeeper, and serves in
 * the background. On failure `why` has one clear line. RQ_E_UNSUPPORTED: this program was built without ZooKeeper's
 * headers, or its library is not installed. */
RQ_NODISCARD
rq_err rq_node_open(const rq_server_options *o, rq_node **ret, rq_error *why);
/* RQ_E_UNSUPPORTED: as rq_node_open. */
RQ_NODISCARD
rq_err rq__node_can_open(rq_error *why);
/* "cluster HOST:PORT/ROOT, master HOST:PORT, regionserver HOST:PORT, http HOST:PORT, store DIR". */
const char *rq_node_ready_text(const rq_node *n);
/* False if an event loop has not run a task for two seconds. Never blocks; any thread. */
bool rq_node_pulse(rq_node *n);
/* As rq_server_reload. */
rq_err rq_node_reload(rq_node *n, rq_error *why);
/* Logs what its threads and calls are doing. Not on a loop. */
void rq_node_report(rq_node *n);
/* Closes its regions with a flush, so that other servers open them without a replay, and leaves the cluster.
 * Always frees; returns the first error. NULL is fine. */
rq_err rq_node_close(rq_node *n, rq_error *why);

#endif
