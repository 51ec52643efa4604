/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual bench: puts a load on an HBase cluster, Rorqual or HBase. This file parses the arguments
 * and writes the reports; the load is in src/load, the protocol in src/client.
 *
 * Exit code: 0 success; 1 operations failed, values were wrong, or the run was not possible; 2
 * invalid arguments. */
#include "cli/args.h"
#include "cli/cli.h"

#include "load/load.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct bench_args {
    rq_load_options o;
    const char *json;
    const char *csv;
    const char *plot;
    bool quiet;
    bool help;
    bool bad;
    const char *option; /* the option whose value is being parsed */
} bench_args;

static void usage(FILE *out)
{
    /* clang-format off: a line of text is a line of code */
    fputs(
        "usage: rorqual bench [OPTION ...] WORKLOAD\n"
        "\n"
        "Creates a table on an HBase cluster (Rorqual or HBase), loads rows, runs the workload, "
        "prints\n"
        "throughput and latencies in milliseconds, and drops the table. An existing table is an "
        "error.\n"
        "\n"
        "examples\n"
        "  rorqual bench get                                  local server, 1 connection, 1 in "
        "flight\n"
        "  rorqual bench --connections 16 --depth 4 ycsb-a    64 requests in flight\n"
        "  rorqual bench --zk host:2181 --rate 5000 --seconds 60 put\n"
        "                                                     fixed rate, no coordinated omission\n"
        "  rorqual bench --keep --table t put && rorqual bench --table t --reuse scan-long\n"
        "\n"
        "cluster\n"
        "  --zk HOST:PORT          ZooKeeper of the cluster (127.0.0.1:2181)\n"
        "  --bootstrap HOST:PORT   master or region server to ask instead of ZooKeeper\n"
        "  --zk-root PATH          parent znode (/hbase)\n"
        "table\n"
        "  --table NAME            name (rorqual_bench); some workloads add _content and "
        "_relations\n"
        "  --replace               drop an existing table of this name first\n"
        "  --reuse                 use an existing table and its rows; load nothing, drop nothing\n"
        "  --keep                  do not drop the table at the end\n"
        "  --records N             rows to load (100000); users, for timeline to newest-columns "
        "(1000)\n"
        "  --regions N             regions of the new table (1)\n"
        "  --families N --columns N          column families; columns per row over all families "
        "(1, 1)\n"
        "  --key-bytes N --value-bytes N     sizes (16, 1000); also MIN-MAX, exp:MEAN\n"
        "  --keys sorted|hashed    row keys in the order of row numbers, or hashed (by workload)\n"
        "  --compression C --encoding E --bloom B --block-bytes N   family attributes, HBase's "
        "names\n"
        "  --flush                 flush after loading: reads come from files\n"
        "operations\n"
        "  --connections N         connections to each server (1)\n"
        "  --depth N               requests in flight on each connection (1)\n"
        "  --idle N                additional connections that stay idle (0)\n"
        "  --draw uniform|zipfian|latest|sequential|hot   distribution of keys (by workload)\n"
        "  --theta X               skew of zipfian and latest (0.99)\n"
        "  --batch N               rows of a batch (50)\n"
        "  --scan-rows N           rows of a short scan (1-100)\n"
        "  --caching N --scan-bytes N   row and byte limit of one scan response (no limit, "
        "2097152)\n"
        "  --followers N --posts N --events N --newest N   of the applications (20, 5, 100, 10)\n"
        "time\n"
        "  --seconds S             measured time (10)\n"
        "  --operations N          end after N operations, if that is sooner\n"
        "  --rate R                operations per second; latency counts from the scheduled time\n"
        "                          (0: no schedule, as fast as possible)\n"
        "  --awake                 poll instead of sleeping: latencies exclude the generator's "
        "wake-ups\n"
        "  --ramp S --warm S       unmeasured time before: rising load, then full load (0, 0)\n"
        "  --interval S            length of a point of the time series (a 60th of the measured "
        "time)\n"
        "  --retries N --pause MS --timeout MS   attempts after a failure, pause between them, "
        "time-out\n"
        "                          of an attempt (7, 100, 60000)\n"
        "  --give-up S             end when no operation has succeeded for S seconds (15)\n"
        "  --seed N                seed of all random choices (1)\n"
        "output\n"
        "  --verify                check every value read, then the whole table\n"
        "  --server-pid PID        report CPU and memory of this process on this machine\n"
        "  --json FILE --csv FILE --plot FILE.svg   reports; '-': standard output, instead of the "
        "text\n"
        "  --quiet                 no progress line\n"
        "\n"
        "exit codes: 0 success; 1 failed operations, wrong values, or the run could not start;\n"
        "2 wrong arguments\n"
        "\n"
        "workloads\n",
        out);
    for (const rq_load_workload_line *w = rq_load_workloads(); w->name != NULL; w++)
        fprintf(out, "  %-15s %s\n", w->name, w->help);
}

