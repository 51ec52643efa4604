/* SPDX-License-Identifier: Apache-2.0 */
/* The sink of replication of a cluster's server (replication/spread.h). Parts of a batch go to the servers of their
 * regions on connections of their own: a part that is not answered in time closes its connection, and messages between
 * master and servers must not end with it. */
#include "server/node_priv.h"

#include "base/address.h"

#include <stdlib.h>

/* Below the limit of an edit (spread.c), so that a part whose server hangs is sent again, to the next server of the regions. */
#define PART_TIMEOUT_MS 4000
#define WAITING_MAX 2 /* of the five calls that service/blocking.c runs at a time */

typedef struct sending {
    rq_peer_call call;
    rq_spread_part *part;
} sending;

static void sent(rq_peer_call *c, rq_err rc, const rq_error *why, rq_slice answer)
{
    sending *s = RQ_CONTAINER_OF(c, sending, call);
    rq_spread_part *part = s->part;
    (void)answer; /* an empty message */
    free(s);
    rq_spread_sent(part, rc, why);
}

static void send_part(void *ctx, rq_spread_part *part)
{
    const rq_node *n = ctx;
    sending *s = malloc(sizeof *s);
    if (s == NULL) {
        rq_spread_sent(part, RQ_E_NO_MEMORY, NULL);
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
    const rq_spread_options o = {
        .bootstrap = self, .waiting_max = WAITING_MAX, .send = send_part, .ctx = n};
    rq_err rc = self == NULL ? RQ_E_NO_MEMORY : rq_peers_new(&peers, &n->sink.peers);
    if (rc == RQ_OK) rc = rq_spread_new(&o, &n->sink.spread);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}

void rq__node_stop_sink(rq_node *n)
{
    if (n->sink.spread != NULL) rq_spread_stop(n->sink.spread);
}

void rq__node_disconnect_sink(rq_node *n)
{
    if (n->sink.peers != NULL) rq_peers_stop(n->sink.peers);
}

void rq__node_free_sink(rq_node *n)
{
    rq_spread_free(n->sink.spread);
    rq_peers_free(n->sink.peers);
}
