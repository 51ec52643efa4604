/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rorqual cluster status: the servers of a cluster, live and dead, its masters, the regions that are not served, and
 * whether the cluster would survive the loss of one more server, all from the master's answer to GetClusterStatus.
 *
 * The cluster survives the loss of one more server if another server can take its regions, another process can become
 * the master, and no region is unserved or in transition. ZooKeeper and the storage are not checked.
 */
#include "base/clock.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/cluster.h"
#include "cli/cluster_print.h"
#include "cli/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME "cluster status"

static const char help[] =
    "usage: rorqual cluster status [--zk HOST:PORT | --bootstrap HOST:PORT] [--json]\n"
    "\n"
    "  status                 masters, servers, dead servers, regions that are not served, and "
    "whether\n"
    "                         the cluster can lose one more server\n"
    "\n" RQ__CLUSTER_HELP
    "  --json                 one JSON object; sizes in bytes, times in milliseconds\n"
    "Asks the master of a cluster, Rorqual's or HBase's. Regions of dead servers are listed until "
    "other\n"
    "servers have reported them, which may take three seconds. The state of ZooKeeper and of the\n"
    "storage is not checked.\n"
    "exit codes: 0 the cluster can lose one more server; 1 it cannot, or no answer; 2 wrong "
    "arguments\n";

typedef struct arguments {
    rq__cluster_where where;
    bool json;
} arguments;

typedef struct verdict {
    bool may_lose_one;
    const char *reason; /* why not, or under which condition; NULL: none */
    uint64_t unserved;  /* regions that are open by the master, and that no live server has */
} verdict;

/* Exit code; -1: go on. */
static int parse(arguments *a, int argc, char **argv)
{
    const rq__option options[] = {RQ__CLUSTER_OPTIONS(&a->where), {"json", .flag = &a->json}};
    int code = rq__parse_options(NAME, help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code >= 0) return code;
    if (optind == argc) return rq__refuse("cluster", "expected a verb: status");
    if (strcmp(argv[optind], "status") != 0)
        return rq__refuse("cluster", "unknown verb '%s'; the only verb is status", argv[optind]);
    if (optind + 1 < argc) return rq__refuse(NAME, "unknown argument '%s'", argv[optind + 1]);
    return rq__cluster_where_resolve(&a->where, NAME);
}

/* --- the verdict ------------------------------------------------------------------------------ */

/* HBase's counts of tables lack hbase:meta. */
static bool is_counted(rq_slice table)
{
    return !rq_slice_eq(table, RQ_SLICE_LIT("hbase:meta"));
}

static bool is_meta(const rq_table_status *t)
{
    return rq_slice_eq(t->ns, RQ_SLICE_LIT("hbase")) &&
           rq_slice_eq(t->qualifier, RQ_SLICE_LIT("meta"));
}

static uint64_t count_unserved(const rq_cluster_status *s)
{
    uint64_t open = 0, served = 0;
    for (size_t i = 0; i < s->table_count; i++)
        if (!is_meta(&s->tables[i])) open += s->tables[i].open;
    for (size_t i = 0; i < s->region_count; i++)
        served += is_counted(s->regions[i].table);
    return open > served ? open - served : 0;
}

static verdict judge(const rq_cluster_status *s)
{
    verdict v = {.unserved = count_unserved(s)};
    if (s->server_count < 2)
        v.reason = "there is no other server to take its regions";
    else if (s->standby_count == 0)
        v.reason = "there is no standby master";
    else if (v.unserved > 0)
        v.reason = "regions of a dead server are not yet open on other servers";
    else if (s->transition_count > 0)
        v.reason = "some regions are not open";
    else
        v.may_lose_one = true;
    if (v.may_lose_one && s->server_count == 2)
        v.reason = "if its process ends; if the only two servers cannot reach each other, neither "
                   "takes over";
    return v;
}

/* --- as text ---------------------------------------------------------------------------------- */

