/* SPDX-License-Identifier: Apache-2.0 */
/* Every metric appears in the output, with the value that the test's operations give it. */
#include "metrics_world.h"

#include "filter/language.h"
#include "metrics/metrics_priv.h"
#include "region/region_scanner.h"
#include "region/table_times.h"

#include <math.h>
#include <stdio.h>

enum { SAMPLE = RQ_SAMPLE_MASK_FIRST + 1 }; /* one of this many operations is timed */

/* Whether the line appears exactly once. */
static bool has_line(const char *text, const char *line)
{
    size_t len = strlen(line);
    unsigned found = 0;
    for (const char *at = text; (at = strstr(at, line)) != NULL; at += len)
        found += (at == text || at[-1] == '\n') && at[len] == '\n';
    return found == 1;
}

static void check_line(const char *text, const char *line)
{
    if (!has_line(text, line)) fail_msg("no line, or several: %s", line);
}

/* The value after the name and labels. */
static double value_of(const char *text, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = text; (at = strstr(at, name)) != NULL; at += len)
        if ((at == text || at[-1] == '\n') && at[len] == ' ') return strtod(at + len, NULL);
    fail_msg("no value: %s", name);
    return 0;
}

static void check_head(const char *text, const char *prefix, const char *name, rq__kind kind)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    char line[256], help[256];
    snprintf(line, sizeof line, "# TYPE %s%s %s", prefix, name, kinds[kind]);
    check_line(text, line);
    snprintf(help, sizeof help, "# HELP %s%s ", prefix, name);
    const char *at = strstr(text, help);
    assert_non_null(at);
    assert_null(strstr(at + 1, help));
}

static void every_figure_is_shown_once(void **state)
{
    (void)state;
    metrics_world w;
    metrics_world_init(&w);
    char *text = metrics_world_prometheus(&w, true);
    for (size_t i = 0; i < RQ_METRIC_COUNT; i++)
        check_head(text, "", rq__metrics[i].name, rq__metrics[i].kind);
    for (size_t i = 0; i < RQ_LOAD_COUNT; i++) {
        const rq__load_info *l = &rq__loads[i];
        if ((l->levels & RQ__SERVER) != 0) check_head(text, "rorqual_", l->name, l->kind);
        if ((l->levels & RQ__TABLE) != 0) check_head(text, "rorqual_table_", l->name, l->kind);
        if ((l->levels & RQ__REGION) != 0) check_head(text, "rorqual_region_", l->name, l->kind);
    }
    free(text);
    text = metrics_world_prometheus(&w, false);
    assert_null(strstr(text, "rorqual_region_"));
    free(text);
    metrics_world_clear(&w);
}

