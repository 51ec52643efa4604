/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by MasterService and AdminService: the service object, and calls that leave the loop. */
#ifndef RQ_SERVICE_ADMIN_PRIV_H
#define RQ_SERVICE_ADMIN_PRIV_H

#include "base/log.h"
#include "base/pool_share.h"
#include "metrics/metrics.h"
#include "service/admin.h"

#include "proto/hbase.pb-c.h"

#include <pthread.h>
#include <stdatomic.h>

/* The threads of RQ_POOL_CALL for each method whose calls block (blocking.c). */
#define RQ__BLOCKING_METHODS 64
typedef struct rq__blocking_shares {
    pthread_mutex_t lock;
    size_t count; /* by lock, as the names */
    const char *methods[RQ__BLOCKING_METHODS];
    rq_pool_share list[RQ__BLOCKING_METHODS];
} rq__blocking_shares;

#define RQ__HBCK_METHODS 9

/* Rate limits of audit lines, by the calling host. Hosts with equal hashes share a limit. */
#define RQ__AUDIT_LIMITS 256
typedef struct rq__audit_limits {
    uint64_t seed; /* of the hash, so that a host cannot find out which hosts share its limit */
    rq_log_limit of[RQ__AUDIT_LIMITS];
} rq__audit_limits;

struct rq_admin_services {
    rq_env env;
    rq_engine *engine;
    rq_catalog *catalog;
    rq_host *host; /* the catalog's */
    uint16_t info_port;
    const rq_config *config;
    rq_metrics *metrics; /* may be NULL */
    rq_loops *loops;
    rq_err (*reload)(void *ctx, rq_error *why);
    void *reload_ctx;
    rq_slow_log *slow;             /* may be NULL */
    struct rq_user_metrics *users; /* may be NULL */
    rq_client_service *client;     /* its seats; this and the next may be NULL (tests) */
    rq_replication *replication;
    rq_sink *sink;            /* NULL: nothing is counted */
    rq_sink_router *router;   /* NULL: not a server of a cluster */
    struct rq_quotas *quotas; /* may be NULL */
    rq_err (*standbys)(void *ctx, rq_arena *arena, rq_server_name **ret, size_t *ret_count);
    void *standbys_ctx;
    void (*stop)(void *ctx);
    void *stop_ctx;
    rq_err (*shut_down)(void *ctx);
    void *shut_down_ctx;
    pthread_mutex_t rsgroup_lock; /* one change of groups at a time; held across I/O, by no loop */
    rq__blocking_shares blocking;
    rq__audit_limits audit_limits;
    _Atomic bool decommissioned; /* the server's mark (master_servers.c) */
    _Atomic unsigned repairs;    /* calls of HBCK2 that wait for procedures (hbck.c) */
    rq_rpc_method refused_hbck[RQ__HBCK_METHODS];
};

/* master_ddl.c: also a method of AdminService for clients of 1.x */
void rq__split_region_1x(void *ctx, rq_call *call);

/* master_quota.c: also a method of AdminService */
void rq__get_space_quota_snapshots(void *ctx, rq_call *call);

/* master_servers.c: also a method of AdminService */
void rq__stop_server(void *ctx, rq_call *call);

/* audit.c: an rq_rpc_service's `ended`; ctx is the rq_admin_services. */
void rq__audit(void *ctx, const rq_call *call, const ProtobufCMessage *response,
               const rq_rpc_exception *failure);

/* region_servers.c: refuses a method with its reason in lacking.def. */
void rq__refuse_call(void *ctx, rq_call *call);

/* replicate.c */
void rq__replicate_entries(void *ctx, rq_call *call);

/* host_regions.c */
void rq__host_online_region(void *ctx, rq_call *call);
void rq__host_region_load(void *ctx, rq_call *call);

/* admin_cache.c */
void rq__clear_region_block_cache(void *ctx, rq_call *call);

/* admin_slow.c */
void rq__get_slow_logs(void *ctx, rq_call *call);
void rq__get_large_logs(void *ctx, rq_call *call);
void rq__clear_slow_logs(void *ctx, rq_call *call);
void rq__get_log_entries(void *ctx, rq_call *call);

/* --- admin_service.c -------------------------------------------------------------------------- */

/* By name or encoded name. Borrowed until the end of the loop's iteration. */
RQ_NODISCARD
rq_err rq__admin_find_region(const rq_admin_services *s, const Pb__RegionSpecifier *spec,
                             rq_region **ret, rq_error *why);

/* --- blocking.c ------------------------------------------------------------------------------- */

/* A call that blocks. `work` runs on RQ_POOL_CALL, for a few calls of each method at the same time; the method's other
 * calls wait without a thread. If `work` returns RQ_OK, `answer` runs on the call's loop; otherwise the call fails with
 * the error. Embedded in a struct in the call's arena. */
typedef struct rq__blocking {
    rq_admin_services *services;
    rq_call *call;
    rq_task task;
    rq_pool_share *share;
    rq_err rc;
    rq_error why;
    rq_err (*work)(struct rq__blocking *b);
    void (*answer)(struct rq__blocking *b);
} rq__blocking;

void rq__blocking_start(rq__blocking *b, rq_admin_services *s, rq_call *call,
                        rq_err (*work)(rq__blocking *b), void (*answer)(rq__blocking *b));

void rq__blocking_shares_init(rq__blocking_shares *all);
/* REQUIRES: every call has ended. */
void rq__blocking_shares_destroy(rq__blocking_shares *all);

/* --- admin_service.c again -------------------------------------------------------------------- */

/* A service of these, whose calls are limited, described and audited. */
rq_rpc_service rq__admin_service(rq_admin_services *s, const char *name, const rq_rpc_method *table,
                                 size_t count);

void rq__get_cached_files(void *ctx, rq_call *call);
/* Of AdminService, on both ports. */
void rq__update_configuration(void *ctx, rq_call *call);

#endif
