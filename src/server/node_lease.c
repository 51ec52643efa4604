/* SPDX-License-Identifier: Apache-2.0 */
/* Logs when the lease of a cluster's server expires, and when it is valid again; see node.h. While the lease is expired, the
 * loops hold responses to clients back (net/answers.h), and reports tell the master (cluster/leases.c). The tenure counts
 * expiries itself, because the keeper may miss short ones. */
#include "server/node_priv.h"

#include "base/log.h"

/* Expiries are logged at this rate; one that lasts is logged again after the period. */
#define PERIOD_NS UINT64_C(30000000000)
#define EXPIRY_LINES ((rq_log_rate){1, PERIOD_NS})

static void log_expiry(rq_node *n, uint64_t now)
{
    uint64_t suppressed;
    if (now < n->lease.again_ns) return;
    n->lease.again_ns = now + PERIOD_NS;
    if (!rq_log_limit_passes(&n->lease.expiry_lines, EXPIRY_LINES, now, &suppressed)) return;
    n->lease.is_logged = true;
    rq_log_event(
        n->o.log, RQ_LOG_WARN, "cluster",
        "the lease has expired: the storage does not respond, and responses to clients are "
        "held until it does",
        rq_log_ms("ms", now - n->lease.expired_ns), rq_log_number("suppressed", suppressed));
}

static void log_return(rq_node *n, uint64_t now)
{
    if (n->lease.is_logged)
        rq_log_event(n->o.log, RQ_LOG_INFO, "cluster", "the lease is valid again",
                     rq_log_ms("ms", now - n->lease.expired_ns));
    n->lease.expired_ns = n->lease.again_ns = 0;
    n->lease.is_logged = false;
}

bool rq__node_check_lease(rq_node *n)
{
    uint64_t until = rq_tenure_valid_until(n->tenure), now = rq_shared_now_ns(n->store.shared);
    if (until == 0) return false; /* the process ends */
    bool was_expired = n->lease.expired_ns != 0, is_expired = now >= until;
    if (was_expired && !is_expired) log_return(n, now);
    if (!was_expired && is_expired) n->lease.expired_ns = until;
    if (is_expired) log_expiry(n, now);
    return was_expired != is_expired;
}

int rq__node_lease_look_ms(const rq_node *n, int usual)
{
    uint64_t until = rq_tenure_valid_until(n->tenure), now = rq_shared_now_ns(n->store.shared);
    if (until <= now) return usual;
    uint64_t left_ms = (until - now) / 1000000 + 1;
    return left_ms < (uint64_t)usual ? (int)left_ms : usual;
}

uint64_t rq__node_lease_expired_ms(const rq_node *n)
{
    uint64_t until = rq_tenure_valid_until(n->tenure), now = rq_shared_now_ns(n->store.shared);
    return now < until ? 0 : (now - until) / 1000000 + 1;
}
