/* SPDX-License-Identifier: Apache-2.0 */
/* Huge pages, their index and their stock; contract in huge.h. */
#include "base/huge.h"

#include "base/asan.h"
#include "base/macros.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096

/* Maps twice as much, to align it, and unmaps the excess. */
void *rq_huge_map(void)
{
    uint8_t *p =
        mmap(NULL, 2 * RQ_HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    size_t front = (size_t)(-(uintptr_t)p & (RQ_HUGE_BYTES - 1));
    if (front > 0) (void)munmap(p, front);
    (void)munmap(p + front + RQ_HUGE_BYTES, RQ_HUGE_BYTES - front);
    return p + front;
}

void rq_huge_unmap(void *p)
{
    RQ_UNPOISON(p, RQ_HUGE_BYTES);
    (void)munmap(p, RQ_HUGE_BYTES);
}

void rq_huge_advise(void *p)
{
    (void)madvise(p, RQ_HUGE_BYTES, MADV_HUGEPAGE);
}

/* --- index ------------------------------------------------------------------------------------ */

size_t rq_huge_index_find(const rq_huge_index *x, const uint8_t *base)
{
    size_t low = 0;
    size_t high = x->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (x->parts[mid]->base < base)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

rq_huge_part *rq_huge_index_of(const rq_huge_index *x, const void *p, size_t *ret_at)
{
    const uint8_t *base = (const uint8_t *)p - (uintptr_t)p % RQ_HUGE_BYTES;
    size_t at = rq_huge_index_find(x, base);
    RQ_ASSERT(at < x->count && x->parts[at]->base == base);
    *ret_at = at;
    return x->parts[at];
}

bool rq_huge_index_reserve(rq_huge_index *x)
{
    if (x->count < x->cap) return true;
    size_t cap = x->cap == 0 ? 16 : x->cap * 2;
    rq_huge_part **parts = realloc(x->parts, cap * sizeof(*parts));
    if (parts == NULL) return false;
    x->parts = parts;
    x->cap = cap;
    return true;
}

size_t rq_huge_index_insert(rq_huge_index *x, rq_huge_part *part)
{
    size_t at = rq_huge_index_find(x, part->base);
    memmove(x->parts + at + 1, x->parts + at, (x->count - at) * sizeof(x->parts[0]));
    x->parts[at] = part;
    x->count++;
    return at;
}

void rq_huge_index_remove(rq_huge_index *x, size_t at)
{
    x->count--;
    memmove(x->parts + at, x->parts + at + 1, (x->count - at) * sizeof(x->parts[0]));
}

void rq_huge_index_clear(rq_huge_index *x)
{
    free(x->parts);
    *x = (rq_huge_index){0};
}

/* --- stock ------------------------------------------------------------------------------------ */

/* The kernel's work is done here. */
static void *map_ready(void)
{
    uint8_t *p = rq_huge_map();
    if (p == NULL) return NULL;
    rq_huge_advise(p);
    for (size_t i = 0; i < RQ_HUGE_BYTES; i += PAGE_BYTES)
        p[i] = 0;
    return p;
}

static void run_refill(rq_task *task)
{
    rq_huge_stock *s = RQ_CONTAINER_OF(task, rq_huge_stock, task);
    bool more = true;
    while (more) {
        void *piece = map_ready();
        (void)pthread_mutex_lock(s->lock);
        bool kept = piece != NULL && s->keep(s, piece);
        more = kept && s->is_short(s) && s->refilled == NULL;
        rq_latch *waiter = s->refilled;
        rq_executor *executor = s->executor;
        if (!more) s->refilling = false;
        (void)pthread_mutex_unlock(s->lock);
        if (piece != NULL && !kept) rq_huge_unmap(piece);
        /* The owner may be freed once a waiter has been notified. */
        if (!more && waiter != NULL) executor->latch_open(waiter, RQ_OK);
    }
}

bool rq_huge_stock_claim(rq_huge_stock *s)
{
    if (s->executor == NULL || s->refilling || !s->is_short(s)) return false;
    s->refilling = true;
    return true;
}

void rq_huge_stock_refill(rq_huge_stock *s)
{
    s->task.run = run_refill;
    s->executor->submit(s->executor, RQ_POOL_FLUSH, &s->task);
}

void rq_huge_stock_stop(rq_huge_stock *s)
{
    if (s->executor == NULL) return;
    rq_latch latch;
    s->executor->latch_init(s->executor, &latch);
    (void)pthread_mutex_lock(s->lock);
    bool wait = s->refilling;
    if (wait) s->refilled = &latch;
    (void)pthread_mutex_unlock(s->lock);
    if (wait) (void)s->executor->latch_wait(&latch); /* opened with RQ_OK only */
    s->executor->latch_destroy(&latch);
}
