/* SPDX-License-Identifier: Apache-2.0 */
/* GetOnlineRegion and GetRegionLoad of a cluster's server: the regions open in this process, and their replicas, which clients
 * ask it for. HBase's MapReduce reads the loads before a job. HBASE: RSRpcServices.getOnlineRegion, getRegionLoad. */
#include "service/listing.h"
#include "service/messages.h"

#include "cluster/load.h"

#include "proto/admin.pb-c.h"

#include <string.h>

typedef struct collecting {
    rq_arena *arena;
    const Pb__TableName *of; /* NULL: all tables */
    const rq_host_region **list;
    size_t count, cap;
} collecting;

static bool is_of(const rq_region_info *info, const Pb__TableName *t)
{
    return t == NULL || (rq_slice_eq(info->ns, rq__pb_slice(t->namespace_)) &&
                         rq_slice_eq(info->qualifier, rq__pb_slice(t->qualifier)));
}

static rq_err add(void *ctx, const rq_host_region *r)
{
    collecting *c = ctx;
    if (r->region == NULL || !is_of(r->info, c->of)) return RQ_OK;
    RQ_TRY(rq_arena_grow(c->arena, &c->list, sizeof *c->list, c->count, &c->cap));
    c->list[c->count++] = r;
    return RQ_OK;
}

/* Valid until the end of the read section. */
static rq_err collect(rq__listing *l, const Pb__TableName *of, collecting *ret)
{
    *ret = (collecting){.arena = &l->call->arena, .of = of};
    return rq_region_names_each(rq_host_names(l->services->host), add, ret);
}

static rq_err list_regions(rq__listing *l, rq_slice *ret)
{
    Pb__GetOnlineRegionResponse response = PB__GET_ONLINE_REGION_RESPONSE__INIT;
    collecting c;
    RQ_TRY(collect(l, NULL, &c));
    response.region_info = rq_arena_alloc(c.arena, (c.count + 1) * sizeof(Pb__RegionInfo *));
    if (response.region_info == NULL) return RQ_E_NO_MEMORY;
    for (; response.n_region_info < c.count; response.n_region_info++) {
        Pb__RegionInfo *m = rq__region_info_message(c.arena, c.list[response.n_region_info]->info);
        if (m == NULL) return RQ_E_NO_MEMORY;
        response.region_info[response.n_region_info] = m;
    }
    return rq__listing_pack(l, &response.base, ret);
}

static rq_err list_loads(rq__listing *l, rq_slice *ret)
{
    const Pb__GetRegionLoadRequest *request = (const Pb__GetRegionLoadRequest *)l->call->param;
    Pb__GetRegionLoadResponse response = PB__GET_REGION_LOAD_RESPONSE__INIT;
    collecting c;
    if (request->table_name != NULL) RQ_TRY(rq__table_name_check(request->table_name, &l->why));
    RQ_TRY(collect(l, request->table_name, &c));
    response.region_loads = rq_arena_alloc(c.arena, (c.count + 1) * sizeof(Pb__RegionLoad *));
    if (response.region_loads == NULL) return RQ_E_NO_MEMORY;
    for (; response.n_region_loads < c.count; response.n_region_loads++) {
        const rq_host_region *r = c.list[response.n_region_loads];
        Pb__RegionLoad *m = rq_region_load_message(c.arena, r->info, r->region);
        if (m == NULL) return RQ_E_NO_MEMORY;
        response.region_loads[response.n_region_loads] = m;
    }
    return rq__listing_pack(l, &response.base, ret);
}

/* A server may have 10,000 regions. */
static void reply_apart(rq_admin_services *s, rq_call *call,
                        rq_err (*list)(rq__listing *l, rq_slice *ret))
{
    rq__listing *l = rq_arena_calloc(&call->arena, 1, sizeof *l);
    if (l == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    l->is_long = true;
    rq__listing_start(l, s, call, list);
}

void rq__host_online_region(void *ctx, rq_call *call)
{
    reply_apart(ctx, call, list_regions);
}

void rq__host_region_load(void *ctx, rq_call *call)
{
    reply_apart(ctx, call, list_loads);
}
