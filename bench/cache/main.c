/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares eviction policies of the block cache: replays generated traces and prints, as rows of a
 * table, the share of accesses that hit and the CPU time of one access.
 *
 *   bench_cache [CACHE_MB [ACCESSES [SEED]]]
 *
 * Blocks are charged as in the product's cache. Three of four have 64 KiB plus the part of the last
 * cell beyond that, the others 4 to 64 KiB, as in families with smaller blocks or good encodings.
 * All blocks together are ten times as large as the cache. The first fifth of a trace warms the
 * cache and is not counted. The time covers the policy and one lookup in an array, without locks
 * and without the block itself: the part that differs between policies.
 */
#include "policy.h"

#include "base/macros.h"
#include "base/random.h"
#include "hfile/s3_fifo.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TIMES_CACHE 10 /* total bytes of all blocks, as a multiple of the cache */

typedef struct block {
    rq__cache_node node;
    uint32_t charge;
    bool resident;
} block;

typedef struct world {
    uint64_t cache_bytes;
    size_t accesses;
    rq_random random;
    block *blocks;
    uint32_t count;
    uint32_t fit; /* approximate number of blocks that fit into the cache */
    uint32_t *trace;
    uint32_t *order; /* the blocks by popularity, which is independent of their order in the file */
} world;

