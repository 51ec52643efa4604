/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The read path without a network: gets of one row and scans with filters, through a region's
 * scanner, from the memstore and from one file. The table is that of bench/filters (three columns a
 * row, about 170 bytes); for the gets it has one column of 1 kB. Prints CPU time of the calling
 * thread per get and per cell examined.
 *
 *   region_read FOLDER [ROWS] [ROUNDS] [ONLY]
 *
 * ONLY selects one line ("get memstore", "get file", "none", "Value = binary" …), for runs under
 * callgrind (--toggle-collect=measure_gets or measure_scan*), whose counts do not depend on other
 * load. "both": the row is in the memstore and in a file; "six": a sixth of the rows is in the memstore and in each
 * of five files; "scanner": by a region scanner instead of rq_region_get; "scan": by a scan of the row, for which bloom filters are not used.
 */
#include "table_schema.h"

#include "base/config.h"
#include "base/random.h"
#include "filter/language.h"
#include "region/engine.h"
#include "region/region_scanner.h"
#include "vfs/vfs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PER_GROUP 1000
#define BATCH 500
#define VALUE_BYTES 1000
#define ANSWER_BYTES ((uint64_t)2 << 20)
#define GETS 200000

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void check(rq_err rc, const char *what, const rq_error *why)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s: %s\n", what, rq_err_text(rc), why != NULL ? why->message : "");
    exit(1);
}

typedef struct bench {
    rq_env env;
    rq_engine *engine;
    rq_arena arena;
    const char *only; /* the selected line; NULL: all */
    unsigned rounds;
} bench;

typedef struct table {
    rq_table_schema *schema;
    rq_region_info info;
    rq_region *region;
} table;

static void open_table(bench *b, char *name, table *t)
{
    rq_error why = {0};
    t->schema = bench_table_schema(name, "f", NULL, 0);
    check(rq_region_info_make(&b->arena, RQ_SLICE_LIT("default"), rq_slice_cstr(name),
                              (rq_slice){0}, (rq_slice){0}, 1700000000000, 0, &t->info),
          "info", NULL);
    check(rq_region_create(b->engine, &t->info, t->schema, &why), "create", &why);
    check(rq_region_open(b->engine, &t->info, t->schema, &t->region, &why), "open", &why);
}

static void close_table(table *t)
{
    check(rq_region_close(t->region, true, NULL), "close", NULL);
    rq_region_unref(t->region);
    rq_table_schema_unref(t->schema);
}

static void flush(table *t)
{
    bool flushed;
    rq_error why = {0};
    check(rq_region_flush(t->region, (rq_slice){0}, &flushed, &why), "flush", &why);
}

/* --- the rows --------------------------------------------------------------------------------- */
#define CELLS_MAX 3

typedef struct row {
    char key[32];
    uint8_t values[CELLS_MAX][80];
    rq_cell cells[CELLS_MAX];
    rq_mutation mutation;
} row;

static void set_cell(rq_cell *c, const char *qualifier, const void *value, size_t len)
{
    *c = (rq_cell){.family = (const uint8_t *)"f",
                   .family_len = 1,
                   .qualifier = (const uint8_t *)qualifier,
                   .qualifier_len = (uint32_t)strlen(qualifier),
                   .timestamp = RQ_TIMESTAMP_LATEST,
                   .type = RQ_TYPE_PUT,
                   .value = value,
                   .value_len = (uint32_t)len};
}

/* Makes a row as tests/java's FilterBench writes it. */
static void make_filter_row(row *r, unsigned i)
{
    unsigned chance = (unsigned)((uint64_t)i * 2654435761u >> 7 & 0x7fffffff);
    snprintf(r->key, sizeof r->key, "%04u_%07u", i / PER_GROUP, i % PER_GROUP);
    rq_put_be64(r->values[0], chance % PER_GROUP);
    set_cell(&r->cells[0], "number", r->values[0], 8);
    int len = snprintf((char *)r->values[1], sizeof r->values[1],
                       "The quick brown fox jumps over %u lazy dogs", chance);
    set_cell(&r->cells[1], "text", r->values[1], (size_t)len);
    len = snprintf((char *)r->values[2], sizeof r->values[2], "word%u", chance % PER_GROUP);
    set_cell(&r->cells[2], "word", r->values[2], (size_t)len);
    r->mutation.cell_count = 3;
}

