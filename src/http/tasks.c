/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /rs-status?format=json: what the server works on, as the shell's `processlist` reads it. `filter` is
 * all, general (procedures), handler, rpc or operation (calls in flight: there are no idle handlers).
 * HBASE: RSStatusServlet, TaskMonitor, MonitoredTaskImpl.toMap, MonitoredRPCHandlerImpl.
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
             c->waits_for_memory ? ", waits for memory for its answer" : "");
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
    free(list.calls);
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
    rq__put_json_cstr(p->text, pr->parked         ? "parked: its step failed for good"
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
    rq_err rc = rq_catalog_procedures(c, &arena, &list, &count);
    if (rc != RQ_OK) p->text->rc = rc;
    for (size_t i = 0; rc == RQ_OK && i < count; i++)
        if (!list[i].finished) put_procedure(p, &list[i]);
    rq_arena_clear(&arena);
}

static bool one_of(const char *filter, const char *a, const char *b, const char *c, const char *d)
{
    return strcmp(filter, a) == 0 || strcmp(filter, b) == 0 || strcmp(filter, c) == 0 ||
           strcmp(filter, d) == 0;
}

void rq__tasks_page(const rq__request *r, rq__page *page)
{
    const char *format = rq__parameter(r, "format"), *filter = rq__parameter(r, "filter");
    rq_executor *executor = r->from->env->executor;
    printer p = {
        .text = &page->text, .now_ms = executor->now_ms(executor), .now_ns = rq_loop_clock_ns()};
    if (format == NULL || strcmp(format, "json") != 0) {
        page->type = "text/html; charset=utf-8";
        rq__status_page(r, page);
        return;
    }
    if (filter == NULL || filter[0] == '\0') filter = "general";
    rq__put(p.text, "[");
    if (one_of(filter, "general", "all", "", "")) put_procedures(&p, r->from->catalog);
    if (one_of(filter, "all", "handler", "rpc", "operation")) {
        put_calls(&p, r->from->rs, "regionserver");
        put_calls(&p, r->from->master, "master");
    }
    rq__put(p.text, "]\n");
}
