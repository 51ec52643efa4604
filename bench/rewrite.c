/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a flush and a compaction cost per cell, on one thread and without a log: rows of COLUMNS columns of VALUE_BYTES
 * bytes. FILES memstores with ROWS random rows each are flushed, then the files are compacted into one, then this file is
 * rewritten alone, as after a split. Prints the CPU time per cell read; `valgrind --tool=callgrind
 * --toggle-collect=rq_store_rewrite` counts the instructions.
 *
 *   bench_rewrite FOLDER [ROWS [FILES [COLUMNS [VALUE_BYTES [ENCODING [COMPRESSION]]]]]]
 */
#include "table_schema.h"

#include "base/epoch.h"
#include "base/random.h"
#include "hfile/block_cache.h"
#include "hfile/reader.h"
#include "store/compaction.h"
#include "store/segment.h"
#include "vfs/vfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FILES_MAX 32
#define VALUE_BYTES_MAX 1000
#define NOW_MS 1700000000000

typedef struct bench {
    rq_env env;
    rq_store *store;
    unsigned rows, files, columns;
    uint32_t value_len;
    const char *encoding, *compression;
    rq_random random;
    uint64_t seqid;
} bench;

static void check(rq_err rc, const char *what, const rq_error *why)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s %s\n", what, rq_err_text(rc), why == NULL ? "" : why->message);
    exit(1);
}

static void add_row(bench *b, rq_segment *s)
{
    char row[32], qualifier[16];
    uint8_t value[VALUE_BYTES_MAX];
    uint64_t id = rq_random_below(&b->random, (uint64_t)b->rows * 2);
    int len = snprintf(row, sizeof row, "user%016llu", (unsigned long long)id);
    b->seqid++;
    for (unsigned c = 0; c < b->columns; c++) {
        for (uint32_t i = 0; i < b->value_len; i++)
            value[i] = (uint8_t)(' ' + rq_random_below(&b->random, 95));
        int qualifier_len = snprintf(qualifier, sizeof qualifier, "field%02u", c);
        rq_cell cell = {.row = (const uint8_t *)row,
                        .row_len = (uint16_t)len,
                        .family = (const uint8_t *)"f",
                        .family_len = 1,
                        .qualifier = (const uint8_t *)qualifier,
                        .qualifier_len = (uint32_t)qualifier_len,
                        .timestamp = NOW_MS + (int64_t)b->seqid,
                        .type = RQ_TYPE_PUT,
                        .value = value,
                        .value_len = b->value_len,
                        .seqid = b->seqid};
        check(rq_segment_add(s, &cell), "add", NULL);
    }
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void rewrite(const char *what, const rq_rewrite *w, uint64_t cells_read, rq_store_file *ret)
{
    size_t count;
    rq_error why = {0};
    uint64_t begun = cpu_ns();
    check(rq_store_rewrite(w, ret, &count, &why), what, &why);
    uint64_t spent = cpu_ns() - begun;
    const rq_hfile_info *info = rq_hfile_reader_info(ret->reader);
    printf("%-12s %8.1f ns a cell   %9llu cells read, %9llu written, %.2f MB\n", what,
           (double)spent / (double)cells_read, (unsigned long long)cells_read,
           (unsigned long long)info->entry_count, (double)info->size_bytes / 1e6);
}

static void flush(bench *b, rq_store_file *ret)
{
    rq_segment *s;
    check(rq_segment_new(RQ_ORDER_DEFAULT, &s), "segment", NULL);
    for (unsigned i = 0; i < b->rows; i++)
        add_row(b, s);
    rq_rewrite w = {.scan = {.store = b->store,
                             .segments = &s,
                             .segment_count = 1,
                             .is_flush = true,
                             .smallest_read_point = UINT64_MAX,
                             .now_ms = NOW_MS,
                             .max_seqid_inclusive = b->seqid},
                    .max_seqid = b->seqid};
    rewrite("flush", &w, (uint64_t)b->rows * b->columns, ret);
    rq_segment_unref(s);
}

static void compact(bench *b, const char *what, const rq_store_file *files, size_t count,
                    rq_store_file *ret)
{
    uint64_t cells = 0;
    for (size_t i = 0; i < count; i++)
        cells += rq_hfile_reader_info(files[i].reader)->entry_count;
    rq_rewrite w = {.scan = {.store = b->store,
                             .files = files,
                             .file_count = count,
                             .now_ms = NOW_MS,
                             .smallest_read_point = UINT64_MAX},
                    .max_seqid = b->seqid};
    rewrite(what, &w, cells, ret);
}

static void run(bench *b)
{
    rq_store_file files[FILES_MAX], all, again;
    for (unsigned i = 0; i < b->files; i++)
        flush(b, &files[i]);
    compact(b, "compaction", files, b->files, &all);
    compact(b, "one file", &all, 1, &again);
    for (unsigned i = 0; i < b->files; i++)
        rq_store_file_discard(b->store, &files[i]);
    rq_store_file_discard(b->store, &all);
    rq_store_file_discard(b->store, &again);
}

static unsigned number(int argc, char **argv, int i, unsigned otherwise, unsigned max)
{
    unsigned long n = argc > i ? strtoul(argv[i], NULL, 10) : otherwise;
    return n < 1 ? 1 : n > max ? max : (unsigned)n;
}

int main(int argc, char **argv)
{
    static rq_log log = {.fd = 2, .level = RQ_LOG_ERROR};
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1};
    rq_block_cache *cache;
    rq_error why = {0};
    if (argc < 2) return 2;
    bench b = {.rows = number(argc, argv, 2, 20000, 10000000),
               .files = number(argc, argv, 3, 3, FILES_MAX),
               .columns = number(argc, argv, 4, 20, 100),
               .value_len = number(argc, argv, 5, 20, VALUE_BYTES_MAX),
               .encoding = argc > 6 ? argv[6] : "DIFF",
               .compression = argc > 7 ? argv[7] : "ZSTD"};
    rq_random_seed(&b.random, 1);
    b.env.log = &log;
    check(rq_vfs_posix_new(argv[1], &b.env.vfs, &why), argv[1], &why);
    check(rq_thread_executor_new_lazy(threads, &b.env.executor), "executor", NULL);
    check(rq_epoch_new(&b.env.epoch), "epoch", NULL);
    check(rq_block_cache_new(64 << 20, &cache), "cache", NULL);
    check(rq_vfs_mkdirs(b.env.vfs, "f", &why), "folder", &why);
    const char *const attributes[][2] = {{"DATA_BLOCK_ENCODING", b.encoding},
                                         {"COMPRESSION", b.compression}};
    rq_table_schema *schema = bench_table_schema("t", "f", attributes, RQ_ARRAY_LEN(attributes));
    rq_store_options o = {
        .env = &b.env, .cache = cache, .table = schema, .family = &schema->families[0], .dir = "f"};
    check(rq_store_open(&o, NULL, 0, &b.store, &why), "store", &why);
    run(&b);
    rq_store_free(b.store);
    rq_table_schema_unref(schema);
    rq_block_cache_free(cache);
    rq_thread_executor_free(b.env.executor);
    rq_epoch_free(b.env.epoch);
    rq_vfs_free(b.env.vfs);
    return 0;
}
