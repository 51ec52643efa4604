/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the steps of the engine benchmark: the parameters of the run, and the state of one
 * thread. */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include "engine.h"

#include <pthread.h>
#include <time.h>

#define THREADS_MAX 64
#define VALUE_MAX 65536
#define BUCKETS_PER_DOUBLING 128 /* buckets of latencies, each half a per cent wide */
#define BUCKETS (40 * BUCKETS_PER_DOUBLING)

extern struct run_state {
    settings db;
    uint64_t rows, ops, seconds, rate, seed;
    unsigned threads, batch, value;
    /* percentages of mixes, and the distribution of rows */
    unsigned gets, puts, rmws, scans, multis, draw;
    database *open;
} run;

typedef struct job {
    pthread_t thread;
    void (*work)(struct job *j);
    unsigned index;
    uint64_t done, random, bytes;
    uint32_t latency[BUCKETS];
} job;

double seconds_of(clockid_t clock);
void latency_add(job *j, double us);
/* `run.value` bytes; the same for the same n, and the bytes of n and n + 1 differ. */
const uint8_t *value_of(uint64_t n);
/* Samples of the folder's size during a step. */
typedef struct watch {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t over_now;
    bool over;
    uint64_t *looks;
    size_t count;
} watch;

void watch_begin(watch *w);
/* Returns mean and maximum of the second half of the samples. */
void watch_end(watch *w, uint64_t *ret_mean, uint64_t *ret_most);
/* mixes.c */
void mix(job *j);

#endif
