/* SPDX-License-Identifier: Apache-2.0 */
/* The register of holders (retention.h). A holder's files are an open-addressed set of hashes. */
#include "vfs/retention.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ARCHIVE "archive/"
#define MOB_DIR "mobdir/"

struct rq_holder {
    rq_holder *next;
    rq_retention *retention;
    char *name;
    int64_t since_ms;
    bool all_files;
    uint64_t log_from;
    uint64_t *hashes; /* 0: free; room is a power of two */
    size_t count, room;
};

struct rq_retention {
    pthread_mutex_t lock;
    rq_holder *holders RQ_GUARDED_BY(lock);
    _Atomic uint64_t log_from; /* the lowest of all */
};

/* --- names ------------------------------------------------------------------------------------ */

/* The path below archive/ or mobdir/: the same for a file's original path and its path in the
 * archive. */
static const char *without_top_folder(const char *path)
{
    if (strncmp(path, ARCHIVE, sizeof ARCHIVE - 1) == 0) return path + sizeof ARCHIVE - 1;
    if (strncmp(path, MOB_DIR, sizeof MOB_DIR - 1) == 0) return path + sizeof MOB_DIR - 1;
    return path;
}

const char *rq_retention_archived(rq_arena *arena, const char *path)
{
    return rq_arena_printf(arena, ARCHIVE "%s", without_top_folder(path));
}

/* FNV-1a, mixed, because the set uses its low bits; never 0. */
static uint64_t hash_of(const char *path)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (const char *p = without_top_folder(path); *p != '\0'; p++)
        h = (h ^ (uint8_t)*p) * UINT64_C(0x100000001b3);
    h ^= h >> 32;
    return h == 0 ? 1 : h;
}

static uint64_t *place_of(uint64_t *hashes, size_t room, uint64_t hash)
{
    size_t i = (size_t)hash & (room - 1);
    while (hashes[i] != 0 && hashes[i] != hash)
        i = (i + 1) & (room - 1);
    return &hashes[i];
}

static rq_err grow(rq_holder *h)
{
    size_t room = h->room == 0 ? 64 : h->room * 2;
    uint64_t *more = calloc(room, sizeof *more);
    if (more == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < h->room; i++)
        if (h->hashes[i] != 0) *place_of(more, room, h->hashes[i]) = h->hashes[i];
    free(h->hashes);
    h->hashes = more;
    h->room = room;
    return RQ_OK;
}

/* REQUIRES: lock. */
static bool holds(const rq_holder *h, uint64_t hash)
{
    if (h->all_files) return true;
    return h->room > 0 && *place_of(h->hashes, h->room, hash) == hash;
}

/* --- holders ---------------------------------------------------------------------------------- */

rq_err rq_retention_new(rq_retention **ret)
{
    rq_retention *r = calloc(1, sizeof *r);
    if (r == NULL) return RQ_E_NO_MEMORY;
    pthread_mutex_init(&r->lock, NULL);
    atomic_init(&r->log_from, RQ_RETENTION_NO_LOG);
    *ret = r;
    return RQ_OK;
}

void rq_retention_free(rq_retention *r)
{
    if (r == NULL) return;
    RQ_ASSERT(r->holders == NULL);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

rq_err rq_retention_hold(rq_retention *r, const char *name, int64_t now_ms, rq_holder **ret)
{
    rq_holder *h = calloc(1, sizeof *h);
    char *own = strdup(name);
    if (h == NULL || own == NULL) {
        free(h);
        free(own);
        return RQ_E_NO_MEMORY;
    }
    *h = (rq_holder){.retention = r,
                     .name = own,
                     .since_ms = now_ms,
                     .all_files = true,
                     .log_from = RQ_RETENTION_NO_LOG};
    pthread_mutex_lock(&r->lock);
    h->next = r->holders;
    r->holders = h;
    pthread_mutex_unlock(&r->lock);
    *ret = h;
    return RQ_OK;
}

rq_err rq_holder_add(rq_holder *h, const char *path)
{
    rq_err rc = RQ_OK;
    pthread_mutex_lock(&h->retention->lock);
    if (2 * (h->count + 1) > h->room) rc = grow(h);
    if (rc == RQ_OK) {
        uint64_t hash = hash_of(path);
        uint64_t *at = place_of(h->hashes, h->room, hash);
        h->count += *at == 0;
        *at = hash;
    }
    pthread_mutex_unlock(&h->retention->lock);
    return rc;
}

void rq_holder_narrow(rq_holder *h)
{
    pthread_mutex_lock(&h->retention->lock);
    h->all_files = false;
    pthread_mutex_unlock(&h->retention->lock);
}

/* REQUIRES: lock. */
static void note_lowest_log(rq_retention *r)
{
    uint64_t lowest = RQ_RETENTION_NO_LOG;
    for (const rq_holder *h = r->holders; h != NULL; h = h->next)
        if (h->log_from < lowest) lowest = h->log_from;
    atomic_store_explicit(&r->log_from, lowest, memory_order_release);
}

void rq_holder_keep_log(rq_holder *h, uint64_t from)
{
    pthread_mutex_lock(&h->retention->lock);
    h->log_from = from;
    note_lowest_log(h->retention);
    pthread_mutex_unlock(&h->retention->lock);
}

void rq_holder_release(rq_holder *h)
{
    if (h == NULL) return;
    rq_retention *r = h->retention;
    pthread_mutex_lock(&r->lock);
    rq_holder **at = &r->holders;
    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    note_lowest_log(r);
    pthread_mutex_unlock(&r->lock);
    free(h->hashes);
    free(h->name);
    free(h);
}

/* --- questions -------------------------------------------------------------------------------- */

bool rq_retention_keeps(rq_retention *r, const char *path)
{
    uint64_t hash = hash_of(path);
    bool keeps = false;
    pthread_mutex_lock(&r->lock);
    for (const rq_holder *h = r->holders; h != NULL && !keeps; h = h->next)
        keeps = holds(h, hash);
    pthread_mutex_unlock(&r->lock);
    return keeps;
}

bool rq_retention_keeps_all(rq_retention *r)
{
    bool keeps = false;
    pthread_mutex_lock(&r->lock);
    for (const rq_holder *h = r->holders; h != NULL && !keeps; h = h->next)
        keeps = h->all_files;
    pthread_mutex_unlock(&r->lock);
    return keeps;
}

uint64_t rq_retention_log_from(const rq_retention *r)
{
    return atomic_load_explicit(&r->log_from, memory_order_acquire);
}

rq_err rq_retention_list(rq_retention *r, rq_arena *arena, rq_holder_info **ret, size_t *ret_count)
{
    rq_err rc = RQ_OK;
    size_t count = 0, i = 0;
    pthread_mutex_lock(&r->lock);
    for (const rq_holder *h = r->holders; h != NULL; h = h->next)
        count++;
    rq_holder_info *list = rq_arena_calloc(arena, count + 1, sizeof *list);
    if (list == NULL) rc = RQ_E_NO_MEMORY;
    for (const rq_holder *h = r->holders; h != NULL && rc == RQ_OK; h = h->next) {
        list[i] = (rq_holder_info){.name = rq_arena_cstr(arena, rq_slice_cstr(h->name)),
                                   .since_ms = h->since_ms,
                                   .holds_all_files = h->all_files,
                                   .files = h->count,
                                   .log_from = h->log_from};
        if (list[i++].name == NULL) rc = RQ_E_NO_MEMORY;
    }
    pthread_mutex_unlock(&r->lock);
    if (rc != RQ_OK) return rc;
    *ret = list;
    *ret_count = count;
    return RQ_OK;
}
