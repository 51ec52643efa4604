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
#include "hfile/cache_queue.h"
#include "hfile/read_ctx.h"
#include "hfile/sidecar.h"
#include "hfile/slab.h"

#include <stdatomic.h>

/* Who goes first when room is needed (block_cache.h). */
typedef enum rq__rank { RQ__RANK_DATA, RQ__RANK_MEMORY, RQ__RANK_META } rq__rank;

struct rq__cache_file;

struct rq_hfile_block {
    /* What a lookup touches, in one cache line. */
    _Atomic uint32_t refs;    /* the cache's is one of them */
    uint8_t kind;             /* rq_block_kind */
    uint8_t rank;             /* rq__rank */
    _Atomic uint8_t searches; /* saturates */
    uint64_t file_id;
    uint64_t offset;
    const uint8_t *payload;
    size_t payload_len;
    _Atomic(rq__sidecar *) sidecar;
    /* The cache's, guarded by its shard's lock. Its charge: bytes accounted, resident or pinned. */
    rq__cache_node node;

    rq__slab *slab;  /* where this allocation and the sidecar's come from */
    size_t heap_len; /* of this allocation */
    uint32_t on_disk_len;

    /* The cache's too. */
    bool resident;
    rq_block_cache *cache;             /* NULL: never was in one */
    struct rq__cache_file *file;       /* while resident: a reference */
    struct rq_hfile_block *file_next;  /* blocks of the same file in the shard */
    struct rq_hfile_block **file_link; /* what points to this one in that list */

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

/* A file as the cache knows it. References: of readers and of resident blocks. */
typedef struct rq__cache_file rq__cache_file;

struct rq__cache_file {
    rq_block_cache *cache;
    _Atomic uint32_t refs;
    _Atomic uint32_t readers;
    _Atomic bool obsolete;   /* nobody will open it again */
    _Atomic uint64_t bytes;  /* charges of its resident blocks */
    _Atomic uint64_t id;     /* what its blocks carry; no other file ever had it */
    rq_cache_family *family; /* a reference, or NULL */
    struct rq__cache_file *next;
    uint64_t size;
    uint32_t tail_crc;
    rq_hfile_block *blocks[RQ__CACHE_SHARDS_MAX]; /* guarded by each shard's lock */
    char name[];
};

/* What identifies a file: the last part of its path (a store file's is random), its size and a
 * checksum of its end. `family` may be NULL. */
RQ_NODISCARD
rq_err rq__cache_file_open(rq_block_cache *c, const char *path, uint64_t size, uint32_t tail_crc,
                           rq_cache_family *family, rq__cache_file **ret);
/* The last reader's close evicts the blocks if it says so or the file is obsolete; else they count
 * as plain data from then on, for nobody may ever come for them. */
void rq__cache_file_close(rq__cache_file *f, bool evict);
/* A new reference, or NULL. Counts a hit or miss of `kind`. */
rq_hfile_block *rq__cache_get(rq__cache_file *f, uint64_t offset, rq_block_kind kind);
/* Whether it is there; counts nothing. */
bool rq__cache_has(rq__cache_file *f, uint64_t offset);
/* The block with a new reference, or NULL; counts nothing and is no use of it. */
rq_hfile_block *rq__cache_peek(rq__cache_file *f, uint64_t offset);
/* A hint: asks memory for the block's head; false: it is not there. Counts nothing. */
bool rq__cache_ask_for(rq__cache_file *f, uint64_t offset);
/* The block from the second level: it or NULL goes to *ret. RQ_E_AGAIN: it is there, but reading it
 * would wait. */
RQ_NODISCARD
rq_err rq__cache_get_second(rq__cache_file *f, uint64_t offset, bool may_block,
                            rq_hfile_block **ret);
/* Offers the block; if another is there already, the caller's reference is exchanged for one to
 * that. A block too large for its shard stays outside. */
rq_hfile_block *rq__cache_put(rq__cache_file *f, rq_hfile_block *b);
typedef struct rq__cache_evicted {
    uint64_t blocks, bytes;
} rq__cache_evicted;
/* What the second level has of it is given up too. */
rq__cache_evicted rq__cache_evict_file(rq__cache_file *f);
void rq__cache_demote_file(rq__cache_file *f);
/* Accounts `more` bytes to a block that grew. */
void rq__cache_grow(rq_hfile_block *b, size_t more);

/* Whether a block that readers keep to themselves may be, so that all of them are at most one part
 * in `share` of the capacity; each that may is let go once. */
bool rq__cache_hold(rq_block_cache *c, uint64_t bytes, unsigned share);
void rq__cache_let_go(rq_block_cache *c, uint64_t bytes);

/* Decompressors in wait, shared by all readers of the cache. */
struct rq_codec;
struct rq_codec *rq__cache_take_codec(rq_block_cache *c, rq_compression kind);
void rq__cache_give_codec(rq_block_cache *c, rq_compression kind, struct rq_codec *codec);

#endif
