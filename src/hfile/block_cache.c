/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block cache (block_cache.h): S3-FIFO in shards.
 *
 *            miss              used twice
 *   block ─────────► SMALL ─────────────────► MAIN ◄──┐ used: goes round again
 *                      │ else                  │ └────┘
 *                      ▼                       ▼ unused
 *                    GHOST (keys only) ─ miss ─► MAIN at once
 *
 * SMALL holds a tenth of the bytes; what a scan brings passes through it. High-priority blocks
 * (index, bloom, IN_MEMORY) start in MAIN and may collect more uses, so they survive more rounds.
 * "S3-FIFO" is by Yang et al., SOSP 2023.
 *
 * Invariants, under a shard's lock:
 * 1. A block is in the table iff it is resident, then it is in one queue and in its file's list,
 * and the cache holds one reference.
 * 2. used = the sum of the residents' charges <= capacity of the shard, after every call.
 * 3. pinned (cache-wide) = the sum of charges of blocks that were evicted but are still referenced.
 */
#include "hfile/block.h"

#include "base/macros.h"
#include "hfile/reader.h" /* rq_hfile_block_unref */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SHARD_BYTES_MIN (8u << 20) /* small caches get fewer shards, so that blocks fit */
#define USES_MAX 3
#define USES_MAX_HIGH 7
#define CODECS_KEPT 16
#define EVICT_STEP 64

enum { QUEUE_SMALL, QUEUE_MAIN, QUEUE_COUNT };

typedef struct queue {
    rq_hfile_block *newest, *oldest;
    uint64_t bytes;
} queue;

/* A table slot; the hash beside the pointer, so that only the block looked for is touched. */
typedef struct slot {
    uint64_t hash;
    rq_hfile_block *block; /* NULL: empty */
} slot;

typedef struct shard {
    pthread_mutex_t lock;
    slot *table RQ_GUARDED_BY(lock); /* open addressing, at most half full */
    size_t table_mask;
    queue queues[QUEUE_COUNT];
    uint32_t *ghosts; /* fingerprints; a newer key overwrites the one in its slot */
    size_t ghost_mask;
    uint64_t blocks;
    uint64_t used;
    uint64_t capacity;
    uint64_t hits[RQ_BLOCK_KIND_COUNT];
    uint64_t misses[RQ_BLOCK_KIND_COUNT];
    uint64_t inserted[RQ_BLOCK_KIND_COUNT];
    uint64_t evicted, evicted_by_file;
} __attribute__((aligned(128))) shard; /* no two shards share a cache line */

struct rq_block_cache {
    rq__slab *slab; /* the blocks' memory */
    shard shards[RQ__CACHE_SHARDS_MAX];
    unsigned shard_count; /* a power of two */
    _Atomic uint64_t capacity;
    _Atomic uint64_t pinned;
    _Atomic uint64_t next_file_id;
    pthread_mutex_t codec_lock;
    rq_codec *codecs[RQ_COMPRESSION_COUNT][CODECS_KEPT] RQ_GUARDED_BY(codec_lock);
    unsigned codec_count[RQ_COMPRESSION_COUNT];
};

/* --- blocks ---------------------------------------------------------------------------------- */

rq_err rq__block_new(rq_block_cache *c, size_t len, rq_hfile_block **ret)
{
    rq__slab *slab = c == NULL ? NULL : c->slab;
    size_t heap_len;
    rq_hfile_block *b = rq__slab_take(slab, sizeof(*b) + len, &heap_len);
    if (b == NULL) return RQ_E_NO_MEMORY;
    memset(b, 0, sizeof(*b));
    atomic_init(&b->refs, 1);
    b->slab = slab;
    b->heap_len = heap_len;
    *ret = b;
    return RQ_OK;
}

