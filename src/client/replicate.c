/* SPDX-License-Identifier: Apache-2.0 */
/* Log entries to another cluster; contract in replicate.h. */
#include "client/replicate.h"

#include "client/client_priv.h"

#define LOOK_NS 20000000 /* between two looks at *stop */
#define PRIORITY 5       /* HBASE: HConstants.REPLICATION_QOS */

typedef struct shipping {
    bool done;
    rq_err err;
    rq_client_failure *failure;
} shipping;

rq_err rq_client_sink_new(rq_client *c, rq_slice host, uint16_t port, uint32_t timeout_ms,
                          rq_client_sink **ret)
{
    rq__address at = {.port = port};
    if (host.len == 0 || host.len >= sizeof at.host) return RQ_E_INVALID;
    memcpy(at.host, host.ptr, host.len);
    RQ_TRY(rq__client_conn(c, &at, "AdminService", RQ__CODEC_WITH_TAGS, ret));
    rq__conn_set_timeout(*ret, (int64_t)timeout_ms * 1000000);
    return RQ_OK;
}

static void shipped(void *ctx, const rq_reply *r)
{
    shipping *s = ctx;
    s->done = true;
    s->err = r->err;
    if (r->err != RQ_OK) rq__failure_of(r, s->failure);
}

rq_err rq_client_replicate(rq_client *c, rq_client_sink *to, rq_slice message, rq_slice cells,
                           const atomic_bool *stop, rq_client_failure *ret_failure)
{
    shipping s = {.failure = ret_failure};
    *ret_failure = (rq_client_failure){.retry = true};
    RQ_TRY(rq__conn_call(to, "ReplicateWALEntry", PRIORITY, (rq_slice){0}, message, cells, shipped,
                         &s));
    while (!s.done && !atomic_load(stop))
        rq_client_poll(c, LOOK_NS);
    return s.done ? s.err : RQ_E_CANCELLED;
}
