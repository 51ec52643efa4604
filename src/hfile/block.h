/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block in memory: checked, decompressed, reference-counted. Within the room.
 *
 * One allocation holds the struct and the bytes. The payload is immutable once the block is shared;
 * only the sidecar may be added, once, by whoever builds it first.
 */
#ifndef RQ_HFILE_BLOCK_H
#define RQ_HFILE_BLOCK_H

#include "base/err.h"
#include "hfile/block_cache.h"
#include "hfile/read_ctx.h"
#include "hfile/sidecar.h"
#include "hfile/slab.h"

#include <stdatomic.h>

struct rq_hfile_block {
    /* What a lookup touches, in one cache line. */
    _Atomic uint32_t refs;    /* the cache's is one of them */
    uint8_t kind;             /* rq_block_kind */
    bool high_priority;       /* index, bloom, IN_MEMORY */
    _Atomic uint8_t searches; /* saturates */
    uint8_t uses;             /* the cache's: counted down when the queue passes by */
    uint64_t file_id;
    uint64_t offset;
    const uint8_t *payload;
    size_t payload_len;
    _Atomic(rq__sidecar *) sidecar;

    rq__slab *slab;  /* where this allocation and the sidecar's come from */
    size_t heap_len; /* of this allocation */
    uint32_t on_disk_len;

    /* The cache's, guarded by its shard's lock, as uses is. */
    bool resident;
    uint8_t queue;
    rq_block_cache *cache; /* NULL: never was in one */
    size_t charge;         /* bytes accounted to the cache, as resident or as pinned */
    struct rq_hfile_block *newer, *older; /* queue */
    struct rq_hfile_block *file_next;     /* blocks of the same file in the shard */
    struct rq_hfile_block **file_link;    /* what points to this one in that list */

    uint8_t bytes[];
};

/* Room for `len` bytes, one reference, nothing else set. The memory is the cache's (NULL: the
 * heap's), which must outlive the block. */
RQ_NODISCARD
rq_err rq__block_new(rq_block_cache *c, size_t len, rq_hfile_block **ret);
static inline rq_hfile_block *rq__block_ref(rq_hfile_block *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

/* --- the cache, as readers use it ------------------------------------------------------------- */

#define RQ__CACHE_SHARDS_MAX 16

/* A file's blocks, so that they can be dropped together. Embedded in the reader. */
typedef struct rq__cache_file {
    uint64_t id;
    rq_hfile_block *blocks[RQ__CACHE_SHARDS_MAX]; /* guarded by each shard's lock */
} rq__cache_file;

/* A number no file had before. */
uint64_t rq__cache_next_file_id(rq_block_cache *c);
/* A new reference, or NULL. Counts a hit or miss of `kind`. */
rq_hfile_block *rq__cache_get(rq_block_cache *c, const rq__cache_file *f, uint64_t offset,
                              rq_block_kind kind);
/* Offers the block; if another is there already, the caller's reference is exchanged for one to
 * that. A block too large for its shard stays outside. */
rq_hfile_block *rq__cache_put(rq_block_cache *c, rq__cache_file *f, rq_hfile_block *b);
void rq__cache_evict_file(rq_block_cache *c, rq__cache_file *f);
/* Accounts `more` bytes to a block that grew. */
void rq__cache_grow(rq_hfile_block *b, size_t more);

/* Decompressors in wait, shared by all readers of the cache. */
struct rq_codec;
struct rq_codec *rq__cache_take_codec(rq_block_cache *c, rq_compression kind);
void rq__cache_give_codec(rq_block_cache *c, rq_compression kind, struct rq_codec *codec);

#endif
