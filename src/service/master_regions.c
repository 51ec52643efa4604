/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MasterService: single regions (move, assign, offline), the archive's cleaner. HBASE: HMaster.move,
 * MasterRpcServices.assignRegion, offlineRegion, runCleanerChore.
 */
#include "descriptor/schema.h"
#include "service/master_priv.h"
#include "service/messages.h"

#include <string.h>

#include "proto/hbase.pb-c.h"
#include "proto/master.pb-c.h"

/* The encoded name in a specifier of either type. */
rq_slice rq__encoded_of(const Pb__RegionSpecifier *spec)
{
    rq_slice name = rq_slice_of(spec->value.data, spec->value.len);
    if (spec->type == PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__REGION_NAME &&
        name.len > RQ_ENCODED_NAME_LEN + 1 && name.ptr[name.len - 1] == '.')
        return rq_slice_of(name.ptr + name.len - RQ_ENCODED_NAME_LEN - 1, RQ_ENCODED_NAME_LEN);
    return name;
}

static void unknown_region(rq_call *call, const Pb__RegionSpecifier *spec)
{
    char name[512];
    rq_bytes_to_string(rq_slice_of(spec->value.data, spec->value.len), name, sizeof name);
    rq_call_fail(call, RQ_E_UNKNOWN_REGION, "%s", name);
}

/* HBASE: AssignmentManager.assign, unassign and HMaster.move wait for the procedure's end; the answer is
 * empty. */
static void submit_transit(rq_admin_services *a, rq_call *call, rq_ddl_kind kind,
                           const rq_region_info *info, rq_slice to)
{
    rq__ddl_job *j = rq__ddl_job_new(call, kind, 0, 0);
    if (j == NULL) return;
    j->silent = true;
    j->ddl.wait_finished = true;
    j->ddl.ns = rq_arena_copy(&call->arena, info->ns);
    j->ddl.qualifier = rq_arena_copy(&call->arena, info->qualifier);
    j->ddl.of.one_region.region = rq_arena_copy(&call->arena, rq_slice_cstr(info->encoded));
    j->ddl.of.one_region.server = rq_arena_copy(&call->arena, to);
    if (j->ddl.ns.ptr == NULL || j->ddl.qualifier.ptr == NULL ||
        j->ddl.of.one_region.region.ptr == NULL || j->ddl.of.one_region.server.ptr == NULL)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else
        rq_catalog_submit(a->catalog, &j->ddl);
}

/* Finds the server in `list` with the fewest regions, except the region's own; HBase takes any other server. *ret is
 * its index, or `count` if there is no other server. REQUIRES: a read section. */
static rq_err find_emptiest(const rq_catalog *c, const rq_catalog_region *r,
                            const rq_server_name *const *list, size_t count, rq_arena *arena,
                            size_t *ret)
{
    const rq_catalog_table *const *tables;
    size_t table_count, best = count, here = rq_server_names_find(list, count, r->server);
    size_t *regions = rq_arena_calloc(arena, count + 1, sizeof *regions); /* by server */
    if (regions == NULL) return RQ_E_NO_MEMORY;
    rq_catalog_tables(c, &tables, &table_count);
    for (size_t t = 0; t < table_count; t++)
        for (size_t i = 0; i < tables[t]->region_count; i++)
            regions[rq_server_names_find(list, count,
                                         rq_catalog_table_region(tables[t], i)->server)]++;
    for (size_t i = 0; i < count; i++)
        if (i != here && (best == count || regions[i] < regions[best])) best = i;
    *ret = best;
    return RQ_OK;
}

static size_t index_of(const rq_server_name *const *list, size_t count, const Pb__ServerName *name)
{
    size_t i = 0;
    while (i < count && !rq__is_this_server(list[i], name))
        i++;
    return i;
}

