/* SPDX-License-Identifier: Apache-2.0 */
/* Calls between HBase's servers: RegionServerStatusService on the master's port, and the methods of
 * AdminService that a master calls. Queries are answered. Reports and orders are refused, with the
 * reason in lacking.def, because one process is both master and region server. */
#include "service/admin_priv.h"
#include "service/messages.h"

#include "proto/region_server_status.pb-c.h"

#include <string.h>

/* --- refusals --------------------------------------------------------------------------------- */

static const struct {
    const char *method, *reason;
} lacking[] = {
#define REFUSED(method, reason) {#method, reason},
#define ABSENT(method, reason)
#define X(service, method, kind, reason) kind(method, reason)
#include "service/lacking.def"
#undef X
#undef ABSENT
#undef REFUSED
};

/* REQUIRES: lacking.def has the method, as test_methods.c checks. */
void rq__refuse_call(void *ctx, rq_call *call)
{
    (void)ctx;
    size_t i = 0;
    while (i + 1 < RQ_ARRAY_LEN(lacking) && strcmp(lacking[i].method, call->method->name) != 0)
        i++;
    rq_call_fail(call, RQ_E_DO_NOT_RETRY,
                 "java.lang.UnsupportedOperationException: %s is not served here: %s",
                 call->method->name, lacking[i].reason);
}

/* --- questions -------------------------------------------------------------------------------- */

/* HBASE: MasterRpcServices.getLiveRegionServers. */
static void get_live_servers(void *ctx, rq_call *call)
{
    const rq_admin_services *s = ctx;
    const Pb__GetLiveRegionServersRequest *r = (const Pb__GetLiveRegionServersRequest *)call->param;
    Pb__GetLiveRegionServersResponse response = PB__GET_LIVE_REGION_SERVERS_RESPONSE__INIT;
    Pb__ServerName *self = rq__server_name_message(&call->arena, rq_catalog_server(s->catalog));
    if (self == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    response.server = &self;
    response.n_server = r->count > 0;
    response.total = 1;
    rq_call_reply(call, &response.base);
}

/* -1 for a region that is not open. HBASE: ServerManager.getLastFlushedSequenceId. */
static void get_flushed_seqid(void *ctx, rq_call *call)
{
    const rq_admin_services *s = ctx;
    const Pb__GetLastFlushedSequenceIdRequest *r =
        (const Pb__GetLastFlushedSequenceIdRequest *)call->param;
    Pb__GetLastFlushedSequenceIdResponse response = PB__GET_LAST_FLUSHED_SEQUENCE_ID_RESPONSE__INIT;
    const rq_catalog_region *region =
        rq_catalog_region_find(s->catalog, rq__pb_slice(r->region_name));
    rq_region_load load = {.max_flushed_seqid = UINT64_MAX};
    if (region != NULL && region->region != NULL) rq_region_get_load(region->region, &load);
    response.last_flushed_sequence_id = load.max_flushed_seqid;
    rq_call_reply(call, &response.base);
}

#define PARAM_MAX ((size_t)1 << 20) /* as of the other services (admin_service.c) */

static const rq_rpc_method methods[] = {
    {"RegionServerStartup", &pb__region_server_startup_request__descriptor, rq__refuse_call},
    {"RegionServerReport", &pb__region_server_report_request__descriptor, rq__refuse_call},
    {"ReportRSFatalError", &pb__report_rsfatal_error_request__descriptor, rq__refuse_call},
    {"GetLastFlushedSequenceId", &pb__get_last_flushed_sequence_id_request__descriptor,
     get_flushed_seqid},
    {"ReportRegionStateTransition", &pb__report_region_state_transition_request__descriptor,
     rq__refuse_call},
    {"ReportRegionSpaceUse", &pb__region_space_use_report_request__descriptor, rq__refuse_call},
    {"ReportProcedureDone", &pb__report_procedure_done_request__descriptor, rq__refuse_call},
    {"ReportFileArchival", &pb__file_archive_notification_request__descriptor, rq__refuse_call},
    {"GetLiveRegionServers", &pb__get_live_region_servers_request__descriptor, get_live_servers},
};

rq_rpc_service rq_status_service_methods(rq_admin_services *s)
{
    return (rq_rpc_service){.name = "RegionServerStatusService",
                            .methods = methods,
                            .method_count = RQ_ARRAY_LEN(methods),
                            .ctx = s,
                            .param_max = PARAM_MAX};
}
