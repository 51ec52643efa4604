/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PREFETCH_BLOCKS_ON_OPEN: after a file is opened its blocks are read into the cache by tasks of
 * RQ_POOL_WORK, a few megabytes each. Ends early when the file is closed, and, unless the family is
 * IN_MEMORY, when the cache is full: prefetched blocks evict nothing. HBASE: HFilePreadReader.
 */
#ifndef RQ_STORE_PREFETCH_H
#define RQ_STORE_PREFETCH_H

#include "base/env.h"
#include "hfile/reader.h"

#include <stdatomic.h>

typedef struct rq_prefetch {
    const rq_env *env; /* its members must outlive the prefetch */
    rq_block_cache *cache;
    bool in_memory;
    /* Counts running prefetches, among other users of the cache. */
    _Atomic uint64_t *alive;
} rq_prefetch;

/* Starts a prefetch. Best effort: without memory there is none. */
void rq__prefetch_start(const rq_prefetch *p, rq_hfile_reader *reader);

#endif
