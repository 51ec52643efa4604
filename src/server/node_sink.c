/* SPDX-License-Identifier: Apache-2.0 */
/* The sink of replication of a cluster's server (replication/sink_router.h). Parts of a batch go to the servers of their
 * regions on connections of their own: a part that is not answered in time closes its connection, and messages between
 * master and servers must not end with it. */
#include "server/node_priv.h"

#include "base/address.h"

#include <stdlib.h>

#define WINDOW_LIMIT_NS UINT64_C(10000000000) /* HBASE: replication.sink.client.ops.timeout */
/* A part that is not answered within this time is not sent again by its job. Its server is probably slow, and holds the writes
 * because memstores are full; a second copy would be held and applied, too. If the server hangs, its regions are opened
 * elsewhere after about this time (zookeeper.session.timeout), and the source's next attempt finds them. */
#define PART_TIMEOUT_MS 10000
_Static_assert(PART_TIMEOUT_MS *UINT64_C(1000000) >= WINDOW_LIMIT_NS,
               "a server gets a part that it does not answer once per window");
#define WAITING_MAX 2 /* of the five calls that service/blocking.c runs at a time */

typedef struct sending {
    rq_peer_call call;
    rq_sink_part *part;
} sending;

static void sent(rq_peer_call *c, rq_err rc, const rq_error *why, rq_slice answer)
{
    sending *s = RQ_CONTAINER_OF(c, sending, call);
    rq_sink_part *part = s->part;
    (void)answer; /* an empty message */
    free(s);
    rq_sink_part_sent(part, rc, why);
}

static void send_part(void *ctx, rq_sink_part *part)
{
    const rq_node *n = ctx;
    sending *s = malloc(sizeof *s);
    if (s == NULL) {
        rq_sink_part_sent(part, RQ_E_NO_MEMORY, NULL);
        return;
    }
    *s = (sending){.call = {.from = n->server,
                            .to = part->to,
                            .method = "ReplicateWALEntry",
                            .request = part->message,
                            .cells = part->cells,
                            .done = sent},
                   .part = part};
    rq_peers_call(n->sink.peers, &s->call);
}

rq_err rq__node_open_sink(rq_node *n, rq_error *why)
{
    n->sink.counters.started_ms = n->env.executor->now_ms(n->env.executor);
    const rq_peers_options peers = {.loop = rq_loops_get(n->loops, 0),
                                    .secret = &n->secret,
                                    .log = n->o.log,
                                    .timeout_ms = PART_TIMEOUT_MS};
    const char *self = rq_arena_printf(&n->arena, "%s", RQ_HOST_PORT(n->name, n->server->port));
    const rq_sink_router_options o = {.bootstrap = self,
                                      .waiting_max = WAITING_MAX,
                                      .limit_ns = WINDOW_LIMIT_NS,
                                      .send = send_part,
                                      .ctx = n};
    rq_err rc = self == NULL ? RQ_E_NO_MEMORY : rq_peers_new(&peers, &n->sink.peers);
    if (rc == RQ_OK) rc = rq_sink_router_new(&o, &n->sink.router);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}

void rq__node_sink_load(void *ctx, rq_sink_load *ret)
{
    const rq_peer_role *role = ctx;
    const rq_node *n = role->ctx;
    rq_sink_get_load(&n->sink.counters, ret);
}

void rq__node_stop_sink(rq_node *n)
{
    if (n->sink.router != NULL) rq_sink_router_stop(n->sink.router);
}

void rq__node_disconnect_sink(rq_node *n)
{
    if (n->sink.peers != NULL) rq_peers_stop(n->sink.peers);
}

void rq__node_free_sink(rq_node *n)
{
    rq_sink_router_free(n->sink.router);
    rq_peers_free(n->sink.peers);
}
