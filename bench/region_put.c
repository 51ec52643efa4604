/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The write path without a network: single 1 kB puts through a region, its memstore and the log,
 * from one lane. Prints the CPU time of that lane per put (staging, memstore, acknowledging;
 * separately the log's write() calls), with rows in random and in ascending order.
 *
 *   region_put FOLDER [PUTS] [BATCH]
 */
#include "table_schema.h"

#include "base/config.h"
#include "base/random.h"
#include "region/engine.h"
#include "vfs/vfs.h"
#include "wal/wal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define VALUE_BYTES 1000

/* A lane whose tasks the main thread runs. */
typedef struct own_lane {
    rq_lane base;
    pthread_mutex_t lock;
    rq_task *first, *last;
} own_lane;

static void post(rq_lane *lane, rq_task *task)
{
    own_lane *l = RQ_CONTAINER_OF(lane, own_lane, base);
    pthread_mutex_lock(&l->lock);
    task->next = NULL;
    if (l->first == NULL)
        l->first = task;
    else
        l->last->next = task;
    l->last = task;
    pthread_mutex_unlock(&l->lock);
}

static void run_lane(own_lane *l)
{
    pthread_mutex_lock(&l->lock);
    rq_task *t = l->first;
    l->first = NULL;
    pthread_mutex_unlock(&l->lock);
    while (t != NULL) {
        rq_task *next = t->next;
        t->run(t);
        t = next;
    }
}

typedef struct put {
    rq_write write;
    rq_row_op op;
    rq_mutation mutation;
    rq_cell cell;
    char row[32];
    unsigned *in_flight;
} put;

static void on_done(rq_write *w)
{
    put *p = RQ_CONTAINER_OF(w, put, write);
    if (p->op.rc != RQ_OK) {
        fprintf(stderr, "put: %s\n", p->op.why == NULL ? "" : p->op.why->message);
        exit(1);
    }
    --*p->in_flight;
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void check(rq_err rc, const char *what)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s\n", what, rq_err_text(rc));
    exit(1);
}

static void run(rq_engine *e, rq_region *r, own_lane *lane, rq_writer *writer, unsigned count,
                unsigned batch, bool ascending)
{
    put *puts = calloc(batch, sizeof *puts);
    rq_random random;
    static uint8_t value[VALUE_BYTES];
    uint64_t region_ns = 0;
    uint64_t push_ns = 0;
    unsigned in_flight = 0;
    rq_random_seed(&random, 1);
    for (unsigned n = 0; n < count; n += batch) {
        for (unsigned i = 0; i < batch; i++) {
            put *p = &puts[i];
            uint64_t id = ascending ? n + i : rq_random_below(&random, 100000000);
            int len = snprintf(p->row, sizeof p->row, "%026llu", (unsigned long long)id);
            p->cell = (rq_cell){.family = (const uint8_t *)"info0",
                                .family_len = 5,
                                .qualifier = (const uint8_t *)"0",
                                .qualifier_len = 1,
                                .timestamp = RQ_TIMESTAMP_LATEST,
                                .type = RQ_TYPE_PUT,
                                .value = value,
                                .value_len = VALUE_BYTES};
            p->mutation = (rq_mutation){.type = RQ_MUTATE_PUT,
                                        .row = rq_slice_of(p->row, (size_t)len),
                                        .cells = &p->cell,
                                        .cell_count = 1};
            p->op.mutations = &p->mutation;
            p->op.mutation_count = 1;
            p->in_flight = &in_flight;
            p->write.ops = &p->op;
            p->write.op_count = 1;
            p->write.writer = writer;
            p->write.done = on_done;
        }
        in_flight = batch;
        uint64_t a = cpu_ns();
        for (unsigned i = 0; i < batch; i++)
            rq_region_write(r, &puts[i].write);
        uint64_t b = cpu_ns();
        rq__writer_push(writer);
        uint64_t c = cpu_ns();
        run_lane(lane);
        while (in_flight > 0)
            run_lane(lane);
        region_ns += b - a;
        push_ns += c - b;
    }
    rq_engine_stats stats;
    rq_engine_get_stats(e, &stats);
    printf("%-10s rows, %2u at once: region, memstore, staging %5.2f us; push %5.2f us per put; "
           "%llu flushes\n",
           ascending ? "ascending" : "random", batch, (double)region_ns / count / 1e3,
           (double)push_ns / count / 1e3, (unsigned long long)stats.flushes);
    free(puts);
}

int main(int argc, char **argv)
{
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1};
    unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 100000;
    unsigned batch = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
    rq_log log = {.fd = 2, .level = RQ_LOG_WARN};
    rq_env env = {.log = &log};
    rq_config *config;
    rq_engine *e;
    rq_region *r;
    rq_arena arena = {0};
    rq_region_info info;
    rq_writer *writer;
    own_lane lane = {.base.post = post};
    if (argc < 2) return 2;
    pthread_mutex_init(&lane.lock, NULL);
    check(rq_vfs_posix_new(argv[1], &env.vfs, NULL), argv[1]);
    check(rq_thread_executor_new(threads, &env.executor), "executor");
    check(rq_epoch_new(&env.epoch), "epoch");
    check(rq_config_new(&config), "config");
    check(rq_config_set(config, "rorqual.wal.sync", "handover", NULL), "sync");
    check(rq_config_set(config, "rorqual.memory", "4g", NULL), "memory");
    rq_engine_options o = {.config = config};
    check(rq_engine_open(&env, &o, &e, NULL), "engine");
    rq_table_schema *schema = bench_table_schema("t", "info0", NULL, 0);
    check(rq_region_info_make(&arena, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("t"), (rq_slice){0},
                              (rq_slice){0}, 1700000000000, 0, &info),
          "info");
    check(rq_region_create(e, &info, schema, NULL), "create");
    check(rq_region_open(e, &info, schema, &r, NULL), "open");
    check(rq_writer_new(e, &lane.base, &writer), "writer");
    run(e, r, &lane, writer, count, batch, false);
    run(e, r, &lane, writer, count, batch, true);
    run_lane(&lane); /* the writer's last task, which found nothing to do */
    rq_writer_free(writer);
    check(rq_region_close(r, false, NULL), "close");
    rq_region_unref(r);
    check(rq_engine_close(e, true, NULL), "stop");
    rq_table_schema_unref(schema);
    rq_config_free(config);
    rq_arena_clear(&arena);
    rq_thread_executor_free(env.executor);
    rq_epoch_free(env.epoch);
    rq_vfs_free(env.vfs);
    return 0;
}
