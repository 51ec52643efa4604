/* SPDX-License-Identifier: Apache-2.0 */
/* The second level; rules and drawing in second_level.h.
 *
 * A record: "RQL2", CRC-32C of everything behind it, the run's nonce, file id, offset in the HFile,
 * lengths of the payload in memory and of the block in the HFile, kind, rank, whether the payload is compressed; then the
 * payload. A record never crosses the end of an extent.
 *
 * If the options say so, payloads of data blocks are compressed with LZ4 where that saves an eighth: a block of a compressed HFile is
 * decompressed in memory, and would take several times its length in the HFile. The writer's lane compresses; a lookup decompresses,
 * at most READ_AT_ONCE_MAX bytes if it must not wait. Without LZ4's library nothing is compressed.
 *
 * Locks: one for the queue and one per stripe of the index; leaves, never held across I/O. */
#include "hfile/second_level.h"

#include "base/buf.h"
#include "base/checksum.h"
#include "base/executor.h"
#include "base/log.h"
#include "hfile/cache_priv.h"
#include "hfile/compression.h"
#include "hfile/reader.h"
#include "vfs/vfs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define EXTENT_BYTES_MAX ((uint64_t)4 << 20)
#define EXTENTS_MIN 16
#define STRIPES 16
#define SLOTS_MIN 64
#define INDEX_SHARE 8   /* of the cache's capacity */
#define QUEUE_BLOCKS 64 /* HBASE: hbase.bucketcache.writer.queuelength */
/* Divisor of the cache's capacity: limit of bytes that wait for the writer. */
#define QUEUE_SHARE 16
#define HEADER_BYTES 48
/* Longer records and payloads are not read by a thread that must not wait, not even from the page cache (reader.c). */
#define READ_AT_ONCE_MAX ((uint32_t)256 * 1024)
#define MAGIC 0x52514c32u

typedef struct entry {
    uint64_t file_id, offset;
    uint32_t extent, at; /* where the record begins */
    uint32_t len;        /* of the record; 0: an empty slot */
    uint32_t generation; /* the extent's when the record was written; if it has changed, the entry
                           * is void */
} entry;

typedef struct stripe {
    pthread_mutex_t lock;
    entry *table
        RQ_GUARDED_BY(lock); /* open addressing, at most three quarters full; may be NULL */
    size_t slots, taken;     /* taken: void ones too */
} __attribute__((aligned(64))) stripe;

struct rq__second_level {
    rq_block_cache *cache;
    rq_executor *executor;
    const rq_log *log;
    rq_vfs *vfs;
    char *path;
    rq_file *file;
    uint64_t nonce; /* of this run */
    uint32_t extent_bytes, extent_count;
    _Atomic uint32_t *generations;
    size_t slots_max; /* of a stripe */
    _Atomic bool off;
    stripe stripes[STRIPES];
    _Atomic uint64_t index_bytes;
    _Atomic uint64_t hits, misses, written, dropped;

    rq_lane *lane; /* the writer's */
    rq_task task;
    pthread_mutex_t queue_lock;
    rq_hfile_block *queue[QUEUE_BLOCKS] RQ_GUARDED_BY(queue_lock); /* a ring; references */
    unsigned queue_first, queue_count;
    uint64_t queue_bytes, queue_bytes_max;
    bool scheduled;

    /* the writer's */
    uint32_t extent, at;
    rq_buf record;
    rq_codec *packer; /* NULL: payloads are not compressed */
};

/* Reserves the level's part of the cache's capacity: its index, and the evicted blocks that wait in
 * memory for the writer. */
static void reserve(rq__second_level *s)
{
    rq__cache_reserve(s->cache, atomic_load(&s->index_bytes) + s->queue_bytes_max);
}

static bool is_off(const rq__second_level *s)
{
    return atomic_load_explicit(&s->off, memory_order_acquire);
}

static void count(_Atomic uint64_t *n)
{
    atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
}

/* Submits the writer's task, unless it is pending. */
static void wake_writer(rq__second_level *s)
{
    (void)pthread_mutex_lock(&s->queue_lock);
    bool post = !s->scheduled;
    s->scheduled = true;
    (void)pthread_mutex_unlock(&s->queue_lock);
    if (post) rq_lane_post(s->lane, &s->task);
}

/* Disables the level permanently: logs one line, frees the index, and lets the writer free the disk
 * space. */