/* Every metric that needs neither RPC nor loops has a value. */
static void every_source_is_asked(void **state)
{
    (void)state;
    metrics_world w;
    rq_arena arena = {0};
    rq_metrics_snapshot s;
    metrics_world_init(&w);
    metrics_world_get(&w, SAMPLE);
    rq_epoch_unpin(w.o->w.env->epoch, &w.o->section);
    assert_int_equal(rq_metrics_collect(w.m, true, &arena, &s), RQ_OK);
    rq_epoch_pin(w.o->w.env->epoch, &w.o->section);
    bool found[RQ_METRIC_COUNT] = {false};
    for (size_t i = 0; i < s.sample_count; i++) {
        const rq__metric_info *info = &rq__metrics[s.samples[i].metric];
        found[s.samples[i].metric] = true;
        assert_int_equal(s.samples[i].times != NULL, info->kind == RQ__TIMES);
        assert_int_equal(s.samples[i].label[0] != '\0', info->label[0] != '\0');
    }
    for (size_t i = 0; i < RQ_METRIC_COUNT; i++) {
        bool is_rpc = strncmp(rq__metrics[i].name, "rorqual_rpc_", 12) == 0 ||
                      strncmp(rq__metrics[i].name, "rorqual_loop_", 13) == 0 ||
                      strncmp(rq__metrics[i].name, "rorqual_replication_", 20) ==
                          0; /* tested by tests/e2e/replication.py */
        if (!found[i] && !is_rpc) fail_msg("no value: %s", rq__metrics[i].name);
    }
    rq_arena_clear(&arena);
    metrics_world_clear(&w);
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static void check_name(const char *name, rq__kind kind, rq__unit unit)
{
    bool is_time = unit == RQ__NS || unit == RQ__MS;
    if (ends_with(name, "_total") != (kind == RQ__COUNTER)) fail_msg("%s: _total", name);
    if (is_time && strstr(name, "seconds") == NULL) fail_msg("%s: seconds", name);
    if (unit == RQ__BYTES && strstr(name, "bytes") == NULL) fail_msg("%s: bytes", name);
    for (const char *p = name; *p != '\0'; p++)
        if (strchr("abcdefghijklmnopqrstuvwxyz0123456789_", *p) == NULL) fail_msg("%s", name);
}

static void names_say_kind_and_unit(void **state)
{
    (void)state;
    for (size_t i = 0; i < RQ_METRIC_COUNT; i++) {
        const rq__metric_info *m = &rq__metrics[i];
        check_name(m->name, m->kind, m->unit);
        assert_true(ends_with(m->help, "."));
        assert_int_equal(m->bean == RQ__BEAN_NONE, m->attribute[0] == '\0');
        assert_true(m->kind != RQ__TIMES || m->bean == RQ__BEAN_NONE);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(m->name, rq__metrics[k].name);
    }
    for (size_t i = 0; i < RQ_LOAD_COUNT; i++) {
        check_name(rq__loads[i].name, rq__loads[i].kind, rq__loads[i].unit);
        assert_true(ends_with(rq__loads[i].help, "."));
        assert_true(rq__loads[i].levels != 0);
    }
}

static void counters_count_what_was_done(void **state)
{
    (void)state;
    metrics_world w;
    metrics_world_init(&w);
    char *before = metrics_world_prometheus(&w, false);
    metrics_world_get(&w, 100);
    metrics_world_put(&w, 100);
    char *after = metrics_world_prometheus(&w, true);
    static const struct {
        const char *name;
        double grows;
    } cases[] = {
        {"rorqual_requests_total", 200},
        {"rorqual_ops_total{op=\"get\"}", 100},
        {"rorqual_ops_total{op=\"put\"}", 100},
        {"rorqual_ops_total{op=\"scan\"}", 0},
        {"rorqual_op_failures_total{op=\"get\"}", 0},
        {"rorqual_op_cells_total{op=\"get\"}", 100},
        {"rorqual_read_requests_total", 100},
        {"rorqual_write_requests_total", 100},
        {"rorqual_row_requests_total", 200},
        {"rorqual_table_read_requests_total{namespace=\"default\",table=\"t\"}", 100},
        {"rorqual_table_write_requests_total{namespace=\"default\",table=\"t\"}", 100},
        {"rorqual_table_write_requests_total{namespace=\"hbase\",table=\"meta\"}", 0},
        {"rorqual_wal_records_total", 100},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++) {
        double grown = value_of(after, cases[i].name) - value_of(before, cases[i].name);
        if (fabs(grown - cases[i].grows) > 0.5) fail_msg("%s: %g", cases[i].name, grown);
    }
    /* Rows r1 to r9 are in the second region. */
    check_line(after, "rorqual_table_open_regions{namespace=\"default\",table=\"t\"} 2");
    const rq_region_info *info = rq_region_get_info(ops_region(w.o, "r1"));
    char line[256];
    snprintf(line, sizeof line,
             "rorqual_region_read_requests_total{namespace=\"default\",table=\"t\",region=\"%s\"}",
             info->encoded);
    assert_true(value_of(after, line) >= 100);
    free(before);
    free(after);
    metrics_world_clear(&w);
}

/* HBase counts the rows of scans as read requests, including rows that a filter removed
 * completely. */
static void rows_of_scans_are_counted(void **state)
{
    (void)state;
    metrics_world mw, *m = &mw;
    metrics_world_init(m);
    world *w = &m->o->w;
    rq_metrics_snapshot before, after;
    rq_arena arena = {0};
    rq_filter *filter;
    rq_cellblock out = {0};
    rq_read_ctx ctx = {.may_block = true};
    rq_scan_state end = RQ_SCAN_MORE;
    rq_epoch_unpin(w->env->epoch, &m->o->section);
    assert_int_equal(rq_metrics_collect(m->m, false, &arena, &before), RQ_OK);
    /* A filter returns one of the ten rows r0 to r9 of the second region. */
    rq_slice name, message;
    OK(rq_filter_language_compile(RQ_SLICE_LIT("ValueFilter(=, 'binary:r7')"), &arena, &name,
                                  &message, &w->why));
    OK(rq_filter_parse(name, message, &arena, &filter, &w->why));
    rq_scan scan = {.include_start = true,
                    .max_versions = 1,
                    .time_range = RQ_TIME_RANGE_ALL,
                    .store_limit = -1,
                    .filter = filter};
    rq_epoch_pin(w->env->epoch, &m->o->section);
    rq_region_scanner *s;
    OK(rq_region_scanner_open(ops_region(m->o, "r1"), &scan, 0, &arena, &s, &w->why));
    const rq_scan_limits limits = {.yield_ns = UINT64_MAX};
    while (end != RQ_SCAN_DONE)
        OK(rq_region_scanner_next(s, &limits, &ctx, &out, &end, &w->why));
    rq_region_scanner_close(s);
    rq_epoch_unpin(w->env->epoch, &m->o->section);
    assert_int_equal(rq_metrics_collect(m->m, false, &arena, &after), RQ_OK);
    rq_epoch_pin(w->env->epoch, &m->o->section);
    assert_true(fabs(after.loads[RQ_LOAD_READS] - before.loads[RQ_LOAD_READS] - 2) < 0.5);
    assert_true(
        fabs(after.loads[RQ_LOAD_FILTERED_READS] - before.loads[RQ_LOAD_FILTERED_READS] - 9) < 0.5);
    rq_cellblock_clear(&out);
    rq_read_ctx_clear(&ctx);
    rq_arena_clear(&arena);
    metrics_world_clear(m);
}

/* Every counter of `before` exists in `after`, and is not smaller. */
static void check_grown(const char *before, const char *after)
{
    char name[512];
    for (const char *line = before; *line != '\0'; line = strchr(line, '\n') + 1) {
        size_t len = strcspn(line, " ");
        bool is_counter = line[0] != '#' && len < sizeof name &&
                          (strstr(line, "_total") != NULL && strstr(line, "_total") < line + len);
        if (!is_counter) continue;
        memcpy(name, line, len);
        name[len] = '\0';
        double was = strtod(line + len, NULL), is = value_of(after, name);
        if (is < was) fail_msg("%s fell from %g to %g", name, was, is);
    }
}

static void counters_never_go_back(void **state)
{
    (void)state;
    metrics_world mw, *m = &mw;
    metrics_world_init(m);
    world *w = &m->o->w;
    char *before = metrics_world_prometheus(m, false);
    for (int i = 0; i < 5; i++) {
        metrics_world_get(m, 20);
        metrics_world_put(m, 20);
        char *grown = metrics_world_prometheus(m, false);
        check_grown(before, grown);
        rq_epoch_unpin(w->env->epoch, &m->o->section);
        if (i == 0) OK(world_split(w, "t", "r1", "r5"));
        if (i == 1) OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
        if (i == 2) OK(world_table(w, RQ_DDL_FLUSH_TABLE, "t"));
        rq_epoch_pin(w->env->epoch, &m->o->section);
        char *closed = metrics_world_prometheus(m, false);
        check_grown(grown, closed);
        rq_epoch_unpin(w->env->epoch, &m->o->section);
        if (i == 1) OK(world_table(w, RQ_DDL_ENABLE_TABLE, "t"));
        rq_epoch_pin(w->env->epoch, &m->o->section);
        free(before);
        free(grown);
        before = closed;
    }
    free(before);
    metrics_world_clear(m);
}

/* The server's counts continue; those of a new table with the same name start at zero. */
static void a_dropped_table_is_forgotten(void **state)
{
    (void)state;
    metrics_world mw, *m = &mw;
    metrics_world_init(m);
    world *w = &m->o->w;
    metrics_world_put(m, 50);
    char *before = metrics_world_prometheus(m, false);
    rq_epoch_unpin(w->env->epoch, &m->o->section);
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    OK(world_table(w, RQ_DDL_DELETE_TABLE, "t"));
    rq_epoch_pin(w->env->epoch, &m->o->section);
    char *dropped = metrics_world_prometheus(m, false);
    assert_null(strstr(dropped, "table=\"t\""));
    assert_true(value_of(dropped, "rorqual_write_requests_total") >=
                value_of(before, "rorqual_write_requests_total"));
    rq_epoch_unpin(w->env->epoch, &m->o->section);
    OK(world_create(w, "t", "f", NULL));
    rq_epoch_pin(w->env->epoch, &m->o->section);
    char *again = metrics_world_prometheus(m, false);
    check_line(again, "rorqual_table_write_requests_total{namespace=\"default\",table=\"t\"} 0");
    free(before);
    free(dropped);
    free(again);
    metrics_world_clear(m);
}

#define GETS_OF_T                                                                                  \
    "rorqual_table_op_duration_seconds_count{namespace=\"default\",table=\"t\",op=\"get\"}"
#define PUTS_OF_T                                                                                  \
    "rorqual_table_op_duration_seconds_count{namespace=\"default\",table=\"t\",op=\"put\"}"

/* The durations of each op are reported by table; those of a dropped table are removed. */
static void durations_are_reported_by_table(void **state)
{
    (void)state;
    metrics_world mw, *m = &mw;
    metrics_world_init(m);
    world *w = &m->o->w;
    char *text = metrics_world_prometheus(m, false);
    assert_null(strstr(text, GETS_OF_T));
    free(text);
    metrics_world_get(m, 5 * SAMPLE);
    metrics_world_put(m, 3 * SAMPLE);
    text = metrics_world_prometheus(m, false);
    assert_true(value_of(text, GETS_OF_T) == 5 * SAMPLE);
    assert_true(value_of(text, PUTS_OF_T) == 3 * SAMPLE);
    free(text);
    rq_err rc;
    text = metrics_world_jmx(m, &(rq_metrics_query){.qry = "*:sub=TableRequests*,*"}, &rc);
    assert_int_equal(rc, RQ_OK);
    assert_non_null(
        strstr(text, "name=RegionServer,sub=TableRequests_Namespace_default_table_t\""));
    assert_non_null(strstr(text, "\"getTime_num_ops\": 80,"));
    assert_non_null(strstr(text, "\"putTime_num_ops\": 48,"));
    free(text);
    rq_epoch_unpin(w->env->epoch, &m->o->section);
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    OK(world_table(w, RQ_DDL_DELETE_TABLE, "t"));
    OK(world_create(w, "t", "f", NULL));
    rq_epoch_pin(w->env->epoch, &m->o->section);
    text = metrics_world_prometheus(m, false);
    assert_null(strstr(text, GETS_OF_T));
    free(text);
    metrics_world_clear(m);
}

static rq_region *open_region_of(const world *w, const char *table)
{
    const rq_catalog_table *t = rq_catalog_table_find(w->catalog, rq_slice_cstr(table));
    assert_non_null(t);
    return rq_catalog_table_region(t, 0)->region;
}

static size_t table_times_bytes(metrics_world *m, size_t *ret_tables)
{
    rq_arena arena = {0};
    rq_table_times *list;
    size_t bytes;
    assert_int_equal(rq_engine_table_times(m->o->w.engine, &arena, &list, ret_tables, &bytes),
                     RQ_OK);
    rq_arena_clear(&arena);
    return bytes;
}

/* Each table has durations of one kind of op. Tables above the limit are counted together, and a
 * dropped table frees its entry. */
static void many_tables_stay_bounded(void **state)
{
    (void)state;
    enum { TABLES = RQ_TABLE_TIMES_MAX + 100 };
    metrics_world mw, *m = &mw;
    metrics_world_init(m);
    world *w = &m->o->w;
    char name[16];
    size_t tables;
    rq_epoch_unpin(w->env->epoch, &m->o->section);
    for (int i = 0; i < TABLES; i++) {
        snprintf(name, sizeof name, "many%d", i);
        OK(world_create(w, name, "f", NULL));
    }
    rq_epoch_pin(w->env->epoch, &m->o->section);
    for (int i = 0; i < TABLES; i++) {
        snprintf(name, sizeof name, "many%d", i);
        rq_region_add_time(open_region_of(w, name), RQ_OP_GET, 1000, 1);
    }
    assert_true(table_times_bytes(m, &tables) < (size_t)1 << 20);
    assert_true(tables <= RQ_TABLE_TIMES_MAX + 1);
    char *text = metrics_world_prometheus(m, false);
    double others = value_of(text, "rorqual_table_op_duration_seconds_count{op=\"get\"}");
    assert_true(others >= TABLES - RQ_TABLE_TIMES_MAX && others < TABLES);
    check_line(text, "rorqual_table_op_duration_seconds_count{namespace=\"default\","
                     "table=\"many0\",op=\"get\"} 1");
    assert_null(strstr(text, "table=\"many611\",op="));
    free(text);
    rq_epoch_unpin(w->env->epoch, &m->o->section);
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "many0"));
    OK(world_table(w, RQ_DDL_DELETE_TABLE, "many0"));
    for (int i = 0; i < 4; i++) { /* frees the dropped region */
        rq_sim_run(w->sim);
        rq_epoch_collect(w->env->epoch);
    }
    OK(world_create(w, "late", "f", NULL));
    rq_epoch_pin(w->env->epoch, &m->o->section);
    rq_region_add_time(open_region_of(w, "late"), RQ_OP_GET, 1000, 1);
    text = metrics_world_prometheus(m, false);
    check_line(text, "rorqual_table_op_duration_seconds_count{namespace=\"default\","
                     "table=\"late\",op=\"get\"} 1");
    free(text);
    metrics_world_clear(m);
}

