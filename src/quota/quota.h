/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas: limits of requests (throttles) for users, tables, namespaces and the server, and of space
 * for tables and namespaces. They are rows of hbase:quota, in HBase's form:
 *
 *   u.USER                q:s  the user's   q:s.TABLE, q:s.NAMESPACE:  the user's on these
 *   t.TABLE, n.NAMESPACE, r.all             q:s  "PBUF" + Quotas
 *   t.TABLE               u:p  SpaceQuotaSnapshot: usage, limit, violation
 *   exceedThrottleQuota   q:s  00 or ff
 *
 *   SetQuota ─► merge with the row ─► hbase:quota ─► view (in memory) ─► gate of ops
 *
 * The view is read without a lock, and replaced at each change. While nothing is limited, the gate
 * has no policy for quotas. With hbase.quota.enabled false nothing of this runs. HBASE:
 * MasterQuotaManager, RegionServerRpcQuotaManager, QuotaCache, QuotaObserverChore.
 */
#ifndef RQ_QUOTA_QUOTA_H
#define RQ_QUOTA_QUOTA_H

#include "base/config.h"
#include "base/env.h"
#include "catalog/catalog.h"
#include "ops/ops.h"

#include "proto/master.pb-c.h"
#include "proto/quota.pb-c.h"

typedef struct rq_quotas rq_quotas;

typedef struct rq_quotas_options {
    const rq_env *env;
    rq_catalog *catalog;
    rq_ops *ops;
    const rq_config *config;
    rq_lane *lane;              /* of the timer */
    const rq_gate_policy *next; /* the policy at the gate of `ops`; it still applies. NULL: none */
} rq_quotas_options;

/* Blocking: with hbase.quota.enabled it creates hbase:quota and reads it. If this fails, the error
 * is logged, and reading is repeated by the timer and when a quota is set. */
RQ_NODISCARD
rq_err rq_quotas_open(const rq_quotas_options *o, rq_quotas **ret, rq_error *why);
/* Blocking: ends the timer and waits for work under way. The lane still runs. NULL is fine. */
void rq_quotas_stop(rq_quotas *q);
/* REQUIRES: rq_quotas_stop, and no op is running. NULL is fine. */
void rq_quotas_close(rq_quotas *q);
/* hbase.quota.enabled. */
bool rq_quotas_enabled(const rq_quotas *q);
/* Reads hbase:quota again. Blocking. */
RQ_NODISCARD
rq_err rq_quotas_reload(rq_quotas *q, rq_error *why);

/* Sets a quota as SetQuota does; it is in effect and durable on return. Blocking. */
RQ_NODISCARD
rq_err rq_quotas_set(rq_quotas *q, const Pb__SetQuotaRequest *r, rq_error *why);
/* Sets whether throttles are enforced; durable. Blocking. */
RQ_NODISCARD
rq_err rq_quotas_switch_throttle(rq_quotas *q, bool on, bool *ret_before, rq_error *why);
bool rq_quotas_throttle_is_on(const rq_quotas *q);
/* Sets whether requests beyond a quota may pass while the server's own quota is not used up;
 * durable. Blocking. */
RQ_NODISCARD
rq_err rq_quotas_switch_exceed(rq_quotas *q, bool on, bool *ret_before, rq_error *why);

/* --- space ------------------------------------------------------------------------------------ */
typedef struct rq_space_state {
    rq_slice table; /* the table's name; with is_namespace, the namespace's */
    bool is_namespace;
    uint64_t usage, limit; /* bytes */
    Pb__SpaceViolationPolicy policy;
    bool is_violated;
} rq_space_state;

/* For a compaction that a client requests. RQ_E_DO_NOT_RETRY: a violated NO_WRITES_COMPACTIONS
 * forbids it, and the user is not a superuser (the user of this process, or one of
 * hbase.superuser). Any thread, inside a read section. */
RQ_NODISCARD
rq_err rq_quotas_may_compact(const rq_quotas *q, const rq_region *region, const char *user,
                             rq_error *why);

/* The states of all space quotas, of tables and namespaces, and of the tables in such namespaces;
 * in the arena. Any thread. */
RQ_NODISCARD
rq_err rq_quotas_space(rq_quotas *q, rq_arena *arena, rq_space_state **ret, size_t *ret_count);

#endif