static void not_online(rq_call *call, const Pb__ServerName *to, const rq_server_name *const *list,
                       size_t count)
{
    const char *only = count == 1 ? list[0]->text : NULL;
    rq_call_fail(call, RQ_E_DO_NOT_RETRY, "%s,%u,%llu is not online%s%s%s", to->host_name, to->port,
                 (unsigned long long)to->start_code, only == NULL ? "" : ": ",
                 only == NULL ? "" : only, only == NULL ? "" : " is the only server");
}

/* Moves the region to the server with the ServerName `to`. If `to` is empty, or is the region's own server, the region
 * stays and the call succeeds, as in HBase. HBASE: HMaster.move. */
static void move_to(rq_admin_services *a, rq_call *call, const rq_catalog_region *r, rq_slice to)
{
    Pb__MoveRegionResponse response = PB__MOVE_REGION_RESPONSE__INIT;
    if (to.len == 0 || (r->server != NULL && rq_slice_eq(rq_slice_cstr(r->server->text), to)))
        rq_call_reply(call, &response.base);
    else
        submit_transit(a, call, RQ_DDL_MOVE_REGION, r->info, to);
}

typedef struct move_job {
    rq__blocking blocking;
    rq_slice to; /* in the call's arena; empty: there is no other server */
} move_job;

