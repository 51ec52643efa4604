/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted array with the upper levels of a B-tree; contract in fences.h. */
#include "store/fences.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 16     /* ranks: two cache lines, fetched at the same time */
#define LEVELS_MAX 8 /* 16^8 nodes */
/* flag in the low bits of an entry, which are free because nodes are aligned */
#define FORGOTTEN ((uintptr_t)1)
#define ABOVE_SHIFT 1
#define ABOVE ((uintptr_t)RQ_FENCE_ABOVE_MAX << ABOVE_SHIFT)

struct rq_fences {
    rq_fences *older;
    size_t capacity;
    unsigned levels;
    size_t counts[LEVELS_MAX];
    uint64_t *ranks[LEVELS_MAX]; /* ranks[0]: of all entries; ranks[k]: the first rank of each
                                  * block of ranks[k-1] */
    _Atomic uintptr_t *nodes;
};

/* Two ranks of a block, compared in one step if the processor has 128-bit registers. */
typedef uint64_t rank_pair __attribute__((vector_size(16)));

static size_t whole_blocks(size_t n)
{
    return (n + BLOCK - 1) / BLOCK * BLOCK;
}

/* The unused end of a block gets ranks above every rank that is searched for. */
static void clear_block(uint64_t *ranks)
{
    memset(ranks, 0xff, BLOCK * sizeof *ranks);
}

rq_fences *rq__fences_new(size_t capacity, rq_fences *older)
{
    size_t sizes[LEVELS_MAX];
    size_t total = 0;
    unsigned levels = 0;
    for (size_t n = capacity < 1 ? 1 : capacity;; n = (n + BLOCK - 1) / BLOCK) {
        sizes[levels++] = n;
        total += whole_blocks(n);
        if (n <= BLOCK || levels == LEVELS_MAX) break;
    }
    rq_fences *f = calloc(1, sizeof *f);
    uint64_t *ranks = malloc(total * sizeof *ranks);
    _Atomic uintptr_t *nodes = malloc(sizes[0] * sizeof *nodes);
    if (f == NULL || ranks == NULL || nodes == NULL) {
        free(f);
        free(ranks);
        free(nodes);
        return NULL;
    }
    f->older = older;
    f->capacity = sizes[0];
    f->levels = levels;
    f->nodes = nodes;
    for (unsigned k = 0; k < levels; k++) {
        f->ranks[k] = ranks;
        ranks += whole_blocks(sizes[k]);
    }
    for (unsigned k = 0; k < levels; k++)
        clear_block(f->ranks[k]);
    return f;
}

void rq__fences_free(rq_fences *f)
{
    while (f != NULL) {
        rq_fences *older = f->older;
        free(f->ranks[0]);
        free(f->nodes);
        free(f);
        f = older;
    }
}

size_t rq__fences_bytes(const rq_fences *f)
{
    return sizeof *f + f->capacity * (sizeof(uint64_t) + sizeof(void *)) +
           f->capacity / (BLOCK - 1) * sizeof(uint64_t);
}

bool rq__fences_append(rq_fences *f, uint64_t rank, void *node, unsigned above)
{
    size_t at = f->counts[0];
    if (at == f->capacity) return false;
    if (above > RQ_FENCE_ABOVE_MAX) above = RQ_FENCE_ABOVE_MAX;
    atomic_init(&f->nodes[at], (uintptr_t)node | (uintptr_t)above << ABOVE_SHIFT);
    for (unsigned k = 0; k < f->levels; k++) {
        uint64_t *next = &f->ranks[k][f->counts[k]++];
        if (at % BLOCK == 0) clear_block(next);
        *next = rank;
        if (at % BLOCK != 0) break;
        at /= BLOCK;
    }
    return true;
}

size_t rq__fences_count(const rq_fences *f)
{
    return f->counts[0];
}

void rq__fences_search_begin(rq_fences_search *c, const rq_fences *f, uint64_t rank)
{
    *c = (rq_fences_search){.fences = f, .rank = rank, .level = f->levels};
}

/* Number of the block's ranks that are below `rank`. Compares all of them, which is faster than a
 * search with branches. */
static inline size_t count_smaller(const uint64_t *block, uint64_t rank)
{
    const rank_pair *pairs = (const rank_pair *)(const void *)block;
    rank_pair wanted = {rank, rank}, smaller = {0, 0};
#pragma GCC unroll 8
    for (size_t i = 0; i < BLOCK / 2; i++)
        smaller -= (rank_pair)(pairs[i] < wanted);
    return smaller[0] + smaller[1];
}

bool rq__fences_search_step(rq_fences_search *c)
{
    const rq_fences *f = c->fences;
    unsigned level = --c->level;
    const uint64_t *block = f->ranks[level] + c->at;
    if (level == 0) {
        __builtin_prefetch(&f->nodes[c->at]);
        __builtin_prefetch(&f->nodes[c->at + BLOCK / 2]);
    }
    c->at += count_smaller(block, c->rank);
    if (c->at == 0 || level == 0) return true;
    c->at = (c->at - 1) * BLOCK;
    __builtin_prefetch(&f->ranks[level - 1][c->at]);
    __builtin_prefetch(&f->ranks[level - 1][c->at + BLOCK / 2]);
    return false;
}

size_t rq__fences_before(const rq_fences *f, uint64_t rank)
{
    rq_fences_search c;
    rq__fences_search_begin(&c, f, rank);
    while (!rq__fences_search_step(&c))
        ;
    return c.at;
}

uint64_t rq__fences_rank(const rq_fences *f, size_t i)
{
    return f->ranks[0][i];
}

void *rq__fences_node(const rq_fences *f, size_t i)
{
    uintptr_t entry = atomic_load_explicit(&f->nodes[i], memory_order_acquire);
    return (void *)(entry & ~(FORGOTTEN | ABOVE));
}

unsigned rq__fences_above(const rq_fences *f, size_t i)
{
    uintptr_t entry = atomic_load_explicit(&f->nodes[i], memory_order_relaxed);
    return (unsigned)((entry & ABOVE) >> ABOVE_SHIFT);
}

bool rq__fences_holds(const rq_fences *f, size_t i)
{
    return (atomic_load_explicit(&f->nodes[i], memory_order_acquire) & FORGOTTEN) == 0;
}

void rq__fences_forget(rq_fences *f, size_t i)
{
    atomic_fetch_or_explicit(&f->nodes[i], FORGOTTEN, memory_order_release);
}
