/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view: the catalog's state as readers see it. Immutable nodes (regions, tables, namespaces),
 * each reference-counted and shared between successive views, and one view that finds them.
 *
 *   view ──► tables by name ──► table node ──► tree of regions by start key ──► open region
 *        ──► hash of encoded names ─────────────────▲
 *
 * A change takes the edit lock, makes new nodes for what changes, and publishes. It costs
 *   - of each changed region, the path to it in its table's tree (region_tree.h) and its slot of
 *     the hash; a table that is replaced as a whole costs all its regions;
 *   - of the lists of tables and namespaces, a copy of their pointers.
 *
 * The hash (host/names.h) is not copied: successive views share it, and a commit changes its slots in
 * place while readers look. A reader may therefore find a region by its encoded name a moment before
 * or after the table shows it. What a reader finds stays allocated until its read section ends: nodes
 * that a commit replaces belong to the previous view and are released together with it by the epoch.
 *
 * The current view owns one reference on each of its tables and namespaces. A commit passes these
 * references to the next view, except those on nodes that the next view lacks; the old view keeps
 * them until it is released. That is enough because views are released in the order they were
 * published.
 */
#ifndef RQ_CATALOG_VIEW_H
#define RQ_CATALOG_VIEW_H

#include "catalog/catalog.h"
#include "catalog/region_tree.h"

#include <pthread.h>
#include <stdatomic.h>

/* One allocation; the info's slices point into it. */
typedef struct rq__region_node {
    rq_catalog_region pub; /* the part that lookups return */
    rq_region_info info;
    _Atomic unsigned refs;
    _Atomic bool unsplittable_logged; /* the log already has a message that it cannot be split
                                     * automatically */
} rq__region_node;

typedef struct rq__table_node {
    rq_catalog_table pub;
    rq__region_tree *regions;
    rq__region_tree *replicas; /* REGION_REPLICATION - 1 nodes for each region, in regions' order */
    _Atomic unsigned refs;
} rq__table_node;

typedef struct rq__namespace_node {
    rq_namespace pub;
    rq_slice pb; /* the serialized NamespaceDescriptor */
    rq_arena arena;
    _Atomic unsigned refs;
} rq__namespace_node;

/* --- nodes ------------------------------------------------------------------------------------ */
/* A new reference; takes references on `region` and `server` unless NULL. Copies `failure`. NULL: out
 * of memory. */
rq__region_node *rq__region_node_new(const rq_region_info *info, rq_region_state state,
                                     rq_region *region, const rq_server_name *server,
                                     int64_t open_seqnum, int64_t changed_ms, const char *failure);
rq__region_node *rq__region_node_ref(rq__region_node *n);
void rq__region_node_unref(rq__region_node *n); /* NULL is fine */

/* Takes its own references on schema and regions (in any order), and makes the nodes of their
 * replicas. NULL: out of memory. */
rq__table_node *rq__table_node_new(rq_table_schema *schema, rq_table_state state,
                                   rq__region_node *const *regions, size_t region_count);
rq__table_node *rq__table_node_ref(rq__table_node *n);
void rq__table_node_unref(rq__table_node *n);
/* REQUIRES: i below pub.region_count. */
static inline rq__region_node *rq__table_region(const rq__table_node *t, size_t i)
{
    return rq__region_tree_at(t->regions, i);
}
/* The index of the region; pub.region_count: it is not one of the table's. */
size_t rq__table_index(const rq__table_node *t, const rq_region_info *info);

/* Parses a NamespaceDescriptor. */
RQ_NODISCARD
rq_err rq__namespace_node_new(rq_slice pb, rq__namespace_node **ret, rq_error *why);
rq__namespace_node *rq__namespace_node_ref(rq__namespace_node *n);
void rq__namespace_node_unref(rq__namespace_node *n);

/* --- the view --------------------------------------------------------------------------------- */
/* A growing list of pointers. */
typedef struct rq__pointers {
    void **items;
    size_t count, cap;
} rq__pointers;

typedef struct rq__view {
    rq_epoch_node retired;
    struct rq__views *owner;
    uint64_t number;
    const rq_catalog_table **tables; /* by "namespace:qualifier" */
    size_t table_count;
    const rq_namespace **namespaces; /* by name */
    size_t namespace_count;
    /* Once retired: the tables and namespaces that the next view lacks, released with this view. */
    rq__pointers old_tables, old_namespaces;
} rq__view;

