/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /rs-status?format=json: the tasks of the server, for the shell's `processlist`. `filter` is all,
 * general (procedures), handler, rpc or operation (calls in flight: there are no idle handlers).
 * The calls in flight are collected on a thread of their own (rq__later), because a loop may hang;
 * a list of procedures alone is made on the HTTP thread. HBASE: RSStatusServlet, TaskMonitor,
 * MonitoredTaskImpl.toMap, MonitoredRPCHandlerImpl.
 */
#include "http/http_priv.h"

#include <stdlib.h>

/* A loop that does not reply within this time is left out; /stacks names it. */
#define LOOP_WAIT_MS 200

typedef struct printer {
    rq__text *text;
    size_t count;
    int64_t now_ms;
    uint64_t now_ns;
} printer;

/* Converts a monotonic time to wall-clock time. */
static long long wall_ms(const printer *p, uint64_t ns)
{
    return (long long)(p->now_ms - (p->now_ns > ns ? (int64_t)((p->now_ns - ns) / 1000000) : 0));
}

static void begin(printer *p)
{
    rq__put(p->text, "%s{", p->count++ == 0 ? "" : ",\n");
}

static void put_call(printer *p, const char *server, const rq_rpc_call_info *c)
{
    char address[RQ_HOST_PORT_MAX], line[RQ_HOST_PORT_MAX + 128];
    rq_host_port(c->host, c->port, address);
    begin(p);
    snprintf(line, sizeof line, "Servicing call from %s: %s%s", address, c->method,
             c->waits_for_memory ? ", waiting for memory for its response" : "");
    rq__put(p->text, "\"description\":\"%s, loop %u\",\"status\":", server, c->loop);
    rq__put_json_cstr(p->text, line);
    rq__put(p->text,
            ",\"state\":\"RUNNING\",\"starttimems\":%lld,\"statustimems\":-1,\"statetimems\":-1,"
            "\"rpcCall\":{\"queuetimems\":%lld,\"starttimems\":%lld,\"clientaddress\":",
            wall_ms(p, c->started_ns), wall_ms(p, c->received_ns), wall_ms(p, c->started_ns));
    rq__put_json_cstr(p->text, c->host);
    rq__put(p->text, ",\"remoteport\":%u,\"packetlength\":%u,\"method\":", c->port,
            c->request_bytes);
    rq__put_json_cstr(p->text, c->method);
    rq__put(p->text, ",\"user\":");
    rq__put_json_cstr(p->text, c->user);
    rq__put(p->text, ",\"params\":[]}}");
}

static void put_calls(printer *p, rq_rpc_server *s, const char *name)
{
    rq_rpc_calls list;
    rq_rpc_server_calls(s, LOOP_WAIT_MS, &list);
    for (size_t i = 0; i < list.count; i++)
        put_call(p, name, &list.calls[i]);
    rq_rpc_calls_free(&list);
}

static void put_procedure(printer *p, const rq_procedure *pr)
{
    char line[1200];
    begin(p);
    snprintf(line, sizeof line, "pid=%llu, %s, table=%.*s:%.*s", (unsigned long long)pr->id,
             pr->java_class, (int)pr->ns.len, (const char *)pr->ns.ptr, (int)pr->qualifier.len,
             (const char *)pr->qualifier.ptr);
    rq__put(p->text, "\"description\":");
    rq__put_json_cstr(p->text, line);
    rq__put(p->text, ",\"status\":");
    rq__put_json_cstr(p->text, pr->parked         ? "parked: its step failed permanently"
                               : pr->step == NULL ? "begins"
                                                  : pr->step);
    rq__put(p->text,
            ",\"state\":\"%s\",\"starttimems\":%lld,\"statustimems\":%lld,\"statetimems\":-1}",
            pr->waiting || pr->parked ? "WAITING" : "RUNNING", (long long)pr->submitted_ms,
            (long long)pr->updated_ms);
}

static void put_procedures(printer *p, rq_catalog *c)
{
    rq_arena arena = {0};
    rq_procedure *list;
    size_t count = 0;
    rq_err rc = rq_catalog_unfinished_procedures(c, &arena, &list, &count);
    if (rc != RQ_OK) p->text->rc = rc;
    for (size_t i = 0; rc == RQ_OK && i < count; i++)
        put_procedure(p, &list[i]);
    rq_arena_clear(&arena);
}

static bool is_json(const rq__query *query)
{
    const char *format = rq__query_value(query, "format");
    return format != NULL && strcmp(format, "json") == 0;
}

static const char *filter_of(const rq__query *query)
{
    const char *filter = rq__query_value(query, "filter");
    return filter == NULL || filter[0] == '\0' ? "general" : filter;
}

static void make(rq__page *page, const rq_http_sources *from, bool procedures, bool calls)
{
    rq_executor *executor = from->env->executor;
    printer p = {
        .text = &page->text, .now_ms = executor->now_ms(executor), .now_ns = rq_loop_clock_ns()};
    rq__put(p.text, "[");
    if (procedures && from->catalog != NULL) put_procedures(&p, from->catalog);
    if (calls) {
        put_calls(&p, from->rs, "regionserver");
        if (from->master != NULL) put_calls(&p, from->master, "master");
    }
    rq__put(p.text, "]\n");
}

void rq__tasks_make(rq__page *p, const rq_http_sources *from)
{
    make(p, from, true, true);
}

void rq__calls_make(rq__page *p, const rq_http_sources *from)
{
    make(p, from, false, true);
}

rq__later_kind rq__tasks_later(const rq__query *query)
{
    const char *filter = filter_of(query);
    if (!is_json(query)) return RQ__LATER_NONE;
    if (strcmp(filter, "all") == 0) return RQ__LATER_TASKS;
    bool calls = strcmp(filter, "handler") == 0 || strcmp(filter, "rpc") == 0 ||
                 strcmp(filter, "operation") == 0;
    return calls ? RQ__LATER_CALLS : RQ__LATER_NONE;
}

void rq__tasks_page(const rq__request *r, rq__page *page)
{
    if (is_json(r->query)) {
        make(page, r->from, strcmp(filter_of(r->query), "general") == 0, false);
        return;
    }
    page->type = "text/html; charset=utf-8";
    rq__status_page(r, page);
}
