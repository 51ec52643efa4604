/* SPDX-License-Identifier: Apache-2.0 */
/* See region_tree.h. A node is one allocation of exactly the size it needs. */
#include "catalog/region_tree.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "catalog/view.h"

#define FANOUT 32

struct rq__region_tree {
    _Atomic unsigned refs;
    unsigned height; /* 0: a leaf */
    unsigned count;  /* of regions or children */
    size_t total;    /* of regions below it */
    /* followed by the regions of a leaf, or the branches of an inner node */
};

typedef struct branch {
    rq__region_tree *child;
    rq__region_node *first; /* first region below the child, which holds the reference */
    size_t end;             /* number of regions in this child and those before it */
} branch;

static rq__region_node **regions_of(const rq__region_tree *t)
{
    return (rq__region_node **)(uintptr_t)(t + 1);
}

static branch *branches_of(const rq__region_tree *t)
{
    return (branch *)(uintptr_t)(t + 1);
}

static rq__region_node *first_of(const rq__region_tree *t)
{
    return t->height == 0 ? regions_of(t)[0] : branches_of(t)[0].first;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static rq__region_tree *node_new(unsigned height, size_t count, size_t entry_bytes)
{
    rq__region_tree *t = malloc(sizeof *t + count * entry_bytes);
    if (t == NULL) return NULL;
    atomic_init(&t->refs, 1);
    t->height = height;
    t->count = (unsigned)count;
    return t;
}

static rq__region_tree *leaf_new(rq__region_node *const *regions, size_t count)
{
    rq__region_tree *t = node_new(0, count, sizeof *regions);
    if (t == NULL) return NULL;
    t->total = count;
    for (size_t i = 0; i < count; i++)
        regions_of(t)[i] = rq__region_node_ref(regions[i]);
    return t;
}

static rq__region_tree *inner_new(rq__region_tree *const *children, size_t count)
{
    rq__region_tree *t = node_new(children[0]->height + 1, count, sizeof(branch));
    if (t == NULL) return NULL;
    t->total = 0;
    for (size_t i = 0; i < count; i++) {
        t->total += children[i]->total;
        branches_of(t)[i] =
            (branch){rq__region_tree_ref(children[i]), first_of(children[i]), t->total};
    }
    return t;
}

rq__region_tree *rq__region_tree_ref(rq__region_tree *t)
{
    if (t != NULL) atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void rq__region_tree_unref(rq__region_tree *t)
{
    if (t == NULL || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1) return;
    for (unsigned i = 0; i < t->count; i++) {
        if (t->height == 0)
            rq__region_node_unref(regions_of(t)[i]);
        else
            rq__region_tree_unref(branches_of(t)[i].child);
    }
    free(t);
}

static void unref_all(rq__region_tree **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        rq__region_tree_unref(list[i]);
}

/* --- built from a list ------------------------------------------------------------------------ */

/* Replaces `count` nodes of one level by the nodes of the level above. */
static rq_err build_level(rq__region_tree **list, size_t *count)
{
    size_t made = 0;
    for (size_t i = 0; i < *count; i += FANOUT) {
        size_t n = *count - i < FANOUT ? *count - i : FANOUT;
        rq__region_tree *t = inner_new(list + i, n);
        if (t == NULL) {
            unref_all(list + i, *count - i);
            *count = made;
            return RQ_E_NO_MEMORY;
        }
        unref_all(list + i, n);
        list[made++] = t;
    }
    *count = made;
    return RQ_OK;
}

rq_err rq__region_tree_build(rq__region_node *const *regions, size_t count, rq__region_tree **ret)
{
    *ret = NULL;
    if (count == 0) return RQ_OK;
    size_t made = 0;
    rq__region_tree **list = calloc((count + FANOUT - 1) / FANOUT, sizeof(rq__region_tree *));
    rq_err rc = list == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    for (size_t i = 0; i < count && rc == RQ_OK; i += FANOUT) {
        list[made] = leaf_new(regions + i, count - i < FANOUT ? count - i : FANOUT);
        if (list[made] == NULL)
            rc = RQ_E_NO_MEMORY;
        else
            made++;
    }
    while (made > 1 && rc == RQ_OK)
        rc = build_level(list, &made);
    if (rc == RQ_OK)
        *ret = list[0];
    else
        unref_all(list, made);
    free(list);
    return rc;
}

/* --- changed ---------------------------------------------------------------------------------- */

/* Remove the region at an index, insert one before that index, or both. */
typedef struct change {
    rq__region_node *put; /* NULL: none */
    bool remove;
} change;

/* The result of changing a subtree: no node, one, or two if the old one was full. */
typedef struct pieces {
    rq__region_tree *list[2];
    size_t count;
} pieces;

/* `list` is of regions or of children. */
static rq_err make_pieces(void *const *list, size_t count, bool leaf, pieces *ret)
{
    size_t half = count <= FANOUT ? count : count / 2;
    *ret = (pieces){.count = 0};
    for (size_t at = 0; at < count;) {
        size_t n = at == 0 ? half : count - at;
        rq__region_tree *t = leaf ? leaf_new((rq__region_node *const *)list + at, n)
                                  : inner_new((rq__region_tree *const *)list + at, n);
        if (t == NULL) {
            unref_all(ret->list, ret->count);
            return RQ_E_NO_MEMORY;
        }
        ret->list[ret->count++] = t;
        at += n;
    }
    return RQ_OK;
}

static rq_err change_leaf(const rq__region_tree *t, size_t i, const change *c, pieces *ret)
{
    void *list[FANOUT + 1];
    size_t n = 0;
    for (size_t k = 0; k <= t->count; k++) {
        if (k == i && c->put != NULL) list[n++] = c->put;
        if (k < t->count && !(k == i && c->remove)) list[n++] = regions_of(t)[k];
    }
    return make_pieces(list, n, true, ret);
}

/* The child with the i-th region; the last child for the position behind all. */
static size_t child_of(const rq__region_tree *t, size_t i)
{
    size_t low = 0, high = t->count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (branches_of(t)[middle].end <= i)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t start_of(const rq__region_tree *t, size_t child)
{
    return child == 0 ? 0 : branches_of(t)[child - 1].end;
}

static rq_err change_node(const rq__region_tree *t, size_t i, const change *c, pieces *ret)
{
    if (t->height == 0) return change_leaf(t, i, c, ret);
    void *list[FANOUT + 1];
    size_t n = 0, child = child_of(t, i);
    pieces p;
    RQ_TRY(change_node(branches_of(t)[child].child, i - start_of(t, child), c, &p));
    for (size_t k = 0; k < t->count; k++) {
        if (k != child) list[n++] = branches_of(t)[k].child;
        for (size_t m = 0; m < p.count && k == child; m++)
            list[n++] = p.list[m];
    }
    rq_err rc = make_pieces(list, n, false, ret);
    unref_all(p.list, p.count); /* the new nodes have taken references of their own */
    return rc;
}

static rq_err change_tree(const rq__region_tree *t, size_t i, const change *c,
                          rq__region_tree **ret)
{
    pieces p;
    if (t == NULL) return rq__region_tree_build(&c->put, 1, ret);
    RQ_TRY(change_node(t, i, c, &p));
    rq__region_tree *root = p.count == 0 ? NULL : p.list[0];
    if (p.count == 2) {
        root = inner_new(p.list, 2);
        unref_all(p.list, 2);
        if (root == NULL) return RQ_E_NO_MEMORY;
    }
    while (root != NULL && root->height > 0 && root->count == 1) {
        rq__region_tree *only = rq__region_tree_ref(branches_of(root)[0].child);
        rq__region_tree_unref(root);
        root = only;
    }
    *ret = root;
    return RQ_OK;
}

rq_err rq__region_tree_replace(const rq__region_tree *t, size_t i, rq__region_node *region,
                               rq__region_tree **ret)
{
    return change_tree(t, i, &(change){.put = region, .remove = true}, ret);
}

rq_err rq__region_tree_insert(const rq__region_tree *t, size_t i, rq__region_node *region,
                              rq__region_tree **ret)
{
    return change_tree(t, i, &(change){.put = region}, ret);
}

rq_err rq__region_tree_remove(const rq__region_tree *t, size_t i, rq__region_tree **ret)
{
    return change_tree(t, i, &(change){.remove = true}, ret);
}

/* --- looked up -------------------------------------------------------------------------------- */

size_t rq__region_tree_count(const rq__region_tree *t)
{
    return t == NULL ? 0 : t->total;
}

rq__region_node *rq__region_tree_at(const rq__region_tree *t, size_t i)
{
    while (t->height > 0) {
        size_t child = child_of(t, i);
        i -= start_of(t, child);
        t = branches_of(t)[child].child;
    }
    return regions_of(t)[i];
}

typedef struct place {
    rq_slice start_key;
    int64_t region_id;
    bool also_equal;
} place;

static bool is_before(const rq__region_node *n, const place *p)
{
    int c = rq_slice_compare(n->info.start_key, p->start_key);
    if (c == 0) c = (n->info.region_id > p->region_id) - (n->info.region_id < p->region_id);
    return c < 0 || (c == 0 && p->also_equal);
}

/* Number of entries of one node that begin before the place. */
static size_t entries_before(const rq__region_tree *t, const place *p)
{
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const rq__region_node *n =
            t->height == 0 ? regions_of(t)[middle] : branches_of(t)[middle].first;
        if (is_before(n, p))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t rq__region_tree_rank(const rq__region_tree *t, rq_slice start_key, int64_t region_id,
                            bool also_equal)
{
    place p = {start_key, region_id, also_equal};
    size_t rank = 0;
    while (t != NULL && t->height > 0) {
        size_t n = entries_before(t, &p);
        if (n == 0) return rank;
        rank += start_of(t, n - 1);
        t = branches_of(t)[n - 1].child;
    }
    return t == NULL ? 0 : rank + entries_before(t, &p);
}
