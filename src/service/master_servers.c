/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MasterService and AdminService: the servers of the cluster. Lists of dead and decommissioned servers, the orderly end of the
 * process, the flush of the master's own region.
 *
 * A decommissioned server gets no further regions. Of a standalone server the mark changes nothing but the list. It belongs to
 * the server's name, which has the time of its start, and ends with it. HBASE: HMaster.decommissionRegionServers, recommissionRegionServer;
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

/* Of a standalone server. */
static bool drains_alone(const rq_admin_services *s)
{
    return !rq_catalog_is_cluster(s->catalog) && atomic_load(&s->decommissioned);
}

/* Those that drain; a standalone server is the only one. */
static rq_err draining(const rq_admin_services *s, rq_arena *arena, const rq_server_name ***ret,
                       size_t *ret_count)
{
    *ret_count = 0;
    if (rq_catalog_is_cluster(s->catalog))
        return rq_catalog_draining(s->catalog, arena, ret, ret_count);
    return drains_alone(s) ? rq_catalog_servers(s->catalog, arena, ret, ret_count) : RQ_OK;
}

/* As messages. */
static rq_err list_draining(const rq_admin_services *s, rq_arena *arena,
                            Pb__ListDecommissionedRegionServersResponse *ret)
{
    const rq_server_name **list;
    size_t count;
    rq_err rc = RQ_OK;
    RQ_TRY(draining(s, arena, &list, &count));
    ret->server_name = rq_arena_alloc(arena, (count + 1) * sizeof(Pb__ServerName *));
    if (ret->server_name == NULL) rc = RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        Pb__ServerName *m = rc == RQ_OK ? rq__server_name_message(arena, list[i]) : NULL;
        if (rc == RQ_OK && m == NULL) rc = RQ_E_NO_MEMORY;
        if (m != NULL) ret->server_name[ret->n_server_name++] = m;
    }
    for (size_t i = 0; i < count; i++)
        rq_server_name_unref(list[i]);
    return rc;
}

void rq__list_decommissioned(void *ctx, rq_call *call)
{
    Pb__ListDecommissionedRegionServersResponse response =
        PB__LIST_DECOMMISSIONED_REGION_SERVERS_RESPONSE__INIT;
    rq_err rc = list_draining(ctx, &call->arena, &response);
    if (rc == RQ_OK)
        rq_call_reply(call, &response.base);
    else
        rq_call_fail(call, rc, NULL);
}

/* HBase moves the server's regions to other servers, and fails if there is none. */
static rq_err refuse_offload(const rq_admin_services *s, rq_arena *arena, rq_error *why)
{
    const rq_catalog_region **regions;
    size_t count;
    char name[600] = "";
    RQ_TRY(rq_catalog_online(s->catalog, arena, &regions, &count));
    if (count > 0) rq_bytes_to_string(regions[0]->info->name, name, sizeof name);
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "Unable to determine a plan to move %s: %s is the only server", name,
                   rq_catalog_server(s->catalog)->text);
}

/* A call whose work reads or writes storage, or takes many locks. */
static void start(rq_admin_services *s, rq_call *call, rq_err (*work)(rq__blocking *b),
                  void (*answer)(rq__blocking *b))
{
    rq__blocking *b = rq_arena_calloc(&call->arena, 1, sizeof *b);
    if (b == NULL)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else
        rq__blocking_start(b, s, call, work, answer);
}

static void answer_nothing(rq__blocking *b)
{
    rq_call_reply_packed(b->call, rq_slice_of("", 0));
}

/* The server of the list that is meant, referenced; NULL: none. Gives the list's references up. */
static const rq_server_name *take_meant(const rq_server_name **list, size_t count,
                                        const Pb__ServerName *meant)
{
    const rq_server_name *ret = NULL;
    for (size_t i = 0; i < count; i++) {
        if (ret == NULL && rq__is_this_server(list[i], meant))
            ret = list[i];
        else
            rq_server_name_unref(list[i]);
    }
    return ret;
}

/* *ret NULL: none that is up. Without a start code it is the one at the address. */
static rq_err find_server(const rq_admin_services *s, const Pb__ServerName *meant,
                          const rq_server_name **ret, rq_error *why)
{
    rq_arena a = {0};
    const rq_server_name **list;
    size_t count = 0;
    rq_err rc = rq_catalog_servers(s->catalog, &a, &list, &count);
    *ret = take_meant(list, count, meant);
    rq_arena_clear(&a);
    return rc == RQ_OK ? RQ_OK : rq_no_memory(why);
}

/* One that drains, up or not: hbase.master.reject.decommissioned.hosts keeps marks of ended servers. */
static rq_err find_draining(const rq_admin_services *s, const Pb__ServerName *meant,
                            const rq_server_name **ret, rq_error *why)
{
    rq_arena a = {0};
    const rq_server_name **list;
    size_t count = 0;
    rq_err rc = draining(s, &a, &list, &count);
    *ret = take_meant(list, count, meant);
    rq_arena_clear(&a);
    return rc == RQ_OK ? RQ_OK : rq_no_memory(why);
}

