/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block cache (block_cache.h): shards, each a hash table and the queues of three ranks. The
 * files and families it knows are in cache_files.c.
 *
 * Invariants, under a shard's lock:
 * 1. A block is in the table iff it is resident. Then it is in one queue and in its file's list,
 *    the cache holds a reference to it, and it holds one to the file.
 * 2. used = the sum of the residents' charges <= capacity of the shard, after every call.
 * 3. pinned (cache-wide) = the sum of charges of blocks that were evicted but are still referenced.
 */
#include "hfile/cache_priv.h"

#include "hfile/reader.h" /* rq__hfile_block_unref */
#include "hfile/second_level.h"

#include <stdlib.h>
#include <string.h>

#define SHARD_BYTES_MIN (4u << 20) /* small caches get fewer shards, so that blocks fit */
#define EVICT_STEP 64

typedef rq__cache_shard shard;
typedef rq__cache_slot slot;

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

void rq__hfile_block_unref(rq_hfile_block *b)
{
    if (b == NULL || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
    /* Removed for good: the cache's own reference is dropped. */
    rq_block_cache *c = atomic_load_explicit(&b->cache, memory_order_relaxed);
    if (c != NULL) atomic_fetch_sub_explicit(&c->pinned, b->node.charge, memory_order_relaxed);
    rq__sidecar_free(b->slab, atomic_load_explicit(&b->sidecar, memory_order_relaxed));
    rq__slab_give(b->slab, b, b->heap_len);
}

/* --- shards ---------------------------------------------------------------------------------- */

/* Shards use the top bits of the hash, tables the bottom ones. */
static inline unsigned shard_of(const rq_block_cache *c, uint64_t hash)
{
    return (unsigned)(hash >> 56) & (c->shard_count - 1);
}

/* The block's slot, or the empty one where it would be inserted. */
static slot *table_slot(shard *s, uint64_t hash, uint64_t file_id, uint64_t offset)
{
    for (size_t i = hash & s->table_mask;; i = (i + 1) & s->table_mask) {
        slot *at = &s->table[i];
        if (at->block == NULL ||
            (at->hash == hash && at->block->file_id == file_id && at->block->offset == offset))
            return at;
    }
}

/* Empties the slot and moves the following ones up, so that no search stops early. */
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

/* Keeps the table at most half full; false when out of memory. */
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

/* --- order ------------------------------------------------------------------------------------ */

static rq_hfile_block *block_of(rq__cache_node *n)
{
    return RQ_CONTAINER_OF(n, rq_hfile_block, node);
}

/* NULL: plain data, which S3-FIFO orders. */
static rq__cache_queue *queue_of_rank(shard *s, const rq_hfile_block *b)
{
    if (b->rank == RQ__RANK_META) return &s->meta;
    return b->rank == RQ__RANK_MEMORY ? &s->memory : NULL;
}

static void enqueue(shard *s, rq_hfile_block *b)
{
    rq__cache_queue *q = queue_of_rank(s, b);
    b->node.uses = 0;
    if (q != NULL)
        rq__cache_queue_push(q, &b->node);
    else
        rq__s3_fifo_insert(&s->data, &b->node);
}

static void dequeue(shard *s, rq_hfile_block *b)
{
    rq__cache_queue *q = queue_of_rank(s, b);
    if (q != NULL)
        rq__cache_queue_remove(q, &b->node);
    else
        rq__s3_fifo_remove(&s->data, &b->node);
}

/* Removes the oldest block that was not used since its last pass through the queue. */
static rq_hfile_block *evict_oldest(rq__cache_queue *q)
{
    rq__cache_node *n;
    for (n = q->oldest; n != NULL; n = q->oldest) {
        rq__cache_queue_remove(q, n);
        if (n->uses == 0) break;
        n->uses--;
        rq__cache_queue_push(q, n);
    }
    return n == NULL ? NULL : block_of(n);
}

/* Removes the next block to evict from its queue; the order is described in block_cache.h. */
static rq_hfile_block *evict_next(shard *s)
{
    if (s->meta.bytes > s->capacity / 2) return evict_oldest(&s->meta);
    if (s->memory.bytes > s->capacity / 4) return evict_oldest(&s->memory);
    rq__cache_node *n = rq__s3_fifo_evict(&s->data);
    if (n != NULL) return block_of(n);
    rq_hfile_block *b = evict_oldest(&s->memory);
    return b != NULL ? b : evict_oldest(&s->meta);
}

static rq__family_counters *counters_of(const rq_block_cache *c, const shard *s,
                                        const rq__cache_file *f)
{
    return f->family == NULL ? NULL : &f->family->shards[s - c->shards];
}

/* Removes the block, which has left its queue. Its reference is added to `victims` (linked through
 * `older`), so that it is freed without the lock. */
static void remove_block(rq_block_cache *c, shard *s, rq_hfile_block *b, rq_hfile_block **victims)
{
    slot *at = table_slot(s, b->node.hash, b->file_id, b->offset);
    rq__family_counters *n = counters_of(c, s, b->file);
    RQ_ASSERT(at->block == b);
    table_remove(s, at);
    *b->file_link = b->file_next;
    if (b->file_next != NULL) b->file_next->file_link = b->file_link;
    s->used -= b->node.charge;
    s->blocks--;
    atomic_fetch_sub_explicit(&b->file->bytes, b->node.charge, memory_order_relaxed);
    if (n != NULL) {
        rq__count(&n->blocks, -1);
        rq__count(&n->bytes, -(int64_t)b->node.charge);
    }
    b->resident = false;
    atomic_fetch_add_explicit(&c->pinned, b->node.charge, memory_order_relaxed);
    b->node.older = *victims == NULL ? NULL : &(*victims)->node;
    *victims = b;
}

/* Blocks evicted only to make room are offered to the second level. */
static void release_victims(rq_block_cache *c, rq_hfile_block *victims, bool for_room)
{
    while (victims != NULL) {
        rq_hfile_block *next = victims->node.older == NULL ? NULL : block_of(victims->node.older);
        rq__cache_file *f = victims->file;
        if (for_room && c->second != NULL &&
            !atomic_load_explicit(&f->obsolete, memory_order_relaxed))
            rq__second_level_offer(c->second, victims);
        rq__hfile_block_unref(victims);
        rq__cache_file_unref(f);
        victims = next;
    }
}

/* Evicts until `used` is at most `limit`. */
static void evict_to(rq_block_cache *c, shard *s, uint64_t limit, rq_hfile_block **victims)
{
    while (s->used > limit) {
        rq_hfile_block *b = evict_next(s);
        RQ_ASSERT(b != NULL); /* used bytes are in some queue */
        rq__family_counters *n = counters_of(c, s, b->file);
        if (n != NULL) rq__count(&n->evicted, 1);
        remove_block(c, s, b, victims);
        s->evicted++;
    }
}

/* --- the cache -------------------------------------------------------------------------------- */

/* The lock is held for some hundred nanoseconds: a thread that finds it taken spins for a while
 * before it sleeps, which takes a hundred times as long. */
static void init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t kind;
    (void)pthread_mutexattr_init(&kind);
    (void)pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP);
    (void)pthread_mutex_init(lock, &kind);
    (void)pthread_mutexattr_destroy(&kind);
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
    (void)pthread_mutex_init(&c->files_lock, NULL);
    rq__windows_init(&c->windows);
    rq_err rc = rq__slab_new(&c->slab);
    if (rq__cache_index_init(&c->files) != RQ_OK || rq__cache_index_init(&c->families) != RQ_OK)
        rc = RQ_E_NO_MEMORY;
    for (unsigned i = 0; i < c->shard_count; i++) {
        shard *s = &c->shards[i];
        init_lock(&s->lock);
        s->capacity = capacity_bytes / c->shard_count;
        s->table_mask = 63;
        s->table = calloc(s->table_mask + 1, sizeof(*s->table));
        if (s->table == NULL) rc = RQ_E_NO_MEMORY;
        if (rq__s3_fifo_init(&s->data, s->capacity) != RQ_OK) rc = RQ_E_NO_MEMORY;
    }
    if (rc != RQ_OK) {
        rq_block_cache_free(c);
        return rc;
    }
    *ret = c;
    return RQ_OK;
}

