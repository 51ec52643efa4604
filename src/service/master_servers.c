/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MasterService and AdminService: the servers of the cluster; this is the only one. Lists of
 * dead and decommissioned servers, the orderly end of the process, the flush of the master's own
 * region.
 *
 * A decommissioned server gets no regions of others; there are no others, so the mark changes
 * nothing but the list. It belongs to the server's name, which has the time of its start, and ends
 * with it. HBASE: HMaster.decommissionRegionServers, recommissionRegionServer;
 * MasterRpcServices.clearDeadServers, shutdown, stopMaster, flushMasterStore.
 */
#include "service/master_priv.h"
#include "service/messages.h"

#include "proto/admin.pb-c.h"
#include "proto/master.pb-c.h"

/* --- dead servers ----------------------------------------------------------------------------- */

/* The answer lists the servers that were not cleared. A standalone server knows of no dead one: when it starts again it
 * replaces its earlier incarnation. */
void rq__clear_dead_servers(void *ctx, rq_call *call)
{
    const rq_admin_services *s = ctx;
    const Pb__ClearDeadServersRequest *r = (const Pb__ClearDeadServersRequest *)call->param;
    Pb__ClearDeadServersResponse response = PB__CLEAR_DEAD_SERVERS_RESPONSE__INIT;
    response.server_name =
        rq_arena_alloc(&call->arena, (r->n_server_name + 1) * sizeof(Pb__ServerName *));
    if (response.server_name == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    for (size_t i = 0; i < r->n_server_name; i++) {
        const rq_server_name name = {.host = r->server_name[i]->host_name,
                                     .port = (uint16_t)r->server_name[i]->port,
                                     .start_code = (int64_t)r->server_name[i]->start_code};
        if (r->server_name[i]->port > UINT16_MAX || !rq_catalog_forget_dead(s->catalog, &name))
            response.server_name[response.n_server_name++] = r->server_name[i];
    }
    rq_call_reply(call, &response.base);
}

/* --- decommissioned servers ------------------------------------------------------------------- */

void rq__list_decommissioned(void *ctx, rq_call *call)
{
    const rq_admin_services *s = ctx;
    Pb__ListDecommissionedRegionServersResponse response =
        PB__LIST_DECOMMISSIONED_REGION_SERVERS_RESPONSE__INIT;
    Pb__ServerName *self = rq__server_name_message(&call->arena, rq_catalog_server(s->catalog));
    if (self == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    response.n_server_name = atomic_load(&s->decommissioned) ? 1 : 0;
    response.server_name = &self;
    rq_call_reply(call, &response.base);
}

/* HBase moves the server's regions to other servers, and fails if there is none. */
static void fail_offload(const rq_admin_services *s, rq_call *call)
{
    const rq_catalog_region **regions;
    size_t count;
    char name[600] = "";
    rq_err rc = rq_catalog_online(s->catalog, &call->arena, &regions, &count);
    if (rc == RQ_OK && count > 0) rq_bytes_to_string(regions[0]->info->name, name, sizeof name);
    if (rc != RQ_OK)
        rq_call_fail(call, rc, NULL);
    else
        rq_call_fail(call, RQ_E_DO_NOT_RETRY,
                     "Unable to determine a plan to move %s: %s is the only server", name,
                     rq_catalog_server(s->catalog)->text);
}

/* Servers that are not online are left out, as in HBase. */
void rq__decommission(void *ctx, rq_call *call)
{
    rq_admin_services *s = ctx;
    const Pb__DecommissionRegionServersRequest *r =
        (const Pb__DecommissionRegionServersRequest *)call->param;
    Pb__DecommissionRegionServersResponse response = PB__DECOMMISSION_REGION_SERVERS_RESPONSE__INIT;
    bool named = false;
    for (size_t i = 0; i < r->n_server_name; i++)
        named |= rq__is_this_server(rq_catalog_server(s->catalog), r->server_name[i]);
    if (named) atomic_store(&s->decommissioned, true);
    if (named && r->offload)
        fail_offload(s, call);
    else
        rq_call_reply(call, &response.base);
}

/* The regions to be moved to the server are there already. */
void rq__recommission(void *ctx, rq_call *call)
{
    rq_admin_services *s = ctx;
    const Pb__RecommissionRegionServerRequest *r =
        (const Pb__RecommissionRegionServerRequest *)call->param;
    Pb__RecommissionRegionServerResponse response = PB__RECOMMISSION_REGION_SERVER_RESPONSE__INIT;
    if (rq__is_this_server(rq_catalog_server(s->catalog), r->server_name))
        atomic_store(&s->decommissioned, false);
    rq_call_reply(call, &response.base);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Master and region server are one process: each of the calls ends it, as SIGTERM does. The answer
 * is on its way before the end begins. All these answers are empty. */
static void stop(rq_admin_services *s, rq_call *call, const char *what, const char *reason)
{
    if (s->stop == NULL || rq_config_int(s->config, RQ_SET_STOP_BY_CALL) == 0) {
        rq_call_fail(call, RQ_E_DO_NOT_RETRY, "%s is refused: %s", what,
                     s->stop == NULL ? "the server is part of another program"
                                     : "rorqual.stop.by.call is false");
        return;
    }
    rq_log_info(s->env.log, "server", "%s by user %s at %s%s%s", what, call->client->user,
                call->client->host, reason[0] == '\0' ? "" : ": ", reason);
    rq_call_reply_packed(call, rq_slice_of("", 0));
    s->stop(s->stop_ctx);
}

void rq__shutdown(void *ctx, rq_call *call)
{
    stop(ctx, call, "Shutdown", "");
}

void rq__stop_master(void *ctx, rq_call *call)
{
    stop(ctx, call, "StopMaster", "");
}

void rq__stop_server(void *ctx, rq_call *call)
{
    stop(ctx, call, "StopServer", ((const Pb__StopServerRequest *)call->param)->reason);
}

/* --- the master's region ---------------------------------------------------------------------- */

static rq_err flush_work(rq__blocking *b)
{
    return rq_catalog_flush_store(b->services->catalog, &b->why);
}

static void flush_answer(rq__blocking *b)
{
    rq_call_reply_packed(b->call, rq_slice_of("", 0));
}

void rq__flush_master_store(void *ctx, rq_call *call)
{
    rq__blocking *b = rq_arena_calloc(&call->arena, 1, sizeof *b);
    if (b == NULL)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else
        rq__blocking_start(b, ctx, call, flush_work, flush_answer);
}
