/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of tables and regions. The list of tables is copied from the catalog's view within
 * one epoch section; without a catalog it has the tables of this server's regions. Then each open
 * region is read, under a reference but outside the epoch, and its values are added to the sums of
 * its table and of the server. Counters do not drop when a region closes: the engine keeps the
 * counts of closed regions (region/past.c).
 */
#include "metrics/metrics_priv.h"

#include "region/table_times.h"

#include <stdlib.h>
#include <string.h>

#define STUCK_MS 60000 /* HBASE: hbase.metrics.rit.stuck.warning.threshold */

/* --- the view --------------------------------------------------------------------------------- */

typedef struct transitions {
    size_t count, stuck;
    int64_t oldest_ms; /* age */
} transitions;

static void look_at_region(const rq_catalog_region *r, rq_metrics_table *t, transitions *on_way,
                           int64_t now_ms)
{
    t->regions_by_state[r->state]++;
    if (r->state == RQ_REGION_OPEN || t->state == RQ_TABLE_DISABLED) return;
    int64_t age = now_ms - r->changed_ms;
    on_way->count++;
    on_way->stuck += age > STUCK_MS;
    if (age > on_way->oldest_ms) on_way->oldest_ms = age;
}

static void copy_table(rq__collector *c, const rq_catalog_table *t, transitions *on_way,
                       int64_t now_ms)
{
    rq_metrics_table *to = &c->s->tables[c->s->table_count];
    *to = (rq_metrics_table){.ns = rq_arena_copy(c->arena, t->schema->ns),
                             .qualifier = rq_arena_copy(c->arena, t->schema->qualifier),
                             .state = t->state};
    if (to->ns.ptr == NULL || to->qualifier.ptr == NULL) {
        c->rc = RQ_E_NO_MEMORY;
        return;
    }
    c->s->table_count++;
    for (size_t i = 0; i < t->region_count; i++)
        look_at_region(rq_catalog_table_region(t, i), to, on_way, now_ms);
}

static void collect_states(rq__collector *c, const transitions *on_way)
{
    static const char *const table_states[] = {
        [RQ_TABLE_ENABLED] = "enabled",
        [RQ_TABLE_DISABLED] = "disabled",
        [RQ_TABLE_DISABLING] = "disabling",
        [RQ_TABLE_ENABLING] = "enabling",
    };
    static const char *const region_states[RQ_REGION_STATES] = {
        [RQ_REGION_OFFLINE] = "offline",     [RQ_REGION_OPENING] = "opening",
        [RQ_REGION_OPEN] = "open",           [RQ_REGION_CLOSING] = "closing",
        [RQ_REGION_CLOSED] = "closed",       [RQ_REGION_FAILED_OPEN] = "failed_open",
        [RQ_REGION_SPLITTING] = "splitting", [RQ_REGION_SPLIT] = "split",
        [RQ_REGION_MERGING] = "merging",
    };
    size_t tables[RQ_ARRAY_LEN(table_states)] = {0}, regions[RQ_REGION_STATES] = {0};
    for (size_t i = 0; i < c->s->table_count; i++) {
        tables[c->s->tables[i].state]++;
        for (size_t k = 0; k < RQ_REGION_STATES; k++)
            regions[k] += c->s->tables[i].regions_by_state[k];
    }
    for (size_t k = 0; k < RQ_ARRAY_LEN(tables); k++)
        rq__collect(c, RQ_METRIC_TABLES, table_states[k], (double)tables[k]);
    for (size_t k = 0; k < RQ_REGION_STATES; k++)
        rq__collect(c, RQ_METRIC_REGION_STATES, region_states[k], (double)regions[k]);
    rq__collect(c, RQ_METRIC_IN_TRANSITION, "", (double)on_way->count);
    rq__collect(c, RQ_METRIC_STUCK, "", (double)on_way->stuck);
    rq__collect(c, RQ_METRIC_OLDEST_TRANSITION, "", (double)on_way->oldest_ms);
}

static void collect_view(rq__collector *c, const rq_catalog *catalog)
{
    const rq_metrics_sources *from = &c->m->from;
    const rq_catalog_table *const *tables;
    const rq_namespace *const *namespaces;
    size_t count, namespace_count;
    transitions on_way = {0};
    int64_t now_ms = from->env->executor->now_ms(from->env->executor);
    rq_epoch_member pin;
    rq_epoch_pin(from->env->epoch, &pin);
    rq_catalog_tables(catalog, &tables, &count);
    rq_catalog_namespaces(catalog, &namespaces, &namespace_count);
    c->s->tables = rq_arena_calloc(c->arena, count + 1, sizeof *c->s->tables);
    if (c->s->tables == NULL) c->rc = RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count && c->rc == RQ_OK; i++)
        copy_table(c, tables[i], &on_way, now_ms);
    rq_epoch_unpin(from->env->epoch, &pin);
    rq__collect(c, RQ_METRIC_NAMESPACES, "", (double)namespace_count);
    if (c->rc == RQ_OK) collect_states(c, &on_way);
}

