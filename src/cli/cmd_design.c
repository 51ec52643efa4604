/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual design: simulates a table's design, or judges a live table by a sample of its rows. */
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/design_watch.h"
#include "design/table.h"
#include "design/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 240000, SAMPLES_MAX = 10000000, FILE_MAX = 1 << 20 };

static const char help[] =
    "usage: rorqual design [--json] [--html FILE] [--samples COUNT] [--seed NUMBER]\n"
    "                      [--trace FILE] FILE\n"
    "       rorqual design [--json] [--html FILE] --from URL [--chance PERCENT] [--servers COUNT]\n"
    "                      [--regions COUNT] TABLE\n"
    "       rorqual design [--json] [--html FILE] --watch SECONDS\n"
    "                      [--zk HOST:PORT | --bootstrap HOST:PORT] TABLE\n"
    "\n"
    "  --json                 print the report as JSON, with load by key range and server over "
    "time\n"
    "  --html FILE            also write the report as a page with heat maps\n"
    "  --samples COUNT        rows to simulate for each variant (240000)\n"
    "  --seed NUMBER          seed of the simulation's random numbers\n"
    "  --trace FILE           replay accesses instead of drawing them: lines of TIME, r or w, KEY "
    "and,\n"
    "                         if known, a written row's BYTES, separated by tabs. TIME is in\n"
    "                         milliseconds since 1970, KEY text with \\xNN in the schema's "
    "format.\n"
    "                         The schema's period, writes, reads, arrival and values are ignored\n"
    "  --from URL             a live table: hbase://HOST:PORT, hbase+rpc://HOST:PORT, file:DIR\n"
    "  --chance PERCENT       share of its rows to sample (100); the table is read once\n"
    "  --servers COUNT        servers of the cluster to judge (10)\n"
    "  --regions COUNT        regions of the table, with equal numbers of rows (one for each "
    "server)\n"
    "  --watch SECONDS        a live table: the requests to its regions during this time, as its\n"
    "                         servers count them. A region that moves or is split meanwhile\n"
    "                         counts where it was at the beginning, without some of the requests\n"
    "                         around the change\n" RQ__CLUSTER_HELP
    "Simulates regions, splits and servers over a period, names hot spots and their remedies, and\n"
    "compares the remedies. FILE (- for standard input) describes the table, one fact on each "
    "line:\n"
    "\n"
    "    table orders\n"
    "    key user:u64 time:desc-ms                  # the format: rorqual key --help\n"
    "    value user zipf 1M 1.1                     # random, uniform LOW HIGH, zipf COUNT SKEW,\n"
    "                                               # sequence, now, choice TEXT TEXT\n"
    "    family d columns 5 qualifier 8 value 100   # bytes\n"
    "    servers 10\n"
    "    regions 1                                  # regions 64 presplit\n"
    "    region-size 10G\n"
    "    period 24h\n"
    "    writes 10000/s\n"
    "    reads 20000/s within 1h                    # of rows written within that time\n"
    "    arrival daily 3                            # constant, daily PEAK, bursts PEAK\n"
    "\n"
    "exit codes: 0 no hot spot; 3 a hot spot; 1 a wrong schema, or no such table; 2 wrong "
    "arguments\n";

typedef struct arguments {
    bool json;
    const char *html, *from, *trace;
    uint64_t samples, seed, chance, servers, regions, watch_s;
    rq__cluster_where where; /* of --watch */
    const char *name;        /* the file or the table */
} arguments;

typedef struct design {
    rq_schema schema;
    rq_trace trace; /* most 0: none */
    rq_plan plans[RQ_REMEDIES];
    rq_review review;
} design;

/* Exit code; -1: go on. */
static int check_watch(arguments *a)
{
    const rq__cluster_where *w = &a->where;
    bool names_cluster = w->client.zookeeper != NULL || w->client.bootstrap != NULL ||
                         w->client.zk_root != NULL || w->timeout_s > 0;
    if (a->watch_s == 0 && names_cluster)
        return rq__refuse("design", "--zk, --bootstrap, --zk-root and --timeout need --watch");
    if (a->watch_s == 0) return -1;
    if (a->from != NULL || a->trace != NULL)
        return rq__refuse("design", "--watch excludes --from and --trace");
    return rq__cluster_where_resolve(&a->where, "design");
}

