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
    "  --quiet                print only regions that fail\n"
    "  --json                 a JSON object for each region\n"
    "Reads one row of each region of the tables (all enabled tables), and prints the time of each "
    "read.\nA region without a server, or a table named that is not enabled, fails.\n"
    "exit codes: 0 all regions answer in time; 1 at least one does not; 2 wrong arguments\n";

#define SLOW_MS 6000
#define RETRIES 3

typedef struct arguments {
    rq__transfer_arguments a;
    uint64_t slow_ms;
    bool json;
    uint64_t regions, failed;
} arguments;

static void print_json(const rq_canary_read *r, const char *state)
{
    rq__print_json_text("{", "table", rq_slice_cstr(r->table));
    rq__print_json_text(",", "region", r->region.name);
    rq__print_json_text(",", "server", rq_slice_cstr(r->region.host == NULL ? "" : r->region.host));
    rq__print_json_number(",", "port", r->region.port);
    rq__print_json_number(",", "microseconds", r->ns / 1000);
    rq__print_json_text(",", "state", rq_slice_cstr(state));
    if (r->err != RQ_OK) rq__print_json_text(",", "error", rq_slice_cstr(r->why));
    puts("}");
}

static void print_text(const rq_canary_read *r, const char *state)
{
    printf("%s\t", state);
    rq__print_bytes(r->region.name.len > 0 ? r->region.name : rq_slice_cstr(r->table));
    if (r->region.host != NULL && r->region.host[0] != '\0')
        printf("\t%s:%u", r->region.host, r->region.port);
    if (r->err != RQ_OK)
        printf("\t%s\n", r->why);
    else
        printf("\t%.1f ms\n", (double)r->ns / 1e6);
}

static void take_read(void *ctx, const rq_canary_read *r)
{
    arguments *x = ctx;
    bool slow = r->err == RQ_OK && (uint64_t)r->ns > x->slow_ms * 1000000;
    const char *state = r->err != RQ_OK ? "FAILED" : slow ? "SLOW" : "ok";
    x->regions++;
    x->failed += slow || r->err != RQ_OK;
    if (x->a.quiet && !slow && r->err == RQ_OK) return;
    (x->json ? print_json : print_text)(r, state);
}

int rq__cmd_canary(int argc, char **argv)
{
    arguments x = {.a.command = "canary", .slow_ms = SLOW_MS};
    const rq__option options[] = {RQ__CLUSTER_OPTIONS(&x.a.where),
                                  {"slow", .number = &x.slow_ms},
                                  {"quiet", .flag = &x.a.quiet},
                                  {"json", .flag = &x.json}};
    int code = rq__parse_options("canary", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code < 0) code = rq__transfer_resolve(&x.a);
    if (code >= 0) return code;
    if (x.slow_ms > 3600000) return rq__refuse("canary", "--slow: at most 3600000 ms");
    rq_error why = {.code = RQ_OK};
    x.a.options.client.retries = RETRIES;
    const rq_canary c = {.options = &x.a.options,
                         .tables = (const char *const *)(argv + optind),
                         .table_count = (size_t)(argc - optind),
                         .read = take_read,
                         .ctx = &x};
    rq_err rc = rq_canary_run(&c, &why);
    if (rc == RQ_OK && !x.a.quiet && !x.json)
        printf("%" PRIu64 " region%s, %" PRIu64 " failed\n", x.regions, x.regions == 1 ? "" : "s",
               x.failed);
    x.a.quiet = true;
    code = rq__transfer_end(&x.a, "", &(rq_transfer_counts){0}, rc, &why);
    return code == 0 && x.failed > 0 ? 1 : code;
}