/* --- values of options ------------------------------------------------------------------------ */

static void bad_value(bench_args *a, const char *text)
{
    if (!a->bad) (void)rq__refuse("bench", "--%s %s: invalid value", a->option, text);
    a->bad = true;
}

static uint64_t take_u64(bench_args *a, const char *text)
{
    uint64_t v = 0;
    if (!rq__arg_number(text, &v)) bad_value(a, text);
    return v;
}

static unsigned take_u32(bench_args *a, const char *text)
{
    uint64_t v = take_u64(a, text);
    if (v > INT32_MAX) bad_value(a, text);
    return (unsigned)v;
}

static unsigned take_at_least_one(bench_args *a, const char *text)
{
    unsigned v = take_u32(a, text);
    if (v == 0) bad_value(a, text);
    return v;
}

static double take_double(bench_args *a, const char *text)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end != 0 || !(v >= 0) || v > 1e12) bad_value(a, text);
    return v;
}

static double take_positive(bench_args *a, const char *text)
{
    double v = take_double(a, text);
    if (v <= 0) bad_value(a, text);
    return v;
}

static void take_sizes(bench_args *a, const char *text, rq_sizes *ret)
{
    if (!rq_sizes_parse(text, ret)) bad_value(a, text);
}

static int take_name(bench_args *a, const char *text, const char *const *names)
{
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], text) == 0) return i;
    bad_value(a, text);
    return 0;
}

/* --- options ---------------------------------------------------------------------------------- */

/* X(name on the command line, takes a value, code that handles `text`) */
#define OPTIONS                                                                                    \
    X("zk", 1, o->client.zookeeper = text)                                                         \
    X("bootstrap", 1, o->client.bootstrap = text)                                                  \
    X("zk-root", 1, o->client.zk_root = text)                                                      \
    X("table", 1, o->table = text)                                                                 \
    X("replace", 0, o->replace = true)                                                             \
    X("reuse", 0, o->reuse = true)                                                                 \
    X("keep", 0, o->keep = true)                                                                   \
    X("records", 1, (o->records = take_u64(a, text), o->records_set = true))                       \
    X("regions", 1, o->regions = take_u32(a, text))                                                \
    X("families", 1, o->families = take_u32(a, text))                                              \
    X("columns", 1, o->columns = take_u32(a, text))                                                \
    X("key-bytes", 1, take_sizes(a, text, &o->key_len))                                            \
    X("value-bytes", 1, take_sizes(a, text, &o->value_len))                                        \
    X("keys", 1, o->sorted = take_name(a, text, orders))                                           \
    X("compression", 1, o->compression = text)                                                     \
    X("encoding", 1, o->encoding = text)                                                           \
    X("bloom", 1, o->bloom = text)                                                                 \
    X("block-bytes", 1, o->block_bytes = take_u32(a, text))                                        \
    X("flush", 0, o->flush = true)                                                                 \
    X("connections", 1, o->client.lanes = take_at_least_one(a, text))                              \
    X("depth", 1, o->depth = take_u32(a, text))                                                    \
    X("idle", 1, o->idle = take_u32(a, text))                                                      \
    X("draw", 1, o->draw = take_name(a, text, draws))                                              \
    X("theta", 1, o->theta = take_positive(a, text))                                               \
    X("batch", 1, o->batch = take_u32(a, text))                                                    \
    X("scan-rows", 1, take_sizes(a, text, &o->scan_rows))                                          \
    X("caching", 1, o->caching = take_u32(a, text))                                                \
    X("scan-bytes", 1, o->scan_bytes = take_u64(a, text))                                          \
    X("followers", 1, o->followers = take_u32(a, text))                                            \
    X("posts", 1, o->posts = take_u32(a, text))                                                    \
    X("events", 1, o->events = take_u32(a, text))                                                  \
    X("newest", 1, o->newest = take_u32(a, text))                                                  \
    X("seconds", 1, o->seconds = take_positive(a, text))                                           \
    X("operations", 1, o->operations = take_u64(a, text))                                          \
    X("rate", 1, o->rate = take_double(a, text))                                                   \
    X("awake", 0, o->awake = true)                                                                 \
    X("ramp", 1, o->ramp_s = take_double(a, text))                                                 \
    X("warm", 1, o->warm_s = take_double(a, text))                                                 \
    X("interval", 1, o->interval_s = take_double(a, text))                                         \
    X("retries", 1, o->client.retries = take_u32(a, text))                                         \
    X("pause", 1, o->client.pause_ms = take_u32(a, text))                                          \
    X("timeout", 1, o->client.rpc_timeout_ms = take_u32(a, text))                                  \
    X("give-up", 1, o->give_up_s = take_double(a, text))                                           \
    X("seed", 1, o->seed = take_u64(a, text))                                                      \
    X("verify", 0, o->verify = true)                                                               \
    X("server-pid", 1, o->server_pid = (int)take_u32(a, text))                                     \
    X("json", 1, a->json = text)                                                                   \
    X("csv", 1, a->csv = text)                                                                     \
    X("plot", 1, a->plot = text)                                                                   \
    X("quiet", 0, a->quiet = true)                                                                 \
    X("help", 0, a->help = true)

