/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of cluster/remote.h and cluster/orders.h as calls; see peers.h. */
#include "peers/peers.h"

#include <stdlib.h>

typedef struct sending {
    rq_peer_call call;
    rq_remote_request *request; /* this or `report` is set */
    rq_report *report;
    const rq_server_name *to; /* a reference; only of a report */
} sending;

static void finish(rq_remote_request *request, rq_report *report, rq_err rc, const rq_error *why)
{
    if (request != NULL) {
        request->done(request, rc, why);
        return;
    }
    report->why = why;
    report->done(report, rc);
}

/* `done` of a report or a request may free its names, so they are not used afterwards. */
static void done(rq_peer_call *c, rq_err rc, const rq_error *why, rq_slice answer)
{
    sending *s = RQ_CONTAINER_OF(c, sending, call);
    rq_remote_request *request = s->request;
    bool refused = c->refused;
    rq_report *report = s->report;
    const rq_server_name *to = s->to;
    (void)answer; /* the answers are empty messages */
    free(s);
    rq_server_name_unref(to);
    if (request != NULL) request->refused = refused;
    finish(request, report, rc, why);
}

static void send_call(const rq_peer_role *role, const rq_peer_call *call,
                      rq_remote_request *request, rq_report *report)
{
    sending *s = malloc(sizeof *s);
    if (s == NULL) {
        if (report != NULL) rq_server_name_unref(call->to);
        finish(request, report, RQ_E_NO_MEMORY, NULL);
        return;
    }
    *s = (sending){.call = *call,
                   .request = request,
                   .report = report,
                   .to = report != NULL ? call->to : NULL};
    rq_peers_call(role->peers, &s->call);
}

void rq_peers_send(void *ctx, rq_remote_request *r)
{
    const rq_peer_role *role = ctx;
    const rq_peer_call call = {.from = role->self,
                               .to = r->server,
                               .method = "ExecuteProcedures",
                               .request = r->request,
                               .done = done};
    send_call(role, &call, r, NULL);
}

void rq_peers_report(void *ctx, rq_report *r)
{
    const rq_peer_role *role = ctx;
    const rq_server_name *to = role->active(role->ctx);
    const rq_peer_call call = {
        .from = role->self, .to = to, .method = r->method, .request = r->request, .done = done};
    if (to != NULL)
        send_call(role, &call, NULL, r);
    else
        finish(NULL, r, RQ_E_SERVER_NOT_RUNNING, NULL);
}
