/* SPDX-License-Identifier: Apache-2.0 */
/* Searches of the memstore's skip list: down from the head, or from a fence.
 *
 * From some thousand cells on, a search begins at a *fence* (fences.h): the nodes that reach
 * FENCE_LEVEL, every eighth one, are also in an array with their ranks. From the fence it takes a
 * few steps, instead of a descent from the head whose every step is a cache miss. If the key is too
 * far behind its fence, or behind the last one, the search begins at the head. */
#include "store/segment_search.h"

#define FENCE_STEPS 12 /* steps along a level before a search gives up and starts at the head */
#define FENCES_BACK 64 /* fences tried to find a higher node */

rq_segment_node *rq__segment_descend(const rq_segment *s, rq_segment_node *at, unsigned level,
                                     rq_segment_node *behind, probe *key, rq_segment_node **path)
{
    while (level-- > 0) {
        for (;;) {
            rq_segment_node *next = next_of(at, level);
            if (next == behind) break;
            if (!leads_on(s, link_of(at, level), key, &next)) {
                behind = next;
                break;
            }
            at = next;
            __builtin_prefetch(at); /* its lowest link; the others may be in the line before */
        }
        path[level] = at;
    }
    return at;
}

rq_segment_node *rq__segment_find_before(const rq_segment *s, probe *key, rq_segment_node **path)
{
    unsigned level = atomic_load_explicit(&s->height, memory_order_relaxed);
    return rq__segment_descend(s, head_of(s), level, NULL, key, path);
}

/* Of those not before its rank. */
static bool fence_is_before(const rq_segment *s, const rq_fences *f, size_t i, const probe *key)
{
    return i < rq__fences_count(f) && rq__fences_rank(f, i) == key->rank &&
           node_compare(s->order, rq__fences_node(f, i), key) < 0;
}

