/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memstore alone: the cost of an insert and of a seek of a 1 kB cell in a memstore of CELLS
 * cells (first argument, default a million), in random and in ascending order; the same with the
 * core's caches emptied before each operation, as a client on the same core would do; and the cost
 * per cell of a walk over all cells, as in a flush. The second argument is the length of the
 * values. With a third argument only short scans are measured, with and without a hint of their length. The lower bound is copying the same bytes to the same kind of memory.
 */
#include "base/random.h"
#include "store/segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define SAMPLES 100000u
#define COLD_SAMPLES 5000u
#define COLD_BYTES ((size_t)4 << 20) /* twice a usual second-level cache */
#define VALUE_BYTES_MAX 1000

static uint32_t value_bytes = VALUE_BYTES_MAX;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void print(const char *what, uint64_t *ns, size_t count)
{
    qsort(ns, count, sizeof *ns, compare);
    printf("%-34s p50 %6.2f us   p99 %6.2f us   p99.9 %6.2f us\n", what,
           (double)ns[count / 2] / 1e3, (double)ns[count * 99 / 100] / 1e3,
           (double)ns[count * 999 / 1000] / 1e3);
}

static rq_cell cell(char row[32], uint64_t n, const uint8_t *value)
{
    int len = snprintf(row, 32, "%020llu", (unsigned long long)n);
    return (rq_cell){.row = (uint8_t *)row,
                     .row_len = (uint16_t)len,
                     .family = (const uint8_t *)"info0",
                     .family_len = 5,
                     .qualifier = (const uint8_t *)"0",
                     .qualifier_len = 1,
                     .timestamp = 1700000000000,
                     .type = RQ_TYPE_PUT,
                     .value = value,
                     .value_len = value_bytes,
                     .seqid = 1};
}

static void empty_caches(uint8_t *other)
{
    for (size_t i = 0; i < COLD_BYTES; i += 64)
        other[i]++;
}

static void seek(const rq_segment *s, bool ascending, uint32_t cells, rq_random *random,
                 uint8_t *other, size_t samples, uint64_t *ns)
{
    static const uint8_t value[1];
    char row[32];
    for (size_t i = 0; i < samples; i++) {
        uint64_t n = rq_random_next(random);
        rq_cell c = cell(row, ascending ? n % cells : n, value);
        rq_segment_cursor at;
        if (other != NULL) empty_caches(other);
        uint64_t from = now_ns();
        rq__segment_seek(&at, s, &c);
        ns[i] = now_ns() - from;
    }
}

/* Reads each cell's key, as the HFile writer does. */
static void walk(const rq_segment *s, const char *what)
{
    rq_segment_cursor at;
    rq_cell c;
    uint64_t seqids = 0;
    size_t count = 0;
    uint64_t from = now_ns();
    for (rq_segment_first(&at, s); rq__segment_cursor_valid(&at); rq__segment_cursor_next(&at)) {
        rq__segment_cursor_cell(&at, &c);
        seqids += c.seqid;
        count++;
    }
    uint64_t ns = now_ns() - from;
    if (seqids != count) exit(1);
    printf("%-34s %.1f ns a cell\n", what, (double)ns / (double)count);
}

static void run(bool ascending, uint32_t cells, uint8_t *other, uint64_t *ns)
{
    rq_segment *s;
    rq_random random;
    static uint8_t value[VALUE_BYTES_MAX];
    char row[32];
    rq_random_seed(&random, 1);
    if (rq_segment_new(RQ_ORDER_DEFAULT, &s) != RQ_OK) exit(1);
    for (uint32_t i = 0; i < cells + SAMPLES; i++) {
        rq_cell c = cell(row, ascending ? i : rq_random_next(&random), value);
        uint64_t from = now_ns();
        if (rq_segment_add(s, &c) != RQ_OK) exit(1);
        if (i >= cells) ns[i - cells] = now_ns() - from;
    }
    print(ascending ? "insert, ascending rows" : "insert, random rows", ns, SAMPLES);
    seek(s, ascending, cells, &random, NULL, SAMPLES, ns);
    print(ascending ? "seek, ascending rows" : "seek, random rows", ns, SAMPLES);
    seek(s, ascending, cells, &random, other, COLD_SAMPLES, ns);
    print(ascending ? "seek, ascending rows, cold" : "seek, random rows, cold", ns, COLD_SAMPLES);
    for (uint32_t i = 0; i < COLD_SAMPLES; i++) {
        rq_cell c = cell(row, ascending ? cells + SAMPLES + i : rq_random_next(&random), value);
        empty_caches(other);
        uint64_t from = now_ns();
        if (rq_segment_add(s, &c) != RQ_OK) exit(1);
        ns[i] = now_ns() - from;
    }
    print(ascending ? "insert, ascending rows, cold" : "insert, random rows, cold", ns,
          COLD_SAMPLES);
    walk(s, ascending ? "walk, ascending rows" : "walk, random rows");
    printf("%-34s %.1f MB for %.1f MB of cells\n", "memory", (double)rq_segment_heap_bytes(s) / 1e6,
           (double)rq_segment_data_bytes(s) / 1e6);
    rq_segment_unref(s);
}

