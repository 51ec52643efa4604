/* SPDX-License-Identifier: Apache-2.0 */
/* From a call that ends to a record of the slow log, when it took long or its answer is large. */
#include "rpc/rpc_priv.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_scan(const rq_call *call)
{
    return strcmp(call->method->name, "Scan") == 0;
}

static void describe(const rq_call_private *p, rq_call_text *ret)
{
    const rq_rpc_service *service = &p->conn->service->service;
    memset(ret, 0, sizeof *ret);
    if (service->describe != NULL && p->call.param != NULL) service->describe(&p->call, ret);
}

void rq__call_describe(rq_call_private *p)
{
    if (p->conn->worker->server->options.slow == NULL || p->text != NULL) return;
    p->text = malloc(sizeof *p->text);
    if (p->text != NULL) describe(p, p->text);
}

static void log_slow(const rq_call_private *p, const rq_slow_call *s)
{
    rq_rpc_worker *w = p->conn->worker;
    const rq_log *log = w->server->options.log;
    rq_log_write_limited(
        log, &w->slow_lines, RQ_LOG_WARN, "rpc",
        "%s: %s of user '%s' from %s took %.3f ms (memory %.3f, files %.3f, log %.3f; "
        "queue before %.3f), response %llu bytes%s%s: %s",
        s->is_slow && s->is_large ? "slow and large call"
        : s->is_slow              ? "slow call"
                                  : "large call",
        s->method, s->user, s->client, (double)s->ns / 1e6,
        (double)s->place_ns[RQ_CALL_IN_MEMORY] / 1e6, (double)s->place_ns[RQ_CALL_IN_FILES] / 1e6,
        (double)s->place_ns[RQ_CALL_IN_LOG] / 1e6, (double)s->queue_ns / 1e6,
        (unsigned long long)s->answer_bytes, s->failure == NULL ? "" : ", ended with ",
        s->failure == NULL ? "" : s->failure, s->param);
}

/* The time for which a write waited for the log: what remains of its duration. (Its processor time, some
 * microseconds, is included.) */
static uint64_t rest_of(const rq_slow_call *s)
{
    uint64_t known = s->place_ns[RQ_CALL_IN_MEMORY] + s->place_ns[RQ_CALL_IN_FILES];
    return s->ns > known ? s->ns - known : 0;
}

static void add(rq_call_private *p, rq_slow_call *s)
{
    const rq_rpc_server_options *o = &p->conn->worker->server->options;
    const rq_rpc_client *client = &p->conn->client;
    rq_call_text own;
    const rq_call_text *text = p->text;
    if (text == NULL) {
        describe(p, &own);
        text = &own;
    }
    if (text->only_writes) s->place_ns[RQ_CALL_IN_LOG] = rest_of(s);
    s->server = o->name;
    s->client = RQ_HOST_PORT(client->host, client->port);
    s->user = client->user;
    s->region = text->region;
    s->param = text->param;
    s->gets = text->gets;
    s->mutations = text->mutations;
    s->service_calls = text->service_calls;
    log_slow(p, s);
    rq__slow_log_add(o->slow, s);
}

void rq__call_note(rq_call_private *p, size_t answer_bytes, const char *failure)
{
    const rq_rpc_server_options *o = &p->conn->worker->server->options;
    const rq_call *call = &p->call;
    uint64_t now = rq_loop_clock_ns();
    if (call->method == NULL) return;
    const ProtobufCMessageDescriptor *type = call->method->request;
    rq_slow_call s = {
        .queue_ns = call->started_ns > call->received_ns ? call->started_ns - call->received_ns : 0,
        .ns = now > call->started_ns ? now - call->started_ns : 0,
        .request_bytes = call->request_bytes,
        .answer_bytes = answer_bytes,
        .method = call->method->name,
        .request = type != NULL ? type->short_name : call->method->name,
        .failure = failure,
    };
    if (!rq__slow_log_judge(o->slow, is_scan(call), &s)) return;
    memcpy(s.place_ns, call->place_ns, sizeof s.place_ns);
    if (o->executor != NULL)
        s.start_ms = o->executor->now_ms(o->executor) - (int64_t)(s.ns / 1000000);
    add(p, &s);
}