/* The rows that make_get_row makes: first_row, first_row + row_step, … */
static unsigned first_row, row_step = 1;

static void make_get_row(row *r, unsigned i)
{
    static const uint8_t value[VALUE_BYTES];
    snprintf(r->key, sizeof r->key, "%026u", first_row + i * row_step);
    set_cell(&r->cells[0], "0", value, VALUE_BYTES);
    r->mutation.cell_count = 1;
}

static void fill(table *t, unsigned count, void (*make)(row *r, unsigned i))
{
    row *rows = calloc(BATCH, sizeof *rows);
    rq_row_op *ops = calloc(BATCH, sizeof *ops);
    rq_error why = {0};
    for (unsigned n = 0; n < count; n += BATCH) {
        unsigned batch = count - n < BATCH ? count - n : BATCH;
        for (unsigned i = 0; i < batch; i++) {
            row *r = &rows[i];
            r->mutation = (rq_mutation){.type = RQ_MUTATE_PUT, .cells = r->cells};
            make(r, n + i);
            r->mutation.row = rq_slice_cstr(r->key);
            ops[i] = (rq_row_op){.mutations = &r->mutation, .mutation_count = 1};
        }
        check(rq_region_write_sync(t->region, ops, batch, &why), "write", &why);
    }
    free(ops);
    free(rows);
}

/* --- reads ------------------------------------------------------------------------------------ */
static const rq_scan whole_table = {
    .include_start = true,
    .cache_blocks = true,
    .max_versions = 1,
    .time_range = {0, INT64_MAX},
    .store_limit = -1,
};

typedef struct get_kind {
    bool all_columns; /* all columns instead of the one that PerformanceEvaluation reads */
    bool by_scanner;  /* by a region scanner instead of rq_region_get */
    bool by_scan;     /* by a region scanner for a scan */
} get_kind;

static uint32_t get_by_scanner(const table *t, const rq_scan *scan, rq_arena *arena,
                               rq_read_ctx *ctx, rq_cellblock *out)
{
    rq_error why = {0};
    rq_scan_limits limits = {0};
    rq_scan_state state;
    rq_region_scanner *s;
    check(rq_region_scanner_open(t->region, scan, 0, arena, &s, &why), "open", &why);
    check(rq_region_scanner_next(s, &limits, ctx, out, &state, &why), "next", &why);
    rq_region_scanner_close(s);
    return out->count;
}

/* One request: does what the service does for a Get in the region. Returns the number of cells. */
static uint32_t get(const table *t, rq_slice key, get_kind kind, rq_arena *arena, rq_cellblock *out)
{
    static const rq_slice column = {(const uint8_t *)"0", 1};
    static const rq_scan_family family = {
        .family = {(const uint8_t *)"f", 1}, .qualifiers = &column, .qualifier_count = 1};
    rq_error why = {0};
    rq_read_ctx ctx = {.may_block = true};
    rq_scan scan = whole_table;
    scan.is_get = !kind.by_scan;
    if (!kind.all_columns) {
        scan.families = &family;
        scan.family_count = 1;
    }
    scan.start_row = scan.stop_row = key;
    scan.include_stop = true;
    bool answered = false;
    if (!kind.by_scanner && !kind.by_scan)
        check(rq_region_get(t->region, &scan, arena, &ctx, out, &answered, &why), "get", &why);
    if (!answered) get_by_scanner(t, &scan, arena, &ctx, out);
    rq_read_ctx_clear(&ctx);
    uint32_t count = out->count;
    rq_cellblock_reset(out);
    rq_arena_reset(arena);
    return count;
}

__attribute__((noinline)) static uint64_t measure_gets(const table *t, unsigned rows, get_kind kind,
                                                       rq_arena *a, rq_cellblock *out,
                                                       rq_random *random)
{
    uint64_t cells = 0;
    char key[32];
    for (unsigned i = 0; i < GETS; i++) {
        snprintf(key, sizeof key, "%026u", (unsigned)rq_random_below(random, rows));
        cells += get(t, rq_slice_cstr(key), kind, a, out);
    }
    return cells;
}

static bool is_wanted(const bench *b, const char *name)
{
    return b->only == NULL || strcmp(b->only, name) == 0;
}

