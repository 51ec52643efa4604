/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A standby master in a server of a cluster; see node.h. It watches the active master's process (cluster/master_watch.h).
 * If this process has ended, a new master is elected before the ended master's session in ZooKeeper times out:
 *
 *   ended ─► fenced ─► its nodes `master` and rs/SERVER removed ─► the election, as after the end of its session
 *
 * Each standby may do all of it; every step may be repeated. The fence comes first: if the master still runs, although its
 * address did not answer, it can write nothing any more before another master is elected, and ends itself when it finds
 * that its tenure has ended.
 *
 * A master that stops cleanly closes its port while it still closes its regions. Before that it enters the set "leaving",
 * in which it stays until its nodes are removed, so that no standby fences it meanwhile.
 */
#include "server/node_priv.h"

#include "base/log.h"

#include <stdio.h>

/* --- for standbys ---------------------------------------------------------------------------------- */

static bool is_connected(void *ctx, const rq_server_name *server)
{
    const rq_peer_role *role = ctx;
    const rq_node *n = role->ctx;
    return rq_sides_is_connected(n->sides, server);
}

static bool is_leaving(void *ctx, const rq_server_name *server)
{
    const rq_peer_role *role = ctx;
    const rq_node *n = role->ctx;
    rq_arena a = {0};
    const char **list;
    size_t count = 0;
    bool ret = rq_set_list(n->store.shared, RQ__NODE_LEAVING, &a, &list, &count, NULL) != RQ_OK;
    for (size_t i = 0; i < count; i++)
        ret |= strcmp(list[i], server->text) == 0;
    rq_arena_clear(&a);
    return ret;
}

static rq_err read_again(void *ctx, uint64_t *ret)
{
    const rq_peer_role *role = ctx;
    rq_node *n = role->ctx;
    return rq_member_read_again(atomic_load(&n->answers_of.member), ret);
}

rq_err rq__node_watch_masters(rq_node *n, rq_error *why)
{
    const rq_master_watch_options o = {.send = rq_peers_send,
                                       .is_connected = is_connected,
                                       .is_leaving = is_leaving,
                                       .read_again = read_again,
                                       .ctx = &n->role};
    return rq_master_watch_new(&o, &n->watch) == RQ_OK ? RQ_OK : rq_no_memory(why);
}

static void depose(rq_node *n, const rq_server_name *server, const char *master)
{
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

/* Without a connection the last state read from ZooKeeper may be old. */
static bool is_watched(const rq_node *n, const rq_member_view *v)
{
    return v->connected && v->state == RQ_MEMBER_STANDBY && strcmp(v->active, n->deposed) != 0;
}

void rq__node_watch_master(rq_node *n, const rq_member_view *v)
{
    const rq_server_name *server = is_watched(n, v) ? rq__node_active(v) : NULL;
    if (rq_master_watch_check(n->watch, server, v->number)) depose(n, server, v->active);
    rq_server_name_unref(server);
}

/* --- for a master that ends in order --------------------------------------------------------------- */

static void log_failure(const rq_node *n, rq_err rc, const rq_error *why)
{
    if (rc != RQ_OK)
        rq_log_warn(n->o.log, "cluster", "the set of masters that end in order is not changed: %s",
                    why->message);
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
    log_failure(n, rq_set_del(n->store.shared, RQ__NODE_LEAVING, n->server->text, &why), &why);
}
