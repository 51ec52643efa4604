/* SPDX-License-Identifier: Apache-2.0 */
/* HbckService, the service that HBCK2 calls. Only `bypass` is implemented, which ends procedures.
 * HBase marks them so that no further step runs; here they are aborted: an uncommitted change is
 * rolled back, a committed one tries its remaining steps once more. HBASE:
 * MasterRpcServices.bypassProcedure. */
#include "service/master_priv.h"
#include "service/slow_text.h"

#include "proto/master.pb-c.h"

static void bypass_procedure(void *ctx, rq_call *call)
{
    rq_admin_services *s = ctx;
    const Pb__BypassProcedureRequest *r = (const Pb__BypassProcedureRequest *)call->param;
    Pb__BypassProcedureResponse response = PB__BYPASS_PROCEDURE_RESPONSE__INIT;
    response.bypassed = rq_arena_calloc(&call->arena, r->n_proc_id, sizeof *response.bypassed);
    if (response.bypassed == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    for (; response.n_bypassed < r->n_proc_id; response.n_bypassed++)
        response.bypassed[response.n_bypassed] =
            rq_catalog_procedure_abort(s->catalog, r->proc_id[response.n_bypassed], true);
    rq_call_reply(call, &response.base);
}

static const rq_rpc_method methods[] = {
    {"BypassProcedure", &pb__bypass_procedure_request__descriptor, bypass_procedure},
};

rq_rpc_service rq_hbck_service_methods(rq_admin_services *s)
{
    return (rq_rpc_service){.name = "HbckService",
                            .methods = methods,
                            .method_count = RQ_ARRAY_LEN(methods),
                            .ctx = s,
                            .describe = rq__describe_call,
                            .ended = rq__audit};
}
