/* SPDX-License-Identifier: Apache-2.0 */
/* Reads that no thread waits for: their memory and their end. Contract in reads.h. */
#include "vfs/reads_priv.h"

#include <stdlib.h>

#define ALIGN ((uint64_t)RQ_READ_ALIGN)

rq_err rq_reads_new(rq_lane *lane, rq_reads_shared *shared, rq_reads **ret)
{
    rq_reads *q = calloc(1, sizeof *q);
    if (q == NULL) return RQ_E_NO_MEMORY;
    q->lane = lane;
    q->shared = shared;
    rq__uring_init(&q->uring);
    *ret = q;
    return RQ_OK;
}

void rq_reads_free(rq_reads *q)
{
    if (q == NULL) return;
    rq__uring_clear(&q->uring);
    free(q);
}

bool rq_file_begin_read(rq_file *f, rq_reads *q, rq_read *r, uint64_t off, size_t len,
                        rq_task *task)
{
    if (f->vfs->begin_read == NULL) return false;
    r->task = task;
    if (!f->vfs->begin_read(f, q, r, off, len)) return false;
    atomic_fetch_add_explicit(&q->shared->begun, 1, memory_order_relaxed);
    return true;
}

bool rq__read_take(rq_reads *q, rq_read *r, uint64_t off, size_t len)
{
    rq_reads_shared *all = q->shared;
    uint64_t from = off / ALIGN * ALIGN;
    size_t whole = (size_t)((off + len + ALIGN - 1) / ALIGN * ALIGN - from);
    size_t charge = whole + ALIGN;
    uint64_t before = atomic_fetch_add_explicit(&all->bytes, charge, memory_order_relaxed);
    /* Not aligned_alloc: glibc before 2.38 does not reuse memory that was allocated by it. */
    uint8_t *room = before + charge <= all->bytes_max ? malloc(charge) : NULL;
    if (room == NULL) {
        atomic_fetch_sub_explicit(&all->bytes, charge, memory_order_relaxed);
        return false;
    }
    r->reads = q;
    r->room = room;
    r->bytes = room + (ALIGN - (uintptr_t)room % ALIGN) % ALIGN;
    r->from = from;
    r->len = (uint32_t)whole;
    r->got = 0;
    r->charge = charge;
    return true;
}

void rq__read_ended(rq_read *r, int32_t got)
{
    r->got = got;
    rq_lane_post(r->reads->lane, r->task);
}

bool rq_read_has(const rq_read *r, uint64_t off, size_t len, rq_slice *ret, uint64_t *ret_from)
{
    if (r->reads == NULL) return false;
    size_t got = r->got > 0 ? (size_t)r->got : 0;
    *ret = rq_slice_of(r->bytes, got);
    *ret_from = r->from;
    bool has = off >= r->from && off - r->from <= got && len <= got - (size_t)(off - r->from);
    if (!has) atomic_fetch_add_explicit(&r->reads->shared->failed, 1, memory_order_relaxed);
    return has;
}

void rq_read_end(rq_read *r)
{
    if (r->reads == NULL) return;
    free(r->room);
    atomic_fetch_sub_explicit(&r->reads->shared->bytes, r->charge, memory_order_relaxed);
    r->reads = NULL;
    r->room = NULL;
}
