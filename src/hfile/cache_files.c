/* SPDX-License-Identifier: Apache-2.0 */
/* The files and families known to the block cache. A file's entry lives as long as it has a reader
 * or a resident block, so that a later reader of the file finds its blocks.
 *
 * Lock: files_lock, held for a search of a short chain (cache_index.h); no other lock is taken under it. The last
 * reference is dropped under it, so that a search never finds an entry that is being freed. */
#include "hfile/cache_priv.h"

#include "base/fnv.h"

#include <stdlib.h>
#include <string.h>

/* --- families --------------------------------------------------------------------------------- */

static bool is_family(const rq_cache_family *f, rq_slice table, rq_slice family)
{
    return f->table_len == table.len && f->family_len == family.len &&
           rq_slice_eq(rq_slice_of(f->names, table.len), table) &&
           rq_slice_eq(rq_slice_of(f->names + table.len, family.len), family);
}

static rq_cache_family *family_at(rq__cache_link *link)
{
    return link == NULL ? NULL : RQ_CONTAINER_OF(link, rq_cache_family, link);
}

static uint64_t family_hash(rq_slice table, rq_slice family)
{
    uint64_t h = rq_fnv1a(rq_fnv1a(RQ_FNV1A, table), family);
    return h ^ h >> 32;
}

static rq_cache_family *family_new(rq_block_cache *c, rq_slice table, rq_slice family)
{
    rq_cache_family *f = calloc(1, sizeof(*f));
    uint8_t *names = malloc(table.len + family.len + 1);
    if (f == NULL || names == NULL) {
        free(f);
        free(names);
        return NULL;
    }
    if (table.len > 0) memcpy(names, table.ptr, table.len);
    if (family.len > 0) memcpy(names + table.len, family.ptr, family.len);
    f->cache = c;
    f->names = names;
    f->table_len = table.len;
    f->family_len = family.len;
    atomic_fetch_add_explicit(&c->family_bytes, sizeof(*f) + table.len + family.len + 1,
                              memory_order_relaxed);
    return f;
}

static size_t counters_bytes(const rq_block_cache *c)
{
    return c->shard_count * sizeof(rq__family_counters);
}

/* files_lock is held. False: out of memory. */
static bool make_counters(rq_cache_family *f)
{
    size_t bytes = counters_bytes(f->cache);
    if (f->shards != NULL) return true;
    f->shards = aligned_alloc(64, bytes);
    if (f->shards == NULL) return false;
    memset(f->shards, 0, bytes);
    atomic_fetch_add_explicit(&f->cache->family_bytes, bytes, memory_order_relaxed);
    return true;
}

rq_err rq_cache_family_get(rq_block_cache *c, rq_slice table, rq_slice family,
                           rq_cache_family **ret)
{
    (void)pthread_mutex_lock(&c->files_lock);
    uint64_t hash = family_hash(table, family);
    rq_cache_family *f = family_at(rq__cache_index_chain(&c->families, hash));
    while (f != NULL && !is_family(f, table, family))
        f = family_at(f->link.next);
    if (f == NULL) {
        f = family_new(c, table, family);
        if (f != NULL) rq__cache_index_add(&c->families, &f->link, hash);
    }
    if (f != NULL) f->refs++;
    (void)pthread_mutex_unlock(&c->files_lock);
    if (f == NULL) return RQ_E_NO_MEMORY;
    *ret = f;
    return RQ_OK;
}

/* files_lock is held. */
static void family_unref(rq_cache_family *f)
{
    if (f == NULL || --f->refs > 0) return;
    rq__cache_index_remove(&f->cache->families, &f->link);
    size_t bytes = sizeof(*f) + f->table_len + f->family_len + 1;
    if (f->shards != NULL) bytes += counters_bytes(f->cache);
    atomic_fetch_sub_explicit(&f->cache->family_bytes, bytes, memory_order_relaxed);
    free(f->shards);
    free(f->names);
    free(f);
}

void rq_cache_family_unref(rq_cache_family *f)
{
    if (f == NULL) return;
    rq_block_cache *c = f->cache;
    (void)pthread_mutex_lock(&c->files_lock);
    family_unref(f);
    (void)pthread_mutex_unlock(&c->files_lock);
}