/* Short scans: rows of ten cells, written in the order of their hashes; each scan seeks one of them
 * and copies the cells behind it. `expected`: the segment is told so. */
#define ROW_CELLS 10u
#define SCANS 4000u

static rq_cell column(char row[32], uint64_t n, uint32_t i, const uint8_t *value)
{
    static const char names[ROW_CELLS + 1] = "0123456789";
    rq_cell c = cell(row, n, value);
    c.qualifier = (const uint8_t *)names + i;
    return c;
}

static double scans(const rq_segment *s, uint64_t seed, uint32_t cells, bool expected,
                    uint8_t *ret_copy)
{
    rq_random random;
    rq_random_seed(&random, seed);
    char row[32];
    struct timespec from, to;
    uint64_t copied = 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    for (uint32_t i = 0; i < SCANS; i++) {
        rq_cell key = column(row, rq_random_next(&random), 0, NULL);
        rq_segment_cursor at;
        rq__segment_seek(&at, s, &key);
        if (expected) rq__segment_expect_walk(&at);
        size_t len = 0;
        for (uint32_t k = 0; k < cells && rq__segment_cursor_valid(&at); k++) {
            rq_slice bytes = rq_segment_node_bytes(at.node);
            memcpy(ret_copy + len, bytes.ptr, bytes.len);
            len += bytes.len;
            copied++;
            rq__segment_cursor_next(&at);
        }
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
           (double)copied;
}

static void short_scans(uint32_t cells, uint8_t *copy)
{
    static const uint32_t lengths[] = {1, 10, 50, 100, 480, 1000};
    static uint8_t value[VALUE_BYTES_MAX];
    rq_segment *s;
    rq_random random;
    char row[32];
    rq_random_seed(&random, 1);
    if (rq_segment_new(RQ_ORDER_DEFAULT, &s) != RQ_OK) exit(1);
    for (uint32_t n = 0; n < cells / ROW_CELLS; n++) {
        uint64_t number = rq_random_next(&random);
        for (uint32_t i = 0; i < ROW_CELLS; i++) {
            rq_cell c = column(row, number, i, value);
            if (rq_segment_add(s, &c) != RQ_OK) exit(1);
        }
    }
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        double best[2] = {1e9, 1e9};
        for (uint64_t round = 0; round < 10; round++) {
            double ns = scans(s, round, lengths[i], round % 2 == 1, copy);
            if (ns < best[round % 2]) best[round % 2] = ns;
        }
        printf("scan of %4u cells of rows of ten    %.1f ns a cell, expected %.1f\n", lengths[i],
               best[0], best[1]);
    }
    rq_segment_unref(s);
}

static void floor_copy(uint64_t *ns)
{
    static uint8_t value[VALUE_BYTES_MAX];
    size_t size = (size_t)SAMPLES * 1088;
    uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) exit(1);
    madvise(p, size, MADV_HUGEPAGE);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint64_t from = now_ns();
        memcpy(p + (size_t)i * 1088, value, VALUE_BYTES_MAX);
        ns[i] = now_ns() - from;
    }
    print("floor: copy of 1 kB to new memory", ns, SAMPLES);
    munmap(p, size);
}

int main(int argc, char **argv)
{
    uint32_t cells = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000000;
    if (argc > 2) value_bytes = (uint32_t)strtoul(argv[2], NULL, 10);
    if (value_bytes > VALUE_BYTES_MAX) return 1;
    uint64_t *ns = calloc(SAMPLES, sizeof *ns);
    uint8_t *other = calloc(1, COLD_BYTES);
    if (cells == 0 || ns == NULL || other == NULL) return 1;
    if (argc > 3) {
        short_scans(cells, other);
        return 0;
    }
    floor_copy(ns);
    run(false, cells, other, ns);
    run(true, cells, other, ns);
    free(other);
    free(ns);
    return 0;
}
