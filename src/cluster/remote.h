/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The master's side: the table of calls (host/calls.h) whose servers are other processes.
 *
 *   send ─► ExecuteProcedures to each server, again and again until it has been accepted
 *   ReportRegionStateTransition, ReportProcedureDone ─► the call with that number reports
 *   the server is down ─► its calls report RQ_E_SERVER_NOT_RUNNING
 *
 * A message may be lost, or arrive twice: numbers of calls are never reused, and a repeated report
 * is accepted and changes nothing.
 */
#ifndef RQ_CLUSTER_REMOTE_H
#define RQ_CLUSTER_REMOTE_H

#include "host/calls.h"

typedef struct rq_remote rq_remote;

/* A message on its way to a server. */
typedef struct rq_remote_request {
    const rq_server_name *server;
    rq_slice request; /* ExecuteProceduresRequest of AdminService */
    /* Called exactly once, on any thread, perhaps before `send` returns. `why` may be NULL. An
     * error that is not retryable: the server refuses all of the message. */
    void (*done)(struct rq_remote_request *r, rq_err rc, const rq_error *why);
} rq_remote_request;

typedef struct rq_remote_options {
    const rq_env *env;
    int64_t master_ms; /* when this master became active; above every earlier one's */
    void (*send)(void *ctx, rq_remote_request *r);
    void *ctx;
} rq_remote_options;

RQ_NODISCARD
rq_err rq_remote_new(const rq_remote_options *options, rq_remote **ret);
/* The table of calls; valid as long as the object. REQUIRES before rq_remote_free: its stop was
 * called, and no message is outstanding. */
rq_region_calls rq_remote_calls(rq_remote *m);
/* NULL is fine. */
void rq_remote_free(rq_remote *m);

/* A server has joined (RegionServerStartup) and can take regions. May be repeated. */
RQ_NODISCARD
rq_err rq_remote_server_up(rq_remote *m, const rq_server_name *server);
/* The server is dead and fenced: its outstanding calls end. Any thread. */
void rq_remote_server_down(rq_remote *m, const rq_server_name *server);

/* RegionServerReportRequest: its loads replace those of the server's last report. RQ_E_DO_NOT_RETRY:
 * malformed, or the server is not up. */
RQ_NODISCARD
rq_err rq_remote_server_report(rq_remote *m, rq_slice request, rq_error *why);
/* Messages of servers, of untrusted bytes. RQ_OK: accepted; they need not be repeated.
 * RQ_E_DO_NOT_RETRY: malformed, or about orders of another master or to another server. */
RQ_NODISCARD
rq_err rq_remote_transitions(rq_remote *m, rq_slice request, rq_error *why);
RQ_NODISCARD
rq_err rq_remote_procedures_done(rq_remote *m, rq_slice request, rq_error *why);

#endif
