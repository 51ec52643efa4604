/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HFile speed: writing, scanning and point reads of cached blocks, each with a lower bound (the
 * cost of moving the same bytes on this machine). Measures CPU time of the one thread, so that
 * other processes matter only through caches and memory bandwidth.
 *
 *   bench_hfile FOLDER [CELLS [VALUE_BYTES [COMPRESSION]]]
 *
 * Then prints a line for each data block encoding, for a file of the same cells: time per cell
 * written and scanned and per point read, from the cache, also relative to NONE.
 */
#include "base/checksum.h"
#include "base/random.h"
#include "hfile/reader.h"
#include "hfile/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NAME "bench.hfile"
#define READS 1000000

typedef struct bench {
    rq_vfs *vfs;
    size_t cells;
    uint32_t value_len;
    rq_hfile_options options;
    rq_hfile_reader *reader;
    rq_read_ctx ctx;
    rq_error why;
} bench;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(const bench *b, rq_err rc)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s\n", rq_err_name(rc), b->why.message);
    exit(1);
}

/* "row" and ten digits; snprintf would cost more than a point read. */
static rq_cell key_of(char row[13], size_t i)
{
    memcpy(row, "row", 3);
    for (int d = 12; d >= 3; d--, i /= 10)
        row[d] = (char)('0' + i % 10);
    return rq_cell_first_on_column(rq_slice_of(row, 13), RQ_SLICE_LIT("f"), RQ_SLICE_LIT("q"));
}

static void write_cells(bench *b, uint64_t *ret_bytes)
{
    char row[13];
    uint8_t *value = malloc(b->value_len + 1);
    if (value == NULL) exit(1);
    rq_random random;
    rq_random_seed(&random, 1);
    for (uint32_t i = 0; i < b->value_len; i++)
        value[i] = (uint8_t)(rq_random_next(&random) & 0x3f);
    rq_hfile_writer *w;
    uint64_t bytes = 0;
    must(b, rq_hfile_writer_open(b->vfs, NAME, &b->options, &w, &b->why));
    for (size_t i = 0; i < b->cells; i++) {
        rq_cell c = key_of(row, i);
        c.type = RQ_TYPE_PUT;
        c.timestamp = 1700000000000;
        c.seqid = i;
        c.value = value;
        c.value_len = b->value_len;
        bytes += rq_cell_serialized_len(&c, false);
        must(b, rq_hfile_writer_append(w, &c, &b->why));
    }
    must(b, rq_hfile_writer_finish(w, NULL, &b->why));
    rq_hfile_writer_close(w);
    free(value);
    *ret_bytes = bytes;
}

static void bench_write(bench *b)
{
    uint64_t bytes;
    double begin = now();
    write_cells(b, &bytes);
    double spent = now() - begin;
    printf("write      %8.0f MB/s  %7.1f ns a cell\n", (double)bytes / 1e6 / spent,
           spent / (double)b->cells * 1e9);
    uint8_t *block = calloc(1, 65536);
    if (block == NULL) exit(1);
    uint32_t sum = 0;
    begin = now();
    for (uint64_t done = 0; done < bytes; done += 65536) {
        block[done >> 16 & 65535]++;
        sum = rq_crc32c(sum, block, 65536);
    }
    printf("  floor    %8.0f MB/s  CRC-32C alone (%08x)\n", (double)bytes / 1e6 / (now() - begin),
           sum);
    free(block);
}

static rq_err resume(bench *b, rq_hfile_scanner *s, const rq_cell *key, bool first)
{
    rq_err rc;
    while ((rc = first         ? rq_hfile_scanner_seek_first(s, &b->ctx, &b->why)
                 : key != NULL ? rq_hfile_scanner_seek(s, &b->ctx, key, &b->why)
                               : rq_hfile_scanner_next(s, &b->ctx, &b->why)) == RQ_E_AGAIN)
        must(b, rq_read_ctx_fulfil(&b->ctx, &b->why));
    return rc;
}

/* Returns nanoseconds per cell; `name` NULL: prints nothing. */
static double bench_scan(bench *b, const char *name)
{
    rq_hfile_scanner s;
    rq_hfile_scanner_init(&s, b->reader);
    size_t count = 0;
    uint64_t sum = 0;
    double begin = now();
    rq_err rc = resume(b, &s, NULL, true);
    while (rc == RQ_OK) {
        sum += rq_hfile_scanner_cell(&s)->value_len;
        count++;
        rc = resume(b, &s, NULL, false);
    }
    double spent = now() - begin;
    if (rc != RQ_E_END) must(b, rc);
    double each = spent / (double)count * 1e9;
    if (name != NULL)
        printf("%s %8.1f M cells/s  %5.1f ns a cell (%" PRIu64 ")\n", name, 1e3 / each, each, sum);
    rq_hfile_scanner_clear(&s);
    return each;
}

static double bench_gets(bench *b, const char *name)
{
    rq_hfile_scanner s;
    char row[13];
    rq_random random;
    rq_random_seed(&random, 7);
    rq_hfile_scanner_init(&s, b->reader);
    double begin = now();
    for (int i = 0; i < READS; i++) {
        rq_cell key = key_of(row, rq_random_below(&random, b->cells));
        must(b, resume(b, &s, &key, false));
        rq__hfile_scanner_release(&s);
    }
    double each = (now() - begin) / READS * 1e9;
    if (name != NULL) printf("%s %8.0f ns\n", name, each);
    rq_hfile_scanner_clear(&s);
    return each;
}

