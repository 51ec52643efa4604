/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by block_cache.c and cache_files.c. */
#ifndef RQ_HFILE_CACHE_PRIV_H
#define RQ_HFILE_CACHE_PRIV_H

#include "hfile/block.h"
#include "hfile/s3_fifo.h"
#include "hfile/window.h"

#include "base/macros.h"

#include <pthread.h>

#define RQ__CACHE_CODECS_KEPT 16

/* A slot of the hash table. The hash is stored next to the pointer, so that a lookup touches
 * only the block it finds. */
typedef struct rq__cache_slot {
    uint64_t hash;
    rq_hfile_block *block; /* NULL: empty */
} rq__cache_slot;

typedef struct rq__cache_shard {
    pthread_mutex_t lock;
    rq__cache_slot *table RQ_GUARDED_BY(lock); /* open addressing, at most half full */
    size_t table_mask;
    rq__s3_fifo data;
    rq__cache_queue memory, meta; /* the two ranks above data */
    uint64_t blocks;
    uint64_t used;
    uint64_t capacity;
    uint64_t hits[RQ_BLOCK_KIND_COUNT];
    uint64_t misses[RQ_BLOCK_KIND_COUNT];
    uint64_t inserted[RQ_BLOCK_KIND_COUNT];
    uint64_t evicted, evicted_by_file;
} __attribute__((aligned(128))) rq__cache_shard; /* no two shards share a cache line */

/* A family's counters, one set per shard: written under the shard's lock, read at any time. */
typedef struct rq__family_counters {
    _Atomic uint64_t data_hits, data_misses, meta_hits, meta_misses, evicted, blocks, bytes;
} __attribute__((aligned(64))) rq__family_counters;

struct rq_cache_family {
    rq_block_cache *cache;
    uint32_t refs; /* guarded by the cache's files_lock */
    rq__cache_link link;
    size_t table_len, family_len;
    uint8_t *names; /* table, then family */
    /* Counters, one for each shard of the cache. NULL until the family's first file is opened, because most
     * families of 100,000 tables may be empty. Set under files_lock, before a reader can use that file. */
    rq__family_counters *shards;
};

struct rq_block_cache {
    rq__slab *slab; /* the blocks' memory */
    rq__cache_shard shards[RQ__CACHE_SHARDS_MAX];
    unsigned shard_count;      /* a power of two */
    _Atomic uint64_t capacity; /* as configured */
    _Atomic uint64_t reserved; /* part of it that is not for blocks */
    _Atomic bool has_windows;  /* the windows' share of the capacity is deducted, too */
    _Atomic uint64_t pinned;
    _Atomic uint64_t held;           /* bytes held by readers (held.c); resident or pinned */
    struct rq__second_level *second; /* NULL: none */
    rq__windows windows;
    _Atomic uint64_t next_file_id;
    _Atomic uint64_t family_bytes; /* of the families' counters and names */
    pthread_mutex_t codec_lock;
    rq_codec *codecs[RQ_COMPRESSION_COUNT][RQ__CACHE_CODECS_KEPT] RQ_GUARDED_BY(codec_lock);
    unsigned codec_count[RQ_COMPRESSION_COUNT];
    pthread_mutex_t files_lock;
    rq__cache_index files RQ_GUARDED_BY(files_lock);
    rq__cache_index families RQ_GUARDED_BY(files_lock);
};

static inline uint64_t rq__cache_hash(uint64_t file_id, uint64_t offset)
{
    uint64_t h = (file_id * 0x9e3779b97f4a7c15u) ^ (offset * 0xc2b2ae3d27d4eb4fu);
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

/* Reserves bytes of the capacity for something other than blocks; replaces the former
 * reservation. No lock is held. */
void rq__cache_reserve(rq_block_cache *c, uint64_t bytes);
/* Deducts the windows' share from the capacity, until a trim finds no windows. May evict blocks; not
 * called on an event loop. No lock is held. */
void rq__cache_grant_windows(rq_block_cache *c);

static inline void rq__count(_Atomic uint64_t *n, int64_t by)
{
    uint64_t now = atomic_load_explicit(n, memory_order_relaxed);
    atomic_store_explicit(n, now + (uint64_t)by, memory_order_relaxed);
}

static inline rq__cache_file *rq__cache_file_ref(rq__cache_file *f)
{
    atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    return f;
}

/* No shard's lock is held. */
void rq__cache_file_unref(rq__cache_file *f);

#endif
