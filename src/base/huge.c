/* SPDX-License-Identifier: Apache-2.0 */
/* Huge pages and their stock; contract in huge.h. */
#include "base/huge.h"

#include "base/asan.h"
#include "base/macros.h"

#include <stdint.h>
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
