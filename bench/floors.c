/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's own speed, as lower bounds for any server: floors FOLDER BATCH SECONDS prints one
 * line of JSON.
 *
 *   sync    write of BATCH bytes and fdatasync, repeatedly in a file that was written before
 *           (its blocks exist, its length does not change): batches per second, and the latency
 *   direct_sync   the same by writes with O_DIRECT and O_DSYNC; missing if BATCH is not a multiple of 4096,
 *           or the file system has no O_DIRECT
 *   memcpy  GB per second of copies of a megabyte
 *   wake    latency of waking a thread that gets a message every millisecond. The upper percentiles
 *           are the machine's noise, which a server's latencies include
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define FILE_BYTES (64 << 20)
#define COPY_BYTES (1 << 20)
#define PAGE 4096
#define SAMPLES_MAX (1 << 20)

typedef struct samples {
    double *us;
    size_t count;
} samples;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void add(samples *s, double us)
{
    if (s->count < SAMPLES_MAX) s->us[s->count++] = us;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_samples(samples *s)
{
    static const double percents[] = {50, 99, 99.9};
    qsort(s->us, s->count, sizeof *s->us, by_value);
    for (size_t i = 0; i < 3; i++)
        printf("\"p%g\": %.2f, ", percents[i],
               s->count == 0 ? 0 : s->us[(size_t)(percents[i] / 100 * (double)(s->count - 1))]);
    printf("\"max\": %.2f}", s->count == 0 ? 0 : s->us[s->count - 1]);
}

/* A file with FILE_BYTES of blocks, and without a name. -1: the file system has no O_DIRECT. */
static int written_file(const char *folder, const uint8_t *bytes, int flags)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/floor.XXXXXX", folder);
    int fd = mkstemp(path);
    if (fd < 0) die(path);
    if (write(fd, bytes, FILE_BYTES) != FILE_BYTES || fsync(fd) != 0) die("write");
    int again = open(path, O_WRONLY | O_CLOEXEC | flags);
    if (again < 0 && errno != EINVAL) die(path);
    unlink(path);
    close(fd);
    return again;
}

/* Writes of `batch` bytes, each durable before the next, as one member of the line of JSON. */
static void sync_floor(const char *folder, size_t batch, double seconds, int flags, samples *s)
{
    uint8_t *bytes = NULL;
    if (posix_memalign((void **)&bytes, PAGE, FILE_BYTES) != 0) die("memory");
    memset(bytes, 0, FILE_BYTES);
    int fd = written_file(folder, bytes, flags);
    double begun = now_s();
    size_t done = 0;
    off_t at = 0;
    s->count = 0;
    for (double last = begun; fd >= 0 && last - begun < seconds; done++) {
        if (at + (off_t)batch > FILE_BYTES) at = 0;
        if (pwrite(fd, bytes, batch, at) != (ssize_t)batch) die("pwrite");
        if (flags == 0 && fdatasync(fd) != 0) die("fdatasync");
        at += (off_t)batch;
        double t = now_s();
        add(s, (t - last) * 1e6);
        last = t;
    }
    if (fd >= 0) {
        printf("\"%s\": {\"batch\": %zu, \"per_s\": %.1f, ", flags == 0 ? "sync" : "direct_sync",
               batch, (double)done / (now_s() - begun));
        print_samples(s);
        printf(", ");
        close(fd);
    }
    free(bytes);
}

static void copy_floor(double seconds)
{
    char *from = malloc(COPY_BYTES);
    char *to = malloc(COPY_BYTES);
    if (from == NULL || to == NULL) die("malloc");
    memset(from, 1, COPY_BYTES);
    double begun = now_s();
    double bytes = 0;
    volatile char seen = 0;
    while (now_s() - begun < seconds)
        for (int i = 0; i < 64; i++, bytes += COPY_BYTES) {
            memcpy(to, from, COPY_BYTES);
            seen = (char)(seen + to[i]);
        }
    printf("\"memcpy_gb_per_s\": %.2f", bytes / (now_s() - begun) / 1e9);
    free(from);
    free(to);
}

typedef struct canary {
    int event;
    _Atomic double sent;
    atomic_bool stop;
    samples *samples;
} canary;

static void *listen_for(void *arg)
{
    canary *c = arg;
    uint64_t n;
    while (read(c->event, &n, sizeof n) == sizeof n && !atomic_load(&c->stop))
        add(c->samples, (now_s() - atomic_load(&c->sent)) * 1e6);
    return NULL;
}

static void wake_floor(double seconds, samples *s)
{
    canary c = {.event = eventfd(0, 0), .samples = s};
    uint64_t one = 1;
    pthread_t thread;
    struct timespec pause = {0, 1000000};
    if (c.event < 0 || pthread_create(&thread, NULL, listen_for, &c) != 0) die("canary");
    for (double begun = now_s(); now_s() - begun < seconds;) {
        nanosleep(&pause, NULL);
        atomic_store(&c.sent, now_s());
        if (write(c.event, &one, sizeof one) != sizeof one) die("eventfd");
    }
    atomic_store(&c.stop, true);
    if (write(c.event, &one, sizeof one) != sizeof one) die("eventfd");
    pthread_join(thread, NULL);
    printf(", \"wake_us\": {");
    print_samples(s);
    close(c.event);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: floors FOLDER BATCH SECONDS\n");
        return 2;
    }
    size_t batch = strtoul(argv[2], NULL, 10);
    double seconds = atof(argv[3]);
    samples s = {.us = calloc(SAMPLES_MAX, sizeof *s.us)};
    if (batch == 0 || batch > FILE_BYTES || seconds <= 0 || s.us == NULL) return 2;
    printf("{");
    sync_floor(argv[1], batch, seconds, 0, &s);
    if (batch % PAGE == 0) sync_floor(argv[1], batch, seconds, O_DIRECT | O_DSYNC, &s);
    copy_floor(seconds < 1 ? seconds : 1);
    s.count = 0;
    wake_floor(seconds, &s);
    printf("}\n");
    free(s.us);
    return 0;
}
