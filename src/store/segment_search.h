/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a place in the memstore's skip list (segment_list.h). The writer searches for a path, to
 * link what comes there; readers for the node in front of what they look for. */
#ifndef RQ_STORE_SEGMENT_SEARCH_H
#define RQ_STORE_SEGMENT_SEARCH_H

#include "store/segment_list.h"

/* Whether the link leads to a node before the key; *ret_next is that node, or the one behind. */
static inline bool leads_on(const rq_segment *s, const link *l, probe *key,
                            rq_segment_node **ret_next)
{
    rq_segment_node *next = atomic_load_explicit(&l->to, memory_order_acquire);
    for (;;) {
        *ret_next = next;
        if (next == NULL) return false;
        if (key->ranked) {
            uint64_t rank = atomic_load_explicit(&l->rank, memory_order_acquire);
            rq_segment_node *again = atomic_load_explicit(&l->to, memory_order_acquire);
            if (again != next) { /* the rank may be another node's */
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

/* The last node before the key, going down from `at`, which is before it, below `level`; `path`:
 * that node on each of these levels. `behind`: known not to be before the key, seen one
 * level above; may be NULL. */
rq_segment_node *rq__segment_descend(const rq_segment *s, rq_segment_node *at, unsigned level,
                                     rq_segment_node *behind, probe *key, rq_segment_node **path);

/* The last node before the key, from the head; `path`: that node on every level of the list. */
rq_segment_node *rq__segment_find_before(const rq_segment *s, probe *key, rq_segment_node **path);

/* The same from a fence; with `path` on the levels up to FENCE_LEVEL, and below `levels` if those
 * are more (the writer). NULL: none is near. *ret_before: so many fences are before the key; not
 * set when there are none at all. */
rq_segment_node *rq__segment_find_from_fence(const rq_segment *s, probe *key,
                                             rq_segment_node **path, unsigned levels,
                                             size_t *ret_before);

/* The writer's path above FENCE_LEVEL, below `levels`, from the nearest of the first `before`
 * fences, which are before the key, that stands so high. False: none is near. */
bool rq__segment_find_above(const rq_segment *s, size_t before, probe *key, unsigned levels,
                            rq_segment_node **path);

/* The first fence not before the key. */
size_t rq__segment_fence_at(const rq_segment *s, const rq_fences *f, const probe *key);

/* A reader's search: the last node before the key; again when ranks changed meanwhile, by bytes
 * alone while they change. *ret_tall: the last one on FENCE_LEVEL. */
rq_segment_node *rq__segment_search(const rq_segment *s, const rq_cell *key,
                                    rq_segment_node **ret_tall);

#endif