static void rates_are_those_of_the_last_period(void **state)
{
    (void)state;
    metrics_world w;
    rq_metrics_rates r;
    metrics_world_init(&w);
    rq_sim_advance(w.o->w.sim, RQ_METRICS_PERIOD_NS + 1000000);
    metrics_world_put(&w, 100);
    rq_sim_advance(w.o->w.sim, RQ_METRICS_PERIOD_NS);
    rq_metrics_get_rates(w.m, &r);
    assert_int_equal(r.requests, 100);
    assert_true(fabs(r.requests_per_second - 20) < 1);
    assert_true(fabs(r.writes_per_second - 20) < 1);
    assert_true(r.reads_per_second <= 0);
    rq_sim_advance(w.o->w.sim, RQ_METRICS_PERIOD_NS + 1000000);
    rq_metrics_get_rates(w.m, &r);
    assert_true(r.requests_per_second <= 0);
    metrics_world_clear(&w);
}

/* With a million regions the text would take gigabytes. */
static void a_text_beyond_its_limit_is_refused(void **state)
{
    (void)state;
    metrics_world w;
    rq_metrics *m;
    rq_buf text = {0};
    metrics_world_init(&w);
    const rq_metrics_sources from = {.env = w.o->w.env,
                                     .engine = w.o->w.engine,
                                     .catalog = w.o->w.catalog,
                                     .ops = w.o->ops,
                                     .text_bytes_max = 5000};
    assert_int_equal(rq_metrics_new(&from, &m), RQ_OK);
    const rq_metrics_query all = {0},
                           regions = {
                               .get = "Hadoop:service=HBase,name=RegionServer,sub=Regions::*o*"};
    assert_int_equal(rq_metrics_prometheus(m, true, &text), RQ_E_RESULT_TOO_LARGE);
    assert_int_equal(rq_metrics_hadoop_prometheus(m, false, NULL, &text), RQ_E_RESULT_TOO_LARGE);
    assert_int_equal(rq_metrics_jmx(m, &all, &text), RQ_E_RESULT_TOO_LARGE);
    assert_int_equal(rq_metrics_jmx(m, &regions, &text), RQ_E_RESULT_TOO_LARGE);
    rq_buf_clear(&text);
    rq_metrics_free(m);
    metrics_world_clear(&w);
}

