/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of ClientService share: the service itself, and how a read waits for a block. */
#ifndef RQ_SERVICE_CLIENT_PRIV_H
#define RQ_SERVICE_CLIENT_PRIV_H

#include "base/macros.h"
#include "base/meter.h"
#include "hfile/read_ctx.h"
#include "ops/ops.h"
#include "region/region_scanner.h"
#include "service/decode.h"
#include "service/service.h"

#define RQ__SLICE_NS RQ_METER_STRETCH_NS

struct rq_client_service {
    rq_env env;
    rq_engine *engine;
    rq_catalog *catalog;
    rq_loops *loops;
    const rq_intake *intake; /* see rq_client_service_options */
    const char *data_path;   /* borrowed */
    rq_ops *ops;
    rq_ops_seat **seats; /* one per loop */
    /* settings */
    uint64_t rows_warning;
    bool rows_reject;
    unsigned coprocessors;      /* rq_coprocessor: every table's, */
    unsigned user_coprocessors; /* and every user's table's */
};

static inline rq_ops_seat *rq__seat(const rq_client_service *s, const rq_call *call)
{
    return s->seats[rq_loop_index(call->loop)];
}

static inline rq_writer *rq__writer(const rq_client_service *s, const rq_call *call)
{
    return rq__seat(s, call)->writer;
}

/*
 * A read that may have to leave its loop: for a block (fulfilled on RQ_POOL_READ) or because its
 * slice is spent (posted to its own lane). `step` is run again on the lane until it does not return
 * RQ_E_AGAIN; it ends the call itself otherwise. Lives in the call's arena.
 */
typedef struct rq__read_job {
    rq_client_service *service;
    rq_call *call;
    rq_read_ctx ctx;
    rq_error why;
    rq_err fetch_rc;   /* what fulfil returned */
    uint64_t fetch_ns; /* spent in it */
    rq_task task;
    const rq_cellblock *own; /* where the cells gather if not in the call's; may be NULL */
    void (*step)(struct rq__read_job *job);
} rq__read_job;

RQ_NODISCARD
rq_err rq__read_job_init(rq__read_job *job, rq_client_service *s, rq_call *call,
                         void (*step)(rq__read_job *job));
/* After RQ_E_AGAIN: brings what ctx needs, or just yields, then runs step again. The caller has
 * suspended its scanner. */
RQ_COLD void rq__read_job_wait(rq__read_job *job);

/* The region of a RegionSpecifier; valid until the end of the loop's iteration. */
RQ_NODISCARD
rq_err rq__find_region(const rq_client_service *s, const Pb__RegionSpecifier *spec, rq_region **ret,
                       rq_error *why);
/* The same for what only reads: a replica's name will do. *ret_stale: it was one, and Results say
 * so. rq__find_region refuses replicas. */
RQ_NODISCARD
rq_err rq__find_region_to_read(const rq_client_service *s, const Pb__RegionSpecifier *spec,
                               rq_region **ret, bool *ret_stale, rq_error *why);
/* HBASE: HRegion.checkReadOnly. */
RQ_NODISCARD
rq_err rq__fail_read_only(rq_error *why);

void rq__handle_get(void *ctx, rq_call *call);
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
