/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of an eviction policy in the cache benchmark. The product uses S3-FIFO
 * (src/hfile/s3_fifo.h); the other policies are here for comparison.
 */
#ifndef BENCH_CACHE_POLICY_H
#define BENCH_CACHE_POLICY_H

#include "hfile/cache_queue.h"

typedef struct policy {
    const char *name;
    /* Ends the program if memory is missing. */
    void *(*make)(uint64_t capacity);
    void (*drop)(void *p);
    void (*use)(void *p, rq__cache_node *n); /* a hit */
    void (*insert)(void *p, rq__cache_node *n);
    rq__cache_node *(*evict)(void *p); /* removes and returns the victim */
} policy;

extern const policy s3_fifo, w_tiny_lfu, segmented_lru, plain_lru;

void *allocate(size_t size); /* zeroed memory; ends the program if it is missing */

#endif
