/* SPDX-License-Identifier: Apache-2.0 */
/* A stack of free slabs under a mutex that is held for a few instructions; the kernel is asked
 * outside of it. Contract in slab_pool.h. */
#include "store/slab_pool.h"

#include "store/slab_pieces.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define READY 2 /* slabs kept ahead of need */

/* A free slab's first bytes. */
typedef struct free_slab {
    struct free_slab *next;
} free_slab;

struct rq_slab_pool {
    pthread_mutex_t lock;
    free_slab *free RQ_GUARDED_BY(lock);
    size_t free_count RQ_GUARDED_BY(lock);
    size_t lowest RQ_GUARDED_BY(lock); /* free_count since the last trim */
    size_t taken RQ_GUARDED_BY(lock);
    bool refilling RQ_GUARDED_BY(lock);
    rq_latch *refilled RQ_GUARDED_BY(lock); /* opened when refilling ends */
    _Atomic uint64_t bytes;                 /* of living segments */
    size_t slabs_max;
    rq_slab_pieces *pieces;
    rq_executor *executor;
    rq_task refill;
};

static void *map_slab(void)
{
    uint8_t *p =
        mmap(NULL, 2 * RQ_SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    size_t front = (size_t)(-(uintptr_t)p & (RQ_SLAB_BYTES - 1));
    if (front > 0) munmap(p, front);
    if (front < RQ_SLAB_BYTES) munmap(p + front + RQ_SLAB_BYTES, RQ_SLAB_BYTES - front);
    madvise(p + front, RQ_SLAB_BYTES, MADV_HUGEPAGE); /* advice: without it only slower */
    return p + front;
}

/* --- slabs ahead of need ---------------------------------------------------------------------- */

/* Puts a slab on the stack, if there is room for it. REQUIRES: lock. */
static bool push(rq_slab_pool *p, void *slab)
{
    if (p->taken + p->free_count >= p->slabs_max) return false;
    free_slab *s = slab;
    s->next = p->free;
    p->free = s;
    p->free_count++;
    return true;
}

/* REQUIRES: lock. */
static bool is_short(const rq_slab_pool *p)
{
    return p->taken > 0 && p->free_count < READY && p->free_count + p->taken < p->slabs_max;
}

static void run_refill(rq_task *task)
{
    rq_slab_pool *p = RQ_CONTAINER_OF(task, rq_slab_pool, refill);
    bool more = true;
    while (more) {
        uint8_t *slab = map_slab();
        for (size_t i = 0; slab != NULL && i < RQ_SLAB_BYTES; i += 4096)
            slab[i] = 0; /* the kernel's work, done here */
        pthread_mutex_lock(&p->lock);
        bool kept = slab != NULL && push(p, slab);
        more = kept && is_short(p) && p->refilled == NULL;
        rq_latch *waiter = p->refilled;
        rq_executor *executor = p->executor;
        if (!more) p->refilling = false;
        pthread_mutex_unlock(&p->lock);
        if (slab != NULL && !kept) munmap(slab, RQ_SLAB_BYTES);
        /* The pool may be gone once somebody who waits has been told. */
        if (!more && waiter != NULL) executor->latch_open(waiter, RQ_OK);
    }
}

static void wait_for_refill(rq_slab_pool *p)
{
    rq_latch latch;
    p->executor->latch_init(p->executor, &latch);
    pthread_mutex_lock(&p->lock);
    bool wait = p->refilling;
    if (wait) p->refilled = &latch;
    pthread_mutex_unlock(&p->lock);
    if (wait) (void)p->executor->latch_wait(&latch);
    p->executor->latch_destroy(&latch);
}

/* --- the pool --------------------------------------------------------------------------------- */

rq_err rq_slab_pool_new(rq_executor *executor, size_t slabs_max, rq_slab_pool **ret)
{
    rq_slab_pool *p = calloc(1, sizeof *p);
    rq_err rc = p == NULL ? RQ_E_NO_MEMORY : rq_slab_pieces_new(p, &p->pieces);
    if (rc != RQ_OK) {
        free(p);
        return rc;
    }
    pthread_mutex_init(&p->lock, NULL);
    p->slabs_max = slabs_max;
    p->executor = executor;
    p->refill.run = run_refill;
    *ret = p;
    return RQ_OK;
}

void rq_slab_pool_free(rq_slab_pool *p)
{
    if (p == NULL) return;
    rq_slab_pieces_free(p->pieces);
    wait_for_refill(p);
    RQ_ASSERT(p->taken == 0);
    while (p->free != NULL) {
        free_slab *next = p->free->next;
        munmap(p->free, RQ_SLAB_BYTES);
        p->free = next;
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void *rq_slab_take(rq_slab_pool *p)
{
    if (p == NULL) return map_slab();
    pthread_mutex_lock(&p->lock);
    free_slab *s = p->free;
    if (s != NULL) {
        p->free = s->next;
        if (--p->free_count < p->lowest) p->lowest = p->free_count;
    }
    p->taken++;
    bool refill = !p->refilling && is_short(p);
    if (refill) p->refilling = true;
    pthread_mutex_unlock(&p->lock);
    if (refill) p->executor->submit(p->executor, RQ_POOL_FLUSH, &p->refill);
    if (s != NULL) return s;
    void *fresh = map_slab();
    if (fresh == NULL) {
        pthread_mutex_lock(&p->lock);
        p->taken--;
        pthread_mutex_unlock(&p->lock);
    }
    return fresh;
}

void rq_slab_give(rq_slab_pool *p, void *slab)
{
    if (p != NULL) {
        pthread_mutex_lock(&p->lock);
        p->taken--;
        bool keep = push(p, slab);
        pthread_mutex_unlock(&p->lock);
        if (keep) return;
    }
    munmap(slab, RQ_SLAB_BYTES);
}

rq_slab_pieces *rq_slab_pool_pieces(const rq_slab_pool *p)
{
    return p->pieces;
}

void rq_slab_pool_count(rq_slab_pool *p, int64_t bytes)
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
    size_t count = (p->lowest + share - 1) / share;
    free_slab *gone = NULL;
    for (; count > 0 && p->free != NULL; count--) {
        free_slab *s = p->free;
        p->free = s->next;
        p->free_count--;
        s->next = gone;
        gone = s;
    }
    p->lowest = p->free_count;
    pthread_mutex_unlock(&p->lock);
    while (gone != NULL) {
        free_slab *next = gone->next;
        munmap(gone, RQ_SLAB_BYTES);
        gone = next;
    }
}
