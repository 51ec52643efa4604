/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A standby master in a server of a cluster; see node.h. It watches the active master's process (cluster/master_watch.h).
 * If this has ended, its place is taken before its session in ZooKeeper ends:
 *
 *   ended ─► fenced ─► its nodes `master` and rs/SERVER removed ─► the election, as after the end of its session
 *
 * Each standby may do all of it; every step may be repeated. The fence comes first. So a master that runs in spite of what
 * its address says writes nothing any more before another one is elected, and ends itself when it finds its tenure ended.
 *
 * A master that ends in order closes its port while it still closes its regions. It is in the set "leaving" from before
 * that, so that it is not fenced meanwhile. A standby may hear late from ZooKeeper that the master's nodes are gone, so the
 * next master removes the mark, together with the log (node_fence.c).
 */
#include "server/node_priv.h"

#include "base/log.h"

#include <stdio.h>

/* --- for standbys ---------------------------------------------------------------------------------- */

/* Whether it ends in order; true also if the storage does not say. */
static bool is_leaving(rq_node *n, const char *server)
{
    rq_arena a = {0};
    const char **list;
    size_t count = 0;
    bool ret = rq_set_list(n->store.shared, RQ__NODE_LEAVING, &a, &list, &count, NULL) != RQ_OK;
    for (size_t i = 0; i < count; i++)
        ret |= strcmp(list[i], server) == 0;
    rq_arena_clear(&a);
    return ret;
}

static void depose(rq_node *n, const rq_server_name *server, const char *master)
{
    if (is_leaving(n, server->text)) return;
    if (!rq__tries_has_failed(&n->fences, server->text))
        rq_log_warn(n->o.log, "cluster",
                    "%s, the active master, has ended: its connections are closed, and its address "
                    "refuses new ones. Its place is taken before its session in ZooKeeper ends",
                    server->text);
    if (!rq__node_fence_or_retry(n, server->text)) return;
    /* Without memory: again at the next check. */
    if (rq_member_depose(atomic_load(&n->answers_of.member), master, server->text) == RQ_OK)
        snprintf(n->deposed, sizeof n->deposed, "%s", master);
}

/* What ZooKeeper says is old while there is no connection. */
static bool is_watched(const rq_node *n, const rq_member_view *v)
{
    return v->connected && v->state == RQ_MEMBER_STANDBY && strcmp(v->active, n->deposed) != 0;
}

void rq__node_watch_master(rq_node *n, const rq_member_view *v)
{
    const rq_server_name *server = is_watched(n, v) ? rq__node_active(v) : NULL;
    if (rq_master_watch_check(n->watch, server)) depose(n, server, v->active);
    rq_server_name_unref(server);
}

/* --- for a master that ends in order --------------------------------------------------------------- */

static void log_failure(const rq_node *n, rq_err rc, const rq_error *why)
{
    if (rc != RQ_OK)
        rq_log_warn(n->o.log, "cluster",
                    "the sets of masters that end in order are not changed: %s", why->message);
}

void rq__node_leaves(rq_node *n)
{
    rq_error why = {.code = RQ_OK};
    if (!n->opener_runs) return;
    log_failure(n, rq_set_put(n->store.shared, RQ__NODE_LEAVING, n->server->text, &why), &why);
}

void rq__node_has_left(rq_node *n)
{
    rq_error why = {.code = RQ_OK};
    if (!n->opener_runs) return;
    log_failure(n, rq_set_put(n->store.shared, RQ__NODE_ENDED, n->server->text, &why), &why);
}
