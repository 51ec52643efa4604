/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences: an array of some nodes of a sorted list, so that a search begins near its goal instead of
 * at the list's head. The memstore's skip list (segment.c) keeps its taller nodes here.
 *
 * An entry is a node's rank (segment.c; non-decreasing along the array) and the node, which is
 * opaque. The ranks are also kept in blocks of sixteen, with the first of each block one level up,
 * and so on, as in a B-tree: a search reads two cache lines per level.
 *
 * One writer. It appends until it publishes the fences with a release store of the pointer; after
 * that it may only forget nodes. Any number of readers at the same time.
 */
#ifndef RQ_STORE_FENCES_H
#define RQ_STORE_FENCES_H

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rq_fences rq_fences;

/* Makes fences for at most `capacity` nodes. NULL: memory is exhausted. Owned by the caller,
 * which chains them by `older`. */
rq_fences *rq__fences_new(size_t capacity, rq_fences *older);

/* Frees the fences and all older ones. */
void rq__fences_free(rq_fences *f);

/* Memory in bytes, without the older ones. */
size_t rq__fences_bytes(const rq_fences *f);

/* Appends a node; called by the writer before publishing. `rank` must not be below the previous
 * one's. `above`: number of levels of the node above FENCE_LEVEL, capped at RQ_FENCE_ABOVE_MAX.
 * False: full. */
#define RQ_FENCE_ABOVE_MAX 3
bool rq__fences_append(rq_fences *f, uint64_t rank, void *node, unsigned above);

size_t rq__fences_count(const rq_fences *f);

/* The number of entries whose rank is smaller. */
size_t rq__fences_before(const rq_fences *f, uint64_t rank);

/* rq__fences_before one level at a time; each step prefetches what the next one reads. */
typedef struct rq_fences_search {
    const rq_fences *fences;
    uint64_t rank;
    unsigned level; /* next level to search */
    size_t at;      /* after the last step: number of entries with a smaller rank */
} rq_fences_search;

void rq__fences_search_begin(rq_fences_search *c, const rq_fences *f, uint64_t rank);
/* True: this was the last step. */
bool rq__fences_search_step(rq_fences_search *c);

uint64_t rq__fences_rank(const rq_fences *f, size_t i);

/* The node of an entry, also of a forgotten one, whose position in the order is still right. */
void *rq__fences_node(const rq_fences *f, size_t i);

/* The `above` the entry was appended with. */
unsigned rq__fences_above(const rq_fences *f, size_t i);

/* Whether a search may begin at the entry. */
bool rq__fences_holds(const rq_fences *f, size_t i);

/* Called by the writer: no search may begin at this node any more. */
void rq__fences_forget(rq_fences *f, size_t i);

#endif