static void bench_bloom(bench *b)
{
    char row[13];
    rq_random random;
    rq_random_seed(&random, 7);
    int passed = 0;
    double begin = now();
    for (int i = 0; i < READS; i++) {
        rq_cell key = key_of(row, rq_random_below(&random, b->cells));
        bool may;
        rq_err rc;
        while ((rc = rq_hfile_may_contain_row(b->reader, &b->ctx, rq_cell_row(&key), &may,
                                              &b->why)) == RQ_E_AGAIN)
            must(b, rq_read_ctx_fulfil(&b->ctx, &b->why));
        must(b, rc);
        passed += may;
    }
    printf("bloom      %8.0f ns (%d)\n", (now() - begin) / READS * 1e9, passed);
}

static void bench_encodings(bench *b)
{
    static const struct {
        const char *name;
        rq_block_encoding encoding;
    } all[] = {{"NONE", RQ_ENCODING_NONE},
               {"ROW_INDEX_V1", RQ_ENCODING_ROW_INDEX_V1},
               {"PREFIX", RQ_ENCODING_PREFIX},
               {"DIFF", RQ_ENCODING_DIFF},
               {"FAST_DIFF", RQ_ENCODING_FAST_DIFF}};
    double base[3] = {0};
    printf("encoding       file MB  cache MB   write ns          scan ns          get ns\n");
    for (size_t i = 0; i < RQ_ARRAY_LEN(all); i++) {
        rq_block_cache *cache;
        rq_block_cache_stats stats;
        uint64_t bytes;
        b->options.encoding = all[i].encoding;
        double begin = now();
        write_cells(b, &bytes);
        double figures[3] = {(now() - begin) / (double)b->cells * 1e9};
        must(b, rq_block_cache_new((uint64_t)4 << 30, &cache));
        must(b, rq_hfile_reader_open(b->vfs, NAME, cache, false, &b->reader, &b->why));
        (void)bench_scan(b, NULL);
        figures[1] = bench_scan(b, NULL);
        (void)bench_gets(b, NULL);
        figures[2] = bench_gets(b, NULL);
        rq_block_cache_get_stats(cache, &stats);
        if (i == 0) memcpy(base, figures, sizeof(base));
        printf("%-12s %9.1f %9.1f", all[i].name,
               (double)rq_hfile_reader_info(b->reader)->size_bytes / 1e6,
               (double)stats.used_bytes / 1e6);
        for (int k = 0; k < 3; k++)
            printf("  %8.1f (%4.2f)", figures[k], figures[k] / base[k]);
        putchar('\n');
        rq_read_ctx_clear(&b->ctx);
        rq_hfile_reader_unref(b->reader);
        rq_block_cache_free(cache);
        must(b, rq_vfs_remove(b->vfs, NAME, &b->why));
    }
}

/* Measures a chain of dependent loads over the same amount of memory: each address comes from the
 * previous load. */
static void load_floor(uint64_t bytes)
{
    size_t n = bytes / 64;
    struct line {
        size_t next;
        uint8_t rest[56];
    } *lines = malloc(n * sizeof(*lines));
    if (lines == NULL) exit(1);
    rq_random random;
    rq_random_seed(&random, 3);
    for (size_t i = 0; i < n; i++)
        lines[i].next = rq_random_below(&random, n);
    size_t at = 0;
    double begin = now();
    for (int i = 0; i < READS; i++)
        at = lines[(at + (size_t)i) % n].next;
    printf("  floor    %8.0f ns  one dependent load from %.0f MB (%zu)\n",
           (now() - begin) / READS * 1e9, (double)bytes / 1e6, at);
    free(lines);
}

int main(int argc, char **argv)
{
    bench b = {.cells = 2000000, .value_len = 10, .options = rq_hfile_options_default()};
    if (argc < 2) {
        fprintf(stderr, "usage: bench_hfile FOLDER [CELLS [VALUE_BYTES [COMPRESSION]]]\n");
        return 2;
    }
    if (argc > 2) b.cells = strtoull(argv[2], NULL, 10);
    if (argc > 3) b.value_len = (uint32_t)strtoul(argv[3], NULL, 10);
    if (argc > 4 && !rq_compression_parse(rq_slice_cstr(argv[4]), &b.options.compression)) return 2;
    must(&b, rq_vfs_posix_new(argv[1], &b.vfs, &b.why));
    (void)!rq_vfs_remove(b.vfs, NAME, NULL);
    bench_write(&b);
    rq_block_cache *cache;
    rq_block_cache_stats stats;
    must(&b, rq_block_cache_new((uint64_t)4 << 30, &cache));
    must(&b, rq_hfile_reader_open(b.vfs, NAME, cache, false, &b.reader, &b.why));
    (void)bench_scan(&b, "scan, cold");
    (void)bench_scan(&b, "scan      ");
    (void)bench_gets(&b, "get, 1st  ");
    (void)bench_gets(&b, "get       ");
    bench_bloom(&b);
    rq_block_cache_get_stats(cache, &stats);
    load_floor(stats.used_bytes);
    rq_read_ctx_clear(&b.ctx);
    rq_hfile_reader_unref(b.reader);
    rq_block_cache_free(cache);
    must(&b, rq_vfs_remove(b.vfs, NAME, &b.why));
    bench_encodings(&b);
    rq_vfs_free(b.vfs);
    return 0;
}