/* Exit code; -1: go on. */
static int parse(arguments *a, int argc, char **argv)
{
    const rq__option options[] = {
        {"json", .flag = &a->json},         {"html", .text = &a->html},
        {"samples", .number = &a->samples}, {"seed", .number = &a->seed},
        {"trace", .text = &a->trace},       {"from", .text = &a->from},
        {"chance", .number = &a->chance},   {"servers", .number = &a->servers},
        {"regions", .number = &a->regions}, {"watch", .seconds = &a->watch_s},
        RQ__CLUSTER_OPTIONS(&a->where)};
    int code = rq__parse_options("design", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code >= 0) return code;
    if (argc - optind != 1)
        return rq__refuse("design",
                          a->from == NULL && a->watch_s == 0 ? "name one file" : "name one table");
    a->name = argv[optind];
    if (a->from == NULL && (a->chance > 0 || a->servers > 0 || a->regions > 0))
        return rq__refuse("design", "--chance, --servers and --regions need --from");
    if (a->from != NULL && a->trace != NULL)
        return rq__refuse("design", "--trace and --from exclude each other");
    if (a->trace != NULL && strcmp(a->trace, "-") == 0 && strcmp(a->name, "-") == 0)
        return rq__refuse("design", "standard input is either the schema or the trace");
    if (a->chance > 100) return rq__refuse("design", "--chance is a percentage, 1 to 100");
    if (a->samples > SAMPLES_MAX || a->servers > 10000 || a->regions > 1000000)
        return rq__refuse("design", "at most %d samples, 10000 servers, 1000000 regions",
                          SAMPLES_MAX);
    if (a->samples == 0) a->samples = SAMPLES;
    if (a->samples < 12000) a->samples = 12000;
    return check_watch(a);
}

/* --- input ------------------------------------------------------------------------------------ */

static rq_err read_file(const char *path, rq_buf *out, rq_error *why)
{
    char chunk[4096];
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (f == NULL) return rq_fail(why, RQ_E_NOT_FOUND, "%s: %m", path);
    size_t n;
    rq_err rc = RQ_OK;
    while (rc == RQ_OK && out->len < FILE_MAX && (n = fread(chunk, 1, sizeof chunk, f)) > 0)
        rc = rq_buf_append(out, chunk, n);
    if (rc == RQ_OK && ferror(f)) rc = rq_fail(why, RQ_E_IO, "%s: %m", path);
    if (rc == RQ_OK && memchr(out->len > 0 ? (const char *)out->ptr : "", 0, out->len) != NULL)
        rc = rq_fail(why, RQ_E_INVALID, "%s is not a text file", path);
    if (rc == RQ_OK) rc = rq_buf_append_u8(out, 0);
    if (f != stdin) fclose(f);
    return rc;
}

/* The design and each remedy that fits it. */
static rq_err simulate_schema(design *d, const arguments *a, rq_error *why)
{
    for (unsigned i = 0; i < RQ_REMEDIES; i++) {
        size_t n = d->review.count;
        rq_err rc = d->trace.most > 0
                        ? rq_plan_of_trace(&d->schema, (rq_remedy)i, &d->trace, &d->plans[n], why)
                        : rq_plan_of_schema(&d->schema, (rq_remedy)i, a->samples, a->seed + 1,
                                            &d->plans[n], why);
        if (rc == RQ_E_UNSUPPORTED && i > 0) {
            rq_plan_clear(&d->plans[n]);
            rq_error_clear(why);
            continue;
        }
        if (rc == RQ_OK) rc = rq_simulate(&d->plans[n], &d->review.outlooks[n], why);
        d->review.count++; /* is cleared, also after an error */
        if (rc != RQ_OK) return rc;
    }
    return RQ_OK;
}

static rq_err read_trace(design *d, const arguments *a, rq_error *why)
{
    if (a->trace == NULL) return RQ_OK;
    rq_error wrong = {.code = RQ_OK};
    FILE *f = strcmp(a->trace, "-") == 0 ? stdin : fopen(a->trace, "r");
    if (f == NULL) return rq_fail(why, RQ_E_NOT_FOUND, "%s: %m", a->trace);
    rq_err rc = rq_trace_read(f, a->samples, a->seed + 1, &d->trace, &wrong);
    if (f != stdin) fclose(f);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s: %s", a->trace, wrong.message);
}

static rq_err judge_file(design *d, const arguments *a, rq_error *why)
{
    rq_buf text = {0};
    rq_failure failure = {.size = sizeof failure};
    rq_err rc = read_file(a->name, &text, why);
    if (rc == RQ_OK) rc = rq_schema_parse((const char *)text.ptr, &d->schema, why);
    rq_buf_clear(&text);
    if (rc == RQ_OK) rc = read_trace(d, a, why);
    if (rc != RQ_OK) return rc;
    d->review.table = d->schema.table;
    d->review.schema = &d->schema;
    rc = rq_key_lint(d->schema.format, &d->review.advice, &failure);
    return rc == RQ_OK ? simulate_schema(d, a, why) : rq_fail(why, rc, "%s", failure.message);
}