/* Tables and regions of the server itself, named by its regions, until it gets a catalog. */
static void a_cluster_server_shows_its_own_regions(void **state)
{
    (void)state;
    metrics_world w;
    rq_metrics *m;
    rq_metrics_snapshot whole, own;
    rq_arena arena;
    rq_arena_init(&arena);
    metrics_world_init(&w);
    metrics_world_put(&w, 5);
    const rq_metrics_sources from = {.env = w.o->w.env,
                                     .engine = w.o->w.engine,
                                     .server = rq_catalog_server(w.o->w.catalog),
                                     .master = rq_catalog_master(w.o->w.catalog),
                                     .cluster_id = "id",
                                     .ops = w.o->ops};
    assert_int_equal(rq_metrics_new(&from, &m), RQ_OK);
    assert_int_equal(rq_metrics_collect(w.m, true, &arena, &whole), RQ_OK);
    assert_int_equal(rq_metrics_collect(m, true, &arena, &own), RQ_OK);
    size_t with_regions = 0;
    for (size_t i = 0; i < whole.table_count; i++) {
        const rq_metrics_table *t = &whole.tables[i];
        if (t->loads[RQ_LOAD_REGIONS] <= 0) continue;
        with_regions++;
        size_t found = 0;
        for (size_t k = 0; k < own.table_count; k++)
            if (rq_slice_eq(t->ns, own.tables[k].ns) &&
                rq_slice_eq(t->qualifier, own.tables[k].qualifier)) {
                assert_memory_equal(t->loads, own.tables[k].loads, sizeof t->loads);
                found++;
            }
        assert_int_equal(found, 1);
    }
    assert_true(with_regions > 0 && own.region_count >= whole.region_count);
    assert_true(rq_metrics_value(&own, RQ_METRIC_REGION_STATES, "open") <= 0);
    assert_true(rq_metrics_value(&own, RQ_METRIC_TABLES, "") <= 0);
    rq_metrics_lead(m, w.o->w.catalog);
    assert_int_equal(rq_metrics_collect(m, false, &arena, &own), RQ_OK);
    assert_true(rq_metrics_value(&own, RQ_METRIC_REGION_STATES, "open") > 0);
    assert_int_equal(own.table_count, whole.table_count);
    rq_arena_clear(&arena);
    rq_metrics_free(m);
    metrics_world_clear(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_figure_is_shown_once),
        cmocka_unit_test(every_source_is_asked),
        cmocka_unit_test(names_say_kind_and_unit),
        cmocka_unit_test(counters_count_what_was_done),
        cmocka_unit_test(rows_of_scans_are_counted),
        cmocka_unit_test(counters_never_go_back),
        cmocka_unit_test(a_dropped_table_is_forgotten),
        cmocka_unit_test(durations_are_reported_by_table),
        cmocka_unit_test(many_tables_stay_bounded),
        cmocka_unit_test(rates_are_those_of_the_last_period),
        cmocka_unit_test(a_text_beyond_its_limit_is_refused),
        cmocka_unit_test(a_cluster_server_shows_its_own_regions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