/* Index of the first fence not before the key. */
static size_t fence_at(const rq_segment *s, const rq_fences *f, const probe *key)
{
    size_t from = rq__fences_before(f, key->rank);
    size_t to = from;
    /* Of the fences of a row mostly the first: new cells of the row are inserted there. */
    for (size_t step = 1; fence_is_before(s, f, to, key); step *= 2) {
        from = to + 1;
        to += step;
    }
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (fence_is_before(s, f, mid, key))
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* The last node before the key on the level, following links from `at`; NULL: too far. */
static rq_segment_node *walk(const rq_segment *s, rq_segment_node *at, unsigned level, probe *key,
                             rq_segment_node **ret_next)
{
    for (unsigned steps = 0; leads_on(s, link_of(at, level), key, ret_next); steps++) {
        if (steps == FENCE_STEPS) return NULL;
        at = *ret_next;
    }
    return at;
}

bool rq__segment_find_above(const rq_segment *s, size_t i, probe *key, unsigned levels,
                            rq_segment_node **path)
{
    const rq_fences *f = atomic_load_explicit(&s->fences, memory_order_relaxed);
    size_t end = i > FENCES_BACK ? i - FENCES_BACK : 0;
    if (levels > FENCE_LEVEL + 1 + RQ_FENCE_ABOVE_MAX) return false;
    for (unsigned level = FENCE_LEVEL + 1; level < levels; level++) {
        while (i > end &&
               (rq__fences_above(f, i - 1) < level - FENCE_LEVEL || !rq__fences_holds(f, i - 1)))
            i--;
        if (i == end) return false;
        rq_segment_node *next;
        path[level] = walk(s, rq__fences_node(f, i - 1), level, key, &next);
        if (path[level] == NULL) return false;
    }
    return true;
}

static rq_segment_node *find_from(const rq_segment *s, const rq_fences *f, probe *key,
                                  rq_segment_node **path, unsigned levels, size_t *ret_before)
{
    if (f == NULL) return NULL;
    size_t i = fence_at(s, f, key);
    *ret_before = i;
    if (i == 0 || i == rq__fences_count(f) || !rq__fences_holds(f, i - 1)) return NULL;
    rq_segment_node *at = rq__fences_node(f, i - 1);
    __builtin_prefetch(at);
    rq_segment_node *next;
    at = walk(s, at, FENCE_LEVEL, key, &next);
    if (at == NULL) return NULL;
    path[FENCE_LEVEL] = at;
    if (levels > FENCE_LEVEL + 1 && !rq__segment_find_above(s, i, key, levels, path)) return NULL;
    return rq__segment_descend(s, at, FENCE_LEVEL, next, key, path);
}

rq_segment_node *rq__segment_find_from_fence(const rq_segment *s, probe *key,
                                             rq_segment_node **path, unsigned levels,
                                             size_t *ret_before)
{
    const rq_fences *f = atomic_load_explicit(&s->fences, memory_order_acquire);
    return find_from(s, f, key, path, levels, ret_before);
}

rq_segment_node *rq__segment_search(const rq_segment *s, const rq_cell *key,
                                    rq__segment_place *ret_place)
{
    rq_segment_node *path[HEIGHT_MAX];
    for (;;) {
        uint32_t epoch = atomic_load_explicit(&s->epoch, memory_order_acquire);
        probe p = {.cell = key, .ranked = epoch % 2 == 0};
        if (p.ranked) p.rank = rank_of(s, key->row, key->row_len);
        path[FENCE_LEVEL] = head_of(s); /* the list may not be so high */
        ret_place->fences = atomic_load_explicit(&s->fences, memory_order_acquire);
        rq_segment_node *n =
            p.ranked ? find_from(s, ret_place->fences, &p, path, 0, &ret_place->fence) : NULL;
        if (n == NULL) {
            n = rq__segment_find_before(s, &p, path);
            ret_place->fences = NULL;
        }
        if (atomic_load_explicit(&s->epoch, memory_order_acquire) != epoch && p.ranked) continue;
        ret_place->tall = path[FENCE_LEVEL];
        return n;
    }
}

/* --- building fences -------------------------------------------------------------------------- */

/* Fences are built along with inserts: new ones when the list has doubled, one node at every fourth
 * insert, so that no insert waits for it. */
#define FENCE_EVERY 8 /* nodes: those that reach the level */

static void begin_fences(rq_segment *s, size_t cells)
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

static void end_fences(rq_segment *s)
{
    rq__segment_count_heap(s, (int64_t)rq__fences_bytes(s->making));
    atomic_store_explicit(&s->fences, s->making, memory_order_release);
    s->before = 0; /* it counted the old ones */
    s->making = NULL;
}

/* Number of levels above FENCE_LEVEL that the next fence, node `n`, reaches. May be too low: a node
 * of the same rank that was inserted meanwhile may precede `n` on a level. */
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

void rq__segment_fences_begin(rq_segment *s)
{
    if (s->rank_at == 0 && s->order != RQ_ORDER_META) begin_fences(s, rq_segment_cell_count(s));
}

void rq__segment_fences_work(rq_segment *s)
{
    const link *l = link_of(s->fence, FENCE_LEVEL);
    rq_segment_node *next = next_of(s->fence, FENCE_LEVEL);
    uint64_t rank = atomic_load_explicit(&l->rank, memory_order_relaxed);
    if (next == NULL || !rq__fences_append(s->making, rank, next, levels_above(s, next, rank))) {
        end_fences(s);
    } else {
        s->fence = next;
        __builtin_prefetch(link_of(next, FENCE_LEVEL)); /* for the next time; it is far away */
        __builtin_prefetch(next);
    }
}

static void forget_fence(const rq_segment *s, rq_fences *f, const rq_segment_node *node,
                         const probe *key)
{
    if (f == NULL) return;
    size_t i = fence_at(s, f, key);
    if (i < rq__fences_count(f) && rq__fences_node(f, i) == node) rq__fences_forget(f, i);
}

void rq__segment_fences_forget(rq_segment *s, const rq_segment_node *node, const probe *key)
{
    forget_fence(s, s->making, node, key);
    forget_fence(s, atomic_load_explicit(&s->fences, memory_order_relaxed), node, key);
    if (s->making != NULL && s->fence == node) end_fences(s);
}
