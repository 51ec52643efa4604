/* SPDX-License-Identifier: Apache-2.0 */
/* Searches in the memstore's skip list (segment_list.h). The writer searches for a path, to link
 * a node there; readers search for the node before a key. */
#ifndef RQ_STORE_SEGMENT_SEARCH_H
#define RQ_STORE_SEGMENT_SEARCH_H

#include "store/segment_list.h"

/* Whether the link's target is before the key. *ret_next is the target. */
static inline bool leads_on(const rq_segment *s, const link *l, probe *key,
                            rq_segment_node **ret_next)
{
    rq_segment_node *next = atomic_load_explicit(&l->to, memory_order_acquire);
    for (;;) {
        *ret_next = next;
        if (next == NULL) return false;
        if (key->ranked) {
            /* Target, rank, target: if the target did not change in between, the rank belongs to
             * it or to a node behind it (segment.c, invariant 5), so "rank < key" holds for it,
             * too. */
            uint64_t rank = atomic_load_explicit(&l->rank, memory_order_acquire);
            rq_segment_node *again = atomic_load_explicit(&l->to, memory_order_acquire);
            if (again != next) { /* the rank may belong to another node */
                next = again;
                continue;
            }
            if (rank != key->rank) return rank < key->rank;
        }
        int c = node_compare(s->order, next, key);
        if (c == 0) key->equal = next;
        return c < 0;
    }
}

/* Finds the last node before the key, descending from `at`, which is before it, through the
 * levels below `level`. `path` receives the last node before the key on each of these levels.
 * `behind`: a node known not to be before the key, seen one level above; may be NULL. */
rq_segment_node *rq__segment_descend(const rq_segment *s, rq_segment_node *at, unsigned level,
                                     rq_segment_node *behind, probe *key, rq_segment_node **path);

/* Finds the last node before the key, from the head; `path` receives it for every level. */
rq_segment_node *rq__segment_find_before(const rq_segment *s, probe *key, rq_segment_node **path);

/* Like rq__segment_find_before, but starts at a fence. `path` (the writer) is set for the levels
 * up to FENCE_LEVEL and below `levels`. NULL: no fence is near. *ret_before: number of fences
 * before the key; not set if there are no fences. */
rq_segment_node *rq__segment_find_from_fence(const rq_segment *s, probe *key,
                                             rq_segment_node **path, unsigned levels,
                                             size_t *ret_before);

/* Sets the writer's path above FENCE_LEVEL and below `levels`, starting from the nearest
 * sufficiently tall one of the first `before` fences, which are before the key. False: none is
 * near. */
bool rq__segment_find_above(const rq_segment *s, size_t before, probe *key, unsigned levels,
                            rq_segment_node **path);

/* What a search has passed. */
typedef struct rq__segment_place {
    rq_segment_node *tall;   /* the last node before the key on FENCE_LEVEL */
    const rq_fences *fences; /* NULL: there are none, or the key is behind all of them */
    size_t fence;            /* the first of them not before the key */
} rq__segment_place;

/* A reader's search: the last node before the key. Repeats if ranks changed meanwhile, comparing
 * only bytes while they change. */
rq_segment_node *rq__segment_search(const rq_segment *s, const rq_cell *key,
                                    rq__segment_place *ret_place);

#endif
