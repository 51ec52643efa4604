/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a memstore's fences along with its inserts: new ones when the list has doubled, one node
 * at every fourth insert, so that no insert waits for it. Their use is described in
 * segment_search.c.
 */
#include "store/segment_search.h"

#define FENCE_EVERY 8      /* nodes: those that reach the level */
#define FENCE_WORK_EVERY 4 /* inserts */

static void begin(rq_segment *s, size_t cells)
{
    /* Twice the expected number: cells will be added meanwhile, and the build ends when the array
     * is full. */
    s->making = rq__fences_new(2 * cells / FENCE_EVERY,
                               atomic_load_explicit(&s->fences, memory_order_relaxed));
    s->fence = head_of(s);
    for (unsigned i = 0; i < RQ_FENCE_ABOVE_MAX; i++)
        s->fence_above[i] = head_of(s);
    s->fences_at = 2 * cells;
}

static void end(rq_segment *s)
{
    rq__segment_count_heap(s, (int64_t)rq__fences_bytes(s->making));
    atomic_store_explicit(&s->fences, s->making, memory_order_release);
    s->before = 0; /* it counted the old ones */
    s->making = NULL;
}

/* Lower bound of the height above FENCE_LEVEL of the node that follows in the fences: a node of the
 * same row that was inserted meanwhile may be in between. */
static unsigned levels_above(rq_segment *s, rq_segment_node *n, uint64_t rank)
{
    unsigned above = 0;
    for (; above < RQ_FENCE_ABOVE_MAX; above++) {
        unsigned level = FENCE_LEVEL + 1 + above;
        rq_segment_node **at = &s->fence_above[above];
        while (atomic_load_explicit(&link_of(*at, level)->rank, memory_order_relaxed) < rank)
            *at = next_of(*at, level);
        if (next_of(*at, level) != n) break;
        *at = n;
    }
    return above;
}

void rq__segment_fences_work(rq_segment *s)
{
    size_t cells = rq_segment_cell_count(s);
    if (s->making == NULL) {
        if (cells >= s->fences_at && s->rank_at == 0 && s->order != RQ_ORDER_META) begin(s, cells);
        return;
    }
    if (cells % FENCE_WORK_EVERY != 0) return;
    const link *l = link_of(s->fence, FENCE_LEVEL);
    rq_segment_node *next = next_of(s->fence, FENCE_LEVEL);
    uint64_t rank = atomic_load_explicit(&l->rank, memory_order_relaxed);
    if (next == NULL || !rq__fences_append(s->making, rank, next, levels_above(s, next, rank))) {
        end(s);
    } else {
        s->fence = next;
        __builtin_prefetch(link_of(next, FENCE_LEVEL)); /* for the next time; it is far away */
        __builtin_prefetch(next);
    }
}

static void forget(const rq_segment *s, rq_fences *f, const rq_segment_node *node, const probe *key)
{
    if (f == NULL) return;
    size_t i = rq__segment_fence_at(s, f, key);
    if (i < rq__fences_count(f) && rq__fences_node(f, i) == node) rq__fences_forget(f, i);
}

void rq__segment_fences_forget(rq_segment *s, const rq_segment_node *node, const probe *key)
{
    forget(s, s->making, node, key);
    forget(s, atomic_load_explicit(&s->fences, memory_order_relaxed), node, key);
    if (s->making != NULL && s->fence == node) end(s);
}