static void turn_off(rq__second_level *s, const char *what, const rq_error *why)
{
    if (atomic_exchange(&s->off, true)) return;
    rq_log_warn(
        s->log, "hfile",
        "block cache file %s: %s%s%s; the block cache has no second level until the next start",
        s->path, what, why == NULL ? "" : ": ", why == NULL ? "" : why->message);
    for (int i = 0; i < STRIPES; i++) {
        stripe *p = &s->stripes[i];
        (void)pthread_mutex_lock(&p->lock);
        entry *table = p->table;
        p->table = NULL;
        p->slots = p->taken = 0;
        (void)pthread_mutex_unlock(&p->lock);
        free(table);
    }
    atomic_store(&s->index_bytes, 0);
    rq__cache_reserve(s->cache, 0);
    wake_writer(s);
}

/* --- index ------------------------------------------------------------------------------------ */

static stripe *stripe_of(rq__second_level *s, uint64_t hash)
{
    return &s->stripes[(hash >> 48) % STRIPES];
}

static bool is_void(const rq__second_level *s, const entry *e)
{
    return atomic_load_explicit(&s->generations[e->extent], memory_order_acquire) != e->generation;
}

/* The key's slot, or the empty one behind its chain. REQUIRES: the stripe's lock; there is a
 * table. */
static entry *find(const stripe *p, uint64_t hash, uint64_t file_id, uint64_t offset)
{
    for (size_t i = hash & (p->slots - 1);; i = (i + 1) & (p->slots - 1)) {
        entry *e = &p->table[i];
        if (e->len == 0 || (e->file_id == file_id && e->offset == offset)) return e;
    }
}

