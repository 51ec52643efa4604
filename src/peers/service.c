/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of other servers; see service.h. A connection's state is its side of the handshake. */
#include "peers/service.h"

#include "cluster/handshake.h"
#include "peers/peers.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Of a connection. */
typedef struct greeted {
    rq_called called;
    bool is_counted; /* as one of its server, until it is closed, also if it is refused later */
} greeted;

struct rq_peer_service {
    rq_peer_service_options o;
    rq_log_limit refused;
};

/* Any client can cause refusals. */
static void log_refusal(rq_peer_service *s, const rq_call *call, const rq_error *why)
{
    rq_log_write_limited(s->o.log, &s->refused, RQ_LOG_WARN, "peers", "%s from %s is refused: %s",
                         call->method->name, call->client->host, why->message);
}

static void refuse(rq_peer_service *s, rq_call *call, rq_err rc, rq_error *why)
{
    if (rc == RQ_E_NO_MEMORY) (void)rq_no_memory(why);
    if (rq_err_do_not_retry(rc)) log_refusal(s, call, why);
    rq_call_fail_why(call, rc, why);
}

static rq_err need_state(rq_call *call, greeted **ret)
{
    void **state = rq_call_connection_state(call);
    if (*state == NULL) *state = calloc(1, sizeof(greeted));
    *ret = *state;
    return *state == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* --- greeting --------------------------------------------------------------------------------- */

static rq_err take_hello(rq_peer_service *s, rq_call *call, rq_slice *ret, rq_error *why)
{
    greeted *g;
    uint8_t nonce[RQ_NONCE_LEN];
    RQ_TRY(need_state(call, &g));
    RQ_TRY(rq_unguessable(nonce, sizeof nonce));
    return rq_called_hello(&g->called, s->o.names, s->o.name_count, nonce,
                           rq_call_param_bytes(call), &call->arena, ret, why);
}

/* Without memory the connection is of no use: the other server makes another one. */
static rq_err count_connection(rq_peer_service *s, greeted *g)
{
    rq_err rc = rq_sides_connected(s->o.sides, g->called.from);
    g->is_counted = rc == RQ_OK;
    if (rc != RQ_OK) g->called.state = RQ_CALLED_REFUSED;
    return rc;
}

static rq_err take_proof(rq_peer_service *s, rq_call *call, rq_slice *ret, rq_error *why)
{
    greeted *g;
    RQ_TRY(need_state(call, &g));
    RQ_TRY(rq_called_prove(&g->called, s->o.secret, rq_call_param_bytes(call), &call->arena, ret,
                           why));
    RQ_TRY(count_connection(s, g));
    rq_call_keep_connection(call); /* its end would tell the master that the server may be dead */
    rq_log_info(s->o.log, "peers", "%s has connected from %s", g->called.from->text,
                call->client->host);
    return RQ_OK;
}

/* --- calls ------------------------------------------------------------------------------------ */

static rq_err check_proven(rq_call *call, const greeted **ret, rq_error *why)
{
    *ret = *rq_call_connection_state(call);
    if (*ret != NULL && (*ret)->called.state == RQ_CALLED_PROVEN) return RQ_OK;
    return rq_fail(why, RQ_E_ACCESS_DENIED,
                   "%s is allowed only on connections that have proven the cluster's secret",
                   call->method->name);
}

static rq_err take_call(rq_peer_service *s, rq_call *call, rq_slice *ret, rq_error *why)
{
    const greeted *g;
    RQ_TRY(check_proven(call, &g, why));
    return rq_sides_call(s->o.sides, g->called.from, call->method->name, rq_call_param_bytes(call),
                         &call->arena, ret, why);
}

typedef rq_err take_fn(rq_peer_service *s, rq_call *call, rq_slice *ret, rq_error *why);

static void take(void *ctx, rq_call *call, take_fn *work)
{
    rq_error why = {0};
    rq_slice answer = {0};
    if (rq_call_disconnected(call)) {
        rq_call_drop(call);
        return;
    }
    rq_err rc = work(ctx, call, &answer, &why);
    if (rc == RQ_OK)
        rq_call_reply_packed(call, answer);
    else
        refuse(ctx, call, rc, &why);
}

static void hello(void *ctx, rq_call *call)
{
    take(ctx, call, take_hello);
}

static void prove(void *ctx, rq_call *call)
{
    take(ctx, call, take_proof);
}

static void any(void *ctx, rq_call *call)
{
    take(ctx, call, take_call);
}

/* `apply` ends the call later. The response acknowledges writes. Those of a table with ASYNC_WAL or SKIP_WAL did not wait for
 * the log, which may refuse them if this server is fenced and does not know it yet. So the response is held while the lease is
 * expired, as responses to clients are. Senders use separate connections for these calls. */
static void apply(void *ctx, rq_call *call)
{
    rq_peer_service *s = ctx;
    rq_error why = {0};
    const greeted *g;
    if (rq_call_disconnected(call)) {
        rq_call_drop(call);
        return;
    }
    rq_err rc = check_proven(call, &g, &why);
    if (rc == RQ_OK && s->o.apply == NULL)
        rc = rq_fail(&why, RQ_E_UNSUPPORTED, "this server accepts no replicated entries");
    if (rc == RQ_OK) {
        rq_call_hold_answers(call);
        s->o.apply(s->o.apply_ctx, call);
    } else {
        refuse(s, call, rc, &why);
    }
}

/* --- the table -------------------------------------------------------------------------------- */

/* The messages of Hello and Prove are in proto/cluster.proto, that of RegionServerLeaving is empty; the others are HBase's,
 * of AdminService and RegionServerStatusService. The handlers decode them (cluster/handshake.h, cluster/sides.h), not
 * the RPC server, so that a message of a caller without proof is refused before it is decoded. */
static const rq_rpc_method methods[] = {
    {"Hello", NULL, hello},
    {"Prove", NULL, prove},
    {"ExecuteProcedures", NULL, any},
    {"RegionServerStartup", NULL, any},
    {"RegionServerReport", NULL, any},
    {"ReportRSFatalError", NULL, any},
    {"RegionServerLeaving", NULL, any},
    {"ReportRegionStateTransition", NULL, any},
    {"ReportProcedureDone", NULL, any},
    {"GetLiveRegionServers", NULL, any},
    {"ReplicateWALEntry", NULL, apply},
};

#define ENTRIES_MAX ((size_t)4 << 20) /* of keys; a sink sends at most a megabyte, or one */

/* Decoded on the loop, from anybody. */
static const rq_rpc_param_limit param_limits[] = {
    {"Hello", RQ_RPC_PARAM_SHORT},
    {"Prove", RQ_RPC_PARAM_SHORT},
    {"ReplicateWALEntry", ENTRIES_MAX},
};

static void closed(void *ctx, void *state)
{
    rq_peer_service *s = ctx;
    greeted *g = state;
    if (g->is_counted) rq_sides_disconnected(s->o.sides, g->called.from);
    rq_called_clear(&g->called);
    free(g);
}

rq_rpc_service rq_peer_service_methods(rq_peer_service *s)
{
    return (rq_rpc_service){.name = RQ_PEER_SERVICE,
                            .methods = methods,
                            .method_count = RQ_ARRAY_LEN(methods),
                            .ctx = s,
                            .param_limits = param_limits,
                            .param_limit_count = RQ_ARRAY_LEN(param_limits),
                            .closed = closed,
                            .answers_always = true};
}

rq_err rq_peer_service_new(const rq_peer_service_options *o, rq_peer_service **ret)
{
    rq_peer_service *s = calloc(1, sizeof *s);
    if (s == NULL) return RQ_E_NO_MEMORY;
    s->o = *o;
    *ret = s;
    return RQ_OK;
}

void rq_peer_service_free(rq_peer_service *s)
{
    free(s);
}