typedef struct rq__views {
    rq_epoch *epoch;
    _Atomic(rq__view *) now;
    pthread_mutex_t edit_lock;  /* one edit at a time; never held across I/O */
    rq_region_names *names;     /* borrowed; written under edit_lock */
    _Atomic unsigned retired;   /* views that wait for the epoch */
    void (*changed)(void *ctx); /* NULL: no listener; under edit_lock */
    void *changed_ctx;
} rq__views;

RQ_NODISCARD
rq_err rq__views_init(rq__views *v, rq_epoch *epoch, rq_region_names *names);
/* REQUIRES: no reader. Returns when the views waiting for the epoch are freed too. */
void rq__views_clear(rq__views *v);
static inline const rq__view *rq__views_now(const rq__views *v)
{
    return atomic_load_explicit(&((rq__views *)v)->now, memory_order_acquire);
}
/* Releases retired views that no reader can see any more. */
void rq__views_collect(rq__views *v);

const rq_catalog_table *rq__view_table(const rq__view *v, rq_slice ns, rq_slice qualifier);
const rq_namespace *rq__view_namespace(const rq__view *v, rq_slice name);
/* The table's region that holds the row. */
const rq_catalog_region *rq__table_locate(const rq_catalog_table *t, rq_slice row);

/* --- edits ------------------------------------------------------------------------------------ */
typedef struct rq__edit {
    rq__views *views;
    /* Borrowed from the view or from `added`. */
    rq__table_node **tables;
    size_t table_count, table_cap;
    rq__namespace_node **namespaces;
    size_t namespace_count, namespace_cap;
    rq__pointers added_tables, added_namespaces;     /* nodes that the edit has references on */
    rq__pointers dropped_tables, dropped_namespaces; /* nodes that the edit has replaced */
    rq__pointers put, removed;                       /* regions whose slots change */
} rq__edit;

/* Takes the edit lock; followed by exactly one of commit and abort. On an error nothing is held. */
RQ_NODISCARD
rq_err rq__edit_begin(rq__views *v, rq__edit *e);
/* Publishes. On RQ_E_NO_MEMORY the old view stays. */
RQ_NODISCARD
rq_err rq__edit_commit(rq__edit *e);
void rq__edit_abort(rq__edit *e);
/* Borrowed; NULL when absent. */
rq__table_node *rq__edit_table(const rq__edit *e, rq_slice ns, rq_slice qualifier);
/* Inserts or replaces; takes the caller's reference, also on failure. Time is proportional to the
 * number of regions of the table. */
RQ_NODISCARD
rq_err rq__edit_put_table(rq__edit *e, rq__table_node *t);
/* The functions below change a table within the edit. This one keeps the regions; `schema` NULL: it
 * keeps the schema too. */
RQ_NODISCARD
rq_err rq__edit_set_table(rq__edit *e, const rq__table_node *t, rq_table_schema *schema,
                          rq_table_state state);
/* Replaces the nodes of regions by the given ones, by name; a node whose name the table lacks is
 * skipped. The nodes are borrowed. */
RQ_NODISCARD
rq_err rq__edit_replace_regions(rq__edit *e, const rq__table_node *t, rq_table_state state,
                                rq__region_node *const *nodes, size_t count);
/* Removes those regions of `old` that the table has, and inserts the nodes (borrowed). */
RQ_NODISCARD
rq_err rq__edit_swap_regions(rq__edit *e, const rq__table_node *t, const rq_region_info *old,
                             size_t old_count, rq__region_node *const *nodes, size_t count);
/* Removes the table, if there is one. Later calls of the same edit must not add its nodes again. */
RQ_NODISCARD
rq_err rq__edit_remove_table(rq__edit *e, rq_slice ns, rq_slice qualifier);
RQ_NODISCARD
/* Inserts or replaces; takes the caller's reference, also on failure. */
rq_err rq__edit_put_namespace(rq__edit *e, rq__namespace_node *n);
RQ_NODISCARD
rq_err rq__edit_remove_namespace(rq__edit *e, rq_slice name);

#endif