/* Never waits. */
static bool look_up(rq__second_level *s, uint64_t file_id, uint64_t offset, entry *ret)
{
    uint64_t hash = rq__cache_hash(file_id, offset);
    stripe *p = stripe_of(s, hash);
    if (pthread_mutex_trylock(&p->lock) != 0) return false;
    bool found = p->table != NULL;
    if (found) {
        *ret = *find(p, hash, file_id, offset);
        found = ret->len > 0 && !is_void(s, ret);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return found;
}

/* Makes a new table of the valid entries, with room for one more; false if the limit forbids it. */
static bool rebuild(rq__second_level *s, stripe *p)
{
    size_t good = 1, slots = SLOTS_MIN;
    for (size_t i = 0; i < p->slots; i++)
        good += p->table[i].len > 0 && !is_void(s, &p->table[i]);
    while (slots < good * 2)
        slots *= 2;
    if (slots > s->slots_max && good * 4 <= s->slots_max * 3) slots = s->slots_max;
    entry *table = slots > s->slots_max ? NULL : calloc(slots, sizeof *table);
    if (table == NULL) return false;
    stripe old = {.table = p->table, .slots = p->slots};
    p->table = table;
    p->slots = slots;
    p->taken = 0;
    for (size_t i = 0; i < old.slots; i++) {
        const entry *e = &old.table[i];
        if (e->len == 0 || is_void(s, e)) continue;
        *find(p, rq__cache_hash(e->file_id, e->offset), e->file_id, e->offset) = *e;
        p->taken++;
    }
    free(old.table);
    atomic_fetch_add(&s->index_bytes, (slots - old.slots) * sizeof *table);
    return true;
}

/* The writer's. False: the index is full. */
static bool insert(rq__second_level *s, const entry *e)
{
    uint64_t hash = rq__cache_hash(e->file_id, e->offset);
    stripe *p = stripe_of(s, hash);
    uint64_t before = atomic_load(&s->index_bytes);
    (void)pthread_mutex_lock(&p->lock);
    bool room = !is_off(s) && ((p->taken + 1) * 4 <= p->slots * 3 || rebuild(s, p));
    if (room) {
        entry *at = find(p, hash, e->file_id, e->offset);
        p->taken += at->len == 0;
        *at = *e;
    }
    (void)pthread_mutex_unlock(&p->lock);
    if (atomic_load(&s->index_bytes) != before) reserve(s);
    if (is_off(s)) rq__cache_reserve(s->cache, 0); /* perhaps only since the line above */
    return room;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void begin_next_extent(rq__second_level *s)
{
    s->extent = (s->extent + 1) % s->extent_count;
    s->at = 0;
    atomic_fetch_add_explicit(&s->generations[s->extent], 1, memory_order_acq_rel);
}

/* Appends the payload to the record. *ret: whether it is compressed. */
static rq_err add_payload(rq__second_level *s, const rq_hfile_block *b, bool *ret)
{
    rq_slice payload = rq_slice_of(b->payload, b->payload_len);
    *ret = s->packer != NULL && b->kind == RQ_BLOCK_DATA &&
           rq_codec_compress(s->packer, payload, &s->record) == RQ_OK &&
           s->record.len - HEADER_BYTES <= payload.len - payload.len / 8;
    if (*ret) return RQ_OK;
    s->record.len = HEADER_BYTES;
    return rq_buf_append(&s->record, payload.ptr, payload.len);
}

static rq_err make_record(rq__second_level *s, const rq_hfile_block *b)
{
    bool is_packed;
    rq_buf_reset(&s->record);
    RQ_TRY(rq_buf_reserve(&s->record, HEADER_BYTES + b->payload_len));
    memset(s->record.ptr, 0, HEADER_BYTES);
    s->record.len = HEADER_BYTES;
    RQ_TRY(add_payload(s, b, &is_packed));
    uint8_t *h = s->record.ptr;
    rq_put_be32(h, MAGIC);
    rq_put_be64(h + 8, s->nonce);
    rq_put_be64(h + 16, b->file_id);
    rq_put_be64(h + 24, b->offset);
    rq_put_be32(h + 32, (uint32_t)b->payload_len);
    rq_put_be32(h + 36, b->on_disk_len);
    h[40] = b->kind;
    h[41] = b->rank;
    h[42] = is_packed;
    rq_put_be32(h + 4, rq_crc32c(0, h + 8, s->record.len - 8));
    return RQ_OK;
}

/* Whether the block is stored, outside the part that will soon be overwritten. */
static bool is_written(rq__second_level *s, const rq_hfile_block *b)
{
    entry e;
    if (!look_up(s, b->file_id, b->offset, &e)) return false;
    uint32_t ahead = (e.extent + s->extent_count - s->extent) % s->extent_count;
    return ahead == 0 || ahead > s->extent_count / 8;
}

static void write_block(rq__second_level *s, const rq_hfile_block *b)
{
    rq_error why = {0};
    if (is_written(s, b)) return;
    if (make_record(s, b) != RQ_OK) {
        count(&s->dropped);
        return;
    }
    if (s->record.len > s->extent_bytes - s->at) begin_next_extent(s);
    entry e = {.file_id = b->file_id,
               .offset = b->offset,
               .extent = s->extent,
               .at = s->at,
               .len = (uint32_t)s->record.len,
               .generation = atomic_load(&s->generations[s->extent])};
    if (rq_file_write(s->file, s->record.ptr, s->record.len,
                      (uint64_t)e.extent * s->extent_bytes + e.at, &why) != RQ_OK) {
        turn_off(s, "cannot be written", &why);
        return;
    }
    s->at += e.len;
    /* Drops the oldest extents until there is room in the index, but not the extent that has the new
     * record. */
    bool in = insert(s, &e);
    for (uint32_t n = 1; !in && n < s->extent_count; n++) {
        begin_next_extent(s);
        in = insert(s, &e);
    }
    count(in ? &s->written : &s->dropped);
}

static rq_hfile_block *take_queued(rq__second_level *s)
{
    rq_hfile_block *b = NULL;
    (void)pthread_mutex_lock(&s->queue_lock);
    if (s->queue_count > 0) {
        b = s->queue[s->queue_first];
        s->queue_first = (s->queue_first + 1) % QUEUE_BLOCKS;
        s->queue_count--;
        s->queue_bytes -= b->heap_len;
    } else {
        s->scheduled = false;
    }
    (void)pthread_mutex_unlock(&s->queue_lock);
    return b;
}

static void run_writer(rq_task *task)
{
    rq__second_level *s = RQ_CONTAINER_OF(task, rq__second_level, task);
    for (rq_hfile_block *b = take_queued(s); b != NULL; b = take_queued(s)) {
        if (!is_off(s)) write_block(s, b);
        rq__hfile_block_unref(b);
    }
    /* If the disk is full, this file may be the reason. Best effort: the stop removes the file. */
    if (is_off(s)) (void)!rq_file_truncate(s->file, 0, NULL);
}

void rq__second_level_offer(rq__second_level *s, rq_hfile_block *b)
{
    bool post = false;
    if (is_off(s) || b->payload_len + HEADER_BYTES > s->extent_bytes) return;
    (void)pthread_mutex_lock(&s->queue_lock);
    bool taken =
        s->queue_count < QUEUE_BLOCKS && s->queue_bytes + b->heap_len <= s->queue_bytes_max;
    if (taken) {
        s->queue[(s->queue_first + s->queue_count) % QUEUE_BLOCKS] = rq__block_ref(b);
        s->queue_count++;
        s->queue_bytes += b->heap_len;
        post = !s->scheduled;
        s->scheduled = true;
    }
    (void)pthread_mutex_unlock(&s->queue_lock);
    if (!taken) count(&s->dropped);
    if (post) rq_lane_post(s->lane, &s->task);
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool is_record(const rq__second_level *s, const entry *e, const uint8_t *h)
{
    return rq_get_be32(h) == MAGIC && rq_get_be64(h + 8) == s->nonce &&
           rq_get_be64(h + 16) == e->file_id && rq_get_be64(h + 24) == e->offset &&
           (h[42] != 0 || rq_get_be32(h + 32) == e->len - HEADER_BYTES) &&
           rq_get_be32(h + 4) == rq_crc32c(0, h + 8, e->len - 8);
}

static rq_err decompress(rq__second_level *s, rq_slice packed, uint8_t *out, size_t len)
{
    rq_codec *codec = rq__cache_take_codec(s->cache, RQ_COMPRESSION_LZ4);
    if (codec == NULL) RQ_TRY(rq__compression_codec(RQ_COMPRESSION_LZ4, 0, false, &codec));
    rq_err rc = rq_codec_fill(codec, packed, out, len);
    if (rc == RQ_OK)
        rq__cache_give_codec(s->cache, RQ_COMPRESSION_LZ4, codec);
    else
        rq_codec_free(codec);
    return rc;
}

/* Replaces a block that has the record's bytes by one with the decompressed payload. */
static rq_err unpack(rq__second_level *s, const entry *e, bool may_block, rq_hfile_block **b)
{
    const uint8_t *h = (*b)->bytes;
    size_t len = rq_get_be32(h + 32);
    rq_hfile_block *raw;
    if (h[42] == 0) return RQ_OK;
    if (!may_block && len > READ_AT_ONCE_MAX) return RQ_E_AGAIN;
    RQ_TRY(rq__block_new(s->cache, HEADER_BYTES + len, &raw));
    memcpy(raw->bytes, h, HEADER_BYTES);
    rq_slice packed = rq_slice_of(h + HEADER_BYTES, e->len - HEADER_BYTES);
    rq_err rc = decompress(s, packed, raw->bytes + HEADER_BYTES, len);
    rq__hfile_block_unref(rc == RQ_OK ? *b : raw);
    if (rc == RQ_OK) *b = raw;
    return rc;
}

static rq_hfile_block *block_of_record(const entry *e, rq_hfile_block *b)
{
    const uint8_t *h = b->bytes;
    b->file_id = e->file_id;
    b->offset = e->offset;
    b->payload = b->bytes + HEADER_BYTES;
    b->payload_len = rq_get_be32(h + 32);
    b->on_disk_len = rq_get_be32(h + 36);
    b->kind = h[40];
    b->rank = h[41];
    return b;
}

rq_err rq__second_level_get(rq__second_level *s, uint64_t file_id, uint64_t offset, bool may_block,
                            rq_hfile_block **ret)
{
    rq_error why = {0};
    rq_hfile_block *b;
    entry e;
    size_t got = 0;
    *ret = NULL;
    if (is_off(s)) return RQ_OK;
    if (!look_up(s, file_id, offset, &e)) {
        count(&s->misses);
        return RQ_OK;
    }
    if (!may_block && e.len > READ_AT_ONCE_MAX) return RQ_E_AGAIN;
    if (rq__block_new(s->cache, e.len, &b) != RQ_OK) return RQ_OK; /* the caller will notice */
    uint64_t at = (uint64_t)e.extent * s->extent_bytes + e.at;
    rq_err rc = may_block ? rq_file_read(s->file, b->bytes, e.len, at, &got, &why)
                          : rq_file_try_read(s->file, b->bytes, e.len, at, &got);
    bool is_good = rc == RQ_OK && got == e.len && is_record(s, &e, b->bytes);
    if (is_good) rc = unpack(s, &e, may_block, &b);
    if (is_good && rc == RQ_OK) {
        count(&s->hits);
        *ret = block_of_record(&e, b);
        return RQ_OK;
    }
    rq__hfile_block_unref(b);
    if (rc == RQ_E_AGAIN) return rc;
    count(&s->misses);
    if (is_good && rc != RQ_E_MALFORMED) return RQ_OK; /* no memory: the caller will notice */
    if (rc != RQ_OK && !is_good)
        turn_off(s, "cannot be read", may_block ? &why : NULL);
    else if (is_good || !is_void(s, &e)) /* else it was overwritten meanwhile */
        turn_off(s, "is damaged", NULL);
    return RQ_OK;
}

bool rq__second_level_has(rq__second_level *s, uint64_t file_id, uint64_t offset)
{
    uint64_t hash = rq__cache_hash(file_id, offset);
    stripe *p = stripe_of(s, hash);
    (void)pthread_mutex_lock(&p->lock);
    bool has = p->table != NULL;
    if (has) {
        const entry *e = find(p, hash, file_id, offset);
        has = e->len > 0 && !is_void(s, e);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return has;
}

void rq__second_level_get_stats(rq__second_level *s, rq_block_cache_stats *ret)
{
    ret->second_on = !is_off(s);
    ret->second_hits = atomic_load(&s->hits);
    ret->second_misses = atomic_load(&s->misses);
    ret->second_written = atomic_load(&s->written);
    ret->second_dropped = atomic_load(&s->dropped);
    ret->second_index_bytes = atomic_load(&s->index_bytes);
    ret->second_capacity_bytes = (uint64_t)s->extent_count * s->extent_bytes;
}

/* --- life ------------------------------------------------------------------------------------- */

static size_t slots_max_of(uint64_t capacity)
{
    size_t slots = SLOTS_MIN;
    while (slots * 2 * sizeof(entry) * STRIPES <= capacity / INDEX_SHARE)
        slots *= 2;
    return slots;
}

static rq_err open_file(rq__second_level *s, rq_error *why)
{
    RQ_TRY(rq_vfs_open(s->vfs, s->path, RQ_OPEN_WRITE | RQ_OPEN_CREATE | RQ_OPEN_RANDOM, &s->file,
                       why));
    return rq_file_truncate(s->file, 0, why);
}

rq_err rq__second_level_new(rq_block_cache *c, const rq_block_cache_file *o, rq__second_level **ret,
                            rq_error *why)
{
    uint64_t extent = o->bytes / EXTENTS_MIN;
    if (extent > EXTENT_BYTES_MAX) extent = EXTENT_BYTES_MAX;
    if (extent <= HEADER_BYTES || o->bytes / extent > UINT32_MAX)
        return rq_fail(why, RQ_E_CONFIG, "a block cache file of %" PRIu64 " bytes", o->bytes);
    rq__second_level *s = aligned_alloc(64, sizeof *s);
    if (s == NULL) return rq_no_memory(why);
    uint64_t capacity = atomic_load(&c->capacity);
    memset(s, 0, sizeof *s);
    s->cache = c;
    s->executor = o->executor;
    s->log = o->log;
    s->vfs = o->vfs;
    s->nonce = o->executor->random(o->executor);
    s->extent_bytes = (uint32_t)extent;
    s->extent_count = (uint32_t)(o->bytes / extent);
    s->slots_max = slots_max_of(capacity);
    s->queue_bytes_max = capacity / QUEUE_SHARE;
    s->task.run = run_writer;
    (void)pthread_mutex_init(&s->queue_lock, NULL);
    for (int i = 0; i < STRIPES; i++)
        (void)pthread_mutex_init(&s->stripes[i].lock, NULL);
    if (!o->compresses || rq__compression_codec(RQ_COMPRESSION_LZ4, 0, false, &s->packer) != RQ_OK)
        s->packer = NULL;
    s->path = strdup(o->path);
    s->generations = calloc(s->extent_count, sizeof *s->generations);
    rq_err rc = s->path == NULL || s->generations == NULL ? rq_no_memory(why) : open_file(s, why);
    if (rc == RQ_OK) rc = s->executor->lane_new(s->executor, "cache file", &s->lane);
    if (rc != RQ_OK) {
        rq__second_level_free(s);
        return rc;
    }
    reserve(s);
    *ret = s;
    return RQ_OK;
}

void rq__second_level_free(rq__second_level *s)
{
    if (s == NULL) return;
    atomic_store(&s->off, true); /* queued blocks are dropped */
    if (s->lane != NULL) s->executor->lane_free(s->executor, s->lane);
    RQ_ASSERT(s->queue_count == 0);
    for (int i = 0; i < STRIPES; i++) {
        free(s->stripes[i].table);
        (void)pthread_mutex_destroy(&s->stripes[i].lock);
    }
    if (s->file != NULL) {
        (void)rq_file_close(s->file);
        /* Best effort: the next start truncates a file that stays. */
        if (rq_vfs_remove(s->vfs, s->path, NULL) != RQ_OK)
            rq_log_debug(s->log, "hfile", "block cache file %s stays", s->path);
    }
    (void)pthread_mutex_destroy(&s->queue_lock);
    rq_buf_clear(&s->record);
    rq_codec_free(s->packer);
    free(s->generations);
    free(s->path);
    free(s);
}
