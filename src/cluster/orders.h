/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side: executes the orders of a master's ExecuteProcedures, each once, and
 * reports.
 *
 *   ExecuteProcedures ─► accepted, or refused as a whole ─► RQ_POOL_WORK: the host ─► report, until the
 *                                                                                 master has taken it
 *
 *  - An accepted order is executed once, even if it arrives several times: numbers of orders are
 *    remembered until ten minutes after their report was taken.
 *  - Orders of a master older than the newest known one are refused, and so are orders for another
 *    start code (of an earlier server at this address).
 *  - A message without orders is a master's probe. The answer is an error if this server does not serve clients,
 *    for example because an event loop hangs.
 *  - Orders to open and close a region are executed one at a time, in the order of their arrival. The
 *    locks of a master's procedures see to that too, but not for orders of two masters.
 *  - In a process without a master (rq_host_name_itself) an opened region is served once the master has
 *    accepted the report, and only then the next order for the region is executed. If the master refuses
 *    the report, the region is closed again.
 */
#ifndef RQ_CLUSTER_ORDERS_H
#define RQ_CLUSTER_ORDERS_H

#include "host/host.h"

typedef struct rq_orders rq_orders;

/* A message on its way to the master. */
typedef struct rq_report {
    const char *method; /* of RegionServerStatusService, or RegionServerLeaving */
    rq_slice request;
    /* Called exactly once, on any thread, perhaps before `report` returns. RQ_OK: the master has
     * accepted the report. An error that is not retryable: it never will. */
    void (*done)(struct rq_report *r, rq_err rc);
    const rq_error *why; /* of an error, set for the time of `done`; may be NULL */
} rq_report;

typedef struct rq_orders_options {
    rq_host *host;
    /* Sends to the current active master. */
    void (*report)(void *ctx, rq_report *r);
    /* Whether this process serves requests of clients; the answer to a message without orders. Any thread; must not
     * block. NULL: always. */
    bool (*serves)(void *ctx);
    /* An order to open regions says that the master has fenced `server`, which may still answer reads for `ns`: see
     * rq_tenure_quiet_in. Called before the order is executed; must not block. NULL: this is ignored. */
    void (*quiet_in)(void *ctx, const char *server, uint64_t ns);
    void *ctx;
} rq_orders_options;

RQ_NODISCARD
rq_err rq_orders_new(const rq_orders_options *options, rq_orders **ret);
/* An ExecuteProceduresRequest of untrusted bytes. Never blocks. RQ_OK: all of its orders will be
 * executed, or have been. */
RQ_NODISCARD
rq_err rq_orders_execute(rq_orders *o, rq_slice request, rq_error *why);
/* Blocking: accepts no more orders, and returns when none runs and no report is outstanding;
 * reports that were not accepted are dropped. */
void rq_orders_stop(rq_orders *o);
/* REQUIRES: stopped. NULL is fine. */
void rq_orders_free(rq_orders *o);

#endif
