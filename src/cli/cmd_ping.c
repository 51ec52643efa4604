/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual ping: makes one request to a cluster's registry, master and region server each. For
 * health checks of containers and load balancers. */
#include "cli/args.h"
#include "cli/cli.h"

#include "client/client.h"

#include <getopt.h>
#include <stdio.h>

static const char help[] =
    "usage: rorqual ping [--zk HOST:PORT | --bootstrap HOST:PORT] [--same-host]\n"
    "                    [--timeout SECONDS] [--quiet]\n\n"
    "  --zk HOST:PORT         ZooKeeper of the cluster (127.0.0.1:2181)\n"
    "  --bootstrap HOST:PORT  or a master or region server\n"
    "  --zk-root PATH         parent znode (/hbase)\n"
    "  --same-host            connect to master and region server on that host too, not on the\n"
    "                         advertised host; for health checks beside the server\n"
    "  --timeout SECONDS      time-out of each call (5)\n"
    "  --quiet                print nothing on success\n"
    "Asks the registry, the master, and the region server that holds hbase:meta.\n"
    "exit codes: 0 all of them answer; 1 some do not; 2 wrong arguments\n";

typedef struct arguments {
    rq_client_options client;
    bool same_host;
    bool quiet;
} arguments;

static bool parse_timeout(const char *text, unsigned *ret_ms)
{
    uint64_t seconds;
    if (!rq__arg_number(text, &seconds) || seconds == 0 || seconds > 3600) return false;
    *ret_ms = (unsigned)seconds * 1000;
    return true;
}

/* Exit code; -1: go on. */
static int apply(arguments *a, int option, const char *value)
{
    switch (option) {
    case 'z':
        a->client.zookeeper = value;
        return -1;
    case 'b':
        a->client.bootstrap = value;
        return -1;
    case 'r':
        a->client.zk_root = value;
        return -1;
    case 's':
        a->same_host = true;
        return -1;
    case 'q':
        a->quiet = true;
        return -1;
    case 't':
        if (parse_timeout(value, &a->client.rpc_timeout_ms)) return -1;
        return rq__refuse("ping", "--timeout %s: not a number of seconds from 1 to 3600", value);
    default: /* 'h' */
        fputs(help, stdout);
        return 0;
    }
}

static int parse(arguments *a, int argc, char **argv)
{
    static const struct option options[] = {
        {"zk", required_argument, NULL, 'z'},      {"bootstrap", required_argument, NULL, 'b'},
        {"zk-root", required_argument, NULL, 'r'}, {"timeout", required_argument, NULL, 't'},
        {"same-host", no_argument, NULL, 's'},     {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
        if (option == '?' || option == ':') return rq__refuse_option("ping", option, argv);
        int code = apply(a, option, optarg);
        if (code >= 0) return code;
    }
    if (optind < argc) return rq__refuse("ping", "unknown argument '%s'", argv[optind]);
    if (a->client.zookeeper != NULL && a->client.bootstrap != NULL)
        return rq__refuse("ping", "--zk and --bootstrap exclude each other");
    if (a->client.bootstrap == NULL && a->client.zookeeper == NULL)
        a->client.zookeeper = "127.0.0.1:2181";
    return -1;
}

static void print_answer(const arguments *a, const rq_client *c, int64_t ns)
{
    uint16_t port;
    const char *host = rq_client_master_host(c, &port);
    printf("%s answers: master %s:%u, cluster %s, %.1f ms\n",
           a->client.zookeeper != NULL ? a->client.zookeeper : a->client.bootstrap, host, port,
           rq_client_cluster_id(c), (double)ns / 1e6);
}

int rq__cmd_ping(int argc, char **argv)
{
    arguments a = {.client = {.rpc_timeout_ms = 5000}};
    rq_client *c = NULL;
    rq_error why = {.code = RQ_OK};
    int code = parse(&a, argc, argv);
    if (code >= 0) return code;
    int64_t begun = rq_client_now_ns();
    rq_err rc = rq_client_open(&a.client, &c, &why);
    if (rc == RQ_OK) rc = rq_client_ping(c, a.same_host, &why);
    if (rc != RQ_OK)
        fprintf(stderr, "rorqual ping: %s\n", why.message);
    else if (!a.quiet)
        print_answer(&a, c, rq_client_now_ns() - begun);
    rq_client_close(c);
    return rc == RQ_OK ? 0 : 1;
}
