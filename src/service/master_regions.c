/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MasterService: single regions (move, assign, offline), the archive's cleaner. HBASE: HMaster.move,
 * MasterRpcServices.assignRegion, offlineRegion, runCleanerChore.
 */
#include "descriptor/schema.h"
#include "service/master_priv.h"

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

/* There is no other server: as in an HBase with one server, the region stays and the call succeeds.
 * The name of another server is an error. */
void rq__move_region(void *ctx, rq_call *call)
{
    const rq_admin_services *a = ctx;
    const Pb__MoveRegionRequest *r = (const Pb__MoveRegionRequest *)call->param;
    const rq_server_name *self = rq_catalog_server(a->catalog);
    const Pb__ServerName *to = r->dest_server_name;
    if (rq_catalog_region_find(a->catalog, rq__encoded_of(r->region)) == NULL) {
        unknown_region(call, r->region);
        return;
    }
    if (to != NULL && !(strcmp(to->host_name, self->host) == 0 && to->port == self->port)) {
        rq_call_fail(call, RQ_E_DO_NOT_RETRY, "%s,%u,%llu is not online: %s is the only server",
                     to->host_name, to->port, (unsigned long long)to->start_code, self->text);
        return;
    }
    Pb__MoveRegionResponse response = PB__MOVE_REGION_RESPONSE__INIT;
    rq_call_reply(call, &response.base);
}

/* HBASE: AssignmentManager.assign and unassign wait for the procedure's end; the answer is
 * empty. */
static void submit_transit(rq_admin_services *a, rq_call *call, rq_ddl_kind kind,
                           const rq_region_info *info)
{
    rq__ddl_job *j = rq__ddl_job_new(call, kind, 0, 0);
    if (j == NULL) return;
    j->silent = true;
    j->ddl.wait_finished = true;
    j->ddl.ns = rq_arena_copy(&call->arena, info->ns);
    j->ddl.qualifier = rq_arena_copy(&call->arena, info->qualifier);
    j->ddl.of.one_region.region = rq_arena_copy(&call->arena, rq_slice_cstr(info->encoded));
    if (j->ddl.ns.ptr == NULL || j->ddl.qualifier.ptr == NULL ||
        j->ddl.of.one_region.region.ptr == NULL)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else
        rq_catalog_submit(a->catalog, &j->ddl);
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
        submit_transit(a, call, RQ_DDL_ASSIGN_REGION, region->info);
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
        submit_transit(a, call, RQ_DDL_UNASSIGN_REGION, region->info);
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
        submit_transit(a, call, RQ_DDL_UNASSIGN_REGION, region->info);
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
