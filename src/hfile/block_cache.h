/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block cache: one per server, shared by all its readers. Blocks are kept decompressed and
 * checked, keyed by (file, offset). A file is known by what it is, not by who opened it: two
 * readers of one file (the daughters of a split) share its blocks, and a reader that keeps them
 * (rq_hfile_reader_options) leaves them to whoever opens the file next.
 *
 * What goes when room is needed, in each shard:
 *   1. index and bloom blocks, when they hold more than half of the bytes
 *   2. data of IN_MEMORY families, when it holds more than a quarter (HBASE: LruBlockCache,
 *      hbase.lru.blockcache.memory.percentage)
 *   3. other data, by S3-FIFO (s3_fifo.h): a scan passes through without touching what is used
 *   4. what is left of 2, then of 1
 * So data never pushes out the blocks that lead to it. Within 1 and 2 used ones go round again.
 *
 * Memory: every block is charged for what it occupies, its sidecar included; the sum never exceeds
 * the capacity. A block somebody still holds when it is evicted is counted as pinned until its last
 * reference goes. Any thread; a shard's lock is held for a hash lookup or an eviction step.
 */
#ifndef RQ_HFILE_BLOCK_CACHE_H
#define RQ_HFILE_BLOCK_CACHE_H

#include "base/bytes.h"
#include "base/err.h"
#include "hfile/format.h"

typedef struct rq_block_cache rq_block_cache;

typedef struct rq_block_cache_stats {
    uint64_t hits[RQ_BLOCK_KIND_COUNT];
    uint64_t misses[RQ_BLOCK_KIND_COUNT];
    uint64_t inserted[RQ_BLOCK_KIND_COUNT];
    uint64_t evicted;         /* to make room */
    uint64_t evicted_by_file; /* because their file was closed, or on request */
    uint64_t blocks;
    uint64_t used_bytes;     /* ≤ capacity */
    uint64_t meta_bytes;     /* of them: index and bloom blocks */
    uint64_t memory_bytes;   /* of them: data of IN_MEMORY families */
    uint64_t pinned_bytes;   /* evicted, but still referenced */
    uint64_t mapped_bytes;   /* of the cache's own pages: used, pinned and free in between */
    uint64_t capacity_bytes; /* without what the second level takes of it */
    /* the second level; all 0 without one */
    bool second_on; /* it works yet */
    uint64_t second_hits, second_misses;
    uint64_t second_written, second_dropped; /* blocks; dropped: the writer could not keep up */
    uint64_t second_index_bytes, second_capacity_bytes;
} rq_block_cache_stats;

struct rq_executor;

RQ_NODISCARD
rq_err rq_block_cache_new(uint64_t capacity_bytes, rq_block_cache **ret);
/* Memory for what will come into a growing cache is made ready on the executor (RQ_POOL_FLUSH), so
 * that it is of huge pages and no reader waits for the kernel. Once, before the first reader; the
 * executor outlives the cache. */
void rq_block_cache_make_ready(rq_block_cache *c, struct rq_executor *executor);
/* No reader may use it any more. */
void rq_block_cache_free(rq_block_cache *c);
/* Shrinking evicts at once. */
void rq_block_cache_resize(rq_block_cache *c, uint64_t capacity_bytes);
/* Now and then, of memory that held blocks and has held none since the last call, that part goes
 * back to the system: 8 for an eighth. */
void rq_block_cache_trim(rq_block_cache *c, unsigned share);
void rq_block_cache_get_stats(rq_block_cache *c, rq_block_cache_stats *ret);
/* No block has been evicted for room and none would be for this many bytes more. Approximate. */
bool rq_block_cache_has_room(rq_block_cache *c, uint64_t bytes);

/* --- on disk ---------------------------------------------------------------------------------- */
/* A second level in a file (second_level.h): what memory gives up goes there, by a writer of its
 * own, and comes back from there. What is pointed to outlives the cache. */
typedef struct rq_block_cache_file {
    struct rq_vfs *vfs;
    const char *path; /* in the vfs; emptied at start; copied */
    uint64_t bytes;
    struct rq_executor *executor;
    const struct rq_log *log;
} rq_block_cache_file;

/* Blocking; before the first reader. On failure the cache is as it was. */
RQ_NODISCARD
rq_err rq_block_cache_add_file(rq_block_cache *c, const rq_block_cache_file *o, rq_error *why);

/* --- by family -------------------------------------------------------------------------------- */
/* What one family's reads found. A file counts for the family that opened it first. */
typedef struct rq_cache_family rq_cache_family;

typedef struct rq_cache_family_stats {
    rq_slice table, family; /* as given */
    uint64_t data_hits, data_misses;
    uint64_t meta_hits, meta_misses; /* index and bloom blocks */
    uint64_t evicted;                /* to make room */
    uint64_t blocks, bytes;          /* in the cache now */
} rq_cache_family_stats;

/* The family's counters, made when there are none; a reference. They last as long as a store or a
 * cached block of the family. */
RQ_NODISCARD
rq_err rq_cache_family_get(rq_block_cache *c, rq_slice table, rq_slice family,
                           rq_cache_family **ret);
void rq_cache_family_unref(rq_cache_family *f); /* NULL is fine */
/* Calls `visit` for each, in no order, with a lock held: it must not come back to the cache. Any
 * thread. */
void rq_block_cache_each_family(rq_block_cache *c,
                                void (*visit)(void *ctx, const rq_cache_family_stats *stats),
                                void *ctx);

#endif
