/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual status: a cluster, or a stopped data folder, on one screen: servers, regions, sizes. */
#include "base/clock.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/cluster.h"
#include "cli/cluster_print.h"
#include "cli/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: rorqual status [--zk HOST:PORT | --bootstrap HOST:PORT | --data DIR] "
    "[--json]\n\n" RQ__CLUSTER_HELP RQ__CLUSTER_HELP_DATA
    "  --json                 one JSON object; sizes in bytes, times in milliseconds\n"
    "Asks the master of a cluster, Rorqual's or HBase's. A cluster's servers round sizes up to\n"
    "megabytes.\n"
    "exit codes: 0 no problems; 1 no answer, a region in transition, or problems in the folder;\n"
    "2 wrong arguments\n";

typedef struct arguments {
    rq__cluster_where where;
    bool json;
} arguments;

/* Exit code; -1: go on. */
static int parse(arguments *a, int argc, char **argv)
{
    const rq__option options[] = {RQ__CLUSTER_OPTIONS(&a->where),
                                  RQ__CLUSTER_OPTION_DATA(&a->where),
                                  {"json", .flag = &a->json}};
    int code = rq__parse_options("status", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code >= 0) return code;
    if (optind < argc) return rq__refuse("status", "unknown argument '%s'", argv[optind]);
    return rq__cluster_where_resolve(&a->where, "status");
}

/* --- as text ---------------------------------------------------------------------------------- */

static void print_sums(const rq__cluster *c)
{
    printf("tables    %zu, ", c->tables.count);
    rq__cluster_print_load(&c->total);
    putchar('\n');
}

static void print_cluster(const rq__cluster *c, int64_t now_ms)
{
    const rq_cluster_status *s = &c->status;
    rq__cluster_print_name(s);
    printf(", master ");
    rq__cluster_print_address(&s->master);
    putchar('\n');
    printf("servers   %zu live, %zu dead; balancer %s\n", s->server_count, s->dead_count,
           s->balancer_on ? "on" : "off");
    print_sums(c);
    rq__cluster_print_servers(c, now_ms);
    rq__cluster_print_transitions(s, now_ms);
}

static void print_folder(const rq__cluster *c, const char *folder)
{
    printf("folder    %s, %s\n", folder,
           c->was_open ? "not stopped cleanly: the next start replays the log" : "stopped cleanly");
    print_sums(c);
    printf("log       %" PRIu64 " record%s\n", c->log_records, c->log_records == 1 ? "" : "s");
    if (c->problems > 0)
        printf("problems  %" PRIu64 ": rorqual fsck %s names them\n", c->problems, folder);
}

/* --- as JSON ---------------------------------------------------------------------------------- */

static void json_number(const char *name, uint64_t n)
{
    rq__print_json_number(",", name, (int64_t)n);
}

static void json_cluster(const rq__cluster *c)
{
    const rq_cluster_status *s = &c->status;
    rq__cluster_json_name(s);
    rq__print_json_text(",", "masterHost", s->master.host);
    json_number("masterPort", s->master.port);
    json_number("deadServers", s->dead_count);
    printf(",\"balancer\":%s", s->balancer_on ? "true" : "false");
    json_number("tables", c->tables.count);
    rq__cluster_json_load(&c->total);
    rq__cluster_json_servers(c);
    rq__cluster_json_transitions(s);
    puts("}");
}

static void json_folder(const rq__cluster *c, const char *folder)
{
    rq__print_json_text("{", "folder", rq_slice_cstr(folder));
    printf(",\"stoppedInOrder\":%s", c->was_open ? "false" : "true");
    json_number("tables", c->tables.count);
    rq__cluster_json_load(&c->total);
    json_number("logRecords", c->log_records);
    json_number("problems", c->problems);
    puts("}");
}

static void print(const arguments *a, const rq__cluster *c)
{
    int64_t now_ms = (int64_t)(rq_clock_ns(CLOCK_REALTIME) / 1000000);
    if (c->is_live && a->json)
        json_cluster(c);
    else if (c->is_live)
        print_cluster(c, now_ms);
    else if (a->json)
        json_folder(c, a->where.data);
    else
        print_folder(c, a->where.data);
}

int rq__cmd_status(int argc, char **argv)
{
    arguments a = {0};
    rq__cluster_link link;
    rq__cluster c = {0};
    rq_error why = {.code = RQ_OK};
    int code = parse(&a, argc, argv);
    if (code >= 0) return code;
    rq_err rc = rq__cluster_open(&a.where, &link, &why);
    if (rc == RQ_OK) rc = rq__cluster_look(&link, &c, &why);
    if (rc == RQ_OK)
        print(&a, &c);
    else
        rq__cluster_print_failure(&a.where, "status", rc, &why);
    bool whole = rc == RQ_OK && c.status.transition_count == 0 && c.problems == 0;
    rq__cluster_clear(&c);
    rq__cluster_close(&link);
    return whole && fflush(stdout) == 0 ? 0 : 1;
}