static rq_cache_family_stats stats_of(const rq_cache_family *f)
{
    rq_cache_family_stats s = {
        .table = rq_slice_of(f->names, f->table_len),
        .family = rq_slice_of(f->names + f->table_len, f->family_len),
    };
#define SUM(field) s.field += atomic_load_explicit(&f->shards[i].field, memory_order_relaxed)
    for (unsigned i = 0; f->shards != NULL && i < f->cache->shard_count; i++) {
        SUM(data_hits);
        SUM(data_misses);
        SUM(meta_hits);
        SUM(meta_misses);
        SUM(evicted);
        SUM(blocks);
        SUM(bytes);
    }
#undef SUM
    return s;
}

void rq_block_cache_each_family(rq_block_cache *c,
                                void (*visit)(void *ctx, const rq_cache_family_stats *stats),
                                void *ctx)
{
    (void)pthread_mutex_lock(&c->files_lock);
    for (size_t i = 0; i < c->families.used; i++) {
        const rq_cache_family *f = family_at(c->families.buckets[i]);
        for (; f != NULL; f = family_at(f->link.next)) {
            rq_cache_family_stats s = stats_of(f);
            visit(ctx, &s);
        }
    }
    (void)pthread_mutex_unlock(&c->files_lock);
}

/* --- files ------------------------------------------------------------------------------------ */

static rq__cache_file *file_at(rq__cache_link *link)
{
    return link == NULL ? NULL : RQ_CONTAINER_OF(link, rq__cache_file, link);
}

static uint64_t file_hash(const char *name, uint64_t size)
{
    uint64_t h = rq_fnv1a(size * 0x9e3779b97f4a7c15u, rq_slice_cstr(name));
    return h ^ h >> 32;
}

rq_err rq__cache_file_open(rq_block_cache *c, const char *path, uint64_t size, uint32_t tail_crc,
                           rq_cache_family *family, rq__cache_file **ret)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    uint64_t hash = file_hash(name, size);
    (void)pthread_mutex_lock(&c->files_lock);
    rq__cache_file *f = file_at(rq__cache_index_chain(&c->files, hash));
    while (f != NULL && (f->size != size || f->tail_crc != tail_crc || strcmp(f->name, name) != 0))
        f = file_at(f->link.next);
    if (f != NULL) {
        (void)rq__cache_file_ref(f);
    } else {
        size_t name_len = strlen(name) + 1;
        bool counts = family == NULL || make_counters(family);
        f = counts ? calloc(1, sizeof(*f) + name_len) : NULL;
        if (f != NULL) {
            f->cache = c;
            atomic_init(&f->refs, 1);
            atomic_init(&f->id,
                        atomic_fetch_add_explicit(&c->next_file_id, 1, memory_order_relaxed));
            f->family = family;
            if (family != NULL) family->refs++;
            f->size = size;
            f->tail_crc = tail_crc;
            memcpy(f->name, name, name_len);
            rq__cache_index_add(&c->files, &f->link, hash);
        }
    }
    if (f != NULL) atomic_fetch_add_explicit(&f->readers, 1, memory_order_relaxed);
    (void)pthread_mutex_unlock(&c->files_lock);
    if (f == NULL) return RQ_E_NO_MEMORY;
    *ret = f;
    return RQ_OK;
}

void rq__cache_file_unref(rq__cache_file *f)
{
    uint32_t refs = atomic_load_explicit(&f->refs, memory_order_relaxed);
    while (refs > 1)
        if (atomic_compare_exchange_weak_explicit(&f->refs, &refs, refs - 1, memory_order_acq_rel,
                                                  memory_order_relaxed))
            return;
    rq_block_cache *c = f->cache;
    (void)pthread_mutex_lock(&c->files_lock);
    if (atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) == 1) {
        rq__cache_index_remove(&c->files, &f->link);
        family_unref(f->family);
        free(f);
    }
    (void)pthread_mutex_unlock(&c->files_lock);
}

void rq__cache_file_close(rq__cache_file *f, bool evict)
{
    bool last = atomic_fetch_sub_explicit(&f->readers, 1, memory_order_acq_rel) == 1;
    if (last && (evict || atomic_load_explicit(&f->obsolete, memory_order_relaxed)))
        (void)rq__cache_evict_file(f);
    else if (last)
        rq__cache_demote_file(f);
    rq__cache_file_unref(f);
}