static rq_err choose(rq__blocking *b, const rq_server_name *const *list, size_t count,
                     rq_arena *arena)
{
    move_job *j = RQ_CONTAINER_OF(b, move_job, blocking);
    const Pb__MoveRegionRequest *q = (const Pb__MoveRegionRequest *)b->call->param;
    const rq_catalog *c = b->services->catalog;
    const rq_catalog_region *r = rq_catalog_region_find(c, rq__encoded_of(q->region));
    size_t to = count;
    if (r != NULL) RQ_TRY(find_emptiest(c, r, list, count, arena, &to));
    if (to < count) j->to = rq_arena_copy(&b->call->arena, rq_slice_cstr(list[to]->text));
    return to < count && j->to.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err choose_work(rq__blocking *b)
{
    rq_arena arena = {0};
    rq_epoch_member m = {0};
    const rq_server_name **list;
    size_t count = 0;
    rq_err rc = rq_catalog_destinations(b->services->catalog, &arena, &list, &count);
    rq_epoch_pin(b->services->env.epoch, &m);
    if (rc == RQ_OK) rc = choose(b, list, count, &arena);
    rq_epoch_unpin(b->services->env.epoch, &m);
    for (size_t i = 0; i < count; i++)
        rq_server_name_unref(list[i]);
    rq_arena_clear(&arena);
    return rc;
}

static void choose_answer(rq__blocking *b)
{
    const Pb__MoveRegionRequest *q = (const Pb__MoveRegionRequest *)b->call->param;
    const rq_catalog_region *r =
        rq_catalog_region_find(b->services->catalog, rq__encoded_of(q->region));
    if (r == NULL)
        unknown_region(b->call, q->region);
    else
        move_to(b->services, b->call, r, RQ_CONTAINER_OF(b, move_job, blocking)->to);
}

/* The emptiest server is found on a pool: the walk through all regions would hold the loop. */
static void move_anywhere(rq_admin_services *a, rq_call *call)
{
    move_job *j = rq_arena_calloc(&call->arena, 1, sizeof *j);
    if (j == NULL)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else
        rq__blocking_start(&j->blocking, a, call, choose_work, choose_answer);
}

static void move_to_named(rq_admin_services *a, rq_call *call, const rq_catalog_region *r)
{
    const Pb__ServerName *wanted = ((const Pb__MoveRegionRequest *)call->param)->dest_server_name;
    rq_arena arena = {0}; /* not the call's, which ends with the answer */
    const rq_server_name **list;
    size_t count = 0;
    rq_err rc = rq_catalog_servers(a->catalog, &arena, &list, &count);
    size_t to = rc == RQ_OK ? index_of(list, count, wanted) : count;
    if (rc != RQ_OK)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else if (to == count)
        not_online(call, wanted, list, count);
    else
        move_to(a, call, r, rq_slice_cstr(list[to]->text));
    for (size_t i = 0; i < count; i++)
        rq_server_name_unref(list[i]);
    rq_arena_clear(&arena);
}

void rq__move_region(void *ctx, rq_call *call)
{
    rq_admin_services *a = ctx;
    const Pb__MoveRegionRequest *q = (const Pb__MoveRegionRequest *)call->param;
    const rq_catalog_region *r = rq_catalog_region_find(a->catalog, rq__encoded_of(q->region));
    if (r == NULL)
        unknown_region(call, q->region);
    else if (q->dest_server_name != NULL)
        move_to_named(a, call, r);
    else
        move_anywhere(a, call);
}

void rq__assign_region(void *ctx, rq_call *call)
{
    rq_admin_services *a = ctx;
    const Pb__AssignRegionRequest *r = (const Pb__AssignRegionRequest *)call->param;
    rq_slice encoded = rq__encoded_of(r->region);
    const rq_catalog_region *region = rq_catalog_region_find(a->catalog, encoded);
    if (region == NULL) {
        unknown_region(call, r->region);
    } else if (region->state == RQ_REGION_FAILED_OPEN) {
        rq_error why = {.code = RQ_OK};
        rq_err rc = rq_catalog_assign(a->catalog, encoded, &why);
        Pb__AssignRegionResponse response = PB__ASSIGN_REGION_RESPONSE__INIT;
        if (rc != RQ_OK)
            rq_call_fail_why(call, rc, &why);
        else
            rq_call_reply(call, &response.base);
    } else {
        submit_transit(a, call, RQ_DDL_ASSIGN_REGION, region->info, (rq_slice){NULL, 0});
    }
}

void rq__unassign_region(void *ctx, rq_call *call)
{
    const Pb__UnassignRegionRequest *r = (const Pb__UnassignRegionRequest *)call->param;
    rq_admin_services *a = ctx;
    const rq_catalog_region *region = rq_catalog_region_find(a->catalog, rq__encoded_of(r->region));
    if (region == NULL)
        unknown_region(call, r->region);
    else
        submit_transit(a, call, RQ_DDL_UNASSIGN_REGION, region->info, (rq_slice){NULL, 0});
}

/* HBase forgets where the region is, while its server goes on serving it. Here the region is closed,
 * as by UnassignRegion, because the server knows that it serves it. */
void rq__offline_region(void *ctx, rq_call *call)
{
    const Pb__OfflineRegionRequest *r = (const Pb__OfflineRegionRequest *)call->param;
    rq_admin_services *a = ctx;
    const rq_catalog_region *region = rq_catalog_region_find(a->catalog, rq__encoded_of(r->region));
    Pb__OfflineRegionResponse response = PB__OFFLINE_REGION_RESPONSE__INIT;
    if (region == NULL)
        unknown_region(call, r->region);
    else if (region->state == RQ_REGION_OPEN)
        submit_transit(a, call, RQ_DDL_UNASSIGN_REGION, region->info, (rq_slice){NULL, 0});
    else
        rq_call_reply(call, &response.base);
}

/* --- the cleaner ------------------------------------------------------------------------------ */

typedef struct cleaner_job {
    rq__blocking blocking;
    bool ran;
} cleaner_job;

static rq_err cleaner_work(rq__blocking *b)
{
    cleaner_job *j = RQ_CONTAINER_OF(b, cleaner_job, blocking);
    return rq_catalog_clean_archive(b->services->catalog, &j->ran, &b->why);
}

static void cleaner_answer(rq__blocking *b)
{
    Pb__RunCleanerChoreResponse response = PB__RUN_CLEANER_CHORE_RESPONSE__INIT;
    response.cleaner_chore_ran = RQ_CONTAINER_OF(b, cleaner_job, blocking)->ran;
    rq_call_reply(b->call, &response.base);
}

void rq__run_cleaner(void *ctx, rq_call *call)
{
    cleaner_job *j = rq_arena_calloc(&call->arena, 1, sizeof *j);
    if (j == NULL)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else
        rq__blocking_start(&j->blocking, ctx, call, cleaner_work, cleaner_answer);
}
