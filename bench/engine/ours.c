/* SPDX-License-Identifier: Apache-2.0 */
/* The engine benchmark on Rorqual: an embedded table with one family (and one region, except in
 * replays), through the same calls as the service. A worker is a separate lane with a writer, like
 * an event loop. */
#include "../table_schema.h"
#include "engine.h"

#include "base/config.h"
#include "region/engine.h"
#include "region/region_scanner.h"
#include "vfs/vfs.h"
#include "wal/wal.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ROWS_AT_ONCE 256
#define BATCH_MAX 1000
#define REGIONS_MAX 64
#define WIDE_ROW "wide-row-wide-row-wide-row-wide-"

_Thread_local uint64_t bytes_read;

struct database {
    rq_log log;
    rq_env env;
    rq_config *config;
    rq_engine *engine;
    unsigned regions;
    rq_region *region[REGIONS_MAX]; /* in the order of their keys */
    rq_region_info info[REGIONS_MAX];
    double opened[REGIONS_MAX]; /* seconds from the engine's opening to the region's */
    double begun;
    pthread_t cleaner;
    _Atomic bool closing;
    rq_table_schema *schema;
    rq_arena arena;
};

/* A lane whose tasks run on the worker's thread, whichever thread posts them. */
typedef struct own_lane {
    rq_lane base;
    pthread_mutex_t lock;
    pthread_cond_t posted;
    rq_task *first;
    rq_task **end;
} own_lane;

struct worker {
    database *db;
    own_lane lane;
    rq_writer *writer;
    rq_epoch_member epoch;
    rq_arena arena;
    rq_cellblock out;
    rq_read_ctx read;
    rq_write write;
    bool written;
    rq_row_op ops[BATCH_MAX];
    rq_mutation mutations[BATCH_MAX];
    rq_cell cells[BATCH_MAX];
    uint8_t qualifiers[BATCH_MAX][8];
};

static void check(rq_err rc, const char *what, const rq_error *why)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "rorqual: %s: %s %s\n", what, rq_err_text(rc), why == NULL ? "" : why->message);
    exit(1);
}

static void post(rq_lane *lane, rq_task *task)
{
    own_lane *l = RQ_CONTAINER_OF(lane, own_lane, base);
    pthread_mutex_lock(&l->lock);
    task->next = NULL;
    *l->end = task;
    l->end = &task->next;
    pthread_cond_signal(&l->posted);
    pthread_mutex_unlock(&l->lock);
}

static void run_lane(own_lane *l)
{
    pthread_mutex_lock(&l->lock);
    while (l->first == NULL)
        pthread_cond_wait(&l->posted, &l->lock);
    rq_task *t = l->first;
    l->first = NULL;
    l->end = &l->first;
    pthread_mutex_unlock(&l->lock);
    while (t != NULL) {
        rq_task *next = t->next;
        t->run(t);
        t = next;
    }
}

static rq_table_schema *make_schema(const settings *s)
{
    char size[16];
    snprintf(size, sizeof size, "%u", s->block_bytes);
    const char *const attributes[][2] = {{"BLOCKSIZE", size}, {"DATA_BLOCK_ENCODING", "FAST_DIFF"}};
    return bench_table_schema("t", "f", attributes, s->encoded ? 2 : 1);
}