void *allocate(size_t size)
{
    void *p = calloc(1, size);
    if (p == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return p;
}

/* --- the product's policy --------------------------------------------------------------------- */

static void *s3_make(uint64_t capacity)
{
    rq__s3_fifo *p = allocate(sizeof *p);
    if (rq__s3_fifo_init(p, capacity) != RQ_OK) exit(1);
    return p;
}

static void s3_drop(void *p)
{
    rq__s3_fifo_clear(p);
    free(p);
}

static void s3_use(void *p, rq__cache_node *n)
{
    (void)p;
    rq__cache_node_use(n);
}

static void s3_insert(void *p, rq__cache_node *n)
{
    rq__s3_fifo_insert(p, n);
}

static rq__cache_node *s3_evict(void *p)
{
    return rq__s3_fifo_evict(p);
}

const policy s3_fifo = {"S3-FIFO", s3_make, s3_drop, s3_use, s3_insert, s3_evict};

/* --- traces ----------------------------------------------------------------------------------- */

static uint32_t below(world *w, uint32_t n)
{
    return (uint32_t)(rq_random_next(&w->random) % n);
}

static double unit(world *w)
{
    return (double)(rq_random_next(&w->random) >> 11) / 9007199254740992.0;
}

static uint32_t charge_of(world *w)
{
    uint32_t bytes = 64 * 1024 + 200 + below(w, 2000);
    if (below(w, 4) == 0) bytes = 4096 + below(w, 60 * 1024);
    return (bytes + 1023) / 1024 * 1024;
}

static void make_blocks(world *w)
{
    uint64_t sum = 0, wanted = w->cache_bytes * TIMES_CACHE;
    size_t room = wanted / 4096;
    w->blocks = allocate(room * sizeof *w->blocks);
    for (; sum < wanted; w->count++) {
        w->blocks[w->count].charge = charge_of(w);
        w->blocks[w->count].node.hash = rq_random_next(&w->random);
        sum += w->blocks[w->count].charge;
    }
    w->fit = w->count / TIMES_CACHE;
    w->order = allocate(w->count * sizeof *w->order);
    for (uint32_t i = 0; i < w->count; i++) {
        uint32_t k = below(w, i + 1);
        w->order[i] = w->order[k];
        w->order[k] = i;
    }
}

/* Inverse of the distribution's integral: exact enough for a rank, and needs no table. */
static uint32_t zipf(world *w, double theta)
{
    double n = (double)w->count + 1, s = 1 - theta;
    double rank = pow(unit(w) * (pow(n, s) - 1) + 1, 1 / s);
    uint32_t i = (uint32_t)rank - 1;
    return w->order[i < w->count ? i : w->count - 1];
}

static void trace_uniform(world *w)
{
    for (size_t i = 0; i < w->accesses; i++)
        w->trace[i] = below(w, w->count);
}

static void trace_zipf(world *w)
{
    for (size_t i = 0; i < w->accesses; i++)
        w->trace[i] = zipf(w, 0.99);
}

/* Alternates gets with a scan over blocks of twice the cache's size. */
static void trace_zipf_scans(world *w)
{
    uint32_t at = 0, left = 0;
    for (size_t i = 0; i < w->accesses; i++) {
        if (left == 0) {
            at = below(w, w->count);
            left = 2 * w->fit;
        }
        if (i % 2 == 0) {
            w->trace[i] = at;
            at = (at + 1) % w->count;
            left--;
        } else {
            w->trace[i] = zipf(w, 0.99);
        }
    }
}

static void trace_loop(world *w)
{
    for (size_t i = 0; i < w->accesses; i++)
        w->trace[i] = (uint32_t)(i % (w->fit + w->fit / 10));
}

/* Nine of ten accesses go to a set of blocks that fills half of the cache; the set changes ten
 * times. */
static void trace_shifting(world *w)
{
    for (size_t i = 0; i < w->accesses; i++) {
        uint32_t from = (uint32_t)(i * 10 / w->accesses) * (w->fit / 2);
        w->trace[i] =
            w->order[below(w, 10) == 0 ? below(w, w->count) : from + below(w, w->fit / 2)];
    }
}

/* --- replay ----------------------------------------------------------------------------------- */

typedef struct result {
    double hits, ns;
} result;

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static result replay(world *w, const policy *p)
{
    void *state = p->make(w->cache_bytes);
    uint64_t used = 0;
    size_t hits = 0, counted = 0;
    for (uint32_t i = 0; i < w->count; i++)
        w->blocks[i].resident = false;
    double begun = cpu_ns();
    for (size_t i = 0; i < w->accesses; i++) {
        block *b = &w->blocks[w->trace[i]];
        bool counts = i >= w->accesses / 5;
        counted += counts;
        if (b->resident) {
            p->use(state, &b->node);
            hits += counts;
            continue;
        }
        while (used + b->charge > w->cache_bytes) {
            block *gone = RQ_CONTAINER_OF(p->evict(state), block, node);
            gone->resident = false;
            used -= gone->charge;
        }
        b->node.charge = b->charge;
        p->insert(state, &b->node);
        b->resident = true;
        used += b->charge;
    }
    double ns = (cpu_ns() - begun) / (double)w->accesses;
    p->drop(state);
    return (result){100.0 * (double)hits / (double)counted, ns};
}

static const struct {
    const char *name;
    void (*make)(world *w);
} traces[] = {
    {"uniform", trace_uniform},
    {"zipf 0.99", trace_zipf},
    {"zipf 0.99, half of it long scans", trace_zipf_scans},
    {"loop of 1.1 caches", trace_loop},
    {"hot set of half a cache, moving", trace_shifting},
};

int main(int argc, char **argv)
{
    static const policy *const policies[] = {&s3_fifo, &w_tiny_lfu, &segmented_lru, &plain_lru};
    world w = {.cache_bytes = (argc > 1 ? strtoull(argv[1], NULL, 10) : 256) << 20,
               .accesses = argc > 2 ? strtoull(argv[2], NULL, 10) : 2000000};
    rq_random_seed(&w.random, argc > 3 ? strtoull(argv[3], NULL, 10) : 1);
    if (w.cache_bytes == 0 || w.accesses < 100) return 2;
    w.trace = allocate(w.accesses * sizeof *w.trace);
    make_blocks(&w);
    printf("| trace |");
    for (size_t k = 0; k < RQ_ARRAY_LEN(policies); k++)
        printf(" %s |", policies[k]->name);
    printf("\n|---|---|---|---|---|\n");
    for (size_t t = 0; t < RQ_ARRAY_LEN(traces); t++) {
        traces[t].make(&w);
        printf("| %s |", traces[t].name);
        for (size_t k = 0; k < RQ_ARRAY_LEN(policies); k++) {
            result r = replay(&w, policies[k]);
            printf(" %.1f %%, %.0f ns |", r.hits, r.ns);
            fflush(stdout);
        }
        printf("\n");
    }
    free(w.trace);
    free(w.order);
    free(w.blocks);
    return 0;
}
