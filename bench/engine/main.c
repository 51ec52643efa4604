/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine benchmark's driver; linked with each of ours.c, rocksdb.c, library.c and sqlite.c.
 *
 *   engine_ours FOLDER [name=value]... STEP...
 *
 * Values (before the step they apply to): rows, value (bytes), threads, ops (per thread), batch,
 * seconds, rate (rows per second offered by overwrite; 0: as many as possible); gets, puts, rmws,
 * scans, multis, draw (of mixes, see mixes.c); seed (the same draws the same rows); cache, buffer,
 * block (bytes), leveled, encoded, regions, sync (these must precede the first step).
 * The last argument may be '-': further values and steps come from lines of standard input, and
 * after each line "done" is printed.
 *
 * Steps:
 *   fill-random fill-sequential       every row once, in batches
 *   overwrite                         random rows for `seconds`
 *   get miss scan seek                `ops` random reads each (scan: all; seek: 10 rows from one on)
 *   wide wide-one wide-ten wide-all   one row of `rows` qualifiers
 *   mixed                             for `seconds`: every other thread writes, the others read
 *   flush compact                     and waits
 *   drop                              ends the process without closing, as kill -9 does
 *   mix                               drawn operations for `seconds` (RocksDB only)
 *
 * The database is opened at the first step, which prints an additional line "open". Each step
 * prints a line:
 *   STEP threads=N ops=N seconds=S cpu=S rss=BYTES peak=BYTES [p50=US p99=US p999=US]
 *   [written=BYTES disk=BYTES most=BYTES]
 * `written` is the number of bytes passed to write() in the step. `disk` is the mean size of the
 * folder in the second half of the step (for short steps: its size afterwards), `most` its largest
 * size then; the size rises and falls with compactions, so a single sample would be arbitrary. With
 * a rate a batch's latency counts from the time at which it was due.
 */
#include "driver.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct run_state run = {.db = {.cache_bytes = 1ull << 30,
                               .buffer_bytes = 64ull << 20,
                               .block_bytes = 65536,
                               .regions = 1},
                        .rows = 1000000,
                        .ops = 100000,
                        .seconds = 10,
                        .threads = 1,
                        .batch = 100,
                        .value = 100,
                        .gets = 100};

double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t next_random(job *j)
{
    j->random ^= j->random << 13;
    j->random ^= j->random >> 7;
    j->random ^= j->random << 17;
    return j->random;
}

#define STRIDE 2654435761ull /* a prime */

/* Row i of a permutation that visits all rows in a scattered order. */
static uint64_t scattered(uint64_t i)
{
    return i % run.rows * STRIDE % run.rows;
}

void latency_add(job *j, double us)
{
    double bucket = us <= 1 ? 0 : ceil(log2(us) * BUCKETS_PER_DOUBLING);
    j->latency[bucket < BUCKETS ? (unsigned)bucket : BUCKETS - 1]++;
}

/* --- steps ------------------------------------------------------------------------------------ */

const uint8_t *value_of(uint64_t n)
{
    static uint8_t pool[VALUE_MAX * 2];
    static atomic_bool filled;
    if (!atomic_load(&filled)) {
        uint64_t x = 88172645463325252ull;
        for (size_t i = 0; i < sizeof pool; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            pool[i] = (uint8_t)x;
        }
        atomic_store(&filled, true);
    }
    return pool + n % VALUE_MAX;
}

static void fill(job *j, bool in_order)
{
    worker *w = worker_new(run.open);
    entry *entries = calloc(run.batch, sizeof *entries);
    uint64_t from = run.rows * j->index / run.threads;
    uint64_t to = run.rows * (j->index + 1) / run.threads;
    for (uint64_t i = from; i < to;) {
        size_t n = 0;
        for (; n < run.batch && i < to; n++, i++) {
            uint64_t id = in_order ? i : scattered(i);
            row_of(id, entries[n].row);
            entries[n].value = value_of(id);
            entries[n].value_len = run.value;
        }
        double begun = seconds_of(CLOCK_MONOTONIC);
        worker_write(w, entries, n);
        latency_add(j, (seconds_of(CLOCK_MONOTONIC) - begun) * 1e6);
        j->done += n;
    }
    free(entries);
    worker_free(w);
}