static void collect_procedures(rq__collector *c, rq_catalog *catalog)
{
    rq_procedure_counts n;
    rq_catalog_procedure_counts(catalog, &n);
    rq__collect(c, RQ_METRIC_PROCEDURES, "running", (double)n.running);
    rq__collect(c, RQ_METRIC_PROCEDURES, "waiting", (double)n.waiting);
    rq__collect(c, RQ_METRIC_PROCEDURES, "parked", (double)n.parked);
    rq__collect(c, RQ_METRIC_PROCEDURES_ENDED, "success", (double)n.succeeded);
    rq__collect(c, RQ_METRIC_PROCEDURES_ENDED, "failure", (double)n.failed);
}

/* --- tables of a server without a catalog ------------------------------------------------------ */

static int name_order(const void *a, const void *b)
{
    const rq_metrics_table *x = a, *y = b;
    int order = rq_slice_compare(x->ns, y->ns);
    return order != 0 ? order : rq_slice_compare(x->qualifier, y->qualifier);
}

static void add_own_table(rq__collector *c, rq_slice ns, rq_slice qualifier)
{
    rq_metrics_table *to = &c->s->tables[c->s->table_count];
    if (c->rc != RQ_OK) return;
    *to = (rq_metrics_table){.ns = rq_arena_copy(c->arena, ns),
                             .qualifier = rq_arena_copy(c->arena, qualifier)};
    if (to->ns.ptr == NULL || to->qualifier.ptr == NULL)
        c->rc = RQ_E_NO_MEMORY;
    else
        c->s->table_count++;
}

/* The tables of the open regions, and those that had some: their counters must not disappear. */
static void take_own_tables(rq__collector *c, const rq_engine_survey *survey)
{
    rq_metrics_snapshot *s = c->s;
    size_t n = 0, cap = survey->region_count + survey->past_count;
    s->tables = rq_arena_calloc(c->arena, cap + 1, sizeof *s->tables);
    if (s->tables == NULL) {
        c->rc = RQ_E_NO_MEMORY;
        return;
    }
    for (size_t i = 0; i < survey->region_count; i++) {
        const rq_region_info *info = rq_region_get_info(survey->regions[i]);
        add_own_table(c, info->ns, info->qualifier);
    }
    for (size_t i = 0; i < survey->past_count; i++)
        add_own_table(c, survey->past[i].ns, survey->past[i].qualifier);
    if (s->table_count > 1) qsort(s->tables, s->table_count, sizeof *s->tables, name_order);
    for (size_t i = 0; i < s->table_count; i++)
        if (n == 0 || name_order(&s->tables[n - 1], &s->tables[i]) != 0)
            s->tables[n++] = s->tables[i];
    s->table_count = n;
}

/* --- regions ---------------------------------------------------------------------------------- */

/* NULL if the catalog does not show the region's table: the table is being created or dropped, or
 * is the procedure store. */
static rq_metrics_table *table_of(const rq__collector *c, rq_slice ns, rq_slice qualifier)
{
    rq_metrics_table key = {.ns = ns, .qualifier = qualifier};
    return bsearch(&key, c->s->tables, c->s->table_count, sizeof key, name_order);
}

static void read_loads(const rq_region *r, double loads[RQ_LOAD_COUNT])
{
    rq_region_load l;
    rq_region_get_load(r, &l);
    loads[RQ_LOAD_READS] = (double)l.read_requests;
    loads[RQ_LOAD_FILTERED_READS] = (double)l.filtered_read_requests;
    loads[RQ_LOAD_WRITES] = (double)l.write_requests;
    loads[RQ_LOAD_ROW_ACTIONS] = (double)(l.read_requests + l.write_requests);
    loads[RQ_LOAD_REGIONS] = 1;
    loads[RQ_LOAD_STORES] = l.stores;
    loads[RQ_LOAD_STOREFILES] = loads[RQ_LOAD_STOREFILES_MAX] = l.storefiles;
    loads[RQ_LOAD_STOREFILE_BYTES] = (double)l.storefile_bytes;
    loads[RQ_LOAD_UNCOMPRESSED_BYTES] = (double)l.storefile_uncompressed_bytes;
    loads[RQ_LOAD_ROOT_INDEX_BYTES] = (double)l.root_index_bytes;
    loads[RQ_LOAD_INDEX_BYTES] = (double)l.index_bytes;
    loads[RQ_LOAD_BLOOM_BYTES] = (double)l.bloom_bytes;
    loads[RQ_LOAD_CACHED_BYTES] = (double)l.cached_bytes;
    loads[RQ_LOAD_MEMSTORE_BYTES] = (double)l.memstore_bytes;
    loads[RQ_LOAD_COMPACTING_CELLS] = (double)l.compacting_cells;
    loads[RQ_LOAD_COMPACTED_CELLS] = (double)l.compacted_cells;
    loads[RQ_LOAD_FLUSHED_SEQID] = (double)l.max_flushed_seqid;
    loads[RQ_LOAD_LAST_MAJOR] = (double)l.last_major_compaction_ms;
}