static const struct option long_options[] = {
#define X(name, value, action) {name, value, NULL, 0},
    OPTIONS
#undef X
    {0},
};

static void take_option(bench_args *a, int index, const char *text)
{
    static const char *const orders[] = {"hashed", "sorted", NULL};
    static const char *const draws[] = {"uniform", "zipfian", "latest", "sequential", "hot", NULL};
    rq_load_options *o = &a->o;
    const char *name = a->option = long_options[index].name;
#define X(option, value, action)                                                                   \
    if (strcmp(name, option) == 0) action;
    OPTIONS
#undef X
}

/* Exit code; -1: go on. */
static int take_args(bench_args *a, int argc, char **argv)
{
    int index;
    int c;
    optind = 0; /* getopt may have been used before */
    rq_load_options_init(&a->o);
    while ((c = getopt_long(argc, argv, ":h", long_options, &index)) != -1) {
        if (c == 'h')
            a->help = true;
        else if (c == 0)
            take_option(a, index, optarg);
        else
            return rq__refuse_option("bench", c, argv);
        if (a->bad) return 2;
    }
    if (a->help) {
        usage(stdout);
        return 0;
    }
    if (optind != argc - 1) return rq__refuse("bench", "expected one workload");
    a->o.workload = argv[optind];
    if (a->o.client.zookeeper != NULL && a->o.client.bootstrap != NULL)
        return rq__refuse("bench", "--zk and --bootstrap exclude each other");
    if (a->o.replace && a->o.reuse)
        return rq__refuse("bench", "--replace and --reuse exclude each other");
    const char *at = a->o.client.zookeeper != NULL ? a->o.client.zookeeper : a->o.client.bootstrap;
    if (at != NULL && !rq_client_is_address(at))
        return rq__refuse("bench", "'%s' is not host:port", at);
    if (a->o.client.bootstrap == NULL && a->o.client.zookeeper == NULL)
        a->o.client.zookeeper = "127.0.0.1:2181";
    return -1;
}

/* --- reports ---------------------------------------------------------------------------------- */

typedef enum report_kind { JSON, CSV, PLOT } report_kind;

static void print_as(report_kind kind, const rq_load_options *o, const rq_load_report *r, FILE *f)
{
    if (kind == JSON)
        rq_load_print_json(o, r, f);
    else if (kind == CSV)
        rq_load_print_csv(r, f);
    else
        rq_load_plot(o, r, f);
}

/* False: the file could not be written. */
static bool write_report(report_kind kind, const char *path, const rq_load_options *o,
                         const rq_load_report *r)
{
    if (path == NULL) return true;
    bool to_stdout = strcmp(path, "-") == 0;
    FILE *f = to_stdout ? stdout : fopen(path, "we");
    bool good = f != NULL;
    if (good) {
        print_as(kind, o, r, f);
        good = fflush(f) == 0 && ferror(f) == 0;
        if (!to_stdout) good = (fclose(f) == 0) && good;
    }
    if (!good) fprintf(stderr, "rorqual bench: cannot write %s: %s\n", path, strerror(errno));
    return good;
}

static bool is_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

/* Set by Ctrl-C: the run ends and reports its results so far. A second one kills the process.
 * Signals need file-scope state. */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    interrupted = 1;
    signal(signal_number, SIG_DFL);
}

int rq__cmd_bench(int argc, char **argv)
{
    bench_args a = {0};
    rq_load_report r = {0};
    rq_error why = {0};
    int code = take_args(&a, argc, argv);
    if (code >= 0) return code;
    signal(SIGINT, on_interrupt);
    a.o.stop = &interrupted;
    if (!a.quiet && isatty(STDERR_FILENO)) a.o.live = stderr;
    a.o.notices = stderr;
    rq_err rc = rq_load_run(&a.o, &r, &why);
    if (rc == RQ_E_INVALID) {
        rq_load_report_clear(&r);
        return rq__refuse("bench", "%s", why.message);
    }
    if (rc != RQ_OK) fprintf(stderr, "rorqual bench: %s\n", why.message);
    bool good = rc == RQ_OK && r.failed == 0 && r.wrong == 0 && !r.gave_up;
    if (r.latency.counts != NULL && r.seconds > 0) {
        if (!is_stdout(a.json) && !is_stdout(a.csv) && !is_stdout(a.plot))
            rq_load_print(&a.o, &r, stdout);
        good &= write_report(JSON, a.json, &a.o, &r);
        good &= write_report(CSV, a.csv, &a.o, &r);
        good &= write_report(PLOT, a.plot, &a.o, &r);
    }
    rq_load_report_clear(&r);
    return good ? 0 : 1;
}
