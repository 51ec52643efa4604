/* SPDX-License-Identifier: Apache-2.0 */
/* A stack of free slabs. Its mutex is held for a few instructions; system calls are made outside of
 * it. Contract in slab_pool.h. */
#include "store/slab_pool.h"

#include "base/asan.h"
#include "store/slab_pieces.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define READY 2 /* slabs kept ahead of need */

/* A free slab's first bytes. */
typedef struct free_slab {
    struct free_slab *next;
} free_slab;

struct rq_slab_pool {
    pthread_mutex_t lock;
    free_slab *free RQ_GUARDED_BY(lock);
    rq_huge_unused unused RQ_GUARDED_BY(lock); /* counts the free ones */
    size_t taken RQ_GUARDED_BY(lock);
    _Atomic uint64_t bytes; /* of living segments */
    size_t slabs_max;
    rq_slab_pieces *pieces;
    rq_huge_stock stock;
};

static void *map_slab(void)
{
    void *p = rq_huge_map();
    if (p != NULL) rq_huge_advise(p);
    return p;
}

/* --- slabs ahead of need ---------------------------------------------------------------------- */

/* Puts a slab on the stack, if there is room for it. REQUIRES: lock. */
static bool push(rq_slab_pool *p, void *slab)
{
    if (p->taken + p->unused.count >= p->slabs_max) return false;
    free_slab *s = slab;
    s->next = p->free;
    p->free = s;
    p->unused.count++;
    RQ_POISON(s + 1, RQ_SLAB_BYTES - sizeof *s);
    return true;
}

static rq_slab_pool *pool_of(const rq_huge_stock *s)
{
    return RQ_CONTAINER_OF(s, rq_slab_pool, stock);
}

/* REQUIRES: lock. */
static bool is_short(const rq_huge_stock *s)
{
    const rq_slab_pool *p = pool_of(s);
    return p->taken > 0 && p->unused.count < READY && p->unused.count + p->taken < p->slabs_max;
}

/* REQUIRES: lock. */
static bool keep(rq_huge_stock *s, void *slab)
{
    return push(pool_of(s), slab);
}

/* --- the pool --------------------------------------------------------------------------------- */

rq_err rq_slab_pool_new(rq_executor *executor, size_t slabs_max, rq_slab_pool **ret)
{
    rq_slab_pool *p = calloc(1, sizeof *p);
    rq_err rc = p == NULL ? RQ_E_NO_MEMORY : rq__slab_pieces_new(p, &p->pieces);
    if (rc != RQ_OK) {
        free(p);
        return rc;
    }
    pthread_mutex_init(&p->lock, NULL);
    p->slabs_max = slabs_max;
    p->stock =
        (rq_huge_stock){.executor = executor, .lock = &p->lock, .is_short = is_short, .keep = keep};
    *ret = p;
    return RQ_OK;
}

void rq_slab_pool_free(rq_slab_pool *p)
{
    if (p == NULL) return;
    rq__slab_pieces_free(p->pieces);
    rq_huge_stock_stop(&p->stock);
    RQ_ASSERT(p->taken == 0);
    while (p->free != NULL) {
        free_slab *next = p->free->next;
        rq_huge_unmap(p->free);
        p->free = next;
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void *rq__slab_pool_take(rq_slab_pool *p)
{
    if (p == NULL) return map_slab();
    pthread_mutex_lock(&p->lock);
    free_slab *s = p->free;
    if (s != NULL) {
        p->free = s->next;
        rq_huge_unused_take(&p->unused);
    }
    p->taken++;
    bool refill = rq_huge_stock_claim(&p->stock);
    pthread_mutex_unlock(&p->lock);
    if (refill) rq_huge_stock_refill(&p->stock);
    if (s != NULL) {
        RQ_UNPOISON(s, RQ_SLAB_BYTES);
        return s;
    }
    void *fresh = map_slab();
    if (fresh == NULL) {
        pthread_mutex_lock(&p->lock);
        p->taken--;
        pthread_mutex_unlock(&p->lock);
    }
    return fresh;
}

void rq__slab_pool_give(rq_slab_pool *p, void *slab)
{
    if (p != NULL) {
        pthread_mutex_lock(&p->lock);
        p->taken--;
        bool keep = push(p, slab);
        pthread_mutex_unlock(&p->lock);
        if (keep) return;
    }
    rq_huge_unmap(slab);
}

rq_slab_pieces *rq__slab_pool_pieces(const rq_slab_pool *p)
{
    return p->pieces;
}

void rq__slab_pool_count(rq_slab_pool *p, int64_t bytes)
{
    if (p != NULL) atomic_fetch_add_explicit(&p->bytes, (uint64_t)bytes, memory_order_relaxed);
}

uint64_t rq_slab_pool_bytes(const rq_slab_pool *p)
{
    return atomic_load_explicit(&p->bytes, memory_order_relaxed);
}

void rq_slab_pool_trim(rq_slab_pool *p, unsigned share)
{
    pthread_mutex_lock(&p->lock);
    size_t count = rq_huge_unused_excess(&p->unused, share);
    free_slab *gone = NULL;
    for (; count > 0 && p->free != NULL; count--) {
        free_slab *s = p->free;
        p->free = s->next;
        rq_huge_unused_take(&p->unused);
        s->next = gone;
        gone = s;
    }
    rq_huge_unused_restart(&p->unused);
    pthread_mutex_unlock(&p->lock);
    while (gone != NULL) {
        free_slab *next = gone->next;
        rq_huge_unmap(gone);
        gone = next;
    }
}