static void run_gets(const bench *b, const char *name, const table *t, unsigned rows, get_kind kind)
{
    if (!is_wanted(b, name)) return;
    rq_arena arena = {0};
    rq_cellblock out = {0};
    rq_random random;
    rq_random_seed(&random, 1);
    uint64_t best = UINT64_MAX;
    for (unsigned i = 0; i <= b->rounds; i++) {
        uint64_t begun = cpu_ns();
        uint64_t cells = measure_gets(t, rows, kind, &arena, &out, &random);
        uint64_t ns = cpu_ns() - begun;
        if (cells != GETS) check(RQ_E_STATE, name, NULL);
        if (i > 0 && ns < best) best = ns;
    }
    printf("%-28s %8.1f ns a get\n", name, (double)best / GETS);
    rq_arena_clear(&arena);
    rq_cellblock_clear(&out);
}

__attribute__((noinline)) static uint64_t measure_scan(const table *t, const rq_scan *scan,
                                                       rq_arena *arena, rq_cellblock *out)
{
    rq_error why = {0};
    rq_read_ctx ctx = {.may_block = true};
    rq_scan_limits limits = {.bytes = ANSWER_BYTES, .may_stop_inside_row = true};
    rq_scan_state state = RQ_SCAN_MORE;
    rq_region_scanner *s;
    uint64_t cells = 0;
    check(rq_region_scanner_open(t->region, scan, 0, arena, &s, &why), "open", &why);
    while (state != RQ_SCAN_DONE) {
        check(rq_region_scanner_next(s, &limits, &ctx, out, &state, &why), "next", &why);
        if (out->bytes.len < ANSWER_BYTES / 2 && state != RQ_SCAN_DONE) continue;
        cells += out->count;
        rq_cellblock_reset(out);
    }
    rq_region_scanner_close(s);
    rq_read_ctx_clear(&ctx);
    return cells;
}

static void run_scan(const bench *b, const char *name, const char *filter, const table *t,
                     unsigned rows)
{
    if (!is_wanted(b, name)) return;
    rq_error why = {0};
    rq_cellblock out = {0};
    uint64_t best = UINT64_MAX;
    uint64_t cells = 0;
    for (unsigned i = 0; i <= b->rounds; i++) {
        rq_arena arena = {0};
        rq_scan scan = whole_table;
        if (filter != NULL) {
            rq_slice class_name, bytes;
            check(rq_filter_language_compile(rq_slice_cstr(filter), &arena, &class_name, &bytes,
                                             &why),
                  name, &why);
            check(rq_filter_parse(class_name, bytes, &arena, &scan.filter, &why), name, &why);
        }
        uint64_t begun = cpu_ns();
        cells = measure_scan(t, &scan, &arena, &out);
        uint64_t ns = cpu_ns() - begun;
        if (i > 0 && ns < best) best = ns;
        rq_arena_clear(&arena);
    }
    printf("%-28s %8.1f ns a row, %6.1f ns a cell of the table, %" PRIu64 " cells found\n", name,
           (double)best / rows, (double)best / rows / 3, cells);
    rq_cellblock_clear(&out);
}

static const struct {
    const char *name, *filter;
} scans[] = {
    {"none", NULL},
    {"FirstKeyOnly", "FirstKeyOnlyFilter()"},
    {"Row = substring", "RowFilter(=, 'substring:_0000500')"},
    {"Row = regex", "RowFilter(=, 'regexstring:^[0-9]{4}_0000500$')"},
    {"Prefix", "PrefixFilter('0005')"},
    {"Row = binary", "RowFilter(=, 'binary:0000_0000500')"},
    {"Row < binary", "RowFilter(<, 'binary:0000_0000000')"},
    {"SingleColumnValue =", "SingleColumnValueFilter('f', 'word', =, 'binary:word77', true, true)"},
    {"SingleColumnValue substring",
     "SingleColumnValueFilter('f', 'text', =, 'substring:OVER 1234', true, true)"},
    {"SingleColumnValue regex",
     "SingleColumnValueFilter('f', 'text', =, 'regexstring:over [0-9]*12345 lazy', true, true)"},
    {"Value = binary", "ValueFilter(=, 'binary:word77')"},
    {"Value = substring", "ValueFilter(=, 'substring:OVER 1234')"},
    {"Qualifier and Value",
     "QualifierFilter(=, 'binary:word') AND ValueFilter(=, 'binary:word77')"},
};

