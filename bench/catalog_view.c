/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalog's view (src/catalog/view.c): the cost of one change of one region and of one lookup
 * by encoded name, with 1,000 and 100,000 regions of one table.
 *
 *   bench_catalog_view [CHANGES]     default 2,000
 *
 * Each change sets the state of a random region, publishes the new view, and releases the previous
 * one.
 */
#include "catalog/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/random.h"
#include "catalog/system_tables.h"

typedef struct bench {
    rq_epoch *epoch;
    rq_region_names names;
    rq__views views;
    rq_table_schema *schema;
    rq__region_node **nodes;
    size_t count;
    rq_random random;
} bench;

/* CPU time of this thread: other processes do not count. */
static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void must(rq_err rc)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "bench_catalog_view: %s\n", rq_err_text(rc));
    exit(1);
}

static void make_regions(bench *b)
{
    rq_arena a;
    rq_arena_init(&a);
    b->nodes = calloc(b->count, sizeof *b->nodes);
    if (b->nodes == NULL) must(RQ_E_NO_MEMORY);
    for (size_t i = 0; i < b->count; i++) {
        char start[24], end[24];
        rq_region_info info;
        snprintf(start, sizeof start, "%010zu", i);
        snprintf(end, sizeof end, "%010zu", i + 1);
        must(rq_region_info_make(&a, RQ_SLICE_LIT("hbase"), RQ_SLICE_LIT("namespace"),
                                 i == 0 ? (rq_slice){NULL, 0} : rq_slice_cstr(start),
                                 i + 1 == b->count ? (rq_slice){NULL, 0} : rq_slice_cstr(end), 1, 0,
                                 &info));
        b->nodes[i] = rq__region_node_new(&info, RQ_REGION_OPEN, NULL, NULL, 1, 1, NULL);
        if (b->nodes[i] == NULL) must(RQ_E_NO_MEMORY);
        rq_arena_reset(&a);
    }
    rq_arena_clear(&a);
}

static void put_all(bench *b)
{
    rq__table_node *t = rq__table_node_new(b->schema, RQ_TABLE_ENABLED, b->nodes, b->count);
    rq__edit e;
    if (t == NULL) must(RQ_E_NO_MEMORY);
    must(rq__edit_begin(&b->views, &e));
    must(rq__edit_put_table(&e, t));
    must(rq__edit_commit(&e));
}

static void change_one(bench *b)
{
    size_t i = rq_random_below(&b->random, b->count);
    rq__region_node *n =
        rq__region_node_new(&b->nodes[i]->info, RQ_REGION_CLOSED, NULL, NULL, 1, 2, NULL);
    if (n == NULL) must(RQ_E_NO_MEMORY);
    rq__region_node_unref(b->nodes[i]);
    b->nodes[i] = n;
    rq__edit e;
    must(rq__edit_begin(&b->views, &e));
    const rq__table_node *t = rq__edit_table(&e, b->schema->ns, b->schema->qualifier);
    must(rq__edit_replace_regions(&e, t, RQ_TABLE_ENABLED, &n, 1));
    must(rq__edit_commit(&e));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure_changes(bench *b, size_t changes)
{
    double *us = calloc(changes, sizeof *us);
    if (us == NULL) must(RQ_E_NO_MEMORY);
    for (size_t i = 0; i < changes; i++) {
        double from = now_us();
        change_one(b);
        us[i] = now_us() - from;
    }
    qsort(us, changes, sizeof *us, by_value);
    printf("%7zu regions: change median %.1f us, p99 %.1f us", b->count, us[changes / 2],
           us[changes * 99 / 100]);
    free(us);
}

static void measure_lookups(bench *b)
{
    enum { LOOKUPS = 2000000 };
    size_t found = 0;
    double from = now_us();
    for (size_t i = 0; i < LOOKUPS; i++) {
        size_t at = rq_random_below(&b->random, b->count);
        found += rq_region_names_find(&b->names, rq_slice_cstr(b->nodes[at]->info.encoded)) != NULL;
    }
    printf("; lookup %.1f ns (%zu found)\n", (now_us() - from) * 1e3 / LOOKUPS, found);
}

static void run(size_t count, size_t changes)
{
    rq_error why = {0};
    bench b = {.count = count};
    rq_random_seed(&b.random, 1);
    must(rq_epoch_new(&b.epoch));
    must(rq__region_names_init(&b.names, b.epoch));
    must(rq__views_init(&b.views, b.epoch, &b.names));
    must(rq__system_schema(RQ__NAMESPACE, &b.schema, &why));
    make_regions(&b);
    put_all(&b);
    measure_changes(&b, changes);
    measure_lookups(&b);
    for (size_t i = 0; i < count; i++)
        rq__region_node_unref(b.nodes[i]);
    free(b.nodes);
    rq__views_clear(&b.views);
    rq__region_names_clear(&b.names);
    rq_table_schema_unref(b.schema);
    rq_epoch_free(b.epoch);
}

int main(int argc, char **argv)
{
    size_t changes = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000;
    if (changes == 0) changes = 1;
    run(1000, changes);
    run(100000, changes);
    return 0;
}