void rq_hfile_block_unref(rq_hfile_block *b)
{
    if (b == NULL || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
    /* Out of the table for good: the cache's own reference is gone. */
    if (b->cache != NULL)
        atomic_fetch_sub_explicit(&b->cache->pinned, b->charge, memory_order_relaxed);
    rq__sidecar_free(b->slab, atomic_load_explicit(&b->sidecar, memory_order_relaxed));
    rq__slab_give(b->slab, b, b->heap_len);
}

/* --- shards ---------------------------------------------------------------------------------- */

static inline uint64_t hash_of(uint64_t file_id, uint64_t offset)
{
    uint64_t h = (file_id * 0x9e3779b97f4a7c15u) ^ (offset * 0xc2b2ae3d27d4eb4fu);
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

/* Shards take the top bits, tables the bottom ones. */
static inline unsigned shard_of(const rq_block_cache *c, uint64_t hash)
{
    return (unsigned)(hash >> 56) & (c->shard_count - 1);
}

static void queue_push(shard *s, unsigned which, rq_hfile_block *b)
{
    queue *q = &s->queues[which];
    b->queue = (uint8_t)which;
    b->newer = NULL;
    b->older = q->newest;
    if (q->newest != NULL)
        q->newest->newer = b;
    else
        q->oldest = b;
    q->newest = b;
    q->bytes += b->charge;
}

static void queue_remove(shard *s, rq_hfile_block *b)
{
    queue *q = &s->queues[b->queue];
    if (b->newer != NULL)
        b->newer->older = b->older;
    else
        q->newest = b->older;
    if (b->older != NULL)
        b->older->newer = b->newer;
    else
        q->oldest = b->newer;
    q->bytes -= b->charge;
}

/* The block's slot, or the empty one where it would go. */
static slot *table_slot(shard *s, uint64_t hash, uint64_t file_id, uint64_t offset)
{
    for (size_t i = hash & s->table_mask;; i = (i + 1) & s->table_mask) {
        slot *at = &s->table[i];
        if (at->block == NULL ||
            (at->hash == hash && at->block->file_id == file_id && at->block->offset == offset))
            return at;
    }
}

/* Empties the slot and moves those behind it up, so that no search stops early. */
static void table_remove(shard *s, slot *at)
{
    size_t hole = (size_t)(at - s->table);
    for (size_t i = (hole + 1) & s->table_mask; s->table[i].block != NULL;
         i = (i + 1) & s->table_mask) {
        size_t home = s->table[i].hash & s->table_mask;
        if (((i - home) & s->table_mask) < ((i - hole) & s->table_mask)) continue;
        s->table[hole] = s->table[i];
        hole = i;
    }
    s->table[hole].block = NULL;
}

/* Keeps the table at most half full; false without memory for that. */
static bool table_grow(shard *s)
{
    if ((s->blocks + 1) * 2 <= s->table_mask + 1) return true;
    size_t mask = s->table_mask * 2 + 1;
    slot *table = calloc(mask + 1, sizeof(*table));
    if (table == NULL) return false;
    for (size_t i = 0; i <= s->table_mask; i++) {
        if (s->table[i].block == NULL) continue;
        size_t to = s->table[i].hash & mask;
        while (table[to].block != NULL)
            to = (to + 1) & mask;
        table[to] = s->table[i];
    }
    free(s->table);
    s->table = table;
    s->table_mask = mask;
    return true;
}

/* Takes the block out; its reference goes to `victims` (through `older`), because freeing wants no
 * lock. A resident block's file lives, so its list's head may be written. */
static void remove_block(rq_block_cache *c, shard *s, rq_hfile_block *b, rq_hfile_block **victims)
{
    slot *at = table_slot(s, hash_of(b->file_id, b->offset), b->file_id, b->offset);
    RQ_ASSERT(at->block == b);
    table_remove(s, at);
    queue_remove(s, b);
    *b->file_link = b->file_next;
    if (b->file_next != NULL) b->file_next->file_link = b->file_link;
    s->used -= b->charge;
    s->blocks--;
    b->resident = false;
    atomic_fetch_add_explicit(&c->pinned, b->charge, memory_order_relaxed);
    b->older = *victims;
    *victims = b;
}

static void release_victims(rq_hfile_block *victims)
{
    while (victims != NULL) {
        rq_hfile_block *next = victims->older;
        rq_hfile_block_unref(victims);
        victims = next;
    }
}

static void ghost_remember(shard *s, const rq_hfile_block *b)
{
    uint64_t hash = hash_of(b->file_id, b->offset);
    s->ghosts[(hash >> 16) & s->ghost_mask] = (uint32_t)hash | 1; /* 0: empty */
}

static bool ghost_take(shard *s, uint64_t hash)
{
    uint32_t *ghost = &s->ghosts[(hash >> 16) & s->ghost_mask];
    if (*ghost != ((uint32_t)hash | 1)) return false;
    *ghost = 0;
    return true;
}

/* Makes room until `used` is at most `limit`. Each step takes a use away or a block out, so it
 * ends. */
static void evict_to(rq_block_cache *c, shard *s, uint64_t limit, rq_hfile_block **victims)
{
    queue *small = &s->queues[QUEUE_SMALL];
    queue *main = &s->queues[QUEUE_MAIN];
    while (s->used > limit) {
        if (small->oldest != NULL && (small->bytes > s->capacity / 10 || main->oldest == NULL)) {
            rq_hfile_block *b = small->oldest;
            if (b->uses > 1) {
                queue_remove(s, b);
                b->uses = 0;
                queue_push(s, QUEUE_MAIN, b);
                continue;
            }
            ghost_remember(s, b);
            remove_block(c, s, b, victims);
        } else {
            rq_hfile_block *b = main->oldest;
            if (b->uses > 0) {
                b->uses--;
                queue_remove(s, b);
                queue_push(s, QUEUE_MAIN, b);
                continue;
            }
            remove_block(c, s, b, victims);
        }
        s->evicted++;
    }
}

/* --- the cache -------------------------------------------------------------------------------- */

static size_t power_of_two(uint64_t n)
{
    size_t p = 64;
    while (p < n)
        p *= 2;
    return p;
}

rq_err rq_block_cache_new(uint64_t capacity_bytes, rq_block_cache **ret)
{
    rq_block_cache *c = aligned_alloc(128, sizeof(*c));
    if (c == NULL) return RQ_E_NO_MEMORY;
    memset(c, 0, sizeof(*c));
    c->shard_count = 1;
    while (c->shard_count < RQ__CACHE_SHARDS_MAX &&
           capacity_bytes / (c->shard_count * 2) >= SHARD_BYTES_MIN)
        c->shard_count *= 2;
    atomic_init(&c->capacity, capacity_bytes);
    atomic_init(&c->next_file_id, 1);
    (void)pthread_mutex_init(&c->codec_lock, NULL);
    rq_err rc = rq__slab_new(&c->slab);
    for (unsigned i = 0; i < c->shard_count; i++) {
        shard *s = &c->shards[i];
        (void)pthread_mutex_init(&s->lock, NULL);
        s->capacity = capacity_bytes / c->shard_count;
        s->table_mask = 63;
        s->table = calloc(s->table_mask + 1, sizeof(*s->table));
        /* About as many ghosts as MAIN has blocks of the default size. */
        size_t ghosts = power_of_two(s->capacity / (32 * 1024));
        s->ghost_mask = ghosts - 1;
        s->ghosts = calloc(ghosts, sizeof(*s->ghosts));
        if (s->table == NULL || s->ghosts == NULL) rc = RQ_E_NO_MEMORY;
    }
    if (rc != RQ_OK) {
        rq_block_cache_free(c);
        return rc;
    }
    *ret = c;
    return RQ_OK;
}

void rq_block_cache_free(rq_block_cache *c)
{
    if (c == NULL) return;
    for (unsigned i = 0; i < c->shard_count; i++) {
        shard *s = &c->shards[i];
        RQ_ASSERT(s->blocks == 0); /* every reader is closed and took its blocks along */
        free(s->table);
        free(s->ghosts);
        (void)pthread_mutex_destroy(&s->lock);
    }
    for (int k = 0; k < RQ_COMPRESSION_COUNT; k++)
        for (unsigned i = 0; i < c->codec_count[k]; i++)
            rq_codec_free(c->codecs[k][i]);
    (void)pthread_mutex_destroy(&c->codec_lock);
    rq__slab_free(c->slab);
    free(c);
}

void rq_block_cache_resize(rq_block_cache *c, uint64_t capacity_bytes)
{
    atomic_store(&c->capacity, capacity_bytes);
    for (unsigned i = 0; i < c->shard_count; i++) {
        shard *s = &c->shards[i];
        rq_hfile_block *victims = NULL;
        (void)pthread_mutex_lock(&s->lock);
        s->capacity = capacity_bytes / c->shard_count;
        evict_to(c, s, s->capacity, &victims);
        (void)pthread_mutex_unlock(&s->lock);
        release_victims(victims);
    }
}

void rq_block_cache_get_stats(rq_block_cache *c, rq_block_cache_stats *ret)
{
    *ret = (rq_block_cache_stats){
        .capacity_bytes = atomic_load(&c->capacity),
        .pinned_bytes = atomic_load(&c->pinned),
        .mapped_bytes = rq__slab_mapped(c->slab),
    };
    for (unsigned i = 0; i < c->shard_count; i++) {
        shard *s = &c->shards[i];
        (void)pthread_mutex_lock(&s->lock);
        for (int k = 0; k < RQ_BLOCK_KIND_COUNT; k++) {
            ret->hits[k] += s->hits[k];
            ret->misses[k] += s->misses[k];
            ret->inserted[k] += s->inserted[k];
        }
        ret->evicted += s->evicted;
        ret->evicted_by_file += s->evicted_by_file;
        ret->blocks += s->blocks;
        ret->used_bytes += s->used;
        (void)pthread_mutex_unlock(&s->lock);
    }
}

uint64_t rq__cache_next_file_id(rq_block_cache *c)
{
    return atomic_fetch_add_explicit(&c->next_file_id, 1, memory_order_relaxed);
}

rq_hfile_block *rq__cache_get(rq_block_cache *c, const rq__cache_file *f, uint64_t offset,
                              rq_block_kind kind)
{
    uint64_t hash = hash_of(f->id, offset);
    shard *s = &c->shards[shard_of(c, hash)];
    (void)pthread_mutex_lock(&s->lock);
    rq_hfile_block *b = table_slot(s, hash, f->id, offset)->block;
    if (b != NULL) {
        s->hits[kind]++;
        if (b->uses < (b->high_priority ? USES_MAX_HIGH : USES_MAX)) b->uses++;
        (void)rq__block_ref(b);
    } else {
        s->misses[kind]++;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return b;
}

rq_hfile_block *rq__cache_put(rq_block_cache *c, rq__cache_file *f, rq_hfile_block *b)
{
    uint64_t hash = hash_of(f->id, b->offset);
    unsigned which = shard_of(c, hash);
    shard *s = &c->shards[which];
    rq_hfile_block *victims = NULL;
    rq_hfile_block *mine = NULL; /* given back when another was there first */
    b->file_id = f->id;
    (void)pthread_mutex_lock(&s->lock);
    slot *at = table_slot(s, hash, f->id, b->offset);
    if (at->block != NULL) {
        mine = b;
        b = rq__block_ref(at->block);
    } else if (b->heap_len <= s->capacity && table_grow(s)) {
        b->charge = b->heap_len;
        evict_to(c, s, s->capacity - b->charge, &victims);
        b->cache = c;
        b->resident = true;
        at = table_slot(s, hash, f->id, b->offset); /* the table may have changed */
        *at = (slot){hash, rq__block_ref(b)};
        b->file_next = f->blocks[which];
        b->file_link = &f->blocks[which];
        if (b->file_next != NULL) b->file_next->file_link = &b->file_next;
        f->blocks[which] = b;
        b->uses = b->high_priority ? 1 : 0;
        queue_push(s, b->high_priority || ghost_take(s, hash) ? QUEUE_MAIN : QUEUE_SMALL, b);
        s->used += b->charge;
        s->blocks++;
        s->inserted[b->kind]++;
    }
    (void)pthread_mutex_unlock(&s->lock);
    release_victims(victims);
    rq_hfile_block_unref(mine);
    return b;
}

void rq__cache_evict_file(rq_block_cache *c, rq__cache_file *f)
{
    for (unsigned i = 0; i < c->shard_count; i++) {
        shard *s = &c->shards[i];
        /* A large file's blocks in steps, so that others get the lock in between. */
        for (bool more = true; more;) {
            rq_hfile_block *victims = NULL;
            (void)pthread_mutex_lock(&s->lock);
            for (int n = 0; n < EVICT_STEP && f->blocks[i] != NULL; n++) {
                remove_block(c, s, f->blocks[i], &victims);
                s->evicted_by_file++;
            }
            more = f->blocks[i] != NULL;
            (void)pthread_mutex_unlock(&s->lock);
            release_victims(victims);
        }
    }
}

void rq__cache_grow(rq_hfile_block *b, size_t more)
{
    rq_block_cache *c = b->cache;
    if (c == NULL) return;
    shard *s = &c->shards[shard_of(c, hash_of(b->file_id, b->offset))];
    rq_hfile_block *victims = NULL;
    (void)pthread_mutex_lock(&s->lock);
    b->charge += more;
    if (b->resident) {
        s->used += more;
        s->queues[b->queue].bytes += more;
        evict_to(c, s, s->capacity, &victims);
    } else {
        atomic_fetch_add_explicit(&c->pinned, more, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&s->lock);
    release_victims(victims);
}

rq_codec *rq__cache_take_codec(rq_block_cache *c, rq_compression kind)
{
    rq_codec *codec = NULL;
    (void)pthread_mutex_lock(&c->codec_lock);
    if (c->codec_count[kind] > 0) codec = c->codecs[kind][--c->codec_count[kind]];
    (void)pthread_mutex_unlock(&c->codec_lock);
    return codec;
}

void rq__cache_give_codec(rq_block_cache *c, rq_compression kind, rq_codec *codec)
{
    (void)pthread_mutex_lock(&c->codec_lock);
    if (c->codec_count[kind] < CODECS_KEPT) {
        c->codecs[kind][c->codec_count[kind]++] = codec;
        codec = NULL;
    }
    (void)pthread_mutex_unlock(&c->codec_lock);
    rq_codec_free(codec);
}