static void fill_random(job *j)
{
    fill(j, false);
}

static void fill_sequential(job *j)
{
    fill(j, true);
}

static void overwrite(job *j)
{
    worker *w = worker_new(run.open);
    entry *entries = calloc(run.batch, sizeof *entries);
    double due = seconds_of(CLOCK_MONOTONIC);
    double end = due + (double)run.seconds;
    for (double now = due; now < end; now = seconds_of(CLOCK_MONOTONIC)) {
        for (unsigned n = 0; n < run.batch; n++) {
            uint64_t id = next_random(j) % run.rows;
            row_of(id, entries[n].row);
            entries[n].value = value_of(id + j->done);
            entries[n].value_len = run.value;
        }
        double begun = seconds_of(CLOCK_MONOTONIC);
        if (run.rate > 0) {
            due += (double)run.batch * run.threads / (double)run.rate;
            if (due > begun) usleep((useconds_t)((due - begun) * 1e6));
            begun = due;
        }
        worker_write(w, entries, run.batch);
        latency_add(j, (seconds_of(CLOCK_MONOTONIC) - begun) * 1e6);
        j->done += run.batch;
    }
    free(entries);
    worker_free(w);
}

static void get_rows(job *j, bool there)
{
    worker *w = worker_new(run.open);
    uint8_t row[ROW_BYTES];
    for (uint64_t i = 0; i < run.ops; i++) {
        row_of(next_random(j) % run.rows, row);
        if (!there) row[ROW_BYTES - 1] = 'x'; /* a key between two existing rows */
        double begun = i % 16 == 0 ? seconds_of(CLOCK_MONOTONIC) : 0;
        long len = worker_get(w, row);
        if (i % 16 == 0) latency_add(j, (seconds_of(CLOCK_MONOTONIC) - begun) * 1e6);
        if ((len >= 0) != there) {
            fprintf(stderr, "row %.32s is %s\n", (char *)row, there ? "missing" : "there");
            exit(1);
        }
        j->done++;
    }
    worker_free(w);
}

static void get(job *j)
{
    get_rows(j, true);
}

static void miss(job *j)
{
    get_rows(j, false);
}

static void scan(job *j)
{
    worker *w = worker_new(run.open);
    uint8_t row[ROW_BYTES];
    uint64_t from = run.rows * j->index / run.threads;
    row_of(from, row);
    uint64_t wanted = run.rows * (j->index + 1) / run.threads - from;
    j->done = worker_scan(w, row, wanted);
    if (j->done != wanted) {
        fprintf(stderr, "%llu rows of %llu\n", (unsigned long long)j->done,
                (unsigned long long)wanted);
        exit(1);
    }
    worker_free(w);
}

static void seek(job *j)
{
    worker *w = worker_new(run.open);
    uint8_t row[ROW_BYTES];
    for (uint64_t i = 0; i < run.ops; i++) {
        row_of(next_random(j) % (run.rows - 10), row);
        if (worker_scan(w, row, 10) != 10) exit(1);
        j->done++;
    }
    worker_free(w);
}

static void mixed_reads(job *j)
{
    worker *w = worker_new(run.open);
    uint8_t row[ROW_BYTES];
    double end = seconds_of(CLOCK_MONOTONIC) + (double)run.seconds;
    while (seconds_of(CLOCK_MONOTONIC) < end)
        for (int i = 0; i < 64; i++, j->done++) {
            uint64_t id = next_random(j) % (run.rows - 10);
            row_of(id, row);
            if (i == 0)
                (void)worker_scan(w, row, 1000);
            else if (i < 8)
                (void)worker_scan(w, row, 10);
            else if (worker_get(w, row) < 0)
                exit(1);
        }
    worker_free(w);
}

static void mixed(job *j)
{
    if (j->index % 2 == 0)
        overwrite(j);
    else
        mixed_reads(j);
}

static void wide(job *j)
{
    worker *w = worker_new(run.open);
    for (uint64_t i = j->index; i * run.batch < run.rows; i += run.threads) {
        worker_wide_write(w, i * run.batch, run.batch);
        j->done += run.batch;
    }
    worker_free(w);
}