void rq_block_cache_make_ready(rq_block_cache *c, rq_executor *executor)
{
    rq__slab_make_ready(c->slab, executor, atomic_load(&c->capacity));
    c->windows.executor = executor;
}

static void evict_all(rq_block_cache *c, shard *s)
{
    rq_hfile_block *victims = NULL;
    (void)pthread_mutex_lock(&s->lock);
    for (rq_hfile_block *b = evict_next(s); b != NULL; b = evict_next(s))
        remove_block(c, s, b, &victims);
    (void)pthread_mutex_unlock(&s->lock);
    release_victims(c, victims, false);
}

void rq_block_cache_free(rq_block_cache *c)
{
    if (c == NULL) return;
    rq__windows_clear(&c->windows);   /* a task may hold a reader */
    rq__second_level_free(c->second); /* its queue holds blocks */
    for (unsigned i = 0; i < c->shard_count; i++) {
        shard *s = &c->shards[i];
        evict_all(c, s);
        RQ_ASSERT(s->blocks == 0);
        free(s->table);
        rq__s3_fifo_clear(&s->data);
        (void)pthread_mutex_destroy(&s->lock);
    }
    rq__cache_index_clear(&c->files); /* every reader is closed */
    rq__cache_index_clear(&c->families);
    for (int k = 0; k < RQ_COMPRESSION_COUNT; k++)
        for (unsigned i = 0; i < c->codec_count[k]; i++)
            rq_codec_free(c->codecs[k][i]);
    (void)pthread_mutex_destroy(&c->codec_lock);
    (void)pthread_mutex_destroy(&c->files_lock);
    rq__slab_free(c->slab);
    free(c);
}

