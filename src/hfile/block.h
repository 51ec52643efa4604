/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block in memory: checked, decompressed, reference-counted. Within the room.
 *
 * One allocation holds the struct and the bytes. The payload is immutable once the block is shared.
 * Only the sidecar may be added, once, by the thread that builds it first.
 */
#ifndef RQ_HFILE_BLOCK_H
#define RQ_HFILE_BLOCK_H

#include "base/err.h"
#include "hfile/block_cache.h"
#include "hfile/cache_index.h"
#include "hfile/cache_queue.h"
#include "hfile/read_ctx.h"
#include "hfile/sidecar.h"
#include "hfile/slab.h"

#include <stdatomic.h>

/* Order of eviction, lowest first (block_cache.h). */
typedef enum rq__rank { RQ__RANK_DATA, RQ__RANK_MEMORY, RQ__RANK_META } rq__rank;

struct rq__cache_file;

struct rq_hfile_block {
    /* Used by a lookup; in one cache line. */
    _Atomic uint32_t refs;    /* includes the cache's */
    uint8_t kind;             /* rq_block_kind */
    uint8_t rank;             /* rq__rank */
    _Atomic uint8_t searches; /* number of searches; saturates */
    uint64_t file_id;
    uint64_t offset;
    const uint8_t *payload;
    size_t payload_len;
    _Atomic(rq__sidecar *) sidecar;
    /* The cache's, guarded by its shard's lock. node.charge: bytes accounted, resident or
     * pinned. */
    rq__cache_node node;

    rq__slab *slab;  /* allocator of the block and its sidecar */
    size_t heap_len; /* size of this allocation */
    uint32_t on_disk_len;

    /* The cache's, too. */
    bool resident;
    /* NULL: was never in a cache. Atomic, because one thread may put a window's block into the cache while others use
     * the block. */
    _Atomic(rq_block_cache *) cache;
    struct rq__cache_file *file;       /* while resident: a reference */
    struct rq_hfile_block *file_next;  /* blocks of the same file in the shard */
    struct rq_hfile_block **file_link; /* the pointer to this block in that list */

    uint8_t bytes[];
};

/* Allocates a block with room for `len` bytes and one reference; sets nothing else. The memory
 * belongs to the cache, which must outlive the block (NULL: to the heap). */
RQ_NODISCARD
rq_err rq__block_new(rq_block_cache *c, size_t len, rq_hfile_block **ret);
static inline rq_hfile_block *rq__block_ref(rq_hfile_block *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

/* --- the cache, as readers use it ------------------------------------------------------------- */

#define RQ__CACHE_SHARDS_MAX 16

/* A file in the cache. References are held by readers and by resident blocks. */
typedef struct rq__cache_file rq__cache_file;

struct rq__cache_file {
    rq_block_cache *cache;
    _Atomic uint32_t refs;
    _Atomic uint32_t readers;
    _Atomic bool obsolete;   /* it will not be opened again */
    _Atomic uint64_t bytes;  /* charges of its resident blocks */
    _Atomic uint64_t id;     /* the file id in its blocks; never reused */
    rq_cache_family *family; /* a reference, or NULL */
    rq__cache_link link;
    uint64_t size;
    uint32_t tail_crc;
    rq_hfile_block *blocks[RQ__CACHE_SHARDS_MAX]; /* guarded by each shard's lock */
    char name[];
};

/* Finds or makes the entry of a file, identified by the last part of its path (random for a
 * store file), its size and a checksum of its end. `family` may be NULL. */
RQ_NODISCARD
rq_err rq__cache_file_open(rq_block_cache *c, const char *path, uint64_t size, uint32_t tail_crc,
                           rq_cache_family *family, rq__cache_file **ret);
/* Closes a reader's entry. The last reader evicts the blocks if `evict` is set or the file is
 * obsolete; otherwise they are demoted to plain data, since the file may never be opened again. */
void rq__cache_file_close(rq__cache_file *f, bool evict);
/* Looks a block up: a new reference, or NULL. Counts a hit or miss of `kind`. */
rq_hfile_block *rq__cache_get(rq__cache_file *f, uint64_t offset, rq_block_kind kind);
/* Whether the block is cached. Counts nothing. */
bool rq__cache_has(rq__cache_file *f, uint64_t offset);
/* Looks a block up without counting a hit, miss or use: a new reference, or NULL. */
rq_hfile_block *rq__cache_peek(rq__cache_file *f, uint64_t offset);
/* A hint: prefetches the block's header. False: it is not cached. Counts nothing. */
bool rq__cache_prefetch(rq__cache_file *f, uint64_t offset);
/* Looks a block up in the second level; *ret NULL: not found. RQ_E_AGAIN: it is there, but
 * reading it would wait. */
RQ_NODISCARD
rq_err rq__cache_get_second(rq__cache_file *f, uint64_t offset, bool may_block,
                            rq_hfile_block **ret);
/* Whether the block is in the second level. Counts nothing. */
bool rq__cache_has_second(const rq__cache_file *f, uint64_t offset);
/* Adds the block. If the block is already cached, releases the caller's reference and returns
 * one to the cached block. A block too large for its shard is not added. */
rq_hfile_block *rq__cache_put(rq__cache_file *f, rq_hfile_block *b);
typedef struct rq__cache_evicted {
    uint64_t blocks, bytes;
} rq__cache_evicted;
/* Evicts the file's blocks, also from the second level. */
rq__cache_evicted rq__cache_evict_file(rq__cache_file *f);
void rq__cache_demote_file(rq__cache_file *f);
/* Charges `more` bytes to a block that has grown. */
void rq__cache_grow(rq_hfile_block *b, size_t more);

/* Asks whether a reader may hold a block of `bytes` outside eviction, so that all held blocks
 * are at most 1/share of the capacity. Each grant must be returned with rq__cache_let_go. */
bool rq__cache_hold(rq_block_cache *c, uint64_t bytes, unsigned share);
void rq__cache_let_go(rq_block_cache *c, uint64_t bytes);

/* Idle decompressors, shared by all readers of the cache. */
struct rq_codec;
struct rq_codec *rq__cache_take_codec(rq_block_cache *c, rq_compression kind);
void rq__cache_give_codec(rq_block_cache *c, rq_compression kind, struct rq_codec *codec);

#endif