static void wide_read(job *j, size_t limit)
{
    worker *w = worker_new(run.open);
    for (uint64_t i = 0; i < run.ops; i++) {
        size_t n = worker_wide_read(w, next_random(j) % run.rows, limit);
        if (n != (limit == 0 ? run.rows : limit)) {
            fprintf(stderr, "%zu cells\n", n);
            exit(1);
        }
        j->done++;
    }
    worker_free(w);
}

static void wide_one(job *j)
{
    wide_read(j, 1);
}

static void wide_ten(job *j)
{
    wide_read(j, 10);
}

static void wide_all(job *j)
{
    wide_read(j, 0);
}

static void flush(job *j)
{
    j->done = 1;
    database_flush(run.open);
}

static void compact(job *j)
{
    j->done = 1;
    database_compact(run.open);
}

static void drop(job *j)
{
    (void)j;
    database_drop(run.open);
}

static const struct {
    const char *name;
    void (*work)(job *j);
    bool alone;
} steps[] = {
    {"fill-random", fill_random, false},
    {"fill-sequential", fill_sequential, false},
    {"overwrite", overwrite, false},
    {"mixed", mixed, false},
#ifdef ENGINE_MIXES
    {"mix", mix, false},
#endif
    {"get", get, false},
    {"miss", miss, false},
    {"scan", scan, false},
    {"seek", seek, false},
    {"wide", wide, false},
    {"wide-one", wide_one, false},
    {"wide-ten", wide_ten, false},
    {"wide-all", wide_all, false},
    {"flush", flush, true},
    {"compact", compact, true},
    {"drop", drop, true},
};

/* --- measuring -------------------------------------------------------------------------------- */

static uint64_t proc_number(const char *path, const char *key)
{
    char line[256];
    unsigned long long n = 0;
    FILE *f = fopen(path, "r");
    if (f == NULL) return 0;
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, key, strlen(key)) == 0) n = strtoull(line + strlen(key), NULL, 10);
    fclose(f);
    return n;
}

static double percentile(const job *jobs, unsigned count, double share)
{
    uint64_t sum = 0, total = 0;
    for (unsigned i = 0; i < count; i++)
        for (unsigned b = 0; b < BUCKETS; b++)
            total += jobs[i].latency[b];
    if (total == 0) return 0;
    unsigned bucket = 0;
    for (;; bucket++) {
        for (unsigned i = 0; i < count; i++)
            sum += jobs[i].latency[bucket];
        if ((double)sum >= share * (double)total || bucket == BUCKETS - 1) break;
    }
    return exp2((double)bucket / BUCKETS_PER_DOUBLING);
}

static void report(const char *name, const job *jobs, unsigned threads, double wall, double cpu,
                   uint64_t written, uint64_t disk, uint64_t most)
{
    uint64_t done = 0;
    for (unsigned i = 0; i < threads; i++)
        done += jobs[i].done;
    printf("%s threads=%u ops=%llu seconds=%.3f cpu=%.3f rss=%llu peak=%llu", name, threads,
           (unsigned long long)done, wall, cpu,
           (unsigned long long)proc_number("/proc/self/status", "VmRSS:") * 1024,
           (unsigned long long)proc_number("/proc/self/status", "VmHWM:") * 1024);
    if (percentile(jobs, threads, 1) > 0)
        printf(" p50=%.1f p99=%.1f p999=%.1f", percentile(jobs, threads, 0.5),
               percentile(jobs, threads, 0.99), percentile(jobs, threads, 0.999));
    if (written > 0)
        printf(" written=%llu disk=%llu most=%llu", (unsigned long long)written,
               (unsigned long long)disk, (unsigned long long)most);
    printf("\n");
    fflush(stdout);
}

static void *job_main(void *arg)
{
    job *j = arg;
    j->work(j);
    return NULL;
}

