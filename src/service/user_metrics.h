/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests by user and by client host, as ServerLoad reports them (hbtop's modes user and client). Off
 * unless hbase.regionserver.user.metrics.enabled is set: then a policy of the gate counts each op of a
 * call when it ends. HBASE: MetricsUserAggregate.
 *
 * As in HBase, a read is a row that a get or scan has returned; writes are puts, deletes, appends and
 * increments by Mutate, and of a Multi the appends and increments only. (Of a Multi all gets are reads.)
 *
 * At most RQ_USER_METRICS_MAX pairs of user and host are kept. When a new one needs a place, those with
 * no more requests than the average are dropped (HBase: LossyCounting).
 */
#ifndef RQ_SERVICE_USER_METRICS_H
#define RQ_SERVICE_USER_METRICS_H

#include "ops/gate.h"

#include "proto/cluster_status.pb-c.h"

#define RQ_USER_METRICS_MAX 1000
#define RQ_USER_NAME_MAX 255 /* longer names are cut */

typedef struct rq_user_metrics rq_user_metrics;

/* `next`: the policy that this one calls, before an op to decide on it and after it with its costs; NULL:
 * none. Returns NULL if out of memory. */
rq_user_metrics *rq_user_metrics_new(const rq_gate_policy *next);
/* REQUIRES: no op uses its policy. NULL is fine. */
void rq_user_metrics_free(rq_user_metrics *m);
/* Valid as long as `m`. */
const rq_gate_policy *rq_user_metrics_policy(rq_user_metrics *m);

/* Fills userLoads, by user and host, in the arena. Any thread. RQ_E_NO_MEMORY. */
RQ_NODISCARD
rq_err rq__user_loads(rq_user_metrics *m, rq_arena *arena, Pb__ServerLoad *ret);

#endif
