/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences: some of a sorted list's nodes in an array, so that a search of the list begins near its
 * end instead of at its head. The memstore's skip list (segment.c) keeps its taller nodes here.
 *
 * An entry is a node's rank (segment.c; never falling along the array) and the node. Nodes are
 * opaque. Ranks are also kept in blocks of sixteen with the first of each block one level up, and
 * so on, as in a B-tree: a search reads two cache lines a level.
 *
 * One writer. It appends until it publishes the fences, with a release store of the pointer; from
 * then on it may only forget nodes. Any number of readers meanwhile.
 */
#ifndef RQ_STORE_FENCES_H
#define RQ_STORE_FENCES_H

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rq_fences rq_fences;

/* For at most `capacity` nodes; NULL: no memory. The caller owns it and chains it by `older`. */
rq_fences *rq_fences_new(size_t capacity, rq_fences *older);

/* With all that are older. */
void rq_fences_free(rq_fences *f);

/* Memory held, in bytes; without the older ones. */
size_t rq_fences_bytes(const rq_fences *f);

/* The writer's, before publishing: `rank` not below the last one's. `above`: so many levels above
 * the one that fences are taken from the node stands on, RQ_FENCE_ABOVE_MAX or more. False: full.
 */
#define RQ_FENCE_ABOVE_MAX 3
bool rq_fences_append(rq_fences *f, uint64_t rank, void *node, unsigned above);

size_t rq_fences_count(const rq_fences *f);

/* The number of entries whose rank is smaller. */
size_t rq_fences_before(const rq_fences *f, uint64_t rank);

/* The same a level at a time; each asks for the memory that the next one reads. */
typedef struct rq_fences_search {
    const rq_fences *fences;
    uint64_t rank;
    unsigned level; /* still to be searched */
    size_t at;      /* after the last step: the number of entries whose rank is smaller */
} rq_fences_search;

void rq_fences_search_begin(rq_fences_search *c, const rq_fences *f, uint64_t rank);
/* True: that was the last. */
bool rq_fences_search_step(rq_fences_search *c);

uint64_t rq_fences_rank(const rq_fences *f, size_t i);

/* Also of a forgotten entry: its place in the order still holds. */
void *rq_fences_node(const rq_fences *f, size_t i);

/* As it was appended with. */
unsigned rq_fences_above(const rq_fences *f, size_t i);

/* Whether a search may begin there. */
bool rq_fences_holds(const rq_fences *f, size_t i);

/* The writer's: no search shall begin at this node any more. */
void rq_fences_forget(rq_fences *f, size_t i);

#endif