static rq_err drain(rq_admin_services *s, const rq_server_name *server, bool drains, rq_error *why)
{
    if (rq_catalog_is_cluster(s->catalog)) return rq_catalog_drain(s->catalog, server, drains, why);
    atomic_store(&s->decommissioned, drains);
    return RQ_OK;
}

static rq_err offload(rq__blocking *b, const rq_server_name *server)
{
    rq_admin_services *s = b->services;
    return rq_catalog_is_cluster(s->catalog) ? rq_catalog_offload(s->catalog, server, &b->why)
                                             : refuse_offload(s, &b->call->arena, &b->why);
}

/* All are marked before any region moves. Servers that are not online are left out, as in HBase. */
static rq_err decommission_work(rq__blocking *b)
{
    const Pb__DecommissionRegionServersRequest *r =
        (const Pb__DecommissionRegionServersRequest *)b->call->param;
    rq_err rc = RQ_OK;
    for (int moves = 0; moves <= (r->offload ? 1 : 0); moves++) {
        for (size_t i = 0; i < r->n_server_name && rc == RQ_OK; i++) {
            const rq_server_name *name;
            rc = find_server(b->services, r->server_name[i], &name, &b->why);
            if (rc == RQ_OK && name != NULL)
                rc = moves ? offload(b, name) : drain(b->services, name, true, &b->why);
            rq_server_name_unref(name);
        }
    }
    return rc;
}

void rq__decommission(void *ctx, rq_call *call)
{
    start(ctx, call, decommission_work, answer_nothing);
}

/* Its regions are named by either name; in a standalone server they are there already. */
static rq_err bring_back(rq__blocking *b, const rq_server_name *server)
{
    const Pb__RecommissionRegionServerRequest *r =
        (const Pb__RecommissionRegionServerRequest *)b->call->param;
    rq_slice *names = rq_arena_calloc(&b->call->arena, r->n_region + 1, sizeof *names);
    if (names == NULL) return rq_no_memory(&b->why);
    for (size_t i = 0; i < r->n_region; i++)
        names[i] = rq__encoded_of(r->region[i]);
    return rq_catalog_bring(b->services->catalog, server, names, r->n_region, &b->why);
}

static rq_err recommission_work(rq__blocking *b)
{
    const Pb__RecommissionRegionServerRequest *r =
        (const Pb__RecommissionRegionServerRequest *)b->call->param;
    const rq_server_name *name;
    RQ_TRY(find_server(b->services, r->server_name, &name, &b->why));
    bool is_up = name != NULL;
    if (!is_up) RQ_TRY(find_draining(b->services, r->server_name, &name, &b->why));
    if (name == NULL) return RQ_OK;
    rq_err rc = drain(b->services, name, false, &b->why);
    if (rc == RQ_OK && is_up && rq_catalog_is_cluster(b->services->catalog))
        rc = bring_back(b, name);
    rq_server_name_unref(name);
    return rc;
}

void rq__recommission(void *ctx, rq_call *call)
{
    start(ctx, call, recommission_work, answer_nothing);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* False: the call was refused. */
static bool may_stop(const rq_admin_services *s, rq_call *call, const char *what,
                     const char *reason)
{
    if (s->stop == NULL || rq_config_int(s->config, RQ_SET_STOP_BY_CALL) == 0) {
        rq_call_fail(call, RQ_E_DO_NOT_RETRY, "%s is refused: %s", what,
                     s->stop == NULL ? "the server is part of another program"
                                     : "rorqual.stop.by.call is false");
        return false;
    }
    rq_log_info(s->env.log, "server", "stopping: %s called by user %s from %s%s%s", what,
                call->client->user, call->client->host, reason[0] == '\0' ? "" : ": ", reason);
    return true;
}

/* Master and region server are one process: each of the calls ends it, as SIGTERM does. The answer
 * is on its way before the end begins. All these answers are empty. */
static void stop(rq_admin_services *s, rq_call *call, const char *what, const char *reason)
{
    if (!may_stop(s, call, what, reason)) return;
    rq_call_reply_packed(call, rq_slice_of("", 0));
    s->stop(s->stop_ctx);
}

/* In a cluster the other processes end first, and then this one, the master's. */
static void shut_down(rq_admin_services *s, rq_call *call)
{
    if (!may_stop(s, call, "Shutdown", "")) return;
    rq_err rc = s->shut_down(s->shut_down_ctx);
    if (rc == RQ_OK)
        rq_call_reply_packed(call, rq_slice_of("", 0));
    else
        rq_call_fail(call, rc, NULL);
}

void rq__shutdown(void *ctx, rq_call *call)
{
    rq_admin_services *s = ctx;
    if (s->shut_down != NULL)
        shut_down(s, call);
    else
        stop(s, call, "Shutdown", "");
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

void rq__flush_master_store(void *ctx, rq_call *call)
{
    start(ctx, call, flush_work, answer_nothing);
}