/* The capacity left for blocks. */
static uint64_t capacity_of(rq_block_cache *c)
{
    uint64_t capacity = atomic_load(&c->capacity);
    uint64_t reserved = atomic_load(&c->reserved);
    if (atomic_load(&c->has_windows)) reserved += rq__windows_bytes_max(capacity);
    return reserved < capacity ? capacity - reserved : 0;
}

/* The numbers are read under each shard's lock, so that of several threads changing them at the
 * same time the last one sees all changes. */
static void divide_capacity(rq_block_cache *c)
{
    for (unsigned i = 0; i < c->shard_count; i++) {
        shard *s = &c->shards[i];
        rq_hfile_block *victims = NULL;
        (void)pthread_mutex_lock(&s->lock);
        s->capacity = capacity_of(c) / c->shard_count;
        evict_to(c, s, s->capacity, &victims);
        (void)pthread_mutex_unlock(&s->lock);
        release_victims(c, victims, true);
    }
}

void rq_block_cache_resize(rq_block_cache *c, uint64_t capacity_bytes)
{
    atomic_store(&c->capacity, capacity_bytes);
    if (atomic_load(&c->reserved) > capacity_bytes / 2)
        atomic_store(&c->reserved, capacity_bytes / 2);
    rq__slab_set_most(c->slab, capacity_bytes);
    divide_capacity(c);
}

void rq__cache_reserve(rq_block_cache *c, uint64_t bytes)
{
    uint64_t most = atomic_load(&c->capacity) / 2;
    atomic_store(&c->reserved, bytes < most ? bytes : most);
    divide_capacity(c);
}

void rq__cache_grant_windows(rq_block_cache *c)
{
    if (!atomic_load(&c->has_windows) && !atomic_exchange(&c->has_windows, true))
        divide_capacity(c);
}

rq_err rq_block_cache_add_file(rq_block_cache *c, const rq_block_cache_file *o, rq_error *why)
{
    RQ_ASSERT(c->second == NULL);
    return rq__second_level_new(c, o, &c->second, why);
}

void rq_block_cache_trim(rq_block_cache *c, unsigned share)
{
    if (!rq__windows_drop_old(&c->windows) && atomic_exchange(&c->has_windows, false)) {
        if (rq__windows_drop_old(&c->windows)) atomic_store(&c->has_windows, true); /* a new one */
        divide_capacity(c);
    }
    rq__slab_trim(c->slab, share);
}

void rq_block_cache_get_stats(rq_block_cache *c, rq_block_cache_stats *ret)
{
    *ret = (rq_block_cache_stats){
        .capacity_bytes = capacity_of(c),
        .pinned_bytes = atomic_load(&c->pinned),
        .family_bytes = atomic_load(&c->family_bytes),
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
        ret->meta_bytes += s->meta.bytes;
        ret->memory_bytes += s->memory.bytes;
        (void)pthread_mutex_unlock(&s->lock);
    }
    rq__windows_get_stats(&c->windows, ret);
    if (c->second != NULL) rq__second_level_get_stats(c->second, ret);
}

bool rq_block_cache_has_room(rq_block_cache *c, uint64_t bytes)
{
    bool has = true;
    bytes /= c->shard_count;
    for (unsigned i = 0; has && i < c->shard_count; i++) {
        shard *s = &c->shards[i];
        (void)pthread_mutex_lock(&s->lock);
        has = s->used + bytes <= s->capacity;
        (void)pthread_mutex_unlock(&s->lock);
    }
    return has;
}

/* --- blocks of files -------------------------------------------------------------------------- */

