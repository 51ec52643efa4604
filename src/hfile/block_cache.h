/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block cache: one per server, shared by all its readers. Blocks are kept decompressed and
 * checked, keyed by (file, offset). A file is identified by its content, not by its reader: two
 * readers of one file (the daughters of a split) share its blocks, and a reader that keeps its
 * blocks (rq_hfile_reader_options) leaves them to the next reader of the file.
 *
 * Order of eviction, in each shard:
 *   1. index and bloom blocks, while they use more than half of the bytes
 *   2. data of IN_MEMORY families, while it uses more than a quarter (HBASE: LruBlockCache,
 *      hbase.lru.blockcache.memory.percentage)
 *   3. other data, by S3-FIFO (s3_fifo.h): a scan does not evict data that is used
 *   4. the rest of 2, then of 1
 * So data never evicts the blocks that lead to it. Within 1 and 2, blocks with hits get a second
 * chance.
 *
 * Memory: every block is charged for the memory it occupies, including its sidecar; the sum never
 * exceeds the capacity. A block that is still referenced when it is evicted is counted as pinned
 * until its last reference is dropped. Any thread; a shard's lock is held for a hash lookup or an
 * eviction step.
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
    uint64_t family_bytes;   /* of the counters of families, outside the capacity */
    uint64_t mapped_bytes;   /* the cache's own pages: used, pinned and free */
    uint64_t capacity_bytes; /* without the shares of the second level and of windows */
    uint64_t ahead_bytes,
        ahead_unused_bytes;   /* read in advance for scans; of them, freed without being used */
    uint64_t ahead_now_bytes; /* memory that windows take now */
    /* the second level; all 0 without one */
    bool second_on; /* it has not been switched off */
    uint64_t second_hits, second_misses;
    uint64_t second_written, second_dropped; /* blocks; dropped: the writer was too slow */
    uint64_t second_index_bytes, second_capacity_bytes;
} rq_block_cache_stats;

struct rq_executor;

RQ_NODISCARD
rq_err rq_block_cache_new(uint64_t capacity_bytes, rq_block_cache **ret);
/* From now on memory for a growing cache is prepared on the executor (RQ_POOL_FLUSH), so that it
 * consists of huge pages and no reader waits for the kernel; and long scans read in advance on
 * RQ_POOL_READ (window.h). Called once, before the first reader; the executor must outlive the cache. */
void rq_block_cache_make_ready(rq_block_cache *c, struct rq_executor *executor);
/* Waits for windows that are being read. REQUIRES: every reader is closed, and every family reference was returned.
 * NULL is allowed. */
void rq_block_cache_free(rq_block_cache *c);
/* Changes the capacity; evicts at once if it shrinks. */
void rq_block_cache_resize(rq_block_cache *c, uint64_t capacity_bytes);
/* Returns to the system 1/share of the memory that has held no block since the last call, and frees
 * the blocks that were read in advance for scans that have stopped. Called periodically. */
void rq_block_cache_trim(rq_block_cache *c, unsigned share);
void rq_block_cache_get_stats(rq_block_cache *c, rq_block_cache_stats *ret);
/* Whether `bytes` more would fit without evicting a block. Approximate: they are assumed to spread
 * evenly over the shards. */
bool rq_block_cache_has_room(rq_block_cache *c, uint64_t bytes);

/* --- on disk ---------------------------------------------------------------------------------- */
/* A second level in a file (second_level.h): a writer task stores blocks evicted from memory
 * there, and misses read them back. The objects pointed to must outlive the cache. */
typedef struct rq_block_cache_file {
    struct rq_vfs *vfs;
    const char *path; /* in the vfs; emptied at start; copied */
    uint64_t bytes;
    struct rq_executor *executor;
    const struct rq_log *log;
    bool compresses; /* data blocks */
} rq_block_cache_file;

/* Adds the second level. Blocks. REQUIRES: no reader yet. On failure the cache is unchanged. */
RQ_NODISCARD
rq_err rq_block_cache_add_file(rq_block_cache *c, const rq_block_cache_file *o, rq_error *why);

/* --- by family -------------------------------------------------------------------------------- */
/* Counters of one family. A file counts for the family that opened it first. */
typedef struct rq_cache_family rq_cache_family;

typedef struct rq_cache_family_stats {
    rq_slice table, family; /* as given */
    uint64_t data_hits, data_misses;
    uint64_t meta_hits, meta_misses; /* index and bloom blocks */
    uint64_t evicted;                /* to make room */
    uint64_t blocks, bytes;          /* in the cache now */
} rq_cache_family_stats;

/* Returns a reference to the family's counters, making them if necessary. They live as long as a
 * store or a cached block of the family. */
RQ_NODISCARD
rq_err rq_cache_family_get(rq_block_cache *c, rq_slice table, rq_slice family,
                           rq_cache_family **ret);
void rq_cache_family_unref(rq_cache_family *f); /* NULL is fine */
/* Calls `visit` for each family, unordered, with a lock held: it must not call the cache. Any
 * thread. */
void rq_block_cache_each_family(rq_block_cache *c,
                                void (*visit)(void *ctx, const rq_cache_family_stats *stats),
                                void *ctx);

#endif