static void step(const char *name, void (*work)(job *j), unsigned threads)
{
    static job jobs[THREADS_MAX];
    memset(jobs, 0, sizeof jobs);
    watch looks;
    uint64_t disk, most;
    watch_begin(&looks);
    uint64_t written = proc_number("/proc/self/io", "wchar:");
    double wall = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    for (unsigned i = 0; i < threads; i++) {
        jobs[i].work = work;
        jobs[i].index = i;
        jobs[i].random = 88172645463325252ull + 977 * (i + 1) + run.seed * 0x9e3779b97f4a7c15ull;
        if (pthread_create(&jobs[i].thread, NULL, job_main, &jobs[i]) != 0) exit(1);
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(jobs[i].thread, NULL);
    wall = seconds_of(CLOCK_MONOTONIC) - wall;
    cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    written = proc_number("/proc/self/io", "wchar:") - written;
    watch_end(&looks, &disk, &most);
    report(name, jobs, threads, wall, cpu, written, disk, most);
}

static void open_database(job *j)
{
    run.db.rows = run.rows;
    run.open = database_open(&run.db);
    j->done = 1;
}

static bool set(const char *arg)
{
    const char *eq = strchr(arg, '=');
    if (eq == NULL) return false;
    uint64_t n = strtoull(eq + 1, NULL, 10);
    size_t len = (size_t)(eq - arg);
#define IS(name) (len == sizeof name - 1 && memcmp(arg, name, len) == 0)
    if (IS("rows"))
        run.rows = n;
    else if (IS("ops"))
        run.ops = n;
    else if (IS("seconds"))
        run.seconds = n;
    else if (IS("rate"))
        run.rate = n;
    else if (IS("threads"))
        run.threads = (unsigned)n;
    else if (IS("batch"))
        run.batch = (unsigned)n;
    else if (IS("value"))
        run.value = (unsigned)n;
    else if (IS("gets"))
        run.gets = (unsigned)n;
    else if (IS("puts"))
        run.puts = (unsigned)n;
    else if (IS("rmws"))
        run.rmws = (unsigned)n;
    else if (IS("scans"))
        run.scans = (unsigned)n;
    else if (IS("multis"))
        run.multis = (unsigned)n;
    else if (IS("draw"))
        run.draw = (unsigned)n;
    else if (IS("seed"))
        run.seed = n;
    else if (IS("cache"))
        run.db.cache_bytes = n;
    else if (IS("buffer"))
        run.db.buffer_bytes = n;
    else if (IS("block"))
        run.db.block_bytes = (uint32_t)n;
    else if (IS("regions"))
        run.db.regions = (unsigned)n;
    else if (IS("encoded"))
        run.db.encoded = n != 0;
    else if (IS("leveled"))
        run.db.leveled = n != 0;
    else if (IS("sync"))
        run.db.sync = n != 0;
    else if (IS("no_threads"))
        run.db.no_threads = n != 0;
    else
        return false;
#undef IS
    return run.threads >= 1 && run.threads <= THREADS_MAX && run.value <= VALUE_MAX &&
           run.batch >= 1 && run.batch <= 1000 && run.rows > 10 && run.rows % STRIDE != 0;
}

/* Takes a value or a step; false: the word is neither. */
static bool take(const char *word)
{
    size_t s = 0;
    if (set(word)) return true;
    while (s < sizeof steps / sizeof steps[0] && strcmp(steps[s].name, word) != 0)
        s++;
    if (s == sizeof steps / sizeof steps[0]) {
        fprintf(stderr, "%s: no step and no value\n", word);
        return false;
    }
    if (run.open == NULL) step("open", open_database, 1);
    step(steps[s].name, steps[s].work, steps[s].alone ? 1 : run.threads);
    return true;
}

static bool take_lines(void)
{
    char line[4096];
    while (fgets(line, sizeof line, stdin) != NULL) {
        for (char *word = strtok(line, " \n"); word != NULL; word = strtok(NULL, " \n"))
            if (!take(word)) return false;
        printf("done\n");
        fflush(stdout);
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s FOLDER [name=value]... STEP...\n", argv[0]);
        return 2;
    }
    run.db.folder = argv[1];
    for (int i = 2; i < argc; i++)
        if (!(i == argc - 1 && strcmp(argv[i], "-") == 0 ? take_lines() : take(argv[i]))) return 2;
    if (run.open != NULL) database_close(run.open);
    return 0;
}
