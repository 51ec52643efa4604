/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual canary: reads a row of every region (transfer/canary.h). For monitoring. */
#include "cli/cli.h"
#include "cli/print.h"
#include "cli/transfers.h"
#include "transfer/canary.h"

#include <inttypes.h>
#include <stdio.h>

static const char help[] =
    "usage: rorqual canary [OPTION ...] [TABLE ...]\n\n" RQ__CLUSTER_HELP
    "  --slow MS              a region that takes longer than MS milliseconds fails (6000)\n"
    "  --quiet                print only regions and tables that fail\n"
    "  --json                 a JSON object for each region\n"
    "Reads one row of each region of the tables (all enabled tables), and prints the time of each "
    "read.\nA region without a server fails. Tables that are not enabled, or are being disabled "
    "or\n"
    "dropped, are skipped.\n"
    "exit codes: 0 all regions answer in time; 1 wrong arguments;\n"
    "            4 a table cannot be read, or does not exist, or the cluster does not answer\n"
    "            (2 if no tables are named); 5 a region does not answer in time\n";

/* HBASE: CanaryTool. Its code 3 is a time-out of the whole run, which this command does not have. */
enum { EXIT_USAGE = 1, EXIT_INIT_ERROR = 2, EXIT_ERROR = 4, EXIT_REGIONS_FAILED = 5 };

#define SLOW_MS 6000
#define RETRIES 3

typedef struct arguments {
    rq__transfer_arguments a;
    uint64_t slow_ms;
    bool json;
    uint64_t regions, failed, tables_failed;
} arguments;

static void print_json(const rq_canary_read *r, const char *state)
{
    rq__print_json_text("{", "table", rq_slice_cstr(r->table));
    rq__print_json_text(",", "region", r->region.name);
    rq__print_json_text(",", "server", rq_slice_cstr(r->region.host == NULL ? "" : r->region.host));
    rq__print_json_number(",", "port", r->region.port);
    rq__print_json_number(",", "microseconds", r->ns / 1000);
    rq__print_json_text(",", "state", rq_slice_cstr(state));
    const char *key = r->kind == RQ_CANARY_SKIPPED ? "reason" : "error";
    if (r->why[0] != '\0') rq__print_json_text(",", key, rq_slice_cstr(r->why));
    puts("}");
}

static void print_text(const rq_canary_read *r, const char *state)
{
    printf("%s\t", state);
    rq__print_bytes(r->region.name.len > 0 ? r->region.name : rq_slice_cstr(r->table));
    if (r->region.host != NULL && r->region.host[0] != '\0')
        printf("\t%s:%u", r->region.host, r->region.port);
    if (r->why[0] != '\0')
        printf("\t%s\n", r->why);
    else
        printf("\t%.1f ms\n", (double)r->ns / 1e6);
}

static const char *state_of(const rq_canary_read *r, bool slow)
{
    if (r->kind == RQ_CANARY_SKIPPED) return "skipped";
    return r->err != RQ_OK ? "FAILED" : slow ? "SLOW" : "ok";
}

static void take_read(void *ctx, const rq_canary_read *r)
{
    arguments *x = ctx;
    bool slow = r->err == RQ_OK && (uint64_t)r->ns > x->slow_ms * 1000000;
    bool fails = slow || r->err != RQ_OK;
    x->regions += r->kind == RQ_CANARY_REGION;
    x->failed += fails && r->kind == RQ_CANARY_REGION;
    x->tables_failed += r->kind == RQ_CANARY_TABLE;
    if (fails || !x->a.quiet) (x->json ? print_json : print_text)(r, state_of(r, slow));
}

static void print_total(const arguments *x)
{
    rq__print_count(x->regions, "region");
    printf(", %" PRIu64 " failed", x->failed);
    if (x->tables_failed > 0) {
        fputs("; ", stdout);
        rq__print_count(x->tables_failed, "table");
        fputs(" failed", stdout);
    }
    putchar('\n');
}

/* HBase's tool counts as initialized once it has the names of its tables. If none are named, every failure but that of a
 * region comes before that. */
static int exit_code(const arguments *x, bool is_named, rq_err rc)
{
    if (rc != RQ_OK || x->tables_failed > 0) return is_named ? EXIT_ERROR : EXIT_INIT_ERROR;
    return x->failed > 0 ? EXIT_REGIONS_FAILED : 0;
}

/* Other commands exit with 2 for wrong arguments. */
static int resolve(arguments *x, const rq__option *options, size_t count, int argc, char **argv)
{
    int code = rq__parse_options("canary", help, options, count, argc, argv);
    if (code < 0) code = rq__transfer_resolve(&x->a);
    if (code < 0 && x->slow_ms > 3600000) code = rq__refuse("canary", "--slow: at most 3600000 ms");
    return code > 0 ? EXIT_USAGE : code;
}

int rq__cmd_canary(int argc, char **argv)
{
    arguments x = {.a.command = "canary", .slow_ms = SLOW_MS};
    const rq__option options[] = {RQ__CLUSTER_OPTIONS(&x.a.where),
                                  {"slow", .number = &x.slow_ms},
                                  {"quiet", .flag = &x.a.quiet},
                                  {"json", .flag = &x.json}};
    int code = resolve(&x, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code >= 0) return code;
    rq_error why = {.code = RQ_OK};
    x.a.options.client.retries = RETRIES;
    const rq_canary c = {.options = &x.a.options,
                         .tables = (const char *const *)(argv + optind),
                         .table_count = (size_t)(argc - optind),
                         .read = take_read,
                         .ctx = &x};
    rq_err rc = rq_canary_run(&c, &why);
    if (rc == RQ_OK && !x.a.quiet && !x.json) print_total(&x);
    x.a.quiet = true;
    int lost = rq__transfer_end(&x.a, "", &(rq_transfer_counts){0}, rc, &why);
    code = exit_code(&x, c.table_count > 0, rc);
    return code == 0 ? lost : code;
}
