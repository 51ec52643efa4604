/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side: carries out what a master orders by ExecuteProcedures, once each, and reports.
 *
 *   ExecuteProcedures ─► accepted, or refused as a whole ─► RQ_POOL_WORK: the host ─► report, until the
 *                                                                                 master has taken it
 *
 *  - An order that was accepted is carried out once, however often it comes: numbers of orders are
 *    remembered until ten minutes after their report was taken.
 *  - Orders of a master that is older than the newest one heard of are refused, and so are orders for
 *    another start code: for the server that had this address before.
 *  - One order for a region at a time: the master sees to that (the locks of its procedures).
 */
#ifndef RQ_CLUSTER_ORDERS_H
#define RQ_CLUSTER_ORDERS_H

#include "host/host.h"

typedef struct rq_orders rq_orders;

/* A message on its way to the master. */
typedef struct rq_report {
    const char *method; /* of RegionServerStatusService */
    rq_slice request;
    /* Exactly once, on any thread, perhaps before `report` returns. RQ_OK: the master has taken it. An
     * error that is not to be retried: it never will. */
    void (*done)(struct rq_report *r, rq_err rc);
} rq_report;

typedef struct rq_orders_options {
    rq_host *host;
    /* Sends to whoever is the active master now. */
    void (*report)(void *ctx, rq_report *r);
    void *ctx;
} rq_orders_options;

RQ_NODISCARD
rq_err rq_orders_new(const rq_orders_options *options, rq_orders **ret);
/* An ExecuteProceduresRequest of untrusted bytes. Never blocks. RQ_OK: all of it will be carried out, or
 * was. */
RQ_NODISCARD
rq_err rq_orders_execute(rq_orders *o, rq_slice request, rq_error *why);
/* Blocking: accepts nothing more, and returns when nothing runs and no report is on its way; reports
 * that were not taken are given up. */
void rq_orders_stop(rq_orders *o);
/* REQUIRES: stopped. NULL is fine. */
void rq_orders_free(rq_orders *o);

#endif
