/* SPDX-License-Identifier: Apache-2.0 */
/* A memstore segment's memory: slabs that grow from 4 kB to 2 MiB, from whose end nodes are
 * allocated and returned; from 16 kB on they come from a pool, or are pieces of its slabs. Under
 * AddressSanitizer all bytes outside nodes are poisoned, with a red zone behind each node. The list
 * itself is described in segment.c. */
#include "store/segment_list.h"

#include "base/asan.h"
#include "store/slab_pieces.h"

#include <stdlib.h>
#include <sys/mman.h>

/* If there is no pool, slabs of at least this size are mapped, smaller ones come from malloc. */
#define SLAB_MAPPED ((size_t)256 * 1024)
/* Nodes of at least this size begin on a cache line; the padding is less than 6 %. */
#define ALIGN_FROM ((size_t)512)

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static void free_slab(rq_segment *s, slab *b)
{
    RQ_UNPOISON(b, b->size);
    if (b->size == RQ_SLAB_BYTES)
        rq__slab_pool_give(s->pool, b);
    else if (s->pool != NULL && rq__slab_is_piece(b->size))
        rq__slab_piece_give(rq__slab_pool_pieces(s->pool), b, b->size);
    else if (b->size >= SLAB_MAPPED)
        munmap(b, b->size);
    else
        free(b);
}

static void *get_slab(rq_segment *s, size_t size)
{
    if (size == RQ_SLAB_BYTES) return rq__slab_pool_take(s->pool);
    if (s->pool != NULL && rq__slab_is_piece(size))
        return rq__slab_piece_take(rq__slab_pool_pieces(s->pool), size);
    if (size < SLAB_MAPPED) return malloc(size);
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void rq__segment_count_heap(rq_segment *s, int64_t bytes)
{
    size_t now = atomic_load_explicit(&s->heap_bytes, memory_order_relaxed);
    atomic_store_explicit(&s->heap_bytes, now + (size_t)bytes, memory_order_relaxed);
    rq__slab_pool_count(s->pool, bytes);
}

static bool add_slab(rq_segment *s, size_t need)
{
    size_t size = s->next_slab;
    if (sizeof(slab) + need + RQ_CACHE_LINE > size)
        size = round_up(sizeof(slab) + need + RQ_CACHE_LINE, 4096);
    slab *b = get_slab(s, size);
    if (b == NULL) return false;
    b->size = size;
    RQ_POISON(b + 1, size - sizeof *b);
    b->older = s->slabs;
    s->slabs = b;
    s->used = sizeof *b;
    s->room = size;
    if (s->next_slab < RQ_SLAB_BYTES) s->next_slab *= s->next_slab < SLAB_MAPPED ? 4 : 2;
    if (s->next_slab > RQ_SLAB_BYTES) s->next_slab = RQ_SLAB_BYTES;
    rq__segment_count_heap(s, (int64_t)size);
    return true;
}

/* Offset in the newest slab at which `lead` bytes of links end and the node begins; 0: no room. */
static size_t place_in(const rq_segment *s, size_t lead, size_t size)
{
    size_t at = round_up(s->used + lead, 8);
    if (size >= ALIGN_FROM) {
        /* The lowest link opens the line. */
        uintptr_t address = (uintptr_t)s->slabs + at - sizeof(link);
        at += (size_t)(-address & (RQ_CACHE_LINE - 1));
    }
    return at + size <= s->room ? at : 0;
}

rq_segment_node *rq__segment_alloc(rq_segment *s, unsigned height, size_t payload)
{
    size_t lead = height * sizeof(link);
    size_t size = NODE_HEADER + payload;
    size_t at = place_in(s, lead, size);
    if (at == 0) {
        if (!add_slab(s, lead + size + RQ_CACHE_LINE)) return NULL;
        at = place_in(s, lead, size);
    }
    s->used = at + size + RQ_RED_ZONE;
    rq_segment_node *n = (rq_segment_node *)((uint8_t *)s->slabs + at);
    RQ_UNPOISON((uint8_t *)n - lead, lead + size);
    n->height = height;
    return n;
}

void rq_segment_rollback(rq_segment *s, rq_segment_node *n)
{
    uint8_t *p = (uint8_t *)n;
    while (p < (uint8_t *)s->slabs || p >= (uint8_t *)s->slabs + s->slabs->size) {
        slab *b = s->slabs;
        s->slabs = b->older;
        rq__segment_count_heap(s, -(int64_t)b->size);
        free_slab(s, b);
        RQ_ASSERT(s->slabs != NULL);
        s->room = s->slabs->size;
    }
    s->used = (size_t)(p - (uint8_t *)s->slabs) - n->height * sizeof(link);
    RQ_POISON((uint8_t *)s->slabs + s->used, s->slabs->size - s->used);
}

void rq__segment_free_slabs(rq_segment *s)
{
    slab *older;
    for (slab *b = s->slabs; b != NULL; b = older) {
        older = b->older;
        free_slab(s, b);
    }
}