static void add_loads(double to[RQ_LOAD_COUNT], const double by[RQ_LOAD_COUNT])
{
    for (size_t i = 0; i < RQ_LOAD_COUNT; i++) {
        if (!rq__loads[i].is_max)
            to[i] += by[i];
        else if (by[i] > to[i])
            to[i] = by[i];
    }
}

static void add_past(double to[RQ_LOAD_COUNT], const rq_request_counts *by)
{
    to[RQ_LOAD_READS] += (double)by->reads;
    to[RQ_LOAD_FILTERED_READS] += (double)by->filtered_reads;
    to[RQ_LOAD_WRITES] += (double)by->writes;
    to[RQ_LOAD_ROW_ACTIONS] += (double)(by->reads + by->writes);
}

static void collect_region(rq__collector *c, const rq_region *r)
{
    const rq_region_info *info = rq_region_get_info(r);
    rq_metrics_table *t = table_of(c, info->ns, info->qualifier);
    double loads[RQ_LOAD_COUNT];
    if (t == NULL) return;
    read_loads(r, loads);
    add_loads(t->loads, loads);
    if (c->s->regions == NULL) return;
    rq_metrics_region *to = &c->s->regions[c->s->region_count++];
    to->table = t;
    memcpy(to->encoded, info->encoded, sizeof to->encoded);
    memcpy(to->loads, loads, sizeof loads);
}

/* Counts of tables that the catalog does not show are only in the server's sums. */
static void collect_past(rq__collector *c, const rq_engine_survey *survey)
{
    add_past(c->s->loads, &survey->past_all);
    for (size_t i = 0; i < survey->past_count; i++) {
        const rq_table_past *p = &survey->past[i];
        rq_metrics_table *t = table_of(c, p->ns, p->qualifier);
        if (t != NULL) add_past(t->loads, &p->counts);
    }
}

static void collect_regions(rq__collector *c, bool by_region)
{
    rq_engine_survey survey;
    c->rc = rq_engine_survey_take(c->m->from.engine, c->arena, &survey);
    if (c->rc != RQ_OK) return;
    if (c->s->tables == NULL) take_own_tables(c, &survey);
    if (by_region && c->rc == RQ_OK) {
        c->s->regions = rq_arena_calloc(c->arena, survey.region_count + 1, sizeof *c->s->regions);
        if (c->s->regions == NULL) c->rc = RQ_E_NO_MEMORY;
    }
    for (size_t i = 0; i < survey.region_count; i++) {
        if (c->rc == RQ_OK) collect_region(c, survey.regions[i]);
        rq_region_unref(survey.regions[i]);
    }
    if (c->rc != RQ_OK) return;
    for (size_t i = 0; i < c->s->table_count; i++)
        add_loads(c->s->loads, c->s->tables[i].loads);
    collect_past(c, &survey);
}

/* --- durations -------------------------------------------------------------------------------- */

static void collect_times_of(rq__collector *c, const rq_table_times *times)
{
    const rq_metrics_table *t = table_of(c, times->ns, times->qualifier);
    if (t == NULL && times->qualifier.len > 0) return;
    for (int kind = 0; kind < RQ_OP_KINDS; kind++)
        if (times->of[kind] != NULL)
            rq__collect_table_times(c, RQ_METRIC_TABLE_OP_TIMES, t,
                                    rq_op_kind_text((rq_op_kind)kind), times->of[kind]);
}

static void collect_table_times(rq__collector *c)
{
    rq_table_times *list;
    size_t count, bytes;
    c->rc = rq_engine_table_times(c->m->from.engine, c->arena, &list, &count, &bytes);
    if (c->rc != RQ_OK) return;
    for (size_t i = 0; i < count; i++)
        collect_times_of(c, &list[i]);
    rq__collect(c, RQ_METRIC_MEMORY, "table_times", (double)bytes);
}

/* ---------------------------------------------------------------------------------------------- */

void rq__collect_loads(rq__collector *c, bool by_region)
{
    const double *loads = c->s->loads;
    rq_catalog *catalog = atomic_load(&c->m->catalog);
    if (rq__metrics_server(c->m) == NULL || c->rc != RQ_OK) return;
    if (catalog != NULL) collect_view(c, catalog);
    if (catalog != NULL) collect_procedures(c, catalog);
    if (c->rc == RQ_OK) collect_regions(c, by_region);
    if (c->rc == RQ_OK) collect_table_times(c);
    double bytes = loads[RQ_LOAD_STOREFILE_BYTES] + loads[RQ_LOAD_MEMSTORE_BYTES];
    double regions = loads[RQ_LOAD_REGIONS];
    rq__collect(c, RQ_METRIC_AVERAGE_REGION, "", regions > 0 ? bytes / regions : 0);
}
