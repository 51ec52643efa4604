/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of ClientService share: the service itself, and how a read waits for a block. */
#ifndef RQ_SERVICE_CLIENT_PRIV_H
#define RQ_SERVICE_CLIENT_PRIV_H

#include "base/macros.h"
#include "base/meter.h"
#include "hfile/read_ctx.h"
#include "region/region_scanner.h"
#include "service/decode.h"
#include "service/service.h"

#define RQ__SLICE_NS RQ_METER_STRETCH_NS

typedef struct rq__leases rq__leases;

struct rq_client_service {
    rq_env env;
    rq_engine *engine;
    rq_catalog *catalog;
    rq_loops *loops;
    const rq_intake *intake; /* see rq_client_service_options */
    const char *data_path;   /* borrowed */
    rq_writer **writers;     /* one per loop */
    rq__leases *leases;
    /* settings */
    uint64_t result_bytes_max; /* of a scan or multi answer */
    uint64_t block_bytes_max;  /* that a multi reads */
    uint64_t lease_ms;
    _Atomic uint64_t rpc_timeout_ms; /* a reload changes these three */
    _Atomic uint64_t rows_warning;
    _Atomic bool rows_reject;
    unsigned coprocessors;      /* rq_coprocessor: every table's, */
    unsigned user_coprocessors; /* and every user's table's */
};

static inline rq_writer *rq__writer(const rq_client_service *s, const rq_call *call)
{
    return s->writers[rq_loop_index(call->loop)];
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

/* For a get's limits: when a read with this filter (or NULL) shall give the loop to others; 0:
 * never. */
uint64_t rq__filter_yield_ns(const rq_client_service *s, const rq_filter *filter);

/* --- scanners' leases (leases.c) -------------------------------------------------------------- */
typedef struct rq__scan_owner rq__scan_owner; /* a connection that has had scanners */

typedef struct rq__scan_holder {
    uint64_t id;
    rq_arena arena; /* of scan, filter and scanner; each growth is charged */
    rq_scan scan;
    rq__scan_extra extra;
    rq_region_scanner *scanner;
    rq_region *region; /* a reference */
    bool stale;        /* it was named as a replica */
    bool at_border;    /* the region holds nothing more, and the client is to be told by itself */
    uint64_t next_call_seq;
    rq_slice partial_row; /* row of the last result when that was partial; own memory */
    rq_buf partial_row_bytes;
    /* the table's */
    rq__leases *leases;
    uint64_t expires_ns;
    bool busy;
    bool opened;  /* what it grows by from now on is charged, but not refused */
    bool refused; /* its opening: there was no room */
    rq__scan_owner *owner;
    size_t charged; /* to the owner: this block, the arena, the row's bytes */
    size_t row_charged;
    struct rq__scan_holder *hash_next;
    struct rq__scan_holder *newer, *older;           /* by lease, while not busy */
    struct rq__scan_holder *owner_next, *owner_prev; /* of the same owner, while not busy */
    _Alignas(RQ_ARENA_ALIGN) uint8_t first_bytes[];  /* of the arena */
} rq__scan_holder;

/* `bytes_max` of scanners in all. */
RQ_NODISCARD
rq_err rq__leases_new(const rq_env *env, uint64_t lease_ms, size_t bytes_max, rq_lane *lane,
                      rq__leases **ret);
/* REQUIRES: no call is in flight, and the connections have closed. */
void rq__leases_free(rq__leases *t);
/* The connection's owner, made when *state is NULL; NULL: no memory. Belongs to the connection, and
 * to its scanners beyond its end. */
rq__scan_owner *rq__lease_owner(void **state);
/* The connection has closed: its scanners end in RQ__ORPHAN_NS, or as soon as memory is needed. */
void rq__lease_owner_gone(rq__leases *t, rq__scan_owner *owner);
#define RQ__ORPHAN_NS (10 * 1000000000ull)
/* A holder with an id, busy; the caller fills it and then sets `opened`. RQ_E_CALL_QUEUE_TOO_BIG:
 * the owner has its share, or there is no room; later, when the arena grows, `refused` says so. */
RQ_NODISCARD
rq_err rq__lease_new(rq__leases *t, rq__scan_owner *owner, rq__scan_holder **ret);
/* Takes it out for a request, to whose connection it belongs from now on. RQ_E_UNKNOWN_SCANNER;
 * RQ_E_LEASE while another request has it; RQ_E_END when it was closed because it was exhausted,
 * with *ret_last_seq. */
RQ_NODISCARD
rq_err rq__lease_take(rq__leases *t, uint64_t id, rq__scan_owner *owner, rq__scan_holder **ret,
                      uint64_t *ret_last_seq);
/* Back with a new lease time. */
void rq__lease_give_back(rq__leases *t, rq__scan_holder *h);
/* Closes and frees it; `remember` that it ended well, for a client that closes it once more. */
void rq__lease_close(rq__leases *t, rq__scan_holder *h, bool remember);
size_t rq__leases_count(rq__leases *t);
size_t rq__leases_charged(rq__leases *t); /* bytes */

#endif
