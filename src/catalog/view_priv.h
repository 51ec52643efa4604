/* SPDX-License-Identifier: Apache-2.0 */
/* What the nodes of a view, its lookups and its edits share. */
#ifndef RQ_CATALOG_VIEW_PRIV_H
#define RQ_CATALOG_VIEW_PRIV_H

#include "catalog/view.h"

#include <stdlib.h>

/* --- nodes (view_nodes.c) --------------------------------------------------------------------- */

static inline const rq__table_node *rq__table_node_of(const rq_catalog_table *t)
{
    return RQ_CONTAINER_OF(t, rq__table_node, pub);
}

/* The node of one replica of a region. NULL: out of memory. */
rq__region_node *rq__replica_node_new(const rq_catalog_region *of, int32_t replica_id);
/* The nodes of all replicas of `regions`, as a tree; NULL if the table has none. */
RQ_NODISCARD
rq_err rq__replica_nodes_new(const rq_table_schema *schema, const rq__region_tree *regions,
                             rq__region_tree **ret);
/* Takes over the references on the trees, also on failure. NULL: out of memory. */
rq__table_node *rq__table_node_of_trees(rq_table_schema *schema, rq_table_state state,
                                        rq__region_tree *regions, rq__region_tree *replicas);
/* The order of tables. */
int rq__table_names_compare(rq_slice ns_a, rq_slice q_a, rq_slice ns_b, rq_slice q_b);

/* --- lists of pointers ------------------------------------------------------------------------ */

static inline rq_err rq__pointers_push(rq__pointers *l, const void *item)
{
    if (l->count == l->cap) {
        size_t cap = l->cap == 0 ? 8 : l->cap * 2;
        void **more = realloc(l->items, cap * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        l->items = more;
        l->cap = cap;
    }
    l->items[l->count++] = (void *)(uintptr_t)item;
    return RQ_OK;
}

/* Release the references that a list holds, and the list. */
void rq__pointers_unref_tables(rq__pointers *l);
void rq__pointers_unref_namespaces(rq__pointers *l);

/* Frees a view that no reader uses any more. */
void rq__view_release(rq_epoch_node *node);

#endif