static void set(database *db, const char *key, const char *format, double value)
{
    char text[32];
    rq_error why = {0};
    snprintf(text, sizeof text, format, value);
    check(rq_config_set(db->config, key, text, &why), key, &why);
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

typedef struct opening {
    pthread_t thread;
    database *db;
    _Atomic unsigned *next;
} opening;

/* Opens regions one after another, as a start does with one such worker per core. */
static void *open_regions(void *arg)
{
    opening *o = arg;
    database *db = o->db;
    for (unsigned i; (i = atomic_fetch_add(o->next, 1)) < db->regions;) {
        rq_error why = {0};
        check(rq_region_create(db->engine, &db->info[i], db->schema, &why), "create", &why);
        check(rq_region_open(db->engine, &db->info[i], db->schema, &db->region[i], &why), "region",
              &why);
        db->opened[i] = seconds_now() - db->begun;
    }
    return NULL;
}

static void open_table(database *db, const settings *s)
{
    opening workers[2] = {{0}};
    _Atomic unsigned next = 0;
    double first = 1e9, last = 0;
    db->regions = s->regions < 1 ? 1 : s->regions > REGIONS_MAX ? REGIONS_MAX : s->regions;
    for (unsigned i = 0; i < db->regions; i++) {
        uint8_t rows[2][ROW_BYTES];
        row_of(s->rows * i / db->regions, rows[0]);
        row_of(s->rows * (i + 1) / db->regions, rows[1]);
        rq_slice start = i == 0 ? (rq_slice){0} : rq_slice_of(rows[0], ROW_BYTES);
        rq_slice end = i + 1 == db->regions ? (rq_slice){0} : rq_slice_of(rows[1], ROW_BYTES);
        check(rq_region_info_make(&db->arena, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("t"), start,
                                  end, 1700000000000, 0, &db->info[i]),
              "info", NULL);
    }
    for (int i = 0; i < 2; i++) {
        workers[i] = (opening){.db = db, .next = &next};
        if (pthread_create(&workers[i].thread, NULL, open_regions, &workers[i]) != 0) exit(1);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(workers[i].thread, NULL);
    for (unsigned i = 0; i < db->regions; i++) {
        first = db->opened[i] < first ? db->opened[i] : first;
        last = db->opened[i] > last ? db->opened[i] : last;
    }
    if (db->regions > 1)
        printf("regions threads=2 ops=%u seconds=%.3f first=%.3f\n", db->regions, last, first);
}

/* Removes compacted files at once, as with hbase.master.hfilecleaner.ttl=0: RocksDB has no archive
 * either. */
static void *clean(void *arg)
{
    database *db = arg;
    while (!atomic_load(&db->closing)) {
        rq_err next_time = rq_vfs_remove_tree(db->env.vfs, "archive/data", NULL);
        (void)next_time;
        usleep(20000);
    }
    return NULL;
}

database *database_open(const settings *s)
{
    static const unsigned threads[RQ_POOL_COUNT] = {2, 1, 1, 1};
    database *db = calloc(1, sizeof *db);
    rq_error why = {0};
    /* As the server does (src/cli/cmd_server.c). */
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mkdir(s->folder, 0777);
    db->log = (rq_log){.fd = 2, .level = RQ_LOG_ERROR};
    db->env.log = &db->log;
    check(rq_vfs_posix_new(s->folder, &db->env.vfs, &why), s->folder, &why);
    check(rq_thread_executor_new(threads, &db->env.executor), "executor", NULL);
    check(rq_epoch_new(&db->env.epoch), "epoch", NULL);
    check(rq_config_new(&db->config), "config", NULL);
    /* A memory budget with a block cache of the requested size, and memstores for as many write
     * buffers as RocksDB has. */
    double memstores = 4.0 * (double)s->buffer_bytes;
    double budget = ((double)s->cache_bytes + memstores) / 0.9;
    check(rq_config_set(db->config, "rorqual.wal.sync", "handover", &why), "sync", &why);
    set(db, "rorqual.memory", "%.0f", budget);
    set(db, "hfile.block.cache.size", "%.6f", (double)s->cache_bytes / budget);
    set(db, "hbase.regionserver.global.memstore.size", "%.6f", memstores / budget);
    set(db, "hbase.hregion.memstore.flush.size", "%.0f", (double)s->buffer_bytes);
    if (s->buffer_bytes > (uint64_t)1
                              << 30) /* the log may be as large as the memstore, so that it causes
                                      * no flush */
        set(db, "rorqual.wal.max", "%.0f", (double)s->buffer_bytes);
    /* Several WAL files for each write buffer, because the log is kept and removed in whole
     * files. */
    set(db, "rorqual.wal.file.size", "%.0f",
        s->buffer_bytes < 64 << 20 ? (double)s->buffer_bytes / 2 : 64 << 20);
    rq_engine_options o = {.config = db->config};
    db->begun = seconds_now();
    check(rq_engine_open(&db->env, &o, &db->engine, &why), "open", &why);
    db->schema = make_schema(s);
    open_table(db, s);
    if (pthread_create(&db->cleaner, NULL, clean, db) != 0) exit(1);
    return db;
}

void database_close(database *db)
{
    rq_error why = {0};
    atomic_store(&db->closing, true);
    pthread_join(db->cleaner, NULL);
    for (unsigned i = 0; i < db->regions; i++) {
        check(rq_region_close(db->region[i], false, &why), "close", &why);
        rq_region_unref(db->region[i]);
    }
    check(rq_engine_close(db->engine, true, &why), "close", &why);
    rq_table_schema_unref(db->schema);
    rq_config_free(db->config);
    rq_arena_clear(&db->arena);
    rq_thread_executor_free(db->env.executor);
    rq_epoch_free(db->env.epoch);
    rq_vfs_free(db->env.vfs);
    free(db);
}

_Noreturn void database_drop(database *db)
{
    (void)db;
    fflush(stdout);
    _exit(0);
}

worker *worker_new(database *db)
{
    worker *w = calloc(1, sizeof *w);
    w->db = db;
    w->lane.base.post = post;
    pthread_mutex_init(&w->lane.lock, NULL);
    pthread_cond_init(&w->lane.posted, NULL);
    w->lane.end = &w->lane.first;
    check(rq_writer_new(db->engine, &w->lane.base, &w->writer), "writer", NULL);
    rq_epoch_join(db->env.epoch, &w->epoch);
    rq_arena_init(&w->arena);
    w->read.may_block = true;
    return w;
}

void worker_free(worker *w)
{
    rq_epoch_leave(w->db->env.epoch, &w->epoch);
    rq_writer_free(w->writer);
    rq_arena_clear(&w->arena);
    rq_cellblock_clear(&w->out);
    rq_read_ctx_clear(&w->read);
    pthread_cond_destroy(&w->lane.posted);
    pthread_mutex_destroy(&w->lane.lock);
    free(w);
}

static void on_written(rq_write *write)
{
    RQ_CONTAINER_OF(write, worker, write)->written = true;
}

static void submit(worker *w, rq_region *region, size_t count)
{
    w->written = false;
    w->write =
        (rq_write){.ops = w->ops, .op_count = count, .writer = w->writer, .done = on_written};
    rq_region_write(region, &w->write); /* the write continues in a task of the lane */
    while (!w->written)
        run_lane(&w->lane);
    rq_epoch_collect(w->db->env.epoch);
    for (size_t i = 0; i < count; i++)
        check(w->ops[i].rc, "write", w->ops[i].why);
}

static rq_region *region_of(const database *db, const uint8_t row[ROW_BYTES])
{
    unsigned low = 0, high = db->regions;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        *(memcmp(row, db->info[middle].start_key.ptr, ROW_BYTES) < 0 ? &high : &low) = middle;
    }
    return db->region[low];
}

/* Writes the entries of one region, or all entries if there is only one region. */
static void write_to(worker *w, rq_region *region, const entry *entries, size_t count)
{
    size_t i = 0;
    for (size_t n = 0; n < count; n++) {
        const entry *e = &entries[n];
        if (w->db->regions > 1 && region_of(w->db, e->row) != region) continue;
        w->cells[i] = (rq_cell){.family = (const uint8_t *)"f",
                                .family_len = 1,
                                .timestamp = RQ_TIMESTAMP_LATEST,
                                .type = RQ_TYPE_PUT,
                                .value = e->value,
                                .value_len = e->value_len};
        w->mutations[i] = (rq_mutation){.type = RQ_MUTATE_PUT,
                                        .row = rq_slice_of(e->row, ROW_BYTES),
                                        .cells = &w->cells[i],
                                        .cell_count = 1};
        w->ops[i] = (rq_row_op){.mutations = &w->mutations[i], .mutation_count = 1};
        i++;
    }
    if (i > 0) submit(w, region, i);
}

void worker_write(worker *w, const entry *entries, size_t count)
{
    if (count > BATCH_MAX) check(RQ_E_ILLEGAL_ARGUMENT, "batch", NULL);
    for (unsigned i = 0; i < w->db->regions; i++)
        write_to(w, w->db->region[i], entries, count);
}

/* Gets without a scanner if possible, as the service does. */
static bool get_cells(worker *w, rq_region *region, const rq_scan *scan)
{
    rq_error why = {0};
    bool answered = false;
    rq_err rc;
    rq_cellblock_reset(&w->out);
    rq_epoch_enter(w->db->env.epoch, &w->epoch);
    do { /* a missing block is read at once, because the context may block */
        rc = rq_region_get(region, scan, &w->arena, &w->read, &w->out, &answered, &why);
    } while (rc == RQ_E_AGAIN);
    check(rc, "get", &why);
    touch(w->out.bytes.ptr, w->out.bytes.len);
    rq_read_ctx_clear(&w->read);
    rq_arena_reset(&w->arena);
    rq_epoch_exit(w->db->env.epoch, &w->epoch);
    rq_epoch_collect(w->db->env.epoch);
    return answered;
}

/* Reads cells of the scan, at most `limit`; 0: all. */
static size_t read_cells(worker *w, rq_region *region, const rq_scan *scan, size_t limit)
{
    rq_error why = {0};
    rq_region_scanner *scanner = NULL;
    rq_scan_state state = RQ_SCAN_MORE;
    size_t cells = 0;
    rq_epoch_enter(w->db->env.epoch, &w->epoch);
    check(rq_region_scanner_open(region, scan, 0, &w->arena, &scanner, &why), "scan", &why);
    while (state != RQ_SCAN_DONE && (limit == 0 || cells < limit)) {
        uint32_t counts[ROWS_AT_ONCE];
        size_t most = limit == 0 || limit - cells > ROWS_AT_ONCE ? ROWS_AT_ONCE : limit - cells;
        rq_scan_rows rows = {.cells = counts, .max = (uint32_t)most};
        rq_scan_limits limits = {0};
        rq_cellblock_reset(&w->out);
        /* like ops/scan.c: several rows at once if they are only copied, others one by one */
        check(rq_region_scanner_take_rows(scanner, &limits, &w->out, &rows, &state), "take", NULL);
        if (state == RQ_SCAN_MORE && (limit == 0 || cells + w->out.count < limit))
            check(rq_region_scanner_next(scanner, &limits, &w->read, &w->out, &state, &why), "next",
                  &why);
        touch(w->out.bytes.ptr, w->out.bytes.len);
        cells += w->out.count;
        if (scan->is_get) break;
    }
    rq_region_scanner_close(scanner);
    rq_read_ctx_clear(&w->read);
    rq_arena_reset(&w->arena);
    rq_epoch_exit(w->db->env.epoch, &w->epoch);
    rq_epoch_collect(w->db->env.epoch);
    return cells;
}

static rq_scan scan_of(rq_slice row, bool is_get)
{
    return (rq_scan){.start_row = row,
                     .stop_row = is_get ? row : (rq_slice){0},
                     .include_start = true,
                     .include_stop = is_get,
                     .is_get = is_get,
                     .cache_blocks = true,
                     .max_versions = 1,
                     .time_range = RQ_TIME_RANGE_ALL,
                     .store_limit = -1};
}

long worker_get(worker *w, const uint8_t row[ROW_BYTES])
{
    rq_scan scan = scan_of(rq_slice_of(row, ROW_BYTES), true);
    rq_region *region = region_of(w->db, row);
    size_t cells = get_cells(w, region, &scan) ? w->out.count : read_cells(w, region, &scan, 1);
    return cells == 0 ? -1 : (long)w->out.bytes.len;
}

size_t worker_scan(worker *w, const uint8_t start[ROW_BYTES], size_t limit)
{
    rq_scan scan = scan_of(rq_slice_of(start, ROW_BYTES), false);
    return read_cells(w, region_of(w->db, start), &scan, limit);
}

static void qualifier_of(uint64_t n, uint8_t bytes[8])
{
    for (int i = 7; i >= 0; i--, n >>= 8)
        bytes[i] = (uint8_t)n;
}

void worker_wide_write(worker *w, uint64_t first, size_t count)
{
    static const uint8_t value[100];
    for (size_t i = 0; i < count; i++) {
        qualifier_of(first + i, w->qualifiers[i]);
        w->cells[i] = (rq_cell){.family = (const uint8_t *)"f",
                                .family_len = 1,
                                .qualifier = w->qualifiers[i],
                                .qualifier_len = 8,
                                .timestamp = RQ_TIMESTAMP_LATEST,
                                .type = RQ_TYPE_PUT,
                                .value = value,
                                .value_len = sizeof value};
    }
    w->mutations[0] = (rq_mutation){.type = RQ_MUTATE_PUT,
                                    .row = RQ_SLICE_LIT(WIDE_ROW),
                                    .cells = w->cells,
                                    .cell_count = count};
    w->ops[0] = (rq_row_op){.mutations = w->mutations, .mutation_count = 1};
    submit(w, w->db->region[0], 1);
}

size_t worker_wide_read(worker *w, uint64_t qualifier, size_t limit)
{
    uint8_t bytes[8];
    qualifier_of(qualifier, bytes);
    rq_slice q = rq_slice_of(bytes, sizeof bytes);
    rq_scan_family f = {.family = RQ_SLICE_LIT("f"), .qualifiers = &q, .qualifier_count = 1};
    rq_scan scan = scan_of(RQ_SLICE_LIT(WIDE_ROW), true);
    if (limit == 1) {
        scan.families = &f;
        scan.family_count = 1;
    } else if (limit > 0) {
        scan.store_limit = (int32_t)limit;
    }
    if (limit == 1 && get_cells(w, w->db->region[0], &scan)) return w->out.count;
    return read_cells(w, w->db->region[0], &scan, limit);
}

void database_flush(database *db)
{
    rq_error why = {0};
    bool flushed;
    for (unsigned i = 0; i < db->regions; i++)
        check(rq_region_flush(db->region[i], (rq_slice){0}, &flushed, &why), "flush", &why);
}

void database_compact(database *db)
{
    for (unsigned i = 0; i < db->regions; i++) {
        rq_error why = {0};
        rq_region_load load;
        check(rq_region_compact(db->region[i], (rq_slice){0}, true, &why), "compact", &why);
        do {
            usleep(20000);
            rq_region_get_load(db->region[i], &load);
        } while (rq_region_compaction_state(db->region[i]) != 0 || load.storefiles > 1);
    }
}
