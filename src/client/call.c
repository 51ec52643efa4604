/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of any method; contract in call.h. The connection to a region server's AdminService is shared with
 * compactions (admin.c); other connections are kept in rq_client.others, by service and address. */
#include "client/call.h"

#include "client/client_priv.h"

#define LOOK_NS 20000000 /* between two looks at *stop */

typedef struct pending {
    bool done;
    rq_err err;
    rq_buf *ret;
    rq_client_failure *failure;
} pending;

static void take(void *ctx, const rq_reply *r)
{
    pending *p = ctx;
    p->done = true;
    p->err = r->err;
    if (r->err == RQ_OK)
        p->err = rq_buf_append(p->ret, r->message.ptr, r->message.len);
    else
        rq__failure_of(r, p->failure);
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static rq_err other_connection(rq_client *c, const rq__address *at, const char *service,
                               rq__conn **ret)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(c->others); i++) {
        const rq__other *o = &c->others[i];
        if (o->conn == NULL || !is(o->service, service) || o->at.port != at->port ||
            !is(o->at.host, at->host))
            continue;
        *ret = o->conn;
        return RQ_OK;
    }
    if (strlen(service) >= sizeof c->others[0].service) return RQ_E_INVALID;
    RQ_TRY(rq__client_conn(c, at, service, NULL, ret));
    rq__other *o = &c->others[c->next_other++ % RQ_ARRAY_LEN(c->others)];
    rq__client_drop_conn(c, o->conn);
    *o = (rq__other){.at = *at, .conn = *ret};
    memcpy(o->service, service, strlen(service) + 1);
    return RQ_OK;
}

static rq_err master_connection(rq_client *c, const char *service, rq__conn **ret)
{
    if (!is(service, "MasterService")) return other_connection(c, &c->found.master, service, ret);
    return rq__client_master(c, true, ret);
}

static rq_err connection(rq_client *c, const rq_client_target *to, rq__conn **ret)
{
    uint32_t at;
    rq__address address = {.port = to->port};
    if (to->host.len == 0) return master_connection(c, to->service, ret);
    if (to->host.len >= sizeof address.host) return RQ_E_INVALID;
    memcpy(address.host, to->host.ptr, to->host.len);
    if (!is(to->service, "AdminService") && !is(to->service, "ClientService"))
        return other_connection(c, &address, to->service, ret);
    RQ_TRY(rq__client_server(c, &address, &at));
    if (is(to->service, "ClientService")) return rq__client_lane(c, at, 0, ret);
    rq__server *s = &c->servers[at];
    if (s->admin == NULL) RQ_TRY(rq__client_conn(c, &s->at, "AdminService", NULL, &s->admin));
    *ret = s->admin;
    return RQ_OK;
}

rq_err rq_client_call(rq_client *c, const rq_client_target *to, const char *method,
                      rq_slice message, const volatile sig_atomic_t *stop, rq_buf *ret,
                      rq_client_failure *ret_failure)
{
    rq__conn *conn = NULL;
    pending p = {.ret = ret, .failure = ret_failure};
    *ret_failure = (rq_client_failure){.retry = false};
    RQ_TRY(connection(c, to, &conn));
    RQ_TRY(rq__conn_call(conn, method, 0, (rq_slice){0}, message, (rq_slice){0}, take, &p));
    while (!p.done) {
        rq_client_poll(c, LOOK_NS);
        if (!p.done && stop != NULL && *stop) rq_client_stop(c);
    }
    return p.err;
}
