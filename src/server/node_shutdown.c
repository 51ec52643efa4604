/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shutdown of a whole cluster (Shutdown of MasterService), on each of its servers; see node.h. It is requested by the
 * removal of the znode `running`. A server that has seen the request does not go back: the request may be invisible later,
 * when the server's session expires or ZooKeeper loses its data, but it is never withdrawn.
 */
#include "server/node_priv.h"

#include "base/log.h"

#define OTHERS_END_MS 60000

/* The active master ends last, as in HBase, so that it hears the others leave. It waits a minute at most. Until then no
 * region is opened elsewhere. HBASE: HMaster.shutdown, ServerManager. */
static bool waits_for_others(const rq_node *n, const rq_member_view *v, uint64_t now_ns)
{
    return v->state == RQ_MEMBER_ACTIVE && v->server_count > 1 &&
           now_ns - n->shut_down_ns < (uint64_t)OTHERS_END_MS * 1000000;
}

bool rq__node_ends_with_cluster(rq_node *n, const rq_member_view *v)
{
    uint64_t now_ns = n->env.executor->now_ns(n->env.executor);
    if (!v->is_shut_down && n->shut_down_ns == 0) return false;
    if (n->shut_down_ns == 0) {
        rq_log_info(n->o.log, "cluster", "the cluster is being shut down");
        n->shut_down_ns = now_ns;
    }
    if (waits_for_others(n, v, now_ns) || n->is_asked_to_end || n->o.stop == NULL) return true;
    n->is_asked_to_end = true;
    n->o.stop(n->o.stop_ctx);
    return true;
}