#define SOURCES 6

/* Each of five files and the memstore has a sixth of the rows. */
static void fill_sources(table *t, unsigned rows)
{
    row_step = SOURCES;
    for (first_row = 0; first_row < SOURCES; first_row++) {
        fill(t, rows / SOURCES, make_get_row);
        if (first_row + 1 < SOURCES) flush(t);
    }
    first_row = 0;
    row_step = 1;
}

static bool wants_gets(const bench *b)
{
    return b->only == NULL || strncmp(b->only, "get", 3) == 0;
}

static bool wants_scans(const bench *b)
{
    return b->only == NULL || strncmp(b->only, "get", 3) != 0;
}

int main(int argc, char **argv)
{
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1, 1};
    if (argc < 2) return 2;
    unsigned rows = argc > 2 ? (unsigned)atoi(argv[2]) : 100000;
    rq_log log = {.fd = 2, .level = RQ_LOG_WARN};
    bench b = {.env = {.log = &log},
               .rounds = argc > 3 ? (unsigned)atoi(argv[3]) : 5,
               .only = argc > 4 ? argv[4] : NULL};
    rq_config *config;
    table t;
    check(rq_vfs_posix_new(argv[1], &b.env.vfs, NULL), argv[1], NULL);
    check(rq_thread_executor_new(threads, &b.env.executor), "executor", NULL);
    check(rq_epoch_new(&b.env.epoch), "epoch", NULL);
    check(rq_config_new(&config), "config", NULL);
    check(rq_config_set(config, "rorqual.wal.sync", "handover", NULL), "sync", NULL);
    check(rq_config_set(config, "rorqual.memory", "4g", NULL), "memory", NULL);
    check(rq_config_set(config, "hbase.hstore.compaction.min", "100", NULL), "compactions", NULL);
    check(rq_config_set(config, "hbase.hregion.memstore.flush.size", "2147483648", NULL), "flush",
          NULL);
    rq_engine_options o = {.config = config};
    check(rq_engine_open(&b.env, &o, &b.engine, NULL), "engine", NULL);
    if (wants_gets(&b)) {
        open_table(&b, "gets", &t);
        fill(&t, rows, make_get_row);
        static const get_kind column = {0}, whole = {.all_columns = true};
        static const get_kind scanner = {.by_scanner = true};
        static const get_kind whole_scanner = {.all_columns = true, .by_scanner = true};
        run_gets(&b, "get memstore", &t, rows, column);
        run_gets(&b, "get memstore, scanner", &t, rows, scanner);
        flush(&t);
        run_gets(&b, "get file", &t, rows, column);
        run_gets(&b, "get file, scanner", &t, rows, scanner);
        fill(&t, rows, make_get_row);
        run_gets(&b, "get both", &t, rows, column);
        run_gets(&b, "get both, scanner", &t, rows, scanner);
        run_gets(&b, "get row both", &t, rows, whole);
        run_gets(&b, "get row both, scanner", &t, rows, whole_scanner);
        close_table(&t);
        open_table(&b, "six", &t);
        fill_sources(&t, rows);
        static const get_kind scan = {.by_scan = true};
        static const get_kind whole_scan = {.all_columns = true, .by_scan = true};
        unsigned in_six = rows / SOURCES * SOURCES;
        run_gets(&b, "get six", &t, in_six, column);
        run_gets(&b, "get six, scanner", &t, in_six, scanner);
        run_gets(&b, "get six, scan", &t, in_six, scan);
        run_gets(&b, "get row six", &t, in_six, whole);
        run_gets(&b, "get row six, scan", &t, in_six, whole_scan);
        close_table(&t);
    }
    if (wants_scans(&b)) {
        open_table(&b, "scans", &t);
        fill(&t, rows, make_filter_row);
        flush(&t);
        for (size_t i = 0; i < RQ_ARRAY_LEN(scans); i++)
            run_scan(&b, scans[i].name, scans[i].filter, &t, rows);
        close_table(&t);
    }
    check(rq_engine_close(b.engine, true, NULL), "stop", NULL);
    rq_config_free(config);
    rq_arena_clear(&b.arena);
    rq_thread_executor_free(b.env.executor);
    rq_epoch_free(b.env.epoch);
    rq_vfs_free(b.env.vfs);
    return 0;
}
