/* SPDX-License-Identifier: Apache-2.0 */
/* See cluster_print.h. */
#include "cli/cluster_print.h"

#include "cli/print.h"

#include <inttypes.h>
#include <stdio.h>

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* --- as text ---------------------------------------------------------------------------------- */

void rq__cluster_print_age(int64_t ms)
{
    int64_t minutes = ms < 0 ? 0 : ms / 60000;
    if (minutes >= 1440)
        printf("%" PRId64 " d %" PRId64 " h", minutes / 1440, minutes / 60 % 24);
    else if (minutes >= 60)
        printf("%" PRId64 " h %" PRId64 " min", minutes / 60, minutes % 60);
    else
        printf("%" PRId64 " min", minutes);
}

void rq__cluster_print_address(const rq_server_name *s)
{
    rq__print_bytes(s->host);
    printf(":%u", s->port);
}

void rq__cluster_print_load(const rq__cluster_row *r)
{
    printf("%" PRIu64 " region%s, %s in %" PRIu64 " file%s", r->regions, plural(r->regions),
           RQ__AMOUNT(r->bytes, true), r->files, plural(r->files));
}

void rq__cluster_print_name(const rq_cluster_status *s)
{
    printf("cluster   ");
    rq__print_bytes(s->cluster_id);
    if (s->rorqual.len > 0) {
        printf(", Rorqual ");
        rq__print_bytes(s->rorqual);
    }
    printf(", HBase ");
    rq__print_bytes(s->version);
}

static void print_server(const rq__cluster_row *s, int64_t now_ms)
{
    printf("server    ");
    rq__print_bytes(s->name);
    printf(": up ");
    rq__cluster_print_age(now_ms - s->start_ms);
    printf(", ");
    rq__cluster_print_load(s);
    printf(", memstores %s\n"
           "          %" PRIu64 " requests/s; %s reads, %s writes; memory %s, of %s for data\n",
           RQ__AMOUNT(s->memstore_bytes, true), s->requests_s, RQ__AMOUNT(s->reads, false),
           RQ__AMOUNT(s->writes, false), RQ__AMOUNT(s->heap_used, true),
           RQ__AMOUNT(s->heap_max, true));
}

void rq__cluster_print_servers(const rq__cluster *c, int64_t now_ms)
{
    for (size_t i = 0; i < c->servers.count; i++)
        print_server(&c->servers.list[i], now_ms);
}

void rq__cluster_print_transitions(const rq_cluster_status *s, int64_t now_ms)
{
    for (size_t i = 0; i < s->transition_count; i++) {
        printf("not open  ");
        rq__print_bytes(s->transitions[i].region);
        printf(": %s for ", rq_region_state_name(s->transitions[i].state));
        rq__cluster_print_age(now_ms - s->transitions[i].since_ms);
        putchar('\n');
    }
}

/* --- as JSON ---------------------------------------------------------------------------------- */

static void json_number(const char *name, uint64_t n)
{
    rq__print_json_number(",", name, (int64_t)n);
}

void rq__cluster_json_name(const rq_cluster_status *s)
{
    rq__print_json_text("{", "cluster", s->cluster_id);
    rq__print_json_text(",", "version", s->version);
    if (s->rorqual.len > 0) rq__print_json_text(",", "rorqualVersion", s->rorqual);
}

void rq__cluster_json_load(const rq__cluster_row *r)
{
    json_number("regions", r->regions);
    json_number("files", r->files);
    json_number("fileBytes", r->bytes);
}

void rq__cluster_json_servers(const rq__cluster *c)
{
    printf(",\"servers\":[");
    for (size_t i = 0; i < c->servers.count; i++) {
        const rq__cluster_row *s = &c->servers.list[i];
        rq__print_json_text(i == 0 ? "{" : ",{", "server", s->name);
        json_number("startMs", (uint64_t)s->start_ms);
        rq__cluster_json_load(s);
        json_number("memstoreBytes", s->memstore_bytes);
        json_number("reads", s->reads);
        json_number("writes", s->writes);
        json_number("requestsPerSecond", s->requests_s);
        json_number("heapUsedBytes", s->heap_used);
        json_number("heapMaxBytes", s->heap_max);
        putchar('}');
    }
    putchar(']');
}

void rq__cluster_json_transitions(const rq_cluster_status *s)
{
    printf(",\"notOpen\":[");
    for (size_t i = 0; i < s->transition_count; i++) {
        const rq_transition_status *t = &s->transitions[i];
        rq__print_json_text(i == 0 ? "{" : ",{", "region", t->region);
        rq__print_json_text(",", "state", rq_slice_cstr(rq_region_state_name(t->state)));
        json_number("sinceMs", (uint64_t)t->since_ms);
        putchar('}');
    }
    putchar(']');
}
