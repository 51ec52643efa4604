/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The regions of one table in the order of their start keys, as an immutable B-tree: leaves hold
 * regions, branches also the number of regions below each child.
 *
 *   branch (up to 32 children: child, its first region, regions up to its end)
 *     └─ … leaf (up to 32 regions)
 *
 * A change copies the nodes on the path to the changed leaf and shares all others with the tree it
 * was made from. So one region's change costs some 100 pointers at 10^5 regions, not 10^5. Nodes
 * are reference-counted; a leaf holds a reference on each of its regions. Small nodes are not
 * merged with their neighbours; only empty nodes are removed.
 */
#ifndef RQ_CATALOG_REGION_TREE_H
#define RQ_CATALOG_REGION_TREE_H

#include "catalog/catalog.h"

struct rq__region_node;

/* NULL: no regions. */
typedef struct rq__region_tree rq__region_tree;

/* All functions that make a tree return a reference and borrow their arguments. */
RQ_NODISCARD
rq_err rq__region_tree_build(struct rq__region_node *const *regions, size_t count,
                             rq__region_tree **ret);
RQ_NODISCARD
rq_err rq__region_tree_replace(const rq__region_tree *t, size_t i, struct rq__region_node *region,
                               rq__region_tree **ret);
/* Inserts before the i-th region; i may be the number of regions. */
RQ_NODISCARD
rq_err rq__region_tree_insert(const rq__region_tree *t, size_t i, struct rq__region_node *region,
                              rq__region_tree **ret);
RQ_NODISCARD
rq_err rq__region_tree_remove(const rq__region_tree *t, size_t i, rq__region_tree **ret);
rq__region_tree *rq__region_tree_ref(rq__region_tree *t);
void rq__region_tree_unref(rq__region_tree *t);

size_t rq__region_tree_count(const rq__region_tree *t);
/* REQUIRES: i below the count. */
struct rq__region_node *rq__region_tree_at(const rq__region_tree *t, size_t i);
/* The number of regions before (start key, region id); with `also_equal` including equal ones. */
size_t rq__region_tree_rank(const rq__region_tree *t, rq_slice start_key, int64_t region_id,
                            bool also_equal);

#endif
