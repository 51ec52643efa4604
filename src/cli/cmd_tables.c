/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual tables: the tables of a cluster or of a stopped data folder, or the regions of one table,
 * with their sizes and requests, a line each. */
#include "base/clock.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/cluster.h"
#include "cli/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: rorqual tables [--zk HOST:PORT | --bootstrap HOST:PORT | --data DIR]\n"
    "                      [--rates SECONDS] [--json] [TABLE]\n\n" RQ__CLUSTER_HELP
        RQ__CLUSTER_HELP_DATA
    "  --rates SECONDS        also requests per second, measured for SECONDS\n"
    "  --json                 a JSON object on each line; sizes in bytes\n"
    "Lists the tables, or with TABLE (ns:name) the regions of that table. Reads and writes are "
    "counted\n"
    "since a region was opened. A cluster's servers round sizes up to megabytes.\n"
    "exit codes: 0 success; 1 the cluster does not answer, or the table does not exist;\n"
    "2 wrong arguments\n";

typedef struct arguments {
    rq__cluster_where where;
    uint64_t rate_seconds; /* 0: no rates */
    const char *table;
    bool json;
} arguments;

/* Exit code; -1: go on. */
static int parse(arguments *a, int argc, char **argv)
{
    const rq__option options[] = {RQ__CLUSTER_OPTIONS(&a->where),
                                  RQ__CLUSTER_OPTION_DATA(&a->where),
                                  {"rates", .seconds = &a->rate_seconds},
                                  {"json", .flag = &a->json}};
    int code = rq__parse_options("tables", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code >= 0) return code;
    if (argc - optind > 1) return rq__refuse("tables", "expected at most one table");
    a->table = argv[optind]; /* NULL: none */
    if (a->where.data != NULL && a->rate_seconds > 0)
        return rq__refuse("tables", "--data and --rates exclude each other");
    return rq__cluster_where_resolve(&a->where, "tables");
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Columns begin after the names; each is as wide as its widest entry. */
typedef struct shape {
    int name_width;
    bool is_live, has_rates, is_regions;
} shape;

static int printed_width(rq_slice s)
{
    int width = 0;
    char text[1024];
    while (s.len > 0) {
        rq_slice part = {s.ptr, s.len < 200 ? s.len : 200};
        width += (int)rq_bytes_to_string(part, text, sizeof text);
        s.ptr += part.len;
        s.len -= part.len;
    }
    return width;
}

static void print_padded(rq_slice s, int width)
{
    rq__print_bytes(s);
    printf("%*s", width > printed_width(s) ? width - printed_width(s) : 0, "");
}

static void print_header(const shape *s)
{
    printf("%-*s", s->name_width, s->is_regions ? "REGION" : "TABLE");
    if (s->is_regions)
        printf("  %-32s", "ENCODED NAME");
    else
        printf("  %-8s  %7s", "STATE", "REGIONS");
    if (!s->is_regions && s->is_live) printf("  %6s", "OPEN");
    printf("  %6s  %8s", "FILES", "SIZE");
    if (s->is_live) printf("  %8s  %8s  %8s", "MEMSTORE", "READS", "WRITES");
    if (s->has_rates) printf("  %8s  %8s", "READS/S", "WRITES/S");
    putchar('\n');
}

static void print_row(const shape *s, const rq__cluster_row *r)
{
    print_padded(r->name, s->name_width);
    printf("  ");
    if (s->is_regions)
        print_padded(r->encoded, 32);
    else
        printf("%-8s  %7" PRIu64, r->state, r->regions);
    if (!s->is_regions && s->is_live) printf("  %6" PRIu64, r->open);
    printf("  %6" PRIu64 "  %8s", r->files, RQ__AMOUNT(r->bytes, true));
    if (s->is_live)
        printf("  %8s  %8s  %8s", RQ__AMOUNT(r->memstore_bytes, true), RQ__AMOUNT(r->reads, false),
               RQ__AMOUNT(r->writes, false));
    if (s->has_rates)
        printf("  %8s  %8s", RQ__AMOUNT(r->reads_s, false), RQ__AMOUNT(r->writes_s, false));
    putchar('\n');
}

static void print_json(const shape *s, const rq__cluster_row *r)
{
    rq__print_json_text("{", s->is_regions ? "region" : "table", r->name);
    if (s->is_regions) {
        rq__print_json_text(",", "encodedName", r->encoded);
    } else {
        rq__print_json_text(",", "state", rq_slice_cstr(r->state));
        rq__print_json_number(",", "regions", (int64_t)r->regions);
    }
    if (s->is_live && !s->is_regions) {
        rq__print_json_number(",", "openRegions", (int64_t)r->open);
        rq__print_json_number(",", "regionsInTransition", (int64_t)r->in_transition);
    }
    rq__print_json_number(",", "files", (int64_t)r->files);
    rq__print_json_number(",", "fileBytes", (int64_t)r->bytes);
    if (s->is_live) {
        rq__print_json_number(",", "memstoreBytes", (int64_t)r->memstore_bytes);
        rq__print_json_number(",", "reads", (int64_t)r->reads);
        rq__print_json_number(",", "writes", (int64_t)r->writes);
    }
    if (s->has_rates)
        printf(",\"readsPerSecond\":%.3f,\"writesPerSecond\":%.3f", r->reads_s, r->writes_s);
    puts("}");
}

static bool is_of(const rq__cluster_row *r, const char *table)
{
    size_t len = table == NULL ? 0 : strlen(table);
    return table == NULL ||
           (r->name.len > len && memcmp(r->name.ptr, table, len) == 0 && r->name.ptr[len] == ',');
}

#define NAME_WIDTH_MAX 60

static void print(const arguments *a, const rq__cluster *c)
{
    const rq__cluster_rows *rows = a->table == NULL ? &c->tables : &c->regions;
    shape s = {.name_width = 6,
               .is_live = c->is_live,
               .has_rates = a->rate_seconds > 0,
               .is_regions = a->table != NULL};
    for (size_t i = 0; i < rows->count; i++) {
        int width = is_of(&rows->list[i], a->table) ? printed_width(rows->list[i].name) : 0;
        if (width > s.name_width) s.name_width = width < NAME_WIDTH_MAX ? width : NAME_WIDTH_MAX;
    }
    if (!a->json) print_header(&s);
    for (size_t i = 0; i < rows->count; i++) {
        if (!is_of(&rows->list[i], a->table)) continue;
        if (a->json)
            print_json(&s, &rows->list[i]);
        else
            print_row(&s, &rows->list[i]);
    }
}

/* --- looks ------------------------------------------------------------------------------------ */

static rq_err look(const arguments *a, rq__cluster_link *l, rq__cluster *ret, rq_error *why)
{
    rq__cluster before;
    RQ_TRY(rq__cluster_look(l, ret, why));
    if (a->rate_seconds == 0) return RQ_OK;
    before = *ret;
    rq_clock_sleep_ns((uint64_t)a->rate_seconds * 1000000000);
    rq_err rc = rq__cluster_look(l, ret, why);
    if (rc == RQ_OK) rq__cluster_rates(ret, &before);
    rq__cluster_clear(&before);
    return rc;
}

static rq_err check_table(const arguments *a, const rq__cluster *c, rq_error *why)
{
    if (a->table == NULL) return RQ_OK;
    for (size_t i = 0; i < c->tables.count; i++)
        if (rq_slice_eq(c->tables.list[i].name, rq_slice_cstr(a->table))) return RQ_OK;
    return rq_fail(why, RQ_E_TABLE_NOT_FOUND, "there is no table %s", a->table);
}

int rq__cmd_tables(int argc, char **argv)
{
    arguments a = {0};
    rq__cluster_link link;
    rq__cluster c = {0};
    rq_error why = {.code = RQ_OK};
    int code = parse(&a, argc, argv);
    if (code >= 0) return code;
    rq_err rc = rq__cluster_open(&a.where, &link, &why);
    if (rc == RQ_OK) rc = look(&a, &link, &c, &why);
    if (rc == RQ_OK) rc = check_table(&a, &c, &why);
    if (rc == RQ_OK)
        print(&a, &c);
    else
        rq__cluster_print_failure(&a.where, "tables", rc, &why);
    rq__cluster_clear(&c);
    rq__cluster_close(&link);
    return rc == RQ_OK && fflush(stdout) == 0 ? 0 : 1;
}
