/* SPDX-License-Identifier: Apache-2.0 */
/*
 * W-TinyLFU (Einziger, Friedman, Manes, ACM TOS 2017) as in Caffeine: a window of a hundredth of
 * the bytes in LRU order. A block that leaves the window replaces the main part's next victim only
 * if it is accessed more often, according to a sketch of all accesses. The main part has two LRU
 * lists: probation and protected (four fifths).
 *
 * The sketch: four rows of four-bit counters, which are halved after ten accesses per counter.
 */
#include "policy.h"

#include <stdlib.h>

#define ROWS 4
#define BLOCK_BYTES (32 * 1024) /* a counter a row for so many bytes */

enum { WINDOW, PROBATION, PROTECTED };

typedef struct tiny_lfu {
    rq__cache_queue queues[3];
    uint64_t capacity;
    uint8_t *counters; /* ROWS times `mask` + 1 */
    uint64_t mask;
    uint64_t added;
} tiny_lfu;

static void *make(uint64_t capacity)
{
    tiny_lfu *p = allocate(sizeof *p);
    p->capacity = capacity;
    p->mask = 63;
    while (p->mask < capacity / BLOCK_BYTES)
        p->mask = p->mask * 2 + 1;
    p->counters = allocate(ROWS * (p->mask + 1));
    return p;
}

static void drop(void *state)
{
    tiny_lfu *p = state;
    free(p->counters);
    free(p);
}

static uint8_t *counter(tiny_lfu *p, uint64_t hash, unsigned row)
{
    uint64_t h = (hash + row) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
    h *= 0xd6e8feb86659fd93u;
    return &p->counters[row * (p->mask + 1) + ((h ^ h >> 32) & p->mask)];
}

static unsigned frequency(tiny_lfu *p, uint64_t hash)
{
    unsigned least = 15;
    for (unsigned row = 0; row < ROWS; row++)
        if (*counter(p, hash, row) < least) least = *counter(p, hash, row);
    return least;
}

static void count(tiny_lfu *p, uint64_t hash)
{
    for (unsigned row = 0; row < ROWS; row++) {
        uint8_t *c = counter(p, hash, row);
        if (*c < 15) (*c)++;
    }
    if (++p->added < 10 * (p->mask + 1)) return;
    for (uint64_t i = 0; i < ROWS * (p->mask + 1); i++)
        p->counters[i] /= 2;
    p->added /= 2;
}

static void push(tiny_lfu *p, rq__cache_node *n, uint8_t queue)
{
    n->queue = queue;
    rq__cache_queue_push(&p->queues[queue], n);
}

static void use(void *state, rq__cache_node *n)
{
    tiny_lfu *p = state;
    count(p, n->hash);
    rq__cache_queue_remove(&p->queues[n->queue], n);
    push(p, n, n->queue == WINDOW ? WINDOW : PROTECTED);
    rq__cache_queue *kept = &p->queues[PROTECTED];
    while (kept->bytes > p->capacity / 100 * 79) {
        rq__cache_node *oldest = kept->oldest;
        rq__cache_queue_remove(kept, oldest);
        push(p, oldest, PROBATION);
    }
}

static void insert(void *state, rq__cache_node *n)
{
    tiny_lfu *p = state;
    count(p, n->hash);
    push(p, n, WINDOW);
}

static rq__cache_node *evict(void *state)
{
    tiny_lfu *p = state;
    for (;;) {
        rq__cache_queue *main = &p->queues[PROBATION];
        if (main->oldest == NULL) main = &p->queues[PROTECTED];
        rq__cache_node *candidate = p->queues[WINDOW].oldest;
        if (p->queues[WINDOW].bytes <= p->capacity / 100 && main->oldest != NULL)
            candidate = NULL; /* the window is not full: a victim of the main part is evicted */
        rq__cache_node *victim = main->oldest;
        uint64_t held = p->queues[PROBATION].bytes + p->queues[PROTECTED].bytes;
        if (candidate != NULL && held + candidate->charge <= p->capacity / 100 * 99) {
            rq__cache_queue_remove(&p->queues[WINDOW], candidate);
            push(p, candidate, PROBATION);
            continue;
        }
        if (candidate == NULL && victim == NULL) return NULL;
        if (victim == NULL ||
            (candidate != NULL && frequency(p, candidate->hash) <= frequency(p, victim->hash))) {
            rq__cache_queue_remove(&p->queues[WINDOW], candidate);
            return candidate;
        }
        rq__cache_queue_remove(main, victim);
        return victim;
    }
}

const policy w_tiny_lfu = {"W-TinyLFU", make, drop, use, insert, evict};