/* `before` and `after` stand around the time since the server's start. */
static void print_names(const char *what, const rq_server_name *list, size_t count, int64_t now_ms,
                        const char *before, const char *after)
{
    for (size_t i = 0; i < count; i++) {
        printf("%-10s", what);
        rq__cluster_print_address(&list[i]);
        printf(": %s ", before);
        rq__cluster_print_age(now_ms - list[i].start_ms);
        puts(after);
    }
}

static void print_text(const rq__cluster *c, const verdict *v)
{
    const rq_cluster_status *s = &c->status;
    int64_t now_ms = (int64_t)(rq_clock_ns(CLOCK_REALTIME) / 1000000);
    rq__cluster_print_name(s);
    printf("\nservers   %zu live, %zu dead; %zu standby master%s; balancer %s\n", s->server_count,
           s->dead_count, s->standby_count, s->standby_count == 1 ? "" : "s",
           s->balancer_on ? "on" : "off");
    print_names("master", &s->master, 1, now_ms, "up", "");
    print_names("standby", s->standbys, s->standby_count, now_ms, "up", "");
    rq__cluster_print_servers(c, now_ms);
    print_names("dead", s->dead, s->dead_count, now_ms, "started", " ago");
    rq__cluster_print_transitions(s, now_ms);
    if (v->unserved > 0) printf("unserved  %" PRIu64 " regions\n", v->unserved);
    printf("can the cluster lose one more server? %s%s%s\n", v->may_lose_one ? "yes" : "no",
           v->reason == NULL ? "" : ", ", v->reason == NULL ? "" : v->reason);
}

/* --- as JSON ---------------------------------------------------------------------------------- */

static void json_address(const char *before, const char *name, const rq_server_name *s)
{
    char text[300];
    snprintf(text, sizeof text, "%.*s:%u", (int)s->host.len, (const char *)s->host.ptr, s->port);
    rq__print_json_text(before, name, rq_slice_cstr(text));
}

static void json_names(const char *what, const rq_server_name *list, size_t count)
{
    printf(",\"%s\":[", what);
    for (size_t i = 0; i < count; i++) {
        json_address(i == 0 ? "{" : ",{", "server", &list[i]);
        rq__print_json_number(",", "startMs", list[i].start_ms);
        putchar('}');
    }
    putchar(']');
}

static void print_json(const rq__cluster *c, const verdict *v)
{
    const rq_cluster_status *s = &c->status;
    rq__cluster_json_name(s);
    json_address(",", "master", &s->master);
    rq__print_json_number(",", "masterStartMs", s->master.start_ms);
    json_names("standbys", s->standbys, s->standby_count);
    printf(",\"balancer\":%s", s->balancer_on ? "true" : "false");
    rq__cluster_json_servers(c);
    json_names("dead", s->dead, s->dead_count);
    rq__cluster_json_transitions(s);
    rq__print_json_number(",", "unservedRegions", (int64_t)v->unserved);
    printf(",\"mayLoseOneServer\":%s", v->may_lose_one ? "true" : "false");
    if (v->reason != NULL) rq__print_json_text(",", "reason", rq_slice_cstr(v->reason));
    puts("}");
}

int rq__cmd_cluster(int argc, char **argv)
{
    arguments a = {0};
    rq__cluster_link link;
    rq__cluster c = {0};
    rq_error why = {.code = RQ_OK};
    verdict v = {0};
    int code = parse(&a, argc, argv);
    if (code >= 0) return code;
    rq_err rc = rq__cluster_open(&a.where, &link, &why);
    if (rc == RQ_OK) rc = rq__cluster_look(&link, &c, &why);
    if (rc == RQ_OK)
        v = judge(&c.status);
    else
        rq__cluster_print_failure(&a.where, NAME, rc, &why);
    if (rc == RQ_OK && a.json)
        print_json(&c, &v);
    else if (rc == RQ_OK)
        print_text(&c, &v);
    rq__cluster_clear(&c);
    rq__cluster_close(&link);
    return v.may_lose_one && fflush(stdout) == 0 ? 0 : 1;
}
