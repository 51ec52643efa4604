/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of ClientService: the service object, the search for a region, the
 * handlers. */
#ifndef RQ_SERVICE_CLIENT_PRIV_H
#define RQ_SERVICE_CLIENT_PRIV_H

#include "base/log.h"
#include "base/macros.h"
#include "ops/ops.h"
#include "service/decode.h"
#include "service/service.h"

struct rq_client_service {
    rq_env env;
    rq_engine *engine;
    rq_catalog *catalog;
    rq_host *host; /* the catalog's */
    rq_loops *loops;
    rq_ops *ops;
    rq_ops_seat **seats; /* one per loop */
    /* settings */
    _Atomic uint64_t rows_warning; /* a reload changes these two */
    _Atomic bool rows_reject;
    unsigned coprocessors;      /* rq_coprocessor: every table's, */
    unsigned user_coprocessors; /* and every user's table's */
    rq_log_limit large_batches, failed_bulk_loads;
};

static inline rq_ops_seat *rq__seat(const rq_client_service *s, const rq_call *call)
{
    return s->seats[rq_loop_index(call->loop)];
}

static inline rq_writer *rq__writer(const rq_client_service *s, const rq_call *call)
{
    return rq__seat(s, call)->writer;
}

/* call_op.c: the region of a RegionSpecifier; valid until the end of the loop's iteration. */
RQ_NODISCARD
rq_err rq__find_region(const rq_client_service *s, const Pb__RegionSpecifier *spec, rq_region **ret,
                       rq_error *why);
/* rq__find_region for reads, which may also name a replica; then *ret_stale is set, and Results are
 * marked as stale. rq__find_region refuses names of replicas. */
RQ_NODISCARD
rq_err rq__find_region_to_read(const rq_client_service *s, const Pb__RegionSpecifier *spec,
                               rq_region **ret, bool *ret_stale, rq_error *why);
/* HBASE: HRegion.checkReadOnly. */
RQ_NODISCARD
rq_err rq__fail_read_only(rq_error *why);

/* Handlers: client_write.c, client_expect.c, client_multi.c, client_scan.c, endpoint.c,
 * client_bulk.c. */
void rq__handle_mutate(void *ctx, rq_call *call);
void rq__expect_requests(void *ctx, const rq_slice *messages, size_t count);
void rq__handle_multi(void *ctx, rq_call *call);
void rq__handle_scan(void *ctx, rq_call *call);
void rq__handle_exec_service(void *ctx, rq_call *call);
void rq__handle_exec_server_service(void *ctx, rq_call *call);
void rq__handle_prepare_bulk_load(void *ctx, rq_call *call);
void rq__handle_bulk_load(void *ctx, rq_call *call);
void rq__handle_cleanup_bulk_load(void *ctx, rq_call *call);

#endif
