/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual ping: makes one request to a cluster's registry, master and region server each. For
 * health checks of containers and load balancers. */
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/cluster.h"

#include <stdio.h>

static const char help[] =
    "usage: rorqual ping [--zk HOST:PORT | --bootstrap HOST:PORT] [--same-host]\n"
    "                    [--timeout SECONDS] [--quiet]\n\n" RQ__CLUSTER_HELP
    "  --same-host            connect to master and region server on that host too, not on the\n"
    "                         advertised host; for health checks beside the server\n"
    "  --quiet                print nothing on success\n"
    "Asks the registry, the master, and the region server that holds hbase:meta.\n"
    "exit codes: 0 all of them answer; 1 some do not; 2 wrong arguments\n";

typedef struct arguments {
    rq__cluster_where where;
    bool same_host;
    bool quiet;
} arguments;

/* Exit code; -1: go on. */
static int parse(arguments *a, int argc, char **argv)
{
    const rq__option options[] = {RQ__CLUSTER_OPTIONS(&a->where),
                                  {"same-host", .flag = &a->same_host},
                                  {"quiet", .flag = &a->quiet}};
    int code = rq__parse_options("ping", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code >= 0) return code;
    if (optind < argc) return rq__refuse("ping", "unknown argument '%s'", argv[optind]);
    return rq__cluster_where_resolve(&a->where, "ping");
}

static void print_answer(const arguments *a, const rq_client *c, int64_t ns)
{
    uint16_t port;
    const char *host = rq_client_master_host(c, &port);
    printf("%s answers: master %s:%u, cluster %s, %.1f ms\n",
           a->where.client.zookeeper != NULL ? a->where.client.zookeeper
                                             : a->where.client.bootstrap,
           host, port, rq_client_cluster_id(c), (double)ns / 1e6);
}

int rq__cmd_ping(int argc, char **argv)
{
    arguments a = {0};
    rq_client *c = NULL;
    rq_error why = {.code = RQ_OK};
    int code = parse(&a, argc, argv);
    if (code >= 0) return code;
    int64_t begun = rq_client_now_ns();
    rq_err rc = rq_client_open(&a.where.client, &c, &why);
    if (rc == RQ_OK) rc = rq_client_ping(c, a.same_host, &why);
    if (rc != RQ_OK)
        fprintf(stderr, "rorqual ping: %s\n", why.message);
    else if (!a.quiet)
        print_answer(&a, c, rq_client_now_ns() - begun);
    rq_client_close(c);
    return rc == RQ_OK ? 0 : 1;
}
