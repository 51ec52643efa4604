/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PREFETCH_BLOCKS_ON_OPEN: a file's blocks are brought into the cache once it is open, by tasks of
 * RQ_POOL_WORK that read a few megabytes each. Ends early when the file is closed, and, unless the
 * family is IN_MEMORY, when the cache is full: what is prefetched pushes nothing out.
 * HBASE: HFilePreadReader.
 */
#ifndef RQ_STORE_PREFETCH_H
#define RQ_STORE_PREFETCH_H

#include "base/env.h"
#include "hfile/reader.h"

#include <stdatomic.h>

typedef struct rq_prefetch {
    const rq_env *env; /* its parts outlive the prefetch */
    rq_block_cache *cache;
    bool in_memory;
    /* Counts the prefetches that are not over, beside others who use the cache. */
    _Atomic uint64_t *alive;
} rq_prefetch;

/* Best effort: without memory for it there is none. */
void rq_prefetch_start(const rq_prefetch *p, rq_hfile_reader *reader);

#endif
