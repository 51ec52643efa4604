/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain LRU, and the segmented LRU of HBase's LruBlockCache: blocks used once and blocks used more
 * often are in separate lists, with shares of a third and two thirds (no block is IN_MEMORY). The
 * oldest block of the list that exceeds its share by more is evicted. HBASE: LruBlockCache,
 * hbase.lru.blockcache.*.percentage.
 */
#include "policy.h"

#include <stdlib.h>

enum { SINGLE, MULTI };

typedef struct lru {
    rq__cache_queue lists[2];
    uint64_t share[2];
} lru;

static void *make(uint64_t capacity)
{
    lru *p = allocate(sizeof *p);
    p->share[SINGLE] = capacity / 3;
    p->share[MULTI] = capacity - p->share[SINGLE];
    return p;
}

static void move(lru *p, rq__cache_node *n, uint8_t to)
{
    rq__cache_queue_remove(&p->lists[n->queue], n);
    n->queue = to;
    rq__cache_queue_push(&p->lists[to], n);
}

static void insert(void *state, rq__cache_node *n)
{
    lru *p = state;
    n->queue = SINGLE;
    rq__cache_queue_push(&p->lists[SINGLE], n);
}

static void use_segmented(void *p, rq__cache_node *n)
{
    move(p, n, MULTI);
}

static void use_plain(void *p, rq__cache_node *n)
{
    move(p, n, SINGLE);
}

static rq__cache_node *evict(void *state)
{
    lru *p = state;
    int64_t over[2];
    for (int i = 0; i < 2; i++)
        over[i] = (int64_t)p->lists[i].bytes - (int64_t)p->share[i];
    int from = over[MULTI] > over[SINGLE] ? MULTI : SINGLE;
    if (p->lists[from].oldest == NULL) from = 1 - from;
    rq__cache_node *n = p->lists[from].oldest;
    if (n != NULL) rq__cache_queue_remove(&p->lists[from], n);
    return n;
}

const policy segmented_lru = {"LRU, HBase's segments", make, free, use_segmented, insert, evict};
const policy plain_lru = {"LRU", make, free, use_plain, insert, evict};
