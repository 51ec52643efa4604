/* SPDX-License-Identifier: Apache-2.0 */
/* Instead of node.c in a program that was built without the headers of ZooKeeper's client library. */
#include "server/node.h"

rq_err rq__node_can_open(rq_error *why)
{
    return rq_fail(why, RQ_E_UNSUPPORTED,
                   "this program has no cluster mode, because it was built without ZooKeeper's "
                   "client library (Debian: libzookeeper-mt-dev)");
}

rq_err rq_node_open(const rq_server_options *o, rq_node **ret, rq_error *why)
{
    (void)o;
    *ret = NULL;
    return rq__node_can_open(why);
}

/* No other function is called without an open node. */
const char *rq_node_ready_text(const rq_node *n)
{
    (void)n;
    return "";
}

bool rq_node_pulse(rq_node *n)
{
    (void)n;
    return false;
}

rq_err rq_node_reload(rq_node *n, rq_error *why)
{
    (void)n;
    (void)why;
    return RQ_OK;
}

void rq_node_report(rq_node *n)
{
    (void)n;
}

rq_err rq_node_close(rq_node *n, rq_error *why)
{
    (void)n;
    (void)why;
    return RQ_OK;
}
