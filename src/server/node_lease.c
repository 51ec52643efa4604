/* SPDX-License-Identifier: Apache-2.0 */
/* Logs when the lease of a cluster's server expires, and when it is valid again; see node.h. While it is expired the loops hold
 * responses back (net/answers.h). The tenure counts expiries itself, because the keeper may miss short ones. */
#include "server/node_priv.h"

#include "base/log.h"

#define AGAIN_NS UINT64_C(30000000000)

static void log_lapse(rq_node *n, uint64_t now)
{
    if (n->lease.told_ns != 0 && now - n->lease.told_ns < AGAIN_NS) return;
    n->lease.told_ns = now;
    rq_log_event(
        n->o.log, RQ_LOG_WARN, "cluster",
        "the lease has expired: the storage does not respond, and responses to clients are "
        "held until it does",
        rq_log_ms("ms", now - n->lease.out_ns));
}

static void log_return(rq_node *n, uint64_t now)
{
    if (n->lease.out_ns == 0) return;
    rq_log_event(n->o.log, RQ_LOG_INFO, "cluster", "the lease is valid again",
                 rq_log_ms("ms", now - n->lease.out_ns));
    n->lease.out_ns = n->lease.told_ns = 0;
}

void rq__node_look_at_lease(rq_node *n)
{
    uint64_t until = rq_tenure_valid_until(n->tenure), now = rq_shared_now_ns(n->store.shared);
    if (until == 0) return; /* the process ends */
    if (now < until) {
        log_return(n, now);
        return;
    }
    if (n->lease.out_ns == 0) n->lease.out_ns = until;
    log_lapse(n, now);
}