static void count_access(const rq_block_cache *c, shard *s, const rq__cache_file *f,
                         rq_block_kind kind, bool hit)
{
    rq__family_counters *n = counters_of(c, s, f);
    (hit ? s->hits : s->misses)[kind]++;
    if (n == NULL) return;
    if (kind == RQ_BLOCK_DATA)
        rq__count(hit ? &n->data_hits : &n->data_misses, 1);
    else
        rq__count(hit ? &n->meta_hits : &n->meta_misses, 1);
}

/* The block's shard, locked, and the block in it or NULL. */
static rq_hfile_block *look_in(const rq__cache_file *f, uint64_t offset, shard **ret)
{
    rq_block_cache *c = f->cache;
    uint64_t id = atomic_load_explicit(&f->id, memory_order_relaxed);
    uint64_t hash = rq__cache_hash(id, offset);
    shard *s = &c->shards[shard_of(c, hash)];
    (void)pthread_mutex_lock(&s->lock);
    *ret = s;
    return table_slot(s, hash, id, offset)->block;
}

rq_hfile_block *rq__cache_get(rq__cache_file *f, uint64_t offset, rq_block_kind kind)
{
    shard *s;
    rq_hfile_block *b = look_in(f, offset, &s);
    count_access(f->cache, s, f, kind, b != NULL);
    if (b != NULL) {
        rq__cache_node_use(&b->node);
        (void)rq__block_ref(b);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return b;
}

rq_err rq__cache_get_second(rq__cache_file *f, uint64_t offset, bool may_block,
                            rq_hfile_block **ret)
{
    *ret = NULL;
    if (f->cache->second == NULL) return RQ_OK;
    return rq__second_level_get(f->cache->second,
                                atomic_load_explicit(&f->id, memory_order_relaxed), offset,
                                may_block, ret);
}

bool rq__cache_has_second(const rq__cache_file *f, uint64_t offset)
{
    return f->cache->second != NULL &&
           rq__second_level_has(f->cache->second,
                                atomic_load_explicit(&f->id, memory_order_relaxed), offset);
}

bool rq__cache_has(rq__cache_file *f, uint64_t offset)
{
    shard *s;
    bool has = look_in(f, offset, &s) != NULL;
    (void)pthread_mutex_unlock(&s->lock);
    return has;
}

bool rq__cache_prefetch(rq__cache_file *f, uint64_t offset)
{
    rq_block_cache *c = f->cache;
    uint64_t hash = rq__cache_hash(atomic_load_explicit(&f->id, memory_order_relaxed), offset);
    shard *s = &c->shards[shard_of(c, hash)];
    (void)pthread_mutex_lock(&s->lock);
    /* By the hash alone: the comparison with the block waits until its head has been fetched. */
    size_t i = hash & s->table_mask;
    while (s->table[i].block != NULL && s->table[i].hash != hash)
        i = (i + 1) & s->table_mask;
    const rq_hfile_block *b = s->table[i].block;
    __builtin_prefetch(b);
    (void)pthread_mutex_unlock(&s->lock);
    return b != NULL;
}

rq_hfile_block *rq__cache_peek(rq__cache_file *f, uint64_t offset)
{
    shard *s;
    rq_hfile_block *b = look_in(f, offset, &s);
    if (b != NULL) (void)rq__block_ref(b);
    (void)pthread_mutex_unlock(&s->lock);
    return b;
}

static void add_block(rq_block_cache *c, unsigned which, rq__cache_file *f, rq_hfile_block *b,
                      rq_hfile_block **victims)
{
    shard *s = &c->shards[which];
    rq__family_counters *n = counters_of(c, s, f);
    b->node.charge = b->heap_len;
    evict_to(c, s, s->capacity - b->node.charge, victims);
    atomic_store_explicit(&b->cache, c, memory_order_release);
    b->resident = true;
    b->file = rq__cache_file_ref(f);
    /* Searches the slot again: the table may have changed. */
    *table_slot(s, b->node.hash, b->file_id, b->offset) = (slot){b->node.hash, rq__block_ref(b)};
    b->file_next = f->blocks[which];
    b->file_link = &f->blocks[which];
    if (b->file_next != NULL) b->file_next->file_link = &b->file_next;
    f->blocks[which] = b;
    enqueue(s, b);
    s->used += b->node.charge;
    s->blocks++;
    atomic_fetch_add_explicit(&f->bytes, b->node.charge, memory_order_relaxed);
    s->inserted[b->kind]++;
    if (n == NULL) return;
    rq__count(&n->blocks, 1);
    rq__count(&n->bytes, (int64_t)b->node.charge);
}

rq_hfile_block *rq__cache_put(rq__cache_file *f, rq_hfile_block *b)
{
    rq_block_cache *c = f->cache;
    uint64_t hash = rq__cache_hash(b->file_id, b->offset);
    unsigned which = shard_of(c, hash);
    shard *s = &c->shards[which];
    rq_hfile_block *victims = NULL;
    rq_hfile_block *mine = NULL; /* freed if another thread was first */
    (void)pthread_mutex_lock(&s->lock);
    rq_hfile_block *there = table_slot(s, hash, b->file_id, b->offset)->block;
    if (there != NULL) {
        mine = b;
        b = rq__block_ref(there);
    } else if (b->heap_len <= s->capacity && table_grow(s)) {
        b->node.hash = hash;
        add_block(c, which, f, b, &victims);
    }
    (void)pthread_mutex_unlock(&s->lock);
    release_victims(c, victims, true);
    rq__hfile_block_unref(mine);
    return b;
}

rq__cache_evicted rq__cache_evict_file(rq__cache_file *f)
{
    rq_block_cache *c = f->cache;
    rq__cache_evicted sum = {0};
    /* With a new number, its records in the second level are no longer found. */
    atomic_store_explicit(&f->id,
                          atomic_fetch_add_explicit(&c->next_file_id, 1, memory_order_relaxed),
                          memory_order_relaxed);
    for (unsigned i = 0; i < c->shard_count; i++) {
        shard *s = &c->shards[i];
        /* In steps, so that other threads get the lock while a large file's blocks are removed. */
        for (bool more = true; more;) {
            rq_hfile_block *victims = NULL;
            (void)pthread_mutex_lock(&s->lock);
            for (int n = 0; n < EVICT_STEP && f->blocks[i] != NULL; n++) {
                rq_hfile_block *b = f->blocks[i];
                sum.blocks++;
                sum.bytes += b->node.charge;
                dequeue(s, b);
                remove_block(c, s, b, &victims);
                s->evicted_by_file++;
            }
            more = f->blocks[i] != NULL;
            (void)pthread_mutex_unlock(&s->lock);
            release_victims(c, victims, false);
        }
    }
    return sum;
}

void rq__cache_demote_file(rq__cache_file *f)
{
    rq_block_cache *c = f->cache;
    for (unsigned i = 0; i < c->shard_count; i++) {
        shard *s = &c->shards[i];
        (void)pthread_mutex_lock(&s->lock);
        for (rq_hfile_block *b = f->blocks[i]; b != NULL; b = b->file_next) {
            if (b->rank == RQ__RANK_DATA) continue;
            dequeue(s, b);
            b->rank = RQ__RANK_DATA;
            enqueue(s, b);
        }
        (void)pthread_mutex_unlock(&s->lock);
    }
}

void rq__cache_grow(rq_hfile_block *b, size_t more)
{
    rq_block_cache *c = atomic_load_explicit(&b->cache, memory_order_acquire);
    if (c == NULL) return;
    shard *s = &c->shards[shard_of(c, b->node.hash)];
    rq_hfile_block *victims = NULL;
    (void)pthread_mutex_lock(&s->lock);
    if (b->resident) {
        rq__cache_queue *q = queue_of_rank(s, b);
        rq__family_counters *n = counters_of(c, s, b->file);
        if (q != NULL) {
            b->node.charge += more;
            q->bytes += more;
        } else {
            rq__s3_fifo_grow(&s->data, &b->node, more);
        }
        s->used += more;
        atomic_fetch_add_explicit(&b->file->bytes, more, memory_order_relaxed);
        if (n != NULL) rq__count(&n->bytes, (int64_t)more);
        evict_to(c, s, s->capacity, &victims);
    } else {
        b->node.charge += more;
        atomic_fetch_add_explicit(&c->pinned, more, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&s->lock);
    release_victims(c, victims, true);
}

bool rq__cache_hold(rq_block_cache *c, uint64_t bytes, unsigned share)
{
    uint64_t before = atomic_fetch_add_explicit(&c->held, bytes, memory_order_relaxed);
    if (before + bytes <= atomic_load(&c->capacity) / share) return true;
    rq__cache_let_go(c, bytes);
    return false;
}

void rq__cache_let_go(rq_block_cache *c, uint64_t bytes)
{
    atomic_fetch_sub_explicit(&c->held, bytes, memory_order_relaxed);
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
    if (c->codec_count[kind] < RQ__CACHE_CODECS_KEPT) {
        c->codecs[kind][c->codec_count[kind]++] = codec;
        codec = NULL;
    }
    (void)pthread_mutex_unlock(&c->codec_lock);
    rq_codec_free(codec);
}
