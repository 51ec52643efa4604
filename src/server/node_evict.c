/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends the session of a fenced server with the file system of HFiles; see node.h. Only CephFS has sessions
 * (rq_vfs_evict): until a session ends, about a minute after its server, its locks make other servers wait. The fence
 * comes first: it decides who may write, and the eviction only shortens the wait.
 *
 * Evictions run one after the other on a lane of their own, because each waits while no metadata server answers. Nobody
 * waits for an eviction: operations that need the server's locks continue when it is done. One that fails is logged
 * and not repeated; these operations then wait until the session ends by itself.
 */
#include "server/node_priv.h"

#include "base/log.h"
#include "vfs/vfs.h"

#include <stdlib.h>

typedef struct eviction {
    rq_task task;
    const rq_node *node;
    char server[];
} eviction;

static void log_failure(const rq_node *n, const char *server, const rq_error *why)
{
    rq_log_warn(n->o.log, "cluster",
                "%s is fenced, but keeps its rights to HFiles until its session with CephFS ends "
                "(session_timeout): %s",
                server, why->message);
}

static void evict(rq_task *task)
{
    eviction *e = RQ_CONTAINER_OF(task, eviction, task);
    rq_error why = {.code = RQ_OK};
    if (rq_vfs_evict(e->node->store.files, e->server, &why) == RQ_OK)
        rq_log_info(e->node->o.log, "cluster", "%s holds nothing in CephFS any more", e->server);
    else
        log_failure(e->node, e->server, &why);
    free(e);
}

void rq__node_evict(rq_node *n, const char *server)
{
    rq_error why = {.code = RQ_OK};
    size_t len = strlen(server) + 1;
    if (n->evictions == NULL) return;
    eviction *e = malloc(sizeof *e + len);
    if (e == NULL) {
        (void)rq_no_memory(&why);
        log_failure(n, server, &why);
        return;
    }
    *e = (eviction){.task = {.run = evict}, .node = n};
    memcpy(e->server, server, len);
    rq_lane_post(n->evictions, &e->task);
}

rq_err rq__node_open_evictions(rq_node *n, rq_error *why)
{
    rq_executor *ex = n->env.executor;
    if (!rq_vfs_has_clients(n->store.files)) return RQ_OK;
    rq_err rc = ex->lane_new(ex, "rq-evictions", &n->evictions);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "cannot start a thread: %s", rq_err_text(rc));
}

void rq__node_close_evictions(rq_node *n)
{
    if (n->evictions != NULL) n->env.executor->lane_free(n->env.executor, n->evictions);
    n->evictions = NULL;
}
