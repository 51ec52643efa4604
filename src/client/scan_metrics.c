/* SPDX-License-Identifier: Apache-2.0 */
/* A scan's metrics; the contract is in scan_metrics.h. */
#include "client/scan_metrics.h"

#include "base/pb.h"

#include <strings.h>
#include <unistd.h>

static const char *const names[] = {
#define X(name) #name,
    RQ_SCAN_METRICS(X)
#undef X
};

const char *rq_scan_metric_name(rq_scan_metric m)
{
    return names[m];
}

/* NameInt64Pair { name 1, value 2 } */
static rq_err add_pair(rq_scan_metrics *m, rq_slice bytes)
{
    rq_cursor c = rq_cursor_of(bytes);
    rq_slice name = {0};
    uint64_t value = 0;
    rq_pb_field f;
    rq_err rc;
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if (f.number == 1 && f.wire == RQ_PB_BYTES) name = f.bytes;
        if (f.number == 2 && f.wire == RQ_PB_VARINT) value = f.value;
    }
    for (size_t i = 0; i < RQ_ARRAY_LEN(names); i++)
        if (rq_slice_eq(name, rq_slice_cstr(names[i]))) m->values[i] += value;
    return rc == RQ_E_END ? RQ_OK : rc;
}

rq_err rq__scan_metrics_add(rq_scan_metrics *m, rq_slice message)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    rq_err rc;
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK)
        if (f.number == 1 && f.wire == RQ_PB_BYTES) RQ_TRY(add_pair(m, f.bytes));
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* HBASE: ConnectionUtils.isRemote: by the name of this host alone. */
void rq__scan_metrics_region(rq_scan_metrics *m, const char *host)
{
    char own[256] = "";
    if (gethostname(own, sizeof own - 1) != 0) own[0] = '\0';
    m->is_remote = strcasecmp(own, host) != 0;
    m->values[RQ_SCAN_REGIONS_SCANNED]++;
}

void rq__scan_metrics_call(rq_scan_metrics *m, bool between, int64_t now_ns)
{
    m->values[RQ_SCAN_RPC_CALLS]++;
    if (m->is_remote) m->values[RQ_SCAN_REMOTE_RPC_CALLS]++;
    if (between && m->asked_ns != 0)
        m->values[RQ_SCAN_MILLIS_BETWEEN_NEXTS] += (uint64_t)(now_ns - m->asked_ns) / 1000000;
    m->asked_ns = now_ns;
}

void rq__scan_metrics_failure(rq_scan_metrics *m, rq_err err)
{
    if (err == RQ_E_NOT_SERVING_REGION) m->values[RQ_SCAN_NOT_SERVING_REGION_EXCEPTION]++;
}

void rq__scan_metrics_retry(rq_scan_metrics *m)
{
    m->values[RQ_SCAN_RPC_RETRIES]++;
    if (m->is_remote) m->values[RQ_SCAN_REMOTE_RPC_RETRIES]++;
}

/* HBASE: PrivateCellUtil.estimatedSerializedSizeOf: a KeyValue and its length. */
void rq__scan_metrics_cell(rq_scan_metrics *m, const rq_cell *c)
{
    size_t len = 4 + rq_cell_serialized_len(c, true);
    m->values[RQ_SCAN_BYTES_IN_RESULTS] += len;
    if (m->is_remote) m->values[RQ_SCAN_BYTES_IN_REMOTE_RESULTS] += len;
}
