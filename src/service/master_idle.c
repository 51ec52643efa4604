/* SPDX-License-Identifier: Apache-2.0 */
/* MasterService: features of HBase that this server does not have. Queries get the answer of an
 * HBase that does not use the feature: empty lists, "not loaded".
 * Calls that would use a feature are refused in the method table. */
#include "service/master_priv.h"

#include "proto/hbase.pb-c.h"
#include "proto/logs.pb-c.h"
#include "proto/master.pb-c.h"

#include <string.h>

#define HB "org.apache.hadoop.hbase."

/* --- security --------------------------------------------------------------------------------- */

/* HBASE: MasterRpcServices.grant and others without the AccessController coprocessor. */
void rq__access_control(void *ctx, rq_call *call)
{
    (void)ctx;
    rq_call_fail(call, RQ_E_DO_NOT_RETRY,
                 "java.lang.UnsupportedOperationException: " HB
                 "security.access.AccessController is not loaded");
}

/* --- the balancer's log ----------------------------------------------------------------------- */

/* Both kinds of records are empty, as in an HBase of one server, whose balancer neither decides nor
 * rejects. HBASE: MasterRpcServices.getLogEntries; StochasticLoadBalancer.balanceTable ends early. */
void rq__master_log_entries(void *ctx, rq_call *call)
{
    (void)ctx;
    const Pb__LogRequest *r = (const Pb__LogRequest *)call->param;
    const char *package = HB "shaded.protobuf.generated.MasterProtos$";
    const char *name = strstr(r->log_class_name, "BalancerDecisionsRequest") != NULL
                           ? "BalancerDecisionsResponse"
                       : strstr(r->log_class_name, "BalancerRejectionsRequest") != NULL
                           ? "BalancerRejectionsResponse"
                           : NULL;
    if (name == NULL) {
        rq_call_fail(call, RQ_E_IOEXCEPTION, "Invalid request params");
        return;
    }
    Pb__LogEntry response = PB__LOG_ENTRY__INIT;
    response.log_class_name = rq_arena_printf(&call->arena, "%s%s", package, name);
    if (response.log_class_name == NULL)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else
        rq_call_reply(call, &response.base);
}
