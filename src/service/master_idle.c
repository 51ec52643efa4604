/* SPDX-License-Identifier: Apache-2.0 */
/* MasterService: features of HBase that this server does not have. Queries get the answer of an
 * HBase that does not use the feature: empty lists, "there is none of that name", "not loaded".
 * Calls that would use a feature are refused in the method table. */
#include "service/master_priv.h"

#include "proto/hbase.pb-c.h"
#include "proto/logs.pb-c.h"
#include "proto/master.pb-c.h"
#include "proto/replication.pb-c.h"

#include <string.h>

#define HB "org.apache.hadoop.hbase."

static void throw_final(rq_call *call, const char *java_class, const char *message)
{
    if (message == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    rq_rpc_exception e = {.java_class = java_class, .message = message, .do_not_retry = true};
    rq_call_throw(call, &e);
}

/* No snapshot or peer exists: the lists are empty. */
void rq__reply_nothing(void *ctx, rq_call *call)
{
    (void)ctx;
    rq_call_reply_packed(call, rq_slice_of("", 0));
}

/* --- security ------------------------------------------------------------------------- */

/* HBASE: MasterRpcServices.grant and others without the AccessController coprocessor. */
void rq__access_control(void *ctx, rq_call *call)
{
    (void)ctx;
    rq_call_fail(call, RQ_E_DO_NOT_RETRY,
                 "java.lang.UnsupportedOperationException: " HB
                 "security.access.AccessController is not loaded");
}

/* --- snapshots -------------------------------------------------------------------------------- */

static void no_such_snapshot(rq_call *call, const char *name)
{
    throw_final(
        call, HB "snapshot.SnapshotDoesNotExistException",
        rq_arena_printf(&call->arena, "Snapshot '%s' doesn't exist on the filesystem", name));
}

void rq__delete_snapshot(void *ctx, rq_call *call)
{
    (void)ctx;
    const Pb__DeleteSnapshotRequest *r = (const Pb__DeleteSnapshotRequest *)call->param;
    no_such_snapshot(call, r->snapshot->name);
}

void rq__restore_snapshot(void *ctx, rq_call *call)
{
    (void)ctx;
    const Pb__RestoreSnapshotRequest *r = (const Pb__RestoreSnapshotRequest *)call->param;
    no_such_snapshot(call, r->snapshot->name);
}

/* HBASE: SnapshotManager.isSnapshotDone. */
void rq__is_snapshot_done(void *ctx, rq_call *call)
{
    (void)ctx;
    const Pb__IsSnapshotDoneRequest *r = (const Pb__IsSnapshotDoneRequest *)call->param;
    if (r->snapshot == NULL) {
        throw_final(call, HB "snapshot.UnknownSnapshotException",
                    "No snapshot name passed in request, can't figure out which snapshot you want "
                    "to check.");
        return;
    }
    throw_final(call, HB "snapshot.UnknownSnapshotException",
                rq_arena_printf(&call->arena,
                                "Snapshot %s is not currently running or one of the known "
                                "completed snapshots.",
                                r->snapshot->name));
}

/* --- replication peers ------------------------------------------------------------------------ */

/* Every request about a single peer has its id as `required string peer_id = 1`. */
void rq__no_such_peer(void *ctx, rq_call *call)
{
    (void)ctx;
    const Pb__GetReplicationPeerConfigRequest *r =
        (const Pb__GetReplicationPeerConfigRequest *)call->param;
    throw_final(call, HB "ReplicationPeerNotFoundException", r->peer_id);
}

/* --- the balancer's log ----------------------------------------------------------------------- */

/* Nothing was balanced: both kinds of records are empty. HBASE: MasterRpcServices.getLogEntries. */
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