static rq_err judge_table(design *d, const arguments *a, rq_error *why)
{
    rq_failure failure = {.size = sizeof failure};
    rq_connect_options options = {.size = sizeof options, .must_exist = true};
    rq_from_table from = {.chance = a->chance == 0 ? 1 : (double)a->chance / 100,
                          .servers = a->servers == 0 ? 10 : a->servers};
    rq_db *db;
    rq_table *table = NULL;
    from.regions = a->regions == 0 ? from.servers : a->regions;
    rq_err rc = rq_connect(a->from, &options, &db, &failure);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", failure.message);
    rc = rq_table_open(db, a->name, &table, &failure);
    if (rc != RQ_OK) rc = rq_fail(why, rc, "%s", failure.message);
    if (rc == RQ_OK) rc = rq_plan_of_table(table, &from, &d->plans[0], why);
    if (rc == RQ_OK) rc = rq_simulate(&d->plans[0], &d->review.outlooks[0], why);
    d->review.table = a->name;
    d->review.count = 1;
    rq_table_close(table);
    rq_err closed = rq_disconnect(db, &failure);
    return rc == RQ_OK && closed != RQ_OK ? rq_fail(why, closed, "%s", failure.message) : rc;
}

static rq_err judge_requests(design *d, const arguments *a, rq_error *why)
{
    rq_err rc = rq__watch_table(&a->where, a->name, a->watch_s, &d->plans[0], why);
    if (rc == RQ_OK) rc = rq_simulate(&d->plans[0], &d->review.outlooks[0], why);
    d->review.table = a->name;
    d->review.count = 1;
    return rc;
}

static rq_err judge(design *d, const arguments *a, rq_error *why)
{
    if (a->watch_s > 0) return judge_requests(d, a, why);
    return a->from != NULL ? judge_table(d, a, why) : judge_file(d, a, why);
}

/* --- output ----------------------------------------------------------------------------------- */

static rq_err write_page(const design *d, const char *path, rq_error *why)
{
    rq_buf page = {0};
    rq_err rc = rq_report_html(&d->review, &page);
    FILE *f = rc == RQ_OK ? fopen(path, "w") : NULL;
    if (rc == RQ_OK && (f == NULL || fwrite(page.ptr, 1, page.len, f) != page.len))
        rc = rq_fail(why, RQ_E_IO, "%s: %m", path);
    if (f != NULL && fclose(f) != 0 && rc == RQ_OK) rc = rq_fail(why, RQ_E_IO, "%s: %m", path);
    rq_buf_clear(&page);
    return rc;
}

static rq_err print(const design *d, const arguments *a, rq_error *why)
{
    rq_buf text = {0};
    rq_err rc = a->json ? rq_report_json(&d->review, &text) : rq_report_text(&d->review, &text);
    if (rc == RQ_OK) {
        fwrite(text.ptr, 1, text.len, stdout);
        if (a->json) putchar('\n');
    }
    rq_buf_clear(&text);
    if (rc == RQ_OK && a->html != NULL) rc = write_page(d, a->html, why);
    return rc;
}

static void clear(design *d)
{
    for (size_t i = 0; i < d->review.count; i++)
        rq_outlook_clear(&d->review.outlooks[i]);
    for (size_t i = 0; i < RQ_REMEDIES; i++)
        rq_plan_clear(&d->plans[i]);
    rq_names_free(d->review.advice);
    rq_trace_clear(&d->trace);
    rq_schema_clear(&d->schema);
    free(d);
}

int rq__cmd_design(int argc, char **argv)
{
    arguments a = {0};
    rq_error why = {.code = RQ_OK};
    int code = parse(&a, argc, argv);
    if (code >= 0) return code;
    design *d = calloc(1, sizeof *d);
    rq_err rc = d == NULL ? rq_no_memory(&why) : judge(d, &a, &why);
    if (rc == RQ_OK) rc = print(d, &a, &why);
    if (rc != RQ_OK)
        fprintf(stderr, "rorqual design: %s%s%s\n", a.from == NULL ? a.name : "",
                a.from == NULL ? ": " : "", why.message[0] != '\0' ? why.message : rq_err_text(rc));
    code = rc != RQ_OK ? 1 : rq_review_is_hot(&d->review) ? 3 : 0;
    if (d != NULL) clear(d);
    return fflush(stdout) == 0 ? code : 1;
}
